package ocst

import (
	"fmt"
)

// The elements of a module: two for each lane, which choose where its light goes, and
// twenty that make the loop network, a Beneš network of five columns of four.
const (
	Lanes    = 8
	Columns  = 5
	Rows     = Lanes / 2
	Elements = 2*Lanes + Columns*Rows
)

// Element is a Mach-Zehnder switch element of the module, from 0 to Elements-1.
type Element int

// S1 is the element that sends the light of a lane out of the module (bar) or into the
// loop network (cross). Lanes count from 0.
func S1(lane int) Element { return Element(lane) }

// S2 is the element that sends the outgoing light of a lane into fibre 1 (bar) or fibre 2
// (cross).
func S2(lane int) Element { return Element(Lanes + lane) }

// Loop is an element of the loop network, by column from its input side and row.
func Loop(column, row int) Element { return Element(2*Lanes + Rows*column + row) }

// IsLoop returns the place of an element in the loop network.
func (e Element) IsLoop() (column, row int, ok bool) {
	if e < 2*Lanes || e >= Elements {
		return 0, 0, false
	}
	n := int(e) - 2*Lanes
	return n / Rows, n % Rows, true
}

// String names the element: "S1 of lane 3", "S2 of lane 3" or "loop element 2.4", which is
// row 4 of column 2. People count from 1.
func (e Element) String() string {
	column, row, loop := e.IsLoop()
	switch {
	case loop:
		return fmt.Sprintf("loop element %d.%d", column+1, row+1)
	case e >= 0 && e < Lanes:
		return fmt.Sprintf("S1 of lane %d", e+1)
	case e >= Lanes && e < 2*Lanes:
		return fmt.Sprintf("S2 of lane %d", e-Lanes+1)
	}
	return fmt.Sprintf("element %d, which is not there", int(e))
}

// Permutation says to which lane's receiver the loop network takes the light of each lane.
type Permutation [Lanes]uint8

// DefaultPermutation joins the lower four lanes with the upper four, both ways.
func DefaultPermutation() Permutation { return Permutation{4, 5, 6, 7, 0, 1, 2, 3} }

// Check returns an error unless every lane is a destination once.
func (p Permutation) Check() error {
	var seen [Lanes]bool
	for lane, to := range p {
		if to >= Lanes {
			return fmt.Errorf("loop permutation: lane %d would go to lane %d, and there are %d", lane+1, int(to)+1, Lanes)
		}
		if seen[to] {
			return fmt.Errorf("loop permutation: two lanes would go to lane %d", int(to)+1)
		}
		seen[to] = true
	}
	return nil
}

// Inverse returns where the light at each receiver comes from. That means something only
// if p passes Check.
func (p Permutation) Inverse() (q Permutation) {
	for lane, to := range p {
		if to < Lanes {
			q[to] = uint8(lane)
		}
	}
	return q
}

// Complete returns a permutation that takes the lanes given to where they belong, and every
// other lane somewhere: to where p takes it if that is free. Lanes are negative where it does
// not matter.
func (p Permutation) Complete(want [Lanes]int) (Permutation, error) {
	var out Permutation
	var taken, done [Lanes]bool
	for lane, to := range want {
		switch {
		case to < 0:
			continue
		case to >= Lanes || taken[to]:
			return p, fmt.Errorf("loop permutation: lane %d cannot go to lane %d", lane+1, to+1)
		}
		out[lane], taken[to], done[lane] = uint8(to), true, true
	}
	for lane, to := range p {
		if !done[lane] && to < Lanes && !taken[to] {
			out[lane], taken[to], done[lane] = to, true, true
		}
	}
	free := 0
	for lane := range out {
		if done[lane] {
			continue
		}
		for taken[free] {
			free++
		}
		out[lane], taken[free] = uint8(free), true
	}
	return out, nil
}

