package systemtest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// drawTrace draws a small job, and what its ranks do in each of a few steps: collectives of all groups of an axis in some of the stages,
// and transfers of all ranks of two stages, in an order that is the same for all, so that nobody waits for ever. How long
// anything takes differs from rank to rank.
func drawTrace(t *rapid.T) *trace.Trace {
	job := opus.Job{Name: "random", Stages: rapid.IntRange(1, 3).Draw(t, "stages")}
	for i := range rapid.IntRange(0, 2).Draw(t, "axes") {
		job.Axes = append(job.Axes, opus.Axis{Name: fmt.Sprint("a", i+1), Size: rapid.IntRange(2, 3-i).Draw(t, "size")})
	}
	if job.Ranks() == 1 {
		job.Stages = 2
	}
	tr := &trace.Trace{Name: "random", Job: job, Rails: 1}
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "times"), 0))
	micros := func(most int) int64 {
		if random.IntN(3) == 0 {
			return 1
		}
		return 1 + random.Int64N(int64(most))
	}
	step := func() trace.Step {
		s := trace.Step{Ranks: make([][]trace.Op, job.Ranks()), TailUS: micros(10_000)}
		for range rapid.IntRange(1, 8).Draw(t, "phases") {
			axis := rapid.IntRange(0, len(job.Axes)).Draw(t, "axis")
			if axis == opus.PP && job.Stages == 1 {
				continue
			}
			repeat := rapid.IntRange(1, 3).Draw(t, "repeat")
			stage := rapid.IntRange(0, job.Stages-1).Draw(t, "stage")
			if axis == opus.PP {
				stage = min(stage, job.Stages-2)
			}
			all := rapid.Bool().Draw(t, "all stages")
			for range repeat {
				duration := micros(20_000)
				for x := range job.Ranks() {
					op := trace.Op{Axis: axis, Kind: trace.AllReduce, Bytes: 1000, ComputeBeforeUS: micros(20_000), DurationUS: duration}
					at := job.Stage(x)
					if axis == opus.PP {
						if at != stage && at != stage+1 {
							continue
						}
						op.Kind, op.Peer = trace.Send, x+job.RanksPerStage()
						if at == stage+1 {
							op.Kind, op.Peer = trace.Recv, x-job.RanksPerStage()
						}
					} else if at != stage && !all {
						continue
					}
					s.Ranks[x] = append(s.Ranks[x], op)
				}
			}
		}
		return s
	}
	tr.Steps = append(tr.Steps, step())
	if rapid.IntRange(0, 3).Draw(t, "irregular") == 0 {
		tr.Steps = append(tr.Steps, step())
	}
	return tr
}

// tail returns the end of what the controller told.
func tail(events []string) string {
	return strings.Join(events[max(0, len(events)-40):], "\n")
}

// losses lists operations that lost bytes, and what is known of their circuits.
func (o outcome) losses() string {
	var b strings.Builder
	for _, op := range o.ops {
		if op.Lost == 0 || b.Len() > 2000 {
			continue
		}
		fmt.Fprintf(&b, "\n  %v (%s) lost %d of %d bytes on %v from %v to %v", op, op.Result, op.Lost, op.Bytes, op.Uses, time.Duration(op.BeginNS-o.began), time.Duration(op.EndNS-o.began))
		for _, l := range o.truth.Lights {
			if op.Uses.Has(l.Path()) && l.UntilNS >= op.BeginNS && l.FromNS <= op.EndNS {
				fmt.Fprintf(&b, "; %v lit from %v for %v", l.Path(), time.Duration(l.FromNS-o.began), time.Duration(l.UntilNS-l.FromNS))
			}
		}
	}
	return b.String()
}

