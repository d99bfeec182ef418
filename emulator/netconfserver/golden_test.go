package netconfserver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
)

// TestGolden replays whole sessions byte for byte. Lines that begin with "C> "
// are sent, each with its line feed; "C." ends a message with the delimiter.
// Lines that begin with "S> " are what comes back within a second, cut behind
// each delimiter. The first line names the personality.
func TestGolden(t *testing.T) { servertest.Golden(t, replay) }

// variants are the personalities that golden sessions may name.
var variants = map[string]func(*emulator.Personality){
	"newest": func(*emulator.Personality) {},
	"oldest": func(p *emulator.Personality) {
		p.NETCONF = emulator.NETCONF{OpticalSwitch: "2017-02-09", PolatisSwitch: "2017-05-30"}
	},
	"openflow": func(p *emulator.Personality) { p.NETCONF.OpenFlowError = true },
	"narrow": func(p *emulator.Personality) {
		p.NETCONF = emulator.NETCONF{Base10: true, NoInterleave: true, Compact: true}
	},
	"deny": func(p *emulator.Personality) { p.Control.Busy = emulator.Deny; p.Control.MaxPairs = 2 },
}

func replay(t *testing.T, text string) string {
	t.Helper()
	first, _, _ := strings.Cut(text, "\n")
	vary := variants[strings.TrimPrefix(first, "# personality: ")]
	if vary == nil {
		t.Fatalf("%q names no personality", first)
	}
	p := personality()
	vary(&p)
	c := dial(t, newServer(t, p), "admin")
	var out strings.Builder
	hear := func() {
		time.Sleep(time.Second)
		for _, msg := range strings.SplitAfter(c.Hear(), eom) {
			for line := range strings.Lines(msg) {
				out.WriteString("S> " + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	for line := range strings.Lines(text) {
		switch sent, ok := strings.CutPrefix(line, "C> "); {
		case ok:
			out.WriteString(line)
			c.Send(sent)
		case line == "C.\n":
			out.WriteString(line)
			c.Send(eom)
			hear()
		case !strings.HasPrefix(line, "S> "):
			out.WriteString(line)
		}
	}
	if c.Closed() {
		out.WriteString("# closed\n")
	}
	return strings.ReplaceAll(out.String(), "# closed\n# closed\n", "# closed\n")
}
