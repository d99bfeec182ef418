package clock

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// DefaultDrift is how much faster one clock may run than another: 200 parts per million, as
// package watch takes it, more than crystals and the slewing of NTP together usually come
// to.
const DefaultDrift = 200e-6

// DefaultBatches is how many batches a line needs: one tells nothing of the rate.
const DefaultBatches = 2

// Options say how exchanges are fitted.
type Options struct {
	// Drift is the most that the two clocks may run apart; 0 is DefaultDrift.
	Drift float64
	// Batches is how many batches with an answer there must be; 0 is DefaultBatches.
	Batches int
	// Slack is how far the stamps may be from the clocks they are of, on either side, beyond
	// the nanosecond that they are rounded to.
	Slack time.Duration
}

// Errors of Fit, for errors.Is.
var (
	// ErrTooFew: there are too few batches for a line.
	ErrTooFew = errors.New("too few exchanges of clock readings")
	// ErrStep: the clock stepped, or did not run at one rate; see [StepError].
	ErrStep = errors.New("the clock did not run steadily")
)

// StepError is a clock that no line agrees with. It matches [ErrStep].
type StepError struct {
	Host string
	// After and Before are the batches between which it happened, from 0: the last that
	// certainly was before, the first that certainly was after. They are the same if it
	// happened within that batch.
	After, Before int
	Batches       int
	// Since and Until are the same in time since the first exchange.
	Since, Until time.Duration
	// AtLeast is the smallest single step that explains it, above zero when its clock went ahead.
	// 0: none does.
	AtLeast time.Duration
	// Certain says that it was a step: no change of rate within the limit explains it.
	Certain bool
	Limit   float64 // that limit, in parts per million
}

// Error tells it in one sentence.
func (e *StepError) Error() string {
	where := fmt.Sprintf("between batch %d and batch %d of %d (%s to %s after the first)", e.After+1, e.Before+1, e.Batches, round(e.Since), round(e.Until))
	if e.After == e.Before {
		where = fmt.Sprintf("during batch %d of %d (%s after the first)", e.Before+1, e.Batches, round(e.Until))
	}
	size, way := e.AtLeast, "ahead of"
	if size < 0 {
		size, way = -size, "behind"
	}
	switch {
	case size == 0:
		return fmt.Sprintf("host %s: its clock did not run at one rate against ours, nor with a single step; the first contradiction is %s; "+
			"stop what steps or slews either clock, then calibrate again", e.Host, where)
	case e.Certain:
		return fmt.Sprintf("host %s: its clock stepped %s ours by at least %s %s, as it does when a machine was suspended or somebody set the clock; "+
			"calibrate again when both machines stay awake", e.Host, way, short(size), where)
	}
	return fmt.Sprintf("host %s: its clock stepped %s ours by at least %s, or changed its rate, %s; "+
		"wait until the time service of both machines has settled, then calibrate again", e.Host, way, short(size), where)
}

// Is reports whether target is ErrStep.
func (e *StepError) Is(target error) bool { return target == ErrStep }

// Fit returns what the exchanges say of the clock of a host. The batches are in the order of
// time. Host, bounds, rates and batches of the result are filled in. The error matches ErrTooFew
// or ErrStep.
func Fit(host string, batches []Batch, opt Options) (Result, error) {
	if opt.Drift <= 0 || math.IsNaN(opt.Drift) {
		opt.Drift = DefaultDrift
	}
	if opt.Batches <= 0 {
		opt.Batches = DefaultBatches
	}
	f := fit{host: host, opt: opt, batches: len(batches)}
	r := Result{Host: host, Limit: opt.Drift * 1e6}
	var all []time.Duration
	good := 0
	for i, b := range batches {
		list := b.usable()
		s := Summary{When: b.When, Exchanges: len(b.Exchanges), Unusable: len(b.Exchanges) - len(list)}
		r.Exchanges += s.Exchanges
		r.Unusable += s.Unusable
		if len(list) > 0 {
			good++
			trips := make([]time.Duration, len(list))
			for j, x := range list {
				trips[j] = x.RTT()
				f.add(i, x)
			}
			s.RTTBestNS, s.RTTMedianNS = quick(trips)
			all = append(all, trips...)
		}
		r.Batches = append(r.Batches, s)
	}
	if good < opt.Batches {
		return r, fmt.Errorf("host %s: %w: %d of %d batches have an answer, and a line needs %d; calibrate for longer, or see why it does not answer",
			host, ErrTooFew, good, len(batches), opt.Batches)
	}
	r.RTTBestNS, r.RTTMedianNS = quick(all)
	f.sort()
	f.begin()
	band, used := f.band(f.marks)
	if used < len(f.marks) {
		return r, f.step(used)
	}
	f.result(&r, band, batches)
	return r, nil
}

