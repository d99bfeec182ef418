package serialline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/emulator"
)

// pause is the time from the begin of one session to the next on a line that
// stays open.
const pause = 100 * time.Millisecond

// Line is a serial line of which the device has one end.
type Line struct {
	link   *link
	path   string
	master *os.File // our end
	opens  *os.File // tells when somebody opens the line
	once   sync.Once
}

// Listen makes a line. Link is where clients find it: it is made, or replaced if
// it is what another Listen has left; "" makes none.
func Listen(link string) (*Line, error) {
	l := &Line{}
	if err := l.open(link); err != nil {
		l.Close()
		return nil, fmt.Errorf("serial line: %w", err)
	}
	return l, nil
}

func (l *Line) open(link string) error {
	// Without blocking, so that deadlines work and Close ends what is under way.
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot make a pseudo-terminal: %w", err)
	}
	l.master = os.NewFile(uintptr(fd), "/dev/ptmx")
	n, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		return fmt.Errorf("cannot make a pseudo-terminal: %w", err)
	}
	l.path = fmt.Sprintf("/dev/pts/%d", n)
	if err := l.reset(); err != nil {
		return err
	}
	// Nothing but this tells without looking again and again.
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot watch %s (the limit is fs.inotify.max_user_instances): %w", l.path, err)
	}
	l.opens = os.NewFile(uintptr(events), "inotify")
	if _, err := unix.InotifyAddWatch(events, l.path, unix.IN_OPEN); err != nil {
		return fmt.Errorf("cannot watch %s: %w", l.path, err)
	}
	if link != "" {
		l.link, err = makeLink(link, l.path)
	}
	return err
}

// Path returns the terminal: "/dev/pts/7".
func (l *Line) Path() string { return l.path }

// Link returns where clients find it; "" when there is no link.
func (l *Line) Link() string {
	if l.link == nil {
		return ""
	}
	return l.link.path
}

// Close removes the link and the terminal, and ends Serve.
func (l *Line) Close() error {
	l.once.Do(func() {
		l.link.remove()
		for _, f := range []*os.File{l.opens, l.master} {
			if f != nil {
				f.Close()
			}
		}
	})
	return nil
}

// Serve serves whoever opens the line, one session after another, until ctx ends
// or the line is closed. It closes the line and returns nil, or why the line
// cannot be used. It is called once.
func (l *Line) Serve(ctx context.Context, fe emulator.FrontEnd) error {
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		err := l.wait()
		switch {
		case ctx.Err() != nil, errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("serial line %s: %w", l.path, err)
		}
		next := time.Now().Add(pause)
		s := &session{line: l}
		fe.ServeSession(ctx, s, emulator.SessionInfo{})
		s.Close()
		l.between(ctx, next, s.hungUp())
	}
}

// between makes the line ready for another session. It fails only when the line
// is closed, and that is noticed by wait.
func (l *Line) between(ctx context.Context, next time.Time, hungUp bool) {
	_ = l.master.SetDeadline(time.Time{})
	if hungUp {
		_ = l.reset()
		return
	}
	emulator.SleepUntil(ctx, next)
	_ = l.control(func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) })
}

// wait returns when the line is open.
func (l *Line) wait() error {
	buf := make([]byte, 4096)
	for {
		if open, err := l.isOpen(); open || err != nil {
			return err
		}
		// Opened before that, it is in the queue; what it says does not matter.
		if _, err := l.opens.Read(buf); err != nil {
			return err
		}
	}
}

// isOpen reports whether anybody has the line open, or has left something to be
// read.
func (l *Line) isOpen() (open bool, err error) {
	err = l.control(func(fd int) error {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			_, err := unix.Poll(fds, 0)
			if errors.Is(err, unix.EINTR) {
				continue
			}
			open = fds[0].Revents&unix.POLLHUP == 0 || fds[0].Revents&unix.POLLIN != 0
			return err
		}
	})
	return open, err
}

// control calls f with the descriptor of the master.
func (l *Line) control(f func(fd int) error) error {
	raw, err := l.master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// reset makes the line as it is before anybody has opened it: raw, with nothing
// to be read. What the next client may have sent already is kept.
func (l *Line) reset() error {
	fd, err := unix.Open(l.path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", l.path, err)
	}
	defer unix.Close(fd)
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB|unix.CSTOPB) | unix.CS8 | unix.CREAD | unix.CLOCAL
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH)
	}
	if err != nil {
		return fmt.Errorf("cannot set up %s: %w", l.path, err)
	}
	return nil
}

// session is what a front end sees of the line.
type session struct {
	line *Line

	mu     sync.Mutex // guards what follows
	closed bool
	gone   bool // the last client has closed the line
}

func (s *session) Read(p []byte) (int, error) {
	n, err := s.line.master.Read(p)
	return n, s.reason(err)
}

func (s *session) Write(p []byte) (int, error) {
	n, err := s.line.master.Write(p)
	return n, s.reason(err)
}

// reason tells the end of the session from an error.
func (s *session) reason(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		return nil
	case s.closed, errors.Is(err, os.ErrClosed):
		return net.ErrClosed
	case errors.Is(err, unix.EIO):
		s.gone = true
		return io.EOF
	}
	return err
}

func (s *session) hungUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

// Close ends the session, not the line.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		// Fails only when the line is closed, and that ends everything, too.
		_ = s.line.master.SetDeadline(time.Unix(1, 0))
	}
	return nil
}
