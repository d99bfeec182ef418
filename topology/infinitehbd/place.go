package infinitehbd

import (
	"fmt"

	"github.com/ocslab/ocslab/internal/natural"
)

// Deploy returns the order in which nodes are cabled so that groups cross Top-of-Rack switches alike: every perToR-th
// node from node 1, then every perToR-th from node 2 and so on (Algorithm 1). A sub-line, which is one such pass,
// visits every ToR once, and the last node of a pass is followed by the first of the next.
//
// Nodes that do not fill their last ToR, or none at all, are an error that matches ErrLayout.
func Deploy(nodes, perToR int) ([]Node, error) {
	if err := (Tree{Nodes: nodes, PerToR: perToR, PerDomain: nodes}).Check(); err != nil {
		return nil, err
	}
	order := make([]Node, 0, nodes)
	for first := range perToR {
		for n := first; n < nodes; n += perToR {
			order = append(order, Node(n+1))
		}
	}
	return order, nil
}

// Place returns as many groups of m nodes as the living nodes allow: it walks the line and cuts a group off whenever m
// are together (Algorithm 2, DCN-free). A run of dead nodes that no path leads over breaks the line. Groups and their
// nodes are in the order of the line. A closed line is walked from behind its first break, and a group may go on from
// the last node to the first (ours).
//
// With paths to all distances up to the longest, no placement has more groups. With others, such as powers of two, the
// line is also broken where the distance from one living node to the next is none of them: living nodes are never left
// out to reach one farther on, which might gain a group. A node whose neighbours on both sides need the same bundle is
// the end of a group (ours), since a bundle is on one path at a time.
//
// No groups at all are no error. The error is that of Check, or matches ErrGroup when m is less than 1, and ErrNode for
// a node that is dead without being in the line, or dead twice.
func (l Line) Place(m int, dead []Node) ([]Group, error) {
	if m < 1 {
		return nil, fmt.Errorf("%w: a group of %s: want 1 or more", ErrGroup, natural.Count(m, "node"))
	}
	_, gone, err := l.gone(dead)
	if err != nil {
		return nil, err
	}
	living := make([]int, 0, len(gone)-len(dead))
	for i := range gone {
		if !gone[i] {
			living = append(living, i)
		}
	}
	c := newCutter(l.Layout, m)
	if l.Closed {
		return l.name(c.circle(living, len(l.Order)), m), nil
	}
	return l.name(c.cut(nil, living), m), nil
}

// name returns the groups whose nodes are m positions each, one after the other.
func (l Line) name(places []int, m int) []Group {
	nodes := make([]Node, len(places))
	for i, at := range places {
		nodes[i] = l.Order[at%len(l.Order)]
	}
	return split(nodes, m)
}

// split cuts nodes into groups of m.
func split(nodes []Node, m int) []Group {
	groups := make([]Group, 0, len(nodes)/m)
	for i := 0; i < len(nodes); i += m {
		groups = append(groups, nodes[i:i+m:i+m])
	}
	return groups
}

// cutter cuts groups of m nodes off a line.
type cutter struct {
	m int
	// By distance: the bundles that lead over it on the side towards the end and towards the front; -1 is none.
	ahead, back []int
}

// newCutter returns the one for a layout.
func newCutter(l Layout, m int) *cutter {
	span := l.Hops() + 1
	c := &cutter{m: m, ahead: make([]int, span), back: make([]int, span)}
	find := func(distance int) int {
		if bundle, _, ok := l.Find(distance); ok {
			return bundle
		}
		return -1
	}
	for d := range span {
		c.ahead[d], c.back[d] = find(d), find(-d)
	}
	return c
}

// joined is whether a cable leads over a distance.
func (c *cutter) joined(distance int) bool { return distance < len(c.ahead) && c.ahead[distance] >= 0 }

// clash is whether a node that is joined to its neighbours at two distances would need both paths of a bundle.
func (c *cutter) clash(before, after int) bool { return c.back[before] == c.ahead[after] }

// cut appends the positions of the nodes of all groups, m each, to out. Positions ascend. The first group that is
// possible is always cut off: windows of one length, of which as many as possible are wanted, are best taken in the
// order of their ends.
func (c *cutter) cut(out, living []int) []int {
	start := 0
	for i := range living {
		if i > start {
			gap := living[i] - living[i-1]
			switch {
			case !c.joined(gap):
				start = i
			case i-1 > start && c.clash(living[i-1]-living[i-2], gap):
				start = i - 1
			}
		}
		if i-start+1 == c.m {
			out = append(out, living[start:i+1]...)
			start = i + 1
		}
	}
	return out
}

// circle is cut for a closed line of n nodes; positions from n on are those of the second time round.
func (c *cutter) circle(living []int, n int) []int {
	if len(living) < c.m {
		return nil
	}
	twice := make([]int, 0, 2*len(living))
	twice = append(twice, living...)
	for _, at := range living {
		twice = append(twice, at+n)
	}
	// Where the circle is broken anyway, it is a line.
	for i := 1; i <= len(living); i++ {
		if !c.joined(twice[i] - twice[i-1]) {
			i %= len(living)
			return c.cut(nil, twice[i:i+len(living)])
		}
	}
	// A group spans m - 1 gaps, so of m gaps in a row one is within no group: of one of m lines at most.
	var most []int
	for i := range c.m {
		if len(most) == len(living)/c.m*c.m {
			break
		}
		if got := c.cut(nil, twice[i:i+len(living)]); len(got) > len(most) {
			most = got
		}
	}
	return most
}
