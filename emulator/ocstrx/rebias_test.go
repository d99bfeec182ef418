package ocstrx

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// warmed returns a module that carries light, the loop on two lanes, with 58 °C around it
// from now on.
func warmed(t *testing.T, seed uint64) *bench {
	b := readyBench(t, seed)
	b.switchTo(ocst.Path1, 0x0f)
	b.switchTo(ocst.LoopPath, 0xf0)
	b.SetAmbient(58)
	return b
}

// Ensure that a module whose elements come to the end of an arm as it warms up switches their
// lanes by itself: a switch that is counted and logged, after which the light is where it was,
// and that no lane has light on two outputs at any time outside of it.
func TestRebias(t *testing.T) {
	t.Parallel()
	found := 0
	for seed := range uint64(60) {
		b := warmed(t, seed)
		before := b.status().Sequence
		b.clock.Advance(time.Minute)
		s := b.status()
		if s.Sequence == before {
			continue
		}
		found++
		log := b.entries()[:s.Sequence-before]
		for _, e := range log {
			if e.From != e.To && e.From != ocst.Mixed || e.Result != ocst.NoFault || e.Duration <= 0 || e.Duration >= time.Millisecond {
				t.Errorf("seed %d: the log says %+v", seed, e)
			}
		}
		b.wantState(ocst.StateReady)
		l := b.lanes()
		for lane := range ocst.Lanes {
			want := ocst.Path1
			if lane >= 4 {
				want = ocst.LoopPath
			}
			if l.Path[lane] != want {
				t.Errorf("seed %d: lane %d is on %v, want %v", seed, lane+1, l.Path[lane], want)
			}
		}
		if found > 3 {
			continue
		}
		// The same module once more, looked at closely while it happens.
		for i := len(log) - 1; i >= 0; i-- {
			b := warmed(t, seed)
			at := time.Duration(log[i].At) * time.Microsecond
			b.clock.Advance(at - 5*time.Microsecond - b.clock.Now())
			for b.clock.Now() < at+300*time.Microsecond {
				b.invariants()
				b.clock.Advance(time.Microsecond)
			}
		}
	}
	if found == 0 {
		t.Error("no element of 60 modules came to the end of an arm: the test ensures nothing")
	}
	t.Logf("%d of 60 modules switched lanes by themselves", found)
}
