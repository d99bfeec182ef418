package emulator

import (
	"math"
	"slices"
	"time"
)

// settleShare is the share of the final power at which a path counts as
// settled: 0.5 dB below it.
var settleShare = math.Pow(10, -0.05)

// settleTau is how many time constants an exponential approach takes to get
// there.
var settleTau = -math.Log(1 - settleShare)

// Times in this file are nanoseconds on the host's axis; always is earlier than
// any of them.
const always = math.MinInt64

// path is how the light of a cross-connect comes while its mirrors move: it is
// dark until begin, and from then on the power is
// level * (1 - exp(-(t-begin)/rise)), or level at once when rise is zero.
type path struct {
	begin int64
	rise  time.Duration
}

// settling returns the path of mirrors that start to move at now, and whose
// light is to be within 0.5 dB at settled.
func settling(now, settled int64, rise time.Duration) path {
	lead := settleTau * float64(rise)
	if most := float64(settled - now); lead > most { // the move is shorter than the rise
		lead = most
	}
	return path{settled - int64(lead), time.Duration(lead / settleTau)}
}

// segment is a piece of a trace: light that comes along a path to a level in
// mW, from a moment on until the next segment begins.
type segment struct {
	from int64
	path
	level float64
}

// energy returns the integral of the power from a to b in mW nanoseconds.
func (s segment) energy(a, b int64) float64 {
	a = max(a, s.begin)
	if s.level == 0 || a >= b {
		return 0
	}
	d := float64(b - a)
	if s.rise == 0 {
		return s.level * d
	}
	tau := float64(s.rise)
	return s.level * (d - tau*(math.Exp(-float64(a-s.begin)/tau)-math.Exp(-float64(b-s.begin)/tau)))
}

// trace is the power at a port as a function of time: segments in order. The
// zero trace is dark.
type trace []segment

// level returns the power in mW that the light has or will have when nothing
// else happens.
func (tr trace) level() float64 {
	if len(tr) == 0 {
		return 0
	}
	return tr[len(tr)-1].level
}

// mean returns the mean power in mW over the window that ends at t, which must
// not be earlier than the last segment.
func (tr trace) mean(t int64, window time.Duration) float64 {
	var sum float64
	from, end := t-int64(window), t
	for i := len(tr) - 1; i >= 0 && end > from; i-- {
		a := max(tr[i].from, from)
		sum += tr[i].energy(a, end)
		end = a
	}
	return sum / float64(window)
}

// maxSegments bounds what a port remembers when it changes faster than monitors
// can tell.
const maxSegments = 32

// then returns the trace that goes on with s from s.from on. What no monitor can
// see any more is forgotten; of more than a monitor can tell apart, the oldest
// is remembered as its mean.
func (tr trace) then(s segment) trace {
	for len(tr) > 0 && tr[len(tr)-1].from >= s.from {
		tr = tr[:len(tr)-1]
	}
	horizon := s.from - int64(averagingSteps[len(averagingSteps)-1])
	old := 0
	for old < len(tr)-1 && tr[old+1].from <= horizon {
		old++
	}
	tr = slices.Delete(tr, 0, old)
	if len(tr) == maxSegments {
		from, to := tr[0].from, tr[2].from
		mean := (tr[0].energy(from, tr[1].from) + tr[1].energy(tr[1].from, to)) / float64(to-from)
		tr = slices.Delete(tr, 0, 1)
		tr[0] = segment{from: from, path: path{begin: always}, level: mean}
	}
	return append(tr, s)
}
