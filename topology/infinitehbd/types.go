package infinitehbd

import (
	"errors"
	"fmt"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrLayout: nodes cannot be made up, or cabled, like that.
	ErrLayout = errors.New("there is no such layout")
	// ErrNode: a node that is not in the line, is in it twice, or is listed twice.
	ErrNode = errors.New("the nodes do not fit the line")
	// ErrGroup: groups that cannot be joined to rings as they are.
	ErrGroup = errors.New("the groups form no rings")
	// ErrRoom: the nodes that are left do not suffice for what is asked.
	ErrRoom = errors.New("there is no room")
)

// Node is a node, from 1 in the order of the data centre network.
type Node int

// GPU is one GPU of a node, both from 1.
type GPU struct {
	Node Node
	GPU  int
}

// String returns "2.3".
func (g GPU) String() string { return fmt.Sprintf("%d.%d", g.Node, g.GPU) }

// State is what a bundle does.
type State uint8

// The states of a bundle. It is in one of them as a whole.
const (
	Loop  State = iota // its two GPUs are joined
	Path1              // its lanes are on fibre 1
	Path2              // on fibre 2
	Dark               // no light: of nodes that are dead, or not known
)

var stateNames = []string{"LOOP", "PATH1", "PATH2", "DARK"}

// String returns "LOOP", "PATH1", "PATH2" or "DARK".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", s)
}

// Bundle is a bundle of OCSTrx in a node: an edge of its internal cycle.
type Bundle struct {
	Name string // "L", "R", "X"; "L1", "L2" ... where there are several of a side
	// Reach is how far along the line path 1 and path 2 lead: +2 is the node after the next, -1 the one before;
	// 0 is a path without fibre.
	Reach [2]int
	// Upper and Lower are the two GPUs that it joins when it is looped. A cable joins upper to upper and lower to
	// lower.
	Upper, Lower int
}

// Path returns the state in which the bundle leads over a distance, and whether there is one.
func (b Bundle) Path(distance int) (State, bool) {
	for i, r := range b.Reach {
		if r == distance && r != 0 {
			return Path1 + State(i), true
		}
	}
	return Loop, false
}

// Layout is what all nodes are made of.
type Layout struct {
	GPUs    int
	Bundles []Bundle
	// Copper are the edges of the internal cycle that are no bundles: pairs of neighbouring GPUs.
	Copper [][2]int
}

// Group are the nodes of one ring in the order of the line.
type Group []Node

// Line is nodes in the order in which they are cabled. Distances count along it.
type Line struct {
	Layout Layout
	Order  []Node // each once
	// Closed is whether the cables go on from the last node to the first, so that the line is a ring of nodes.
	Closed bool
}

// End is one end of a cable.
type End struct {
	Node   Node
	Bundle int   // index in Layout.Bundles
	Path   State // Path1 or Path2
}

// Cable joins a path of a bundle to one of another: as many fibre pairs as the bundle has lanes. It leads forwards along
// the line from A to B; in a closed line also from its last nodes to its first.
type Cable struct{ A, B End }

// Switching is a bundle that goes from one state to another.
type Switching struct {
	Node     Node
	Bundle   int // index in Layout.Bundles
	From, To State
}

// Plan is a state for every bundle of a line.
type Plan struct {
	line   Line
	at     map[Node]int // the place of each node in the line
	groups []Group
	states map[Node][]State // by node and bundle
}
