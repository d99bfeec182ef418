package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// errLimit is that a limit of an experiment was not kept.
var errLimit = errors.New("a limit was not kept")

// runSummary is the last line of a run, but for an error.
type runSummary struct {
	Kind    string     `json:"kind"` // "run-summary"
	Run     string     `json:"run"`
	Name    string     `json:"name"`
	State   runs.State `json:"state"`
	Reason  string     `json:"reason,omitempty"`
	Points  int        `json:"points"`
	Planned int        `json:"planned"`
	Verdict string     `json:"verdict,omitempty"`
	// Restored is whether the light is as finally wants it.
	Restored bool   `json:"restored"`
	Dir      string `json:"dir"`
}

// printHead says what a run is.
func (a *app) printHead(r *runs.Run) {
	if a.set.JSON {
		a.json(struct {
			Kind string `json:"kind"` // "run"
			runs.Meta
			Dir     string     `json:"dir"`
			State   runs.State `json:"state"`
			Points  int        `json:"points"`
			Planned int        `json:"planned"`
		}{"run", r.Meta, r.Dir, r.State, len(r.Done), planned(r)})
		a.printFound(calibrationsOf(r), r.Meta.Created)
		return
	}
	where := r.Meta.Lab
	if r.Meta.Emulated {
		where += ", emulated"
	}
	a.printf("%s: %s on %s, begun %s\n", r.Meta.ID, r.Meta.Name, where, r.Meta.Created.Local().Format(time.DateTime))
	if r.Meta.About != "" {
		a.printf("%s\n", strings.TrimSpace(r.Meta.About))
	}
	a.printf("%s; %s\n", r.Plan.Size(), r.Dir)
	told := ""
	for _, s := range r.Setups {
		for _, d := range s.Devices {
			line := fmt.Sprintf("session %d: %s is a %s %s, serial %s, firmware %s, %s\n", s.Session, d.Name, d.Vendor, d.Model, d.Serial, d.Firmware, d.Size)
			if !strings.Contains(told, line) { // most set-ups find what the one before has found
				told += line
			}
		}
	}
	a.printf("%s", told)
	a.printFound(calibrationsOf(r), r.Meta.Created)
	for _, e := range r.Events {
		a.printf("%s  %s: %s\n", e.Wall.Local().Format(time.DateTime), e.Kind, e.Text)
	}
	a.printf("\n")
}

// calibrationsOf are those that the set-ups of a run have found, each once.
func calibrationsOf(r *runs.Run) []runs.Calibration {
	var list []runs.Calibration
	for _, s := range r.Setups {
		for _, c := range s.Calibrations {
			if !slices.ContainsFunc(list, func(x runs.Calibration) bool { return x.String() == c.String() }) {
				list = append(list, c)
			}
		}
	}
	return list
}

// planned is how many points of a run are to be done.
func planned(r *runs.Run) int { return len(r.Plan.Points) - len(r.Dropped) }

// printRun prints what was found in a run.
func (a *app) printRun(r *runs.Run, x *analysis.Analysis) {
	if a.set.JSON {
		for _, l := range x.Lines() {
			a.json(l)
		}
		a.printPaper(paper(r, x))
		return
	}
	a.printBusy(x.Busy, x.Measured)
	for i, c := range x.Conditions {
		if i > 0 {
			a.printf("\n")
		}
		if c.Label != "" {
			a.printf("%s (%d repeats)\n", c.Label, c.Points)
		}
		a.printStages(c.Report)
		if len(x.Conditions) == 1 {
			a.printf("\n%s\n", strings.Join(timeline.Waterfall{Width: a.width()}.Lines(c.Report), "\n"))
		}
	}
	if len(x.Conditions) > 0 {
		a.printf("\n%s", stagesLegend)
	}
	a.printVerdicts(x)
	a.printPaper(paper(r, x))
}

