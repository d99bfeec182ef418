package plane_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/orchestrator/plane"
)

// Ensure sleepers wake in order, never early, whatever the order in which they lay down; on the kernel's timer and on that
// of package time.
func TestClock(t *testing.T) {
	check := func(t *testing.T, c *plane.Clock) {
		start := nowNS()
		var mu sync.Mutex
		var woke []int
		var wg sync.WaitGroup
		for _, ms := range []int{40, 10, 0, 30, 20, -5} {
			wg.Go(func() {
				at := start + int64(ms)*1e6
				if err := c.Sleep(t.Context(), at); err != nil || nowNS() < at {
					t.Errorf("%d ms: woke %v early, %v", ms, time.Duration(at-nowNS()), err)
				}
				mu.Lock()
				defer mu.Unlock()
				woke = append(woke, max(ms, 0))
			})
		}
		wg.Wait()
		if len(woke) != 6 || c == nil && !slices.IsSorted(woke) { // a busy machine may let one overtake another
			t.Errorf("woke in the order %v", woke)
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, errors.New("enough"))
		defer cancel()
		if err := c.Sleep(ctx, nowNS()+int64(time.Hour)); err == nil || err.Error() != "enough" {
			t.Errorf("got %v", err)
		}
	}
	t.Run("kernel", func(t *testing.T) {
		c := plane.NewClock()
		check(t, c)
		ended := make(chan error)
		go func() { ended <- c.Sleep(t.Context(), nowNS()+int64(time.Hour)) }()
		c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := c.Sleep(t.Context(), nowNS()+int64(time.Hour)); err != nil {
			t.Error(err)
		}
	})
	t.Run("package time", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			var c *plane.Clock
			check(t, c)
			c.Close()
		})
	})
}

// BenchmarkClock is how late 256 sleepers wake: on average and at most, on the kernel's timer and on that of package time.
func BenchmarkClock(b *testing.B) {
	kernel := plane.NewClock()
	defer kernel.Close()
	for name, c := range map[string]*plane.Clock{"kernel": kernel, "package-time": nil} {
		b.Run(name, func(b *testing.B) {
			var mu sync.Mutex
			var sum, most int64
			var wg sync.WaitGroup
			const sleepers = 256
			start := nowNS()
			for i := range sleepers {
				wg.Go(func() {
					for n := range b.N {
						at := start + int64(n+1)*10e6 + int64(i)*3e4
						if c.Sleep(context.Background(), at) != nil {
							return
						}
						late := nowNS() - at
						mu.Lock()
						sum += late
						most = max(most, late)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(sum)/float64(b.N*sleepers), "ns-late")
			b.ReportMetric(float64(most), "ns-late-max")
		})
	}
}
