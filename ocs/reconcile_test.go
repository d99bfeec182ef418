package ocs_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"pgregory.net/rapid"
)

func outcomes(r ocs.Report) string {
	var s []string
	for _, o := range r.Outcomes {
		s = append(s, o.CrossConnect.String()+" "+string(o.State))
	}
	return strings.Join(s, ", ")
}

func TestReconcile(t *testing.T) {
	for _, tc := range []struct {
		name, have, want string
		policy           ocs.Policy
		after            string
		outcomes         string
		err              error
	}{
		{"connect", "5>20", "1>17", ocs.Safe, "1>17,5>20", "1>17 connected", nil},
		{"nothing to do", "1>17,5>20", "1>17", ocs.Safe, "1>17,5>20", "1>17 kept", nil},
		{"busy ingress", "1>18", "1>17", ocs.Safe, "1>18", "", ocs.ErrConflict},
		{"busy egress", "2>17", "1>17", ocs.Safe, "2>17", "", ocs.ErrConflict},
		{"one busy refuses all", "2>17", "3>19,1>17", ocs.Safe, "2>17", "", ocs.ErrConflict},
		{"update moves", "1>18,2>17,5>20", "1>17", ocs.Update, "1>17,5>20", "1>17 connected, 1>18 removed, 2>17 removed", nil},
		{"overwrite clears", "1>18,5>20", "1>18", ocs.Overwrite, "1>18", "1>18 kept, 5>20 removed", nil},
		{"overwrite with nothing", "1>18,5>20", "", ocs.Overwrite, "", "1>18 removed, 5>20 removed", nil},
		{"wrong port", "", "1>99", ocs.Safe, "", "", ocs.ErrPort},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sw := ocstest.New(16, mustParse(t, tc.have))
			r, err := ocs.Reconcile(t.Context(), sw, mustParse(t, tc.want), tc.policy)
			if !errors.Is(err, tc.err) {
				t.Fatalf("err=%v, want %v", err, tc.err)
			}
			if after, _ := sw.CrossConnects(t.Context()); after.String() != tc.after {
				t.Errorf("after=%v, want %v", after, tc.after)
			}
			if got := outcomes(r); got != tc.outcomes {
				t.Errorf("outcomes=%q, want %q", got, tc.outcomes)
			}
			if applied := sw.Applied(); tc.err != nil && len(applied) > 0 {
				t.Errorf("refused, but %v was sent", applied)
			}
		})
	}
}

// Ensure Reconcile brings the wish about and touches only what differs, under
// every policy.
func TestReconcile_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := drawMap(t, 10, "have"), drawMap(t, 10, "want")
		policy := rapid.SampledFrom([]ocs.Policy{ocs.Safe, ocs.Update, ocs.Overwrite}).Draw(t, "policy")
		sw := ocstest.New(10, have)
		_, err := ocs.Reconcile(context.Background(), sw, want, policy)
		after, _ := sw.CrossConnects(context.Background())
		if err != nil {
			if policy != ocs.Safe || !errors.Is(err, ocs.ErrConflict) || !after.Equal(have) {
				t.Fatalf("%s: %v, device went from %v to %v", policy, err, have, after)
			}
			return
		}
		for c := range want.All() {
			if !after.Has(c) {
				t.Fatalf("%s: %v is missing in %v", policy, c, after)
			}
		}
		for c := range have.All() {
			inTheWay := len(want.Rivals(c)) > 0
			stays := policy != ocs.Overwrite && !inTheWay || want.Has(c)
			if after.Has(c) != stays {
				t.Fatalf("%s: %v there=%v, want %v", policy, c, after.Has(c), stays)
			}
		}
		for c := range after.All() {
			if !have.Has(c) && !want.Has(c) {
				t.Fatalf("%s: %v came from nowhere", policy, c)
			}
		}
		for _, change := range sw.Applied() {
			if touched := ocs.Diff(have, after); change.String() != touched.String() {
				t.Fatalf("sent %v, differs %v", change, touched)
			}
		}
	})
}

// Ensure undo gives back what was there, whatever the change was.
func TestPlanUndo_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := drawMap(t, 10, "have"), drawMap(t, 10, "want")
		sw := ocstest.New(10, have)
		r, err := ocs.Reconcile(context.Background(), sw, want, ocs.Update)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ocs.Execute(context.Background(), sw, func(now ocs.Map) (ocs.Change, error) { return ocs.PlanUndo(now, r.Change) })
		after, _ := sw.CrossConnects(context.Background())
		if err != nil || !after.Equal(have) {
			t.Fatalf("undo of %v: %v (%v), want %v", r.Change, after, err, have)
		}
	})
}

