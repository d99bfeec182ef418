package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"time"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/shell"
	"github.com/ocslab/ocslab/ocs"
)

// lossComparison is how a map differs from one of before.
type lossComparison struct {
	loss.Comparison
	name    string   // "version 3 of 2025-01-02 10:00", "factory.csv"
	version int      // 0: a table
	changed []string // what is no longer as it was then
}

type lossPlanLine struct {
	Kind       string  `json:"kind"` // "loss-plan"
	Switch     string  `json:"switch"`
	Ingress    string  `json:"ingress"` // "1-32"
	Egress     string  `json:"egress"`
	Dark       string  `json:"no_light"` // ingress ports without light, "" for none or not known
	Paths      int     `json:"paths"`
	Maps       int     `json:"maps"`
	EstimateNS int64   `json:"estimate_ns"`
	Busy       ocs.Map `json:"busy"` // circuits that would be away meanwhile
}

// dryRun says what would be done, and moves nothing.
func (r *lossRun) dryRun(ctx context.Context, opt loss.Options) error {
	a := r.app
	averaging := opt.Averaging
	if _, err := r.meter.Monitors(ctx, r.ingress...); err == nil {
		averaging = opt.Spacing() // as they will be set
	}
	power, err := r.meter.Power(ctx, r.ingress...)
	if err != nil {
		return err
	}
	var lit, dark []ocs.Port
	for _, p := range r.ingress {
		if x, ok := power.Ports[p]; ok && x <= ocs.NoLight {
			dark = append(dark, p)
		} else {
			lit = append(lit, p)
		}
	}
	maps, err := loss.Order(r.id.Geometry, lit, r.egress)
	if err != nil {
		return err
	}
	paths := 0
	for _, m := range maps {
		paths += m.Len()
	}
	switching, how, err := r.predictSwitching()
	if err != nil {
		return err
	}
	took := loss.Estimate(len(maps), averaging, switching, opt)
	if a.set.JSON {
		a.json(lossPlanLine{"loss-plan", r.sw.Name, ocs.FormatPorts(r.ingress), ocs.FormatPorts(r.egress), ocs.FormatPorts(dark), paths, len(maps), int64(took), r.busy})
		return nil
	}
	a.printf("%s, %v\n", r.sw.Name, r.id.Geometry)
	a.printf("ingress   %s\negress    %s\n", ocs.FormatPorts(r.ingress), ocs.FormatPorts(r.egress))
	if len(dark) > 0 {
		a.printf("no light  %s: nothing would be known of the paths from there\n", ocs.FormatPorts(dark))
	}
	a.printf("paths     %d, in %s\n", paths, natural.Count(len(maps), "map"))
	a.printf("time      %s: %v to switch (%s), readings %v apart\n", plan.About(took), round(switching), how, max(averaging, opt.Spacing()))
	if r.busy.Len() > 0 {
		a.printf("busy      %v would be away meanwhile, and put back: needs --mode update\n", r.busy)
	}
	a.printf("nothing was moved\n")
	return nil
}

// predictSwitching says how long a map takes to be made, and how we know.
func (r *lossRun) predictSwitching() (time.Duration, string, error) {
	someCircuit := ocs.Change{Remove: ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 2})}
	d, how, err := r.app.predictOutage(r.sw, someCircuit)
	if d < 0 {
		d, how = 200*time.Millisecond, "a guess, as this switch has no history yet"
	}
	return d, how, err
}

type lossLine struct {
	Kind    string   `json:"kind"` // "loss"
	Switch  string   `json:"switch"`
	Ingress ocs.Port `json:"ingress"`
	Egress  ocs.Port `json:"egress"`
	State   string   `json:"state"`   // measured, dark, no-reference, unmeasured
	Loss    *float64 `json:"loss_db"` // of a dark path the least it can be; null: not known
}

