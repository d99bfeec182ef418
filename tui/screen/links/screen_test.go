package links

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/tuitest"
	"github.com/ocslab/ocslab/tui/widget"
)

func env(s *live.State) screen.Env { return screen.Env{State: s, Now: tuitest.Now} }

// filtered is an Env with a filter.
func filtered(s *live.State, text string) screen.Env {
	e := env(s)
	e.Filter = filter.Parse(text)
	return e
}

// golden compares a screen that was sized and, by prepare, used.
func golden(t *testing.T, name string, e screen.Env, prepare func(s *Screen)) {
	t.Helper()
	tuitest.Golden(t, name, func(a canvas.Area) {
		s := New()
		s.Resize(a.W, a.H)
		if prepare != nil {
			prepare(s)
		}
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
	golden(t, "testbed", testbed, nil)
	golden(t, "testbed-open", testbed, func(s *Screen) { press(s, testbed, keymap.Down, keymap.Down, keymap.Enter) })
	golden(t, "troubled", troubled, nil)
	golden(t, "troubled-open", troubled, func(s *Screen) { press(s, troubled, keymap.Enter) })
	golden(t, "large", large, func(s *Screen) { press(s, large, keymap.End, keymap.Up, keymap.Select, keymap.Select) })
	golden(t, "large-sorted", large, func(s *Screen) { press(s, large, keymap.Sort, keymap.Reverse) })
	golden(t, "opening", env(tuitest.Empty()), nil)
	golden(t, "no-nics", env(tuitest.Bundle()), nil)
	golden(t, "no-match", filtered(tuitest.Testbed(), "gpu9"), nil)
}

func TestDo_Requests(t *testing.T) {
	propose := func(verb live.Verb, nics ...string) []screen.Request {
		return []screen.Request{screen.Propose{Wish: live.Wish{Verb: verb, NICs: nics}}}
	}
	one, two, three := "gpu1/ens1f0", "gpu2/ens1f0", "gpu3/ens1f0"
	for name, tc := range map[string]struct {
		acts []keymap.Action
		want []screen.Request
	}{
		"link of two selected":             {[]keymap.Action{keymap.Select, keymap.Down, keymap.Select, keymap.Link}, propose(live.Link, one, three)},
		"link of one selected and another": {[]keymap.Action{keymap.Select, keymap.Link}, propose(live.Link, one, two)},
		"link of the same":                 {[]keymap.Action{keymap.Select, keymap.Up, keymap.Link}, say("a link has two NICs: select them with space; 1 selected now")},
		"link of none":                     {[]keymap.Action{keymap.Link}, say("a link has two NICs: select them with space; 0 selected now")},
		"link of four":                     {[]keymap.Action{keymap.SelectAll, keymap.Link}, say("a link has two NICs: select them with space; 4 selected now")},
		"unlink under the cursor":          {[]keymap.Action{keymap.Down, keymap.Unlink}, propose(live.Unlink, two)},
		"unlink all":                       {[]keymap.Action{keymap.SelectAll, keymap.Unlink}, propose(live.Unlink, one, two, three, "gpu4/ens1f0")},
		"all and none":                     {[]keymap.Action{keymap.SelectAll, keymap.SelectAll, keymap.Unlink}, propose(live.Unlink, one)},
		"the port it hears":                {[]keymap.Action{keymap.End, keymap.Open}, []screen.Request{screen.Goto{Screen: keymap.Screen1, Subject: "rail0/36"}}},
		"nothing lacks":                    {[]keymap.Action{keymap.All}, say("everything is watched")},
		"moving asks for nothing":          {[]keymap.Action{keymap.Home, keymap.PageDown, keymap.PageUp, keymap.Sort, keymap.Reverse, keymap.Enter}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			e := env(tuitest.Testbed())
			s := New()
			s.Resize(80, 24)
			if diff := cmp.Diff(tc.want, press(s, e, tc.acts...), cmp.AllowUnexported()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDo_All(t *testing.T) {
	e := env(tuitest.Troubled())
	got := press(New(), e, keymap.All)
	show, ok := got[0].(screen.Show)
	if !ok || len(got) != 1 {
		t.Fatalf("got %v", got)
	}
	all := strings.Join(show.Lines, "\n")
	for _, want := range []string{"say in the lab file how to get there", "    gpu1, gpu2", "gpu2/ens1f1: not watched: gpu1 is not this machine (bench)"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

func TestSave(t *testing.T) {
	e := filtered(tuitest.Testbed(), "'gpu3")
	save, ok := press(New(), e, keymap.Save)[0].(screen.SaveAs)
	if !ok {
		t.Fatal("saves nothing")
	}
	want := "NIC\tcarrier\tfor\tfirmware\tRx power\thears ←\t→ heard by\ttraffic\tflaps\tlast outage\tremark\n"
	// The filter lets gpu1 through, too: it hears gpu3.
	if save.Name != "ocslab-links-20261122-150405.tsv" || !strings.HasPrefix(string(save.Content), want) || strings.Count(string(save.Content), "\n") != 3 {
		t.Errorf("%s:\n%s", save.Name, save.Content)
	}
}

func TestCopy(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	press(s, e, keymap.Down)
	if got, want := s.Copy(e), "gpu2/ens1f0\t● up\t2 min\tup\t-2.90 dBm\tgpu1/ens1f0"; !strings.Contains(got, "gpu2/ens1f0\t● up\t") || strings.Count(got, "\n") != 1 {
		t.Errorf("got %q, want about %q", got, want)
	}
	press(s, e, keymap.SelectAll)
	if got := s.Copy(e); strings.Count(got, "\n") != 4 {
		t.Errorf("got %q", got)
	}
}

// The cursor stays on its NIC when lines are sorted, filtered away and come back.
func TestCursorStays(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	s.Resize(80, 24)
	s.Focus("rail0/35", e) // what gpu3 receives from
	if got := s.Subject(e); got != "gpu3/ens1f0" {
		t.Fatalf("on %q", got)
	}
	for range columns {
		press(s, e, keymap.Sort, keymap.Reverse)
		if got := s.Subject(e); got != "gpu3/ens1f0" {
			t.Errorf("sorted by %d: on %q", s.sorted, got)
		}
	}
	if got := s.Subject(filtered(e.State, "!gpu3")); got == "gpu3/ens1f0" || got == "" {
		t.Errorf("filtered: on %q", got)
	}
	if got := s.Subject(e); got != "gpu3/ens1f0" {
		t.Errorf("on %q", got)
	}
	s.Focus("gpu7/ens1f0", e)
	if got := s.Subject(e); got != "gpu3/ens1f0" {
		t.Errorf("what is not there: on %q", got)
	}
}

func TestSort(t *testing.T) {
	e := env(tuitest.Testbed())
	for column, want := range map[string]string{
		"NIC": "gpu1 gpu2 gpu3 gpu4", "carrier": "gpu3 gpu4 gpu1 gpu2", "for": "gpu3 gpu1 gpu2 gpu4",
		"Rx power": "gpu4 gpu3 gpu2 gpu1", "flaps": "gpu1 gpu2 gpu3 gpu4", "hears ←": "gpu3 gpu2 gpu1 gpu4",
	} {
		s := New()
		for s.sorted < 0 || columns[s.sorted].Name != column {
			press(s, e, keymap.Sort)
		}
		var got []string
		for _, n := range s.rows(e) {
			got = append(got, n.Host)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("by %s: %v, want %s", column, got, want)
		}
	}
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
	click(t, s, e, zoneRow("gpu2/ens1f0"), screen.Mouse{})
	if got := s.Subject(e); got != "gpu2/ens1f0" {
		t.Errorf("on %q", got)
	}
	click(t, s, e, zoneRow("gpu4/ens1f0"), screen.Mouse{Shift: true})
	if got := names(s.chosen(e)); len(got) != 3 || s.selected["gpu1/ens1f0"] {
		t.Errorf("selected %v", got)
	}
	s.Mouse(screen.Mouse{Wheel: -2}, e)
	if got := s.Subject(e); got != "gpu2/ens1f0" {
		t.Errorf("wheel: on %q", got)
	}
	click(t, s, e, zoneColumn(4), screen.Mouse{})
	if s.rows(e)[0].Host != "gpu4" {
		t.Error("not sorted by power")
	}
	click(t, s, e, zoneColumn(4), screen.Mouse{})
	if s.rows(e)[0].Host != "gpu1" {
		t.Error("not sorted the other way")
	}
	click(t, s, e, zoneRow("gpu1/ens1f0"), screen.Mouse{Double: true})
	if !s.open {
		t.Error("a double click opens nothing")
	}
	if !s.Deselect() || s.open || len(s.selected) == 0 {
		t.Error("the first esc closes the details only")
	}
	if !s.Deselect() || len(s.selected) > 0 || s.Deselect() {
		t.Error("the second clears the selection")
	}
	troubled := env(tuitest.Troubled())
	if got := click(t, s, troubled, zoneLacks{}, screen.Mouse{}); len(got) != 1 {
		t.Errorf("what lacks: %v", got)
	}
}

func TestStatus(t *testing.T) {
	s := New()
	e := env(tuitest.Testbed())
	press(s, e, keymap.Select, keymap.Sort)
	for _, tc := range []struct {
		e    screen.Env
		want string
	}{
		{e, "2 of 4 NICs up, 1 selected, by NIC"},
		{filtered(e.State, "dark"), "1 shown, 2 of 4 NICs up, 1 selected, by NIC"},
	} {
		if got := s.Status(tc.e); got != tc.want {
			t.Errorf("%q, want %q", got, tc.want)
		}
	}
}

// A power that was not read for long is never shown as if it were so now.
func TestStale(t *testing.T) {
	st := tuitest.Testbed()
	n := st.NICs[0]
	rapid.Check(t, func(t *rapid.T) {
		age := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "age"))
		x := *n
		x.RxAt = tuitest.Now.Add(-age)
		got := powerCell(&x, env(st))
		if stale := age > 3*time.Second; stale != strings.HasPrefix(got.Text, "was ") || stale != (got.Style.Role == canvas.Stale) || stale != strings.Contains(remark(&x, env(st)), "old") {
			t.Fatalf("%v old: %+v, remark %q", age, got, remark(&x, env(st)))
		}
	})
}

// Each reading is in the trail, gaps are where no readings are, and nothing is outside.
func TestFill(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := &live.NIC{}
		ago := rapid.SliceOfN(rapid.IntRange(0, 300), 0, 20).Draw(t, "seconds ago")
		slices.SortFunc(ago, func(a, b int) int { return b - a }) // oldest first
		for _, s := range ago {
			n.RxTrail = append(n.RxTrail, live.Sample{At: tuitest.Now.Add(-time.Duration(s) * time.Second), Power: -3})
		}
		slots := make([]widget.Slot, rapid.IntRange(1, 60).Draw(t, "columns"))
		fill(slots, n, env(&live.State{}))
		per := window / time.Duration(len(slots))
		for i, slot := range slots {
			from, to := time.Duration(len(slots)-i)*per, time.Duration(len(slots)-1-i)*per // ago
			near := false
			for _, s := range ago {
				d := time.Duration(s) * time.Second
				if d < from && d >= to && !slot.Lit {
					t.Fatalf("nothing in slot %d of %d, which holds %v ago", i, len(slots), d)
				}
				near = near || d <= from+per && d-time.Second <= from && d >= to
			}
			if slot.Lit && !near {
				t.Fatalf("slot %d of %d is lit without a reading in it", i, len(slots))
			}
		}
	})
}

func TestDraw_AnySize(t *testing.T) {
	states := []*live.State{tuitest.Testbed(), tuitest.Troubled(), tuitest.Large(64, 40), tuitest.Empty(), tuitest.Bundle(), {}}
	var acts []keymap.Action
	for _, b := range keymap.Bindings() {
		acts = append(acts, b.Action)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := New()
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			e := filtered(rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom([]string{"", "1", "!down", "zzz"}).Draw(t, "filter"))
			w, h := rapid.IntRange(0, 220).Draw(t, "w"), rapid.IntRange(0, 70).Draw(t, "h")
			s.Resize(w, h)
			s.Do(rapid.SampledFrom(acts).Draw(t, "act"), e)
			c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
			if w > 0 && h > 0 {
				if z, dx, dy, ok := c.Hit(rapid.IntRange(0, w-1).Draw(t, "x"), rapid.IntRange(0, h-1).Draw(t, "y")); ok {
					s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, Shift: rapid.Bool().Draw(t, "shift"), Wheel: rapid.IntRange(-3, 3).Draw(t, "wheel")}, e)
				}
			}
			s.Status(e)
			s.Copy(e)
			if sub := s.Subject(e); (sub == "") != (len(s.rows(e)) == 0) {
				t.Fatalf("subject %q of %d rows", sub, len(s.rows(e)))
			}
		}
	})
}

