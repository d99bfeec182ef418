package shim

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/proto"
)

// stepOf makes the operations of a step, of axis 0 in group pp/0 and of the others in a group of that number each.
func stepOf(axes ...int) ([]call, []measure) {
	groups := []string{"pp/0", "dp/0", "cp/0"}
	count := map[key]uint64{}
	var calls []call
	var m []measure
	at := time.Unix(0, 0)
	for _, axis := range axes {
		k := key{group: groups[axis]}
		calls = append(calls, call{key: k, axis: axis, n: count[k]})
		m = append(m, measure{bytes: 10, issued: at, done: at.Add(2 * time.Second)})
		at = at.Add(5 * time.Second)
		count[k]++
	}
	return calls, m
}

// Ensure the rows of a step are those that the paper's testbed has: 3, 18, 1, 20, 1 and 17 operations.
func TestRows(t *testing.T) {
	want := []int{3, 18, 1, 20, 1, 17}
	var axes []int
	for i, n := range want {
		axes = append(axes, slices.Repeat([]int{i % 2}, n)...)
	}
	calls, m := stepOf(axes...)
	table := newTable([][]call{calls, calls, calls}, m)
	rows := table.rows()
	var got []int
	for _, r := range rows {
		got = append(got, r.Ops)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatal(d)
	}
	if d := cmp.Diff(Row{
		Axis: 1, First: proto.OpRef{Group: "dp/0", Op: 18}, Last: proto.OpRef{Group: "dp/0", Op: 37}, Ops: 20, Bytes: 200, Idle: 3 * time.Second,
	}, rows[3]); d != "" {
		t.Error(d)
	}
	msg := table.message()
	if d := cmp.Diff(&proto.PhaseTable{
		Period: map[string]uint64{"pp/0@0": 5, "dp/0": 55},
		Starts: []proto.OpRef{{Group: "dp/0"}, {Group: "dp/0", Op: 18}, {Group: "dp/0", Op: 38}},
		Ends:   []proto.OpRef{{Group: "dp/0", Op: 17}, {Group: "dp/0", Op: 37}, {Group: "dp/0", Op: 54}},
	}, msg); d != "" {
		t.Error(d)
	}
}

// Ensure rows are the longest runs of one axis, whatever the step, that boundaries are those of the rows, and that
// steps which differ have no rows and boundaries everywhere.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		axes := rapid.SliceOf(rapid.IntRange(0, 2)).Draw(t, "axes")
		calls, m := stepOf(axes...)
		table := newTable([][]call{nil, calls, slices.Clone(calls), calls}, m)
		at := 0
		for i, r := range table.rows() {
			if i > 0 && axes[at-1] == r.Axis {
				t.Errorf("row %d is of axis %d, as the one before", i, r.Axis)
			}
			for j := range r.Ops {
				c := calls[at]
				if c.axis != r.Axis {
					t.Fatalf("operation %d is of axis %d, and its row of %d", at, c.axis, r.Axis)
				}
				start, end := table.bounds(c.key, c.n)
				if pp := c.axis == 0; start != (pp || j == 0) || end != (pp || j == r.Ops-1) {
					t.Errorf("operation %d of %d of a row: start %v, end %v", j, r.Ops, start, end)
				}
				if where, ok := table.find(c.key, c.n); !ok || where != at {
					t.Errorf("operation %d is at %d, %v", at, where, ok)
				}
				at++
			}
		}
		if at != len(calls) {
			t.Errorf("the rows have %d operations, and the step %d", at, len(calls))
		}
		other, m := stepOf(append(slices.Clone(axes), 1)...)
		table = newTable([][]call{calls, calls, other}, m)
		if len(table.rows()) != 0 {
			t.Error("steps differ, and there are rows")
		}
		for _, c := range other {
			if start, end := table.bounds(c.key, c.n); !start || !end {
				t.Error("steps differ, and an operation is no boundary")
			}
		}
		if start, end := table.bounds(key{group: "dp/0"}, table.period[key{group: "dp/0"}]); !start || !end {
			t.Error("an operation beyond the period is no boundary")
		}
	})
}
