package mzi

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"gonum.org/v1/gonum/mat"
)

// What the pictures of a sweep have in common: the axis of heater power with arm B on
// its left and arm A on its right, the states, and the numbers in words.

// trace is a sweep as it is drawn.
type trace struct {
	SweepFit
	unit   string // of x
	x      []float64
	resid  []float64    // measured less fitted
	curve  [][2]float64 // the fitted ratio, over x
	states []state
}

// state is where an element is taken to.
type state struct {
	name string
	x    float64
	er   float64 // extinction ratio, dB; 0 is not known
}

// curvePoints is how finely the fitted curve is drawn.
const curvePoints = 240

// trace works out what is to be drawn. Points that are not numbers are left out; of a
// sweep that could not be fitted there are only points, over V² where power is not known.
func (f SweepFit) trace() trace {
	t := trace{SweepFit: f, unit: "heater power, mW"}
	at := f.Power
	if !(f.PPi[0] > 0 && f.PPi[1] > 0) || math.IsInf(f.PPi[0]+f.PPi[1], 0) {
		t.unit, at = "heater voltage squared, V²", func(v2 float64) float64 { return v2 }
	}
	fitted := f.Amplitude > 0 && plausible(f.Offset, f.Amplitude, f.Fit.Phase0, f.Fit.A.Slope, f.Fit.A.Curve, f.Fit.B.Slope, f.Fit.B.Curve)
	t.Points = nil
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range f.Points {
		x := at(p.V2)
		if !plausible(x, p.V2, p.Ratio) {
			continue
		}
		t.Points, t.x = append(t.Points, p), append(t.x, x)
		low, high = min(low, p.V2), max(high, p.V2)
		if fitted {
			t.resid = append(t.resid, p.Ratio-f.Model(p.V2))
		}
	}
	if !fitted || len(t.Points) == 0 {
		return t
	}
	for i := range curvePoints + 1 {
		v2 := low + (high-low)*float64(i)/curvePoints
		c := [2]float64{at(v2), f.Model(v2)}
		if !plausible(c[0], c[1]) {
			t.curve, t.resid = nil, nil
			return t
		}
		t.curve = append(t.curve, c)
	}
	if f.Problem == "" {
		t.states = []state{{"bar", at(signedV2(f.Fit.Bar)), f.Fit.BarER}, {"cross", at(signedV2(f.Fit.Cross)), f.Fit.CrossER}}
		for i := range t.states {
			if s := &t.states[i]; !plausible(s.er) || s.er < 0 {
				s.er = 0
			}
		}
	}
	return t
}

// plausible reports whether numbers are such as can be measured: a picture of others
// would show nothing else.
func plausible(xs ...float64) bool {
	for _, x := range xs {
		if !(math.Abs(x) < 1e4) {
			return false
		}
	}
	return true
}

func finite(xs ...float64) bool {
	for _, x := range xs {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// extent is the greatest distance of a point from no power, at least 1.
func (t trace) extent() float64 {
	most := 1.0
	for _, x := range t.x {
		most = max(most, math.Abs(x))
	}
	return most
}

// ratios is the range of what is drawn, at least 0 to 1 and not much more, with a little
// room.
func (t trace) ratios() (low, high float64) {
	high = 1
	for _, p := range t.Points {
		low, high = min(low, p.Ratio), max(high, p.Ratio)
	}
	low, high = max(low, -0.5), min(high, 1.5)
	room := 0.04 * (high - low)
	return low - room, high + room
}

// label is the state for people, "bar 31.2 dB".
func (s state) label() string {
	if !(s.er > 0) {
		return s.name
	}
	return fmt.Sprintf("%s %.1f dB", s.name, s.er)
}

// phase0 is φ0 with its standard deviation, "1.2345 ± 0.0008 rad".
func (f SweepFit) phase0() string { return withSigma(f.Fit.Phase0, f.Phase0Sigma, "rad") }

// powers is what either arm takes for π, with the standard deviations.
func (f SweepFit) powers() [2]string {
	sigma := f.powerSigma()
	var s [2]string
	for arm, p := range f.PPi {
		s[arm] = withSigma(p, sigma[arm], "mW")
	}
	return s
}

// powerSigma is the standard deviation of PPi that the noise of the points gives, by the
// covariance of a fit with the curves of the arms known; 0 where the points do not tell.
func (f SweepFit) powerSigma() (sigma [2]float64) {
	const slope, numbers = 3, 5 // offset, amplitude, phase, slopes
	arms := [...]ocst.Arm{f.Fit.A, f.Fit.B}
	// gain is how much phase an arm gains at V² by a unit of its slope; what bends is in
	// proportion to the square of that.
	gain := func(a ocst.Arm, u float64) float64 { return u + 2*a.Curve/a.Slope*u*u }
	normal := mat.NewSymDense(numbers, nil)
	misfit, n := 0.0, 0
	for _, p := range f.Points {
		phi := f.Fit.Phase0 + own(f.Fit, p.V2)
		row := [numbers]float64{1, -math.Cos(phi), f.Amplitude * math.Sin(phi)}
		if p.V2 < 0 {
			row[slope+1] = -gain(arms[1], -p.V2) * row[2]
		} else {
			row[slope] = gain(arms[0], p.V2) * row[2]
		}
		d := (p.Ratio - f.Model(p.V2)) / p.Sigma
		if !finite(row[:]...) || !finite(d) || !(p.Sigma > 0) {
			continue
		}
		normal.SymRankOne(normal, 1/(p.Sigma*p.Sigma), mat.NewVecDense(numbers, row[:]))
		misfit, n = misfit+d*d, n+1
	}
	var chol mat.Cholesky
	var cov mat.SymDense
	if n <= numbers || !chol.Factorize(normal) || chol.InverseTo(&cov) != nil {
		return sigma
	}
	variance := max(misfit/float64(n-numbers), 1)
	for arm, a := range arms {
		v, _ := a.Volts(math.Pi)
		if s := gain(a, v*v) * math.Sqrt(cov.At(slope+arm, slope+arm)*variance) / math.Pi * f.PPi[arm]; finite(s) {
			sigma[arm] = s
		}
	}
	return sigma
}

// withSigma writes a number to the digit that its standard deviation leaves certain, one
// more where that begins with 1 or 2, or to three decimals.
func withSigma(x, sigma float64, unit string) string {
	if !finite(x) {
		return "unknown"
	}
	if !finite(sigma) || sigma <= 0 || sigma > 1e3 {
		return number(x, 3) + " " + unit
	}
	digits := -int(math.Floor(math.Log10(sigma)))
	if sigma*math.Pow(10, float64(digits)) < 3 {
		digits++
	}
	digits = min(max(digits, 0), 6)
	return number(x, digits) + " ± " + number(sigma, digits) + " " + unit
}

// number is x with so many decimals, and a minus sign that is as wide as a plus.
func number(x float64, decimals int) string {
	if !finite(x) {
		return "?"
	}
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return strings.Replace(s, "-", "\u2212", 1)
}

// step is the smallest of 1, 2 and 5 times a power of ten that divides span into at most
// n parts.
func step(span float64, n int) float64 {
	raw := span / float64(n)
	if !(raw > 0) || math.IsInf(raw, 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	for _, m := range []float64{1, 2, 5} {
		if m*unit >= raw*(1-1e-9) {
			return m * unit
		}
	}
	return 10 * unit
}

// decimals is how many a multiple of step needs.
func decimals(step float64) int {
	return max(0, int(math.Ceil(-math.Log10(step)-1e-9)))
}
