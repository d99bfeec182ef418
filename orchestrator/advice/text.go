package advice

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ocslab/ocslab/internal/natural"
)

// phaseLines is how many phases Text lists; a step may have hundreds.
const phaseLines = 16

// Text returns the advice as plain sentences and tables for a terminal, at most 100 columns wide if names
// are short. Times are rounded to four digits; JSON has them all. A step of many phases is cut short.
func (a *Advice) Text() string {
	var b strings.Builder
	line := func(format string, args ...any) { b.WriteString(wrap(fmt.Sprintf(format, args...))) }

	line("%s: %s", a.Trace, a.advice())
	b.WriteString("\n")
	link := "links are there with the light"
	if a.Firmware != "" {
		link = fmt.Sprintf("%s until the firmware (%s) calls light a link", span(a.LinkUp), a.Firmware)
		if a.LinkUp == 0 {
			link = "too short for the firmware (" + a.Firmware + ") to notice"
		}
	}
	line("A reconfiguration takes %s: %s in the switch, %s of control; %s.",
		span(a.Delay), span(a.Switch), span(a.Control), link)
	if a.Stretch > 0 {
		line("Links that come and go as often as they would if each boundary were reconfigured take up to %s longer still, "+
			"which is in none of these numbers.", span(a.Stretch))
	}

	b.WriteString("\n")
	line("Phases of stage %d of %d%s. A reconfiguration costs what of it the window after the phase does not hide.",
		a.Stage+1, a.Stages, a.why())
	t := grid{{"phase", "axis", "ops", "on its own", "giant ring", "window", "demand", "provisioned", "plan", ""}}
	for i, p := range a.Phases {
		if i == phaseLines && len(a.Phases) > phaseLines+1 {
			break
		}
		then := ""
		if p.Change {
			then = "then move"
		}
		demand, provision := span(p.Demand), span(p.Provision)
		if p.Hidden {
			provision = "hidden"
		}
		t = append(t, []string{fmt.Sprint(i + 1), p.Axis, fmt.Sprint(p.Ops), span(p.Rail), span(p.Ring), span(p.Window),
			demand, provision, p.Topology, then})
	}
	t.write(&b, "llrrrrrrll")
	if left := len(a.Phases) - (len(t) - 1); left > 0 {
		line("  and %s more", natural.Count(left, "phase"))
	}

	b.WriteString("\n")
	line("A step takes %s if reconfigurations take no time. Otherwise, with what is not hidden added up, and simulated "+
		"with all stages and what they wait for:", span(a.Native))
	t = grid{{"", "step", "", "reconfigurations", "exposed", "slower links", "simulated"}}
	for _, x := range []struct {
		name      string
		o         Outcome
		simulated time.Duration
	}{
		{"always, on demand", a.Demand, a.SimulatedDemand},
		{"always, provisioned", a.Provision, a.SimulatedProvision},
		{"giant ring", a.Ring, a.SimulatedRing},
		{"best plan", a.Best, a.simulatedBest()},
	} {
		sim := ""
		if x.simulated > 0 {
			sim = span(x.simulated)
		}
		t = append(t, []string{x.name, span(x.o.Step), a.more(x.o), fmt.Sprint(x.o.Changes), span(x.o.Exposed),
			span(x.o.Slower), sim})
	}
	t.write(&b, "lrrrrrr")
	if faster := a.SimulatedProvision < a.SimulatedRing; a.Provision.Changes > 0 && faster != (a.Provision.Step < a.Ring.Step) {
		better, worse := "the giant ring is", "reconfiguring at each boundary"
		if faster {
			better, worse = "reconfiguring at each boundary is", "the giant ring"
		}
		line("Simulated, %s not slower than %s: it is too close for the sums of one stage to settle.", better, worse)
	}

	b.WriteString("\n")
	line("%s", a.BreakEven.text(a))
	return b.String()
}

