package infinitehbd

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/internal/natural"
)

// ErrShare is a part of a whole that is not from 0 to 1.
var ErrShare = errors.New("there is no such share")

// CrossToR is how much of a job's traffic crosses Top-of-Rack switches. The paper gives figures and no definition; this
// one is ours, and meets them with ToRs of two nodes and a tenth of the traffic outside the rings.
//
// Groups talk to groups rank by rank: first node to first node, second to second. Sets of as many groups as a ToR has
// nodes do so, which are complete when all their groups visit the same ToRs in the same order: then nothing of it leaves
// a ToR. Groups that are left over form sets too, in the order in which their ToRs first come up. Two groups of a set
// that follow one another are neighbours.
type CrossToR struct {
	Sets     [][]int // of groups, by index: the complete ones first
	Complete int     // sets in which nothing crosses
	Pairs    int     // of nodes of one rank in neighbouring groups
	Crossing int     // of which the two are in different ToRs
	Share    float64 // of all traffic that crosses: phi * Ratio
}

// Ratio returns the part of the pairs that cross, 0 if there are none.
func (c *CrossToR) Ratio() float64 {
	if c.Pairs == 0 {
		return 0
	}
	return float64(c.Crossing) / float64(c.Pairs)
}

// CrossToR measures what crosses when phi, from 0 to 1, is the part of the traffic that is between groups. The error
// matches ErrShare for another phi, ErrNode for a node that is not in the tree, and ErrGroup for groups that differ in
// size or share a node.
func (t Tree) CrossToR(groups []Group, phi float64) (*CrossToR, error) {
	if !(phi >= 0 && phi <= 1) {
		return nil, fmt.Errorf("%w: %v of the traffic is between groups: want 0 to 1", ErrShare, phi)
	}
	if err := t.checkGroups(groups); err != nil {
		return nil, err
	}
	c := &CrossToR{}
	c.Sets, c.Complete = t.sets(groups)
	for _, set := range c.Sets {
		for j := range len(set) - 1 {
			a, b := groups[set[j]], groups[set[j+1]]
			c.Pairs += len(a)
			for rank := range a {
				if t.ToR(a[rank]) != t.ToR(b[rank]) {
					c.Crossing++
				}
			}
		}
	}
	c.Share = phi * c.Ratio()
	return c, nil
}

// Choose returns n of the groups, in their order: those of complete sets before others, so that a job which needs fewer
// than there are crosses as little as it can (ours). The error is as that of CrossToR, and matches ErrRoom if there are
// fewer than n.
func (t Tree) Choose(groups []Group, n int) ([]Group, error) {
	if n < 0 || n > len(groups) {
		return nil, fmt.Errorf("%w: %d groups, and there are %d", ErrRoom, n, len(groups))
	}
	if err := t.checkGroups(groups); err != nil {
		return nil, err
	}
	sets, _ := t.sets(groups)
	taken := make([]bool, len(groups))
	left := n
	for _, set := range sets {
		for _, g := range set[:min(left, len(set))] {
			taken[g] = true
			left--
		}
	}
	chosen := make([]Group, 0, n)
	for i, g := range groups {
		if taken[i] {
			chosen = append(chosen, g)
		}
	}
	return chosen, nil
}

// checkGroups returns why groups are not disjoint groups of one size on nodes of the tree.
func (t Tree) checkGroups(groups []Group) error {
	if err := t.Check(); err != nil {
		return err
	}
	in := make([]int, t.Nodes)
	for i, g := range groups {
		if len(g) == 0 || len(g) != len(groups[0]) {
			return fmt.Errorf("%w: group %d has %s and group 1 has %d: want one size, 1 or more",
				ErrGroup, i+1, natural.Count(len(g), "node"), len(groups[0]))
		}
		for _, n := range g {
			if n < 1 || int(n) > t.Nodes {
				return fmt.Errorf("%w: node %d of group %d: want 1 to %d", ErrNode, n, i+1, t.Nodes)
			}
			if other := in[n-1]; other > 0 {
				return fmt.Errorf("%w: node %d is in group %d and in group %d", ErrGroup, n, other, i+1)
			}
			in[n-1] = i + 1
		}
	}
	return nil
}

// sets returns the indices of groups in sets, of which the first are complete.
func (t Tree) sets(groups []Group) (sets [][]int, complete int) {
	bucket := make(map[string]int, len(groups))
	var buckets [][]int
	var key []byte
	for i, g := range groups {
		key = key[:0]
		for _, n := range g {
			key = binary.AppendUvarint(key, uint64(t.ToR(n)))
		}
		b, ok := bucket[string(key)]
		if !ok {
			b = len(buckets)
			bucket[string(key)] = b
			buckets = append(buckets, nil)
		}
		buckets[b] = append(buckets[b], i)
	}
	var left []int
	for _, b := range buckets {
		for ; len(b) >= t.PerToR; b = b[t.PerToR:] {
			sets = append(sets, b[:t.PerToR])
		}
		left = append(left, b...)
	}
	complete = len(sets)
	for len(left) > 0 {
		n := min(t.PerToR, len(left))
		sets = append(sets, left[:n])
		left = left[n:]
	}
	return sets, complete
}
