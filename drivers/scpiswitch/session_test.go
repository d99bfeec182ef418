package scpiswitch_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/scpiswitch"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
)

const (
	readMap = ":OXC:SWIT:CONN:STAT?"
	add     = ":OXC:SWIT:CONN:ADD (@1),(@17)"
	foreign = `-113, "Undefined header;somebody else"`
)

// The error queue is emptied when a session begins.
func TestOpenEmptiesQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) {
			for range 3 {
				l.expect(":SYST:ERR?")
				l.Send(foreign + "\r\n")
			}
			l.empty()
			l.change(add)
		})
		sw, err := scpiswitch.Open(t.Context(), p.config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sw.Apply(t.Context(), change); err != nil {
			t.Error(err)
		}
		sw.Close()
		p.Finish()
	})
}

// What a serial line has left from before is not for the new session.
func TestOpenAmidReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) {
			l.expect(":SYST:ERR?")
			l.Send("7,18)\r\n" + fine + "1\r\n" + fine)
			l.change(add)
		})
		sw, err := scpiswitch.Open(t.Context(), p.config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sw.Apply(t.Context(), change); err != nil {
			t.Error(err)
		}
		sw.Close()
		p.Finish()
	})
}

func TestOpenFails(t *testing.T) {
	endless := func(l *line) {
		for l.next() != "" {
			l.Send(foreign + "\r\n")
		}
	}
	for _, tt := range []struct {
		name   string
		script func(*line)
		want   error
		takes  time.Duration
	}{
		{"refused", nil, nil, 0},
		{"mute", func(l *line) { mute(l, nil) }, context.DeadlineExceeded, scpiswitch.DefaultTimeout},
		{"hangs up", func(l *line) { l.Close() }, nil, 0},
		{"speaks something else", func(l *line) { l.next(); l.Send("SSH-2.0-x\r\n"); mute(l, nil) }, context.DeadlineExceeded, scpiswitch.DefaultTimeout},
		{"queue without end", endless, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPeer(t, tt.script)
				begun := time.Now()
				_, err := scpiswitch.Open(t.Context(), p.config())
				var op *ocs.OpError
				if !errors.As(err, &op) || op.Op != "connect" || tt.want != nil && !errors.Is(err, tt.want) || time.Since(begun) != tt.takes {
					t.Errorf("got %v after %v", err, time.Since(begun))
				}
				p.Wait()
			})
		})
	}
}

// What others left in a shared queue while nothing was asked is not taken for
// ours.
func TestForeignErrorBeforeChange(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		time.Sleep(time.Second)
		r, err := sw.Apply(t.Context(), change)
		if err != nil || r.Requests != 1 {
			t.Errorf("got %+v, %v", r, err)
		}
	}, func(l *line) {
		l.expect(":SYST:ERR?")
		l.Send(foreign + "\r\n")
		l.empty()
		l.change(add)
	})
}

// What comes while the change is under way cannot be told apart: never success,
// and all texts are told.
func TestForeignErrorDuringChange(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		for range 2 {
			r, err := sw.Apply(t.Context(), change)
			if !errors.Is(err, ocs.ErrDenied) || errors.Is(err, ocs.ErrConflict) || !strings.Contains(err.Error(), "somebody else") ||
				!strings.Contains(err.Error(), "conflict") || r.Requests != 1 {
				t.Errorf("got %v in %d requests", err, r.Requests)
			}
		}
		if _, err := sw.Apply(t.Context(), change); err == nil || !strings.Contains(err.Error(), "5 more") {
			t.Errorf("got %v", err)
		}
	}, func(l *line) {
		for _, errs := range [][2]string{{foreign, `-221, "Settings conflict"`}, {`-221, "Settings conflict"`, foreign}} {
			l.expect(add, "*OPC?", ":SYST:ERR?")
			l.Send("1\r\n" + errs[0] + "\r\n")
			l.expect(":SYST:ERR?")
			l.Send(errs[1] + "\r\n")
			l.empty()
		}
		l.expect(add, "*OPC?", ":SYST:ERR?")
		l.Send("1\r\n" + foreign + "\r\n")
		for range 9 {
			l.expect(":SYST:ERR?")
			l.Send(foreign + "\r\n")
		}
		l.empty()
	})
}

