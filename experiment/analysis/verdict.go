package analysis

import (
	"math"
	"slices"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/timeline"
)

// value is what a statistic came to, in the units of plan.Limit.
type value struct {
	at, low, high float64
	known         bool
	expected      bool // should have been seen
	// need is how many durations it takes for bounds to say anything of what was not seen,
	// where there are fewer.
	need int
}

// judge gives the verdicts on limits.
func (a *Analysis) judge(limits []plan.Limit) {
	rank := []Judgement{"", Pass, Undecided, Fail}
	for _, l := range limits {
		about := false
		for i := range a.Conditions {
			c := &a.Conditions[i]
			if !l.About(c.Condition) {
				continue
			}
			about = true
			v := c.value(l.Statistic)
			verdict := Verdict{Limit: l, Condition: c.Number, Judgement: v.judge(l), Known: v.known}
			if verdict.Judgement == Undecided {
				verdict.Need = v.need
			}
			if v.known {
				verdict.Value, verdict.Low, verdict.High = v.at, v.low, v.high
			}
			a.Verdicts = append(a.Verdicts, verdict)
			a.Verdict = rank[max(slices.Index(rank, a.Verdict), slices.Index(rank, verdict.Judgement))]
		}
		if !about { // nothing is done yet that it is about
			a.Verdict = rank[max(slices.Index(rank, a.Verdict), slices.Index(rank, Undecided))]
		}
	}
}

// judge compares a value with a limit.
func (v value) judge(l plan.Limit) Judgement {
	if !v.known {
		if v.expected {
			return Fail
		}
		return Undecided
	}
	var kept, broken bool
	switch l.Op {
	case "<":
		kept, broken = v.high < l.Value, v.low >= l.Value
	case "<=":
		kept, broken = v.high <= l.Value, v.low > l.Value
	case ">":
		kept, broken = v.low > l.Value, v.high <= l.Value
	case ">=":
		kept, broken = v.low >= l.Value, v.high < l.Value
	case "==":
		kept, broken = v.low == l.Value && v.high == l.Value, l.Value < v.low || l.Value > v.high
	}
	switch {
	case broken:
		return Fail
	case kept && !(v.need > 0 && (l.Op == "<" || l.Op == "<=")):
		return Pass
	}
	return Undecided
}

// value returns what a statistic came to.
func (c *Condition) value(s plan.Statistic) value {
	exactly := func(n int) value {
		return value{at: float64(n), low: float64(n), high: float64(n), known: true}
	}
	missing, expected := 0, false
	for _, u := range c.Report.Unseen {
		if s.Stage == "" || s.Stage == u.Stage {
			missing += u.Missing
			expected = true
		}
	}
	if s.Stage == "" { // missing, of all stages
		for _, x := range c.Stages {
			missing += x.Missing
		}
		v := exactly(missing)
		v.known = expected || len(c.Stages) > 0
		return v
	}
	if s.Stage == timeline.Command { // each reconfiguration that counts has one
		if s.Of == plan.Missing {
			return exactly(c.Reconfigurations - c.Report.Reconfigurations)
		}
		return exactly(c.Report.Reconfigurations)
	}
	i := slices.IndexFunc(c.Stages, func(x Stage) bool { return x.Stage == s.Stage })
	if i < 0 {
		v := exactly(0)
		if s.Of == plan.Missing {
			v = exactly(missing)
		}
		v.known = expected && (s.Of == plan.Missing || s.Of == plan.Count)
		v.expected = expected
		return v
	}
	x := &c.Stages[i]
	switch s.Of {
	case plan.P50:
		return x.time(x.Median, 0.5, 2)
	case plan.P95:
		return x.time(x.P95, 0.95, 20)
	case plan.P99:
		return x.time(x.P99, 0.99, 100)
	case plan.Max:
		return x.time(timeline.Estimate{NS: x.Max.Mid(), LowNS: x.Max.Earliest, HighNS: x.Max.Latest}, 1, 1)
	case plan.Share:
		return c.share(i)
	case plan.Missing:
		return exactly(x.Missing)
	}
	return exactly(x.Count)
}

// time is a quantile. What never came counts as later than it was waited for, so with
// enough of that the quantile may be any time later than is known.
func (x *Stage) time(e timeline.Estimate, q float64, enough int) value {
	v := value{at: float64(e.NS), low: float64(e.LowNS), high: float64(e.HighNS), known: true}
	if x.Count < enough {
		v.need = enough
	}
	if with := x.Distribution.Quantile(q); with.Latest == timeline.Never {
		v.low = max(v.low, float64(with.Earliest))
		v.at = max(v.at, v.low)
		v.high = math.Inf(1)
	}
	return v
}

// share is that of stage i. Its bounds are those of the medians that it comes from, each
// as unfavourable as can be.
func (c *Condition) share(i int) value {
	x, total := c.Stages[i], c.Report.Total
	v := value{at: x.Share, low: 0, high: 1, known: true}
	var before timeline.Estimate
	if i > 0 {
		before = c.Stages[i-1].Median
	}
	low := max(float64(x.Median.LowNS)-float64(max(before.HighNS, 0)), 0)
	high := max(float64(x.Median.HighNS)-float64(max(before.LowNS, 0)), 0)
	if total.HighNS > 0 {
		v.low = min(low/float64(total.HighNS), v.at)
	}
	if total.LowNS > 0 {
		v.high = max(min(high/float64(total.LowNS), 1), v.at)
	}
	return v
}

// unit names the units of Verdict.Value.
func unit(q plan.Quantity) string {
	switch {
	case q.IsTime():
		return "ns"
	case q == plan.Share:
		return "share"
	}
	return "count"
}
