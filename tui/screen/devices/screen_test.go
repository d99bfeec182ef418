package devices_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/filter"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/devices"
	"github.com/ocslab/ocslab/tui/tuitest"
)

func env(s *live.State, words string) screen.Env {
	return screen.Env{State: s, Now: tuitest.Now, Filter: filter.Parse(words)}
}

func at(w, h int) *devices.Screen {
	s := devices.New()
	s.Resize(w, h)
	return s
}

// bundle is the invented bundle, with the ends of its calibrations.
func bundle() *live.State {
	s := tuitest.Bundle()
	m := s.Switches[0].Modules
	m[0].Expires = tuitest.Now.Add(353 * 24 * time.Hour)
	m[1].Expires = tuitest.Now.Add(15*24*time.Hour - time.Hour)
	return s
}

// expired is the bundle with a module in fault whose calibration has expired.
func expired() *live.State {
	s := bundle()
	m := &s.Switches[0].Modules[0]
	m.Status, m.Expires, m.Tap = "fault: heater open at S1 of lane 3", tuitest.Now.Add(-50*time.Hour), nil
	return s
}

// lent is a lab whose only switch a run has, emulated, single-sided, without monitors.
func lent() *live.State {
	s := tuitest.Testbed()
	x := *s.Switches[0]
	x.Status, x.Identity.Geometry, x.Emulated = live.Lent, ocs.SingleSided(48), true
	x.Facts, x.Monitored, x.Power, x.PowerAt, x.Alarms = nil, false, nil, time.Time{}, nil
	s.Switches = []*live.Switch{&x}
	return s
}

func TestGolden(t *testing.T) {
	open := []keymap.Action{keymap.Enter}
	for _, x := range []struct {
		name string
		e    screen.Env
		keys []keymap.Action // narrow screens only
		more []keymap.Action
	}{
		{"testbed", env(tuitest.Testbed(), ""), open, nil},
		{"troubled", env(tuitest.Troubled(), ""), nil, nil},
		{"drift", env(tuitest.Troubled(), ""), open, []keymap.Action{keymap.NextSwitch}},
		{"lost", env(tuitest.Troubled(), ""), open, nil},
		{"opening", env(tuitest.Troubled(), "rail2"), open, nil},
		{"bundle", env(bundle(), ""), open, []keymap.Action{keymap.Right, keymap.PageDown}},
		{"expired", env(expired(), ""), open, nil},
		{"lent", env(lent(), ""), open, nil},
		{"empty", env(tuitest.Empty(), ""), nil, nil},
		{"filter", env(tuitest.Troubled(), "'critical"), nil, nil},
		{"nothing", env(tuitest.Troubled(), "'nowhere"), nil, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			tuitest.Golden(t, x.name, func(a canvas.Area) {
				a, status := a.Bottom(1)
				s := at(a.W, a.H)
				if a.W < 100 {
					for _, k := range x.keys {
						s.Do(k, x.e)
					}
				}
				for _, k := range x.more {
					s.Do(k, x.e)
				}
				s.Draw(a, x.e)
				status.Text(0, 0, "["+s.Status(x.e)+"]", canvas.S(canvas.Dim))
			})
		})
	}
}

