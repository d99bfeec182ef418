package lab_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// scripted is a switch in memory with hooks around its changes. It counts as lost once lost is set: nothing is sent
// then, and nothing can be read.
type scripted struct {
	*ocstest.Switch
	lost   atomic.Bool
	before func(ocs.Change) error // the change is not sent when it fails
	after  func(ocs.Change) error // the change took effect; an error is in place of the reply
	read   func()                 // before the map is read
}

var errLost = errors.New("connection reset by peer")

func (s *scripted) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if s.read != nil {
		s.read()
	}
	if s.lost.Load() {
		return ocs.Map{}, &ocs.OpError{Op: "read", Device: "scripted", Err: errLost}
	}
	return s.Switch.CrossConnects(ctx)
}

func (s *scripted) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if s.before != nil {
		if err := s.before(c); err != nil {
			return ocs.Receipt{}, err
		}
	}
	if s.lost.Load() {
		return ocs.Receipt{}, &ocs.OpError{Op: "change", Device: "scripted", Err: errLost}
	}
	r, err := s.Switch.Apply(ctx, c)
	if err == nil && s.after != nil {
		if err = s.after(c); err != nil {
			r.Acked = time.Time{}
		}
	}
	return r, err
}

// pair is a lab of two scripted switches "a" and "b" with 1>9 and 2>10 in each.
type pair struct {
	lab      *lab.Lab
	auth     *labtest.Authority
	switches map[string]*scripted
	opened   map[string]*lab.Opened
}

const pairBefore = "1>9,2>10"

func newPair(t testing.TB, of lab.Authority) *pair {
	t.Helper()
	p := &pair{auth: labtest.Around(of), switches: map[string]*scripted{}, opened: map[string]*lab.Opened{}}
	p.lab = lab.New(nil, lab.Options{Authority: p.auth, Command: "test"})
	for _, name := range []string{"a", "b"} {
		p.switches[name] = &scripted{Switch: ocstest.New(8, parseMap(t, pairBefore))}
		p.opened[name] = p.lab.Adopt(name, "emulated:test/"+name, p.switches[name])
	}
	return p
}

// want is the change of one switch to a map, and nothing else.
func (p *pair) want(t testing.TB, name, text string) lab.Intent {
	t.Helper()
	return lab.Intent{On: p.opened[name], Want: parseMap(t, text), Policy: ocs.Overwrite}
}

// both is the change of both switches to a map.
func (p *pair) both(t testing.TB, text string) []lab.Intent {
	t.Helper()
	return []lab.Intent{p.want(t, "a", text), p.want(t, "b", text)}
}

// holds checks what a switch holds.
func (p *pair) holds(t testing.TB, name, want string) {
	t.Helper()
	if got, err := p.switches[name].Switch.CrossConnects(context.Background()); err != nil || got.String() != want {
		t.Errorf("%s holds %v, %v; want %s", name, got, err, want)
	}
}

// states are those of the history, "pending done".
func (p *pair) states(t testing.TB) string {
	t.Helper()
	var s []string
	for _, e := range p.auth.Recorded(t) {
		s = append(s, string(e.State))
	}
	return strings.Join(s, " ")
}

// undo takes back a change of the history and its group.
func (p *pair) undo(t testing.TB, id int) error {
	t.Helper()
	entries, _, err := p.auth.Entries()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e history.Entry) bool { return e.ID == id })
	intents := lab.Undo(entries, entries[i])
	for k := range intents {
		intents[k].On = p.opened[intents[k].Switch]
	}
	_, err = p.lab.Gate().ApplyAll(context.Background(), intents)
	return err
}

// Ensure that a switch that is lost between the reading and the change gets nothing, and that its failure is recorded.
func TestGate_LostBeforeChange(t *testing.T) {
	p := newPair(t, lab.Files(t.TempDir()))
	a := p.switches["a"]
	a.before = func(ocs.Change) error { a.lost.Store(true); return nil }
	r, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "1>10"))
	if !errors.Is(err, errLost) || r.TookEffect || r.Receipt.Requests != 0 {
		t.Errorf("%+v, %v; want %v and nothing sent", r, err, errLost)
	}
	p.holds(t, "a", pairBefore)
	if got := p.states(t); got != "failed" {
		t.Errorf("history: %s, want failed", got)
	}
}