// stress runs a drawn system in virtual time and returns what is wrong with what became of it, or "".
func stress(t *testing.T, s setup, mayFail bool) (wrong string) {
	complain := func(format string, args ...any) {
		if wrong == "" {
			wrong = fmt.Sprintf(format, args...)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		o, err := run(t.Context(), s)
		switch {
		case err != nil && !(mayFail && s.faults != nil && len(s.faults.drawn) > 0 && o.result == nil):
			complain("the rig: %v", err)
			return
		case err != nil:
			return // it could not even begin, and said so
		case o.err != nil && !mayFail:
			complain("the replay: %v\n%s", o.err, tail(o.events))
		}
		if o.verdict.Total() > 0 || o.verdict.Lost > 0 {
			complain("%v%s\n%s", o.verdict, o.losses(), tail(o.events))
		}
		if err := o.settled(s); err != nil {
			complain("the end: %v\n%s", err, tail(o.events))
		}
		if o.neighbour != nil {
			complain("the other job on the switch: %v", o.neighbour)
		}
	})
	return wrong
}

func drawSetup(t *rapid.T) setup {
	return setup{
		trace:       drawTrace(t),
		rails:       rapid.IntRange(1, 2).Draw(t, "rails"),
		policy:      rapid.SampledFrom(opus.Policies).Draw(t, "policy"),
		granularity: rapid.SampledFrom([]controller.Granularity{controller.Stage, controller.Circuit}).Draw(t, "granularity"),
		mode:        rapid.SampledFrom([]shim.Mode{shim.ModeProvision, shim.ModeDemand, shim.ModeAlways}).Draw(t, "mode"),
		switching:   rapid.SampledFrom([]time.Duration{0, time.Millisecond, 25 * time.Millisecond}).Draw(t, "switching"),
		steps:       rapid.SampledFrom([]int{1, 6, 8}).Draw(t, "steps"),
	}
}

// Ensure any program of any job completes in all modes, with no operation on circuits that move, and no byte lost.
func TestStress(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSetup(rt)
		if err := s.trace.Check(); err != nil {
			rt.Fatal(err)
		}
		if wrong := stress(t, s, false); wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// Ensure that, whatever the switch does to commands, no operation runs on circuits that move, no byte is lost, and each
// rail ends in a state that is known.
func TestStress_Faults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSetup(rt)
		s.faults = &faults{
			rand:   rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "faults"), 0)),
			share:  rapid.SampledFrom([]float64{0.05, 0.3, 1}).Draw(rt, "share"),
			budget: rapid.SampledFrom([]int{1, 3, 10, 100}).Draw(rt, "budget"),
		}
		if wrong := stress(t, s, true); wrong != "" {
			rt.Fatalf("%s\nfaults: %v", wrong, s.faults.drawn)
		}
	})
}

// Ensure the same when ranks lose their connections, and when the controller ends and another takes over.
func TestStress_Restarts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := drawSetup(rt)
		s.cuts = map[time.Duration]int{}
		for range rapid.IntRange(0, 3).Draw(rt, "cuts") {
			at := time.Duration(rapid.IntRange(1, 500_000).Draw(rt, "cut at")) * time.Microsecond
			s.cuts[at] = rapid.IntRange(0, s.trace.Job.Ranks()-1).Draw(rt, "rank")
		}
		for range rapid.IntRange(0, 2).Draw(rt, "restarts") {
			s.restarts = append(s.restarts, time.Duration(rapid.IntRange(1, 500_000).Draw(rt, "restart at"))*time.Microsecond)
		}
		slices.Sort(s.restarts)
		if wrong := stress(t, s, true); wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// Ensure a switch that never answers brings no operation onto circuits that are not there.
func TestSilentSwitch(t *testing.T) {
	s := setup{trace: hazard(), mode: shim.ModeAlways, switching: time.Millisecond, rails: 1}
	s.faults = &faults{rand: rand.New(rand.NewPCG(1, 1)), budget: 0, share: 1}
	synctest.Test(t, func(t *testing.T) {
		go func() {
			time.Sleep(30 * time.Millisecond) // the giant ring is there, and the first change is done
			s.faults.mu.Lock()
			defer s.faults.mu.Unlock()
			s.faults.budget = -1
		}()
		o, err := run(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if o.verdict.Total() > 0 || o.verdict.Lost > 0 {
			t.Errorf("got %v, want no violation\n%s", o.verdict, tail(o.events))
		}
		if got, want := o.status["rail0"].Shape, proto.Dead; got != want {
			t.Errorf("the rail ends as %s, want %s: %v", got, want, o.err)
		}
		if o.err == nil {
			t.Error("the replay says that all is well, on one rail, which is dead")
		}
	})
}
