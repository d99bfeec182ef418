package optics

import (
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Defaults of a [Tracker].
const (
	// DefaultThreshold is below what receivers of 100 Gbit/s and more work with (LR4, FR4
	// and DR4 end above -15 dBm, ER4 near -21), and well above the few tenths of a
	// microwatt that monitors show in the dark.
	DefaultThreshold  ocs.DBm = -25
	DefaultHysteresis ocs.DB  = 1
)

// Tracker turns the samples of one module into marks of when its light went and came. It
// is not safe for concurrent use.
type Tracker struct {
	Subject string // of the marks: "gpu1/ens1f0"
	Host    string // of the marks

	// Below Threshold it is dark, and from Threshold plus Hysteresis on there is light; in
	// between nothing changes. 0 stands for the defaults.
	Threshold  ocs.DBm
	Hysteresis ocs.DB

	// Lag is how old a value may be when a module hands it out: 100 ms for real modules,
	// unless their data sheet says better; what an emulated one is set to for it.
	Lag time.Duration

	state level
	last  [lit + 1]timeline.Interval // of the last sample at each level
}

type level uint8

const (
	neither level = iota // within the hysteresis; of a tracker: no sample yet
	dark
	lit
)

// Source is the source of the marks.
const Source = "module"

// Add takes in the next sample and reports a mark when it shows that the light went or
// came. The mark reaches from Lag before the start of the last sample that showed the
// contrary to the end of this one; that holds the moment at which the power crossed
// the threshold, if it did so once. What comes and goes between two samples is not seen.
//
// The first sample only tells how things stand, and makes no mark. Samples must come in
// order of time; a sample without a power (NaN) is passed over.
func (t *Tracker) Add(s Sample) (timeline.Mark, bool) {
	now := t.level(s.Power)
	if now == neither {
		return timeline.Mark{}, false
	}
	was := t.state
	t.state, t.last[now] = now, s.Interval
	if was == neither || was == now {
		return timeline.Mark{}, false
	}
	stage := timeline.Dark
	if now == lit {
		stage = timeline.Light
	}
	return timeline.Mark{
		Stage: stage, Subject: t.Subject, Host: t.Host, Source: Source, Detail: s.String(),
		Interval: timeline.Interval{Earliest: t.last[was].Widen(t.Lag).Earliest, Latest: s.Latest},
	}, true
}

func (t *Tracker) level(p ocs.DBm) level {
	threshold, hysteresis := t.Threshold, t.Hysteresis
	if threshold == 0 {
		threshold = DefaultThreshold
	}
	if hysteresis == 0 {
		hysteresis = DefaultHysteresis
	}
	switch {
	case p < threshold:
		return dark
	case p >= threshold.Add(max(hysteresis, 0)):
		return lit
	}
	return neither
}
