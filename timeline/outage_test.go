package timeline_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

func went(a, b int64) timeline.LinkEvent {
	return timeline.LinkEvent{At: timeline.Between(a, b), Known: true}
}

func came(a, b int64) timeline.LinkEvent {
	return timeline.LinkEvent{Came: true, At: timeline.Between(a, b), Known: true}
}

// Ensure an outage is from the last link that goes to the first that comes.
func TestOutage(t *testing.T) {
	for _, tt := range []struct {
		name   string
		links  int
		events []timeline.LinkEvent
		want   timeline.Interval
	}{
		{"nothing happens", 1, nil, timeline.Point(0)},
		{"one of two", 2, []timeline.LinkEvent{went(10, 12), came(30, 33)}, timeline.Point(0)},
		{"both", 2, []timeline.LinkEvent{went(10, 12), went(11, 15), came(30, 33)}, timeline.Between(15, 22)},
		{"twice", 1, []timeline.LinkEvent{went(10, 12), came(20, 21), went(40, 40), came(45, 46)}, timeline.Between(13, 17)},
		{"came before it went", 1, []timeline.LinkEvent{went(10, 12), came(5, 6)}, timeline.Point(0)},
		{"perhaps", 1, []timeline.LinkEvent{went(10, 12), came(9, 14)}, timeline.Between(0, 4)},
		{"for good", 1, []timeline.LinkEvent{went(10, 12)}, timeline.Point(0)},
	} {
		if got, known := timeline.Outage(tt.links, tt.events); got != tt.want || !known {
			t.Errorf("%s: %v, known %v; want %v", tt.name, got, known, tt.want)
		}
	}
}

// Ensure that what nobody saw makes an outage unknown, unless a link stays.
func TestOutage_Unknown(t *testing.T) {
	unseen := []timeline.LinkEvent{{}, {Came: true}}
	if got, known := timeline.Outage(2, unseen); !known || got != timeline.Point(0) {
		t.Errorf("%v, known %v: one link stays, whatever was not seen", got, known)
	}
	for _, events := range [][]timeline.LinkEvent{unseen, {{}, came(1, 2)}, {went(1, 2), {Came: true}}} {
		if got, known := timeline.Outage(1, events); known || got != timeline.Point(0) {
			t.Errorf("%+v: %v, known %v", events, got, known)
		}
	}
}

// darkAt is for how many units of time there is no link before the last event, by looking at each unit.
func darkAt(links int, events []timeline.LinkEvent, at []int64) (n int64) {
	for now := int64(0); now < slices.Max(at); now++ {
		has := links
		for i, e := range events {
			switch {
			case at[i] > now:
			case e.Came:
				has++
			default:
				has--
			}
		}
		if has == 0 {
			n++
		}
	}
	return n
}

// Ensure an outage holds what comes out for every instant that the events may have been at, and that both of its ends are reached.
func TestOutage_Oracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gone := rapid.IntRange(1, 4).Draw(t, "gone")
		links := gone + rapid.IntRange(0, 1).Draw(t, "stay")
		events := []timeline.LinkEvent{came(60, 60)} // after all others, so that an outage ends
		for i := range gone + rapid.IntRange(0, 3).Draw(t, "come") {
			e := came
			if i < gone {
				e = went
			}
			events = append(events, e(rapid.Int64Range(0, 50).Draw(t, "a"), rapid.Int64Range(0, 50).Draw(t, "b")))
		}
		outage, known := timeline.Outage(links, events)
		if !known {
			t.Fatal("not known")
		}
		var shortest, longest, drawn []int64
		for _, e := range events {
			early, late := e.At.Earliest, e.At.Latest
			if e.Came {
				early, late = late, early
			}
			longest, shortest = append(longest, early), append(shortest, late)
			drawn = append(drawn, rapid.Int64Range(e.At.Earliest, e.At.Latest).Draw(t, "at"))
		}
		if low, high := darkAt(links, events, shortest), darkAt(links, events, longest); outage != timeline.Between(low, high) {
			t.Errorf("%v, want %d to %d", outage, low, high)
		}
		if n := darkAt(links, events, drawn); !outage.Contains(n) {
			t.Errorf("%v, and it can be %d", outage, n)
		}
	})
}
