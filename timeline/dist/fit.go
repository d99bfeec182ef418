package dist

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Rules of [Fit]. The spread of so few values as MinCount is known to 16 %, one part in
// the square root of 2(n-1); of a mode of MinOfMode, to a quarter.
const (
	MinCount  = 20 // durations that a fit needs
	MinOfMode = 8  // and that each of several modes needs
	MaxModes  = 3  // that are tried
)

// minPart is how large a part of all a mode is at least; what is less is an outlier.
const minPart = 0.02

// FitOptions are options of [Fit]. The zero value is ready to use.
type FitOptions struct {
	Modes int // most modes to try, at most MaxModes; 0 is MaxModes
	Min   int // durations that are needed; below MinCount is MinCount

	// Resamples of the parametric bootstrap behind [Fitted.P], 0 is 99, below 0 is none. Of
	// more than 2000 durations there are fewer, but at least 39.
	Resamples int
	Seed      uint64 // same durations, options and seed: same fit
}

// Fitted is a mixture that was fitted to durations, and how well it describes them.
type Fitted struct {
	Mixture Mixture     // in order of the medians; the shares add up to 1
	Errors  []ModeError // of each mode, how far off it may be

	Count    int                 // durations that the mixture was fitted to, Open among them
	Open     int                 // those of which only the beginning is known, and which may be in the tail
	Never    int                 // durations left out: they had not come long after the fit says they should have
	Outliers []timeline.Interval // left out: far away, and too few for a mode

	LogLikelihood float64     // of the intervals; a point counts as its nanosecond
	Candidates    []Candidate // what was tried, by number of modes

	// Resolution is the median width of the intervals. What differs by less cannot be
	// told apart in single durations, only in many.
	Resolution time.Duration
	Distance   Distance
	Quantiles  []QuantilePair
	// P is the probability of a Kolmogorov-Smirnov distance of this or more if the mixture
	// is right, by parametric bootstrap: as many durations are drawn from it, seen through
	// intervals as wide as these, and fitted in turn. 1 if there were no resamples.
	P         float64
	Resamples int // behind P
}

// ModeError is how far off a mode may be: standard errors, from the observed information.
// They are 0 where the durations do not tell.
type ModeError struct {
	Share  float64       `json:"share_se"`
	Median time.Duration `json:"median_se_ns"`
	Spread time.Duration `json:"spread_se_ns"`
	// AtMost bounds a spread that may as well be none, since the intervals are too wide to
	// show it: with 95 % confidence it is not above this. 0 where there surely is a spread.
	AtMost time.Duration `json:"spread_at_most_ns,omitempty"`
	Count  float64       `json:"count"` // durations that belong to the mode, in expectation
}

// Candidate is a number of modes that was tried.
type Candidate struct {
	Modes         int     `json:"modes"`
	LogLikelihood float64 `json:"log_likelihood"`
	// BIC is Schwarz's criterion, the number of parameters times the logarithm of Count,
	// less twice the log-likelihood. The lowest of those not refused was taken.
	BIC     float64 `json:"bic"`
	Refused string  `json:"refused,omitempty"` // why it was not to be taken, whatever its BIC
}

// ErrTooFew is that there are too few durations to fit anything to; see [TooFewError].
var ErrTooFew = errors.New("too few durations")

// TooFewError says how many durations a fit has and how many it needs.
type TooFewError struct{ Have, Need int }

// Error returns one sentence.
func (e *TooFewError) Error() string {
	return fmt.Sprintf("%d of at least %d durations that a fit needs: %d more are needed", e.Have, e.Need, e.Need-e.Have)
}

// Is makes errors.Is(err, ErrTooFew) true.
func (e *TooFewError) Is(target error) bool { return target == ErrTooFew }

