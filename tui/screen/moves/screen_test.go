package moves

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/tuitest"
	"github.com/ocslab/ocslab/tui/widget"
)

func env(s *live.State) screen.Env { return screen.Env{State: s, Now: tuitest.Now} }

func filtered(s *live.State, text string) screen.Env {
	e := env(s)
	e.Filter = filter.Parse(text)
	return e
}

func golden(t *testing.T, name string, e screen.Env, acts ...keymap.Action) {
	t.Helper()
	tuitest.Golden(t, name, func(a canvas.Area) {
		s := New()
		s.Resize(a.W, a.H)
		press(s, e, acts...)
		s.Draw(a, e)
	})
}

func press(s *Screen, e screen.Env, acts ...keymap.Action) (last []screen.Request) {
	for _, act := range acts {
		last = s.Do(act, e)
	}
	return last
}

func TestDraw(t *testing.T) {
	testbed, troubled, large := env(tuitest.Testbed()), env(tuitest.Troubled()), env(tuitest.Large(384, 64))
	golden(t, "running", testbed)
	golden(t, "running-grouped", testbed, keymap.View)
	golden(t, "ended", testbed, keymap.Down)
	golden(t, "ended-each", testbed, keymap.Down, keymap.View, keymap.NextRow, keymap.NextRow)
	golden(t, "missing", testbed, keymap.Down, keymap.Down, keymap.Down, keymap.View)
	golden(t, "log-axis", testbed, keymap.Down, keymap.All)
	golden(t, "zoomed", testbed, keymap.Down, keymap.ZoomIn, keymap.ZoomIn, keymap.ZoomIn, keymap.Left)
	golden(t, "troubled", troubled)
	golden(t, "failed", troubled, keymap.Down)
	golden(t, "large", large)
	golden(t, "large-each", large, keymap.View)
	golden(t, "empty", env(tuitest.Bundle()))
	golden(t, "no-match", filtered(tuitest.Testbed(), "zzz"))
}

