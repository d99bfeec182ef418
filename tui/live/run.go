package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/figures"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
)

// RunLine is a line of the list of runs that are kept.
type RunLine struct {
	ID       string
	Name     string
	State    runs.State
	When     time.Time // it was begun
	Points   int       // finished
	Planned  int
	Verdict  string // "pass", "fail", "undecided"; "" without limits
	Lab      string
	Emulated bool
}

// LimitStat is a limit of an experiment and how it stands with it under one condition.
type LimitStat struct {
	Text      string // as in the experiment
	Condition int
	Label     string // of the condition; "" if there is only one
	Judgement analysis.Judgement
	Found     string // the value with its bounds, in words
}

// KeepRuns is how many runs a State lists.
const KeepRuns = 500

// listEvery is how often the list of runs is read; tallyEvery is how long statistics of a
// run that goes on stand at least.
const (
	listEvery  = 10 * time.Second
	tallyEvery = 250 * time.Millisecond
)

// experiments are the experiment that is loaded and the run that is under way.
type experiments struct {
	mu      sync.Mutex // guards what follows
	run     Run        // as it was published last
	loaded  bool
	figure  string  // the preset that is loaded; "" if it is a file
	foreign bool    // it was read from the store, to be resumed
	active  *active // nil: no run is under way
	closing int     // how often Close was called
	hooked  bool    // Close knows of us
}

// active is a run that is being begun or under way.
type active struct {
	cancel context.CancelCauseFunc // of what is done before the run has begun
	done   chan struct{}           // closed when all is over, and the switches were given back

	// What follows is guarded by experiments.mu.
	r     *runner.Runner // nil until the run has begun
	step  string         // what it does, in words
	panic bool           // it is ended by a panic, and leaves the light dark
}

// errNotLoaded: there is nothing to run.
var errNotLoaded = fmt.Errorf("%w: no experiment is loaded", ErrNothing)

// setRun changes what is published of the experiment.
func (s *Session) setRun(fn func(*Run)) {
	e := &s.exp
	e.mu.Lock()
	fn(&e.run)
	next := e.run
	e.mu.Unlock()
	s.update(func(p *parts) { p.Run = &next })
}

// LoadRun plans the experiment of a file, or, if there is no such file, of a preset of that
// name, against the lab of the session. The error matches ErrBusy while a run is under way.
func (s *Session) LoadRun(_ context.Context, path string) error {
	e := &s.exp
	l := s.file()
	f, figure, err := s.experiment(path, l)
	if err != nil {
		return err
	}
	if f.Lab != "" && l.Path == "" {
		return fmt.Errorf("%s is for the lab of %s, and this is the one that is built in: ocslab --lab FILE tui opens another", path, f.Lab)
	}
	p, err := f.Resolve(l, plan.Options{Emulated: s.opt.Lab.Emulated})
	if err != nil {
		return err
	}
	next := planned(path, f, p)
	e.mu.Lock()
	if e.active != nil {
		e.mu.Unlock()
		return fmt.Errorf("%w: a run is under way", ErrBusy)
	}
	e.run, e.loaded, e.figure, e.foreign = next, true, figure, false
	e.mu.Unlock()
	s.update(func(p *parts) { p.Run = &next })
	return nil
}

// experiment reads an experiment; figure is the name of the preset, if it is one.
func (s *Session) experiment(path string, l *lab.File) (f *plan.File, figure string, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if preset, err := figures.Find(path); err == nil {
			f, err := preset.File(figures.Options{Lab: l, Emulated: s.opt.Lab.Emulated})
			return f, preset.Name, err
		}
	}
	f, err = plan.Load(path)
	return f, "", err
}

// planned is an experiment of which nothing has been done.
func planned(path string, f *plan.File, p *plan.Plan) Run {
	return Run{
		Path: path, File: f, Plan: p, Total: p.Total(), Moves: moved(p),
		Progress: runner.Progress{State: runner.Ready, Total: len(p.Points)},
	}
}

