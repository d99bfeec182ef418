package railx

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// ErrCut: on the way from one configuration to another some pair is without any link. Test with errors.Is.
var ErrCut = errors.New("a pair is without a link on the way")

// exactRails is up to how many rails of a row or column all orders are considered.
const exactRails = 10

// Rolling returns in which order switches can be changed from old to next, one rail at a time in each row and column,
// so that pairs which have links before and after have as many as possible throughout. The switches of one step are
// of different rows and columns, and can be changed at the same time. Links that are removed count as gone, and those
// added as not yet there, while the switch is being changed; others are untouched.
//
// The floor is the fewest links that any such pair has at any moment; math.MaxInt if there is no such pair. If it is
// 0, the order is still the best that was found, and the error matches ErrCut and names a pair. Up to ten rails that
// change in a row or column the order is the best there is; of more it is chosen greedily. Configurations of
// different grids are an error that matches ErrGrid. Beyond the paper (simulated, not measured).
func Rolling(old, next *Config) (steps [][]Switch, floor int, err error) {
	if old.grid != next.grid {
		return nil, 0, fmt.Errorf("%w: one configuration is of %+v, the other of %+v: want the same grid",
			ErrGrid, old.grid, next.grid)
	}
	floor = math.MaxInt
	for _, d := range []Dimension{X, Y} {
		var last *rolling
		for group := range old.grid.groups(d) {
			r := newRolling(old, next, d, group)
			if r.sameAs(last) {
				r.order, r.floor, r.low = last.order, last.floor, last.low
			} else {
				r.prepare()
				r.plan()
			}
			for i, a := range r.order {
				for len(steps) <= i {
					steps = append(steps, nil)
				}
				steps[i] = append(steps[i], Switch{d, group, r.rails[a]})
			}
			if r.floor < 1 && floor >= 1 {
				s := Switch{Dimension: d, Group: group}
				err = fmt.Errorf("%w: %v and %v, while a rail of %v/%d is changed: want another rail that joins them before and after",
					ErrCut, s.node(r.low[0]), s.node(r.low[1]), d, group)
			}
			floor = min(floor, r.floor)
			last = r
		}
	}
	return steps, floor, err
}

// rolling is the way of one row or column.
type rolling struct {
	rails     []int // that change
	old, next [][]Link
	all       [2][][]Link // links of all rails, before and after

	ends       [][2]int // of the pairs that have links before and after
	lanes      []int    // by pair, before
	gone, come [][]int  // by rail of rails, the pairs of links that it removes and adds
	order      []int    // of indices of rails
	floor      int
	low        [2]int // the pair that has no more than floor
}

func newRolling(old, next *Config, d Dimension, group int) *rolling {
	r := &rolling{floor: math.MaxInt}
	for rail := range old.grid.Rails {
		s := Switch{d, group, rail}
		before, after := old.on(s), next.on(s)
		if next.off[s] {
			before, after = nil, nil // it cannot be driven, and what it carried is lost already
		}
		r.all[0], r.all[1] = append(r.all[0], before), append(r.all[1], after)
		if !slices.Equal(before, after) {
			r.rails = append(r.rails, rail)
			r.old, r.next = append(r.old, before), append(r.next, after)
		}
	}
	return r
}

// sameAs reports that the rails have the very links that those of o have.
func (r *rolling) sameAs(o *rolling) bool {
	if o == nil {
		return false
	}
	for when := range r.all {
		if !slices.EqualFunc(r.all[when], o.all[when], same) {
			return false
		}
	}
	return slices.Equal(r.rails, o.rails)
}

