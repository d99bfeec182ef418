package mesh

import "strings"

// names are what circuits are called in pictures; later ones begin again.
const names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// Name returns what the circuit of a request, by index, is called in a picture.
func Name(circuit int) string { return string(names[circuit%len(names)]) }

// Picture draws a grid, a character a node and the name of a circuit on each of its waveguides: @ is a node at
// which a circuit ends, = one that is crossed in bar, x in cross, * in the third state, and a dot one that is not
// crossed. A waveguide with several circuits has a #. The setting may be nil: + is a node that is crossed then. Of
// what is no grid there is none.
func (m *Mesh) Picture(circuits []Circuit, set *Setting) string {
	if m.rows == 0 {
		return ""
	}
	lines := make([][]byte, 2*m.rows-1)
	for i := range lines {
		lines[i] = []byte(strings.Repeat(" ", 4*m.columns-3))
	}
	at := func(node int) *byte { return &lines[2*(node/m.columns)][4*(node%m.columns)] }
	for n := range m.Nodes() {
		*at(n) = '.'
	}
	put := func(b *byte, name byte) {
		if *b != ' ' {
			name = '#'
		}
		*b = name
	}
	for i, c := range circuits {
		m.steps(c, func(edge, node int, p Pairing) {
			a, b := m.edges[edge][0], m.edges[edge][1]
			row, column := 2*(a/m.columns), 4*(a%m.columns)
			if b == a+1 && m.columns > 1 {
				for k := 1; k <= 3; k++ {
					put(&lines[row][column+k], Name(i)[0])
				}
			} else {
				put(&lines[row+1][column], Name(i)[0])
			}
			if p != None && *at(node) == '.' {
				*at(node) = '+'
				if set != nil {
					*at(node) = "=x*"[set.States[node]]
				}
			}
		})
	}
	for _, c := range circuits {
		if len(c.Nodes) > 1 {
			*at(c.Nodes[0]), *at(c.Nodes[len(c.Nodes)-1]) = '@', '@'
		}
	}
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.TrimRight(string(l), " "))
		b.WriteByte('\n')
	}
	return b.String()
}