// moved says by switch which ports a plan moves.
func moved(p *plan.Plan) []string {
	all := map[string]map[ocs.CrossConnect]bool{}
	for _, c := range p.Conditions {
		for _, m := range c.Maps {
			for name, circuits := range m {
				if all[name] == nil {
					all[name] = map[ocs.CrossConnect]bool{}
				}
				for cc := range circuits.All() {
					all[name][cc] = true
				}
			}
		}
	}
	var list []string
	for _, name := range slices.SortedFunc(maps.Keys(all), natural.Compare) {
		var from, to []ocs.Port
		for c := range all[name] {
			from, to = append(from, c.Ingress), append(to, c.Egress)
		}
		list = append(list, fmt.Sprintf("%s: %s, from %s to %s", name, natural.Count(len(all[name]), "circuit"), ports(from), ports(to)))
	}
	return list
}

func ports(list []ocs.Port) string {
	slices.Sort(list)
	return ocs.FormatPorts(slices.Compact(list))
}

// StartRun runs the experiment that is loaded. Under the policy Safe, which "" is, circuits
// that belong to none of its configurations are not moved, and the error matches
// [ocs.ErrConflict] when they would have to be; under Update they are. It returns when the run
// has begun; from then on the switches are the run's, and changes are refused with ErrBusy,
// until it has ended. When the experiment now comes to another plan than the one that was
// shown, as the lab has changed, the error says so, and that plan is loaded instead.
func (s *Session) StartRun(ctx context.Context, policy ocs.Policy) error {
	policy = cmp.Or(policy, ocs.Safe)
	if policy != ocs.Safe && policy != ocs.Update {
		return fmt.Errorf("a run has no policy %q: want %s or %s", policy, ocs.Safe, ocs.Update)
	}
	e := &s.exp
	e.mu.Lock()
	loaded, idle := e.loaded, e.active == nil
	e.mu.Unlock()
	if !loaded {
		return errNotLoaded
	}
	if idle && !s.readOnly() {
		if err := s.planAgain(); err != nil {
			return err
		}
	}
	e.mu.Lock()
	run, figure := e.run, e.figure
	e.mu.Unlock()
	return s.begin(ctx, func(ctx context.Context, opt execution.Options) (*execution.Execution, error) {
		l := s.file()
		text, err := labText(l)
		if err != nil {
			return nil, err
		}
		rung := ""
		for name, r := range execution.Rungs {
			if r == s.opt.Fabric.Rung {
				rung = name
			}
		}
		command := runWords(runs.Meta{File: run.Path, Figure: figure, Mode: string(policy), Rung: rung})
		opt.Lab.Command = command.recorded()
		return execution.Begin(ctx, opt, execution.Creation{
			File: run.File, Lab: l, LabText: text, Plan: run.Plan, Mode: policy, Rung: rung, Figure: figure, Command: command,
		})
	})
}

// errPlanned: what is loaded now is not what was looked at.
var errPlanned = errors.New("the lab or the experiment has changed since this was planned: look at the plan, which is the new one now, and begin once more; nothing was sent")

// planAgain makes sure that the plan that is loaded is what its experiment comes to in the lab
// as it is now. The lab may have been reloaded since, and the plan of a run that was resumed is
// that of its own lab, with the experiment as it was then. When it is another, that is loaded.
func (s *Session) planAgain() error {
	e := &s.exp
	e.mu.Lock()
	run, foreign := e.run, e.foreign
	e.mu.Unlock()
	l, f, figure := s.file(), run.File, ""
	var err error
	if foreign {
		if f, figure, err = s.experiment(run.Path, l); err != nil {
			return err
		}
	}
	p, err := f.Resolve(l, plan.Options{Emulated: s.opt.Lab.Emulated})
	if err != nil {
		return fmt.Errorf("the experiment does not fit the lab any more: %w", err)
	}
	same, err := samePlan(p, run.Plan)
	if err != nil || same && !foreign {
		return err
	}
	next := planned(run.Path, f, p)
	e.mu.Lock()
	if e.active != nil {
		e.mu.Unlock()
		return fmt.Errorf("%w: a run is under way", ErrBusy)
	}
	if !foreign {
		figure = e.figure
	}
	e.run, e.figure, e.foreign = next, figure, false
	e.mu.Unlock()
	if same {
		return nil
	}
	s.update(func(p *parts) { p.Run = &next })
	return errPlanned
}

