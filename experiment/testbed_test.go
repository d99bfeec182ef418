package experiment_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// testbed opens the built-in testbed with NICs in memory, or on another rung.
func testbed(t *testing.T, change func(*lab.File, *experiment.TestbedOptions)) *experiment.Testbed {
	t.Helper()
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	opt := experiment.TestbedOptions{Fabric: lab.FabricOptions{Firmware: "quick", Rung: fabric.Memory, Seed: 1}}
	for _, name := range []string{"dp", "pp"} {
		c, err := f.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		opt.Maps = append(opt.Maps, c)
	}
	opt.Watch.Probe.Pace = time.Millisecond
	if change != nil {
		change(f, &opt)
	}
	l := lab.New(f, lab.Options{Emulated: true})
	t.Cleanup(func() { l.Close() })
	tb, err := experiment.OpenTestbed(t.Context(), l, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

// stages lists what was reached by whom.
func stages(marks []timeline.Mark) map[string]int {
	n := map[string]int{}
	for _, m := range marks {
		n[string(m.Stage)]++
	}
	return n
}

// Ensure a move sees every stage of every NIC and both directions of every pair, on
// all rungs, and that the marks of carriers hold the truth.
func TestTestbed_AllStages(t *testing.T) {
	for _, x := range fabric.Rungs() {
		t.Run(x.Rung.String(), func(t *testing.T) {
			if x.Err != nil {
				t.Skip(x.Err)
			}
			tb := testbed(t, func(_ *lab.File, opt *experiment.TestbedOptions) { opt.Fabric.Rung = x.Rung })
			for i := range 2 { // once to begin from, once to warm up
				if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[i], ocs.Update); err != nil {
					t.Fatal(err)
				}
			}
			tb.Truth(0)
			mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
			if err != nil {
				t.Fatal(err)
			}
			truth := tb.Truth(1)
			if len(mv.Unresolved) > 0 || len(mv.Held) > 0 {
				t.Errorf("unresolved=%v, held=%v", mv.Unresolved, mv.Held)
			}
			marks, conflicts := timeline.Merge(mv.Marks)
			if len(conflicts) > 0 {
				t.Errorf("conflicts: %v", conflicts)
			}
			if v := timeline.Check(marks); len(v) > 0 {
				t.Errorf("impossible order: %v", v)
			}
			got := stages(marks)
			// Four ports by the monitors, and four NICs by their modules.
			for stage, want := range map[timeline.Stage]int{
				timeline.Command: 1, timeline.Ack: 1, timeline.Dark: 8, timeline.Light: 8,
				timeline.CarrierDown: 4, timeline.CarrierUp: 4, timeline.Firmware: 4,
			} {
				if got[string(stage)] != want {
					t.Errorf("%d marks of %s, want %d", got[string(stage)], stage, want)
				}
			}
			// A flow that lost a packet just before the command, as happens on a busy
			// machine, has no traffic to lose any more; all others have.
			if n := got[string(timeline.TrafficLost)]; n < 1 || n > 4 {
				t.Errorf("%d marks of traffic-lost, want 1 to 4", n)
			}
			if n := got[string(timeline.Traffic)]; n != 4 {
				t.Errorf("%d marks of traffic, want 4", n)
			}
			report := timeline.Summarize(marks, timeline.Options{Expected: mv.Expected})
			for _, s := range report.Stages {
				if s.Missing > 0 {
					t.Errorf("%d marks of %s are missing", s.Missing, s.Stage)
				}
			}
			for _, a := range timeline.Compare(marks, truth) {
				switch a.Stage {
				case timeline.CarrierDown, timeline.CarrierUp, timeline.Firmware:
					if a.Inside != 4 {
						t.Errorf("%s: %d of 4 marks hold the truth", a.Stage, a.Inside)
					}
				}
			}
			if err := watch.Incomplete(tb.Watch.Accounts()); err != nil {
				t.Error(err)
			}
		})
	}
}

// Ensure that a link whose firmware does not notice the dark is told as held, and
// nothing is waited for.
func TestTestbed_HeldLinks(t *testing.T) {
	for _, pace := range []time.Duration{time.Millisecond, experiment.Quiet} {
		tb := testbed(t, func(f *lab.File, opt *experiment.TestbedOptions) {
			dark := time.Millisecond // less than the debounce of the quick firmware
			f.Switches[0].Emulate.Switching = &dark
			opt.Watch.Probe.Pace = pace
		})
		tb.Bench.Hold = 100 * time.Millisecond
		for i := range 2 {
			if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[i], ocs.Update); err != nil {
				t.Fatal(err)
			}
		}
		mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
		if err != nil {
			t.Fatal(err)
		}
		if len(mv.Held)+stages(mv.Marks)["carrier-down"] != 4 {
			t.Errorf("pace %v: held=%v, and %d links went down", pace, mv.Held, stages(mv.Marks)["carrier-down"])
		}
		for _, u := range mv.Unresolved {
			if strings.Contains(u, "carrier") {
				t.Errorf("pace %v: a link that was held is missed: %s", pace, u)
			}
		}
	}
}

