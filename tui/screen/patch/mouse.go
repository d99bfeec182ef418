package patch

import (
	"slices"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/screen"
)

// Mouse is a click, or a turn of the wheel.
func (s *Screen) Mouse(m screen.Mouse, e screen.Env) []screen.Request {
	switch z := m.ID.(type) {
	case switchZone:
		if e.State != nil && e.State.Switch(z.name) != nil && m.Wheel == 0 && m.Side == 0 {
			s.choose(z.name)
		}
		return nil
	case columnZone:
		if m.Wheel == 0 && m.Side == 0 {
			s.sortBy(z.column)
			return nil
		}
		return s.scrollList(m, e)
	case rowZone:
		if m.Wheel != 0 || m.Side != 0 {
			return s.scrollList(m, e)
		}
		return s.clickRow(z, m, e)
	case fieldZone:
		if v := s.look(e); v.sw == nil || v.sw.Name != z.sw || v.f.at == (place{}) {
			return nil
		}
		if m.Wheel != 0 || m.Side != 0 {
			s.pan(m, e)
			return nil
		}
		return s.clickField(z, m, e)
	}
	return nil
}

// sortBy sorts by a column, the second time the other way.
func (s *Screen) sortBy(column int) {
	s.down = s.sort == column && !s.down
	s.sort = column
}

// clickRow moves the cursor to a row. A double click is enter; with shift it selects.
func (s *Screen) clickRow(z rowZone, m screen.Mouse, e screen.Env) []screen.Request {
	v := s.look(e)
	if v.sw == nil || v.sw.Name != z.sw {
		return nil
	}
	rows := v.rows
	i := slices.Index(rows, z.at)
	if i < 0 {
		return nil
	}
	s.toRow(v, rows, i)
	switch {
	case m.Shift:
		s.toggle(v, z.at)
	case m.Double:
		return s.Do(keymap.Enter, e)
	}
	return nil
}

// scrollList moves the cursor with the wheel, and so what is seen.
func (s *Screen) scrollList(m screen.Mouse, e screen.Env) []screen.Request {
	v := s.look(e)
	if rows := v.rows; len(rows) > 0 {
		s.toRow(v, rows, s.rowAt(v, rows)+m.Wheel)
	}
	return nil
}

// pan moves the window, and the cursor with it when it would be left behind.
func (s *Screen) pan(m screen.Mouse, e screen.Env) {
	v := s.look(e)
	l := s.layout(v, s.w, s.h)
	top := panned(l.top, m.Wheel*l.perY, v.ins.n, l.rows, l.perY)
	left := panned(l.left, m.Side*max(1, 4/l.cw)*l.perX, v.outs.n, l.cols, l.perX)
	f := s.keep(v.sw.Name)
	f.top, f.left = top, left
	v.f = *f
	to := v.inside(f.at)
	if to.in != 0 {
		to.in = v.ins.at(between(v.ins.index(to.in), top, min(top+l.rows, v.ins.n)-1))
	}
	if to.out != 0 {
		to.out = v.outs.at(between(v.outs.index(to.out), left, min(left+l.cols, v.outs.n)-1))
	}
	s.move(v, to)
}

func panned(first, by, n, seen, per int) int {
	return between(first+by, 0, ceil(max(0, n-seen), per)*per)
}

func between(x, least, most int) int { return max(least, min(x, most)) }

// clickField moves the cursor to what is drawn there. A double click is enter; with shift it
// selects.
func (s *Screen) clickField(z fieldZone, m screen.Mouse, e screen.Env) []screen.Request {
	v := s.look(e)
	row, col := z.top+m.DY*z.perY, z.left+m.DX/z.cw*z.perX
	var to place
	switch z.part {
	case inRows:
		to.in = v.portAt(v.ins, row)
	case inColumns:
		to.out = v.portAt(v.outs, col)
	default:
		to = v.hit(row, col, z, !m.Double)
	}
	if to == (place{}) {
		return nil
	}
	s.move(v, to)
	switch {
	case m.Shift:
		s.toggle(v, to)
	case m.Double:
		return s.Do(keymap.Enter, e)
	}
	return nil
}

// portAt is the port at a place of an axis, 0 if there is none.
func (v *view) portAt(a axis, i int) ocs.Port {
	if i < 0 || i >= a.n {
		return 0
	}
	return a.at(i)
}

// hit is what a click on a character of the grid means. Where that stands for several pairs it is
// a circuit among them, with another click the next one; the middle if there is none.
func (v *view) hit(row, col int, z fieldZone, next bool) place {
	if z.perX == 1 && z.perY == 1 {
		return pairOf(v.portAt(v.ins, row), v.portAt(v.outs, col))
	}
	var there []place
	for i := row; i < min(row+z.perY, v.ins.n); i++ {
		in := v.ins.at(i)
		if out, ok := v.sw.Map.EgressOf(in); ok {
			if x := v.outs.index(out); x >= col && x < col+z.perX {
				there = append(there, place{in, out})
			}
		}
	}
	on := slices.Index(there, v.f.at)
	switch {
	case len(there) == 0:
		return pairOf(v.portAt(v.ins, min(row+z.perY/2, v.ins.n-1)), v.portAt(v.outs, min(col+z.perX/2, v.outs.n-1)))
	case on < 0:
		return there[0]
	case next:
		return there[(on+1)%len(there)]
	}
	return there[on]
}

// pairOf is the pair of two ports, nothing if one of them is not there.
func pairOf(in, out ocs.Port) place {
	if in == 0 || out == 0 {
		return place{}
	}
	return place{in, out}
}
