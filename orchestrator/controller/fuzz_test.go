package controller_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// A canned is a connection on which a shim has said everything already. It keeps what it is told.
type canned struct {
	said io.Reader
	told bytes.Buffer // only for the writer until the connection has ended
}

func (c *canned) Read(b []byte) (int, error)       { return c.said.Read(b) }
func (c *canned) Write(b []byte) (int, error)      { return c.told.Write(b) }
func (c *canned) Close() error                     { return nil }
func (c *canned) LocalAddr() net.Addr              { return nil }
func (c *canned) RemoteAddr() net.Addr             { return nil }
func (c *canned) SetDeadline(time.Time) error      { return nil }
func (c *canned) SetReadDeadline(time.Time) error  { return nil }
func (c *canned) SetWriteDeadline(time.Time) error { return nil }

// FuzzServeConn: whatever a shim says, while the other ranks are there and ask for nothing, nothing panics, nothing hangs, it is granted
// nothing, nothing moves, and if it is sent away, the last that it is told is why.
func FuzzServeConn(f *testing.F) {
	hello := &proto.Hello{Version: 1, Job: "lab", Rail: "rail0"}
	holding := &proto.Hello{Version: 1, Job: "lab", Rail: "rail0", Holds: []proto.OpRef{{Group: "dp/0", Op: 3}}}
	join := &proto.JoinGroup{Group: "dp/0", Axis: "dp", Members: []int{0, 1}}
	joinPP := &proto.JoinGroup{Group: "pp/0", Axis: "pp", Members: []int{0, 2}}
	demand := &proto.TopoWrite{Req: 1, Epoch: 3, OpRef: proto.OpRef{Group: "dp/0"}, Mode: proto.Demand}
	provision := &proto.TopoWrite{Req: 2, Epoch: 3, OpRef: proto.OpRef{Group: "pp/0"}, Mode: proto.Provision, Last: &proto.OpRef{Group: "dp/0"}}
	table := &proto.PhaseTable{Step: 3, Period: map[string]uint64{"dp/0": 2, "pp/0@0": 1}, Starts: []proto.OpRef{{Group: "dp/0"}}, Ends: []proto.OpRef{{Group: "dp/0", Op: 1}}}
	for _, session := range [][]proto.Message{
		{hello}, {holding, join, joinPP, demand}, {hello, join, joinPP, demand, provision, &proto.Withdraw{Req: 2}, demand},
		{hello, join, demand, &proto.Release{Epoch: 3, OpRef: proto.OpRef{Group: "dp/0"}}, &proto.Bye{}}, {hello, table, table}, {hello, hello},
		{&proto.Hello{Version: 1, Job: "lab", Rail: "rail0", Rank: 1}, demand}, {demand}, {hello, &proto.Opened{}},
	} {
		var all []byte
		for _, m := range session {
			var err error
			if all, err = proto.Append(all, m); err != nil {
				f.Fatal(err)
			}
		}
		f.Add(all)
	}
	f.Fuzz(func(t *testing.T, said []byte) {
		synctest.Test(t, func(t *testing.T) {
			rail := newRail(t, proto.Opened{Epoch: 3, Shape: proto.Digits, ID: opus.ID{0, 0}.String()})
			b := newBench(t, controller.Options{Rails: map[string]controller.Rail{"rail0": rail}})
			for x := range job.Ranks() {
				p := b.hello("rail0", x)
				b.wg.Go(func() {
					for _, err := proto.Read(p.in); err == nil; {
						_, err = proto.Read(p.in)
					}
				})
				for axis, name := range job.AxisNames() {
					g := job.GroupOf(x, axis)
					for i, m := range g.Members {
						if m == x && x > 0 {
							p.send(&proto.JoinGroup{Group: g.Name, Axis: name, Members: g.Members, Index: i})
						}
					}
				}
			}
			conn := &canned{said: bytes.NewReader(said)}
			err := b.c.ServeConn(b.ctx, conn)
			var last proto.Message
			for r := bufio.NewReader(&conn.told); ; {
				m, err := proto.Read(r)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatalf("it is told %v", err)
				}
				if ack, ok := m.(*proto.TopoAck); ok {
					t.Errorf("it alone is granted an operation: %+v", ack)
				}
				last = m
			}
			if bye, ok := last.(*proto.Bye); errors.Is(err, controller.ErrRefused) != (ok && bye.Code != "") {
				t.Errorf("ServeConn returns %v, and the last that the shim is told is %+v", err, last)
			}
			if asked := rail.requests(); asked != "" {
				t.Errorf("the rail is asked to %s", asked)
			}
		})
	})
}
