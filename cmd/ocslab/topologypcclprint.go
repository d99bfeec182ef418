package main

import (
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/experiment/measured"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/quantity"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
)

// switchingLine is what stored runs say of a switch.
type switchingLine struct {
	Kind         string        `json:"kind"` // "switching-time"
	Switch       string        `json:"switch"`
	Lab          string        `json:"lab"`
	Emulated     bool          `json:"emulated"`
	Until        string        `json:"until"`
	Count        int           `json:"count"`
	Missing      int           `json:"missing"`
	MedianNS     int64         `json:"median_ns"`
	MedianLowNS  int64         `json:"median_low_ns"`
	MedianHighNS int64         `json:"median_high_ns"`
	P99NS        *int64        `json:"p99_ns,omitempty"`
	P99LowNS     *int64        `json:"p99_low_ns,omitempty"`
	P99HighNS    *int64        `json:"p99_high_ns,omitempty"`
	LeastNS      int64         `json:"least_ns"`
	MostNS       int64         `json:"most_ns"`
	Runs         []string      `json:"runs"`
	LeftOut      []leftOutLine `json:"left_out"`
}

type leftOutLine struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

// collectiveLine is a plan.
type collectiveLine struct {
	Kind         string `json:"kind"` // "collective-plan"
	At           string `json:"at"`
	Collective   string `json:"collective"`
	Algorithm    string `json:"algorithm"`
	GPUs         int    `json:"gpus"`
	Bytes        int64  `json:"bytes"`
	Start        string `json:"start"`
	SwitchingNS  int64  `json:"switching_ns"`
	HighNS       *int64 `json:"switching_high_ns,omitempty"` // of a range
	WorstNS      *int64 `json:"regret_ns,omitempty"`
	Rounds       int    `json:"rounds"`
	Changes      int    `json:"changes"`
	TotalNS      int64  `json:"total_ns"`
	AlphaNS      int64  `json:"alpha_ns"`
	BetaNS       int64  `json:"beta_ns"`
	Reconfigured int64  `json:"reconfiguration_ns"`
}

type collectiveRoundLine struct {
	Kind       string   `json:"kind"` // "collective-round"
	At         string   `json:"at"`
	Round      int      `json:"round"`
	Bytes      int64    `json:"bytes"`
	Topology   string   `json:"topology"`
	Changed    bool     `json:"changed"`
	Congestion int      `json:"congestion"`
	Dilation   int      `json:"dilation"`
	TimeNS     int64    `json:"time_ns"`
	Circuits   []string `json:"circuits,omitempty"` // "0>64", of what is wired anew
}

type collectiveAlternativeLine struct {
	Kind      string  `json:"kind"` // "collective-alternative"
	At        string  `json:"at"`
	Algorithm string  `json:"algorithm"`
	Changes   int     `json:"changes"`
	TotalNS   int64   `json:"total_ns"`
	Factor    float64 `json:"factor"`
	StaticNS  *int64  `json:"static_ns,omitempty"`
	AlwaysNS  *int64  `json:"always_ns,omitempty"`
}

type collectiveLeftOutLine struct {
	Kind      string `json:"kind"` // "collective-left-out"
	Algorithm string `json:"algorithm"`
	Why       string `json:"why"`
}

type collectiveBreakLine struct {
	Kind      string `json:"kind"` // "collective-break"
	Algorithm string `json:"algorithm"`
	Changes   int    `json:"changes"`
	FromNS    int64  `json:"from_ns"`
	ToNS      *int64 `json:"to_ns,omitempty"`
	TimeNS    int64  `json:"time_ns"`
}

// nanoseconds of a time in seconds, at most as many as there are.
func nanoseconds(s float64) int64 {
	if s >= math.MaxInt64/1e9 {
		return math.MaxInt64
	}
	return int64(math.Round(s * 1e9))
}

// finite is a time in nanoseconds, nil if it is infinite.
func finite(s float64) *int64 {
	if math.IsInf(s, 0) || math.IsNaN(s) {
		return nil
	}
	ns := nanoseconds(s)
	return &ns
}

