package serialline

import (
	"context"
	"errors"
	"fmt"
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
	events *os.File // tells when somebody opens or closes the line
	once   sync.Once
	change chan struct{} // holds one: somebody has

	mu      sync.Mutex // guards what follows
	clients int        // that have the line open, as far as the events tell
	closes  int        // events so far
	left    bool       // a client has closed the line, and nobody may have it open since
	current *session   // nil between two
	kept    []byte     // read, but for the next session
}

// Listen makes a line. Link is where clients find it: it is made, or replaced if
// it is what another Listen has left; "" makes none.
func Listen(link string) (*Line, error) {
	l := &Line{change: make(chan struct{}, 1)}
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
	// Nothing but this tells without looking again and again.
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot watch %s (the limit is fs.inotify.max_user_instances): %w", l.path, err)
	}
	l.events = os.NewFile(uintptr(events), "inotify")
	if _, err := unix.InotifyAddWatch(events, l.path, unix.IN_OPEN|unix.IN_CLOSE); err != nil {
		return fmt.Errorf("cannot watch %s: %w", l.path, err)
	}
	if err := l.begun(); err != nil { // without it nobody is not there
		return err
	}
	if err := reset(fd); err != nil {
		return fmt.Errorf("cannot set up %s: %w", l.path, err)
	}
	if link != "" {
		l.link, err = makeLink(link, l.path)
	}
	return err
}

// begun opens and closes the line: the kernel tells whether a client has it open
// only once it was.
func (l *Line) begun() error {
	fd, err := unix.Open(l.path, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot open %s: %w", l.path, err)
	}
	return unix.Close(fd)
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
		for _, f := range []*os.File{l.events, l.master} {
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
	var watch sync.WaitGroup
	defer watch.Wait()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	watch.Go(func() {
		defer close(l.change)
		l.watch()
	})
	for {
		s, err := l.wait()
		switch {
		case ctx.Err() != nil, errors.Is(err, os.ErrClosed):
			return nil
		case err != nil:
			return fmt.Errorf("serial line %s: %w", l.path, err)
		}
		next := time.Now().Add(pause)
		fe.ServeSession(ctx, s, emulator.SessionInfo{})
		s.Close()
		l.between(ctx, next, s)
	}
}

// between makes the line ready for another session. It fails only when the line
// is closed, and that is noticed by wait.
func (l *Line) between(ctx context.Context, next time.Time, s *session) {
	_ = l.look()
	l.mu.Lock()
	l.current = nil
	gone := s.gone
	if !gone {
		l.kept = nil
	}
	l.mu.Unlock()
	_ = l.master.SetDeadline(time.Time{})
	if !gone {
		// What comes from now on is for the next session, maybe of another client.
		_ = control(l.master, func(fd int) error { return unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH) })
		emulator.SleepUntil(ctx, next)
	}
}

// wait returns a session when the line is open.
func (l *Line) wait() (*session, error) {
	for sure := false; ; {
		s, opening, err := l.begin(sure)
		if s != nil || err != nil {
			return s, err
		}
		var overdue <-chan time.Time
		if opening {
			overdue = time.After(pause)
		}
		select {
		case _, more := <-l.change:
			if !more {
				return nil, os.ErrClosed
			}
		case <-overdue:
			sure = true
		}
	}
}

// begin begins a session if anybody has the line open, or has left something to
// be read. A client that has opened the line and is not among the events yet is
// worth waiting for, unless it is sure that they will not tell of it.
func (l *Line) begin(sure bool) (s *session, opening bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// In this order: who opens the line after it was looked at is in the events
	// that the session sees.
	if err := l.lookLocked(); err != nil {
		return nil, false, err
	}
	var open, more bool
	if err := control(l.master, func(fd int) (err error) {
		if open, more, err = state(fd); open || err != nil {
			return err // whoever has it open has settings of its own
		}
		return reset(fd)
	}); err != nil {
		return nil, false, err
	}
	if !open { // whoever opens it now is another client
		l.clients, l.left = 0, true
	}
	opening = open && l.left && !sure
	if opening || !open && !more && len(l.kept) == 0 {
		return nil, opening, nil
	}
	l.current = &session{line: l}
	return l.current, false, nil
}

// control calls f with the descriptor of a file.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = f(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// state reports whether anybody has the line open, and whether there is something
// to be read.
func state(master int) (open, more bool, err error) {
	fds := []unix.PollFd{{Fd: int32(master), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return fds[0].Revents&unix.POLLHUP == 0, fds[0].Revents&unix.POLLIN != 0, err
	}
}

// reset makes the line as it is before anybody has opened it: raw, with nothing
// for a client to read. What clients have sent is kept. The settings of the master
// are those of the terminal.
func reset(master int) error {
	t, err := unix.IoctlGetTermios(master, unix.TCGETS)
	if err == nil {
		t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB|unix.CSTOPB) | unix.CS8 | unix.CREAD | unix.CLOCAL
		t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
		err = unix.IoctlSetInt(master, unix.TCFLSH, unix.TCOFLUSH) // on its way to the terminal
	}
	if err == nil {
		err = unix.IoctlSetTermios(master, unix.TCSETSF, t) // and there
	}
	return err
}
