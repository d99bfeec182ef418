package sequence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Most is how many steps a sequence can have, and MostRepeats how often it can be played in one run.
const (
	Most        = 999
	MostRepeats = 10_000
)

// Errors of [Play]. Test with errors.Is.
var (
	// ErrSteps: the steps are none that can be played.
	ErrSteps = errors.New("the steps cannot be played")
)

// Step is a configuration that a lab is brought to.
type Step struct {
	Name string // for people; steps of the same name may have the same maps or others
	// Maps are what the switches hold then, by name. A switch that is not named stays as it is; of one that
	// is named, circuits of other steps are removed. All switches of a step move at the same time, and
	// the step is over when all have.
	Maps map[string]ocs.Map
}

// Options say how a sequence is played. Store is needed; see [execution.Options].
type Options struct {
	execution.Options

	Name    string   // of the run: letters, digits, '.', '_' and '-'
	About   string   // one sentence, for the report
	LabText []byte   // that the lab was parsed from; nil reads its file
	Args    []string // the arguments that begin the run, for people

	Mode    ocs.Policy // what may happen to circuits of nobody's that are in the way: Safe (the zero value) or Update
	Repeats int        // how often the steps are gone through; 0 is 1. In between the lab goes to what was found
	// Leave leaves the lab as the last step has it, if all steps were brought about. Otherwise, and without
	// Leave, the lab is put back as it was found.
	Leave bool
	// Hosts also watches the NICs of the lab, and emulates them when the lab is emulated, as Rung says. It
	// does not wait for them, unless Carrier says so. Without it the switches alone are measured.
	Hosts bool
	Rung  string // one of [execution.Rungs]
	// Carrier has a step wait until the NICs that it gives light have carrier. It goes with Hosts.
	Carrier bool

	// Reconcile, if it is not nil, brings want about on a switch in a step, by calling do: once, or several
	// times if it goes there by way of other maps of the steps. It may wait for other switches of the step, as it is
	// called for all of them at once, by a goroutine each; it must return soon when ctx ends. What it
	// returns is the report of the whole, from the first command to the last reply.
	Reconcile func(ctx context.Context, step int, onSwitch string, want ocs.Map, do Do) (ocs.Report, error)
	// Opened is called when the switches are open and nothing has been moved.
	Opened func(*Session) error
	// Before is called when a step begins: nothing has been sent. Steps are counted from 0, again in each repeat.
	Before func(step int)
	// ReadBack is called, on a goroutine of its own, as soon as the circuits of a step have been read back, while
	// its light is still being waited for and measured: mv has neither samples nor
	// marks of light yet. Its error ends the sequence.
	ReadBack func(ctx context.Context, step int, mv experiment.Move) error
	// Hurry says of which steps the measuring ends when ReadBack has returned, which then has seen to it that there is
	// light: what has come until then is all that is recorded of it. It is for steps whose successor cannot wait until
	// monitors have averaged. Nil is none.
	Hurry func(step int) bool
	// After is called when a step is over and measured, and ReadBack has returned. Its error ends the sequence.
	After func(ctx context.Context, step int, mv experiment.Move) error
	// Progress is told what goes on; see [runner.Runner].
	Progress func(runner.Progress)
}

// Do brings a map about on a switch in place of all circuits of the steps there, reads back and compares.
type Do func(ctx context.Context, want ocs.Map) (ocs.Report, error)

// Session is what Opened is told of a sequence that is about to be played. It is valid until [Play] returns.
type Session struct {
	Run     string // the ID of the run
	Testbed *experiment.Testbed
	// Event records a remark about the step that is under way; kind is one word. It writes to the disk. It is for Opened,
	// ReadBack and After, one at a time.
	Event func(kind, text string) error
}

// Result is what playing came to.
type Result struct {
	ID    string            // of the run; "" if none was begun
	Moves []experiment.Move // of the steps that were brought about, all repeats, in order
	// Summary is how the run ended.
	Summary runs.Summary
}

// Play moves the lab through steps and records a run. The lab is only looked at until all steps are known to
// be possible: the error matches [ErrSteps] or [lab.ErrUnknown] for steps that are not, [ocs.ErrPort] for a port
// that a switch does not have, [ocs.ErrInterlock] for one that is protected, and [ocs.ErrConflict] for circuits of nobody's that
// are in the way. When something goes wrong later, or ctx ends, the lab is put back, and the Result
// holds what was done until then. Once a run was begun, Result is not nil.
func Play(ctx context.Context, l *lab.File, steps []Step, opt Options) (*Result, error) {
	p, err := prepare(l, steps, &opt)
	if err != nil {
		return nil, err
	}
	if err := p.look(ctx); err != nil {
		return nil, err
	}
	c, err := p.creation()
	if err != nil {
		return nil, err
	}
	x, err := execution.Begin(ctx, opt.Options, c)
	if err != nil {
		return nil, err
	}
	p.result = &Result{ID: x.Meta.ID}
	x.Bench.Opened = p.opened(x)
	r := x.Runner(x.Writer)
	r.Progress = opt.Progress
	open, light := r.Open, r.Light
	r.Open = func(ctx context.Context, conditions []plan.Condition) (runner.Bench, error) {
		b, err := open(ctx, conditions)
		if err != nil {
			return nil, err
		}
		return &player{Bench: b, player: p}, nil
	}
	r.Light = func(ctx context.Context, want map[string]ocs.Map) error {
		if !p.over {
			want = nil // what has gone wrong is put back, also when it was to be left
		}
		return inDark(light(ctx, want))
	}
	p.result.Summary, err = r.Run(ctx)
	return p.result, err
}

