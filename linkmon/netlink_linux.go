package linkmon

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
)

// receiveBuffer of a netlink socket, in bytes. The kernel charges 2.3 KB for a link
// message, so that is 7000 of them.
const receiveBuffer = 8 << 20

// reader receives what the kernel announces in one namespace, on a thread of its own,
// which is woken sooner than a goroutine.
type reader struct {
	h       *host
	fd      int
	event   int // eventfd(2), to wake the thread
	filter  filter
	stamper *stamper // nil without BPF
	ended   chan struct{}
	closed  atomic.Bool

	mu      sync.Mutex // guards waiters
	waiters []chan struct{}

	// Of the thread alone.
	buf   []byte
	empty time.Time // the socket had nothing to read
}

// filter keeps messages about some interfaces from the socket, in the kernel.
type filter interface {
	// ignore says whether those about an interface are kept away. That saves work,
	// and no more: those that come in spite of it are passed over.
	ignore(index int, yes bool)
	close()
}

// startAnnouncer begins to listen, if it is wanted and possible, and fills in the
// sources. It is called before the first scan, so that no interface comes unheard
// between the two.
func (h *host) startAnnouncer() {
	opt := h.m.opt
	nl := Source{Host: h.Name, Name: "netlink"}
	bpf := Source{Host: h.Name, Name: "bpf"}
	glink := Source{Host: h.Name, Name: "sync"}
	defer func() {
		h.m.mu.Lock()
		defer h.m.mu.Unlock()
		h.sources = append(h.sources, nl, bpf, glink)
	}()
	if h.Counters != nil {
		const why = "this host has counters of its own, and no kernel"
		nl.Why, bpf.Why, glink.Why = why, why, why
		return
	}
	glink.On, glink.Why = h.startSync()

	if opt.NoNetlink {
		nl.Why, bpf.Why = "left out on request", "needs netlink"
		return
	}
	r := &reader{h: h, fd: -1, event: -1, ended: make(chan struct{}), buf: make([]byte, 64<<10)}
	why, err := r.open(&bpf)
	if err != nil {
		r.release()
		nl.Why, bpf.Why = err.Error(), "needs netlink"
		return
	}
	nl.On, nl.Why = true, why
	h.announcer = r
	go r.run()
}

// inside runs fn in a namespace; nil is the one we run in.
func inside(ns *netns.NS, fn func() error) error {
	if ns == nil {
		return fn()
	}
	return ns.Do(fn)
}

// open makes the socket and its filter. It returns what is odd about the socket.
func (r *reader) open(bpf *Source) (why string, err error) {
	r.event, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return "", os.NewSyscallError("eventfd", err)
	}
	err = inside(r.h.NS, func() error {
		r.fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
		return os.NewSyscallError("netlink socket", err)
	})
	if err != nil {
		return "", err
	}
	if err := unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer); err != nil {
		// Without CAP_NET_ADMIN as much as net.core.rmem_max allows.
		_ = unix.SetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer)
		size, _ := unix.GetsockoptInt(r.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
		why = fmt.Sprintf("the receive buffer is only %d bytes: needs CAP_NET_ADMIN, or a larger net.core.rmem_max", size/2)
	}
	if r.h.m.opt.NoBPF {
		bpf.Why = "left out on request"
	} else if r.stamper, err = newStamper(r.fd); err != nil {
		bpf.Why = err.Error()
	} else {
		bpf.On = true
		r.filter = r.stamper
	}
	if r.filter == nil {
		r.filter = &classicFilter{fd: r.fd}
	}
	r.empty = time.Now()
	return why, os.NewSyscallError("netlink bind", unix.Bind(r.fd, &unix.SockaddrNetlink{
		Family: unix.AF_NETLINK, Groups: unix.RTMGRP_LINK,
	}))
}

