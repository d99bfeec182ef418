// Package runscreen is the screen of experiments: what one will do, how far it is, what it
// has found so far, and what those before have found.
package runscreen

import (
	"fmt"
	"sync/atomic"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/widget"
)

// what is what the screen shows.
type what uint8

const (
	loaded what = iota // the experiment that is loaded or runs; the list when there is none
	list               // the runs that are kept
	kept               // one of these
)

// chart is how durations are drawn.
type chart uint8

const (
	histogram chart = iota
	cdf
	both
	charts // how many there are
)

// Screen is the screen. It is used by one goroutine.
type Screen struct {
	w, h  int
	what  what
	chart chart
	large bool // the charts have all the room

	run, runTop int  // in the list of runs: the cursor, and the first that is shown
	row, rowTop int  // in the table of stages
	step        int  // in the plan: the first step that is shown
	seen        bool // something was loaded when the screen was last asked to do something

	id   string                  // of the run that is shown, or being loaded
	got  *atomic.Pointer[answer] // what came of loading it, from another goroutine
	memo *memo

	refused *atomic.Pointer[refusal] // the last run that could not begin for others' circuits
}

// refusal is why a run did not begin that may under another policy.
type refusal struct {
	plan *plan.Plan
	err  error
}

// refusedOf is why what is planned did not begin when it was last tried; nil if it was not, or
// for a reason that another policy does not change.
func (s *Screen) refusedOf(r *live.Run) error {
	if x := s.refused.Load(); x != nil && x.plan != nil && x.plan == r.Plan {
		return x.err
	}
	return nil
}

// answer is a run that was loaded, or why it could not be.
type answer struct {
	id  string
	run *live.Run
	err error
}

var _ screen.Screen = (*Screen)(nil)

// New returns the screen.
func New() *Screen {
	return &Screen{got: &atomic.Pointer[answer]{}, memo: &memo{}, refused: &atomic.Pointer[refusal]{}}
}

// Name is the action that shows the screen.
func (s *Screen) Name() keymap.Action { return keymap.Screen4 }

// Where are the places whose keys mean something here.
func (s *Screen) Where() []keymap.Where { return []keymap.Where{keymap.InExperiment, keymap.InLists} }

// Resize tells what Draw gets to draw in.
func (s *Screen) Resize(w, h int) { s.w, s.h = w, h }

// shows returns what there is to show, and the run if it is one. A run that is still being
// loaded, or could not be, is nil.
func (s *Screen) shows(e screen.Env) (what, *live.Run) {
	switch {
	case s.what == kept:
		if a := s.got.Load(); a != nil && a.id == s.id {
			return kept, a.run
		}
		return kept, nil
	case s.what == list || e.State == nil || e.State.Run == nil:
		return list, nil
	}
	return loaded, e.State.Run
}

// planned reports whether nothing of a run has been done, so that its plan is all there is.
func planned(r *live.Run) bool { return r.ID == "" }

// under reports whether a run is under way here.
func under(r *live.Run) bool { return r != nil && r.ID != "" && !r.Ended }

// resumable reports whether there is something to go on with.
func resumable(s runs.State) bool {
	return s == runs.Stopped || s == runs.Failed || s == runs.Interrupted
}

// Draw draws the screen.
func (s *Screen) Draw(a canvas.Area, e screen.Env) {
	switch w, r := s.shows(e); {
	case w == list:
		s.drawList(a, e)
	case r == nil:
		s.drawLoading(a)
	case planned(r):
		s.drawPlan(a, r)
	default:
		s.drawRun(a, r, e)
	}
}

// drawLoading says that a run is being loaded, or why it could not be.
func (s *Screen) drawLoading(a canvas.Area) {
	text, role := "loading "+s.id+"…", canvas.Busy
	if x := s.got.Load(); x != nil && x.id == s.id && x.err != nil {
		text, role = s.id+" cannot be shown: "+x.err.Error(), canvas.Bad
	}
	for i, l := range canvas.Wrap(text, a.W-2) {
		a.Text(1, 1+i, l, canvas.S(role))
	}
}

// Focus moves the cursor to a run of the list: "run/20261122T101500-opus-night-3f2a".
func (s *Screen) Focus(subject string, e screen.Env) {
	s.note(e)
	for i, r := range s.list(e) {
		if subject == "run/"+r.ID {
			s.what, s.run = list, i
			s.fit(e)
		}
	}
}

// Subject is the run that the cursor is on, or that is shown.
func (s *Screen) Subject(e screen.Env) string {
	switch w, r := s.shows(e); {
	case w == list:
		if runs := s.list(e); s.run < len(runs) {
			return "run/" + runs[s.run].ID
		}
	case r != nil && r.ID != "":
		return "run/" + r.ID
	}
	return ""
}

