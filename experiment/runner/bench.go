package runner

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Bench is one opened testbed. It is used by one call at a time, though not always by the
// same goroutine. Calls return soon after their context has ended.
type Bench interface {
	// Move brings a configuration about and measures it until wait. Number 0 is not
	// recorded: a warm-up, or the way to where a point begins.
	Move(ctx context.Context, number int, to map[string]ocs.Map, wait plan.Wait) (experiment.Move, error)
	// Null does all that Move does but the change, and watches for window.
	Null(ctx context.Context, number int, window time.Duration) (experiment.Move, error)
	// Truth returns what the emulation has done since the last call, as marks of the
	// given reconfiguration. A real lab has none.
	Truth(number int) []timeline.Mark
	// Setup says how the testbed is set up. The runner fills in the session and the conditions.
	Setup() runs.Setup
	// Close frees everything but leaves the light alone.
	Close() error
}

// Recorder is what a Runner needs of a [runs.Writer]. Control may be called at the same
// time as the other methods, which are called one at a time.
type Recorder interface {
	ID() string
	Dir() string

	Session(runs.Session) (int, error)
	Setup(runs.Setup) error
	EndSession(reason string) error

	BeginPoint(plan.Point) error
	Reconfiguration(runs.Reconfiguration)
	Mark(timeline.Mark)
	Truth(timeline.Mark)
	Expected(timeline.Expectation)
	Note(reconfiguration int, n watch.Note)
	Sample(runs.Sample)
	FinishPoint() error // nil: the point is kept
	AbandonPoint(why string) error
	DropPoint(id int, why string) error

	Event(runs.Event) error
	Control() (runs.Control, bool) // takes what somebody has sent
	Finish(runs.Summary) error
	Close() error
}

var _ Recorder = (*runs.Writer)(nil)
