package runs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/ocslab/ocslab/internal/jsontext"
	"github.com/ocslab/ocslab/timeline"
)

// kindOf returns the kind of a line, or nil for what is no whole line of ours.
func kindOf(line []byte) []byte {
	rest, ok := bytes.CutPrefix(line, []byte(`{"kind":"`))
	if !ok || line[len(line)-1] != '}' {
		return nil
	}
	i := bytes.IndexByte(rest, '"')
	if i < 0 {
		return nil
	}
	return rest[:i]
}

// parser reads lines of the kinds of which there are many. Texts that are equal share
// their bytes.
type parser struct {
	texts  map[string]string
	stages map[string]timeline.Stage
}

func newParser() *parser {
	p := &parser{texts: make(map[string]string), stages: make(map[string]timeline.Stage)}
	for _, s := range timeline.Stages() {
		p.stages[string(s)] = s
		p.texts[string(s)] = string(s)
	}
	return p
}

// text returns b as a string.
func (p *parser) text(b []byte) string {
	if s, ok := p.texts[string(b)]; ok {
		return s
	}
	s := string(b)
	p.texts[s] = s
	return s
}

// shared returns the copy of s that all use.
func (p *parser) shared(s string) string {
	if t, ok := p.texts[s]; ok {
		return t
	}
	p.texts[s] = s
	return s
}

// mark reads a line of kind mark or truth.
func (p *parser) mark(line []byte, kind string, m *timeline.Mark) error {
	f := fields{rest: line}
	f.literal(`{"kind":"`)
	f.literal(kind)
	f.literal(`","stage":"`)
	stage, known := p.stages[string(f.text())]
	f.literal(`,"subject":"`)
	subject := f.text()
	f.literal(`,"host":"`)
	host := f.text()
	f.literal(`,"earliest_ns":`)
	earliest := f.whole()
	f.literal(`,"latest_ns":`)
	latest := f.whole()
	f.literal(`,"source":"`)
	source := f.text()
	var detail []byte
	if f.has(`,"detail":"`) {
		detail = f.text()
	}
	f.literal(`,"reconfiguration":`)
	number := f.whole()
	f.literal(`}`)
	if f.failed || len(f.rest) > 0 || !known || earliest > latest || number < 0 || number > math.MaxInt32 {
		return p.otherMark(line, kind, m)
	}
	m.Stage, m.Subject, m.Host = stage, p.text(subject), p.text(host)
	m.Interval = timeline.Interval{Earliest: earliest, Latest: latest}
	m.Source, m.Detail, m.Reconfiguration = p.text(source), p.text(detail), int(number)
	return nil
}

// otherMark reads a mark in any other form of JSON, or says what is wrong with it.
func (p *parser) otherMark(line []byte, kind string, m *timeline.Mark) error {
	if kind != kindMark { // the same object under another name
		line = bytes.Replace(line, []byte(kind), []byte(kindMark), 1)
	}
	if err := m.UnmarshalJSON(line); err != nil {
		return err
	}
	m.Stage = timeline.Stage(p.shared(string(m.Stage)))
	m.Subject, m.Host = p.shared(m.Subject), p.shared(m.Host)
	m.Source, m.Detail = p.shared(m.Source), p.shared(m.Detail)
	return nil
}

func (p *parser) expected(line []byte, e *timeline.Expectation) error {
	f := fields{rest: line}
	f.literal(`{"kind":"expected","reconfiguration":`)
	number := f.whole()
	f.literal(`,"stage":"`)
	stage, known := p.stages[string(f.text())]
	f.literal(`,"subject":"`)
	subject := f.text()
	f.literal(`}`)
	if !f.failed && len(f.rest) == 0 && known && number >= 0 && number <= math.MaxInt32 {
		*e = timeline.Expectation{Reconfiguration: int(number), Stage: stage, Subject: p.text(subject)}
		return nil
	}
	var other struct {
		Reconfiguration int            `json:"reconfiguration"`
		Stage           timeline.Stage `json:"stage"`
		Subject         string         `json:"subject"`
	}
	if err := json.Unmarshal(line, &other); err != nil {
		return err
	}
	if !other.Stage.Valid() || other.Reconfiguration < 0 {
		return fmt.Errorf("stage %.60q of reconfiguration %d cannot be expected", other.Stage, other.Reconfiguration)
	}
	*e = timeline.Expectation{Reconfiguration: other.Reconfiguration, Stage: other.Stage, Subject: p.shared(other.Subject)}
	return nil
}

