package fit

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/timeline/dist"
)

// ErrDrifted is that a run is not as the fit says.
var ErrDrifted = errors.New("drifted from the fit")

// falseAlarm is how often, at most, the bounds are made to say of a lab that has not changed
// that it has drifted, in all stages together.
const falseAlarm = 0.01

// DriftOptions are options of [Fit.Drift]. The zero value is ready to use.
type DriftOptions struct {
	Condition int // of the run's plan; 0 is all
	// Tolerance is a shift that nobody minds: one that is smaller is no drift.
	Tolerance time.Duration
	Resamples int    // of the bootstrap; below 1 is 2000
	Seed      uint64 // same fit, run, options and seed: same result
}

// Verdict is what is said of a stage.
type Verdict string

// The verdicts.
const (
	AsFitted Verdict = "as-fitted"
	Drifted  Verdict = "drifted"
	TooFew   Verdict = "too-few" // to tell
)

// Shift is how much later than when it was fitted a quantile is.
type Shift struct {
	Measured, Expected time.Duration // by the middles of the intervals
	// Low and High are how much later it is at least and at most by what the instruments of
	// both runs leave open, if they show a thing as early or as late within their intervals as
	// they did: by the beginnings of the intervals, and by their ends.
	Low, High time.Duration
	Chance    time.Duration // it may be off by that by chance, either way
	// Instrument is what is granted beyond that to instruments which show things a little
	// earlier or later within their intervals than they did: an eighth of how well a value is
	// known.
	Instrument time.Duration
	Off        bool // it is off by more than all of that
}

// By is how much later it is.
func (s Shift) By() time.Duration { return s.Measured - s.Expected }

// Bound is how far By may be from 0 if nothing has changed.
func (s Shift) Bound() time.Duration {
	return s.Chance + s.Instrument + max(s.High-s.By(), s.By()-s.Low, 0)
}

// Drift is what became of one stage.
type Drift struct {
	Stage   *Stage
	Count   int // values of the run
	Need    int // that are needed; only of TooFew
	Never   int // of them, what did not come
	Median  Shift
	P95     Shift
	KS, KSP float64       // the least distance, and how probable that much is if nothing has changed
	KnownTo time.Duration // how well one value of the run is known; the fit's is Stage.KnownTo
	Verdict Verdict
	Why     string // one sentence for people
}

// DriftReport is what became of all stages.
type DriftReport struct {
	Run     string
	Stages  []Drift
	Remarks []string
}

// Drifted reports whether any stage is no longer as fitted.
func (r *DriftReport) Drifted() bool {
	return slices.ContainsFunc(r.Stages, func(d Drift) bool { return d.Verdict == Drifted })
}

// TooFew reports whether no stage could be judged.
func (r *DriftReport) TooFew() bool {
	return !slices.ContainsFunc(r.Stages, func(d Drift) bool { return d.Verdict != TooFew })
}

// Err returns an [ErrDrifted] or [dist.ErrTooFew] with what is to be said, or nil.
func (r *DriftReport) Err() error {
	var list []string
	for _, d := range r.Stages {
		if d.Verdict == Drifted {
			list = append(list, d.Stage.Name())
		}
	}
	switch {
	case len(list) > 0:
		return fmt.Errorf("%s has %w: %s", r.Run, ErrDrifted, strings.Join(list, ", "))
	case r.TooFew():
		return fmt.Errorf("%w in %s to tell whether anything has drifted: a stage needs %d", dist.ErrTooFew, r.Run, dist.MinCount)
	}
	return nil
}

