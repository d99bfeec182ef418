package scpi

import "strings"

// Message is one program message: what a client sends in a line.
type Message struct {
	Units []Unit
}

// Unit is one command or query of a message.
type Unit struct {
	Header Header
	Query  bool // the header ends in '?'
	Params []Param
	Offset int    // of the header in the line, counted from 1
	Raw    string // as written, without blanks around
	// Err says why the unit cannot be read; then Header and Params hold what was
	// read before.
	Err *SyntaxError
}

// Header names a command.
type Header struct {
	Keywords []string // as written, suffixes included
	Common   bool     // begins with '*', as *IDN
	Rooted   bool     // begins with ':'
}

// String returns the header as it was written, without '?'.
func (h Header) String() string {
	switch text := strings.Join(h.Keywords, ":"); {
	case h.Common:
		return "*" + text
	case h.Rooted:
		return ":" + text
	default:
		return text
	}
}

// ParamKind is the type of a parameter (IEEE 488.2, 7.7).
type ParamKind uint8

const (
	Word       ParamKind = iota // character program data: DARK
	Number                      // decimal: 1, -2.5, 1e3, with a suffix perhaps
	NonDecimal                  // #H1F, #Q17, #B101
	String                      // "text", 'text'
	Block                       // #15hello, or #0 up to the end of the line
	Expression                  // (@1,2:5)
	Dotted                      // 192.168.1.1, which the standard does not know
)

var kindNames = [...]string{"a word", "a number", "a number in another base", "a string", "a block", "an expression", "an address"}

// String returns the name of the kind with its article.
func (k ParamKind) String() string { return kindNames[k] }

// Param is one parameter.
type Param struct {
	Kind   ParamKind
	Raw    string // as written, without blanks around
	Suffix string // of a Number: its unit
	Offset int    // in the line, counted from 1
}

// Text returns the content of a string or block, else Raw without the suffix.
func (p Param) Text() string {
	switch p.Kind {
	case String:
		s, _ := Unquote(p.Raw) // was checked
		return s
	case Block:
		if n := int(p.Raw[1] - '0'); n > 0 {
			return p.Raw[2+n:]
		}
		return p.Raw[2:]
	}
	text, _ := trim(strings.TrimSuffix(p.Raw, p.Suffix))
	return text
}

// ParseMessage reads a line without its end. Empty units are left out. The error
// is that of the first unit which cannot be read; Units holds that one and the
// others all the same.
func ParseMessage(line []byte) (Message, error) {
	var m Message
	var err error
	text := string(line)
	for from := 0; from < len(text); {
		end := unitEnd(text, from)
		raw, front := trim(text[from:end])
		if raw != "" {
			p := parser{line: text, pos: from + front, end: from + front + len(raw), limit: end}
			u := p.unit()
			if u.Err != nil && err == nil {
				err = u.Err
			}
			m.Units = append(m.Units, u)
		}
		from = end + 1
	}
	return m, err
}

// unitEnd returns where the unit that begins at from ends.
func unitEnd(line string, from int) int {
	var s scan
	for i := from; i < len(line); i++ {
		if c := line[i]; !s.inside(c) && c == ';' {
			return i
		}
	}
	return len(line)
}
