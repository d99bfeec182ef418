package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/fit"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline/dist"
)

func (a *app) emulatorCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "emulator",
		Short: "Fit an emulator to what runs measured, and find out whether the lab has drifted from it",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.emulatorFitCommand(), a.emulatorDriftCommand())
	return c
}

func (a *app) emulatorFitCommand() *cobra.Command {
	var opt fit.Options
	var out string
	var plot, dry bool
	c := &cobra.Command{
		Use:   "fit RUN...",
		Short: "Make an emulator of your lab out of runs that measured it",
		Long: `Fit how long switches take from command to light, and NICs from light to carrier, and
write a directory with

  SWITCH.yaml  a personality for each switch: --model of "ocslab emulate", emulate.model of a lab file
  LAB.md       a firmware note: firmware of the NICs of a lab file
  lab.yaml     your lab with both: ocslab --lab DIR/lab.yaml --emulated measure ...
  fit.html     how well that agrees with what was measured, with Q-Q plots
  fit.json     what "ocslab emulator drift" holds later runs against

A RUN is as of "ocslab runs". Several are fitted together; they are of one lab, and of the
same devices and firmware unless --mix says that this does not matter. What runs cannot tell
(optics, protocols, how link-up divides) is taken from a base, and the files say of each
value where it comes from.

A stage needs 20 values or --min, a path or NIC with times of its own 30. With too few
nothing is written, and the exit code is 1.`,
		Example:           "  ocslab emulator fit last\n  ocslab emulator fit opus-night opus-day --out rig --plot\n  ocslab --lab rig/lab.yaml --emulated run quick.yaml",
		Args:              cobra.MinimumNArgs(1),
		ValidArgsFunction: a.completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if opt.Min < 0 || opt.Condition < 0 {
				return usagef("--min and --condition are not below 0")
			}
			var list []*runs.Run
			for _, text := range args {
				r, err := a.loadRun(cmd.Context(), text)
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(list, func(o *runs.Run) bool { return o.Meta.ID == r.Meta.ID }) {
					list = append(list, r)
				}
			}
			f, err := fit.Runs(list, opt)
			if err != nil {
				return fitError(err)
			}
			if out == "" {
				out = "fit-" + f.Lab
			}
			var files []fit.File
			if !dry {
				v, _ := version()
				if files, err = f.Write(out, v); err != nil {
					return fitError(err)
				}
			}
			a.printFit(f, plot)
			a.printFitFiles(f, out, files)
			return nil
		},
	}
	fl := c.Flags()
	fl.StringVar(&opt.Switch, "switch", "", "fit only the switch of this `NAME`, and the NICs")
	fl.IntVar(&opt.Condition, "condition", 0, "fit only the condition of this `NUMBER`")
	fl.StringVar(&opt.BaseModel, "base-model", "", "`MODEL` or .yaml file for what runs cannot tell of switches (default that of the lab file)")
	fl.StringVar(&opt.BaseFirmware, "base-firmware", "", "`PROFILE` for what runs cannot tell of NICs (default that of the lab file, or "+fit.DefaultFirmware+")")
	fl.StringVar(&out, "out", "", "`DIR` to write (default fit-LAB)")
	fl.IntVar(&opt.Min, "min", dist.MinCount, "`N` values that a stage needs, at least 20")
	fl.BoolVar(&opt.Mix, "mix", false, "take different devices, firmware and conditions for one")
	fl.BoolVar(&opt.AsRecorded, "as-recorded", false, "do not make use of how power monitors average")
	fl.BoolVar(&plot, "plot", false, "show Q-Q plots")
	fl.BoolVar(&dry, "dry-run", false, "show what would be fitted, and write nothing")
	fl.Uint64Var(&opt.Seed, "seed", 0, "seed of the bootstrap")
	return c
}

// fitError makes those errors usage errors that another command line mends.
func fitError(err error) error {
	if errors.Is(err, fit.ErrMixed) || errors.Is(err, fit.ErrDir) {
		return usageError{err}
	}
	return err
}

type fittedLine struct {
	Kind       string       `json:"kind"` // "fit"
	Lab        string       `json:"lab"`
	Runs       []string     `json:"runs"`
	Subject    string       `json:"subject"`
	Quantity   fit.Quantity `json:"quantity"`
	Path       string       `json:"path,omitempty"`
	Count      int          `json:"count"`
	Never      int          `json:"never"`
	Outliers   int          `json:"outliers"`
	Resolution int64        `json:"resolution_ns"`
	// BelowResolution is what 95 of 100 values are not above, when nothing else can be told.
	BelowResolution int64            `json:"below_resolution_ns,omitempty"`
	Modes           []fittedModeLine `json:"modes"`
	dist.Distance
	P float64 `json:"p"`
	// BIC of what was compared, from one mode on.
	Candidates []dist.Candidate `json:"candidates"`
}

type fittedModeLine struct {
	dist.Mode
	dist.ModeError
}