// mark is an exchange and its batch.
type mark struct {
	x     Exchange
	batch int
}

// fit is one call of Fit.
type fit struct {
	host    string
	opt     Options
	batches int
	marks   []mark // in order of time

	// The reference, and between what offsets lie against it at any rate.
	at, offset int64
	far        float64
}

func (f *fit) add(batch int, x Exchange) { f.marks = append(f.marks, mark{x, batch}) }

// begin chooses the reference.
func (f *fit) begin() {
	first, last := f.marks[0].x, f.marks[0].x
	for _, m := range f.marks {
		if m.x.Received > last.Received {
			last = m.x
		}
	}
	f.at = timeline.Between(first.Sent, last.Received).Mid()
	f.offset = first.Bound().Mid()
	for _, m := range f.marks {
		for _, l := range f.limits(m.x) {
			f.far = max(f.far, math.Abs(l.ns)+2*f.opt.Drift*1e9*math.Abs(l.s))
		}
	}
	f.far = 2*f.far + 1
}

// limits are what an exchange says of lines.
func (f *fit) limits(x Exchange) [2]limit {
	slack := 1 + float64(f.opt.Slack)
	return [2]limit{
		{float64(x.Sent-f.at) / 1e9, float64(x.Its-x.Sent-f.offset) + slack, true},
		{float64(x.Received-f.at) / 1e9, float64(x.Its-x.Received-f.offset) - slack, false},
	}
}

// band returns the lines that agree with the marks, in their order, and with how many of these
// there are any.
func (f *fit) band(marks []mark) (p polygon, used int) {
	d := f.opt.Drift * 1e9
	p = polygon{{-d, -f.far}, {d, -f.far}, {d, f.far}, {-d, f.far}}
	for i, m := range marks {
		q := p
		for _, l := range f.limits(m.x) {
			q = q.cut(l)
		}
		if len(q) == 0 {
			return p, i
		}
		p = q
	}
	return p, len(marks)
}

// result fills in what the band says.
func (f *fit) result(r *Result, band polygon, batches []Batch) {
	middle := band.middle()
	low, high := band.rates()
	r.Drift = PPM{low / 1e3, middle.rate / 1e3, high / 1e3}
	bound := func(at int64) Bound {
		s := float64(at-f.at) / 1e9
		low, high := band.at(s)
		// Outwards, and past what float64 may have lost.
		return Bound{
			AtNS: at, LowNS: f.offset + int64(math.Floor(low)) - 1, MidNS: f.offset + int64(math.Round(middle.at(s))), HighNS: f.offset + int64(math.Ceil(high)) + 1,
		}
	}
	begin, end := f.marks[0].x.Sent, f.marks[0].x.Received
	for _, m := range f.marks {
		end = max(end, m.x.Received)
	}
	ats := []int64{begin, end}
	for i, b := range batches {
		at, own, ok := b.Bound(f.opt.Drift)
		if !ok {
			continue
		}
		own = own.Widen(f.opt.Slack + 1)
		s := &r.Batches[i]
		s.AtNS, s.LowNS, s.HighNS = at, own.Earliest, own.Latest
		ats = append(ats, at)
	}
	slices.Sort(ats)
	for _, at := range slices.Compact(ats) {
		r.Bounds = append(r.Bounds, bound(at))
	}
	r.Offset = r.Bounds[len(r.Bounds)-1]
}

// steps is how many exchanges a step is looked for in: of more, the quickest of each batch. What
// is left out could only say more.
const steps = 2048