// States says of each element of the loop network, by column and row, whether it is in the
// cross state.
//
// The wiring: inputs 2r and 2r+1 enter row r of column 0. Output 0 of that element goes to
// input r of the upper 4x4 network, output 1 to input r of the lower one. In the same way
// the upper network is rows 0 and 1 of columns 1 to 3, the lower rows 2 and 3, with the two
// elements of column 2 of each as its upper and lower 2x2 network. Column 4 mirrors column
// 0: its row r takes output r of the upper network at input 0, output r of the lower one at
// input 1, and leads to receivers 2r and 2r+1. Bar joins input 0 to output 0.
type States [Columns][Rows]bool

// Route sets the elements so that the network takes each lane where p says. It is the
// looping algorithm of Opferman and Tsao-Wu (Bell System Technical Journal 50, 1971): every
// permutation can be routed, in general in several ways; the one taken leaves the upper
// element of each loop in the bar state.
func Route(p Permutation) (States, error) {
	var s States
	if err := p.Check(); err != nil {
		return s, err
	}
	outer, upper, lower := loop(p[:])
	for r := range Rows {
		s[0][r], s[4][r] = outer[0][r], outer[1][r]
	}
	for half, q := range [][]uint8{upper, lower} {
		mid, up, low := loop(q)
		for r := range 2 {
			s[1][2*half+r], s[3][2*half+r] = mid[0][r], mid[1][r]
		}
		s[2][2*half] = up[0] == 1
		s[2][2*half+1] = low[0] == 1
	}
	return s, nil
}

// loop chooses the states of the first and the last column of a Beneš network, and what is
// left for its two halves to do.
func loop(p []uint8) (column [2][]bool, upper, lower []uint8) {
	n := len(p)
	inverse := make([]int, n)
	for i, to := range p {
		inverse[to] = i
	}
	column = [2][]bool{make([]bool, n/2), make([]bool, n/2)}
	upper, lower = make([]uint8, n/2), make([]uint8, n/2)
	routed := make([]bool, n/2)
	for first := range routed {
		// Input in goes through the upper half; the other input of the element at its
		// output then through the lower, the partner of that through the upper again.
		for in := 2 * first; !routed[in/2]; {
			routed[in/2] = true
			out := int(p[in])
			column[0][in/2] = in%2 == 1
			column[1][out/2] = out%2 == 1
			upper[in/2] = uint8(out / 2)
			back := inverse[out^1] // reaches the same last element, by the lower half
			lower[back/2] = uint8(out / 2)
			in = back ^ 1
		}
	}
	return column, upper, lower
}

// Follow returns where a lane's light goes in a network set as s, and the elements that it
// passes, one of each column. Of a lane that is not there the receiver is -1.
func (s States) Follow(lane int) (receiver int, passed [Columns]Element) {
	if lane < 0 || lane >= Lanes {
		return -1, passed
	}
	at := lane
	for column := range Columns {
		row, input := Wire(column, at)
		passed[column] = Loop(column, row)
		output := input
		if s[column][row] {
			output = 1 - input
		}
		at = Line(column, row, output)
	}
	return at, passed
}

// Wire returns which element of a column a line leads to, and at which of its inputs. Lines
// are numbered from 0 to 7 as [Line] numbers the outputs of the column before; before
// column 0 they are the lanes.
func Wire(column, line int) (row, input int) {
	switch column {
	case 4: // outputs r of the halves
		return line % 4, line / 4
	case 3: // outputs of the two quarters of a half
		return line/4*2 + line%2, line % 4 / 2
	}
	return line / 2, line % 2
}

// Line returns the number of the line at an output of an element. Behind the last column
// these are the receivers.
func Line(column, row, output int) int {
	switch column {
	case 0: // row r feeds input r of the upper or lower half
		return 4*output + row
	case 1: // within a half, row r feeds input r of one of its quarters
		return row/2*4 + 2*output + row%2
	case 2:
		return row/2*4 + row%2*2 + output
	case 3: // row r of a half has its outputs 2r and 2r+1
		return row/2*4 + row%2*2 + output
	}
	return 2*row + output
}