// Drift holds a later run against the fit: by stage, whether its median, its 95th percentile
// and its distribution are those that the fit was made from. A drift is beyond chance, and
// beyond what the instruments of both runs leave open.
//
// Chance is a bootstrap of two samples, as many as the run has and as many as the fit was made
// from, parametric or plain, whichever varies more, and wider where values of one change, or
// of changes in a row, have something in common.
//
// Instruments are allowed for by comparing beginnings with beginnings and ends with ends: a
// value is somewhere in its interval, and if that is the same part of the interval in both
// runs, the true shift is between that of the beginnings and that of the ends. An instrument
// that is always off by the same cancels out; one that has become slower or faster, as on a
// busy machine, widens what is left open. An eighth of an interval is granted beyond.
//
// All bounds together are made to hold in 99 of 100 runs of a lab that has not changed (Bonferroni).
// The error matches [ErrMixed] or [ErrNothing].
func (f *Fit) Drift(r *runs.Run, opt DriftOptions) (*DriftReport, error) {
	if r.Meta.Lab != f.Lab {
		return nil, fmt.Errorf("%w: the fit is of the lab %s, %s of %s", ErrMixed, f.Lab, r.Meta.ID, r.Meta.Lab)
	}
	m, err := collect([]*runs.Run{r}, Options{Condition: opt.Condition, AsRecorded: f.Options.AsRecorded}, f.Rises)
	if err != nil {
		return nil, err
	}
	report := &DriftReport{Run: r.Meta.ID}
	if f.Emulated != r.Meta.Emulated {
		what := map[bool]string{true: "emulated", false: "real"}
		report.Remarks = append(report.Remarks, fmt.Sprintf("The fit is of a lab that was %s, and this one is %s.", what[f.Emulated], what[r.Meta.Emulated]))
	}
	for _, p := range f.Profiles {
		for _, name := range p.NICs {
			if n := m.nics[name]; n != nil && n.firmware != p.Firmware {
				report.Remarks = append(report.Remarks, fmt.Sprintf("The firmware of %s was %q when it was fitted, and is %q.", name, p.Firmware, n.firmware))
			}
		}
	}
	alpha := falseAlarm / float64(4*len(f.Stages)) // median, percentile, distribution, and what never came
	for i := range f.Stages {
		s := &f.Stages[i]
		d := s.drift(f.valuesOf(m, s), alpha, opt)
		report.Stages = append(report.Stages, d)
		if now, then := d.KnownTo, s.KnownTo(); d.Verdict != TooFew && max(now, then) > 50*time.Microsecond && (now > then*3/2 || then > now*3/2) {
			report.Remarks = append(report.Remarks, fmt.Sprintf("%s is known to %s, and was to %s when it was fitted: the instruments were not read at the same pace, as when a machine is busy. What that leaves open is no drift.",
				s.Name(), short(now), short(then)))
		}
	}
	return report, nil
}

// valuesOf returns what a run has of a stage.
func (f *Fit) valuesOf(m *measured, s *Stage) []value {
	var list []value
	switch s.Quantity {
	case Single, Bulk:
		sw := m.switches[s.Subject]
		if sw == nil {
			return nil
		}
		values := sw.single
		if s.Quantity == Bulk {
			values = sw.bulk
		}
		for _, v := range values {
			own := f.stage(s.Subject, s.Quantity, v.of) != nil
			if s.Path == v.of || s.Path == "" && !own {
				list = append(list, v)
			}
		}
	default:
		for _, p := range f.Profiles {
			if p.Key != s.Subject {
				continue
			}
			for _, name := range p.NICs {
				if n := m.nics[name]; n != nil {
					list = append(list, n.values(s.Quantity, p)...)
				}
			}
		}
	}
	return list
}

// values returns those of a quantity, without link-ups that the profile's burst makes slow.
func (n *nicValues) values(q Quantity, p Profile) []value {
	list := map[Quantity][]value{Debounce: n.debounce, LightToFirmware: n.firmwareUp, Carrier: n.carrier, LightToCarrier: n.lightCarrier}[q]
	if p.Burst == nil || q != LightToFirmware && q != LightToCarrier {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(v value) bool { return n.recent(v, int64(p.Burst.Window)) > p.Burst.Free })
}

