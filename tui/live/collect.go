package live

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// collector is a Recorder that also keeps what statistics are made of, of points that are
// finished. The run does no more for it than to append: who shows the statistics makes them.
type collector struct {
	runner.Recorder
	// event, if it is not nil, is told of each Event that was recorded, and setup of each Setup,
	// by the goroutine of the run.
	event func(runs.Event)
	setup func(runs.Setup)

	point finished // under way; of the goroutine of the run

	mu    sync.Mutex // guards fresh
	fresh []finished
	more  chan struct{} // is sent to when there is something fresh; holds one
}

// finished is what was measured in a point.
type finished struct {
	point    plan.Point
	marks    []timeline.Mark
	expected []timeline.Expectation
}

func newCollector(w runner.Recorder) *collector {
	return &collector{Recorder: w, more: make(chan struct{}, 1)}
}

func (c *collector) Setup(s runs.Setup) error {
	err := c.Recorder.Setup(s)
	if err == nil && c.setup != nil {
		c.setup(s)
	}
	return err
}

func (c *collector) Event(e runs.Event) error {
	err := c.Recorder.Event(e)
	if err == nil && c.event != nil {
		c.event(e)
	}
	return err
}

func (c *collector) BeginPoint(p plan.Point) error {
	c.point = finished{point: p}
	return c.Recorder.BeginPoint(p)
}

func (c *collector) Mark(m timeline.Mark) {
	c.point.marks = append(c.point.marks, m)
	c.Recorder.Mark(m)
}

func (c *collector) Expected(e timeline.Expectation) {
	c.point.expected = append(c.point.expected, e)
	c.Recorder.Expected(e)
}

func (c *collector) FinishPoint() error {
	if err := c.Recorder.FinishPoint(); err != nil {
		return err
	}
	p := c.point
	c.point = finished{}
	c.mu.Lock()
	c.fresh = append(c.fresh, p)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default: // it is known already
	}
	return nil
}

func (c *collector) AbandonPoint(why string) error {
	c.point = finished{}
	return c.Recorder.AbandonPoint(why)
}

// take returns what was finished since the last call.
func (c *collector) take() []finished {
	c.mu.Lock()
	defer c.mu.Unlock()
	fresh := c.fresh
	c.fresh = nil
	return fresh
}

// tally counts durations by condition and stage, in an order that does not change while more
// come. It is used by one goroutine; the StageStats that it hands out do not change.
type tally struct {
	plan   *plan.Plan
	limits []plan.Limit
	wanted map[timeline.Stage]bool // nil: all
	rows   map[row]*series
	order  []row
	sorted bool
	moves  map[int]int // reconfigurations by condition
}

// row is a stage under a condition.
type row struct {
	condition int
	stage     timeline.Stage
}

// series is the durations of a row, in the order they came and by size.
type series struct {
	durations   []timeline.Interval // is only appended to
	early, late []int64             // of durations, ascending
	moves       int
	missing     int
}

func newTally(f *plan.File, p *plan.Plan) *tally {
	t := &tally{plan: p, rows: map[row]*series{}, moves: map[int]int{}}
	if f != nil {
		t.limits = f.Limits
		for _, s := range f.Measure.Stages {
			if t.wanted == nil {
				t.wanted = map[timeline.Stage]bool{timeline.Command: true}
			}
			t.wanted[s] = true
		}
	}
	return t
}

// event is that a subject reached a stage in a reconfiguration.
type event struct {
	reconfiguration int
	stage           timeline.Stage
	subject         string
}

// add counts what was measured in a point. A null toggle has no durations.
func (t *tally) add(p finished) {
	if p.point.Null {
		return
	}
	marks, expected := analysis.OneKind(p.marks, p.expected)
	seen := make(map[event]bool, len(marks))
	begun := map[int]bool{}
	for i := range marks {
		m := &marks[i]
		seen[event{m.Reconfiguration, m.Stage, m.Subject}] = true
		if m.Stage == timeline.Command {
			begun[m.Reconfiguration] = true
		}
	}
	t.moves[p.point.Condition] += len(begun)
	last := 0 // the reconfiguration of the duration before
	var of *series
	for _, d := range timeline.Durations(marks) {
		if !t.wants(d.Stage) {
			continue
		}
		s := t.series(row{p.point.Condition, d.Stage})
		if s != of || d.Reconfiguration != last {
			s.moves++
		}
		of, last = s, d.Reconfiguration
		s.add(d.Interval)
	}
	for _, e := range expected {
		if e.Stage != timeline.Command && t.wants(e.Stage) && begun[e.Reconfiguration] && !seen[event{e.Reconfiguration, e.Stage, e.Subject}] {
			t.series(row{p.point.Condition, e.Stage}).missing++
		}
	}
}

func (t *tally) wants(s timeline.Stage) bool { return t.wanted == nil || t.wanted[s] }

func (t *tally) series(r row) *series {
	s := t.rows[r]
	if s == nil {
		s = &series{}
		t.rows[r] = s
		t.order, t.sorted = append(t.order, r), false
	}
	return s
}

func (s *series) add(d timeline.Interval) {
	s.durations = append(s.durations, d)
	s.early = insert(s.early, d.Earliest)
	s.late = insert(s.late, d.Latest)
}

// insert puts x where it belongs in an ascending list.
func insert(list []int64, x int64) []int64 {
	at, _ := slices.BinarySearch(list, x)
	return slices.Insert(list, at, x)
}

