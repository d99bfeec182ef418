package mzi

import "github.com/ocslab/ocslab/wire/cmis/ocst"

// states says of elements of the loop network whether they are in the cross state.
type states map[ocst.Element]bool

// receivers compares the losses behind the outputs of the loop network.
type receivers struct {
	weight [ocst.Lanes]float64 // of the receivers, so that a pair shows what enters its element
	pair   [halves][2]float64  // of the second pair that an element of column 3 leads to
}

// way is light led to one input of an element of the loop network, and where it is seen.
// Elements leak a percent of the light or less, but a tenth of the field, and what meets
// again interferes. In front of columns 0 to 2 light of one lane cannot meet again, and
// behind them sums of receivers do not show what interferes. What comes to the other input
// in columns 3 and 4 has leaked two and three times.
type way struct {
	view
	states
	// passed are elements that the light passes, before it is divided or where it would come
	// to the other side; stray others that it comes to, in any of whose states it is seen on
	// the same side, but with other losses or with more or less of what leaks.
	passed, stray elementSet
	// fixed are elements that keep leaked light off the other input.
	fixed elementSet
}

type elementSet uint64

func (s elementSet) has(e ocst.Element) bool { return s>>uint(e)&1 != 0 }

func (s *elementSet) add(list ...ocst.Element) {
	for _, e := range list {
		*s |= 1 << uint(e)
	}
}

// ways returns those to an element of the loop network. There are several, so that each
// element before it is passed by one of them only, if that can be; in columns 3 and 4
// different light comes to the other input.
func (r *receivers) ways(e ocst.Element) []way {
	column, row, _ := e.IsLoop()
	switch column {
	case 0:
		return []way{r.split(row)}
	case 1:
		return []way{r.through(row, 0), r.through(row, 1)}
	case 2:
		return []way{r.middle(row, 0, 0), r.middle(row, 1, 0)}
	case 3:
		return []way{r.ahead(row, 0, 0), r.ahead(row, 2, 1), r.ahead(row, 2, 0), r.ahead(row, 0, 1)}
	}
	return []way{r.last(row, 0), r.last(row, 1)}
}

// entering is the group that shows what enters element k of column 4, with a weight.
func (r *receivers) entering(k int, weight float64) group {
	return group{
		{ocst.PDRxLoop, 2 * k, weight * r.weight[2*k]},
		{ocst.PDRxLoop, 2*k + 1, weight * r.weight[2*k+1]},
	}
}

// behind is the group that shows what enters element m of column 3, of a half.
func (r *receivers) behind(half, m int) group {
	return append(r.entering(2*m, 1), r.entering(2*m+1, r.pair[half][m])...)
}

// fork sets column 2 of a half so that light which it gets at an input comes out at element
// 0 of column 3 when it took the upper way, at element 1 when it took the lower.
func (w *way) fork(half, input int) {
	for quarter := range 2 {
		e := ocst.Loop(2, 2*half+quarter)
		w.states[e] = input != quarter
		w.passed.add(e)
	}
}

// to sets a half so that light at one of its four inputs takes the upper way (quarter 0) or
// the lower, and comes out at element m of column 3. The other way leads to that element too
// if hide is set, and to the other if it is not.
func (w *way) to(half, input, quarter, m int, hide bool) {
	first := ocst.Loop(1, 2*half+input/2)
	w.states[first] = input%2 != quarter
	w.stray.add(first)
	for q := range 2 {
		e := ocst.Loop(2, 2*half+q)
		out := m
		if q != quarter && !hide {
			out = 1 - m
		}
		w.states[e] = input/2 != out
		w.stray.add(e)
	}
}

// enter begins a way with the lane at the upper input of an element of column 0, which leads
// it into a half.
func enter(row, half int) way {
	first := ocst.Loop(0, row)
	w := way{view: view{lane: 2 * row, which: loopOnly}, states: states{first: half != 0}}
	w.passed.add(ocst.S1(w.lane), first)
	return w
}

