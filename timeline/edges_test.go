package timeline_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

var noLight = math.Inf(-1)

// readings makes a sample each 10 ns that takes 2 ns: 0..2, 10..12 and so on.
func readings(powers ...float64) []timeline.Sample {
	samples := make([]timeline.Sample, len(powers))
	for i, p := range powers {
		samples[i] = timeline.Sample{Interval: timeline.Between(int64(i)*10, int64(i)*10+2), PowerDBm: p}
	}
	return samples
}

func TestEdges(t *testing.T) {
	none := timeline.Interval{}
	for _, tc := range []struct {
		name       string
		before     float64
		samples    []timeline.Sample
		rule       timeline.SettleRule
		dark       timeline.Interval
		darkState  timeline.EdgeState
		light      timeline.Interval
		lightState timeline.EdgeState
	}{
		{"Both", -2, readings(-2, -2, -40, -40, -4, -2.6, -2.4, -2.1, -2, -2, -2), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, timeline.Between(50, 62), timeline.Known},
		{"Weaker", -2, readings(-2, -2, -40, -40, -12, -10.6, -10.4, -10.1, -10, -10, -10), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, timeline.Between(50, 62), timeline.Known},
		{"LessAndNeverDark", -2, readings(-2, -2, -10, -10, -10, -10, -10, -10), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, none, timeline.NoLight},
		{"Stray", -2, readings(-2, -2, -60, -60, -46, -46, -46, -46), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, none, timeline.NoLight},
		{"Weakest", -2, readings(-2, -2, -60, -60, -45, -45, -45, -45), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, timeline.Between(30, 42), timeline.Known},
		{"LessAndHardlyDarker", -2, readings(-2, -2, -12, -12, -10, -10, -10, -10), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, none, timeline.NoLight},
		{"LessAndJustDarker", -2, readings(-2, -2, -13, -13, -10, -10, -10, -10), timeline.SettleRule{},
			timeline.Between(10, 22), timeline.Known, timeline.Between(30, 42), timeline.Known},
		{"Averaged", -2, readings(-2, -2, -40, -40, -4, -2.6, -2.4, -2.1, -2, -2, -2), timeline.SettleRule{Averaging: 5},
			timeline.Between(5, 22), timeline.Known, timeline.Between(45, 62), timeline.Known},
		{"LightNotBeforeDark", -2, readings(-2, -2, -40, -2, -2, -2), timeline.SettleRule{Averaging: 15},
			timeline.Between(-5, 22), timeline.Known, timeline.Between(5, 32), timeline.Known},
		{"OneDarkSample", -2, readings(-2, -40, -2, -2, -2), timeline.SettleRule{Averaging: 25},
			timeline.Between(-25, 12), timeline.Known, timeline.Between(-15, 22), timeline.Known},
		{"OtherRule", -2, readings(-2, -4, -2.6, -2, -2, -2), timeline.SettleRule{Within: 1, Dark: 1.5},
			timeline.Between(0, 12), timeline.Known, timeline.Between(10, 22), timeline.Known},
		{"OtherPathIsWeaker", -2, readings(-2, noLight, -4, -4, -4), timeline.SettleRule{},
			timeline.Between(0, 12), timeline.Known, timeline.Between(10, 22), timeline.Known},
		{"FinalIsOfTheLastQuarter", -2, readings(-2, -40, -40, -40, -40, -40, -40, -40, -40, -40, -40, -40, -40, -40, -40, -2.65, -2.65, -2.3, -2.1, -2), timeline.SettleRule{},
			timeline.Between(0, 12), timeline.Known, timeline.Between(140, 152), timeline.Known},
		{"FailedReadings", -2, readings(math.NaN(), -2, math.NaN(), -40, math.Inf(1), -2, -2, -2, math.NaN()), timeline.SettleRule{},
			timeline.Between(10, 32), timeline.Known, timeline.Between(30, 52), timeline.Known},
		{"NeverDark", -2, readings(-2, -3, -2, -2, -2), timeline.SettleRule{}, none, timeline.NoDark, none, timeline.NoDark},
		{"FromDark", noLight, readings(noLight, -40, -3, -2, -2, -2), timeline.SettleRule{},
			none, timeline.AlreadyDark, timeline.Between(20, 32), timeline.Known},
		{"FromDarkTooLate", noLight, readings(-2, -2, -2, -2), timeline.SettleRule{}, none, timeline.AlreadyDark, none, timeline.NoDark},
		{"FromDarkNothing", noLight, readings(noLight, noLight, noLight), timeline.SettleRule{}, none, timeline.AlreadyDark, none, timeline.NoLight},
		{"NoiseFloor", noLight, readings(-60, -60.9, -60, -60, -60), timeline.SettleRule{}, none, timeline.AlreadyDark, none, timeline.NoLight},
		{"DarkAtFirst", -2, readings(-40, -40, -2, -2, -2), timeline.SettleRule{}, none, timeline.AlreadyDark, timeline.Between(10, 22), timeline.Known},
		{"StaysDark", -2, readings(-2, -40, -40, -40), timeline.SettleRule{}, timeline.Between(0, 12), timeline.Known, none, timeline.NoLight},
		{"DarkInTheBand", -2, readings(-2, -5.1, -4.9, -4.9, -4.9), timeline.SettleRule{}, timeline.Between(0, 12), timeline.Known, none, timeline.NoLight},
		{"StillClimbing", -2, readings(-2, -40, -20, -6, -4, -3), timeline.SettleRule{}, timeline.Between(0, 12), timeline.Known, none, timeline.NotSettled},
		{"SettledTooBriefly", -2, readings(-2, -2, -40, -3, -2, -2), timeline.SettleRule{}, timeline.Between(10, 22), timeline.Known, none, timeline.NotSettled},
		{"TooFew", -2, readings(-2, -40), timeline.SettleRule{}, none, timeline.TooFewSamples, none, timeline.TooFewSamples},
		{"None", noLight, nil, timeline.SettleRule{}, none, timeline.AlreadyDark, none, timeline.TooFewSamples},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check := func(name string, edge timeline.Edge, want timeline.Interval, wantState timeline.EdgeState) {
				at, known := edge.Interval()
				if at != want || edge.State() != wantState || known != (wantState == timeline.Known) {
					t.Errorf("%s = %+v, %v (%v), want %+v (%v)", name, at, known, edge.State(), want, wantState)
				}
			}
			dark, light := timeline.Edges(tc.before, tc.samples, tc.rule)
			check("dark", dark, tc.dark, tc.darkState)
			check("light", light, tc.light, tc.lightState)
		})
	}
}

