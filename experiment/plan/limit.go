package plan

import (
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Quantity is what a [Statistic] tells of a stage.
type Quantity string

// The quantities. Times are since the command.
const (
	P50     Quantity = "p50"
	P95     Quantity = "p95"
	P99     Quantity = "p99"
	Max     Quantity = "max"
	Share   Quantity = "share"   // of the median of the last stage, 0 to 1
	Missing Quantity = "missing" // how often it was expected and not seen
	Count   Quantity = "count"
)

// Statistic is a number that a run comes to: text "carrier_p99", "light_p50",
// "traffic-lost_max", or "missing" of all stages. "carrier" is short for "carrier-up", and
// "median" for "p50".
type Statistic struct {
	Stage timeline.Stage // "": of all stages; goes with Missing only
	Of    Quantity
}

// Limit is what a statistic should keep to: text "carrier_p99 < 4s", with, if it is not
// about all conditions, "where firmware=quick" and more of these joined by "and".
type Limit struct {
	Text      string
	Statistic Statistic
	Op        string // "<", "<=", ">", ">=", "=="
	// Value is in nanoseconds for times, a part of 1 for shares, else a number.
	Value float64
	Where map[string]string // parameters and their values
}

// Stop ends the repeats of a condition when a statistic is known well enough.
type Stop struct {
	When   Statistic `yaml:"when,required"`
	Within Tolerance `yaml:"within,required"` // half the width of its confidence interval
	After  int       `yaml:"after"`           // repeats that are done in any case; 0 is 10
}

// Tolerance is a part ("5%") or a time ("20ms").
type Tolerance struct {
	Part float64
	Time time.Duration
}
