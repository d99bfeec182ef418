package fit_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/experiment/fit"
	"github.com/ocslab/ocslab/experiment/runs"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/timeline/dist"
)

const ms = time.Millisecond

// truth is how a lab behaves.
type truth struct {
	paths    map[string]dist.Mixture // by "1>33"; others are as ""
	debounce dist.Mixture
	firmware dist.Mixture // light to firmware
	carrier  time.Duration
	ackEarly bool
	dead     string // a NIC that never comes up
}

var lively = truth{
	paths: map[string]dist.Mixture{
		"":     {{Share: 0.7, Median: 20 * ms, Spread: ms}, {Share: 0.3, Median: 45 * ms, Spread: 2 * ms}},
		"1>34": {{Share: 1, Median: 80 * ms, Spread: 2 * ms}},
	},
	debounce: dist.Mixture{{Share: 1, Median: 6 * ms, Spread: ms}},
	firmware: dist.Mixture{{Share: 0.6, Median: 45 * ms, Spread: 2 * ms}, {Share: 0.4, Median: 95 * ms, Spread: 3 * ms}},
	carrier:  75 * time.Microsecond,
}

const labText = `name: try-lab
switches:
  - name: rail0
    emulate: {model: polatis-6000-32x32, switching: 20ms}
hosts:
  - {name: gpu1, nics: [{name: ens1, tx: rail0/1, rx: rail0/33, firmware: quick}]}
  - {name: gpu2, nics: [{name: ens1, tx: rail0/2, rx: rail0/34, firmware: quick}]}
`

// run is a run of n moves of gpu1>gpu2 and gpu2>gpu1 to loops and back, each seen through
// polls of about 2 ms.
func run(id string, w truth, n int, seed uint64) *runs.Run {
	r := rand.New(rand.NewPCG(seed, 3))
	run := &runs.Run{
		Meta: runs.Meta{ID: id, Lab: "try-lab", Emulated: true, Created: time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)},
		Lab:  []byte(labText), Sessions: []runs.Session{{Number: 1, Boot: "b"}},
		Setups: []runs.Setup{{
			Session: 1, Devices: []runs.Device{{Name: "rail0", Vendor: "Polatis", Model: "N-VST", Size: "32x32"}},
			NICs: []runs.NIC{
				{Name: "gpu1/ens1", Tx: "rail0/1", Rx: "rail0/33", Firmware: "fw 1"}, {Name: "gpu2/ens1", Tx: "rail0/2", Rx: "rail0/34", Firmware: "fw 1"},
			},
		}},
	}
	maps := []ocs.Map{ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33}, ocs.CrossConnect{Ingress: 2, Egress: 34}), ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34}, ocs.CrossConnect{Ingress: 2, Egress: 33})}
	nics := map[ocs.Port]string{33: "gpu1/ens1", 34: "gpu2/ens1"}
	for i := range n {
		number, begin := i+1, int64(i)*int64(30*time.Second)
		mark := func(stage timeline.Stage, subject string, at int64, poll time.Duration) {
			low := at - r.Int64N(int64(poll)+1)
			run.Marks = append(run.Marks, timeline.Mark{Stage: stage, Subject: subject, Interval: timeline.Between(low, low+int64(poll)), Reconfiguration: number})
		}
		run.Reconfigurations = append(run.Reconfigurations, runs.Reconfiguration{
			Number: number, Session: 1, MonoNS: begin, PatienceNS: int64(5 * time.Second),
			Removed: map[string]ocs.Map{"rail0": maps[i%2]}, Added: map[string]ocs.Map{"rail0": maps[1-i%2]},
		})
		mark(timeline.Command, "rail0", begin, 0)
		last := begin
		for c := range maps[1-i%2].All() {
			nic, egress := nics[c.Egress], fmt.Sprintf("rail0/%d", c.Egress)
			m := w.paths[c.String()]
			if m == nil {
				m = w.paths[""]
			}
			light := begin + int64(m.Draw(r))
			last = max(last, light)
			mark(timeline.Dark, egress, begin, 0)
			mark(timeline.Light, egress, light, 2*ms)
			mark(timeline.CarrierDown, nic, begin+int64(w.debounce.Draw(r)), ms)
			if nic == w.dead {
				run.Expected = append(run.Expected, timeline.Expectation{Reconfiguration: number, Stage: timeline.CarrierUp, Subject: nic})
				continue
			}
			firmware := light + int64(w.firmware.Draw(r))
			mark(timeline.Firmware, nic, firmware, ms)
			mark(timeline.CarrierUp, nic, firmware+int64(w.carrier), 100*time.Microsecond)
		}
		if w.ackEarly {
			last = begin + int64(ms)
		} else {
			last += int64(3 * ms)
		}
		mark(timeline.Ack, "rail0", last, 0)
	}
	return run
}

