package ocstrx

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// wantFault ensures that the module is dark, in State Fault and says why and where; after a
// switch that failed also that the log has it, and that it does not count.
func (b *bench) wantFault(want ocst.Fault, where uint8, flag ocst.Flags, sequence uint32) {
	b.Helper()
	b.wantState(ocst.StateFault)
	b.wantDark()
	l, s := b.lanes(), b.status()
	if l.Fault != want || l.FaultAt != where {
		b.Errorf("fault %v at %d, want %v at %d", l.Fault, l.FaultAt, want, where)
	}
	if f := b.takeFlags(); f&flag != flag || f&ocst.FlagDone != 0 {
		b.Errorf("flags %v, want %v and not done", f, flag)
	}
	if s.Sequence != sequence {
		b.Errorf("sequence number %d, want %d", s.Sequence, sequence)
	}
	if p := b.chip.power(b.now); p > DefaultParams().Power {
		b.Errorf("%g W in State Fault, want heaters and laser off", p)
	}
	b.order(ocst.Path1, 0xff, ocst.CommitNow)
	if got := b.status().Result; got != ocst.FaultNotAllowed {
		b.Errorf("a commit in State Fault gives %v, want %v", got, ocst.FaultNotAllowed)
	}
}

// TestSwitchFaults ensures that what is broken is found by the next switch and named, and
// that a reset brings back what can be brought back.
func TestSwitchFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault string
		path  ocst.Path
		want  ocst.Fault
		where uint8
		flag  ocst.Flags
	}{
		{"heater-open:3", ocst.LoopPath, ocst.FaultOpen, 2, ocst.FlagHeater},
		{"heater-short:3", ocst.LoopPath, ocst.FaultShort, 2, ocst.FlagHeater},
		{"stuck-pd:loop:4", ocst.LoopPath, ocst.FaultTimeout, 3, ocst.FlagTimeout},
		{"swapped-taps:out1:2:out2:2", ocst.Path2, ocst.FaultTwoPaths, 1, ocst.FlagTwoPaths},
		{"stuck-pd:rx-loop:5", ocst.LoopPath, ocst.FaultTimeout, 0, ocst.FlagTimeout},
		{"weak-heater:5", ocst.LoopPath, ocst.FaultTwoPaths, 4, ocst.FlagTwoPaths},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			b := readyBench(t, 21)
			b.switchTo(ocst.Dark, 0xff)
			b.takeFlags()
			b.Inject(mustFault(t, c.fault))
			b.order(c.path, 0xff, ocst.CommitNow)
			b.clock.Advance(time.Millisecond)
			if got := b.status().Result; got != c.want {
				t.Errorf("result %v, want %v", got, c.want)
			}
			e := b.entries()[0]
			if e.Result != c.want || e.Sequence != 1 || e.Duration != b.status().Duration || e.To != c.path {
				t.Errorf("log %+v", e)
			}
			b.wantFault(c.want, c.where, c.flag, 1)
			b.put(cmis.Address{Offset: cmis.RegGlobalControl}, byte(cmis.SoftwareReset))
			b.clock.Advance(11 * time.Millisecond)
			b.wantState(ocst.StateReady)
			if l := b.lanes(); l.Fault != ocst.NoFault || l.FaultAt != nowhere {
				t.Errorf("after the reset: %v at %d", l.Fault, l.FaultAt)
			}
		})
	}
}

// TestSettleTimeout ensures that light which is still on its way when the time is over is
// called so, and not a second path.
func TestSettleTimeout(t *testing.T) {
	t.Parallel()
	for _, timeout := range []byte{0, 5, 20} {
		b := readyBench(t, 22)
		b.switchTo(ocst.Path1, 0xff)
		b.takeFlags()
		b.put(ocst.At(ocst.RegTimeout), 0, timeout)
		b.order(ocst.LoopPath, 0xff, ocst.CommitNow)
		b.clock.Advance(time.Millisecond)
		if d := b.status().Duration; d != time.Duration(12+int(timeout))*time.Microsecond {
			t.Errorf("given up after %v with a timeout of %d µs", d, timeout)
		}
		b.wantFault(ocst.FaultTimeout, b.lanes().FaultAt, ocst.FlagTimeout, 1)
	}
}

// TestIdleFaults ensures that a module which carries light goes dark when something breaks
// while it does not switch.
func TestIdleFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fault string
		want  ocst.Fault
		where uint8
		flag  ocst.Flags
	}{
		{"laser-low", ocst.FaultLaser, 0, 0},
		{"weak-heater:4", ocst.FaultTwoPaths, 3, ocst.FlagTwoPaths},
		{"heater-open:4", ocst.FaultTwoPaths, 3, ocst.FlagTwoPaths},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			// A module whose S1 of lane 4 is driven far both ways.
			b := readyBench(t, 23)
			b.switchTo(ocst.LoopPath, 0xff)
			b.switchTo(ocst.Path1, 0xff)
			b.takeFlags()
			b.Inject(mustFault(t, c.fault))
			b.clock.Advance(time.Minute)
			b.wantFault(c.want, c.where, c.flag, 2)
		})
	}
	b := readyBench(t, 23)
	b.switchTo(ocst.Path1, 0xff)
	b.Inject(DeviceFault{Kind: LaserStep})
	b.clock.Advance(time.Second)
	b.wantState(ocst.StateReady) // 1 dB is no fault
}

