package advice_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/orchestrator/advice"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// labJob is the job of the lab: two stages of two.
var labJob = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

// part is a phase that all ranks of a job go through at once.
type part struct {
	axis          int
	before, takes time.Duration // computation before, and the operation
}

// alternating returns a trace in which all ranks of a job of two stages do the same.
func alternating(job opus.Job, parts ...part) *trace.Trace {
	ranks := make([][]trace.Op, job.Ranks())
	for x := range ranks {
		for _, p := range parts {
			op := trace.Op{Axis: p.axis, Kind: trace.AllReduce, Bytes: 1,
				ComputeBeforeUS: p.before.Microseconds(), DurationUS: p.takes.Microseconds()}
			if p.axis == opus.PP {
				op.Kind, op.Peer = trace.SendRecv, (x+job.RanksPerStage())%job.Ranks()
			}
			ranks[x] = append(ranks[x], op)
		}
	}
	return &trace.Trace{Name: "alternating", Job: job, Rails: 1, Steps: []trace.Step{{Ranks: ranks}}}
}

func firmware(t testing.TB, name string) *firmwarenotes.Profile {
	t.Helper()
	p, err := firmwarenotes.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return &p
}

func generate(t testing.TB, name string, opt trace.Options) *trace.Trace {
	t.Helper()
	g, err := trace.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := g.Generate(opt)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestAdvise(t *testing.T) {
	const pp, dp = opus.PP, 1
	// Communication takes twice as long on the giant ring: one lane to each neighbour instead of two.
	tr := alternating(labJob, part{pp, 26 * ms, 10 * ms}, part{dp, 26 * ms, 500 * ms},
		part{pp, 26 * ms, 10 * ms}, part{dp, 100 * ms, 40 * ms})
	for _, c := range []struct {
		name               string
		opt                advice.Options
		choice             advice.Choice
		demand, prov, best time.Duration
		changes            int
		plan               string
	}{
		{"instant", advice.Options{}, advice.Always, 738 * ms, 738 * ms, 738 * ms, 4, "pp|dp|pp|dp"},
		{"hidden", advice.Options{Switch: 25 * ms, Control: ms}, advice.Always, 842 * ms, 738 * ms, 738 * ms, 4, "pp|dp|pp|dp"},
		// Windows after the phases: 26, 26, 100 and 26 ms. Always: 3*74 exposed. Best: 2*74, and 10 and 40
		// slower.
		{"slow", advice.Options{Switch: 100 * ms}, advice.Partly, 1138 * ms, 960 * ms, 936 * ms, 3, "giant ring|dp|pp|giant ring"},
		{"too slow", advice.Options{Switch: 1000 * ms}, advice.GiantRing, 4738 * ms, 4560 * ms, 1298 * ms, 0,
			"giant ring|giant ring|giant ring|giant ring"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := advice.Advise(tr, c.opt)
			if err != nil {
				t.Fatal(err)
			}
			plan := []string{}
			for _, p := range a.Phases {
				plan = append(plan, p.Topology)
			}
			if got := strings.Join(plan, "|"); got != c.plan || a.Best.Changes != c.changes {
				t.Errorf("%s, %d changes; want %s, %d", got, a.Best.Changes, c.plan, c.changes)
			}
			if a.Choice != c.choice || a.Demand.Step != c.demand || a.Provision.Step != c.prov || a.Best.Step != c.best {
				t.Errorf("%s: %v, %v, %v; want %s: %v, %v, %v",
					a.Choice, a.Demand.Step, a.Provision.Step, a.Best.Step, c.choice, c.demand, c.prov, c.best)
			}
			if a.Ring.Step != 1298*ms || a.Native != 738*ms || a.Ring.Changes != 0 || a.Provision.Changes != 4 {
				t.Errorf("ring %+v, native %v, always %+v", a.Ring, a.Native, a.Provision)
			}
		})
	}
}

