package clock

import (
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Result is what is known of the clock of one host. Its JSON form is what is kept, and of which
// [Text] makes text.
type Result struct {
	Host  string    `json:"host"`
	Began time.Time `json:"began"` // of the first exchange, by the wall clock of this machine
	Ended time.Time `json:"ended"`

	// SameClock says that the host is a part of this machine and has its clock: the offset is
	// 0, exactly, and all that follows is empty.
	SameClock bool `json:"same_clock"`

	// What tells this boot of our machine and of its from others; "" is not known.
	Boot    string `json:"boot,omitempty"`
	ItsBoot string `json:"its_boot,omitempty"`

	Exchanges   int   `json:"exchanges"`
	Unusable    int   `json:"unusable"` // of them: no answer, or one before its question
	RTTBestNS   int64 `json:"rtt_best_ns"`
	RTTMedianNS int64 `json:"rtt_median_ns"`

	// Offset is its clock minus ours at the end of the last batch.
	Offset Bound `json:"offset"`
	// Drift is by how much its clock runs faster than ours, in parts per million.
	Drift PPM `json:"drift_ppm"`
	// Limit is the drift that was taken for the most that clocks do, in parts per million, and
	// is what bounds widen by outside of the batches.
	Limit float64 `json:"drift_limit_ppm"`

	Batches []Summary `json:"batches"`
	// Bounds are those of the offset at the beginning, at each batch, and at the end, if both
	// clocks ran at one rate meanwhile. Between two of them straight lines bound it.
	Bounds []Bound `json:"bounds"`
}

// Bound is between what the offset is at one time. The middle is that of the line, and no
// better than any other value between the two.
type Bound struct {
	AtNS   int64 `json:"at_ns"`
	LowNS  int64 `json:"low_ns"`
	MidNS  int64 `json:"mid_ns"`
	HighNS int64 `json:"high_ns"`
}

// Interval returns it as an interval.
func (b Bound) Interval() timeline.Interval { return timeline.Between(b.LowNS, b.HighNS) }

// Half is the farther of the two bounds from the middle.
func (b Bound) Half() time.Duration { return time.Duration(max(b.HighNS-b.MidNS, b.MidNS-b.LowNS)) }

// PPM is between what a rate is, in parts per million.
type PPM struct {
	Low  float64 `json:"low"`
	Mid  float64 `json:"mid"`
	High float64 `json:"high"`
}

// Summary is one batch.
type Summary struct {
	When        When  `json:"when"`
	AtNS        int64 `json:"at_ns"` // the middle of the best exchange
	Exchanges   int   `json:"exchanges"`
	Unusable    int   `json:"unusable"`
	RTTBestNS   int64 `json:"rtt_best_ns"`
	RTTMedianNS int64 `json:"rtt_median_ns"`
	// Between what the offset was by this batch alone, whatever the rate was, up to the
	// limit.
	LowNS  int64 `json:"low_ns"`
	HighNS int64 `json:"high_ns"`
}

// Here is the result of a host that is a part of this machine.
func Here(host string, at time.Time) Result {
	return Result{Host: host, Began: at, Ended: at, SameClock: true}
}

// At returns between what its clock minus ours is at a time of ours. Between the batches these
// are the bounds of all lines that no exchange contradicts; before the first and after the last the
// clock may run at any rate up to the limit.
func (r Result) At(ns int64) timeline.Interval {
	if r.SameClock || len(r.Bounds) == 0 {
		return timeline.Interval{}
	}
	i := sort.Search(len(r.Bounds), func(i int) bool { return r.Bounds[i].AtNS >= ns })
	switch {
	case i == 0:
		first := r.Bounds[0]
		return first.Interval().Widen(apart(r.Limit/1e6, time.Duration(first.AtNS-ns)))
	case i == len(r.Bounds):
		last := r.Bounds[i-1]
		return last.Interval().Widen(apart(r.Limit/1e6, time.Duration(ns-last.AtNS)))
	}
	a, b := r.Bounds[i-1], r.Bounds[i]
	return between(a, b, ns)
}

// Rebooted says which of the two machines is not any more as it was when the clocks were
// compared, by what tells its boot from others now; false when neither is known to be. The clocks
// of a machine that has booted since have begun anew, and the result says nothing of them.
func (r Result) Rebooted(boot, itsBoot string) (why string, rebooted bool) {
	other := func(then, now string) bool { return then != "" && now != "" && then != now }
	switch {
	case r.SameClock:
		return "", false
	case other(r.Boot, boot):
		return "this machine has booted since", true
	case other(r.ItsBoot, itsBoot):
		return fmt.Sprintf("%s has booted since", r.Host), true
	}
	return "", false
}

// Missing says in words what a calibration should have and this one has not; nothing when
// it is complete.
func (r Result) Missing() []string {
	if r.SameClock {
		return nil
	}
	var missing []string
	for _, w := range []When{Before, After} {
		if !slices.ContainsFunc(r.Batches, func(b Summary) bool { return b.When == w && b.Exchanges > b.Unusable }) {
			missing = append(missing, fmt.Sprintf("no batch %s", w))
		}
	}
	return missing
}

// Since returns by how much its clock ran faster than ours on average, since an earlier result,
// over how long. Both are known better over hours than in one calibration. An error matching
// ErrStep is a clock that stepped, or a machine that was suspended, meanwhile. One of the machines
// may have booted since: then, as without an earlier line, there is nothing to compare and ok is
// false.
func (r Result) Since(earlier Result) (drift PPM, over time.Duration, ok bool, err error) {
	if _, rebooted := earlier.Rebooted(r.Boot, r.ItsBoot); rebooted || r.SameClock || earlier.SameClock || r.Boot == "" || r.ItsBoot == "" {
		return PPM{}, 0, false, nil
	}
	if len(r.Bounds) == 0 || len(earlier.Bounds) == 0 {
		return PPM{}, 0, false, nil
	}
	then, now := earlier.Offset, r.Bounds[0]
	over = time.Duration(now.AtNS - then.AtNS)
	if over <= 0 {
		return PPM{}, 0, false, nil
	}
	ppm := func(ns int64) float64 { return float64(ns) / float64(over) * 1e6 }
	drift = PPM{ppm(now.LowNS - then.HighNS), ppm(now.MidNS - then.MidNS), ppm(now.HighNS - then.LowNS)}
	if step := max(drift.Low-r.Limit, -r.Limit-drift.High); step > 0 {
		size := time.Duration(step / 1e6 * float64(over))
		return drift, over, true, fmt.Errorf("host %s: %w: since its last calibration its clock or ours stepped by at least %s",
			r.Host, ErrStep, short(size))
	}
	return drift, over, true, nil
}
