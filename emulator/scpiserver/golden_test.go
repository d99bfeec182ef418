package scpiserver_test

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
)

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

// TestGolden plays the sessions in testdata/golden; see [servertest.Script].
func TestGolden(t *testing.T) {
	servertest.Golden(t, func(t *testing.T, golden string) string {
		return servertest.Script[emulator.Personality]{
			Personality: personality(), Variants: personalities, Hasty: true,
			Begin: func(p emulator.Personality) *servertest.Client { return servertest.Dial(t, session(newServer(t, p))) },
		}.Play(t, golden)
	})
}
