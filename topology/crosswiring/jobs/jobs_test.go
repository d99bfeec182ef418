package jobs_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/baseline"
	"github.com/ocslab/ocslab/topology/crosswiring/jobs"
)

// Three pods: 50 % at most, and the paper's 39.5 % is what a job has that communicates for 79 % of its time.
func TestRingGain(t *testing.T) {
	for _, x := range []struct {
		pods                int
		communication, want float64
	}{
		{3, 1, .5}, {3, .79, .395}, {3, 0, 0}, {4, 1, 0}, {5, 1, .25}, {1, 1, 0}, {0, 1, 0},
	} {
		if got := jobs.RingGain(x.pods, x.communication); math.Abs(got-x.want) > 1e-12 {
			t.Errorf("%d pods, %v: got %v, want %v", x.pods, x.communication, got, x.want)
		}
	}
	if got, ok := jobs.RingCommunication(3, .395); !ok || math.Abs(got-.79) > 1e-12 {
		t.Errorf("got %v, %v", got, ok)
	}
	for _, gain := range []float64{.51, -1, math.NaN()} {
		if _, ok := jobs.RingCommunication(3, gain); ok {
			t.Errorf("a gain of %v has an explanation", gain)
		}
	}
	if _, ok := jobs.RingCommunication(4, 0); ok {
		t.Error("an even ring explains a gain")
	}
}

func greedy() *baseline.Planner { return &baseline.UniformPlanners()[0] }

// Three pods of one block: a triangle, a job that waits for a place, and one that does not wait for that one.
func TestSimulate(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	const s = time.Second
	all := []jobs.Job{{0, 3, 100 * s}, {1 * s, 3, 10 * s}, {2 * s, 1, 5 * s}}
	for _, x := range []struct {
		arch          jobs.Architecture
		start, finish []time.Duration
	}{
		{jobs.Architecture{}, []time.Duration{0, 100 * s, 110 * s}, []time.Duration{100 * s, 110 * s, 115 * s}},
		{jobs.Architecture{PlanTime: 7 * s}, []time.Duration{7 * s, 114 * s, 124 * s}, []time.Duration{107 * s, 124 * s, 129 * s}},
		{jobs.Architecture{PlanTime: 7 * s, Together: true},
			[]time.Duration{7 * s, 114 * s, 124 * s}, []time.Duration{107 * s, 124 * s, 129 * s}},
		// A bundle is missing, and its traffic goes the other way: half the throughput, so 0.7 + 0.3 / 0.5 of the time.
		{jobs.Architecture{Planner: greedy()}, []time.Duration{0, 130 * s, 143 * s}, []time.Duration{130 * s, 143 * s, 148 * s}},
	} {
		done, err := jobs.Simulate(f, all, x.arch, jobs.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, d := range done {
			if near(d.Start, x.start[i]) && near(d.Finish, x.finish[i]) && d.Job == all[i] {
				continue
			}
			t.Errorf("%+v: job %d from %v to %v, want %v to %v", x.arch, i, d.Start, d.Finish, x.start[i], x.finish[i])
		}
	}
}

// Jobs that never get a link never end, which is said.
func TestSimulate_Dark(t *testing.T) {
	f := crosswiring.Fabric{Pods: 2, SpinePorts: 2, Groups: 1}
	next := func(f crosswiring.Fabric, _ *crosswiring.Config, _ *crosswiring.Demand) (*crosswiring.Config, error) {
		return crosswiring.NewConfig(f)
	}
	arch := jobs.Architecture{Name: "dark", Planner: &baseline.Planner{Next: next}}
	all := []jobs.Job{{0, 2, time.Second}, {1, 2, time.Second}}
	if _, err := jobs.Simulate(f, all, arch, jobs.Options{}); !errors.Is(err, jobs.ErrJobs) {
		t.Errorf("got %v", err)
	}
	done, err := jobs.Simulate(f, all, arch, jobs.Options{Communication: -1})
	if err != nil || done[0].Completion() != time.Second || done[1].Completion() != 2*time.Second-1 {
		t.Errorf("without need of links: %+v, %v", done, err)
	}
}

func near(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }

// A small job goes where a large one has no place.
func TestSimulate_Passes(t *testing.T) {
	f := crosswiring.Fabric{Pods: 2, SpinePorts: 4, Groups: 1}
	all := []jobs.Job{{0, 3, time.Minute}, {1, 4, time.Minute}, {2, 1, time.Second}}
	done, err := jobs.Simulate(f, all, jobs.Architecture{}, jobs.Options{Communication: -1})
	if err != nil {
		t.Fatal(err)
	}
	if done[0].Pods != 2 || done[1].Start != done[0].Finish || done[2].Start != 2 || done[2].Pods != 1 {
		t.Errorf("got %+v", done)
	}
}

// Whatever the planner, a job runs after it came, at least as long as with all links, and no block has two jobs.
func TestSimulate_Rapid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := crosswiring.Fabric{Pods: rapid.IntRange(1, 7).Draw(t, "pods"),
			SpinePorts: 2 * rapid.IntRange(1, 4).Draw(t, "pairs"), Groups: 2}
		w := jobs.Workload{Jobs: 40, Level: rapid.Float64Range(.1, 2).Draw(t, "level"), Seed: rapid.Uint64().Draw(t, "seed"),
			Sizes: []jobs.Size{{1, 1}, {max(f.Pods*f.Pairs()/2, 1), 1}, {f.Pods * f.Pairs(), .2}}}
		all, err := w.Draw(f)
		if err != nil {
			t.Fatal(err)
		}
		a := rapid.SampledFrom(jobs.Architectures()).Draw(t, "architecture")
		done, err := jobs.Simulate(f, all, a, jobs.Options{Communication: rapid.Float64Range(.01, 1).Draw(t, "communication")})
		if err != nil {
			t.Fatal(err)
		}
		type change struct {
			at     time.Duration
			blocks int
		}
		var changes []change
		for i, d := range done {
			if d.Job != all[i] || d.Placed < d.Arrive || d.Planned < d.Placed || d.Start < d.Planned || d.Pods < 1 {
				t.Fatalf("job %d: %+v", i, d)
			}
			if more := d.RunTime() - d.Run; more < -time.Millisecond || a.Planner == nil && more > time.Millisecond {
				t.Fatalf("job %d runs %v longer", i, more)
			}
			changes = append(changes, change{d.Placed, d.Blocks}, change{d.Finish, -d.Blocks})
		}
		slices.SortFunc(changes, func(a, b change) int {
			if a.at != b.at {
				return int(a.at - b.at)
			}
			return a.blocks - b.blocks
		})
		taken := 0
		for _, c := range changes {
			if taken += c.blocks; taken > f.Pods*f.Pairs() {
				t.Fatalf("%d blocks are taken at %v", taken, c.at)
			}
		}
	})
}