type lossFlagLine struct {
	Kind    string        `json:"kind"` // "loss-flag"
	Switch  string        `json:"switch"`
	Flag    loss.FlagKind `json:"flag"`
	Port    ocs.Port      `json:"port"`    // 0: not about one port
	Side    string        `json:"side"`    // of the port: "ingress", "egress"
	Ingress ocs.Port      `json:"ingress"` // of a path; 0: not about one path
	Egress  ocs.Port      `json:"egress"`
	Excess  float64       `json:"excess_db"`
	U       float64       `json:"u_db"`
	Text    string        `json:"text"`
	Do      string        `json:"do"`
}

type lossChangeLine struct {
	Kind    string   `json:"kind"` // "loss-change": a path over the alarm
	Switch  string   `json:"switch"`
	Against string   `json:"against"`
	Ingress ocs.Port `json:"ingress"`
	Egress  ocs.Port `json:"egress"`
	Was     float64  `json:"was_db"`
	More    float64  `json:"more_db"`
}

type lossComparisonLine struct {
	Kind    string   `json:"kind"` // "loss-comparison"
	Switch  string   `json:"switch"`
	Against string   `json:"against"`
	Version int      `json:"version"` // 0: a table
	Paths   int      `json:"paths"`
	Offset  float64  `json:"offset_db"`
	Spread  float64  `json:"spread_db"`
	U       float64  `json:"u_db"`
	Alarm   float64  `json:"alarm_db"`
	Over    int      `json:"over"`
	Missing int      `json:"missing"`
	New     int      `json:"new"`
	Outside int      `json:"outside"`
	Changed []string `json:"changed"`
}

type lossMapLine struct {
	Kind          string   `json:"kind"` // "loss-map"
	Switch        string   `json:"switch"`
	Ingress       string   `json:"ingress"`
	Egress        string   `json:"egress"`
	Maps          int      `json:"maps"`
	Readings      int      `json:"readings"`
	TookNS        int64    `json:"took_ns"`
	Measured      int      `json:"measured"`
	Dark          int      `json:"dark"`
	NoReference   int      `json:"no_reference"`
	Complete      bool     `json:"complete"`
	Median        *float64 `json:"median_db"` // null: nothing was measured
	U             float64  `json:"u_db"`
	RelativeU     float64  `json:"relative_u_db"`
	Noise         float64  `json:"noise_db"`
	Repeatability float64  `json:"repeatability_db"`
	Repeated      int      `json:"repeated"`
	Flags         int      `json:"flags"`
	Version       int      `json:"version"` // under which it is kept; 0: it is not
}

// tell prints what was found.
func (r *lossRun) tell(m *loss.Map, flags []loss.Flag, with []lossComparison, version int) {
	a := r.app
	if a.set.JSON {
		r.tellJSON(m, flags, with, version)
		return
	}
	a.printf("%s, %s %s, serial %s\n", r.sw.Name, r.id.Vendor, r.id.Model, r.id.Serial)
	width := a.width80()
	colour := a.terminal() > 0 && os.Getenv("NO_COLOR") == ""
	if err := m.Text(a.out, flags, loss.TextOptions{Width: width, Colour: colour}); err != nil {
		fmt.Fprintf(a.err, "ocslab: cannot write: %v\n", err)
	}
	for _, c := range with {
		a.printf("\n")
		a.printLossComparison(c)
	}
	if r.flags.out != "" {
		a.printf("\npicture and table: %s.svg, %s.csv\n", r.base(), r.base())
	}
	if version > 0 {
		a.printf("\nkept as loss #%d of %s: ocslab calibrate show loss %s\n", version, r.sw.Name, shell.Quote(r.sw.Name))
	}
}

