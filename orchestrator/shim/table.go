package shim

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// A key is what counts its operations by itself: a group, of the pipeline with one of its pairs of stages.
type key struct {
	group string
	way   int
}

func keyOf(r proto.OpRef) key { return key{r.Group, r.Way} }

// String returns the form that phase tables have: "dp/3", "pp/0@1".
func (k key) String() string {
	if isPP(k.group) {
		return k.group + "@" + strconv.Itoa(k.way)
	}
	return k.group
}

func isPP(group string) bool { return len(group) > 3 && group[:3] == "pp/" }

// A call is an operation of a step, in what repeats from step to step.
type call struct {
	key
	axis int
	n    uint64 // among those of its key in the step, from 0
	skip uint64 // how many indices were left out since the one before, in this step or earlier
}

// A measure is what need not repeat.
type measure struct {
	ref          proto.OpRef
	bytes        int64
	issued, done time.Time
}

// steady is how many steps must be the same before a rank believes that the next one will be, too.
const steady = 3

// A Row is a phase of a step: a longest run of operations of one axis.
type Row struct {
	Axis  int
	First proto.OpRef // with Op counted from the beginning of the step, and without those that are not on the rail
	Last  proto.OpRef
	Ops   int
	Bytes int64
	Idle  time.Duration // from the end of the row before until this one began, as measured in one step; 0 for the first
}

// A table is what a rank knows of its steps. It does not change once it is in use.
//
// Its calls are those of the rank itself, and from them it predicts. Its boundaries are what all members of a group
// have agreed on: they decide who asks, and a member that asks waits for all others to ask for the same.
type table struct {
	calls   []call // of a step; none if steps differed
	measure []measure
	at      map[key][]int32 // where in calls, by call.n
	period  map[key]uint64
	starts  map[key][]bool // by call.n
	ends    map[key][]bool
}

// newTable learns from steps, the newest last. If the last three are not the same there is nothing to predict, and
// every operation is a boundary: its group goes on asking for every one, as all its members will hear.
func newTable(steps [][]call, m []measure) *table {
	t := &table{at: map[key][]int32{}, period: map[key]uint64{}, starts: map[key][]bool{}, ends: map[key][]bool{}}
	if len(steps) == 0 {
		return t
	}
	last := steps[len(steps)-1]
	settled := len(steps) >= steady
	for _, s := range steps[max(0, len(steps)-steady):] {
		settled = settled && slices.Equal(s, last)
	}
	for i, c := range last {
		start := !settled || i == 0 || last[i-1].axis != c.axis
		end := !settled || i+1 == len(last) || last[i+1].axis != c.axis
		t.period[c.key]++
		t.starts[c.key] = append(t.starts[c.key], start)
		t.ends[c.key] = append(t.ends[c.key], end)
		t.at[c.key] = append(t.at[c.key], int32(i))
	}
	if settled {
		t.calls, t.measure = last, m
	}
	return t
}

// message returns what the others have to know. Transfers of the pipeline ask each time, and have no boundaries.
func (t *table) message() *proto.PhaseTable {
	m := &proto.PhaseTable{Period: map[string]uint64{}, Starts: []proto.OpRef{}, Ends: []proto.OpRef{}}
	refs := func(of map[key][]bool) []proto.OpRef {
		refs := []proto.OpRef{}
		for k, is := range of {
			if isPP(k.group) {
				continue
			}
			for n, is := range is {
				if is {
					refs = append(refs, proto.OpRef{Group: k.group, Op: uint64(n), Way: k.way})
				}
			}
		}
		slices.SortFunc(refs, compareRefs)
		return refs
	}
	for k, n := range t.period {
		m.Period[k.String()] = n
	}
	m.Starts, m.Ends = refs(t.starts), refs(t.ends)
	return m
}

// agree replaces the boundaries by those of all members. What does not fit the period is left out: such operations ask
// anyway.
func (t *table) agree(b *proto.Boundaries) {
	set := func(to map[key][]bool, refs []proto.OpRef) {
		for k, is := range to {
			to[k] = make([]bool, len(is))
		}
		for _, r := range refs {
			if is := to[keyOf(r)]; r.Op < uint64(len(is)) {
				is[r.Op] = true
			}
		}
	}
	set(t.starts, b.Starts)
	set(t.ends, b.Ends)
}

// bounds says whether the operation of that number in its step begins a phase of its group, and whether it ends one.
// All members of the group come to the same. Without a table, beyond the period, and in the pipeline everything does
// both.
func (t *table) bounds(k key, n uint64) (start, end bool) {
	if t == nil || isPP(k.group) || n >= t.period[k] {
		return true, true
	}
	return t.starts[k][n], t.ends[k][n]
}

// find returns where in the step an operation is.
func (t *table) find(k key, n uint64) (at int, ok bool) {
	if t == nil || len(t.calls) == 0 || n >= uint64(len(t.at[k])) {
		return 0, false
	}
	return int(t.at[k][n]), true
}

// rows returns the phases of a step.
func (t *table) rows() []Row {
	var rows []Row
	if t == nil {
		return nil
	}
	for i, c := range t.calls {
		ref := proto.OpRef{Group: c.group, Op: c.n, Way: c.way}
		m := t.measure[i]
		if i == 0 || t.calls[i-1].axis != c.axis {
			r := Row{Axis: c.axis, First: ref}
			if i > 0 {
				r.Idle = max(0, m.issued.Sub(t.measure[i-1].done))
			}
			rows = append(rows, r)
		}
		r := &rows[len(rows)-1]
		r.Last = ref
		r.Ops++
		r.Bytes += m.bytes
	}
	return rows
}

func compareRefs(a, b proto.OpRef) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Way, b.Way), cmp.Compare(a.Op, b.Op))
}

// groupsOf returns the groups of a rank by name.
func groupsOf(j opus.Job, rank int) map[string]opus.Group {
	all := map[string]opus.Group{}
	for axis := range j.AxisNames() {
		g := j.GroupOf(rank, axis)
		all[g.Name] = g
	}
	return all
}