func TestDo_Requests(t *testing.T) {
	patch := func(port string) []screen.Request {
		return []screen.Request{screen.Goto{Screen: keymap.Screen1, Subject: port}}
	}
	links := func(nic string) []screen.Request {
		return []screen.Request{screen.Goto{Screen: keymap.Screen2, Subject: nic}}
	}
	for name, tc := range map[string]struct {
		acts []keymap.Action
		want []screen.Request
	}{
		"the switch":              {[]keymap.Action{keymap.NextRow, keymap.Open}, []screen.Request{screen.Goto{Screen: keymap.Screen5, Subject: "rail0"}}},
		"a port":                  {[]keymap.Action{keymap.NextRow, keymap.Down, keymap.Open}, patch("rail0/33")},
		"a NIC":                   {[]keymap.Action{keymap.NextRow, keymap.End, keymap.Up, keymap.Open}, links("gpu3/ens1f0")},
		"who receives a flow":     {[]keymap.Action{keymap.PrevRow, keymap.Open}, links("gpu3/ens1f0")},
		"who is slow":             {[]keymap.Action{keymap.Down, keymap.Open}, links("gpu4/ens1f0")},
		"a stage is nobody":       {[]keymap.Action{keymap.View, keymap.NextRow, keymap.Open}, say("no NIC or port here: n chooses a row, v shows each")},
		"moving asks nothing":     {[]keymap.Action{keymap.Home, keymap.End, keymap.PageUp, keymap.PageDown, keymap.Sort, keymap.Reverse}, nil},
		"the axis asks nothing":   {[]keymap.Action{keymap.ZoomIn, keymap.Left, keymap.Right, keymap.ZoomOut, keymap.ZoomFit, keymap.All, keymap.All}, nil},
		"what is not of us":       {[]keymap.Action{keymap.Connect, keymap.Undo, keymap.Panic, "no such action"}, nil},
		"a row that is not shown": {[]keymap.Action{keymap.NextRow, keymap.End, keymap.PageDown, keymap.Down, keymap.Open}, links("gpu3/ens1f0")},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(tuitest.Testbed())
			s := New()
			s.Resize(120, 40)
			if diff := cmp.Diff(tc.want, press(s, e, tc.acts...)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What is saved are the marks, as package timeline reads them.
func TestSave(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	got, ok := press(s, e, keymap.Down, keymap.Save)[0].(screen.SaveAs)
	if !ok || got.Name != "ocslab-move-6-20261122-150305.ndjson" {
		t.Fatalf("got %+v", got)
	}
	var read []timeline.Mark
	for _, line := range strings.Split(strings.TrimSuffix(string(got.Content), "\n"), "\n") {
		var m timeline.Mark
		if err := m.UnmarshalJSON([]byte(line)); err != nil {
			t.Fatal(err)
		}
		read = append(read, m)
	}
	if diff := cmp.Diff(inOrder(e.State.Moves[1].Marks), read); diff != "" {
		t.Error(diff)
	}
	if got := press(New(), env(tuitest.Troubled()), keymap.Save); !cmp.Equal(got, say("there are no marks to save")) {
		t.Errorf("without marks: %v", got)
	}
}

func TestSave_BadMark(t *testing.T) {
	st := tuitest.Testbed()
	m := *st.Moves[1]
	m.Marks = append(slices.Clone(m.Marks), timeline.Mark{Stage: "tea"})
	st.Moves[1] = &m
	if got, ok := press(New(), env(st), keymap.Down, keymap.Save)[0].(screen.Say); !ok || !got.Bad {
		t.Errorf("got %+v", got)
	}
}

func TestEverything(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	s.Resize(120, 40)
	show, ok := press(s, e, keymap.Down, keymap.Down, keymap.Down, keymap.Enter)[0].(screen.Show)
	if !ok || show.Title != "#4 dp" {
		t.Fatalf("got %+v", show)
	}
	tuitest.Compare(t, "marks.txt", strings.Join(show.Lines, "\n")+"\n")
	if got := s.Copy(e); got != strings.Join(show.Lines, "\n")+"\n" {
		t.Errorf("copies something else than is shown:\n%s", got)
	}
	press(s, e, keymap.NextRow, keymap.Down)
	want := "since the command  stage  subject   seen by  at   detail\n   9.0 ms ±6.1     dark   rail0/33  opm      lab\n  213.0 ms ±8.1    light  rail0/33  opm      lab\n"
	if got := s.Copy(e); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("a row:\n%s", got)
	}
}

// The cursor follows the newest until it is moved, and then stays.
func TestFollows(t *testing.T) {
	st := tuitest.Testbed()
	older := *st
	older.Moves = st.Moves[1:]
	s := New()
	s.Resize(80, 24)
	steps := []struct {
		state *live.State
		act   keymap.Action
		want  string
	}{
		{&older, keymap.None, "move/6"}, {st, keymap.None, "move/7"}, {&older, keymap.Down, "move/5"},
		{st, keymap.None, "move/5"}, {st, keymap.Home, "move/7"}, {&older, keymap.None, "move/6"}, {st, keymap.None, "move/7"},
	}
	for i, step := range steps {
		s.Do(step.act, env(step.state))
		if got := s.Subject(env(step.state)); got != step.want {
			t.Errorf("step %d: on %s, want %s", i, got, step.want)
		}
	}
	s.Focus("move/3", env(st))
	if got := s.Subject(env(st)); got != "move/3" {
		t.Errorf("focus: on %s", got)
	}
	for _, x := range []string{"move/99", "move/x", "gpu9/ens1f0"} {
		if s.Focus(x, env(st)); s.Subject(env(st)) != "move/3" {
			t.Errorf("%s: on %s", x, s.Subject(env(st)))
		}
	}
	s.Focus("gpu2/ens1f0", env(st))
	if got := s.Subject(env(st)); got != "gpu2/ens1f0" {
		t.Errorf("a NIC: on %s", got)
	}
	if !s.Deselect() || s.Deselect() || s.Subject(env(st)) != "move/3" {
		t.Errorf("esc: on %s", s.Subject(env(st)))
	}
	if got := s.Subject(filtered(st, "opus")); got != "move/2" {
		t.Errorf("filtered: on %s, want the next older one", got)
	}
}

func TestAccount(t *testing.T) {
	st := tuitest.Testbed()
	k := newMemory()
	for i, want := range []struct{ result, slow string }{
		{"… running", "waiting: carrier of gpu3/ens1f0 for 1.3 s (and 1 more); usually back at 3.26 s"},
		{"✓ all back", "slow: firmware of gpu4/ens1f0, 3.0075 s ±0.0086 of 3.24 s (93 %) since light; usually 3.0075 s ±0.0086"},
		{"✓ all back", "slow: firmware of gpu4/ens1f0, 3.0075 s ±0.0086 of 3.25 s (93 %) since light; usually 3.0075 s ±0.0086"},
		{"! 1 missing", "slow: firmware of gpu3/ens1f0, 3.0075 s ±0.0086 of 3.26 s (92 %) since light; usually 3.0075 s ±0.0086"},
	} {
		a := k.account(st.Moves[i], st)
		if got, _ := result(a); got != want.result {
			t.Errorf("#%d: %q, want %q", a.move.Number, got, want.result)
		}
		if got := New().slow(a, env(st)); got != want.slow {
			t.Errorf("#%d: %q, want %q", a.move.Number, got, want.slow)
		}
	}
}

// The median of what is usual is that of the durations that package timeline gives, and of
// earlier reconfigurations that ended well only.
func TestUsually(t *testing.T) {
	st := tuitest.Testbed()
	k := newMemory()
	what := key{timeline.CarrierUp, "gpu2/ens1f0"}
	var all []timeline.Interval
	for _, m := range st.Moves[2:] {
		for _, d := range timeline.Durations(m.Marks) {
			if d.Stage == what.stage && d.Subject == what.subject {
				all = append(all, d.Interval)
			}
		}
	}
	want := usual{timeline.Quantile(all, 0.5), 4}
	for range 2 { // worked out, and remembered
		if got, ok := k.usually(st.Moves[1], st, what, key{}); !ok || got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	failed := *st.Moves[2]
	failed.Err = errors.New("denied")
	st.Moves[2] = &failed
	want = usual{timeline.Quantile(all[1:], 0.5), 3}
	if got, _ := k.usually(st.Moves[1], st, what, key{}); got != want {
		t.Errorf("one has failed: got %v, want %v", got, want)
	}
	if _, ok := k.usually(st.Moves[len(st.Moves)-1], st, what, key{}); ok {
		t.Error("the oldest has a usual")
	}
}

// What was done by others has no command, so its times are since the first mark.
func TestNoCommand(t *testing.T) {
	st := tuitest.Testbed()
	m := *st.Moves[1]
	m.Marks, m.By = m.Marks[2:], "others"
	st.Moves[1] = &m
	k := newMemory()
	a := k.account(&m, st)
	first := m.Marks[0].Earliest
	for _, x := range m.Marks {
		first = min(first, x.Earliest)
	}
	if a.commanded || a.command != timeline.Point(first) {
		t.Errorf("command %v", a.command)
	}
	if got, want := a.at[key{timeline.CarrierUp, "gpu1/ens1f0"}], timeline.Between(3227*ms, 3227*ms+100_000); got != want {
		t.Errorf("carrier at %v, want %v", got, want)
	}
	golden(t, "others", env(st), keymap.Down, keymap.View)
}

// What is dark or down and not expected back is not missing.
func TestGone(t *testing.T) {
	command := timeline.Mark{Stage: timeline.Command, Subject: "rail0", Interval: timeline.Point(0), Reconfiguration: 1}
	dark := timeline.Mark{Stage: timeline.Dark, Subject: "rail0/33", Interval: timeline.Point(5), Reconfiguration: 1}
	m := &live.Move{Number: 1, Marks: []timeline.Mark{command, dark}, Expected: []timeline.Expectation{{Reconfiguration: 1, Stage: timeline.Dark, Subject: "rail0/33"}}}
	k := newMemory()
	a := k.account(m, &live.State{})
	if len(a.rows) != 1 || !a.rows[0].gone || a.rows[0].waiting || a.missed != 0 {
		t.Errorf("%+v", a)
	}
	m2 := *m
	m2.Expected = append(m2.Expected, timeline.Expectation{Reconfiguration: 1, Stage: timeline.Light, Subject: "rail0/33"})
	if a := k.account(&m2, &live.State{}); a.rows[0].gone || !a.rows[0].waiting || a.missed != 1 {
		t.Errorf("%+v", a)
	}
}

func TestReported(t *testing.T) {
	outcome := func(in, out ocs.Port, s ocs.State) ocs.Outcome {
		return ocs.Outcome{CrossConnect: ocs.CrossConnect{Ingress: in, Egress: out}, State: s}
	}
	for want, r := range map[string]ocs.Report{
		"rail0: connected 1>33,2>34, removed 1>36, kept 7>40": {ReadBack: true, Outcomes: []ocs.Outcome{
			outcome(1, 33, ocs.Connected), outcome(1, 36, ocs.Removed), outcome(2, 34, ocs.Connected), outcome(7, 40, ocs.Kept)}},
		"rail0: NOT connected 1>33, gone by others 4>40":           {ReadBack: true, Outcomes: []ocs.Outcome{outcome(1, 33, ocs.Failed), outcome(4, 40, ocs.Vanished)}},
		"rail0: nothing to do":                                     {ReadBack: true},
		"rail0: + 1>33, not read back: what it holds is not known": {Change: ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})}},
	} {
		if got, _ := reported("rail0", r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRough(t *testing.T) {
	ns := func(mid, half int64) timeline.Interval { return timeline.Point(mid).Widen(time.Duration(half)) }
	for want, i := range map[string]timeline.Interval{
		"3.24 s": ns(3239*ms, 59_000), "3.0075 s ±0.0086": ns(3007500*ms/1000, 8_600_000), "203 ms": ns(203*ms, 30_000),
		"20.3 ms": ns(20300*ms/1000, 40_000), "12.3 s": ns(12300*ms, 30*ms), "200 µs ±30": ns(200_000, 30_000), "0 ns": {},
	} {
		if got := rough(i); got != want {
			t.Errorf("%v: %q, want %q", i, got, want)
		}
	}
}

func TestAxis(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	s.Resize(120, 40)
	at := func(acts ...keymap.Action) widget.TimeAxis {
		press(s, e, acts...)
		l, _, _ := s.look(s.sized(), e)
		return s.axis(l, e)
	}
	fit := at(keymap.Down)
	for _, m := range e.State.Moves[1].Marks {
		since := m.Sub(e.State.Moves[1].Marks[0].Interval)
		if m.Stage != timeline.Command && (since.Earliest < fit.From || since.Latest > fit.To) {
			t.Errorf("%v is not on %+v", m, fit)
		}
	}
	if fit.Log() || !at(keymap.All).Log() || at(keymap.All).Log() {
		t.Error("a does not change the scale")
	}
	in := at(keymap.ZoomIn)
	if got, want := in.To-in.From, (fit.To-fit.From)/2; got < want-2 || got > want+2 {
		t.Errorf("zoomed: %d long, want %d", got, want)
	}
	if right := at(keymap.Right); right.From <= in.From || right.To <= in.To {
		t.Errorf("right: %+v, was %+v", right, in)
	}
	if back := at(keymap.Left); back.From-in.From > 2 || in.From-back.From > 2 {
		t.Errorf("and left: %+v, was %+v", back, in)
	}
	if got := at(keymap.ZoomFit); got != fit {
		t.Errorf("fit: %+v, want %+v", got, fit)
	}
	at(keymap.ZoomIn)
	if got := at(keymap.ZoomOut); got != fit || s.zoomed != nil {
		t.Errorf("in and out: %+v, want %+v", got, fit)
	}
	at(keymap.ZoomIn)
	if at(keymap.Down); s.zoomed != nil {
		t.Error("another reconfiguration is zoomed, too")
	}
}

// While it runs, nothing that was waited for is drawn as back, and now is on the axis.
func TestRunning(t *testing.T) {
	st := tuitest.Testbed()
	rapid.Check(t, func(t *rapid.T) {
		e := env(st)
		e.Now = st.Moves[0].Began.Add(time.Duration(rapid.Int64Range(-int64(time.Second), int64(time.Hour)).Draw(t, "since")))
		s := New()
		s.Resize(120, 40)
		l, _, _ := s.look(s.sized(), e)
		x := s.axis(l, e)
		if now := elapsed(l.move, e); x.Column(now, 60) < 0 || x.Column(now, 60) >= 60 {
			t.Fatalf("now, %d, is not on %+v", now, x)
		}
		for _, r := range l.rows {
			if b := s.bar(l, r, x, e); r.waiting && (b.HasEnd || !b.Open || !b.Growing || !strings.HasPrefix(b.Cells[0].Text, "waiting ")) {
				t.Fatalf("%+v", b)
			}
		}
	})
}

// click clicks at a zone that the screen has drawn.
func click(t *testing.T, s *Screen, e screen.Env, id any, m screen.Mouse) []screen.Request {
	t.Helper()
	c := canvas.New(s.w, s.h)
	s.Draw(c.Area(), e)
	for y := range s.h {
		for x := range s.w {
			if z, _, _, ok := c.Hit(x, y); ok && z.ID == id {
				m.ID = id
				return s.Mouse(m, e)
			}
		}
	}
	t.Fatalf("no zone %v in\n%s", id, c.String())
	return nil
}

func TestMouse(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	s.Resize(120, 40)
	click(t, s, e, zoneMove(5), screen.Mouse{})
	if got := s.Subject(e); got != "move/5" {
		t.Errorf("on %s", got)
	}
	if got := click(t, s, e, zoneMove(4), screen.Mouse{Double: true}); len(got) != 1 || got[0].(screen.Show).Title != "#4 dp" {
		t.Errorf("double click: %v", got)
	}
	click(t, s, e, zoneMove(4), screen.Mouse{Wheel: 1})
	if got := s.Subject(e); got != "move/3" {
		t.Errorf("wheel: on %s", got)
	}
	nic := zoneRow{timeline.CarrierUp, "gpu2/ens1f0"}
	click(t, s, e, nic, screen.Mouse{})
	if got := s.Subject(e); got != "gpu2/ens1f0" {
		t.Errorf("row: on %s", got)
	}
	if got := click(t, s, e, nic, screen.Mouse{Double: true}); !cmp.Equal(got, []screen.Request{screen.Goto{Screen: keymap.Screen2, Subject: "gpu2/ens1f0"}}) {
		t.Errorf("double click on a row: %v", got)
	}
	click(t, s, e, zoneAxis{}, screen.Mouse{Wheel: -1})
	if s.zoomed == nil {
		t.Error("the wheel does not zoom")
	}
	was := *s.zoomed
	if click(t, s, e, zoneAxis{}, screen.Mouse{Side: 1}); s.zoomed.From <= was.From {
		t.Error("the wheel does not pan")
	}
	if click(t, s, e, zoneAxis{}, screen.Mouse{Wheel: 1}); s.zoomed != nil && s.zoomed.To-s.zoomed.From <= was.To-was.From {
		t.Error("the wheel does not zoom out")
	}
}

func TestStatus(t *testing.T) {
	e := env(tuitest.Testbed())
	for want, acts := range map[string][]keymap.Action{
		"1 of 6 reconfigurations":                                          nil,
		"2 of 6 reconfigurations, slowest first, zoomed (0: all)":          {keymap.Down, keymap.Sort, keymap.ZoomIn},
		"row 1 of 6 of #7, esc: back to the list, by stage, the other way": {keymap.NextRow, keymap.Reverse, keymap.Home},
	} {
		s := New()
		s.Resize(120, 40)
		press(s, e, acts...)
		if got := s.Status(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := New().Status(env(tuitest.Bundle())); got != "no reconfigurations" {
		t.Errorf("%q", got)
	}
}

func TestDraw_AnySize(t *testing.T) {
	states := []*live.State{tuitest.Testbed(), tuitest.Troubled(), tuitest.Large(64, 40), tuitest.Empty(), sixStages(), {}}
	var acts []keymap.Action
	for _, b := range keymap.Bindings() {
		acts = append(acts, b.Action)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			e := filtered(rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom([]string{"", "dp", "!us", "zzz"}).Draw(t, "filter"))
			w, h := rapid.IntRange(0, 220).Draw(t, "w"), rapid.IntRange(0, 70).Draw(t, "h")
			s.Resize(w, h)
			s.Do(rapid.SampledFrom(acts).Draw(t, "act"), e)
			c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
			if again := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) }); again.String() != c.String() {
				t.Fatal("differs when drawn again")
			}
			if w > 0 && h > 0 {
				if z, dx, dy, ok := c.Hit(rapid.IntRange(0, w-1).Draw(t, "x"), rapid.IntRange(0, h-1).Draw(t, "y")); ok {
					s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, Side: rapid.IntRange(-1, 1).Draw(t, "side"), Wheel: rapid.IntRange(-3, 3).Draw(t, "wheel")}, e)
				}
			}
			s.Status(e)
			s.Copy(e)
			if sub := s.Subject(e); (sub == "") != (len(s.shown(e)) == 0) {
				t.Fatalf("subject %q", sub)
			}
		}
	})
}