// A read that has a reply and an error is repeated, as is one with several
// errors.
func TestForeignErrorDuringRead(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		for range 2 {
			if m, err := sw.CrossConnects(t.Context()); err != nil || m.String() != "1>17" {
				t.Errorf("got %v, %v", m, err)
			}
		}
		if m, err := sw.CrossConnects(t.Context()); err == nil || !strings.Contains(err.Error(), "somebody else") {
			t.Errorf("got %v, %v", m, err)
		}
	}, func(l *line) {
		disturbed := func() {
			l.expect(readMap, ":SYST:ERR?")
			l.Send("(@1),(@17)\r\n" + foreign + "\r\n")
			l.empty()
		}
		disturbed()
		l.ask(readMap, "(@1),(@17)")
		l.fail(readMap, foreign, foreign)
		l.ask(readMap, "(@1),(@17)")
		disturbed()
		disturbed()
	})
}

// An error is told even when the session breaks before the queue is empty.
func TestErrorAndBreak(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		_, err := sw.Apply(t.Context(), change)
		if !errors.Is(err, ocs.ErrConflict) || !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	}, func(l *line) {
		l.expect(add, "*OPC?", ":SYST:ERR?")
		l.Send("1\r\n-221, \"Settings conflict\"\r\n")
		l.expect(":SYST:ERR?")
		l.Close()
	})
}

// TestStray is replies that come twice, late or not at all.
func TestStray(t *testing.T) {
	const none = "(@1),(@17)\r\n"
	for _, tt := range []struct {
		name     string
		replies  string // to a change; then the map is read
		err      string // of the change
		reopened bool
	}{
		{name: "once", replies: "1\r\n" + fine},
		{name: "everything twice", replies: "1\r\n1\r\n" + fine + fine},
		{name: "old ones first", replies: fine + fine + "1\r\n" + fine},
		{name: "empty lines", replies: "\r\n\n 1 \r\n\r\n" + fine + "\r\n"},
		{name: "other line ends", replies: "1\n0,\"No error\"\r"},
		{name: "with sign", replies: "+1\r\n+0,\"No error\"\r\n"},
		{name: "foreign reply", replies: "(@1),(@2)\r\n1\r\n" + fine, err: "no reply to this request", reopened: true},
		{name: "one too many", replies: "1\r\n2\r\n" + fine, err: "no reply to this request", reopened: true},
		{name: "signs and blanks", replies: "0 , \"No error\"\r\n-0,\"\"\r\n1\r\n 00 ,\"\"\r\n"},
		{name: "odd done", replies: "1+\r\n" + fine, err: "no reply to this request", reopened: true},
		{name: "refusal without done", replies: "-221,\"Settings conflict\"\r\n", err: "Settings conflict", reopened: true},
		{name: "part of a reply behind", replies: "1\r\n" + fine + "(@1", reopened: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			second := func(l *line) { l.ask(readMap, "(@1),(@17)") }
			scripts := []func(*line){func(l *line) {
				l.expect(add, "*OPC?", ":SYST:ERR?")
				l.Send(tt.replies)
				if !tt.reopened {
					l.expect(readMap, ":SYST:ERR?")
					l.Send(none + none + fine)
				}
			}}
			if tt.reopened {
				scripts = append(scripts, second)
			}
			talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
				_, err := sw.Apply(t.Context(), change)
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || !strings.Contains(err.Error(), tt.err)) {
					t.Errorf("got %v", err)
				}
				if m, err := sw.CrossConnects(t.Context()); err != nil || m.String() != "1>17" {
					t.Errorf("got %v, %v", m, err)
				}
			}, scripts...)
		})
	}
}

// A late second "No error" is not taken for the acknowledgement of the next
// change.
func TestLateRepetition(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		for i := range 2 {
			if _, err := sw.Apply(t.Context(), change); (err == nil) != (i == 0) {
				t.Errorf("%d: got %v", i, err)
			}
		}
	}, func(l *line) {
		l.change(add)
		l.expect(add)
		l.Send(fine)
		l.expect("*OPC?", ":SYST:ERR?")
		l.Send("1\r\n-200, \"Execution error\"\r\n")
		l.empty()
	})
}

// A connection that died while nothing was asked is opened again, for a change
// as well.
func TestDeadWhileIdle(t *testing.T) {
	for _, idle := range []time.Duration{0, time.Hour} {
		die := func(l *line) { l.Close() }
		calls := []func(ctx context.Context, sw *scpiswitch.Switch) error{
			func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.CrossConnects(ctx); return err },
			func(ctx context.Context, sw *scpiswitch.Switch) error { _, err := sw.Apply(ctx, change); return err },
		}
		for i, script := range []func(*line){
			func(l *line) { l.ask(readMap, "(@),(@)") },
			func(l *line) { l.change(add) },
		} {
			talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
				synctest.Wait()
				time.Sleep(idle)
				if err := calls[i](t.Context(), sw); err != nil {
					t.Errorf("idle for %v: %v", idle, err)
				}
			}, die, script)
		}
	}
}

