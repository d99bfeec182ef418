package trace

import (
	"iter"

	"github.com/ocslab/ocslab/topology/opus"
)

// Ref names an operation so that all its members agree about it. Operations of different networks are counted
// apart, so those on the rail have no gaps.
type Ref struct {
	Group   string // "dp/3", "pp/0"; "" for an operation inside a host
	Index   uint64 // among those of the group (of transfers: of the group and way), from 0, running over steps
	Way     int    // of a transfer, the lower of its two stages; 0 otherwise
	Members []int  // ranks that take part, ascending: of a transfer two. Must not be changed
}

// sequence is what the members of a group have in common: operations of one are the same in number and order for
// all of them.
type sequence struct {
	net   Net
	axis  int
	group int // index of the group along its axis
	way   int // of transfers, the lower stage; -1 for operations of the whole group
}

// sequenceOf returns the sequence of an operation of a rank; group is that of the rank along the axis.
func (t *Trace) sequenceOf(rank int, op Op, group int) sequence {
	s := sequence{net: op.net(), axis: op.Axis, group: group, way: -1}
	switch {
	case s.net == ScaleUp:
		s.axis, s.group = -1, rank // nobody else of the rail takes part
	case op.Kind.transfer():
		s.way = min(t.Job.Stage(rank), t.Job.Stage(op.Peer))
	}
	return s
}

// Refs yields, for each operation of a rank in the n-th step of a replay, its place in the step and how it is
// called. Steps count from 0; if there are more than the trace has, it begins anew while the indices go on.
func (t *Trace) Refs(rank, step int) iter.Seq2[int, Ref] {
	return func(yield func(int, Ref) bool) {
		groups := make([]opus.Group, len(t.Job.Axes)+1)
		for axis := range groups {
			groups[axis] = t.Job.GroupOf(rank, axis)
		}
		whole, rest := uint64(step/len(t.Steps)), step%len(t.Steps)
		next := map[sequence]uint64{}
		for i, s := range t.Steps {
			n := whole
			if i < rest {
				n++
			}
			for _, op := range s.Ranks[rank] {
				next[t.sequenceOf(rank, op, groups[op.Axis].Index)] += n
			}
		}
		for i, op := range t.Steps[rest].Ranks[rank] {
			seq := t.sequenceOf(rank, op, groups[op.Axis].Index)
			r := Ref{Group: groups[op.Axis].String(), Index: next[seq], Members: groups[op.Axis].Members}
			next[seq]++
			switch {
			case seq.net == ScaleUp:
				r.Group, r.Members = "", []int{rank}
			case op.Kind.transfer():
				r.Way, r.Members = seq.way, []int{min(rank, op.Peer), max(rank, op.Peer)}
			}
			if !yield(i, r) {
				return
			}
		}
	}
}
