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

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/calibration/clock"
	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/shell"
)

// calibrationTexts print what is stored of each kind for people.
var calibrationTexts = map[store.Kind]func(w io.Writer, data json.RawMessage, width int) error{
	store.Loss: loss.Text, store.Clock: clock.Text, store.Timing: timing.Text,
}

// storedLine is a stored calibration, with --json.
type storedLine struct {
	Kind string `json:"kind"` // "calibration"
	store.Record
	Stale string          `json:"stale,omitempty"` // why it is too old
	Data  json.RawMessage `json:"data,omitempty"`  // not in lists
}

func storedLineOf(r store.Record, data json.RawMessage) storedLine {
	l := storedLine{Kind: "calibration", Record: r, Data: data}
	l.Stale, _ = r.Stale(time.Now())
	return l
}

// calibrations opens the store.
func (a *app) calibrations() (*store.Store, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return store.Open(dir), nil
}

// keep stores a calibration that was just made, unless it is not to be, and prints it.
func (a *app) keep(r store.Record, k keepFlags) error {
	if !k.noStore {
		s, err := a.calibrations()
		if err != nil {
			return err
		}
		if r, err = s.Put(r); err != nil {
			return err
		}
	}
	if a.set.JSON {
		a.json(storedLineOf(r, r.Data))
		return nil
	}
	if err := a.printData(r); err != nil {
		return err
	}
	if k.noStore {
		a.printf("\nnot kept: --no-store\n")
		return nil
	}
	a.printf("\nkept as %s #%d of %s, good until %s: ocslab calibrate show %s %s\n", r.Kind, r.Version, r.Subject,
		r.Expires.Local().Format(time.DateTime), r.Kind, shell.Quote(r.Subject))
	return nil
}

// printData prints what a calibration has found.
func (a *app) printData(r store.Record) error {
	text := calibrationTexts[r.Kind]
	if text == nil {
		a.printf("%s\n", r.Data)
		return nil
	}
	return text(a.out, r.Data, a.width80())
}

// width80 is how wide texts are: as the terminal, and 80 where there is none.
func (a *app) width80() int {
	if w := a.terminal(); w > 0 {
		return min(max(w, 60), 120)
	}
	return 80
}

func (a *app) calibrateListCommand() *cobra.Command {
	var kind string
	c := &cobra.Command{
		Use:   "list",
		Short: "List the calibrations that are kept, the newest first",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if kind != "" {
				if _, err := store.ParseKind(kind); err != nil {
					return usagef("--kind: %w", err)
				}
			}
			s, err := a.calibrations()
			if err != nil {
				return err
			}
			list, problems, err := s.List(store.Kind(kind))
			if err != nil {
				return err
			}
			t := table{align: "..>"}
			if len(list) > 0 {
				t.row("kind", "of", "#", "lab", "made", "good for", "note")
			}
			for _, r := range list {
				if a.set.JSON {
					a.json(storedLineOf(r, nil))
				}
				good := store.Age(time.Until(r.Expires)) + " more"
				if why, stale := r.Stale(time.Now()); stale {
					good = why
				}
				var notes []string
				if r.Emulated {
					notes = append(notes, "emulated")
				}
				if !r.Complete {
					notes = append(notes, "incomplete")
				}
				t.row(string(r.Kind), r.Subject, fmt.Sprint(r.Version), r.Lab, r.Made.Local().Format(time.DateTime), good, strings.Join(notes, ", "))
			}
			if !a.set.JSON {
				t.write(a.out, "")
			}
			for _, p := range problems {
				fmt.Fprintf(a.err, "ocslab: %v\n", p)
			}
			if len(list)+len(problems) == 0 {
				a.printf("no calibration is kept: ocslab calibrate loss, clock or timing make some\n")
			}
			return nil
		},
	}
	c.Flags().StringVar(&kind, "kind", "", "only those of this kind: `loss|clock|timing`")
	return c
}

// calibrationFlags name a stored calibration, beside its kind and subject.
type calibrationFlags struct {
	version int
	of      string // a lab
}