// A TCP connection takes a request after the other end has closed. After a while
// of quiet it is looked whether anybody is there before a change is sent.
func TestDeadWhileIdleTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var served sync.WaitGroup
	defer served.Wait()
	gone := make(chan struct{})
	served.Go(func() {
		for n := range 2 {
			c, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			f := &line{Line: drivertest.Line{T: t, Conn: c, In: bufio.NewReader(c)}}
			f.empty()
			if n == 1 {
				f.change(add)
				f.next()
			}
			c.Close()
			if n == 0 {
				close(gone)
			}
		}
	})
	sw, err := scpiswitch.Open(t.Context(), scpiswitch.Config{Dialer: transport.TCP{Addr: l.Addr().String()}})
	if err != nil {
		t.Fatal(err)
	}
	defer sw.Close()
	<-gone
	time.Sleep(110 * time.Millisecond) // what the driver takes for quiet
	if _, err := sw.Apply(t.Context(), change); err != nil {
		t.Error(err)
	}
}

// A change whose reply was lost is not repeated.
func TestChangeIsNotRepeated(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		r, err := sw.Apply(t.Context(), change)
		if !errors.Is(err, io.EOF) || r.Requests != 1 || !r.Acked.IsZero() {
			t.Errorf("got %+v, %v", r, err)
		}
	}, func(l *line) {
		l.expect(add, "*OPC?", ":SYST:ERR?")
		l.Close()
	})
}

// A device that finishes late acknowledges late, and is not given up while
// bytes come.
func TestReceiptAndProgress(t *testing.T) {
	const perByte = 200 * time.Millisecond // 17 of them are longer than Timeout
	talkWith(t, func(c *scpiswitch.Config) { c.Timeout = 2 * time.Second }, func(t *testing.T, sw *scpiswitch.Switch) {
		begun := time.Now()
		r, err := sw.Apply(t.Context(), change)
		at := func(x time.Time) time.Duration { return x.Sub(begun) }
		n := time.Duration(len(fine) - 1) // CR is enough
		if err != nil || at(r.SendStart) != 0 || at(r.Sent) != 0 || at(r.FirstByte) != time.Second || at(r.Acked) != time.Second+n*perByte || r.Requests != 1 {
			t.Errorf("got %v %v %v %v, %v", at(r.SendStart), at(r.Sent), at(r.FirstByte), at(r.Acked), err)
		}
	}, func(l *line) {
		l.expect(add, "*OPC?", ":SYST:ERR?")
		time.Sleep(time.Second)
		l.Send("1\r\n")
		for _, c := range fine {
			time.Sleep(perByte)
			l.Send(string(c))
		}
	})
}

// A device that says nothing of use, but goes on and on, is given up.
func TestDribble(t *testing.T) {
	for name, dribble := range map[string]string{"blank lines": "\r\n", "part of a line": "x"} {
		t.Run(name, func(t *testing.T) {
			talkWith(t, func(c *scpiswitch.Config) { c.Timeout = 2 * time.Second }, func(t *testing.T, sw *scpiswitch.Switch) {
				begun := time.Now()
				_, err := sw.CrossConnects(t.Context())
				if took := time.Since(begun); !errors.Is(err, context.DeadlineExceeded) || took < 2*time.Second || took > 3*time.Second {
					t.Errorf("got %v after %v", err, took)
				}
			}, func(l *line) {
				l.expect(readMap, ":SYST:ERR?")
				for err := error(nil); err == nil; {
					time.Sleep(time.Second)
					_, err = l.Write([]byte(dribble))
				}
			})
		})
	}
}

// slow is a stream that takes a few bytes at a time, as a serial line does.
type slow struct {
	transport.Conn
	by time.Time
}

const (
	slowBytes = 16
	slowPause = 15 * time.Millisecond
)

func (s *slow) SetWriteDeadline(t time.Time) error { s.by = t; return nil }

func (s *slow) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if time.Until(s.by) < slowPause {
			time.Sleep(time.Until(s.by))
			return n, os.ErrDeadlineExceeded
		}
		time.Sleep(slowPause)
		m, err := s.Conn.Write(p[n:min(len(p), n+slowBytes)])
		if n += m; err != nil {
			return n, err
		}
	}
	return n, nil
}