func TestEdges_Strings(t *testing.T) {
	seen := make(map[string]bool)
	for s := timeline.TooFewSamples; s <= timeline.NotSettled; s++ {
		seen[s.String()] = true
	}
	if len(seen) != 6 {
		t.Errorf("states are not told apart: %v", seen)
	}
	if got, want := timeline.EdgeState(99).String(), "EdgeState(99)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := readings(-3.456)[0].String(), "-3.46 dBm at 1 ns ±1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// curve is true optical power in mW: full until it falls at 0, and from rise on it
// climbs to the final power, both exponentially.
type curve struct {
	full, floor, final float64 // mW
	rise               float64 // ns
	fallTau, riseTau   float64 // ns
}

// energy is the integral of the power from 0 to t.
func (c curve) energy(t float64) float64 {
	if t <= 0 {
		return c.full * t
	}
	e := c.floor*t + (c.full-c.floor)*c.fallTau*-math.Expm1(-t/c.fallTau)
	if u := t - c.rise; u > 0 {
		// What is left of the fall is negligible by then; see the test.
		e += (c.final - c.floor) * (u + c.riseTau*math.Expm1(-u/c.riseTau))
	}
	return e
}

// reading is what a monitor shows at t that averages over the window before.
func (c curve) reading(t, window float64) float64 {
	return 10 * math.Log10((c.energy(t)-c.energy(t-window))/window)
}

// Whatever the poll times, a known edge holds the true crossing.
func TestEdges_Simulated(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		between := func(name string, low, high float64) float64 { return rapid.Float64Range(low, high).Draw(t, name) }
		fullDBm, finalDBm := between("full", -10, 3), 0.0
		finalDBm = fullDBm + between("change", -2, 2)
		mw := func(dbm float64) float64 { return math.Pow(10, dbm/10) }
		c := curve{
			full: mw(fullDBm), final: mw(finalDBm), floor: mw(fullDBm - 40),
			fallTau: between("fall", 1e3, 1e6), riseTau: between("rise", 1e3, 1e7),
		}
		c.rise = 40*c.fallTau + between("outage", 0, 1e8)
		window := between("window", 1e3, 3e7)
		gap := between("gap", 1e4, 3e7)
		rule := timeline.SettleRule{Averaging: time.Duration(math.Ceil(window))}

		// The crossings, solved for the default rule: 3 dB below full, and within 0.5 dB
		// of the final power.
		trueDark := c.fallTau * math.Log((c.full-c.floor)/(mw(fullDBm-3)-c.floor))
		trueLight := c.rise + c.riseTau*math.Log((c.final-c.floor)/(c.final-mw(finalDBm-0.5)))

		// Poll until long after everything settled, so that the final power is exact.
		settled := c.rise + 40*c.riseTau + window
		var samples []timeline.Sample
		random := rapid.Custom(func(t *rapid.T) [3]float64 {
			return [3]float64{rapid.Float64Range(0.2, 1).Draw(t, "gap"), rapid.Float64Range(0, 0.5).Draw(t, "took"), rapid.Float64Range(0, 1).Draw(t, "latched")}
		})
		// A few drawn gaps repeat, or a case would need thousands of draws.
		pattern := rapid.SliceOfN(random, 7, 7).Draw(t, "pattern")
		step := max(gap, settled/300)
		at := -2 * step
		for i := 0; at < settled || i < 12 || samples[len(samples)*5/8].Earliest < int64(settled); i++ {
			r := pattern[i%len(pattern)]
			start := math.Floor(at)
			end := start + math.Floor(r[1]*step)
			latched := start + r[2]*(end-start)
			samples = append(samples, timeline.Sample{
				Interval: timeline.Between(int64(start), int64(end)),
				PowerDBm: c.reading(latched, window),
			})
			at = end + r[0]*step
		}

		dark, light := timeline.Edges(fullDBm, samples, rule)
		// 2 ns for what floating point rounds.
		if i, ok := dark.Interval(); ok {
			known++
			if !i.Widen(2).Contains(int64(trueDark)) {
				t.Fatalf("dark %+v does not hold %.0f", [2]int64{i.Earliest, i.Latest}, trueDark)
			}
		}
		if i, ok := light.Interval(); ok {
			known++
			if !i.Widen(2).Contains(int64(trueLight)) {
				t.Fatalf("light %+v does not hold %.0f", [2]int64{i.Earliest, i.Latest}, trueLight)
			}
		} else if s := light.State(); s != timeline.NoDark {
			t.Fatalf("light is %v", s)
		}
	})
	if known == 0 {
		t.Error("no edge was ever known")
	}
	t.Logf("%d edges known", known)
}