func (a *app) pcclJSON(task *pcclTask, times *measured.Times, moments []pcclMoment, pieces []pccl.Piece, envelope bool) {
	if times != nil {
		a.json(lineOfTimes(times))
	}
	for i := range moments {
		m := &moments[i]
		p := m.chosen()
		line := collectiveLine{
			"collective-plan", m.At, string(task.collective), string(p.Schedule.Algorithm), task.gpus, int64(math.Round(task.bytes)), task.start.Name(),
			nanoseconds(m.Switch), nil, nil, len(p.Rounds), p.Changes, nanoseconds(p.Total), nanoseconds(p.Alpha), nanoseconds(p.Beta), nanoseconds(p.Reconfiguration),
		}
		if m.High > 0 {
			line.HighNS, line.WorstNS = finite(m.High), finite(m.Worst)
		}
		a.json(line)
		for n, r := range p.Rounds {
			if envelope {
				break
			}
			x := collectiveRoundLine{"collective-round", m.At, n, int64(math.Round(p.Schedule.Rounds[n].Bytes)), r.Topology.Name(), r.Changed,
				r.Cost.Congestion, r.Cost.Dilation, nanoseconds(r.Cost.Time), nil}
			if r.Changed {
				x.Circuits = circuitNames(r.Topology)
			}
			a.json(x)
		}
		for _, c := range m.Choices {
			a.json(collectiveAlternativeLine{"collective-alternative", m.At, string(c.Schedule.Algorithm), c.Changes, nanoseconds(c.Total),
				math.Round(1e4*factor(c.Total, p.Total)) / 1e4, finite(c.Static), finite(c.Always)})
		}
	}
	for _, x := range task.leftOut {
		a.json(collectiveLeftOutLine{"collective-left-out", string(x.Algorithm), x.Err.Error()})
	}
	for _, p := range pieces {
		a.json(collectiveBreakLine{"collective-break", string(p.Plan.Schedule.Algorithm), p.Changes, nanoseconds(p.From), finite(p.To), nanoseconds(p.Time)})
	}
}

// factor is how many times as long a is as b; nothing is as long as nothing.
func factor(a, b float64) float64 {
	if a == b {
		return 1
	}
	return a / max(b, 1e-12)
}

func circuitNames(t *pccl.Topology) []string {
	var all []string
	for c := range t.Circuits() {
		all = append(all, fmt.Sprintf("%d>%d", c.Src, c.Dst))
	}
	return all
}

func lineOfTimes(t *measured.Times) switchingLine {
	l := switchingLine{
		Kind: "switching-time", Switch: t.Switch, Lab: t.Lab, Emulated: t.Emulated, Until: string(t.Stage), Count: t.Count, Missing: t.Missing,
		MedianNS: t.Median.NS, MedianLowNS: t.Median.LowNS, MedianHighNS: t.Median.HighNS, LeastNS: t.Least.Earliest, MostNS: t.Most.Latest,
		Runs: t.Runs, LeftOut: []leftOutLine{},
	}
	if measured.Known(t.P99) {
		l.P99NS, l.P99LowNS, l.P99HighNS = &t.P99.NS, &t.P99.LowNS, &t.P99.HighNS
	}
	for _, x := range t.LeftOut {
		l.LeftOut = append(l.LeftOut, leftOutLine{x.Run, x.Why})
	}
	return l
}

// neverCame says that changes did not come to their end.
func neverCame(t *measured.Times) string {
	return fmt.Sprintf("%d of %d changes of %s were not over (%s) as long as was waited", t.Missing, t.Count+t.Missing, t.Switch, t.Stage)
}

