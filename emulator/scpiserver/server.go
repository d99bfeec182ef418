package scpiserver

import (
	"context"
	"io"
	"net"
	"sync"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/scpi"
)

// Server speaks SCPI for a device. Set the fields before the first use; the
// methods are safe for concurrent use.
type Server struct {
	Device *emulator.Device
	Faults emulator.Faults // what goes wrong on the wire; the zero value is nothing

	mu       sync.Mutex // guards what follows
	sessions int
	errors   *scpi.Queue // of all sessions, if they share one
}

// Serve accepts sessions on l until ctx ends; see [emulator.Serve].
func (s *Server) Serve(ctx context.Context, l net.Listener) error { return emulator.Serve(ctx, l, s) }

// ServeSession implements [emulator.FrontEnd], for a serial line as well as for a
// connection. SCPI has no users: client.User means nothing.
func (s *Server) ServeSession(ctx context.Context, conn io.ReadWriteCloser, client emulator.SessionInfo) {
	defer conn.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	stopReboot := context.AfterFunc(s.Device.Up(), end)
	defer stopReboot()
	if s.Device.Rebooting() {
		return
	}
	errors, ok := s.enter()
	if !ok {
		return
	}
	defer s.leave()
	client.Protocol, client.User = "SCPI", ""
	ss := &session{srv: s, dev: s.Device, conn: conn, me: s.Device.Enter(client, end), status: scpi.Status{Errors: errors}}
	defer ss.me.Leave()
	ss.run(ctx)
}

// enter counts a session in, unless there are too many, and returns its error
// queue.
func (s *Server) enter() (errors *scpi.Queue, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.Device.Personality().SCPI
	if p.MaxSessions > 0 && s.sessions >= p.MaxSessions {
		return nil, false
	}
	s.sessions++
	if !p.SharedErrors {
		return &scpi.Queue{Max: p.ErrorQueue}, true
	}
	if s.errors == nil {
		s.errors = &scpi.Queue{Max: p.ErrorQueue}
	}
	return s.errors, true
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions--
}
