package runscreen

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/experiment/figures"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// Do carries out an action.
func (s *Screen) Do(act keymap.Action, e screen.Env) []screen.Request {
	s.note(e)
	defer s.fit(e)
	w, r := s.shows(e)
	switch act {
	case keymap.Up:
		s.move(-1, e)
	case keymap.Down:
		s.move(1, e)
	case keymap.PageUp:
		s.move(-max(1, s.h-4), e)
	case keymap.PageDown:
		s.move(max(1, s.h-4), e)
	case keymap.Home:
		s.move(-1<<30, e)
	case keymap.End:
		s.move(1<<30, e)
	case keymap.Left:
		s.jump(-1, e)
	case keymap.Right:
		s.jump(1, e)
	case keymap.View:
		s.chart = (s.chart + 1) % charts
	case keymap.All:
		if s.what == list && s.seen {
			s.what = loaded
		} else {
			s.what = list
		}
		s.large = false
	case keymap.Enter:
		return s.enter(w, r, e)
	case keymap.Open:
		return s.open(e)
	case keymap.Edit:
		return s.edit(e, w, r)
	case keymap.Run:
		return s.begin(w, r, e)
	case keymap.Pause:
		return s.control(e, "pausing after the point, or going on", "pause", live.Lab.PauseRun)
	case keymap.Stop:
		return s.control(e, "stopping after the point", "stop", live.Lab.StopRun)
	case keymap.Abort:
		return s.abort(e)
	}
	return nil
}

// move moves the cursor by n lines.
func (s *Screen) move(n int, e screen.Env) {
	switch w, r := s.shows(e); {
	case w == list:
		s.run += n
	case r == nil:
	case planned(r):
		s.step += n
	default:
		s.row += n
	}
}

// jump moves the cursor to the same stage of another condition.
func (s *Screen) jump(n int, e screen.Env) {
	w, r := s.shows(e)
	if w == list || r == nil {
		return
	}
	rows := stages(r, e.Filter)
	if s.row >= len(rows) {
		return
	}
	now := rows[s.row]
	for i := s.row + n; i >= 0 && i < len(rows); i += n {
		if rows[i].Stage == now.Stage && rows[i].Condition != now.Condition {
			s.row = i
			return
		}
	}
}

// enter opens what the cursor is on.
func (s *Screen) enter(w what, r *live.Run, e screen.Env) []screen.Request {
	switch {
	case w == list:
		runs := s.list(e)
		if s.run >= len(runs) {
			return nil
		}
		id := runs[s.run].ID
		if x := e.State.Run; x != nil && x.ID == id {
			s.what = loaded
			return nil
		}
		return []screen.Request{s.load(e, id)}
	case r == nil:
	case planned(r):
		m := s.memo.of(r)
		if s.step < len(m.steps) {
			step := m.steps[s.step]
			return []screen.Request{screen.Show{
				Title: fmt.Sprintf("step %d: %s", s.step+1, step.Kind),
				Lines: canvas.Wrap(strings.ReplaceAll(step.Text(r.Plan), "  ", "\n"), max(20, s.w-10)),
			}}
		}
	default:
		s.large = !s.large
	}
	return nil
}

// load shows a run that is kept as soon as it has been read.
func (s *Screen) load(e screen.Env, id string) screen.Call {
	s.what, s.id, s.row, s.rowTop = kept, id, 0, 0
	got := s.got
	return screen.Call{Doing: "loading " + id, CLI: e.State.Command("runs", "show", id), Do: func(ctx context.Context, l live.Lab) error {
		r, err := l.Past(ctx, id)
		got.Store(&answer{id, r, err})
		return err
	}}
}

// open asks for an experiment.
func (s *Screen) open(e screen.Env) []screen.Request {
	if under(e.State.Run) {
		return say("a run is under way: it has to end first")
	}
	var names []string
	for _, f := range figures.All() {
		names = append(names, f.Name)
	}
	initial := ""
	if r := e.State.Run; r != nil {
		initial = r.Path
	}
	return []screen.Request{screen.Ask{
		Title: "experiment file, or one of " + strings.Join(names, " "), Initial: initial, Files: true,
		Then: func(path string) []screen.Request {
			if path == "" {
				return nil
			}
			return []screen.Request{s.plan(e, path)}
		},
	}}
}