// Ensure that of several switches all change or none does, whatever happens to the second of them.
func TestGate_ApplyAll_Fails(t *testing.T) {
	const planned = "1>10,2>9"
	for name, tc := range map[string]struct {
		break_  func(p *pair, b *scripted)
		is      error
		nothing bool   // was sent
		a, b    string // what they hold afterwards
		states  string
		says    string
	}{
		"busy": {func(_ *pair, b *scripted) { b.Set(ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 9})) }, ocs.ErrConflict, true,
			pairBefore, "3>9", "", "nothing was changed"},
		"leased":        {func(p *pair, _ *scripted) { p.auth.Lease("emulated:test/b", 2) }, lease.ErrLeased, true, pairBefore, pairBefore, "failed failed", "nothing was changed"},
		"panic":         {func(p *pair, _ *scripted) { p.auth.Panic("emulated:test/b", 2) }, panics.ErrInForce, true, pairBefore, pairBefore, "failed failed", "nothing was changed"},
		"lost at once":  {func(_ *pair, b *scripted) { b.lost.Store(true) }, errLost, true, pairBefore, pairBefore, "", "nothing was changed"},
		"not recorded":  {func(p *pair, _ *scripted) { p.auth.Begun = func([]history.Entry) error { return errLost } }, history.ErrUnrecorded, true, pairBefore, pairBefore, "", "nothing was changed"},
		"not locked":    {func(p *pair, _ *scripted) { p.auth.Locked = failFor("emulated:test/b") }, errLost, true, pairBefore, pairBefore, "", "nothing was changed"},
		"lost, planned": {func(_ *pair, b *scripted) { b.before = func(ocs.Change) error { b.lost.Store(true); return nil } }, errLost, true, pairBefore, pairBefore, "failed failed", "connection reset"},
		"leased meanwhile": {func(p *pair, b *scripted) {
			n := 0
			b.read = func() { // by the second reading it is planned and recorded
				if n++; n == 2 {
					p.auth.Lease("emulated:test/b", 2)
				}
			}
		}, lease.ErrLeased, true, pairBefore, pairBefore, "failed failed", "port 2"},
		"changed by another user": {func(p *pair, b *scripted) {
			p.auth.Begun = func([]history.Entry) error { b.Set(ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 9})); return nil }
		}, ocs.ErrConflict, true, pairBefore, "3>9", "failed failed", "was changed by another user meanwhile"},
		"denied": {func(_ *pair, b *scripted) {
			b.OnApply = func(ocs.Change) (ocs.Change, error) { b.OnApply = nil; return ocs.Change{}, ocs.ErrDenied }
		}, ocs.ErrDenied, false, pairBefore, pairBefore, "done failed done done", "a was put back"},
		"reply lost": {func(_ *pair, b *scripted) {
			b.after = func(ocs.Change) error { b.after = nil; return errLost }
		}, errLost, false, pairBefore, pairBefore, "done done done done", "b was put back"},
		"lost after the change": {func(_ *pair, b *scripted) {
			b.after = func(ocs.Change) error { b.after = nil; b.lost.Store(true); return errLost }
		}, errLost, false, pairBefore, planned, "done pending done", "b could not be put back and may hold 1>10,2>9 in place of 1>9,2>10"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, nil)
			intents := p.both(t, planned)
			if name == "busy" {
				intents[1].Policy = ocs.Safe
			}
			tc.break_(p, p.switches["b"])
			reports, err := p.lab.Gate().ApplyAll(t.Context(), intents)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("error %v; want %v and %q", err, tc.is, tc.says)
			}
			if sent := len(p.switches["a"].Applied()) > 0; sent == tc.nothing {
				t.Errorf("sent to a: %v, want %v", sent, !tc.nothing)
			}
			p.holds(t, "a", tc.a)
			p.holds(t, "b", tc.b)
			if got := p.states(t); got != tc.states {
				t.Errorf("history: %q, want %q", got, tc.states)
			}
			if !tc.nothing && !reports[0].PutBack {
				t.Errorf("the report of a does not say that it was put back: %+v", reports[0])
			}
			groups := map[int]bool{}
			for _, e := range p.auth.Recorded(t) {
				if e.UndoOf == 0 {
					groups[e.Group] = true
				}
			}
			if len(groups) > 1 {
				t.Errorf("one operation is %d groups of the history", len(groups))
			}
			if name != "lost after the change" {
				return
			}
			p.switches["b"].lost.Store(false) // it is back: one undo takes back what is left
			entries := p.auth.Recorded(t)
			if err := p.undo(t, entries[1].ID); err != nil {
				t.Errorf("undo: %v", err)
			}
			p.holds(t, "b", pairBefore)
		})
	}
}

