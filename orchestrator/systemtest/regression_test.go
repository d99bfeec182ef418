package systemtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// Ensure circuits that a change makes beside a transfer are not used by it before they are there. Three stages are one chain; when
// the first goes over to its gradients, the other two become a pair, which is closed, at the moment at which their transfer has the
// leave to run on what it has.
func TestPairClosesBesideTransfer(t *testing.T) {
	job := opus.Job{Name: "closing", Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	tr := &trace.Trace{Name: "closing", Job: job, Rails: 1, Steps: []trace.Step{{Ranks: make([][]trace.Op, job.Ranks())}}}
	for x := range job.Ranks() {
		gradients := trace.Op{Axis: 1, Kind: trace.AllReduce, Bytes: 1 << 20, DurationUS: 10_000}
		transfer := func(kind trace.Kind, peer int) trace.Op {
			return trace.Op{Axis: opus.PP, Kind: kind, Peer: peer, Bytes: 1 << 20, DurationUS: 50_000}
		}
		var ops []trace.Op
		switch job.Stage(x) {
		case 0:
			gradients.ComputeBeforeUS = 5000 // asks while the circuits of stage 1 to 2 are made
			ops = []trace.Op{transfer(trace.Send, x+2), gradients}
		case 1:
			ops = []trace.Op{transfer(trace.Recv, x-2), transfer(trace.Send, x+2)}
		case 2:
			ops = []trace.Op{gradients, transfer(trace.Recv, x-2)}
		}
		tr.Steps[0].Ranks[x] = ops
	}
	if err := tr.Check(); err != nil {
		t.Fatal(err)
	}
	for _, g := range []controller.Granularity{controller.Stage, controller.Circuit} {
		for _, p := range opus.Policies {
			s := setup{trace: tr, policy: p, granularity: g, mode: shim.ModeAlways, switching: 25 * time.Millisecond}
			if wrong := stress(t, s, false); wrong != "" {
				t.Errorf("%s, %s: %s", g, p, wrong)
			}
		}
	}
}

// Ensure a switch that takes no time at all is judged like any other: light that goes and comes in the same nanosecond.
func TestInstantSwitch(t *testing.T) {
	for _, g := range []controller.Granularity{controller.Stage, controller.Circuit} {
		synctest.Test(t, func(t *testing.T) {
			for range 20 { // the order in which observers are told differs
				s := setup{trace: hazard(), policy: opus.Pair, granularity: g, mode: shim.ModeProvision, steps: 8}
				o, err := run(t.Context(), s)
				if err != nil || o.err != nil {
					t.Fatalf("rig: %v, replay: %v", err, o.err)
				}
				if !o.verdict.OK() {
					t.Fatalf("%s: %v%s", g, o.verdict, o.losses())
				}
			}
		})
	}
}
