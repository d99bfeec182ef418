// Package execution begins runs of experiments and goes on with them, in a lab and with a
// store: what "ocslab run", "ocslab runs resume" and the terminal UI have in common.
//
//	x, err := execution.Begin(ctx, opt, execution.Creation{File: file, Lab: f, LabText: text, Plan: p})
//	r := x.Runner(x.Writer)
//	r.Progress = ...
//	summary, err := r.Run(ctx)
//
// What a run does, package runner has; what is left to who uses this package is to show it and
// to control it.
package execution

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/baseline"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/ocs"
)

// Rungs are the names of what emulated NICs can be, as flags and runs have them; "" is the
// best there is. It is not to be changed.
var Rungs = map[string]fabric.Rung{"": 0, "tap": fabric.TAP, "veth": fabric.Veth, "memory": fabric.Memory}

// ErrNothingLeft: a run is done, and there is nothing to go on with.
var ErrNothingLeft = errors.New("there is nothing to go on with")

// ErrSequence: a run is of package sequence, and what belongs between its steps, such as the transfers of a
// collective, is known only to the command that began it.
var ErrSequence = errors.New("its steps belong to a plan that is not stored with them")

// Options are what does not depend on the experiment.
type Options struct {
	Store *runs.Store
	Lab   lab.Options // Emulated is set by Resume to what the run was begun with

	Version, Revision string // of ocslab
}

// Creation is what a run is begun with.
type Creation struct {
	File    *plan.File
	Lab     *lab.File
	LabText []byte // that Lab was parsed from
	Plan    *plan.Plan
	Mode    ocs.Policy // what may happen to circuits that are in the way: Safe or Update
	Rung    string     // one of Rungs
	Figure  string     // the preset that File is of; "" if it is a file on disk
	Command []string   // the arguments that begin it
}

// Execution is a run that this process works on. It holds the lock of the run until its
// Writer is closed, which [runner.Runner.Run] does.
type Execution struct {
	File   *plan.File
	Plan   *plan.Plan
	Meta   runs.Meta
	Bench  *runner.Lab
	Writer *runs.Writer
	// Before is what was recorded before this session; nil of a run that has just begun.
	Before *runs.Run
	// Changed says, in one sentence, that the lab file is another than when the run began;
	// "" if it is not. [Execution.Runner] has it recorded.
	Changed string

	opt Options
}

// Begin reads what the switches of the plan hold, checks that every configuration fits them
// and that nothing is in the way, and creates the run. Nothing is changed yet; with an error
// there is no run.
func Begin(ctx context.Context, opt Options, c Creation) (*Execution, error) {
	x := &Execution{File: c.File, Plan: c.Plan, opt: opt}
	labPath, err := absolute(c.Lab.Path)
	if err != nil {
		return nil, err
	}
	file := "" // of a preset
	if c.Figure == "" {
		if file, err = absolute(c.File.Path); err != nil {
			return nil, err
		}
	}
	x.Meta = runs.Meta{
		Name: c.File.Name, About: c.File.About, Version: opt.Version, Revision: opt.Revision, Command: c.Command,
		File: file, Lab: c.Lab.Name, LabPath: labPath, Emulated: opt.Lab.Emulated, Figure: c.Figure,
		Mode: string(c.Mode), Rung: c.Rung,
	}
	x.prepare(c.Lab)
	if err := x.Bench.Find(ctx); err != nil {
		return nil, err
	}
	x.Writer, err = opt.Store.Create(ctx, runs.Creation{Meta: x.Meta, Experiment: c.File.Text, Lab: c.LabText, Plan: c.Plan})
	if err != nil {
		return nil, err
	}
	x.Meta.ID = x.Writer.ID()
	return x, nil
}

// absolute makes a path absolute, and leaves "" as it is.
func absolute(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	return filepath.Abs(path)
}

