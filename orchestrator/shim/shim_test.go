package shim_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func demand(req int, group string, op int, last string) string {
	return write(req, group, op, "demand", last)
}

func write(req int, group string, op int, mode, last string) string {
	if last != "" {
		last = fmt.Sprintf(`"last":%s,`, last)
	}
	return fmt.Sprintf(`{"kind":"topo-write","req":%d,"epoch":7,"group":%q,"op":%d,"way":0,"mode":%q,%s"issue_ns":0}`, req, group, op, mode, last)
}

func ref(group string, op int) string { return fmt.Sprintf(`{"group":%q,"op":%d,"way":0}`, group, op) }

func ack(req int, result string) string {
	return fmt.Sprintf(`{"kind":"topo-ack","req":%d,"topology_id":"11","generation":%d,"result":%q}`, req, req, result)
}

func nack(req int, code string) string {
	return fmt.Sprintf(`{"kind":"topo-nack","req":%d,"code":%q,"detail":"because"}`, req, code)
}

func release(group string, op int) string {
	return fmt.Sprintf(`{"kind":"release","epoch":7,"group":%q,"op":%d,"way":0}`, group, op)
}

var table3 = `{"kind":"phase-table","step":3,"period":{"dp/0":2,"pp/1@0":1},"starts":[` + ref("dp/0", 0) + `],"ends":[` +
	ref("dp/0", 1) + `]}`

// profile runs the three steps that a shim profiles, of operations dp, dp, pp, and one exchange of tables. The next
// request is 10, the next operations dp 6 and pp 3.
func profile(t *testing.T, s *shim.Shim, p *peer) {
	t.Helper()
	req := 0
	for step := range 3 {
		for _, op := range []shim.Op{dp(uint64(2 * step)), dp(uint64(2*step + 1)), pp(uint64(step))} {
			req++
			a := preOp(t.Context(), s, op)
			p.expect(demand(req, op.Group, int(op.Op), ""))
			p.send(ack(req, "applied"))
			if g := a.granted(t); g.Result != proto.Applied || !g.Asked || g.Generation != uint64(req) {
				t.Errorf("got %+v", g)
			}
			if err := s.PostOp(op); err != nil {
				t.Error(err)
			}
			p.expect(release(op.Group, int(op.Op)))
		}
		if step < 2 {
			if err := s.Step(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	done := make(chan error)
	go func() { done <- s.Step(t.Context()) }()
	p.expect(table3)
	p.send(`{"kind":"boundaries","starts":[` + ref("dp/0", 0) + `],"ends":[` + ref("dp/0", 1) + `]}`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// Ensure a session of profiling, and of provisioning after it, is what it should be, frame by frame.
func TestProvision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		profile(t, s, p)

		a := preOp(t.Context(), s, dp(6))
		p.expect(demand(10, "dp/0", 6, ""))
		p.send(ack(10, "applied"))
		a.granted(t)
		s.PostOp(dp(6))
		p.quiet() // within the phase
		if g, err := s.PreOp(t.Context(), dp(7)); err != nil || g.Asked || g.Result != proto.Applied || g.Generation != 10 {
			t.Errorf("got %+v, %v", g, err)
		}
		next := preOp(t.Context(), s, pp(3))
		p.quiet() // G2: the phase has not ended
		next.pending(t)
		s.PostOp(dp(7))
		p.expect(write(11, "pp/1", 3, "provision", ref("dp/0", 7)))
		p.expect(demand(12, "pp/1", 3, "")) // right behind it
		p.send(ack(11, "applied"))
		synctest.Wait()
		next.pending(t) // G1: a prediction that was answered is no leave
		p.send(ack(12, "noop"))
		if g := next.granted(t); g.Result != proto.NoOp || !g.Asked || g.WaitedNS < int64(time.Second) {
			t.Errorf("got %+v", g)
		}
		s.PostOp(pp(3))
		p.expect(write(13, "dp/0", 8, "provision", ref("pp/1", 3)))
		if err := s.Step(t.Context()); err != nil {
			t.Error(err)
		}
		got := s.Stats()
		got.WaitedNS = 0
		want := shim.Stats{Steps: 4, Operations: 12, Asked: 11, NoOps: 1, Provisioned: 2, Hits: 1, Generation: 12}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		rows := s.Rows()
		for i := range rows {
			rows[i].Idle = 0
		}
		if d := cmp.Diff([]shim.Row{
			{Axis: 1, First: proto.OpRef{Group: "dp/0"}, Last: proto.OpRef{Group: "dp/0", Op: 1}, Ops: 2, Bytes: 2 << 20},
			{Axis: 0, First: proto.OpRef{Group: "pp/1"}, Last: proto.OpRef{Group: "pp/1"}, Ops: 1, Bytes: 1 << 20},
		}, rows); d != "" {
			t.Error(d)
		}
		finish(t, s, p)
	})
}

func TestModeDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, func(o *shim.Options) { o.Mode = shim.ModeDemand })
		profile(t, s, p)
		a := preOp(t.Context(), s, dp(6))
		p.expect(demand(10, "dp/0", 6, ""))
		p.send(ack(10, "applied"))
		a.granted(t)
		s.PostOp(dp(6))
		if g, err := s.PreOp(t.Context(), dp(7)); err != nil || g.Asked {
			t.Errorf("got %+v, %v", g, err)
		}
		s.PostOp(dp(7))
		p.expect(release("dp/0", 7))
		finish(t, s, p)
	})
}

func TestModeAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, func(o *shim.Options) { o.Mode = shim.ModeAlways })
		for n := range 6 {
			a := preOp(t.Context(), s, dp(uint64(n)))
			p.expect(demand(n+1, "dp/0", n, ""))
			p.send(ack(n+1, "noop"))
			a.granted(t)
			s.PostOp(dp(uint64(n)))
			p.expect(release("dp/0", n))
			if err := s.Step(t.Context()); err != nil {
				t.Error(err)
			}
		}
		p.quiet()
		finish(t, s, p)
	})
}

// Ensure a boundary that only another member sees makes this one ask, too.
func TestUnion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, func(o *shim.Options) { o.Mode = shim.ModeDemand })
		for step := range 3 {
			for i := range 2 {
				n := 2*step + i
				a := preOp(t.Context(), s, dp(uint64(n)))
				p.expect(demand(n+1, "dp/0", n, ""))
				p.send(ack(n+1, "noop"))
				a.granted(t)
				s.PostOp(dp(uint64(n)))
				p.expect(release("dp/0", n))
			}
			if step < 2 {
				s.Step(t.Context())
			}
		}
		done := make(chan error)
		go func() { done <- s.Step(t.Context()) }()
		p.expect(`{"kind":"phase-table","step":3,"period":{"dp/0":2},"starts":[` + ref("dp/0", 0) + `],"ends":[` + ref("dp/0", 1) + `]}`)
		p.send(`{"kind":"boundaries","starts":[` + ref("dp/0", 0) + "," + ref("dp/0", 1) + "," + ref("dp/0", 99) + `],"ends":[` + ref("dp/0", 0) + "," + ref("dp/0", 1) + `]}`)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		for n := 6; n < 8; n++ {
			a := preOp(t.Context(), s, dp(uint64(n)))
			p.expect(demand(n+1, "dp/0", n, ""))
			p.send(ack(n+1, "noop"))
			a.granted(t)
			s.PostOp(dp(uint64(n)))
			p.expect(release("dp/0", n))
		}
		finish(t, s, p)
	})
}

// Ensure operations of a phase may overlap and be complete in any order: circuits are given back after the last.
func TestOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		profile(t, s, p)
		a, b := preOp(t.Context(), s, dp(6)), asked(nil)
		p.expect(demand(10, "dp/0", 6, ""))
		b = preOp(t.Context(), s, dp(7)) // waits for the answer of another
		c := preOp(t.Context(), s, pp(3))
		synctest.Wait()
		b.pending(t)
		c.pending(t)
		p.send(ack(10, "applied"))
		a.granted(t)
		if g := b.granted(t); g.Asked {
			t.Errorf("got %+v", g)
		}
		s.PostOp(dp(7)) // the end of the phase, but not the last to be complete
		p.quiet()
		c.pending(t)
		s.PostOp(dp(6))
		p.expect(write(11, "pp/1", 3, "provision", ref("dp/0", 6)))
		p.expect(demand(12, "pp/1", 3, ""))
		p.send(nack(11, "conflict"), ack(12, "applied")) // what is predicted may be refused
		c.granted(t)
		finish(t, s, p)
	})
}

