package patch_test

import (
	"maps"
	"slices"
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
	"github.com/ocslab/ocslab/tui/screen/patch"
	"github.com/ocslab/ocslab/tui/tuitest"
)

func mustMap(t *testing.T, text string) ocs.Map {
	t.Helper()
	m, err := ocs.ParseMap(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// sized is a screen of w x h with its cursor on a subject.
func sized(w, h int, e screen.Env, subject string) *patch.Screen {
	s := patch.New()
	s.Resize(w, h)
	if subject != "" {
		s.Focus(subject, e)
	}
	return s
}

// told is the text that a request says, or what it wishes for, in short.
func told(requests []screen.Request) string {
	var words []string
	for _, r := range requests {
		switch r := r.(type) {
		case screen.Propose:
			words = append(words, "propose "+tuitest.Title(r.Wish))
		case screen.Say:
			words = append(words, "say "+r.Text)
		case screen.Ask:
			words = append(words, "ask "+r.Title)
		default:
			words = append(words, "?")
		}
	}
	return strings.Join(words, "; ")
}

// goTo answers what the go-to key asks for.
func goTo(t *testing.T, s *patch.Screen, e screen.Env, answer string) []screen.Request {
	t.Helper()
	requests := s.Do(keymap.GoTo, e)
	if len(requests) != 1 {
		t.Fatalf("go-to gave %v", requests)
	}
	return requests[0].(screen.Ask).Then(answer)
}

// Ensure each key asks for what it is for, and the safe way: nothing is taken over by itself.
func TestDo(t *testing.T) {
	const (
		right, down, left = keymap.Right, keymap.Down, keymap.Left
		space, enter      = keymap.Select, keymap.Enter
	)
	tests := []struct {
		name string
		at   string // what is typed after '
		keys []keymap.Action
		want string
	}{
		{"enter on a free pair", "5>41", []keymap.Action{enter}, "propose connect rail0 5>41"},
		{"enter on a busy pair", "1>33", []keymap.Action{enter}, "propose connect rail0 1>33"},
		{"enter on a circuit", "1>35", []keymap.Action{enter}, "propose disconnect rail0 1"},
		{"c on the pair under the cursor", "5>41", []keymap.Action{keymap.Connect}, "propose connect rail0 5>41"},
		{"c on a circuit", "1>35", []keymap.Action{keymap.Connect}, "say 1>35: connected already"},
		{"c on two pairs", "5>41", []keymap.Action{space, right, down, space, keymap.Connect}, "propose connect rail0 5>41,6>42"},
		{"c on pairs that share a port", "5>41", []keymap.Action{space, right, space, keymap.Connect}, "say 5>42: ingress 5 is busy with 5>41 of the same map"},
		{"c on two ports", "5>33", []keymap.Action{left, space, keymap.Up, keymap.Up, keymap.Up, keymap.Up, right, keymap.Up, right, space, keymap.Connect}, "propose connect rail0 5>34"},
		{"c on one port", "5>33", []keymap.Action{left, space, keymap.Connect}, "say as many egress as ingress ports have to be selected"},
		{"c on a number", "5>33", []keymap.Action{left, keymap.Connect}, "say a pair is needed: move to one, or select an ingress and an egress port"},
		{"enter on two numbers", "5>33", []keymap.Action{left, enter, keymap.Up, keymap.Up, keymap.Up, keymap.Up, right, keymap.Up, right, right, right, enter}, "propose connect rail0 5>36"},
		{"enter on a number when more are selected", "5>33", []keymap.Action{left, space, down, space, keymap.Up, keymap.Up, keymap.Up, keymap.Up, keymap.Up, right, keymap.Up, right, right, right, enter}, ""},
		{"enter on the number of a circuit goes there", "1>33", []keymap.Action{left, enter, enter}, "propose disconnect rail0 1"},
		{"d on a circuit", "3>33", []keymap.Action{keymap.Disconnect}, "propose disconnect rail0 3"},
		{"d on a free pair", "5>41", []keymap.Action{keymap.Disconnect}, "say 5>41: not connected"},
		{"d on what is selected", "1>35", []keymap.Action{space, down, left, space, keymap.Disconnect}, "propose disconnect rail0 1,2"},
		{"d on free pairs that are selected", "5>41", []keymap.Action{space, keymap.Disconnect}, "say nothing that is selected is connected"},
		{"d on all", "5>41", []keymap.Action{keymap.SelectAll, keymap.Disconnect}, "propose disconnect rail0 1-3,7"},
		{"all, and none again", "5>41", []keymap.Action{keymap.SelectAll, keymap.SelectAll, keymap.Connect}, "propose connect rail0 5>41"},
		{"L on a circuit of two NICs", "1>35", []keymap.Action{keymap.Link}, "propose link [gpu1/ens1f0 gpu3/ens1f0]"},
		{"L on a pair of one NIC", "1>41", []keymap.Action{keymap.Link}, "say two NICs have to be selected, by their ports; these are 1"},
		{"L on two numbers", "1>33", []keymap.Action{left, space, down, space, keymap.Link}, "propose link [gpu1/ens1f0 gpu2/ens1f0]"},
		{"K", "2>41", []keymap.Action{keymap.Unlink}, "propose unlink [gpu2/ens1f0]"},
		{"K without a NIC", "9>41", []keymap.Action{keymap.Unlink}, "say there is no NIC here"},
		{"list: enter on a circuit", "", []keymap.Action{keymap.View, down, enter}, "propose disconnect rail0 2"},
		{"list: two free ports", "", []keymap.Action{keymap.View, keymap.End, enter, keymap.Up, enter}, "propose connect rail0 4>36"},
		{"list: d on what is selected", "", []keymap.Action{keymap.View, space, down, down, space, keymap.Disconnect}, "propose disconnect rail0 1,3"},
		{"list: all ports", "", []keymap.Action{keymap.View, keymap.All, keymap.SelectAll, keymap.Disconnect}, "propose disconnect rail0 1-3,7"},
	}
	e := env(tuitest.Testbed())
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := sized(80, 24, e, "")
			if test.at != "" {
				if got := goTo(t, s, e, test.at); got != nil {
					t.Fatalf("go to %s: %s", test.at, told(got))
				}
			}
			if got := told(do(s, e, test.keys...)); got != test.want {
				t.Errorf("%s\nwant %s", got, test.want)
			}
		})
	}
}

