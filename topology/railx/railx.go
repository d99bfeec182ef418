package railx

import (
	"errors"
	"fmt"
)

// Errors of this package. Test with errors.Is; their texts say what would work.
var (
	ErrGrid   = errors.New("no such grid")                     // sizes that cannot be, or overflow
	ErrShape  = errors.New("the shape does not fit")           // a topology that the grid or its rails cannot have
	ErrFaults = errors.New("the faults cannot be avoided")     // a fault outside of the grid, or nothing left
	ErrLink   = errors.New("the links are not those of rings") // a configuration that is damaged
)

// Grid is how nodes are arranged and cabled.
type Grid struct {
	Columns, Rows int // nodes; 1 or more
	Rails         int // in each dimension; a multiple of Mesh if that is not 0
	// Mesh is m: a node is a mesh of m by m chips, with Rails/m optical ports at each edge chip. 0 is unknown:
	// then nothing that needs chips can be asked.
	Mesh int
	// Radix is how many duplex ports a switch has; 0 is as many as needed.
	Radix int
}

// Node is a place in the grid.
type Node struct{ Column, Row int }

// String returns "(2,3)", the column first.
func (n Node) String() string { return fmt.Sprintf("(%d,%d)", n.Column, n.Row) }

// Dimension is X, along rows, or Y, along columns.
type Dimension byte

// The dimensions.
const (
	X Dimension = 'X'
	Y Dimension = 'Y'
)

// String returns "X" or "Y".
func (d Dimension) String() string { return string(rune(d)) }

// Switch is the place of an optical switch: that of a rail of a row (X) or of a column (Y).
type Switch struct {
	Dimension Dimension
	Group     int // the row of an X switch, the column of a Y switch
	Rail      int
}

// String returns "X/2/0", as in the paper.
func (s Switch) String() string { return fmt.Sprintf("%v/%d/%d", s.Dimension, s.Group, s.Rail) }

// Port is a duplex port of a switch, from 0: node v of its group has "+" at 2v and "-" at 2v+1.
type Port int

// Plus and Minus return the ports of the node with number v in its group: its column on an X switch, its row
// on a Y switch.
func Plus(v int) Port  { return Port(2 * v) }
func Minus(v int) Port { return Port(2*v + 1) }

// Node returns the number of the node in its group, and whether p is its "+".
func (p Port) Node() (v int, plus bool) { return int(p) / 2, p%2 == 0 }

// Link is a duplex circuit of a switch, from a "+" to a "-".
type Link struct{ Plus, Minus Port }

// String returns "0-3", in the numbers of duplex ports.
func (l Link) String() string { return fmt.Sprintf("%d-%d", l.Plus, l.Minus) }
