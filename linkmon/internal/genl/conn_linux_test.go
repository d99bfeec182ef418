package genl

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// An ordinary user can do all this, in the namespace he is in.
func TestConn(t *testing.T) {
	ns, err := netns.Current()
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	for _, ns := range []*netns.NS{nil, ns} {
		c, err := Dial(ns)
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		const linkStateGet = 6
		attrs, err := c.Ethtool(ctx, linkStateGet, appendName(nil, "lo"))
		if err != nil || attrs[attrHeader] == nil {
			t.Errorf("lo: %x, %v", attrs, err)
		}
		if _, err := c.Ethtool(ctx, linkStateGet, appendName(nil, "none0")); !errors.Is(err, unix.ENODEV) {
			t.Errorf("none0: %v", err)
		}
		if _, err := c.Ethtool(ctx, 0xff, nil); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a command that there is not: %v", err)
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := c.Ethtool(ended, linkStateGet, appendName(nil, "lo")); !errors.Is(err, context.Canceled) {
			t.Errorf("ended context: %v", err)
		}
		if err := errors.Join(c.Close(), c.Close()); err != nil {
			t.Error(err)
		}
		if _, err := c.Ethtool(ctx, linkStateGet, nil); !errors.Is(err, os.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
	}
}

// What another process sends to our socket is not taken for the kernel's.
func TestConn_Stranger(t *testing.T) {
	c, err := Dial(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	self, err := unix.Getsockname(c.fd)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(stranger)
	forged := request(nlmsgError, 0, 0, c.seq+1, make([]byte, 32))
	if err := unix.Sendto(stranger, forged, 0, self); err != nil {
		t.Skipf("generic netlink refuses messages between processes: %v", err)
	}
	attrs, err := c.Ethtool(context.Background(), 6, appendName(nil, "lo"))
	if err != nil || len(attrs) == 0 {
		t.Errorf("%x, %v", attrs, err)
	}
}

func TestInterface(t *testing.T) {
	if _, err := Open(nil, "no/name"); err == nil {
		t.Error("a name that cannot be was taken")
	}
	i, err := Open(nil, "none0")
	if err != nil {
		t.Fatal(err)
	}
	const want = "there is no network interface none0, or its driver has let go of it: "
	if _, err := i.Ask(context.Background(), 6, nil); !errors.Is(err, unix.ENODEV) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
	if _, err := i.Ask(context.Background(), 6, nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