// printLossComparison prints how losses differ from those of before.
func (a *app) printLossComparison(c lossComparison) {
	width := a.width80()
	say := func(format string, args ...any) {
		a.printf("%s\n", natural.Wrap(fmt.Sprintf(format, args...), width, ""))
	}
	say("against %s", c.name)
	for _, x := range c.changed {
		say("  since then: %s", x)
	}
	if c.Paths == 0 {
		say("  no path was measured in both")
	} else {
		say("  %s: %+.2f dB in the median, scattered by %.2f; a difference is known to ±%.2f dB",
			natural.Count(c.Paths, "path"), float64(c.Offset), float64(c.Spread), float64(c.U))
	}
	for _, x := range []struct {
		paths []ocs.CrossConnect
		what  string
	}{{c.Missing, "had a number before and have none now"}, {c.New, "have a number now and had none before"}} {
		if len(x.paths) > 0 {
			say("  %s: %s", x.what, somePaths(x.paths))
		}
	}
	if c.Outside > 0 {
		say("  %s of before at other ports", natural.Count(c.Outside, "path"))
	}
	switch n := len(c.Over); {
	case n == 0 && c.Paths > 0:
		say("  none differs by more than %.2f dB and its uncertainty", float64(c.Alarm))
	case n > 0:
		say("! %s by more than %.2f dB, the most first", natural.Count(n, "difference"), float64(c.Alarm))
		for i, d := range c.Over {
			if i == 10 {
				say("  and %d more", n-i)
				break
			}
			say("  %-9v %6.2f dB, was %.2f: %+.2f", d.Path, float64(d.Was+d.More), float64(d.Was), float64(d.More))
		}
	}
}

// somePaths lists the first paths.
func somePaths(paths []ocs.CrossConnect) string {
	const most = 8
	var words []string
	for i, c := range paths {
		if i == most {
			return fmt.Sprintf("%s and %d more", strings.Join(words, ", "), len(paths)-i)
		}
		words = append(words, c.String())
	}
	return strings.Join(words, ", ")
}

func (r *lossRun) tellJSON(m *loss.Map, flags []loss.Flag, with []lossComparison, version int) {
	a, name := r.app, r.sw.Name
	number := func(x ocs.DB) float64 { return math.Round(float64(x)*1e4) / 1e4 }
	for i := range m.Ingress {
		for j := range m.Egress {
			c := m.At(i, j)
			if c.State == loss.NoPath {
				continue
			}
			line := lossLine{Kind: "loss", Switch: name, Ingress: m.Ingress[i], Egress: m.Egress[j], State: c.State.String()}
			if c.State == loss.Measured || c.State == loss.Dark {
				x := number(c.Loss)
				line.Loss = &x
			}
			a.json(line)
		}
	}
	for _, f := range flags {
		a.json(lossFlagLine{"loss-flag", name, f.Kind, f.Port, f.Side, f.Path.Ingress, f.Path.Egress, number(f.Excess), number(f.U), f.Text, f.Do})
	}
	for _, c := range with {
		for _, d := range c.Over {
			a.json(lossChangeLine{"loss-change", name, c.name, d.Path.Ingress, d.Path.Egress, number(d.Was), number(d.More)})
		}
		changed := c.changed
		if changed == nil {
			changed = []string{}
		}
		a.json(lossComparisonLine{
			"loss-comparison", name, c.name, c.version, c.Paths, number(c.Offset), number(c.Spread), number(c.U), number(c.Alarm),
			len(c.Over), len(c.Missing), len(c.New), c.Outside, changed,
		})
	}
	line := lossMapLine{
		Kind: "loss-map", Switch: name, Ingress: ocs.FormatPorts(m.Ingress), Egress: ocs.FormatPorts(m.Egress),
		Maps: m.Maps, Readings: m.Readings, TookNS: int64(m.Took), Measured: m.Count(loss.Measured), Dark: m.Count(loss.Dark),
		NoReference: m.Count(loss.NoReference), Complete: m.Complete(), U: number(m.U()), RelativeU: number(m.RelativeU()),
		Noise: number(m.Noise), Repeatability: number(m.Repeatability), Repeated: m.Repeated, Flags: len(flags), Version: version,
	}
	if median, ok := m.Median(); ok {
		x := number(median)
		line.Median = &x
	}
	a.json(line)
}

// harmless keeps what is harmless in the name of a file.
func harmless(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
		return r
	}
	return '-'
}
