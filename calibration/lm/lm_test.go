package lm_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/calibration/lm"
)

// Ensure that a linear model is solved, with the covariance of the normal equations, from
// any start and in any units of the parameters.
func TestFit_linear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := math.Pow(10, rapid.Float64Range(-5, 5).Draw(t, "unit"))
		start := []float64{rapid.Float64Range(-100, 100).Draw(t, "a"), rapid.Float64Range(-100, 100).Draw(t, "b") / unit}
		y := []float64{1, 3, 2, 5, 4}
		got, err := lm.Fit(lm.Problem{Size: 5, Residuals: func(r, p []float64) {
			for i := range r {
				r[i] = p[0] + p[1]*unit*float64(i) - y[i]
			}
		}}, start, lm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// By hand: slope 0.8, intercept 1.4; sum of squares 3.6; variance 1.2;
		// inverse of JᵀJ: 0.6, 0.1 on its diagonal.
		for i, want := range []float64{1.4, 0.8 / unit} {
			if math.Abs(got.Params[i]-want) > 1e-7*math.Abs(want) {
				t.Errorf("parameter %d is %g, want %g", i, got.Params[i], want)
			}
		}
		for i, want := range []float64{math.Sqrt(0.6 * 1.2), math.Sqrt(0.1*1.2) / unit} {
			if s := got.Sigma(i, got.Variance()); math.Abs(s-want) > 1e-5*want {
				t.Errorf("deviation of parameter %d is %g, want %g", i, s, want)
			}
		}
		if math.Abs(got.SumSquares-3.6) > 1e-9 || got.Freedom != 3 || !got.Converged() {
			t.Errorf("%+v", got)
		}
	})
}

// Ensure that derivatives that are given are used, and lead where numerical ones do.
func TestFit_jacobian(t *testing.T) {
	t.Parallel()
	calls := 0
	problem := lm.Problem{
		Size: 2,
		Residuals: func(r, p []float64) { // Rosenbrock
			r[0], r[1] = 10*(p[1]-p[0]*p[0]), 1-p[0]
		},
		Jacobian: func(j *mat.Dense, p []float64) {
			calls++
			j.SetRow(0, []float64{-20 * p[0], 10})
			j.SetRow(1, []float64{-1, 0})
		},
	}
	start := []float64{-1.2, 1}
	given, err := lm.Fit(problem, start, lm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	problem.Jacobian = nil
	found, err := lm.Fit(problem, start, lm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, got := range []lm.Result{given, found} {
		if math.Abs(got.Params[0]-1) > 1e-10 || math.Abs(got.Params[1]-1) > 1e-10 || !got.Converged() {
			t.Errorf("%+v", got)
		}
	}
	if calls == 0 || given.Evaluations >= found.Evaluations {
		t.Errorf("%d derivatives were asked for; %d evaluations, and %d without", calls, given.Evaluations, found.Evaluations)
	}
	if !slices.Equal(start, []float64{-1.2, 1}) {
		t.Errorf("the start has become %v", start)
	}
}

// Ensure that a model which ends somewhere is fitted up to its end.
func TestFit_border(t *testing.T) {
	t.Parallel()
	got, err := lm.Fit(lm.Problem{Size: 2, Residuals: func(r, p []float64) {
		r[0], r[1] = math.Sqrt(p[0]), p[1]-2 // p[0] below 0 does not exist
	}}, []float64{1, 0}, lm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !(got.Params[0] >= 0) || got.Params[0] > 1e-3 {
		t.Errorf("%v, want 0 from above, and 2", got.Params)
	}
}

// Ensure that what cannot be told apart has no covariance rather than a wrong one.
func TestFit_singular(t *testing.T) {
	t.Parallel()
	got, err := lm.Fit(lm.Problem{Size: 3, Residuals: func(r, p []float64) {
		for i := range r {
			r[i] = p[0] + p[1] - float64(i)
		}
	}}, []float64{0, 0}, lm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if sum := got.Params[0] + got.Params[1]; math.Abs(sum-1) > 1e-9 {
		t.Errorf("the sum of the parameters is %g, want 1", sum)
	}
	if s := got.Sigma(0, 1); s < 1e6 {
		t.Errorf("the deviation of a parameter that nothing determines is %g", s)
	}
}

// Ensure that bad input is an error, not a panic.
func TestFit_badInput(t *testing.T) {
	t.Parallel()
	zero := func(r, _ []float64) { clear(r) }
	nan := func(r, _ []float64) { r[0] = math.NaN() }
	for name, tt := range map[string]struct {
		problem lm.Problem
		start   []float64
		want    error
	}{
		"no parameters":    {lm.Problem{Size: 3, Residuals: zero}, nil, lm.ErrProblem},
		"too few":          {lm.Problem{Size: 1, Residuals: zero}, []float64{1, 2}, lm.ErrProblem},
		"no residuals":     {lm.Problem{Size: 3}, []float64{1}, lm.ErrProblem},
		"no number":        {lm.Problem{Size: 3, Residuals: nan}, []float64{1}, lm.ErrStart},
		"start no number":  {lm.Problem{Size: 1, Residuals: func(r, p []float64) { r[0] = p[0] }}, []float64{math.NaN()}, lm.ErrStart},
		"start is too far": {lm.Problem{Size: 1, Residuals: func(r, p []float64) { r[0] = p[0] }}, []float64{1e200}, lm.ErrStart},
	} {
		if _, err := lm.Fit(tt.problem, tt.start, lm.Options{}); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	got, err := lm.Fit(lm.Problem{Size: 3, Residuals: zero}, []float64{1}, lm.Options{})
	if err != nil || got.Stop != lm.StopExact || got.Params[0] != 1 {
		t.Errorf("residuals that are zero: %+v, %v", got, err)
	}
}

// Ensure that no model, however wild, makes a fit panic, go on for ever, or end worse than it
// began.
func TestFit_wild(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := rapid.SliceOfN(rapid.Float64(), 6, 6).Draw(t, "c")
		residuals := func(r, p []float64) {
			for i := range r {
				x := float64(i) / 4
				r[i] = c[0]*math.Exp(p[0]*x) + c[1]/(p[1]-x) + math.Log(p[2]+c[2]*x) - c[3+i%3]
			}
		}
		start := rapid.SliceOfN(rapid.Float64Range(-10, 10), 3, 3).Draw(t, "start")
		r := make([]float64, 8)
		residuals(r, start)
		before := 0.0
		for _, x := range r {
			before += x * x
		}
		got, err := lm.Fit(lm.Problem{Size: 8, Residuals: residuals}, start, lm.Options{MaxIterations: 50})
		if err == nil && !(got.SumSquares <= before) {
			t.Errorf("the sum of squares was %g and is %g", before, got.SumSquares)
		}
	})
}

func BenchmarkFit(b *testing.B) {
	d := load(b, "testdata/nist/Gauss1.dat")
	problem := d.problem(gauss)
	for b.Loop() {
		if _, err := lm.Fit(problem, d.starts[1], lm.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