// A command that takes far longer than Timeout to send is fine while it moves.
// The receipt is about the command, not the queries behind it.
func TestSlowLine(t *testing.T) {
	ccs := make([]ocs.CrossConnect, 192)
	for i := range ccs {
		ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(i + 1), Egress: ocs.Port(i + 193)}
	}
	var length int
	talkWith(t, func(c *scpiswitch.Config) {
		c.Timeout = 50 * time.Millisecond
		c.Dialer = wrapped{c.Dialer, func(c transport.Conn) transport.Conn { return &slow{Conn: c} }}
	}, func(t *testing.T, sw *scpiswitch.Switch) {
		begun := time.Now()
		r, err := sw.Apply(t.Context(), ocs.Change{Add: ocs.MustMap(ccs...)})
		sent := r.Sent.Sub(begun)
		if least := time.Duration(length/slowBytes) * slowPause; err != nil || sent < least || r.Sent.Sub(r.SendStart) > 40*time.Millisecond || !r.Acked.After(r.Sent) {
			t.Errorf("sent after %v, want %v or more, and acked %v later, %v", sent, least, r.Acked.Sub(r.Sent), err)
		}
	}, func(l *line) {
		length = len(l.next())
		l.expect("*OPC?", ":SYST:ERR?")
		l.Send("1\r\n" + fine)
	})
}

// stuck is a stream that takes the first bytes only.
type stuck struct {
	transport.Conn
	left int
	by   time.Time
}

func (s *stuck) SetWriteDeadline(t time.Time) error { s.by = t; return nil }

func (s *stuck) Write(p []byte) (int, error) {
	n := 0
	if s.left > 0 {
		var err error
		n, err = s.Conn.Write(p[:min(len(p), s.left)])
		if s.left -= n; n == len(p) || err != nil {
			return n, err
		}
	}
	time.Sleep(time.Until(s.by))
	return n, os.ErrDeadlineExceeded
}

// A request that cannot be sent is given up in time. A session into which
// nothing of it went is used again, one with a part of it is not.
func TestStuckLine(t *testing.T) {
	const open = len("\r\n:SYST:ERR?\r\n")
	for _, part := range []int{0, 5} {
		for _, cancelled := range []bool{false, true} {
			scripts := []func(*line){func(*line) {}}
			if part > 0 {
				partly := func(l *line) {
					if got := l.next(); got != add[:part] {
						l.T.Errorf("got %q", got)
					}
				}
				scripts = []func(*line){partly, partly}
			}
			talkWith(t, func(c *scpiswitch.Config) {
				c.Dialer = wrapped{c.Dialer, func(c transport.Conn) transport.Conn { return &stuck{Conn: c, left: open + part} }}
			}, func(t *testing.T, sw *scpiswitch.Switch) {
				ctx, cancel := context.WithCancelCause(t.Context())
				want, takes := context.DeadlineExceeded, scpiswitch.DefaultTimeout
				if cancelled {
					want, takes = drivertest.ErrEnough, time.Second
					time.AfterFunc(takes, func() { cancel(drivertest.ErrEnough) })
				}
				for range 1 + min(part, 1) {
					begun := time.Now()
					r, err := sw.Apply(ctx, change)
					if !errors.Is(err, want) || time.Since(begun) > takes+40*time.Millisecond || (r.Requests > 0) != (part > 0) {
						t.Errorf("part %d: got %v in %d requests after %v", part, err, r.Requests, time.Since(begun))
					}
					if part == 0 {
						break
					}
					ctx, cancel = context.WithCancelCause(t.Context())
					if cancelled {
						time.AfterFunc(takes, func() { cancel(drivertest.ErrEnough) })
					}
				}
				cancel(nil)
			}, scripts...)
		}
	}
}