// Ensure nothing is proposed that the switch cannot do, and that it is said why.
func TestDo_CannotBe(t *testing.T) {
	tests := []struct {
		state *live.State
		at    string
		want  string
	}{
		{tuitest.Bundle(), "1>18", "say 1>18: light from 1 cannot be sent to 18"},
		{singleSided(), "4>4", "say 4>4: a port cannot be joined to itself"},
	}
	for _, test := range tests {
		e := env(test.state)
		s := sized(80, 24, e, "")
		goTo(t, s, e, test.at)
		for _, act := range []keymap.Action{keymap.Enter, keymap.Connect} {
			if got := told(do(s, e, act)); got != test.want {
				t.Errorf("%s at %s: %s, want %s", act, test.at, got, test.want)
			}
		}
	}
}

// Ensure ports of a single-sided switch can be joined whichever end they are, and a circuit that
// uses one the other way round is named as in the way.
func TestDo_SingleSided(t *testing.T) {
	e := env(singleSided())
	s := sized(120, 40, e, "")
	goTo(t, s, e, "1>1")
	got := told(do(s, e, keymap.Left, keymap.Select, keymap.Down, keymap.Select, keymap.Connect))
	if want := "propose connect rail0 1>2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	s.Deselect()
	goTo(t, s, e, "7>9") // 7 is the egress of 3>7
	if text := drawn(s, e, 120, 40); !strings.Contains(text, "7>9 busy") || !strings.Contains(text, "3>7") {
		t.Errorf("does not say that 3>7 is in the way of 7>9:\n%s", text)
	}
}

func drawn(s *patch.Screen, e screen.Env, w, h int) string {
	return tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) }).String()
}

