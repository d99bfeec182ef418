package lm

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"
)

// Problem is what to minimise: the sum of the squares of the residuals.
type Problem struct {
	// Size is the number of residuals, at least that of the parameters.
	Size int
	// Residuals sets r[i] to residual i at the parameters p, weighted: measured less
	// model, over the standard deviation. It must not keep or change p. A residual that is
	// no finite number says that p is outside of what the model can do; the fit then takes
	// a smaller step.
	Residuals func(r, p []float64)
	// Jacobian sets j, of Size rows, to the derivatives of the residuals by the parameters.
	// Nil has them found numerically, by central differences.
	Jacobian func(j *mat.Dense, p []float64)
}

// Options of a fit. The zero value is good for smooth models in double precision.
type Options struct {
	MaxIterations int // steps tried; 0: 500
	// Step is the change of every parameter, relative to its own size, below which the
	// fit ends. 0: 1e-12.
	Step float64
	// Gradient is the cosine of the angle between the residuals and every column of the
	// Jacobian below which the fit ends. 0: 1e-13.
	Gradient float64
	// Damping is the first damping, relative to the scaled normal equations. More makes
	// the first steps shorter. 0: 1e-3.
	Damping float64
}

// Stop says why a fit ended.
type Stop int

const (
	// StopStep is that steps have become too small to matter.
	StopStep Stop = iota + 1
	// StopGradient is that the residuals are orthogonal to what parameters can change.
	StopGradient
	// StopExact is that all residuals are zero.
	StopExact
	// StopIterations is that there were MaxIterations. The parameters are the best so far.
	StopIterations
)

// String says it in a few words.
func (s Stop) String() string {
	switch s {
	case StopStep:
		return "steps too small to matter"
	case StopGradient:
		return "gradient is zero"
	case StopExact:
		return "exact"
	case StopIterations:
		return "too many iterations"
	}
	return fmt.Sprintf("stop %d", int(s))
}

// Result of a fit.
type Result struct {
	Params []float64
	// SumSquares is the sum of the squares of the residuals.
	SumSquares float64
	// Unscaled is the inverse of JᵀJ at Params: the covariance of the parameters if the
	// residuals are weighted by their true standard deviations. It is nil if the parameters
	// cannot be told apart.
	Unscaled *mat.SymDense
	// Freedom is the number of residuals less that of parameters.
	Freedom     int
	Iterations  int // steps tried
	Evaluations int // of all residuals, with those for numerical derivatives
	Stop        Stop
}

// Converged reports whether the fit ended at a minimum.
func (r Result) Converged() bool { return r.Stop != StopIterations && r.Stop != 0 }

// Variance is the sum of squares over the degrees of freedom, the variance of a residual;
// 1 is expected of weighted ones. It is 0 without freedom.
func (r Result) Variance() float64 {
	if r.Freedom <= 0 {
		return 0
	}
	return r.SumSquares / float64(r.Freedom)
}

// Sigma returns the standard deviation of parameter i for residuals with a variance; that
// of the fit is Variance, that of weighted residuals 1. It is infinite if Unscaled is nil.
func (r Result) Sigma(i int, variance float64) float64 {
	if r.Unscaled == nil {
		return math.Inf(1)
	}
	return math.Sqrt(r.Unscaled.At(i, i) * variance)
}

// Errors of [Fit].
var (
	ErrProblem = errors.New("least squares problem makes no sense")
	ErrStart   = errors.New("residuals are not finite at the start")
)

// Fit minimises the sum of squares from a start. It returns an error only if it cannot
// begin: how it ended is in Result.Stop. start is not changed. Fits of different problems
// may go on at once.
func Fit(problem Problem, start []float64, opt Options) (Result, error) {
	n := len(start)
	if n == 0 || problem.Size < n || problem.Residuals == nil {
		return Result{}, fmt.Errorf("%w: %d residuals for %d parameters", ErrProblem, problem.Size, n)
	}
	f := newFit(problem, start, opt)
	if !f.evaluate(f.p, f.r) {
		return Result{}, fmt.Errorf("%w: %v", ErrStart, start)
	}
	stop := f.run()
	return Result{
		Params: f.p, SumSquares: square(f.r), Unscaled: f.unscaled(), Freedom: problem.Size - n,
		Iterations: f.iterations, Evaluations: f.evaluations, Stop: stop,
	}, nil
}

