package tl1server_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/ocs"
)

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

// TestGolden plays the sessions in testdata/golden; see [servertest.Script]. Its own
// lines are
//
//	login              ACT-USER::admin:0::root; with the reply dropped
//	input PORT DBM     light from outside, or "dark"; what comes within a second is heard
//
// The device clock stands at 2026-11-20 10:00:00 when the session begins.
func TestGolden(t *testing.T) {
	servertest.Golden(t, func(t *testing.T, session string) string {
		var d *emulator.Device
		return servertest.Script[emulator.Personality]{
			Personality: personality(), Variants: personalities,
			Begin: func(p emulator.Personality) *servertest.Client {
				s := newServer(t, p)
				d = s.Device
				d.SetClock(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
				return servertest.Dial(t, s.ServeConn)
			},
			Words: map[string]func(*servertest.Client, string){
				"login": func(c *servertest.Client, _ string) { c.Do("ACT-USER::admin:0::root;") },
				"input": func(_ *servertest.Client, rest string) {
					var port ocs.Port
					var level float64
					if n, _ := fmt.Sscanf(rest, "%d %g", &port, &level); n == 1 {
						level = math.Inf(-1)
					}
					if err := d.SetInput(port, ocs.DBm(level)); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Second)
				},
			},
		}.Play(t, session)
	})
}
