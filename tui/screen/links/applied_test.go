package links

import (
	"testing"

	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// What was selected for a change is not selected any more when that was applied; the rest is.
func TestApplied(t *testing.T) {
	e := env(tuitest.Testbed())
	s := New()
	s.Resize(120, 40)
	press(s, e, keymap.Select, keymap.Select, keymap.Select)
	list := names(s.chosen(e))
	if len(list) != 3 {
		t.Fatalf("%v are selected", list)
	}
	s.Applied(live.Preview{Wish: live.Wish{Verb: live.Link, NICs: list[:2]}})
	if got := names(s.chosen(e)); len(got) != 1 || got[0] != list[2] {
		t.Errorf("%v are selected, want %s", got, list[2])
	}
}

// Traffic that is late is no loss.
func TestTraffic(t *testing.T) {
	for in, want := range map[string]string{"flows": "flows", "late": "late", "lost": "✗ lost", "": "-"} {
		if got := trafficCell(&live.NIC{Traffic: in}, env(tuitest.Testbed())).Text; got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
