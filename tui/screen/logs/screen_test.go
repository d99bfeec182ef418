package logs_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/logs"
	"github.com/ocslab/ocslab/tui/tuitest"
)

func env(s *live.State, words string) screen.Env {
	return screen.Env{State: s, Now: tuitest.Now, Filter: filter.Parse(words)}
}

// many is a log of n lines, the first of which has the number first. Every third is routine, every tenth bad.
func many(first, n int) *live.State {
	s := &live.State{At: tuitest.Now}
	for i := first; i < first+n; i++ {
		e := &live.Entry{N: uint64(i), At: tuitest.Now.Add(time.Duration(i-20000) * time.Millisecond), Switch: fmt.Sprintf("rail%d", i%4), Routine: i%3 == 0, Bad: i%10 == 0}
		switch i % 5 {
		case 0, 1:
			e.Kind, e.Raw, e.Text = live.Sent, fmt.Sprintf("ENT-PATCH::%d,%d:%d:;", i, i+1, i), fmt.Sprintf("connect %d>%d (ENT-PATCH)", i, i+1)
		case 2, 3:
			e.Kind, e.Raw, e.Text = live.Received, fmt.Sprintf("\r\n\n   P 26-11-20 10:00:00\r\nM  %d COMPLD\r\n;", i), "completed"
		default:
			e.Kind, e.Text, e.CLI = live.Did, fmt.Sprintf("connect rail0 %d>%d", i, i+1), fmt.Sprintf("ocslab connect rail0 '%d>%d'", i, i+1)
		}
		s.Log = append(s.Log, e)
	}
	return s
}

// at returns a screen that has been told its size.
func at(w, h int) *logs.Screen {
	s := logs.New()
	s.Resize(w, h)
	return s
}

func draw(s *logs.Screen, e screen.Env, w, h int) string {
	s.Resize(w, h)
	return tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) }).String()
}

func TestGolden(t *testing.T) {
	netconf := many(1, 3)
	netconf.Log[0].At = tuitest.Now.Add(-30 * time.Hour)
	for _, x := range []struct {
		name string
		e    screen.Env
		keys []keymap.Action
	}{
		{"testbed", env(tuitest.Testbed(), ""), nil},
		{"all", env(tuitest.Testbed(), ""), []keymap.Action{keymap.All}},
		{"troubled", env(tuitest.Troubled(), ""), nil},
		{"empty", env(tuitest.Empty(), ""), nil},
		{"nothing", env(tuitest.Testbed(), "'nowhere"), nil},
		{"filter", env(many(1, 400), "rail2 !routine sent"), nil},
		{"up", env(many(1, 400), ""), []keymap.Action{keymap.PageUp, keymap.PageUp, keymap.Select, keymap.Up, keymap.Up}},
		{"yesterday", env(netconf, ""), []keymap.Action{keymap.All}},
	} {
		t.Run(x.name, func(t *testing.T) {
			tuitest.Golden(t, x.name, func(a canvas.Area) {
				a, status := a.Bottom(1)
				s := at(a.W, a.H)
				for _, k := range x.keys {
					s.Do(k, x.e)
				}
				s.Draw(a, x.e)
				status.Text(0, 0, "["+s.Status(x.e)+"]", canvas.S(canvas.Dim))
			})
		})
	}
}

// TestFollow: the newest line is at the bottom until one goes up; then what is shown stays,
// and how much is new is said.
func TestFollow(t *testing.T) {
	e := env(many(1, 100), "")
	s := at(80, 24)
	s.Do(keymap.All, e)
	last := func(e screen.Env) string { return fmt.Sprintf("%d>", e.State.Log[len(e.State.Log)-1].N) }
	more := env(many(1, 112), "")
	if got := s.Status(more); got != "112 lines, follows" {
		t.Errorf("status is %q", got)
	}
	if got := draw(s, more, 80, 24); !strings.Contains(got, "connect 111>") || !strings.Contains(got, "connect 95>") {
		t.Errorf("the newest lines are not shown:\n%s", got)
	}
	s.Do(keymap.Up, e)
	before := draw(s, e, 80, 24)
	after := draw(s, more, 80, 24)
	if !strings.Contains(after, "12 new below") {
		t.Errorf("what is new is not said:\n%s", after)
	}
	// But for the foot and the scrollbar, what is shown is the same.
	cut := func(s string) []string {
		lines := strings.Split(s, "\n")[1:23]
		for i, l := range lines {
			lines[i] = strings.TrimRight(l, "│█ ")
		}
		return lines
	}
	if diff := cmp.Diff(cut(before), cut(after)); diff != "" {
		t.Errorf("what is shown has moved:\n%s", diff)
	}
	if got := s.Status(more); got != "99 of 112 lines, 12 below" {
		t.Errorf("status is %q", got)
	}
	s.Do(keymap.End, more)
	if got := draw(s, more, 80, 24); strings.Contains(got, "below") || last(more) == "" {
		t.Errorf("does not follow:\n%s", got)
	}
	s.Do(keymap.Home, more)
	if got := draw(s, more, 80, 24); !strings.Contains(got, "connect 1>2") {
		t.Errorf("the first line is not shown:\n%s", got)
	}
	for range 200 {
		s.Do(keymap.Down, more)
	}
	if got := s.Status(more); got != "112 lines, follows" {
		t.Errorf("status at the end is %q", got)
	}
}

