// Command shim is one rank of a job on photonic rails, with a communication library of one's own: it asks before each
// operation and tells when it is complete. The rank is one of examples/lab-job.yaml.
//
//	ocslab --lab examples/opus-rails.yaml --emulated orchestrate examples/lab-job.yaml
//	for rank in 0 1 2 3; do go run ./examples/shim -rank $rank & done; wait
//
// All four ranks of the rail have to come; until then each waits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"time"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// job is that of examples/lab-job.yaml: the axis of dp is 1.
var job = opus.Job{Name: "lab-job", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

func main() {
	at := flag.String("connect", "127.0.0.1:7400", "`ADDRESS` of ocslab orchestrate")
	rank := flag.Int("rank", 0, "of the rail, from 0")
	steps := flag.Int("steps", 8, "of training")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dial := func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "tcp", *at) }
	stats, err := run(ctx, dial, *rank, *steps)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("rank %d: %d operations, asked for %d, waited %v\n", *rank, stats.Operations, stats.Asked, time.Duration(stats.WaitedNS))
}

// run is a rank: each step is an all-reduce of its dp group, and a transfer of the pipeline.
func run(ctx context.Context, dial func(context.Context) (net.Conn, error), rank, steps int) (shim.Stats, error) {
	s, err := shim.Dial(ctx, shim.Options{Dial: dial, Job: job, Rail: "rail0", Rank: rank})
	if err != nil {
		return shim.Stats{}, err
	}
	defer s.Close()
	dp, pp := job.GroupOf(rank, 1).Name, job.GroupOf(rank, opus.PP).Name
	for n := range uint64(steps) {
		reduce := shim.Op{OpRef: proto.OpRef{Group: dp, Op: n}, Axis: 1, Kind: trace.AllReduce, Bytes: 64 << 20}
		transfer := shim.Op{OpRef: proto.OpRef{Group: pp, Op: n}, Axis: opus.PP, Kind: trace.SendRecv, Bytes: 1 << 20}
		for _, op := range []shim.Op{reduce, transfer} {
			if err := guarded(ctx, s, op, func() error { time.Sleep(time.Millisecond); return nil }); err != nil {
				return s.Stats(), err
			}
		}
		if err := s.Step(ctx); err != nil {
			return s.Stats(), err
		}
	}
	return s.Stats(), nil
}

// guarded runs one operation of a backend between the two hooks. This is all that binds a library to the control plane.
func guarded(ctx context.Context, hooks shim.Hooks, op shim.Op, start func() error) error {
	if _, err := hooks.PreOp(ctx, op); err != nil {
		return err // it must not start
	}
	err := start() // returns when it is complete; with streams PostOp belongs into what is called then
	return errors.Join(err, hooks.PostOp(op))
}
