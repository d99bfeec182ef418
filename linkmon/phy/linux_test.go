package phy

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/ocslab/ocslab/internal/netns"
)

// vethNS makes a namespace with the pair nic0, nic1, both down.
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

func TestEthtool_Kernel(t *testing.T) {
	ns := vethNS(t)
	ctx := context.Background()
	e, err := OpenEthtool(ns, "nic0")
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	l, at, err := e.Read(ctx)
	if err != nil || l.Up || at.Width() <= 0 {
		t.Errorf("down: %v at %v, %v", l, at, err)
	}
	err = ns.Do(func() error {
		for _, name := range []string{"nic0", "nic1"} {
			nic, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(nic)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if l, _, err := e.Read(ctx); err != nil || !l.Up {
		t.Errorf("up: %v, %v", l, err)
	}
	err = ns.Do(func() error {
		nic, err := netlink.LinkByName("nic0")
		if err == nil {
			err = netlink.LinkDel(nic)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Read(ctx); !errors.Is(err, syscall.ENODEV) || !strings.HasPrefix(err.Error(), "there is no network interface nic0 in gpu1, ") {
		t.Errorf("gone: %v", err)
	}
}

func TestEthtool_Errors(t *testing.T) {
	if _, err := OpenEthtool(nil, "no/name"); err == nil {
		t.Error("a name that cannot be was taken")
	}
	e, err := OpenEthtool(nil, "lo")
	if err != nil {
		t.Fatal(err)
	}
	e.Close()
	if _, _, err := e.Read(context.Background()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// The tree of a namespace is its own, and links within it can be followed.
func TestOpenSys(t *testing.T) {
	ns := vethNS(t)
	root, err := OpenSys(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if b, err := root.ReadFile("class/net/nic0/dev_port"); err != nil || string(b) != "0\n" {
		t.Errorf("nic0: %q, %v", b, err)
	}
	ours, err := OpenSys(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	if _, err := ours.Stat("class/net/nic0"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nic0 is in the namespace of the test: %v", err)
	}
	if _, err := FindIB(root, "nic0"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a veth has an RDMA device: %v", err)
	}

	ns.Close()
	if _, err := OpenSys(ns); err == nil {
		t.Error("a closed namespace has a tree")
	}
}

func TestProbe(t *testing.T) {
	ctx := context.Background()
	_, root := tree(t, sysfs)
	got := Probe(ctx, nil, root, "lo")
	if len(got) != 3 || got[0].Name != "ib-phys" || got[1].Name != "ethtool" || got[2].Name != "kmsg" {
		t.Fatalf("%+v", got)
	}
	if got[0].On || !strings.Contains(got[0].Why, "no RDMA device") {
		t.Errorf("%+v", got[0])
	}
	if !got[1].On || got[1].Why != "the link is up" && got[1].Why != "the link is down" {
		t.Errorf("%+v", got[1])
	}
	if os.Geteuid() == 0 && !got[2].On || got[2].Why == "" {
		t.Errorf("%+v", got[2])
	}

	got = Probe(ctx, nil, root, "ens1f0") // there is none, but the tree has it
	if want := "mlx5_0/1 says ACTIVE, LinkUp; of RoCE that follows the kernel's carrier"; !got[0].On || got[0].Why != want {
		t.Errorf("%+v, want %q", got[0], want)
	}
	if got[1].On || !strings.Contains(got[1].Why, "no network interface ens1f0") {
		t.Errorf("%+v", got[1])
	}
	if got := Probe(ctx, nil, root, "no/name"); got[1].On {
		t.Errorf("%+v", got[1])
	}
	_, broken := tree(t, map[string]string{
		"class/infiniband/ocs0/ports/1/gid_attrs/ndevs/0": "ens1f0\n",
		"class/infiniband/ocs0/ports/1/state":             "",
		"class/infiniband/ocs0/ports/1/phys_state":        "",
	})
	if got := Probe(ctx, nil, broken, "ens1f0"); got[0].On {
		t.Errorf("%+v", got[0])
	}
}

func BenchmarkEthtool(b *testing.B) {
	e, err := OpenEthtool(nil, "lo")
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	for b.Loop() {
		if _, _, err := e.Read(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkIBPort(b *testing.B) {
	_, root := tree(b, sysfs)
	p, err := FindIB(root, "ens1f0")
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		if _, _, err := p.Read(); err != nil {
			b.Fatal(err)
		}
	}
}
