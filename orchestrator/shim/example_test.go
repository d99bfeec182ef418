package shim_test

import (
	"context"
	"crypto/tls"
	"log"
	"net"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// A communication library puts its operations between PreOp and PostOp.
func Example() {
	ctx := context.Background()
	job := opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	s, err := shim.Dial(ctx, shim.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&tls.Dialer{}).DialContext(ctx, "tcp", "controller:7701")
		},
		Job: job, Rail: "rail0", Rank: 3, Host: "gpu4",
	})
	if err != nil {
		log.Print(err)
		return
	}
	defer s.Close()
	group := job.GroupOf(3, 1)
	for step := range uint64(1000) {
		op := shim.Op{OpRef: proto.OpRef{Group: group.Name, Op: step}, Axis: group.Axis, Kind: trace.AllReduce, Bytes: 1 << 30}
		if _, err := s.PreOp(ctx, op); err != nil {
			log.Print(err) // the operation must not run
			return
		}
		allReduce(op, func() { s.PostOp(op) })
		if err := s.Step(ctx); err != nil {
			log.Print(err)
			return
		}
	}
}

func allReduce(_ shim.Op, complete func()) { complete() }
