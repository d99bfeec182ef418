package linkmon

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]uint32{
		"0\n": 0, "12\n": 12, "7": 7, "2147483648": 1 << 31, "-2147483648\n": 1 << 31, "-1\n": 1<<32 - 1, "4294967295\n": 1<<32 - 1,
	} {
		if got, err := parseNumber([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "\n", "-", "x", "1x", "4294967296", "1 2", "+1", "12345678901234567890123"} {
		if got, err := parseNumber([]byte(text)); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestKernelAtLeast(t *testing.T) {
	if !kernelAtLeast(2, 6) || !kernelAtLeast(3, 0) || kernelAtLeast(99, 0) {
		t.Error("wrong")
	}
}

func TestClassicProgram(t *testing.T) {
	ignored := map[uint32]bool{}
	for i := range uint32(mostFiltered + 50) {
		ignored[i+1] = true
	}
	if n := len(classicProgram(ignored)); n > 4096 {
		t.Errorf("%d instructions", n)
	}
	if n := len(classicProgram(nil)); n != 2 {
		t.Errorf("%d instructions", n)
	}
}

// A program for more interfaces than fit is taken by the kernel, too.
func TestClassicFilter(t *testing.T) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	f := &classicFilter{fd: fd}
	f.ignored = map[uint32]bool{}
	for i := range uint32(mostFiltered) {
		f.ignored[i+1] = true
	}
	f.ignore(1, false)
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_LOCK_FILTER); err != nil {
		t.Error(err)
	}
}

// Only the kernel is believed.
func TestForeignSender(t *testing.T) {
	m := &Monitor{queue: queue{more: make(chan struct{}, 1)}}
	h := &host{m: m, ask: make(chan struct{}, 1), dead: map[int]bool{}, early: map[int][]notice{}}
	l := &link{host: h, index: 7}
	h.links = map[int]*link{7: l}
	r := &reader{h: h, buf: message(rtmDelLink, 0, 7, 0)}
	r.take(len(r.buf), &unix.SockaddrNetlink{Pid: 4711})
	if l.farewell != nil {
		t.Error("another process could tell")
	}
	r.take(len(r.buf)+1, &unix.SockaddrNetlink{})
	if e, ok := m.queue.pop(); !ok || e.Kind != Gap {
		t.Errorf("cut off: %v", e)
	}
	r.take(len(r.buf), &unix.SockaddrNetlink{})
	if l.farewell == nil {
		t.Error("the kernel could not tell")
	}
}