// advice is the sentence that matters.
func (a *Advice) advice() string {
	switch a.Choice {
	case Once:
		return "set its one topology and leave it: it communicates along one axis only, and never needs another."
	case GiantRing:
		if a.Provision.Changes == 0 {
			return "stay on the giant ring: it never needs another topology, and the giant ring is no slower."
		}
		return fmt.Sprintf("stay on the giant ring. Reconfiguring at each boundary makes the step %s longer than that.",
			span(a.Provision.Step-a.Ring.Step))
	case Always:
		return fmt.Sprintf("reconfigure at each of the %s. The step is %s shorter than on the giant ring.",
			boundaries(a.Best.Changes), span(a.Ring.Step-a.Best.Step))
	}
	return fmt.Sprintf("reconfigure at %d of %s. The step is %s shorter than with all of them, "+
		"and %s shorter than on the giant ring.", a.Best.Changes, boundaries(a.Provision.Changes), span(a.Provision.Step-a.Best.Step), span(a.Ring.Step-a.Best.Step))
}

func boundaries(n int) string {
	if n == 1 {
		return "1 boundary"
	}
	return fmt.Sprintf("%d boundaries", n)
}

// simulatedBest returns the simulated step of the plan if it is one that was simulated.
func (a *Advice) simulatedBest() time.Duration {
	switch a.Choice {
	case GiantRing:
		return a.SimulatedRing
	case Always:
		return a.SimulatedProvision
	}
	return 0
}

// why says why it is about this stage.
func (a *Advice) why() string {
	if a.Stages == 1 || a.Provision.Exposed == 0 {
		return ""
	}
	return ", the one that waits longest"
}

// more is how much longer than native a step is.
func (a *Advice) more(o Outcome) string {
	if a.Native == 0 {
		return ""
	}
	return fmt.Sprintf("%+.2f %%", 100*float64(o.Step-a.Native)/float64(a.Native))
}

func (b BreakEven) text(a *Advice) string {
	switch {
	case a.Provision.Changes == 0:
		return "Break-even: none, as there is nothing to reconfigure."
	case !b.Pays:
		return "Break-even: none. The giant ring is as fast as any plan even if reconfigurations took no time."
	}
	text := fmt.Sprintf("Break-even: reconfiguring somewhere pays as long as it takes %s or less, all in all", span(b.Delay))
	if b.Always >= 0 {
		text += fmt.Sprintf("; at each boundary, %s or less", span(b.Always))
	}
	with := " With this firmware and control plane "
	switch {
	case !b.SwitchPays:
		return text + "." + with + "no switch is fast enough."
	case b.Unnoticed:
		return text + "." + with + fmt.Sprintf("no switch is fast enough, unless it is dark for less than %s: "+
			"the firmware is taken not to notice that.", span(b.Switch))
	case a.Firmware != "" || a.Control > 0:
		return text + "." + with + fmt.Sprintf("the switch may take %s.", span(b.Switch))
	}
	return text + "."
}

// span writes a time to four digits at most: "26 ms", "10.22 s".
func span(d time.Duration) string {
	if d < 0 {
		return "-" + span(-d)
	}
	step := time.Duration(1)
	for d/step >= 10000 {
		step *= 10
	}
	d = (d + step/2) / step * step
	for _, u := range []struct {
		worth time.Duration
		name  string
	}{{time.Second, "s"}, {time.Millisecond, "ms"}, {time.Microsecond, "µs"}, {1, "ns"}} {
		if d < u.worth {
			continue
		}
		s := fmt.Sprintf("%d", d/u.worth)
		if rest := d % u.worth; rest > 0 {
			digits := len(fmt.Sprint(int64(u.worth))) - 1
			s += "." + strings.TrimRight(fmt.Sprintf("%0*d", digits, int64(rest)), "0")
		}
		return s + " " + u.name
	}
	return "0 s"
}

// columns is how wide texts are at most.
const columns = 100

// wrap breaks a text into lines.
func wrap(text string) string {
	var b strings.Builder
	width := 0
	for i, word := range strings.Split(text, " ") {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case width+1+n > columns:
			b.WriteString("\n")
			width = 0
		default:
			b.WriteString(" ")
			width++
		}
		b.WriteString(word)
		width += n
	}
	return b.String() + "\n"
}

// grid is a table: the first row is the head.
type grid [][]string

// write writes it with its columns aligned as the letters say, l or r.
func (g grid) write(b *strings.Builder, align string) {
	widths := make([]int, len(align))
	for _, row := range g {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range g {
		var line strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			line.WriteString("  ")
			if align[i] == 'r' {
				cell, pad = pad, cell
			}
			line.WriteString(cell + pad)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}
