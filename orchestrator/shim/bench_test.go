package shim_test

import (
	"bufio"
	"context"
	"net"
	"testing"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
)

// agreeable is a controller of one rank that grants everything.
func agreeable(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		m, err := proto.Read(r)
		if err != nil {
			return
		}
		var out []byte
		switch m := m.(type) {
		case *proto.Hello:
			out, err = proto.Append(out, &proto.Welcome{Epoch: 1})
		case *proto.JoinGroup:
			out, err = proto.Append(out, &proto.GroupOK{Group: m.Group})
		case *proto.TopoWrite:
			out, err = proto.Append(out, &proto.TopoAck{Req: m.Req, Result: proto.NoOp})
		case *proto.PhaseTable:
			out, err = proto.Append(out, &proto.Boundaries{Starts: m.Starts, Ends: m.Ends})
		}
		if err == nil {
			_, err = conn.Write(out)
		}
		if err != nil {
			return
		}
	}
}

func dialAgreeable(b *testing.B, mode shim.Mode) *shim.Shim {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go agreeable(conn)
		}
	}()
	s, err := shim.Dial(b.Context(), shim.Options{
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", l.Addr().String())
		},
		Job: lab, Rail: "rail0", Rank: 1, Mode: mode, ProfileSteps: 3,
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// BenchmarkWithinPhase is what an operation costs that asks nobody: PreOp and PostOp together.
func BenchmarkWithinPhase(b *testing.B) {
	s := dialAgreeable(b, shim.ModeProvision)
	const ops = 10000 // of a step
	n := uint64(0)
	step := func(begin func()) {
		for i := range ops {
			if i == 1 {
				begin()
			}
			if _, err := s.PreOp(b.Context(), dp(n)); err != nil {
				b.Fatal(err)
			}
			if err := s.PostOp(dp(n)); err != nil {
				b.Fatal(err)
			}
			n++
		}
		b.StopTimer()
		if err := s.Step(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	for range 3 {
		step(func() {})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for done := 0; done < b.N; done += ops {
		step(b.StartTimer)
	}
}

// BenchmarkDemand is what an operation costs that asks, over loopback, when the controller answers at once.
func BenchmarkDemand(b *testing.B) {
	s := dialAgreeable(b, shim.ModeAlways)
	b.ReportAllocs()
	for n := range uint64(b.N) {
		if _, err := s.PreOp(b.Context(), pp(n)); err != nil {
			b.Fatal(err)
		}
		if err := s.PostOp(pp(n)); err != nil {
			b.Fatal(err)
		}
	}
}
