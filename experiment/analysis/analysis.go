package analysis

import (
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/timeline"
)

// Analysis is what the numbers of a run say.
type Analysis struct {
	Conditions  []Condition // those of the plan of which at least one point is done
	Background  []Background
	Differences []Difference // of each condition from the first, by stage
	Verdicts    []Verdict    // of each limit in each condition it is about
	Verdict     Judgement    // of all: Fail before Undecided before Pass; "" without limits
	// Busy are the reconfigurations and null toggles that are left out of all above and of
	// Accuracy, since the machine was too busy; Measured is how many there are with them.
	Busy       []Busy
	Measured   int
	Dark       []string // ports that stayed dark though their circuit has input light, each once
	Violations []timeline.Violation
	Conflicts  []timeline.Conflict // between sources, found in the marks as stored
	// Accuracy is how far the marks are from the truth, of emulated labs.
	Accuracy []timeline.Accuracy
}

// Busy is a reconfiguration that cannot be trusted, and why.
type Busy struct {
	Reconfiguration int      `json:"reconfiguration"`
	Reasons         []string `json:"reasons"`
}

// Condition is what was found of one condition.
type Condition struct {
	plan.Condition
	Points           int // finished repeats
	Reconfigurations int
	Report           timeline.Report        // of the stages that the experiment is about
	Stages           []Stage                // in the order of Report.Stages
	Waited           map[timeline.Stage]int // how often each was waited for in vain; see [Stage]
	NICs             []NIC
	Pairs            []Pair
	Outliers         []Outlier      // the worst, by score; at most 50
	OutlierCount     int            // all there are
	Typical          int            // the reconfiguration that is most like the medians
	Slowest          int            // the one whose last stage was the latest
	Held             map[string]int // how often each NIC kept its link
}

// Stage is more of one stage than [timeline.Summary] has.
type Stage struct {
	timeline.Summary
	Min, Max timeline.Interval
	// Distribution is that of the durations, with intervals and what never came (known to
	// be later than patience) taken for what they are. What may have come unseen, between
	// two readings, is not in it.
	Distribution timeline.Distribution
	// Counted are what limits are about: P50, P95, P99 and Max of all that Distribution has,
	// while those of Summary are of what came. HighNS is [timeline.Never] where there is no
	// telling how late. Bounds are the wider ones of Summary's bootstrap and of order
	// statistics: of upper quantiles of few values, a bootstrap alone promises too much.
	Counted map[plan.Quantity]timeline.Estimate
	Box     Box
	// Floor is the difference that this set-up cannot resolve: the largest of Resolution, of
	// what two halves of the same repeats, taken at random, differ by in 95 % of splits, and of
	// Calibrated.
	Floor time.Duration
	// Calibrated is the floor of as many repeats by the timing calibration that the run has
	// used; 0 where it had none that holds for the set-up, or that has no floor of this stage.
	Calibrated time.Duration
	// AA is the second alone: differences between equals.
	AA time.Duration
	// Drift is how much later the stage comes at the end of the run than at its
	// beginning, by a robust line (Theil-Sen) over its reconfigurations. Fewer than six
	// cannot show one: its bounds then hold 0.
	Drift timeline.Estimate
	// Spurious is how many of Count nobody may have caused, going by the null toggles; nil
	// where there were none.
	Spurious *Spurious
}

// Spurious is a number of marks that no reconfiguration has caused. It is what null toggles
// showed, taken to the time that the reconfigurations took.
type Spurious struct {
	Expected float64 // on average
	High     float64 // at most, with 97.5 % confidence; never above the count of the stage
}

// Box is what a box plot shows: quartiles, and whiskers at the outermost values within 1.5
// times their distance.
type Box struct{ Low, Q1, Median, Q3, High int64 }

// NIC is the median of each stage at one NIC.
type NIC struct {
	Name   string
	Stages map[timeline.Stage]timeline.Summary
	Unseen map[timeline.Stage]int // how often a stage was expected that never came there
}

// Pair is what was found of one cross-connect between two NICs, or of two ports.
type Pair struct {
	From, To string // NICs, or ports such as "rail0/1" and "rail0/34"
	Count    int
	Median   timeline.Interval // of Stage
	Stage    timeline.Stage    // the last that was watched of it: traffic, carrier-up, or light
}

// Outlier is a duration far from the others: kept in all statistics, and named.
type Outlier struct {
	Reconfiguration   int
	Stage             timeline.Stage
	Subject           string
	timeline.Interval // since the command
	// Score is its distance from the median in units of the spread to that side: 1.4826
	// times the median absolute deviation, or the resolution where that is larger, and so
	// much that no more than a tenth of all would be outliers.
	Score float64
}

// Background is what null toggles showed of one stage: marks that nothing had caused.
type Background struct {
	Stage  timeline.Stage
	Nulls  int // null toggles
	Marked int // those with a mark of this stage
	// Low and High bound the probability of such a mark in one window (Clopper-Pearson, 95 %).
	Low, High float64
	Window    time.Duration
}

// Difference is how much later a stage comes in one condition than in the first.
type Difference struct {
	Condition int
	Stage     timeline.Stage
	Median    timeline.Estimate // difference of medians, with confidence bounds of a bootstrap
	// Resolved: its bounds leave 0 out, and it is above the floors of both.
	Resolved bool
}

// Judgement is what became of a limit.
type Judgement string

// The judgements.
const (
	Pass      Judgement = "pass"      // kept, also at the worse of the confidence bounds
	Fail      Judgement = "fail"      // not kept, also at the better one
	Undecided Judgement = "undecided" // the bounds lie on both sides
)

// Verdict is a limit and what became of it in one condition.
type Verdict struct {
	Limit     plan.Limit
	Condition int // its number
	Judgement Judgement
	// Value is what was found, with its bounds, in units of Limit.Value. Quantiles here count
	// what never came as later than it was waited for. Known is false
	// when nothing was: then Judgement is Fail for a stage that was waited for, else Undecided.
	// High is +Inf when what never came may have been any time later.
	Value, Low, High float64
	Known            bool
	// Need is how many durations it takes to tell, when Judgement is Undecided for want of
	// them. The largest of fewer than 59 does not bound a 95th percentile with a confidence
	// of 95 %, nor of fewer than 299 a 99th, nor of fewer than 5 the median (Wilks 1941);
	// and durations of a single reconfiguration have too much in common.
	Need int
}
