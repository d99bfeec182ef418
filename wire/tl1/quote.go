package tl1

import "strings"

const (
	blanks     = " \t\r"   // separate words inside a line
	whitespace = " \t\r\n" // separate commands
)

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }

// quoting follows double quotes through text, one byte at a time.
type quoting struct {
	open   bool // inside a quoted string
	escape bool // the last byte was an active backslash
}

// next reports whether c belongs to a quoted string, its quotes included.
// A line end closes any string: GR-831 strings do not span lines, and so one
// unbalanced quote cannot swallow the rest of a stream.
func (q *quoting) next(c byte) bool {
	switch {
	case c == '\r' || c == '\n':
		*q = quoting{}
		return false
	case !q.open:
		q.open = c == '"'
		return q.open
	case q.escape:
		q.escape = false
	case c == '\\':
		q.escape = true
	case c == '"':
		q.open = false
	}
	return true
}

// Quote returns s in wire form: unchanged if it has only ASCII letters, digits,
// '_' and '.', and as by [QuoteAlways] otherwise. The empty string stays empty.
//
// The list is short on purpose. Switches are known to split an unquoted system
// name at a dash and to want quotes around blanks and slashes; none is known to
// reject quotes.
func Quote(s string) string {
	for i := range len(s) {
		if !isAlnum(s[i]) && s[i] != '_' && s[i] != '.' {
			return QuoteAlways(s)
		}
	}
	return s
}

// QuoteAlways returns s in double quotes with \ before each quote and each
// backslash. TL1 has no way to write a line end inside a string: CR and LF
// become blanks.
func QuoteAlways(s string) string {
	return string(appendQuoted(make([]byte, 0, len(s)+2), s))
}

func appendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\r', '\n':
			dst = append(dst, ' ')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// Unquote is the inverse of [Quote]. When s is exactly one quoted string, it
// returns what is inside, with \" and \\ resolved; a backslash before any other
// character stands for itself. Any other s is returned as it is, including text
// made of several quoted strings.
func Unquote(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	in := s[1 : len(s)-1]
	if strings.IndexByte(in, '"') < 0 && strings.IndexByte(in, '\\') < 0 {
		return in
	}
	var q quoting
	for i := range len(s) {
		q.next(s[i])
		if !q.open && i < len(s)-1 {
			return s // the first string ends before s does
		}
	}
	if q.open {
		return s // the last quote is an escaped one
	}
	return unescaper.Replace(in)
}

var unescaper = strings.NewReplacer(`\\`, `\`, `\"`, `"`)

func isAlnum(c byte) bool { return isLetter(c) || isDigit(c) }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