// Ensure that what does not come back is told, and by name.
func TestTestbed_NeverBack(t *testing.T) {
	tb := testbed(t, nil)
	for i := range 2 {
		if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[i], ocs.Update); err != nil {
			t.Fatal(err)
		}
	}
	rig := tb.Bench.Rigs[0]
	rig.Reconcile = func(ctx context.Context, want ocs.Map, policy ocs.Policy) (ocs.Report, error) {
		dev := rig.Switch.(*lab.Opened).Emulated.Device
		go func() { // while the mirrors move
			for !dev.CrossConnects().Has(ocs.CrossConnect{Ingress: 1, Egress: 34}) {
				time.Sleep(time.Millisecond)
			}
			dev.Unlight(34) // where gpu2 receives
		}()
		return ocs.Reconcile(ctx, rig.Switch, want, policy)
	}
	tb.Bench.Patience, tb.Bench.LinkPatience = 400*time.Millisecond, time.Second
	mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(mv.Unresolved, "\n")
	for _, want := range []string{"rail0/34: light", "gpu2/ens1f0: carrier-up", "gpu2/ens1f0: firmware", "gpu1/ens1f0>gpu2/ens1f0: traffic"} {
		if !strings.Contains(all, want) {
			t.Errorf("unresolved does not tell of %s:\n%s", want, all)
		}
	}
	for _, u := range mv.Unresolved {
		if !strings.Contains(u, "gpu2") && !strings.Contains(u, "rail0/34") {
			t.Errorf("unresolved tells of another: %s", u)
		}
	}
	if slices.ContainsFunc(mv.Marks, func(m timeline.Mark) bool {
		return m.Subject == "gpu2/ens1f0" && m.Stage == timeline.CarrierUp
	}) {
		t.Error("a mark of a carrier that did not come")
	}
}

// Ensure that a NIC that was down before is waited for, and its carrier is no loss.
func TestTestbed_FromDark(t *testing.T) {
	tb := testbed(t, nil)
	mv, err := tb.Bench.Move(t.Context(), 1, tb.Maps[0], ocs.Update)
	if err != nil {
		t.Fatal(err)
	}
	got := stages(mv.Marks)
	if got["carrier-up"] != 4 || got["carrier-down"] != 0 || got["firmware"] != 4 || got["traffic"] != 4 {
		t.Errorf("marks: %v", got)
	}
	if len(mv.Held)+len(mv.Unresolved) > 0 {
		t.Errorf("held=%v, unresolved=%v", mv.Held, mv.Unresolved)
	}
}

