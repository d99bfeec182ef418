package mzi

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/ocslab/ocslab/calibration/lm"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"pgregory.net/rapid"
)

var updatePlots = flag.Bool("update", false, "write the golden files of the plots")

// drawn is a sweep of an element with noise, and the fit that belongs to it.
func drawn(e ocst.Element, seed uint64) SweepFit {
	r := rand.New(rand.NewPCG(seed, 1))
	f := SweepFit{
		Element: e, Offset: 0.5 + 0.004*r.NormFloat64(), Amplitude: 0.49, Celsius: 41.25,
		Fit: ocst.Fit{Phase0: math.Pi * (2*r.Float64() - 1), BarER: 24 + 10*r.Float64(), CrossER: 22 + 12*r.Float64()},
	}
	arm := func() ocst.Arm {
		s := 0.357 * (1 + 0.06*r.NormFloat64())
		return ocst.Arm{Slope: s, Curve: -0.0054 * s * s}
	}
	f.Fit.A, f.Fit.B = arm(), arm()
	f.PPi = [2]float64{22 * (1 + 0.05*r.NormFloat64()), 22 * (1 + 0.05*r.NormFloat64())}
	f.Fit.Bar, _ = DriveFor(f.Fit, 0, false)
	f.Fit.Cross, _ = DriveFor(f.Fit, 0, true)
	sum := 0.0
	for i := range 64 {
		v2 := signedV2(sweepDrive(i, 64))
		m := f.Model(v2)
		sigma := 3e-4 + 2e-3*math.Sqrt(max(m*(1-m), 0)*2)
		p := SweepPoint{V2: v2, Ratio: m + sigma*r.NormFloat64(), Sigma: sigma}
		f.Points = append(f.Points, p)
		sum += (p.Ratio - m) * (p.Ratio - m)
	}
	f.Residual = math.Sqrt(sum / 64)
	f.Phase0Sigma = 8e-4
	return f
}

// module is a sweep of every element, one of which cannot be used.
func module() []SweepFit {
	var fits []SweepFit
	for e := range ocst.Element(ocst.Elements) {
		fits = append(fits, drawn(e, uint64(e)+1))
	}
	fits[7].Problem = "stuck photodiode: the ratio does not change when the heaters do"
	return fits
}

// goldenFile compares with a file of testdata, or writes it.
func goldenFile(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *updatePlots {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Ensure that the pictures stay as they were when they were looked at last.
func TestPlotGolden(t *testing.T) {
	t.Parallel()
	f := drawn(ocst.S1(2), 1)
	var picture strings.Builder
	if err := FitSVG(&picture, "module OT0000000007", f); err != nil {
		t.Fatal(err)
	}
	goldenFile(t, "fit.svg", picture.String())
	goldenFile(t, "fit.txt", f.Text(80, 24)+"\n"+f.ASCII(60, 16))
}

// attribute reads a number of an SVG element; 0 if it is not there.
func attribute(e xml.StartElement, name string) (x float64, there bool) {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			x, err := strconv.ParseFloat(a.Value, 64)
			return x, err == nil
		}
	}
	return 0, false
}

// inside fails unless s is one well-formed SVG with all that is in it on the page. Texts
// are as wide as their characters, taken for 0.62 of their height.
func inside(t rapid.TB, s string, width, height float64) {
	t.Helper()
	if strings.Contains(s, "NaN") || strings.Contains(s, "Inf") {
		t.Fatalf("a number is none:\n%s", s)
	}
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, s)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		for _, name := range []string{"x", "x1", "x2", "cx"} {
			if x, there := attribute(e, name); there && (x < 0 || x > width) {
				t.Fatalf("%s=%g of a %s is beyond %g", name, x, e.Name.Local, width)
			}
		}
		for _, name := range []string{"y", "y1", "y2", "cy"} {
			if y, there := attribute(e, name); there && (y < 0 || y > height) {
				t.Fatalf("%s=%g of a %s is beyond %g", name, y, e.Name.Local, height)
			}
		}
	}
}

