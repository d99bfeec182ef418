package live

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Ensure the first State is there at once and says that nothing is known, and that the
// lab is known a moment later.
func TestOpen(t *testing.T) {
	s := openTestbed(t, nil)
	x := s.State()
	if len(x.Switches) != 1 || len(x.NICs) != 4 || x.Opening == "" {
		t.Errorf("the first State is %s, opening %q", describe(x), x.Opening)
	}
	if sw := x.Switches[0]; sw.Status == Opening && !sw.MapAt.IsZero() {
		t.Error("a map that nobody has read has a time")
	}
	x = ready(t, s)
	sw := x.Switch("rail0")
	if sw.Identity.Model == "" || sw.MapAt.IsZero() || sw.MapStale(time.Now()) || sw.Device == "" {
		t.Errorf("rail0 is %+v", sw)
	}
	x = until(t, s, "powers are read", func(x *State) bool { return !x.Switches[0].PowerAt.IsZero() })
	if sw := x.Switches[0]; !sw.Monitored || len(sw.Power) == 0 || sw.PowerStale(time.Now()) {
		t.Errorf("monitored=%v, %d powers", sw.Monitored, len(sw.Power))
	}
	if x.Rung != "memory" || !x.Emulated {
		t.Errorf("rung=%q, emulated=%v", x.Rung, x.Emulated)
	}
	until(t, s, "what it says of itself is read", func(x *State) bool { return len(x.Switches[0].Facts) > 1 })
}

