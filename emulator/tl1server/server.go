package tl1server

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

// Server speaks TL1 for a device. Set the fields before the first use; the
// methods are safe for concurrent use.
type Server struct {
	Device *emulator.Device
	Faults emulator.Faults // what goes wrong on the wire; the zero value is nothing

	mu       sync.Mutex // guards sessions
	sessions int

	books sync.Mutex // held while the table of connections is read and changed
	dim   sync.Once  // darkens the ports whose connections fail
}

// Serve accepts sessions on l until ctx ends; see [emulator.Serve].
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return emulator.Serve(ctx, l, s) }

// ServeConn serves one session on a stream; see [emulator.FrontEnd].
func (s *Server) ServeConn(ctx context.Context, conn io.ReadWriteCloser) {
	s.ServeSession(ctx, conn, emulator.SessionInfo{})
}

// ServeSession implements [emulator.FrontEnd]. A client whose User is set is
// logged in already, and sees a prompt.
func (s *Server) ServeSession(ctx context.Context, conn io.ReadWriteCloser, client emulator.SessionInfo) {
	defer conn.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	stopReboot := context.AfterFunc(s.Device.Up(), end)
	defer stopReboot()
	if s.Device.Rebooting() || !s.enter() {
		return
	}
	defer s.leave()
	s.dim.Do(func() { s.Device.Unlight(portsOf(s.Device.Personality().TL1.Fail)...) })
	ss := newSession(s, conn, end)
	user := client.User
	client.Protocol, client.User = "TL1", ""
	if user != "" {
		client.Protocol = "SSH-TL1"
		ss.style.After = "\r\n>"
	}
	ss.me = s.Device.Enter(client, end)
	defer ss.me.Leave()
	if user != "" {
		group, known := s.Device.GroupOf(user)
		if !known {
			return
		}
		ss.login(user, group)
	}
	ss.run(ctx)
}

func portsOf(ns []uint32) []ocs.Port {
	ps := make([]ocs.Port, len(ns))
	for i, n := range ns {
		ps[i] = ocs.Port(n)
	}
	return ps
}

// enter counts a session in, unless there are too many.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit := s.Device.Personality().TL1.MaxSessions; limit > 0 && s.sessions >= limit {
		return false
	}
	s.sessions++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
}
