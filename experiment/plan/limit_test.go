package plan_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/timeline"
)

func TestLimit_Text(t *testing.T) {
	for text, want := range map[string]plan.Limit{
		"carrier_p99 < 4s":     {Statistic: plan.Statistic{Stage: timeline.CarrierUp, Of: plan.P99}, Op: "<", Value: 4e9},
		"light_median<=250ms":  {Statistic: plan.Statistic{Stage: timeline.Light, Of: plan.P50}, Op: "<=", Value: 250e6},
		"missing == 0":         {Statistic: plan.Statistic{Of: plan.Missing}, Op: "==", Value: 0},
		"traffic_missing == 0": {Statistic: plan.Statistic{Stage: timeline.Traffic, Of: plan.Missing}, Op: "=="},
		"light_share >= 12.5%": {Statistic: plan.Statistic{Stage: timeline.Light, Of: plan.Share}, Op: ">=", Value: 0.125},
		"light_share > 0.5":    {Statistic: plan.Statistic{Stage: timeline.Light, Of: plan.Share}, Op: ">", Value: 0.5},
		"traffic-lost_max < 1us where a=b c and d=e=f": {
			Statistic: plan.Statistic{Stage: timeline.TrafficLost, Of: plan.Max}, Op: "<", Value: 1e3,
			Where: map[string]string{"a": "b c", "d": "e=f"},
		},
		"command_count > 3": {Statistic: plan.Statistic{Stage: timeline.Command, Of: plan.Count}, Op: ">", Value: 3},
	} {
		var got plan.Limit
		if err := got.UnmarshalText([]byte("  " + text + " ")); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		want.Text = text
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %+v, want %+v", text, got, want)
		}
		made := got
		made.Text = ""
		var again plan.Limit
		if err := again.UnmarshalText([]byte(made.String())); err != nil {
			t.Errorf("%q is written %q: %v", text, made, err)
			continue
		}
		again.Text = got.Text
		if !reflect.DeepEqual(again, got) {
			t.Errorf("%q is written %q and read %+v", text, made, again)
		}
	}
}

func TestLimit_About(t *testing.T) {
	c := plan.Condition{Parameters: map[string]string{"firmware": "quick", "dwell": "1s"}}
	for _, x := range []struct {
		where map[string]string
		want  bool
	}{
		{nil, true},
		{map[string]string{"firmware": "quick"}, true},
		{map[string]string{"firmware": "quick", "dwell": "1s"}, true},
		{map[string]string{"firmware": "quick", "dwell": "2s"}, false},
		{map[string]string{"color": ""}, false},
	} {
		if got := (plan.Limit{Where: x.where}).About(c); got != x.want {
			t.Errorf("where %v: got %v, want %v", x.where, got, x.want)
		}
	}
}

// Ensure texts that are written are read as what they were written from.
func TestText_RoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(24*time.Hour)).Draw(rt, "time"))
		tolerance := plan.Tolerance{Time: d}
		if rapid.Bool().Draw(rt, "part") {
			tolerance = plan.Tolerance{Part: float64(rapid.IntRange(1, 100_000).Draw(rt, "thousandths")) / 1000 / 100}
		}
		var gotTolerance plan.Tolerance
		if err := gotTolerance.UnmarshalText([]byte(tolerance.String())); err != nil || gotTolerance != tolerance {
			rt.Fatalf("%+v is written %q and read %+v, %v", tolerance, tolerance, gotTolerance, err)
		}
		wait := plan.Wait{Until: rapid.SampledFrom([]plan.Until{plan.UntilSettled, plan.UntilCarrier, plan.UntilTraffic, plan.UntilFixed}).Draw(rt, "until")}
		if wait.Until == plan.UntilFixed {
			wait.For = d
		}
		var gotWait plan.Wait
		if err := gotWait.UnmarshalText([]byte(wait.String())); err != nil || gotWait != wait {
			rt.Fatalf("%+v is written %q and read %+v, %v", wait, wait, gotWait, err)
		}
		s := plan.Statistic{
			Stage: rapid.SampledFrom(timeline.Stages()[1:]).Draw(rt, "stage"),
			Of:    rapid.SampledFrom([]plan.Quantity{plan.P50, plan.P95, plan.P99, plan.Max, plan.Share, plan.Missing, plan.Count}).Draw(rt, "of"),
		}
		var gotStatistic plan.Statistic
		if err := gotStatistic.UnmarshalText([]byte(s.String())); err != nil || gotStatistic != s {
			rt.Fatalf("%+v is written %q and read %+v, %v", s, s, gotStatistic, err)
		}
	})
}

func TestHook_Words(t *testing.T) {
	h := plan.Hook{Run: []string{"set", "${a}-${b}", "$${a}", "$a", "${none}", "$"}}
	want := []string{"set", "1-", "${a}", "$a", "${none}", "$"}
	if got := h.Words(map[string]string{"a": "1", "b": ""}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestEnvironment(t *testing.T) {
	if got, want := plan.Environment("a-b.cÄ9"), "OCSLAB_PARAM_A_B_C_9"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
