package timeline_test

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

func TestAxis(t *testing.T) {
	axis := timeline.HostAxis()
	if axis != timeline.HostAxis() {
		t.Fatal("two axes of one host")
	}
	from := time.Now()
	to := from.Add(1500)
	if got, want := axis.NS(to)-axis.NS(from), int64(1500); got != want {
		t.Errorf("difference = %d, want %d", got, want)
	}
	if got := axis.Time(axis.NS(from)); !got.Equal(from) {
		t.Errorf("Time(NS(t)) = %v, want %v", got, from)
	}
	span := axis.Span(to, from)
	if !span.Contains(axis.NS(from)) || !span.Contains(axis.NS(to)) {
		t.Errorf("Span = %+v does not hold its ends", span)
	}
	if slack := span.Width() - 1500; slack < 0 || slack > time.Millisecond {
		t.Errorf("Span is %v wider than its ends", slack)
	}
}
