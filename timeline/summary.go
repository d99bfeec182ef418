package timeline

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// Defaults of [Options].
const (
	DefaultConfidence = 0.95
	DefaultResamples  = 1000
)

// Options of [Summarize].
type Options struct {
	Confidence float64 // of the bounds, between 0 and 1 exclusive; anything else is DefaultConfidence
	Resamples  int     // of the bootstrap; below 1 is DefaultResamples
	Seed       uint64  // same marks, options and seed: same report

	// Expected is what should have been seen, all reconfigurations in one list and in any
	// order: each that is not seen is missing, and nothing else is. What was seen without
	// being expected counts like the rest. Expectations of a reconfiguration without a
	// command mark, or of the command itself, say nothing. Nil if it is not known; see
	// Summary.Missing for what is counted then. When circuits alternate, only some
	// subjects have a part in each reconfiguration, and the list is needed.
	Expected []Expectation
}

// Estimate is a statistic in nanoseconds. Low and High are its confidence bounds, which
// include what the intervals of the marks leave open: LowNS <= NS <= HighNS.
type Estimate struct{ NS, LowNS, HighNS int64 }

// Summary tells of one stage how long after the command it was reached.
type Summary struct {
	Stage Stage
	Count int // durations that the statistics stand on

	// Missing is how many expectations (Options.Expected) of this stage were not met.
	// Without a list of them it is how many more durations there would be, had every
	// subject that ever reached this stage (at one host) reached it in every
	// reconfiguration. A subject that some reconfigurations rightly leave alone is then
	// missing there too.
	Missing int

	// Quantiles of the time since the command. See [Quantile] for how little P95 and
	// P99 mean below 20 and 100 values; their HighNS then is only the largest value
	// seen and does not bound what was not seen.
	Median, P95, P99 Estimate

	// Resolution is the median width of the durations. Differences below it cannot be
	// resolved, however many repeats there are.
	Resolution time.Duration

	// Step is how much later than the stage before it in the report the median is, and
	// Share is Step as a part of the total, from 0 to 1.
	Step  time.Duration
	Share float64
}

// QuantileFields is how JSON has the quantiles of a [Summary] and its resolution, in
// nanoseconds.
type QuantileFields struct {
	MedianNS     int64 `json:"median_ns"`
	MedianLowNS  int64 `json:"median_low_ns"`
	MedianHighNS int64 `json:"median_high_ns"`
	P95NS        int64 `json:"p95_ns"`
	P95LowNS     int64 `json:"p95_low_ns"`
	P95HighNS    int64 `json:"p95_high_ns"`
	P99NS        int64 `json:"p99_ns"`
	P99LowNS     int64 `json:"p99_low_ns"`
	P99HighNS    int64 `json:"p99_high_ns"`
	ResolutionNS int64 `json:"resolution_ns"`
}

// QuantileFields returns those of s.
func (s Summary) QuantileFields() QuantileFields {
	return QuantileFields{
		s.Median.NS, s.Median.LowNS, s.Median.HighNS, s.P95.NS, s.P95.LowNS, s.P95.HighNS,
		s.P99.NS, s.P99.LowNS, s.P99.HighNS, int64(s.Resolution),
	}
}

// Report is what many reconfigurations say together.
type Report struct {
	// Stages are in order of their medians, ties in canonical order. The command,
	// being 0, is not among them.
	Stages           []Summary
	Reconfigurations int // those that have a command mark

	// Total is the median of the last stage. The steps add up to it, and the shares to
	// 1, unless it is not above 0: then they are all 0.
	Total Estimate

	// Orphans are marks that were left out because their reconfiguration has no command
	// mark. Those of reconfiguration 0, before the first command, are rightly without one
	// and left out uncounted.
	Orphans int

	// Unseen are the stages that were expected (Options.Expected) and that no subject
	// reached in any reconfiguration, in canonical order. They are not among Stages,
	// since there is nothing to say of when.
	Unseen []Unseen

	// Missed is each of Options.Expected that was not seen, once, by reconfiguration, stage
	// in canonical order, and subject. JSON has only the numbers.
	Missed []Expectation

	// Busy counts the reconfigurations that the caller left out of marks and Expected because
	// the machine was too busy.
	Busy int
}

// MarshalJSON writes one object: kind ("summary"), reconfigurations, orphans, stages
// (each with stage, count, missing, median_ns, median_low_ns, median_high_ns, the same
// for p95 and p99, resolution_ns, step_ns, share), total_ns, total_low_ns,
// total_high_ns, and, when there are any, unseen (each with stage, missing) and busy.
func (r Report) MarshalJSON() ([]byte, error) {
	type stage struct {
		Stage   Stage `json:"stage"`
		Count   int   `json:"count"`
		Missing int   `json:"missing"`
		QuantileFields
		StepNS int64   `json:"step_ns"`
		Share  float64 `json:"share"`
	}
	stages := make([]stage, len(r.Stages)) // [] and not null when there are none
	for i, s := range r.Stages {
		stages[i] = stage{s.Stage, s.Count, s.Missing, s.QuantileFields(), int64(s.Step), s.Share}
	}
	return encode(struct {
		Kind             string   `json:"kind"`
		Reconfigurations int      `json:"reconfigurations"`
		Orphans          int      `json:"orphans"`
		Stages           []stage  `json:"stages"`
		TotalNS          int64    `json:"total_ns"`
		TotalLowNS       int64    `json:"total_low_ns"`
		TotalHighNS      int64    `json:"total_high_ns"`
		Unseen           []Unseen `json:"unseen,omitempty"`
		Busy             int      `json:"busy,omitempty"`
	}{"summary", r.Reconfigurations, r.Orphans, stages, r.Total.NS, r.Total.LowNS, r.Total.HighNS, r.Unseen, r.Busy})
}