// Ensure a second answer changes nothing, and neither does one of a connection that is over.
func TestSecondAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, l := connect(t, nil)
		a := preOp(t.Context(), s, pp(0))
		p.expect(demand(1, "pp/1", 0, ""))
		p.send(nack(1, "conflict"), ack(1, "applied"))
		a.refused(t, shim.ErrRefused)
		a = preOp(t.Context(), s, pp(0))
		p.expect(demand(2, "pp/1", 0, ""))
		p.send(ack(1, "applied"))
		synctest.Wait()
		a.pending(t)
		p.conn.Close()
		p = <-l
		p.expect(strings.Replace(hello, `"epoch":0`, `"epoch":7`, 1))
		p.send(welcome)
		p.expect(joinPP)
		p.expect(joinDP)
		p.send(okDP, okPP)
		p.expect(demand(3, "pp/1", 0, ""))
		p.send(ack(2, "applied")) // it cannot know that number
		a.refused(t, shim.ErrProtocol)
		s.Close()
	})
}

// Ensure a wrong prediction is withdrawn, does no harm, and is made three times at most.
func TestMisprediction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kinds []shim.EventKind
		s, p, _ := connect(t, func(o *shim.Options) {
			o.Log = func(e shim.Event) { kinds = append(kinds, e.Kind) }
		})
		profile(t, s, p)
		a := preOp(t.Context(), s, dp(6))
		p.expect(demand(10, "dp/0", 6, ""))
		p.send(ack(10, "applied"))
		a.granted(t)
		s.PostOp(dp(6))
		// A transfer in the middle of the phase: what the rank holds is given back with the demand.
		a = preOp(t.Context(), s, pp(3))
		p.expect(demand(11, "pp/1", 3, ref("dp/0", 6)))
		p.send(ack(11, "applied"))
		a.granted(t)
		s.PostOp(pp(3))
		p.expect(write(12, "dp/0", 7, "provision", ref("pp/1", 3))) // the step ends; the next begins, so far as it knows
		a = preOp(t.Context(), s, pp(4))
		p.expect(`{"kind":"withdraw","req":12}`)
		p.expect(demand(13, "pp/1", 4, ""))
		p.send(nack(12, "withdrawn"))
		synctest.Wait()
		a.pending(t)
		p.send(ack(13, "noop"))
		a.granted(t)
		s.PostOp(pp(4))
		p.expect(write(14, "dp/0", 7, "provision", ref("pp/1", 4)))
		p.send(ack(14, "applied"))
		synctest.Wait()
		a = preOp(t.Context(), s, pp(5)) // it was answered: there is nothing to withdraw
		p.expect(demand(15, "pp/1", 5, ""))
		p.send(ack(15, "applied"))
		a.granted(t)
		s.PostOp(pp(5))
		p.expect(release("pp/1", 5)) // no more predictions
		st := s.Stats()
		if st.Mispredictions != 3 || st.Withdrawn != 1 || st.Reprofiles != 1 || st.Hits != 0 || st.Provisioned != 2 {
			t.Errorf("got %+v", st)
		}
		if !strings.Contains(fmt.Sprint(kinds), "mispredicted distrusted") {
			t.Errorf("got %v", kinds)
		}
		finish(t, s, p)
	})
}