// Fit fits a mixture of one to three normal distributions to durations each of
// which lies in one of intervals; one that ends at [timeline.Never] had not come by its
// beginning. The error is a *[TooFewError] when there are too few, after outliers and what
// never came are left out.
//
// It maximizes the likelihood of the intervals, by expectation and maximization from
// several fixed starts. A spread has a floor of a tenth of the typical width of the
// intervals (and a nanosecond): below, the likelihood does not change any more, and a mode
// would shrink to a point. How many modes there are is decided by Schwarz's criterion, but
// each needs MinOfMode durations and one in fifty of all, and to be apart from the next by
// twice the larger spread of the two, so that it is a mode and no shoulder, and by half of the
// resolution. What belongs to a component too small for that, and lies farther than six spreads from the
// others, is an outlier, up to one in twenty of all, left out and listed; so is what never came where
// by the fit to the others all but one in a million would have.
func Fit(intervals []timeline.Interval, opt FitOptions) (Fitted, error) {

	need := max(opt.Min, MinCount)
	most := opt.Modes
	if most <= 0 || most > MaxModes {
		most = MaxModes
	}
	var closed, open []timeline.Interval
	for _, x := range intervals {
		if x.Earliest > x.Latest {
			x.Earliest, x.Latest = x.Latest, x.Earliest
		}
		if x.Latest == timeline.Never {
			open = append(open, x)
		} else {
			closed = append(closed, x)
		}
	}
	slices.SortFunc(closed, compare) // the order of the values has no influence
	slices.SortFunc(open, compare)

	f := Fitted{}
	var found choice
	for {
		if len(closed) < need {
			return f, &TooFewError{Have: len(closed), Need: need}
		}
		found = choose(closed, most)
		if len(found.outliers) == 0 || len(f.Outliers)+len(found.outliers) > len(intervals)/20 {
			break
		}
		kept := closed[:0]
		for i, x := range closed {
			if slices.Contains(found.outliers, i) {
				f.Outliers = append(f.Outliers, x)
			} else {
				kept = append(kept, x)
			}
		}
		closed = kept
	}
	slices.SortFunc(f.Outliers, compare)
	values := closed
	for _, x := range open {
		if found.beyond(float64(x.Earliest)) < 1e-6 {
			f.Never++
		} else {
			f.Open++
			values = append(values, x)
		}
	}
	if f.Open > 0 {
		found = choose(values, most)
	}

	f.Count, f.Candidates, f.LogLikelihood = len(values), found.candidates, found.log
	f.Resolution = medianWidth(closed)
	f.Mixture, f.Errors = found.modes()
	f.Distance = f.Mixture.Distance(values)
	f.Quantiles = f.Mixture.quantilePairs(values, f.Resolution)
	f.P, f.Resamples = found.plausible(values, f.Distance.KSLow, opt)
	return f, nil
}

func compare(a, b timeline.Interval) int {
	return cmp.Or(cmp.Compare(a.Earliest, b.Earliest), cmp.Compare(a.Latest, b.Latest))
}

func medianWidth(xs []timeline.Interval) time.Duration {
	widths := make([]time.Duration, 0, len(xs))
	for _, x := range xs {
		if x.Latest != timeline.Never {
			widths = append(widths, x.Width())
		}
	}
	if len(widths) == 0 {
		return 0
	}
	slices.Sort(widths)
	return widths[len(widths)/2]
}

// choice is the components that were chosen for cells.
type choice struct {
	cells      []cell
	at         []component
	log        float64
	lim        limits
	candidates []Candidate
	outliers   []int // places of values that seem to be none of the mode's
}

// polish is how little a round of EM has to gain to be the last.
const polish = 1e-5

// choose tries all numbers of modes.
func choose(values []timeline.Interval, most int) choice {
	c := choice{cells: make([]cell, len(values)), lim: limits{floor: floorOf(values), fixed: -1}}
	for i, x := range values {
		c.cells[i] = cellOf(x)
	}
	few := c.cells // to find out which start is best
	if every := len(few)/512 + 1; every > 1 {
		few = nil
		for i := every / 2; i < len(c.cells); i += every {
			few = append(few, c.cells[i])
		}
	}
	lowest, widest := math.Inf(1), math.Inf(1) // of BIC: of those that can be taken, and of all
	for modes := 1; modes <= most; modes++ {
		var best []component
		likeliest := math.Inf(-1)
		for _, start := range starts(few, modes, c.lim.floor) {
			at, l := climb(few, start, c.lim, 1e-3, 200, nil)
			if best == nil || l.log > likeliest {
				best, likeliest = at, l.log
			}
		}
		at, l := climb(c.cells, best, c.lim, polish, 2000, nil)
		slices.SortFunc(at, func(a, b component) int { return cmp.Compare(a.mean, b.mean) })
		x := Candidate{Modes: modes, LogLikelihood: l.log, BIC: float64(3*modes-1)*math.Log(float64(len(values))) - 2*l.log}
		small := smallOf(at, len(values))
		switch {
		case len(small) > 0:
			x.Refused = "a mode has too few durations"
			if x.BIC < widest {
				c.outliers = c.members(at, small)
			}
		case !separate(at, float64(medianWidth(values))/2):
			x.Refused = "two modes are too near to each other"
		case x.BIC < lowest:
			lowest, c.at, c.log = x.BIC, at, l.log
		}
		widest = min(widest, x.BIC)
		c.candidates = append(c.candidates, x)
	}
	return c
}

// floorOf is the least spread that a component has, in nanoseconds.
func floorOf(values []timeline.Interval) float64 {
	floor := max(0.5, float64(medianWidth(values))/50)
	// Values that were rounded are no modes without spread.
	mids := make([]float64, len(values))
	for i, x := range values {
		mids[i] = float64(x.Mid())
	}
	slices.Sort(mids)
	var steps []float64
	for i := 1; i < len(mids); i++ {
		if mids[i] > mids[i-1] {
			steps = append(steps, mids[i]-mids[i-1])
		}
	}
	if len(steps)+1 < len(mids)/2 && len(steps) >= MinOfMode {
		slices.Sort(steps)
		floor = max(floor, steps[0]/math.Sqrt(12))
	}
	return floor
}

