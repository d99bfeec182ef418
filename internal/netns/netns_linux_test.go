package netns_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

func open(t *testing.T, ref string) *netns.NS {
	t.Helper()
	n, err := netns.Open(ref)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestNew(t *testing.T) {
	needRoot(t)
	n, err := netns.New("gpu1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	err = n.Do(func() error {
		return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "nic0"}, PeerName: "nic1"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.InterfaceByName("nic0"); err == nil {
		t.Error("the interface is in the namespace of the test")
	}
	again := open(t, n.Path())
	if err := again.Do(func() error { _, err := net.InterfaceByName("nic0"); return err }); err != nil {
		t.Errorf("by its path: %v", err)
	}
	out, err := exec.Command("nsenter", "--net="+n.Path(), "ip", "-br", "link").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "nic0") {
		t.Errorf("nsenter: %v\n%s", err, out)
	}

	sys, err := n.Sysfs()
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	fd, err := unix.Openat(int(sys.Fd()), "class/net/nic0/carrier_changes", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatalf("no carrier_changes: %v", err)
	}
	unix.Close(fd)
	if out, _ := os.ReadFile("/proc/self/mounts"); strings.Count(string(out), " sysfs ") > 1 {
		t.Errorf("a mount was left:\n%s", out)
	}
}

func TestOpen_Current(t *testing.T) {
	n := open(t, "")
	sys, err := n.Sysfs()
	if err != nil {
		t.Fatal(err)
	}
	defer sys.Close()
	if err := unix.Faccessat(int(sys.Fd()), "class/net/lo/carrier_changes", unix.R_OK, 0); err != nil {
		t.Error(err)
	}
	open(t, "pid:"+strings.TrimPrefix(mustReadlink(t, "/proc/self"), "/proc/"))
}

func mustReadlink(t *testing.T, p string) string {
	t.Helper()
	s, err := os.Readlink(p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestOpen_Bad(t *testing.T) {
	for _, ref := range []string{"no-such", "/etc/passwd", "/proc/self/ns/mnt", "pid:0", "pid:x", "pid:-1", "..", "./nothing"} {
		n, err := netns.Open(ref)
		if err == nil {
			n.Close()
			t.Errorf("Open(%q) succeeded", ref)
			continue
		}
		if strings.Contains(err.Error(), "\n") {
			t.Errorf("Open(%q): %v is not one sentence", ref, err)
		}
	}
	if _, err := netns.Open("no-such"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v is not fs.ErrNotExist", err)
	}
}

func TestDo_Error(t *testing.T) {
	want := errors.New("x")
	if err := open(t, "").Do(func() error { return want }); !errors.Is(err, want) {
		t.Errorf("got %v", err)
	}
}
