package devices_test

import (
	"strings"
	"testing"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// The list takes no more than it has a use for, and the details have the rest.
func TestList_NoWiderThanNeeded(t *testing.T) {
	e := env(tuitest.Testbed(), "")
	s := at(120, 24)
	c := tuitest.Draw(120, 24, func(a canvas.Area) { s.Draw(a, e) })
	lines := strings.Split(c.String(), "\n")
	from := canvas.Width(lines[0][:strings.Index(lines[0], "╭")])
	used := 0
	for _, l := range lines[:min(len(lines), 3)] {
		used = max(used, canvas.Width(strings.TrimRight(canvas.Cut(l, from-1), " …")))
	}
	if from-used > 6 && from > 31 {
		t.Errorf("the list is %d columns wide, and uses %d:\n%s", from, used, c)
	}
}

// Heaters are a warning only near their limit.
func TestHeaters_WarnNearLimit(t *testing.T) {
	st := tuitest.Bundle()
	m := &st.Switches[0].Modules[0]
	if len(m.Heater) < 2 {
		t.Fatal("want two heaters")
	}
	for i := range m.Heater {
		m.Heater[i].Part = 0.5
	}
	m.Heater[0].Part = 0.95
	s, e := at(160, 60), env(st, "")
	c := tuitest.Draw(160, 60, func(a canvas.Area) { s.Draw(a, e) })
	near, far := 0, 0
	for y := range 60 {
		for x := range 160 {
			if cell := c.At(x, y); cell.Rune == '█' {
				switch cell.Style.Role {
				case canvas.Warn:
					near++
				case canvas.Series6:
					far++
				}
			}
		}
	}
	if near == 0 || far == 0 || near >= far {
		t.Errorf("%d cells of bars warn, %d do not", near, far)
	}
}
