package mzi

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

const (
	// settle is the time between a step of a sweep and a reading: two and a half time
	// constants of the substrate, which has 5 % of the phase. What it lags behind then is half
	// a milliradian, and the same in all of a sweep.
	settle = 2500 * time.Microsecond
	// finePoints and coarsePoints are what a sweep has of points, finePer and coarsePer
	// of readings at each.
	finePoints, finePer     = 64, 3
	coarsePoints, coarsePer = 24, 2
	// relativeNoise is that of a reading [A]; what there is in the dark is measured.
	relativeNoise = 0.003
	leastFloor    = 0.3  // µW: half a step of the converter
	singleFloor   = 1.25 // µW: of one reading [A], where it was not measured
	// darkLight is the power below which there is no light to calibrate with, µW.
	darkLight = 20
	// erReadings are averaged to measure an extinction ratio.
	erReadings = 64
	// toggleReadings are those where two means are subtracted.
	toggleReadings = 256
)

// term is a photodiode with a weight, group a sum of them.
type term struct {
	array, lane int
	weight      float64
}

type group []term

func (g group) of(p *Powers) (sum float64) {
	for _, t := range g {
		sum += t.weight * p[t.array][t.lane]
	}
	return sum
}

// variance is that of a sum when n readings were averaged.
func (s *Session) variance(g group, p *Powers, n int) (sum float64) {
	for _, t := range g {
		relative, floor := relativeNoise*p[t.array][t.lane], max(s.floor[t.array][t.lane], leastFloor)
		sum += t.weight * t.weight * (relative*relative + floor*floor)
	}
	return sum / float64(n)
}

// view is where the light of an element is seen.
type view struct {
	lane       int   // lit
	bar, cross group // at the outputs of either state
	which      arrays
}

// reading is one point of a sweep.
type reading struct {
	v2     float64
	powers Powers
}

// powers reads n times, less the dark.
func (s *Session) powers(ctx context.Context, n int, which arrays) (Powers, error) {
	p, err := s.readings(ctx, n, which)
	for i := range p {
		if which == loopOnly && i != ocst.PDRxLoop && i != ocst.PDLaunched {
			continue
		}
		for lane := range p[i] {
			p[i][lane] -= s.dark[i][lane]
		}
	}
	return p, err
}

// sweepDrive is the drive of point k of n: V² goes evenly from full range of arm B over none
// to full range of arm A, so that the substrate follows without jumps.
func sweepDrive(k, n int) ocst.Drive {
	u := (2*float64(k)/float64(n-1) - 1) * ocst.DACFull * ocst.DACFull
	return ocst.DriveOf(math.Sqrt(math.Abs(u)), u < 0)
}

func signedV2(d ocst.Drive) float64 {
	u := d.Volts() * d.Volts()
	if _, armB := d.Code(); armB {
		return -u
	}
	return u
}

// run sweeps an element and reads. The element is left where it was.
func (s *Session) run(ctx context.Context, e ocst.Element, v view, points, per int) (list []reading, bends [2]bend, currents armCurrents, err error) {
	before := s.Drives()[e]
	for k := range points {
		d := sweepDrive(k, points)
		if err := s.Heat(ctx, e, d); err != nil {
			return nil, bends, currents, err
		}
		wait := settle
		if k == 0 {
			wait *= 2 // it came from somewhere else
		}
		if err := s.Wait(ctx, wait); err != nil {
			return nil, bends, currents, err
		}
		p, err := s.powers(ctx, per, v.which)
		if err != nil {
			return nil, bends, currents, err
		}
		list = append(list, reading{signedV2(d), p})
		if points < finePoints || k%4 != 1 {
			continue
		}
		_, armB := d.Code()
		arm := 0
		if armB {
			arm = 1
		}
		i, err := s.current(ctx, e, arm)
		if err != nil {
			return nil, bends, currents, err
		}
		currents[arm] = append(currents[arm], current{d.Volts(), i})
	}
	if err := s.Heat(ctx, e, before); err != nil {
		return nil, bends, currents, err
	}
	return list, bends, currents, s.Wait(ctx, settle)
}

// sweep runs a sweep and fits it. fine ones have more points, and look at the currents.
func (s *Session) sweep(ctx context.Context, e ocst.Element, v view, fine bool) (SweepFit, error) {
	f := SweepFit{Element: e}
	points, per := coarsePoints, coarsePer
	if fine {
		points, per = finePoints, finePer
	}
	var err error
	if f.Celsius, err = s.Temperature(ctx); err != nil {
		return f, err
	}
	list, _, currents, err := s.run(ctx, e, v, points, per)
	if err != nil {
		return f, err
	}
	bends := [2]bend{designBend, designBend}
	if fine {
		bends = currents.check(&f)
	}
	s.judge(&f, v, list)
	f.fit(s.measured(v, list, per), bends)
	if fine {
		f.PPi = currents.powerPi(f.Fit)
	}
	return f, nil
}