// drift judges one stage.
func (s *Stage) drift(values []value, alpha float64, opt DriftOptions) Drift {
	d := Drift{Stage: s, Count: len(values), Verdict: AsFitted}
	var came []value
	tail := int64(s.Fitted.Mixture.Quantile(1 - 1e-6))
	for _, x := range values {
		switch {
		case x.Latest != timeline.Never:
			came = append(came, x)
		case x.Earliest > tail:
			d.Never++
		}
	}
	if len(values) < dist.MinCount {
		d.Verdict, d.Need = TooFew, dist.MinCount
		d.Why = fmt.Sprintf("%d of %s that are needed: %d more", len(values), natural.Count(d.Need, "value"), d.Need-len(values))
		return d
	}
	was := (float64(s.Fitted.Never) + 1) / (float64(s.Fitted.Count+s.Fitted.Never) + 2)
	if atLeast(d.Never, len(values), was) < alpha {
		d.Verdict = Drifted
		d.Why = fmt.Sprintf("%d of %d did not come at all; of the fit %d of %d", d.Never, len(values), s.Fitted.Never, s.Fitted.Count+s.Fitted.Never)
	}
	if len(came) < dist.MinCount {
		if d.Verdict != Drifted {
			d.Verdict, d.Need = TooFew, dist.MinCount+d.Never
			d.Why = fmt.Sprintf("%d of %s that are needed, after those that did not come", len(came), natural.Count(dist.MinCount, "value"))
		}
		return d
	}

	now := seenOf(came)
	d.KnownTo = medianWidth(came)
	instrument := max(d.KnownTo, s.KnownTo()) / partOfInterval
	chance := s.chance(came, now.Alike, alpha/2, opt) // on either side
	for k, q := range driftQuantiles {
		low, high := quantileOf(now.Lows, q)-quantileOf(s.Seen.Lows, q), quantileOf(now.Highs, q)-quantileOf(s.Seen.Highs, q)
		x := Shift{
			Measured: (quantileOf(now.Lows, q) + quantileOf(now.Highs, q)) / 2, Expected: (quantileOf(s.Seen.Lows, q) + quantileOf(s.Seen.Highs, q)) / 2,
			Low: min(low, high), High: max(low, high), Chance: chance[k],
			Instrument: max(instrument, (quantileOf(now.Highs, q)-quantileOf(now.Lows, q))/partOfInterval, (quantileOf(s.Seen.Highs, q)-quantileOf(s.Seen.Lows, q))/partOfInterval),
		}
		x.Off = max(x.Low, -x.High) > x.Chance+x.Instrument && x.By().Abs() > opt.Tolerance
		*[]*Shift{&d.Median, &d.P95}[k] = x
	}
	d.KS, d.KSP = s.Seen.kolmogorov(now, s.Fitted.Count, len(came), instrument+opt.Tolerance)
	say := func(format string, args ...any) {
		d.Verdict = Drifted
		if d.Why != "" {
			d.Why += "; "
		}
		d.Why += fmt.Sprintf(format, args...)
	}
	if d.Median.Off {
		say("the median is %s", d.Median)
	}
	if d.P95.Off {
		say("the 95th percentile is %s", d.P95)
	}
	if !d.Median.Off && !d.P95.Off && d.KSP < alpha {
		say("the distribution has another shape (KS %.3f, p = %.2g)", d.KS, d.KSP)
	}
	if d.Verdict == AsFitted {
		d.Why = fmt.Sprintf("the median is %s", d.Median)
	}
	return d
}

// driftQuantiles are compared: the median and the 95th percentile.
var driftQuantiles = [2]float64{0.5, 0.95}

// partOfInterval is what part of an interval an instrument may show things earlier or later
// in it than it did, without that being a drift. What is polled evenly is anywhere in its
// interval, on average in the middle; on a busy machine the average moves by less than that.
const partOfInterval = 8

// String says "1.2 ms later than fitted, where ±0.3 ms would be chance and what the instruments
// leave open".
func (s Shift) String() string {
	word := "later"
	if s.By() < 0 {
		word = "earlier"
	}
	return fmt.Sprintf("%s %s than fitted, where ±%s would be chance and what the instruments leave open", short(s.By().Abs()), word, short(s.Bound()))
}

// medianWidth is how well a value is known.
func medianWidth(values []value) time.Duration {
	widths := make([]time.Duration, len(values))
	for i, x := range values {
		widths[i] = x.Width()
	}
	slices.Sort(widths)
	return widths[len(widths)/2]
}

// chance returns how far the driftQuantiles of a run like this may be from those of the fit by
// chance: by more than that only with a probability of alpha on either side.
func (s *Stage) chance(came []value, alike [len(driftQuantiles)]float64, alpha float64, opt DriftOptions) [len(driftQuantiles)]time.Duration {
	resamples := opt.Resamples
	if resamples < 1 {
		resamples = 2000
	}
	if n := len(came); n > 2000 {
		resamples = max(resamples*2000/n, 500)
	}
	now := s.spread(came, len(came), resamples, opt.Seed)
	then := s.spread(came, s.Fitted.Count, resamples/2+1, opt.Seed+1)
	z := math.Sqrt2 * math.Erfinv(1-2*alpha)
	var list [len(driftQuantiles)]time.Duration
	for k := range list {
		list[k] = time.Duration(math.Ceil(z*math.Hypot(now[k]*math.Sqrt(max(alike[k], s.Seen.Alike[k])), then[k]*math.Sqrt(s.Seen.Alike[k])))) + 1
	}
	return list
}

