package ocstrx

import (
	"math"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// mzi is one Mach-Zehnder element: two couplers, and two arms between them. With the phase
// difference Δ, and fields at inputs 0 and 1, what comes out is
//
//	out0 = (t1·t2·a·e - k1·k2·b/e)·in0 + i(k1·t2·a·e + t1·k2·b/e)·in1
//	out1 = i(t1·k2·a·e + k1·t2·b/e)·in0 + (t1·t2·b/e - k1·k2·a·e)·in1,   e = exp(iΔ/2)
//
// where k² is the power that a coupler takes across, t² what it leaves, a and b the fields
// that the arms let through.
type mzi struct {
	kappa1, kappa2 float64
	a, b           float64 // with the loss of the element
	// Powers from input 0: bar - swing·cosΔ and cross + swing·cosΔ.
	bar, cross, swing float64
}

// newMZI returns an element with a loss and the arms' difference of it (a positive one is
// more in arm A) in dB.
func newMZI(kappa1, kappa2, loss, imbalance float64) mzi {
	m := mzi{
		kappa1: kappa1, kappa2: kappa2,
		a: math.Pow(10, -(loss+imbalance/2)/20), b: math.Pow(10, -(loss-imbalance/2)/20),
	}
	a2, b2 := m.a*m.a, m.b*m.b
	m.bar = (1-kappa1)*(1-kappa2)*a2 + kappa1*kappa2*b2
	m.cross = (1-kappa1)*kappa2*a2 + kappa1*(1-kappa2)*b2
	m.swing = 2 * math.Sqrt(kappa1*kappa2*(1-kappa1)*(1-kappa2)) * m.a * m.b
	return m
}

// powers returns the shares of the light at input 0 that come out at outputs 0 and 1.
func (m *mzi) powers(phase float64) (bar, cross float64) {
	s := m.swing * math.Cos(phase)
	return m.bar - s, m.cross + s
}

// matrix is what an element does to fields: [output][input].
type matrix [2][2]complex128

// fields returns the element's matrix; common is the phase that both arms have.
func (m *mzi) fields(phase, common float64) matrix {
	t1, t2, k1, k2 := math.Sqrt(1-m.kappa1), math.Sqrt(1-m.kappa2), math.Sqrt(m.kappa1), math.Sqrt(m.kappa2)
	sin, cos := math.Sincos(phase / 2)
	s, c := math.Sincos(common)
	turn := complex(c, s)
	p, q := t1*t2*m.a, k1*k2*m.b
	r, u := t1*t2*m.b, k1*k2*m.a
	v, w := t1*k2*m.a, k1*t2*m.b
	x, y := k1*t2*m.a, t1*k2*m.b
	return matrix{
		{turn * complex((p-q)*cos, (p+q)*sin), turn * complex(-(x-y)*sin, (x+y)*cos)},
		{turn * complex(-(v-w)*sin, (v+w)*cos), turn * complex((r-u)*cos, -(r+u)*sin)},
	}
}

// extinction returns the ratio in dB between what comes out where it belongs and at the
// other output, in the bar and the cross state at their best: what couplers and arms allow.
// Of an element in the loop network it is the worse of both inputs.
func (m *mzi) extinction(inputs int) (bar, cross float64) {
	ratio := func(bar0, cross0 float64) (float64, float64) {
		return 10 * math.Log10((bar0+m.swing)/max(cross0-m.swing, 1e-12)),
			10 * math.Log10((cross0+m.swing)/max(bar0-m.swing, 1e-12))
	}
	bar, cross = ratio(m.bar, m.cross)
	if inputs == 2 {
		a2, b2 := m.a*m.a, m.b*m.b
		b, c := ratio((1-m.kappa1)*(1-m.kappa2)*b2+m.kappa1*m.kappa2*a2, m.kappa1*(1-m.kappa2)*a2+(1-m.kappa1)*m.kappa2*b2)
		bar, cross = min(bar, b), min(cross, c)
	}
	return bar, cross
}

// loopNetwork is how the twenty elements are joined.
type loopNetwork struct {
	// next is the input of the next column that an output leads to; inputs and outputs are
	// 2·row + number. Behind the last column it is the receiver.
	next [ocst.Columns][ocst.Lanes]uint8
	// guide is what the waveguide from an output on does to a field: its length, which is
	// arbitrary, and the others that it crosses.
	guide [ocst.Columns][ocst.Lanes]complex128
}

// newLoopNetwork joins the elements as ocst.States says; phase gives the lengths of the
// waveguides in radians, crossing is the loss in dB where two cross.
func newLoopNetwork(crossing float64, phase func() float64) (n loopNetwork) {
	for column := range ocst.Columns {
		for out := range ocst.Lanes {
			line := ocst.Line(column, out/2, out%2)
			n.next[column][out] = uint8(line)
			if column+1 < ocst.Columns {
				row, input := ocst.Wire(column+1, line)
				n.next[column][out] = uint8(2*row + input)
			}
		}
		for out, to := range n.next[column] {
			crossed := 0
			for other, place := range n.next[column] {
				if (other < out) != (place < to) && other != out {
					crossed++
				}
			}
			amplitude := math.Pow(10, -crossing*float64(crossed)/20)
			sin, cos := math.Sincos(phase())
			n.guide[column][out] = complex(amplitude*cos, amplitude*sin)
		}
	}
	return n
}

// loopPowers finds the powers at the receivers from those that enter the loop network. The
// light of one lane interferes with itself, that of two lanes does not.
func (c *chip) loopPowers(in, out *[ocst.Lanes]float64) {
	var elements [ocst.Columns][ocst.Rows]matrix
	for column := range ocst.Columns {
		for row := range ocst.Rows {
			e := int(ocst.Loop(column, row))
			common := c.slow.heat * c.heaters.heat[e+ocst.Reach] / 2
			m := c.elements[e].fields(c.phase(e), common)
			for o := range m {
				g := c.loop.guide[column][2*row+o]
				m[o][0] *= g
				m[o][1] *= g
			}
			elements[column][row] = m
		}
	}
	for lane, mw := range in {
		if mw <= 0 {
			continue
		}
		// The way to element (0, lane/2) is straight.
		var field [ocst.Lanes]complex128
		field[lane] = complex(math.Sqrt(mw*c.tapped), 0)
		for column := range ocst.Columns {
			var next [ocst.Lanes]complex128
			to := &c.loop.next[column]
			for row := range ocst.Rows {
				a, b := field[2*row], field[2*row+1]
				if a == 0 && b == 0 {
					continue
				}
				m := &elements[column][row]
				next[to[2*row]] = m[0][0]*a + m[0][1]*b
				next[to[2*row+1]] = m[1][0]*a + m[1][1]*b
			}
			field = next
		}
		for i, f := range field {
			out[i] += real(f)*real(f) + imag(f)*imag(f)
		}
	}
}
