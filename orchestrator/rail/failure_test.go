package rail_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

// TestSentences: what people read names rail, switch and ports once, and the device's own words are short. What it said in
// full is in the event.
func TestSentences(t *testing.T) {
	long := "DENY SROF \"" + strings.Repeat("the matrix is on fire ", 10) + "\""
	reply := "\r\n   ocs1 26-11-22 12:00:00\r\nM  7 DENY\r\n   SROF\r\n;"
	for name, x := range map[string]struct {
		fails func(ctx context.Context) error
		want  string
	}{
		"silent": {func(ctx context.Context) error {
			<-ctx.Done()
			return &ocs.OpError{Op: "change circuits", Device: "ocs1", Request: "ENT-CRS", Err: context.Cause(ctx)}
		}, "rail rail0: ocs1 did not answer within 1s when it was asked to change port 0 of gpu0, port 1 of gpu0, port 0 of gpu1, 5 more (3 attempts)"},
		"denied": {func(context.Context) error {
			return &ocs.OpError{Op: "change circuits", Device: "ocs1", Reply: reply, Err: errors.Join(errors.New(long), ocs.ErrDenied)}
		}, "rail rail0: ocs1 refused to change port 0 of gpu0, port 1 of gpu0, port 0 of gpu1, 5 more: " + long[:79] + "… (3 attempts)"},
		"denied without a word": {func(context.Context) error { return ocs.ErrDenied },
			"rail rail0: ocs1 refused to change port 0 of gpu0, port 1 of gpu0, port 0 of gpu1, 5 more (3 attempts)"},
		"dropped": {func(context.Context) error {
			return &ocs.OpError{Op: "change circuits", Device: "ocs1", Err: errors.New("connection reset by peer")}
		}, "rail rail0: ocs1 could not be asked to change port 0 of gpu0, port 1 of gpu0, port 0 of gpu1, 5 more: connection reset by peer (3 attempts)"},
		"lies": {func(context.Context) error { return nil },
			"rail rail0: port 0 of gpu0, port 1 of gpu0, port 0 of gpu1, 5 more: ocs1 acknowledged, but the device does not hold what was asked for: "},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := newDevice()
				opt := options(sw)
				opt.Where = func(p ocs.Port) string {
					return "port " + string(rune('0'+(p-1)%2)) + " of gpu" + string(rune('0'+(p-1)/2))
				}
				var last rail.Event
				var gave error
				opt.Changed = func(e rail.Event) {
					if e.What == rail.Failed {
						last = e
					}
				}
				o := start(t, opt)
				a, _ := opened(t, o)
				a.id("111")
				sw.apply = func(ctx context.Context, _ ocs.Change) (ocs.Receipt, error) {
					gave = x.fails(ctx)
					return ocs.Receipt{Requests: 1}, gave
				}
				got := a.id("211")
				var r *proto.Refusal
				if !errors.As(got.err, &r) || name != "lies" && r.Detail != x.want || !strings.HasPrefix(r.Detail, x.want) {
					t.Errorf("got  %v\nwant %v", got.err, x.want)
				}
				if reason := o.Status().Reason; "rail rail0: "+reason != r.Detail {
					t.Errorf("the status has %q", reason)
				}
				var op *ocs.OpError
				if errors.As(gave, &op) != errors.As(last.Err, &op) || name == "denied" && op.Reply != reply {
					t.Errorf("the event has %v", last.Err)
				}
			})
		})
	}
}

// TestRevive: a rail that was marked dead stays so over restarts, and says what to do, until it is asked to come back.
func TestRevive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		opt := options(sw)
		opt.Dir = t.TempDir()
		o := start(t, opt)
		a, _ := opened(t, o)
		a.id("221")
		if got := a.mark(true); got.err != nil {
			t.Fatal(got.err)
		}
		o.Close()
		for range 2 {
			o = start(t, opt)
			if s := o.Status(); s.Shape != proto.Dead || s.Reason != "a test; it stays so until it is started with --revive, or marked as no longer dead" {
				t.Errorf("got %+v", s)
			}
			o.Close()
		}
		opt.Revive = true
		sw.Set(ocs.Map{})
		sw.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }
		o = start(t, opt)
		if s := o.Status(); s.Shape != proto.Dead || s.Reason != "ocs1 refused to change port 0 of rank 0, port 1 of rank 0, port 0 of rank 1, 21 more (3 attempts)" {
			t.Errorf("got %+v", s)
		}
		o.Close()
		sw.apply = nil
		o = start(t, opt)
		if s := o.Status(); s.Shape != proto.Digits || s.ID != "221" {
			t.Errorf("got %+v", s)
		}
		holds(t, sw, mapOf(t, "221"))
		o.Close()
		opt.Revive = false
		o = start(t, opt)
		if s := o.Status(); s.Shape != proto.Digits || s.ID != "221" {
			t.Errorf("it has been brought back, and is %+v", s)
		}
	})
}

// TestRevive_Ring: where the plan cannot be had the rail comes back with the giant ring, and does not forget the plan.
func TestRevive_Ring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		opt := options(sw)
		opt.Dir = t.TempDir()
		o := start(t, opt)
		a, _ := opened(t, o)
		a.id("221")
		a.mark(true)
		o.Close()
		sw.Set(ocs.Map{})
		n := 0
		sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
			if n++; n <= rail.DefaultAttempts {
				return ocs.Receipt{}, ocs.ErrDenied
			}
			return sw.Switch.Apply(ctx, c)
		}
		opt.Revive = true
		o = start(t, opt)
		if s := o.Status(); s.Shape != proto.Giant {
			t.Errorf("got %+v", s)
		}
		holds(t, sw, mapOf(t, "ring"))
		o.Close()
		o = start(t, opt)
		a, _ = opened(t, o)
		if got := a.mark(false); got.err != nil || o.Status().ID != "221" {
			t.Errorf("got %+v, %+v", got, o.Status())
		}
	})
}