// With arrivals at random and constant planning times Kingman's formula is exact, and it is what jobs wait for a plan.
func TestCompare_Kingman(t *testing.T) {
	f := crosswiring.Fabric{Pods: 64, SpinePorts: 2, Groups: 1}
	w := jobs.Workload{Jobs: 4000, Sizes: []jobs.Size{{2, 1}}, MeanRun: time.Minute, Level: 2. / 64} // one a minute
	rows, err := jobs.Compare(f, w, []jobs.Architecture{
		{Name: "half", PlanTime: 30 * time.Second}, {Name: "fast", PlanTime: 20 * time.Millisecond},
	}, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	half := rows[0]
	if got := half.PlanWait.Seconds() / half.Kingman.Seconds(); !half.Stable || math.Abs(got-1) > .1 {
		t.Errorf("they wait %v, the formula has %v", half.PlanWait, half.Kingman)
	}
	if got := half.JWT - half.PlanWait; got < 30*time.Second || got > 31*time.Second {
		t.Errorf("a plan of 30 s takes %v", got)
	}
	if fast := rows[1]; fast.JWT > 25*time.Millisecond {
		t.Errorf("they wait %v", fast.JWT)
	}
}

// The orders of magnitude of the paper: planning by an integer linear program costs percents of the completion time, ours
// none, and a greedy planner for Uniform wiring slows some jobs down, a few of them much.
func TestCompare_Paper(t *testing.T) {
	f := crosswiring.Fabric{Pods: 32, SpinePorts: 16, Groups: 16}
	rows, err := jobs.Compare(f, jobs.Workload{Jobs: 300}, jobs.Architectures(), jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]jobs.Row{}
	for _, r := range rows {
		named[r.Architecture] = r
	}
	if ours := named["cross, ours"]; math.Abs(ours.JCTMore) > .002 || ours.Hit != 0 {
		t.Errorf("ours: %+v", ours)
	}
	if ilp := named["cross, ilp 435 s"]; ilp.JCTMore < .005 || ilp.JCTMore > .3 || ilp.Hit != 0 {
		t.Errorf("integer linear program: %+v", ilp)
	}
	if u := named["uniform greedy"]; u.Hit < .01 || u.Slower < .001 || u.Slower > .1 || u.SlowerMax < .1 {
		t.Errorf("greedy: %+v", u)
	}
}

// With plans that take longer than the intervals the queue for them grows.
func TestCompare_Unstable(t *testing.T) {
	f := crosswiring.Fabric{Pods: 64, SpinePorts: 2, Groups: 1}
	w := jobs.Workload{Jobs: 200, Sizes: []jobs.Size{{2, 1}}, MeanRun: time.Minute, Level: 2. / 64}
	rows, err := jobs.Compare(f, w, []jobs.Architecture{{Name: "ilp", PlanTime: jobs.PaperILP}}, jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].JWTMax < 200*(jobs.PaperILP-90*time.Second) {
		t.Errorf("they wait at most %v", rows[0].JWTMax)
	}
}

func TestTestbed(t *testing.T) {
	f, w := jobs.Testbed()
	all, err := w.Draw(f)
	if err != nil || f.Ports() != 128 {
		t.Fatal(err, f.Ports())
	}
	if end := all[49].Arrive; len(all) != 50 || end < 24*time.Hour || end > 96*time.Hour {
		t.Errorf("%d jobs come until %v", len(all), end)
	}
	rows, err := jobs.Compare(f, w, jobs.Architectures(), jobs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := jobs.Compare(f, w, jobs.Architectures(), jobs.Options{})
	if err != nil || !slices.Equal(rows, again) {
		t.Errorf("the second time: %v, %v", again, err)
	}
	for _, j := range all {
		if gpus := j.Blocks * 2 * f.Groups; gpus < 16 || gpus > 128 {
			t.Errorf("a job has %d GPUs", gpus)
		}
	}
}

func TestDraw(t *testing.T) {
	f := crosswiring.Fabric{Pods: 32, SpinePorts: 16, Groups: 16}
	w := jobs.Workload{Jobs: jobs.MostJobs, Seed: 3}
	all, err := w.Draw(f)
	if err != nil {
		t.Fatal(err)
	}
	if got := jobs.Level(f, all); math.Abs(got-jobs.PaperLevel) > .05 {
		t.Errorf("the level is %v", got)
	}
	again, err := w.Draw(f)
	if err != nil || !slices.Equal(all, again) {
		t.Error("the same seed gives other jobs")
	}
	if got := jobs.Level(f, nil); got != 0 {
		t.Errorf("the level of nothing is %v", got)
	}
}

func TestErrors(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 4, Groups: 1}
	for _, w := range []jobs.Workload{
		{Jobs: -1}, {Jobs: jobs.MostJobs + 1}, {Level: -1}, {Level: math.NaN()}, {Level: math.Inf(1)}, {MeanRun: -1},
		{MeanRun: jobs.Longest + 1}, {Sizes: []jobs.Size{}}, {Sizes: []jobs.Size{{0, 1}}}, {Sizes: []jobs.Size{{7, 1}}},
		{Sizes: []jobs.Size{{1, 0}}}, {Sizes: []jobs.Size{{1, math.NaN()}}}, {Sizes: []jobs.Size{{1, math.Inf(1)}}},
	} {
		if _, err := jobs.Compare(f, w, nil, jobs.Options{}); !errors.Is(err, jobs.ErrJobs) {
			t.Errorf("%+v: got %v", w, err)
		}
	}
	if _, err := (jobs.Workload{}).Draw(crosswiring.Fabric{}); !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
	one := []jobs.Job{{0, 1, time.Second}}
	for _, x := range []struct {
		all  []jobs.Job
		arch jobs.Architecture
		o    jobs.Options
	}{
		{one, jobs.Architecture{PlanTime: -1}, jobs.Options{}}, {one, jobs.Architecture{PlanTime: jobs.Longest + 1}, jobs.Options{}},
		{one, jobs.Architecture{}, jobs.Options{Communication: 1.1}},
		{one, jobs.Architecture{}, jobs.Options{Communication: math.NaN()}},
		{[]jobs.Job{{0, 0, 1}}, jobs.Architecture{}, jobs.Options{}}, {[]jobs.Job{{0, 7, 1}}, jobs.Architecture{}, jobs.Options{}},
		{[]jobs.Job{{0, 1, -1}}, jobs.Architecture{}, jobs.Options{}},
		{[]jobs.Job{{2, 1, 1}, {1, 1, 1}}, jobs.Architecture{}, jobs.Options{}},
	} {
		if _, err := jobs.Simulate(f, x.all, x.arch, x.o); !errors.Is(err, jobs.ErrJobs) {
			t.Errorf("%+v: got %v", x, err)
		}
	}
	_, err := jobs.Simulate(crosswiring.Fabric{}, one, jobs.Architecture{}, jobs.Options{})
	if !errors.Is(err, crosswiring.ErrFabric) {
		t.Errorf("got %v", err)
	}
	exact := jobs.Architecture{Planner: &baseline.ExactPlanners()[1]}
	large := crosswiring.Fabric{Pods: 8, SpinePorts: 2, Groups: 1}
	if _, err := jobs.Simulate(large, []jobs.Job{{0, 2, 1}}, exact, jobs.Options{}); !errors.Is(err, baseline.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

// 1000 jobs on 32,768 GPUs, with all architectures.
func BenchmarkCompare(b *testing.B) {
	for b.Loop() {
		f := crosswiring.Fabric{Pods: 128, SpinePorts: 16, Groups: 16}
		if _, err := jobs.Compare(f, jobs.Workload{}, jobs.Architectures(), jobs.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
