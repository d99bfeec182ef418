package probe

import (
	"cmp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// wallclock brings stamps of the wall clock over to the host's axis, for one socket
// that is emptied now and then. It is not safe for concurrent use.
type wallclock struct {
	base clockSample // taken before the socket was last found empty: what is read now came later
	off  int64       // to be taken from a stamp
	err  int64       // by how much that may be wrong
	ok   bool
}

// clockSample is one comparison of the two clocks.
type clockSample struct{ at, off int64 } // axis ns; wall ns - axis ns

const (
	clockNoise = 2000 // ns by which two samples of clocks that were left alone may differ
	clockSlew  = 1000 // the wall clock is slewed by less than one part in this (adjtimex(2): 500 ppm)
)

// sampleClocks takes the middle one of three comparisons, since a thread may be
// preempted between reading one clock and the other.
func sampleClocks(axis timeline.Axis) clockSample {
	var s [3]clockSample
	for i := range s {
		now := time.Now()
		at := axis.NS(now)
		s[i] = clockSample{at, now.UnixNano() - at}
	}
	slices.SortFunc(s[:], func(a, b clockSample) int { return cmp.Compare(a.off, b.off) })
	return s[1]
}

// use prepares for stamps that were read before now was taken.
func (w *wallclock) use(now clockSample) {
	d := now.off - w.base.off
	d = max(d, -d)
	w.ok = d <= clockNoise+(now.at-w.base.at)/clockSlew
	w.off, w.err = now.off, d+clockNoise/8
}

// interval returns when a packet with this stamp came that was sent after sent and
// read between began and read. The stamp is 0 when there is none.
//
// The kernel turns stamping on some time after it was asked to (net_enable_timestamp in
// net/core/dev.c), and gives packets that came before the time at which they
// are read. So of a stamp from then only the end counts.
func (w *wallclock) interval(stamp, sent, began, read int64) timeline.Interval {
	widest := timeline.Between(sent, read)
	if !w.ok || stamp == 0 {
		return widest
	}
	if at, ok := timeline.Point(stamp - w.off).Widen(time.Duration(w.err)).Intersect(widest); ok {
		if at.Latest >= began {
			at.Earliest = widest.Earliest
		}
		return at
	}
	return widest
}