// samePlan reports whether two plans come to the same, as they are kept.
func samePlan(a, b *plan.Plan) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return bytes.Equal(x, y), err
}

// labText returns the text of a lab file, which is kept with a run. What the file says now
// must be what the lab was opened with.
func labText(l *lab.File) ([]byte, error) {
	if l.Path == "" {
		return examples.OpusTestbed, nil
	}
	text, err := os.ReadFile(l.Path)
	if err != nil {
		return nil, err
	}
	now, err := lab.Parse(l.Path, text)
	if err != nil {
		return nil, err
	}
	if !reflect.DeepEqual(now, l) {
		return nil, fmt.Errorf("%s has changed since it was opened: a run needs the lab as it is there; edit it from here, or start anew", l.Path)
	}
	return text, nil
}

// Resume goes on with a run of this lab that was stopped or killed. The error matches
// ErrNothing when nothing is left of it to do.
func (s *Session) Resume(ctx context.Context, id string) error {
	if s.readOnly() {
		return ErrReadOnly
	}
	store, err := runs.Open(s.opt.Runs)
	if err != nil {
		return err
	}
	if id, err = store.Find(ctx, id); err != nil {
		return err
	}
	before, err := store.Load(ctx, id)
	if err != nil {
		return err
	}
	if err := execution.Left(before); err != nil {
		return fmt.Errorf("%w: %w", ErrNothing, err)
	}
	if err := execution.Resumable(before); err != nil {
		return err
	}
	path := s.file().Path
	if path != "" {
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
	}
	if m := before.Meta; m.LabPath != path || m.Emulated != s.opt.Lab.Emulated {
		return fmt.Errorf("%s is a run of another lab (%s): ocslab runs resume %s goes on with it", id, labWords(m), id)
	}
	return s.begin(ctx, func(ctx context.Context, opt execution.Options) (*execution.Execution, error) {
		opt.Lab.Command = "runs resume " + id
		return execution.Resume(ctx, opt, id)
	})
}

// labWords names the lab of a run.
func labWords(m runs.Meta) string {
	text := m.Lab
	if m.LabPath != "" {
		text = m.LabPath
	}
	if m.Emulated {
		text += ", emulated"
	}
	return text
}

// begin takes the switches, has a run made, and lets it go on in the background.
func (s *Session) begin(ctx context.Context, prepare func(context.Context, execution.Options) (*execution.Execution, error)) error {
	if s.readOnly() {
		return ErrReadOnly
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a, err := s.claim(cancel)
	if err != nil {
		return err
	}
	var x *execution.Execution
	if err = lab.New(s.file(), s.opt.Lab).Gate().RefuseInPanic(); err != nil {
		err = fmt.Errorf("no run begins: %w", err)
	} else {
		x, err = s.prepare(ctx, prepare)
	}
	if err != nil {
		s.release(a)
		return err
	}
	c := newCollector(x.Writer)
	r := x.Runner(c)
	s.conduct(a, x, r, c)
	return nil
}

// claim makes sure that there is one run at a time.
func (s *Session) claim(cancel context.CancelCauseFunc) (*active, error) {
	e := &s.exp
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closing > 0:
		return nil, errClosed
	case e.active != nil:
		return nil, fmt.Errorf("%w: a run is under way", ErrBusy)
	}
	if !e.hooked {
		e.hooked = true
		s.onClose(s.endRun)
	}
	e.active = &active{cancel: cancel, done: make(chan struct{})}
	return e.active, nil
}

// release ends what claim began. The switches are given back before.
func (s *Session) release(a *active) {
	e := &s.exp
	e.mu.Lock()
	closing := e.closing > 0
	e.mu.Unlock()
	if !closing {
		s.takeBack()
	}
	e.mu.Lock()
	e.active = nil
	e.mu.Unlock()
	close(a.done)
}

