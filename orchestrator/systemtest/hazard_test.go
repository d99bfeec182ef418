package systemtest_test

import (
	"context"
	"math"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/tl1server"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// hazard is the trace in which the published granularity goes wrong: two stages, DP2, CP2. All ranks are in a transfer
// between the stages. That of the ranks with c=0 is short, and they go on with their gradients, in both stages, while the others
// are still at it.
func hazard() *trace.Trace {
	job := opus.Job{Name: "hazard", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	t := &trace.Trace{Name: "hazard", Job: job, Rails: 1, Steps: []trace.Step{{Ranks: make([][]trace.Op, job.Ranks())}}}
	for x := range job.Ranks() {
		transfer := int64(20_000)
		if job.Coordinate(x, 2) == 1 {
			transfer = 300_000
		}
		t.Steps[0].Ranks[x] = []trace.Op{
			{Axis: opus.PP, Kind: trace.SendRecv, Peer: (x + 4) % 8, Bytes: 1 << 20, DurationUS: transfer},
			{Axis: 1, Kind: trace.AllReduce, Bytes: 1 << 20, DurationUS: 10_000},
		}
	}
	return t
}

// underTransfer returns the ingress ports that were changed while the long transfers ran.
func underTransfer(o outcome) []ocs.Port {
	from, until := int64(math.MinInt64), int64(math.MaxInt64)
	for _, op := range o.ops {
		if op.Group == "pp/1" || op.Group == "pp/3" { // c=1
			from, until = max(from, op.BeginNS), min(until, op.EndNS)
		}
	}
	var ports []ocs.Port
	for _, c := range o.truth.Changes {
		if from < c.AtNS && c.AtNS < until {
			for _, p := range c.Circuits().Ports() {
				if p <= 16 {
					ports = append(ports, p)
				}
			}
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}

var (
	bystanders = []ocs.Port{3, 4, 7, 8, 11, 12, 15, 16} // ingress ports of the ranks with c=1
	concerned  = []ocs.Port{1, 2, 5, 6, 9, 10, 13, 14}  // and of those with c=0
)

func testHazard(t *testing.T, g controller.Granularity, sessions func(*emulator.Device) ([]ocs.Switch, error)) {
	s := setup{trace: hazard(), policy: opus.Pair, granularity: g, mode: shim.ModeAlways, switching: 5 * time.Millisecond, sessions: sessions}
	if err := s.trace.Check(); err != nil {
		t.Fatal(err)
	}
	o, err := run(t.Context(), s)
	if err != nil || o.err != nil {
		t.Fatalf("rig: %v, replay: %v", err, o.err)
	}
	t.Log(o.verdict)
	if got, want := o.verdict.Ops, 16; got != want {
		t.Errorf("%d operations, want %d", got, want)
	}
	if err := o.settled(s); err != nil {
		t.Error(err)
	}
	if o.neighbour != nil {
		t.Errorf("the other job on the switch: %v", o.neighbour)
	}
	changed := underTransfer(o)
	switch g {
	case controller.Published:
		if diff := cmp.Diff(bystanders, o.verdict.Ingress()); diff != "" {
			t.Errorf("ingress of violations (-want +got):\n%s", diff)
		}
		if o.verdict.Counts[check.G2] == 0 || o.verdict.Lost == 0 {
			t.Errorf("got %v, want circuits changed under operations, and bytes lost", o.verdict)
		}
		if got, want := len(changed), 16; got != want {
			t.Errorf("%d ingress ports changed under the transfers, want %d: %v", got, want, changed)
		}
		return
	case controller.Circuit:
		if diff := cmp.Diff(concerned, changed); diff != "" {
			t.Errorf("ingress ports changed under the transfers of others (-want +got):\n%s", diff)
		}
	default:
		if len(changed) > 0 {
			t.Errorf("ingress ports %v were changed under a transfer, want none", changed)
		}
	}
	if !o.verdict.OK() {
		t.Errorf("got %v, want no violation", o.verdict)
	}
}

// Ensure the published granularity breaks the transfers of those who were not asked, on exactly their ports, and that
// neither of the others does; by circuits, only the ports of those who asked are touched.
func TestHazard(t *testing.T) {
	for _, g := range controller.Granularities {
		t.Run(string(g), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testHazard(t, g, nil) })
		})
	}
}

// Ensure it is the same over TL1 and TCP, in real time.
func TestHazard_TL1(t *testing.T) {
	for _, g := range controller.Granularities {
		t.Run(string(g), func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			served := make(chan error, 1)
			defer func() {
				cancel()
				if err := <-served; err != nil {
					t.Error(err)
				}
			}()
			testHazard(t, g, func(d *emulator.Device) (all []ocs.Switch, err error) {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					served <- nil
					return nil, err
				}
				go func() { served <- (&tl1server.Server{Device: d}).Serve(ctx, l) }()
				for range 2 {
					sw, err := drivers.Open(ctx, "tl1://admin@"+l.Addr().String(), drivers.Options{Password: secret.New("root")})
					if err != nil {
						return all, err
					}
					all = append(all, sw)
				}
				return all, nil
			})
		})
	}
}