// TestGap: commands keep their distance, also over requests, and what the
// device says meanwhile is taken in.
func TestGap(t *testing.T) {
	const gap = 100 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var at []time.Time
		p := newPeer(t, func(l *line) {
			for s := l.next(); s != ""; s = l.next() {
				at = append(at, time.Now())
				switch s {
				case "*OPC?":
					l.Send("1\r\n")
				case readMap:
					l.Send("(@1),(@17)\r\n")
				case ":SYST:ERR?":
					l.Send(fine)
				}
			}
		})
		cfg := p.config()
		cfg.Gap = gap
		sw, err := scpiswitch.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		r, err := sw.Apply(t.Context(), change)
		if err != nil || r.Sent.Sub(begun) != gap || r.FirstByte.Sub(r.Sent) != gap || r.Acked.Sub(r.Sent) != 2*gap {
			t.Errorf("got %+v, %v", r, err)
		}
		if m, err := sw.CrossConnects(t.Context()); err != nil || m.String() != "1>17" {
			t.Errorf("got %v, %v", m, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), gap/2)
		defer cancel()
		if _, err := sw.CrossConnects(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 5*gap+gap/2 {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		if _, err := sw.CrossConnects(t.Context()); err != nil {
			t.Error(err)
		}
		sw.Close()
		p.Finish()
		if len(at) != 8 {
			t.Errorf("got %d commands", len(at))
		}
		for i := range at[1:] {
			if d := at[i+1].Sub(at[i]); d < gap {
				t.Errorf("command %d came %v after the one before", i+2, d)
			}
		}
	})
}

// TestGapOverJitter: firmware that takes its time for a query, and then is deaf for
// another while, loses nothing over a link that delays one line more than the
// next, if the gap is as long as that while and the jitter.
func TestGapOverJitter(t *testing.T) {
	const deaf, jitter, work = 100 * time.Millisecond, 30 * time.Millisecond, 120 * time.Millisecond
	type arrival struct {
		line string
		at   time.Time
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			delay := rand.New(rand.NewPCG(seed, seed))
			lost := 0
			p := newPeer(t, func(l *line) {
				arrivals := make(chan arrival, 10)
				var device sync.WaitGroup
				device.Go(func() {
					delay, ready := rand.New(rand.NewPCG(seed, ^seed)), time.Time{}
					for a := range arrivals {
						time.Sleep(time.Until(a.at))
						if a.at.Before(ready) {
							lost++
							continue
						}
						ready = a.at.Add(deaf)
						reply, query := map[string]string{"*OPC?": "1\r\n", readMap: "(@1),(@17)\r\n", ":SYST:ERR?": fine}[a.line]
						if query {
							ready = ready.Add(work)
							time.Sleep(work + time.Duration(delay.Int64N(int64(jitter))))
							l.Send(reply)
						}
					}
				})
				last := time.Time{}
				for s := l.next(); s != ""; s = l.next() {
					at := time.Now().Add(time.Duration(delay.Int64N(int64(jitter))))
					if at.Before(last) {
						at = last
					}
					last = at
					arrivals <- arrival{s, at}
				}
				close(arrivals)
				device.Wait()
			})
			cfg := p.config()
			cfg.Gap = deaf + jitter
			sw, err := scpiswitch.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if _, err := sw.Apply(t.Context(), change); err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				if m, err := sw.CrossConnects(t.Context()); err != nil || m.String() != "1>17" {
					t.Errorf("seed %d: got %v, %v", seed, m, err)
				}
			}
			sw.Close()
			p.Finish()
			if lost > 0 {
				t.Errorf("seed %d: %d lines were lost", seed, lost)
			}
		})
	}
}

// Calls from many goroutines take turns, and each gets its own reply.
func TestConcurrent(t *testing.T) {
	d := newDevice(t)
	sw, err := scpiswitch.Open(t.Context(), d.config())
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for _, m := range methods {
		if m.name == "Restart" || m.name == "SetBootMode" {
			continue // changes what BootMode wants
		}
		for range 4 {
			calls.Go(func() {
				for range 10 {
					if err := m.call(t.Context(), sw); err != nil {
						t.Errorf("%s: %v", m.name, err)
					}
				}
			})
		}
	}
	calls.Wait()
	sw.Close()
	d.Wait()
}

// Who waits for the turn leaves when it wants to, or when the Switch is closed.
func TestTurn(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		var calls sync.WaitGroup
		call := func(ctx context.Context, want error) {
			calls.Go(func() {
				if _, err := sw.CrossConnects(ctx); !errors.Is(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			})
			synctest.Wait()
		}
		call(t.Context(), net.ErrClosed) // has it
		ctx, cancel := context.WithCancelCause(t.Context())
		call(ctx, drivertest.ErrEnough)
		cancel(drivertest.ErrEnough)
		synctest.Wait()
		call(ctx, drivertest.ErrEnough)
		call(t.Context(), net.ErrClosed)
		sw.Close()
		sw.Close()
		calls.Wait()
		call(t.Context(), net.ErrClosed)
		calls.Wait()
	}, func(l *line) { mute(l, nil) })
}