func (f *calibrationFlags) add(c *cobra.Command, version string) {
	c.Flags().IntVar(&f.version, "version", 0, version)
	c.Flags().StringVar(&f.of, "of", "", "`LAB` that it is of, by name (default that of --lab, or the only one)")
}

// findCalibration returns the kind, lab and subject that a command means; without a subject it is the
// only one that there is of the kind.
func (a *app) findCalibration(s *store.Store, f *calibrationFlags, args []string) (kind store.Kind, labName, subject string, err error) {
	if kind, err = store.ParseKind(args[0]); err != nil {
		return "", "", "", usageError{err}
	}
	if f.version < 0 {
		return "", "", "", usagef("--version %d: they count from 1", f.version)
	}
	if labName = f.of; labName == "" {
		file, err := a.file()
		if err != nil {
			return "", "", "", err
		}
		if file != nil {
			labName = file.Name
		}
	}
	if labName != "" && len(args) > 1 {
		return kind, labName, args[1], nil // also of a damaged one, which no list has
	}
	list, problems, err := s.List(kind)
	if err != nil {
		return "", "", "", err
	}
	type place struct{ lab, subject string }
	var places []place
	for _, r := range list {
		p := place{r.Lab, r.Subject}
		if (labName == "" || r.Lab == labName) && (len(args) < 2 || r.Subject == args[1]) && !slices.Contains(places, p) {
			places = append(places, p)
		}
	}
	switch len(places) {
	case 0:
		none := fmt.Errorf("%w of the kind %s: ocslab calibrate list shows what there is", store.ErrNone, kind)
		return "", "", "", errors.Join(append([]error{none}, problems...)...)
	case 1:
		return kind, places[0].lab, places[0].subject, nil
	}
	var names []string
	for _, p := range places {
		names = append(names, fmt.Sprintf("%s --of %s", shell.Quote(p.subject), shell.Quote(p.lab)))
	}
	slices.Sort(names)
	return "", "", "", usagef("there are several of the kind %s; say which: %s", kind, strings.Join(names, ", "))
}

func (a *app) calibrateShowCommand() *cobra.Command {
	var f calibrationFlags
	c := &cobra.Command{
		Use:   "show KIND [SUBJECT]",
		Short: "Show a calibration that is kept: the newest, or one by its version",
		Long: `Show a calibration that is kept: the newest, or one by its version.

An emulated lab goes by the name of the real one, and their calibrations say nothing of each
other. With --emulated the newest of the emulated lab is shown, without it that of the real
one; if that has none, the emulated one, marked as such.`,
		Example: "  ocslab calibrate show timing\n  ocslab calibrate show loss rail0 --version 2",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.calibrations()
			if err != nil {
				return err
			}
			kind, labName, subject, err := a.findCalibration(s, &f, args)
			if err != nil {
				return err
			}
			r, also, err := a.readCalibration(s, kind, labName, subject, f.version)
			if err != nil {
				return err
			}
			if a.set.JSON {
				a.json(storedLineOf(r, r.Data))
				return nil
			}
			a.printRecord(r)
			if err := a.printData(r); err != nil {
				return err
			}
			if also > 0 {
				a.printf("\nthe emulated lab of this name has one of its own, #%d: --emulated shows it\n", also)
			}
			return nil
		},
		ValidArgs: kindNames(),
	}
	f.add(c, "version to show (default the newest)")
	return c
}

// readCalibration returns one version of a calibration, or for 0 the newest: of the emulated lab with
// --emulated, else of the real one. When that has none, it is that of the emulated lab, which it then says of itself; when
// both have, also is the version of the emulated one.
func (a *app) readCalibration(s *store.Store, kind store.Kind, labName, subject string, version int) (r store.Record, also int, err error) {
	switch {
	case version > 0:
		r, err = s.Get(kind, labName, subject, version)
		return r, 0, err
	case a.set.Emulated:
		r, err = s.LatestOf(kind, labName, subject, true)
		return r, 0, err
	}
	r, err = s.LatestOf(kind, labName, subject, false)
	if errors.Is(err, store.ErrNone) {
		r, err = s.Latest(kind, labName, subject)
		return r, 0, err
	}
	if err == nil {
		if e, err := s.LatestOf(kind, labName, subject, true); err == nil {
			also = e.Version
		}
	}
	return r, also, err
}

