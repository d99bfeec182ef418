package emulator

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// powerAt is the definition that the integrals are checked against.
func powerAt(tr trace, t int64) float64 {
	for i := len(tr) - 1; i >= 0; i-- {
		s := tr[i]
		switch {
		case t < s.from:
			continue
		case t < s.begin:
			return 0
		case s.rise == 0:
			return s.level
		}
		return s.level * (1 - math.Exp(-float64(t-s.begin)/float64(s.rise)))
	}
	return 0
}

const ms = int64(time.Millisecond)

func drawSegment(t *rapid.T, from int64) segment {
	s := segment{from: from, level: rapid.SampledFrom([]float64{0, 0.5, 1, 2}).Draw(t, "level")}
	settled := from + rapid.Int64Range(0, 300*ms).Draw(t, "move")
	s.path = settling(from, settled, time.Duration(rapid.Int64Range(0, 20*ms).Draw(t, "rise")))
	if rapid.Bool().Draw(t, "earlier") {
		s.begin -= rapid.Int64Range(0, 100*ms).Draw(t, "by")
	}
	return s
}

func drawTrace(t *rapid.T) (tr trace, now int64) {
	for range rapid.IntRange(0, 8).Draw(t, "segments") {
		now += rapid.Int64Range(0, 1500*ms).Draw(t, "pause")
		tr = tr.then(drawSegment(t, now))
	}
	return tr, now + rapid.Int64Range(0, 300*ms).Draw(t, "later")
}

func TestTrace_MeanIsIntegral(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, now := drawTrace(t)
		window := rapid.SampledFrom(averagingSteps[:]).Draw(t, "window")
		const steps = 20000
		var sum float64
		for i := range int64(steps) {
			sum += powerAt(tr, now-int64(window)+(2*i+1)*int64(window)/(2*steps))
		}
		if got, want := tr.mean(now, window), sum/steps; math.Abs(got-want) > 2e-3 {
			t.Fatalf("mean=%v, want %v of %v", got, want, tr)
		}
	})
}

func TestSettling_CrossesHalfADecibelWhenSettled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := rapid.Int64Range(-1e15, 1e15).Draw(t, "now")
		settled := now + rapid.Int64Range(0, 1e10).Draw(t, "move")
		tr := trace{}.then(segment{now, settling(now, settled, time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "rise"))), 1})
		s := tr[0]
		if s.begin < now || s.begin > settled {
			t.Fatalf("begin=%d, want %d to %d", s.begin, now, settled)
		}
		if s.rise < 100*time.Microsecond { // else a nanosecond matters
			return
		}
		if got := powerAt(tr, settled); math.Abs(got-settleShare) > 1e-4 {
			t.Fatalf("power when settled=%v, want %v", got, settleShare)
		}
		last := 0.0
		for i := range int64(50) {
			p := powerAt(tr, s.begin+i*int64(s.rise)/10)
			if p < last || i > 0 && p == last {
				t.Fatalf("the power does not rise: %v after %v", p, last)
			}
			last = p
		}
	})
}

func TestTrace_ThenKeepsThePastThatMonitorsSee(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tr, now := drawTrace(t)
		var want []float64
		for _, w := range averagingSteps {
			want = append(want, tr.mean(now, w))
		}
		tr = tr.then(drawSegment(t, now))
		for i, w := range averagingSteps {
			if got := tr.mean(now, w); math.Abs(got-want[i]) > 1e-12 {
				t.Fatalf("mean over %v=%v, want %v", w, got, want[i])
			}
		}
	})
}

// Ensure that a client that toggles faster than any mirror cannot fill memory.
func TestTrace_ThenForgets(t *testing.T) {
	var tr trace
	for i := range int64(100000) {
		tr = tr.then(segment{from: i, level: float64(i % 2)})
	}
	if len(tr) > maxSegments {
		t.Errorf("%d segments, want at most %d", len(tr), maxSegments)
	}
	tr = tr.then(segment{from: int64(time.Hour)})
	if len(tr) != 2 {
		t.Errorf("%d segments an hour later, want 2", len(tr))
	}
}

// Ensure that what a fast client did still counts in the mean.
func TestTrace_ThenKeepsTheEnergyOfFastChanges(t *testing.T) {
	var tr trace
	const step = int64(time.Millisecond)
	now := int64(0)
	for i := range int64(200) { // half of the time lit
		now = i * step
		tr = tr.then(segment{from: now, path: path{begin: always}, level: float64(i % 2)})
	}
	if got := tr.mean(now, 100*time.Millisecond); math.Abs(got-0.5) > 0.01 {
		t.Errorf("mean=%v, want 0.5", got)
	}
}

func TestTruthLog_Forgets(t *testing.T) {
	d := &Device{truth: truthLog{}}
	for i := range truthLimit + 10 {
		d.truth.add(fact{op: i})
	}
	marks, next := d.Truth(0)
	if got, want := next, truthLimit+10; got != want {
		t.Errorf("next=%d, want %d", got, want)
	}
	if got, want := marks[0].Reconfiguration, 10; got != want {
		t.Errorf("first=%d, want %d", got, want)
	}
	if marks, _ := d.Truth(next - 3); len(marks) != 3 || marks[0].Reconfiguration != next-3 {
		t.Errorf("Truth(%d)=%v, want the last three", next-3, marks)
	}
	if marks, _ := d.Truth(next + 5); len(marks) != 0 {
		t.Errorf("Truth(beyond)=%v, want none", marks)
	}
}
