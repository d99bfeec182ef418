package blackout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

const three = `
name: three
switches:
  - {name: a, emulate: {model: polatis-6000-32x32}}
  - {name: b, emulate: {model: polatis-6000-32x32}}
  - {name: c, emulate: {model: polatis-6000-32x32}}
hosts:
  - name: g1
    nics: [{name: e0, tx: a/1, rx: a/33}, {name: e1, tx: b/1, rx: b/33}]
  - name: g2
    nics: [{name: e0, tx: a/2, rx: a/34}, {name: e1, tx: b/2, rx: b/34}]
  - name: g3
    nics: [{name: e0, tx: a/3, rx: a/35}]
protect: [a/3, b/40]
`

// shuttered is a switch in memory with shutters at some ports.
type shuttered struct {
	*ocstest.Switch
	mu     sync.Mutex
	shut   map[ocs.Port]bool
	refuse error // of SetShutters
	jam    bool  // shutters acknowledge and stay
	before func()
}

func (s *shuttered) Shutters(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	if _, err := s.CrossConnects(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	closed := map[ocs.Port]bool{}
	for p, is := range s.shut {
		if len(ports) == 0 || slices.Contains(ports, p) {
			closed[p] = is
		}
	}
	return closed, nil
}

func (s *shuttered) SetShutters(_ context.Context, closed bool, ports ...ocs.Port) error {
	if s.before != nil {
		s.before()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil || s.jam {
		return s.refuse
	}
	for _, p := range ports {
		s.shut[p] = closed
	}
	return nil
}

// bench is a lab of switches in memory: a and c with shutters, b without.
type bench struct {
	opt     Options
	a, c    *shuttered
	b       *ocstest.Switch
	opening map[string]error // instead of opening; errHang hangs

	sessions atomic.Int32 // that are open
}

// session is one of several with a switch.
type session struct {
	ocs.Switch
	open *atomic.Int32
}

func (s session) Unwrap() ocs.Switch { return s.Switch }

func (s session) Close() error {
	s.open.Add(-1)
	return nil
}

var errHang = errors.New("hang")

func newBench(t testing.TB) *bench {
	t.Helper()
	f, err := lab.Parse("three.yaml", []byte(three))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	withShutters := func(m string) *shuttered {
		s := &shuttered{Switch: ocstest.New(32, circuits(m)), shut: map[ocs.Port]bool{}}
		for _, p := range ocs.TwoSided(32, 32).Ports() {
			s.shut[p] = false
		}
		return s
	}
	x := &bench{a: withShutters("1>34,2>33,9>41"), b: ocstest.New(32, circuits("1>34,2>40,9>41")), c: withShutters("1>33"), opening: map[string]error{}}
	x.opt = Options{
		File: f, History: log, StateDir: dir, Command: "panic",
		Device: func(name string) (string, error) { return "test:" + name, nil },
		Open: func(ctx context.Context, name string) (ocs.Switch, string, error) {
			if err := x.opening[name]; errors.Is(err, errHang) {
				<-ctx.Done()
				return nil, "", context.Cause(ctx)
			} else if err != nil {
				return nil, "", err
			}
			x.sessions.Add(1)
			return session{map[string]ocs.Switch{"a": x.a, "b": x.b, "c": x.c}[name], &x.sessions}, "test:" + name, nil
		},
	}
	return x
}

func circuits(text string) ocs.Map {
	m, err := ocs.ParseMap(text)
	if err != nil {
		panic(err)
	}
	return m
}

// now is what all switches hold, and which shutters are closed.
func (x *bench) now(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for name, sw := range map[string]ocs.Switch{"a": x.a, "b": x.b, "c": x.c} {
		m, err := sw.CrossConnects(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %v\n", name, m)
	}
	for name, s := range map[string]*shuttered{"a": x.a, "c": x.c} {
		var closed []ocs.Port
		s.mu.Lock()
		for p, is := range s.shut {
			if is {
				closed = append(closed, p)
			}
		}
		s.mu.Unlock()
		fmt.Fprintf(&b, "%s shut %s\n", name, cmp.Or(ocs.FormatPorts(closed), "none"))
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "; ")
}

var call = panics.Call{Who: "alice@lab", Reason: "fire"}

const (
	litUp  = "a 1>34,2>33,9>41; a shut none; b 1>34,2>40,9>41; c 1>33; c shut none"
	darked = "a 1>34,2>33,9>41; a shut 1,2,33-35; b 2>40,9>41; c 1>33; c shut none"
)

// summary is what became of switches, for comparison.
func summary(results []Result) map[string]string {
	m := map[string]string{}
	for _, r := range results {
		m[r.Switch] = fmt.Sprintf("%s close %s open %s %v left %v", r.State, ocs.FormatPorts(r.Close), ocs.FormatPorts(r.Open), r.Change, r.Left)
	}
	return m
}

// Ensure only the lab's light goes, by shutters where there are some; that another process
// gives back exactly that; and that the history knows.
func TestPanic(t *testing.T) {
	x := newBench(t)
	steps, err := New(x.opt).Plan(t.Context())
	if err != nil || len(steps) != 3 || ocs.FormatPorts(steps[0].Close) != "1,2,33-35" || steps[1].Change.Remove.String() != "1>34" || steps[2].Note != noteNobody {
		t.Errorf("%+v, %v", steps, err)
	}
	if got := x.now(t); got != litUp {
		t.Fatalf("planning has changed it: %s", got)
	}
	results, err := New(x.opt).Panic(t.Context(), call)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a": "dark close 1,2,33-35 open  no change left ",
		"b": "dark close  open  - 1>34 left 2>40",
		"c": "dark close  open  no change left ",
	}
	if got := summary(results); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := x.now(t); got != darked {
		t.Errorf("%s, want %s", got, darked)
	}
	calls, err := New(x.opt).InForce()
	if err != nil || len(calls) != 1 || calls[0].Reason != "fire" || calls[0].Who != "alice@lab" || !slices.Equal(calls[0].Changes, []int{1}) {
		t.Errorf("%+v, %v", calls, err)
	}
	if got := calls[0].What(); got != "a: shutters of 1,2,33-35 closed; b: 1>34 removed" {
		t.Errorf("What=%q", got)
	}

	// Somebody opens one shutter; the rest is opened, that one was not closed any more.
	x.a.shut[33] = false
	results, err = New(x.opt).Lift(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"a": "lifted close  open 1,2,34,35 no change left ", "b": "lifted close  open  + 1>34 left "}
	if got := summary(results); !maps.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := x.now(t); got != litUp {
		t.Errorf("%s, want %s", got, litUp)
	}
	entries, _, err := x.opt.History.Entries()
	if err != nil || len(entries) != 2 || entries[0].UndoneBy != 2 || entries[1].UndoOf != 1 {
		t.Errorf("%+v, %v", entries, err)
	}
	if _, err := New(x.opt).Lift(t.Context()); !errors.Is(err, ErrNone) {
		t.Errorf("lifted twice: %v", err)
	}
}

// Ensure a switch that cannot be lifted stays in force, and is lifted later.
func TestLift_OneFails(t *testing.T) {
	x := newBench(t)
	b := New(x.opt)
	if _, err := b.Panic(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	x.a.refuse = errors.New("boom")
	results, err := b.Lift(t.Context())
	if err == nil || err.Error() != "a: give the light back: boom" || results[0].State != panics.IsFailed || results[1].State != panics.IsLifted {
		t.Errorf("%q, %v", summary(results), err)
	}
	calls, err := b.InForce()
	if err != nil || len(calls) != 1 || calls[0].What() != "a: shutters of 1,2,33-35 closed" {
		t.Errorf("%+v, %v", calls, err)
	}
	x.a.refuse = nil
	if _, err := b.Lift(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := x.now(t); got != litUp {
		t.Errorf("%s, want %s", got, litUp)
	}
	if calls, err := b.InForce(); err != nil || len(calls) != 0 {
		t.Errorf("%+v, %v", calls, err)
	}
}

// Ensure a shutter that was closed before stays closed, and that a second panic adds what
// has come since; lifting only the newest leaves the first in force.
func TestPanic_Twice(t *testing.T) {
	x := newBench(t)
	x.a.shut[2] = true
	b := New(x.opt)
	for _, reason := range []string{"fire", "smoke"} {
		if _, err := b.Panic(t.Context(), panics.Call{Reason: reason}); err != nil {
			t.Fatal(err)
		}
		x.a.shut[33] = false
		x.b.Set(circuits("1>35,2>40,9>41"))
	}
	calls, err := b.InForce()
	if err != nil || len(calls) != 2 || ocs.FormatPorts(calls[0].Dark[0].Closed) != "1,33-35" || ocs.FormatPorts(calls[1].Dark[0].Closed) != "1,33-35" {
		t.Fatalf("%+v, %v", calls, err)
	}
	x.a.shut[33] = true
	x.b.Set(circuits("2>40,9>41"))
	if _, err := b.Lift(t.Context(), calls[1].N); err != nil {
		t.Fatal(err)
	}
	if got, want := x.now(t), "a 1>34,2>33,9>41; a shut 1,2,33-35; b 1>35,2>40,9>41; c 1>33; c shut none"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	results, err := b.Lift(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(results)["b"]; got != "lifted close  open  no change left 1>34" {
		t.Errorf("%q", got)
	}
	if got, want := x.now(t), "a 1>34,2>33,9>41; a shut 2; b 1>35,2>40,9>41; c 1>33; c shut none"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Ensure a panic that finds all dark by another one is remembered all the same, and that the
// light stays away until both are lifted, in whatever order.
func TestPanic_DarkAlready(t *testing.T) {
	for _, first := range []int{0, 1} {
		x := newBench(t)
		b := New(x.opt)
		for _, reason := range []string{"fire", "I look into a fibre"} {
			if _, err := b.Panic(t.Context(), panics.Call{Reason: reason, Who: reason}); err != nil {
				t.Fatal(err)
			}
		}
		dark := x.now(t)
		calls, err := b.InForce()
		if err != nil || len(calls) != 2 || calls[1].Reason != "I look into a fibre" {
			t.Fatalf("%+v, %v", calls, err)
		}
		if _, err := b.Lift(t.Context(), calls[first].N); err != nil {
			t.Fatal(err)
		}
		if now := x.now(t); first == 1 && now != dark {
			t.Errorf("%s, want %s", now, dark)
		} else if strings.Count(now, "shut none") != 1 { // c is nobody's
			t.Errorf("shutters were opened that another panic wants closed: %s", now)
		}
		if left, err := b.InForce(); err != nil || len(left) != 1 || left[0].N != calls[1-first].N {
			t.Errorf("%+v, %v", left, err)
		}
		if _, err := b.Lift(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := x.now(t), "a 1>34,2>33,9>41; a shut none; b 1>34,2>40,9>41; c 1>33; c shut none"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// Ensure one switch that fails, whatever it does, is named, and the others are dark.
func TestPanic_OneFails(t *testing.T) {
	boom := errors.New("boom")
	for _, tt := range []struct {
		name   string
		damage func(x *bench)
		failed string
		text   string
		reach  string // what is remembered of it
	}{
		{"Unreachable", func(x *bench) { x.opening["a"] = boom }, "a", "a: darken: boom", "not reached: boom"},
		{"Refuses", func(x *bench) { x.a.refuse = boom }, "a", "a: darken: boom", "failed: boom"},
		{"Jammed", func(x *bench) { x.a.jam = true }, "a", "the shutters of 1,2,33-35 are open", "the shutters of 1,2,33-35 are open"},
		{"Silent", func(x *bench) { x.a.OnRead = func() error { return boom } }, "a", "boom", "not reached: boom"},
		{"Denies", func(x *bench) {
			x.b.OnApply = func(ocs.Change) (ocs.Change, error) { return ocs.Change{}, ocs.ErrDenied }
		}, "b", "refused by the device", "refused by the device"},
		{"Jammed mirror", func(x *bench) { x.b.OnApply = func(ocs.Change) (ocs.Change, error) { return ocs.Change{}, nil } }, "b", "1>34", "1>34 is still there"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := newBench(t)
			tt.damage(x)
			results, err := New(x.opt).Panic(t.Context(), call)
			if err == nil || !strings.Contains(err.Error(), tt.text) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one with %q", err, tt.text)
			}
			var op *ocs.OpError
			if !errors.As(err, &op) {
				t.Errorf("%v is no error of a device", err)
			}
			for _, r := range results {
				if want := r.Switch == tt.failed; (r.State == panics.IsFailed) != want || (r.Err != nil) != want {
					t.Errorf("%s is %s: %v", r.Switch, r.State, r.Err)
				}
			}
			x.a.OnRead = nil
			got := x.now(t)
			if tt.failed != "a" && !strings.Contains(got, "a shut 1,2,33-35;") || tt.failed != "b" && !strings.Contains(got, "b 2>40,9>41;") {
				t.Errorf("another is not dark: %s", got)
			}
			calls, _ := New(x.opt).InForce()
			if what := calls[0].What(); len(calls) != 1 || tt.failed == "b" && !strings.HasPrefix(what, "a: shutters of 1,2,33-35 closed; b: failed: ") ||
				tt.failed == "a" && !strings.HasPrefix(what, "a: ") || !strings.Contains(what, tt.reach+"; its light may still be on") ||
				!slices.Equal(calls[0].Lit(), []string{tt.failed}) {
				t.Errorf("in force: %q", what)
			}
			// What failed can be lifted all the same, and nothing is there that was not.
			clear(x.opening)
			x.a.refuse, x.a.jam, x.b.OnApply = nil, false, nil
			if _, err := New(x.opt).Lift(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := x.now(t); got != litUp {
				t.Errorf("lifted: %s, want %s", got, litUp)
			}
		})
	}
}

// Ensure a panic whose only switch refuses is in force all the same: its light may be on.
func TestPanic_AllFail(t *testing.T) {
	x := newBench(t)
	x.b.OnApply = func(ocs.Change) (ocs.Change, error) { return ocs.Change{}, ocs.ErrDenied }
	b := New(x.opt)
	if _, err := b.Panic(t.Context(), call, "b"); !errors.Is(err, ocs.ErrDenied) {
		t.Errorf("error %v", err)
	}
	calls, err := b.InForce()
	if err != nil || len(calls) != 1 || !slices.Equal(calls[0].Lit(), []string{"b"}) || !strings.HasPrefix(calls[0].What(), "b: failed: ") {
		t.Errorf("in force: %+v, %v", calls, err)
	}
}

// Ensure a switch that hangs holds up no other; that after a second, what it held last is
// gone by; and that it is lifted when it answers again.
func TestPanic_Hangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t)
		x.opt.Patience = time.Second
		x.opt.Last = func(name string) (Held, bool) {
			return Held{Map: circuits("1>34"), Shut: map[ocs.Port]bool{1: false, 2: false, 33: false, 34: false, 35: true}}, name == "a"
		}
		x.opening["a"] = errHang
		began := time.Now()
		steps, err := New(x.opt).Plan(t.Context())
		if err != nil || time.Since(began) != time.Second {
			t.Errorf("planned after %v: %v", time.Since(began), err)
		}
		if s := steps[0]; !s.Stale || s.Err == nil || ocs.FormatPorts(s.Close) != "1,2,33,34" {
			t.Errorf("%+v", s)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		done := make(chan []Result)
		go func() {
			results, _ := New(x.opt).Panic(ctx, call)
			done <- results
		}()
		time.Sleep(time.Millisecond) // in the bubble: all that can go on has
		synctest.Wait()
		if got := x.now(t); !strings.Contains(got, "b 2>40,9>41;") {
			t.Errorf("b waits for a: %s", got)
		}
		results := <-done
		if time.Since(began) < 10*time.Second || results[0].State != panics.IsFailed || results[1].State != panics.IsDark {
			t.Errorf("after %v: %+v", time.Since(began), summary(results))
		}
		// It may have closed them after all: what was to be closed is known.
		for _, p := range []ocs.Port{1, 2, 33, 34, 35} {
			x.a.shut[p] = true
		}
		delete(x.opening, "a")
		if _, err := New(x.opt).Lift(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, want := x.now(t), strings.Replace(litUp, "a shut none;", "a shut 35;", 1); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Ensure a switch that is slow is waited for when it is not known what it holds.
func TestPanic_Slow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t)
		x.opt.Patience = time.Second
		open := x.opt.Open
		x.opt.Open = func(ctx context.Context, name string) (ocs.Switch, string, error) {
			select {
			case <-time.After(3 * time.Second):
			case <-ctx.Done():
				return nil, "", context.Cause(ctx)
			}
			return open(ctx, name)
		}
		if steps, err := New(x.opt).Plan(t.Context()); err != nil || steps[0].Err == nil || !steps[0].Empty() {
			t.Errorf("%+v, %v", steps, err)
		}
		if _, err := New(x.opt).Panic(t.Context(), call); err != nil {
			t.Error(err)
		}
		if got := x.now(t); got != darked {
			t.Errorf("%s, want %s", got, darked)
		}
	})
}

// Ensure what is about to be done is on disk before it is sent, so that a program that is
// killed there leaves what lifts it.
func TestPanic_KilledBeforeSending(t *testing.T) {
	x := newBench(t)
	var atA, atB []panics.Call
	x.a.before = func() { atA, _ = panics.Read(x.opt.StateDir) }
	x.b.OnApply = func(c ocs.Change) (ocs.Change, error) {
		atB, _ = panics.Read(x.opt.StateDir)
		return c, nil
	}
	if _, err := New(x.opt).Panic(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if len(atA) != 1 {
		t.Fatalf("when a was sent to: %+v", atA)
	}
	if d, ok := atA[0].On("test:a"); !ok || ocs.FormatPorts(d.Closed) != "1,2,33-35" {
		t.Errorf("when a was sent to: %+v", atA)
	}
	if len(atB) != 1 {
		t.Fatalf("when b was sent to: %+v", atB)
	}
	d, ok := atB[0].On("test:b")
	if !ok || d.Removed.String() != "1>34" || d.Change != 0 {
		t.Errorf("when b was sent to: %+v", atB)
	}

	// Had it been killed there, or a moment after it was sent: the change that is in the
	// history belongs to the panic, and lifting takes it back.
	err := panics.Edit(t.Context(), x.opt.StateDir, func(c *panics.Content) error {
		call := c.Call(1)
		call.Changes, call.Device("b", "test:b").Change = nil, 0
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	calls, _ := panics.Read(x.opt.StateDir)
	entries, _, _ := x.opt.History.Entries()
	if !calls[0].Made(entries[0]) {
		t.Errorf("%+v is not of %+v", entries[0], calls[0])
	}
	x.b.Set(circuits("1>34,2>40,9>41")) // it was not sent
	for _, p := range []ocs.Port{1, 2} {
		x.a.shut[p] = false // half of it was
	}
	if _, err := New(x.opt).Lift(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := x.now(t); got != litUp {
		t.Errorf("%s, want %s", got, litUp)
	}
	if entries, _, _ := x.opt.History.Entries(); len(entries) != 2 || entries[0].UndoneBy != 2 {
		t.Errorf("%+v", entries)
	}
}

// Ensure that a panic about a switch that is not there sends nothing, and that one without a reason darkens.
func TestPanic_Named(t *testing.T) {
	x := newBench(t)
	if _, err := New(x.opt).Panic(t.Context(), call, "nosuch"); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if got := x.now(t); got != litUp {
		t.Errorf("%s", got)
	}
	if _, err := New(x.opt).Panic(t.Context(), panics.Call{Who: "alice@lab", Reason: " \t"}, "b"); err != nil {
		t.Error(err)
	}
	if calls, err := New(x.opt).InForce(); err != nil || len(calls) != 1 || calls[0].Reason != NoReason {
		t.Errorf("%+v, %v", calls, err)
	}
	if got := x.now(t); !strings.Contains(got, "a shut none;") || !strings.Contains(got, "b 2>40,9>41;") {
		t.Errorf("only b: %s", got)
	}
}

// Ensure a panic that is called again keeps its place, and that old ones are forgotten.
func TestPanic_Again(t *testing.T) {
	x := newBench(t)
	b := New(x.opt)
	if _, err := b.Panic(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	first, _ := panics.Read(x.opt.StateDir)
	if _, err := b.Lift(t.Context()); err != nil {
		t.Fatal(err)
	}
	again := call
	again.N = first[0].N
	if _, err := b.Panic(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	calls, _ := panics.Read(x.opt.StateDir)
	if len(calls) != 1 || !calls[0].Again || !calls[0].At.Equal(first[0].At) || !calls[0].Lifted.IsZero() || len(calls[0].Changes) != 2 {
		t.Errorf("%+v", calls)
	}
	if got := x.now(t); got != darked {
		t.Errorf("%s, want %s", got, darked)
	}
	for range panics.KeepLifted + 3 {
		if _, err := b.Lift(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Panic(t.Context(), call); err != nil {
			t.Fatal(err)
		}
	}
	calls, _ = panics.Read(x.opt.StateDir)
	if len(calls) != panics.KeepLifted+1 || !calls[panics.KeepLifted].Lifted.IsZero() {
		t.Errorf("%d are remembered", len(calls))
	}
}

// Ensure that of whatever a switch holds, no light of the lab is left but at protected
// ports, nobody else's is touched, and lifting leads back.
func TestDarken_Property(t *testing.T) {
	g := ocs.TwoSided(6, 6)
	rapid.Check(t, func(r *rapid.T) {
		var held Held
		for _, c := range rapid.SliceOfN(rapid.Custom(func(r *rapid.T) ocs.CrossConnect {
			return ocs.CrossConnect{Ingress: ocs.Port(rapid.IntRange(1, 6).Draw(r, "in")), Egress: ocs.Port(rapid.IntRange(7, 12).Draw(r, "out"))}
		}), 0, 8).Draw(r, "circuits") {
			if sum, err := held.Map.Plus(ocs.MustMap(c)); err == nil {
				held.Map = sum
			}
		}
		held.Shut = rapid.MapOf(rapid.SampledFrom(g.Ports()), rapid.Bool()).Draw(r, "shutters")
		protected := rapid.SliceOfNDistinct(rapid.SampledFrom(g.Ports()), 0, 3, rapid.ID).Draw(r, "protected")
		own := slices.DeleteFunc(rapid.SliceOfNDistinct(rapid.SampledFrom(g.Ports()), 1, 6, rapid.ID).Draw(r, "own"), func(p ocs.Port) bool {
			return slices.Contains(protected, p)
		})
		slices.Sort(own)
		s := darken("a", own, protected, g, held)
		after := Held{Map: held.Map.Minus(s.Change.Remove), Shut: maps.Clone(held.Shut)}
		for _, p := range s.Close {
			if !slices.Contains(own, p) || after.Shut[p] {
				r.Fatalf("closes %d", p)
			}
			after.Shut[p] = true
		}
		for c := range after.Map.All() {
			lit := !after.Shut[c.Ingress] && !after.Shut[c.Egress]
			ours := slices.Contains(own, c.Ingress) || slices.Contains(own, c.Egress)
			if lit && ours && !s.Left.Has(c) {
				r.Fatalf("%v is lit", c)
			}
		}
		for c := range s.Change.Remove.All() {
			ours := slices.Contains(own, c.Ingress) || slices.Contains(own, c.Egress)
			if !ours || slices.Contains(protected, c.Ingress) || slices.Contains(protected, c.Egress) {
				r.Fatalf("%v is removed", c)
			}
		}
		back := relight("a", []darkening{{Dark: panics.Dark{Closed: s.Close, Removed: s.Change.Remove}}}, g, after)
		again := after.Map.Minus(back.Change.Remove)
		again, err := again.Plus(back.Change.Add)
		if err != nil || !again.Equal(held.Map) || !slices.Equal(back.Open, s.Close) || back.Left.Len() > 0 {
			r.Fatalf("back: %+v, %v", back, err)
		}
	})
}

// Ensure a panic takes the light of boards that are joined by cables, and lifting it gives that back.
func TestPanic_Cables(t *testing.T) {
	f, err := lab.Parse("hbd.yaml", []byte(`switches:
  - {name: a, emulate: {model: ocstrx-8x112g}}
  - {name: b, emulate: {model: ocstrx-8x112g}}
cables:
  - {a: a/1, b: b/2}
`))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true})
	defer l.Close()
	sw, err := l.Switch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	lit := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 9}, ocs.CrossConnect{Ingress: 2, Egress: 26})
	if _, err := ocs.Reconcile(t.Context(), sw, lit, ocs.Overwrite); err != nil {
		t.Fatal(err)
	}
	log, err := history.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	b := New(Options{File: f, Device: l.Device, Open: l.Emergency, History: log, StateDir: dir})
	if _, err := b.Panic(t.Context(), panics.Call{Who: "me", Reason: "smoke"}); err != nil {
		t.Fatal(err)
	}
	if m, err := sw.CrossConnects(t.Context()); err != nil || m.Len() != 0 {
		t.Errorf("after the panic: %v, %v", m, err)
	}
	if err := refusedBy(f, dir, light{"a", sw.Device, lit}); !errors.Is(err, panics.ErrInForce) {
		t.Errorf("light while it is in force: %v", err)
	}
	if _, err := b.Lift(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m, err := sw.CrossConnects(t.Context()); err != nil || !m.Equal(lit) {
		t.Errorf("lifted: %v, %v", m, err)
	}
}