func TestFilter(t *testing.T) {
	s := tuitest.Testbed()
	for _, x := range []struct {
		words string
		all   bool
		want  int
	}{
		{"", false, 6}, {"", true, 8}, {"'sent", false, 2}, {"'sent", true, 3}, {"'received", true, 3}, {"'did", false, 1}, {"'event", false, 1},
		{"'bad", false, 2}, {"'iiac", false, 1}, {"'ent-patch::1&3", false, 1}, {"'--mode", false, 1}, {"!'sent", false, 4}, {"!sent", true, 5},
		{"rail0 !received", true, 5}, {"xyzzy", true, 0}, {"!", true, 8},
	} {
		e := env(s, x.words)
		scr := at(80, 24)
		if x.all {
			scr.Do(keymap.All, e)
		}
		want := fmt.Sprintf("%d line", x.want)
		if got := scr.Status(e); !strings.HasPrefix(got, want) {
			t.Errorf("filter %q, all %v: %q, want %d lines", x.words, x.all, got, x.want)
		}
	}
}

func TestRequests(t *testing.T) {
	e := env(tuitest.Testbed(), "")
	s := at(80, 24)
	show := s.Do(keymap.Enter, e)
	want := []screen.Request{screen.Show{Title: "line 8 of the log", Lines: []string{
		"time       2026-11-22 15:04:03.889000, 1.1 s ago", "switch     rail0", "direction  ← received, bad", "means      denied: IIAC, port 40 is in use",
		"", "83 bytes:", `\r\n`, `\n`, `   rail0 2026-11-22 15:04:04\r\n`, `M  20 DENY\r\n`, `   IIAC\r\n`, `   /* port 40 is in use */\r\n`, ";",
	}}}
	if diff := cmp.Diff(want, show); diff != "" {
		t.Errorf("enter (-want +got):\n%s", diff)
	}
	if got := s.Copy(e); !strings.HasPrefix(got, "   rail0 2026") || !strings.HasSuffix(got, "\n;") {
		t.Errorf("copied %q", got)
	}
	s.Do(keymap.Home, e)
	if got, want := s.Copy(e), "ocslab --emulated connect rail0 '1>35,3>33' --mode update"; got != want {
		t.Errorf("copied %q, want %q", got, want)
	}
	if got := s.Subject(e); got != "rail0" {
		t.Errorf("the subject is %q", got)
	}
	// A selection, and what becomes of it.
	s.Do(keymap.Select, e)
	s.Do(keymap.Down, e)
	if got, want := s.Copy(e), "ocslab --emulated connect rail0 '1>35,3>33' --mode update\nrail0: somebody else connected 7>40 (user bench2)"; got != want {
		t.Errorf("copied %q, want %q", got, want)
	}
	if !s.Deselect() || s.Deselect() {
		t.Error("a selection is to be cleared once")
	}
	save, ok := s.Do(keymap.Save, env(tuitest.Testbed(), "'ent-patch"))[0].(screen.SaveAs)
	if !ok || save.Name != "ocslab-log-20261122-150405.txt" {
		t.Fatalf("save: %+v", save)
	}
	const file = "2026-11-22T15:04:03.808000Z\trail0\tsent\t\"ENT-PATCH::1&3,35&33:19;\"\n2026-11-22T15:04:03.862000Z\trail0\tsent\t\"ENT-PATCH::31,40:20;\"\n"
	if diff := cmp.Diff(file, string(save.Content)); diff != "" {
		t.Errorf("saved (-want +got):\n%s", diff)
	}
	if got := s.Do(keymap.Save, env(tuitest.Testbed(), "xyzzy")); len(got) != 1 {
		t.Errorf("nothing to save gives %v", got)
	} else if say, ok := got[0].(screen.Say); !ok || !say.Bad {
		t.Errorf("nothing to save gives %v", got)
	}
}

