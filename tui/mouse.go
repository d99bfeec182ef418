package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/tui/screen"
)

// doubleClick is how soon the second click of two must come, at the same place.
const doubleClick = 400 * time.Millisecond

// notch is how many lines one turn of the wheel is.
const notch = 3

// tabZone is the tab of a screen.
type tabZone struct{ i int }

// mouse takes a click or a turn of the wheel. What is hit is what was drawn last.
func (m *model) mouse(msg tea.MouseMsg) tea.Cmd {
	e := tea.MouseEvent(msg)
	if e.Action != tea.MouseActionPress || m.tooSmall() || m.read.shut && m.marks != nil {
		return nil
	}
	out := screen.Mouse{Shift: e.Shift || e.Ctrl || e.Alt}
	switch e.Button {
	case tea.MouseButtonLeft:
	case tea.MouseButtonWheelUp:
		out.Wheel = -notch
	case tea.MouseButtonWheelDown:
		out.Wheel = notch
	case tea.MouseButtonWheelLeft:
		out.Side = -notch
	case tea.MouseButtonWheelRight:
		out.Side = notch
	default:
		return nil
	}
	if e.Shift && out.Wheel != 0 {
		out.Side, out.Wheel, out.Shift = out.Wheel, 0, false
	}
	zone, dx, dy, hit := m.canvas.Hit(e.X, e.Y)
	out.ID, out.DX, out.DY, out.W, out.H = zone.ID, dx, dy, zone.W, zone.H
	if out.Wheel == 0 && out.Side == 0 {
		out.Double = m.clicked(zone.ID, e.X, e.Y)
	}
	if top := m.top(); top != nil {
		return top.mouse(m, out)
	}
	if !hit {
		return nil
	}
	if tab, ok := zone.ID.(tabZone); ok {
		if out.Wheel == 0 && out.Side == 0 {
			m.show(tab.i)
		}
		return nil
	}
	return m.requests(m.screen().Mouse(out, m.Env()))
}

// clicked reports whether a click is the second at its place. The third is a first again.
func (m *model) clicked(id any, x, y int) bool {
	now := m.now()
	was := m.click
	if !was.at.IsZero() && was.id == id && was.x == x && was.y == y && now.Sub(was.at) < doubleClick {
		m.click = click{}
		return true
	}
	m.click = click{id: id, x: x, y: y, at: now}
	return false
}
