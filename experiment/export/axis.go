package export

import (
	"cmp"
	"math"
	"slices"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// axis puts all sessions of a run on one line, on which nothing is before 0. Sessions of
// one boot share their clock. Others are placed by the wall clock, but never before what
// the sessions before them have shown: wall clocks are stepped.
type axis struct {
	shift map[int]int64 // of each session, from the axis of its marks
}

// at returns nanoseconds on the line.
func (a axis) at(session int, ns int64) int64 { return max(0, plus(ns, a.shift[session])) }

// extent is the time that something took.
type extent struct{ from, to int64 }

func (e *extent) include(ns int64) { e.from, e.to = min(e.from, ns), max(e.to, ns) }

var nothing = extent{math.MaxInt64, math.MinInt64}

// axisOf makes an axis from what each session has shown, on the axis of its own marks.
func axisOf(r *runs.Run, shown map[int]extent) axis {
	sessions := slices.SortedFunc(slices.Values(r.Sessions), func(a, b runs.Session) int { return cmp.Compare(a.Number, b.Number) })
	known := map[int]bool{}
	for _, s := range sessions {
		known[s.Number] = true
	}
	for number := range shown { // a session that nobody wrote down
		if !known[number] {
			sessions = append(sessions, runs.Session{Number: number, MonoNS: shown[number].from})
		}
	}
	slices.SortStableFunc(sessions, func(a, b runs.Session) int { return cmp.Compare(a.Number, b.Number) })

	a := axis{map[int]int64{}}
	end := int64(0) // of all before
	for i, s := range sessions {
		e, ok := shown[s.Number]
		if !ok {
			e = extent{s.MonoNS, s.MonoNS}
		}
		e.include(s.MonoNS)
		shift := minus(0, e.from)
		if i > 0 {
			first := sessions[0]
			shift = plus(a.shift[first.Number], minus(first.MonoNS, s.MonoNS))
			if s.Boot == first.Boot {
				shift = a.shift[first.Number]
			} else if !s.Begun.IsZero() && !first.Begun.IsZero() {
				shift = plus(shift, int64(s.Begun.Sub(first.Begun)))
			}
			shift = max(shift, minus(end, e.from))
		}
		a.shift[s.Number] = shift
		end = max(end, plus(e.to, shift))
	}
	return a
}

// plus and minus saturate: what was read from a damaged file must not wrap.
func plus(a, b int64) int64 { return timeline.Point(a).Shift(b, 0).Earliest }

func minus(a, b int64) int64 { return timeline.Point(a).Sub(timeline.Point(b)).Earliest }
