package netns_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
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

// Ensure a program whose /sys is that of another namespace is not misled by it.
func TestSysfs_ForeignMount(t *testing.T) {
	if os.Getenv("NETNS_TEST_CHILD") != "" {
		sys, err := open(t, "").Sysfs()
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		defer sys.Close()
		fd, err := unix.Openat(int(sys.Fd()), "class/net/nic0", unix.O_RDONLY, 0)
		fmt.Println("nic0:", err)
		unix.Close(fd)
		return
	}
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
	for user, want := range map[uint32]string{0: "nic0: <nil>", 65534: "error: /sys was mounted in another network namespace"} {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		// Copied to where an ordinary user may run it.
		dir, err := os.MkdirTemp("", "netns")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		program, err := os.ReadFile(self)
		if err == nil {
			err = errors.Join(os.Chmod(dir, 0o755), os.WriteFile(dir+"/test", program, 0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(dir+"/test", "-test.run=^TestSysfs_ForeignMount$", "-test.v")
		cmd.Env = append(os.Environ(), "NETNS_TEST_CHILD=1")
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user}}
		var out []byte
		if err := n.Do(func() (err error) { out, err = cmd.CombinedOutput(); return err }); err != nil {
			t.Fatalf("as user %d: %v\n%s", user, err, out)
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("as user %d: want %q in\n%s", user, want, out)
		}
	}
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