// TestRevive_Unplanned: one that was never anything but dead gets the giant ring.
func TestRevive_Unplanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		opt := options(sw)
		opt.Dir = t.TempDir()
		sw.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }
		o := start(t, opt)
		if s := o.Status(); s.Shape != proto.Dead {
			t.Errorf("got %+v", s)
		}
		o.Close()
		sw.apply, opt.Revive = nil, true
		o = start(t, opt)
		if s := o.Status(); s.Shape != proto.Giant {
			t.Errorf("got %+v", s)
		}
		holds(t, sw, mapOf(t, "ring"))
	})
}

// TestNew_Silent: a switch that does not answer is given up.
func TestNew_Silent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sw := newDevice()
		sw.read = func(ctx context.Context) (ocs.Map, error) { <-ctx.Done(); return ocs.Map{}, ctx.Err() }
		for timeout, want := range map[time.Duration]time.Duration{0: 5 * time.Second, 4 * time.Second: 12 * time.Second} {
			opt := options(sw)
			opt.Timeout = timeout
			begun := time.Now()
			_, err := rail.New(t.Context(), opt)
			if took := time.Since(begun); err == nil || !errors.Is(err, context.DeadlineExceeded) || took != want ||
				!strings.HasPrefix(err.Error(), "rail rail0: the switch ocs1 did not answer within "+want.String()+": see that") {
				t.Errorf("after %v: %v", took, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := rail.New(ctx, options(sw)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// TestMark_Named: when the rail is taken back from the giant ring it is called as before the failure.
func TestMark_Named(t *testing.T) {
	for _, id := range []string{"111", "001", "201", "000", "212"} {
		for _, restart := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				sw := newDevice()
				opt := options(sw)
				opt.Dir = t.TempDir()
				o := start(t, opt)
				a, _ := opened(t, o)
				a.id(id)
				sw.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return ocs.Receipt{}, ocs.ErrDenied }
				if got := a.id("222"); got.err == nil {
					t.Fatal("it cannot have been done")
				}
				sw.apply = nil
				if got := a.ring(); got.err != nil {
					t.Fatal(got.err)
				}
				if restart {
					o.Close()
					o = start(t, opt)
					a, _ = opened(t, o)
				}
				got := a.mark(false)
				if s := o.Status(); got.err != nil || got.done.Shape != proto.Digits || s.Shape != proto.Digits || s.ID != id {
					t.Errorf("%s: got %+v, %+v", id, got, s)
				}
				holds(t, sw, mapOf(t, id))
				// Circuits that are those of no ID keep their shape.
				<-a.joinLater([][2]int{{0, 9}})
				a.ring()
				if got := a.mark(false); got.err != nil || got.done.Shape != proto.Circuits {
					t.Errorf("%s: got %+v", id, got)
				}
			})
		}
	}
}

// TestEmulated_Counts: what a change takes, over TL1, is what the two configurations differ in, for both policies.
func TestEmulated_Counts(t *testing.T) {
	for _, x := range []struct {
		from, to       string
		policy         opus.Policy
		removed, added int
	}{
		{"111", "001", opus.Pair, 16, 16},
		{"111", "001", opus.Chain, 16, 8},
		{"111", "211", opus.Pair, 8, 8},
		{"111", "211", opus.Chain, 8, 8},
		{"001", "111", opus.Pair, 16, 16},
		{"001", "101", opus.Pair, 16, 8},
		{"001", "101", opus.Chain, 8, 8},
		{"001", "000", opus.Chain, 8, 8},
		{"001", "000", opus.Pair, 16, 8},
		{"000", "100", opus.Chain, 8, 8},
		{"000", "010", opus.Chain, 16, 8},
		{"111", "222", opus.Pair, 24, 24},
		{"111", "222", opus.Chain, 24, 24},
	} {
		for _, busy := range []emulator.BusyMode{emulator.Takeover, emulator.Deny} {
			t.Run(string(x.policy)+"/"+x.from+">"+x.to+"/"+string(busy), func(t *testing.T) {
				p, err := emulator.LoadPersonality("polatis-6000-32x32")
				if err != nil {
					t.Fatal(err)
				}
				p.Control.Busy = busy
				dev, sessions := emulateWith(t, p, 0, 1)
				opt := options(sessions...)
				opt.Policy, opt.Assignment = x.policy, regular(figure8, dev)
				var removed, added int
				opt.Changed = func(e rail.Event) {
					if e.What == rail.Connected || e.What == rail.Disconnected {
						removed, added = removed+e.Change.Remove.Len(), added+e.Change.Add.Len()
					}
				}
				o := start(t, opt)
				a := openJobWith(t, o, figure8, x.policy)
				for range 2 { // what the rail knows of the device changes nothing
					if got := a.id(x.from); got.err != nil {
						t.Fatal(got.err)
					}
					removed, added = 0, 0
					got := a.id(x.to)
					if d := got.done; got.err != nil || d.Removed != x.removed || d.Added != x.added {
						t.Errorf("want %d and %d, got %+v", x.removed, x.added, got)
					}
					if removed != x.removed || added != x.added {
						t.Errorf("events of %d and %d, want %d and %d", removed, added, x.removed, x.added)
					}
				}
			})
		}
	}
}
