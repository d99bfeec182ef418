package runner

import (
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
)

// kind is what points that take equally long have in common.
type kind struct {
	condition int
	null      bool
}

func kindOf(p plan.Point) kind { return kind{p.Condition, p.Null} }

// forecast is how long the points that are left will take: as long as the others of their
// kind have taken on average, once there are three of those, else as the plan expects.
type forecast struct {
	kinds map[kind]*pace
	total time.Duration // of all points that are left
}

// pace is how long points of a kind take.
type pace struct {
	left int
	each time.Duration // is expected now
	n    int           // have been measured,
	sum  time.Duration // and took that long together
}

// enoughMeasured is how many points say more than the plan does.
const enoughMeasured = 3

// add expects one more point of a kind, which by the plan takes that long.
func (f *forecast) add(k kind, planned time.Duration) {
	if f.kinds == nil {
		f.kinds = map[kind]*pace{}
	}
	p := f.kinds[k]
	if p == nil {
		p = &pace{each: planned}
		f.kinds[k] = p
	}
	p.left++
	f.total += p.each
}

// remove takes one point away.
func (f *forecast) remove(k kind) {
	p := f.kinds[k]
	p.left--
	f.total -= p.each
}

// measured learns how long a point took.
func (f *forecast) measured(k kind, took time.Duration) {
	p := f.kinds[k]
	p.n++
	p.sum += took
	if p.n >= enoughMeasured {
		each := p.sum / time.Duration(p.n)
		f.total += time.Duration(p.left) * (each - p.each)
		p.each = each
	}
}

// each is how long a point of that kind is expected to take.
func (f *forecast) each(k kind) time.Duration { return f.kinds[k].each }

// planned is how long the plan expects a point to take.
func planned(p plan.Point, c *plan.Condition, window time.Duration) time.Duration {
	if p.Null {
		return c.Settings.Dwell + window
	}
	return time.Duration(p.Reconfigurations(c)) * c.Expected
}