func must(t testing.TB, opt fit.Options, list ...*runs.Run) *fit.Fit {
	t.Helper()
	f, err := fit.Runs(list, opt)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func stage(t testing.TB, f *fit.Fit, subject string, q fit.Quantity, path string) *fit.Stage {
	t.Helper()
	for i := range f.Stages {
		if s := &f.Stages[i]; s.Subject == subject && s.Quantity == q && s.Path == path {
			return s
		}
	}
	t.Fatalf("no %s %s %s among %d stages", subject, q, path, len(f.Stages))
	return nil
}

var quick = fit.Options{Resamples: -1}

// TestRecovered fits a lab whose truth is known; with -v it prints the table.
func TestRecovered(t *testing.T) {
	f := must(t, quick, run("r", lively, 200, 1))
	for _, tc := range []struct {
		subject string
		q       fit.Quantity
		path    string
		want    dist.Mixture
	}{
		{"rail0", fit.Bulk, "", lively.paths[""]},
		{"rail0", fit.Bulk, "1>34", lively.paths["1>34"]},
		{"fitted", fit.LightToFirmware, "", lively.firmware},
		{"fitted", fit.Debounce, "", lively.debounce},
	} {
		s := stage(t, f, tc.subject, tc.q, tc.path)
		if len(s.Fitted.Mixture) != len(tc.want) {
			t.Errorf("%s: %s, want %d modes", s.Name(), fit.ModesText(s.Fitted), len(tc.want))
			continue
		}
		for k, got := range s.Fitted.Mixture {
			e, want := s.Fitted.Errors[k], tc.want[k]
			t.Logf("%-28s n=%d  share %.2f ±%.2f of %.2f  median %s of %v  spread %s of %v", s.Name(), s.Fitted.Count,
				got.Share, e.Share, want.Share, fit.Known(got.Median, e.Median), want.Median, fit.Known(got.Spread, e.Spread), want.Spread)
			if off := math.Abs(float64(got.Median - want.Median)); off > 4*float64(e.Median)+float64(ms)/4 {
				t.Errorf("%s: median %v ± %v, want %v", s.Name(), got.Median, e.Median, want.Median)
			}
			if off := math.Abs(float64(got.Spread - want.Spread)); off > 4*float64(e.Spread)+float64(ms)/4 {
				t.Errorf("%s: spread %v ± %v, want %v", s.Name(), got.Spread, e.Spread, want.Spread)
			}
			if math.Abs(got.Share-want.Share) > 4*e.Share+1e-9 {
				t.Errorf("%s: share %v ± %v, want %v", s.Name(), got.Share, e.Share, want.Share)
			}
		}
	}
	if f.Acks["rail0"].Mode != emulator.AckAfter {
		t.Errorf("ack: %+v", f.Acks)
	}
	early := lively
	early.ackEarly = true
	if f := must(t, quick, run("r", early, 60, 1)); f.Acks["rail0"].Mode != emulator.AckBefore {
		t.Errorf("ack: %+v", f.Acks)
	}
}

// TestWrite: all files load, and say what was fitted.
func TestWrite(t *testing.T) {
	f := must(t, quick, run("r", lively, 200, 1))
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	p, err := emulator.LoadPersonality(filepath.Join(dir, "rail0.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Switching.Modes) != 2 || len(p.Switching.Paths) != 1 || p.Switching.Paths[0].Path.String() != "1>34" {
		t.Errorf("%+v", p.Switching)
	}
	profile, err := firmwarenotes.Find(filepath.Join(dir, "try-lab.md#fitted"))
	if err != nil {
		t.Fatal(err)
	}
	// What comes out is what went in: debounce, and detect, train and carrier together.
	if d := profile.Detect.Median + profile.Train.Modes[1].Median - 95*ms; d.Abs() > ms {
		t.Errorf("the slower mode is off by %v: %+v", d, profile)
	}
	l, err := lab.Load(filepath.Join(dir, "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := l.Emulation("rail0"); err != nil || e.Personality.Model != "try-lab-rail0" {
		t.Errorf("%+v, %v", e.Personality.Model, err)
	}
	back, err := fit.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.Stages[0].Fitted.Mixture, back.Stages[0].Fitted.Mixture); diff != "" || len(back.Stages) != len(f.Stages) {
		t.Error(diff)
	}
	if _, err := f.Write(dir, "test"); err != nil {
		t.Errorf("a fit is not replaced: %v", err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "thesis.tex"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(full, "test"); !errors.Is(err, fit.ErrDir) {
		t.Errorf("writes among other files: %v", err)
	}
}

func TestRuns_Refuses(t *testing.T) {
	few := run("few", lively, 5, 1)
	if _, err := fit.Runs([]*runs.Run{few}, quick); !errors.Is(err, dist.ErrTooFew) || !strings.Contains(err.Error(), "rail0 switching-bulk has 10 of 20") {
		t.Errorf("too few: %v", err)
	}
	if f := must(t, quick, few, run("b", lively, 20, 2)); len(f.Runs) != 2 {
		t.Errorf("two runs together: %v", f.Runs)
	}
	a := run("a", lively, 20, 1)
	for what, change := range map[string]func(*runs.Run){
		"lab": func(r *runs.Run) { r.Meta.Lab = "other" }, "reality": func(r *runs.Run) { r.Meta.Emulated = false },
		"serial number": func(r *runs.Run) { r.Setups[0].Devices[0].Serial = "2" }, "NIC firmware": func(r *runs.Run) { r.Setups[0].NICs[0].Firmware = "fw 2" },
	} {
		b := run("b", lively, 20, 2)
		change(b)
		if _, err := fit.Runs([]*runs.Run{a, b}, quick); !errors.Is(err, fit.ErrMixed) {
			t.Errorf("another %s: %v", what, err)
		}
	}
	if _, err := fit.Runs(nil, quick); !errors.Is(err, fit.ErrNothing) {
		t.Errorf("no runs: %v", err)
	}
	if _, err := fit.Runs([]*runs.Run{{Meta: runs.Meta{ID: "empty"}}}, quick); !errors.Is(err, fit.ErrNothing) {
		t.Errorf("an empty run: %v", err)
	}
}

func TestDrift(t *testing.T) {
	f := must(t, quick, run("r", lively, 150, 1))
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	f, err := fit.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	verdict := func(w truth, n int, seed uint64) *fit.DriftReport {
		t.Helper()
		d, err := f.Drift(run("later", w, n, seed), fit.DriftOptions{Resamples: 150})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	alarms := 0
	for seed := range uint64(20) {
		if verdict(lively, 60, 100+seed).Drifted() {
			alarms++
		}
	}
	t.Logf("%d of 20 false alarms", alarms)
	if alarms > 2 {
		t.Errorf("%d of 20 runs of a lab that has not changed are said to have drifted", alarms)
	}
	slow := lively
	slow.firmware = dist.Mixture{{Share: 0.6, Median: 50 * ms, Spread: 2 * ms}, {Share: 0.4, Median: 100 * ms, Spread: 3 * ms}}
	if err := verdict(slow, 60, 7).Err(); !errors.Is(err, fit.ErrDrifted) || !strings.Contains(err.Error(), "fitted light-firmware") || strings.Contains(err.Error(), "rail0") {
		t.Errorf("5 ms slower firmware: %v", err)
	}
	dead := lively
	dead.dead = "gpu2/ens1"
	if d := verdict(dead, 60, 7); d.Stages[0].Verdict == fit.Drifted {
		t.Errorf("a NIC that is dead says nothing of the switch: %+v", d.Stages[0])
	}
	if err := verdict(lively, 4, 7).Err(); !errors.Is(err, dist.ErrTooFew) {
		t.Errorf("8 values: %v", err)
	}
	other := run("later", lively, 60, 7)
	other.Meta.Lab = "other"
	if _, err := f.Drift(other, fit.DriftOptions{}); !errors.Is(err, fit.ErrMixed) {
		t.Errorf("another lab: %v", err)
	}
}

// slower returns a run as one of instruments that are read half as often would have seen it:
// marks known to twice as much, around the same truth.
func slower(r *runs.Run) *runs.Run {
	for i := range r.Marks {
		m := &r.Marks[i]
		if m.Stage == timeline.Light || m.Stage == timeline.CarrierDown || m.Stage == timeline.Firmware {
			m.Latest += int64(m.Width())
		}
	}
	return r
}

// TestDrift_Instruments: what an instrument leaves open is no drift, and is said.
func TestDrift_Instruments(t *testing.T) {
	f := must(t, quick, run("r", lively, 150, 1))
	d, err := f.Drift(slower(run("later", lively, 100, 5)), fit.DriftOptions{Resamples: 150})
	if err != nil {
		t.Fatal(err)
	}
	if d.Drifted() {
		t.Errorf("slower instruments are taken for drift: %v", d.Err())
	}
	if text := strings.Join(d.Remarks, " "); !strings.Contains(text, "not read at the same pace") {
		t.Errorf("nothing is said of them: %q", text)
	}
	for what, change := range map[string]func(*truth){
		"10 % slower switching": func(w *truth) {
			w.paths = map[string]dist.Mixture{"": {{Share: 0.7, Median: 22 * ms, Spread: ms}, {Share: 0.3, Median: 49500 * time.Microsecond, Spread: 2 * ms}}, "1>34": lively.paths["1>34"]}
		},
		"a third mode": func(w *truth) {
			w.paths = map[string]dist.Mixture{"": {{Share: 0.5, Median: 20 * ms, Spread: ms}, {Share: 0.3, Median: 45 * ms, Spread: 2 * ms}, {Share: 0.2, Median: 90 * ms, Spread: ms}}, "1>34": lively.paths["1>34"]}
		},
		"5 % slower firmware": func(w *truth) {
			w.firmware = dist.Mixture{{Share: 0.6, Median: 47250 * time.Microsecond, Spread: 2 * ms}, {Share: 0.4, Median: 99750 * time.Microsecond, Spread: 3 * ms}}
		},
	} {
		w := lively
		change(&w)
		if d, err := f.Drift(run("later", w, 150, 5), fit.DriftOptions{Resamples: 150}); err != nil || !d.Drifted() {
			t.Errorf("%s is not found: %v", what, err)
		}
	}
}

// TestBelow: a stage that is shorter than its instruments can tell is said to be at most so much,
// and taken from the base.
func TestBelow(t *testing.T) {
	f := must(t, quick, run("r", lively, 100, 1))
	s := stage(t, f, "fitted", fit.Carrier, "")
	most, below := s.Below()
	if !below || most < 75*time.Microsecond || most > 3*ms {
		t.Errorf("75 us between marks that are known to 1 ms: %v, %v", most, below)
	}
	if text := s.Text(); !strings.HasPrefix(text, "below resolution: at most ") {
		t.Error(text)
	}
	if _, below := stage(t, f, "fitted", fit.LightToFirmware, "").Below(); below {
		t.Error("45 ms are not below resolution")
	}
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	p, err := firmwarenotes.Find(filepath.Join(dir, "try-lab.md#fitted"))
	if err != nil {
		t.Fatal(err)
	}
	if p.Carrier.Median != 75*time.Microsecond {
		t.Errorf("carrier %v, want that of the base, which is not excluded", p.Carrier.Median)
	}
	for _, page := range []string{"try-lab.md", "fit.html"} {
		if text, err := os.ReadFile(filepath.Join(dir, page)); err != nil || !strings.Contains(string(text), "below resolution") {
			t.Errorf("%s does not say so: %v", page, err)
		}
	}
}

// TestRuns_Burst: link-ups that are slow in rapid succession become the burst of the profile.
func TestRuns_Burst(t *testing.T) {
	r := run("r", truth{paths: lively.paths, debounce: lively.debounce, firmware: dist.Mixture{{Share: 1, Median: 45 * ms, Spread: 2 * ms}}, carrier: lively.carrier}, 120, 1)
	// Changes come in pairs two seconds apart, a minute from the next pair; the second of a pair
	// takes 30 ms more.
	for i := range r.Reconfigurations {
		rec := &r.Reconfigurations[i]
		by := int64(i/2)*int64(time.Minute) + int64(i%2)*int64(2*time.Second) - rec.MonoNS
		rec.MonoNS += by
		for j := range r.Marks {
			if m := &r.Marks[j]; m.Reconfiguration == rec.Number {
				m.Interval = m.Shift(by, 0)
				if i%2 == 1 && (m.Stage == timeline.Firmware || m.Stage == timeline.CarrierUp) {
					m.Interval = m.Shift(int64(30*ms), 0)
				}
			}
		}
	}
	f := must(t, fit.Options{Resamples: -1, BaseFirmware: "quick"}, r)
	b := f.Profiles[0].Burst
	if b == nil || !f.Profiles[0].BurstFitted || b.Free != 0 || (b.Step-30*ms).Abs() > 3*ms {
		t.Fatalf("%+v %+v", f.Profiles[0], b)
	}
	s := stage(t, f, "fitted", fit.LightToFirmware, "")
	if m := s.Fitted.Mixture; len(m) != 1 || (m[0].Median-45*ms).Abs() > ms {
		t.Errorf("slow link-ups are in %s", fit.ModesText(s.Fitted))
	}
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	p, err := firmwarenotes.Find(filepath.Join(dir, "try-lab.md#fitted"))
	if err != nil || p.Burst == nil || p.Burst.Step != b.Step {
		t.Errorf("written as %+v, %v", p.Burst, err)
	}
}

// TestRuns_NIC: a NIC whose firmware is slower than that of the others has a profile of its own.
func TestRuns_NIC(t *testing.T) {
	r := run("r", lively, 100, 1)
	for i := range r.Marks {
		if m := &r.Marks[i]; m.Subject == "gpu2/ens1" && (m.Stage == timeline.Firmware || m.Stage == timeline.CarrierUp) {
			m.Interval = m.Shift(int64(40*ms), 0)
		}
	}
	f := must(t, quick, r)
	if len(f.Profiles) != 2 || f.Profiles[1].Key != "gpu2-ens1" && f.Profiles[0].Key != "gpu2-ens1" && f.Profiles[1].Key != "gpu1-ens1" {
		t.Fatalf("%+v", f.Profiles)
	}
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	l, err := lab.Load(filepath.Join(dir, "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := l.NIC("gpu1/ens1")
	b, _ := l.NIC("gpu2/ens1")
	if l.Firmware(a) == l.Firmware(b) {
		t.Errorf("both have %s", l.Firmware(a))
	}
}

// TestRuns_Single: changes of one cross-connect are a stage of their own, and the personality has
// both.
func TestRuns_Single(t *testing.T) {
	r := run("r", lively, 80, 1)
	for i := range r.Reconfigurations {
		if i%2 == 0 {
			continue
		}
		rec := &r.Reconfigurations[i]
		one := func(m ocs.Map) map[string]ocs.Map {
			for c := range m.All() {
				return map[string]ocs.Map{"rail0": ocs.MustMap(c)}
			}
			return nil
		}
		rec.Added, rec.Removed = one(rec.Added["rail0"]), one(rec.Removed["rail0"])
	}
	f := must(t, quick, r)
	if n := stage(t, f, "rail0", fit.Single, "").Fitted.Count; n != 40 {
		t.Errorf("%d changes of one cross-connect, want 40", n)
	}
	stage(t, f, "rail0", fit.Bulk, "")
	if _, err := f.Write(filepath.Join(t.TempDir(), "rig"), "test"); err != nil {
		t.Fatal(err)
	}
}

// TestRuns_NoFirmware: without marks of the firmware, light to carrier is fitted as one.
func TestRuns_NoFirmware(t *testing.T) {
	r := run("r", lively, 80, 1)
	r.Marks = slices.DeleteFunc(r.Marks, func(m timeline.Mark) bool { return m.Stage == timeline.Firmware })
	f := must(t, quick, r)
	s := stage(t, f, "fitted", fit.LightToCarrier, "")
	if m := s.Fitted.Mixture; len(m) != 2 || (m[0].Median-45*ms).Abs() > 2*ms {
		t.Errorf("%s", fit.ModesText(s.Fitted))
	}
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	p, err := firmwarenotes.Find(filepath.Join(dir, "try-lab.md#fitted"))
	if err != nil || (p.Detect.Median+p.Train.Modes[0].Median+p.Carrier.Median-s.Fitted.Mixture[0].Median).Abs() > ms {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestLoad_Damaged: a fit that was cut off, or has numbers that do not go together, is refused.
func TestLoad_Damaged(t *testing.T) {
	f := must(t, quick, run("r", lively, 40, 1))
	dir := filepath.Join(t.TempDir(), "rig")
	if _, err := f.Write(dir, "test"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "fit.json")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{
		"cut off": string(whole[:len(whole)/2]), "empty": "", "another format": strings.Replace(string(whole), `"format": 2`, `"format": 1`, 1),
		"no count":  strings.Replace(string(whole), `"count":`, `"count": -1, "cuont":`, 1),
		"unsorted":  strings.Replace(string(whole), `"lows_ns": [`, `"lows_ns": [999999999999,`, 1),
		"no modes":  strings.Replace(string(whole), `"share":`, `"shares":`, 1),
		"not alike": strings.Replace(string(whole), `"alike": [`, `"alike": [0,`, 1),
	} {
		if text == string(whole) {
			t.Fatalf("%s: nothing was damaged", what)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := fit.Load(dir); !errors.Is(err, fit.ErrDir) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// FuzzLoad: whatever is in fit.json, Load reads it or says why not.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"format":2,"stages":[{"subject":"rail0","quantity":"switching","modes":[{"share":1,"median_ns":20}],"errors":[{}],"count":20,"seen":{"lows_ns":[1,2],"highs_ns":[3,4],"alike":[1,1]}}]}`))
	f.Add([]byte(`{"format":1}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(filepath.Join(dir, "fit.json"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := fit.Load(dir)
		if err != nil {
			if !errors.Is(err, fit.ErrDir) {
				t.Fatal(err)
			}
			return
		}
		if len(got.Stages) == 0 {
			t.Fatal("nothing in it, and no error")
		}
		if _, err := got.Drift(&runs.Run{Meta: runs.Meta{Lab: got.Lab}}, fit.DriftOptions{Resamples: 1}); err != nil {
			t.Fatal(err)
		}
	})
}
