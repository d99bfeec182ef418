package export

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// OTLP writes the run as OpenTelemetry spans in the OTLP/JSON file format: one
// ExportTraceServiceRequest on each line, for one reconfiguration, which is a trace of its
// own.
//
// The root span is the reconfiguration, from its command to its last mark. It has an event
// for each mark, and a child for each stage that a subject reached, from the command to the
// stage; each at the middle of its mark, with both ends, since the command, as attributes.
// What was before the command (a last packet may be) is a span without length. Spans have
// the status error when something that was waited for did not come.
//
// IDs follow from the run's ID and the number of the reconfiguration, so writing a run
// again overwrites and does not double. Times of day are that of the reconfiguration, and
// from there on by the monotonic clock. Attributes are those of OpenTelemetry's semantic
// conventions where there is one (service, host, os, server, network.interface.name), and
// begin with "ocslab." where there is none.
func OTLP(w io.Writer, r *runs.Run) error {
	s := spannerOf(r)
	out := bufio.NewWriterSize(w, flushAt)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	for i := range r.Reconfigurations {
		if err := lines.Encode(s.request(&r.Reconfigurations[i])); err != nil {
			return fmt.Errorf("export: spans of run %s: %w", r.Meta.ID, err)
		}
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("export: spans of run %s: %w", r.Meta.ID, err)
	}
	return nil
}

// The names of the scope and of the conventions that attributes follow.
const (
	otlpScope  = "github.com/ocslab/ocslab/experiment/export"
	otlpSchema = "https://opentelemetry.io/schemas/1.26.0"
)

// Kinds of spans and codes of status, as numbered by OTLP.
const (
	kindInternal = 1
	kindClient   = 3
	statusError  = 2
)

// What follows is the part of OTLP's messages that is used, in JSON as protobuf maps it:
// 64-bit numbers are strings, enumerations are numbers, IDs are in hex.
type (
	otlpRequest struct {
		ResourceSpans []otlpResourceSpans `json:"resourceSpans"`
	}
	otlpResourceSpans struct {
		Resource   otlpResource     `json:"resource"`
		ScopeSpans []otlpScopeSpans `json:"scopeSpans"`
		SchemaURL  string           `json:"schemaUrl"`
	}
	otlpResource struct {
		Attributes []otlpAttribute `json:"attributes"`
	}
	otlpScopeSpans struct {
		Scope otlpScopeName `json:"scope"`
		Spans []otlpSpan    `json:"spans"`
	}
	otlpScopeName struct {
		Name    string `json:"name"`
		Version string `json:"version,omitempty"`
	}
	otlpSpan struct {
		TraceID      string          `json:"traceId"`
		SpanID       string          `json:"spanId"`
		ParentSpanID string          `json:"parentSpanId,omitempty"`
		Name         string          `json:"name"`
		Kind         int             `json:"kind"`
		Start        string          `json:"startTimeUnixNano"`
		End          string          `json:"endTimeUnixNano"`
		Attributes   []otlpAttribute `json:"attributes,omitempty"`
		Events       []otlpEvent     `json:"events,omitempty"`
		Status       otlpStatus      `json:"status"`
	}
	otlpEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []otlpAttribute `json:"attributes,omitempty"`
	}
	otlpStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code,omitempty"`
	}
	otlpAttribute struct {
		Key   string    `json:"key"`
		Value otlpValue `json:"value"`
	}
	otlpValue struct {
		String *string `json:"stringValue,omitempty"`
		Bool   *bool   `json:"boolValue,omitempty"`
		Int    *int64  `json:"intValue,omitempty,string"`
	}
)

// attributes are a list in the making. Empty texts are left out.
type attributes []otlpAttribute

func (a *attributes) text(key, value string) {
	if value != "" {
		value = strings.ToValidUTF8(value, "\uFFFD")
		*a = append(*a, otlpAttribute{key, otlpValue{String: &value}})
	}
}

func (a *attributes) whole(key string, value int64) {
	*a = append(*a, otlpAttribute{key, otlpValue{Int: &value}})
}

func (a *attributes) yes(key string, value bool) {
	*a = append(*a, otlpAttribute{key, otlpValue{Bool: &value}})
}

// spanner makes spans.
type spanner struct {
	*index
	sessions  map[int]*runs.Session
	resources map[int]otlpResource // of each session
	addresses map[string]string    // of switches, by name: host and port, without secrets
}

func spannerOf(r *runs.Run) *spanner {
	s := &spanner{
		index:     indexOf(r),
		sessions:  map[int]*runs.Session{},
		resources: map[int]otlpResource{},
		addresses: map[string]string{},
	}
	for i := range r.Sessions {
		s.sessions[r.Sessions[i].Number] = &r.Sessions[i]
	}
	for _, setup := range r.Setups {
		for _, d := range setup.Devices {
			if u, err := url.Parse(d.URL); err == nil {
				s.addresses[d.Name] = u.Host
			}
		}
	}
	return s
}

// resource is what made the spans of a session.
func (s *spanner) resource(session int) otlpResource {
	if r, ok := s.resources[session]; ok {
		return r
	}
	var a attributes
	a.text("service.name", "ocslab")
	version := s.run.Meta.Version
	if x := s.sessions[session]; x != nil {
		version = x.Version
		a.text("host.name", x.Host)
		a.text("os.version", x.Kernel)
	}
	a.text("service.version", version)
	a.text("service.instance.id", fmt.Sprintf("%s/%d", s.run.Meta.ID, session))
	a.text("ocslab.run", s.run.Meta.ID)
	a.text("ocslab.experiment", s.run.Meta.Name)
	a.text("ocslab.lab", s.run.Meta.Lab)
	a.yes("ocslab.emulated", s.run.Meta.Emulated)
	s.resources[session] = otlpResource{a}
	return s.resources[session]
}

