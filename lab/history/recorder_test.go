package history_test

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// fakeSwitch holds a map in memory. apply, if set, takes the place of its
// Apply.
type fakeSwitch struct {
	now   ocs.Map
	apply func(ctx context.Context, c ocs.Change) (ocs.Receipt, error)
	calls int // of Apply
}

func (s *fakeSwitch) Identify(context.Context) (ocs.Identity, error) { return ocs.Identity{}, nil }

func (s *fakeSwitch) CrossConnects(context.Context) (ocs.Map, error) { return s.now, nil }

func (s *fakeSwitch) Close() error { return net.ErrClosed }

func (s *fakeSwitch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	s.calls++
	if s.apply != nil {
		return s.apply(ctx, c)
	}
	after, err := c.ApplyTo(s.now)
	if err != nil {
		return ocs.Receipt{Requests: 1}, err
	}
	s.now = after
	return receipt(1), nil
}

// receipt is one of requests sent and acknowledged after 5 ms.
func receipt(requests int) ocs.Receipt {
	sent := time.Now()
	return ocs.Receipt{SendStart: sent, Sent: sent, Acked: sent.Add(5 * time.Millisecond), Requests: requests}
}

// Ensure what is recorded for each way in which a change can go, and what
// reading back makes of it: after ok, and after not ok.
func TestRecorder_Outcome(t *testing.T) {
	denied := &ocs.OpError{Op: "connect", Device: "rail0", Reply: "DENY", Err: ocs.ErrDenied}
	for _, tt := range []struct {
		name     string
		requests int
		cancel   bool
		err      error
		want     history.State
		ok, bad  history.State
	}{
		{"Acknowledged", 1, false, nil, history.Done, history.Done, history.Unverified},
		{"AcknowledgedThenCancelled", 1, true, nil, history.Done, history.Done, history.Unverified},
		{"Interlock", 0, false, ocs.ErrInterlock, history.Failed, history.Done, history.Failed},
		{"NotSent", 0, false, net.ErrClosed, history.Failed, history.Done, history.Failed},
		{"Denied", 1, false, denied, history.Failed, history.Done, history.Failed},
		{"DeniedHalfWay", 2, false, denied, history.Pending, history.Done, history.Unverified},
		{"Cancelled", 1, true, context.Canceled, history.Pending, history.Done, history.Unverified},
		{"LostAnswer", 1, false, io.ErrUnexpectedEOF, history.Pending, history.Done, history.Unverified},
		{"Timeout", 1, false, os.ErrDeadlineExceeded, history.Pending, history.Done, history.Unverified},
		{"ReadsBackOtherwise", 1, false, &ocs.VerifyError{}, history.Unverified, history.Done, history.Unverified},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, ok := range []bool{true, false} {
				l := open(t, t.TempDir())
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				fake := &fakeSwitch{apply: func(context.Context, ocs.Change) (ocs.Receipt, error) {
					// What is about to be sent is on record.
					if es, _ := entries(t, l); len(es) != 1 || es[0].State != history.Pending || !es[0].Ended.IsZero() {
						t.Errorf("while it is sent: %+v", es)
					}
					if tt.cancel {
						cancel()
					}
					if tt.err != nil {
						return ocs.Receipt{Requests: tt.requests}, tt.err
					}
					return receipt(tt.requests), nil
				}}
				sw := l.Wrap(fake, history.Entry{Switch: "rail0", Device: device, Command: "connect"})
				_, err := sw.Apply(ctx, change("1>36/1>33"))
				if !errors.Is(err, tt.err) {
					t.Errorf("Apply: %v, want %v", err, tt.err)
				}
				es, _ := entries(t, l)
				e := es[0]
				if e.State != tt.want || e.ID != sw.ID() || e.Switch != "rail0" || e.Device != device || e.Command != "connect" || !cmp.Equal(e.Change, change("1>36/1>33")) {
					t.Errorf("entry=%+v, want %s", e, tt.want)
				}
				if tt.err == nil && (e.AckNS != 5e6 || e.Error != "") || tt.err != nil && !strings.Contains(e.Error, tt.err.Error()) {
					t.Errorf("AckNS=%d, Error=%q", e.AckNS, e.Error)
				}
				for range 2 { // the second time is no news
					if err := sw.Verified(ok, nil); err != nil {
						t.Error(err)
					}
				}
				es, _ = entries(t, l)
				want := tt.bad
				if ok {
					want = tt.ok
				}
				if es[0].State != want {
					t.Errorf("after Verified(%t): %s, want %s", ok, es[0].State, want)
				}
			}
		})
	}
}

