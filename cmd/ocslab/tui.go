package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/ocslab/ocslab/examples"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/tui"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/styles"
)

// tuiFlags are how the terminal UI is shown, and how its lab is opened.
type tuiFlags struct {
	readOnly, noMouse bool
	theme, screen     string
	experiment        string
	rung, firmware    string
	traffic, quicken  bool
}

func (t *tuiFlags) add(f *pflag.FlagSet) {
	var themes []string
	for _, x := range styles.Themes() {
		themes = append(themes, x.Name)
	}
	f.BoolVar(&t.readOnly, "read-only", false, "show everything and change nothing: no key, command or click can")
	f.StringVar(&t.theme, "theme", themes[0], "colours: `"+strings.Join(themes, "|")+"`")
	f.StringVar(&t.screen, "screen", "patch", "what to show first: `patch|links|timeline|experiment|devices|log`")
	f.BoolVar(&t.noMouse, "no-mouse", false, "leave the mouse to the terminal")
	f.StringVar(&t.experiment, "run", "", "load the experiment in `FILE`, without running it")
	f.StringVar(&t.rung, "rung", "", "what emulated NICs are: `tap|veth|memory` (default the best there is here)")
	f.StringVar(&t.firmware, "firmware", "", "firmware of all emulated NICs, in place of the lab file's")
	f.BoolVar(&t.traffic, "traffic", false, "send packets between NICs, to see when traffic comes back (default with --emulated)")
	f.BoolVar(&t.quicken, "quicken", false, "set power monitors to their shortest averaging while a change is measured, and back (default with --emulated)")
}

func (a *app) tuiCommand() *cobra.Command {
	var flags tuiFlags
	c := &cobra.Command{
		Use:   "tui",
		Short: "The terminal UI: patch field, links, timelines, experiments, devices, log",
		Long: `Open the terminal UI on the lab of --lab, or on the emulated testbed when there is none.
Press ? for all keys, ! to darken the lab's ports, q to quit. Everything that it does is shown as
the command that does the same. --read-only lets nothing through that changes anything.`,
		Example: "  ocslab tui\n  ocslab --lab lab.yaml tui --read-only\n  ocslab --lab lab.yaml --emulated tui --screen links",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.set.Lab == "" {
				a.set.Emulated = true
			}
			if a.set.Emulated {
				emulatedDefault(cmd.Flags(), &flags)
			}
			return a.tui(cmd.Context(), &flags, nil)
		},
	}
	flags.add(c.Flags())
	return c
}

// emulatedDefault switches on what disturbs nobody in an emulated lab.
func emulatedDefault(f *pflag.FlagSet, flags *tuiFlags) {
	for name, v := range map[string]*bool{"traffic": &flags.traffic, "quicken": &flags.quicken} {
		if x := f.Lookup(name); x == nil || !x.Changed {
			*v = true
		}
	}
}

// tui opens the lab of the settings, or f, and shows it until the user quits.
func (a *app) tui(ctx context.Context, flags *tuiFlags, f *lab.File) (err error) {
	if a.set.JSON {
		return usagef("the terminal UI has no --json: see ocslab show, watch and run")
	}
	theme, ok := styles.ByName(flags.theme)
	if !ok {
		return usagef("--theme %q: want dark, light, contrast or mono", flags.theme)
	}
	rung, err := rungOf(flags.rung)
	if err != nil {
		return err
	}
	if flags.firmware != "" {
		if _, err := firmwarenotes.Find(flags.firmware); err != nil {
			return usagef("--firmware: %v", err)
		}
	}
	if flags.experiment != "" {
		if _, err := os.Stat(flags.experiment); err != nil {
			return usagef("--run: %v", err)
		}
	}
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
		return usagef("the terminal UI needs a terminal for input and output; without one there are ocslab show, watch and run")
	}
	fresh := f != nil
	if f == nil {
		if f, err = a.file(); err != nil {
			return err
		}
	}
	if a.set.Emulated {
		if done, err := enter(); done {
			return err
		}
	}
	moreProcessors()
	opt, err := a.labOptions()
	if err != nil {
		return err
	}
	opt.Trace = nil  // the log shows it
	opt.Offer = true // the commands it shows work beside it
	state, runs := opt.StateDir, opt.StateDir
	if fresh {
		// What it does is nothing that ocslab undo could take back later.
		opt.StateDir = ""
		dir, err := os.MkdirTemp("", "ocslab-demo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if a.log, err = history.Open(dir); err != nil {
			return err
		}
		state = dir
	}
	log, err := a.history()
	if err != nil {
		return err
	}
	v, revision := version()
	s, err := live.Open(ctx, live.Options{
		File: f, Lab: opt, History: log, StateDir: state, Runs: runs, ReadOnly: flags.readOnly,
		Fabric:  lab.FabricOptions{Firmware: flags.firmware, Rung: rung},
		Quicken: flags.quicken && !flags.readOnly, Traffic: flags.traffic && !flags.readOnly,
		Version: v, Revision: revision,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	defer warnTo(s.Warnings())()
	return tui.Run(ctx, tui.Options{
		Lab: s, ReadOnly: flags.readOnly, Theme: theme.Name, Screen: flags.screen, NoMouse: flags.noMouse,
		In: os.Stdin, Out: os.Stdout, Environ: os.Getenv, Experiment: flags.experiment,
	})
}

// warnTo hands what the program warns of to h, until the function returned is called.
func warnTo(h slog.Handler) (restore func()) {
	before, w, flags := slog.Default(), log.Writer(), log.Flags()
	slog.SetDefault(slog.New(h)) // changes package log, too
	return func() {
		slog.SetDefault(before)
		log.SetOutput(w)
		log.SetFlags(flags)
	}
}

// demoTUI shows the emulated testbed, which remembers nothing.
func (a *app) demoTUI(ctx context.Context, firmware, rung string, seed uint64) error {
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		return fmt.Errorf("the built-in testbed: %w", err)
	}
	f.Path = "" // it is no file
	for i := range f.Switches {
		f.Switches[i].Emulate.Seed = &seed
	}
	a.set.Emulated = true
	return a.tui(ctx, &tuiFlags{theme: styles.Themes()[0].Name, screen: "patch", firmware: firmware, rung: rung, traffic: true, quicken: true}, f)
}
