package opus

import (
	"fmt"
	"math/big"
	"slices"

	"github.com/ocslab/ocslab/ocs"
)

// Table is what the orchestrator of a rail keeps to answer quickly: for each stage and dimension the sub-mapping, which
// is the peers of the ports of that stage. The matching of any ID is put together from these, and for a change only
// those are looked at that differ.
//
// It has an entry for each rank and dimension, instead of one for each rank and ID; see [Storage]. It is never changed,
// and safe for concurrent use.
type Table struct {
	job        Job
	policy     Policy
	assignment Assignment
	// peers are the sub-mappings of all stages, by dimension and duplex port. For PP they are those of stages that
	// are joined to both neighbours: see peer for the others.
	peers    [][]int32
	perRank  int // duplex ports of a rank
	perStage int // duplex ports of a stage
}

// NewTable returns the table of a job that is cabled so. An assignment that is too short or has a port twice is an
// error, as are a job that is not possible and an unknown policy.
func NewTable(j Job, p Policy, a Assignment) (*Table, error) {
	if err := j.Check(); err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if err := a.check(j.DuplexPorts()); err != nil {
		return nil, err
	}
	t := &Table{
		job: j, policy: p, assignment: slices.Clone(a[:j.DuplexPorts()]),
		perRank: j.PortsPerRank(), perStage: j.RanksPerStage() * j.PortsPerRank(),
	}
	t.job.Axes = slices.Clone(j.Axes)
	for axis := range len(j.Axes) + 1 {
		peer := dark(j).peer
		for s := range j.Stages {
			if axis != PP {
				j.joinRings(peer, s, axis)
				continue
			}
			l := link{PP, int32(s - 1), int32(s + 1)}
			if s+1 == j.Stages {
				l.right = -1
			}
			j.joinStage(peer, s, l)
		}
		t.peers = append(t.peers, peer)
	}
	return t, nil
}

// Entries returns how many entries the table has, counted as the paper counts: one for each rank and dimension.
func (t *Table) Entries() int { return len(t.peers) * t.job.Ranks() }

// Storage returns how many entries a table of the matchings of all IDs would have, D^p*N, and how many one of
// sub-mappings has, D*N, for N ranks in p stages and D dimensions, the pipeline being one.
func Storage(j Job) (naive *big.Int, decomposed int) {
	d := len(j.Axes) + 1
	naive = new(big.Int).Exp(big.NewInt(int64(d)), big.NewInt(int64(j.Stages)), nil)
	return naive.Mul(naive, big.NewInt(int64(j.Ranks()))), d * j.Ranks()
}

// Matching returns the matching of an ID, as [Build] does.
func (t *Table) Matching(id ID) (Matching, error) {
	if err := t.job.checkID(id); err != nil {
		return Matching{}, err
	}
	m := dark(t.job)
	for s, l := range links(id, t.policy, nil) {
		for q := s * m.perStage; q < (s+1)*m.perStage; q++ {
			m.peer[q] = t.peer(q, s, l)
		}
	}
	return m, nil
}

// peer returns the peer of duplex port q of a stage with that link.
func (t *Table) peer(q, stage int, l link) int32 {
	straight := t.peers[l.axis][q]
	if l.axis != PP {
		return straight
	}
	port := q % t.perRank
	if port/2 == t.perRank/2 {
		return -1 // an odd port that has no other
	}
	to, side := l.left, 1 // a left port leads to a right one, which is the next
	if port%2 == 1 {
		to, side = l.right, -1
	}
	switch {
	case to < 0:
		return -1
	case int(to) == stage-side:
		return straight
	}
	return int32(q + (int(to)-stage)*t.perStage + side)
}

// Change returns what has to move to go from one ID to another: the Delta of the two matchings, found by looking only
// at the stages whose sub-mapping differs. An ID of another job is an error that matches [ErrJob].
func (t *Table) Change(from, to ID) (Delta, error) {
	for _, id := range []ID{from, to} {
		if err := t.job.checkID(id); err != nil {
			return Delta{}, err
		}
	}
	var small [2][32]link // so that usual jobs need no memory for this
	was, will := links(from, t.policy, small[0][:]), links(to, t.policy, small[1][:])
	changing := 0
	for s := range was {
		if was[s] != will[s] {
			changing++
		}
	}
	if changing == 0 {
		return Delta{}, nil
	}
	perStage, n := t.perStage, changing*t.perStage
	d := Delta{Stages: make([]int, 0, changing), Ports: make([]int, 0, n)}
	d.Remove, d.Add = make([]ocs.CrossConnect, 0, n), make([]ocs.CrossConnect, 0, n)
	for s := range was {
		if was[s] == will[s] {
			continue
		}
		for q := s * perStage; q < (s+1)*perStage; q++ {
			old, next := t.peer(q, s, was[s]), t.peer(q, s, will[s])
			// Both ends of a circuit must be looked at, or half of it would stay.
			for _, peer := range []int32{old, next} {
				if peer >= 0 && old != next && was[int(peer)/perStage] == will[int(peer)/perStage] {
					return Delta{}, fmt.Errorf("%w: from %s to %s duplex port %d would change, and its peer %d in stage %d not",
						ErrJob, from, to, q, peer, int(peer)/perStage)
				}
			}
			d.port(t.assignment, q, old, next, s)
		}
	}
	return d, nil
}