// What is added up is what the simulation finds, as long as all ranks do the same; and the plan is never
// worse than always reconfiguring or the giant ring.
func TestAdvise_Simulated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := opus.Job{Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: rapid.IntRange(2, 4).Draw(t, "dp")}, {Name: "cp", Size: 2}}}
		times := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.IntRange(0, 200).Draw(t, "time")) * ms })
		var parts []part
		for range rapid.IntRange(1, 12).Draw(t, "operations") {
			parts = append(parts, part{rapid.IntRange(0, 2).Draw(t, "axis"), times.Draw(t, "compute"), ms + times.Draw(t, "rail")})
		}
		tr := alternating(job, parts...)
		opt := advice.Options{Switch: times.Draw(t, "switch"), Control: times.Draw(t, "control")}
		a, err := advice.Advise(tr, opt)
		if err != nil {
			t.Fatal(err)
		}
		if a.Demand.Step != a.SimulatedDemand || a.Provision.Step != a.SimulatedProvision {
			t.Errorf("added up %v and %v, simulated %v and %v", a.Demand.Step, a.Provision.Step, a.SimulatedDemand, a.SimulatedProvision)
		}
		if d := a.Ring.Step - a.SimulatedRing; d.Abs() > 20*time.Microsecond { // each operation is rounded to 1 µs
			t.Errorf("giant ring: added up %v, simulated %v", a.Ring.Step, a.SimulatedRing)
		}
		if even := a.BreakEven.Always; even > a.BreakEven.Delay ||
			a.Provision.Changes > 0 && (a.Provision.Step < a.Ring.Step) != (a.Delay <= even) {
			t.Errorf("always %v, ring %v, delay %v, break-even %+v", a.Provision.Step, a.Ring.Step, a.Delay, a.BreakEven)
		}
		if a.Provision.Changes != tr.Reconfigurations(0) {
			t.Errorf("%d changes, and by the trace %d", a.Provision.Changes, tr.Reconfigurations(0))
		}
		if a.Best.Step > a.Provision.Step || a.Best.Step > a.Ring.Step || a.Provision.Step > a.Demand.Step {
			t.Errorf("best %v, always %v, on demand %v, ring %v", a.Best.Step, a.Provision.Step, a.Demand.Step, a.Ring.Step)
		}
		if a.BreakEven.SwitchPays {
			for over, pays := range []bool{true, false} {
				opt.Switch = a.BreakEven.Switch + time.Duration(over)
				b, err := advice.Advise(tr, opt)
				if err != nil {
					t.Fatal(err)
				}
				if (b.Best.Changes > 0) != pays {
					t.Errorf("with a switch of %v: %s", opt.Switch, b.Text())
				}
			}
		}
		checkText(t, a)
	})
}

func checkText(t interface{ Errorf(string, ...any) }, a *advice.Advice) {
	for line := range strings.Lines(a.Text()) {
		line = strings.TrimSuffix(line, "\n")
		if utf8.RuneCountInString(line) > 100 || strings.TrimRight(line, " ") != line {
			t.Errorf("a line of %d columns: %q", utf8.RuneCountInString(line), line)
		}
	}
}

// The published averages of configurations 1 and 2, to the tolerance with which their windows were fitted.
func TestAdvise_Archive(t *testing.T) {
	for _, c := range []struct {
		name      string
		tolerance float64
		steps     map[time.Duration]float64 // seconds by switch time
	}{
		{"config-1", 0.0081, map[time.Duration]float64{0: 10.222, 50 * ms: 10.3203, 100 * ms: 10.6142, 250 * ms: 11.2692, 500 * ms: 12.557,
			750 * ms: 13.9538, 1000 * ms: 15.1215, 2000 * ms: 20.3465, 3000 * ms: 26.4348}},
		{"config-2", 0.006, map[time.Duration]float64{0: 13.973, 10 * ms: 13.986, 50 * ms: 14.093, 100 * ms: 14.308, 250 * ms: 15.027,
			500 * ms: 16.173, 750 * ms: 17.593, 1000 * ms: 18.721}},
		{"smoke", 0.0002 / 62, map[time.Duration]float64{ms: 62.2415, 10 * ms: 62.2505, 50 * ms: 62.2905}},
	} {
		tr := generate(t, c.name, trace.Options{})
		for delta, want := range c.steps {
			a, err := advice.Advise(tr, advice.Options{Switch: delta})
			if err != nil {
				t.Fatal(err)
			}
			if got := a.Provision.Step.Seconds(); got > want*(1+c.tolerance) || got < want*(1-c.tolerance) {
				t.Errorf("%s at %v: %.4f s, archived %.4f s", c.name, delta, got, want)
			}
			if a.Best.Step > a.Provision.Step || a.Best.Step > a.Ring.Step {
				t.Errorf("%s at %v: best %v, always %v, ring %v", c.name, delta, a.Best.Step, a.Provision.Step, a.Ring.Step)
			}
		}
	}
}