// Ensure what is typed is found: ports, pairs, NICs by a part of their name, labels.
func TestGoTo(t *testing.T) {
	tests := []struct{ text, subject, status, said string }{
		{"12", "rail0/12", "12>33", ""},
		{"12>40", "rail0/12", "12>40", ""},
		{"40", "rail0/7", "7>40", ""}, // its circuit
		{"45", "rail0/1", "1>45", ""},
		{"rail0/3", "rail0/3", "3>33", ""},
		{"gpu3", "rail0/3", "3>33", ""},
		{"GPU4", "rail0/4", "4>33", ""},
		{"laser", "rail0/7", "7>40", ""},
		{"power meter", "rail0/7", "7>40", ""},
		{"", "rail0/1", "1>33", ""},
		{"99", "rail0/1", "1>33", "say rail0 has no port 99"},
		{"1>99", "rail0/1", "1>33", "say rail0 has no 1>99"},
		{"40>12", "rail0/1", "1>33", "say rail0 has no 40>12"},
		{"rail0/99", "rail0/1", "1>33", "say rail0 has no port 99"},
		{"xyz", "rail0/1", "1>33", "say no port, NIC or label like xyz"},
	}
	e := env(tuitest.Testbed())
	for _, test := range tests {
		s := sized(80, 24, e, "")
		if got := told(goTo(t, s, e, test.text)); got != test.said {
			t.Errorf("%q: %q, want %q", test.text, got, test.said)
		}
		if got := s.Subject(e); got != test.subject {
			t.Errorf("%q: on %s, want %s", test.text, got, test.subject)
		}
		if got, _, _ := strings.Cut(s.Status(e), ","); got != test.status {
			t.Errorf("%q: %s, want %s", test.text, got, test.status)
		}
	}
}

// Ensure what other screens name is found, and what is not there changes nothing.
func TestFocus(t *testing.T) {
	state := *tuitest.Troubled()
	state.Moves = append(slices.Clone(state.Moves), &live.Move{Number: 9, Reports: map[string]ocs.Report{
		"rail1": {Change: ocs.Change{Remove: mustMap(t, "2>9"), Add: mustMap(t, "2>11")}}}})
	e := env(&state)
	for _, test := range []struct{ subject, want string }{
		{"rail1", "rail1/1"},
		{"rail1/2", "rail1/2"},
		{"rail1/11", "rail1/2"},
		{"gpu2/ens1f1", "rail1/2"},
		{"move/9", "rail1/2"},
		{"rail2", "rail2"}, // has no ports yet
		{"rail2/7", "rail0/2"},
		{"rail7", "rail0/2"},
		{"rail7/1", "rail0/2"},
		{"move/77", "rail0/2"},
		{"", "rail0/2"},
	} {
		s := sized(80, 24, e, "rail0/2")
		s.Focus(test.subject, e)
		if got := s.Subject(e); got != test.want {
			t.Errorf("%s: on %s, want %s", test.subject, got, test.want)
		}
	}
}

// Ensure each switch keeps its cursor and selection while others are looked at.
func TestSwitches(t *testing.T) {
	e := env(tuitest.Troubled())
	s := sized(80, 24, e, "rail0/2")
	do(s, e, keymap.Select, keymap.NextSwitch)
	if got := s.Subject(e); got != "rail1/1" {
		t.Errorf("after next: %s", got)
	}
	if strings.Contains(s.Status(e), "selected") {
		t.Errorf("the selection of another switch counts: %s", s.Status(e))
	}
	do(s, e, keymap.NextSwitch, keymap.NextSwitch)
	if got := s.Subject(e); got != "rail0/2" {
		t.Errorf("around: %s", got)
	}
	if !strings.Contains(s.Status(e), "1 selected") {
		t.Errorf("selection lost: %s", s.Status(e))
	}
	if !s.Deselect() || s.Deselect() {
		t.Error("Deselect does not report what there was")
	}
}

// Ensure a filter keeps hands off what it hides.
func TestFilter(t *testing.T) {
	e := env(tuitest.Testbed())
	e.Filter = filter.Parse("'gpu2")
	s := sized(80, 24, e, "")
	if got, want := told(do(s, e, keymap.SelectAll, keymap.Disconnect)), "propose disconnect rail0 2"; got != want {
		t.Errorf("matrix: %s, want %s", got, want)
	}
	s = sized(80, 24, e, "")
	if got, want := told(do(s, e, keymap.View, keymap.Enter)), "propose disconnect rail0 2"; got != want {
		t.Errorf("list: %s, want %s", got, want)
	}
	e.Filter = filter.Parse("nothing-is-called-so")
	for _, b := range keymap.Bindings() {
		if b.Action == keymap.GoTo || b.Action == keymap.View { // asks; shows what the filter does not hide
			continue
		}
		if got := do(s, e, b.Action); got != nil {
			t.Errorf("%s with an empty list: %s", b.Action, told(got))
		}
	}
	if text := drawn(s, e, 80, 24); !strings.Contains(text, "Nothing matches nothing-is-called-so") {
		t.Errorf("does not say why the list is empty:\n%s", text)
	}
}

