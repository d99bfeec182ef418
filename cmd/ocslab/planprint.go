package main

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/ocs"
)

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
	a.printf("%s: %s; %s\n", f.Name, p.Size(), plan.About(p.Total()))
	t := table{align: ">"}
	for _, c := range p.Conditions {
		t.row(fmt.Sprint(c.Number), cmp.Or(c.Label, onlyCondition), strings.Join(c.Sequence, " > "), "each move "+plan.About(c.Expected)+": "+c.Basis)
	}
	t.write(a.out, "  ")
	a.printf("\n")
	t = table{align: ">>>"}
	t.row("at", "point", "cond.", "step", "")
	for s := range p.Steps(f, nil) {
		t.row(plan.Clock(s.At), number(s.Point), number(s.Condition), string(s.Kind), s.Text(p))
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
