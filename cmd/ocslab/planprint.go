package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// planSize says in one line what a plan comes to.
func planSize(p *plan.Plan) string {
	nulls, moves := 0, 0
	for _, x := range p.Points {
		if x.Null {
			nulls++
		} else {
			moves += x.Reconfigurations(p.Condition(x.Condition))
		}
	}
	text := natural.Count(len(p.Points)-nulls, "point") + " with " + natural.Count(moves, "reconfiguration")
	if n := len(p.Conditions); n > 1 {
		text = natural.Count(n, "condition") + ", " + text
	}
	if nulls > 0 {
		text += ", " + natural.Count(nulls, "null toggle")
	}
	return fmt.Sprintf("%s, %s order, seed %d", text, p.Order, p.Seed)
}

type planHead struct {
	Kind string `json:"kind"` // "run-plan"
	*plan.Plan
	ExpectedNS int64 `json:"expected_ns"`
}

type stepLine struct {
	Kind            string                `json:"kind"` // "run-step"
	Step            plan.StepKind         `json:"step"`
	AtNS            int64                 `json:"at_ns"`
	TakesNS         int64                 `json:"takes_ns"`
	Condition       int                   `json:"condition,omitempty"`
	Point           int                   `json:"point,omitempty"`
	Reconfiguration int                   `json:"reconfiguration,omitempty"`
	From            string                `json:"from,omitempty"`
	To              string                `json:"to,omitempty"`
	Changes         map[string]changeText `json:"changes,omitempty"`
	Hook            []string              `json:"hook,omitempty"`
	Where           string                `json:"where,omitempty"`
}

type changeText struct {
	Remove ocs.Map `json:"remove"`
	Add    ocs.Map `json:"add"`
}

// printPlan prints every step of a plan.
func (a *app) printPlan(p *plan.Plan, f *plan.File) error {
	if a.set.JSON {
		a.json(planHead{"run-plan", p, int64(p.Total())})
		for s := range p.Steps(f, nil) {
			l := stepLine{
				Kind: "run-step", Step: s.Kind, AtNS: int64(s.At), TakesNS: int64(s.Takes), Condition: s.Condition, Point: s.Point,
				Reconfiguration: s.Number, From: s.From, To: s.To, Where: s.Where, Hook: s.Hook,
			}
			changes, _ := s.Changes()
			for name, c := range changes {
				if l.Changes == nil {
					l.Changes = map[string]changeText{}
				}
				l.Changes[name] = changeText{c.Remove, c.Add}
			}
			a.json(l)
		}
		return nil
	}
	a.printf("%s: %s; %s\n", f.Name, planSize(p), aboutTime(p.Total()))
	t := table{align: ">"}
	for _, c := range p.Conditions {
		t.row(fmt.Sprint(c.Number), cmp.Or(c.Label, onlyCondition), strings.Join(c.Sequence, " > "), "each move "+aboutTime(c.Expected)+": "+c.Basis)
	}
	t.write(a.out, "  ")
	a.printf("\n")
	t = table{align: ">>>"}
	t.row("at", "point", "cond.", "step", "")
	for s := range p.Steps(f, nil) {
		t.row(clock(s.At), number(s.Point), number(s.Condition), string(s.Kind), stepText(s, p))
	}
	t.write(a.out, "")
	return nil
}

// onlyCondition stands for the label of a condition where nothing varies.
const onlyCondition = "the only condition"

// number writes a number from 1, and nothing for none.
func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

// clock writes a time since the beginning.
func clock(d time.Duration) string {
	switch d = d.Round(100 * time.Millisecond); {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%04.1f", d/time.Minute, (d % time.Minute).Seconds())
	}
	return fmt.Sprintf("%d:%02d:%02d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
}

// stepText says what a step does.
func stepText(s plan.Step, p *plan.Plan) string {
	if s.Hook != nil {
		return s.Where + ": " + strings.Join(s.Hook, " ")
	}
	var parts []string
	switch {
	case s.From != "" && s.To != "":
		parts = append(parts, s.From+" to "+s.To)
	case s.To != "":
		parts = append(parts, "to "+s.To)
	}
	changes, known := s.Changes()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		parts = append(parts, name+" "+changes[name].String())
	}
	if !known {
		for _, name := range slices.Sorted(maps.Keys(s.Want)) {
			parts = append(parts, name+" "+s.Want[name].String()+", from whatever is there")
		}
	}
	switch s.Kind {
	case plan.StepSetup:
		if c := p.Condition(s.Condition); c != nil && c.Label != "" {
			parts = append(parts, c.Label)
		}
	case plan.StepFinally:
		if s.Want == nil {
			parts = append(parts, "the light as it was found")
		}
	}
	return strings.Join(parts, "  ")
}