// Ensure a rank whose steps differ makes everything a boundary, and that the next exchange learns what has settled.
func TestUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		n, req := 0, 0
		step := func(ops int) {
			for range ops {
				a := preOp(t.Context(), s, dp(uint64(n)))
				req++
				p.expect(demand(req, "dp/0", n, ""))
				p.send(ack(req, "noop"))
				a.granted(t)
				s.PostOp(dp(uint64(n)))
				p.expect(release("dp/0", n))
				n++
			}
		}
		end := func() <-chan error {
			done := make(chan error, 1)
			go func() { done <- s.Step(t.Context()) }()
			return done
		}
		both := `[` + ref("dp/0", 0) + `,` + ref("dp/0", 1) + `]`
		for i := range 2 {
			step(1 + i)
			if err := <-end(); err != nil {
				t.Fatal(err)
			}
		}
		step(2)
		done := end()
		p.expect(`{"kind":"phase-table","step":3,"period":{"dp/0":2},"starts":` + both + `,"ends":` + both + `}`)
		p.send(`{"kind":"boundaries","starts":` + both + `,"ends":` + both + `}`)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if len(s.Rows()) != 0 {
			t.Error("rows of steps that differ")
		}
		for range 2 {
			step(2)
			if err := <-end(); err != nil {
				t.Fatal(err)
			}
		}
		step(2)
		if err := <-end(); err != nil { // does not wait
			t.Fatal(err)
		}
		p.expect(`{"kind":"phase-table","step":6,"period":{"dp/0":2},"starts":[` + ref("dp/0", 0) + `],"ends":[` + ref("dp/0", 1) + `]}`)
		step(2) // as before
		done = end()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the step ended before the ranks had agreed: %v", err)
		default:
		}
		p.send(`{"kind":"boundaries","starts":[` + ref("dp/0", 0) + `],"ends":[` + ref("dp/0", 1) + `]}`)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if got := len(s.Rows()); got != 1 {
			t.Errorf("got %d rows, want 1", got)
		}
		a := preOp(t.Context(), s, dp(uint64(n)))
		p.expect(demand(req+1, "dp/0", n, ""))
		p.send(ack(req+1, "noop"))
		a.granted(t)
		s.PostOp(dp(uint64(n)))
		if g, err := s.PreOp(t.Context(), dp(uint64(n+1))); err != nil || g.Asked {
			t.Errorf("got %+v, %v", g, err)
		}
		finish(t, s, p)
	})
}

// Ensure what is refused does not run, and can be tried again.
func TestNack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		for i, x := range []struct {
			code string
			want error
		}{
			{"timeout", shim.ErrTimeout}, {"rank-lost", shim.ErrRankLost}, {"rail-dead", shim.ErrRailDead},
			{"conflict", shim.ErrRefused}, {"verify", shim.ErrRefused}, {"unknown-group", shim.ErrRefused},
		} {
			a := preOp(t.Context(), s, pp(0))
			p.expect(demand(i+1, "pp/1", 0, ""))
			p.send(nack(i+1, x.code))
			err := a.refused(t, x.want)
			want := "rank 1 of rail0 must not run transfer 0 of pp/1 between stages 0 and 1: because (" + x.code + ")"
			if err.Error() != want {
				t.Errorf("got %q, want %q", err, want)
			}
			if s.PostOp(pp(0)) == nil {
				t.Error("an operation that was refused is complete, and nobody minds")
			}
		}
		a := preOp(t.Context(), s, pp(0))
		p.expect(demand(7, "pp/1", 0, ""))
		p.send(ack(7, "applied"))
		a.granted(t)
		finish(t, s, p)
	})
}

// Ensure a prediction that is refused, before or after the operation has asked, does not keep it from running.
func TestProvision_Refused(t *testing.T) {
	for _, code := range []string{"timeout", "withdrawn", "conflict"} {
		t.Run(code, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p, _ := connect(t, nil)
				profile(t, s, p)
				a := preOp(t.Context(), s, dp(6))
				p.expect(demand(10, "dp/0", 6, ""))
				p.send(ack(10, "applied"))
				a.granted(t)
				s.PostOp(dp(6))
				a = preOp(t.Context(), s, dp(7))
				a.granted(t)
				s.PostOp(dp(7))
				p.expect(write(11, "pp/1", 3, "provision", ref("dp/0", 7)))
				p.send(nack(11, code))
				synctest.Wait()
				a = preOp(t.Context(), s, pp(3))
				p.expect(demand(12, "pp/1", 3, ""))
				p.send(ack(12, "applied"))
				a.granted(t)
				s.PostOp(pp(3))
				p.expect(write(13, "dp/0", 8, "provision", ref("pp/1", 3)))
				if err := s.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
				a = preOp(t.Context(), s, dp(8))
				p.expect(demand(14, "dp/0", 8, ""))
				p.send(nack(13, code))
				synctest.Wait()
				a.pending(t)
				p.send(nack(14, "timeout")) // the demand, too: it is asked for anew
				a.refused(t, shim.ErrTimeout)
				a = preOp(t.Context(), s, dp(8))
				p.expect(demand(15, "dp/0", 8, ""))
				p.send(ack(15, "noop"))
				a.granted(t)
				finish(t, s, p)
			})
		})
	}
}