// Copy returns the ID of the run in the list, the row of the table, or the command that runs
// what is planned.
func (s *Screen) Copy(e screen.Env) string {
	switch w, r := s.shows(e); {
	case w == list:
		if runs := s.list(e); s.run < len(runs) {
			return runs[s.run].ID
		}
	case r == nil:
	case planned(r):
		return e.State.Command(command(r.Path)...)
	default:
		if rows := stages(r, e.Filter); s.row < len(rows) {
			return rowText(rows[s.row])
		}
	}
	return ""
}

// Status says where one is.
func (s *Screen) Status(e screen.Env) string {
	switch w, r := s.shows(e); {
	case w == list:
		if runs := s.list(e); len(runs) > 0 {
			return fmt.Sprintf("run %d of %d", min(s.run, len(runs)-1)+1, len(runs))
		}
		return "no runs"
	case r == nil:
		return "loading"
	case planned(r):
		return fmt.Sprintf("%d of %d steps", min(s.step+1, len(s.memo.of(r).steps)), len(s.memo.of(r).steps))
	default:
		text := fmt.Sprintf("%d of %d points", r.Progress.Done, r.Progress.Total)
		if rows := stages(r, e.Filter); len(rows) > 0 {
			text += fmt.Sprintf(", row %d of %d", min(s.row, len(rows)-1)+1, len(rows))
		}
		return text
	}
}

// Deselect goes back from large charts, from a run that was kept, or from what is loaded, to
// the list.
func (s *Screen) Deselect() bool {
	switch {
	case s.large:
		s.large = false
	case s.what == kept:
		s.what = list
	case s.what == loaded && s.seen:
		s.what = list
	default:
		return false
	}
	return true
}

// note remembers whether there is something to go back from.
func (s *Screen) note(e screen.Env) { s.seen = e.State != nil && e.State.Run != nil }

// list are the runs that pass the filter.
func (s *Screen) list(e screen.Env) []live.RunLine {
	if e.State == nil || e.Filter.Empty() {
		if e.State == nil {
			return nil
		}
		return e.State.Runs
	}
	var shown []live.RunLine
	for _, r := range e.State.Runs {
		if e.Filter.Match(r.ID, r.Name, string(r.State), r.Verdict, r.Lab) {
			shown = append(shown, r)
		}
	}
	return shown
}

// stages are the rows of the table that pass the filter.
func stages(r *live.Run, f filter.Filter) []live.StageStat {
	if f.Empty() {
		return r.Stages
	}
	var shown []live.StageStat
	for _, x := range r.Stages {
		if f.Match(string(x.Stage), x.Label) {
			shown = append(shown, x)
		}
	}
	return shown
}

// memo keeps what takes long to work out of a plan, for as long as that is shown.
type memo struct {
	plan  *plan.Plan
	size  string
	steps []plan.Step
	more  bool // there are more steps
}

// mostSteps is how many steps of a plan can be looked at.
const mostSteps = 20000

// of works a run out, unless it has just done so.
func (m *memo) of(r *live.Run) *memo {
	if m.plan == r.Plan && m.plan != nil {
		return m
	}
	*m = memo{plan: r.Plan}
	if r.Plan == nil {
		return m
	}
	m.size = r.Plan.Size()
	for step := range r.Plan.Steps(r.File, nil) {
		if len(m.steps) == mostSteps {
			m.more = true
			break
		}
		m.steps = append(m.steps, step)
	}
	return m
}

// fit keeps cursors where there is something.
func (s *Screen) fit(e screen.Env) {
	w, r := s.shows(e)
	switch {
	case w == list:
		n := len(s.list(e))
		s.run = max(0, min(s.run, n-1))
		s.runTop = widget.Scroll(s.runTop, s.run, n, s.listHeight(e))
	case r == nil:
	case planned(r):
		s.step = max(0, min(s.step, len(s.memo.of(r).steps)-1))
	default:
		n := len(stages(r, e.Filter))
		s.row = max(0, min(s.row, n-1))
		s.rowTop = widget.Scroll(s.rowTop, s.row, n, s.layout(canvas.Area{W: s.w, H: s.h}, r, n).table)
	}
}

// state says in one word how it stands with a run, and in which role.
func state(r *live.Run) (string, canvas.Role) {
	switch {
	case planned(r):
		return "planned", canvas.Dim
	case r.Ended:
		return string(r.State), stateRole(r.State)
	case r.State == runs.Running: // as it was read from disk
		return "running in another process", canvas.Busy
	}
	switch r.Progress.State {
	case runner.Pausing, runner.Paused, runner.Stopping, runner.Aborting:
		return string(r.Progress.State), canvas.Warn
	case runner.Leaving:
		return "leaving: puts the light back", canvas.Busy
	}
	return string(r.Progress.State), canvas.Busy
}

func stateRole(s runs.State) canvas.Role {
	switch s {
	case runs.Done:
		return canvas.Good
	case runs.Failed:
		return canvas.Bad
	case runs.Running:
		return canvas.Busy
	}
	return canvas.Warn
}
