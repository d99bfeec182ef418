package sequence

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/ocs"
)

// Configurations of a sequence beside its steps.
const (
	asFound = "as-found" // circuits of the steps that were there
	asLeft  = "as-left"  // what there is after all steps
)

// perStep is about how long a step is taken to take: only how much is left of a run is told by it.
const perStep = 500 * time.Millisecond

// creation returns the run: a sequence of configurations that is gone through once in each repeat. The experiment
// file says the same as far as it can.
func (p *play) creation() (execution.Creation, error) {
	p.name()
	f, err := plan.Parse("", []byte(p.experimentText()))
	if err != nil {
		return execution.Creation{}, fmt.Errorf("%w: %w", ErrSteps, err)
	}
	c := plan.Condition{
		Number: 1, Parameters: map[string]string{}, Sequence: append([]string{asFound}, p.names...), Once: true,
		Maps: []map[string]ocs.Map{p.found}, Expected: perStep, Basis: "not known",
	}
	for _, s := range p.steps {
		c.Maps = append(c.Maps, s.Maps)
	}
	made := &plan.Plan{
		Name: p.opt.Name, Seed: plan.DefaultSeed, Emulated: p.opt.Lab.Emulated, Order: plan.Fixed,
		Window: int64(plan.DefaultWindow), Conditions: []plan.Condition{c}, Exact: true,
	}
	for r := range p.opt.Repeats {
		made.Points = append(made.Points, plan.Point{ID: r + 1, Condition: 1, Repeat: r + 1, First: 1 + r*len(p.steps)})
	}
	if p.opt.Leave {
		made.Finally = p.left()
	}
	return execution.Creation{
		File: f, Lab: p.lab, LabText: p.text, Plan: made, Mode: p.opt.Mode, Rung: p.opt.Rung, Command: p.opt.Args,
	}, nil
}

// left returns what the switches hold of the steps after all of them.
func (p *play) left() map[string]ocs.Map {
	all := map[string]ocs.Map{}
	for _, s := range p.steps {
		maps.Copy(all, s.Maps)
	}
	return all
}

// name gives each step the name of a configuration; steps that wire the same under one name share it.
func (p *play) name() {
	taken := map[string]map[string]ocs.Map{asFound: nil, asLeft: nil, plan.Restore: nil}
	for _, s := range p.steps {
		plain := plainName(s.Name)
		name := plain
		for n := 2; ; n++ {
			other, is := taken[name]
			if !is || other != nil && maps.EqualFunc(other, s.Maps, ocs.Map.Equal) {
				break
			}
			name = fmt.Sprintf("%s-%d", plain, n)
		}
		taken[name] = s.Maps
		p.names = append(p.names, name)
	}
}

// plainName makes of a text a name of a configuration.
func plainName(text string) string {
	plain := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_') {
			return r
		}
		return '-'
	}, text)
	if plain = strings.Trim(plain, "-._"); plain == "" {
		return "step"
	}
	return plain
}

// experimentText is the experiment file.
func (p *play) experimentText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by ocslab. The run goes through the sequence once in each repeat, from the first\n"+
		"# configuration to the last, and removes circuits of the others each time.\n")
	fmt.Fprintf(&b, "name: %q\nabout: %q\nconfigurations:\n", p.opt.Name, p.opt.About)
	done := map[string]bool{}
	write := func(name string, m map[string]ocs.Map) {
		lines := ""
		for _, sw := range slices.Sorted(maps.Keys(m)) {
			if m[sw].Len() > 0 {
				lines += fmt.Sprintf("      %q: %q\n", sw, m[sw])
			}
		}
		if !done[name] && lines != "" {
			done[name] = true
			fmt.Fprintf(&b, "  %q:\n    maps:\n%s", name, lines)
		}
	}
	write(asFound, p.found)
	for i, s := range p.steps {
		write(p.names[i], s.Maps)
	}
	light := plan.Restore
	if p.opt.Leave {
		write(asLeft, p.left())
		light = asLeft
	}
	fmt.Fprintf(&b, "sequence:\n  - %q\n", asFound)
	for _, name := range p.names {
		fmt.Fprintf(&b, "  - %q\n", name)
	}
	wait := plan.UntilSettled
	if p.opt.Carrier {
		wait = plan.UntilCarrier
	}
	fmt.Fprintf(&b, "repeats: %d\nwarm_ups: 0\norder: fixed\nnulls: {count: 0}\nwait: %s\nmeasure: {traffic: false}\nfinally: {light: %s}\n",
		p.opt.Repeats, wait, light)
	return b.String()
}
