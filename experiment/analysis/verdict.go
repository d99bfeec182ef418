package analysis

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/timeline"
)

// value is what a statistic came to, in the units of plan.Limit.
type value struct {
	at, low, high float64
	known         bool
	late          bool // it was waited for in vain
	// lowNeed and highNeed are how many durations it takes for each bound to say anything of
	// what was not seen, where there are fewer.
	lowNeed, highNeed int
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
				verdict.Need = max(v.lowNeed, v.highNeed)
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

// Judge gives the verdicts on limits under conditions of which no more is known than Report,
// with Total, and of each stage its Summary and Max: how it stands with a run that goes on.
// What never came counts as missing only, so a quantile may look better than [Of] will find it.
// The Judgement is of all.
func Judge(limits []plan.Limit, conditions []Condition) ([]Verdict, Judgement) {
	a := Analysis{Conditions: conditions}
	a.judge(limits)
	return a.Verdicts, a.Verdict
}

// Found is what was found of what the limit is about, with its bounds, in words.
func (v Verdict) Found() string {
	if !v.Known {
		return "nothing was found"
	}
	write := func(x float64) string {
		switch {
		case math.IsInf(x, 0):
			return "any time later"
		case v.Limit.Statistic.Of.IsTime():
			return time.Duration(x).Round(time.Microsecond).String()
		}
		return fmt.Sprintf("%.4g", x)
	}
	text := write(v.Value)
	if v.Low != v.High {
		text += fmt.Sprintf(" (%s to %s)", write(v.Low), write(v.High))
	}
	if v.Need > 0 {
		text += fmt.Sprintf("; takes %d values to tell", v.Need)
	}
	return text
}

// judge compares a value with a limit.
func (v value) judge(l plan.Limit) Judgement {
	if !v.known {
		if v.late {
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
	keeps, breaks := v.highNeed, v.lowNeed // what the bounds need that decide
	if l.Op == ">" || l.Op == ">=" {
		keeps, breaks = breaks, keeps
	}
	switch {
	case broken && breaks == 0:
		return Fail
	case kept && keeps == 0:
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
		v.late = c.Waited[s.Stage] > 0
		return v
	}
	x := &c.Stages[i]
	switch s.Of {
	case plan.P50:
		return c.time(x, s.Of, x.Median, 0.5)
	case plan.P95:
		return c.time(x, s.Of, x.P95, 0.95)
	case plan.P99:
		return c.time(x, s.Of, x.P99, 0.99)
	case plan.Max: // of what was, and not of what may be: it takes no more than one
		return of(x.counted(s.Of, timeline.Estimate{NS: x.Max.Mid(), LowNS: x.Max.Earliest, HighNS: x.Max.Latest}))
	case plan.Share:
		return c.share(i)
	case plan.Missing:
		return exactly(x.Missing)
	}
	return exactly(x.Count)
}

// fewest is how many reconfigurations it takes for bounds to say anything, however many
// durations each gives: what they have in common is drawn anew only with the next command.
const fewest = 2

// time is a quantile.
func (c *Condition) time(x *Stage, q plan.Quantity, e timeline.Estimate, part float64) value {
	v := of(x.counted(q, e))
	n := max(x.Count, x.Distribution.Count) // with what never came
	least := 0
	if r := c.Report.Reconfigurations; r > 0 && r < fewest {
		least = (fewest*n + r - 1) / r
	}
	if need := max(wilks(part), least); n < need {
		v.highNeed = need
	}
	if need := max(wilks(1-part), least); n < need {
		v.lowNeed = need
	}
	return v
}

// counted is an estimate in which what never came counts as later than it was waited for.
func (x *Stage) counted(q plan.Quantity, e timeline.Estimate) timeline.Estimate {
	if x.Counted != nil {
		return x.Counted[q]
	}
	return e
}

// of is the value of a time.
func of(e timeline.Estimate) value {
	v := value{at: float64(e.NS), low: float64(e.LowNS), high: float64(e.HighNS), known: true}
	if e.HighNS == timeline.Never {
		v.high = math.Inf(1)
	}
	return v
}

// wilks returns how many values it takes until the largest of them is, with a confidence of
// 95 %, above a part q of all that there may be (Wilks 1941).
func wilks(q float64) int {
	return int(math.Ceil(math.Log(1-confidence)/math.Log(q) - 1e-9)) // 1-0.95 is a hair above 0.05
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