// failFor makes an authority fail to lock a device.
func failFor(device string) func(string) error {
	return func(d string) error {
		if d == device {
			return errLost
		}
		return nil
	}
}

// Ensure that one undo takes back what was done to several switches at once, and a second one that.
func TestGate_ApplyAll_Undo(t *testing.T) {
	p := newPair(t, lab.Files(t.TempDir()))
	reports, err := p.lab.Gate().ApplyAll(t.Context(), p.both(t, "1>10"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		id   int
		want string
	}{{reports[1].ID, pairBefore}, {3, "1>10"}, {5, pairBefore}} {
		if err := p.undo(t, step.id); err != nil {
			t.Fatalf("undo %d: %v", step.id, err)
		}
		p.holds(t, "a", step.want)
		p.holds(t, "b", step.want)
	}
	if got := p.states(t); got != "done done done done done done done done" {
		t.Errorf("history: %s", got)
	}
}

// Ensure that a put-back that fails is reported circuit by circuit, and that undo takes back the rest.
func TestGate_ApplyAll_PutBackFails(t *testing.T) {
	p := newPair(t, nil)
	a, b := p.switches["a"], p.switches["b"]
	a.after = func(ocs.Change) error { a.after = nil; a.lost.Store(true); return nil } // read back fails, so does putting back
	b.after = func(ocs.Change) error { b.after = nil; return errLost }
	_, err := p.lab.Gate().ApplyAll(t.Context(), p.both(t, "1>10"))
	for _, want := range []string{"a could not be put back and may hold 1>10 in place of 1>9,2>10", "b was put back"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v; want %q", err, want)
		}
	}
	if !errors.Is(err, lab.ErrTogether) {
		t.Errorf("error %v; want ErrTogether", err)
	}
	p.holds(t, "a", "1>10")
	p.holds(t, "b", pairBefore)
	a.lost.Store(false)
	if err := p.undo(t, 1); err != nil {
		t.Errorf("undo: %v", err)
	}
	p.holds(t, "a", pairBefore)
	p.holds(t, "b", pairBefore)
}

// rails starts emulated switches a and b, which the lab reaches by their URLs.
func rails(t *testing.T, opt lab.Options, faults map[string]emulator.Fault) (*lab.Lab, map[string]*lab.Emulated) {
	t.Helper()
	text, emulated := "name: rails\nswitches:\n", map[string]*lab.Emulated{}
	for _, name := range []string{"a", "b"} {
		e, err := lab.EmulationOf("polatis-6000-32x32")
		if err != nil {
			t.Fatal(err)
		}
		e.Name = name
		e.Personality.Switching = emulator.Switching{Single: time.Millisecond, Bulk: time.Millisecond, Rise: 100 * time.Microsecond, Ack: emulator.AckAfter}
		if f, ok := faults[name]; ok {
			e.Faults = []emulator.Fault{f}
		}
		if emulated[name], err = e.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { emulated[name].Close() })
		text += fmt.Sprintf("  - {name: %s, url: %q}\n", name, emulated[name].URL())
	}
	f, err := lab.Parse("rails.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, opt)
	t.Cleanup(func() { l.Close() })
	return l, emulated
}

// Ensure that a change whose reply is lost is read back, on a session of its own where that broke, and that the error
// says that it took effect and what takes it back.
func TestGate_ReplyLost(t *testing.T) {
	for _, kind := range []emulator.FaultKind{emulator.FaultHang, emulator.FaultClose, emulator.FaultTag, emulator.FaultFlood} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			auth := labtest.Around(lab.Files(t.TempDir()))
			l, emulated := rails(t, lab.Options{Authority: auth, Timeout: 2 * time.Second},
				map[string]emulator.Fault{"a": {Kind: kind, Verb: "ENT-PATCH", Times: 1}})
			r, err := l.Gate().Apply(t.Context(), lab.Intent{Switch: "a", Want: parseMap(t, "1>34"), Policy: ocs.Safe})
			var of *ocs.OpError
			if !errors.As(err, &of) || errors.Is(err, ocs.ErrVerify) || !strings.Contains(err.Error(), `the change took effect: change 1, "ocslab undo 1" takes it back`) {
				t.Errorf("error %v; want that of the device, and that it took effect", err)
			}
			if !r.TookEffect || !r.ReadBack || r.ID != 1 {
				t.Errorf("report %+v; want that it took effect", r)
			}
			if got := emulated["a"].Device.CrossConnects().String(); got != "1>34" {
				t.Errorf("the switch holds %s", got)
			}
			entries := auth.Recorded(t)
			if len(entries) != 1 || entries[0].State != history.Done {
				t.Errorf("history: %+v, want one change that is done", entries)
			}
		})
	}
}