// stats returns all there is, by condition and, within one, by stage in canonical order.
func (t *tally) stats() []StageStat {
	if !t.sorted {
		rank := map[timeline.Stage]int{}
		for i, s := range timeline.Stages() {
			rank[s] = i
		}
		slices.SortFunc(t.order, func(a, b row) int {
			return cmp.Or(cmp.Compare(a.condition, b.condition), cmp.Compare(rank[a.stage], rank[b.stage]))
		})
		t.sorted = true
	}
	list := make([]StageStat, 0, len(t.order))
	for _, r := range t.order {
		s := t.rows[r]
		x := StageStat{
			Condition: r.condition, Stage: r.stage, Durations: s.durations[:len(s.durations):len(s.durations)],
			Missing: s.missing, Median: s.estimate(0.5), P95: s.estimate(0.95), Moves: s.moves,
		}
		if c := t.plan.Condition(r.condition); c != nil {
			x.Label = c.Label
		}
		list = append(list, x)
	}
	return list
}

// estimate is a quantile with bounds of 95 % confidence, by the normal approximation of
// order statistics. Durations of one reconfiguration have much in common, so that each of
// those counts once, however many durations it has. It is narrower than it should be for
// upper quantiles of few: the analysis at the end says it better, and takes too long to be
// made again and again.
func (s *series) estimate(q float64) timeline.Estimate {
	if len(s.durations) == 0 {
		return timeline.Estimate{}
	}
	e := timeline.Estimate{NS: timeline.Between(quantile(s.early, q), quantile(s.late, q)).Mid(), LowNS: s.early[0], HighNS: s.late[len(s.late)-1]}
	if s.moves >= 2 {
		half := 1.96 * math.Sqrt(q*(1-q)/float64(s.moves))
		e.LowNS, e.HighNS = quantile(s.early, q-half), quantile(s.late, q+half)
	}
	return e
}

// quantile interpolates between the values of an ascending list, which is not empty. Parts
// out of 0 to 1 count as the nearer of these.
func quantile(list []int64, q float64) int64 {
	at := max(0, min(q, 1)) * float64(len(list)-1)
	i := min(int(at), len(list)-1)
	if i+1 == len(list) || list[i+1] == list[i] {
		return list[i]
	}
	return list[i] + int64((at-float64(i))*float64(list[i+1]-list[i]))
}

// judge says how it stands with the limits, by condition.
func (t *tally) judge() []LimitStat {
	if len(t.limits) == 0 {
		return nil
	}
	var all []analysis.Condition
	for i := range t.plan.Conditions {
		if c := &t.plan.Conditions[i]; t.moves[c.Number] > 0 {
			all = append(all, t.condition(c))
		}
	}
	verdicts, _ := analysis.Judge(t.limits, all)
	return limitStats(t.plan, verdicts)
}

// condition is what package analysis needs to judge limits.
func (t *tally) condition(of *plan.Condition) analysis.Condition {
	c := analysis.Condition{Condition: *of, Reconfigurations: t.moves[of.Number]}
	c.Report.Reconfigurations = c.Reconfigurations
	for _, stage := range timeline.Stages() {
		s := t.rows[row{of.Number, stage}]
		switch {
		case s == nil:
		case len(s.durations) == 0:
			c.Report.Unseen = append(c.Report.Unseen, timeline.Unseen{Stage: stage, Missing: s.missing})
		default:
			n := len(s.durations)
			c.Stages = append(c.Stages, analysis.Stage{
				Summary: timeline.Summary{Stage: stage, Count: n, Missing: s.missing,
					Median: s.estimate(0.5), P95: s.estimate(0.95), P99: s.estimate(0.99)},
				Max: timeline.Between(s.early[n-1], s.late[n-1]),
			})
		}
	}
	slices.SortStableFunc(c.Stages, func(a, b analysis.Stage) int { return cmp.Compare(a.Median.NS, b.Median.NS) })
	var before int64
	for i := range c.Stages {
		x := &c.Stages[i]
		x.Step = time.Duration(x.Median.NS - before)
		before = x.Median.NS
	}
	if n := len(c.Stages); n > 0 {
		c.Report.Total = c.Stages[n-1].Median
	}
	for i := range c.Stages {
		if c.Report.Total.NS > 0 {
			c.Stages[i].Share = float64(c.Stages[i].Step) / float64(c.Report.Total.NS)
		}
		c.Report.Stages = append(c.Report.Stages, c.Stages[i].Summary)
	}
	return c
}

// limitStats are verdicts as lines.
func limitStats(p *plan.Plan, verdicts []analysis.Verdict) []LimitStat {
	list := make([]LimitStat, 0, len(verdicts))
	for _, v := range verdicts {
		l := LimitStat{Text: v.Limit.Text, Condition: v.Condition, Judgement: v.Judgement, Found: v.Found()}
		if c := p.Condition(v.Condition); c != nil {
			l.Label = c.Label
		}
		list = append(list, l)
	}
	return list
}

// recorded gives back the points of a run, as a collector would have taken them.
func recorded(r *runs.Run) []finished {
	of := map[int]int{} // index in points, by reconfiguration
	var points []finished
	for _, p := range r.Plan.Points {
		c := r.Plan.Condition(p.Condition)
		if !r.Done[p.ID] || p.Null || c == nil {
			continue
		}
		for k := range p.Reconfigurations(c) {
			of[p.First+k] = len(points)
		}
		points = append(points, finished{point: p})
	}
	for _, m := range r.Marks {
		if i, ok := of[m.Reconfiguration]; ok {
			points[i].marks = append(points[i].marks, m)
		}
	}
	for _, e := range r.Expected {
		if i, ok := of[e.Reconfiguration]; ok {
			points[i].expected = append(points[i].expected, e)
		}
	}
	return points
}