// judge looks at what single photodiodes say before anything is fitted.
func (s *Session) judge(f *SweepFit, v view, list []reading) {
	sum := 0.0
	for _, r := range list {
		sum += v.bar.of(&r.powers) + v.cross.of(&r.powers)
	}
	sum /= float64(len(list))
	for _, g := range [...]group{v.bar, v.cross} {
		for _, t := range g {
			f.flaws("photodiode "+diodeName(t.array, t.lane), len(list), func(i int) float64 { return list[i].powers[t.array][t.lane] })
		}
	}
	if v.which == loopOnly {
		return
	}
	// With one lane lit, no other lane's taps see light.
	for _, array := range [...]int{ocst.PDOut1, ocst.PDOut2, ocst.PDLoopTap} {
		for lane := range ocst.Lanes {
			if lane == v.lane {
				continue
			}
			most := 0.0
			for _, r := range list {
				most = max(most, r.powers[array][lane])
			}
			if most > sum/10 {
				f.problem("with lane %d lit alone, photodiode %s sees its light: taps are swapped", v.lane+1, diodeName(array, lane))
			}
		}
	}
}

func diodeName(array, lane int) string {
	names := [...]string{"towards fibre 1", "towards fibre 2", "into the loop", "from fibre 1", "from fibre 2", "from the loop", "at the modulator"}
	return fmt.Sprintf("%s of lane %d", names[array], lane+1)
}

// measured are the two sides of a sweep.
func (s *Session) measured(v view, list []reading, per int) []Pair {
	pairs := make([]Pair, len(list))
	for i, r := range list {
		pairs[i] = Pair{
			V2: r.v2, Bar: v.bar.of(&r.powers), Cross: v.cross.of(&r.powers), Launched: r.powers[ocst.PDLaunched][v.lane],
			BarSigma: math.Sqrt(s.variance(v.bar, &r.powers, per)), CrossSigma: math.Sqrt(s.variance(v.cross, &r.powers, per)),
		}
	}
	return pairs
}

type current struct{ volts, micro float64 }

// armCurrents are those seen in a sweep, of arms A and B.
type armCurrents [2][]current

// check names broken heaters, and returns how the resistance bends.
func (c armCurrents) check(f *SweepFit) (bends [2]bend) {
	for arm, list := range c {
		bends[arm] = designBend
		var n, x, y, xx, xy float64
		for _, i := range list {
			if i.volts < 1 {
				continue
			}
			switch ohms := i.volts / (i.micro * 1e-6); {
			case i.micro < 50:
				f.problem("the heater of arm %c is open: no current at %.1f V", 'A'+arm, i.volts)
				return bends
			case ohms < nominalOhms/4:
				f.problem("the heater of arm %c is short: %.0f Ω", 'A'+arm, ohms)
				return bends
			default:
				u := i.volts * i.volts
				n, x, y, xx, xy = n+1, x+u, y+ohms, xx+u*u, xy+u*ohms
			}
		}
		if n < 4 {
			continue
		}
		rise := (n*xy - x*y) / (n*xx - x*x)
		cold := (y - rise*x) / n
		// Per V²; the nominal slope makes it per radian, which is as good as it is needed.
		bent := rise / cold / (math.Pi / (0.022 * cold))
		if bent > -0.01 && bent < 0.05 {
			bends[arm] = bend{bent, 0.001}
		}
	}
	return bends
}

// powerPi is the electrical power in mW for π of either arm.
func (c armCurrents) powerPi(f ocst.Fit) (p [2]float64) {
	for arm, list := range c {
		power, phase := 0.0, 0.0
		for _, i := range list {
			d := f.A.Phase(i.volts)
			if arm == 1 {
				d = f.B.Phase(i.volts)
			}
			power += i.volts * i.micro * 1e-3
			phase += d
		}
		if phase > 0 {
			p[arm] = power / phase * math.Pi
		}
	}
	return p
}

// extinction measures the ratio between two groups in dB, the leak no less than what the
// readings can tell from none.
func (s *Session) extinction(ctx context.Context, bright, dark group, which arrays) (float64, error) {
	p, err := s.powers(ctx, erReadings, which)
	if err != nil {
		return 0, err
	}
	return ratioDB(bright.of(&p), max(dark.of(&p), math.Sqrt(s.variance(dark, &p, erReadings)))), nil
}