func (a *app) printTimes(t *measured.Times) {
	kind := ""
	if t.Emulated {
		kind = ", emulated"
	}
	show := func(e timeline.Estimate) string {
		s := func(ns int64) string { return quantity.Seconds(float64(ns) / 1e9) }
		if s(e.LowNS) == s(e.HighNS) {
			return s(e.NS)
		}
		return fmt.Sprintf("%s (%s to %s)", s(e.NS), s(e.LowNS), s(e.HighNS))
	}
	a.printf("%s of %s%s, until %s: median %s", t.Switch, t.Lab, kind, t.Stage, show(t.Median))
	if measured.Known(t.P99) {
		a.printf(", 99th percentile %s", show(t.P99))
	}
	a.printf("\n  %s in %s: %s\n", natural.Count(t.Count, "change"), natural.Count(len(t.Runs), "run"), strings.Join(t.Runs, ", "))
	switch {
	case !measured.Known(t.P99):
		a.printf("  %s: there is no 99th percentile to plan for\n", neverCame(t))
	case t.Count < 299:
		a.printf("  so few do not bound a 99th percentile: it takes 299\n")
	}
	for i, x := range t.LeftOut {
		if i == 3 {
			a.printf("  and %d more were left out\n", len(t.LeftOut)-i)
			break
		}
		a.printf("  left out %s: %s\n", x.Run, x.Why)
	}
	a.printf("\n")
}

func (a *app) pcclText(task *pcclTask, times *measured.Times, moments []pcclMoment, pieces []pccl.Piece, f *pcclFlags) {
	if times != nil {
		a.printTimes(times)
	}
	a.printf("%s of %s on %d GPUs, %s at first\n", task.collective, quantity.Bytes(task.bytes), task.gpus, task.start.Name())
	for i := range moments {
		m := &moments[i]
		if i > 0 && m.chosen().same(moments[0].chosen()) {
			a.printf("\n%s: the same plan, %s\n", m, quantity.Seconds(m.chosen().Total))
			continue
		}
		if i > 0 {
			a.printf("\nAt the %s the plan is another one; the table at the end says from which time on.\n", map[string]string{"p99": "99th percentile"}[m.At])
		}
		a.printMoment(m, f.envelope)
	}
	for i, x := range task.leftOut {
		if i == 0 {
			a.printf("\n")
		}
		a.printf("  left out %s: %v\n", x.Algorithm, x.Err)
	}
	if len(pieces) > 0 {
		a.printPieces(moments, pieces)
	}
	if f.lp != "" {
		a.printf("\nwritten to %s, for any solver of integer programs\n", f.lp)
	}
}

// String says which time it is.
func (m *pcclMoment) String() string {
	switch m.At {
	case "robust":
		return fmt.Sprintf("switching in %s to %s", quantity.Seconds(m.Switch), quantity.Seconds(m.High))
	case "given":
		return "switching in " + quantity.Seconds(m.Switch)
	}
	return fmt.Sprintf("switching in %s (%s)", quantity.Seconds(m.Switch), m.At)
}

func (a *app) printMoment(m *pcclMoment, short bool) {
	p := m.chosen()
	a.printf("\n%s: %s, %s, %s\n", m, p.Schedule.Algorithm, natural.Count(p.Changes, "change"), quantity.Seconds(p.Total))
	if m.High > 0 {
		a.printf("at most %s slower than the best plan of any time of that range; costs are at %s\n", quantity.Seconds(m.Worst), quantity.Seconds(p.Switch))
	}
	if !short {
		a.printf("\n")
		a.printRounds(&p.Plan)
		a.printf("  hops %s + bytes %s + %s %s = %s\n", quantity.Seconds(p.Alpha), quantity.Seconds(p.Beta),
			natural.Count(p.Changes, "change"), quantity.Seconds(p.Reconfiguration), quantity.Seconds(p.Total))
	}
	t := table{align: "<>>>>>"}
	t.row("algorithm", "changes", "time", "factor", "never rewired", "for each round")
	for _, c := range m.Choices {
		t.row(string(c.Schedule.Algorithm), strconv.Itoa(c.Changes), quantity.Seconds(c.Total), times2(factor(c.Total, p.Total)),
			orNoPath(c.Static), orNoPath(c.Always))
	}
	a.printf("\n")
	t.write(a.out, "  ")
}

