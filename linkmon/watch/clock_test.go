package watch_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// Ensure that, whatever the delays and however the clocks drift apart within the
// bound, an event on the other host is brought over to an interval that holds it.
func TestClock_HoldsTheTruth(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c watch.Clock
		base := rapid.Int64Range(-1e15, 1e15).Draw(t, "base")
		rate := rapid.Float64Range(-watch.Drift/2, watch.Drift/2).Draw(t, "rate")
		its := func(ours int64) int64 { return ours + base + int64(rate*float64(ours)) }
		now := int64(0)
		n := rapid.IntRange(1, 200).Draw(t, "n")
		shortest := int64(time.Hour)
		for range n {
			now += rapid.Int64Range(0, 2e9).Draw(t, "pause")
			there := rapid.Int64Range(0, 1e7).Draw(t, "there")
			back := rapid.Int64Range(0, 1e7).Draw(t, "back")
			c.Add(now, its(now+there), now+there+back)
			now += there + back
			shortest = min(shortest, there+back)
		}
		event := now - rapid.Int64Range(0, 1e9).Draw(t, "ago")
		at, ok := c.Here(timeline.Point(its(event)), now)
		if !ok {
			t.Fatal("the offset is not known")
		}
		// The offset is asked for at now and not at the event.
		if at := at.Widen(time.Duration(watch.Drift * 1e9)); !at.Contains(event) {
			t.Fatalf("%+v does not hold %d", at, event)
		}
	})
}

func TestClock_Bound(t *testing.T) {
	var c watch.Clock
	if _, ok := c.Offset(0); ok {
		t.Error("an offset without any exchange")
	}
	c.Add(1000, 500, 900) // an answer before its question
	if _, ok := c.Offset(0); ok {
		t.Error("learnt from an answer before its question")
	}
	c.Add(0, 1_000_200, 1000)
	c.Add(2000, 1_002_900, 3000)
	got, ok := c.Offset(1500)
	if want := timeline.Between(999_900, 1_000_200); !ok || got != want {
		t.Errorf("Offset = %+v, %v; want %+v", got, ok, want)
	}
	if c.Add(4000, 9_000_000, 4100) {
		t.Error("a clock that jumped goes unnoticed")
	}
	if got, want := mustOffset(t, &c, 4050), timeline.Between(8_995_900, 8_996_000); got != want {
		t.Errorf("after the jump Offset = %+v, want %+v", got, want)
	}
}

func mustOffset(t *testing.T, c *watch.Clock, at int64) timeline.Interval {
	t.Helper()
	got, ok := c.Offset(at)
	if !ok {
		t.Fatal("the offset is not known")
	}
	return got
}