// prepare takes the switches and has a run made.
func (s *Session) prepare(ctx context.Context, make func(context.Context, execution.Options) (*execution.Execution, error)) (*execution.Execution, error) {
	store, err := runs.Open(s.opt.Runs)
	if err != nil {
		return nil, err
	}
	if err := s.lend(ctx); err != nil {
		return nil, err
	}
	opt := s.opt.Lab
	opt.Trace = s.trace
	x, err := make(ctx, execution.Options{
		Store: store, Lab: opt,
		Version: s.opt.Version, Revision: s.opt.Revision,
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return x, err
}

// conduct lets a run go on in the background, to its end.
func (s *Session) conduct(a *active, x *execution.Execution, r *runner.Runner, c *collector) {
	e := &s.exp
	by := "run " + x.Meta.Name
	path := cmp.Or(x.Meta.File, x.Meta.Figure)
	t := newTally(x.File, x.Plan)
	if x.Before != nil {
		for _, p := range recorded(x.Before) {
			t.add(p)
		}
	}
	seen := &relay{more: make(chan struct{}, 1)}
	x.Bench.Tap = seen.add
	x.Bench.Moved = func(_ map[string]ocs.Map, mv experiment.Move) {
		e.mu.Lock()
		title := a.step
		e.mu.Unlock()
		s.seenMove(by, mv, title)
	}
	r.Progress = func(p runner.Progress) {
		e.mu.Lock()
		a.step = p.Step
		e.mu.Unlock()
		s.setRun(func(run *Run) { run.Progress, run.Told = p, time.Now() })
	}
	light := r.Light
	r.Light = func(ctx context.Context, want map[string]ocs.Map) error {
		e.mu.Lock()
		panicked := a.panic
		e.mu.Unlock()
		if panicked {
			return fmt.Errorf("%w: a panic was called", runner.ErrDark)
		}
		return light(ctx, want)
	}
	c.event = func(v runs.Event) {
		s.say(Entry{Kind: Event, Text: fmt.Sprintf("%s: %s: %s", by, v.Kind, v.Text), Bad: v.Kind == "panic" || v.Kind == "finally"})
	}
	c.setup = func(v runs.Setup) { s.setRun(func(run *Run) { run.Setup = setupWords(v) }) }
	command := s.runCommand(x.Meta)
	next := planned(path, x.File, x.Plan)
	next.ID, next.Dir, next.Began, next.Stages, next.Limits = x.Writer.ID(), x.Writer.Dir(), time.Now(), t.stats(), t.judge()
	next.Told = next.Began
	s.setRun(func(run *Run) { *run = next })
	e.mu.Lock()
	e.loaded, e.figure, e.foreign = true, x.Meta.Figure, x.Before != nil
	a.r = r
	closing, panicked := e.closing > 0, a.panic
	e.mu.Unlock()
	switch { // since it was claimed
	case panicked:
		r.Abort()
	case closing:
		r.Stop()
	}
	s.say(Entry{Kind: Did, Text: fmt.Sprintf("%s began: %s", by, next.ID), CLI: command})
	s.listRuns()
	go func() {
		measured := make(chan struct{})
		var counting sync.WaitGroup
		counting.Go(func() { s.count(t, c, measured) })
		counting.Go(func() { s.pass(seen, measured) })
		_, err := r.Run(context.Background())
		close(measured)
		counting.Wait()
		s.over(by, err)
		s.release(a)
	}()
}

// relay hands what a watch has seen from the run to the Session, so that whoever measures
// waits for nothing longer than it takes to append.
type relay struct {
	mu   sync.Mutex // guards list
	list []watch.Record
	more chan struct{} // is sent to when there is something in list; holds one
}

func (r *relay) add(x watch.Record) {
	r.mu.Lock()
	r.list = append(r.list, x)
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default: // it is known already
	}
}

func (r *relay) take() []watch.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.list
	r.list = nil
	return list
}

// pass enters what the watch of a run sees, until the run has been measured.
func (s *Session) pass(seen *relay, measured <-chan struct{}) {
	for more := true; more; {
		select {
		case <-seen.more:
		case <-measured:
			more = false
		}
		for _, x := range seen.take() {
			s.seenRecord(x)
		}
	}
}