// Ensure that an operation is put back on a session of its own where the first one broke.
func TestGate_ApplyAll_ReplyLost(t *testing.T) {
	for _, kind := range []emulator.FaultKind{emulator.FaultHang, emulator.FaultClose, emulator.FaultLose} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			auth := labtest.Around(nil)
			l, emulated := rails(t, lab.Options{Authority: auth, Timeout: 2 * time.Second},
				map[string]emulator.Fault{"b": {Kind: kind, Verb: "ENT-PATCH", Times: 1}})
			intents := []lab.Intent{{Switch: "a", Want: parseMap(t, "1>34"), Policy: ocs.Safe}, {Switch: "b", Want: parseMap(t, "1>34"), Policy: ocs.Safe}}
			reports, err := l.Gate().ApplyAll(t.Context(), intents)
			if err == nil || !strings.Contains(err.Error(), "a was put back") {
				t.Errorf("error %v", err)
			}
			for i, name := range []string{"a", "b"} {
				if got := emulated[name].Device.CrossConnects().String(); got != "" {
					t.Errorf("%s holds %s; want that it was put back", name, got)
				}
				if kind != emulator.FaultLose && !reports[i].PutBack {
					t.Errorf("%s: the report does not say that it was put back", name)
				}
			}
			if err := l.Gate().Recheck(t.Context(), time.Nanosecond); err != nil {
				t.Errorf("recheck: %v", err)
			}
			for _, e := range auth.Recorded(t) {
				if e.State == history.Pending {
					t.Errorf("change %d is pending", e.ID)
				}
			}
		})
	}
}

// Ensure that a change loses against a panic that is announced at any moment of it, and that neither the report nor the
// history says that the circuits are there.
func TestGate_Panic(t *testing.T) {
	for name, tc := range map[string]struct {
		at     func(p *pair, begin func())
		sent   bool
		states string
	}{
		"before the first byte": {func(p *pair, begin func()) {
			p.auth.Begun = func([]history.Entry) error { begin(); return nil }
		}, false, "failed"},
		"before the reply": {func(p *pair, begin func()) {
			p.switches["a"].after = func(ocs.Change) error { begin(); return nil }
		}, true, "unverified"},
		"before a reply that is lost": {func(p *pair, begin func()) {
			a := p.switches["a"]
			a.after = func(ocs.Change) error { a.after = nil; begin(); return errLost }
		}, true, "unverified"},
		"before the reading back": {func(p *pair, begin func()) {
			a := p.switches["a"]
			a.after = func(ocs.Change) error {
				a.after = nil
				a.read = func() { a.read = nil; begin() }
				return nil
			}
		}, true, "unverified"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t, nil)
			tc.at(p, func() { p.auth.Panic("emulated:test/a", 3) })
			r, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "3>11,4>12"))
			if !errors.Is(err, panics.ErrInForce) || tc.sent && !strings.Contains(err.Error(), "was removed again") {
				t.Errorf("error %v; want ErrInForce", err)
			}
			if sent := len(p.switches["a"].Applied()) > 0; sent != tc.sent {
				t.Errorf("sent: %v, want %v", sent, tc.sent)
			}
			want := pairBefore
			if tc.sent {
				want = "" // what was removed for it comes back with the undo, once the panic is lifted
			}
			p.holds(t, "a", want)
			if got := p.states(t); got != tc.states {
				t.Errorf("history: %s, want %s", got, tc.states)
			}
			for _, o := range r.Outcomes {
				if o.State == ocs.Connected {
					t.Errorf("the report says that %v is connected", o.CrossConnect)
				}
			}
			if r.TookEffect {
				t.Error("the report says that the change took effect")
			}
			if err := p.lab.Gate().Recheck(t.Context(), time.Nanosecond); err != nil {
				t.Errorf("recheck: %v", err)
			}
			if !tc.sent {
				return
			}
			p.auth.Lift()
			if err := p.undo(t, 1); err != nil {
				t.Error(err)
			}
			p.holds(t, "a", pairBefore)
		})
	}
}