// TestTemperature ensures the warning at 70 °C and the fault at 75.
func TestTemperature(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 24)
	b.switchTo(ocst.Path1, 0xff)
	b.takeFlags()
	rise := b.chip.power(b.now) * DefaultParams().RTh
	b.SetAmbient(71.5 - rise)
	b.clock.Advance(time.Minute)
	b.wantState(ocst.StateReady)
	// On the way up elements may come to the end of an arm, which is a switch.
	if f := b.takeFlags(); f&^ocst.FlagDone != ocst.FlagTemperature {
		t.Errorf("flags %v at %.1f °C, want temperature", f, b.chip.temperature(b.now))
	}
	if f := b.takeFlags(); f != ocst.FlagTemperature {
		t.Errorf("flags %v, want temperature again: it still is so", f)
	}
	celsius, err := cmis.DecodeTemperature(b.get(cmis.TemperatureSpan.Address, 2))
	if err != nil || celsius < 70 || celsius > 75 {
		t.Errorf("register: %g °C, %v", celsius, err)
	}
	// At 75 °C, and not before.
	last, switches := b.chip.temperature(b.now), uint32(0)
	for ambient := 71.5 - rise; b.status().State == ocst.StateReady && last < 80; ambient += 0.05 {
		last, switches = b.chip.temperature(b.now), b.status().Sequence
		b.takeFlags()
		b.SetAmbient(ambient)
		b.clock.Advance(time.Minute)
	}
	if last < 74.5 || last >= 75 {
		t.Errorf("the last temperature without a fault is %.2f °C, want a little less than 75", last)
	}
	b.wantFault(ocst.FaultHot, nowhere, ocst.FlagTemperature, switches)
	b.SetAmbient(85 - rise)
	b.clock.Advance(time.Minute)
	if got := cmis.FaultCause(b.get(cmis.Address{Offset: cmis.RegFaultCause}, 1)[0]); got != cmis.TemperatureFault {
		t.Errorf("CMIS calls it %v", got)
	}
	// As long as it is hot a reset does not help.
	b.put(cmis.Address{Offset: cmis.RegGlobalControl}, byte(cmis.SoftwareReset))
	b.clock.Advance(time.Second)
	b.wantState(ocst.StateFault)
}

// TestHalfOpen ensures that an armed module forgets what it was told if no trigger comes.
func TestHalfOpen(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 25)
	b.switchTo(ocst.Path1, 0xff)
	b.takeFlags()
	b.order(ocst.LoopPath, 0xff, ocst.CommitArm)
	b.clock.Advance(ocst.ArmTimeout - 1)
	b.wantState(ocst.StateArmed)
	b.clock.Advance(1)
	b.wantState(ocst.StateReady)
	if s := b.status(); s.Result != ocst.FaultHalfOpen || s.Sequence != 1 || s.Path != ocst.Path1 || b.takeFlags() != ocst.FlagHalfOpen {
		t.Errorf("after the timeout: %+v", s)
	}
	if b.Armed() {
		t.Error("still armed")
	}
	b.Trigger()
	if s := b.status(); s.Result != ocst.FaultNotArmed {
		t.Errorf("a late trigger gives %v", s.Result)
	}
}

// TestBrownOut ensures that the supply may break down at any moment of a switch: the module
// comes back dark, and the log tells.
func TestBrownOut(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{0, time.Microsecond, 5 * time.Microsecond, 15 * time.Microsecond, 50 * time.Microsecond} {
		b := readyBench(t, 26)
		b.switchTo(ocst.Path1, 0xff)
		b.order(ocst.LoopPath, 0xff, ocst.CommitNow)
		b.clock.Advance(after)
		b.BrownOut()
		b.wantState(ocst.StateReset)
		b.wantDark()
		b.clock.Advance(11 * time.Millisecond)
		b.wantState(ocst.StateReady)
		b.wantDark()
		if e := b.entries()[0]; e.Result != ocst.FaultBrownOut || e.Duration != after || b.status().Result != ocst.FaultBrownOut || b.status().Sequence != 0 {
			t.Errorf("%v after the commit: log %+v, status %+v", after, e, b.status())
		}
		b.switchTo(ocst.LoopPath, 0xff)
	}
	b := readyBench(t, 26)
	b.switchTo(ocst.Path1, 0xff)
	b.BrownOut()
	b.clock.Advance(11 * time.Millisecond)
	if len(b.entries()) != 1 || b.status().Result != ocst.NoFault {
		t.Errorf("a brown-out without a switch: %v, log %v", b.status().Result, b.entries())
	}
}
