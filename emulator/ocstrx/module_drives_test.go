package ocstrx

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestSolve ensures that the phases which are looked for solve the problem, with all of the
// coupling, and that elements which are not free stay on their turn of the fringe.
func TestSolve(t *testing.T) {
	t.Parallel()
	for seed := range uint64(50) {
		b := readyBench(t, seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		for round := range 3 {
			s := &b.solver
			var want [ocst.Elements]float64
			var free [ocst.Elements]bool
			before := s.own
			for i := range want {
				free[i] = round == 0 || rng.IntN(2) == 0
				want[i] = target(b.states[i])
				if free[i] {
					want[i] = target(rng.IntN(2) == 0)
				}
				b.states[i] = want[i] == 0
			}
			s.solve(&want, &free)
			for i, d := range s.own {
				phase := s.fits[i].Phase0 + d
				for j, g := range s.coupling[i] {
					phase += g * math.Abs(s.own[j])
				}
				if off := math.Remainder(phase-want[i], 2*math.Pi); math.Abs(off) > 1e-4 && s.reaches(i, d, ocst.DACFull) && s.reaches(i, -d, ocst.DACFull) {
					t.Fatalf("seed %d: %v is %.2g rad off with %.3f rad of its own", seed, ocst.Element(i), off, d)
				}
				if !free[i] && math.Abs(d-before[i]) > 2 && s.reaches(i, before[i], ocst.DACFull) && math.Abs(before[i]) < 3 {
					t.Fatalf("seed %d: %v carries light, and goes from %.3f to %.3f rad", seed, ocst.Element(i), before[i], d)
				}
			}
		}
	}
}

// TestFitsAt ensures that fits are on the line between points, and not far beyond them.
func TestFitsAt(t *testing.T) {
	t.Parallel()
	table := &ocst.Table{Points: make([]ocst.Point, 2)}
	for i := range table.Points {
		table.Points[i].Celsius = 30 + 20*float64(i)
		// From 3.0 to -3.0 the shorter way is through π.
		table.Points[i].Elements[5] = ocst.Fit{Phase0: 3 - 6*float64(i), A: ocst.Arm{Slope: 1 + float64(i)}}
	}
	turn := 2*math.Pi - 6
	var fits [ocst.Elements]ocst.Fit
	for celsius, x := range map[float64]float64{30: 0, 35: .25, 50: 1, 60: 1.5, 20: -.5, 100: 2, -40: -1} {
		fitsAt(table, celsius, &fits)
		if f := fits[5]; math.Abs(f.Phase0-3-x*turn) > 1e-12 || math.Abs(f.A.Slope-1-x) > 1e-12 {
			t.Errorf("%g °C: %+v, want phase %.4f, slope %.2f", celsius, f, 3+x*turn, 1+x)
		}
	}
	table.Points = table.Points[:1]
	if fitsAt(table, 80, &fits); fits[5] != table.Points[0].Elements[5] {
		t.Errorf("of one point: %+v", fits[5])
	}
}

// TestOverdriveRoom ensures that overdrive leaves the lead network room below the converter's
// end for all of the step that it makes, and that it brings the element where it must be.
func TestOverdriveRoom(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(20) {
		b := readyBench(t, seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		for e := range ocst.Element(ocst.Elements) {
			f := &b.solver.fits[e]
			for range 20 {
				from, to := ocst.DriveOf(3.2*rng.Float64(), rng.IntN(2) == 0), ocst.DriveOf(3.2*rng.Float64(), rng.IntN(2) == 0)
				d, long, ok := b.overdrive(e, from, to)
				if !ok {
					continue
				}
				found++
				_, fromB := from.Code()
				_, nowB := d.Code()
				v2 := func(d ocst.Drive) float64 { return d.Volts() * d.Volts() }
				step := v2(d) - v2(from)
				if fromB != nowB {
					step = v2(d) + v2(from)
				}
				if most := v2(d) + b.lead()*step; most > fullV2*1.001 {
					t.Fatalf("%v from %v to %v: %v wants %.3f V² for the lead network, and there are %.3f", e, from, to, d, most, fullV2)
				}
				end, d1, d2 := f.Own(d), f.Own(from), f.Own(to)
				if got := end + (d1-end)*math.Exp(-float64(long)/float64(b.p.Tau)); math.Abs(got-d2) > 2e-3 {
					t.Fatalf("%v from %v to %v: at %.4f rad after %v, want %.4f", e, from, to, got, long, d2)
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d changes were overdriven", found)
	}
}
