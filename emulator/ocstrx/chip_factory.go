package ocstrx

import (
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// What a factory gets wrong, as standard deviations: phases in radians, the heaters' slope
// and the coupling relative to what they are.
const (
	factoryPhase    = 1e-3
	factorySlope    = 2e-4
	factoryCoupling = 5e-3
)

// factoryCelsius are the case temperatures at which a factory calibrates.
var factoryCelsius = [ocst.MaxPoints]float64{25, 45, 65}

// factoryTable returns the calibration table that a good factory would have given to the
// module: the truth when it was made, with small errors that belong to the seed. Its
// verification is computed, and has passed whatever it says.
func (c *chip) factoryTable(serial string, made time.Time) *ocst.Table {
	s := stream(c.seed, "factory")
	t := &ocst.Table{Serial: serial, Version: 1, Made: made}
	for _, celsius := range factoryCelsius {
		dt := celsius - c.params.Reference
		phase0 := c.phase0
		for e := range phase0 {
			phase0[e] += c.ambient[e] * dt
		}
		truth := c.truthAt(&phase0, 1/(1+c.params.TCR*dt))
		p := ocst.Point{Celsius: celsius}
		for e := range p.Elements {
			f := truth.Fit(ocst.Element(e))
			f.Phase0 = wrap(f.Phase0 + s.normal(0, factoryPhase))
			f.A.Slope *= s.normal(1, factorySlope)
			f.B.Slope *= s.normal(1, factorySlope)
			p.Elements[e] = f
		}
		t.Points = append(t.Points, p)
	}
	truth := c.truthAt(&c.phase0, 1)
	for i, row := range truth.Coupling {
		for j, g := range row {
			if g != 0 {
				t.Coupling[i][j] = g * s.normal(1, factoryCoupling)
			}
		}
	}
	for array := range t.Dark {
		for lane, v := range truth.Dark[array] {
			t.Dark[array][lane] = uint16(math.Round(v))
		}
	}
	t.Verified = c.verified()
	return t
}

// verified is the verification of a module whose elements are all in their states.
func (c *chip) verified() ocst.Verification {
	v := ocst.Verification{Pass: true}
	for i := range v.Paths {
		v.Paths[i].Isolation = math.Inf(1)
	}
	note := func(path ocst.Path, in, out, other float64) {
		p := &v.Paths[path-ocst.Path1]
		p.Loss = max(p.Loss, -10*math.Log10(out/in))
		p.Isolation = min(p.Isolation, 10*math.Log10(out/max(other, 1e-12)))
	}
	routed, _ := ocst.Route(ocst.DefaultPermutation()) // which is a permutation
	for lane := range ocst.Lanes {
		s1, s2 := &c.elements[ocst.S1(lane)], &c.elements[ocst.S2(lane)]
		ext, leak := s1.powers(math.Pi)
		bar, other := s2.powers(math.Pi)
		note(ocst.Path1, 1, ext*bar, max(ext*other, leak))
		other, cross := s2.powers(0)
		note(ocst.Path2, 1, ext*cross, max(ext*other, leak))
		leak, loop := s1.powers(0)
		through := 1.0
		_, passed := routed.Follow(lane)
		for _, e := range passed {
			m := &c.elements[e]
			through *= (m.a*m.a + m.b*m.b) / 2
		}
		note(ocst.LoopPath, 1, loop*through*c.tapped, leak*max(bar, cross)*through*c.tapped)
	}
	// A swing of π takes 1.36 τ from 10 to 90 % of the light, and 3.33 τ to -25 dB.
	for i := range v.Changes {
		v.Changes[i].Rise = time.Duration(1.36 * float64(c.params.Tau))
		v.Changes[i].Settle = time.Duration(3.33 * float64(c.params.Tau))
	}
	return v
}
