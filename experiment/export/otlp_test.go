package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/export"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// The messages of OTLP's trace service in JSON as protobuf maps it, written from its
// .proto files and not from what is under test. Unknown keys are refused.
type (
	exportRequest struct {
		ResourceSpans []struct {
			Resource struct {
				Attributes             []keyValue `json:"attributes"`
				DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
			} `json:"resource"`
			ScopeSpans []struct {
				Scope struct {
					Name                   string     `json:"name"`
					Version                string     `json:"version"`
					Attributes             []keyValue `json:"attributes"`
					DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
				} `json:"scope"`
				Spans     []span `json:"spans"`
				SchemaURL string `json:"schemaUrl"`
			} `json:"scopeSpans"`
			SchemaURL string `json:"schemaUrl"`
		} `json:"resourceSpans"`
	}
	span struct {
		TraceID                string     `json:"traceId"`
		SpanID                 string     `json:"spanId"`
		TraceState             string     `json:"traceState"`
		ParentSpanID           string     `json:"parentSpanId"`
		Flags                  uint32     `json:"flags"`
		Name                   string     `json:"name"`
		Kind                   int        `json:"kind"`
		Start                  fixed64    `json:"startTimeUnixNano"`
		End                    fixed64    `json:"endTimeUnixNano"`
		Attributes             []keyValue `json:"attributes"`
		DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
		Events                 []struct {
			Time                   fixed64    `json:"timeUnixNano"`
			Name                   string     `json:"name"`
			Attributes             []keyValue `json:"attributes"`
			DroppedAttributesCount uint32     `json:"droppedAttributesCount"`
		} `json:"events"`
		DroppedEventsCount uint32 `json:"droppedEventsCount"`
		Status             struct {
			Message string `json:"message"`
			Code    int    `json:"code"`
		} `json:"status"`
	}
	keyValue struct {
		Key   string   `json:"key"`
		Value anyValue `json:"value"`
	}
)

// fixed64 is a decimal string.
type fixed64 uint64

func (f *fixed64) UnmarshalJSON(text []byte) error {
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	n, err := strconv.ParseUint(s, 10, 64)
	*f = fixed64(n)
	return err
}

// anyValue is one of the kinds of values.
type anyValue struct{ v any }

func (a *anyValue) UnmarshalJSON(text []byte) error {
	var one map[string]json.RawMessage
	if err := json.Unmarshal(text, &one); err != nil {
		return err
	}
	if len(one) != 1 {
		return fmt.Errorf("a value is one of its kinds, found %s", text)
	}
	for kind, raw := range one {
		switch kind {
		case "stringValue":
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return err
			}
			a.v = s
		case "boolValue":
			var b bool
			if err := json.Unmarshal(raw, &b); err != nil {
				return err
			}
			a.v = b
		case "intValue":
			var s string
			if err := json.Unmarshal(raw, &s); err != nil {
				return fmt.Errorf("64-bit numbers are strings: %w", err)
			}
			n, err := strconv.ParseInt(s, 10, 64)
			if err != nil {
				return err
			}
			a.v = n
		default:
			return fmt.Errorf("unknown kind of value %q", kind)
		}
	}
	return nil
}

var (
	traceID = regexp.MustCompile(`^[0-9a-f]{32}$`)
	spanID  = regexp.MustCompile(`^[0-9a-f]{16}$`)
)

// attributesOf checks that keys are distinct.
func attributesOf(t failer, list []keyValue) map[string]any {
	t.Helper()
	m := map[string]any{}
	for _, a := range list {
		if _, twice := m[a.Key]; twice || a.Key == "" {
			t.Errorf("attribute %q is there twice, or has no name", a.Key)
		}
		m[a.Key] = a.Value.v
	}
	return m
}

// checkOTLP reads spans line by line and checks what collectors rely on. It returns the
// spans of each line.
func checkOTLP(t failer, text []byte) (resources []map[string]any, traces [][]span) {
	t.Helper()
	if !utf8.Valid(text) {
		t.Errorf("not UTF-8")
	}
	ids := map[string]bool{}
	for line := range bytes.Lines(text) {
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		var r exportRequest
		if err := d.Decode(&r); err != nil {
			t.Fatalf("read %s: %v", line, err)
		}
		if _, err := d.Token(); err != io.EOF {
			t.Fatalf("more than one message on a line: %s", line)
		}
		if len(r.ResourceSpans) != 1 || len(r.ResourceSpans[0].ScopeSpans) != 1 {
			t.Fatalf("want one resource with one scope on each line: %s", line)
		}
		resource := attributesOf(t, r.ResourceSpans[0].Resource.Attributes)
		if resource["service.name"] != "ocslab" {
			t.Errorf("resource %v", resource)
		}
		resources = append(resources, resource)
		spans := r.ResourceSpans[0].ScopeSpans[0].Spans
		for i, s := range spans {
			if !traceID.MatchString(s.TraceID) || !spanID.MatchString(s.SpanID) || ids[s.TraceID+s.SpanID] || s.TraceID != spans[0].TraceID {
				t.Errorf("IDs %q, %q", s.TraceID, s.SpanID)
			}
			ids[s.TraceID+s.SpanID] = true
			if i == 0 && s.ParentSpanID != "" || i > 0 && s.ParentSpanID != spans[0].SpanID {
				t.Errorf("span %d has the parent %q", i, s.ParentSpanID)
			}
			if s.Name == "" || s.Kind != 1 && s.Kind != 3 || s.Status.Code != 0 && s.Status.Code != 2 || s.End < s.Start {
				t.Errorf("span %+v", s)
			}
			if s.Start < spans[0].Start || s.End > spans[0].End {
				t.Errorf("span %+v is not within its parent", s)
			}
			attributesOf(t, s.Attributes)
			for _, e := range s.Events {
				if e.Name == "" || e.Time < s.Start || e.Time > s.End {
					t.Errorf("event %+v", e)
				}
				attributesOf(t, e.Attributes)
			}
		}
		if ids[spans[0].TraceID] {
			t.Errorf("two traces with the ID %s", spans[0].TraceID)
		}
		ids[spans[0].TraceID] = true
		traces = append(traces, spans)
	}
	return resources, traces
}

