package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Pos is a place in a file. The zero Pos is unknown.
type Pos struct {
	Line, Column int // from 1; columns count characters
}

// Error is one problem in a file.
type Error struct {
	File         string
	Line, Column int    // from 1; zero if unknown
	Path         string // of the value, such as switches[1].url; may be empty
	Msg          string
	err          error
}

// Errorf returns the problem at pos of the value at path. An error formatted
// with %w can be found with errors.Is and errors.As.
func Errorf(file string, pos Pos, path, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{File: file, Line: pos.Line, Column: pos.Column, Path: path, Msg: err.Error(), err: errors.Unwrap(err)}
}

// Error returns one sentence, "lab.yaml:4:10: switches[0].name: is empty".
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	if e.Path != "" {
		b.WriteString(": " + e.Path)
	}
	b.WriteString(": " + e.Msg)
	return b.String()
}

// Unwrap returns the error that Msg was made from, if any.
func (e *Error) Unwrap() error { return e.err }

// Errors are the problems of one file.
type Errors []*Error

// Err returns e in order of position, or nil if there are none.
func (e Errors) Err() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return e
}

// Error returns a line for each problem, at most ten, and counts the rest.
func (e Errors) Error() string {
	const most = 10
	var b strings.Builder
	for i, p := range e {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == most {
			s := "s"
			if len(e) == most+1 {
				s = ""
			}
			fmt.Fprintf(&b, "and %d more problem%s", len(e)-most, s)
			break
		}
		b.WriteString(p.Error())
	}
	return b.String()
}

// Unwrap returns each problem.
func (e Errors) Unwrap() []error {
	errs := make([]error, len(e))
	for i, p := range e {
		errs[i] = p
	}
	return errs
}

// Positions says where each value of a decoded file stands, by path. A nil one knows no
// position.
type Positions struct {
	values, keys map[string]Pos
}

// Value returns the position of the value at path or, if it is not in the
// file, of the nearest value around it.
func (p *Positions) Value(path string) Pos {
	if p == nil {
		return Pos{}
	}
	return lookUp(p.values, path)
}

// Key returns the position of the key at path, as Value does.
func (p *Positions) Key(path string) Pos {
	if p != nil {
		if pos, ok := p.keys[path]; ok {
			return pos
		}
	}
	return p.Value(path)
}

// Has reports whether there is a value at path in the file.
func (p *Positions) Has(path string) bool {
	if p == nil {
		return false
	}
	_, ok := p.values[path]
	return ok
}

func lookUp(m map[string]Pos, path string) Pos {
	for {
		if pos, ok := m[path]; ok || path == "" {
			return pos
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// Key returns the path of key in the mapping at path, quoting it if it would
// be ambiguous: switches[0].url, maps["rail.0"].
func Key(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return path + "[" + quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

// Index returns the path of item i of the list at path.
func Index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// quote quotes s for a message and shortens it.
func quote(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "..."
	}
	return strconv.Quote(s)
}

// DidYouMean returns ` (did you mean "name"?)` for the one of known that is
// most like word, or nothing if none is.
func DidYouMean(word string, known []string) string {
	const long = 64
	best, least := "", 3
	if len(word) <= 3 {
		least = 2
	}
	for _, k := range known {
		if len(word) > long || len(k) > long {
			continue
		}
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// distance is the number of letters to insert, delete or replace to turn a
// into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