func (r *reader) release() {
	if r.filter != nil {
		r.filter.close()
	}
	for _, fd := range []int{r.fd, r.event} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (r *reader) wake() {
	one := [8]byte{1}
	_, _ = unix.Write(r.event, one[:]) // EAGAIN: it is awake 2^64-2 times over
}

func (r *reader) drained() <-chan struct{} {
	done := make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.ended:
		close(done)
		return done
	default:
	}
	r.waiters = append(r.waiters, done)
	r.wake()
	return done
}

func (r *reader) ignore(index int, yes bool) { r.filter.ignore(index, yes) }

func (r *reader) close() {
	r.closed.Store(true)
	r.wake()
	<-r.ended
	r.release()
}

func (r *reader) run() {
	ownThread()
	fds := []unix.PollFd{{Fd: int32(r.fd), Events: unix.POLLIN}, {Fd: int32(r.event), Events: unix.POLLIN}}
	var err error
	for err == nil && !r.closed.Load() {
		_, err = unix.Poll(fds, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			break
		}
		var count [8]byte
		_, _ = unix.Read(r.event, count[:]) // EAGAIN: nobody asked
		r.mu.Lock()
		waiters := r.waiters
		r.waiters = nil
		r.mu.Unlock()
		err = r.drain()
		for _, done := range waiters {
			close(done)
		}
	}
	r.mu.Lock()
	close(r.ended)
	for _, done := range r.waiters {
		close(done)
	}
	r.mu.Unlock()
	if err != nil {
		r.fail(err)
	}
}

// fail says that nothing is heard any more.
func (r *reader) fail(err error) {
	m := r.h.m
	r.gap(fmt.Sprintf("nothing is announced from here on: %v; the counters are still read", err))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range r.h.sources {
		if s := &r.h.sources[i]; s.Name == "netlink" || s.Name == "bpf" {
			s.On, s.Why = false, err.Error()
		}
	}
}

func (r *reader) gap(text string) {
	r.h.gap(r.h.m.axis.Span(r.empty, time.Now()), text, fromNetlink)
}

// drain reads all that there is.
func (r *reader) drain() error {
	for {
		began := time.Now()
		n, from, err := unix.Recvfrom(r.fd, r.buf, unix.MSG_DONTWAIT|unix.MSG_TRUNC)
		if err := r.stamped(); err != nil {
			return err
		}
		switch {
		case err == nil:
			r.take(n, from)
			continue
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			r.overrun()
			continue
		case !errors.Is(err, unix.EAGAIN):
			return os.NewSyscallError("netlink receive", err)
		}
		r.empty = began
		return nil
	}
}

// stamped takes what the stamper has written down: about each message before it can be
// read, and about those that did not fit into the socket, too.
func (r *reader) stamped() error {
	if r.stamper == nil {
		return nil
	}
	return r.stamper.records(func(n notice) {
		r.h.m.mu.Lock()
		defer r.h.m.mu.Unlock()
		r.h.stampedLocked(n)
	})
}

// overrun is told about messages that did not fit into the socket. No transition is
// lost by that, as the counters are read anyway, and the stamper has seen the announcements.
func (r *reader) overrun() {
	r.gap("the kernel announced more than the socket holds: some announcements, renames or states of this time may be missing")
	r.h.m.mu.Lock()
	r.h.stale = true
	r.h.m.mu.Unlock()
	r.h.look()
}

// take takes a datagram of n bytes.
func (r *reader) take(n int, from unix.Sockaddr) {
	seen := r.h.m.axis.Span(r.empty, time.Now())
	if a, ok := from.(*unix.SockaddrNetlink); !ok || a.Pid != 0 {
		return // not from the kernel
	}
	var err error
	if n > len(r.buf) {
		err = fmt.Errorf("a message of %d bytes", n)
	} else {
		err = parseLinks(r.buf[:n], func(msg linkMessage) {
			r.h.m.mu.Lock()
			defer r.h.m.mu.Unlock()
			r.h.toldLocked(msg, seen, r.stamper == nil)
		})
	}
	if err != nil {
		r.gap(fmt.Sprintf("an announcement could not be read: %v", err))
	}
}
