package timeline_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ocslab/ocslab/timeline"
)

// A stamp that the kernel makes between two readings of time.Now lies in their span.
func TestAxis_JoinsKernelStamps(t *testing.T) {
	axis := timeline.HostAxis()
	for range 1000 {
		var ts unix.Timespec
		before := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		after := time.Now()
		if span := axis.Span(before, after); !span.Contains(ts.Nano()) {
			t.Fatalf("the kernel's %d is outside %+v", ts.Nano(), span)
		}
	}
	now := time.Now()
	width := axis.Span(now, now).Width()
	if width == 0 {
		t.Error("the span of one reading leaves out how far the anchor may be off")
	}
	t.Logf("anchored to ±%v", width/2)
}
