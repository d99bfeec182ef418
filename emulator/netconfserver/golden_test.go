package netconfserver_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
)

var update = flag.Bool("update", false, "write what the server says into the golden files")

// TestGolden replays whole sessions byte for byte. Lines that begin with "C> "
// are sent, each with its line feed; "C." ends a message with the delimiter.
// Lines that begin with "S> " are what comes back within a second, cut behind
// each delimiter. The first line names the personality.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d golden files, error %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = replay(t, string(text)) })
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got != string(text) {
				t.Errorf("the session went differently:\n%s", diff(string(text), got))
			}
		})
	}
}

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
		for _, msg := range strings.SplitAfter(c.read(), eom) {
			for line := range strings.Lines(msg) {
				out.WriteString("S> " + strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	for line := range strings.Lines(text) {
		switch sent, ok := strings.CutPrefix(line, "C> "); {
		case ok:
			out.WriteString(line)
			c.send(sent)
		case line == "C.\n":
			out.WriteString(line)
			c.send(eom)
			hear()
		case !strings.HasPrefix(line, "S> "):
			out.WriteString(line)
		}
	}
	if c.closed() {
		out.WriteString("# closed\n")
	}
	return strings.ReplaceAll(out.String(), "# closed\n# closed\n", "# closed\n")
}

// diff shows where two texts part.
func diff(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "\ngot  " + g[i]
		}
	}
	return "one is longer:\n" + got
}
