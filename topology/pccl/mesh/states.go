package mesh

import (
	"fmt"

	"github.com/ocslab/ocslab/topology/pccl"
)

// Side is where a waveguide of a grid leaves a node. Sides are in order of the nodes there.
type Side int8

// The sides.
const (
	North Side = iota
	West
	East
	South
	sides
)

func (s Side) String() string { return [...]string{"north", "west", "east", "south"}[s] }

func (s Side) opposite() Side { return sides - 1 - s }

// Pairing is which waveguides of a node are joined.
type Pairing uint8

// The pairings of four waveguides.
const (
	None     Pairing = iota
	Straight         // north with south, west with east
	Falling          // west with south, north with east: what goes right turns down
	Rising           // west with north, south with east: what goes right turns up
	pairings
)

func (p Pairing) String() string { return [...]string{"none", "straight", "falling", "rising"}[p] }

// through returns where light that enters on a side leaves.
func (p Pairing) through(in Side) Side {
	switch p {
	case Straight:
		return in.opposite()
	case Falling:
		return [...]Side{East, South, North, West}[in]
	default:
		return [...]Side{West, North, South, East}[in]
	}
}

// pairingOf returns the pairing in which two sides are joined.
func pairingOf(a, b Side) Pairing {
	for p := Straight; p < pairings; p++ {
		if p.through(a) == b {
			return p
		}
	}
	return None
}

// State is what an MZI is set to.
type State uint8

// The states.
const (
	Bar State = iota
	Cross
	Third // that a single MZI does not have
	states
)

func (s State) String() string { return [...]string{"bar", "cross", "third"}[s] }

// Element is what the states of a node do. An MZI has two; Third is None then.
type Element [states]Pairing

// does returns the state with a pairing.
func (e Element) does(p Pairing) (State, bool) {
	for s, have := range e {
		if have == p && p != None {
			return State(s), true
		}
	}
	return Bar, false
}

// Layout says what the node of a grid at a row and column can do.
type Layout func(row, column int) Element

// Alternate turns every other MZI a quarter, so that light can go round: bar is straight, and cross falls where row
// and column together are even and rises where they are odd.
func Alternate(row, column int) Element {
	if (row+column)%2 == 0 {
		return Element{Straight, Falling, None}
	}
	return Element{Straight, Rising, None}
}

// Uniform has all MZIs stand alike: light goes right and down, or left and up, and never turns between these.
func Uniform(_, _ int) Element { return Element{Straight, Falling, None} }

// Free has nodes that join their waveguides in any of the three ways, and so are more than one MZI.
func Free(_, _ int) Element { return Element{Straight, Falling, Rising} }

// Layouts are the names that ParseLayout reads.
var Layouts = []string{"alternate", "uniform", "free"}

// ParseLayout reads the name of a layout. The error matches pccl.ErrArgument.
func ParseLayout(name string) (Layout, error) {
	switch name {
	case "alternate":
		return Alternate, nil
	case "uniform":
		return Uniform, nil
	case "free":
		return Free, nil
	}
	return nil, fmt.Errorf("layout %q: %w: want alternate, uniform or free", name, pccl.ErrArgument)
}

// Setting is all that a mesh is set to.
type Setting struct {
	States []State // by node
	Taps   []Tap
}

// Tap is a resonator at a node that is on.
type Tap struct {
	Node       int
	Side       Side // the waveguide that it is on
	Wavelength int
	// Adds: it puts light of a source onto the waveguide, away from the node. Otherwise it takes what
	// comes to the node, before the MZI.
	Adds bool
}

// Conflict is a node whose MZI cannot do what circuits want of it.
type Conflict struct {
	Node     int
	Circuits []int // by request
	// Wants is what they want of it: one pairing that it cannot do, or several at once.
	Wants []Pairing
}

func (c Conflict) String() string {
	if len(c.Wants) == 1 {
		return fmt.Sprintf("node %d cannot be %v, as circuits %v want", c.Node, c.Wants[0], c.Circuits)
	}
	return fmt.Sprintf("node %d cannot be %v at once, as circuits %v want", c.Node, c.Wants, c.Circuits)
}
