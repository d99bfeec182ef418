package probe

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// gaps is a histogram of durations whose buckets are at most an eighth of their value
// wide. One goroutine adds, others read.
type gaps struct {
	counts [8 * 62]atomic.Uint64
	max    atomic.Int64
}

func gapBucket(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	shift := bits.Len64(ns) - 4
	return 8*(shift+1) + int(ns>>shift)&7
}

// gapEnd is the largest value in bucket i.
func gapEnd(i int) int64 {
	if i < 8 {
		return int64(i)
	}
	shift := i/8 - 1
	return int64((8+uint64(i%8)+1)<<shift - 1)
}

func (g *gaps) add(ns int64) {
	g.counts[gapBucket(uint64(max(ns, 0)))].Add(1)
	if ns > g.max.Load() {
		g.max.Store(ns)
	}
}

// quantile returns an upper bound of the q-quantile; 0 of nothing.
func (g *gaps) quantile(q float64) time.Duration {
	var total uint64
	for i := range g.counts {
		total += g.counts[i].Load()
	}
	rank, seen := uint64(q*float64(total)), uint64(0)
	for i := range g.counts {
		if seen += g.counts[i].Load(); seen > rank {
			return time.Duration(min(gapEnd(i), g.max.Load()))
		}
	}
	return time.Duration(g.max.Load())
}
