package pods

import (
	"context"
	"errors"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrLab: a lab has no place for a fabric.
	ErrLab = errors.New("the lab does not have the fabric")
	// ErrOrder: circuits cannot be moved in the order that was asked for.
	ErrOrder = errors.New("they cannot be moved in that order")
)

// Order is whether pairs of switches are moved one round after another.
type Order string

// The orders. Auto is Staged if every two pods that have links before and after keep one throughout, and Paired if not; it is
// the zero Order, too.
const (
	Auto   Order = "auto"
	Paired Order = "paired" // all pairs at once
	Staged Order = "staged" // in rounds, see [crosswiring.Stages]
)

// Options of [Apply]. Of those of a sequence, Repeats, Opened, Reconcile and After are its own.
type Options struct {
	sequence.Options
	Order Order
	// Drain is called before the first circuit of a pair goes, and Undrain when its circuits have been read back and its two
	// switches compared. Both may be called by several goroutines, for several pairs. An error of Drain leaves the
	// pair as it is; an error of either ends the move, and the lab is put back. Nil does nothing.
	Drain, Undrain func(ctx context.Context, p crosswiring.Pair) error
	// Off are pairs that are neither touched nor asked, because a switch of them is dead. The configuration must have no
	// circuits there.
	Off []crosswiring.Pair
}

// Report is what bringing a fabric to a configuration came to.
type Report struct {
	Run string // its ID
	// State is how the run ended. Restored is whether the lab is as it should be: as to wants it if State is
	// done and Leave was asked for, else as it was found.
	State    runs.State
	Restored bool
	Order    Order // Paired or Staged
	// Why says why the order is not Staged, "" if it is or was not asked.
	Why string
	// Found says what was wrong with the circuits that were found, and that were moved all the same; "" if nothing.
	Found  string
	Change *crosswiring.Change
	// Planned is how long it took to work out what goes, what comes and in which rounds.
	Planned time.Duration
	// Cold is how long the switches took to be brought to the configuration before, from the first command to the last reply; 0 if
	// they held it.
	Cold   time.Duration
	Rounds []Round
	// Switches are those that changed, in the order of rounds.
	Switches []SwitchReport
	Links    []LinkDown // that came, those that took longest first
	Pods     []PodsDown // two pods that had links before and after and of which a link moved, those that were apart longest first
	Lost     []Lost     // pairs that could not be changed
	// Followed is how many links were found by following the light in the end; 0 if it was not followed.
	Followed int
}

// SwitchReport is what changed on a switch, and when.
type SwitchReport struct {
	Switch         crosswiring.Switch
	Name           string // in the lab
	Removed, Added int    // circuits
	Rewired        int    // inputs that lead elsewhere, or nowhere, or newly somewhere
	// Both are from the first byte of the first command: Ack until the last reply, Light until the last of its new circuits
	// has light. Light is the zero Interval where nothing was added, or no power monitor said.
	Ack, Light timeline.Interval
}

// Round is what was moved at the same time.
type Round struct {
	Pairs int
	// Took is from before the first command, which disconnects if anything goes, until the last switch had been read back.
	Took time.Duration
}

// LinkDown is a link that came, and for how long its ports were out of work.
type LinkDown struct {
	Link crosswiring.PortLink
	// For is from when the first of the two ports went dark, or from the first command of the pair if both were dark, until
	// there was light both ways. Known is false where no power monitor said.
	For   timeline.Interval
	Known bool
	// Carrier is from the same instant until both NICs of a lab with hosts had carrier; the zero Interval where there
	// are none, or that was not waited for, see [sequence.Options].
	Carrier timeline.Interval
}

// PodsDown is how long two pods had no link at all, in any group.
type PodsDown struct {
	A, B int // pods
	// For is the time, 0 to 0 if they always had a link. Known is false where no power monitor said.
	For   timeline.Interval
	Known bool
}

// Lost is a pair that could not be changed.
type Lost struct {
	Pair   crosswiring.Pair
	Failed string // the switch of the lab on which it failed
	Err    error
	// Back is whether all switches have been put back as they were found. If not, the links of the pair may be dark or
	// lead one way only: the switch that did not fail is no use without its partner.
	Back bool
}