// Ensure a controller whose barriers wait for ever makes no shim give up.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := make(listener)
		dialled := make(chan *shim.Shim)
		go func() {
			s, err := shim.Dial(t.Context(), shim.Options{Dial: l.dial(t), Job: lab, Rail: "rail0", Rank: 1, Host: "gpu2"})
			if err != nil {
				t.Error(err)
			}
			dialled <- s
		}()
		p := <-l
		p.expect(hello)
		p.send(`{"kind":"welcome","epoch":7,"mono_ns":1,"timeout_ns":0}`)
		p.expect(joinPP)
		p.expect(joinDP)
		p.send(okDP, okPP)
		s := <-dialled
		a := preOp(t.Context(), s, pp(0))
		p.expect(demand(1, "pp/1", 0, ""))
		time.Sleep(1000 * time.Hour)
		synctest.Wait()
		a.pending(t)
		p.send(ack(1, "applied"))
		a.granted(t)
		finish(t, s, p)
	})
}

// Ensure no answer is no leave, and that the connection is given up with it.
func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, func(o *shim.Options) { o.NoReconnect = true })
		began := time.Now()
		a := preOp(t.Context(), s, pp(0))
		p.expect(demand(1, "pp/1", 0, ""))
		a.refused(t, shim.ErrTimeout)
		if got := time.Since(began); got != 5*time.Second {
			t.Errorf("it took %v, and the controller said 5s", got)
		}
		if got, err := p.read(); err == nil {
			t.Errorf("got %s, want the end", got)
		}
		preOp(t.Context(), s, pp(0)).refused(t, shim.ErrTimeout)
		s.Close()
		preOp(t.Context(), s, pp(0)).refused(t, shim.ErrClosed)
	})
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, func(o *shim.Options) { o.NoReconnect = true })
		ctx, cancel := context.WithCancel(t.Context())
		a := preOp(ctx, s, pp(0))
		p.expect(demand(1, "pp/1", 0, ""))
		cancel()
		a.refused(t, context.Canceled)
		if got, err := p.read(); err == nil {
			t.Errorf("got %s, want the end", got)
		}
		s.Close()
	})
}

// Ensure a lost connection comes back: hello says what is held, a demand without an answer is repeated, and nothing
// begins in between.
func TestReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, l := connect(t, nil)
		profile(t, s, p)
		a := preOp(t.Context(), s, dp(6))
		p.expect(demand(10, "dp/0", 6, ""))
		p.send(ack(10, "applied"))
		a.granted(t)
		p.conn.Close()
		synctest.Wait()
		within := preOp(t.Context(), s, dp(7))
		synctest.Wait()
		within.pending(t)
		p = <-l
		p.expect(`{"kind":"hello","version":1,"job":"lab","rail":"rail0","rank":1,"host":"gpu2","local_rank":0,"epoch":7,"holds":[` + ref("dp/0", 6) + `]}`)
		synctest.Wait()
		within.pending(t)
		p.send(`{"kind":"welcome","epoch":8,"run":4}`)
		p.expect(joinPP)
		p.expect(joinDP)
		p.send(okDP, okPP)
		p.expect(table3) // the controller may have started anew
		if g := within.granted(t); g.Asked {
			t.Errorf("got %+v", g)
		}
		synctest.Wait() // who made the connection counts it
		s.PostOp(dp(6))
		s.PostOp(dp(7))
		p.expect(strings.Replace(write(11, "pp/1", 3, "provision", ref("dp/0", 7)), `"epoch":7`, `"epoch":8`, 1))
		a = preOp(t.Context(), s, pp(3))
		p.expect(strings.Replace(demand(12, "pp/1", 3, ""), `"epoch":7`, `"epoch":8`, 1))
		p.send(nack(12, "stale")) // somebody else has taken over
		p = <-l
		p.expect(strings.Replace(hello, `"epoch":0`, `"epoch":8,"run":4`, 1))
		p.send(welcome)
		p.expect(joinPP)
		p.expect(joinDP)
		p.send(okPP, okDP)
		p.expect(table3)
		p.send(`{"kind":"boundaries","starts":[],"ends":[]}`) // nobody waits for it
		p.expect(demand(13, "pp/1", 3, ""))
		p.send(ack(13, "fallback"))
		if g := a.granted(t); g.Result != proto.OnRing {
			t.Errorf("got %+v", g)
		}
		synctest.Wait()
		if st := s.Stats(); st.Reconnects != 2 {
			t.Errorf("got %+v", st)
		}
		finish(t, s, p)
	})
}