// setupWords says what a testbed does not have.
func setupWords(v runs.Setup) string {
	if len(v.Missing) == 0 {
		return "all is watched"
	}
	return "not watched: " + strings.Join(v.Missing, "; ")
}

// runCommand is the command that begins, or goes on with, a run.
func (s *Session) runCommand(m runs.Meta) string {
	return s.line(runWords(m))
}

// runWords are the arguments that begin a run.
func runWords(m runs.Meta) words {
	w := words{"run", m.File}
	if m.Figure != "" {
		w = words{"figure", m.Figure}
	}
	if w = w.withMode(ocs.Policy(m.Mode)); m.Rung != "" {
		w = append(w, "--rung", m.Rung)
	}
	return w
}

// count keeps the statistics of a run true, until it has been measured.
func (s *Session) count(t *tally, c *collector, measured <-chan struct{}) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for more := true; more; {
		select {
		case <-c.more:
		case <-measured:
			more = false
		}
		began := time.Now()
		for _, p := range c.take() {
			t.add(p)
		}
		stages, limits := t.stats(), t.judge()
		s.setRun(func(run *Run) { run.Stages, run.Limits = stages, limits })
		if !more {
			return
		}
		pause.Reset(max(tallyEvery, 20*time.Since(began))) // the measurement goes first
		select {
		case <-pause.C:
		case <-measured:
		}
	}
}

// over publishes how a run has ended, and what it has found.
func (s *Session) over(by string, err error) {
	e := &s.exp
	e.mu.Lock()
	id, path := e.run.ID, e.run.Path
	e.mu.Unlock()
	found, lost := s.Past(context.Background(), id)
	if found == nil {
		found = &Run{ID: id, Path: path}
	}
	s.setRun(func(run *Run) {
		run.Ended, run.State, run.Err = true, found.State, errors.Join(err, lost)
		run.Progress.State, run.Progress.Left, run.Progress.Step = runner.Ended, 0, ""
		if lost == nil {
			run.Analysis, run.Limits, run.Stages = found.Analysis, found.Limits, found.Stages
			run.Progress.Done, run.Progress.Total = found.Progress.Done, found.Progress.Total
		}
	})
	text := fmt.Sprintf("%s ended: %s, %d of %s", by, cmp.Or(found.State, runs.Failed), found.Progress.Done, natural.Count(found.Progress.Total, "point"))
	if found.Analysis != nil && found.Analysis.Verdict != "" {
		text += ", limits: " + string(found.Analysis.Verdict)
	}
	if err != nil {
		text += ": " + err.Error()
	}
	s.say(Entry{Kind: Did, Text: text, CLI: s.line(words{"report", id, "--out", id + ".html"}), Bad: err != nil && !errors.Is(err, runner.ErrStop)})
	s.listRuns()
}

// Past loads a run that is kept, by its ID or a part of it, with its analysis. Of one that is
// under way, here or in another process, it has what is finished.
func (s *Session) Past(ctx context.Context, id string) (*Run, error) {
	store, err := runs.Open(s.opt.Runs)
	if err != nil {
		return nil, err
	}
	if id, err = store.Find(ctx, id); err != nil {
		return nil, err
	}
	r, err := store.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return past(r), nil
}

// past is a run that was loaded.
func past(r *runs.Run) *Run {
	x := planned(cmp.Or(r.Meta.File, r.Meta.Figure), r.File, r.Plan)
	x.ID, x.Dir, x.State, x.Began, x.Ended = r.Meta.ID, r.Dir, r.State, r.Meta.Created, r.State != runs.Running
	x.Progress = runner.Progress{State: runner.Ended, Done: len(r.Done), Total: len(r.Plan.Points) - len(r.Dropped)}
	if r.State == runs.Running {
		x.Progress.State = runner.Running
	}
	if r.Summary != nil && r.Summary.Reason != "" {
		x.Err = errors.New(r.Summary.Reason)
	}
	if n := len(r.Setups); n > 0 {
		x.Setup = setupWords(r.Setups[n-1])
	}
	t := newTally(r.File, r.Plan)
	for _, p := range recorded(r) {
		t.add(p)
	}
	x.Stages = t.stats()
	x.Analysis = analysis.Of(r)
	x.analyzed()
	x.Limits = limitStats(r.Plan, x.Analysis.Verdicts)
	return &x
}