// Ensure rows come in the order of the column that was chosen, what has no value last.
func TestSort(t *testing.T) {
	e := env(tuitest.Testbed())
	s := sized(120, 40, e, "")
	do(s, e, keymap.View)
	first := func() string {
		do(s, e, keymap.Home)
		return strings.SplitN(s.Copy(e), "\t", 3)[1]
	}
	want := []string{"1>35", "3>33", "1>35", "3>33", "1>35"} // ingress, egress, from, to, in dBm
	reversed := []string{"7>40", "7>40", "7>40", "7>40", "7>40"}
	for i, name := range []string{"ingress", "egress", "from", "to", "in dBm"} {
		do(s, e, keymap.Sort)
		if i == 4 {
			want[i] = "7>40"
			reversed[i] = "1>35"
		}
		if got := first(); got != want[i] {
			t.Errorf("by %s: %s first, want %s", name, got, want[i])
		}
		do(s, e, keymap.Reverse)
		if got := first(); got != reversed[i] {
			t.Errorf("by %s, the other way: %s first, want %s", name, got, reversed[i])
		}
		do(s, e, keymap.Reverse)
	}
}

// Ensure the lines that are copied have all there is.
func TestCopy(t *testing.T) {
	e := env(tuitest.Testbed())
	s := sized(80, 24, e, "gpu1/ens1f0")
	goTo(t, s, e, "1>35")
	want := "rail0\t1>35\tfrom gpu1/ens1f0\tto gpu3/ens1f0\tin dBm -1.30\tout dBm -2.61\tloss dB 1.31\tlight\tus #12"
	if diff := cmp.Diff(want, s.Copy(e)); diff != "" {
		t.Error(diff)
	}
	do(s, e, keymap.SelectAll)
	if got := strings.Count(s.Copy(e), "\n"); got != 3 {
		t.Errorf("%d line ends in what is selected, want 3:\n%s", got, s.Copy(e))
	}
}

// Ensure signs say how it stands with a circuit: each is seen in the matrix and in the list.
func TestSigns(t *testing.T) {
	tests := []struct {
		sign   string
		change func(sw *live.Switch)
	}{
		{"●", func(*live.Switch) {}},
		{"○", func(sw *live.Switch) { sw.Power[35] = -60 }},
		{"◆", func(sw *live.Switch) { delete(sw.Power, 35) }},
		{"◆", func(sw *live.Switch) { sw.PowerAt = tuitest.Now.Add(-time.Minute) }},
		{"◌", func(sw *live.Switch) { sw.MapAt = tuitest.Now.Add(-time.Minute) }},
		{"◌", func(sw *live.Switch) { sw.Status = live.Lost }},
		{"×", func(sw *live.Switch) { sw.Protected = map[ocs.Port]bool{1: true} }},
		{"○", func(sw *live.Switch) { sw.Protected, sw.Power[35] = map[ocs.Port]bool{1: true}, -60 }},
		{"!", func(sw *live.Switch) {
			sw.Drift = []live.Drift{{At: tuitest.Now.Add(-59 * time.Second), Change: ocs.Change{Add: sw.Map}}}
		}},
		{"●", func(sw *live.Switch) {
			sw.Drift = []live.Drift{{At: tuitest.Now.Add(-61 * time.Second), Change: ocs.Change{Add: sw.Map}}}
		}},
	}
	for i, test := range tests {
		state := tuitest.Testbed()
		sw := *state.Switches[0]
		sw.Power = maps.Clone(sw.Power)
		test.change(&sw)
		state.Switches[0] = &sw
		e := env(state)
		s := sized(120, 40, e, "")
		goTo(t, s, e, "1>35")
		if text := drawn(s, e, 120, 40); !strings.Contains(text, " "+test.sign+" 1>35 ") {
			t.Errorf("%d: no %s in the matrix's pane:\n%s", i, test.sign, text)
		}
		c := tuitest.Draw(120, 40, func(a canvas.Area) { s.Draw(a, e) })
		if got := cursorCell(c); string(got.Rune) != test.sign {
			t.Errorf("%d: %c under the cursor, want %s", i, got.Rune, test.sign)
		}
		do(s, e, keymap.View)
		if text := drawn(s, e, 120, 40); !strings.Contains(text, "  "+test.sign+" ") {
			t.Errorf("%d: no %s in the list:\n%s", i, test.sign, text)
		}
	}
}