// TestRequests: which keys ask for what.
func TestRequests(t *testing.T) {
	e := env(tuitest.Troubled(), "")
	patch := func(name string) []screen.Request {
		return []screen.Request{screen.Goto{Screen: keymap.Screen1, Subject: name}}
	}
	wide, narrow := at(120, 40), at(80, 24)
	for _, x := range []struct {
		name    string
		s       *devices.Screen
		act     keymap.Action
		want    []screen.Request
		subject string
	}{
		{"wide, enter at one that is lost", wide, keymap.Enter, []screen.Request{screen.Show{Title: "rail0 is lost", Lines: []string{
			"dial tcp 192.0.2.10:3082: connect: no route to host", "", "address  tl1://admin@192.0.2.10:3082", "o shows its patch field, 6 the log.",
		}}}, "rail0"},
		{"its patch field", wide, keymap.Open, patch("rail0"), "rail0"},
		{"down", wide, keymap.Down, nil, "rail1"},
		{"open", wide, keymap.Open, patch("rail1"), "rail1"},
		{"the last", wide, keymap.End, nil, "rail2"},
		{"no further", wide, keymap.Down, nil, "rail2"},
		{"around", wide, keymap.NextSwitch, nil, "rail0"},
		{"and back", wide, keymap.PrevSwitch, nil, "rail2"},
		{"the first", wide, keymap.Home, nil, "rail0"},
		{"narrow, enter opens", narrow, keymap.Enter, nil, "rail0"},
		{"down scrolls", narrow, keymap.Down, nil, "rail0"},
		{"next switch", narrow, keymap.NextSwitch, nil, "rail1"},
		{"enter once more", narrow, keymap.Enter, patch("rail1"), "rail1"},
	} {
		if diff := cmp.Diff(x.want, x.s.Do(x.act, e)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
		if got := x.s.Subject(e); got != x.subject {
			t.Errorf("%s: the cursor is on %q, want %q", x.name, got, x.subject)
		}
	}
	if !narrow.Deselect() || narrow.Deselect() {
		t.Error("details are to be closed once")
	}
	wide.Focus("rail2/7", e)
	if got := wide.Subject(e); got != "rail2" {
		t.Errorf("focus on a port: %q", got)
	}
	wide.Focus("gpu1/ens1f0", e)
	if got := wide.Subject(e); got != "rail2" {
		t.Errorf("focus on what is not there: %q", got)
	}
	// A switch that goes leaves the cursor near where it was.
	few := *e.State
	few.Switches = few.Switches[:2]
	if got := wide.Subject(env(&few, "")); got != "rail1" {
		t.Errorf("the cursor is on %q", got)
	}
}

// TestMouse: a click at a switch, at a module, and the wheel.
func TestMouse(t *testing.T) {
	e := env(bundle(), "")
	s := at(120, 24)
	c := tuitest.Draw(120, 24, func(a canvas.Area) { s.Draw(a, e) })
	click := func(c *canvas.Canvas, text string, m screen.Mouse) []screen.Request {
		t.Helper()
		for y, line := range strings.Split(c.String(), "\n") {
			i := strings.Index(line, text)
			if i < 0 {
				continue
			}
			z, _, _, ok := c.Hit(canvas.Width(line[:i]), y)
			if !ok {
				t.Fatalf("nothing to click at %q", text)
			}
			m.ID = z.ID
			return s.Mouse(m, e)
		}
		t.Fatalf("%q is not on the screen:\n%s", text, c)
		return nil
	}
	click(c, "module 2", screen.Mouse{})
	if got := s.Status(e); !strings.Contains(got, "module 2 of 2") {
		t.Errorf("status is %q", got)
	}
	click(c, "serial", screen.Mouse{Wheel: 3})
	if got := tuitest.Draw(120, 24, func(a canvas.Area) { s.Draw(a, e) }).String(); strings.Contains(got, "ocslab OCSTrx-8x112G") {
		t.Errorf("the details were not scrolled:\n%s", got)
	}
	if got := click(c, "2 modules", screen.Mouse{Double: true}); len(got) != 1 {
		t.Errorf("a double click asks for %v", got)
	}
}

func TestCopy(t *testing.T) {
	e := env(tuitest.Troubled(), "")
	s := at(80, 24)
	s.Do(keymap.NextSwitch, e)
	tuitest.Compare(t, "copied.txt", s.Copy(e)+"\n")
	if got := at(80, 24).Copy(env(&live.State{}, "")); got != "" {
		t.Errorf("of nothing is copied %q", got)
	}
}

// TestSizes: any size, any keys, any clicks; drawing changes nothing.
func TestSizes(t *testing.T) {
	strange := tuitest.Troubled()
	strange.Switches = append(strange.Switches, &live.Switch{}, &live.Switch{Name: "\x1b[31mü漢字", Status: "odd", Err: errors.New(strings.Repeat("x", 300)),
		Modules: []live.Module{{}, {Heater: []live.Reading{{Part: 7}, {Part: -1}}}}, Alarms: []live.Alarm{{}}, Drift: []live.Drift{{}}})
	states := []*live.State{tuitest.Testbed(), tuitest.Troubled(), bundle(), expired(), tuitest.Large(64, 8), strange, {}}
	actions := []keymap.Action{keymap.Up, keymap.Down, keymap.Left, keymap.Right, keymap.PageUp, keymap.PageDown, keymap.Home, keymap.End, keymap.Enter, keymap.NextSwitch, keymap.PrevSwitch, keymap.Open}
	rapid.Check(t, func(t *rapid.T) {
		s := devices.New()
		for range rapid.IntRange(1, 20).Draw(t, "steps") {
			w, h := rapid.IntRange(0, 150).Draw(t, "w"), rapid.IntRange(0, 50).Draw(t, "h")
			e := env(rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom([]string{"", "rail", "zzz"}).Draw(t, "filter"))
			s.Resize(w, h)
			s.Do(rapid.SampledFrom(actions).Draw(t, "action"), e)
			c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
			if z, dx, dy, ok := c.Hit(rapid.IntRange(0, 150).Draw(t, "x"), rapid.IntRange(0, 50).Draw(t, "y")); ok {
				s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H, Wheel: rapid.IntRange(-4, 4).Draw(t, "wheel"), Double: rapid.Bool().Draw(t, "double")}, e)
			}
			before := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) }).String() + s.Status(e)
			s.Copy(e)
			if after := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) }).String() + s.Status(e); before != after {
				t.Fatalf("drawing has changed what is drawn:\n%s\n%s", before, after)
			}
			if rapid.Bool().Draw(t, "close") {
				s.Deselect()
			}
			s.Focus("rail1", e)
		}
	})
}

// BenchmarkFrameDevices is a frame of a bundle, and of a switch with 384 ports.
func BenchmarkFrameDevices(b *testing.B) {
	for _, x := range []struct {
		name string
		st   *live.State
	}{{"bundle", bundle()}, {"large", tuitest.Large(384, 64)}} {
		b.Run(x.name, func(b *testing.B) {
			s := at(200, 60)
			c := canvas.New(200, 60)
			e := env(x.st, "")
			b.ReportAllocs()
			for b.Loop() {
				c.Reset(200, 60)
				s.Draw(c.Area(), e)
			}
		})
	}
}