// plan has an experiment planned, and shows that.
func (s *Screen) plan(e screen.Env, path string) screen.Call {
	s.what, s.step, s.row, s.rowTop, s.large = loaded, 0, 0, 0, false
	return screen.Call{Doing: "planning " + path, CLI: e.State.Command(command(path, "--plan")...), Do: func(ctx context.Context, l live.Lab) error {
		return l.LoadRun(ctx, path)
	}}
}

// edit opens the experiment in an editor, and plans it anew. In the list there is none, and
// the editor is for the lab.
func (s *Screen) edit(e screen.Env, w what, r *live.Run) []screen.Request {
	switch {
	case w == list || r == nil:
		return nil
	case r.File == nil || r.File.Path == "" || w == kept:
		return say("a run that is kept does not change: o opens its experiment")
	case isPreset(r.Path):
		return say(r.Path + " comes with the program, and is no file: copy it from examples/experiments, and open that")
	}
	edit := screen.EditFile{Path: r.Path}
	if !under(r) {
		edit.Then = []screen.Request{s.plan(e, r.Path)}
	}
	return []screen.Request{edit}
}

func isPreset(path string) bool {
	_, err := figures.Find(path)
	return err == nil
}

// command are the arguments of ocslab that run an experiment.
func command(path string, flags ...string) []string {
	if isPreset(path) {
		return append([]string{"figure", path}, flags...)
	}
	return append([]string{"run", path}, flags...)
}

// begin asks whether to run what is loaded, or to go on with what was stopped.
func (s *Screen) begin(w what, r *live.Run, e screen.Env) []screen.Request {
	if under(e.State.Run) {
		return say("a run is under way: p pauses it, t stops it after the point, X aborts it")
	}
	id, left := "", false
	switch {
	case w == list:
		if runs := s.list(e); s.run < len(runs) {
			id, left = runs[s.run].ID, resumable(runs[s.run].State)
		}
		if !left && e.State.Run == nil {
			return say("no experiment is loaded: o opens one")
		}
	case r == nil || r.Plan == nil:
		return nil
	case r.ID != "":
		id, left = r.ID, resumable(r.State)
	}
	resume := Resume(e, id)
	call := resume.Ways[0].Then
	resume.Ways[0].Then = func() []screen.Request {
		s.what, s.row, s.rowTop = loaded, 0, 0
		return call()
	}
	if w != loaded {
		if !left {
			return say("there is nothing left to do of this run: o opens its experiment, to run it anew")
		}
		return []screen.Request{resume}
	}
	c := screen.Confirm{Title: warned(e, "run "+name(r)), Ways: []screen.Way{{
		Name: "anew", About: s.price(r), Then: func() []screen.Request { return []screen.Request{s.start(e, r, ocs.Safe)} },
	}}}
	if err := s.refusedOf(r); err != nil {
		c.Ways = append(c.Ways, screen.Way{
			Name: "update", About: "also move the circuits of others that are in the way: " + err.Error(),
			Then: func() []screen.Request { return []screen.Request{s.start(e, r, ocs.Update)} },
		})
	}
	if left {
		resume.Ways[0].Name = "resume"
		c.Ways = append(c.Ways, resume.Ways[0])
	}
	return []screen.Request{c}
}

// Resume asks whether to go on with a run that was stopped or killed.
func Resume(e screen.Env, id string) screen.Confirm {
	return screen.Confirm{Title: warned(e, "go on with "+id), Ways: []screen.Way{{
		About: "only the points that are left, with the lab as it was stored with the run",
		Then: func() []screen.Request {
			return []screen.Request{screen.Call{
				Doing: "going on with " + id, CLI: e.State.Command("runs", "resume", id), Mutates: true,
				Do: func(ctx context.Context, l live.Lab) error { return l.Resume(ctx, id) },
			}}
		},
	}}}
}