// step says what is wrong, when lines agree with the first marks only.
func (f *fit) step(used int) error {
	e := &StepError{Host: f.host, Batches: f.batches, Limit: f.opt.Drift * 1e6}
	began := f.marks[0].x.Sent
	place := func(after, before int) {
		a, b := f.marks[after], f.marks[before]
		e.After, e.Before = a.batch, b.batch
		e.Since, e.Until = time.Duration(a.x.Sent-began), time.Duration(b.x.Received-began)
	}
	place(used-1, used)
	if f.thin(); len(f.marks) == 0 {
		return e
	}
	if _, used = f.band(f.marks); used == len(f.marks) {
		return e
	}
	// A single step is before mark k for some k with marks that agree on both sides of it: the
	// earliest such k is where the marks begin that agree up to the end.
	back := slices.Clone(f.marks)
	slices.Reverse(back)
	_, tail := f.band(back)
	least, first, last := math.Inf(1), 0, 0
	for k := max(len(f.marks)-tail, 1); k <= used; k++ {
		s, ok := f.least(k)
		if !ok {
			continue
		}
		if first == 0 {
			first = k
		}
		last = k
		if math.Abs(s) < math.Abs(least) {
			least = s
		}
	}
	e.Certain = f.certain(used)
	if first == 0 {
		place(used-1, used)
		return e
	}
	place(first-1, last)
	e.AtLeast = time.Duration(math.Trunc(least))
	if e.AtLeast == 0 { // it is there, however small
		e.AtLeast = time.Duration(math.Copysign(1, least))
	}
	return e
}

// thin leaves the quickest marks of each batch, as many as a step is looked for in.
func (f *fit) thin() {
	if len(f.marks) <= steps {
		return
	}
	keep := max(steps/f.batches, 1)
	of := make([][]mark, f.batches)
	for _, m := range f.marks {
		of[m.batch] = append(of[m.batch], m)
	}
	f.marks = nil
	for _, list := range of {
		slices.SortFunc(list, func(a, b mark) int { return cmp.Compare(a.x.RTT(), b.x.RTT()) })
		f.marks = append(f.marks, list[:min(keep, len(list))]...)
	}
	f.sort()
}

func (f *fit) sort() {
	slices.SortStableFunc(f.marks, func(a, b mark) int { return cmp.Compare(a.x.Sent, b.x.Sent) })
}

// least returns the smallest step before mark k that has one rate agree with all, in ns; false
// if none has.
func (f *fit) least(k int) (float64, bool) {
	before, used := f.band(f.marks[:k])
	after, usedAfter := f.band(f.marks[k:])
	if used < k || usedAfter < len(f.marks)-k {
		return 0, false
	}
	// At one rate the step is between those of the bounds of both sides. The distance of these
	// from no step at all is a convex function of the rate.
	step := func(rate float64) float64 {
		low0, high0 := before.offsets(rate)
		low1, high1 := after.offsets(rate)
		if up, down := low1-high0, low0-high1; up < down {
			return -down
		} else {
			return up
		}
	}
	a0, b0 := before.rates()
	a1, b1 := after.rates()
	a, b := max(a0, a1), min(b0, b1)
	if a > b {
		return 0, false
	}
	for range 60 {
		x, y := a+(b-a)/3, b-(b-a)/3
		if math.Abs(step(x)) <= math.Abs(step(y)) {
			b = y
		} else {
			a = x
		}
	}
	// It may still be off by what a rate so far away makes, which is far below a nanosecond.
	return step((a + b) / 2), true
}

// certain reports whether some exchange up to a mark contradicts one before it, at whatever
// rates within the limit the clocks ran between: bounds of a quantity that changes by so much
// at most agree with it if each two of them do.
func (f *fit) certain(upTo int) bool {
	for j := range f.marks[:upTo+1] {
		for _, m := range f.marks[:j] {
			x, y := m.x, f.marks[j].x
			far := timeline.Between(x.Sent, x.Received).Hull(timeline.Between(y.Sent, y.Received)).Width()
			a := x.Bound().Widen(apart(f.opt.Drift, far) + 2*f.opt.Slack + 2)
			if _, ok := a.Intersect(y.Bound()); !ok {
				return true
			}
		}
	}
	return false
}

// between bounds the offset at a time between two bounds, rounded outwards.
func between(a, b Bound, ns int64) timeline.Interval {
	f := float64(ns-a.AtNS) / float64(b.AtNS-a.AtNS)
	low := a.LowNS + int64(math.Floor(f*float64(b.LowNS-a.LowNS)))
	high := a.HighNS + int64(math.Ceil(f*float64(b.HighNS-a.HighNS)))
	return timeline.Between(low, high)
}

// quick returns the shortest and the median round trip.
func quick(trips []time.Duration) (best, median int64) {
	slices.Sort(trips)
	return int64(trips[0]), int64(trips[len(trips)/2])
}