// With NICs that need seconds for a link, the lab job stays on the giant ring; with links that are there at
// once it would not.
func TestAdvise_Firmware(t *testing.T) {
	tr := generate(t, "lab-job", trace.Options{})
	for _, c := range []struct {
		firmware string
		linkUp   time.Duration
	}{
		{"connectx-6-dx/autoneg-off", 3000075 * time.Microsecond},
		{"connectx-6-dx/autoneg-on", 6000075 * time.Microsecond},
	} {
		for _, delta := range []time.Duration{ms, 25 * ms, 200 * ms} {
			a, err := advice.Advise(tr, advice.Options{Switch: delta, Firmware: firmware(t, c.firmware)})
			if err != nil {
				t.Fatal(err)
			}
			if a.Choice != advice.GiantRing || a.LinkUp != c.linkUp || a.Best != a.Ring {
				t.Errorf("%s, %v: link-up %v\n%s", c.firmware, delta, a.LinkUp, a.Text())
			}
			// Below a millisecond the firmware does not notice that it was dark.
			if a.BreakEven.SwitchPays && !(a.BreakEven.Unnoticed && a.BreakEven.Switch < ms) {
				t.Errorf("%s: break-even %+v", c.firmware, a.BreakEven)
			}
		}
	}
	a, err := advice.Advise(tr, advice.Options{})
	if err != nil || a.Choice != advice.Always {
		t.Errorf("%v, %v", a, err)
	}
}

// A darkness that firmware surely does not notice costs no link-up.
func TestAdvise_Unnoticed(t *testing.T) {
	tr := generate(t, "lab-job", trace.Options{})
	quick := firmware(t, "quick") // notices after 2 ms, always
	for delta, want := range map[time.Duration]time.Duration{
		0: 0, 2*ms - 1: 0, 2 * ms: 45075 * time.Microsecond, 30 * ms: 45075 * time.Microsecond,
	} {
		a, err := advice.Advise(tr, advice.Options{Switch: delta, Firmware: quick})
		if err != nil {
			t.Fatal(err)
		}
		if a.LinkUp != want || a.Delay != delta+want {
			t.Errorf("%v: link-up %v, want %v", delta, a.LinkUp, want)
		}
	}
}

