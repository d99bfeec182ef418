package scpiserver_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
)

var update = flag.Bool("update", false, "rewrite the golden sessions")

// personalities are what a golden session may ask for by name.
var personalities = map[string]func(*emulator.Personality){
	"gap":          func(p *emulator.Personality) { p.SCPI.Gap = 100 * time.Millisecond },
	"before":       func(p *emulator.Personality) { p.Switching.Ack = emulator.AckBefore },
	"terse":        func(p *emulator.Personality) { p.SCPI.TerseErrors = true },
	"noBlank":      func(p *emulator.Personality) { p.SCPI.NoBlank = true },
	"apart":        func(p *emulator.Personality) { p.SCPI.Apart = true },
	"crOnly":       func(p *emulator.Personality) { p.SCPI.CROnly = true },
	"emptyNothing": func(p *emulator.Personality) { p.SCPI.EmptyNothing = true },
	"longForm":     func(p *emulator.Personality) { p.SCPI.LongForm = true },
	"errorQueue":   func(p *emulator.Personality) { p.SCPI.ErrorQueue = 2 },
	"powerPorts":   func(p *emulator.Personality) { p.SCPI.MaxPowerPorts = 2 },
	"maxPairs":     func(p *emulator.Personality) { p.Control.MaxPairs = 2 },
	"failed":       func(p *emulator.Personality) { p.Control.Failed = []uint32{3} },
	"deny":         func(p *emulator.Personality) { p.Control.Busy = emulator.Deny },
	"egressOnly":   func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsEgress },
	"cc":           func(p *emulator.Personality) { p.Size = "8xCC" },
}

// TestGolden plays the sessions in testdata/golden. A line is
//
//	# a comment
//	personality NAME   change the device, before anything else
//	C> TEXT            the client sends it; \\ is a backslash, \r \n \x00 as in Go
//	sleep DURATION     after the line before, of which the reply is due only then
//	S> TEXT            all that comes back, in the same form: within a second, unless a sleep follows
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden sessions: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got []byte
			synctest.Test(t, func(t *testing.T) { got = play(t, want) })
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" && !*update {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// play returns the session with what the server really said.
func play(t *testing.T, session []byte) []byte {
	p := personality()
	var c *client
	var out bytes.Buffer
	var lines []string
	for _, line := range strings.Split(strings.TrimSuffix(string(session), "\n"), "\n") {
		if !strings.HasPrefix(line, "S>") {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		word, rest, _ := strings.Cut(line, " ")
		fmt.Fprintln(&out, line)
		reply := ""
		switch word {
		case "", "#":
			continue
		case "personality":
			change := personalities[rest]
			if change == nil || c != nil {
				t.Fatalf("%s: not known or too late", line)
			}
			change(&p)
			continue
		case "C>":
			if c == nil {
				c = dial(t, newServer(t, p))
			}
			text, err := strconv.Unquote(`"` + strings.ReplaceAll(rest, `"`, `\x22`) + `"`)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if c.send(text); i+1 < len(lines) && strings.HasPrefix(lines[i+1], "sleep ") {
				reply = c.read()
				break
			}
			time.Sleep(time.Second)
			reply = c.read()
		case "sleep":
			pause, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			reply = c.read()
		default:
			t.Fatalf("line %q", line)
		}
		if reply != "" {
			quoted := strconv.Quote(strings.ReplaceAll(reply, `"`, "\u00a8"))
			fmt.Fprintf(&out, "S> %s\n", strings.ReplaceAll(quoted[1:len(quoted)-1], "\u00a8", `"`))
		}
	}
	return out.Bytes()
}
