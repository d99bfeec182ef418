package main

import (
	"fmt"
	"os"

	"github.com/ocslab/ocslab/linkmon/phy"
)

type timersLine struct {
	Kind             string  `json:"kind"` // "timers"
	State            string  `json:"state,omitempty"`
	PhysicalState    string  `json:"physical_state,omitempty"`
	Speed            string  `json:"speed,omitempty"`
	LinkUp           *uint32 `json:"link_up_ms"`
	DisableToSignal  *uint32 `json:"disable_to_signal_ms"`
	SignalToPhysical *uint32 `json:"signal_to_physical_ms"`
	PhysicalToActive *uint32 `json:"physical_to_active_ms"`
}

// printTimers prints the firmware's own timers of a link-up.
func (a *app) printTimers(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return usageError{err}
	}
	m, err := phy.ParseMST(text)
	if err != nil {
		return usagef("%s: %w", path, err)
	}
	ms := func(t phy.Timer) *uint32 {
		if _, ran := t.Duration(); !ran {
			return nil
		}
		return &t.Milliseconds
	}
	line := timersLine{"timers", m.State, m.PhysicalState, m.Speed, ms(m.LinkUp), ms(m.DisableToSignal), ms(m.SignalToPhysical), ms(m.PhysicalToActive)}
	if a.set.JSON {
		a.json(line)
		return nil
	}
	t := table{align: ".>"}
	for _, row := range []struct {
		what string
		text string
		ms   *uint32
	}{
		{"state", m.State, nil}, {"physical state", m.PhysicalState, nil}, {"speed", m.Speed, nil},
		{"disable to link up", "", line.LinkUp}, {"disable to signal detect", "", line.DisableToSignal},
		{"signal detect to physical link", "", line.SignalToPhysical}, {"physical link to active", "", line.PhysicalToActive},
	} {
		switch {
		case row.ms != nil:
			t.row(row.what, fmt.Sprintf("%d ms", *row.ms))
		case row.text != "":
			t.row(row.what, row.text)
		}
	}
	if len(t.rows) == 0 {
		return usagef("%s holds neither a state nor a timer of a port", path)
	}
	t.write(a.out, "")
	return nil
}