// foundLine is a calibration that bears on what is measured, with --json.
type foundLine struct {
	Kind string `json:"kind"` // "calibration"
	runs.Calibration
}

// printFound says which calibrations bear on what was measured at a time, and what they say cannot be
// resolved, however many repeats there are.
func (a *app) printFound(list []runs.Calibration, at time.Time) {
	for _, c := range list {
		if a.set.JSON {
			a.json(foundLine{"calibration", c})
			continue
		}
		a.printf("%v, made %s before", c, store.Age(at.Sub(c.Made)))
		for _, why := range slices.Concat([]string{c.Stale}, c.Changed) {
			if why != "" {
				a.printf("; STALE: %s", why)
			}
		}
		if !c.Complete {
			a.printf("; incomplete")
		}
		a.printf("\n")
		var floors []string
		for _, f := range c.Floors {
			floors = append(floors, fmt.Sprintf("%s %s", f.Stage, ms(f.ResolutionNS)))
		}
		if len(floors) > 0 {
			a.printf("%s\n", natural.Wrap("cannot resolve below, in ms and however many repeats: "+strings.Join(floors, ", "), a.width80(), "  "))
		}
	}
}

// printRecord prints all of a calibration but what was found.
func (a *app) printRecord(r store.Record) {
	head := fmt.Sprintf("%s #%d of %s", r.Kind, r.Version, r.Subject)
	if r.Lab != r.Subject {
		head += " in " + r.Lab
	}
	if r.Emulated {
		head += ", emulated"
	}
	a.printf("%s\n", head)
	a.printf("made %s (%s ago) by %s\n", r.Made.Local().Format(time.DateTime), store.Age(time.Since(r.Made)), cmp.Or(r.Program, "nobody knows what"))
	if why, stale := r.Stale(time.Now()); stale {
		a.printf("STALE: it %s\n", why)
	} else {
		a.printf("good until %s (%s)\n", r.Expires.Local().Format(time.DateTime), store.Age(time.Until(r.Expires)))
	}
	if !r.Complete {
		a.printf("INCOMPLETE: see what is missing below\n")
	}
	if r.Device != "" {
		a.printf("%s\n", strings.ReplaceAll(r.Device, "; ", "\n"))
	}
	a.printf("\n")
}

func (a *app) calibrateRemoveCommand() *cobra.Command {
	var f calibrationFlags
	c := &cobra.Command{
		Use:     "rm KIND [SUBJECT] --version N",
		Short:   "Delete one version of a calibration that is kept",
		Example: "  ocslab calibrate rm loss rail0 --version 2",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			if f.version < 1 {
				return usagef("want --version, the number of the one to delete: ocslab calibrate list shows them")
			}
			s, err := a.calibrations()
			if err != nil {
				return err
			}
			kind, labName, subject, err := a.findCalibration(s, &f, args)
			if err != nil {
				return err
			}
			if err := s.Remove(kind, labName, subject, f.version); err != nil {
				return err
			}
			if a.set.JSON {
				a.json(struct {
					Kind        string     `json:"kind"` // "removed"
					Calibration store.Kind `json:"calibration"`
					Lab         string     `json:"lab"`
					Subject     string     `json:"subject"`
					Version     int        `json:"version"`
				}{"removed", kind, labName, subject, f.version})
			}
			a.printf("removed %s #%d of %s\n", kind, f.version, subject)
			return nil
		},
		ValidArgs: kindNames(),
	}
	f.add(c, "version to delete")
	return c
}

func kindNames() []string {
	var names []string
	for _, k := range store.Kinds() {
		names = append(names, string(k))
	}
	return names
}
