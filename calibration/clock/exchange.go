package clock

import (
	"cmp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// DefaultExchanges is how many exchanges a batch has. Of 64 one is usually undisturbed.
const DefaultExchanges = 64

// Exchange is one question for the time of another machine and its answer.
type Exchange struct {
	Sent     int64 // ns on our axis: before the question left
	Its      int64 // ns on its axis: read once between
	Received int64 // ns on our axis: after the answer was there
}

// RTT is the round trip, below zero for an answer before its question, which tells
// nothing.
func (x Exchange) RTT() time.Duration { return time.Duration(x.Received - x.Sent) }

// Bound returns between what the other clock minus ours was when that was read.
func (x Exchange) Bound() timeline.Interval {
	return timeline.Between(x.Its-x.Received, x.Its-x.Sent)
}

// When says what a batch was made for.
type When string

// Whens, in their order.
const (
	Before When = "before"
	During When = "during"
	After  When = "after"
)

// Batch is some exchanges back to back, in the order of time.
type Batch struct {
	When      When
	Exchanges []Exchange
}

// tells reports whether an answer after its question was read from clocks that can be: others
// are beyond 70 years.
func (x Exchange) tells() bool {
	const most = 1 << 61
	for _, ns := range []int64{x.Sent, x.Its, x.Received} {
		if ns > most || ns < -most {
			return false
		}
	}
	return x.Received >= x.Sent
}

// usable returns the exchanges that tell something.
func (b Batch) usable() []Exchange {
	list := make([]Exchange, 0, len(b.Exchanges))
	for _, x := range b.Exchanges {
		if x.tells() {
			list = append(list, x)
		}
	}
	return list
}

// Best returns the exchange with the smallest round trip; false when none tells anything.
func (b Batch) Best() (Exchange, bool) {
	list := b.usable()
	if len(list) == 0 {
		return Exchange{}, false
	}
	return slices.MinFunc(list, func(x, y Exchange) int { return cmp.Compare(x.RTT(), y.RTT()) }), true
}

// Bound returns between what the offset was in the middle of the best exchange, by all
// exchanges of the batch, if the clocks ran apart by at most drift (1e-6 is a part per million)
// between them. It reports false when no offset agrees with all, or there is none.
func (b Batch) Bound(drift float64) (at int64, bound timeline.Interval, ok bool) {
	best, ok := b.Best()
	if !ok {
		return 0, timeline.Interval{}, false
	}
	at = timeline.Between(best.Sent, best.Received).Mid()
	bound = timeline.Between(best.Bound().Earliest, best.Bound().Latest).Widen(apart(drift, best.RTT()))
	for _, x := range b.usable() {
		far := max(x.Received-at, at-x.Sent, 0)
		if bound, ok = bound.Intersect(x.Bound().Widen(apart(drift, time.Duration(far)))); !ok {
			return at, timeline.Interval{}, false
		}
	}
	return at, bound, true
}
