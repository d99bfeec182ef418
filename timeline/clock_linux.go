package timeline

import (
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// anchor pairs a reading of time.Now with one of CLOCK_MONOTONIC. The runtime reads
// that same clock but hides its zero, so the pair is found by bracketing: the closest
// of several brackets is the one that was least disturbed.
func anchor() Axis {
	best := Axis{bound: math.MaxInt64}
	for range 32 {
		var ts unix.Timespec
		before := time.Now()
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
		width := time.Since(before)
		if err != nil {
			// Cannot happen: every Linux has this clock.
			panic("timeline: CLOCK_MONOTONIC: " + err.Error())
		}
		half := (width + 1) / 2
		if half < best.bound {
			best = Axis{at: before.Add(half), ns: ts.Nano(), bound: half}
		}
	}
	return best
}