// split is where element row of column 0 is seen: the upper half leads to the first four
// receivers, the lower half to the others.
func (r *receivers) split(row int) way {
	w := enter(row, 0)
	delete(w.states, ocst.Loop(0, row))
	w.to(0, row, 0, 0, true)
	w.to(1, row, 0, 1, true)
	for quarter := range 2 * halves {
		w.passed.add(ocst.Loop(2, quarter))
	}
	w.bar, w.cross = r.behind(0, 0), r.behind(1, 1)
	return w
}

// through leads light to an input of element row of column 1.
func (r *receivers) through(row, input int) way {
	half, second := row/2, row%2
	w := enter(2*second+input, half)
	w.fork(half, second)
	w.to(1-half, 2*second+input, 0, 0, true)
	w.bar, w.cross = r.behind(half, input), r.behind(half, 1-input)
	return w
}

// middle leads light to an input of element row of column 2, and what leaks elsewhere to
// element hide of column 3.
func (r *receivers) middle(row, input, hide int) way {
	half, quarter := row/2, row%2
	w := enter(2*input, half)
	w.to(half, 2*input, quarter, hide, true)
	w.to(1-half, 2*input, 0, hide, true)
	delete(w.states, ocst.Loop(2, row))
	w.passed.add(ocst.Loop(1, 2*half+input))
	w.stray.add(ocst.Loop(3, 2*half), ocst.Loop(3, 2*half+1))
	for k := range ocst.Rows {
		w.stray.add(ocst.Loop(4, k))
	}
	w.bar, w.cross = r.behind(half, input), r.behind(half, 1-input)
	return w
}

// ahead leads the light of an input of a half by one of its ways to element row of column 3,
// to the input with the number of that way, and what leaks elsewhere past its receivers.
func (r *receivers) ahead(row, input, quarter int) way {
	half, m := row/2, row%2
	w := enter(input, half)
	w.to(half, input, quarter, m, false)
	w.to(1-half, input, 0, 1-m, true)
	w.passed.add(ocst.Loop(1, 2*half+input/2), ocst.Loop(2, 2*half+quarter))
	w.stray.add(ocst.Loop(4, 2*m), ocst.Loop(4, 2*m+1))
	w.fixed.add(ocst.Loop(2, 2*half+1-quarter))
	w.bar, w.cross = r.entering(2*m+quarter, 1), r.entering(2*m+1-quarter, 1)
	return w
}

// last leads lane 1 through a half to element row of column 4, at the input with the number
// of the half.
func (r *receivers) last(row, half int) way {
	m, out := row/2, row%2
	w := r.ahead(2*half+m, 0, 0)
	own, other := ocst.Loop(3, 2*half+m), ocst.Loop(3, 2*(1-half)+m)
	w.states[own] = out != 0
	w.states[other] = out == 0 // away from the other input
	w.fixed, w.stray = 0, w.stray&^(1<<ocst.Loop(4, 2*m)|1<<ocst.Loop(4, 2*m+1))
	w.fixed.add(other, ocst.Loop(2, 2*(1-half)), ocst.Loop(2, 2*(1-half)+1))
	w.passed.add(own)
	receiver := [2]group{{{ocst.PDRxLoop, 2 * row, 1}}, {{ocst.PDRxLoop, 2*row + 1, 1}}}
	w.bar, w.cross = receiver[half], receiver[1-half]
	return w
}

// usable reports whether all that must be set can be.
func (w *way) usable(usable *[ocst.Elements]bool) bool {
	if !usable[ocst.S1(w.lane)] {
		return false
	}
	for e := range w.states {
		if !usable[e] {
			return false
		}
	}
	return true
}

// put adds the states of a way, and its light, to what elements are to do.
func (w *way) put(want *settings) {
	want[ocst.S1(w.lane)] = hold(stateTarget(true))
	for e, cross := range w.states {
		want[e] = hold(stateTarget(cross))
	}
}