// Ensure that with NoReconnect nothing connects by itself, and that Reconnect does.
func TestNoReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, l := connect(t, func(o *shim.Options) { o.NoReconnect = true })
		a := preOp(t.Context(), s, pp(0))
		p.expect(demand(1, "pp/1", 0, ""))
		p.conn.Close()
		a.refused(t, shim.ErrLost)
		preOp(t.Context(), s, pp(0)).refused(t, shim.ErrLost)
		done := make(chan error, 1)
		go func() { done <- s.Reconnect(t.Context()) }()
		p = <-l
		p.expect(strings.Replace(hello, `"epoch":0`, `"epoch":7`, 1))
		p.send(welcome)
		p.expect(joinPP)
		p.expect(joinDP)
		p.send(okDP, okPP)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if err := s.Reconnect(t.Context()); err != nil { // there is nothing to do
			t.Fatal(err)
		}
		a = preOp(t.Context(), s, pp(0))
		p.expect(demand(2, "pp/1", 0, ""))
		p.send(ack(2, "applied"))
		a.granted(t)
		finish(t, s, p)
	})
}

// Ensure Close ends whatever waits.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		a := preOp(t.Context(), s, pp(0))
		p.expect(demand(1, "pp/1", 0, ""))
		b := preOp(t.Context(), s, dp(0))
		synctest.Wait()
		finish(t, s, p)
		a.refused(t, shim.ErrClosed)
		b.refused(t, shim.ErrClosed)
		if err := s.Step(t.Context()); !errors.Is(err, shim.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := s.Reconnect(t.Context()); !errors.Is(err, shim.ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// Ensure a controller that reads nothing cannot keep Close from returning.
func TestCloseDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := time.Since(began); got != time.Second {
			t.Errorf("it took %v, want 1s", got)
		}
		p.conn.Close()
	})
}

// Ensure a rank that waits in vain for the tables of the others is told so.
func TestStepTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		for range 2 {
			if err := s.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		done := make(chan error, 1)
		go func() { done <- s.Step(t.Context()) }()
		p.expect(`{"kind":"phase-table","step":3,"period":{},"starts":[],"ends":[]}`)
		err := <-done
		want := "rank 1 of rail0: no answer in time to the table of its phases: not all ranks have sent theirs in 5s"
		if !errors.Is(err, shim.ErrTimeout) || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
		finish(t, s, p)
	})
}

// Ensure circuits that were given back between hello and welcome are not held for ever.
func TestReleaseWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, l := connect(t, nil)
		a := preOp(t.Context(), s, dp(0))
		p.expect(demand(1, "dp/0", 0, ""))
		p.send(ack(1, "applied"))
		a.granted(t)
		p.conn.Close()
		p = <-l
		if _, err := p.read(); err != nil {
			t.Fatal(err)
		}
		s.PostOp(dp(0))
		p.send(welcome)
		p.expect(release("dp/0", 0))
		p.expect(joinPP)
		p.expect(joinDP)
		p.send(okDP, okPP)
		finish(t, s, p)
	})
}

