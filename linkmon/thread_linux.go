package linkmon

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// thread is a pace on an operating system thread of its own, which the kernel wakes to
// the microsecond.
type thread struct{ m *Monitor }

// newThread returns the pace for counters of the kernel. Where sweeps are far apart,
// punctuality is worth nothing.
func newThread(m *Monitor) pace {
	if m.opt.Poll > 5*time.Millisecond && !m.opt.Tight {
		return &sleeper{m}
	}
	return &thread{m}
}

func (p *thread) begin() {
	ownThread()
	// The kernel may wake a thread up to 50 µs late to save power, unless it is told not
	// to (PR_SET_TIMERSLACK(2const)). Should this fail, intervals are wider.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
}

// ownThread gives the calling goroutine a thread to itself, for good: what is set on
// that ends with it. With the right to (CAP_SYS_NICE) it goes before all
// ordinary ones: on a machine with more to do than processors, that is between waiting
// microseconds and tens of milliseconds.
func ownThread() {
	runtime.LockOSThread()
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // of this thread alone, on Linux
}

func (p *thread) pause() {
	if p.m.opt.Tight {
		return
	}
	// An ordinary system call lets the Go scheduler give our processor away meanwhile. On
	// a machine that is busy with Go itself we then wait to get one back; keeping it
	// (RawSyscall) gave 1.6 times the sweeps there, but takes a whole processor from
	// everybody else and makes each stop of the world wait for the end of the pause. A
	// late sweep widens intervals and does no other harm.
	nap := unix.NsecToTimespec(int64(p.m.nap()))
	_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &nap, nil)
}

func (p *thread) cpu() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0 // does not happen
	}
	return time.Duration(ts.Nano())
}