// A job along one axis needs one topology.
func TestAdvise_Once(t *testing.T) {
	a, err := advice.Advise(generate(t, "config-3", trace.Options{}), advice.Options{Switch: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if a.Provision.Changes != 0 || a.Provision.Step != a.Native || a.Best.Changes != 0 || a.BreakEven.Pays {
		t.Errorf("%+v\n%s", a, a.Text())
	}
	// Pairs have two lanes, and on the giant ring one.
	a, err = advice.Advise(alternating(labJob, part{1, 0, ms}, part{1, ms, ms}), advice.Options{Switch: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if a.Choice != advice.Once || a.Best.Step != 3*ms || a.Ring.Step != 5*ms || a.SimulatedRing != 5*ms {
		t.Errorf("%+v\n%s", a, a.Text())
	}
	checkText(t, a)
}

// Where the phases of a step are others at its end than those at the end of the step before, there is no
// cycle.
func TestAdvise_NoCycle(t *testing.T) {
	tr := alternating(labJob, part{1, 0, ms}, part{0, ms, ms})
	tr.Steps = append(tr.Steps, alternating(labJob, part{0, 0, ms}, part{1, ms, ms}).Steps...)
	if _, err := advice.Advise(tr, advice.Options{}); !errors.Is(err, trace.ErrTrace) {
		t.Error(err)
	}
}

func TestAdvise_Refused(t *testing.T) {
	tr := alternating(labJob, part{1, 0, ms})
	for _, c := range []struct {
		tr   *trace.Trace
		opt  advice.Options
		want error
	}{
		{tr, advice.Options{Switch: -1}, advice.ErrOptions},
		{tr, advice.Options{Switch: 2 * time.Hour}, advice.ErrOptions},
		{tr, advice.Options{Control: -1}, advice.ErrOptions},
		{tr, advice.Options{Step: 1}, advice.ErrOptions},
		{tr, advice.Options{Step: -1}, advice.ErrOptions},
		{tr, advice.Options{Policy: "star"}, advice.ErrOptions},
		{&trace.Trace{}, advice.Options{}, trace.ErrTrace},
	} {
		if _, err := advice.Advise(c.tr, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%+v: %v, want %v", c.opt, err, c.want)
		}
	}
}

// All that generators make can be advised on.
func TestAdvise_Generators(t *testing.T) {
	for _, g := range trace.Generators() {
		tr, err := g.Generate(trace.Options{Steps: 2})
		if err != nil {
			t.Fatal(err)
		}
		for step := range 2 {
			a, err := advice.Advise(tr, advice.Options{Switch: 25 * ms, Step: step})
			if err != nil {
				t.Errorf("%s: %v", g.Name, err)
				continue
			}
			if a.Provision.Changes != tr.Reconfigurations(step) {
				t.Logf("%s: %d changes of the stage that waits longest, and %d at most",
					g.Name, a.Provision.Changes, tr.Reconfigurations(step))
			}
			checkText(t, a)
		}
	}
}

func TestAdvice_Text(t *testing.T) {
	off, on := firmware(t, "connectx-6-dx/autoneg-off"), firmware(t, "connectx-6-dx/autoneg-on")
	for _, c := range []struct {
		file, generator string
		opt             advice.Options
	}{
		{"lab-job-autoneg-off", "lab-job", advice.Options{Switch: 200 * ms, Control: 2 * ms, Firmware: off}},
		{"lab-job-autoneg-on", "lab-job", advice.Options{Switch: 200 * ms, Control: 2 * ms, Firmware: on}},
		{"lab-job-instant", "lab-job", advice.Options{Switch: ms}},
		{"lab-job-close", "lab-job", advice.Options{Switch: 12 * ms}},
		{"config-1", "config-1", advice.Options{Switch: 50 * ms, Control: ms}},
		{"config-3", "config-3", advice.Options{Switch: 50 * ms, Control: ms}},
		{"1f1b", "1f1b", advice.Options{Switch: 10 * ms, Firmware: firmware(t, "quick")}},
	} {
		t.Run(c.file, func(t *testing.T) {
			a, err := advice.Advise(generate(t, c.generator, trace.Options{}), c.opt)
			if err != nil {
				t.Fatal(err)
			}
			checkText(t, a)
			golden(t, c.file+".txt", a.Text())
		})
	}
}

// JSON has integers of nanoseconds, and comes back as it was.
func TestAdvice_JSON(t *testing.T) {
	a, err := advice.Advise(generate(t, "lab-job", trace.Options{}), advice.Options{Switch: 25 * ms, Control: 1})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "lab-job.json", string(data)+"\n")
	var back advice.Advice
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(a, &back); diff != "" {
		t.Error(diff)
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
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

func TestSlowdown(t *testing.T) {
	eight := opus.Job{Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 8}}}
	cube := opus.Job{Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	chain := opus.Job{Stages: 4}
	build := func(j opus.Job, id string) opus.Matching {
		t.Helper()
		parsed, err := j.ParseID(id)
		if err != nil {
			t.Fatal(err)
		}
		m, err := opus.Build(j, parsed, opus.Pair)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name string
		job  opus.Job
		id   string
		axis int
		kind trace.Kind
		want float64
	}{
		// One lane to each neighbour instead of two to the only one.
		{"lab, dp", labJob, "11", 1, trace.AllReduce, 2},
		{"lab, pp", labJob, "00", opus.PP, trace.SendRecv, 2},
		// The giant ring is the ring of the only axis.
		{"one axis", eight, "1", 1, trace.AllGather, 1},
		{"one axis, all to all", eight, "1", 1, trace.AllToAll, 1},
		// Neighbours of a chain are neighbours on the ring of its ranks.
		{"chain", chain, "0000", opus.PP, trace.Send, 1},
		// The ring is 0-1-3-2-6-7-5-4: pairs of cp are neighbours. Of dp only 1-3 and 5-7 are, and the other two
		// pairs go three hops, over the same links. Of pp only 0-4 and 2-6 are, and so on.
		{"cube, cp", cube, "22", 2, trace.AllReduce, 2},
		{"cube, dp", cube, "11", 1, trace.AllReduce, 4},
		{"cube, pp", cube, "00", opus.PP, trace.SendRecv, 4},
		{"no operation", cube, "22", 2, trace.Barrier, 1},
	} {
		ring, err := opus.GiantRing(c.job)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := advice.Slowdown(c.job, build(c.job, c.id), ring, c.axis, c.kind)
		if !ok || got != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, got, ok, c.want)
		}
	}
	// The topology of one axis does not carry another.
	if f, ok := advice.Slowdown(labJob, build(labJob, "11"), build(labJob, "00"), 1, trace.AllReduce); ok {
		t.Errorf("dp over the circuits of pp: %v", f)
	}
}

// The giant ring carries every operation, and none faster than a ring of its own does.
func TestSlowdown_GiantRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := opus.Job{Stages: rapid.IntRange(1, 4).Draw(t, "stages")}
		for i := range rapid.IntRange(1, 3).Draw(t, "axes") {
			job.Axes = append(job.Axes, opus.Axis{Name: fmt.Sprint("axis", i), Size: rapid.IntRange(1, 4).Draw(t, "size")})
		}
		axis := rapid.IntRange(1, len(job.Axes)).Draw(t, "axis")
		kind := rapid.SampledFrom([]trace.Kind{trace.AllReduce, trace.AllGather, trace.AllToAll}).Draw(t, "kind")
		id := make(opus.ID, job.Stages)
		for i := range id {
			id[i] = uint8(axis)
		}
		own, err := opus.Build(job, id, opus.Pair)
		if err != nil {
			t.Fatal(err)
		}
		ring, err := opus.GiantRing(job)
		if err != nil {
			t.Fatal(err)
		}
		if f, ok := advice.Slowdown(job, own, ring, axis, kind); !ok || f < 1-1e-9 {
			t.Errorf("%+v, axis %d, %s: %v, %v", job, axis, kind, f, ok)
		}
	})
}
