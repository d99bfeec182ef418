package tui

import (
	"fmt"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// page is a screen that shows lines with numbers, notes what it is told, and returns the
// requests that it is given. With it, tests of what is around the screens do not depend on
// these.
type page struct {
	name   keymap.Action
	where  []keymap.Where
	w, h   int
	cursor int
	did    []keymap.Action
	mice   []screen.Mouse
	focus  string
	marked bool
	does   map[keymap.Action][]screen.Request
	copies string

	applied []live.Preview
}

// pages are six of them.
func pages() []screen.Screen {
	var all []screen.Screen
	for i, w := range []keymap.Where{keymap.InPatch, keymap.InLinks, keymap.InTimeline, keymap.InExperiment, keymap.InDevices, keymap.InLog} {
		name := []keymap.Action{keymap.Screen1, keymap.Screen2, keymap.Screen3, keymap.Screen4, keymap.Screen5, keymap.Screen6}[i]
		all = append(all, &page{name: name, where: []keymap.Where{w, keymap.InLists}})
	}
	return all
}

func (p *page) Applied(x live.Preview) { p.applied = append(p.applied, x) }

func (p *page) Name() keymap.Action   { return p.name }
func (p *page) Where() []keymap.Where { return p.where }
func (p *page) Resize(w, h int)       { p.w, p.h = w, h }

func (p *page) Draw(a canvas.Area, e screen.Env) {
	if a.W != p.w || a.H != p.h {
		a.Text(0, 0, fmt.Sprintf("told %d x %d, got %d x %d", p.w, p.h, a.W, a.H), canvas.S(canvas.Bad))
		return
	}
	for y := range a.H {
		text := fmt.Sprintf("%s line %d", p.name, y)
		if e.Filter.Match(text) {
			a.Text(1, y, text, canvas.S(canvas.Text))
		}
		a.Sub(0, y, a.W, 1).Zone(y)
	}
	a.Sub(0, p.cursor, a.W, 1).Add(canvas.Cursor)
}

func (p *page) Do(act keymap.Action, _ screen.Env) []screen.Request {
	p.did = append(p.did, act)
	switch act {
	case keymap.Down:
		p.cursor++
	case keymap.Up:
		p.cursor = max(0, p.cursor-1)
	case keymap.Select:
		p.marked = true
	}
	return p.does[act]
}

func (p *page) Mouse(m screen.Mouse, _ screen.Env) []screen.Request {
	p.mice = append(p.mice, m)
	return nil
}

func (p *page) Focus(subject string, _ screen.Env) { p.focus = subject }
func (p *page) Subject(screen.Env) string          { return p.focus }
func (p *page) Copy(screen.Env) string             { return p.copies }
func (p *page) Status(screen.Env) string           { return fmt.Sprintf("line %d", p.cursor) }

func (p *page) Deselect() bool {
	was := p.marked
	p.marked = false
	return was
}
