package probe_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/linkmon/probe"
)

func ms(x float64) time.Duration { return time.Duration(x * float64(time.Millisecond)) }

func TestNextSlot(t *testing.T) {
	for _, tt := range []struct {
		outage, timeout float64
		want            float64 // ms
		alive           bool
	}{
		// The adaptive part.
		{0, 14, 20.7, true}, {20.7, 14, 20.7, true}, {21, 14, 37.7, true}, {38, 14, 71.4, true}, {72, 16, 138, true},
		{139, 16, 239, true}, {240, 20, 440, true}, {441, 20, 977, true}, {978, 19, 1782, true},
		{1783, 20, 3930, true},
		// The regular part, where it begins as measured.
		{240, 16, 440, true}, {441, 16, 977, true}, {978, 18, 1782, true}, {1784, 19, 3930, true}, {3932, 20, 8225, true},
		// Outages of a switch whose NICs take 3 and 6 s.
		{3100, 18, 3930, true}, {3100, 20, 3930, true}, {6300, 18, 8225, true}, {6300, 20, 8225, true},
		{3100, 14, 3125, true}, {6300, 14, 3662, false}, {3130, 14, 3662, false},
		// The end.
		{1e6, 1, 3660, false}, {1e6, 16, 3660, false}, {1e6, 17, 7150, false}, {1e6, 18, 14700, false},
		{1e6, 19, 29700, false}, {1e6, 20, 59800, false},
	} {
		got, alive, note := probe.NextSlot(ms(tt.outage), int(tt.timeout), 7)
		if off := (got - ms(tt.want)).Abs(); off > max(ms(2), ms(tt.want)/400) || alive != tt.alive {
			t.Errorf("NextSlot(%v ms, %v, 7) = %v, %v, want %v ms, %v", tt.outage, tt.timeout, got, alive, tt.want, tt.alive)
		}
		if note == "" {
			t.Error("no note")
		}
	}
}

func TestNextSlot_NoPrediction(t *testing.T) {
	for _, tt := range []struct {
		timeout, retry int
		alive          bool
	}{{-1, 7, false}, {32, 7, false}, {14, -1, false}, {14, 8, false}, {14, 0, false}, {0, 7, true}} {
		slot, alive, note := probe.NextSlot(time.Second, tt.timeout, tt.retry)
		if slot != 0 || alive != tt.alive || !strings.HasPrefix(note, "no prediction: ") {
			t.Errorf("NextSlot(1s, %d, %d) = %v, %v, %q", tt.timeout, tt.retry, slot, alive, note)
		}
	}
	if _, _, note := probe.NextSlot(time.Second, 21, 7); !strings.Contains(note, "extrapolated") {
		t.Errorf("timeout 21: %q", note)
	}
}

// A longer outage never resumes earlier, and one that is survived ends before the slot.
func TestNextSlot_Monotonic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		timeout, retry := rapid.IntRange(1, 31).Draw(t, "timeout"), rapid.IntRange(1, 7).Draw(t, "retry")
		a := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "a"))
		b := a + time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "more"))
		slotA, aliveA, _ := probe.NextSlot(a, timeout, retry)
		slotB, aliveB, _ := probe.NextSlot(b, timeout, retry)
		if slotB < slotA || aliveB && !aliveA || aliveA && slotA < a {
			t.Fatalf("%v: %v %v; %v: %v %v", a, slotA, aliveA, b, slotB, aliveB)
		}
	})
}