func TestPlanUndo_PortsTakenSince(t *testing.T) {
	done := ocs.Diff(mustParse(t, "1>17"), mustParse(t, "1>18"))
	// Half of it is gone, and somebody else sits on 17.
	if _, err := ocs.PlanUndo(mustParse(t, "2>17"), done); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("err=%v, want ErrConflict", err)
	}
	c, err := ocs.PlanUndo(mustParse(t, "2>19"), done)
	if err != nil || c.String() != "+ 1>17" {
		t.Errorf("PlanUndo=%v, %v", c, err)
	}
}

func TestPlanDisconnect(t *testing.T) {
	have := mustParse(t, "1>17,2>18,3>19")
	c, err := ocs.PlanDisconnect(have, 1, 18, 17)
	if err != nil || c.String() != "- 1>17,2>18" {
		t.Errorf("PlanDisconnect=%v, %v", c, err)
	}
	if _, err := ocs.PlanDisconnect(have, 9); !errors.Is(err, ocs.ErrNotConnected) || !strings.Contains(err.Error(), "port 9") {
		t.Errorf("err=%v", err)
	}
}

// Ensure a wrong light path is never reported as success.
func TestReconcile_DeviceLies(t *testing.T) {
	for _, tc := range []struct {
		name     string
		lie      func(ocs.Change) ocs.Change
		outcomes string
		text     string
	}{
		{"does nothing", func(ocs.Change) ocs.Change { return ocs.Change{} }, "1>17 failed, 1>18 stuck, 2>19 failed", "1>17 is missing, 1>18 is there; 2>19 is missing; 1>18 is still there"},
		{"half of it", func(c ocs.Change) ocs.Change {
			return ocs.Change{Remove: c.Remove, Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17})}
		}, "1>17 connected, 1>18 removed, 2>19 failed", "2>19 is missing"},
		{"another port", func(c ocs.Change) ocs.Change {
			return ocs.Change{Remove: c.Remove, Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17}, ocs.CrossConnect{Ingress: 2, Egress: 20})}
		}, "1>17 connected, 1>18 removed, 2>19 failed, 2>20 appeared", "2>19 is missing, 2>20 is there"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sw := ocstest.New(16, mustParse(t, "1>18"))
			sw.OnApply = func(c ocs.Change) (ocs.Change, error) { return tc.lie(c), nil }
			r, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "1>17,2>19"), ocs.Update)
			if !errors.Is(err, ocs.ErrVerify) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("err=%v, want %q", err, tc.text)
			}
			if got := outcomes(r); got != tc.outcomes {
				t.Errorf("outcomes=%q, want %q", got, tc.outcomes)
			}
		})
	}
}

// Ensure what others do meanwhile is told, and is an error only where it
// spoils the wish.
func TestReconcile_OthersMeanwhile(t *testing.T) {
	sw := ocstest.New(16, mustParse(t, "3>19,4>20"))
	sw.OnApply = func(c ocs.Change) (ocs.Change, error) {
		add, _ := c.Add.Plus(ocs.MustMap(ocs.CrossConnect{Ingress: 9, Egress: 25}))
		return ocs.Change{Remove: mustParse(t, "3>19"), Add: add}, nil
	}
	r, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "1>17"), ocs.Safe)
	if err != nil || outcomes(r) != "1>17 connected, 3>19 vanished, 9>25 appeared" {
		t.Errorf("outcomes=%q, err=%v", outcomes(r), err)
	}
	sw.Set(mustParse(t, "3>19"))
	r, err = ocs.Reconcile(t.Context(), sw, mustParse(t, "1>17,3>19"), ocs.Safe)
	if !errors.Is(err, ocs.ErrVerify) || outcomes(r) != "1>17 connected, 3>19 vanished, 9>25 appeared" {
		t.Errorf("outcomes=%q, err=%v", outcomes(r), err)
	}
}

func TestReconcile_PartialFailure(t *testing.T) {
	sw := ocstest.New(16, mustParse(t, "1>18"))
	sw.OnApply = func(c ocs.Change) (ocs.Change, error) {
		return ocs.Change{Remove: c.Remove}, &ocs.OpError{Op: "change", Device: "rail0", Reply: "M  1 DENY", Err: ocs.ErrDenied}
	}
	r, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "1>17"), ocs.Update)
	if !errors.Is(err, ocs.ErrDenied) {
		t.Fatalf("err=%v", err)
	}
	if got := outcomes(r); !r.ReadBack || got != "1>17 failed, 1>18 removed" {
		t.Errorf("ReadBack=%v, outcomes=%q", r.ReadBack, got)
	}
}