// fit is one under way.
type fit struct {
	Problem
	opt         Options
	p, next     []float64
	r, rNext    []float64
	scale       []float64 // of the parameters: the largest norm that their column had
	j           *mat.Dense
	up, down    []float64 // for differences
	stacked     *mat.Dense
	right, step *mat.VecDense
	qr          mat.QR
	iterations  int
	evaluations int
}

func newFit(problem Problem, start []float64, opt Options) *fit {
	if opt.MaxIterations <= 0 {
		opt.MaxIterations = 500
	}
	if opt.Step <= 0 {
		opt.Step = 1e-12
	}
	if opt.Gradient <= 0 {
		opt.Gradient = 1e-13
	}
	if opt.Damping <= 0 {
		opt.Damping = 1e-3
	}
	m, n := problem.Size, len(start)
	return &fit{
		Problem: problem, opt: opt,
		p: append([]float64(nil), start...), next: make([]float64, n),
		r: make([]float64, m), rNext: make([]float64, m), scale: make([]float64, n),
		j: mat.NewDense(m, n, nil), up: make([]float64, m), down: make([]float64, m),
		stacked: mat.NewDense(m+n, n, nil), right: mat.NewVecDense(m+n, nil), step: mat.NewVecDense(n, nil),
	}
}

// run goes downhill with the damping of Nielsen (IMM-REP-1999-05, Technical University of
// Denmark): it follows how well the linear model foretold each step.
func (f *fit) run() Stop {
	damping, raise := f.opt.Damping, 2.0
	cost := square(f.r)
	fresh := false // whether j belongs to p
	for ; f.iterations < f.opt.MaxIterations; f.iterations++ {
		if cost == 0 {
			return StopExact
		}
		if !fresh {
			if !f.jacobian() {
				return StopStep // at the border of what the model can do
			}
			fresh = true
			if f.orthogonal(cost) {
				return StopGradient
			}
		}
		small, foretold, ok := f.try(damping)
		next := math.Inf(1)
		if ok && f.evaluate(f.next, f.rNext) {
			next = square(f.rNext)
		}
		gain := (cost - next) / foretold
		switch {
		case next < cost && gain > 0:
			f.p, f.next = f.next, f.p
			f.r, f.rNext = f.rNext, f.r
			cost, fresh = next, false
			damping *= max(1.0/3, 1-math.Pow(2*gain-1, 3))
			raise = 2
		default:
			damping *= raise
			raise *= 2
		}
		if ok && small {
			return StopStep
		}
		if math.IsInf(damping, 1) {
			return StopStep
		}
	}
	return StopIterations
}

// jacobian finds the derivatives at p, and keeps the scale of the parameters: the largest
// norm of a column so far (Moré, The Levenberg-Marquardt algorithm, 1978), so that the fit
// does not depend on their units.
func (f *fit) jacobian() bool {
	if f.Jacobian != nil {
		f.Jacobian(f.j, f.p)
	} else if !f.differences() {
		return false
	}
	m, n := f.j.Dims()
	for col := range n {
		norm := 0.0
		for row := range m {
			norm = math.Hypot(norm, f.j.At(row, col))
		}
		if math.IsNaN(norm) || math.IsInf(norm, 0) {
			return false
		}
		f.scale[col] = max(f.scale[col], norm)
		if f.scale[col] == 0 {
			f.scale[col] = 1
		}
	}
	return true
}

// differences are central, or one-sided where the model ends.
func (f *fit) differences() bool {
	root := math.Cbrt(0x1p-52)
	for col, at := range f.p {
		h := root * math.Abs(at)
		if h == 0 {
			h = root
		}
		effect, ok := f.difference(col, h)
		if !ok {
			return false
		}
		// A parameter that is by chance next to zero says nothing of how far it must be
		// moved to be felt above the rounding of the residuals.
		if effect < 1e-8 && h < root {
			if _, ok := f.difference(col, root); !ok {
				f.difference(col, h)
			}
		}
	}
	return true
}