// analyzed takes the quantiles and their bounds from the analysis, which says them better than
// a tally and says them wherever else the run is shown.
func (r *Run) analyzed() {
	for i := range r.Stages {
		x := &r.Stages[i]
		for _, c := range r.Analysis.Conditions {
			if c.Number != x.Condition {
				continue
			}
			for _, s := range c.Stages {
				if s.Stage == x.Stage && s.Count > 0 {
					x.Median, x.P95 = s.Median, s.P95
				}
			}
		}
	}
}

// control does something with the run that is under way.
func (s *Session) control(fn func(*runner.Runner)) error {
	if s.readOnly() {
		return ErrReadOnly
	}
	e := &s.exp
	e.mu.Lock()
	var r *runner.Runner
	if e.active != nil {
		r = e.active.r
	}
	e.mu.Unlock()
	if r == nil {
		return fmt.Errorf("%w: no run is under way here", ErrNothing)
	}
	fn(r)
	if state := r.State(); state != runner.Ended {
		s.setRun(func(run *Run) {
			if !run.Ended {
				run.Progress.State = state
			}
		})
	}
	return nil
}

// PauseRun holds the run after the point that is under way, or lets it go on.
func (s *Session) PauseRun() error { return s.control((*runner.Runner).Toggle) }

// StopRun ends the run after the point that is under way.
func (s *Session) StopRun() error { return s.control((*runner.Runner).Stop) }

// AbortRun ends the run at once. The light is put back as the experiment says.
func (s *Session) AbortRun() error { return s.control((*runner.Runner).Abort) }

// darken ends the run for a panic: at once, and with the light left dark. One that is only being
// begun ends before it has moved anything.
func (s *Session) darken() {
	e := &s.exp
	e.mu.Lock()
	a := e.active
	if a == nil {
		e.mu.Unlock()
		return
	}
	a.panic = true
	r := a.r
	e.mu.Unlock()
	a.cancel(errPanicked)
	if r != nil {
		r.Abort()
	}
}

// errPanicked is why a run does not begin.
var errPanicked = errors.New("a panic was called")

// endRun is what Close does with a run: it stops it after the point that is under way, and
// when it is called again, aborts it. It returns when the light has been put back.
func (s *Session) endRun() {
	e := &s.exp
	e.mu.Lock()
	e.closing++
	again, a := e.closing > 1, e.active
	var r *runner.Runner
	if a != nil {
		r = a.r
	}
	e.mu.Unlock()
	if a == nil {
		return
	}
	a.cancel(errClosed)
	switch {
	case r == nil: // it ends by itself
	case again:
		r.Abort()
	default:
		r.Stop()
	}
	<-a.done
}

// keepRuns keeps the list of runs true until the session ends. It is not read while a run is
// measured here: the disk is the run's then.
func (s *Session) keepRuns() {
	if s.opt.Runs == "" {
		return
	}
	tick := time.NewTicker(listEvery)
	defer tick.Stop()
	for {
		e := &s.exp
		e.mu.Lock()
		idle := e.active == nil
		e.mu.Unlock()
		if idle {
			s.listRuns()
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
	}
}

// listRuns reads the list of runs. When that fails, the list stays as it was: it is tried
// again, and whatever is done with a run says what is wrong.
func (s *Session) listRuns() {
	store, err := runs.Open(s.opt.Runs)
	if err != nil {
		return
	}
	list, err := store.List(s.ctx, runs.Filter{Limit: KeepRuns})
	if err != nil {
		return
	}
	lines := make([]RunLine, 0, len(list))
	for _, e := range list {
		lines = append(lines, RunLine{
			ID: e.ID, Name: e.Name, State: e.State, When: e.Created, Points: e.Points, Planned: e.Planned,
			Verdict: e.Verdict, Lab: e.Lab, Emulated: e.Emulated,
		})
	}
	s.mu.Lock()
	same := slices.Equal(lines, s.parts.Runs)
	s.mu.Unlock()
	if !same {
		s.update(func(p *parts) { p.Runs = lines })
	}
}
