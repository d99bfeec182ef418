package tl1server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
)

// Server speaks TL1 for a device. Set the fields before the first use; the
// methods are safe for concurrent use.
type Server struct {
	Device *emulator.Device
	Faults Faults // what goes wrong on the wire; the zero value is nothing

	mu       sync.Mutex // guards sessions
	sessions int
}

// Pauses between attempts to accept when the system is short of something,
// such as file descriptors.
const (
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// Serve accepts sessions on l until ctx ends, then closes l and every session
// and returns nil once they have ended. A failure to accept that will not pass
// is returned in the same way.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var sessions sync.WaitGroup
	defer sessions.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for pause := minAcceptPause; ; {
		conn, err := l.Accept()
		var passing interface{ Temporary() bool }
		switch {
		case err == nil:
			pause = minAcceptPause
			sessions.Go(func() { s.ServeConn(ctx, conn) })
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &passing) && passing.Temporary():
			sleepUntil(ctx, time.Now().Add(pause))
			pause = min(2*pause, maxAcceptPause)
		default:
			return err
		}
	}
}

// ServeConn serves one session on a stream that is connected already, and
// closes it when the session ends or ctx does. Closing must unblock a Read or
// Write under way, as it does for a net.Conn.
func (s *Server) ServeConn(ctx context.Context, conn io.ReadWriteCloser) {
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
	newSession(s, conn, end).run(ctx)
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

// sleepUntil reports whether t came before the end of ctx.
func sleepUntil(ctx context.Context, t time.Time) bool {
	d := time.Until(t)
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
