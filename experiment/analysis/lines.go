package analysis

import (
	"bytes"
	"encoding/json"
	"math"

	"github.com/ocslab/ocslab/timeline"
)

// MarshalJSON writes one object: kind ("analysis"), verdict (left out without limits), and
// lines, which is what [Analysis.Lines] returns.
func (a *Analysis) MarshalJSON() ([]byte, error) {
	lines := a.Lines()
	if lines == nil {
		lines = []any{} // [] and not null
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // the ">" of pairs is for the caller's encoder to escape
	err := e.Encode(struct {
		Kind    string    `json:"kind"`
		Verdict Judgement `json:"verdict,omitempty"`
		Lines   []any     `json:"lines"`
	}{"analysis", a.Verdict, lines})
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Lines returns what "--json" prints of an analysis, one object a line. Each has a kind:
//
//	condition      condition, label, points, reconfigurations, orphans, total_ns, total_low_ns,
//	               total_high_ns, typical, slowest, outliers (how many), held (NIC to how often)
//	stage-summary  condition, label, stage, count, missing, the median_ns, p95_ns and p99_ns
//	               each with _low_ns and _high_ns, min_ns, max_ns, resolution_ns, step_ns,
//	               share, aa_ns, floor_ns, drift_ns with bounds, spurious, spurious_high (of
//	               null toggles; left out without them), q1_ns and q3_ns, calibrated_ns (left out
//	               without a timing calibration of the stage)
//	nic-summary    condition, nic, stage, count, missing, and median_ns, p95_ns, p99_ns with bounds
//	pair           condition, from, to, stage, count, earliest_ns, latest_ns (of the median)
//	outlier        condition, reconfiguration, stage, subject, earliest_ns, latest_ns, score
//	background     stage, nulls, marked, low, high, window_ns
//	difference     condition, stage, difference_ns, low_ns, high_ns, resolved
//	verdict        limit, condition, label, judgement, and, when it is known, value, low, high
//	               (left out when there is no telling how high), in unit "ns", "share" or "count"
//	busy           reconfiguration, reasons: left out of all of the above, and of accuracy
//	accuracy       as [timeline.Accuracy] writes it
//	violation      rule, text, reconfiguration
//	conflict       text, reconfiguration
//
// Stages that were expected and never seen, at all or at a NIC, have a stage-summary or a
// nic-summary with count 0, missing, and nothing else. Times are whole nanoseconds since the command; nothing is NaN or infinite.
// Keys are never renamed; new ones may be added.
func (a *Analysis) Lines() []any {
	var lines []any
	add := func(line any) { lines = append(lines, line) }
	labels := map[int]string{}
	for i := range a.Conditions {
		c := &a.Conditions[i]
		labels[c.Number] = c.Label
		add(conditionLine{
			"condition", c.Number, c.Label, c.Points, c.Reconfigurations, c.Report.Orphans,
			c.Report.Total.NS, c.Report.Total.LowNS, c.Report.Total.HighNS, c.Typical, c.Slowest, c.OutlierCount, c.Held,
		})
		for j := range c.Stages {
			add(c.Stages[j].line(c.Number, c.Label))
		}
		for _, u := range c.Report.Unseen {
			add(unseenLine{"stage-summary", c.Number, c.Label, u.Stage, 0, u.Missing})
		}
		for _, n := range c.NICs {
			for _, stage := range timeline.Stages() {
				if x, ok := n.Stages[stage]; ok {
					add(nicLine{"nic-summary", c.Number, n.Name, stage, x.Count, x.Missing, x.QuantileFields()})
				}
				if k := n.Unseen[stage]; k > 0 {
					add(unseenNIC{"nic-summary", c.Number, n.Name, stage, 0, k})
				}
			}
		}
		for _, p := range c.Pairs {
			add(pairLine{"pair", c.Number, p.From, p.To, p.Stage, p.Count, p.Median})
		}
		for _, o := range c.Outliers {
			add(outlierLine{"outlier", c.Number, o.Reconfiguration, o.Stage, o.Subject, o.Interval, finite(o.Score)})
		}
	}
	for _, b := range a.Background {
		add(backgroundLine{"background", b.Stage, b.Nulls, b.Marked, b.Low, b.High, int64(b.Window)})
	}
	for _, d := range a.Differences {
		add(differenceLine{"difference", d.Condition, d.Stage, d.Median.NS, d.Median.LowNS, d.Median.HighNS, d.Resolved})
	}
	for _, v := range a.Verdicts {
		add(v.line(labels[v.Condition]))
	}
	for _, b := range a.Busy {
		add(busyLine{"busy", b})
	}
	for _, x := range a.Accuracy {
		add(x)
	}
	for _, v := range a.Violations {
		add(remarkLine{"violation", v.Effect.Reconfiguration, v.Rule, v.Error()})
	}
	for _, c := range a.Conflicts {
		add(remarkLine{"conflict", c.First.Reconfiguration, "", c.Error()})
	}
	return lines
}

type busyLine struct {
	Kind string `json:"kind"`
	Busy
}

type conditionLine struct {
	Kind             string         `json:"kind"`
	Condition        int            `json:"condition"`
	Label            string         `json:"label"`
	Points           int            `json:"points"`
	Reconfigurations int            `json:"reconfigurations"`
	Orphans          int            `json:"orphans"`
	TotalNS          int64          `json:"total_ns"`
	TotalLowNS       int64          `json:"total_low_ns"`
	TotalHighNS      int64          `json:"total_high_ns"`
	Typical          int            `json:"typical"`
	Slowest          int            `json:"slowest"`
	Outliers         int            `json:"outliers"`
	Held             map[string]int `json:"held,omitempty"`
}

type stageLine struct {
	Kind      string         `json:"kind"`
	Condition int            `json:"condition"`
	Label     string         `json:"label"`
	Stage     timeline.Stage `json:"stage"`
	Count     int            `json:"count"`
	Missing   int            `json:"missing"`
	timeline.QuantileFields
	StepNS       int64    `json:"step_ns"`
	Share        float64  `json:"share"`
	MinNS        int64    `json:"min_ns"`
	Q1NS         int64    `json:"q1_ns"`
	Q3NS         int64    `json:"q3_ns"`
	MaxNS        int64    `json:"max_ns"`
	AANS         int64    `json:"aa_ns"`
	FloorNS      int64    `json:"floor_ns"`
	DriftNS      int64    `json:"drift_ns"`
	DriftLowNS   int64    `json:"drift_low_ns"`
	DriftHighNS  int64    `json:"drift_high_ns"`
	Spurious     *float64 `json:"spurious,omitempty"`
	SpuriousHigh *float64 `json:"spurious_high,omitempty"`
	CalibratedNS int64    `json:"calibrated_ns,omitempty"`
}

func (x *Stage) line(condition int, label string) stageLine {
	l := stageLine{
		"stage-summary", condition, label, x.Stage, x.Count, x.Missing, x.Summary.QuantileFields(), int64(x.Step), finite(x.Share),
		x.Min.Mid(), x.Box.Q1, x.Box.Q3, x.Max.Mid(), int64(x.AA), int64(x.Floor), x.Drift.NS, x.Drift.LowNS, x.Drift.HighNS, nil, nil, int64(x.Calibrated),
	}
	if x.Spurious != nil {
		expected, high := finite(x.Spurious.Expected), finite(x.Spurious.High)
		l.Spurious, l.SpuriousHigh = &expected, &high
	}
	return l
}

type unseenLine struct {
	Kind      string         `json:"kind"`
	Condition int            `json:"condition"`
	Label     string         `json:"label"`
	Stage     timeline.Stage `json:"stage"`
	Count     int            `json:"count"`
	Missing   int            `json:"missing"`
}

type nicLine struct {
	Kind      string         `json:"kind"`
	Condition int            `json:"condition"`
	NIC       string         `json:"nic"`
	Stage     timeline.Stage `json:"stage"`
	Count     int            `json:"count"`
	Missing   int            `json:"missing"`
	timeline.QuantileFields
}

type unseenNIC struct {
	Kind      string         `json:"kind"`
	Condition int            `json:"condition"`
	NIC       string         `json:"nic"`
	Stage     timeline.Stage `json:"stage"`
	Count     int            `json:"count"`
	Missing   int            `json:"missing"`
}

type pairLine struct {
	Kind      string         `json:"kind"`
	Condition int            `json:"condition"`
	From      string         `json:"from"`
	To        string         `json:"to"`
	Stage     timeline.Stage `json:"stage"`
	Count     int            `json:"count"`
	timeline.Interval
}

type outlierLine struct {
	Kind            string         `json:"kind"`
	Condition       int            `json:"condition"`
	Reconfiguration int            `json:"reconfiguration"`
	Stage           timeline.Stage `json:"stage"`
	Subject         string         `json:"subject"`
	timeline.Interval
	Score float64 `json:"score"`
}

type backgroundLine struct {
	Kind     string         `json:"kind"`
	Stage    timeline.Stage `json:"stage"`
	Nulls    int            `json:"nulls"`
	Marked   int            `json:"marked"`
	Low      float64        `json:"low"`
	High     float64        `json:"high"`
	WindowNS int64          `json:"window_ns"`
}

type differenceLine struct {
	Kind         string         `json:"kind"`
	Condition    int            `json:"condition"`
	Stage        timeline.Stage `json:"stage"`
	DifferenceNS int64          `json:"difference_ns"`
	LowNS        int64          `json:"low_ns"`
	HighNS       int64          `json:"high_ns"`
	Resolved     bool           `json:"resolved"`
}

type verdictLine struct {
	Kind      string    `json:"kind"`
	Limit     string    `json:"limit"`
	Condition int       `json:"condition"`
	Label     string    `json:"label"`
	Judgement Judgement `json:"judgement"`
	Known     bool      `json:"known"`
	Unit      string    `json:"unit"`
	Value     *float64  `json:"value,omitempty"`
	Low       *float64  `json:"low,omitempty"`
	High      *float64  `json:"high,omitempty"`
	Need      int       `json:"need,omitempty"`
}

func (v Verdict) line(label string) verdictLine {
	l := verdictLine{Kind: "verdict", Limit: v.Limit.String(), Condition: v.Condition, Label: label, Judgement: v.Judgement, Known: v.Known, Unit: unit(v.Limit.Statistic.Of), Need: v.Need}
	if v.Known {
		l.Value, l.Low = &v.Value, &v.Low
		if !math.IsInf(v.High, 0) {
			l.High = &v.High
		}
	}
	return l
}

type remarkLine struct {
	Kind            string `json:"kind"`
	Reconfiguration int    `json:"reconfiguration"`
	Rule            string `json:"rule,omitempty"`
	Text            string `json:"text"`
}

// finite keeps what JSON cannot write out of it.
func finite(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return min(max(x, -math.MaxFloat64), math.MaxFloat64)
}