func (a *app) printFit(f *fit.Fit, plot bool) {
	if a.set.JSON {
		for i := range f.Stages {
			s := &f.Stages[i]
			line := fittedLine{
				Kind: "fit", Lab: f.Lab, Runs: f.Runs, Subject: s.Subject, Quantity: s.Quantity, Path: s.Path,
				Count: s.Fitted.Count, Never: s.Fitted.Never, Outliers: len(s.Fitted.Outliers), Resolution: int64(s.Fitted.Resolution),
				Distance: s.Fitted.Distance, P: s.Fitted.P, Candidates: s.Fitted.Candidates,
			}
			if most, below := s.Below(); below {
				line.BelowResolution = int64(most)
			}
			for k, m := range s.Fitted.Mixture {
				line.Modes = append(line.Modes, fittedModeLine{m, s.Fitted.Errors[k]})
			}
			a.json(line)
		}
		for _, r := range f.Remarks {
			a.json(struct {
				Kind string `json:"kind"`
				Text string `json:"text"`
			}{"remark", r})
		}
		return
	}
	t := table{align: "..>>>>>>>"}
	t.row("of", "stage", "n", "share", "median", "spread", "known to", "KS", "p")
	for i := range f.Stages {
		s := &f.Stages[i]
		stage, known := strings.TrimSpace(string(s.Quantity)+" "+s.Path), fit.Known(s.KnownTo().Round(s.KnownTo()/100+1), 0)
		if most, below := s.Below(); below {
			t.row(s.Subject, stage, fmt.Sprint(s.Fitted.Count), "", "at most "+fit.Known(most.Round(most/100+1), 0), "below resolution", known, "-", "-")
			continue
		}
		for k, m := range s.Fitted.Mixture {
			e := s.Fitted.Errors[k]
			share, spread := "", fit.Known(m.Spread, e.Spread)
			if len(s.Fitted.Mixture) > 1 {
				share = fmt.Sprintf("%.0f ±%.0f %%", m.Share*100, e.Share*100)
			}
			if e.AtMost > 0 {
				spread = "at most " + fit.Known(e.AtMost.Round(e.AtMost/100+1), 0)
			}
			if k > 0 {
				t.row("", "", "", share, fit.Known(m.Median, e.Median), spread)
				continue
			}
			p := "-"
			if s.Fitted.Resamples > 0 {
				p = fmt.Sprintf("%.2f", s.Fitted.P)
			}
			t.row(s.Subject, stage, fmt.Sprint(s.Fitted.Count), share,
				fit.Known(m.Median, e.Median), spread, known, fmt.Sprintf("%.3f", s.Fitted.Distance.KSLow), p)
		}
	}
	t.write(a.out, "")
	a.printf("± is one standard error; one value is known to so much, and a median may be off by part of that in\n")
	a.printf("all values alike; KS how far fit and values are apart at least; p how likely that is by chance\n")
	for name, ack := range f.Acks {
		a.printf("%s acknowledges %s the light: %s\n", name, cmp.Or(string(ack.Mode), "before or after"), ack.Evidence)
	}
	for _, r := range f.Remarks {
		a.printf("%s\n", natural.Wrap(r, 80, "  "))
	}
	if plot {
		for i := range f.Stages {
			a.printf("\n%s\n", f.Stages[i].Name())
			for _, line := range f.Stages[i].QQText(80) {
				a.printf("%s\n", line)
			}
		}
	}
}

func (a *app) printFitFiles(f *fit.Fit, dir string, files []fit.File) {
	if len(files) == 0 {
		return
	}
	if a.set.JSON {
		var names []string
		for _, x := range files {
			names = append(names, filepath.Join(dir, x.Name))
		}
		a.json(struct {
			Kind  string   `json:"kind"`
			Lab   string   `json:"lab"`
			Runs  []string `json:"runs"`
			Dir   string   `json:"dir"`
			Files []string `json:"files"`
		}{"fit-written", f.Lab, f.Runs, dir, names})
		return
	}
	a.printf("\n")
	t := table{}
	lab := ""
	for _, x := range files {
		t.row(filepath.Join(dir, x.Name), x.What)
		if x.Name == "lab.yaml" {
			lab = filepath.Join(dir, x.Name)
		}
	}
	t.write(a.out, "")
	if lab != "" {
		a.printf("ocslab --lab %s --emulated measure ... uses it\n", lab)
	}
	a.printf("ocslab emulator drift RUN --against %s tells whether a later run is as fitted\n", dir)
}