// prepare numbers the pairs that have links before and after, and lists where each rail has them.
func (r *rolling) prepare() {
	have := [2]map[[2]int]int{{}, {}}
	for when, lists := range r.all {
		for _, links := range lists {
			for _, l := range links {
				have[when][l.ends()]++
			}
		}
	}
	for at := range have[0] {
		if have[1][at] > 0 {
			r.ends = append(r.ends, at)
		}
	}
	slices.SortFunc(r.ends, func(a, b [2]int) int {
		if a[0] != b[0] {
			return a[0] - b[0]
		}
		return a[1] - b[1]
	})
	number := make(map[[2]int]int, len(r.ends))
	r.lanes = make([]int, len(r.ends))
	for i, at := range r.ends {
		number[at] = i
		r.lanes[i] = have[0][at]
		r.lower(i, min(have[0][at], have[1][at]))
	}
	list := func(links []Link) (pairs []int) {
		for _, l := range links {
			if i, known := number[l.ends()]; known {
				pairs = append(pairs, i)
			}
		}
		return pairs
	}
	for a := range r.rails {
		r.gone = append(r.gone, list(minus(r.old[a], r.next[a])))
		r.come = append(r.come, list(minus(r.next[a], r.old[a])))
	}
}

// lower notes that a pair has no more than that many lanes at some moment.
func (r *rolling) lower(pair, lanes int) {
	if lanes < r.floor {
		r.floor, r.low = lanes, r.ends[pair]
	}
}

// change returns the fewest lanes of any pair while rail a is changed, and which pair, and then has it changed in
// lanes.
func (r *rolling) change(lanes []int, a int) (fewest, pair int) {
	fewest = math.MaxInt
	for _, i := range r.gone[a] {
		lanes[i]--
	}
	for _, i := range r.gone[a] {
		if lanes[i] < fewest {
			fewest, pair = lanes[i], i
		}
	}
	for _, i := range r.come[a] {
		lanes[i]++
	}
	return fewest, pair
}

// back undoes change.
func (r *rolling) back(lanes []int, a int) {
	for _, i := range r.come[a] {
		lanes[i]--
	}
	for _, i := range r.gone[a] {
		lanes[i]++
	}
}

// plan finds the order, and walks it to see the floor.
func (r *rolling) plan() {
	if len(r.rails) <= exactRails {
		r.exact()
	} else {
		r.greedy()
	}
	lanes := slices.Clone(r.lanes)
	for _, a := range r.order {
		if fewest, pair := r.change(lanes, a); fewest < math.MaxInt {
			r.lower(pair, fewest)
		}
	}
}

// exact finds the order with the highest floor. What a pair has depends only on which rails are changed, not on their
// order, so it is a widest path through the sets of rails.
func (r *rolling) exact() {
	n := len(r.rails)
	best := make([]int, 1<<n) // by set of changed rails, the floor from there on
	first := make([]int8, 1<<n)
	lanes := slices.Clone(r.lanes)
	for set := 1<<n - 1; set >= 0; set-- {
		if set == 1<<n-1 {
			best[set] = math.MaxInt
			continue
		}
		copy(lanes, r.lanes)
		for a := range n {
			if set>>a&1 == 1 {
				r.change(lanes, a)
			}
		}
		best[set] = math.MinInt
		for a := range n {
			if set>>a&1 == 1 {
				continue
			}
			fewest, _ := r.change(lanes, a)
			r.back(lanes, a)
			if f := min(fewest, best[set|1<<a]); f > best[set] {
				best[set], first[set] = f, int8(a)
			}
		}
	}
	r.order = make([]int, 0, n)
	for set := 0; set != 1<<n-1; {
		a := int(first[set])
		r.order = append(r.order, a)
		set |= 1 << a
	}
}

// greedy changes next the rail that leaves the most to the pair that has the fewest; of several, one that brings the
// most links in place of those it takes, since these are there while others are changed.
func (r *rolling) greedy() {
	lanes := slices.Clone(r.lanes)
	left := count(len(r.rails))
	for len(left) > 0 {
		best, most, gained := 0, math.MinInt, 0
		for i, a := range left {
			fewest, _ := r.change(lanes, a)
			r.back(lanes, a)
			gain := len(r.come[a]) - len(r.gone[a])
			if fewest > most || fewest == most && gain > gained {
				best, most, gained = i, fewest, gain
			}
		}
		r.change(lanes, left[best])
		r.order = append(r.order, left[best])
		left = slices.Delete(left, best, best+1)
	}
}