// Ensure a switch that cannot be reached is told as lost, with why, and that it holds up
// neither the others nor Close.
func TestOpen_OneOutOfReach(t *testing.T) {
	e := emulation(t, "fast-mems-25ms")
	yaml := "switches:\n  - {name: good, url: '" + e.URL() + "'}\n  - {name: gone, url: 'tl1://127.0.0.1:1'}\n"
	f, err := lab.Parse("lab.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	s := openTestbed(t, func(o *Options) { o.File, o.Lab.Emulated = f, false })
	x := until(t, s, "one is up, and the other was tried again", func(x *State) bool {
		return x.Switches[0].Status == Up && x.Switches[1].Status == Lost && x.Switches[1].Tries > 0
	})
	gone := x.Switch("gone")
	if gone.Err == nil || !gone.MapAt.IsZero() || !gone.MapStale(time.Now()) {
		t.Errorf("gone: err=%v, map at %v", gone.Err, gone.MapAt)
	}
	if x.LastEvent == nil || !x.LastEvent.Bad || !strings.Contains(x.LastEvent.Text, "gone cannot be reached") {
		t.Errorf("last event %+v", x.LastEvent)
	}
	if _, err := s.open(t.Context(), "nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("err=%v", err)
	}
}

// Ensure a switch that refuses the login says what to do, and is left alone for a while.
func TestOpen_WrongPassword(t *testing.T) {
	e := emulation(t, "fast-mems-25ms")
	t.Setenv("OCSLAB_TEST_WRONG", "wrong")
	yaml := "switches:\n  - {name: shy, url: '" + e.URL() + "', password: 'env:OCSLAB_TEST_WRONG'}\n"
	f, err := lab.Parse("lab.yaml", []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	s := openTestbed(t, func(o *Options) { o.File, o.Lab.Emulated = f, false })
	x := until(t, s, "it is lost", func(x *State) bool { return x.Switches[0].Status == Lost })
	if err := x.Switches[0].Err; !errors.Is(err, ocs.ErrDenied) || !strings.Contains(err.Error(), "password") {
		t.Errorf("err=%v", err)
	}
}

// Ensure a change is measured: it returns when it has been read back, and the Move goes on
// until links are back.
func TestMeasure(t *testing.T) {
	s := openTestbed(t, nil)
	ready(t, s)
	dp, err := s.file().Config("dp")
	if err != nil {
		t.Fatal(err)
	}
	reports, number, err := s.measure(t.Context(), connecting(t, s, dp["rail0"].String()))
	if err != nil || number != 1 || !reports["rail0"].After.Equal(dp["rail0"]) {
		t.Fatalf("reports=%v, number=%d, err=%v", reports, number, err)
	}
	x := until(t, s, "the Move is there", func(x *State) bool { return len(x.Moves) == 1 })
	if !x.Switches[0].Map.Equal(dp["rail0"]) {
		t.Errorf("what was read back is not in the State: %v", x.Switches[0].Map)
	}
	x = until(t, s, "the Move is over", func(x *State) bool { return !x.Moves[0].Running })
	mv := x.Moves[0]
	if mv.Err != nil || len(mv.Unresolved) > 0 || mv.Phase != "" || mv.By != "us" {
		t.Errorf("move: %+v", mv)
	}
	stages := map[timeline.Stage]int{}
	for _, m := range mv.Marks {
		stages[m.Stage]++
		if m.Reconfiguration != 1 {
			t.Errorf("%v has number %d", m, m.Reconfiguration)
		}
	}
	if stages[timeline.CarrierUp] != 4 || stages[timeline.Ack] != 1 || stages[timeline.Light] < 4 {
		t.Errorf("marks: %v", stages)
	}
	x = until(t, s, "NICs hear each other", func(x *State) bool { return x.NICs[0].Hears != "" && x.NICs[0].Carrier == CarrierUp })
	n := x.NICs[0]
	if n.State != "up" || n.HeardBy == "" || n.Since == (timeline.Interval{}) {
		t.Errorf("NIC: %+v", n)
	}
	if d := x.Switches[0].Drift; len(d) != 0 {
		t.Errorf("our own change is drift: %v", d)
	}
	if x.Switches[0].Set[dp["rail0"].Slice()[0]].Who != "us" {
		t.Errorf("origins: %v", x.Switches[0].Set)
	}
	x = until(t, s, "light is measured at the NIC", func(x *State) bool { return x.NICs[0].RxPower > ocs.NoLight })
	if len(x.NICs[0].RxTrail) == 0 || x.NICs[0].RxSource != "switch" {
		t.Errorf("trail %v of %q", x.NICs[0].RxTrail, x.NICs[0].RxSource)
	}

	// The next one takes links down, which is an outage of each, and it is cut short by a
	// third.
	pp, err := s.file().Config("pp")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.measure(t.Context(), connecting(t, s, pp["rail0"].String())); err != nil {
		t.Fatal(err)
	}
	if _, number, err = s.measure(t.Context(), connecting(t, s, dp["rail0"].String())); err != nil || number != 3 {
		t.Fatalf("number=%d, err=%v", number, err)
	}
	x = until(t, s, "all is over", func(x *State) bool { return len(x.Moves) == 3 && !x.Moves[0].Running })
	if cut := x.Moves[1]; cut.Running || cut.Err != nil || cut.Number != 2 {
		t.Errorf("the one that was cut short: %+v", cut)
	}
	x = until(t, s, "outages are told", func(x *State) bool { return x.NICs[0].Outage != (timeline.Interval{}) })
	if n := x.NICs[0]; n.Flaps == 0 || n.OutAt.IsZero() || n.Outage.Earliest < 0 {
		t.Errorf("NIC: %+v", n)
	}

	// Nothing to change is no Move.
	if _, number, err = s.measure(t.Context(), connecting(t, s, dp["rail0"].String())); err != nil || number != 0 {
		t.Errorf("number=%d, err=%v", number, err)
	}
	until(t, s, "there is no Move of nothing", func(x *State) bool { return len(x.Moves) == 3 })
}

// Ensure a change by another client is drift, with who did it, and a Move by others with
// what the NICs show.
func TestDrift(t *testing.T) {
	s := openTestbed(t, nil)
	ready(t, s)
	if _, _, err := s.measure(t.Context(), connecting(t, s, "1>33,2>34")); err != nil {
		t.Fatal(err)
	}
	until(t, s, "the Move is over", func(x *State) bool { return len(x.Moves) == 1 && !x.Moves[0].Running })
	other := dial(t, s, "rail0")
	remove, add := mustMap(t, "1>33"), mustMap(t, "1>36")
	if _, err := other.Apply(t.Context(), ocs.Change{Remove: remove, Add: add}); err != nil {
		t.Fatal(err)
	}
	x := until(t, s, "drift is told", func(x *State) bool { return len(x.Switches[0].Drift) == 1 })
	d := x.Switches[0].Drift[0]
	if !d.Change.Remove.Equal(remove) || !d.Change.Add.Equal(add) {
		t.Errorf("drift: %v", d.Change)
	}
	want := "disconnected 1>33 and connected 1>36"
	if e := x.LastEvent; e == nil || !e.Bad || !strings.Contains(e.Text, want) || !strings.HasPrefix(e.Text, "rail0: ") {
		t.Errorf("last event: %+v", e)
	}
	if mv := x.Moves[0]; mv.By != "others" || mv.Running || !strings.Contains(mv.Title, want) {
		t.Errorf("move: %+v", mv)
	}
	if o := x.Switches[0].Set[add.Slice()[0]]; o.Who != "others" {
		t.Errorf("origin: %+v", o)
	}
	to := s.file().Receiver("rail0", 36)
	until(t, s, "the link that came is in the Move", func(x *State) bool {
		for _, m := range x.Moves[0].Marks {
			if m.Stage == timeline.CarrierUp && m.Subject == to {
				return true
			}
		}
		return false
	})
}

// Ensure nothing that changes a switch passes while read-only, and that reading goes on.
func TestReadOnly(t *testing.T) {
	s := openTestbed(t, func(o *Options) { o.ReadOnly = true })
	x := ready(t, s)
	if !x.ReadOnly {
		t.Error("the State does not say that the session is read-only")
	}
	sw, err := s.open(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: mustMap(t, "1>33")}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Apply: %v", err)
	}
	if err := s.SetReadOnly(false); !errors.Is(err, ErrReadOnly) {
		t.Errorf("SetReadOnly: %v", err)
	}
	if _, err := sw.CrossConnects(t.Context()); err != nil {
		t.Error(err)
	}
}

// Ensure a lab can be lent and taken back, more than once, and closed while it is lent.
func TestLend(t *testing.T) {
	s := openTestbed(t, nil)
	ready(t, s)
	for range 2 {
		if _, _, err := s.measure(t.Context(), connecting(t, s, "1>33")); err != nil {
			t.Fatal(err)
		}
		if err := s.lend(t.Context()); err != nil {
			t.Fatal(err)
		}
		x := until(t, s, "it is lent", func(x *State) bool { return x.Switches[0].Status == Lent })
		if !x.Switches[0].MapStale(time.Now()) {
			t.Error("the circuits of a switch that is lent are shown as fresh")
		}
		if _, err := s.open(t.Context(), "rail0"); !errors.Is(err, ErrBusy) {
			t.Errorf("open: %v", err)
		}
		if _, _, err := s.measure(t.Context(), measurement{}); !errors.Is(err, ErrBusy) {
			t.Errorf("measure: %v", err)
		}
		if err := s.lend(t.Context()); !errors.Is(err, ErrBusy) {
			t.Errorf("lend: %v", err)
		}
		if err := s.Reload(t.Context()); !errors.Is(err, ErrNothing) {
			t.Errorf("Reload: %v", err)
		}
		s.takeBack()
		s.takeBack() // nothing
		ready(t, s)
	}
	if err := s.lend(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Ensure a lab file is read anew, and that one that is wrong leaves all as it is.
func TestReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lab.yaml")
	writeFile(t, path, string(examples.OpusTestbed))
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	s := openTestbed(t, func(o *Options) { o.File = f })
	ready(t, s)
	writeFile(t, path, "switches: [nonsense\n")
	if err := s.Reload(t.Context()); err == nil {
		t.Error("a file that is no lab file was taken")
	}
	if x := s.State(); x.File != f || x.Switches[0].Status != Up {
		t.Errorf("after an error: %s", describe(x))
	}
	writeFile(t, path, "switches:\n  - {name: other, emulate: {model: fast-mems-25ms}}\n")
	if err := s.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	x := until(t, s, "the other switch is up", func(x *State) bool {
		return len(x.Switches) == 1 && x.Switches[0].Name == "other" && x.Switches[0].Status == Up
	})
	if len(x.NICs) != 0 || len(x.Log) == 0 {
		t.Errorf("%d NICs, %d lines of log", len(x.NICs), len(x.Log))
	}
}

// Ensure what is sent and received is in the log, and that what is read again and again is
// marked as routine.
func TestLog(t *testing.T) {
	s := openTestbed(t, nil)
	ready(t, s)
	if _, _, err := s.measure(t.Context(), connecting(t, s, "1>33")); err != nil {
		t.Fatal(err)
	}
	is := func(k Kind, routine bool, raw string) func(*State) bool {
		return func(x *State) bool {
			for _, e := range x.Log {
				if e.Kind == k && e.Routine == routine && e.Switch == "rail0" && strings.Contains(e.Raw, raw) && e.Text != "" {
					return true
				}
			}
			return false
		}
	}
	until(t, s, "the command is in the log", is(Sent, false, "ENT-PATCH"))
	until(t, s, "its reply is", is(Received, false, "COMPLD"))
	x := until(t, s, "reading is", is(Sent, true, "RTRV-PATCH"))
	for i, e := range x.Log {
		if i > 0 && e.N <= x.Log[i-1].N {
			t.Fatalf("line %d comes after line %d", e.N, x.Log[i-1].N)
		}
	}
}

// emulation starts a switch that is not part of a lab.
func emulation(t *testing.T, model string) *lab.Emulated {
	t.Helper()
	e, err := lab.EmulationOf(model)
	if err != nil {
		t.Fatal(err)
	}
	x, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// dial opens a session with a switch as another program would.
func dial(t *testing.T, s *Session, name string) ocs.Switch {
	t.Helper()
	s.mu.Lock()
	l := s.bed.lab
	s.mu.Unlock()
	sw, _, err := l.Emergency(t.Context(), name) // of another user, whom nothing binds
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sw.Close() })
	return sw
}

// Ensure monitors are quickened while a change is measured only if that was asked for, and
// that they are set back.
func TestMeasure_Quicken(t *testing.T) {
	for _, quicken := range []bool{true, false} {
		s := openTestbed(t, func(o *Options) { o.Quicken = quicken })
		ready(t, s)
		meter, ok := ocs.As[ocs.PowerMeter](dial(t, s, "rail0"))
		if !ok {
			t.Fatal("the testbed has no monitors")
		}
		averaging := func() time.Duration {
			set, err := meter.Monitors(t.Context(), 33)
			if err != nil || len(set) != 1 {
				t.Fatal(set, err)
			}
			return set[0].Averaging
		}
		before := averaging()
		var during time.Duration
		m := connecting(t, s, "1>33")
		do := m.do["rail0"]
		m.do["rail0"] = func(ctx context.Context, sw *lab.Opened) (ocs.Report, error) {
			during = averaging()
			return do(ctx, sw)
		}
		if _, _, err := s.measure(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		until(t, s, "it is over", func(x *State) bool { return len(x.Moves) == 1 && !x.Moves[0].Running })
		if during < before != quicken {
			t.Errorf("quicken=%v: %v before, %v while it was measured", quicken, before, during)
		}
		if after := averaging(); after != before {
			t.Errorf("quicken=%v: %v before, %v after", quicken, before, after)
		}
	}
}

// Ensure a change is made though its light cannot be measured, that the error of a change
// that is refused comes through, and that this is no Move.
func TestMeasure_Refused(t *testing.T) {
	s := openTestbed(t, nil)
	ready(t, s)
	m := connecting(t, s, "1>33")
	refused := errors.New("refused")
	m.do["rail0"] = func(context.Context, *lab.Opened) (ocs.Report, error) { return ocs.Report{}, refused }
	if _, number, err := s.measure(t.Context(), m); !errors.Is(err, refused) || number != 0 {
		t.Errorf("number=%d, err=%v", number, err)
	}
	until(t, s, "there is no Move", func(x *State) bool { return len(x.Moves) == 0 })
	s.mu.Lock()
	r := s.bed.readers["rail0"]
	s.mu.Unlock()
	if r.meter == nil {
		t.Fatal("no session for measuring was opened")
	}
	r.meter.Close() // every reading of the monitors fails from now on
	if _, number, err := s.measure(t.Context(), connecting(t, s, "1>33")); err != nil || number == 0 {
		t.Errorf("number=%d, err=%v", number, err)
	}
	x := until(t, s, "it is over", func(x *State) bool { return len(x.Moves) == 1 && !x.Moves[0].Running })
	if x.Switches[0].Map.Len() != 1 {
		t.Errorf("%v", x.Switches[0].Map)
	}
}
