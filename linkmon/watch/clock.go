package watch

import (
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Drift is how much faster one host's monotonic clock may run than another's:
// 200 parts per million, more than crystals and the slewing of NTP together
// usually come to.
const Drift = 200e-6

// exchanges is how many a clock remembers: with one a second, those of a minute.
const exchanges = 64

// Clock knows how far the monotonic clock of another host is from ours, as an
// interval: from questions and answers over a network whose delay nobody knows,
// but of which an answer is never before its question. The zero Clock knows
// nothing. It is safe for concurrent use.
type Clock struct {
	mu   sync.Mutex // guards seen
	seen []exchange
}

// exchange bounds the offset (its clock minus ours) at a time of ours.
type exchange struct {
	at        int64
	low, high int64
}

// Add learns from one exchange: we asked at sent, the other host read its clock
// once between, and we had the answer at received; sent and received are on our
// axis. It reports false when that contradicts what is known by more than
// [Drift], as it does when one of the hosts slept; all that was known is then
// forgotten.
func (c *Clock) Add(sent, its, received int64) bool {
	if received < sent {
		return true // it tells nothing
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x := exchange{at: timeline.Between(sent, received).Mid(), low: its - received, high: its - sent}
	if known, ok := c.offsetLocked(x.at); ok {
		if _, ok := known.Intersect(timeline.Between(x.low, x.high)); !ok {
			c.seen = []exchange{x}
			return false
		}
	}
	if len(c.seen) == exchanges {
		// The widest of the older half goes: a good one is worth keeping until its
		// age has made it a bad one.
		worst := 0
		for i := range c.seen[:exchanges/2] {
			if c.seen[i].width(received) > c.seen[worst].width(received) {
				worst = i
			}
		}
		c.seen = slices.Delete(c.seen, worst, worst+1)
	}
	c.seen = append(c.seen, x)
	return true
}

// drifted returns the bounds of the offset at a time of ours.
func (x exchange) drifted(at int64) timeline.Interval {
	age := max(at-x.at, x.at-at)
	return timeline.Between(x.low, x.high).Widen(time.Duration(Drift * float64(age)))
}

func (x exchange) width(at int64) time.Duration { return x.drifted(at).Width() }

// Offset returns its clock minus ours at a time of ours; false when nothing is
// known.
func (c *Clock) Offset(at int64) (timeline.Interval, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offsetLocked(at)
}

func (c *Clock) offsetLocked(at int64) (timeline.Interval, bool) {
	if len(c.seen) == 0 {
		return timeline.Interval{}, false
	}
	bound := c.seen[0].drifted(at)
	for _, x := range c.seen[1:] {
		// They overlap at the time of the latest, as Add has seen to, and are wider
		// anywhere else.
		bound, _ = bound.Intersect(x.drifted(at))
	}
	return bound, true
}

// Here brings an interval on the other host's clock over to ours; now is the
// time on ours at which the offset is asked for, soon after the interval.
func (c *Clock) Here(its timeline.Interval, now int64) (timeline.Interval, bool) {
	offset, ok := c.Offset(now)
	if !ok {
		return timeline.Interval{}, false
	}
	return its.Sub(offset), true
}
