package probe

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// metronome returns what waits for the instants at which to send. With sockets the
// calling goroutine is from then on alone on a thread that ends with it, and sleeps by
// the kernel's timer to the nanosecond: Go's timers are some 60 µs late. With Conns only,
// time is Go's, which may be that of a test.
func (p *Probe) metronome() func(due int64) bool {
	if p.opt.Spin {
		return p.spinTo
	}
	sockets := false
	for _, x := range p.ends {
		sockets = sockets || x.sock != nil
	}
	if !sockets {
		return p.sleepTo
	}
	runtime.LockOSThread()
	// On failure sleeping is 50 µs less precise, which SendGap shows.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	// With the right to (CAP_SYS_NICE) this thread goes before ordinary ones: a packet
	// that is sent late is an interval that is wide.
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20) // of this thread alone, on Linux
	return p.nanosleepTo
}

// nanosleepTo waits for an instant. The axis is CLOCK_MONOTONIC. It looks every
// 10 ms whether the probe is to stop, and reports false then.
func (p *Probe) nanosleepTo(due int64) bool {
	const nap = 10e6
	for {
		select {
		case <-p.stop:
			return false
		default:
		}
		now := p.now()
		if now >= due {
			return true
		}
		ts := unix.NsecToTimespec(min(due, now+nap))
		// EINTR ends it early, and the loop goes on.
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &ts, nil)
	}
}