// spread returns the standard deviations of the driftQuantiles of n values: drawn from the mixture,
// or, where that makes them vary more, from what was seen.
func (s *Stage) spread(like []value, n, resamples int, seed uint64) [len(driftQuantiles)]float64 {
	r := rand.New(rand.NewPCG(seed, 2))
	var drawn, seen [len(driftQuantiles)][]float64
	as := make([]timeline.Interval, n)
	for i := range as {
		as[i] = like[i%len(like)].Interval
	}
	mids, again := make([]time.Duration, n), make([]time.Duration, n)
	for range resamples {
		for i, x := range s.Fitted.Mixture.Like(as, r) {
			mids[i] = time.Duration(x.Mid())
			at := r.IntN(len(s.Seen.Lows))
			again[i] = s.Seen.Lows[at]/2 + s.Seen.Highs[at]/2
		}
		slices.Sort(mids)
		slices.Sort(again)
		for k, q := range driftQuantiles {
			drawn[k] = append(drawn[k], float64(quantileOf(mids, q)))
			seen[k] = append(seen[k], float64(quantileOf(again, q)))
		}
	}
	var list [len(driftQuantiles)]float64
	for k := range list {
		list[k] = max(deviation(drawn[k]), deviation(seen[k]))
	}
	return list
}

// deviation is the standard deviation.
func deviation(xs []float64) float64 {
	mean, square := 0.0, 0.0
	for _, x := range xs {
		mean += x / float64(len(xs))
	}
	for _, x := range xs {
		square += (x - mean) * (x - mean) / float64(len(xs))
	}
	return math.Sqrt(square)
}

// kolmogorov compares two distributions that were made from so many values, and returns how far
// apart they are at least, wherever in their intervals the values are and if a shift by so
// much is none, and how probable that is by chance.
func (s *Seen) kolmogorov(now Seen, made, came int, shift time.Duration) (ks, p float64) {
	ks = 1
	for part := range 3 { // beginnings, middles, ends
		a, b := make([]time.Duration, len(s.Lows)), make([]time.Duration, len(now.Lows))
		for i := range a {
			a[i] = s.Lows[i] + (s.Highs[i]-s.Lows[i])/2*time.Duration(part)
		}
		for i := range b {
			b[i] = now.Lows[i] + (now.Highs[i]-now.Lows[i])/2*time.Duration(part)
		}
		ks = min(ks, max(ahead(a, b, shift), ahead(b, a, shift)))
	}
	n, m := float64(made)/s.Alike[0], float64(came)/max(now.Alike[0], s.Alike[0])
	root := math.Sqrt(n * m / (n + m))
	x := (root + 0.12 + 0.11/root) * max(ks-1/float64(2*len(s.Lows)), 0)
	if x < 0.3 {
		return ks, 1
	}
	sign := 1.0
	for k := 1.0; k <= 100; k++ {
		p += 2 * sign * math.Exp(-2*k*k*x*x)
		sign = -sign
	}
	return ks, min(max(p, 0), 1)
}

// ahead is by how much the distribution function of a is above that of b, sorted, at most, when
// b may be earlier by a shift.
func ahead(a, b []time.Duration, shift time.Duration) float64 {
	most, j := 0.0, 0
	for i, x := range a {
		for j < len(b) && b[j]-shift <= x {
			j++
		}
		most = max(most, float64(i+1)/float64(len(a))-float64(j)/float64(len(b)))
	}
	return most
}

// quantileOf returns a quantile of at least one sorted value.
func quantileOf(sorted []time.Duration, q float64) time.Duration {
	h := q * float64(len(sorted)-1)
	i := min(int(h), len(sorted)-1)
	j := min(i+1, len(sorted)-1)
	return sorted[i] + time.Duration((h-float64(i))*float64(sorted[j]-sorted[i]))
}

// atLeast is the probability of k or more of n, each with probability p.
func atLeast(k, n int, p float64) float64 {
	if k == 0 {
		return 1
	}
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x + 1)); return v }
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += math.Exp(lg(n) - lg(i) - lg(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return min(sum, 1)
}