// Close ends a call that connects, too.
func TestCloseWhileConnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPeer(t, func(l *line) { l.empty(); l.Close() })
		d := &slowDial{peer: p}
		cfg := p.config()
		cfg.Dialer = d
		sw, err := scpiswitch.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		d.slow = true
		time.AfterFunc(time.Second, func() { sw.Close() })
		begun := time.Now()
		if _, err := sw.CrossConnects(t.Context()); !errors.Is(err, net.ErrClosed) || time.Since(begun) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		p.Finish()
	})
}

type slowDial struct {
	*peer
	slow bool
}

func (d *slowDial) Dial(ctx context.Context) (transport.Conn, error) {
	if d.slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return d.peer.Dial(ctx)
}

func TestTrace(t *testing.T) {
	var b strings.Builder
	talkWith(t, func(c *scpiswitch.Config) {
		c.Trace = func(sent bool, p []byte) {
			b.WriteString(map[bool]string{true: "> ", false: "< "}[sent] + string(p))
		}
	}, func(t *testing.T, sw *scpiswitch.Switch) {
		if _, err := sw.Apply(t.Context(), change); err != nil {
			t.Error(err)
		}
	}, func(l *line) { l.change(add) })
	want := "> \r\n:SYST:ERR?\r\n< " + fine + "> " + add + "\r\n*OPC?\r\n:SYST:ERR?\r\n< 1\r\n< " + fine
	if b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

// lastWords is a stream that ends together with its last bytes.
type lastWords struct{ transport.Conn }

func (c lastWords) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && strings.HasSuffix(string(p[:n]), "bye\r\n") {
		err = io.EOF
	}
	return n, err
}

// A session whose end came with the last reply is not used again.
func TestLastWords(t *testing.T) {
	talkWith(t, func(c *scpiswitch.Config) {
		c.Dialer = wrapped{c.Dialer, func(c transport.Conn) transport.Conn { return lastWords{c} }}
	}, func(t *testing.T, sw *scpiswitch.Switch) {
		if m, err := sw.CrossConnects(t.Context()); err != nil || m.Len() != 0 {
			t.Errorf("got %v, %v", m, err)
		}
		if _, err := sw.Apply(t.Context(), change); err != nil {
			t.Error(err)
		}
	}, func(l *line) {
		l.expect(readMap, ":SYST:ERR?")
		l.Send("(@),(@)\r\n" + fine + "bye\r\n")
	}, func(l *line) {
		l.change(add)
	})
}

// A call that is cancelled ends at once, also behind one that took long.
func TestCancelBehindSlowReply(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		if _, err := sw.CrossConnects(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(drivertest.ErrEnough) })
		begun := time.Now()
		if _, err := sw.CrossConnects(ctx); !errors.Is(err, drivertest.ErrEnough) || time.Since(begun) != time.Second {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
	}, func(l *line) {
		l.expect(readMap, ":SYST:ERR?")
		time.Sleep(time.Second)
		l.Send("(@),(@)\r\n" + fine)
		mute(l, nil)
	})
}

// A device without room for its replies takes nothing until they are read.
func TestDeviceThatHasToBeHeard(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		begun := time.Now()
		for range 2 {
			if _, err := sw.Apply(t.Context(), change); err != nil || time.Since(begun) > 100*time.Millisecond {
				t.Errorf("got %v after %v", err, time.Since(begun))
			}
		}
	}, func(l *line) {
		l.change(add)
		l.Send(fine) // blocks until it is read
		l.change(add)
	})
}

// A new session that breaks as well is not followed by a third.
func TestDeadTwice(t *testing.T) {
	talk(t, func(t *testing.T, sw *scpiswitch.Switch) {
		synctest.Wait()
		if _, err := sw.CrossConnects(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	}, func(l *line) { l.Close() }, func(l *line) {
		l.expect(readMap)
		l.Close()
	})
}

// An error that comes before it is asked for ends the session.
func TestErrorOutOfTurn(t *testing.T) {
	talkWith(t, func(c *scpiswitch.Config) { c.Gap = time.Second }, func(t *testing.T, sw *scpiswitch.Switch) {
		_, err := sw.Apply(t.Context(), change)
		if err == nil || errors.Is(err, ocs.ErrDenied) || !strings.Contains(err.Error(), "out of turn") {
			t.Errorf("got %v", err)
		}
	}, func(l *line) {
		l.expect(add, "*OPC?")
		l.Send("1\r\n" + foreign + "\r\n")
	})
}
