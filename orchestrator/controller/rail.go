package controller

import "github.com/ocslab/ocslab/orchestrator/proto"

// Rail is the orchestrator of a rail, as its controller sees it: package rail has one in
// the same process (Orchestrator) and one over a connection (Client).
//
// Requests take effect in the order of the calls where they touch the same ports, and at the same time where
// they do not. A call returns at once; done is called once, from another goroutine, unless Rail is
// closed, and then, too, with an error. An error that the rail refused with is a *proto.Refusal; any other means that it could not be
// asked, and what the switch holds is not known. Implementations are safe for concurrent use.
type Rail interface {
	// Open takes the job over: requests with an earlier epoch are stale from now on.
	Open(o proto.Open, done func(proto.Opened, error))
	Apply(a proto.Apply, done func(proto.Done, error))
	GiantRing(g proto.GiantRing, done func(proto.Done, error))
	Mark(m proto.Mark, done func(proto.Done, error))
	// Alarms are sent until the rail is closed, and the channel is closed then. What nobody reads is dropped but for
	// the last.
	Alarms() <-chan proto.Alarm
	Close() error
}