// Summarize pools the durations from command to stage over all reconfigurations and
// subjects. Give it merged marks ([Merge]); their order does not matter.
//
// A duration is the mark's interval less that of the command, so it is as wide as both
// together. With several command marks in one reconfiguration, time starts at the first.
// When one subject reaches a stage more than once, the first dark, carrier-down or
// traffic-lost counts, and the last of any other stage: only then is it back for good.
//
// Confidence bounds are percentiles of a bootstrap that draws whole reconfigurations,
// because the subjects in one of them share a command and are not independent. For each
// bound the least favourable ends of the intervals are taken. Where a stage was reached
// in fewer than two reconfigurations there is nothing to draw, and the bounds are the
// ends of all its durations. With few reconfigurations (below about 20) a bootstrap
// makes bounds that are too narrow.
func Summarize(marks []Mark, opt Options) Report {
	if !(opt.Confidence > 0 && opt.Confidence < 1) {
		opt.Confidence = DefaultConfidence
	}
	if opt.Resamples < 1 {
		opt.Resamples = DefaultResamples
	}
	c := collect(marks)
	var pools []*pool
	for i, s := range c.stages {
		pools = append(pools, newStagePool(s, c))
		c.stages[i].events = nil // not needed any more, and large
	}
	bootstrap(pools, len(c.numbers), opt)

	report := Report{Reconfigurations: len(c.numbers), Orphans: c.orphans}
	for _, p := range pools {
		report.Stages = append(report.Stages, p.summary(opt.Confidence))
	}
	report.addShares()
	if opt.Expected != nil {
		report.expect(marks, opt.Expected)
	}
	return report
}

// addShares orders the stages by time and says what each adds to the total. A median
// before the command (a last packet may be that old) adds nothing.
func (r *Report) addShares() {
	if len(r.Stages) == 0 {
		return
	}
	slices.SortFunc(r.Stages, func(a, b Summary) int {
		return cmp.Or(cmp.Compare(a.Median.NS, b.Median.NS), compareStages(a.Stage, b.Stage))
	})
	r.Total = r.Stages[len(r.Stages)-1].Median
	var before int64
	for i := range r.Stages {
		s := &r.Stages[i]
		now := max(s.Median.NS, 0)
		s.Step = time.Duration(now - before)
		if r.Total.NS > 0 {
			s.Share = float64(s.Step) / float64(r.Total.NS)
		}
		before = now
	}
}

// quantiles are those of a Summary.
var quantiles = [...]float64{0.5, 0.95, 0.99}

// pool is the durations of one stage.
type pool struct {
	*Pool
	stage    Stage
	subjects int // that ever reached it
	reached  int // reconfigurations in which any did
	// resolution is the median of the widths.
	resolution time.Duration
	draws      [len(quantiles)]struct{ lows, highs []int64 } // what the resamples gave
}

func newStagePool(s stageEvents, c *collection) *pool {
	p := &pool{Pool: newPool(s.events, len(c.numbers), quantiles[:]), stage: s.stage}
	widths := make([]int64, len(s.events))
	seen := make([]bool, len(c.subjects))
	for i, e := range s.events {
		widths[i] = int64(e.Width())
		if !seen[e.subject] {
			seen[e.subject] = true
			p.subjects++
		}
	}
	for _, size := range p.sizes {
		if size > 0 {
			p.reached++
		}
	}
	p.resolution = time.Duration(quantileOf(widths, 0.5).Mid())
	return p
}

// bootstrap draws as many reconfigurations as there are, with replacement, again and
// again, and keeps what the quantiles would have been.
func bootstrap(pools []*pool, reconfigurations int, opt Options) {
	random := rand.New(rand.NewPCG(opt.Seed, 0))
	times := make([]int32, reconfigurations) // that each was drawn
	var at [len(quantiles)]Interval
	for range opt.Resamples {
		clear(times)
		for range reconfigurations {
			times[random.IntN(reconfigurations)]++
		}
		for _, p := range pools {
			if !p.Quantiles(times, at[:]) {
				continue
			}
			for q := range at {
				d := &p.draws[q]
				d.lows, d.highs = append(d.lows, at[q].Earliest), append(d.highs, at[q].Latest)
			}
		}
	}
}

func (p *pool) summary(confidence float64) Summary {
	var at [len(quantiles)]Interval
	p.Quantiles(slices.Repeat([]int32{1}, len(p.sizes)), at[:])
	return Summary{
		Stage:      p.stage,
		Count:      p.Count(),
		Missing:    p.subjects*len(p.sizes) - p.Count(),
		Median:     p.estimate(0, at[0], confidence),
		P95:        p.estimate(1, at[1], confidence),
		P99:        p.estimate(2, at[2], confidence),
		Resolution: p.resolution,
	}
}

// estimate gives quantiles[q], which without resampling is at, its bounds.
func (p *pool) estimate(q int, at Interval, confidence float64) Estimate {
	bounds := Interval{p.lows[0].ns, p.highs[len(p.highs)-1].ns}
	if d := p.draws[q]; p.reached >= 2 && len(d.lows) > 0 {
		tail := (1 - confidence) / 2
		bounds.Earliest = quantileOf(d.lows, tail).Earliest
		bounds.Latest = quantileOf(d.highs, 1-tail).Latest
		bounds = bounds.Hull(at) // the draws may all lie on one side
	}
	return Estimate{at.Mid(), bounds.Earliest, bounds.Latest}
}
