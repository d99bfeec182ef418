package analysis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// Comparison is how a later run differs from an earlier one.
type Comparison struct {
	A, B        string // IDs of the runs
	Setup       []SetupDifference
	Differences []Shift  // of the conditions that both have
	OnlyA       []string // labels of conditions that only the first has
	OnlyB       []string
}

// SetupDifference is something about the set-up that is not the same.
type SetupDifference struct {
	What string // "rail0: firmware", "version"
	A, B string // "" where there is none
}

// Shift is how much later a stage comes in B than in A.
type Shift struct {
	Label  string // of the condition
	Stage  timeline.Stage
	A, B   timeline.Estimate // the medians
	Median timeline.Estimate // B less A, with confidence bounds
	Floor  time.Duration     // below which nothing can be told: the larger of both
	// Resolved: the bounds leave 0 out, and it is above the floor.
	Resolved bool
}

// Compare says how b differs from a: what their set-ups do not have in common, and how much
// later each stage comes in b, for each condition whose label both have.
func Compare(a, b *runs.Run) *Comparison {
	c := &Comparison{A: a.Meta.ID, B: b.Meta.ID, Setup: setups(a, b)}
	before, after := newSplit(a), newSplit(b)
	after.seed = ^after.seed // or equal seeds would draw the same for both
	inB := map[string]plan.Condition{}
	for _, x := range after.conditions() {
		inB[x.Label] = x
	}
	for _, x := range before.conditions() {
		y, ok := inB[x.Label]
		if !ok {
			c.OnlyA = append(c.OnlyA, x.Label)
			continue
		}
		delete(inB, x.Label)
		was, is := before.measure(x), after.measure(y)
		for _, sum := range is.report.Stages {
			p, q := was.stages[sum.Stage], is.stages[sum.Stage]
			if p == nil {
				continue
			}
			s := Shift{Label: x.Label, Stage: sum.Stage, A: p.Median, B: q.Median, Median: shift(was, is, sum.Stage), Floor: max(p.Floor, q.Floor)}
			s.Resolved = resolved(s.Median, s.Floor)
			c.Differences = append(c.Differences, s)
		}
	}
	for _, y := range after.conditions() {
		if _, ok := inB[y.Label]; ok {
			c.OnlyB = append(c.OnlyB, y.Label)
		}
	}
	return c
}

// setups returns what is not the same.
func setups(a, b *runs.Run) []SetupDifference {
	was, is := describe(a), describe(b)
	var list []SetupDifference
	for _, what := range sortedKeys(was) {
		if was[what] != is[what] {
			list = append(list, SetupDifference{what, was[what], is[what]})
		}
	}
	for _, what := range sortedKeys(is) {
		if _, ok := was[what]; !ok && is[what] != "" {
			list = append(list, SetupDifference{what, "", is[what]})
		}
	}
	slices.SortStableFunc(list, func(a, b SetupDifference) int { return cmp.Compare(a.What, b.What) })
	return list
}

// describe says what a run was made with, as texts by what they are about. Where a run was
// made with several of a kind, the text has all of them.
func describe(r *runs.Run) map[string]string {
	texts := map[string][]string{}
	say := func(what, text string) {
		if text != "" && !slices.Contains(texts[what], text) {
			texts[what] = append(texts[what], text)
		}
	}
	duration := func(what string, ns int64) { say(what, time.Duration(ns).String()) }

	say("experiment", r.Meta.Name)
	say("lab", r.Meta.Lab)
	say("emulated", fmt.Sprint(r.Meta.Emulated))
	for _, s := range r.Sessions {
		say("ocslab", strings.TrimSpace(s.Version+" "+s.Revision))
		say("host", s.Host)
		say("kernel", s.Kernel)
	}
	for _, s := range r.Setups {
		say("carrier", s.Carrier)
		say("emulated NICs", s.Rung)
		duration("poll", s.PollNS)
		duration("pace", s.PaceNS)
		for _, text := range s.Missing {
			say("not watched", text)
		}
		if c, ok := s.Timing(); ok {
			say("timing calibration", fmt.Sprintf("#%d", c.Version))
		}
		for _, d := range s.Devices {
			say(d.Name+": URL", d.URL)
			say(d.Name+": model", strings.TrimSpace(d.Vendor+" "+d.Model))
			say(d.Name+": serial", d.Serial)
			say(d.Name+": firmware", d.Firmware)
			say(d.Name+": size", d.Size)
			duration(d.Name+": averaging", d.AveragingNS)
		}
		for _, n := range s.NICs {
			say(n.Name+": ports", strings.Trim(n.Tx+" "+n.Rx, " "))
			say(n.Name+": firmware", n.Firmware)
			say(n.Name+": driver", n.Driver)
		}
	}
	if p := r.Plan; p != nil {
		say("order", string(p.Order))
		say("warm-ups", fmt.Sprint(p.WarmUps))
		duration("null toggle", p.Window)
		for _, c := range p.Conditions {
			for name, value := range c.Parameters {
				if !slices.Contains(p.Varied, name) {
					say("parameter "+name, value)
				}
			}
			if len(p.Conditions) == 1 {
				say("sequence", strings.Join(c.Sequence, ", "))
			}
		}
	}
	said := map[string]string{}
	for what, list := range texts {
		slices.Sort(list)
		said[what] = strings.Join(list, ", ")
	}
	return said
}

// Lines returns what "--json" prints of a comparison: one object with kind "comparison", a
// and b (the runs), only_a and only_b (labels of conditions); one of kind "setup-difference"
// with what, a and b for each thing that is not the same; and one of kind "shift" with label,
// stage, a_ns and b_ns (medians), difference_ns, low_ns, high_ns, floor_ns and resolved for
// each stage that both have.
func (c *Comparison) Lines() []any {
	type head struct {
		Kind  string   `json:"kind"`
		A     string   `json:"a"`
		B     string   `json:"b"`
		OnlyA []string `json:"only_a,omitempty"`
		OnlyB []string `json:"only_b,omitempty"`
	}
	type setup struct {
		Kind string `json:"kind"`
		What string `json:"what"`
		A    string `json:"a"`
		B    string `json:"b"`
	}
	type shift struct {
		Kind         string         `json:"kind"`
		Label        string         `json:"label"`
		Stage        timeline.Stage `json:"stage"`
		ANS          int64          `json:"a_ns"`
		BNS          int64          `json:"b_ns"`
		DifferenceNS int64          `json:"difference_ns"`
		LowNS        int64          `json:"low_ns"`
		HighNS       int64          `json:"high_ns"`
		FloorNS      int64          `json:"floor_ns"`
		Resolved     bool           `json:"resolved"`
	}
	lines := []any{head{"comparison", c.A, c.B, c.OnlyA, c.OnlyB}}
	for _, s := range c.Setup {
		lines = append(lines, setup{"setup-difference", s.What, s.A, s.B})
	}
	for _, d := range c.Differences {
		lines = append(lines, shift{
			"shift", d.Label, d.Stage, d.A.NS, d.B.NS, d.Median.NS, d.Median.LowNS, d.Median.HighNS, int64(d.Floor), d.Resolved,
		})
	}
	return lines
}
