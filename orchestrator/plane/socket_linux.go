package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon/probe"
)

// socket is a UDP socket that is bound to an interface, since all NICs of a host have the same routes.
type socket struct {
	*net.UDPConn
	port uint16
}

func openSocket(ns *netns.NS, name string, addr netip.Addr, port uint16) (probe.Conn, error) {
	s := &socket{port: port}
	err := ns.Do(func() error {
		var failed error
		cfg := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
			if err := raw.Control(func(fd uintptr) { failed = unix.BindToDevice(int(fd), name) }); err != nil {
				return err
			}
			return failed
		}}
		conn, err := cfg.ListenPacket(context.Background(), "udp", netip.AddrPortFrom(addr, port).String())
		if err != nil {
			return fmt.Errorf("UDP socket: %w", err)
		}
		s.UDPConn = conn.(*net.UDPConn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Send implements probe.Conn.
func (s *socket) Send(payload []byte, to netip.Addr) error {
	_, err := s.WriteToUDPAddrPort(payload, netip.AddrPortFrom(to, s.port))
	return err
}

// Recv implements probe.Conn. A socket reports errors of earlier datagrams, such as that a port was unreachable; they are
// nobody's here.
func (s *socket) Recv(buf []byte) (int, netip.Addr, time.Time, error) {
	for {
		n, from, err := s.ReadFromUDPAddrPort(buf)
		if err != nil {
			if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETDOWN) {
				continue
			}
			return 0, netip.Addr{}, time.Time{}, err
		}
		return n, from.Addr().Unmap(), time.Now(), nil
	}
}
