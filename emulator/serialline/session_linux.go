package serialline

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// session is what a front end sees of the line.
type session struct {
	line *Line
	// Both are guarded by the mutex of the line.
	closed bool // by the front end
	gone   bool // the last client has closed the line, be it that another has opened it since
}

// Read reads what the client has sent. Bytes that may be another one's are for
// the next session.
func (s *session) Read(p []byte) (int, error) {
	if n, err := s.resume(p); n > 0 || err != nil {
		return n, err
	}
	n, err := s.line.master.Read(p)
	if err != nil {
		return n, s.reason(err)
	}
	// Who has sent something had opened the line before, and that is among the
	// events by now.
	if err := s.line.look(); err != nil {
		return 0, s.reason(err)
	}
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	if s.gone {
		s.line.kept = append(s.line.kept, p[:n]...)
		return 0, io.EOF
	}
	return n, nil
}

// resume reads what the session before has left.
func (s *session) resume(p []byte) (int, error) {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	switch {
	case s.closed:
		return 0, net.ErrClosed
	case s.gone:
		return 0, io.EOF
	}
	n := copy(p, s.line.kept)
	s.line.kept = s.line.kept[n:]
	return n, nil
}

func (s *session) Write(p []byte) (int, error) {
	if err := s.line.look(); err != nil {
		return 0, s.reason(err)
	}
	s.line.mu.Lock()
	over := s.closed || s.gone
	s.line.mu.Unlock()
	if over {
		return 0, net.ErrClosed
	}
	n, err := s.line.master.Write(p)
	return n, s.reason(err)
}

// reason tells the end of the session from an error.
func (s *session) reason(err error) error {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EIO):
		s.gone = true
		return io.EOF
	case s.gone:
		return io.EOF
	case s.closed, errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	}
	return err
}

// Close ends the session, not the line.
func (s *session) Close() error {
	s.line.mu.Lock()
	defer s.line.mu.Unlock()
	if !s.closed {
		s.closed = true
		s.wakeLocked()
	}
	return nil
}

// wakeLocked ends what is under way.
func (s *session) wakeLocked() {
	if s.line.current == s {
		// Fails only when the line is closed, and that ends everything, too.
		_ = s.line.master.SetDeadline(time.Unix(1, 0))
	}
}

// ---- who is there

// watch looks at events as they come until the line is closed.
func (l *Line) watch() {
	raw, err := l.events.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Read(func(uintptr) bool {
		err := l.look()
		select {
		case l.change <- struct{}{}:
		default:
		}
		return err != nil
	})
}

// look reads who has opened and closed the line. When nobody may have had it
// open in between, that ends the session: the next client gets its own.
func (l *Line) look() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lookLocked()
}

func (l *Line) lookLocked() error {
	err := control(l.events, l.readEventsLocked)
	if err != nil || !l.left || l.clients == 0 {
		return err
	}
	// The events say that somebody else has it open, but of several that are the
	// same the kernel tells one: trust it only if the line is open, and has not been
	// opened meanwhile.
	open := false
	if err := control(l.master, func(fd int) (err error) { open, _, err = state(fd); return err }); err != nil || !open {
		return err
	}
	closes := l.closes
	err = control(l.events, l.readEventsLocked)
	if closes == l.closes {
		l.left = false
	}
	return err
}

// readEventsLocked reads the events that there are (inotify(7)).
func (l *Line) readEventsLocked(fd int) error {
	var buf [64 * unix.SizeofInotifyEvent]byte
	for {
		n, err := unix.Read(fd, buf[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil:
			return err
		}
		for e := buf[:n]; len(e) >= unix.SizeofInotifyEvent; e = e[unix.SizeofInotifyEvent:] { // a file's have no name
			l.eventLocked(binary.NativeEndian.Uint32(e[4:]))
		}
	}
}

func (l *Line) eventLocked(mask uint32) {
	switch {
	case mask&unix.IN_CLOSE != 0:
		l.clients = max(l.clients-1, 0)
		l.closes++
		l.left = true
		return
	case mask&unix.IN_OPEN != 0:
		l.clients++
		if !l.left {
			return
		}
	case mask&unix.IN_Q_OVERFLOW == 0:
		return
	}
	l.left = false
	if s := l.current; s != nil && !s.gone {
		s.gone = true
		s.wakeLocked()
	}
}
