package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
)

// Size says in one line what the plan comes to.
func (p *Plan) Size() string {
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

// About writes a time as people say it: "about 4 min".
func About(d time.Duration) string {
	switch {
	case d < time.Second:
		return "about " + d.Round(10*time.Millisecond).String()
	case d < 10*time.Second:
		return "about " + d.Round(100*time.Millisecond).String()
	case d < 2*time.Minute:
		return "about " + d.Round(time.Second).String()
	case d < 2*time.Hour:
		return fmt.Sprintf("about %d min", int((d+30*time.Second)/time.Minute))
	}
	return fmt.Sprintf("about %.1f h", d.Hours())
}

// Clock writes a time since the beginning: "3.2s", "4:05.0", "1:02:03".
func Clock(d time.Duration) string {
	switch d = d.Round(100 * time.Millisecond); {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%d:%04.1f", d/time.Minute, (d % time.Minute).Seconds())
	}
	return fmt.Sprintf("%d:%02d:%02d", d/time.Hour, d%time.Hour/time.Minute, d%time.Minute/time.Second)
}

// Text says in one line what the step of a plan does.
func (s Step) Text(p *Plan) string {
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
	case StepSetup:
		if c := p.Condition(s.Condition); c != nil && c.Label != "" {
			parts = append(parts, c.Label)
		}
	case StepFinally:
		if s.Want == nil {
			parts = append(parts, "the light as it was found")
		}
	}
	return strings.Join(parts, "  ")
}
