package firmwarenotes

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/ocslab/ocslab/timeline/dist"
)

// Profile is what a NIC does between its fibre and the kernel: how long its
// firmware takes to report a link after light has come, and to give it up after
// light has gone.
type Profile struct {
	Name string // what [Find] knows it by: "connectx-6-dx/autoneg-off", the note's name, a slash, and Key
	Key  string // its name within the note; a note with one profile lends that its own as Name

	// Debounce is from loss of light until the firmware reports that the link is
	// down. Light that is back before goes unnoticed.
	Debounce Span
	// Detect is from light until the PHY has detected the signal, Train from then
	// until the firmware reports that the link is up. Auto-negotiation is part of
	// Train. Light that goes meanwhile starts over.
	Detect, Train Span
	// Carrier is from the firmware's report until the driver tells the kernel.
	Carrier Span
	// Burst stretches Train when the light comes and goes too often; nil never.
	Burst *Burst
	// Refresh is how often the module brings its power readings and flags up to
	// date, so how old they may be.
	Refresh time.Duration
}

// Span is a duration that varies: drawn from a normal distribution of the given
// median and standard deviation, or from the mixture Modes if there is one, cut off at
// Min and Max. What would lie beyond one of these becomes that one, so Median stays the
// median if it lies between them.
type Span struct {
	Median, Spread time.Duration
	Modes          dist.Mixture  // in place of both; Median is then that of the mixture, and Spread 0
	Min, Max       time.Duration // Max 0: none
}

// Mixed returns the span of a mixture, which has at least one mode: its Median is
// filled in.
func Mixed(modes dist.Mixture) Span {
	return Span{Median: modes.Quantile(0.5), Modes: modes}
}

// Draw returns one such duration, never a negative one. Without Modes and Spread, r is
// not used and may be nil.
func (s Span) Draw(r *rand.Rand) time.Duration {
	d := s.Median
	switch {
	case len(s.Modes) > 0:
		d = s.Modes.Draw(r)
	case s.Spread > 0:
		d += time.Duration(r.NormFloat64() * float64(s.Spread))
	}
	most := time.Duration(math.MaxInt64)
	if s.Max > 0 {
		most = s.Max
	}
	return min(max(d, s.Min, 0), most)
}

// Burst is the slowness of firmware whose link is toggled in rapid succession:
// each link-up beyond Free within Window adds Step to the next Train, up to Most in
// all.
type Burst struct {
	Window     time.Duration
	Free       int
	Step, Most time.Duration
}

// Stretch returns what is added to Train when the link came up at times, in
// nanoseconds and any order, and is about to at now.
func (b *Burst) Stretch(times []int64, now int64) time.Duration {
	if b == nil {
		return 0
	}
	n := 0
	for _, t := range times {
		if t > now-int64(b.Window) && t <= now {
			n++
		}
	}
	return min(time.Duration(max(n-b.Free, 0))*b.Step, b.Most)
}
