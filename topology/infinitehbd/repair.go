package infinitehbd

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
)

// RepairOptions is how a plan is repaired. The zero value keeps the size of the groups, and takes placements as the
// paper's.
type RepairOptions struct {
	// Size is how many nodes a group shall have; 0 is as many as those that run, which must be of one size then.
	Size int
	// Overlap is how many groups may lie across one place of the line, reaching over each other's nodes: 1 to
	// MaxOverlap; 0 is 1, as in the paper. More saves switching where one group can reach around another, and costs
	// time, as there are many more placements.
	Overlap int
}

// MaxOverlap is the largest RepairOptions.Overlap. No more groups than Layout.Hops can overlap at all.
const MaxOverlap = 4

// Repaired is what a plan becomes.
type Repaired struct {
	Plan       *Plan
	Switchings []Switching // from the plan that ran to this one
	Kept       []Group     // that run on with the same nodes
	Ended      []Group     // that ran, and do not run on with the same nodes
	// Short is how many groups less there are than ran; 0 if there are as many or more.
	Short int
}

// Repair returns the plan to go on with when nodes die or come back: dead are all that are dead now. There are as many
// groups as any placement of the given Overlap has; among all placements with that many the one is chosen that
// switches the fewest bundles, and among those one that keeps the most groups as they are. It is exact (ours; dynamic
// programming over the places of the line): what the paper gives, cutting blocks anew from the front, moves every
// block behind the fault. A placement may leave living nodes idle anywhere, also between the nodes of a group. It obeys
// the rules of Line.Build, so a node that would need both paths of a bundle ends its group.
//
// On a closed line that no dead nodes break, and with an Overlap above 1, only those placements are considered that have
// no group across at least one of the first Size·Hops boundaries between places; otherwise all are.
//
// If not a single group can be, the error matches ErrRoom and says so; the result is there nevertheless, its plan has
// no groups, and Ended are those that are lost. That there are fewer groups than before is no error: see Short. Dead
// nodes that are not in the line or twice in the list are an error that matches ErrNode, sizes and options that cannot
// be, or that give more placements than can be gone through in about 20 s, one that matches ErrGroup.
func Repair(running *Plan, dead []Node, o RepairOptions) (*Repaired, error) {
	size, err := running.size(o.Size)
	if err != nil {
		return nil, err
	}
	if o.Overlap < 0 || o.Overlap > MaxOverlap {
		return nil, fmt.Errorf("%w: an overlap of %d groups: want 1 to %d, or 0 for 1", ErrGroup, o.Overlap, MaxOverlap)
	}
	s, err := newSearch(running.line, size, dead)
	if err != nil {
		return nil, err
	}
	s.width = max(1, o.Overlap)
	s.from(running)
	groups, err := s.groups()
	if err != nil {
		return nil, err
	}
	plan, err := running.line.Build(groups, dead)
	if err != nil {
		return nil, err
	}
	r := &Repaired{Plan: plan, Switchings: Diff(running, plan), Short: max(0, len(running.groups)-len(groups))}
	r.compare(running.groups)
	if len(groups) == 0 {
		return r, fmt.Errorf("%w: of %s no %d can form a group: %s that ran cannot go on",
			ErrRoom, natural.Count(s.living, "living node"), size, natural.Count(len(running.groups), "group"))
	}
	return r, nil
}

// Resize returns the plan for groups of another size on the same nodes, with the fewest bundles switched (ours): as a
// job grows, its groups are merged with neighbours, and only the bundles at their boundaries switch. It is Repair with
// the nodes that are dead in the plan, and has its errors.
func Resize(running *Plan, size int) (*Repaired, error) {
	if size < 1 {
		return nil, fmt.Errorf("%w: groups of %s: want 1 or more", ErrGroup, natural.Count(size, "node"))
	}
	return Repair(running, running.Dead(), RepairOptions{Size: size})
}

// SpreadIdle returns as many groups of a size as any placement without overlap has, such that the nodes that are left
// over lie evenly between the groups, instead of at the end (ours). When a node dies, the groups between it and the
// nearest idle node shift: of q groups and e idle nodes at most about q/2e. Its errors are those of Repair, except that
// no groups at all are no error.
func SpreadIdle(line Line, size int, dead []Node) ([]Group, error) {
	if size < 1 {
		return nil, fmt.Errorf("%w: groups of %s: want 1 or more", ErrGroup, natural.Count(size, "node"))
	}
	s, err := newSearch(line, size, dead)
	if err != nil {
		return nil, err
	}
	s.spread()
	return s.groups()
}

// size returns how many nodes groups shall have.
func (p *Plan) size(asked int) (int, error) {
	switch {
	case asked < 0:
		return 0, fmt.Errorf("%w: groups of %s: want 1 or more", ErrGroup, natural.Count(asked, "node"))
	case asked > 0:
		return asked, nil
	case len(p.groups) == 0:
		return 0, fmt.Errorf("%w: no groups run: say how many nodes they shall have", ErrGroup)
	}
	for _, g := range p.groups {
		if first := p.groups[0]; len(g) != len(first) {
			return 0, fmt.Errorf("%w: groups %v and %v run: say how many nodes they shall have", ErrGroup, first, g)
		}
	}
	return len(p.groups[0]), nil
}

// compare fills in which groups are kept.
func (r *Repaired) compare(running []Group) {
	now := make(map[Node]Group, len(r.Plan.groups))
	for _, g := range r.Plan.groups {
		now[g[0]] = g
	}
	for _, g := range running {
		if slices.Equal(now[g[0]], g) {
			r.Kept = append(r.Kept, slices.Clone(g))
		} else {
			r.Ended = append(r.Ended, slices.Clone(g))
		}
	}
}
