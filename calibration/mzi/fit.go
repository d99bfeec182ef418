package mzi

import (
	"errors"
	"fmt"
	"math"

	"github.com/ocslab/ocslab/calibration/lm"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// SweepPoint is one measurement of a sweep.
type SweepPoint struct {
	V2    float64 `json:"v2_volt2"` // V² of arm A, -V² of arm B
	Ratio float64 `json:"ratio"`    // of the light, at the output of the bar state
	Sigma float64 `json:"sigma"`    // standard deviation expected of Ratio
}

// SweepFit is one element's sweep and what was fitted to it: the share of the light at the
// output of the bar state is
//
//	Offset - Amplitude·cos(φ),   φ = Fit.Phase0 + Fit.A.Phase(V) or - Fit.B.Phase(V)
type SweepFit struct {
	Element   ocst.Element `json:"element"`
	Points    []SweepPoint `json:"points"`
	Fit       ocst.Fit     `json:"fit"`
	Offset    float64      `json:"offset"`
	Amplitude float64      `json:"amplitude"`
	Residual  float64      `json:"residual"` // root of the mean square of measured less fitted ratio
	// Phase0Sigma is the standard deviation of Fit.Phase0, rad; StateSigma that of the
	// phase where the element is in its bar and cross state.
	Phase0Sigma float64    `json:"phase0_sigma_rad"`
	StateSigma  [2]float64 `json:"state_sigma_rad"`
	PPi         [2]float64 `json:"p_pi_mw"` // of arms A and B, from voltage and current
	Celsius     float64    `json:"temperature_celsius"`
	Problem     string     `json:"problem,omitempty"` // why it cannot be used; empty if it can
}

// Model returns the fitted ratio at a signed V².
func (f SweepFit) Model(v2 float64) float64 {
	return f.Offset - f.Amplitude*math.Cos(f.Fit.Phase0+own(f.Fit, v2))
}

// Power returns the power of the heater at a signed V², mW, negative of arm B. It is 0 when
// PPi is not known.
func (f SweepFit) Power(v2 float64) float64 {
	arm := 0
	if v2 < 0 {
		arm = 1
	}
	return own(f.Fit, v2) / math.Pi * f.PPi[arm]
}

// own is the phase from an element's own heaters at a signed V².
func own(f ocst.Fit, v2 float64) float64 {
	if v2 < 0 {
		return -(-v2) * (f.B.Slope + -v2*f.B.Curve)
	}
	return v2 * (f.A.Slope + v2*f.A.Curve)
}

// ErrRange is a state that neither arm of an element reaches.
var ErrRange = errors.New("π is beyond the range of the heaters")

// DriveFor returns the drive that takes an element to its bar or cross state when the heat
// of others gives it gained radians: of those that reach it, the one with the least phase,
// and so power. The error, if any, is ErrRange; the drive is then the one that comes next.
func DriveFor(f ocst.Fit, gained float64, cross bool) (ocst.Drive, error) {
	target := math.Pi
	if cross {
		target = 0
	}
	d := math.Remainder(target-f.Phase0-gained, 2*math.Pi) // -π to π
	other := d - math.Copysign(2*math.Pi, d)
	for _, d := range [...]float64{d, other} {
		arm, armB := f.A, false
		if d < 0 {
			arm, armB = f.B, true
		}
		if v, ok := arm.Volts(math.Abs(d)); ok {
			return ocst.DriveOf(v, armB), nil
		}
	}
	return ocst.DriveOf(ocst.DACFull, d < 0), ErrRange
}

// bend is how much the resistance of a heater rises per radian, relative, as its currents
// say, with its standard deviation: Curve is -bend·Slope².
type bend struct{ value, sigma float64 }

// designBend is that of a metal heater that rises 17 K for π at 1e-3 per K.
var designBend = bend{0.0054, 0.003}

const (
	// Slopes that are searched, rad/V²: from a heater that gives a third of π up to one that
	// gives more than two.
	slopeMin, slopeMax, slopeStep = 0.08, 0.8, 0.02
	// steady is the amplitude of a fringe below which there is none to fit.
	steady = 0.02
	// misfit is the variance of the residuals, over the one expected, from which on the
	// sweep was not of a fringe, or not of this element's alone.
	misfit = 16
)

// fringe fits offset, amplitude, phase, and slope and curve of both arms to f.Points. bends
// are those of the arms. It sets f.Problem if no fringe comes out.
func (f *SweepFit) fringe(bends [2]bend) {
	if len(f.Points) < 8 {
		f.problem("only %d points were measured", len(f.Points))
		return
	}
	p, found := f.search(bends)
	if !found {
		f.problem("no fringe was found: the light does not change with the heaters")
		return
	}
	got, err := lm.Fit(lm.Problem{Size: len(f.Points) + 2, Residuals: func(r, p []float64) {
		try := *f
		try.set(p)
		for i, pt := range f.Points {
			r[i] = (pt.Ratio - try.Model(pt.V2)) / pt.Sigma
		}
		// What the currents say of the curves, as two measurements more.
		for arm, b := range bends {
			slope, curve := p[3+2*arm], p[4+2*arm]
			r[len(f.Points)+arm] = (-curve/(slope*slope) - b.value) / b.sigma
		}
	}}, p, lm.Options{MaxIterations: 60, Step: 1e-9})
	if err != nil {
		f.problem("the fit does not begin: %v", err)
		return
	}
	f.set(got.Params)
	sum := 0.0
	for _, pt := range f.Points {
		d := pt.Ratio - f.Model(pt.V2)
		sum += d * d
	}
	f.Residual = math.Sqrt(sum / float64(len(f.Points)))
	variance := max(got.Variance(), 1)
	f.Phase0Sigma = min(got.Sigma(2, variance), math.MaxFloat32)
	switch {
	case f.Amplitude < steady:
		f.problem("no fringe was found: the light changes by %.1f %% only", 200*f.Amplitude)
	case !(f.Fit.A.Slope > 0) || !(f.Fit.B.Slope > 0):
		f.problem("an arm gains no phase from its heater: it may be open, or the arms swapped")
	case got.Variance() > misfit:
		f.problem("what was measured is %.1f times further from a fringe than noise explains: the light was not steady, or taps are swapped", math.Sqrt(got.Variance()))
	}
	f.choose()
	for i, d := range [...]ocst.Drive{f.Fit.Bar, f.Fit.Cross} {
		f.StateSigma[i] = f.phaseSigma(got, d, variance)
	}
	f.Fit.BarER = ratioDB(f.Offset+f.Amplitude, 1-f.Offset-f.Amplitude)
	f.Fit.CrossER = ratioDB(1-f.Offset+f.Amplitude, f.Offset-f.Amplitude)
}

// problem keeps the first.
func (f *SweepFit) problem(format string, args ...any) {
	if f.Problem == "" {
		f.Problem = fmt.Sprintf(format, args...)
	}
}

// set takes over parameters: offset, amplitude, phase, slope and curve of A, of B.
func (f *SweepFit) set(p []float64) {
	f.Offset, f.Amplitude, f.Fit.Phase0 = p[0], p[1], p[2]
	f.Fit.A = ocst.Arm{Slope: p[3], Curve: p[4]}
	f.Fit.B = ocst.Arm{Slope: p[5], Curve: p[6]}
	if f.Amplitude < 0 {
		f.Amplitude, f.Fit.Phase0 = -f.Amplitude, f.Fit.Phase0+math.Pi
	}
	f.Fit.Phase0 = math.Remainder(f.Fit.Phase0, 2*math.Pi)
}

// choose sets the drives of the states.
func (f *SweepFit) choose() {
	var bar, cross error
	f.Fit.Bar, bar = DriveFor(f.Fit, 0, false)
	f.Fit.Cross, cross = DriveFor(f.Fit, 0, true)
	if bar != nil || cross != nil {
		reach := f.Fit.A.Phase(ocst.DACFull) / math.Pi
		f.problem("%v: arm A gives %.2f π at most, arm B %.2f π", ErrRange, reach, f.Fit.B.Phase(ocst.DACFull)/math.Pi)
	}
}

// phaseSigma is the standard deviation of the fitted phase at a drive.
func (f *SweepFit) phaseSigma(got lm.Result, d ocst.Drive, variance float64) float64 {
	if got.Unscaled == nil {
		return math.MaxFloat32 // no number that JSON does not know
	}
	u := d.Volts() * d.Volts()
	by := [7]float64{2: 1, 3: u, 4: u * u}
	if _, armB := d.Code(); armB {
		by = [7]float64{2: 1, 5: -u, 6: -u * u}
	}
	sum := 0.0
	for i, a := range by {
		for j, b := range by {
			sum += a * b * got.Unscaled.At(i, j)
		}
	}
	return math.Sqrt(max(sum, 0) * variance)
}

// search finds a start: for given slopes offset, amplitude and phase are a linear problem.
// It looks at a grid of slopes and ratios of the two arms, then between its points.
func (f *SweepFit) search(bends [2]bend) ([]float64, bool) {
	best, slope, ratio := math.Inf(1), 0.0, 0.0
	var p []float64
	try := func(s, r float64) float64 {
		cost, q := f.linear([2]float64{s * r, s / r}, bends)
		if cost < best {
			best, slope, ratio, p = cost, s, r, q
		}
		return cost
	}
	for s := slopeMin; s <= slopeMax; s += slopeStep {
		for _, r := range [...]float64{0.93, 1, 1.07} {
			try(s, r)
		}
	}
	if p == nil {
		return nil, false
	}
	golden(slope-slopeStep, slope+slopeStep, func(s float64) float64 { return try(s, ratio) })
	golden(ratio-0.04, ratio+0.04, func(r float64) float64 { return try(slope, r) })
	return p, true
}

// golden looks for the least value of a function by golden section.
func golden(lo, hi float64, f func(float64) float64) {
	const section = 0.6180339887498949
	a, b := hi-section*(hi-lo), lo+section*(hi-lo)
	fa, fb := f(a), f(b)
	for range 12 {
		if fa < fb {
			hi, b, fb = b, a, fa
			a = hi - section*(hi-lo)
			fa = f(a)
		} else {
			lo, a, fa = a, b, fb
			b = lo + section*(hi-lo)
			fb = f(b)
		}
	}
}

// linear fits a + b·cos(d) + c·sin(d) for given slopes of the arms, and returns the weighted
// sum of squares with all parameters. A fringe that light cannot have costs infinitely much.
func (f *SweepFit) linear(slopes [2]float64, bends [2]bend) (float64, []float64) {
	fit := ocst.Fit{
		A: ocst.Arm{Slope: slopes[0], Curve: -bends[0].value * slopes[0] * slopes[0]},
		B: ocst.Arm{Slope: slopes[1], Curve: -bends[1].value * slopes[1] * slopes[1]},
	}
	var n [3][4]float64 // normal equations
	squares := 0.0
	for _, pt := range f.Points {
		sin, cos := math.Sincos(own(fit, pt.V2))
		w := 1 / (pt.Sigma * pt.Sigma)
		x := [4]float64{1, cos, sin, pt.Ratio}
		for i := range n {
			for j := i; j < 4; j++ {
				n[i][j] += w * x[i] * x[j]
			}
		}
		squares += w * pt.Ratio * pt.Ratio
	}
	n[1][0], n[2][0], n[2][1] = n[0][1], n[0][2], n[1][2]
	right := [3]float64{n[0][3], n[1][3], n[2][3]}
	for i := range n {
		for row := i + 1; row < 3; row++ {
			factor := n[row][i] / n[i][i]
			for j := i; j < 4; j++ {
				n[row][j] -= factor * n[i][j]
			}
		}
	}
	c := n[2][3] / n[2][2]
	b := (n[1][3] - n[1][2]*c) / n[1][1]
	a := (n[0][3] - n[0][1]*b - n[0][2]*c) / n[0][0]
	amplitude := math.Hypot(b, c)
	cost := squares - a*right[0] - b*right[1] - c*right[2]
	if math.IsNaN(cost) || amplitude > 0.7 || math.Abs(a-0.5) > 0.7 {
		return math.Inf(1), nil
	}
	return cost, []float64{a, amplitude, math.Atan2(c, -b), fit.A.Slope, fit.A.Curve, fit.B.Slope, fit.B.Curve}
}

// maxER is what extinction ratios are cut at, dB: noise leaves nothing beyond.
const maxER = 60

func ratioDB(bright, dark float64) float64 {
	if !(bright > 0) {
		return 0
	}
	if !(dark > bright*1e-6) {
		return maxER
	}
	return max(10*math.Log10(bright/dark), 0)
}
