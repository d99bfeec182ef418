package ocstrx

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// invariants are what holds of a module whatever is done to it.
func (b *bench) invariants() {
	b.Helper()
	s, l := b.status(), b.lanes()
	if s.State == ocst.StateSettle || s.State == ocst.StateBreak {
		return
	}
	p := b.chip.powers(b.now)
	if s.State != ocst.StateCal { // where the host heats and lights what it wants
		for lane := range ocst.Lanes {
			bright, launched := 0, p[ocst.PDLaunched][lane]
			for _, array := range []int{ocst.PDOut1, ocst.PDOut2, ocst.PDLoopTap} {
				if p[array][lane]*ratioTwoPaths > launched {
					bright++
				}
			}
			want := 0
			if l.Path[lane] != ocst.Dark {
				want = 1
			}
			if launched > 0 && bright > 1 || bright != want && launched > 0 {
				b.Fatalf("lane %d on %v in state %v: light on %d outputs: %.4f %.4f %.4f mW", lane+1, l.Path[lane], s.State, bright,
					p[ocst.PDOut1][lane], p[ocst.PDOut2][lane], p[ocst.PDLoopTap][lane])
			}
		}
	}
	if w := b.chip.power(b.now); w > maxPower {
		b.Fatalf("%.2f W in state %v", w, s.State)
	}
	if log := b.entries(); len(log) > 0 && s.Sequence+uint32(log[0].Result) > 0 && s.Duration != 0 && log[0].Duration != s.Duration {
		b.Fatalf("duration %v, in the log %v", s.Duration, log[0].Duration)
	}
	if s.State == ocst.StateFault {
		b.wantDark()
		if l.Fault == ocst.NoFault {
			b.Fatalf("state fault without a fault")
		}
	}
}

// TestInvariants does arbitrary things to modules and ensures that the invariants hold: at
// most one bright output for each lane outside of break and settle, a sequence number that
// rises by one with each switch that is done and with nothing else, the same duration in
// register and log, never more than 12 W, and dark after any failure.
func TestInvariants(t *testing.T) {
	t.Parallel()
	faults := []string{"heater-open:3", "heater-short:20", "weak-heater:9", "stuck-pd:out1:2", "swapped-taps:loop:1:2", "laser-low", "laser-step", "hot"}
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, Options{Seed: rapid.Uint64Range(0, 500).Draw(rt, "seed")})
		b.clock.Advance(11 * time.Millisecond)
		done, wear := uint32(0), uint32(0)
		follow := func() {
			s := b.status()
			started := s.Sequence == 0 && s.Switches == wear
			rise := s.Sequence - done
			if !started && (s.Sequence < done || s.Switches-wear != rise) {
				rt.Fatalf("sequence number %d and %d switches after %d and %d", s.Sequence, s.Switches, done, wear)
			}
			if !started && rise > 0 {
				good := slices.DeleteFunc(b.entries(), func(e ocst.LogEntry) bool { return e.Result != ocst.NoFault })
				for i := range rise {
					// The host has ordered one at the most, which came first: the module
					// takes no other order meanwhile. What it does by itself moves no light.
					if int(i) >= len(good) || good[i].Sequence != s.Sequence-i || i+1 < rise && good[i].From != good[i].To {
						rt.Fatalf("sequence number %d after %d, log %+v", s.Sequence, done, good)
					}
				}
			}
			done, wear = s.Sequence, s.Switches
		}
		wait := func(d time.Duration) {
			b.clock.Advance(d)
			follow()
			b.invariants()
		}
		lanes := rapid.Uint8()
		actions := map[string]func(*rapid.T){
			"commit": func(rt *rapid.T) {
				b.order(ocst.Path(rapid.IntRange(0, 3).Draw(rt, "path")), lanes.Draw(rt, "lanes"), ocst.CommitNow)
			},
			"arm": func(rt *rapid.T) {
				b.order(ocst.Path(rapid.IntRange(0, 3).Draw(rt, "path")), lanes.Draw(rt, "lanes"), ocst.CommitArm)
			},
			"trigger": func(*rapid.T) { b.Trigger() },
			"anything": func(rt *rapid.T) {
				b.order(ocst.Path(rapid.Byte().Draw(rt, "path")), lanes.Draw(rt, "lanes"), ocst.Commit(rapid.Byte().Draw(rt, "commit")))
			},
			"permute": func(rt *rapid.T) {
				p := rapid.Permutation([]byte{0, 1, 2, 3, 4, 5, 6, 7}).Draw(rt, "loop")
				b.put(ocst.At(ocst.RegLoop), p...)
			},
			"pre-emphasis": func(rt *rapid.T) { b.put(ocst.At(ocst.RegControl), rapid.Byte().Draw(rt, "control")) },
			"timeout": func(rt *rapid.T) {
				b.put(ocst.At(ocst.RegTimeout), 0, rapid.SampledFrom([]byte{5, 200}).Draw(rt, "timeout"))
			},
			"trim": func(rt *rapid.T) {
				b.put(cmis.Address{Page: ocst.PageTrim, Offset: uint8(128 + 2*rapid.IntRange(0, 35).Draw(rt, "element"))}, 0, rapid.Byte().Draw(rt, "trim"))
			},
			"calibrate": func(rt *rapid.T) {
				b.unlock()
				b.cdb(ocst.CDBCalibrate, rapid.Byte().Draw(rt, "enter")&1)
				follow()
			},
			"heat": func(rt *rapid.T) {
				e := rapid.IntRange(0, 30).Draw(rt, "element")
				b.put(heaterAt(rapid.Byte().Draw(rt, "arm")&1, e), rapid.SliceOfN(rapid.Byte(), 2, 12).Draw(rt, "codes")...)
			},
			"disable": func(rt *rapid.T) { b.put(cmis.Address{Page: 0x10, Offset: 130}, lanes.Draw(rt, "lanes")) },
			"low-power": func(rt *rapid.T) {
				b.put(cmis.Address{Offset: cmis.RegGlobalControl}, rapid.SampledFrom([]byte{0, 0, 0x10, 0x08}).Draw(rt, "control"))
			},
			"input": func(rt *rapid.T) {
				b.SetInput(int(lanes.Draw(rt, "fibre")&1), int(lanes.Draw(rt, "lane")&7), ocs.DBm(-3))
			},
			"brown-out": func(*rapid.T) { b.BrownOut() },
			"fault": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "seldom") > 0 {
					return
				}
				f, err := ParseDeviceFault(rapid.SampledFrom(faults).Draw(rt, "fault"))
				if err != nil {
					rt.Fatal(err)
				}
				b.Inject(f)
				wait(time.Millisecond) // light moves with the heat, and is looked at when somebody asks
			},
			"ambient": func(rt *rapid.T) { b.SetAmbient(float64(rapid.IntRange(-10, 60).Draw(rt, "celsius"))) },
			"wait": func(rt *rapid.T) {
				wait(rapid.SampledFrom([]time.Duration{time.Microsecond, 7 * time.Microsecond, 40 * time.Microsecond, time.Millisecond, 11 * time.Millisecond, time.Second, time.Hour}).Draw(rt, "time"))
			},
			"": func(*rapid.T) { follow(); b.invariants() },
		}
		rt.Repeat(actions)
	})
}
