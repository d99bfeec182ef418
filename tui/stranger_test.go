package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// Ensure a message that is too long keeps its end, which says what can be done next.
func TestKeepEnd(t *testing.T) {
	const long = "1>34,2>33,3>36,4>35 connected, 1>33 removed, read back as asked, acknowledged in 207 ms; u takes it back (change 6)"
	for w := range 160 {
		got := canvas.Cut(keepEnd(long, w), w)
		if canvas.Width(got) > w {
			t.Errorf("%d: %q is %d wide", w, got, canvas.Width(got))
		}
		if w >= 60 && !strings.HasSuffix(got, "; u takes it back (change 6)") {
			t.Errorf("%d: %q does not say how to take it back", w, got)
		}
	}
	if got := keepEnd("short; u", 60); got != "short; u" {
		t.Errorf("short: %q", got)
	}
}

// Ensure the keys that are shown are words, and tell of configurations where there are some
// and of a next switch where there is one.
func TestHints(t *testing.T) {
	s := tuitest.Testbed()
	u := newUI(t, s, 120, 40, Options{})
	has := func(act keymap.Action) bool {
		for _, b := range u.m.hints() {
			if b.Action == act {
				return true
			}
		}
		return false
	}
	if !has(keymap.Configure) || !has(keymap.Undo) || has(keymap.PrevSwitch) {
		t.Errorf("hints: %v", u.m.hints())
	}
	if got, want := has(keymap.NextSwitch), len(s.Switches) > 1; got != want {
		t.Errorf("next switch: %t, want %t, with %d", got, want, len(s.Switches))
	}
	if v := u.m.View(); strings.Contains(v, "select-all") || strings.Contains(v, "next-switch") {
		t.Errorf("names of actions in place of words:\n%s", v)
	}
}

// Ensure a change that takes light from nobody does not speak of an outage, and one that
// brings none back says that it stays away.
func TestOutage(t *testing.T) {
	one, err := ocs.ParseMap("1>33")
	if err != nil {
		t.Fatal(err)
	}
	for want, part := range map[string]live.Part{
		"no light goes away, links up after about 3.20 s": {Change: ocs.Change{Add: one}, LinkUp: 3200e6},
		"light goes away, and stays away":                 {Change: ocs.Change{Remove: one}},
		"light away for about 200 ms":                     {Change: ocs.Change{Add: one, Remove: one}, Outage: 200e6},
		"light away for a time that is not known":         {Change: ocs.Change{Add: one, Remove: one}},
		"no light goes away":                              {Unshut: []ocs.Port{1}},
	} {
		part.Switch = "rail0"
		rows := outage(part)
		if len(rows) != 1 || !strings.HasSuffix(rows[0].String(), "rail0: "+want) {
			t.Errorf("%v, want %q", rows, want)
		}
	}
}

// Screens are told what was applied, and nothing of what was not.
func TestApplied_ScreensAreTold(t *testing.T) {
	for _, fails := range []bool{false, true} {
		u := previewed(t)
		if fails {
			u.lab.Become = func(p live.Preview) live.Outcome {
				return live.Outcome{Title: p.Title, Err: errors.New("rail0: denied")}
			}
		}
		u.accept()
		for _, s := range u.m.screens {
			if got := len(s.(*page).applied); (got == 1) == fails || got > 1 {
				t.Errorf("fails %v: %s was told %d times", fails, s.Name(), got)
			}
		}
	}
}

// A long error leads to where all of it is, if it is in the log.
func TestMessage_LongErrorLeadsToLog(t *testing.T) {
	long := "rail0 does not answer any more: " + strings.Repeat("no route to host ", 20)
	for _, logged := range []bool{true, false} {
		st := *tuitest.Testbed()
		st.LastEvent = nil
		if logged {
			e := &live.Entry{N: 1000, At: tuitest.Now, Kind: live.Event, Text: long, Bad: true}
			st.Log = append(slices.Clone(st.Log), e)
		}
		u := newPages(t, &st, Options{})
		u.m.say(long, true)
		u.m.dirty = true
		if got := strings.Contains(u.frame(), "; 6 shows all"); got != logged {
			t.Errorf("logged %v, said so %v", logged, got)
		}
	}
}