// printEnd prints how far a run is, and returns errLimit if it did not keep a limit, and
// experiment.ErrBusy if the machine was too busy for more than 1 % of it, and experiment.ErrDark if circuits stayed dark.
func (a *app) printEnd(r *runs.Run, x *analysis.Analysis) error {
	s := runSummary{
		Kind: "run-summary", Run: r.Meta.ID, Name: r.Meta.Name, State: r.State, Points: len(r.Done), Planned: planned(r),
		Verdict: string(x.Verdict), Dir: r.Dir,
	}
	if r.Summary != nil {
		s.Reason, s.Restored = r.Summary.Reason, r.Summary.Restored
	}
	if a.set.JSON {
		a.json(s)
	}
	a.printf("\n%s: %d of %d points", s.State, s.Points, s.Planned)
	if n := len(r.Dropped); n > 0 {
		a.printf(", %d more were not needed", n)
	}
	a.printf("; run %s\n", r.Meta.ID)
	var failed []string
	for _, v := range x.Verdicts {
		if v.Judgement == analysis.Fail {
			text := v.Limit.Text
			if label := labelOf(x, v.Condition); label != "" {
				text += " (" + label + ")"
			}
			failed = append(failed, text)
		}
	}
	err := experiment.CheckBusy(len(x.Busy), x.Measured)
	if len(failed) > 0 {
		err = errors.Join(fmt.Errorf("%w: %s", errLimit, strings.Join(failed, "; ")), err)
	}
	if len(x.Dark) > 0 {
		err = errors.Join(err, &experiment.DarkError{Ports: x.Dark})
	}
	return err
}

// printVerdicts says which limits were kept.
func (a *app) printVerdicts(x *analysis.Analysis) {
	if len(x.Verdicts) == 0 {
		return
	}
	a.printf("\n")
	t := table{}
	for _, v := range x.Verdicts {
		t.row(string(v.Judgement), v.Limit.Text, v.Found(), labelOf(x, v.Condition))
	}
	t.write(a.out, "")
}

// labelOf is what varies in a condition; "" if nothing does.
func labelOf(x *analysis.Analysis, condition int) string {
	for _, c := range x.Conditions {
		if c.Number == condition {
			return c.Label
		}
	}
	return ""
}

// printComparison prints how two runs differ.
func (a *app) printComparison(c *analysis.Comparison) error {
	if a.set.JSON {
		for _, l := range c.Lines() {
			a.json(l)
		}
		return nil
	}
	a.printf("from %s to %s\n", c.A, c.B)
	t := table{}
	for _, s := range c.Setup {
		t.row(s.What, cmp.Or(s.A, "-"), "->", cmp.Or(s.B, "-"))
	}
	t.write(a.out, "  ")
	for _, only := range []struct {
		in     string
		labels []string
	}{{c.A, c.OnlyA}, {c.B, c.OnlyB}} {
		for _, l := range only.labels {
			a.printf("  only in %s: %s\n", only.in, cmp.Or(l, onlyCondition))
		}
	}
	if len(c.Differences) == 0 {
		a.printf("they have no condition and stage in common\n")
		return nil
	}
	a.printf("\n")
	t = table{align: "..>>>>>"}
	t.row("condition", "stage", "median", "then", "difference", "bounds", "")
	for _, d := range c.Differences {
		half := int64(d.Floor) / 2
		verdict := "cannot be told from none"
		if d.Resolved {
			verdict = "later"
			if d.Median.NS < 0 {
				verdict = "earlier"
			}
		}
		t.row(d.Label, string(d.Stage), msTo(d.A.NS, half), msTo(d.B.NS, half), msTo(d.Median.NS, half),
			msTo(d.Median.LowNS, half)+".."+msTo(d.Median.HighNS, half), verdict)
	}
	t.write(a.out, "")
	a.printf("\nmedians in ms since the command; bounds are those of 95 %% confidence\n")
	return nil
}

// writeLines writes JSON objects, one a line.
func writeLines(w io.Writer, lines []any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}
