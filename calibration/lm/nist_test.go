package lm_test

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/calibration/lm"
)

// models of the data sets, as their files have them; x has more than one element for Nelson
// only.
var models = map[string]func(b, x []float64) float64{
	"Bennett5": func(b, x []float64) float64 { return b[0] * math.Pow(b[1]+x[0], -1/b[2]) },
	"BoxBOD":   saturating,
	"Chwirut1": chwirut,
	"Chwirut2": chwirut,
	"DanWood":  func(b, x []float64) float64 { return b[0] * math.Pow(x[0], b[1]) },
	"ENSO": func(b, x []float64) float64 {
		w := 2 * math.Pi * x[0]
		return b[0] + b[1]*math.Cos(w/12) + b[2]*math.Sin(w/12) +
			b[4]*math.Cos(w/b[3]) + b[5]*math.Sin(w/b[3]) + b[7]*math.Cos(w/b[6]) + b[8]*math.Sin(w/b[6])
	},
	"Eckerle4": func(b, x []float64) float64 { return b[0] / b[1] * math.Exp(-0.5*sq((x[0]-b[2])/b[1])) },
	"Gauss1":   gauss,
	"Gauss2":   gauss,
	"Gauss3":   gauss,
	"Hahn1":    rational(4, 3),
	"Kirby2":   rational(3, 2),
	"Lanczos1": lanczos,
	"Lanczos2": lanczos,
	"Lanczos3": lanczos,
	"MGH09":    func(b, x []float64) float64 { return b[0] * (sq(x[0]) + x[0]*b[1]) / (sq(x[0]) + x[0]*b[2] + b[3]) },
	"MGH10":    func(b, x []float64) float64 { return b[0] * math.Exp(b[1]/(x[0]+b[2])) },
	"MGH17": func(b, x []float64) float64 {
		return b[0] + b[1]*math.Exp(-x[0]*b[3]) + b[2]*math.Exp(-x[0]*b[4])
	},
	"Misra1a":  saturating,
	"Misra1b":  func(b, x []float64) float64 { return b[0] * (1 - math.Pow(1+b[1]*x[0]/2, -2)) },
	"Misra1c":  func(b, x []float64) float64 { return b[0] * (1 - math.Pow(1+2*b[1]*x[0], -0.5)) },
	"Misra1d":  func(b, x []float64) float64 { return b[0] * b[1] * x[0] / (1 + b[1]*x[0]) },
	"Nelson":   func(b, x []float64) float64 { return b[0] - b[1]*x[0]*math.Exp(-b[2]*x[1]) }, // of log y
	"Rat42":    func(b, x []float64) float64 { return b[0] / (1 + math.Exp(b[1]-b[2]*x[0])) },
	"Rat43":    func(b, x []float64) float64 { return b[0] / math.Pow(1+math.Exp(b[1]-b[2]*x[0]), 1/b[3]) },
	"Roszman1": func(b, x []float64) float64 { return b[0] - b[1]*x[0] - math.Atan(b[2]/(x[0]-b[3]))/math.Pi },
	"Thurber":  rational(4, 3),
}

func sq(x float64) float64 { return x * x }

func saturating(b, x []float64) float64 { return b[0] * (1 - math.Exp(-b[1]*x[0])) }

func chwirut(b, x []float64) float64 { return math.Exp(-b[0]*x[0]) / (b[1] + b[2]*x[0]) }

func gauss(b, x []float64) float64 {
	return b[0]*math.Exp(-b[1]*x[0]) + b[2]*math.Exp(-sq((x[0]-b[3])/b[4])) + b[5]*math.Exp(-sq((x[0]-b[6])/b[7]))
}

func lanczos(b, x []float64) float64 {
	return b[0]*math.Exp(-b[1]*x[0]) + b[2]*math.Exp(-b[3]*x[0]) + b[4]*math.Exp(-b[5]*x[0])
}

// rational is a ratio of polynomials with n coefficients above, and m below besides 1.
func rational(n, m int) func(b, x []float64) float64 {
	return func(b, x []float64) float64 {
		above, below := 0.0, 0.0
		for i := n - 1; i >= 0; i-- {
			above = above*x[0] + b[i]
		}
		for i := m - 1; i >= 0; i-- {
			below = (below + b[n+i]) * x[0]
		}
		return above / (1 + below)
	}
}

// dataset is one file of NIST.
type dataset struct {
	starts            [2][]float64
	certified, sigma  []float64
	sumSquares        float64
	y                 []float64
	x                 [][]float64
	freedom, observed int
}

var parameterLine = regexp.MustCompile(`^\s*b\d+\s*=`)