// Ensure a circuit there is reason to look at is seen among others also where a character stands for
// many, without colours.
func TestSigns_Density(t *testing.T) {
	for _, test := range []struct {
		sign   rune
		change func(sw *live.Switch, c ocs.CrossConnect)
	}{
		{'○', func(sw *live.Switch, c ocs.CrossConnect) { sw.Power[c.Egress] = -60 }},
		{'!', func(sw *live.Switch, c ocs.CrossConnect) {
			sw.Drift = []live.Drift{{At: tuitest.Now, Change: ocs.Change{Add: ocs.MustMap(c)}}}
		}},
	} {
		state := tuitest.Large(384, 64)
		count := func() int {
			s := sized(120, 40, env(state), "")
			n := 0
			for _, line := range strings.Split(drawn(s, env(state), 120, 40), "\n")[3:36] {
				field, _, _ := strings.Cut(line, "  │") // the pane
				n += strings.Count(field, string(test.sign))
			}
			return n
		}
		if n := count(); n != 0 {
			t.Errorf("%d x %c where all is well", n, test.sign)
		}
		c, _ := state.Switches[0].Map.EgressOf(200)
		test.change(state.Switches[0], ocs.CrossConnect{Ingress: 200, Egress: c})
		if n := count(); n != 1 {
			t.Errorf("%d x %c, want 1", n, test.sign)
		}
	}
}

// cursorCell is the first cell with the cursor, a zero cell if there is none.
func cursorCell(c *canvas.Canvas) canvas.Cell {
	for y := range c.H {
		for _, cell := range c.Row(y) {
			if cell.Style.Attr&canvas.Cursor != 0 {
				return cell
			}
		}
	}
	return canvas.Cell{}
}

// Ensure drawing changes nothing of the screen or the state.
func TestDraw_Pure(t *testing.T) {
	e := env(tuitest.Large(64, 8))
	s := sized(80, 24, e, "core/40")
	before := drawn(s, e, 80, 24)
	for _, size := range [][2]int{{1, 1}, {200, 60}, {40, 90}} {
		drawn(s, e, size[0], size[1])
	}
	if diff := cmp.Diff(before, drawn(s, e, 80, 24)); diff != "" {
		t.Error(diff)
	}
}

// states are labs to try things on.
func states() []*live.State {
	unknown := tuitest.Testbed()
	sw := *unknown.Switches[0]
	sw.Identity.Geometry = ocs.Geometry{}
	unknown.Switches = []*live.Switch{&sw}
	based := tuitest.Testbed()
	other := *based.Switches[0]
	other.Identity.Geometry = ocs.Geometry{Ingress: 20, Egress: 300, IngressBase: 1001, EgressBase: 2001}
	other.Map = ocs.MustMap(ocs.CrossConnect{Ingress: 1003, Egress: 2200}, ocs.CrossConnect{Ingress: 1020, Egress: 2001})
	based.Switches = []*live.Switch{&other}
	return []*live.State{tuitest.Testbed(), tuitest.Large(384, 64), tuitest.Troubled(), tuitest.Bundle(), tuitest.Empty(), singleSided(), unknown, based, {}}
}

var acts = []keymap.Action{keymap.Up, keymap.Down, keymap.Left, keymap.Right, keymap.PageUp, keymap.PageDown, keymap.Home, keymap.End,
	keymap.Select, keymap.SelectAll, keymap.Sort, keymap.Reverse, keymap.NextSwitch, keymap.PrevSwitch, keymap.View, keymap.ZoomIn, keymap.ZoomOut,
	keymap.ZoomFit, keymap.All, keymap.Enter, keymap.Connect, keymap.Disconnect, keymap.Link, keymap.Unlink}

