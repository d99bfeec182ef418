package fabric

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func rxUnits(m *module, lane int) int {
	return int(m.memory[rxPowerByte+2*lane])<<8 | int(m.memory[rxPowerByte+2*lane+1])
}

func TestModule_Identity(t *testing.T) {
	m := newModule(100, 30, "OCSLAB000007", 1)
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 1, "\x11"}, {128, 129, "\x11"},
		{148, 164, "ocslab          "},
		{168, 184, "EMULATED-LR4    "},
		{196, 212, "OCSLAB000007    "},
		{txPowerByte, txPowerByte + 2, "\x09\xc4"}, // 250.0 uW of 1 mW
	} {
		if got := string(m.memory[c.from:c.to]); got != c.want {
			t.Errorf("bytes %d to %d: %q, want %q", c.from, c.to, got, c.want)
		}
	}
	for _, c := range []struct{ from, check int }{{128, 191}, {192, 223}} {
		var s byte
		for _, b := range m.memory[c.from:c.check] {
			s += b
		}
		if s != m.memory[c.check] {
			t.Errorf("check code at %d: %d, want %d", c.check, m.memory[c.check], s)
		}
	}
	if len(m.memory) != 2432 {
		t.Errorf("%d bytes", len(m.memory))
	}
}

func TestModule_Refresh(t *testing.T) {
	m := newModule(100, 30, "x", 1) // refreshes at 30, 130, 230, ...
	state := func(now int64, changed bool, los byte, units int) {
		t.Helper()
		if got := m.advance(now); got != changed {
			t.Errorf("at %d: changed %v, want %v", now, got, changed)
		}
		if m.memory[losByte] != los || rxUnits(m, 3) != units {
			t.Errorf("at %d: LOS %x, Rx power %d, want %x, %d", now, m.memory[losByte], rxUnits(m, 3), los, units)
		}
	}
	state(0, false, 0xf, 0)
	m.light(0.4, true, 50)
	state(129, false, 0xf, 0)
	state(130, true, 0xf, 1000) // it was dark since the refresh before
	state(229, false, 0xf, 1000)
	state(230, true, 0, 1000)
	m.light(0, false, 240)
	m.light(0.2, true, 250)
	state(330, true, 0xf, 500) // latched
	state(430, true, 0, 500)
	m.light(0, false, 430)
	state(430, true, 0xf, 0)
	state(10000, false, 0xf, 0)
	if m.due != never {
		t.Errorf("due at %d though nothing will change", m.due)
	}
}

func TestModule_Edges(t *testing.T) {
	m := newModule(0, 0, "x", 1) // no lag at all
	m.light(1e6, true, -7)
	if !m.advance(-7) || rxUnits(m, 0) != math.MaxUint16 {
		t.Errorf("Rx power %d, want the largest", rxUnits(m, 0))
	}
	if m := newModule(100, 30, "x", 1); m.next(-120) != -70 || m.next(-170) != -170 {
		t.Errorf("refreshes before 0: %d, %d", m.next(-120), m.next(-170))
	}
}

// TestModule_Lag: what is shown was true at some time since the refresh before, and
// after a refresh without changes it is true now.
func TestModule_Lag(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		refresh := rapid.Int64Range(1, 50).Draw(t, "refresh")
		m := newModule(refresh, rapid.Int64Range(0, refresh-1).Draw(t, "phase"), "x", 1)
		now, power := int64(0), 0.0
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			now += rapid.Int64Range(0, 120).Draw(t, "pause")
			power = float64(rapid.IntRange(0, 4).Draw(t, "power"))
			m.light(power, power > 0, now)
		}
		m.advance(now + refresh)
		if got := rxUnits(m, 0); got != int(power/lanes*10000) {
			t.Fatalf("power %v shown as %d", power, got)
		}
		m.advance(now + 2*refresh)
		if got := m.memory[losByte] == 0; got != (power > 0) {
			t.Fatalf("power %v, LOS %x", power, m.memory[losByte])
		}
	})
}
