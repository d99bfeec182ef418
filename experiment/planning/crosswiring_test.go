package planning

import (
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment/report"
)

func TestCrosswiringLTRR(t *testing.T) {
	s := &report.Study{Name: "crosswiring-ltrr"}
	if err := smallCases(s); err != nil {
		t.Fatal(err)
	}
	cases := []ltrrCase{{podsOf(32, 16), false}, {podsOf(32, 16), true}}
	if err := sequences(t.Context(), s, cases, 3, func(string) {}); err != nil {
		t.Fatal(err)
	}
	ringRows(s)
	rows := checked(t, s)
	for quantity, want := range map[string]string{
		"triangle (figure 1): Uniform realised, LTRR":            "0.6667, 0.8165 | exact",
		"3 pods, 2 links each: Uniform realised, LTRR":           "0.6667, 0.8165 | exact",
		"3 pods, one pair has more: Uniform realised, LTRR":      "0.8000, 0.9535 | exact",
		"Cross, 8,192 GPUs, full, worst of all planners":         "1 | exact",
		"Cross, 8,192 GPUs, job rings, worst of all planners":    "1 | exact",
		"throughput of a job on 3 pods over Uniform (figure 2a)": "0 to +50.0 % | within",
	} {
		if r := rows[quantity]; r.Ours+" | "+r.Deviation != want {
			t.Errorf("%s: %+v", quantity, r)
		}
	}
	within(t, rows, map[string][2]float64{
		"Uniform, greedy, 8,192 GPUs, full: mean LTRR":                  {.970, .005},
		"Uniform, greedy, 8,192 GPUs, full: mean LTRR - realised, mean": {.91, .015}, "Uniform, greedy, 8,192 GPUs, job rings: mean " +
			"LTRR": {.99, .005},
		"Uniform, greedy, 8,192 GPUs, job rings: mean LTRR - realised, mean": {.75, .03}})
	pre := s.Sections[0].Pre
	for _, want := range []string{"switch 0  0>1 1>2 2>0\n  switch 1  0>2 1>0 2>1", "is refused",
		"port 0 sends to pod 1 spine 0 port 0"} {
		if !strings.Contains(pre, want) {
			t.Errorf("no %q in\n%s", want, pre)
		}
	}
}

func TestCrosswiringMRAR(t *testing.T) {
	s, rows := made(t, "crosswiring-mrar", report.FigureOptions{Repeats: 20})
	within(t, rows, map[string][2]float64{"MRAR by the ILP, best (ours), 6 pods (figure 7)": {.984, .03}})
	for _, x := range []struct {
		changed string
		want    [4]float64 // at most, from nothing, orient+seq, best
	}{{"2.0 %", [4]float64{97.9, 10, 81, 82}}, {"10.0 %", [4]float64{90, 8, 68.5, 69.5}}, {"30.0 %", [4]float64{75, 6, 54, 55}}} {
		for i, column := range []string{"any plan, at most", "euler, from nothing", "orient+seq (ours)", "best (ours)"} {
			if got := number(t, cell(t, s, "Circuits kept", x.changed, column)); got < x.want[i]-6 || got > x.want[i]+6 {
				t.Errorf("%s, %s: %v, want about %v", x.changed, column, got, x.want[i])
			}
		}
	}
}

func TestCrosswiringTime(t *testing.T) {
	s := &report.Study{Name: "crosswiring-time"}
	all, err := timings(t.Context(), []int{8, 32, 128}, 1, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	timeRows(s, all)
	timeTable(s, all)
	if err := stepRows(s); err != nil {
		t.Fatal(err)
	}
	waits(s)
	rows := checked(t, s)
	if got := number(t, rows["32,768 GPUs, from nothing: MDMCF (figure 6) - rewired, when 2 % of the links change"].Ours); got > 20 {
		t.Errorf("%v %% of the circuits are rewired when 2 %% of the links change", got)
	}
	within(t, rows, map[string][2]float64{"step, half the links switched every 30 s (table 1)": {1175.4, .5},
		"step, half the links switched never (table 1)": {1103, 0}})
	if n := len(s.Sections[0].Table); n != 3 {
		t.Errorf("%d sizes", n)
	}
	if got := cell(t, s, "Waiting", "60 s", "mean wait"); got == "no end" {
		t.Error("plans of 20 ms are said to queue up")
	}
}

func TestCrosswiringTime_Jobs(t *testing.T) {
	if testing.Short() {
		t.Skip("simulates thousands of jobs")
	}
	s := &report.Study{Name: "crosswiring-time"}
	if err := jobRows(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if n := len(s.Paper.Rows); n != 9 {
		t.Errorf("%d rows", n)
	}
	if r := s.Paper.Rows[0]; number(t, r.Ours) <= 0 {
		t.Errorf("%+v: plans of minutes cost nothing", r)
	}
}