func (p *parser) sample(line []byte, s *Sample) error {
	f := fields{rest: line}
	f.literal(`{"kind":"sample","reconfiguration":`)
	number := f.whole()
	f.literal(`,"subject":"`)
	subject := f.text()
	f.literal(`,"earliest_ns":`)
	earliest := f.whole()
	f.literal(`,"latest_ns":`)
	latest := f.whole()
	dark, power := f.has(`,"dark":true`), 0.0
	if !dark {
		f.literal(`,"power_dbm":`)
		power = f.decimal()
	}
	f.literal(`}`)
	if f.failed || len(f.rest) > 0 || number < 0 || number > math.MaxInt32 {
		var other Sample
		if err := json.Unmarshal(line, &other); err != nil {
			return err
		}
		other.Subject = p.shared(other.Subject)
		*s = other
	} else {
		*s = Sample{int(number), p.text(subject), earliest, latest, power, dark}
	}
	if s.EarliestNS > s.LatestNS || s.Reconfiguration < 0 {
		return fmt.Errorf("sample of %.60q from %d to %d ns in reconfiguration %d cannot be", s.Subject, s.EarliestNS, s.LatestNS, s.Reconfiguration)
	}
	return nil
}

// fields goes through a line whose keys are in our own order and whose texts need no
// escapes. At anything else it fails, for package json to have a look.
type fields struct {
	rest   []byte
	failed bool
}

// literal passes over s.
func (f *fields) literal(s string) {
	if !f.has(s) {
		f.failed = true
	}
}

// has passes over s if that is next.
func (f *fields) has(s string) bool {
	if len(f.rest) < len(s) || string(f.rest[:len(s)]) != s {
		return false
	}
	f.rest = f.rest[len(s):]
	return true
}

// text returns what is next up to a quote, and passes over both.
func (f *fields) text() []byte {
	for i, c := range f.rest {
		if jsontext.Plain(c) {
			continue
		}
		if c == '"' {
			text := f.rest[:i]
			f.rest = f.rest[i+1:]
			return text
		}
		break
	}
	f.failed = true
	return nil
}

// whole returns a whole number, written as strconv writes it.
func (f *fields) whole() int64 {
	i, n, negative := 0, uint64(0), false
	if len(f.rest) > 0 && f.rest[0] == '-' {
		i, negative = 1, true
	}
	first := i
	for ; i < len(f.rest) && f.rest[i]-'0' <= 9 && i-first < 19; i++ { // 19 digits fit into 64 bits
		n = 10*n + uint64(f.rest[i]-'0')
	}
	// What is more than int64 holds is for package json to refuse; so are zeros in front.
	if i == first || n > math.MaxInt64 || (f.rest[first] == '0' && (i > first+1 || negative)) {
		f.failed = true
		return 0
	}
	f.rest = f.rest[i:]
	if negative {
		return -int64(n)
	}
	return int64(n)
}

// decimal returns a number up to the end of the object.
func (f *fields) decimal() float64 {
	i := 0
	for i < len(f.rest) && (f.rest[i]-'0' <= 9 || bytes.IndexByte([]byte("+-.e"), f.rest[i]) >= 0) {
		i++
	}
	n, err := strconv.ParseFloat(string(f.rest[:i]), 64)
	if err != nil {
		f.failed = true
	}
	f.rest = f.rest[i:]
	return n
}
