package fabric

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// try makes one NIC on the rung and removes it again.
func try(r Rung) error {
	g, err := newGround(r)
	if err == nil {
		var ns *netns.NS
		if ns, err = g.host("try"); err == nil {
			addr := address(1)
			l := link{name: "try", nth: 1, addr: addr, mac: hardwareAddr(addr.Addr()), mtu: DefaultMTU, sends: func([]byte) {}}
			var d device
			if d, err = g.device(&host{name: "try", ns: ns}, l); err == nil {
				err = d.close()
			}
			if ns != nil {
				err = errors.Join(err, ns.Close())
			}
		}
		err = errors.Join(err, g.close())
	}
	if errors.Is(err, fs.ErrPermission) {
		advice := "allow user namespaces"
		if strings.Contains(err.Error(), tun) {
			advice = "let users open " + tun
		}
		return fmt.Errorf("no %v: %w; run as root, or %s", r, err, advice)
	}
	if err != nil {
		return fmt.Errorf("no %v: %w", r, err)
	}
	return nil
}

func newGround(r Rung) (ground, error) {
	if r == Memory {
		return newMemory(), nil
	}
	k := &kernel{rung: r, hosts: map[string]*netlink.Handle{}}
	if r == Veth {
		var err error
		if k.far, err = k.host(farHost); err != nil {
			return nil, errors.Join(err, k.close())
		}
	}
	return k, nil
}

// farHost is the namespace of the far ends of veth pairs; no host can be called so.
const farHost = "far ends"

// kernel is a ground of network namespaces.
type kernel struct {
	rung  Rung
	hosts map[string]*netlink.Handle
	far   *netns.NS // of veth pairs
}

// host makes a namespace in which nothing is sent that the host's programs do not
// send.
func (k *kernel) host(name string) (*netns.NS, error) {
	ns, err := netns.New(name)
	if err != nil {
		return nil, err
	}
	err = ns.Do(func() error {
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("netlink: %w", err)
		}
		k.hosts[name] = h
		for _, s := range []struct{ path, value string }{
			// No router solicitations or duplicate address detection.
			{"ipv6/conf/all/disable_ipv6", "1"}, {"ipv6/conf/default/disable_ipv6", "1"},
			// All NICs are in one network: what comes in at one of them need not be
			// what the route back goes out at.
			{"ipv4/conf/all/rp_filter", "0"}, {"ipv4/conf/default/rp_filter", "0"},
		} {
			err := os.WriteFile("/proc/sys/net/"+s.path, []byte(s.value), 0)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a kernel without IPv6
				return err
			}
		}
		lo, err := h.LinkByName("lo")
		if err == nil {
			err = h.LinkSetUp(lo)
		}
		if err != nil {
			return fmt.Errorf("interface lo: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return ns, nil
}

func (k *kernel) device(h *host, l link) (device, error) {
	if k.rung == TAP {
		return newTAP(h.ns, k.hosts[h.name], l)
	}
	return newVeth(h.ns, k.hosts[h.name], k.far, k.hosts[farHost], l)
}

// settle gives an interface its addresses and sets it up.
func settle(nl *netlink.Handle, l link) (index int, err error) {
	dev, err := nl.LinkByName(l.name)
	if err != nil {
		return 0, err
	}
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: l.addr.Addr().AsSlice(), Mask: net.CIDRMask(l.addr.Bits(), 32)}}
	for _, do := range []func() error{
		func() error { return nl.LinkSetHardwareAddr(dev, l.mac) },
		func() error { return nl.LinkSetMTU(dev, l.mtu) },
		func() error { return nl.AddrAdd(dev, addr) },
		func() error { return nl.LinkSetUp(dev) },
	} {
		if err := do(); err != nil {
			return 0, err
		}
	}
	return dev.Attrs().Index, nil
}

// introduce makes permanent neighbours: others are forgotten when the carrier is
// lost, and then traffic would come back only after ARP.
func (k *kernel) introduce(h *host, from device, to []link) error {
	for _, l := range to {
		err := k.hosts[h.name].NeighSet(&netlink.Neigh{
			LinkIndex: from.index(), Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
			IP: l.addr.Addr().AsSlice(), HardwareAddr: l.mac,
		})
		if err != nil {
			return fmt.Errorf("neighbour %v: %w", l.addr.Addr(), err)
		}
	}
	return nil
}

func (k *kernel) sleeper() (sleeper, error) { return newClockSleeper() }

func (k *kernel) close() error {
	for _, nl := range k.hosts {
		nl.Close()
	}
	if k.far != nil {
		return k.far.Close()
	}
	return nil
}
