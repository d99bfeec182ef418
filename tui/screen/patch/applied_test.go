package patch_test

import (
	"strings"
	"testing"

	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
	"github.com/ocslab/ocslab/tui/screen/patch"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// A selection is cleared when the change that it proposed was applied, and stays after others.
func TestApplied(t *testing.T) {
	e := screen.Env{State: tuitest.Testbed(), Now: tuitest.Now}
	name := e.State.Switches[0].Name
	for _, x := range []struct {
		of   live.Preview
		want bool
	}{
		{live.Preview{Wish: live.Wish{Verb: live.Connect, Switch: name}}, false},
		{live.Preview{Wish: live.Wish{Verb: live.Connect, Switch: "another"}}, true},
		{live.Preview{Wish: live.Wish{Verb: live.Link}, Parts: []live.Part{{Switch: name}}}, false},
		{live.Preview{Wish: live.Wish{Verb: live.Undo}, Parts: []live.Part{{Switch: name}}}, true},
	} {
		s := patch.New()
		s.Resize(120, 40)
		s.Do(keymap.Select, e)
		s.Applied(x.of)
		if got := strings.Contains(s.Status(e), "selected"); got != x.want {
			t.Errorf("after %s of %q: selected %v", x.of.Wish.Verb, x.of.Wish.Switch, got)
		}
	}
}