func TestReconcile_CannotReadBack(t *testing.T) {
	for _, applyFails := range []bool{false, true} {
		sw := ocstest.New(16, ocs.Map{})
		reads := 0
		sw.OnRead = func() error {
			if reads++; reads > 1 {
				return io.ErrUnexpectedEOF
			}
			return nil
		}
		if applyFails {
			sw.OnApply = func(ocs.Change) (ocs.Change, error) { return ocs.Change{}, ocs.ErrDenied }
		}
		r, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "1>17"), ocs.Safe)
		want := io.ErrUnexpectedEOF
		if applyFails {
			want = ocs.ErrDenied
		}
		if !errors.Is(err, want) || r.ReadBack {
			t.Errorf("applyFails=%v: err=%v, ReadBack=%v", applyFails, err, r.ReadBack)
		}
	}
}

func TestReconcile_Cancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	sw := ocstest.New(16, ocs.Map{})
	sw.OnApply = func(c ocs.Change) (ocs.Change, error) { cancel(); return c, nil }
	r, err := ocs.Reconcile(ctx, sw, mustParse(t, "1>17"), ocs.Safe)
	if !errors.Is(err, context.Canceled) || r.ReadBack {
		t.Errorf("err=%v, ReadBack=%v", err, r.ReadBack)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, ocs.Map{}, "brutal"); err == nil {
		t.Error("an unknown policy was accepted")
	}
}

// Ensure a port of a single-sided switch that is busy in the other role counts
// as busy.
func TestReconcile_SingleSided(t *testing.T) {
	sw := ocstest.New(8, mustParse(t, "1>2"))
	sw.Identity.Geometry = ocs.SingleSided(8)
	if _, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "2>3"), ocs.Safe); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("err=%v, want ErrConflict", err)
	}
	if r, err := ocs.Preview(t.Context(), sw, mustParse(t, "2>3"), ocs.Update); err != nil || r.Change.String() != "- 1>2 + 2>3" {
		t.Errorf("Preview=%v, %v", r.Change, err)
	}
	if _, err := ocs.PreviewExecute(t.Context(), sw, func(ocs.Map) (ocs.Change, error) {
		return ocs.Change{Add: mustParse(t, "2>3")}, nil
	}); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("PreviewExecute: err=%v, want ErrConflict", err)
	}
	if len(sw.Applied()) != 0 {
		t.Error("a preview changed something")
	}
	r, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "2>3"), ocs.Update)
	if err != nil || outcomes(r) != "1>2 removed, 2>3 connected" {
		t.Errorf("outcomes=%q, err=%v", outcomes(r), err)
	}
}

type wrapped struct{ ocs.Switch }

func (w wrapped) Unwrap() ocs.Switch { return w.Switch }

type labeled struct {
	*ocstest.Switch
	ocs.Labeler
}

func TestAs(t *testing.T) {
	sw := wrapped{wrapped{labeled{Switch: ocstest.New(4, ocs.Map{})}}}
	if _, ok := ocs.As[ocs.Labeler](sw); !ok {
		t.Error("As does not look through wrappers")
	}
	if _, ok := ocs.As[ocs.Shutter](sw); ok {
		t.Error("As found what is not there")
	}
	if _, ok := ocs.As[ocs.Shutter](nil); ok {
		t.Error("As found something in nothing")
	}
}

func TestOpError(t *testing.T) {
	err := error(&ocs.OpError{Op: "connect", Device: "rail0", Request: "ENT-PATCH", Reply: "\r\n\n   X\r\nM  1 DENY\r\n;", Err: ocs.ErrDenied})
	if got, want := err.Error(), `rail0: connect: refused by the device (reply "X M 1 DENY ;")`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !errors.Is(err, ocs.ErrDenied) {
		t.Error("Unwrap")
	}
	all := []error{&ocs.ConflictError{}, &ocs.PortError{}, &ocs.VerifyError{}}
	for i, sentinel := range []error{ocs.ErrConflict, ocs.ErrPort, ocs.ErrVerify} {
		for j, e := range all {
			if errors.Is(e, sentinel) != (i == j) {
				t.Errorf("errors.Is(%T, %v)=%v", e, sentinel, i != j)
			}
		}
	}
	if ps := []ocs.Policy{ocs.Safe, ocs.Update, ocs.Overwrite}; !slices.ContainsFunc(ps, func(p ocs.Policy) bool { q, err := ocs.ParsePolicy(string(p)); return q == p && err == nil }) {
		t.Error("ParsePolicy")
	}
}