// difference sets a column of the Jacobian by a change of h to either side. It returns how
// much that changed the residuals, relative to them.
func (f *fit) difference(col int, h float64) (effect float64, ok bool) {
	at := f.p[col]
	above, below := at+h, at-h
	f.p[col] = above
	upOK := f.evaluate(f.p, f.up)
	f.p[col] = below
	downOK := f.evaluate(f.p, f.down)
	f.p[col] = at
	switch {
	case !upOK && !downOK:
		return 0, false
	case !upOK:
		above = at
		copy(f.up, f.r)
	case !downOK:
		below = at
		copy(f.down, f.r)
	}
	change, size := 0.0, 0.0
	for row, up := range f.up {
		d := up - f.down[row]
		f.j.Set(row, col, d/(above-below))
		change += d * d
		size += f.r[row] * f.r[row]
	}
	return math.Sqrt(change / size), true
}

// orthogonal reports whether no parameter changes the residuals to the better.
func (f *fit) orthogonal(cost float64) bool {
	m, n := f.j.Dims()
	for col := range n {
		dot, norm := 0.0, 0.0
		for row := range m {
			v := f.j.At(row, col)
			dot += v * f.r[row]
			norm += v * v
		}
		if math.Abs(dot) > f.opt.Gradient*math.Sqrt(norm*cost) {
			return false
		}
	}
	return true
}

// try sets next to p and the damped step: the least squares solution of the Jacobian with
// the scaled damping below it, by QR, which keeps twice the digits of the normal equations.
// It returns whether the step is small, and by how much the linear model says that the sum
// of squares falls.
func (f *fit) try(damping float64) (small bool, foretold float64, ok bool) {
	m, n := f.j.Dims()
	f.stacked.Slice(0, m, 0, n).(*mat.Dense).Copy(f.j)
	root := math.Sqrt(damping)
	for row := range n {
		for col := range n {
			f.stacked.Set(m+row, col, 0)
		}
		f.stacked.Set(m+row, row, root*f.scale[row])
		f.right.SetVec(m+row, 0)
	}
	for row, r := range f.r {
		f.right.SetVec(row, -r)
	}
	f.qr.Factorize(f.stacked)
	if err := f.qr.SolveVecTo(f.step, false, f.right); err != nil {
		// A condition number is a warning, for the damping makes up for it.
		if c := mat.Condition(0); !errors.As(err, &c) || math.IsInf(float64(c), 1) {
			return false, 0, false
		}
	}
	small = true
	for i, p := range f.p {
		d := f.step.AtVec(i)
		if math.IsNaN(d) || math.IsInf(d, 0) {
			return false, 0, false
		}
		f.next[i] = p + d
		small = small && math.Abs(d) <= f.opt.Step*(math.Abs(p)+f.opt.Step)
		foretold += 2 * damping * f.scale[i] * f.scale[i] * d * d
	}
	for row := range m {
		change := 0.0
		for col := range n {
			change += f.j.At(row, col) * f.step.AtVec(col)
		}
		foretold += change * change
	}
	return small, foretold, true
}

// evaluate reports whether all residuals are finite.
func (f *fit) evaluate(p, r []float64) bool {
	f.evaluations++
	f.Residuals(r, p)
	for _, x := range r {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return !math.IsInf(square(r), 1)
}

// unscaled inverts JᵀJ at p by way of the triangle of its QR decomposition.
func (f *fit) unscaled() *mat.SymDense {
	if !f.jacobian() {
		return nil
	}
	_, n := f.j.Dims()
	f.qr.Factorize(f.j)
	var triangle mat.Dense
	f.qr.RTo(&triangle)
	upper := mat.NewTriDense(n, mat.Upper, nil)
	for i := range n {
		for k := i; k < n; k++ {
			upper.SetTri(i, k, triangle.At(i, k))
		}
		if upper.At(i, i) == 0 {
			return nil
		}
	}
	var inverse mat.TriDense
	if err := inverse.InverseTri(upper); err != nil {
		if c := mat.Condition(0); !errors.As(err, &c) || math.IsInf(float64(c), 1) {
			return nil
		}
	}
	covariance := mat.NewSymDense(n, nil)
	covariance.SymOuterK(1, &inverse)
	return covariance
}

func square(r []float64) float64 {
	sum := 0.0
	for _, x := range r {
		sum += x * x
	}
	return sum
}
