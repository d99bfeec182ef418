package controller

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// A union is where any member of a unit begins or ends a phase, ascending, relative to the step: of the tables that the members
// have sent after as many steps.
type union struct {
	step         uint64
	starts, ends []uint64
}

// key is what a phase table calls the unit.
func (u *unit) key() string {
	if u.group.Axis == opus.PP {
		return u.group.Name + "@" + strconv.Itoa(u.way)
	}
	return u.group.Name
}

// phaseTable is told what a rank has learnt. It answers all ranks whose groups are complete with it. An error names the
// ranks that disagree, and the group; the table has no effect then.
//
// Ranks send a table each time they have ended so many steps, and tables of the same step go together: a rank that is ahead
// waits for the others.
func (e *engine) phaseTable(rank int, t *proto.PhaseTable) error {
	r := e.ranks[rank]
	for _, ref := range slices.Concat(t.Starts, t.Ends) {
		u, err := e.find(rank, ref)
		if err != nil {
			return err
		}
		if period := t.Period[u.key()]; ref.Op >= period {
			return &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("the phase table of %s names operation %d of %s, of which it has %d in a step", e.who(rank), ref.Op, u.name(), period)}
		}
	}
	for _, u := range r.units {
		for _, x := range u.members {
			o := e.ranks[x]
			if x != rank && o.fresh && o.table.Step == t.Step && o.table.Period[u.key()] != t.Period[u.key()] {
				return &proto.Refusal{Code: proto.Bad, Detail: fmt.Sprintf("%s has %d operations of %s in a step, and %s has %d: their schedules do not agree",
					e.who(rank), t.Period[u.key()], u.name(), e.who(x), o.table.Period[u.key()])}
			}
		}
	}
	r.table, r.fresh = t, true
	for _, u := range r.units {
		e.unite(u)
	}
	if len(r.units) == 0 || e.noUnion {
		e.answerTable(rank)
		return nil
	}
	for _, u := range r.units {
		for _, x := range u.members {
			e.answerTable(x)
		}
	}
	return nil
}

// answerTable sends a rank its boundaries if it waits for them and all that it needs is there.
func (e *engine) answerTable(rank int) {
	r := e.ranks[rank]
	if !r.fresh || !r.here {
		return
	}
	b := &proto.Boundaries{Starts: r.table.Starts, Ends: r.table.Ends}
	if !e.noUnion {
		b = &proto.Boundaries{}
		for _, u := range r.units {
			if u.union == nil || u.union.step != r.table.Step {
				return // a member has not sent its table of that step
			}
			for _, op := range u.union.starts {
				b.Starts = append(b.Starts, u.ref(op))
			}
			for _, op := range u.union.ends {
				b.Ends = append(b.Ends, u.ref(op))
			}
		}
	}
	r.fresh = false
	e.log(Event{Kind: EventUnion, Rank: rank, Generation: e.gen})
	e.send(rank, b)
}

// unite works out the union of a unit when all members have sent their tables of the same step. That of before is kept
// until then, for those of the members who still wait for it.
func (e *engine) unite(u *unit) {
	first := e.ranks[u.members[0]].table
	var all union
	for _, x := range u.members {
		t := e.ranks[x].table
		if t == nil || t.Step != first.Step || t.Period[u.key()] != first.Period[u.key()] {
			return
		}
		all.starts = u.opsOf(all.starts, t.Starts)
		all.ends = u.opsOf(all.ends, t.Ends)
	}
	all.step = first.Step
	for _, ops := range []*[]uint64{&all.starts, &all.ends} {
		slices.Sort(*ops)
		*ops = slices.Compact(*ops)
	}
	u.union = &all
}

// opsOf adds the operations of a unit.
func (u *unit) opsOf(ops []uint64, refs []proto.OpRef) []uint64 {
	for _, ref := range refs {
		if ref.Group == u.group.Name && ref.Way == u.way {
			ops = append(ops, ref.Op)
		}
	}
	return ops
}