// Ensure that a change that cannot be recorded is not sent, and that one whose
// outcome cannot be recorded is not silently so.
func TestRecorder_NotRecorded(t *testing.T) {
	broken := errors.New("no space left on device")
	l := open(t, t.TempDir())
	fake := &fakeSwitch{}
	sw := l.Wrap(fake, history.Entry{Device: device})
	l.SetFsync(func(*os.File) error { return broken })
	if r, err := sw.Apply(t.Context(), change("/1>33")); !errors.Is(err, broken) || !errors.Is(err, history.ErrUnrecorded) || !reflect.DeepEqual(r, ocs.Receipt{}) || fake.calls != 0 {
		t.Errorf("Apply: %+v, %v, %d calls, want %v and no call", r, err, fake.calls, broken)
	} else if want := "nothing was sent, as it could not be recorded: "; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("Apply: %q, want %q first", err, want)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.SetFsync((*os.File).Sync)
	if _, err := sw.Apply(ctx, change("/1>33")); !errors.Is(err, context.Canceled) || fake.calls != 0 {
		t.Errorf("cancelled before: %v, %d calls", err, fake.calls)
	}
	if es, _ := entries(t, l); len(es) != 0 || sw.ID() != 0 {
		t.Errorf("entries=%v", es)
	}
	if err := sw.Verified(false, nil); err != nil {
		t.Errorf("Verified of nothing: %v", err)
	}
	for _, result := range []error{nil, io.ErrUnexpectedEOF} {
		fake.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) {
			l.SetFsync(func(*os.File) error { return broken })
			return receipt(1), result
		}
		r, err := sw.Apply(t.Context(), change("/1>33"))
		if !errors.Is(err, broken) || result != nil && !errors.Is(err, result) || r.Requests != 1 {
			t.Errorf("Apply: %+v, %v, want %v and %v", r, err, broken, result)
		}
		if err := sw.Verified(true, nil); !errors.Is(err, broken) {
			t.Errorf("Verified: %v, want %v", err, broken)
		}
		l.SetFsync((*os.File).Sync)
		if err := sw.Verified(true, nil); err != nil {
			t.Errorf("Verified, tried again: %v", err)
		}
		es, _ := entries(t, l)
		if got := es[len(es)-1]; got.ID != sw.ID() || got.State != history.Done {
			t.Errorf("entry=%+v, want it done", got)
		}
	}
}

func TestRecorder_Wrapper(t *testing.T) {
	l := open(t, t.TempDir())
	fake := &fakeSwitch{}
	sw := l.Wrap(fake, history.Entry{Device: device})
	if got, ok := ocs.As[*fakeSwitch](sw); !ok || got != fake {
		t.Errorf("As=%v, %t", got, ok)
	}
	if _, err := sw.Apply(t.Context(), ocs.Change{}); err != nil || fake.calls != 1 || sw.ID() != 0 {
		t.Errorf("empty change: %v, %d calls, ID %d", err, fake.calls, sw.ID())
	}
	if err := sw.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}

// Ensure that changes made with Reconcile are taken back and redone, and that
// a lie of the device is found out.
func TestRecorder_Reconcile(t *testing.T) {
	l := open(t, t.TempDir())
	fake := &fakeSwitch{now: mustMap("1>33,2>34")}
	record := func(undoOf int) *history.Recorder {
		return l.Wrap(fake, history.Entry{Device: device, UndoOf: undoOf})
	}
	connect := func(want string) (int, error) {
		sw := record(0)
		report, err := ocs.Reconcile(t.Context(), sw, mustMap(want), ocs.Update)
		return sw.ID(), errors.Join(err, sw.Confirm(report, err))
	}
	undo := func(e history.Entry) error {
		sw := record(e.ID)
		report, err := ocs.Execute(t.Context(), sw, func(have ocs.Map) (ocs.Change, error) { return ocs.PlanUndo(have, e.Change) })
		if err == nil && report.Change.Empty() {
			end(t, l, begin(t, l, history.Entry{UndoOf: e.ID}), history.Done)
		}
		return errors.Join(err, sw.Confirm(report, err))
	}
	expect := func(err error, want string) {
		t.Helper()
		if err != nil || !fake.now.Equal(mustMap(want)) {
			t.Fatalf("%v, holds %v, want %s", err, fake.now, want)
		}
	}
	last := func() history.Entry {
		t.Helper()
		e, ok, err := l.Last(device)
		if !ok || err != nil {
			t.Fatalf("Last: %t, %v", ok, err)
		}
		return e
	}
	_, err := connect("1>35")
	expect(err, "1>35,2>34")
	_, err = connect("2>36")
	expect(err, "1>35,2>36")
	expect(undo(last()), "1>35,2>34")
	expect(undo(last()), "1>33,2>34")
	es, _ := entries(t, l)
	expect(undo(es[3]), "1>35,2>34") // redo
	expect(undo(es[2]), "1>35,2>36")

	// Somebody else takes 2>36 back: nothing is left to do, but it counts.
	fake.now = mustMap("1>35,2>34")
	expect(undo(last()), "1>35,2>34")
	if got := last().ID; got != 1 {
		t.Errorf("Last=%d, want 1", got)
	}

	fake.apply = func(context.Context, ocs.Change) (ocs.Receipt, error) { return receipt(1), nil }
	id, err := connect("3>40")
	if !errors.Is(err, ocs.ErrVerify) {
		t.Errorf("a lie: %v, want ErrVerify", err)
	}
	if e := last(); e.ID != id || e.State != history.Unverified || !strings.Contains(e.Error, "3>40 is missing") {
		t.Errorf("a lie: %+v", e)
	}
	if err := record(0).Confirm(ocs.Report{}, nil); err != nil {
		t.Errorf("Confirm of nothing: %v", err)
	}
}
