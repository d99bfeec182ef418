package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Load reads the experiment file at path; see [Parse]. A file that cannot be read gives an
// error of package os.
func Load(path string) (*File, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("experiment file: %w", err)
	}
	return Parse(path, data)
}

// Parse reads an experiment file. The error, if any, is [strictyaml.Errors] with all
// problems of form or, if there are none of these, all problems of meaning that can be
// told without a lab. Nothing but data is looked at.
func Parse(name string, data []byte) (*File, error) {
	f := &File{Path: name, Text: slices.Clone(data)}
	at, err := strictyaml.DecodePositions(name, data, f)
	if err != nil {
		return nil, explain(err)
	}
	f.at = at
	c := checker{f: f}
	if c.file() {
		c.lay(f.seed(nil), f.repeats(nil), true)
	}
	if err := c.errs.Err(); err != nil {
		return nil, err
	}
	return f, nil
}

// explain says how to write what no experiment may leave out.
func explain(err error) error {
	if all := (strictyaml.Errors)(nil); errors.As(err, &all) {
		for _, e := range all {
			switch e.Msg {
			case `the key "finally" is missing`:
				e.Msg += ": every run must leave the light as it should be; write finally: {light: restore}, or the name of a configuration"
			case `the key "light" is missing`:
				e.Msg += ": write light: restore, or the name of a configuration"
			case `the key "sequence" is missing`:
				e.Msg += ": write the configurations to go through, such as sequence: [dp, pp]"
			}
		}
	}
	return err
}

// checker finds problems of meaning.
type checker struct {
	f    *File
	errs strictyaml.Errors
}

// value reports a problem of the value at path.
func (c *checker) value(path, format string, args ...any) {
	c.errs = append(c.errs, strictyaml.Errorf(c.f.Path, c.f.at.Value(path), path, format, args...))
}

// key reports a problem of the key at path.
func (c *checker) key(path, format string, args ...any) {
	c.errs = append(c.errs, strictyaml.Errorf(c.f.Path, c.f.at.Key(path), path, format, args...))
}

// there reports whether the file has the key at path.
func (c *checker) there(path string) bool { return c.f.at.Key(path) != c.f.at.Value(path) }

// written returns the keys of the mapping at path in the order of the file.
func written[V any](f *File, path string, m map[string]V) []string {
	keys := sorted(m)
	slices.SortStableFunc(keys, func(a, b string) int {
		pa, pb := f.at.Key(strictyaml.Key(path, a)), f.at.Key(strictyaml.Key(path, b))
		return cmp.Or(pa.Line-pb.Line, pa.Column-pb.Column)
	})
	return keys
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// longest is the longest time that a file may ask for, which keeps sums away from overflow.
const longest = 24 * time.Hour

// duration checks the time at path, if the file has it.
func (c *checker) duration(path string, d, least, most time.Duration) {
	if c.there(path) || d != 0 {
		if err := within(d, least, most); err != nil {
			c.value(path, "%w", err)
		}
	}
}

func within(d, least, most time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("%v is negative: want %v to %v", d, least, most)
	case d < least || d > most:
		return fmt.Errorf("want %v to %v, found %v", least, most, d)
	}
	return nil
}

// seed, repeats and the others are what a plan of the file is made with; other is what
// stands in place of the file's.
func (f *File) seed(other *uint64) uint64 { return firstGiven(DefaultSeed, other, f.Seed) }

func (f *File) repeats(other *int) int { return firstGiven(DefaultRepeats, other, f.Repeats) }

func (f *File) warmUps() int { return firstGiven(DefaultWarmUps, f.WarmUps) }

func (f *File) order() Order { return cmp.Or(f.Order, DefaultOrder) }

func (f *File) window() time.Duration {
	if f.Nulls != nil && f.Nulls.Window > 0 {
		return f.Nulls.Window
	}
	return DefaultWindow
}

// nulls is how many null toggles there are beside points of conditions.
func (f *File) nulls(points, conditions int) int {
	if f.Nulls != nil {
		return f.Nulls.Count
	}
	return max((points+9)/10, conditions)
}

func (f *File) traffic() bool { return firstGiven(true, f.Measure.Traffic) }

// firstGiven is the first of values that is not nil, or else the default.
func firstGiven[T any](byDefault T, values ...*T) T {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return byDefault
}

// listed lists words for people.
func listed(words []string) string {
	const most = 8
	if len(words) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
	}
	return strings.Join(words, ", ")
}
