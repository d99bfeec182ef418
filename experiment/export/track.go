package export

import (
	"cmp"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// layer is one group of tracks in a trace: what is lost, what comes back, and what the
// time between is called. Other stages in it are instants.
type layer struct {
	name       string
	lost, back timeline.Stage
	between    string
	also       timeline.Stage
}

var layers = []layer{
	{"switches", timeline.Command, timeline.Ack, "command to ack", ""},
	{"light", timeline.Dark, timeline.Light, "dark", ""},
	{"NICs", timeline.CarrierDown, timeline.CarrierUp, "carrier down", timeline.Firmware},
	{"traffic", timeline.TrafficLost, timeline.Traffic, "no traffic", ""},
}

// layerOf returns the place of a stage's layer.
func layerOf(s timeline.Stage) (int, bool) {
	i := slices.IndexFunc(layers, func(l layer) bool { return s == l.lost || s == l.back || s == l.also })
	return i, i >= 0
}

// track is one line of a trace.
type track struct {
	truth         bool
	layer         int
	subject, host string
}

// trackOf returns the track that a mark belongs on.
func trackOf(m *timeline.Mark, truth bool) (track, bool) {
	l, ok := layerOf(m.Stage)
	t := track{truth, l, m.Subject, m.Host}
	if truth {
		t.host = "" // there is one truth
	}
	return t, ok
}

// process is a group of tracks: one layer, as measured or as it was.
func (t track) process() int {
	p := firstLayer + t.layer
	if t.truth {
		p += len(layers) + 1 // after optical power
	}
	return p
}

// The processes of a trace: it begins with the experiment, then come the layers.
const (
	experimentProcess = 1
	firstLayer        = 2
)

// powerProcess comes between what was measured and the truth.
func powerProcess() int { return firstLayer + len(layers) }

// tracks are all tracks of a run with their thread IDs, which are distinct in the whole
// trace, and none of which is that of a process: viewers take that for its main thread.
type tracks map[track]int

const firstThread = 1000

// tracksOf finds the tracks of a run, in the order in which they are shown.
func tracksOf(marks, truth []timeline.Mark) (tracks, []track) {
	t := tracks{}
	for i := range marks {
		if key, ok := trackOf(&marks[i], false); ok {
			t[key] = 0
		}
	}
	for i := range truth {
		if key, ok := trackOf(&truth[i], true); ok {
			t[key] = 0
		}
	}
	order := slices.SortedFunc(maps.Keys(t), func(a, b track) int {
		return cmp.Or(cmp.Compare(a.process(), b.process()), natural.Compare(a.subject, b.subject), cmp.Compare(a.host, b.host))
	})
	for i, key := range order {
		t[key] = firstThread + i
	}
	return t, order
}
