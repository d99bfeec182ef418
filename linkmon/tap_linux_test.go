package linkmon_test

import (
	"fmt"
	"os"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/timeline"
)

// tap is a network device whose carrier the test moves, as light does that of a NIC.
type tap struct {
	name string
	f    *os.File
	up   bool
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, for namespaces and TAP devices")
	}
}

func newNS(t testing.TB, label string) *netns.NS {
	t.Helper()
	needRoot(t)
	ns, err := netns.New(label)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

// newTaps makes devices tap0, tap1.. that are up and have carrier.
func newTaps(t testing.TB, ns *netns.NS, count int) []*tap {
	t.Helper()
	taps := make([]*tap, count)
	for i := range taps {
		taps[i] = newTap(t, ns, fmt.Sprintf("tap%d", i))
	}
	return taps
}

func newTap(t testing.TB, ns *netns.NS, name string) *tap {
	t.Helper()
	p := &tap{name: name, up: true}
	err := ns.Do(func() error {
		fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		p.f = os.NewFile(uintptr(fd), "/dev/net/tun")
		r, err := unix.NewIfreq(name)
		if err != nil {
			return err
		}
		r.SetUint16(unix.IFF_TAP | unix.IFF_NO_PI)
		if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, r); err != nil {
			return err
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(s)
		r, _ = unix.NewIfreq(name)
		r.SetUint16(unix.IFF_UP)
		return unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r)
	})
	if err != nil {
		t.Fatal("tap: ", err)
	}
	t.Cleanup(func() { p.f.Close() })
	return p
}

// toggled is what truly happened.
type toggled struct {
	tap int
	up  bool
	at  timeline.Interval
}

// toggle moves the carrier and returns when that was.
func (p *tap) toggle() (timeline.Interval, error) {
	p.up = !p.up
	var on uint32
	if p.up {
		on = 1
	}
	before := time.Now()
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, p.f.Fd(), unix.TUNSETCARRIER, uintptr(unsafe.Pointer(&on)))
	at := timeline.HostAxis().Span(before, time.Now())
	if errno != 0 {
		return at, errno
	}
	return at, nil
}