func (s *spanner) request(m *runs.Reconfiguration) otlpRequest {
	return otlpRequest{[]otlpResourceSpans{{
		Resource: s.resource(m.Session), SchemaURL: otlpSchema,
		ScopeSpans: []otlpScopeSpans{{Scope: otlpScopeName{otlpScope, s.run.Meta.Version}, Spans: s.spans(m)}},
	}}}
}

// spans returns the trace of a reconfiguration, its root first.
func (s *spanner) spans(m *runs.Reconfiguration) []otlpSpan {
	number := strconv.Itoa(m.Number)
	trace := s.id(16, number)
	root := otlpSpan{
		TraceID: trace, SpanID: s.id(8, number), Name: "reconfiguration", Kind: kindInternal, Attributes: s.about(m),
	}
	if m.Null {
		root.Name = "null toggle"
	}
	if len(m.Unresolved) > 0 {
		root.Status = otlpStatus{strings.Join(m.Unresolved, "; "), statusError}
	}
	begin := m.MonoNS
	command, commanded := s.commands[m.Number]
	if commanded {
		begin = command.Mid()
	}
	whole := extent{begin, begin}
	spans := []otlpSpan{root}
	marks := s.run.MarksOf(m.Number)
	for k := range marks {
		mark := &marks[k]
		at := mark.Mid()
		whole.include(at)
		about := s.aboutMark(mark)
		spans[0].Events = append(spans[0].Events, otlpEvent{unix(m, at), string(mark.Stage), about})
		if !commanded || mark.Stage == timeline.Command {
			continue
		}
		span := otlpSpan{
			TraceID: trace, SpanID: s.id(8, number, strconv.Itoa(k), string(mark.Stage), mark.Subject, mark.Host),
			ParentSpanID: root.SpanID, Name: string(mark.Stage), Kind: kindInternal,
			Start: unix(m, begin), End: unix(m, max(begin, at)), Attributes: about,
		}
		if address := s.addresses[mark.Subject]; mark.Stage == timeline.Ack {
			span.Kind = kindClient
			span.Attributes = slices.Concat(about, server(address))
		}
		spans = append(spans, span)
	}
	spans[0].Start, spans[0].End = unix(m, whole.from), unix(m, whole.to)
	return spans
}

// about is what there is to say of a reconfiguration.
func (s *spanner) about(m *runs.Reconfiguration) attributes {
	var a attributes
	a.whole("ocslab.reconfiguration", int64(m.Number))
	a.whole("ocslab.point", int64(m.Point))
	a.whole("ocslab.repeat", int64(m.Repeat))
	a.whole("ocslab.condition", int64(m.Condition))
	a.whole("ocslab.session", int64(m.Session))
	a.yes("ocslab.null", m.Null)
	c := s.condition(m.Condition)
	a.text("ocslab.label", c.Label)
	for _, name := range s.varied {
		a.text("ocslab.param."+name, c.Parameters[name])
	}
	a.text("ocslab.from", m.From)
	a.text("ocslab.to", m.To)
	a.text("ocslab.removed", circuits(m.Removed))
	a.text("ocslab.added", circuits(m.Added))
	a.text("ocslab.held", strings.Join(m.Held, " "))
	if len(m.Unresolved) > 0 {
		a.text("error.type", "unresolved")
	}
	return a
}

// aboutMark is what there is to say of a mark.
func (s *spanner) aboutMark(m *timeline.Mark) attributes {
	var a attributes
	a.text("ocslab.stage", string(m.Stage))
	a.text("ocslab.subject", m.Subject)
	a.text("ocslab.seen_by", m.Host)
	a.text("ocslab.source", m.Source)
	a.text("ocslab.detail", m.Detail)
	if at, ok := s.since(m.Reconfiguration, m.Interval); ok {
		a.whole("ocslab.after_earliest_ns", at.Earliest)
		a.whole("ocslab.after_latest_ns", at.Latest)
	}
	switch m.Stage {
	case timeline.CarrierDown, timeline.CarrierUp, timeline.Firmware:
		_, name, _ := strings.Cut(m.Subject, "/")
		a.text("network.interface.name", name)
	}
	return a
}

// server says where a switch is reached.
func server(address string) attributes {
	var a attributes
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		a.text("server.address", address)
		return a
	}
	a.text("server.address", host)
	if n, err := strconv.Atoi(port); err == nil {
		a.whole("server.port", int64(n))
	}
	return a
}

// id makes an ID of so many bytes from the run's and the parts.
func (s *spanner) id(bytes int, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(append([]string{"ocslab", s.run.Meta.ID, strconv.Itoa(bytes)}, parts...), "\x00")))
	return hex.EncodeToString(sum[:bytes])
}

// unix returns the time of day of an instant of a reconfiguration: nanoseconds since
// 1970, not before.
func unix(m *runs.Reconfiguration, ns int64) string {
	var began int64
	if m.Wall.After(time.Unix(0, 0)) {
		began = m.Wall.UnixNano()
	}
	return strconv.FormatInt(max(0, plus(began, minus(ns, m.MonoNS))), 10)
}
