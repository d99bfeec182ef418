package model

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/topology/railx"
)

// Errors of this package. Test with errors.Is; their texts say what would work.
var (
	// ErrArgument: a size, time or bandwidth that cannot be.
	ErrArgument = errors.New("the argument is not right")
	// ErrRoute: a pair of nodes that the routing has no way for.
	ErrRoute = errors.New("no route")
	// ErrDeadlock: channels that wait for each other in a circle.
	ErrDeadlock = errors.New("the routes can deadlock")
)

// Size is a whole RailX: as many nodes as its switches have ports for. How many nodes, chips and switches that are
// (equation 1) say [railx.Full] and [railx.Grid.Counts].
type Size struct {
	Radix int // duplex ports of a switch: even, from 2 to 4096
	Mesh  int // m: chips along each side of a node, from 1 to 256
	Lanes int // n: optical ports at each side of a chip at the edge, from 1 to 256
}

// Grid returns it as a grid.
func (s Size) Grid() (railx.Grid, error) { return railx.Full(s.Radix, s.Mesh, s.Lanes) }

// Check returns an error that matches [ErrArgument] if there is no such size. All other methods want one that there is:
// then nothing overflows.
func (s Size) Check() error {
	switch {
	case s.Radix < 2 || s.Radix > 4096 || s.Radix%2 != 0:
		return fmt.Errorf("%w: switches of %d duplex ports: want an even number from 2 to 4096, since a node has two on each", ErrArgument, s.Radix)
	case s.Mesh < 1 || s.Mesh > 256 || s.Lanes < 1 || s.Lanes > 256:
		return fmt.Errorf("%w: nodes of %d x %d chips with %d ports at an edge: want 1 to 256 of each", ErrArgument, s.Mesh, s.Mesh, s.Lanes)
	}
	return nil
}

// Rails returns r, how many rails a node has in each dimension.
func (s Size) Rails() int { return s.Mesh * s.Lanes }

// Torus returns the all-to-all throughput of a chip on the torus of all nodes, in ports: equation (2).
func (s Size) Torus() float64 { return 16 * float64(s.Lanes) / float64(s.Radix*s.Mesh) }

// HyperX returns that of all-to-all rows and columns of r+1 nodes: equation (3), not rounded to 2n/m.
func (s Size) HyperX() float64 { return 2 * float64(s.Rails()+1) / float64(s.Mesh*s.Mesh) }

// Dragonfly returns that of columns as groups of r+1 nodes, which rows join all-to-all: equation (4).
func (s Size) Dragonfly() float64 { return 2 * float64(s.Lanes) / float64(s.Mesh) }

// HyperXNodes and DragonflyGroups return how many nodes a side of the HyperX has, and how many groups of r+1 nodes the
// Dragonfly: as many as rails join, and as switches have ports for.
func (s Size) HyperXNodes() int     { return min(s.Rails()+1, s.Radix/2) }
func (s Size) DragonflyGroups() int { return min(s.Rails()*(s.Rails()+1)+1, s.Radix/2) }

// TorusDiameter returns the most hops between nodes on the torus of all nodes.
func (s Size) TorusDiameter() int { return 2 * (s.Radix / 2 / 2) }

// Diameters of the others, hops between nodes (table 2).
const (
	HyperXDiameter    = 2
	DragonflyDiameter = 3
)

// HyperXHops returns the most hops from chip to chip on the HyperX: 2 optical ones, and 5m-6 in meshes (section 4.1); for
// m = 1 none.
func (s Size) HyperXHops() (optical, mesh int) { return HyperXDiameter, meshHops(s.Mesh) }

func meshHops(m int) int { return max(5*m-6, 0) }

// KappaNeeded is how many times n ports a link of the mesh must carry lest it limits all-to-all (equation 5): 2·kappa·m·n
// links of the bisection against 4·m·n ports.
const KappaNeeded = 2
