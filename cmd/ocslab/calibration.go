package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

type fitLine struct {
	Kind   string `json:"kind"` // "element-fit"
	Switch string `json:"switch"`
	Module int    `json:"module"` // from 1
	Name   string `json:"name"`   // "S1 of lane 3"
	mzi.SweepFit
}

type calibrationLine struct {
	Kind    string   `json:"kind"` // "calibration"
	Switch  string   `json:"switch"`
	Module  int      `json:"module"`
	Celsius *float64 `json:"temperature_celsius"` // null: it did not come so far
	*mzi.Report
}

type tableLine struct {
	Kind         string     `json:"kind"` // "table"
	Switch       string     `json:"switch"`
	Module       int        `json:"module"`
	Serial       string     `json:"serial"`
	Version      uint32     `json:"table_version"`
	Temperatures int        `json:"temperatures"`
	Expires      *time.Time `json:"table_expires"` // null: never
}

// tellLoaded prints that a module uses a table.
func (a *app) tellLoaded(name string, slot int, t *ocst.Table) {
	line := tableLine{"table", name, slot + 1, t.Serial, t.Version, len(t.Points), nil}
	until := "for good"
	if !t.Expires.IsZero() {
		line.Expires, until = &t.Expires, "until "+t.Expires.Format(time.DateOnly)
	}
	if a.set.JSON {
		a.json(line)
	}
	a.printf("  table version %d is loaded, with %d temperatures, good %s\n", t.Version, len(t.Points), until)
}

// tellCalibration prints what a calibration has found out about a module.
func (a *app) tellCalibration(name string, slot int, r *mzi.Report) {
	if a.set.JSON {
		for _, f := range r.Fits {
			a.json(fitLine{"element-fit", name, slot + 1, f.Element.String(), f})
		}
		rest := *r
		rest.Fits = nil
		line := calibrationLine{Kind: "calibration", Switch: name, Module: slot + 1, Report: &rest}
		if r.Celsius != 0 {
			line.Celsius = &r.Celsius
		}
		a.json(line)
		return
	}
	at := "case not measured"
	if r.Celsius != 0 { // no reading: it did not come so far
		at = fmt.Sprintf("case at %.1f °C", r.Celsius)
	}
	a.printf("module %d, serial %s, %s\n", slot+1, cmp.Or(r.Serial, "unknown"), at)
	a.tellFits(r.Fits)
	if c := r.Coupling; c != nil {
		a.printf("  heat reaches others: %d of %d pairs can be told from none, up to %.3f rad/rad, ±%.4f\n", c.Kept, c.Pairs, c.Largest, c.Sigma)
		for _, u := range c.Unobserved {
			a.printf("    not measured: %s\n", u)
		}
	}
	a.tellPaths(r)
	a.tellTrim(r.Trim)
	for _, f := range r.Failures {
		a.printf("  FAILED: %s\n", f)
	}
	if r.Loaded && r.Table != nil {
		a.tellLoaded(name, slot, r.Table)
	}
	if r.Readings == 0 { // a trim does not count them
		return
	}
	a.printf("  %d reads and %d writes in %.1f s, of which %.1f s were for heaters to settle\n", r.Readings, r.Writes, r.TookSeconds, r.WaitSeconds)
}

func (a *app) tellFits(fits []mzi.SweepFit) {
	if len(fits) == 0 {
		return
	}
	var sigma, ratio []float64
	for _, f := range fits {
		if f.Problem != "" {
			a.printf("  %v: %s\n", f.Element, f.Problem)
			continue
		}
		sigma = append(sigma, 1e3*max(f.StateSigma[0], f.StateSigma[1]))
		ratio = append(ratio, min(f.Fit.BarER, f.Fit.CrossER))
	}
	if len(sigma) == 0 {
		return
	}
	slices.Sort(sigma)
	slices.Sort(ratio)
	a.printf("  %d elements fitted: phase known to %.2f mrad (median; worst %.2f), extinction ratio %.1f dB (median; worst %.1f)\n",
		len(sigma), sigma[len(sigma)/2], sigma[len(sigma)-1], ratio[len(ratio)/2], ratio[0])
}

func (a *app) tellPaths(r *mzi.Report) {
	t := table{align: ".>>.>>>"}
	t.row("path", "worst loss dB", "worst isolation dB", "", "", "", "")
	for _, path := range []string{"path1", "path2", "loop"} {
		loss, isolation, bound := 0.0, math.Inf(1), ""
		for _, p := range r.Paths {
			if p.Path != path {
				continue
			}
			loss = max(loss, p.Loss)
			if p.Isolation < isolation {
				isolation, bound = p.Isolation, ""
				if p.Bound {
					bound = "≥ "
				}
			}
		}
		if !math.IsInf(isolation, 1) {
			t.row(path, fmt.Sprintf("%.2f", loss), fmt.Sprintf("%s%.1f", bound, isolation))
		}
	}
	if len(t.rows) > 1 {
		t.write(a.out, "  ")
	}
	t = table{align: ".>>>"}
	t.row("change", "10-90 % µs", "settled µs", "light away µs")
	worst := map[string]mzi.ChangeFigure{}
	var order []string
	for _, c := range r.Changes {
		key := c.From + " > " + c.To
		w, seen := worst[key]
		if !seen {
			order = append(order, key)
		}
		worst[key] = mzi.ChangeFigure{Rise: max(w.Rise, c.Rise), Settle: max(w.Settle, c.Settle), Switch: max(w.Switch, c.Switch)}
	}
	for _, key := range order {
		w := worst[key]
		t.row(key, fmt.Sprintf("%.0f", w.Rise), fmt.Sprintf("%.0f", w.Settle), fmt.Sprintf("%.1f", w.Switch))
	}
	if len(order) > 0 {
		t.write(a.out, "  ")
	}
}

func (a *app) tellTrim(r *mzi.TrimReport) {
	if r == nil {
		return
	}
	t := table{align: ".>>>>>."}
	t.row("element", "rounds", "trim rad", "leak before dB", "after dB", "error left rad", "")
	for _, e := range r.Elements {
		note := ""
		if !e.Converged {
			note = "has not settled"
		}
		t.row(e.Name, fmt.Sprint(e.Rounds), fmt.Sprintf("%+.4f", e.TrimAfter), fmt.Sprintf("%.1f", e.LeakBefore), fmt.Sprintf("%.1f", e.LeakAfter), fmt.Sprintf("%+.4f", e.Error), note)
	}
	t.write(a.out, "  ")
	for _, s := range r.Skipped {
		a.printf("  %s is not trimmed: %s\n", s.Name, s.Reason)
	}
}