// Resume goes on with a run, in the lab as it was stored with it. Nothing is changed yet; with
// an error the run is as it was.
func Resume(ctx context.Context, opt Options, id string) (_ *Execution, err error) {
	x := &Execution{opt: opt}
	if x.Writer, x.Before, err = opt.Store.Resume(ctx, id); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Writer.Close())
		}
	}()
	so := x.Before
	x.File, x.Plan, x.Meta = so.File, so.Plan, so.Meta
	x.opt.Lab.Emulated = so.Meta.Emulated
	f, err := lab.Parse(so.Meta.LabPath, so.Lab)
	if err != nil {
		return nil, err
	}
	now, readErr := os.ReadFile(so.Meta.LabPath)
	if so.Meta.LabPath != "" && readErr == nil && !bytes.Equal(now, so.Lab) {
		x.Changed = fmt.Sprintf("%s has changed since the run began; the run goes on with the lab as it was then", so.Meta.LabPath)
		today, err := lab.Parse(so.Meta.LabPath, now)
		if err != nil {
			return nil, fmt.Errorf("which ports are protected by now is not known: %w", err)
		}
		f.Protect = append(f.Protect, today.Protect...) // whatever it was then
	}
	x.prepare(f)
	if x.Bench.Circuits = found(so); x.Bench.Circuits == nil { // it was killed before it could record them
		if err := x.Bench.Find(ctx); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// Left reports whether a run has anything left to do: points, or the light to be put back.
// The error says what it is not, and matches [ErrNothingLeft].
func Left(r *runs.Run) error {
	if r.Summary != nil && r.Summary.Restored && r.State == runs.Done && len(r.Done)+len(r.Dropped) >= len(r.Plan.Points) {
		return fmt.Errorf("%s is done: %w", r.Meta.ID, ErrNothingLeft)
	}
	return nil
}

// Resumable reports whether the points of a run can be gone on with; the light can be put back in any case. The error says
// what to do instead, and matches [ErrSequence].
func Resumable(r *runs.Run) error {
	if !r.Plan.Exact {
		return nil
	}
	return fmt.Errorf("%s cannot be gone on with: %w: %s", r.Meta.ID, ErrSequence, r.Plan.GoOn(r.Meta.ID, r.Summary != nil && r.Summary.Restored))
}

// prepare makes ready to open the lab.
func (x *Execution) prepare(f *lab.File) {
	measure := x.File.Measure
	if measure.Poll == 0 {
		measure.Poll = linkmon.DefaultPoll
	}
	x.Bench = runner.NewLab(f, x.opt.Lab, x.Plan, measure, ocs.Policy(x.Meta.Mode))
	x.Bench.Rung = Rungs[x.Meta.Rung]
}

// Runner returns what carries the run out and has w record it: the Writer, or what passes all
// on to it. It closes w when it is done.
func (x *Execution) Runner(w runner.Recorder) *runner.Runner {
	if x.Changed != "" {
		w = &noting{Recorder: w, event: runs.Event{Kind: "lab-changed", Wall: time.Now().UTC(), Text: x.Changed}}
	}
	r := &runner.Runner{
		Plan: x.Plan, File: x.File, Writer: w, Session: runner.ThisSession(x.opt.Version, x.opt.Revision),
		Open: x.Bench.Open, Light: x.Bench.Light, Enough: analysis.Enough, Tolerate: x.File.Tolerate,
		Verdict: x.verdict,
	}
	if x.opt.Lab.StateDir != "" {
		calibrations, session := store.Open(x.opt.Lab.StateDir), r.Session
		r.Calibrations = func(set runs.Setup) ([]runs.Calibration, []error) {
			return baseline.Find(calibrations, x.Bench.File, x.Meta.Emulated, set, session, time.Now())
		}
	}
	if x.Meta.File != "" { // where hooks run, also of a run that is resumed from elsewhere
		r.Dir = filepath.Dir(x.Meta.File)
	}
	if so := x.Before; so != nil {
		r.Done, r.Dropped, r.Marks = so.Done, so.Dropped, so.Marks
	}
	if found(x.Before) == nil { // or who resumes it after this session would find what it has moved
		r.Session.Found = x.Bench.Circuits
	}
	return r
}

// verdict judges the limits by what is recorded.
func (x *Execution) verdict() (string, error) {
	r, err := x.opt.Store.Load(context.Background(), x.Meta.ID)
	if err != nil {
		return "", err
	}
	return string(analysis.Of(r).Verdict), nil
}

// found are the circuits that a run has found, as one of its sessions has recorded; nil if
// none has, or there is no run yet.
func found(r *runs.Run) map[string]ocs.Map {
	if r == nil {
		return nil
	}
	for _, s := range r.Sessions {
		if s.Found != nil {
			return s.Found
		}
	}
	return nil
}

// noting records an event as soon as the session has begun.
type noting struct {
	runner.Recorder
	event runs.Event
}

func (n *noting) Session(x runs.Session) (int, error) {
	number, err := n.Recorder.Session(x)
	if err == nil {
		n.event.Session = number
		err = n.Event(n.event)
	}
	return number, err
}
