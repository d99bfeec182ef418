package probe

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

// socket is the UDP socket of an endpoint. One goroutine sends and one drains.
type socket struct {
	fd      int
	axis    timeline.Axis
	clock   wallclock
	drops   uint32
	horizon int64 // all that arrived before this has been read
	broken  bool  // it has been told that it cannot be read

	msgs [batch]mmsghdr
	iovs [batch]unix.Iovec
	ctrl [batch][stampSpace]byte     // here, so that it is aligned
	data [batch][packetSize + 1]byte // one more, so that a packet that is too long shows
}

// batch is how many packets are read at once, and maxBatches how many times in a row: more
// than the receive buffer holds. What comes faster than that is a flood of strangers, in which
// nothing is said to be missing, since horizon stands still.
const (
	batch      = 64
	maxBatches = 512
)

// mmsghdr is struct mmsghdr of recvmmsg(2).
type mmsghdr struct {
	hdr unix.Msghdr
	n   uint32
}

var stampSize = int(unsafe.Sizeof(unix.Timespec{}))

const stampSpace = 64 // room for one control message with a timespec

// receiveBuffer holds about a second of packets of one flow at DefaultPace: each is
// charged 768 bytes, and the kernel doubles what it is asked for (socket(7)).
const receiveBuffer = 4 << 20

// listen opens the socket of an endpoint.
func listen(e Endpoint, port uint16, axis timeline.Axis) (*socket, error) {
	var s *socket
	open := func() error {
		var err error
		s, err = open(e, port, axis)
		return err
	}
	var err error
	if e.NS == nil {
		err = open()
	} else {
		err = e.NS.Do(open)
	}
	if err != nil {
		return nil, fmt.Errorf("endpoint %s: %w", e.Name, err)
	}
	return s, nil
}

// bindToInterface binds a socket to an interface, if one is named.
func bindToInterface(fd int, name string) error {
	if name == "" {
		return nil
	}
	switch err := unix.BindToDevice(fd, name); {
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("there is no interface %s: %w", name, err)
	case err != nil:
		return fmt.Errorf("bind to interface %s, which needs CAP_NET_RAW before Linux 5.7: %w", name, err)
	}
	return nil
}

func open(e Endpoint, port uint16, axis timeline.Axis) (_ *socket, err error) {
	family := unix.AF_INET6
	if e.Addr.Unmap().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err := bindToInterface(fd, e.Interface); err != nil {
		return nil, err
	}
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receiveBuffer) != nil { // needs CAP_NET_ADMIN
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, receiveBuffer); err != nil {
			return nil, fmt.Errorf("set SO_RCVBUF: %w", err)
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return nil, fmt.Errorf("set SO_TIMESTAMPNS: %w", err)
	}
	switch err := unix.Bind(fd, sockaddr(e.Addr, port)); {
	case errors.Is(err, unix.EADDRINUSE):
		return nil, fmt.Errorf("UDP port %d of %v is in use, maybe by another probe; choose another port: %w", port, e.Addr, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return nil, fmt.Errorf("%v is not an address of this host: %w", e.Addr, err)
	case err != nil:
		return nil, fmt.Errorf("bind to %v: %w", netip.AddrPortFrom(e.Addr, port), err)
	}
	s := &socket{fd: fd, axis: axis}
	for i := range s.msgs {
		s.iovs[i].Base = &s.data[i][0]
		s.iovs[i].SetLen(len(s.data[i]))
		s.msgs[i].hdr.Iov = &s.iovs[i]
		s.msgs[i].hdr.SetIovlen(1)
		s.msgs[i].hdr.Control = &s.ctrl[i][0]
	}
	s.clock.base = sampleClocks(axis)
	s.horizon = s.clock.base.at
	if s.drops, err = s.dropped(); err != nil {
		return nil, err
	}
	return s, nil
}

// sockaddr leaves out the zone of an IPv6 address: the socket is bound to its
// interface.
func sockaddr(addr netip.Addr, port uint16) unix.Sockaddr {
	if addr = addr.Unmap(); addr.Is4() {
		return &unix.SockaddrInet4{Port: int(port), Addr: addr.As4()}
	}
	return &unix.SockaddrInet6{Port: int(port), Addr: addr.As16()}
}

// sender returns what sends to an endpoint.
func (s *socket) sender(to netip.Addr, port uint16) func([]byte) error {
	sa := sockaddr(to, port)
	return func(payload []byte) error {
		return unix.Sendto(s.fd, payload, unix.MSG_DONTWAIT, sa)
	}
}

// drain reads all there is. It gives each packet to take, with what places its
// stamp on the axis once it is known when it was sent, and the time by which it
// was read. It returns how many packets the socket has dropped since the last time.
func (s *socket) drain(take func(payload []byte, at func(sent int64) timeline.Interval, read int64)) (dropped int, err error) {
	var stamp, began, read int64
	at := func(sent int64) timeline.Interval { return s.clock.interval(stamp, sent, began, read) }
	before := sampleClocks(s.axis)
	for range maxBatches {
		for i := range s.msgs {
			s.msgs[i].hdr.SetControllen(stampSpace)
		}
		n, _, errno := unix.Syscall6(unix.SYS_RECVMMSG, uintptr(s.fd), uintptr(unsafe.Pointer(&s.msgs[0])), batch, unix.MSG_DONTWAIT, 0, 0)
		after := sampleClocks(s.axis)
		switch {
		case errno == unix.EAGAIN:
			n = 0
		case errno != 0:
			return 0, os.NewSyscallError("recvmmsg", errno)
		}
		s.clock.use(after)
		began, read = before.at, after.at
		for i := range int(n) {
			m := &s.msgs[i]
			stamp = stampOf(s.ctrl[i][:m.hdr.Controllen])
			take(s.data[i][:m.n], at, read)
		}
		if n < batch { // it was empty after that
			s.clock.base, s.horizon = before, before.at
			break
		}
		before = after
	}
	drops, err := s.dropped()
	if err != nil {
		return 0, err
	}
	dropped, s.drops = int(drops-s.drops), drops
	return dropped, nil
}

// stampOf returns the stamp among the control messages, in ns of the wall clock, or 0.
func stampOf(ctrl []byte) int64 {
	for len(ctrl) >= unix.SizeofCmsghdr {
		h, data, rest, err := unix.ParseOneSocketControlMessage(ctrl)
		if err != nil {
			break
		}
		if h.Level == unix.SOL_SOCKET && h.Type == unix.SCM_TIMESTAMPNS && len(data) >= stampSize {
			return (*unix.Timespec)(unsafe.Pointer(&data[0])).Nano()
		}
		ctrl = rest
	}
	return 0
}

// dropped returns how many packets the socket has dropped since it was opened: the
// counter that SO_RXQ_OVFL reports with the next packet, but without the need of
// one (SO_MEMINFO in net/core/sock.c, Linux 4.12).
func (s *socket) dropped() (uint32, error) {
	var info [unix.SK_MEMINFO_VARS]uint32
	size := uint32(unsafe.Sizeof(info))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(s.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info[0])), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("SO_MEMINFO, which tells of full receive buffers: %w", errno)
	}
	return info[unix.SK_MEMINFO_DROPS], nil
}

func (s *socket) close() error { return os.NewSyscallError("close", unix.Close(s.fd)) }
