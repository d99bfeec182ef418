package watch

import (
	"math"

	"golang.org/x/sys/unix"
)

// asleep returns how long this machine has been suspended since it booted, and that its axis
// is the machine's. The two clocks whose difference that is cannot be read at once, and the
// scheduler may get in between, for milliseconds on a busy machine. So one is read on either
// side of the other, several times, and the quickest counts: it is well below a microsecond
// off on an idle machine.
func asleep() (ns int64, own bool) {
	quickest := int64(math.MaxInt64)
	for range 32 {
		var before, total, after unix.Timespec
		if unix.ClockGettime(unix.CLOCK_MONOTONIC, &before) != nil ||
			unix.ClockGettime(unix.CLOCK_BOOTTIME, &total) != nil ||
			unix.ClockGettime(unix.CLOCK_MONOTONIC, &after) != nil {
			return 0, false
		}
		if took := after.Nano() - before.Nano(); took < quickest {
			quickest, ns = took, total.Nano()-before.Nano()-took/2
		}
	}
	return ns, false
}
