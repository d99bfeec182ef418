package ocs

import (
	"fmt"
	"slices"
	"strings"
)

// SyntaxError is a port map or port list that cannot be read.
type SyntaxError struct {
	Text   string // all that was to be read
	Offset int    // byte offset in Text of what is wrong, from 0
	Reason string
}

// Error returns one sentence with the offset and what stands there.
func (e *SyntaxError) Error() string {
	at := "the end"
	if e.Offset < len(e.Text) {
		at = fmt.Sprintf("%.20q", e.Text[e.Offset:])
	}
	return fmt.Sprintf("port map %q: offset %d, at %s: %s", abbreviate(e.Text), e.Offset, at, e.Reason)
}

func abbreviate(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "..."
}

// ParseMap reads the text form of a map: cross-connects separated by commas,
// each an ingress and an egress joined by '>', each end a port or a range.
// Both ranges of a cross-connect must have the same length and are paired by
// position; a range that counts down pairs in reverse. Blanks are ignored.
//
//	1>33          one cross-connect
//	1-4>33-36     four
//	1-2>34-33     1>34 and 2>33
//	1-4>33-36,7>40
//
// The empty text is the empty map. Errors are a [*SyntaxError] with the offset
// of what is wrong; of a port used twice it is where the second use stands,
// and the error matches [ErrConflict] too.
func ParseMap(text string) (Map, error) {
	p := parser{text: text}
	var ccs []CrossConnect
	ingress, egress := map[Port]Port{}, map[Port]Port{}
	if p.blank(); p.pos == len(text) {
		return Map{}, nil
	}
	for {
		in, inAt, err := p.ports()
		if err != nil {
			return Map{}, err
		}
		if !p.take('>') {
			return Map{}, p.fail(p.pos, "want '>' and an egress port")
		}
		out, outAt, err := p.ports()
		if err != nil {
			return Map{}, err
		}
		if in.len() != out.len() {
			return Map{}, p.fail(outAt, "%d egress ports for %d ingress ports", out.len(), in.len())
		}
		for i := range in.len() {
			c := CrossConnect{in.at(i), out.at(i)}
			if e, dup := ingress[c.Ingress]; dup {
				return Map{}, conflictAt{p.fail(inAt, "ingress %d is used twice, by %v and %v", c.Ingress, CrossConnect{c.Ingress, e}, c)}
			}
			if o, dup := egress[c.Egress]; dup {
				return Map{}, conflictAt{p.fail(outAt, "egress %d is used twice, by %v and %v", c.Egress, CrossConnect{o, c.Egress}, c)}
			}
			ingress[c.Ingress], egress[c.Egress] = c.Egress, c.Ingress
			ccs = append(ccs, c)
		}
		if p.done() {
			return NewMap(ccs...)
		}
		if !p.take(',') {
			return Map{}, p.fail(p.pos, "want ',' or the end")
		}
	}
}

// ParsePorts reads a list of ports and ranges separated by commas,
// "1-4,7,33". The empty text is no ports; a port named twice is an error.
// Errors are a [*SyntaxError].
func ParsePorts(text string) ([]Port, error) {
	p := parser{text: text}
	if p.done() {
		return nil, nil
	}
	var ps []Port
	seen := map[Port]bool{}
	for {
		span, at, err := p.ports()
		if err != nil {
			return nil, err
		}
		for i := range span.len() {
			if seen[span.at(i)] {
				return nil, p.fail(at, "port %d is named twice", span.at(i))
			}
			seen[span.at(i)] = true
			ps = append(ps, span.at(i))
		}
		if p.done() {
			return ps, nil
		}
		if !p.take(',') {
			return nil, p.fail(p.pos, "want ',' or the end")
		}
	}
}

// conflictAt is a syntax error that is a conflict, too.
type conflictAt struct{ *SyntaxError }

func (e conflictAt) Unwrap() []error { return []error{e.SyntaxError, ErrConflict} }

// span is a port or a range of ports, counting up or down.
type span struct{ first, last Port }

func (s span) len() int {
	if s.last < s.first {
		return int(s.first-s.last) + 1
	}
	return int(s.last-s.first) + 1
}

func (s span) at(i int) Port {
	if s.last < s.first {
		return s.first - Port(i)
	}
	return s.first + Port(i)
}

type parser struct {
	text string
	pos  int
}

func (p *parser) fail(at int, format string, args ...any) *SyntaxError {
	return &SyntaxError{Text: p.text, Offset: at, Reason: fmt.Sprintf(format, args...)}
}

func (p *parser) blank() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) done() bool {
	p.blank()
	return p.pos == len(p.text)
}

func (p *parser) take(c byte) bool {
	p.blank()
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}

func (p *parser) port() (Port, error) {
	p.blank()
	at, n := p.pos, Port(0)
	for p.pos < len(p.text) && '0' <= p.text[p.pos] && p.text[p.pos] <= '9' {
		if n <= MaxPort { // stop growing once it is too large
			n = n*10 + Port(p.text[p.pos]-'0')
		}
		p.pos++
	}
	switch {
	case p.pos == at:
		return 0, p.fail(at, "want a port number")
	case !n.Valid():
		return 0, p.fail(at, "want a port from 1 to %d", MaxPort)
	}
	return n, nil
}

// ports reads a port or a range and returns where it began.
func (p *parser) ports() (s span, at int, err error) {
	p.blank()
	at = p.pos
	if s.first, err = p.port(); err != nil {
		return s, at, err
	}
	s.last = s.first
	if p.take('-') {
		s.last, err = p.port()
	}
	return s, at, err
}

// String returns the text form that [ParseMap] reads; three or more
// cross-connects that count up together are written as a range. The empty map
// is the empty text.
func (m Map) String() string {
	var b strings.Builder
	for ccs := m.byIngress; len(ccs) > 0; {
		n := 1
		for n < len(ccs) && ccs[n].Ingress == ccs[0].Ingress+Port(n) && ccs[n].Egress == ccs[0].Egress+Port(n) {
			n++
		}
		if n < 3 {
			n = 1
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		last := ccs[n-1]
		if n == 1 {
			fmt.Fprintf(&b, "%d>%d", last.Ingress, last.Egress)
		} else {
			fmt.Fprintf(&b, "%d-%d>%d-%d", ccs[0].Ingress, last.Ingress, ccs[0].Egress, last.Egress)
		}
		ccs = ccs[n:]
	}
	return b.String()
}

// FormatPorts returns the text form that [ParsePorts] reads, in ascending
// order, with three or more consecutive ports as a range.
func FormatPorts(ports []Port) string {
	var b strings.Builder
	ps := slices.Sorted(slices.Values(ports))
	for ps = slices.Compact(ps); len(ps) > 0; {
		n := 1
		for n < len(ps) && ps[n] == ps[0]+Port(n) {
			n++
		}
		if n < 3 {
			n = 1
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(ps[0].String())
		if n > 1 {
			b.WriteString("-" + ps[n-1].String())
		}
		ps = ps[n:]
	}
	return b.String()
}

// MarshalText returns the text form; it never fails.
func (m Map) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// UnmarshalText reads the text form; see [ParseMap].
func (m *Map) UnmarshalText(text []byte) error {
	v, err := ParseMap(string(text))
	if err == nil {
		*m = v
	}
	return err
}

// TextOffset returns the offset, for decoders that point into a file.
func (e *SyntaxError) TextOffset() int { return e.Offset }
