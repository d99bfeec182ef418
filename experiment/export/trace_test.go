package export_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// traceEvent is one of Chrome's format, with all fields that we write.
type traceEvent struct {
	Phase    string         `json:"ph"`
	Process  *int           `json:"pid"`
	Thread   *int           `json:"tid"`
	At       *json.Number   `json:"ts"`
	Length   *json.Number   `json:"dur"`
	Scope    string         `json:"s"`
	Category string         `json:"cat"`
	Name     string         `json:"name"`
	Args     map[string]any `json:"args"`
}

func (e traceEvent) String() string {
	text, _ := json.Marshal(e)
	return string(text)
}

// ns reads microseconds with three decimals exactly.
func ns(t failer, n *json.Number) int64 {
	t.Helper()
	whole, part, _ := strings.Cut(n.String(), ".")
	v, err := json.Number(whole + (part + "000")[:3]).Int64()
	if err != nil || len(part) > 3 {
		t.Fatalf("%v is no time in microseconds: %v", n, err)
	}
	return v
}

// tracks are the events of a trace by the names of their process and thread.
type tracks map[[2]string][]traceEvent

// checkTrace reads a trace and checks what viewers rely on: fields that belong to each
// phase, order, names for all that is shown, and that slices of one track are beside or
// within each other.
func checkTrace(t failer, text []byte) tracks {
	t.Helper()
	var file struct {
		Unit   string            `json:"displayTimeUnit"`
		Other  map[string]string `json:"otherData"`
		Events []traceEvent      `json:"traceEvents"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	d.UseNumber()
	if err := d.Decode(&file); err != nil {
		t.Fatalf("read trace: %v\n%s", err, text)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("there is more after the trace")
	}
	if file.Unit != "ms" || file.Events == nil {
		t.Fatalf("unit %q, events %v", file.Unit, file.Events)
	}
	processes, threads := map[int]string{}, map[int]string{}
	processOf := map[int]int{} // of each thread
	last := int64(0)
	open := map[int][]int64{} // ends of the slices that hold the next, by thread
	on := tracks{}
	for i, e := range file.Events {
		if e.Process == nil || e.Thread == nil || e.Name == "" || e.Args == nil {
			t.Fatalf("event %d lacks a field: %v", i, e)
		}
		process, thread := *e.Process, *e.Thread
		if e.Phase == "M" {
			if e.At != nil || e.Length != nil || e.Scope != "" || last > 0 {
				t.Errorf("names have no time, and come first: %v", e)
			}
			name, _ := e.Args["name"].(string)
			switch e.Name {
			case "process_name":
				processes[process] = name
			case "thread_name":
				if processOf[thread] != 0 || processes[thread] != "" {
					t.Errorf("thread %d is there twice, or has the number of a process", thread)
				}
				threads[thread], processOf[thread] = name, process
			case "process_sort_index", "thread_sort_index":
				if _, ok := e.Args["sort_index"].(json.Number); !ok {
					t.Errorf("no place: %v", e)
				}
			default:
				t.Errorf("unknown name %v", e)
			}
			continue
		}
		if e.At == nil || e.Category == "" {
			t.Fatalf("event %d lacks a field: %v", i, e)
		}
		at := ns(t, e.At)
		if at < last {
			t.Fatalf("event %d is before the one before it: %v", i, e)
		}
		last = at
		if processes[process] == "" {
			t.Fatalf("process %d has no name: %v", process, e)
		}
		if e.Phase != "C" && (processOf[thread] != process || threads[thread] == "") {
			t.Fatalf("thread %d of process %d has no name: %v", thread, process, e)
		}
		switch e.Phase {
		case "X":
			if e.Length == nil || e.Scope != "" {
				t.Fatalf("slice lacks a field: %v", e)
			}
			length := ns(t, e.Length)
			if length < 0 {
				t.Fatalf("slice of negative length: %v", e)
			}
			for len(open[thread]) > 0 && open[thread][len(open[thread])-1] <= at && at+length > open[thread][len(open[thread])-1] {
				open[thread] = open[thread][:len(open[thread])-1]
			}
			if n := len(open[thread]); n > 0 && at+length > open[thread][n-1] {
				t.Fatalf("slice is neither within nor beside the one before it on its track: %v", e)
			}
			open[thread] = append(open[thread], at+length)
		case "i":
			if e.Length != nil || e.Scope != "t" {
				t.Fatalf("instant lacks a field: %v", e)
			}
		case "C":
			if _, ok := e.Args["dBm"].(json.Number); !ok || len(e.Args) != 1 || e.Length != nil || e.Scope != "" {
				t.Fatalf("counter without a number: %v", e)
			}
			on[[2]string{processes[process], e.Name}] = append(on[[2]string{processes[process], e.Name}], e)
			continue
		default:
			t.Fatalf("phase %q: %v", e.Phase, e)
		}
		key := [2]string{processes[process], threads[thread]}
		on[key] = append(on[key], e)
	}
	return on
}

// line writes an event so that it can be read in a test.
func line(e traceEvent) string {
	text := e.Phase + " " + e.At.String()
	if e.Length != nil {
		text += " +" + e.Length.String()
	}
	text += " " + e.Name
	for _, key := range []string{
		"command_earliest_ns", "command_latest_ns", "traffic_earliest_ns", "carrier-up_earliest_ns", "carrier-up_latest_ns",
		"dark_earliest_ns", "dark_latest_ns", "missing", "dBm", "text", "condition",
	} {
		if v, ok := e.Args[key]; ok {
			text += fmt.Sprintf(" %s=%v", key, v)
		}
	}
	return text
}

func TestSmallTrace(t *testing.T) {
	got := checkTrace(t, all(t, small())["trace"])
	label := ` condition=dead_time=10 note="a, b"`
	want := map[[2]string][]string{
		{"experiment", "points and reconfigurations"}: {
			`X 1000000 +2600000 point 1, repeat 1: dead_time=10 note="a, b" condition=1`,
			"X 1000000 +960500 1: dp to pp" + label,
			"X 3000000 +600000 2: pp to dp" + label,
			`X 3601000000 +500000 point 3, null toggle 1: dead_time=10 note="a, b" condition=1`,
			"X 3601000000 +500000 5: null toggle" + label,
		},
		{"experiment", "events"}: {"i 3600000000 recovered text=The run went on."},
		{"switches", "rail0"}: {
			"X 1000000.001 +205000.001 command to ack command_earliest_ns=0 command_latest_ns=2" + label,
			"X 3000000.001 +199999.999 command to ack command_earliest_ns=0 command_latest_ns=2" + label,
		},
		{"light", "rail0/33"}: {"X 1015000 +190000 dark dark_earliest_ns=9999998 dark_latest_ns=20000000" + label},
		{"NICs", "g1/n0"}: {
			"X 1030000 +920000.500 carrier down carrier-up_earliest_ns=949999998 carrier-up_latest_ns=950001001" + label,
			"i 1901000 firmware" + label,
			"X 3030000 +570000 carrier down missing=carrier-up" + label, // until nobody waited any more
		},
		{"NICs", "g2/n0"}:          {"i 3601100500 carrier-down" + label}, // nobody expected it to come back
		{"traffic", "g1/n0>g2/n0"}: {"i 999999.999 traffic-lost" + label},
		{"traffic", "g1/n0>g3/n0"}: {"X 1000000.001 +960499.999 no traffic command_earliest_ns=0 command_latest_ns=2 traffic_earliest_ns=959999998" + label},
		{"optical power", "rail0/33"}: {
			"C 996000 rail0/33 dBm=-3.25",
			"C 1016000 rail0/33 dBm=-60",
		},
		{"truth: light", "rail0/33"}: {"i 1012000 dark dark_earliest_ns=11999998 dark_latest_ns=12000000" + label},
	}
	for key, events := range got {
		var lines []string
		for _, e := range events {
			lines = append(lines, line(e))
		}
		if !slices.Equal(lines, want[key]) {
			t.Errorf("%q:\n%s\nwant\n%s", key, strings.Join(lines, "\n"), strings.Join(want[key], "\n"))
		}
		delete(want, key)
	}
	for key := range want {
		t.Errorf("no track %q", key)
	}
}

// Of a whole run every mark is shown, and what was measured has tracks beside the truth.
func TestSyntheticTrace(t *testing.T) {
	r := analysistest.Synthetic(80, 4, 1)
	got := checkTrace(t, all(t, r)["trace"])
	shown, points := 0, 0
	for key, events := range got {
		if strings.HasPrefix(key[0], "truth") || key[0] == "experiment" || key[0] == "optical power" {
			for _, e := range events {
				if strings.HasPrefix(e.Name, "point ") {
					points++
				}
			}
			continue
		}
		for _, e := range events {
			for _, stage := range timeline.Stages() {
				if _, ok := e.Args[string(stage)+"_latest_ns"]; ok && (stage != timeline.Command || key[0] == "switches") {
					shown++
				}
			}
		}
		if key[0] != "switches" && len(got[[2]string{"truth: " + key[0], key[1]}]) == 0 {
			t.Errorf("no truth beside %q", key)
		}
	}
	if shown != len(r.Marks) {
		t.Errorf("%d marks are shown, want %d", shown, len(r.Marks))
	}
	if points != len(r.Done) {
		t.Errorf("%d points are shown, want %d", points, len(r.Done))
	}
}

// A slice that begins before the one before it on its track has ended is cut, and a session
// that the wall clock puts before the end of the one before it comes after that.
func TestOverlaps(t *testing.T) {
	day := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	mark := func(stage timeline.Stage, number int, ns int64) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: "rail0/33", Reconfiguration: number, Interval: timeline.Point(ns)}
	}
	got := checkTrace(t, all(t, &runs.Run{
		Sessions: []runs.Session{
			{Number: 1, Boot: "one", Begun: day, MonoNS: 0}, {Number: 2, Boot: "two", Begun: day.Add(-time.Hour), MonoNS: 70_000},
		},
		Reconfigurations: []runs.Reconfiguration{
			{Number: 1, Point: 1, Session: 1, MonoNS: 0}, {Number: 2, Point: 1, Session: 1, MonoNS: 40_000},
			{Number: 3, Point: 2, Session: 2, MonoNS: 80_000},
		},
		Marks: []timeline.Mark{
			mark(timeline.Dark, 1, 10_000), mark(timeline.Light, 1, 100_000), mark(timeline.Dark, 2, 50_000), mark(timeline.Light, 2, 200_000),
			mark(timeline.Dark, 3, 90_000), mark(timeline.Light, 3, 95_000),
		},
	})["trace"])
	var lines []string
	for _, e := range got[[2]string{"light", "rail0/33"}] {
		lines = append(lines, fmt.Sprintf("%s +%s", e.At, e.Length))
	}
	if want := []string{"10 +90", "100 +100", "220 +5"}; !slices.Equal(lines, want) {
		t.Errorf("slices at %q, want %q", lines, want)
	}
}

// anyRun draws a run with marks at any time, in order of reconfigurations as a run that
// was read has them.
func anyRun(t *rapid.T) *runs.Run {
	moment := rapid.OneOf(rapid.Int64Range(0, 50), rapid.Int64Range(-1e9, 1e9), rapid.Int64())
	r := &runs.Run{Plan: &plan.Plan{Window: moment.Draw(t, "window")}}
	day := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for i := range rapid.IntRange(0, 3).Draw(t, "sessions") {
		r.Sessions = append(r.Sessions, runs.Session{
			Number: i + 1, Boot: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "boot"), MonoNS: moment.Draw(t, "begun"),
			Begun: day.Add(time.Duration(rapid.Int64Range(-100, 100).Draw(t, "wall"))),
		})
	}
	number := rapid.IntRange(0, 6)
	for i := range rapid.IntRange(0, 5).Draw(t, "reconfigurations") {
		r.Reconfigurations = append(r.Reconfigurations, runs.Reconfiguration{
			Number: i + 1, Point: rapid.IntRange(1, 3).Draw(t, "point"), Session: rapid.IntRange(0, 4).Draw(t, "session"),
			MonoNS: moment.Draw(t, "at"), Null: rapid.Bool().Draw(t, "null"), Wall: day,
		})
	}
	mark := rapid.Custom(func(t *rapid.T) timeline.Mark {
		return timeline.Mark{
			Stage: rapid.SampledFrom(timeline.Stages()).Draw(t, "stage"), Subject: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "subject"),
			Host: rapid.SampledFrom([]string{"", "h"}).Draw(t, "host"), Reconfiguration: number.Draw(t, "of"),
			Interval: timeline.Between(moment.Draw(t, "x"), moment.Draw(t, "y")),
		}
	})
	r.Marks = rapid.SliceOfN(mark, 0, 20).Draw(t, "marks")
	r.Truth = rapid.SliceOfN(mark, 0, 8).Draw(t, "truth")
	for range rapid.IntRange(0, 4).Draw(t, "expectations") {
		m := mark.Draw(t, "expected")
		r.Expected = append(r.Expected, timeline.Expectation{Reconfiguration: m.Reconfiguration, Stage: m.Stage, Subject: m.Subject})
	}
	for range rapid.IntRange(0, 3).Draw(t, "samples") {
		at := timeline.Between(moment.Draw(t, "x"), moment.Draw(t, "y"))
		r.Samples = append(r.Samples, runs.Sample{
			Reconfiguration: number.Draw(t, "of"), Subject: "a/1", EarliestNS: at.Earliest, LatestNS: at.Latest, PowerDBm: rapid.Float64().Draw(t, "power"),
		})
	}
	slices.SortStableFunc(r.Marks, func(a, b timeline.Mark) int { return cmp.Compare(a.Reconfiguration, b.Reconfiguration) })
	slices.SortStableFunc(r.Truth, func(a, b timeline.Mark) int { return cmp.Compare(a.Reconfiguration, b.Reconfiguration) })
	slices.SortStableFunc(r.Expected, func(a, b timeline.Expectation) int { return cmp.Compare(a.Reconfiguration, b.Reconfiguration) })
	slices.SortStableFunc(r.Samples, func(a, b runs.Sample) int { return cmp.Compare(a.Reconfiguration, b.Reconfiguration) })
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		r.Events = append(r.Events, runs.Event{Kind: "paused", Session: rapid.IntRange(0, 4).Draw(t, "session"), Wall: day.Add(time.Duration(moment.Draw(t, "wall")))})
	}
	return r
}

// Whatever was measured, a viewer can show it.
func TestAnyTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		if err := export.Trace(&b, anyRun(t)); err != nil {
			t.Fatal(err)
		}
		checkTrace(t, b.Bytes())
	})
}

func BenchmarkTrace(b *testing.B) { benchmark(b, export.Trace) }
