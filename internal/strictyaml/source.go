package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"
)

// source is the text of a file, for positions within it.
type source struct {
	data  []byte // without byte order mark
	lines []string
}

func newSource(data []byte) source {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lines := strings.Split(string(data), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return source{data, lines}
}

// pos returns the position of a byte offset.
func (s source) pos(offset int) Pos {
	before := s.data[:min(offset, len(s.data))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return Pos{bytes.Count(before, []byte{'\n'}) + 1, utf8.RuneCount(before[start:]) + 1}
}

// text returns the position of the first character of a line that is not
// blank.
func (s source) text(line int) Pos {
	l := s.lines[line-1]
	blank := len(l) - len(strings.TrimLeft(l, " \t"))
	return Pos{line, blank + 1}
}

// inside returns the position of byte offset of the text that n stands for.
// It is that of n itself where the text cannot be followed in the source:
// in block scalars, and beyond the first line of others.
func (s source) inside(n *yaml.Node, offset int) Pos {
	at := Pos{n.Line, n.Column}
	if offset < 0 || n.Line < 1 || n.Line > len(s.lines) {
		return at
	}
	offset = min(offset, len(n.Value))
	rest := s.lines[n.Line-1]
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	var end int // of the part of rest that stands before the offset
	switch n.Style {
	case 0:
		if end = offset; !strings.HasPrefix(rest, n.Value[:offset]) {
			return at
		}
	case yaml.SingleQuotedStyle, yaml.DoubleQuotedStyle:
		end = 1
		for done := 0; done < offset; {
			from, to := char(rest[min(end, len(rest)):], n.Style)
			if from == 0 {
				return at
			}
			end += from
			done += to
		}
	default:
		return at
	}
	at.Column += utf8.RuneCountInString(rest[:end])
	return at
}

// char returns how many bytes the first character of the inside of a quoted
// scalar takes, and how many bytes it stands for.
func char(s string, style yaml.Style) (from, to int) {
	_, size := utf8.DecodeRuneInString(s)
	switch {
	case size == 0:
		return 0, 0
	case style == yaml.SingleQuotedStyle && s[0] == '\'':
		return 2, 1
	case style == yaml.SingleQuotedStyle || s[0] != '\\' || len(s) < 2:
		return size, size
	}
	digits := 0
	switch s[1] {
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	case 'N', '_': // U+0085, U+00A0
		return 2, 2
	case 'L', 'P': // U+2028, U+2029
		return 2, 3
	default:
		return 2, 1
	}
	code, err := strconv.ParseUint(s[2:min(2+digits, len(s))], 16, 32)
	if err != nil {
		return 0, 0
	}
	return 2 + digits, utf8.RuneLen(rune(code))
}

// parse returns the only document of the file.
func (s source) parse(file string) (*yaml.Node, error) {
	fail := func(pos Pos, format string, args ...any) error {
		return Errors{Errorf(file, pos, "", format, args...)}
	}
	if pos, msg := s.illegible(); msg != "" {
		return nil, fail(pos, "%s", msg)
	}
	dec := yaml.NewDecoder(bytes.NewReader(s.data))
	var doc, second yaml.Node
	err := dec.Decode(&doc)
	if err == nil {
		err = dec.Decode(&second)
	} else if errors.Is(err, io.EOF) {
		return nil, fail(Pos{1, 1}, "the file is empty")
	}
	switch root := doc.Content; {
	case err == nil:
		return nil, fail(Pos{second.Line, second.Column}, "a second document begins here: a file holds one")
	case !errors.Is(err, io.EOF):
		pos, msg := s.explain(err)
		return nil, fail(pos, "%s", msg)
	case null(root[0]):
		return nil, fail(Pos{1, 1}, "the file is empty")
	default:
		return root[0], nil
	}
}

// illegible returns where the first character stands that must not be in a
// YAML file, and what is wrong with it. YAML takes some invisible characters
// for line breaks that no editor counts: these are refused, too.
func (s source) illegible() (Pos, string) {
	for i := 0; i < len(s.data); {
		r, size := utf8.DecodeRune(s.data[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			return s.pos(i), "the file is not UTF-8 text here"
		case r == '\r' && (i+1 == len(s.data) || s.data[i+1] != '\n'),
			r < ' ' && r != '\t' && r != '\n' && r != '\r',
			r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029, r == 0xfeff, r == 0xfffe, r == 0xffff:
			return s.pos(i), "there is an invisible character here, " + strconv.QuoteRuneToASCII(r) + ": remove it"
		}
		i += size
	}
	return Pos{}, ""
}

var (
	yamlError     = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)
	// Problems found among tokens rather than characters.
	parserProblem = regexp.MustCompile(`^did not find expected (<|node content|key|'|',')|^found (undefined|duplicate|incompatible)`)
)

// explain returns where a syntax error is, and a sentence about it.
//
// The library tells the line only: none if it is the first, one less than the
// true one if the error was found among tokens, and often that where the
// enclosing block begins. So the file is read again, byte by byte, to see how
// far the library comes.
func (s source) explain(err error) (Pos, string) {
	m := yamlError.FindStringSubmatch(err.Error())
	if m == nil {
		return Pos{1, 1}, err.Error()
	}
	line, msg := 1, m[2]
	if m[1] != "" {
		line, _ = strconv.Atoi(m[1])
	}
	line = min(line, len(s.lines))

	offset := s.reached()
	if a := unknownAnchor.FindStringSubmatch(msg); a != nil {
		at := bytes.LastIndex(s.data[:min(offset+lookahead, len(s.data))], []byte("*"+a[1]))
		return s.pos(max(at, 0)), "anchors and aliases are not supported: write the value out"
	}
	at := s.pos(offset)
	switch {
	case strings.HasSuffix(msg, "',' or ']'"):
		at, msg = s.opening('[', line+1), "a list that was opened with [ is not closed, or text within it needs quotes"
	case strings.HasSuffix(msg, "',' or '}'"):
		at, msg = s.opening('{', line+1), "a mapping that was opened with { is not closed, or text within it needs quotes"
	case parserProblem.MatchString(msg):
		at = s.text(1 + sort.Search(at.Line-1, func(i int) bool { return s.fails(i+1, msg) }))
	case at.Line != line:
		at = s.text(line)
	}

	switch cannotStart := strings.HasPrefix(msg, "found character that cannot start any token"); {
	case strings.HasPrefix(msg, "mapping values are not allowed"):
		msg = "a colon is not allowed here: put quotes around text that holds one, or mend the indentation"
	case strings.HasPrefix(msg, "block sequence entries are not allowed"):
		msg = "a list cannot begin here: put it on lines of its own"
	case strings.HasSuffix(msg, "node content"):
		msg = "a value is missing here, or a bracket that was opened is not closed"
	case parserProblem.MatchString(msg):
		msg = "this line does not fit in with those before it: is it indented right, or is something before it not closed?"
	case strings.HasPrefix(msg, "found a tab"), cannotStart && offset < len(s.data) && s.data[offset] == '\t':
		msg = "a tab cannot indent: use blanks"
	case cannotStart && offset < len(s.data):
		msg = "text that begins with " + strconv.QuoteRune(rune(s.data[offset])) + " needs quotes"
	}
	return at, msg
}

// opening returns where bracket stands last in a line, or else in the first.
func (s source) opening(bracket byte, line int) Pos {
	line = min(line, len(s.lines))
	if strings.IndexByte(s.lines[line-1], bracket) < 0 {
		line = 1
	}
	l := s.lines[line-1]
	return Pos{line, utf8.RuneCountInString(l[:max(strings.LastIndexByte(l, bracket), 0)]) + 1}
}

// fails reports whether the first lines alone have the problem msg.
func (s source) fails(lines int, msg string) bool {
	var n yaml.Node
	err := yaml.Unmarshal([]byte(strings.Join(s.lines[:lines], "\n")+"\n"), &n)
	if err == nil {
		return false
	}
	m := yamlError.FindStringSubmatch(err.Error())
	return m != nil && m[2] == msg
}

// lookahead is how many characters the scanner of the library holds beyond
// the one it looks at.
const lookahead = 4

// reached returns the byte offset at which the library gives up.
func (s source) reached() int {
	// Blank lines at the end keep the lookahead full.
	r := &oneByte{data: append(bytes.Clone(s.data), "\n\n\n\n"...)}
	dec := yaml.NewDecoder(r)
	for {
		var n yaml.Node
		if dec.Decode(&n) != nil {
			break
		}
	}
	at := r.n
	for range lookahead {
		_, size := utf8.DecodeLastRune(r.data[:at])
		at -= size
	}
	return at
}

// oneByte reads a byte at a time and counts them.
type oneByte struct {
	data []byte
	n    int
}

func (r *oneByte) Read(p []byte) (int, error) {
	if r.n == len(r.data) {
		return 0, io.EOF
	}
	p[0] = r.data[r.n]
	r.n++
	return 1, nil
}