func TestSmallOTLP(t *testing.T) {
	resources, traces := checkOTLP(t, all(t, small())["otlp"])
	if len(traces) != 3 {
		t.Fatalf("%d traces", len(traces))
	}
	for key, want := range map[string]any{
		"service.version": "1.2.4", "host.name": "ctl", "os.version": "6.13.0", "ocslab.run": "20261122T100000-small-0001",
		"service.instance.id": "20261122T100000-small-0001/2", "ocslab.emulated": true, "ocslab.lab": "bench",
	} {
		if got := resources[2][key]; got != want {
			t.Errorf("%s is %v, want %v", key, got, want)
		}
	}
	const second = 1_795_341_601_000_000_000 // 2026-11-22T10:00:01Z
	root := traces[0][0]
	if root.Name != "reconfiguration" || root.Start != second-1 || root.End != second+960_500_000 || len(root.Events) != 9 || root.Status.Code != 0 {
		t.Errorf("root %+v", root)
	}
	about := attributesOf(t, root.Attributes)
	for key, want := range map[string]any{
		"ocslab.reconfiguration": int64(1), "ocslab.point": int64(1), "ocslab.null": false, "ocslab.from": "dp", "ocslab.to": "pp",
		"ocslab.param.dead_time": "10", "ocslab.added": "rail0 1>34",
	} {
		if about[key] != want {
			t.Errorf("%s is %v, want %v", key, about[key], want)
		}
	}
	stages := map[string]span{}
	for _, s := range traces[0][1:] {
		stages[s.Name] = s
	}
	up := stages["carrier-up"]
	about = attributesOf(t, up.Attributes)
	if up.Start != second+1 || up.End != second+950_000_500 || up.Kind != 1 || about["network.interface.name"] != "n0" ||
		about["ocslab.subject"] != "g1/n0" || about["ocslab.after_earliest_ns"] != int64(949_999_998) {
		t.Errorf("carrier-up %+v", up)
	}
	ack := stages["ack"]
	about = attributesOf(t, ack.Attributes)
	if ack.Kind != 3 || about["server.address"] != "192.0.2.10" || about["server.port"] != int64(3082) {
		t.Errorf("ack %+v", ack)
	}
	if lost := stages["traffic-lost"]; lost.Start != lost.End || lost.Start != second+1 {
		t.Errorf("what was before the command has a length: %+v", lost)
	}
	if len(stages) != 8 || len(traces[0]) != 9 {
		t.Errorf("%d stages in %d spans", len(stages), len(traces[0]))
	}
	if failed := traces[1][0]; failed.Status.Code != 2 || failed.Status.Message != "g1/n0: carrier-up: not within 600ms" {
		t.Errorf("status %+v", failed.Status)
	}
	if null := traces[2]; len(null) != 1 || null[0].Name != "null toggle" || len(null[0].Events) != 1 {
		t.Errorf("null toggle %+v", null)
	}
}

// There is a trace for each reconfiguration and a span for each mark after its command.
func TestSyntheticOTLP(t *testing.T) {
	r := analysistest.Synthetic(80, 4, 1)
	_, traces := checkOTLP(t, all(t, r)["otlp"])
	commanded := map[int]bool{}
	for _, m := range r.Marks {
		commanded[m.Reconfiguration] = commanded[m.Reconfiguration] || m.Stage == timeline.Command
	}
	spans, want := 0, len(r.Reconfigurations)
	for _, m := range r.Marks {
		if commanded[m.Reconfiguration] && m.Stage != timeline.Command {
			want++
		}
	}
	for _, trace := range traces {
		spans += len(trace)
	}
	if len(traces) != len(r.Reconfigurations) || spans != want {
		t.Errorf("%d traces with %d spans, want %d with %d", len(traces), spans, len(r.Reconfigurations), want)
	}
	other := analysistest.Synthetic(80, 4, 1)
	other.Meta.ID = "another"
	_, others := checkOTLP(t, all(t, other)["otlp"])
	if traces[0][0].TraceID == others[0][0].TraceID {
		t.Error("two runs have a trace in common")
	}
}

func TestAnyOTLP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b bytes.Buffer
		if err := export.OTLP(&b, anyRun(t)); err != nil {
			t.Fatal(err)
		}
		checkOTLP(t, b.Bytes())
	})
}

// A URL with a secret is not repeated.
func TestOTLPHoldsNoSecret(t *testing.T) {
	r := small()
	r.Setups[0].Devices[0].URL = "tl1://admin:hunter2@192.0.2.10:3082"
	if bytes.Contains(all(t, r)["otlp"], []byte("hunter2")) {
		t.Error("the password is there")
	}
}

func BenchmarkOTLP(b *testing.B) {
	benchmark(b, func(w io.Writer, r *runs.Run) error { return export.OTLP(w, r) })
}
