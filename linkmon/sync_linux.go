package linkmon

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syncer asks the kernel for the link state of interfaces that have changed. Before it
// answers it announces what it has not announced yet (linkwatch_sync_dev).
//
// It has a thread of its own: the answer waits for the RTNL lock, which others may hold for
// tens of milliseconds, and the poller must not.
type syncer struct {
	m     *Monitor
	fd    int // any socket in the namespace
	queue chan *link
	ended chan struct{}
}

// startSync begins to sync if that is wanted and has an effect. If not, it says why.
func (h *host) startSync() (on bool, why string) {
	switch {
	case !h.m.opt.Sync:
		return false, "not wanted"
	case h.m.opt.NoCounters:
		return false, "needs the counters to know when"
	case !kernelAtLeast(6, 8):
		return false, "needs Linux 6.8: before, asking for a link does not announce its changes"
	}
	fd := -1
	err := inside(h.NS, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		return os.NewSyscallError("socket", err)
	})
	if err != nil {
		return false, err.Error()
	}
	h.sync = &syncer{h.m, fd, make(chan *link, 1024), make(chan struct{})}
	go h.sync.run()
	return true, ""
}

// poke asks for a link to be synced. When a thousand wait already it does not: the
// kernel is then busy announcing.
func (s *syncer) poke(l *link) {
	select {
	case s.queue <- l:
	default:
	}
}

func (s *syncer) close() {
	close(s.queue)
	<-s.ended
	unix.Close(s.fd)
}

func (s *syncer) run() {
	ownThread()
	defer close(s.ended)
	for l := range s.queue {
		s.m.mu.Lock()
		name := l.acct.Interface
		s.m.mu.Unlock()
		getLink(s.fd, name)
	}
}

// getLink is ETHTOOL_GLINK. Who fails to answer has nothing to announce: the interface is
// gone, has another name by now, or its driver does not know.
func getLink(fd int, name string) {
	value := struct{ cmd, data uint32 }{cmd: unix.ETHTOOL_GLINK}
	request := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the rest of struct ifreq
	}{data: unsafe.Pointer(&value)}
	copy(request.name[:unix.IFNAMSIZ-1], name)
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(&value)
}

func kernelAtLeast(major, minor int) bool {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return false
	}
	var a, b int
	if n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a > major || a == major && b >= minor
}