// Ensure that a NIC that was pulled is told of, not waited for, and not called held.
func TestTestbed_Pulled(t *testing.T) {
	tb := testbed(t, nil)
	for i := range 2 {
		if _, err := tb.Bench.Move(t.Context(), 0, tb.Maps[i], ocs.Update); err != nil {
			t.Fatal(err)
		}
	}
	rig := tb.Bench.Rigs[0]
	rig.Reconcile = func(ctx context.Context, want ocs.Map, policy ocs.Policy) (ocs.Report, error) {
		if err := tb.Fabric.Remove("gpu1", "ens1f0"); err != nil {
			t.Error(err)
		}
		return ocs.Reconcile(ctx, rig.Switch, want, policy)
	}
	// Its partner gets no light any more.
	tb.Bench.Patience, tb.Bench.LinkPatience = 400*time.Millisecond, time.Second
	var mv experiment.Move
	told := false
	for i := 0; !told && i < 5; i++ { // the list of interfaces is looked at now and then
		var err error
		if mv, err = tb.Bench.Move(t.Context(), i+1, tb.Maps[i%2], ocs.Update); err != nil {
			t.Fatal(err)
		}
		rig.Reconcile = nil
		for _, n := range mv.Notes {
			told = told || n.Event == "removed" && n.Subject == "gpu1/ens1f0"
		}
	}
	if !told {
		t.Error("that the interface is gone was not told")
	}
	if slices.Contains(mv.Held, "gpu1/ens1f0") {
		t.Errorf("held=%v: there is nothing to hold", mv.Held)
	}
	for _, e := range mv.Expected {
		if strings.Contains(e.Subject, "gpu1/ens1f0") {
			t.Errorf("%s of %s is expected", e.Stage, e.Subject)
		}
	}
}

func TestTestbed_Only(t *testing.T) {
	tb := testbed(t, func(_ *lab.File, opt *experiment.TestbedOptions) { opt.Only = []string{"gpu2", "gpu3/ens1f0"} })
	for name, want := range map[string]bool{"gpu1": false, "gpu2": true, "gpu3": true, "gpu4": false} {
		if got := tb.Watch.Covers(timeline.CarrierUp, name+"/ens1f0"); got != want {
			t.Errorf("%s is watched: %v, want %v", name, got, want)
		}
	}
}

// Ensure that hosts which are not here are told, with what to do.
func TestHosts_NotHere(t *testing.T) {
	f, err := lab.Parse("lab.yaml", []byte(`
switches: [{name: rail0, url: "tl1://192.0.2.10"}]
hosts:
  - {name: elsewhere, nics: [{name: nic0, tx: rail0/1, rx: rail0/33}]}
  - {name: far, agent: [ssh, far, ocslab], nics: [{name: nic0, tx: rail0/2, rx: rail0/34}]}
  - {name: empty}
`))
	if err != nil {
		t.Fatal(err)
	}
	hosts, not, closers, err := experiment.Hosts(f)
	if err != nil || len(closers) != 0 {
		t.Fatalf("err=%v, %d closers", err, len(closers))
	}
	if len(hosts) != 1 || hosts[0].Name != "far" || !slices.Equal(hosts[0].Interfaces, []string{"nic0"}) {
		t.Errorf("hosts=%+v", hosts)
	}
	if len(not) != 1 || not[0].Host != "elsewhere" || !strings.Contains(not[0].Why, "agent:") {
		t.Errorf("not=%+v", not)
	}
}

// Ensure traffic is not waited for of a NIC that gets no light itself, and so has no
// carrier to send with.
func TestTestbed_OneWay(t *testing.T) {
	tb := testbed(t, nil)
	dark := map[string]ocs.Map{"rail0": {}}
	if _, err := tb.Bench.Move(t.Context(), 0, dark, ocs.Overwrite); err != nil {
		t.Fatal(err)
	}
	oneWay := map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})}
	mv, err := tb.Bench.Move(t.Context(), 1, oneWay, ocs.Update)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range mv.Expected {
		if e.Stage == timeline.Traffic {
			t.Errorf("%v is expected", e)
		}
	}
	if len(mv.Unresolved) > 0 || stages(mv.Marks)["carrier-up"] == 0 {
		t.Errorf("unresolved %q, marks %v", mv.Unresolved, stages(mv.Marks))
	}
	// The way back makes both directions carry traffic.
	back := map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: 33})}
	if mv, err = tb.Bench.Move(t.Context(), 2, back, ocs.Update); err != nil {
		t.Fatal(err)
	}
	if stages(mv.Marks)["traffic"] == 0 {
		t.Errorf("no traffic: unresolved %q, marks %v", mv.Unresolved, stages(mv.Marks))
	}
}