// TestWindow: a log that forgets its oldest lines, and a filter that changes, give what a new
// screen would show.
func TestWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := at(100, 30)
		first, n := 1, rapid.IntRange(0, 60).Draw(t, "lines")
		words, all := "", false
		whole := many(1, 400).Log
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				first += rapid.IntRange(0, n).Draw(t, "forgotten")
			case 1:
				words = rapid.SampledFrom([]string{"", "rail1", "'sent", "!bad", "'completed 'received", "zzz"}).Draw(t, "filter")
			case 2:
				all = !all
				old.Do(keymap.All, env(&live.State{}, words))
			}
			n = max(0, min(n+rapid.IntRange(-3, 40).Draw(t, "more"), 100, 400-first))
			e := env(&live.State{Log: whole[first-1 : first-1+n]}, words)
			fresh := at(100, 30)
			if all {
				fresh.Do(keymap.All, env(&live.State{}, words))
			}
			if diff := cmp.Diff(draw(fresh, e, 100, 30)+fresh.Status(e), draw(old, e, 100, 30)+old.Status(e)); diff != "" {
				t.Fatalf("a screen that has seen more shows something else (-new +old):\n%s", diff)
			}
		}
	})
}

// TestSizes: any size, any keys, any clicks; nothing breaks, and the cursor is on the screen.
func TestSizes(t *testing.T) {
	states := []*live.State{tuitest.Testbed(), tuitest.Troubled(), tuitest.Empty(), many(1, 150), {}}
	actions := []keymap.Action{keymap.Up, keymap.Down, keymap.PageUp, keymap.PageDown, keymap.Home, keymap.End, keymap.All, keymap.Enter, keymap.Save, keymap.Select, keymap.Left}
	rapid.Check(t, func(t *rapid.T) {
		s := logs.New()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w, h := rapid.IntRange(0, 130).Draw(t, "w"), rapid.IntRange(0, 40).Draw(t, "h")
			e := env(rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom([]string{"", "rail0", "zzz", "!sent"}).Draw(t, "filter"))
			s.Resize(w, h)
			s.Do(rapid.SampledFrom(actions).Draw(t, "action"), e)
			c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
			if z, dx, dy, ok := c.Hit(rapid.IntRange(0, 130).Draw(t, "x"), rapid.IntRange(0, 40).Draw(t, "y")); ok {
				s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H, Wheel: rapid.IntRange(-4, 4).Draw(t, "wheel"), Shift: rapid.Bool().Draw(t, "shift"), Double: rapid.Bool().Draw(t, "double")}, e)
			}
			before := s.Status(e)
			tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
			if s.Status(e) != before {
				t.Fatalf("drawing has changed %q to %q", before, s.Status(e))
			}
			s.Copy(e)
			s.Focus("rail0/3", e)
			s.Deselect()
			if w > 4 && h > 2 && s.Subject(e) != "" {
				seen := false
				c = tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
				for y := range h {
					seen = seen || c.At(0, y).Style.Attr&canvas.Cursor != 0
				}
				if !seen {
					t.Fatalf("%dx%d: the cursor is not on the screen:\n%s", w, h, c)
				}
			}
		}
	})
}

// BenchmarkFrameLog is a frame of 10000 lines with a filter, of which 33 are new in each: 2000
// lines a second, and the log forgets as many.
func BenchmarkFrameLog(b *testing.B) {
	whole := many(1, 2*live.KeepLog).Log
	for _, x := range []struct{ name, words string }{{"all", ""}, {"filter", "rail2 'connect"}, {"none", "'zzz"}} {
		b.Run(x.name, func(b *testing.B) {
			s := at(200, 60)
			c := canvas.New(200, 60)
			i := 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 33) % live.KeepLog
				e := env(&live.State{Log: whole[i : i+live.KeepLog]}, x.words)
				c.Reset(200, 60)
				s.Draw(c.Area(), e)
			}
		})
	}
}

// BenchmarkFilterLog is the first frame of a filter: all 10000 lines are looked at.
func BenchmarkFilterLog(b *testing.B) {
	st := many(1, live.KeepLog)
	s := at(200, 60)
	c := canvas.New(200, 60)
	for i := 0; b.Loop(); i++ {
		c.Reset(200, 60)
		s.Draw(c.Area(), env(st, fmt.Sprintf("rail2 connect %d", i%10)))
	}
}

// Messages stand below each other, in a column of their own where there is room for its name.
func TestRaw_Aligned(t *testing.T) {
	text := draw(at(160, 12), env(many(1, 10), ""), 160, 12)
	lines := strings.Split(text, "\n")
	want := strings.Index(lines[0], "as it was sent")
	if want < 0 {
		t.Fatalf("no heading in\n%s", text)
	}
	n := 0
	for _, l := range lines[1:] {
		if before, _, ok := strings.Cut(l, "│ "); ok {
			if n++; canvas.Width(before)+2 != want {
				t.Errorf("a message at %d, want %d: %q", canvas.Width(before)+2, want, l)
			}
		}
	}
	if n < 4 {
		t.Errorf("%d messages in\n%s", n, text)
	}
}
