// Package measured says how long a change takes on a switch, by the runs that were recorded of it.
//
//	store, err := runs.Open(stateDir)
//	t, err := measured.Switching(ctx, store, "rail0", measured.Options{})
//	fmt.Println(t.Median, t.P99, t.Runs)
//
// A change is one reconfiguration of one switch: from its command until the last of the circuits that it made
// has reached a stage, "light" unless said otherwise. That is what a plan has to wait for: all of a map, not one circuit
// of it. When light came say the monitors of the switch, and where it has none, the modules of NICs. A reconfiguration
// that moved several switches is a change of each. One of which the watching ended early, since something else had to be
// done, is none.
//
// Only runs of the same thing are put together: the same device, by vendor, model, serial number, firmware and
// size, of a lab of the same name; and if it was emulated, emulated in the same way. The newest run says which. What was
// left out is listed with its reason. A run that was resumed counts as far as the device stayed the same.
package measured

import (
	"errors"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// Errors of this package. Their texts say how to measure.
var (
	// ErrNone: no stored run has changed the switch, or none that may be used.
	ErrNone = errors.New("no stored run tells")
	// ErrFew: there are runs, but fewer changes than it takes.
	ErrFew = errors.New("too few changes were measured")
	// ErrMixed: the runs are of different things, and nobody said which is meant.
	ErrMixed = errors.New("the runs are of different things")
)

// Options of [Switching].
type Options struct {
	// Stage is reached when a change is over; "" is [timeline.Light]. Stages of NICs (carrier-up, traffic) count
	// for the switch that their light comes from.
	Stage timeline.Stage
	// Lab is the name of the lab that the switch is of; "" is any, as long as only one has such a switch.
	Lab string
	// Emulated takes emulated labs only. Without it real ones count alone if there are any, else emulated ones.
	Emulated bool
	// Within leaves out runs that were begun longer ago; 0 is [DefaultWithin].
	Within time.Duration
	// Least is how many changes are needed; 0 is [DefaultLeast].
	Least int
	// Now is when it is; the zero time is the present.
	Now time.Time
}

// Defaults of [Options].
const (
	DefaultWithin = 30 * 24 * time.Hour // as long as a timing calibration holds
	DefaultLeast  = 5                   // fewer do not bound a median with a confidence of 95 % (Wilks 1941)
)

// Times is what runs say of how long a change takes.
type Times struct {
	Switch   string
	Lab      string
	Device   runs.Device
	Emulated bool
	Stage    timeline.Stage
	Runs     []string // IDs, the oldest first
	Count    int      // changes that came to their end
	// Missing is how many did not: a circuit never reached the stage as long as was waited.
	Missing int
	// Median and P99 are of those that did, with bounds. Of fewer than 299 changes even the largest does not bound a 99th
	// percentile. Where more than one of a hundred did not come to its end, there is none: P99 is then
	// [timeline.Never], and so is the median where more than half did not.
	Median, P99 timeline.Estimate
	Least, Most timeline.Interval // of those that did
	LeftOut     []LeftOut         // the newest first
}

// Known reports whether there is such a time: an estimate that is not [timeline.Never].
func Known(e timeline.Estimate) bool { return e.NS < timeline.Never }

// LeftOut is a run that was not used.
type LeftOut struct{ Run, Why string }
