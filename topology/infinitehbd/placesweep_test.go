package infinitehbd_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// The paper's figure: 10 % at random, 1.72 % for a job of 90 % at 5 % dead, next to none for one of 85 % up to 7 % dead,
// and then a knee. A draw crosses about 4 % or nothing, so the mean of n draws has a standard error of .02/sqrt(n); two
// of them, and half a point for the draws of the published figure. 1,000 draws have 1.4 %, .4 % and 4.2 %.
func TestCrossToRSweep_Paper(t *testing.T) {
	for _, test := range []struct {
		faults, job    float64
		random, placed float64
	}{
		{.05, .9, .1, .0178}, {.05, .85, .1, 0}, {.06, .85, .1, 0}, {.07, .85, .1, 0}, {.08, .85, .1, .038},
	} {
		o := infinitehbd.PaperSweep(100, 1)
		o.Faults, o.Jobs = []float64{test.faults}, []float64{test.job}
		o.Methods = []infinitehbd.Method{infinitehbd.AtRandom, infinitehbd.Orchestrated}
		rows, err := infinitehbd.CrossToRSweep(o)
		if err != nil {
			t.Fatal(err)
		}
		tolerance := .005 + 2*.02/math.Sqrt(float64(o.Draws))
		for i, want := range []float64{test.random, test.placed} {
			t.Logf("%+v", rows[i])
			if rows[i].Placed != o.Draws || math.Abs(rows[i].Share-want) > tolerance {
				t.Errorf("%+v: want a share of %v within %.4f", rows[i], want, tolerance)
			}
		}
		if math.Abs(rows[0].Share-.1) > .0005 {
			t.Errorf("%+v: want 10.0 %%", rows[0])
		}
	}
}

// Align crosses less where Orchestrate has to give up an alignment, on the same draws.
func TestCrossToRSweep_Aligned(t *testing.T) {
	o := infinitehbd.PaperSweep(12, 1)
	o.Faults, o.Jobs = []float64{.05, .08}, []float64{.85, .9}
	rows, err := infinitehbd.CrossToRSweep(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(rows); i += 3 {
		random, paper, ours := rows[i], rows[i+1], rows[i+2]
		t.Logf("%+v", ours)
		if ours.Share > paper.Share || ours.Clear < paper.Clear || paper.Share > random.Share {
			t.Errorf("%+v, %+v, %+v: want less and less", random, paper, ours)
		}
		if paper.Share > .01 && ours.Share > paper.Share/2 {
			t.Errorf("%+v, and %+v: want half of it at most", ours, paper)
		}
		// 230 groups of 4 nodes are 115 pairs: whatever else there is room for is not counted.
		if crossing := ours.Most / o.Phi * 115 * 4; ours.Job == .9 && math.Abs(crossing-math.Round(crossing)) > 1e-9 {
			t.Errorf("%+v: %v crossings of 460", ours, crossing)
		}
	}
}

func TestCrossToRSweep_Repeats(t *testing.T) {
	o := infinitehbd.PaperSweep(2, 7)
	o.Tree = infinitehbd.Tree{Nodes: 64, PerToR: 2, PerDomain: 32}
	rows, err := infinitehbd.CrossToRSweep(o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := infinitehbd.CrossToRSweep(o)
	if d := cmp.Diff(rows, again); d != "" || err != nil {
		t.Errorf("%v (-first +second)\n%s", err, d)
	}
	if want := len(o.Faults) * len(o.Jobs) * 3; len(rows) != want {
		t.Errorf("%d rows, want %d", len(rows), want)
	}
}

func TestCrossToRSweep_NoRoom(t *testing.T) {
	o := infinitehbd.PaperSweep(3, 1)
	o.Faults, o.Jobs = []float64{.5}, []float64{1}
	rows, err := infinitehbd.CrossToRSweep(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Placed != 0 || r.Share != 0 || r.Draws != 3 {
			t.Errorf("%+v: want none placed", r)
		}
	}
}

func TestCrossToRSweep_Impossible(t *testing.T) {
	for _, test := range []struct {
		change func(o *infinitehbd.SweepOptions)
		is     error
		says   string
	}{
		{func(o *infinitehbd.SweepOptions) { o.Draws = 0 }, infinitehbd.ErrShare, "0 draws"},
		{func(o *infinitehbd.SweepOptions) { o.Faults = []float64{math.NaN()} }, infinitehbd.ErrShare, "dead nodes of NaN"},
		{func(o *infinitehbd.SweepOptions) { o.Jobs = []float64{1.5} }, infinitehbd.ErrShare, "a job of 1.5"},
		{func(o *infinitehbd.SweepOptions) { o.Jobs = []float64{0} }, infinitehbd.ErrShare, "less than a group"},
		{func(o *infinitehbd.SweepOptions) { o.Phi = -1 }, infinitehbd.ErrShare, "traffic between groups of -1"},
		{func(o *infinitehbd.SweepOptions) { o.Methods = []infinitehbd.Method{7} }, infinitehbd.ErrGroup, "method 7"},
		{func(o *infinitehbd.SweepOptions) { o.TP = 12 }, infinitehbd.ErrGroup, "groups of 12 GPUs"},
		{func(o *infinitehbd.SweepOptions) { o.Tree.PerToR = 3 }, infinitehbd.ErrLayout, "ToRs of 3"},
		{func(o *infinitehbd.SweepOptions) { o.Layout.GPUs = 0 }, infinitehbd.ErrLayout, "0 GPUs"},
	} {
		o := infinitehbd.PaperSweep(1, 1)
		test.change(&o)
		_, err := infinitehbd.CrossToRSweep(o)
		wantError(t, err, test.is, test.says)
	}
}