// Ensure that at any size, after any keys and clicks, it draws, the cursor is in sight where there
// is room for a field, and everything answers.
func TestAnything(t *testing.T) {
	all := states()
	rapid.Check(t, func(t *rapid.T) {
		e := env(rapid.SampledFrom(all).Draw(t, "state"))
		e.Filter = filter.Parse(rapid.SampledFrom([]string{"", "", "gpu1", "node00", "none such"}).Draw(t, "filter"))
		s := patch.New()
		t.Repeat(map[string]func(*rapid.T){
			"resize": func(t *rapid.T) { s.Resize(rapid.IntRange(0, 210).Draw(t, "w"), rapid.IntRange(0, 70).Draw(t, "h")) },
			"key":    func(t *rapid.T) { s.Do(rapid.SampledFrom(acts).Draw(t, "act"), e) },
			"state": func(t *rapid.T) {
				e.State = rapid.SampledFrom(all).Draw(t, "state")
			},
			"focus": func(t *rapid.T) {
				s.Focus(rapid.SampledFrom([]string{"rail0", "rail0/7", "core/300", "core/768", "gpu2/ens1f0", "move/7", "bundle/64"}).Draw(t, "subject"), e)
			},
			"mouse": func(t *rapid.T) {
				w, h := rapid.IntRange(1, 200).Draw(t, "w"), rapid.IntRange(1, 60).Draw(t, "h")
				s.Resize(w, h)
				c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
				z, dx, dy, ok := c.Hit(rapid.IntRange(0, w-1).Draw(t, "x"), rapid.IntRange(0, h-1).Draw(t, "y"))
				if ok {
					s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H, Wheel: rapid.IntRange(-3, 3).Draw(t, "wheel"),
						Side: rapid.IntRange(-2, 2).Draw(t, "side"), Double: rapid.Bool().Draw(t, "double"), Shift: rapid.Bool().Draw(t, "shift")}, e)
				}
			},
			"": func(t *rapid.T) {
				w, h := rapid.IntRange(1, 210).Draw(t, "w"), rapid.IntRange(1, 70).Draw(t, "h")
				c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
				subject := s.Subject(e)
				s.Status(e)
				s.Copy(e)
				if w >= 40 && h >= 10 && strings.Contains(subject, "/") && cursorCell(c) == (canvas.Cell{}) {
					t.Fatalf("no cursor in %dx%d on %s:\n%s", w, h, subject, c)
				}
			},
		})
	})
}

// Ensure a click where a circuit is drawn moves the cursor onto a circuit there, at any size, zoom and
// position.
func TestMouse_HitsWhatIsSeen(t *testing.T) {
	all := []*live.State{tuitest.Testbed(), tuitest.Large(384, 64), tuitest.Bundle(), singleSided()}
	rapid.Check(t, func(t *rapid.T) {
		e := env(rapid.SampledFrom(all).Draw(t, "state"))
		sw := e.State.Switches[0]
		w, h := rapid.IntRange(20, 200).Draw(t, "w"), rapid.IntRange(8, 60).Draw(t, "h")
		s := sized(w, h, e, "")
		for range rapid.IntRange(0, 30).Draw(t, "keys") {
			s.Do(rapid.SampledFrom([]keymap.Action{keymap.Down, keymap.Right, keymap.PageDown, keymap.End, keymap.Home, keymap.ZoomIn, keymap.ZoomOut, keymap.ZoomFit}).Draw(t, "act"), e)
		}
		c := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
		type spot struct{ x, y int }
		var spots []spot
		for y := 1; y < h-1; y++ {
			for x := range w {
				if z, _, _, ok := c.Hit(x, y); ok && patch.InGrid(z.ID) && (strings.ContainsRune("●○◆×!", c.At(x, y).Rune) || c.At(x, y).Rune > 0x2800 && c.At(x, y).Rune < 0x2900) {
					spots = append(spots, spot{x, y})
				}
			}
		}
		if len(spots) == 0 {
			t.Skip("no circuit in sight")
		}
		at := rapid.SampledFrom(spots).Draw(t, "spot")
		z, dx, dy, _ := c.Hit(at.x, at.y)
		s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H}, e)
		pair, _, _ := strings.Cut(s.Status(e), ",")
		m, err := ocs.ParseMap(pair)
		if err != nil || m.Len() != 1 || m.Minus(sw.Map).Len() != 0 {
			t.Fatalf("click at %d,%d is on %q, no circuit:\n%s", at.x, at.y, pair, c)
		}
		after := tuitest.Draw(w, h, func(a canvas.Area) { s.Draw(a, e) })
		if after.At(at.x, at.y).Style.Attr&canvas.Cursor == 0 {
			t.Fatalf("click at %d,%d on %s: the cursor is elsewhere:\n%s", at.x, at.y, pair, after)
		}
		if got := told(s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H, Double: true}, e)); !strings.HasPrefix(got, "propose disconnect") {
			t.Fatalf("double click on %s: %s", pair, got)
		}
	})
}

