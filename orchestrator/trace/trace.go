// Package trace is what the ranks of a training job do on their rails, step by step: computation, and
// collectives between. Traces are generated for workloads that are published ([Generators]), or read from a file
// ([Read]); they are checked, counted ([Phases], [AxisChanges], [Windows]) and simulated ([Simulate]). Replaying
// one over a real control plane is for others.
//
// A trace is not a recording. Computation is a number of microseconds, an operation a duration at the full bandwidth of
// a rank; what they add up to is modelled, never measured.
//
// # The text form
//
// JSON lines: each line is an object, in UTF-8, of 1 MiB at most. Empty lines are skipped, unknown fields are errors.
// The first line is
//
//	{"kind":"trace","version":1,"name":"lab","about":"for people",
//	 "job":{"name":"lab","stages":2,"axes":[{"name":"dp","size":2}],"ports":2},"rails":2,"gbps":100}
//
// (in one line). The job is that of package opus; ports, 2 if missing, are the duplex ports of a rank on its rail, and
// gbps, 100 if missing, the rate of one. rails is how many rails there are, from 1; all do the same, so the trace
// has one of them. name, about, axes, ports and gbps may be missing. Then there is a line for each operation of each rank:
//
//		{"kind":"op","step":0,"rank":0,"seq":0,"axis":"dp","group":"dp/0","op":"all-gather","bytes":50000000,
//		 "compute_before_us":2000,"duration_us":0,"net":"rail","note":"layer 0, forward"}
//		{"kind":"op","step":0,"rank":0,"seq":1,"axis":"pp","op":"send","peer":2,"bytes":25000000}
//
//	  - step, from 0. A step may begin, with any of its lines, when the one before has begun.
//	  - rank, from 0, of the rail: the stage of the pipeline outermost, the last axis innermost.
//	  - seq is the place of the operation among those of the rank in the step: from 0, ascending, without gaps.
//	    Lines of different ranks and steps may be mixed, so files of single ranks can be joined behind one first line
//	    (whole files: rank 0 with all its steps, then rank 1).
//	  - axis is "pp" or one of the job. It is missing for an operation inside a host (net "scale-up").
//	  - group may be missing; if not, it must be the group of the rank along the axis, such as "dp/0" (groups of an
//	    axis count from 0 in order of their lowest rank).
//	  - op is all-reduce, all-gather, reduce-scatter, all-to-all or barrier, of a whole group, and along pp on the network
//	    "front-end" only; or send, recv or send-recv, along pp only.
//	  - peer is the other rank of a send, recv or send-recv, and must be there for these only. It is at the same place of the
//	    stage before or after.
//	  - bytes are what the rank sends, or what it receives if that is more. Default 0.
//	  - compute_before_us is the computation between the end of the rank's operation before, in this step or the last,
//	    and this one, in whole microseconds, at most an hour. Default 0.
//	  - duration_us is how long the operation takes once all members have begun it, at the full bandwidth of a rank, at
//	    most an hour. If it is missing or 0 that follows from bytes, ports and gbps.
//	  - net is rail (the default), scale-up or front-end. Only rail operations use the optical circuits.
//	  - note is for people.
//
// A step that ends with computation, or that has no operations, has a line of its own, too:
//
//	{"kind":"step","step":0,"tail_us":10000}
//
// Members of a group must have the same operations of the group in the same order within each step, and the two ranks
// of a transfer the counterparts: send and recv, or send-recv twice. Steps must be possible when every operation
// blocks: that is why a schedule in which neighbours send to each other at once has to say send-recv.
package trace

import (
	"time"

	"github.com/ocslab/ocslab/topology/opus"
)

// Net is what carries an operation.
type Net string

const (
	RailNet  Net = "rail"      // the optical circuits
	ScaleUp  Net = "scale-up"  // inside a host
	FrontEnd Net = "front-end" // the always-on network of the CPUs: management, small operations
)

// Kind is what an operation does.
type Kind string

// The operations of package trace.
const (
	AllReduce     Kind = "all-reduce"
	AllGather     Kind = "all-gather"
	ReduceScatter Kind = "reduce-scatter"
	AllToAll      Kind = "all-to-all"
	Send          Kind = "send"
	Recv          Kind = "recv"
	SendRecv      Kind = "send-recv" // both at once, as 1F1B does in its steady state
	Barrier       Kind = "barrier"
)

// transfer reports whether the operation is between two stages.
func (k Kind) transfer() bool { return k == Send || k == Recv || k == SendRecv }

// other returns what the peer of a transfer does.
func (k Kind) other() Kind {
	switch k {
	case Send:
		return Recv
	case Recv:
		return Send
	}
	return k
}

// Op is one operation of one rank. Members of a group have the same operations of the group in the same order.
type Op struct {
	Axis            int    // opus.PP or a symmetrical axis of the job; 0 for an operation inside a host
	Kind            Kind   //
	Net             Net    // "" is RailNet
	Peer            int    // of Send, Recv and SendRecv: the other rank; else 0
	Bytes           int64  // that a rank sends, or receives if that is more
	ComputeBeforeUS int64  // from the end of the operation before (or of the step before) until this one is issued
	DurationUS      int64  // at the full bandwidth of a rank; 0: from Bytes and the rate of the ports
	Note            string // for people: "layer 3, backward"
}

// net returns what carries the operation.
func (o Op) net() Net {
	if o.Net == "" {
		return RailNet
	}
	return o.Net
}

// Trace is what all ranks of one rail do in one step or several; other rails do the same. One that was read or
// generated has passed [Trace.Check], and must not be changed: its steps may share memory.
type Trace struct {
	Name  string
	About string // where it comes from, for people
	Job   opus.Job
	Rails int     // how many rails there are: ranks of a host
	Gbps  float64 // of one duplex port; 0 is [DefaultGbps]
	// Steps are the steps, each the operations of each rank in their order. Replaying more steps than
	// there are begins anew.
	Steps []Step
}

// DefaultGbps is the rate of a duplex port of which a trace says nothing.
const DefaultGbps = 100

// Step is one training step.
type Step struct {
	Ranks  [][]Op // by rank of the rail
	TailUS int64  // computation after the last operation
}

// Duration returns how long an operation takes at the full bandwidth of a rank: DurationUS, or else the time that
// Bytes take with all of its duplex ports. What does not use the rail is taken for as fast.
func (t *Trace) Duration(op Op) time.Duration {
	if op.DurationUS > 0 {
		return time.Duration(op.DurationUS) * time.Microsecond
	}
	gbps := t.Gbps
	if gbps == 0 {
		gbps = DefaultGbps
	}
	return time.Duration(float64(op.Bytes) * 8 / (gbps * float64(t.Job.PortsPerRank()))) // bits per Gb/s are ns
}

// size returns how many members the groups of an axis have.
func (t *Trace) size(axis int) int {
	if axis == opus.PP {
		return t.Job.Stages
	}
	return t.Job.Axes[axis-1].Size
}

// onRail reports whether the operation needs circuits: it is on the rail, and there is somebody to talk to.
func (t *Trace) onRail(op Op) bool { return op.net() == RailNet && t.size(op.Axis) > 1 }

// step returns the step that is replayed as the n-th.
func (t *Trace) step(n int) Step { return t.Steps[n%len(t.Steps)] }
