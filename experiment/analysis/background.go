package analysis

import (
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/ocslab/ocslab/timeline"
)

// background returns what the null toggles showed, of each stage that they or one of the
// conditions have. The command and its acknowledgement are of the toggle itself.
func (s *split) background(conditions []Condition) []Background {
	n := len(s.recs[nulls])
	if n == 0 {
		return nil
	}
	marked := map[timeline.Stage]map[int]bool{}
	see := func(stage timeline.Stage) map[int]bool {
		if marked[stage] == nil {
			marked[stage] = map[int]bool{}
		}
		return marked[stage]
	}
	for _, c := range conditions {
		for _, x := range c.Report.Stages {
			see(x.Stage)
		}
	}
	for _, m := range s.marks[nulls] {
		see(m.Stage)[m.Reconfiguration] = true
	}
	var window time.Duration
	if s.run.Plan != nil {
		window = time.Duration(s.run.Plan.Window)
	}
	var list []Background
	for _, stage := range timeline.Stages() {
		if in, ok := marked[stage]; ok && stage != timeline.Command && stage != timeline.Ack {
			b := Background{Stage: stage, Nulls: n, Marked: len(in), Window: window}
			b.Low, b.High = clopperPearson(len(in), n)
			list = append(list, b)
		}
	}
	return list
}

// clopperPearson returns the bounds of a probability of which k of n came true, with a
// confidence of 95 %.
func clopperPearson(k, n int) (low, high float64) {
	const tail = (1 - confidence) / 2
	low, high = 0, 1
	if k > 0 {
		low = distuv.Beta{Alpha: float64(k), Beta: float64(n - k + 1)}.Quantile(tail)
	}
	if k < n {
		high = distuv.Beta{Alpha: float64(k + 1), Beta: float64(n - k)}.Quantile(1 - tail)
	}
	return low, high
}

// blame says how many marks of each stage nobody may have caused. A window of a null
// toggle without one has the probability exp(-rate * window); the rate is then taken to the
// time in which a reconfiguration's last stage is reached.
func (c *Condition) blame(background []Background) {
	for i := range c.Stages {
		x := &c.Stages[i]
		at := slices.IndexFunc(background, func(b Background) bool { return b.Stage == x.Stage })
		if at < 0 || background[at].Window <= 0 {
			continue
		}
		b := background[at]
		windows := float64(c.Reconfigurations) * max(float64(c.Report.Total.NS), 0) / float64(b.Window)
		number := func(probability float64) float64 {
			if windows == 0 {
				return 0
			}
			return min(-math.Log1p(-probability)*windows, float64(x.Count))
		}
		x.Spurious = &Spurious{Expected: number(float64(b.Marked) / float64(b.Nulls)), High: number(b.High)}
	}
}
