package opus

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Delta is what has to move to take a job from one matching to another, and nothing else. A
// cross-connect that both have is not in it.
type Delta struct {
	// Stages are those with a port in Ports, ascending.
	Stages []int
	// Remove and Add are the cross-connects that go and that come, in order of the duplex port that sends.
	Remove, Add []ocs.CrossConnect
	// Ports are the duplex ports whose circuit changes, ascending; each is one ingress touched, and as many egress
	// ports as ingress ports are.
	Ports []int
}

// Empty reports whether nothing has to move.
func (d Delta) Empty() bool { return len(d.Ports) == 0 }

// Inverse returns what takes the job back.
func (d Delta) Inverse() Delta {
	d.Remove, d.Add = d.Add, d.Remove
	return d
}

// Change returns the change of the switch. A Delta of this package always has one; a port that is in two
// cross-connects is an error, as for [ocs.NewMap].
func (d Delta) Change() (ocs.Change, error) {
	remove, err := ocs.NewMap(d.Remove...)
	if err != nil {
		return ocs.Change{}, err
	}
	add, err := ocs.NewMap(d.Add...)
	return ocs.Change{Remove: remove, Add: add}, err
}

// Delta returns what has to move to get from m to another matching of the same job. An assignment that
// is too short is an error that matches [ErrJob].
func (m Matching) Delta(to Matching, a Assignment) (Delta, error) {
	n := max(len(m.peer), len(to.peer))
	if len(m.peer) != len(to.peer) && len(m.peer) != 0 && len(to.peer) != 0 {
		return Delta{}, fmt.Errorf("%w: one matching has %d duplex ports and the other %d", ErrJob, len(m.peer), len(to.peer))
	}
	if len(a) < n {
		return Delta{}, a.short(n)
	}
	perStage := max(m.perStage, to.perStage)
	var d Delta
	for q := range n {
		old, next := int32(-1), int32(-1)
		if len(m.peer) > 0 {
			old = m.peer[q]
		}
		if len(to.peer) > 0 {
			next = to.peer[q]
		}
		d.port(a, q, old, next, q/perStage)
	}
	return d, nil
}

// port adds what happens at a duplex port. Ports must come in order.
func (d *Delta) port(a Assignment, q int, old, next int32, stage int) {
	if old == next {
		return
	}
	d.Ports = append(d.Ports, q)
	if n := len(d.Stages); n == 0 || d.Stages[n-1] != stage {
		d.Stages = append(d.Stages, stage)
	}
	if old >= 0 {
		d.Remove = append(d.Remove, ocs.CrossConnect{Ingress: a[q].In, Egress: a[old].Out})
	}
	if next >= 0 {
		d.Add = append(d.Add, ocs.CrossConnect{Ingress: a[q].In, Egress: a[next].Out})
	}
}

// With returns the matching after a request for circuits: whatever ends at a port of join or at one of part
// goes, and join comes. Circuits of join that are there already stay as they are, and are neither in removed nor in
// added; the others are, ascending, with A below B. A port that is not the job's, or that two circuits of join use, is
// an error that matches [ErrJob].
//
// Nobody is disturbed but the ranks at the ends of these circuits and those that they leave, whereas the digit of a stage
// takes along every group of it.
func (m Matching) With(join []Circuit, part []int) (next Matching, removed, added []Circuit, err error) {
	next = m
	next.peer = slices.Clone(m.peer)
	cut := func(q int) {
		if peer := next.peer[q]; peer >= 0 {
			next.peer[q], next.peer[peer] = -1, -1
		}
	}
	ports := slices.Clone(part)
	for _, c := range join {
		ports = append(ports, c.A, c.B)
	}
	for _, q := range ports {
		if err := m.check(q); err != nil {
			return Matching{}, nil, nil, err
		}
		cut(q)
	}
	for _, c := range join {
		if err := next.join(c.A, c.B); err != nil {
			return Matching{}, nil, nil, err
		}
	}
	slices.Sort(ports)
	for _, q := range slices.Compact(ports) {
		if old := m.peer[q]; old != next.peer[q] {
			if old >= 0 {
				removed = append(removed, ordered(q, int(old)))
			}
			if peer := next.peer[q]; peer >= 0 {
				added = append(added, ordered(q, int(peer)))
			}
		}
	}
	return next, tidy(removed), tidy(added), nil
}

// ordered returns the circuit of two ports, A below B.
func ordered(a, b int) Circuit { return Circuit{min(a, b), max(a, b)} }

// tidy sorts circuits, each of which is kept once.
func tidy(cs []Circuit) []Circuit {
	slices.SortFunc(cs, func(x, y Circuit) int { return x.A - y.A })
	return slices.Compact(cs)
}

// GroupCircuits returns the circuits of a group, ascending, with A below B: the ring of a symmetrical one, in which
// two members have both ports of each joined, and one alone none. Of a pipeline it is the chain through all
// stages; what one transfer needs of it is in [Job.TransferCircuits].
func (j Job) GroupCircuits(g Group) []Circuit {
	var all []Circuit
	n := len(g.Members)
	if g.Axis == PP {
		for s := range n - 1 {
			all = append(all, j.TransferCircuits(g, s, false)...)
		}
		return tidy(all)
	}
	for i := range n {
		if n < 2 {
			break
		}
		for k := range j.planes() {
			all = append(all, ordered(j.right(g.Members[i], k), j.left(g.Members[(i+1)%n], k)))
		}
	}
	return tidy(all)
}

// TransferCircuits returns the circuits between stage and stage+1 of a pipeline, ascending, with A below B: from the
// right port of one to the left of the other, and, if closed, also the other way round, which takes the full
// bandwidth of both and leaves their other neighbours without. It is nil for a stage that has none after it.
func (j Job) TransferCircuits(g Group, stage int, closed bool) []Circuit {
	if g.Axis != PP || stage < 0 || stage+1 >= len(g.Members) {
		return nil
	}
	a, b := g.Members[stage], g.Members[stage+1]
	var all []Circuit
	for k := range j.planes() {
		all = append(all, ordered(j.right(a, k), j.left(b, k)))
		if closed {
			all = append(all, ordered(j.left(a, k), j.right(b, k)))
		}
	}
	return tidy(all)
}
