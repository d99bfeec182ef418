package fabric

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// clockSleeper stands on timerfd_create(2), whose clock is the axis of the host. The
// timers of package time end up to a millisecond late, since the poller of the
// runtime sleeps whole milliseconds; a descriptor wakes it when it is time.
type clockSleeper struct {
	fd   int
	file *os.File

	mu    sync.Mutex // guards woken and setting the timer
	woken bool
}

func newClockSleeper() (*clockSleeper, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	return &clockSleeper{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}

func (s *clockSleeper) sleep(until int64) {
	s.mu.Lock()
	if s.woken {
		s.woken = false
		s.mu.Unlock()
		return
	}
	s.set(until)
	s.mu.Unlock()
	var expirations [8]byte
	if _, err := s.file.Read(expirations[:]); err != nil {
		time.Sleep(time.Millisecond) // a timerfd has no errors; never spin if it has
	}
	s.mu.Lock()
	s.woken = false
	s.mu.Unlock()
}

func (s *clockSleeper) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.woken = true
	s.set(1)
}

// set lets the timer end at an absolute time; never stops it.
func (s *clockSleeper) set(at int64) {
	var t unix.ItimerSpec
	if at != never {
		t.Value = unix.NsecToTimespec(max(at, 1))
	}
	_ = unix.TimerfdSettime(s.fd, unix.TFD_TIMER_ABSTIME, &t, nil) // fails for bad arguments only
}

func (s *clockSleeper) close() { s.file.Close() }
