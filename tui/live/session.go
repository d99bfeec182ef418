package live

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
)

// Options are what a Session is opened with.
type Options struct {
	File     *lab.File
	Lab      lab.Options
	History  *history.Log
	StateDir string // where runs are kept, and panics are remembered

	// ReadOnly makes every method that could change something return ErrReadOnly.
	ReadOnly bool

	Fabric lab.FabricOptions // how hosts are emulated when the lab is
	// Quicken sets the monitors to their shortest averaging while a change is measured, and
	// back. It is something that changes the device.
	Quicken bool
	// Traffic sends packets between NICs, to see when traffic comes back.
	Traffic bool

	// MapEvery and PowerEvery are how often switches are read; 0 is 2 s and 1 s.
	MapEvery, PowerEvery time.Duration

	Version, Revision string // of ocslab, for runs
}

// Lab is what the UI needs of a lab that is open: *Session has it, and a fake for tests.
//
// Preview, Apply and the methods for runs may take as long as a switch does, and are
// called on goroutines of their own. Apply returns when the change has been read back;
// what comes after, a Move tells.
type Lab interface {
	// State returns the newest State. It takes no time.
	State() *State
	// Changed is sent to when there is a newer State than the one returned last.
	Changed() <-chan struct{}

	Preview(ctx context.Context, w Wish) Preview
	Apply(ctx context.Context, p Preview) Outcome

	// LoadRun plans an experiment, which replaces the one that is loaded.
	LoadRun(ctx context.Context, path string) error
	// StartRun runs the experiment that is loaded. It returns when the run has begun.
	StartRun(ctx context.Context) error
	// Resume goes on with a run that was stopped or killed.
	Resume(ctx context.Context, id string) error
	PauseRun() error // or lets it go on
	StopRun() error
	AbortRun() error

	// Reload reads the lab file anew, after it was edited.
	Reload(ctx context.Context) error
	// SetReadOnly begins or ends read-only; a session that was opened read-only stays so.
	SetReadOnly(on bool) error
	Close() error
}