func (a *app) emulatorDriftCommand() *cobra.Command {
	var against string
	var opt fit.DriftOptions
	c := &cobra.Command{
		Use:   "drift RUN",
		Short: "Tell whether a run is still what the emulator was fitted to",
		Long: `Hold a run against a fit: for each stage, whether the median, the 95th percentile and the
distribution are those that the fit was made from. A drift is beyond chance, and beyond what
the instruments of both runs leave open. The bounds are made so that 99 of 100 runs of a lab
that has not changed are as fitted, in all stages together; docs/fit.md has what was measured.

The exit code is 5 when a stage has drifted, and 1 when all have too few values to tell.`,
		Example:           "  ocslab emulator drift last --against fit-opus-testbed\n  ocslab emulator drift last --against rig --tolerance 1ms",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if against == "" {
				return usagef("--against DIR: which fit? It is the directory that ocslab emulator fit wrote")
			}
			if opt.Tolerance < 0 || opt.Condition < 0 {
				return usagef("--tolerance and --condition are not below 0")
			}
			if info, err := os.Stat(against); err == nil && !info.IsDir() {
				against = filepath.Dir(against) // fit.json was named
			}
			f, err := fit.Load(against)
			if err != nil {
				return fitError(err)
			}
			r, err := a.loadRun(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			d, err := f.Drift(r, opt)
			if err != nil {
				return fitError(err)
			}
			a.printDrift(f, d)
			return d.Err()
		},
	}
	fl := c.Flags()
	fl.StringVar(&against, "against", "", "`DIR` of the fit")
	fl.IntVar(&opt.Condition, "condition", 0, "only the condition of this `NUMBER`")
	fl.DurationVar(&opt.Tolerance, "tolerance", 0, "a smaller shift is no drift")
	fl.Uint64Var(&opt.Seed, "seed", 0, "seed of the bootstrap")
	return c
}

type driftLine struct {
	Kind     string       `json:"kind"` // "drift"
	Run      string       `json:"run"`
	Against  []string     `json:"against"` // runs
	Subject  string       `json:"subject"`
	Quantity fit.Quantity `json:"quantity"`
	Path     string       `json:"path,omitempty"`
	Verdict  fit.Verdict  `json:"verdict"`
	Why      string       `json:"why"`
	Count    int          `json:"count"`
	Never    int          `json:"never"`
	Need     int          `json:"need,omitempty"`
	Median   *shiftLine   `json:"median,omitempty"`
	P95      *shiftLine   `json:"p95,omitempty"`
	KS       float64      `json:"ks_low"`
	KSP      float64      `json:"ks_p"`
}

type shiftLine struct {
	Measured time.Duration `json:"measured_ns"`
	Expected time.Duration `json:"expected_ns"`
	By       time.Duration `json:"by_ns"`
	// Of By, what the instruments leave open, and how far from 0 it may be by chance, by
	// instruments that have become a little earlier or later, and by all of that.
	Low        time.Duration `json:"by_low_ns"`
	High       time.Duration `json:"by_high_ns"`
	Chance     time.Duration `json:"chance_ns"`
	Instrument time.Duration `json:"instrument_ns"`
	Bound      time.Duration `json:"bound_ns"`
	Off        bool          `json:"off"`
}

func shiftLineOf(s fit.Shift) *shiftLine {
	return &shiftLine{s.Measured, s.Expected, s.By(), s.Low, s.High, s.Chance, s.Instrument, s.Bound(), s.Off}
}

func (a *app) printDrift(f *fit.Fit, r *fit.DriftReport) {
	t := table{align: "..>>>."}
	t.row("of", "stage", "n", "median later by", "p95 later by", "verdict")
	for _, d := range r.Stages {
		s := d.Stage
		if a.set.JSON {
			line := driftLine{
				Kind: "drift", Run: r.Run, Against: f.Runs, Subject: s.Subject, Quantity: s.Quantity, Path: s.Path,
				Verdict: d.Verdict, Why: d.Why, Count: d.Count, Never: d.Never, Need: d.Need, KS: d.KS, KSP: d.KSP,
			}
			if d.Median.Chance > 0 {
				line.Median, line.P95 = shiftLineOf(d.Median), shiftLineOf(d.P95)
			}
			a.json(line)
			continue
		}
		row := []string{s.Subject, strings.TrimSpace(string(s.Quantity) + " " + s.Path), fmt.Sprint(d.Count), "-", "-", string(d.Verdict)}
		if d.Median.Chance > 0 {
			row[3], row[4] = fit.Known(d.Median.By(), d.Median.Bound()), fit.Known(d.P95.By(), d.P95.Bound())
		}
		t.row(row...)
	}
	if a.set.JSON {
		for _, text := range r.Remarks {
			a.json(struct {
				Kind string `json:"kind"`
				Text string `json:"text"`
			}{"remark", text})
		}
		return
	}
	a.printf("%s against the fit to %s\n", r.Run, strings.Join(f.Runs, ", "))
	t.write(a.out, "")
	a.printf("± is what chance and instruments leave open; it is made for 1 false alarm in 100 runs\n")
	for _, d := range r.Stages {
		if d.Verdict != fit.AsFitted {
			a.printf("%s: %s\n", d.Stage.Name(), d.Why)
		}
	}
	for _, text := range r.Remarks {
		a.printf("%s\n", natural.Wrap(text, 80, "  "))
	}
	if r.Drifted() {
		a.printf("If that is meant to be, fit again: ocslab emulator fit %s\n", r.Run)
	}
}
