package plan

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// draw draws different choices for a random axis.
func (f *File) draw(i int, seed uint64) ([]row, error) {
	a := f.Axes[i].Random
	names := f.names(i)
	values := make([][]spread, len(names))
	for j, name := range names {
		for _, text := range a.Values[name] {
			s, err := parseSpread(text)
			if err != nil {
				return nil, err
			}
			values[j] = append(values[j], s)
		}
	}
	r := stream(seed, fmt.Sprintf("axis %d", i))
	seen := map[string]bool{}
	all := make([]row, 0, a.Points)
	for tries := 0; len(all) < a.Points; tries++ {
		if tries > 64*a.Points+1000 {
			return nil, fmt.Errorf("only %d different choices were found: want fewer points, or more values", len(all))
		}
		n, drawn := row{}, make([]string, len(names))
		for j, name := range names {
			drawn[j] = values[j][r.IntN(len(values[j]))].draw(r)
			n[name] = drawn[j]
		}
		if key := fmt.Sprintf("%q", drawn); !seen[key] {
			seen[key] = true
			all = append(all, n)
		}
	}
	return all, nil
}

// spread is a value of a random axis: a text, or a range of numbers or times.
type spread struct {
	text      string
	low, high int64 // of a range
	step      int64 // between two values of a range; 0: it is none
	time      bool
}

// parseSpread reads a value. A text with ".." that begins or ends as a number does is
// meant as a range.
func parseSpread(text string) (spread, error) {
	from, to, ok := strings.Cut(text, "..")
	numeric := func(s string) bool { return strings.Trim(s, "+-.0123456789") != s }
	if !ok || !numeric(from) && !numeric(to) {
		return spread{text: text}, nil
	}
	s := spread{text: text, step: 1}
	var errLow, errHigh error
	s.low, errLow = strconv.ParseInt(from, 10, 53)
	s.high, errHigh = strconv.ParseInt(to, 10, 53)
	if errLow != nil || errHigh != nil {
		var low, high time.Duration
		low, errLow = time.ParseDuration(from)
		high, errHigh = time.ParseDuration(to)
		s.low, s.high, s.time = int64(low), int64(high), true
	}
	switch {
	case errLow != nil || errHigh != nil:
		return s, fmt.Errorf("%.60q is no range: want two durations such as 0ms..1s, or two whole numbers such as 1..64", text)
	case s.low < 0 && s.time || s.high > int64(longest) && s.time:
		return s, fmt.Errorf("%.60q: want times from 0s to %v", text, longest)
	case s.low >= s.high:
		return s, fmt.Errorf("the range %.60q ends where it begins or before: want the smaller value first", text)
	}
	if s.time { // values that a person can read: a thousand steps or some more
		for s.step*10 <= (s.high-s.low)/1000 {
			s.step *= 10
		}
	}
	return s, nil
}

func (s spread) draw(r *rand.Rand) string {
	if s.step == 0 {
		return s.text
	}
	v := s.low + r.Int64N((s.high-s.low)/s.step+1)*s.step
	if s.time {
		return time.Duration(v).String()
	}
	return strconv.FormatInt(v, 10)
}