// Ensure that whatever was measured, or went wrong, gives a picture: with points or
// without, fitted or not, with numbers that are none, with any title.
func TestPlotAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		wild := func(name string) float64 {
			if rapid.IntRange(0, 20).Draw(t, name+" is odd") == 0 {
				return rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300, 0, 1e-300}).Draw(t, name)
			}
			return rapid.Float64Range(-2, 2).Draw(t, name)
		}
		f := drawn(ocst.Element(rapid.IntRange(0, ocst.Elements-1).Draw(t, "element")), rapid.Uint64().Draw(t, "seed"))
		f.Points = f.Points[:rapid.IntRange(0, len(f.Points)).Draw(t, "points")]
		for i := range f.Points {
			if rapid.IntRange(0, 9).Draw(t, "odd") == 0 {
				f.Points[i] = SweepPoint{wild("V2"), wild("ratio"), wild("sigma")}
			}
		}
		for _, x := range []*float64{&f.Amplitude, &f.Offset, &f.Fit.Phase0, &f.Fit.A.Slope, &f.Fit.B.Curve, &f.PPi[0], &f.PPi[1], &f.Residual, &f.Phase0Sigma, &f.Celsius, &f.Fit.BarER} {
			if rapid.IntRange(0, 5).Draw(t, "change") == 0 {
				*x = wild("number")
			}
		}
		f.Problem = rapid.SampledFrom([]string{"", "", "no light", strings.Repeat("a word ", 40), strings.Repeat("x", 300), "<&>"}).Draw(t, "problem")
		var picture strings.Builder
		if err := FitSVG(&picture, rapid.SampledFrom([]string{"", "module <&>\x00\"'"}).Draw(t, "title"), f); err != nil {
			t.Fatal(err)
		}
		inside(t, picture.String(), 640, 360)
		picture.Reset()
		if err := SheetSVG(&picture, "<&>", []SweepFit{f, {Element: -1}, {Element: 99}, {Element: 3}}); err != nil {
			t.Fatal(err)
		}
		inside(t, picture.String(), sheetWidth, sheetHeight)

		width, height := rapid.IntRange(-1, 200).Draw(t, "width"), rapid.IntRange(-1, 80).Draw(t, "height")
		text, ascii := f.Text(width, height), f.ASCII(width, height)
		for _, s := range []string{text, ascii} {
			if n := strings.Count(s, "\n"); n != max(height, leastRows) {
				t.Fatalf("%d lines, want %d:\n%s", n, max(height, leastRows), s)
			}
			for line := range strings.Lines(s) {
				if n := utf8.RuneCountInString(line) - 1; n > max(width, leastColumns) || strings.HasSuffix(line, " \n") {
					t.Fatalf("a line of %d characters where %d are, or with blanks at its end: %q", n, width, line)
				}
			}
		}
		for _, c := range ascii {
			if c > '~' {
				t.Fatalf("%q is not ASCII:\n%s", c, ascii)
			}
		}
	})
}

// Ensure that a point is drawn at its power and ratio, and a state at its drive.
func TestPlotPlaces(t *testing.T) {
	t.Parallel()
	f := drawn(ocst.S2(4), 3)
	f.PPi = [2]float64{10 * math.Pi, 10 * math.Pi} // 10 mW a radian
	f.Fit.A, f.Fit.B = ocst.Arm{Slope: 1}, ocst.Arm{Slope: 1}
	f.Points = []SweepPoint{{V2: -2, Ratio: 0, Sigma: 1e-3}, {V2: 0, Ratio: 0.5, Sigma: 1e-3}, {V2: 1, Ratio: 1, Sigma: 1e-3}}
	f.Fit.Bar, f.Fit.Cross = ocst.DriveOf(1, false), ocst.DriveOf(1, true)
	tr := f.trace()
	for i, want := range []float64{-20, 0, 10} {
		if got := tr.x[i]; math.Abs(got-want) > 1e-9 {
			t.Errorf("point %d is at %g mW, want %g", i, got, want)
		}
	}
	for i, want := range []float64{10, -10} {
		if got := tr.states[i].x; math.Abs(got-want) > 0.02 { // a step of the converter
			t.Errorf("state %d is at %g mW, want %g", i, got, want)
		}
	}
	p := panel{x: 100, y: 50, w: 200, h: 100, left: -20, right: 20, bottom: 0, top: 1}
	if x, y := p.at(10), p.up(0.75); x != 250 || y != 75 {
		t.Errorf("10 mW and 0.75 are at %g, %g, want 250, 75", x, y)
	}
}

