package controller

import (
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// BenchmarkEngine is the engine alone: all ranks ask for the next phase, the change of each stage is done, all get
// leave and release. An event is a message of a rank or an answer of the rail.
func BenchmarkEngine(b *testing.B) {
	for _, j := range []opus.Job{
		{Name: "64 ranks", Stages: 4, Axes: []opus.Axis{{Name: "dp", Size: 4}, {Name: "cp", Size: 4}}},
		{Name: "2048 ranks", Stages: 8, Axes: []opus.Axis{{Name: "dp", Size: 64}, {Name: "cp", Size: 4}}},
	} {
		for _, gran := range []Granularity{Stage, Circuit} {
			b.Run(fmt.Sprintf("%s/%s", j.Name, gran), func(b *testing.B) { benchmarkEngine(b, j, gran) })
		}
	}
}

func benchmarkEngine(b *testing.B, j opus.Job, gran Granularity) {
	e := testEngine(b, j, Options{Granularity: gran, Barrier: -1})
	e.opened(proto.Opened{Epoch: 1, Shape: proto.Giant, Circuits: ringPairs(e)})
	for x := range e.ranks {
		if err := e.hello(x, x, nil); err != nil {
			b.Fatal(err)
		}
		for _, u := range e.ranks[x].units {
			for i := range u.group.joined {
				u.group.joined[i] = true
			}
		}
	}
	events, applies := 0, 0
	drain := func() {
		for len(e.out) > 0 {
			out := e.out
			e.out = nil
			for _, a := range out {
				if a.apply != nil {
					events++
					applies++
					e.done(a.apply.Req, proto.Done{Shape: proto.Digits, Result: proto.Applied}, nil)
				}
			}
		}
	}
	op := uint64(0)
	req := uint64(0)
	for b.Loop() {
		for axis := 1; axis <= 2; axis++ {
			for x, r := range e.ranks {
				req++
				events++
				e.write(x, &proto.TopoWrite{Req: req, Epoch: 1, OpRef: r.units[len(r.units)-3+axis].ref(op), Mode: proto.Demand})
			}
			drain()
			for x, r := range e.ranks {
				events++
				e.release(x, &proto.Release{Epoch: 1, OpRef: r.units[len(r.units)-3+axis].ref(op)})
			}
			drain()
		}
		op++
	}
	if len(e.status().Pending) > 0 || e.holds > 0 {
		b.Fatalf("%+v", e.status())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
	b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(applies)/float64(op), "applies/op")
}

// BenchmarkDrain is a change that waits for every rank: 2,048 holders release one after another.
func BenchmarkDrain(b *testing.B) {
	j := opus.Job{Name: "drain", Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 64}, {Name: "cp", Size: 32}}}
	e := testEngine(b, j, Options{Barrier: -1})
	e.opened(proto.Opened{Epoch: 1, Shape: proto.Digits, ID: "1"})
	for x := range e.ranks {
		if err := e.hello(x, x, nil); err != nil {
			b.Fatal(err)
		}
		for _, u := range e.ranks[x].units {
			u.group.joined[0] = true
			for i := range u.group.joined {
				u.group.joined[i] = true
			}
		}
	}
	e.out = nil
	op := uint64(0)
	for b.Loop() {
		ask := func(axis int, mode proto.Mode) {
			for x, r := range e.ranks {
				e.write(x, &proto.TopoWrite{Req: op, Epoch: 1, OpRef: r.units[axis-1].ref(op), Mode: mode})
			}
		}
		for axis := 1; axis <= 2; axis++ {
			ask(axis, proto.Demand) // with the circuits of the other axis held
			for x, r := range e.ranks {
				if op > 0 || axis == 2 {
					prev := op
					if axis == 1 {
						prev--
					}
					e.release(x, &proto.Release{Epoch: 1, OpRef: r.units[2-axis].ref(prev)})
				}
			}
			for _, a := range e.out {
				if a.apply != nil {
					e.done(a.apply.Req, proto.Done{Shape: proto.Digits, Result: proto.Applied}, nil)
				}
			}
			e.out = nil
		}
		op++
	}
}
