package analysis_test

import (
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// calibrated is a synthetic run with a timing calibration that says 8 s of the carrier, and less than the run itself
// shows of the light.
func calibrated(change func(*runs.Calibration)) *runs.Run {
	r := analysistest.Synthetic(40, 4, 1)
	c := runs.Calibration{Kind: store.Timing, Subject: "lab", Version: 3, Complete: true, Floors: []timing.Floor{
		{Stage: timeline.CarrierUp, NS: 9e9, ResolutionNS: 8e9, EqualsNS: 9e9, Toggles: 20},
		{Stage: timeline.Light, NS: 1, ResolutionNS: 1, Toggles: 20},
	}}
	if change != nil {
		change(&c)
	}
	r.Setups = slices.Clone(r.Setups)
	for i := range r.Setups {
		r.Setups[i].Calibrations = []runs.Calibration{c}
	}
	return r
}

// What a timing calibration says cannot be resolved, is not resolved.
func TestOf_CalibratedFloor(t *testing.T) {
	without, with := analysis.Of(analysistest.Synthetic(40, 4, 1)), analysis.Of(calibrated(nil))
	for i := range with.Conditions {
		was, is := stageOf(t, without.Conditions[i], timeline.CarrierUp), stageOf(t, with.Conditions[i], timeline.CarrierUp)
		if was.Calibrated != 0 || is.Calibrated != 8*time.Second || is.Floor != 8*time.Second || was.AA != is.AA {
			t.Errorf("carrier-up: floor %v, calibrated %v; without %v, %v", is.Floor, is.Calibrated, was.Floor, was.Calibrated)
		}
		was, is = stageOf(t, without.Conditions[i], timeline.Light), stageOf(t, with.Conditions[i], timeline.Light)
		if is.Floor != was.Floor || is.Calibrated != 1 {
			t.Errorf("light: floor %v, calibrated %v, want %v as the run shows itself", is.Floor, is.Calibrated, was.Floor)
		}
	}
	resolved := func(a *analysis.Analysis) bool {
		i := slices.IndexFunc(a.Differences, func(d analysis.Difference) bool { return d.Stage == timeline.CarrierUp })
		return a.Differences[i].Resolved
	}
	if !resolved(without) || resolved(with) {
		t.Errorf("3 s of carrier-up are resolved: %v without a calibration, %v with one of 8 s", resolved(without), resolved(with))
	}
}

// One that has expired says too little rather than too much; one of another set-up says nothing.
func TestOf_StaleCalibration(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*runs.Calibration)
		want   time.Duration
	}{
		"expired": {func(c *runs.Calibration) { c.Stale = "expired 3 days ago" }, 8 * time.Second},
		"changed": {func(c *runs.Calibration) { c.Changed = []string{"rail0 firmware was 1, is 2"} }, 0},
		"loss":    {func(c *runs.Calibration) { c.Kind = store.Loss }, 0},
	} {
		a := analysis.Of(calibrated(c.change))
		if got := stageOf(t, a.Conditions[0], timeline.CarrierUp).Calibrated; got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