// warned is a question with what speaks against it: a run gives light to what a panic has
// darkened.
func warned(e screen.Env, question string) string {
	if p := e.State.Panic; p != nil {
		return question + ", while a panic is in force (" + p.Reason + ")"
	}
	return question
}

// price says what it takes to run an experiment.
func (s *Screen) price(r *live.Run) string {
	text := fmt.Sprintf("%d points, %s", len(r.Plan.Points), plan.About(r.Total))
	if len(r.Moves) > 0 {
		text += "; moves " + strings.Join(r.Moves, "; ")
	}
	return text
}

// name is the name of an experiment.
func name(r *live.Run) string {
	switch {
	case r.File != nil && r.File.Name != "":
		return r.File.Name
	case r.Plan != nil && r.Plan.Name != "":
		return r.Plan.Name
	}
	return r.Path
}

// start begins a run. One that is refused as circuits of others are in the way is remembered,
// so that the next question offers to move them.
func (s *Screen) start(e screen.Env, r *live.Run, policy ocs.Policy) screen.Call {
	s.what, s.row, s.rowTop = loaded, 0, 0
	args := command(r.Path)
	if policy != ocs.Safe {
		args = append(args, "--mode", string(policy))
	}
	refused := s.refused
	return screen.Call{Doing: "beginning " + name(r), CLI: e.State.Command(args...), Mutates: true, Do: func(ctx context.Context, l live.Lab) error {
		err := l.StartRun(ctx, policy)
		switch {
		case policy == ocs.Safe && errors.Is(err, ocs.ErrConflict):
			refused.Store(&refusal{r.Plan, err})
			return fmt.Errorf("%w; r offers to move it", err)
		case err == nil:
			refused.Store(nil)
		}
		return err
	}}
}

// control does something with the run that is under way.
func (s *Screen) control(e screen.Env, doing, word string, do func(live.Lab) error) []screen.Request {
	r := e.State.Run
	if !under(r) {
		return say("no run is under way here")
	}
	if word == "pause" {
		switch doing = "pausing after the point"; r.Progress.State {
		case runner.Pausing, runner.Paused:
			doing, word = "going on", "continue"
		}
	}
	return []screen.Request{screen.Call{Doing: doing, CLI: e.State.Command("runs", word, r.ID), Mutates: true, Do: func(_ context.Context, l live.Lab) error {
		return do(l)
	}}}
}

// abort asks first.
func (s *Screen) abort(e screen.Env) []screen.Request {
	if !under(e.State.Run) {
		return say("no run is under way here")
	}
	return []screen.Request{screen.Confirm{Title: "abort " + e.State.Run.ID, Ways: []screen.Way{{
		About: "the point that is under way is lost, then the light is put back as the experiment says",
		Then:  func() []screen.Request { return s.control(e, "aborting", "abort", live.Lab.AbortRun) },
	}}}}
}

func say(text string) []screen.Request { return []screen.Request{screen.Say{Text: text, Bad: true}} }

// zones of the mouse.
type (
	runZone   int // a row of the list
	stageZone int // a row of the table
	stepZone  int // a step of the plan
	chartZone struct{}
)

// Mouse moves the cursor, or turns the wheel.
func (s *Screen) Mouse(m screen.Mouse, e screen.Env) []screen.Request {
	s.note(e)
	defer s.fit(e)
	if m.Wheel != 0 {
		s.move(m.Wheel, e)
		return nil
	}
	switch id := m.ID.(type) {
	case runZone:
		s.run = int(id)
	case stageZone:
		s.row = int(id)
	case stepZone:
		s.step = int(id)
	case chartZone:
		s.chart = (s.chart + 1) % charts
		return nil
	default:
		return nil
	}
	if m.Double {
		s.fit(e)
		w, r := s.shows(e)
		return s.enter(w, r, e)
	}
	return nil
}
