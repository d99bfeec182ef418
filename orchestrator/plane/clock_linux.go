package plane

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// timerNap stands on timerfd_create(2), whose clock is the axis of the host.
type timerNap struct {
	fd   int
	file *os.File
}

func newNap() (nap, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("timerfd: %w", err)
	}
	return &timerNap{fd, os.NewFile(uintptr(fd), "timerfd")}, nil
}

func (t *timerNap) set(ns int64) {
	var spec unix.ItimerSpec
	if ns != never {
		spec.Value = unix.NsecToTimespec(max(ns, 1)) // zero would stop it
	}
	_ = unix.TimerfdSettime(t.fd, unix.TFD_TIMER_ABSTIME, &spec, nil) // fails for bad arguments only
}

func (t *timerNap) wait() {
	var expirations [8]byte
	if _, err := t.file.Read(expirations[:]); err != nil {
		time.Sleep(time.Millisecond) // a timerfd has no errors; never spin if it has
	}
}

func (t *timerNap) close() { t.file.Close() }
