package scpi

import (
	"fmt"
	"regexp"
	"strconv"
)

// Syntax of IEEE 488.2, chapters 7 (what a client sends) and 8 (what a device
// answers), and of SCPI-99 volume 1, chapters 6 to 8.
var (
	strictBlanks  = regexp.MustCompile(`^[\x00-\x09\x0b-\x20]+`)
	strictHeader  = regexp.MustCompile(`^(\*[A-Za-z][A-Za-z0-9_]{0,11}|:?[A-Za-z][A-Za-z0-9_]{0,11}(:[A-Za-z][A-Za-z0-9_]{0,11})*)\??`)
	strictProgram = []*regexp.Regexp{
		regexp.MustCompile(`^[+-]?(\d+\.?\d*|\.\d+)([\x00-\x09\x0b-\x20]*[Ee][\x00-\x09\x0b-\x20]*[+-]?\d+)?([\x00-\x09\x0b-\x20]*/?[A-Za-z]+(-?\d)?([./][A-Za-z]+(-?\d)?)*)?`),
		regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,11}`),
		regexp.MustCompile(`^"([\x00-\x21\x23-\x7e]|"")*"`),
		regexp.MustCompile(`^'([\x00-\x26\x28-\x7e]|'')*'`),
		regexp.MustCompile(`^\([\x20\x21\x24-\x26\x2a-\x3a\x3c-\x7e]*\)`),
		regexp.MustCompile(`^#([Hh][0-9A-Fa-f]+|[Qq][0-7]+|[Bb][01]+)`),
	}
	strictReply = []*regexp.Regexp{
		regexp.MustCompile(`^[+-]?\d+(\.\d+(E[+-]\d+)?)?`),
		regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,11}`),
		regexp.MustCompile(`^"([\x00-\x21\x23-\x7e]|"")*"`),
		regexp.MustCompile(`^\([\x20\x21\x24-\x26\x2a-\x3a\x3c-\x7e]*\)`),
		regexp.MustCompile(`^#(H[0-9A-F]+|Q[0-7]+|B[01]+)`),
	}
	strictBlock = regexp.MustCompile(`^#([1-9])(\d+)`)
)

// CheckStrict says what in a line, without its end, the standard does not allow
// in a program message; nil is nothing. It is for tests of clients.
func CheckStrict(line []byte) []error {
	var errs []error
	for i, u := range strictUnits(line) {
		rest := strictSkip(u.text)
		n := len(strictHeader.Find(rest))
		data := strictSkip(rest[n:])
		switch {
		case n == 0 && len(rest) == 0 && i == 0: // an empty message
		case n == 0:
			errs = append(errs, u.err("no header"))
		case len(data) == 0:
		case len(data) == len(rest)-n:
			errs = append(errs, u.err("no blank behind the header"))
		default:
			errs = append(errs, u.data(data, strictProgram, true)...)
		}
	}
	return errs
}

// CheckStrictReply says what in a reply, without its end, the standard does not
// allow as response data; nil is nothing. It is for tests of devices. Arbitrary
// ASCII (*IDN?) is not recognised, since whatever is printable would pass.
func CheckStrictReply(reply []byte) []error {
	var errs []error
	for _, u := range strictUnits(reply) {
		errs = append(errs, u.data(u.text, strictReply, false)...)
	}
	return errs
}

type strictUnit struct {
	text   []byte
	offset int
}

func (u strictUnit) err(reason string) error {
	return fmt.Errorf("scpi: %s in the unit at offset %d, %s", reason, u.offset+1, excerpt(string(u.text)))
}

// strictUnits cuts at semicolons outside of data that may hold them.
func strictUnits(line []byte) []strictUnit {
	var units []strictUnit
	from := 0
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ';':
			units = append(units, strictUnit{line[from:i], from})
			i++
			from = i
		case c == '"' || c == '\'' || c == '#':
			i += max(strictData(line[i:], strictProgram), 1)
		default:
			i++
		}
	}
	return append(units, strictUnit{line[from:], from})
}

// strictSkip returns p without the blanks that it begins with.
func strictSkip(p []byte) []byte { return p[len(strictBlanks.Find(p)):] }

// strictData returns how long the data element is that p begins with.
func strictData(p []byte, elements []*regexp.Regexp) int {
	if m := strictBlock.FindSubmatch(p); m != nil {
		digits := int(m[1][0] - '0')
		if len(m[2]) >= digits {
			if n, err := strconv.Atoi(string(m[2][:digits])); err == nil && 2+digits+n <= len(p) {
				return 2 + digits + n
			}
		}
		return 0
	}
	longest := 0
	for _, e := range elements {
		longest = max(longest, len(e.Find(p)))
	}
	return longest
}

// data checks elements joined by commas, with blanks around these if they may be.
func (u strictUnit) data(rest []byte, elements []*regexp.Regexp, blanks bool) []error {
	for {
		n := strictData(rest, elements)
		if n == 0 {
			return []error{u.err(fmt.Sprintf("no data at %s", excerpt(string(rest))))}
		}
		rest = rest[n:]
		if blanks {
			rest = strictSkip(rest)
		}
		if len(rest) == 0 {
			return nil
		}
		if rest[0] != ',' {
			return []error{u.err(fmt.Sprintf("no comma at %s", excerpt(string(rest))))}
		}
		rest = rest[1:]
		if blanks {
			rest = strictSkip(rest)
		}
	}
}