// times2 is a factor with about three digits.
func times2(x float64) string {
	if x >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

func orNoPath(s float64) string {
	if math.IsInf(s, 1) {
		return "no path"
	}
	return quantity.Seconds(s)
}

// printRounds prints rounds, those that are alike in one line.
func (a *app) printRounds(p *pccl.Plan) {
	t := table{align: ">>..>>>"}
	t.row("round", "bytes", "wired", "", "congestion", "dilation", "time")
	for from := 0; from < len(p.Rounds); {
		r, bytes := p.Rounds[from], p.Schedule.Rounds[from].Bytes
		to := from + 1
		for to < len(p.Rounds) && !p.Rounds[to].Changed && p.Rounds[to].Topology.Equal(r.Topology) && p.Rounds[to].Cost == r.Cost && p.Schedule.Rounds[to].Bytes == bytes {
			to++
		}
		rounds, each, how := strconv.Itoa(from), "", "kept"
		if to-from > 1 {
			rounds, each = fmt.Sprintf("%d to %d", from, to-1), "each "
		}
		if r.Changed {
			how = "rewired"
		}
		t.row(rounds, quantity.Bytes(bytes), r.Topology.Name(), how, strconv.Itoa(r.Cost.Congestion), strconv.Itoa(r.Cost.Dilation), each+quantity.Seconds(r.Cost.Time))
		from = to
	}
	if most := 60; len(t.rows) > most {
		dropped := len(t.rows) - most
		t.rows = slices.Delete(t.rows, most/2, len(t.rows)-most/2)
		t.rows = slices.Insert(t.rows, most/2, []string{"...", "", fmt.Sprintf("%d lines left out: --csv has all", dropped)})
	}
	t.write(a.out, "  ")
}

// printPieces prints which plan is best at which switching time.
func (a *app) printPieces(moments []pcclMoment, pieces []pccl.Piece) {
	title := "At other switching times"
	if !slices.ContainsFunc(moments, func(m pcclMoment) bool { return m.High == 0 }) {
		title = "The best plan at each switching time"
	}
	a.printf("\n%s\n\n", title)
	t := table{align: ">>.>>"}
	t.row("from", "to", "algorithm", "changes", "time without switching", "")
	for _, p := range pieces {
		var here []string
		for _, m := range moments {
			if m.High == 0 && p.From <= m.Switch && m.Switch < p.To {
				here = append(here, m.At)
			}
		}
		mark := ""
		if len(here) > 0 {
			mark = "< " + strings.Join(here, ", ")
		}
		to := quantity.Seconds(p.To)
		if math.IsInf(p.To, 1) {
			to = "any"
		}
		t.row(quantity.Seconds(p.From), to, string(p.Plan.Schedule.Algorithm), strconv.Itoa(p.Changes), quantity.Seconds(p.Time), mark)
	}
	t.write(a.out, "  ")
}

// pcclCSV writes rounds, or the best plans at all switching times.
func (a *app) pcclCSV(moments []pcclMoment, pieces []pccl.Piece, envelope bool) error {
	w := csv.NewWriter(a.out)
	var rows [][]string
	number := func(s float64) string {
		if ns := finite(s); ns != nil {
			return strconv.FormatInt(*ns, 10)
		}
		return ""
	}
	if envelope {
		rows = append(rows, []string{"from_ns", "to_ns", "algorithm", "changes", "time_ns"})
		for _, p := range pieces {
			rows = append(rows, []string{number(p.From), number(p.To), string(p.Plan.Schedule.Algorithm), strconv.Itoa(p.Changes), number(p.Time)})
		}
	} else {
		rows = append(rows, []string{"at", "switching_ns", "algorithm", "round", "bytes", "topology", "changed", "congestion", "dilation", "time_ns"})
		for i := range moments {
			p := moments[i].chosen()
			for n, r := range p.Rounds {
				rows = append(rows, []string{moments[i].At, number(p.Switch), string(p.Schedule.Algorithm), strconv.Itoa(n),
					strconv.FormatFloat(p.Schedule.Rounds[n].Bytes, 'f', -1, 64), r.Topology.Name(), strconv.FormatBool(r.Changed),
					strconv.Itoa(r.Cost.Congestion), strconv.Itoa(r.Cost.Dilation), number(r.Cost.Time)})
			}
		}
	}
	if err := w.WriteAll(rows); err != nil {
		return err
	}
	return w.Error()
}