// panicking begins a panic when a change has passed its last check.
type panicking struct {
	*labtest.Authority
	device string
	calls  atomic.Int32
}

func (p *panicking) Panics() ([]panics.Call, error) {
	if p.calls.Add(1) == 2 {
		p.Panic(p.device, 1)
	}
	return p.Authority.Panics()
}

// Ensure that a change that lost the race with a panic is taken back although its session broke.
func TestGate_Panic_SessionLost(t *testing.T) {
	auth := &panicking{Authority: labtest.Around(nil)}
	l, emulated := rails(t, lab.Options{Authority: auth, Timeout: 2 * time.Second},
		map[string]emulator.Fault{"a": {Kind: emulator.FaultClose, Verb: "ENT-PATCH", Times: 1}})
	auth.device = emulated["a"].URL()
	_, err := l.Gate().Apply(t.Context(), lab.Intent{Switch: "a", Want: parseMap(t, "1>34"), Policy: ocs.Safe})
	if !errors.Is(err, panics.ErrInForce) {
		t.Errorf("error %v; want ErrInForce", err)
	}
	if got := emulated["a"].Device.CrossConnects().String(); got != "" {
		t.Errorf("the switch holds %s during a panic", got)
	}
}

// Ensure that a lease counts from the moment it begins to the moment it ends.
func TestGate_Lease(t *testing.T) {
	p := newPair(t, nil)
	var release func()
	p.auth.Begun = func([]history.Entry) error { release = p.auth.Lease("emulated:test/a", 10); return nil }
	if _, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "1>10")); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("a lease that began before the change was sent: %v", err)
	}
	p.holds(t, "a", pairBefore)
	p.auth.Begun = func([]history.Entry) error { release(); return nil }
	if _, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "1>10")); err != nil {
		t.Errorf("a lease that ended before the change was sent: %v", err)
	}
	p.auth.Begun = nil
	p.switches["a"].after = func(ocs.Change) error { p.auth.Lease("emulated:test/a", 1); return nil }
	if _, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "1>11")); err != nil {
		t.Errorf("a lease that began after the change was sent: %v", err)
	}
	if _, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "")); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("the next change: %v", err)
	}
	p.holds(t, "a", "1>11")
	if got := p.states(t); got != "failed done done failed" {
		t.Errorf("history: %s", got)
	}
}

// Ensure that circuits that another user removes within the time are missing then, and others are not.
func TestGate_Recheck(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(p *pair)
		says      string
	}{
		"nothing":          {func(*pair) {}, ""},
		"another was made": {func(p *pair) { p.switches["a"].Set(parseMap(t, "1>10,5>13")) }, ""},
		"removed":          {func(p *pair) { p.switches["a"].Set(ocs.Map{}) }, "a: device does not hold what was asked for: 1>10 was read back, and 1s later it is not there"},
		"lost":             {func(p *pair) { p.switches["a"].lost.Store(true) }, "a could not be read once more after the change"},
		"changed by us": {func(p *pair) {
			if _, err := p.lab.Gate().Apply(context.Background(), p.want(t, "a", "4>12")); err != nil {
				t.Error(err)
			}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, nil)
				if _, err := p.lab.Gate().Apply(t.Context(), p.want(t, "a", "1>10")); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				go func() {
					time.Sleep(time.Second / 2)
					tc.meanwhile(p)
				}()
				if name == "changed by us" { // Recheck is about the last change
					time.Sleep(time.Second * 3 / 4)
				}
				err := p.lab.Gate().Recheck(t.Context(), time.Second)
				if (err != nil) != (tc.says != "") || err != nil && !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v; want %q", err, tc.says)
				}
				if missing := errors.Is(err, ocs.ErrVerify); missing != (name == "removed") {
					t.Errorf("error %v matches ErrVerify: %v", err, missing)
				}
				if took := time.Since(began); took < time.Second {
					t.Errorf("it was read again after %v", took)
				}
				if err := p.lab.Gate().Recheck(t.Context(), time.Second); err != nil {
					t.Errorf("once more: %v", err)
				}
			})
		})
	}
}

// metered is a switch with monitors and shutters. What goes in at an ingress port leaves by its egress port.
type metered struct {
	*ocstest.Switch
	in     map[ocs.Port]ocs.DBm // of ingress ports with a monitor
	dead   map[ocs.Port]bool    // egress ports that pass no light
	blind  map[ocs.Port]bool    // egress ports without a monitor
	closed map[ocs.Port]bool
	from   time.Time // no light leaves before
	broken bool
}

