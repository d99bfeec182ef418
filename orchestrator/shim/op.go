package shim

import (
	"context"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// Op is an operation as a rank is about to issue it.
type Op struct {
	// OpRef names it: its group, its index in the group (of a PP transfer, in that of the pair of stages), and its
	// way. Indices run over all steps, and go up; that some are left out, since they are of operations that are not on
	// the rail, is no error.
	proto.OpRef
	Axis  int        // of the job; must be that of the group
	Kind  trace.Kind // for logs
	Net   trace.Net  // "" is that of the group, which is the rail unless the controller says otherwise; see [Network]
	Bytes int64      // for the rows of the table
}

// Grant says how an operation may run.
type Grant struct {
	// Result is Applied, NoOp, OnRing or Detoured: what the controller found when it was asked for this operation or,
	// if Asked is false, for the first of its phase. It is "" for an operation that is not on the rail.
	Result     proto.Result
	Generation uint64 // of the rail, when the controller answered
	// Lanes is, of a transfer, how many circuits join the two ranks: all of them may be used until PostOp. 0 for all else.
	Lanes int
	// Asked is whether PreOp asked the controller, and WaitedNS how long it waited in ns: for operations of before,
	// for answers, and for a connection.
	Asked    bool
	WaitedNS int64
}

// Hooks is what a communication library calls around each operation of a rank: the one place where a real backend is
// bound to the control plane. [Shim] implements it.
//
// PreOp is called in the order in which the rank issues its operations, before the operation may start (and, for a
// backend of streams, before it is enqueued). An error means that it must not start. PostOp is called when it is
// complete, and only then: its last byte has been received by this rank, and what this rank sent has been
// acknowledged. It does not block, so that the thread which completes operations may call it. Each operation that
// PreOp has granted gets its PostOp, also when it failed.
type Hooks interface {
	PreOp(ctx context.Context, op Op) (Grant, error)
	PostOp(op Op) error
}

var _ Hooks = (*Shim)(nil)

// Thresholds of [Network]. They are ours: the paper names the three networks but gives no sizes.
const (
	// SmallReduce is up to how many bytes an all-reduce is management: a loss, a norm, a flag.
	SmallReduce = 1 << 10
	// SmallAllToAll is up to how many bytes an all-to-all takes the front-end network. There it needs one hop, and on
	// a ring of circuits as many as there are members.
	SmallAllToAll = 64 << 10
)

// Network returns what carries an operation. Hosts are those of the members; none if they are not known.
//
//   - All members on one host: the scale-up network.
//   - Barriers, all-reduces of [SmallReduce] bytes or less and all-to-alls of [SmallAllToAll] or less: the front-end
//     network, which is always there.
//   - Everything else: the rail.
//
// All members must come to the same, so bytes must be a number that is the same at all of them.
func Network(kind trace.Kind, bytes int64, hosts ...string) trace.Net {
	same := len(hosts) > 0
	for _, h := range hosts {
		same = same && h == hosts[0] && h != ""
	}
	switch {
	case same:
		return trace.ScaleUp
	case kind == trace.Barrier,
		kind == trace.AllReduce && bytes <= SmallReduce,
		kind == trace.AllToAll && bytes <= SmallAllToAll:
		return trace.FrontEnd
	}
	return trace.RailNet
}
