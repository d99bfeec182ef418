package timeline_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/timeline"
)

func TestCompare(t *testing.T) {
	between := timeline.Between
	truth := []timeline.Mark{
		mark(1, timeline.CarrierUp, "a", between(100, 102)),
		mark(2, timeline.CarrierUp, "a", between(200, 202)),
		mark(3, timeline.CarrierUp, "a", between(300, 302)), // flaps
		mark(3, timeline.CarrierUp, "a", between(400, 402)),
		mark(1, timeline.CarrierUp, "b", between(100, 102)), // missed
		mark(1, timeline.Traffic, "a", between(500, 500)),   // missed
	}
	marks := []timeline.Mark{
		mark(1, timeline.CarrierUp, "a", between(91, 100)), // inside by one end; 95 against 101
		mark(2, timeline.CarrierUp, "a", between(203, 205)),
		mark(3, timeline.CarrierUp, "a", between(396, 410)),
		mark(3, timeline.CarrierUp, "a", between(290, 310)),
		mark(4, timeline.CarrierUp, "a", between(0, 1000)), // invented
		mark(1, timeline.Light, "a", between(0, 1)),        // invented
	}
	want := []timeline.Accuracy{
		{Stage: timeline.Light, Unmatched: 1},
		// Errors 6, 3, 2, 1; widths 9, 2, 14, 20.
		{Stage: timeline.CarrierUp, Count: 4, Inside: 3, Unmatched: 2, ErrP50NS: 2, ErrP95NS: 5, ErrMaxNS: 6, WidthP50NS: 11},
		{Stage: timeline.Traffic, Unmatched: 1},
	}
	if d := cmp.Diff(want, timeline.Compare(marks, truth)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	// Far apart, the error saturates.
	far := timeline.Compare([]timeline.Mark{mark(1, timeline.Ack, "a", timeline.Point(math.MaxInt64))},
		[]timeline.Mark{mark(1, timeline.Ack, "a", timeline.Point(math.MinInt64))})
	if got, want := far[0].ErrMaxNS, int64(math.MaxInt64); got != want {
		t.Errorf("ErrMaxNS = %d, want %d", got, want)
	}
}

// Of command and ack, the order counts: the device has the command after it was begun to be
// sent, and has sent the ack before it was here.
func TestCompare_Wire(t *testing.T) {
	device := timeline.Between(100, 102)
	for _, tt := range []struct {
		stage  timeline.Stage
		mark   timeline.Interval
		inside int
	}{
		{timeline.Command, timeline.Between(80, 90), 1},
		{timeline.Command, timeline.Between(102, 110), 1},
		{timeline.Command, timeline.Between(103, 110), 0},
		{timeline.Ack, timeline.Between(110, 120), 1},
		{timeline.Ack, timeline.Between(90, 100), 1},
		{timeline.Ack, timeline.Between(90, 99), 0},
	} {
		got := timeline.Compare([]timeline.Mark{mark(1, tt.stage, "a", tt.mark)}, []timeline.Mark{mark(1, tt.stage, "a", device)})
		if len(got) != 1 || got[0].Count != 1 || got[0].Inside != tt.inside {
			t.Errorf("%s %v: %+v, want %d inside", tt.stage, tt.mark, got, tt.inside)
		}
	}
}

// Marks widened around the truth are all inside, and off by at most half their width.
func TestCompare_Properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var marks, truth []timeline.Mark
		for r := range rapid.IntRange(1, 20).Draw(t, "n") {
			at := rapid.Int64Range(0, 1e9).Draw(t, "at")
			truth = append(truth, mark(r, timeline.Light, "a", timeline.Point(at)))
			marks = append(marks, mark(r, timeline.Light, "a", timeline.Between(
				at-rapid.Int64Range(0, 1000).Draw(t, "early"), at+rapid.Int64Range(0, 1000).Draw(t, "late"))))
		}
		a := timeline.Compare(marks, truth)[0]
		if a.Count != len(marks) || a.Inside != len(marks) || a.Unmatched != 0 {
			t.Fatalf("%+v", a)
		}
		if a.ErrMaxNS > 501 || a.ErrP50NS > a.ErrP95NS || a.ErrP95NS > a.ErrMaxNS {
			t.Fatalf("%+v", a)
		}
	})
}

func TestAccuracy_JSON(t *testing.T) {
	got, err := json.Marshal(timeline.Accuracy{
		Stage: timeline.Light, Count: 1, Inside: 2, Unmatched: 3, ErrP50NS: 4, ErrP95NS: 5, ErrMaxNS: 6, WidthP50NS: 7,
	})
	const want = `{"kind":"accuracy","stage":"light","count":1,"inside":2,"unmatched":3,` +
		`"err_p50_ns":4,"err_p95_ns":5,"err_max_ns":6,"width_p50_ns":7}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v\nwant %s", got, err, want)
	}
}