// Ensure clicks on switches, columns and rows do what they look like.
func TestMouse(t *testing.T) {
	e := env(tuitest.Troubled())
	s := sized(80, 24, e, "")
	click(t, s, e, "rail1", screen.Mouse{})
	if got := s.Subject(e); got != "rail1/1" {
		t.Errorf("click on a switch: %s", got)
	}
	do(s, e, keymap.View)
	click(t, s, e, "egress", screen.Mouse{})
	click(t, s, e, "egress", screen.Mouse{})
	do(s, e, keymap.Home)
	if got := s.Subject(e); got != "rail1/2" {
		t.Errorf("by egress downwards, %s is first", got)
	}
	click(t, s, e, "gpu1/ens1f1  gpu2", screen.Mouse{Shift: true})
	if got := s.Status(e); !strings.Contains(got, "1 selected") {
		t.Errorf("shift+click: %s", got)
	}
	if got, want := told(click(t, s, e, "gpu1/ens1f1  gpu2", screen.Mouse{Double: true})), "propose disconnect rail1 1"; got != want {
		t.Errorf("double click: %s, want %s", got, want)
	}
}

// click clicks where a text is drawn first.
func click(t *testing.T, s *patch.Screen, e screen.Env, text string, m screen.Mouse) []screen.Request {
	t.Helper()
	c := tuitest.Draw(80, 24, func(a canvas.Area) { s.Draw(a, e) })
	for y, line := range strings.Split(c.String(), "\n") {
		before, _, found := strings.Cut(line, text)
		if !found {
			continue
		}
		z, dx, dy, ok := c.Hit(canvas.Width(before), y)
		if !ok {
			t.Fatalf("%q does not react", text)
		}
		m.ID, m.DX, m.DY, m.W, m.H = z.ID, dx, dy, z.W, z.H
		return s.Mouse(m, e)
	}
	t.Fatalf("no %q in\n%s", text, c)
	return nil
}

// Ensure the wheel pans, and the cursor stays in sight.
func TestMouse_Wheel(t *testing.T) {
	e := env(tuitest.Large(384, 64))
	s := sized(80, 24, e, "")
	for range 9 {
		do(s, e, keymap.ZoomIn)
	}
	first := s.Subject(e)
	c := tuitest.Draw(80, 24, func(a canvas.Area) { s.Draw(a, e) })
	z, dx, dy, ok := c.Hit(30, 8)
	if !ok {
		t.Fatal("the field does not react")
	}
	s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H, Wheel: 30}, e)
	if got := s.Subject(e); got == first || cursorCell(tuitest.Draw(80, 24, func(a canvas.Area) { s.Draw(a, e) })) == (canvas.Cell{}) {
		t.Errorf("after 30 lines on %s, in sight or not", got)
	}
	if got := s.Subject(e); got != "core/31" {
		t.Errorf("on %s, want the first in sight", got)
	}
}

// Ensure a click does not shift what is seen, also when the terminal has become smaller and the
// window has followed the cursor.
func TestMouse_ClickAfterResize(t *testing.T) {
	e := env(tuitest.Large(384, 64))
	s := sized(150, 50, e, "core/200")
	for range 9 {
		do(s, e, keymap.ZoomIn)
	}
	for range 20 { // to the edges of the window, and beyond
		do(s, e, keymap.Right, keymap.Down, keymap.Down)
	}
	s.Resize(60, 20)
	c := tuitest.Draw(60, 20, func(a canvas.Area) { s.Draw(a, e) })
	x, y := 59, 19
	for z, _, _, ok := c.Hit(x, y); !ok || !patch.InGrid(z.ID); z, _, _, ok = c.Hit(x, y) {
		if x--; x < 0 {
			x, y = 59, y-1
		}
	}
	for z, _, _, ok := c.Hit(x, y); ok && patch.InGrid(z.ID); z, _, _, ok = c.Hit(x, y) {
		x, y = x-1, y-1
	}
	x, y = x+1, y+1
	z, dx, dy, _ := c.Hit(x, y)
	s.Mouse(screen.Mouse{ID: z.ID, DX: dx, DY: dy, W: z.W, H: z.H}, e)
	after := tuitest.Draw(60, 20, func(a canvas.Area) { s.Draw(a, e) })
	if after.At(x, y).Style.Attr&canvas.Cursor == 0 {
		t.Errorf("click at %d,%d: the cursor is elsewhere:\n%s\nbefore:\n%s", x, y, after, c)
	}
}

