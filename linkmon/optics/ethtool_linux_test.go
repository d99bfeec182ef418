package optics

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon/internal/genl"
	"github.com/ocslab/ocslab/wire/cmis"
)

// vethNS makes a namespace with the pair nic0, nic1. It skips without root.
func vethNS(t *testing.T) *netns.NS {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make a network namespace")
	}
	ns, err := netns.New("gpu1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	err = ns.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "nic0"}, PeerName: "nic1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

func openEthtool(t *testing.T, ns *netns.NS, iface string) *Ethtool {
	t.Helper()
	e, err := OpenEthtool(ns, iface)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// The kernel checks offset, length, page and address of a request before it looks for a
// driver that could answer. So "not supported" for the good request, and another error
// for the bad ones, show that the attributes arrive as they are meant.
func TestEthtool_Kernel(t *testing.T) {
	ns := vethNS(t)
	ctx := context.Background()
	var buf [8]byte

	e := openEthtool(t, ns, "nic0")
	err := e.ReadPage(ctx, cmis.Address{Page: 0x11, Offset: 186}, buf[:])
	if !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("veth: %v does not match errors.ErrUnsupported", err)
	} else if got := err.Error(); !strings.HasPrefix(got, "the driver of nic0 in gpu1 gives no access to a module's memory: ") {
		t.Errorf("veth: %q", got)
	}

	err = openEthtool(t, ns, "nic7").ReadPage(ctx, cmis.Address{}, buf[:])
	if err == nil || !strings.HasPrefix(err.Error(), "there is no network interface nic7 in gpu1, ") {
		t.Errorf("no interface: %v", err)
	}

	for _, tt := range []struct {
		name string
		a    cmis.Address
		n    int
		want string
	}{
		{"half page", cmis.Address{Offset: 120}, 16, "reading cross half page boundary is illegal"},
		{"lower half of page 1", cmis.Address{Page: 1, Offset: 8}, 8, "reading from lower half page is allowed for page 0 only"},
		{"too long", cmis.Address{}, 129, "range"},
	} {
		_, err := e.nic.Ask(ctx, msgModuleEEPROMGet, eepromRequest(tt.a, tt.n))
		var refused *genl.Error
		if !errors.As(err, &refused) || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v, want a refusal of the request", tt.name, err)
		} else if !strings.Contains(strings.ToLower(refused.Text), tt.want) {
			t.Errorf("%s: %q, want %q in it", tt.name, refused.Text, tt.want)
		}
	}
}

func TestEthtool_Unprivileged(t *testing.T) {
	e := openEthtool(t, nil, "lo")
	if !e.DisturbsLinkTiming() {
		t.Error("ethtool is said not to hold the RTNL lock")
	}
	if err := e.ReadPage(context.Background(), cmis.Address{Offset: 120}, make([]byte, 16)); err == nil || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a read across the half page: %v", err)
	}
	// EPERM for an ordinary user, no module memory for root: never a number.
	if err := e.ReadPage(context.Background(), cmis.Address{}, make([]byte, 16)); err == nil {
		t.Error("lo has a module")
	}
}