// Ensure that the deviation told of Pπ is that of fits to other noise.
func TestPowerSigma(t *testing.T) {
	t.Parallel()
	truth := drawn(ocst.S1(0), 5)
	v, within := truth.Fit.A.Volts(math.Pi)
	if !within {
		t.Fatal("arm A of the example does not reach π")
	}
	r := rand.New(rand.NewPCG(1, 2))
	const runs = 150
	var sum, squares float64
	for range runs {
		f, points := truth, slices.Clone(truth.Points)
		for i, p := range points {
			points[i].Ratio = truth.Model(p.V2) + p.Sigma*r.NormFloat64()
		}
		// The curve is in proportion to the square of the slope, which is known.
		set := func(p []float64) {
			f.Offset, f.Amplitude, f.Fit.Phase0 = p[0], p[1], p[2]
			f.Fit.A, f.Fit.B = ocst.Arm{Slope: p[3], Curve: -0.0054 * p[3] * p[3]}, ocst.Arm{Slope: p[4], Curve: -0.0054 * p[4] * p[4]}
		}
		got, err := lm.Fit(lm.Problem{Size: len(points), Residuals: func(res, p []float64) {
			set(p)
			for i, pt := range points {
				res[i] = (pt.Ratio - f.Model(pt.V2)) / pt.Sigma
			}
		}}, []float64{f.Offset, f.Amplitude, f.Fit.Phase0, f.Fit.A.Slope, f.Fit.B.Slope}, lm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		set(got.Params)
		d := (f.Fit.A.Phase(v) - math.Pi) / math.Pi * truth.PPi[0]
		sum, squares = sum+d, squares+d*d
	}
	got, want := truth.powerSigma()[0], math.Sqrt(squares/runs-sum*sum/runs/runs)
	if got < want*0.75 || got > want*1.35 {
		t.Errorf("σ of Pπ is told as %.4f mW, and is %.4f mW over %d fits", got, want, runs)
	}
}

func TestWithSigma(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		x, sigma float64
		want     string
	}{
		{2.57584, 8e-4, "2.5758 ± 0.0008 rad"},
		{-2.57584, 1.4e-3, "\u22122.5758 ± 0.0014 rad"},
		{21.2071, 0.0197, "21.207 ± 0.020 rad"},
		{21.2071, 3.2, "21 ± 3 rad"},
		{1, 0, "1.000 rad"},
		{1, math.NaN(), "1.000 rad"},
		{1, math.MaxFloat32, "1.000 rad"},
		{math.Inf(1), 1, "unknown"},
		{-1e-9, 1e-3, "0.0000 ± 0.0010 rad"},
	} {
		if got := withSigma(tc.x, tc.sigma, "rad"); got != tc.want {
			t.Errorf("withSigma(%g, %g)=%q, want %q", tc.x, tc.sigma, got, tc.want)
		}
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestPlotWriteError(t *testing.T) {
	t.Parallel()
	if err := drawn(0, 1).SVG(brokenPipe{}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("SVG: err=%v, want %v", err, os.ErrClosed)
	}
	if err := SheetSVG(brokenPipe{}, "", module()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("SheetSVG: err=%v, want %v", err, os.ErrClosed)
	}
}

// Ensure that the sheet has each element once, and names what is wrong with one.
func TestSheet(t *testing.T) {
	t.Parallel()
	var page strings.Builder
	if err := SheetSVG(&page, "module OT0000000007", module()); err != nil {
		t.Fatal(err)
	}
	inside(t, page.String(), sheetWidth, sheetHeight)
	for e := range ocst.Element(ocst.Elements) {
		if n := strings.Count(page.String(), ">"+e.String()+"<"); n != 1 {
			t.Errorf("%v is there %d times", e, n)
		}
	}
	for _, want := range []string{"36 elements, 1 of them cannot be used", "S1 of lane 8: stuck photodiode"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the sheet does not say %q", want)
		}
	}
}
