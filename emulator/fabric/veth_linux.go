package fabric

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// veth is a veth pair: one end in the host, the other in the namespace of far ends,
// with a packet socket on it (packet(7)). The carrier of the near end is whether the
// far end is up.
type veth struct {
	*pump
	ifindex int
	far     *netlink.Veth
	nl      *netlink.Handle // of the far end
}

func newVeth(ns *netns.NS, nl *netlink.Handle, farNS *netns.NS, farNL *netlink.Handle, l link) (device, error) {
	v, err := openVeth(ns, nl, farNS, farNL, l)
	if err != nil {
		return nil, fmt.Errorf("veth pair %s: %w", l.name, err)
	}
	return v, nil
}

func openVeth(ns *netns.NS, nl *netlink.Handle, farNS *netns.NS, farNL *netlink.Handle, l link) (*veth, error) {
	far, err := unix.Open(farNS.Path(), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(far)
	pair := &netlink.Veth{
		LinkAttrs: netlink.NewLinkAttrs(), PeerNamespace: netlink.NsFd(far),
		PeerName: "n" + strconv.Itoa(l.nth), PeerMTU: uint32(l.mtu),
	}
	pair.Name, pair.HardwareAddr, pair.MTU = l.name, l.mac, l.mtu
	if err := nl.LinkAdd(pair); err != nil {
		return nil, err
	}
	v := &veth{nl: farNL}
	if err = v.join(nl, farNS, l, pair.PeerName); err != nil {
		return nil, errors.Join(err, nl.LinkDel(pair))
	}
	return v, nil
}

// join sets the near end up and listens at the far one.
func (v *veth) join(nl *netlink.Handle, farNS *netns.NS, l link, peer string) error {
	var err error
	if v.ifindex, err = settle(nl, l); err != nil {
		return err
	}
	far, err := v.nl.LinkByName(peer)
	if err != nil {
		return err
	}
	v.far = &netlink.Veth{LinkAttrs: *far.Attrs()}
	fd := -1
	if err := farNS.Do(func() (err error) { fd, err = packetSocket(v.far.Index); return err }); err != nil {
		return err
	}
	v.pump = newPump(fd, l.name, l.sends)
	return nil
}

// packetSocket opens a socket for whole frames at an interface.
func packetSocket(index int) (int, error) {
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	for _, opt := range []int{
		unix.PACKET_IGNORE_OUTGOING,
		unix.PACKET_QDISC_BYPASS,
		// Checksums and segmentation that the host leaves to its NIC are in a header
		// before each frame, and the NIC at the other end takes it as it is.
		unix.PACKET_VNET_HDR,
	} {
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_PACKET, opt, 1)
		}
	}
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all & 0xffff, Ifindex: index})
	}
	if err != nil {
		return -1, errors.Join(fmt.Errorf("packet socket: %w", err), unix.Close(fd))
	}
	return fd, nil
}

func (v *veth) index() int { return v.ifindex }

func (v *veth) carrier(on bool) error {
	set := v.nl.LinkSetDown
	if on {
		set = v.nl.LinkSetUp
	}
	if err := set(v.far); err != nil {
		return fmt.Errorf("far end of a veth pair: %w", err)
	}
	return nil
}

func (v *veth) close() error {
	err := v.pump.close()
	// It is gone already when somebody has deleted it or its namespace.
	if del := v.nl.LinkDel(v.far); del != nil && !errors.Is(del, unix.ENODEV) {
		err = errors.Join(err, fmt.Errorf("far end of a veth pair: %w", del))
	}
	return err
}