// Drawing changes nothing: the same is drawn again.
func TestDraw_Twice(t *testing.T) {
	e := env(tuitest.Large(384, 64))
	s := New()
	s.Resize(200, 60)
	press(s, e, keymap.End, keymap.Sort)
	draw := func() string { return tuitest.Draw(200, 60, func(a canvas.Area) { s.Draw(a, e) }).String() }
	if first := draw(); first != draw() {
		t.Error("differs the second time")
	}
}

func TestLacksLine(t *testing.T) {
	st := &live.State{Lacks: []experiment.Lack{{Subjects: []string{"a", "b"}, Reason: "no bpf"}, {Subjects: []string{"c"}, Reason: "no module"}}}
	if got, want := lacksLine(env(st)), "not watched (a shows all): a, b: no bpf; c: no module"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func BenchmarkFrameLinks(b *testing.B) {
	e := env(tuitest.Large(384, 64))
	for _, n := range e.State.NICs {
		if len(n.RxTrail) != live.KeepSamples {
			b.Fatal("want trails of 240 samples")
		}
	}
	for _, order := range []int{-1, 0, 4} {
		b.Run(fmt.Sprint("sorted", order), func(b *testing.B) {
			s := New()
			s.Resize(200, 60)
			s.sorted = order
			c := canvas.New(200, 60)
			b.ReportAllocs()
			for b.Loop() {
				c.Reset(200, 60)
				s.Draw(c.Area(), e)
			}
		})
	}
}

// A NIC that nothing is connected to is expected to be dark: only where light should be is it bad.
func TestMissed(t *testing.T) {
	st := tuitest.Testbed()
	x := *st.NICs[0]
	x.RxPower, x.RxAt, x.Carrier = -60, tuitest.Now, live.CarrierDown
	sw := *st.Switch(x.Rx.Switch)
	for i := range st.Switches {
		if st.Switches[i].Name == sw.Name {
			st.Switches[i] = &sw
		}
	}
	for name, tc := range map[string]struct {
		hears   string
		circuit ocs.Map
		old     bool
		want    canvas.Role
	}{
		"connected to a NIC":      {hears: "gpu2/ens1f0", want: canvas.Bad},
		"connected to who knows":  {circuit: mustMap(t, "9>"+x.Rx.Port.String()), want: canvas.Bad},
		"not connected":           {want: canvas.Dim},
		"not connected when read": {old: true, want: canvas.Bad},
	} {
		x.Hears, sw.Map, sw.MapAt = tc.hears, tc.circuit, tuitest.Now
		if tc.old {
			sw.MapAt = tuitest.Now.Add(-time.Hour)
		}
		for what, v := range map[string]widget.Value{"power": powerCell(&x, env(st)), "carrier": carrierCell(&x, env(st))} {
			if v.Style.Role != tc.want {
				t.Errorf("%s: %s %q in role %d, want %d", name, what, v.Text, v.Style.Role, tc.want)
			}
		}
	}
}

func mustMap(t *testing.T, text string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
