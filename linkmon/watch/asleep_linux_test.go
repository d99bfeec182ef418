package watch

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Ensure what is said of a machine that stays awake does not change by what the scheduler does
// between the readings of two clocks: a calibration of clocks would be refused for it.
func TestAsleep_Busy(t *testing.T) {
	var busy sync.WaitGroup
	var over atomic.Bool
	for range 4 * runtime.GOMAXPROCS(0) {
		busy.Go(func() {
			for !over.Load() {
			}
		})
	}
	defer busy.Wait()
	defer over.Store(true)
	first, _ := asleep()
	for range 300 {
		ns, own := asleep()
		if off := time.Duration(ns - first); own || off.Abs() >= time.Millisecond {
			t.Fatalf("asleep() differs by %v, own %v", off, own)
		}
	}
}