func (m *metered) Power(ctx context.Context, ports ...ocs.Port) (ocs.PowerReading, error) {
	if m.broken {
		return ocs.PowerReading{}, errLost
	}
	r := ocs.PowerReading{Ports: map[ocs.Port]ocs.DBm{}}
	maps.Copy(r.Ports, m.in)
	have, err := m.CrossConnects(ctx)
	for c := range have.All() {
		in, measured := m.in[c.Ingress]
		switch {
		case m.blind[c.Egress]:
		case m.dead[c.Egress] || m.closed[c.Ingress] || m.closed[c.Egress] || measured && in <= ocs.NoLight || time.Now().Before(m.from):
			r.Ports[c.Egress] = -60
		default:
			r.Ports[c.Egress] = -2
		}
	}
	return r, err
}

func (m *metered) Monitors(context.Context, ...ocs.Port) ([]ocs.Monitor, error) { return nil, nil }
func (m *metered) SetMonitor(context.Context, ocs.Monitor) error                { return ocs.ErrNotSupported }
func (m *metered) Shutters(context.Context, ...ocs.Port) (map[ocs.Port]bool, error) {
	return m.closed, nil
}
func (m *metered) SetShutters(context.Context, bool, ...ocs.Port) error { return ocs.ErrNotSupported }

// Ensure the light of each circuit that was asked for is looked at, and that only one that is dark with light going in
// is a failure.
func TestGate_Light(t *testing.T) {
	const port = 9 // the egress of 1>9
	lit := map[ocs.Port]ocs.DBm{1: -0.5}
	for name, tc := range map[string]struct {
		sw     metered
		verify lab.Verify
		had    string // before
		want   lab.LightState
		fails  bool
	}{
		"light":                 {sw: metered{in: lit}, want: lab.LightOn},
		"light, was there":      {sw: metered{in: lit}, had: "1>9", want: lab.LightOn},
		"light, late":           {sw: metered{in: lit, from: time.Date(2000, 1, 1, 0, 0, 2, 0, time.UTC)}, want: lab.LightOn},
		"dark":                  {sw: metered{in: lit, dead: map[ocs.Port]bool{port: true}}, want: lab.LightDark, fails: true},
		"dark, was there":       {sw: metered{in: lit, dead: map[ocs.Port]bool{port: true}}, had: "1>9", want: lab.LightDark, fails: true},
		"dark, input unknown":   {sw: metered{dead: map[ocs.Port]bool{port: true}}, want: lab.LightDark},
		"dark, table only":      {sw: metered{in: lit, dead: map[ocs.Port]bool{port: true}}, verify: lab.VerifyTable, want: lab.LightUnknown},
		"no input light":        {sw: metered{in: map[ocs.Port]ocs.DBm{1: -60}}, want: lab.LightNoInput},
		"shutter of ingress":    {sw: metered{in: lit, closed: map[ocs.Port]bool{1: true}}, want: lab.LightShut},
		"shutter of egress":     {sw: metered{in: lit, closed: map[ocs.Port]bool{port: true}}, want: lab.LightShut},
		"no monitor there":      {sw: metered{in: lit, blind: map[ocs.Port]bool{port: true}}, want: lab.LightUnknown},
		"monitors do not reply": {sw: metered{in: lit, broken: true}, want: lab.LightUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // begins at 2000-01-01
				sw := &tc.sw
				sw.Switch = ocstest.New(8, parseMap(t, tc.had))
				on := lab.New(nil, lab.Options{}).Adopt("a", "emulated:test/a", sw)
				r, err := on.Gate().Apply(t.Context(), lab.Intent{On: on, Want: parseMap(t, "1>9"), Policy: ocs.Safe, Verify: tc.verify})
				if len(r.Light) != 1 || r.Light[0].State != tc.want || r.Light[0].Circuit.String() != "1>9" {
					t.Errorf("light: %+v, want %s", r.Light, tc.want)
				}
				var dark *lab.DarkError
				if errors.As(err, &dark) != tc.fails || errors.Is(err, ocs.ErrVerify) != tc.fails {
					t.Fatalf("error %v, want failure: %v", err, tc.fails)
				}
				if tc.fails && !strings.Contains(err.Error(), "port 9 of a is dark (-60.0 dBm), though port 1 receives -0.5 dBm") {
					t.Errorf("error %v does not name the port", err)
				}
			})
		})
	}
}