const ms = int64(time.Millisecond)

// BenchmarkFrameTimeline draws a reconfiguration of 64 NICs that runs, and of which each frame
// knows something new.
func BenchmarkFrameTimeline(b *testing.B) {
	for name, view := range map[string]view{"each": byEach, "stages": byStages} {
		b.Run(name, func(b *testing.B) {
			e := env(sixStages())
			s := New()
			s.Resize(200, 60)
			s.view = view
			c := canvas.New(200, 60)
			b.ReportAllocs()
			for b.Loop() {
				m := *e.State.Moves[0]
				e.State.Moves[0] = &m // nothing is known of it yet
				c.Reset(200, 60)
				s.Draw(c.Area(), e)
			}
		})
	}
}

// sixStages is a lab with 64 NICs, each of which has reached six stages of a
// reconfiguration that runs.
func sixStages() *live.State {
	st := tuitest.Large(384, 64)
	m := *st.Moves[0]
	m.Marks = nil
	for _, x := range st.Moves[0].Marks {
		if x.Stage == timeline.Command || x.Stage == timeline.Ack {
			m.Marks = append(m.Marks, x)
		}
	}
	command := m.Marks[0].Interval
	for i, n := range st.NICs {
		for k, stage := range []timeline.Stage{timeline.Dark, timeline.CarrierDown, timeline.Light, timeline.Firmware, timeline.CarrierUp, timeline.Traffic} {
			subject := n.Name
			if stage == timeline.Traffic {
				subject += ">" + st.NICs[(i+1)%64].Name
			}
			at := command.Shift(int64(k*200+i)*int64(time.Millisecond), time.Millisecond)
			m.Marks = append(m.Marks, timeline.Mark{Stage: stage, Subject: subject, Host: n.Host, Interval: at, Source: "counters", Reconfiguration: 1})
			m.Expected = append(m.Expected, timeline.Expectation{Reconfiguration: 1, Stage: stage, Subject: subject})
		}
	}
	st.Moves[0] = &m
	return st
}