// Ensure a circuit is named by the port that is in no other, where both sides have the same
// numbers.
func TestDo_SameNumbers(t *testing.T) {
	state := tuitest.Testbed()
	sw := *state.Switches[0]
	sw.Identity.Geometry = ocs.Geometry{Ingress: 8, Egress: 8, IngressBase: 1, EgressBase: 1}
	sw.Map = mustMap(t, "1>2,2>3")
	state.Switches, state.NICs = []*live.Switch{&sw}, nil
	e := env(state)
	for at, want := range map[string]string{"1>2": "propose disconnect rail0 1", "2>3": "propose disconnect rail0 3"} {
		s := sized(80, 24, e, "")
		goTo(t, s, e, at)
		if got := told(do(s, e, keymap.Enter)); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
		if got := told(do(s, e, keymap.Disconnect)); got != want {
			t.Errorf("d on %s: %s, want %s", at, got, want)
		}
	}
}

// Ensure the cursor does not jump when the circuit it is on goes away.
func TestCursor_Stays(t *testing.T) {
	state := tuitest.Testbed()
	e := env(state)
	s := sized(80, 24, e, "gpu3/ens1f0")
	do(s, e, keymap.View)
	sw := *state.Switches[0]
	sw.Map = sw.Map.Minus(mustMap(t, "3>33"))
	gone := *state
	gone.Switches = []*live.Switch{&sw}
	if got := s.Subject(env(&gone)); got != "rail0/3" {
		t.Errorf("on %s, want the port it was on", got)
	}
}

func BenchmarkFramePatch(b *testing.B) {
	e := env(tuitest.Large(384, 64))
	c := canvas.New(200, 60)
	run := func(name string, e screen.Env, keys ...keymap.Action) {
		s := sized(200, 60, e, "core/200")
		do(s, e, keys...)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				c.Reset(200, 60)
				s.Draw(c.Area(), e)
			}
		})
	}
	in := keymap.ZoomIn
	run("fit", e)
	run("dots", e, in)
	run("cells", e, in, in)
	run("detail", e, in, in, in)
	run("list", e, keymap.View)
	run("list-sorted", e, keymap.View, keymap.Sort, keymap.Sort, keymap.Sort)
	e.Filter = filter.Parse("node0 !dark")
	run("fit-filtered", e)
	run("list-filtered", e, keymap.View)
}

// Where there is room, a pair is about as wide as a line is high; every eighth port has a line of
// the grid; and a click hits what is under it.
func TestMatrix_Wide(t *testing.T) {
	e := screen.Env{State: tuitest.Testbed(), Now: tuitest.Now}
	for _, tc := range []struct{ w, per int }{{130, 2}, {80, 1}} {
		s := sized(tc.w, 40, e, "rail0/1>33")
		text := drawn(s, e, tc.w, 40)
		ruler := strings.Split(text, "\n")[1]
		first, next := strings.Index(ruler, "33"), strings.Index(ruler, "41")
		if first < 0 || next-first != 8*tc.per {
			t.Errorf("%d columns: ports of a column %d apart, want %d: %q", tc.w, (next-first)/8, tc.per, ruler)
		}
		if !strings.Contains(text, "┊") || !strings.Contains(text, "┄") {
			t.Errorf("%d columns: no grid in\n%s", tc.w, text)
		}
	}
}

// A power below what any receiver can use is called dark, as on the other screens, with what was
// measured.
func TestPane_Dark(t *testing.T) {
	st := tuitest.Testbed()
	sw := *st.Switch("rail0")
	sw.Power = maps.Clone(sw.Power)
	sw.Power[1], sw.Power[33] = -59.99, -2.5
	st.Switches[0] = &sw
	e := screen.Env{State: st, Now: tuitest.Now}
	text := drawn(sized(130, 40, e, "rail0/1>33"), e, 130, 40)
	if !strings.Contains(text, "dark (-59.99") || !strings.Contains(text, "-2.50 dBm") || strings.Contains(text, "dark (-2.50") {
		t.Errorf("got\n%s", text)
	}
}