// Ensure a controller that is gone for good is an error in time, and one that refuses at once.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, l := connect(t, nil)
		p.conn.Close()
		began := time.Now()
		preOp(t.Context(), s, dp(0)).refused(t, shim.ErrLost)
		if got := time.Since(began); got != 5*time.Second {
			t.Errorf("it took %v, want 5s", got)
		}
		synctest.Wait() // what tried to connect has given up at the same moment
		a := preOp(t.Context(), s, dp(0))
		p = <-l
		p.expect(strings.Replace(hello, `"epoch":0`, `"epoch":7`, 1))
		p.send(`{"kind":"bye","code":"bad","reason":"job lab has other ranks"}`)
		a.refused(t, shim.ErrRefused)
		preOp(t.Context(), s, dp(0)).refused(t, shim.ErrRefused) // without trying again
		s.Close()
	})
}

// Ensure what makes no sense ends the connection, whatever waits.
func TestNonsense(t *testing.T) {
	for name, body := range map[string]string{
		"Result":  ack(1, "perhaps"),
		"Request": ack(2, "applied"),
		"Kind":    `{"kind":"hurrah"}`,
		"Other":   `{"kind":"done","req":1}`,
		"Welcome": welcome,
		"Group":   `{"kind":"group-ok","group":"dp/1"}`,
		"Domain":  `{"kind":"group-ok","group":"dp/0","domain":"moon"}`,
		"Text":    `applied`,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p, _ := connect(t, func(o *shim.Options) { o.NoReconnect = true })
				a := preOp(t.Context(), s, pp(0))
				p.expect(demand(1, "pp/1", 0, ""))
				p.send(body)
				a.refused(t, shim.ErrProtocol)
				if got, err := p.read(); err == nil {
					t.Errorf("got %s, want the end", got)
				}
				s.Close()
			})
		})
	}
}

func TestBadOp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		for _, x := range []struct {
			op   shim.Op
			want string
		}{
			{shim.Op{OpRef: proto.OpRef{Group: "dp/1"}, Axis: 1}, `rank 1 of rail0 must not run operation 0 of dp/1: no such operation: rank 1 is in no group "dp/1"`},
			{shim.Op{OpRef: proto.OpRef{Group: "dp/0"}}, "rank 1 of rail0 must not run operation 0 of dp/0: no such operation: group dp/0 is of axis 1, and not of 0"},
			{shim.Op{OpRef: proto.OpRef{Group: "dp/0", Way: 1}, Axis: 1}, "rank 1 of rail0 must not run operation 0 of dp/0: no such operation: group dp/0 has no ways, and it names way 1"},
			{shim.Op{OpRef: proto.OpRef{Group: "pp/1", Way: 1}}, "rank 1 of rail0 must not run transfer 0 of pp/1 between stages 1 and 2: no such operation: a rank of stage 0 takes no part in way 1"},
		} {
			err := preOp(t.Context(), s, x.op).refused(t, shim.ErrBadOp)
			if err.Error() != x.want {
				t.Errorf("got  %s\nwant %s", err, x.want)
			}
		}
		a := preOp(t.Context(), s, dp(4)) // those before were not on the rail
		p.expect(demand(1, "dp/0", 4, ""))
		p.send(ack(1, "applied"))
		a.granted(t)
		s.PostOp(dp(4))
		p.expect(release("dp/0", 4))
		preOp(t.Context(), s, dp(4)).refused(t, shim.ErrBadOp)
		if err := s.PostOp(dp(4)); !errors.Is(err, shim.ErrBadOp) {
			t.Errorf("got %v", err)
		}
		finish(t, s, p)
	})
}

// Ensure operations of other networks ask nobody.
func TestOffRail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		for _, net := range []trace.Net{trace.FrontEnd, trace.ScaleUp} {
			op := dp(0)
			op.Net = net
			if g, err := s.PreOp(t.Context(), op); err != nil || g != (shim.Grant{}) {
				t.Errorf("%s: got %+v, %v", net, g, err)
			}
			if err := s.PostOp(op); err != nil {
				t.Error(err)
			}
		}
		p.send(`{"kind":"group-ok","group":"dp/0","domain":"scale-up"}`) // the controller knows better
		synctest.Wait()
		if g, err := s.PreOp(t.Context(), dp(0)); err != nil || g != (shim.Grant{}) {
			t.Errorf("got %+v, %v", g, err)
		}
		finish(t, s, p)
	})
}

func TestFallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p, _ := connect(t, nil)
		p.send(`{"kind":"fallback","rail":"rail1","generation":9,"dead":true}`, `{"kind":"fallback","rail":"rail0","generation":4,"reason":"port 3 is dark"}`)
		synctest.Wait()
		if st := s.Stats(); !st.Fallback || st.Dead {
			t.Errorf("got %+v", st)
		}
		for i, result := range []string{"fallback", "detour"} {
			a := preOp(t.Context(), s, pp(uint64(i)))
			p.expect(demand(i+1, "pp/1", i, ""))
			p.send(ack(i+1, result))
			if g := a.granted(t); string(g.Result) != result {
				t.Errorf("got %+v", g)
			}
			s.PostOp(pp(uint64(i)))
			p.expect(release("pp/1", i))
		}
		p.send(`{"kind":"resume","rail":"rail0","generation":5}`)
		synctest.Wait()
		if st := s.Stats(); st.Fallback {
			t.Errorf("got %+v", st)
		}
		finish(t, s, p)
	})
}

func TestDialRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, change := range []func(*shim.Options){
			func(o *shim.Options) { o.Dial = nil },
			func(o *shim.Options) { o.Rank = 4 },
			func(o *shim.Options) { o.Mode = "never" },
			func(o *shim.Options) { o.ProfileSteps = 2 },
			func(o *shim.Options) { o.Timeout = -1 },
			func(o *shim.Options) { o.Job = opus.Job{} },
		} {
			opt := shim.Options{Dial: make(listener).dial(t), Job: lab, Rail: "rail0"}
			change(&opt)
			if _, err := shim.Dial(t.Context(), opt); err == nil {
				t.Errorf("%+v is fine", opt)
			}
		}
		l := make(listener)
		go func() {
			p := <-l
			p.read()
			p.send(`{"kind":"bye","code":"bad","reason":"version 1 is not spoken here"}`)
		}()
		_, err := shim.Dial(t.Context(), shim.Options{Dial: l.dial(t), Job: lab, Rail: "rail0", Rank: 2})
		if !errors.Is(err, shim.ErrRefused) || err.Error() != "rank 2 of rail0: the controller refuses: version 1 is not spoken here (bad)" {
			t.Errorf("got %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go func() {
			p := <-l
			p.read()
			p.send(welcome)
			p.read()
			p.read()
			p.send(okDP)
		}()
		_, err = shim.Dial(ctx, shim.Options{Dial: l.dial(t), Job: lab, Rail: "rail0", Rank: 1})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNetwork(t *testing.T) {
	for _, x := range []struct {
		kind  trace.Kind
		bytes int64
		hosts []string
		want  trace.Net
	}{
		{trace.AllGather, 1, nil, trace.RailNet},
		{trace.AllGather, 1 << 30, []string{"a", "b"}, trace.RailNet},
		{trace.AllGather, 1 << 30, []string{"a", "a"}, trace.ScaleUp},
		{trace.AllGather, 1 << 30, []string{"", ""}, trace.RailNet},
		{trace.Barrier, 0, nil, trace.FrontEnd},
		{trace.AllReduce, shim.SmallReduce, nil, trace.FrontEnd},
		{trace.AllReduce, shim.SmallReduce + 1, nil, trace.RailNet},
		{trace.AllToAll, shim.SmallAllToAll, nil, trace.FrontEnd},
		{trace.AllToAll, shim.SmallAllToAll + 1, nil, trace.RailNet},
	} {
		if got := shim.Network(x.kind, x.bytes, x.hosts...); got != x.want {
			t.Errorf("%s of %d bytes between %q: got %s, want %s", x.kind, x.bytes, x.hosts, got, x.want)
		}
	}
}
