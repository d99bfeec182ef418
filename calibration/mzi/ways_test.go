package mzi

import (
	"testing"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

const unreached = 99

// leaksTo follows light through the loop network. It returns how often it has leaked, at
// least, at each input of a column (2·row + input) and, for column Columns, at each receiver.
// Elements without a state, but for one, let light through either way.
func leaksTo(w *way, of ocst.Element, cross bool, column int) (least [ocst.Lanes]int) {
	for line := range least {
		least[line] = unreached
	}
	least[w.lane] = 0 // by line
	for c := range column {
		var next [ocst.Lanes]int
		for i := range next {
			next[i] = unreached
		}
		for line, leaked := range least {
			row, input := ocst.Wire(c, line)
			e := ocst.Loop(c, row)
			state, sure := w.states[e]
			if e == of {
				state, sure = cross, true
			}
			for out := range 2 {
				n := leaked
				if sure && (out != input) != state {
					n++
				}
				to := ocst.Line(c, row, out)
				next[to] = min(next[to], n)
			}
		}
		least = next
	}
	return least
}

// Ensure that each way leads to its element at one input, that at the other input there is no
// light in columns 0 to 2, and light that has leaked two and three times in columns 3 and 4,
// and that behind it bar and cross are seen at the receivers that are said, whatever elements
// do that are not part of the way.
func TestWays(t *testing.T) {
	t.Parallel()
	r := receivers{weight: [ocst.Lanes]float64{1, 1, 1, 1, 1, 1, 1, 1}, pair: [halves][2]float64{{1, 1}, {1, 1}}}
	for e := ocst.Loop(0, 0); e < ocst.Elements; e++ {
		column, row, _ := e.IsLoop()
		for n, w := range r.ways(e) {
			if _, set := w.states[e]; set {
				t.Errorf("way %d to %v sets it", n, e)
			}
			var inputs [2]int
			for line, leaked := range leaksTo(&w, e, false, column) {
				if at, input := ocst.Wire(column, line); at == row {
					inputs[input] = leaked
				}
			}
			want := [ocst.Columns]int{unreached, unreached, unreached, 2, 3}[column]
			if min(inputs[0], inputs[1]) != 0 || max(inputs[0], inputs[1]) < want {
				t.Errorf("way %d to %v: light at its inputs has leaked %v times, want none, and %d", n, e, inputs, want)
			}
			for _, cross := range []bool{false, true} {
				light, other := w.bar, w.cross
				if cross {
					light, other = other, light
				}
				least := leaksTo(&w, e, cross, ocst.Columns)
				bright := 0
				for _, pd := range light {
					if least[pd.lane] == 0 {
						bright++
					}
				}
				for _, pd := range other {
					if least[pd.lane] == 0 {
						t.Errorf("way %d to %v, cross %v: its light comes to the other side too", n, e, cross)
					}
				}
				if bright == 0 {
					t.Errorf("way %d to %v, cross %v: its light does not come where it is looked for", n, e, cross)
				}
			}
			for j := range w.states {
				if j >= ocst.Loop(2, 0) && j < ocst.Loop(3, 0) && !(w.passed | w.stray | w.fixed).has(j) {
					t.Errorf("way %d to %v: %v might be heated at will", n, e, j)
				}
			}
		}
	}
}