func load(t testing.TB, path string) dataset {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var d dataset
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return v
	}
	inData := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		fields := strings.Fields(line)
		switch {
		case inData && len(fields) >= 2:
			d.y = append(d.y, number(fields[0]))
			x := make([]float64, 0, 2)
			for _, f := range fields[1:] {
				x = append(x, number(f))
			}
			d.x = append(d.x, x)
		case parameterLine.MatchString(line):
			_, values, _ := strings.Cut(line, "=")
			v := strings.Fields(values)
			if len(v) != 4 {
				t.Fatalf("%s: %q", path, line)
			}
			for i := range d.starts {
				d.starts[i] = append(d.starts[i], number(v[i]))
			}
			d.certified, d.sigma = append(d.certified, number(v[2])), append(d.sigma, number(v[3]))
		case strings.HasPrefix(line, "Residual Sum of Squares:"):
			d.sumSquares = number(fields[len(fields)-1])
		case strings.HasPrefix(line, "Degrees of Freedom:"):
			d.freedom = int(number(fields[len(fields)-1]))
		case strings.HasPrefix(line, "Number of Observations:"):
			d.observed = int(number(fields[len(fields)-1]))
		case strings.HasPrefix(line, "Data:") && len(fields) > 2 && fields[1] == "y":
			inData = true
		}
	}
	if strings.Contains(path, "Nelson") {
		for i := range d.y {
			d.y[i] = math.Log(d.y[i])
		}
	}
	if strings.Contains(path, "Rat43") {
		d.freedom = 11 // the file says 9, but its standard deviation goes with 11
	}
	if len(d.y) != d.observed || d.observed == 0 || len(d.y)-len(d.certified) != d.freedom {
		t.Fatalf("%s: %d observations and %d parameters were read, and there are %d with %d degrees of freedom", path, len(d.y), len(d.certified), d.observed, d.freedom)
	}
	return d
}

func (d dataset) problem(model func(b, x []float64) float64) lm.Problem {
	return lm.Problem{Size: len(d.y), Residuals: func(r, p []float64) {
		for i, y := range d.y {
			r[i] = model(p, d.x[i]) - y
		}
	}}
}

// digits is the number of digits that agree, at most the 11 that are certified.
func digits(got, want float64) float64 {
	if got == want {
		return 11
	}
	return min(-math.Log10(math.Abs(got-want)/math.Abs(want)), 11)
}

// options are those of the starts that want other than the default ones. From the first
// start of BoxBOD an undamped step leads to a plain without a slope.
var options = map[string]lm.Options{"BoxBOD/1": {Damping: 100}}

// lost are the starts from which the minimum is not found: the parameters of MGH10 wander
// off along a valley. Such a fit must not say that it has converged.
var lost = map[string]bool{"MGH10/1": true}

// exact are the sets whose residuals are no more than the rounding of the numbers in the
// file; only their parameters can be compared.
var exact = map[string]bool{"Lanczos1": true}

// Ensure that the certified values of every data set of NIST are found from either of its
// starts: parameters, their standard deviations, and the sum of squares.
func TestFit_NIST(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/nist/*.dat")
	if err != nil || len(files) != len(models) {
		t.Fatalf("%d files for %d models (%v)", len(files), len(models), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".dat")
		model := models[name]
		if model == nil {
			t.Fatalf("%s has no model", file)
		}
		d := load(t, file)
		for i, start := range d.starts {
			t.Run(name+"/"+strconv.Itoa(i+1), func(t *testing.T) {
				t.Parallel()
				which := name + "/" + strconv.Itoa(i+1)
				opt := options[which]
				opt.MaxIterations = 5000
				got, err := lm.Fit(d.problem(model), start, opt)
				if err != nil {
					t.Fatal(err)
				}
				agree, spread := 11.0, 11.0
				for j := range d.certified {
					agree = min(agree, digits(got.Params[j], d.certified[j]))
					spread = min(spread, digits(got.Sigma(j, got.Variance()), d.sigma[j]))
				}
				sum := digits(got.SumSquares, d.sumSquares)
				t.Logf("%.1f digits of the parameters, %.1f of their deviations, %.1f of the sum of squares; %d steps, %d evaluations, %v",
					agree, spread, sum, got.Iterations, got.Evaluations, got.Stop)
				switch {
				case lost[which]:
					if got.Converged() {
						t.Errorf("stopped with %q, and has not converged", got.Stop)
					}
				case agree < 6 || !exact[name] && (spread < 6 || sum < 6) || !got.Converged():
					t.Errorf("less than 6 digits: %v, certified %v", got.Params, d.certified)
				}
			})
		}
	}
}

// Ensure that the data are whole: with the certified parameters they give the certified
// sum of squares.
func TestNISTData(t *testing.T) {
	t.Parallel()
	for name, model := range models {
		if exact[name] {
			continue
		}
		d := load(t, filepath.Join("testdata/nist", name+".dat"))
		r := make([]float64, len(d.y))
		d.problem(model).Residuals(r, d.certified)
		sum := 0.0
		for _, x := range r {
			sum += x * x
		}
		if digits(sum, d.sumSquares) < 9 {
			t.Errorf("%s: the certified parameters give a sum of squares of %.11g, certified is %.11g", name, sum, d.sumSquares)
		}
	}
}