// play is a sequence that is being played.
type play struct {
	lab   *lab.File // without hosts that are not watched
	text  []byte
	steps []Step
	opt   *Options

	found map[string]ocs.Map // circuits of the steps that were there, by switch
	names []string           // of the steps, as configurations

	bed    *experiment.Testbed
	at     int // the step under way; -1 on the way to where a repeat begins
	result *Result
	over   bool // all steps of all repeats have been brought about
}

// prepare checks what can be checked without asking a switch.
func prepare(l *lab.File, steps []Step, opt *Options) (*play, error) {
	p := &play{lab: l, text: opt.LabText, opt: opt}
	if opt.Repeats == 0 {
		opt.Repeats = 1
	}
	if opt.Mode == "" {
		opt.Mode = ocs.Safe
	}
	switch {
	case opt.Store == nil:
		return nil, fmt.Errorf("%w: there is no store of runs to record them in", ErrSteps)
	case len(steps) == 0 || len(steps) > Most:
		return nil, fmt.Errorf("%w: there are %d of them: want 1 to %d", ErrSteps, len(steps), Most)
	case opt.Repeats < 1 || opt.Repeats > MostRepeats:
		return nil, fmt.Errorf("%w: %d repeats: want 1 to %d", ErrSteps, opt.Repeats, MostRepeats)
	case opt.Mode == ocs.Overwrite:
		return nil, fmt.Errorf("%w: the mode is overwrite, and circuits of others are only moved where they are in the way: want safe or update", ErrSteps)
	}
	if p.text == nil {
		if l.Path == "" {
			return nil, fmt.Errorf("%w: the lab is no file, and its text is not given", ErrSteps)
		}
		var err error
		if p.text, err = strictyaml.ReadFile(l.Path); err != nil {
			return nil, fmt.Errorf("lab file: %w", err)
		}
	}
	used := map[string]bool{}
	for _, s := range steps {
		for name, m := range s.Maps {
			if _, ok := l.Switch(name); !ok {
				return nil, fmt.Errorf("step %s: the switch %q %w", s.Name, name, lab.ErrUnknown)
			}
			used[name] = used[name] || m.Len() > 0
		}
	}
	for _, s := range steps { // a switch on which no step has a circuit has nothing to do with it
		s.Maps = maps.Clone(s.Maps)
		maps.DeleteFunc(s.Maps, func(name string, _ ocs.Map) bool { return !used[name] })
		p.steps = append(p.steps, s)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(used)), func(u bool) bool { return u }) {
		return nil, fmt.Errorf("%w: they connect nothing", ErrSteps)
	}
	if !opt.Hosts {
		switches := *l
		switches.Hosts = nil
		p.lab = &switches
	}
	return p, p.protected()
}

// protected returns an error if a step is to move a port that nobody may move.
func (p *play) protected() error {
	for _, s := range p.steps {
		for _, name := range slices.Sorted(maps.Keys(s.Maps)) {
			for _, port := range p.lab.ProtectedPorts(name) {
				if at := s.Maps[name].At(port); len(at) > 0 {
					return fmt.Errorf("step %s has %v on %s: %w: the lab file protects port %d", s.Name, at[0], name, ocs.ErrInterlock, port)
				}
			}
		}
	}
	return nil
}

// look reads what the switches hold of the circuits of the steps.
func (p *play) look(ctx context.Context) (err error) {
	ours := map[string]experiment.Circuits{}
	for _, s := range p.steps {
		for name, m := range s.Maps {
			if ours[name] == nil {
				ours[name] = experiment.Circuits{}
			}
			for c := range m.All() {
				ours[name][c] = true
			}
		}
	}
	open := lab.New(p.lab, p.opt.Lab)
	defer func() { err = errors.Join(err, open.Close()) }()
	names := slices.Sorted(maps.Keys(ours))
	found, errs := make([]ocs.Map, len(names)), make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names { // at once: a lab may have a hundred
		all.Go(func() {
			errs[i] = experiment.Guard(func() (err error) {
				found[i], err = known(ctx, open, name, ours[name])
				return err
			})
		})
	}
	all.Wait()
	p.found = map[string]ocs.Map{}
	for i, name := range names {
		if errs[i] != nil {
			return errs[i]
		}
		p.found[name] = found[i]
	}
	return nil
}

// known returns which of some circuits a switch holds.
func known(ctx context.Context, l *lab.Lab, name string, of experiment.Circuits) (ocs.Map, error) {
	sw, err := l.Switch(ctx, name)
	if err != nil {
		return ocs.Map{}, err
	}
	have, err := sw.CrossConnects(ctx)
	if err != nil {
		return ocs.Map{}, err
	}
	var known []ocs.CrossConnect
	for c := range have.All() {
		if of[c] {
			known = append(known, c)
		}
	}
	return ocs.MustMap(known...), nil // part of a map
}

// opened hands out the testbed.
func (p *play) opened(x *execution.Execution) func(*experiment.Testbed) error {
	return func(t *experiment.Testbed) error {
		p.bed = t
		p.reconcile(t)
		if p.opt.Opened == nil {
			return nil
		}
		return p.opt.Opened(&Session{Run: x.Meta.ID, Testbed: t, Event: func(kind, text string) error {
			return x.Writer.Event(runs.Event{Kind: kind, Session: 1, Wall: time.Now().UTC(), Text: text})
		}})
	}
}

// step returns which step the reconfiguration of that number is.
func (p *play) step(number int) int { return (number - 1) % len(p.steps) }
