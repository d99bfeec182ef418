package timeline

import (
	"cmp"
	"slices"
)

// LinkEvent is one of several links between the same two ends that went, or came.
type LinkEvent struct {
	Came bool
	At   Interval
	// Known is false where nobody saw when; At says nothing then.
	Known bool
}

// Outage returns for how long there was no link between two ends: all the time, through events in any order, in which none of the
// links was there that it began with or that came. Time after the last event does not count.
//
// Both ends of the interval are reached: there are fewest links at any time if each went at the earliest and came at the latest,
// and most if it was the other way around. Where an event is not known the outage is known only if some link neither
// went nor came: then it is 0.
func Outage(links int, events []LinkEvent) (outage Interval, known bool) {
	stay := links
	known = true
	for _, e := range events {
		if !e.Came {
			stay--
		}
		known = known && e.Known
	}
	if stay > 0 || !known {
		return Interval{}, stay > 0
	}
	return Interval{
		without(links, events, func(e LinkEvent) bool { return e.Came }),
		without(links, events, func(e LinkEvent) bool { return !e.Came }),
	}, true
}

// without returns for how long there is no link if the events that are early are at their earliest, and the others at their latest.
func without(links int, events []LinkEvent, early func(LinkEvent) bool) (total int64) {
	at := func(e LinkEvent) int64 {
		if early(e) {
			return e.At.Earliest
		}
		return e.At.Latest
	}
	var since int64
	for _, e := range slices.SortedStableFunc(slices.Values(events), func(a, b LinkEvent) int { return cmp.Compare(at(a), at(b)) }) {
		if e.Came {
			if links++; links == 1 {
				total = add(total, sub(at(e), since))
			}
		} else if links--; links == 0 {
			since = at(e)
		}
	}
	return total
}
