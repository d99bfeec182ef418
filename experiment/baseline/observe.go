package baseline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Defaults of [Options].
const (
	DefaultExchanges = 50
	DefaultNulls     = 5
	DefaultWindow    = 2 * time.Second
)

// heldEvery is how often it is looked whether the program is held up.
const heldEvery = time.Millisecond

// Options say how a testbed is observed.
type Options struct {
	// From and To name the first two of the testbed's Maps, between which it is toggled. When they
	// are "", nothing is moved.
	From, To string

	Toggles   int           // that count; goes with From and To
	WarmUps   int           // before them; the way to where they begin is one more
	Exchanges int           // with each switch; 0 is DefaultExchanges
	Nulls     int           // times in which nothing is done; 0 is DefaultNulls, below 0 is none
	Window    time.Duration // of each of them; 0 is DefaultWindow
	Pause     time.Duration // before each toggle
	Seed      uint64

	// Progress, if it is not nil, is told what is done next, in words.
	Progress func(string)
}

// Observe exchanges words with each switch, watches while nothing is done, and toggles. It leaves the
// light where it is then. What it returns with an error is what was observed until then.
func Observe(ctx context.Context, t *experiment.Testbed, opt Options) (timing.Observations, error) {
	x := &observer{t: t, opt: opt, tell: opt.Progress, o: timing.Observations{
		From: opt.From, To: opt.To, Window: or(opt.Window, DefaultWindow), Seed: opt.Seed,
		Exchanges: map[string][]time.Duration{}, Readings: map[string][][]timeline.Sample{}, Averaging: t.Average,
	}}
	if x.tell == nil {
		x.tell = func(string) {}
	}
	if opt.From != "" && len(t.Maps) < 2 {
		return x.o, errors.New("the testbed has no two configurations to toggle between")
	}
	err := x.exchanges(ctx)
	if err == nil && opt.From != "" {
		err = x.toggles(ctx) // first, so that there is light to be read in the nulls
	}
	if err == nil {
		err = x.nulls(ctx)
	}
	var expected []timeline.Expectation
	x.o.Merged, expected = analysis.OneKind(x.merged, x.o.Expected)
	x.o.Expected = expected
	return x.o, err
}

type observer struct {
	t      *experiment.Testbed
	opt    Options
	tell   func(string)
	o      timing.Observations
	merged []timeline.Mark
}

// exchanges times how long a switch takes to say what it holds.
func (x *observer) exchanges(ctx context.Context) error {
	for _, r := range x.t.Bench.Rigs {
		x.tell("exchanges with " + r.Name)
		if _, err := r.Switch.CrossConnects(ctx); err != nil { // not counted: the session may have to be made first
			return err
		}
		for range or(x.opt.Exchanges, DefaultExchanges) {
			began := time.Now()
			if _, err := r.Switch.CrossConnects(ctx); err != nil {
				return err
			}
			x.o.Exchanges[r.Name] = append(x.o.Exchanges[r.Name], time.Since(began))
		}
	}
	return nil
}

// toggles goes to and fro between the two configurations.
func (x *observer) toggles(ctx context.Context) error {
	// The first brings the lab from wherever it is to the beginning.
	for i := -1 - x.opt.WarmUps; i < x.opt.Toggles; i++ {
		if i < 0 {
			x.tell("warming up")
		} else {
			x.tell(fmt.Sprintf("toggle %d of %d", i+1, x.opt.Toggles))
		}
		if err := pause.For(ctx, x.opt.Pause); err != nil {
			return err
		}
		x.t.Truth(0) // what was before is of no toggle
		mv, err := x.t.Bench.Move(ctx, max(i+1, 0), x.t.Maps[(i+1)&1], ocs.Update)
		if err != nil {
			return err
		}
		if i < 0 {
			continue
		}
		x.o.Toggles++
		x.o.Seen = append(x.o.Seen, mv.Marks...)
		merged, _ := timeline.Merge(mv.Marks)
		x.merged = append(x.merged, merged...)
		x.o.Expected = append(x.o.Expected, mv.Expected...)
		x.o.Truth = append(x.o.Truth, x.t.Truth(i+1)...)
		x.readings(mv)
	}
	return nil
}

// nulls watches while nothing is done.
func (x *observer) nulls(ctx context.Context) error {
	for n := range or(x.opt.Nulls, DefaultNulls) {
		x.tell(fmt.Sprintf("watching while nothing is done, %d of %d", n+1, or(x.opt.Nulls, DefaultNulls)))
		held := heldUp()
		mv, err := x.t.Bench.Null(ctx, n+1, x.o.Window)
		x.o.Held = append(x.o.Held, held()...)
		if err != nil {
			return err
		}
		x.o.Nulls++
		x.o.Idle = append(x.o.Idle, mv.Marks...)
		x.readings(mv)
	}
	return nil
}

// heldUp watches for how long this program does not get to run, until the function that it returns is called: that
// returns the times that were longer than [timing.HeldUp].
func heldUp() func() []time.Duration {
	var long []time.Duration
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(heldEvery)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				now := time.Now()
				if d := now.Sub(last); d > timing.HeldUp {
					long = append(long, d)
				}
				last = now
			}
		}
	}()
	return func() []time.Duration {
		close(stop)
		<-stopped
		return long
	}
}

// readings keeps those of the power monitors.
func (x *observer) readings(mv experiment.Move) {
	for _, r := range x.t.Bench.Rigs {
		for subject, samples := range mv.Samples {
			if name, _, ok := strings.Cut(subject, "/"); ok && name == r.Name && len(samples) > 1 {
				x.o.Readings[name] = append(x.o.Readings[name], samples)
			}
		}
	}
}

func or[T int | time.Duration](x, standard T) T {
	if x == 0 {
		return standard
	}
	return max(x, 0)
}