// smallOf returns the components that are too small to be modes.
func smallOf(at []component, n int) []int {
	var small []int
	for k, c := range at {
		if len(at) > 1 && c.share*float64(n) < max(MinOfMode, minPart*float64(n))-0.5 {
			small = append(small, k)
		}
	}
	return small
}

// members returns the cells that belong to the small components rather than to the others,
// and begin or end farther off from each of those than six spreads.
func (c *choice) members(at []component, small []int) []int {
	var list []int
	judge(c.cells, at, func(i int, p []float64) {
		sum, far := 0.0, len(small) < len(at)
		for k, x := range at {
			if slices.Contains(small, k) {
				sum += p[k]
				continue
			}
			far = far && (c.cells[i].lo > x.mean+6*x.spread || c.cells[i].hi < x.mean-6*x.spread)
		}
		if sum > 0.5 && far {
			list = append(list, i)
		}
	})
	return list
}

// separate reports whether components, in order of their means, are modes: no shoulders, and
// not nearer than so many nanoseconds, where what seems to be two is how the instrument counts.
func separate(at []component, least float64) bool {
	for k := 1; k < len(at); k++ {
		if at[k].mean-at[k-1].mean < max(2*at[k].spread, 2*at[k-1].spread, least) {
			return false
		}
	}
	return true
}

// beyond is the probability of more than x.
func (c *choice) beyond(x float64) float64 {
	p := 0.0
	for _, k := range c.at {
		p += k.share * math.Exp(logUpper((x-k.mean)/k.spread))
	}
	return p
}

// modes returns what the components are to others, and how sure that is.
func (c *choice) modes() (Mixture, []ModeError) {
	errs := c.errors()
	var m Mixture
	for k, x := range c.at {
		spread := time.Duration(math.Round(x.spread))
		if x.spread <= c.lim.floor*(1+1e-9) {
			spread = 0
		}
		m = append(m, Mode{Share: x.share, Median: time.Duration(math.Round(x.mean)), Spread: spread})
		errs[k].AtMost = c.atMost(k)
	}
	return m, errs
}

// less is by how much the logarithm of the likelihood is lower at the end of a one-sided
// confidence interval of 95 %.
const less = 1.353

// atMost bounds the spread of a component that may as well have none.
func (c *choice) atMost(k int) time.Duration {
	if c.at[k].spread > 2*max(float64(medianOfCells(c.cells)), c.lim.floor) {
		return 0 // wider than what the intervals leave open
	}
	at := func(spread float64) float64 {
		start := slices.Clone(c.at)
		start[k].spread = spread
		lim := c.lim
		lim.fixed = k
		_, l := climb(c.cells, start, lim, 1e-3, 100, nil)
		return l.log
	}
	if c.log-at(c.lim.floor) > less {
		return 0 // it has one
	}
	low, high := c.at[k].spread, c.at[k].spread*2
	for c.log-at(high) < less {
		if low, high = high, 2*high; high > 1e13 {
			return 0 // nothing bounds it
		}
	}
	for range 12 {
		if mid := math.Sqrt(low * high); c.log-at(mid) < less {
			low = mid
		} else {
			high = mid
		}
	}
	return time.Duration(math.Ceil(high))
}

func medianOfCells(cells []cell) time.Duration {
	widths := make([]float64, 0, len(cells))
	for _, c := range cells {
		widths = append(widths, c.hi-c.lo)
	}
	slices.Sort(widths)
	return time.Duration(min(widths[len(widths)/2], 1e15))
}

// Distance is how far a mixture is from the durations it is compared with. These lie in
// intervals, so each distance does, too: Low is how far off it is in any case, High if
// every duration is where it is worst.
type Distance struct {
	// KSLow and KSHigh are of Kolmogorov and Smirnov: the largest difference of the two
	// distribution functions, from 0 to 1, against the estimate of [timeline.Turnbull].
	KSLow  float64 `json:"ks_low"`
	KSHigh float64 `json:"ks_high"`
	// Wasserstein distances are how far, on average, durations would have to be moved.
	WassersteinLow  time.Duration `json:"wasserstein_low_ns"`
	WassersteinHigh time.Duration `json:"wasserstein_high_ns"`
}

// QuantilePair is a quantile by the mixture, and as it was measured: a point of a Q-Q plot.
type QuantilePair struct {
	Q         float64
	Model     time.Duration
	Data      timeline.Interval
	Low, High time.Duration // 95 of 100 times the measured one is in this band, if the mixture is right
}
