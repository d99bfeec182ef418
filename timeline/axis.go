package timeline

import "time"

// Axis turns the times of this process into nanoseconds of a monotonic clock, and
// back. Use [HostAxis]; the zero Axis has no meaning.
type Axis struct {
	at    time.Time     // an instant, with its monotonic reading
	ns    int64         // the same instant on the axis
	bound time.Duration // at and ns may be this far apart
}

// The anchor is taken before main and not on first use, since a first use inside a
// test's fake clock would anchor the whole process to that.
var hostAxis = anchor()

// HostAxis returns the axis of this host. On Linux that is CLOCK_MONOTONIC, so that
// stamps made by the kernel (BPF ktime) join without conversion, and all processes
// of the host share it. Elsewhere it is time since this process started, and the
// processes of a host do not share it. Every call returns the same axis.
func HostAxis() Axis { return hostAxis }

// NS returns the place of t on the axis in nanoseconds. The time needs a monotonic
// reading, as time.Now gives it; without one, t is placed by the wall clock as it
// stood when the process started, which may be off by any step of that clock.
// Differences of two results are exact. Against stamps of the kernel every result may be
// off by the same small amount, well below a microsecond on an idle host; [Axis.Span]
// takes it into account.
func (a Axis) NS(t time.Time) int64 { return add(a.ns, int64(t.Sub(a.at))) }

// Span returns the interval on the axis that certainly holds everything between two
// readings of time.Now, in either order.
func (a Axis) Span(from, to time.Time) Interval {
	return Between(a.NS(from), a.NS(to)).Widen(a.bound)
}

// Time is the inverse of NS. The result has a monotonic reading; its wall clock is
// that of the process start, carried on without later steps.
func (a Axis) Time(ns int64) time.Time { return a.at.Add(time.Duration(sub(ns, a.ns))) }
