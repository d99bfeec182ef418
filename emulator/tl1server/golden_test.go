package tl1server_test

import (
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

var update = flag.Bool("update", false, "rewrite the golden sessions")

// personalities are what a golden session may ask for by name.
var personalities = map[string]func(*emulator.Personality){
	"noSID":      func(p *emulator.Personality) { p.TL1.NoSID = true },
	"shortLead":  func(p *emulator.Personality) { p.TL1.ShortLead = true },
	"echo":       func(p *emulator.Personality) { p.TL1.Echo = true },
	"prompt":     func(p *emulator.Personality) { p.TL1.Prompt = "\r\n>" },
	"quiet":      func(p *emulator.Personality) { p.TL1.Quiet = true },
	"maxPairs":   func(p *emulator.Personality) { p.Control.MaxPairs = 2 },
	"failed":     func(p *emulator.Personality) { p.Control.Failed = []uint32{3} },
	"deny":       func(p *emulator.Personality) { p.Control.Busy = emulator.Deny },
	"egressOnly": func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsEgress },
	"noMonitors": func(p *emulator.Personality) { p.Monitors.Sides = emulator.MonitorsNone },
	"voa":        func(p *emulator.Personality) { p.Optics.VOAMax = 20 },
	"cc":         func(p *emulator.Personality) { p.Size = "8xCC" },

	"calient": calientLike, "calientTwoStep": calientTwoStep, "glimmerglass": glimmerglassLike,
	"fail":       func(p *emulator.Personality) { p.TL1.Fail = []uint32{4} },
	"takeover":   func(p *emulator.Personality) { p.Control.Busy = emulator.Takeover },
	"lock":       func(p *emulator.Personality) { p.TL1.Locks = []emulator.TL1Lock{{Port: 3, User: "user"}} },
	"smallBlock": func(p *emulator.Personality) { p.TL1.Block = 300 },
}

// calientLike is an S320 with four ports, the monitors of which do not err.
func calientLike(p *emulator.Personality) {
	p.Vendor, p.Product, p.Firmware, p.Size = "Calient", "S320", "6.0-3", "4x4"
	p.Optics.LossSpread, p.Optics.LaunchSpread, p.Monitors.Accuracy, p.Monitors.Noise = 0, 0, 0, 0
	p.Control.Busy, p.Speaks = emulator.Deny, []emulator.Protocol{emulator.SpeaksTL1}
	p.TL1 = emulator.TL1{SID: "CALIENT01TS", Dialect: emulator.CalientTL1, Prompt: "\r\nagent>", Quiet: true, Notice: "NOTICE This is a private computer system."}
}

func calientTwoStep(p *emulator.Personality) {
	calientLike(p)
	p.Product, p.TL1.TwoStep, p.TL1.Shelf, p.TL1.Slot = "S162", true, 2, 2
}

// glimmerglassLike is a unit of four inputs and outputs.
func glimmerglassLike(p *emulator.Personality) {
	calientLike(p)
	p.Vendor, p.Product, p.Firmware, p.Optics.Launch = "Glimmerglass", "System100", "5.0.1", -12.05
	p.TL1 = emulator.TL1{SID: "BD0472", Dialect: emulator.GlimmerglassTL1, Prompt: "\r\n<", Echo: true, Greet: true, Quiet: true, Block: 4096}
}

// TestGolden plays the sessions in testdata/golden. A line is
//
//	# a comment
//	personality NAME         change the device, before anything else
//	login                    ACT-USER::admin:0::root; with the reply dropped
//	C> TEXT                  the client sends it; \\ is a backslash, \r \n \x00 as in Go
//	sleep DURATION
//	input PORT DBM           light from outside, or "dark"
//	S> TEXT                  all that comes back within a second, in the same form
//
// The device clock stands at 2026-11-20 10:00:00 when the session begins; a
// command takes a second.
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
	var d *emulator.Device
	begin := func() {
		if c == nil {
			s := newServer(t, p)
			d = s.Device
			d.SetClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
			c = dial(t, s)
		}
	}
	var out bytes.Buffer
	for _, line := range strings.Split(strings.TrimSuffix(string(session), "\n"), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if word == "S>" {
			continue
		}
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
		case "login":
			begin()
			c.do("ACT-USER::admin:0::root;")
			continue
		case "C>":
			begin()
			text, err := strconv.Unquote(`"` + strings.ReplaceAll(rest, `"`, `\x22`) + `"`)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			reply = c.do(text)
		case "sleep":
			pause, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			reply = c.read()
		case "input":
			var port ocs.Port
			var level float64
			if n, _ := fmt.Sscanf(rest, "%d %g", &port, &level); n == 1 {
				level = math.Inf(-1)
			}
			begin()
			if err := d.SetInput(port, ocs.DBm(level)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			reply = c.read()
		default:
			t.Fatalf("line %q", line)
		}
		if reply != "" {
			// Quotes stay as they are, since every data line has some.
			quoted := strconv.Quote(strings.ReplaceAll(reply, `"`, "\u00a8"))
			fmt.Fprintf(&out, "S> %s\n", strings.ReplaceAll(quoted[1:len(quoted)-1], "\u00a8", `"`))
		}
	}
	return out.Bytes()
}
