package replay_test

import (
	"bufio"
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// controller is one that grants whatever it is asked, at once unless answer says otherwise. Its ranks reach it
// through pipes.
type controller struct {
	answer func(rail string, rank int, w *proto.TopoWrite) proto.Message // nil: noop

	wg    sync.WaitGroup
	mu    sync.Mutex // guards what follows
	asked []*proto.TopoWrite
	byes  int
}

func (c *controller) dial(rail string, rank int) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		a, b := net.Pipe()
		c.wg.Go(func() { c.serve(b, rail, rank) })
		return a, nil
	}
}

func (c *controller) serve(conn net.Conn, rail string, rank int) {
	defer conn.Close()
	out := make(chan proto.Message, 1000) // a pipe has no room
	defer close(out)
	c.wg.Go(func() {
		for m := range out {
			frame, err := proto.Append(nil, m)
			if err != nil {
				return
			}
			if _, err := conn.Write(frame); err != nil {
				for range out { // it has gone
				}
				return
			}
		}
	})
	in := bufio.NewReader(conn)
	for {
		m, err := proto.Read(in)
		if err != nil {
			return
		}
		switch m := m.(type) {
		case *proto.Hello:
			out <- &proto.Welcome{Epoch: 1, TimeoutNS: 60e9}
		case *proto.JoinGroup:
			out <- &proto.GroupOK{Group: m.Group, Domain: "rail", Rails: []string{rail}}
		case *proto.PhaseTable:
			out <- &proto.Boundaries{Starts: m.Starts, Ends: m.Ends}
		case *proto.TopoWrite:
			c.mu.Lock()
			c.asked = append(c.asked, m)
			c.mu.Unlock()
			answer := proto.Message(&proto.TopoAck{Result: proto.NoOp, Generation: 1})
			if c.answer != nil {
				answer = c.answer(rail, rank, m)
			}
			switch a := answer.(type) {
			case nil:
				continue
			case *proto.TopoAck:
				a.Req = m.Req
				if strings.HasPrefix(m.Group, "pp/") && a.Result != proto.OnRing && a.Result != proto.Detoured {
					a.Lanes = 2
				}
			case *proto.TopoNack:
				a.Req = m.Req
			}
			out <- answer
		case *proto.Withdraw:
			out <- &proto.TopoNack{Req: m.Req, Code: proto.Withdrawn}
		case *proto.Bye:
			c.mu.Lock()
			c.byes++
			c.mu.Unlock()
			return
		}
	}
}

var labJob = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}

var cabled = opus.Regular(8, 1, 9)

// labTrace has steps of 10 ms without circuits in the way: 1 ms computation, dp 2 ms, 1 ms, a transfer of 3 ms, 1 ms
// and something small on the front-end network of 1 ms, and 1 ms at the end. A rank sends 3,000 bytes.
func labTrace() *trace.Trace {
	t := &trace.Trace{Name: "lab", Job: labJob, Rails: 2, Steps: make([]trace.Step, 1)}
	s := trace.Step{TailUS: 1000, Ranks: make([][]trace.Op, 4)}
	for rank := range s.Ranks {
		peer, kind := rank+2, trace.Send
		if rank >= 2 {
			peer, kind = rank-2, trace.Recv
		}
		s.Ranks[rank] = []trace.Op{
			{Axis: 1, Kind: trace.AllReduce, Bytes: 1000, ComputeBeforeUS: 1000, DurationUS: 2000},
			{Axis: opus.PP, Kind: kind, Peer: peer, Bytes: 2000, ComputeBeforeUS: 1000, DurationUS: 3000},
			{Axis: 1, Kind: trace.Barrier, Net: trace.FrontEnd, ComputeBeforeUS: 1000, DurationUS: 1000},
		}
	}
	t.Steps[0] = s
	return t
}