// What a removal takes says nothing about what connecting usually takes, and nothing comes back
// after it.
func TestUsually_Alike(t *testing.T) {
	c := func(change ocs.Change) map[string]ocs.Report {
		return map[string]ocs.Report{"rail0": {Change: change, ReadBack: true}}
	}
	one, err := ocs.ParseMap("1>34")
	if err != nil {
		t.Fatal(err)
	}
	move := func(n int, ack time.Duration, change ocs.Change) *live.Move {
		ns := int64(ack)
		return &live.Move{
			Number: n, Reports: c(change), Expected: []timeline.Expectation{{Stage: timeline.Ack, Subject: "rail0"}},
			Marks: []timeline.Mark{
				{Stage: timeline.Command, Subject: "rail0", Interval: timeline.Between(0, 0)},
				{Stage: timeline.Ack, Subject: "rail0", Interval: timeline.Between(ns, ns)},
			},
		}
	}
	add, remove := ocs.Change{Add: one}, ocs.Change{Remove: one}
	st := &live.State{Moves: []*live.Move{
		move(4, 2*time.Millisecond, remove), move(3, 205*time.Millisecond, add),
		move(2, 2*time.Millisecond, remove), move(1, 201*time.Millisecond, add),
	}}
	k := newMemory()
	for i, want := range []int64{2e6, 201e6} {
		u, ok := k.usually(st.Moves[i], st, key{timeline.Ack, "rail0"}, key{})
		if !ok || u.n != 1 || u.at.Mid() != want {
			t.Errorf("#%d: usually %v of %d, want %d ns of 1", st.Moves[i].Number, u.at, u.n, want)
		}
	}
	if got, _ := result(k.account(st.Moves[0], st)); got != "✓ done" {
		t.Errorf("a removal: %q", got)
	}
	if got, _ := result(k.account(st.Moves[1], st)); got != "✓ all back" {
		t.Errorf("connecting: %q", got)
	}
}

// A mark that may be from before the command makes the axis begin no earlier.
func TestAxis_BeginsAtCommand(t *testing.T) {
	mark := func(stage timeline.Stage, subject string, i timeline.Interval) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: subject, Interval: i, Reconfiguration: 1}
	}
	m := &live.Move{Number: 1, Title: "connect rail0 1>33", By: "us", Began: tuitest.Now, Marks: []timeline.Mark{
		mark(timeline.Command, "rail0", timeline.Point(0)),
		mark(timeline.Light, "gpu1/ens1f0", timeline.Between(-int64(150*time.Millisecond), int64(250*time.Millisecond))),
		mark(timeline.CarrierUp, "gpu1/ens1f0", timeline.Point(int64(3*time.Second))),
	}}
	e := env(&live.State{Moves: []*live.Move{m}})
	s := New()
	s.Resize(120, 40)
	l, _, _ := s.look(s.sized(), e)
	if x := s.axis(l, e); x.From != 0 {
		t.Errorf("it begins at %d", x.From)
	}
	text := tuitest.Draw(120, 40, func(a canvas.Area) { s.Draw(a, e) }).String()
	for _, want := range []string{"<0░", "50 ms ±200"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}
