package figures

import (
	"math"
	"math/rand/v2"
	"time"
)

// Stall models a training job on links that are reconfigured from time to time without
// asking it. A step is computation, which needs no links, and then communication, which
// stands still while they are away.
type Stall struct {
	Step   time.Duration // without reconfigurations; above 0
	Share  float64       // of a step that is communication, from 0 (it takes no time, but waits for links) to 1
	Outage time.Duration // from when links go away until they carry traffic again

	// Resume, if it is not nil, says when communication goes on that was interrupted, or
	// that began without links: how long after that moment, when the links were back after
	// away. It is not before that, and does not become earlier as away grows. A transport
	// that repeats what was lost at certain times only (RDMA) is one that resumes late.
	Resume func(away time.Duration) time.Duration
}

func (s Stall) communication() time.Duration { return time.Duration(s.Share * float64(s.Step)) }

func (s Stall) resume(away time.Duration) time.Duration {
	if s.Resume == nil {
		return away
	}
	return max(away, s.Resume(away))
}

// Lost returns the time that one outage costs the job, on average over all moments of a
// step at which it may begin.
//
// With computation C, communication M, step T = C + M, and outage D: one that begins in M
// costs D. One that begins x before M costs what of it is left then, D - x, if anything is.
// So without Resume it is (M*D + d*D - d*d/2) / T, where d = min(C, D).
func (s Stall) Lost() time.Duration {
	m := float64(s.communication())
	c, out, step := float64(s.Step)-m, float64(s.Outage), float64(s.Step)
	d := min(c, out)
	if s.Resume == nil {
		return time.Duration((m*out + d*out - d*d/2) / step)
	}
	const slices = 10_000 // the integral over x by its midpoints
	late := 0.0
	for i := range slices {
		x := d * (float64(i) + 0.5) / slices
		late += float64(s.resume(time.Duration(out - x)))
	}
	return time.Duration((m*float64(s.resume(s.Outage)) + late*d/slices) / step)
}

// Average returns the average step when there is an outage once in a period: of the period,
// only what an outage leaves is work. It reports false when that is nothing.
func (s Stall) Average(period time.Duration) (step time.Duration, ok bool) {
	lost := s.Lost()
	if lost >= period {
		return 0, false
	}
	return time.Duration(float64(s.Step) * float64(period) / float64(period-lost)), true
}

// Simulate returns the average step of a job that goes through so many outages, event by
// event. There is one in each period, at a moment of a step that is drawn; the same seed
// gives the same. It is what Average is in the limit, and holds also when outages overlap.
func (s Stall) Simulate(period time.Duration, outages int, seed uint64) time.Duration {
	random := rand.New(rand.NewPCG(seed, 0))
	end := time.Duration(outages) * period
	outage := min(s.Outage, end)
	var now, next time.Duration
	drawn := 0
	draw := func() {
		next = time.Duration(drawn)*period + time.Duration(random.Int64N(int64(s.Step)))
		if drawn++; drawn > outages {
			next = math.MaxInt64 / 2
		}
	}
	draw()
	steps := 0
	for ; now < end; steps++ {
		now += s.Step - s.communication()
		for left := max(s.communication(), 1); left > 0; {
			for next+outage <= now { // over before it could matter
				draw()
			}
			if next >= now+left {
				now += left
				break
			}
			from := max(now, next)
			left -= from - now
			now = from + s.resume(next+outage-from)
			draw()
		}
	}
	return now / time.Duration(max(steps, 1))
}

// lostPerEvent is what an average step says of the time that is lost in one period, by
// arithmetic.
func lostPerEvent(step, average, period time.Duration) time.Duration {
	return time.Duration(float64(period) * (1 - float64(step)/float64(average)))
}
