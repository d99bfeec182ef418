package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/blackout"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

// changeFlags are the flags of every command that moves light.
type changeFlags struct {
	dryRun bool
}

func (a *app) addMode(c *cobra.Command, def string) {
	c.Flags().String("mode", def, "what may happen to other circuits: `safe|update|overwrite`; safe refuses busy ports, update moves them, overwrite also removes all else")
}

func (f *changeFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the change and do nothing")
}

func (a *app) mode() (ocs.Policy, error) {
	p, err := ocs.ParsePolicy(a.set.Mode)
	if err != nil {
		return "", usagef("--mode: %w", err)
	}
	return p, nil
}

func (a *app) connectCommand() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "connect SWITCH MAP",
		Short: "Make cross-connects, read back and verified",
		Long: `Make the cross-connects of MAP, such as "1>33" or "1-4>33-36,7>40", touching
nothing else unless --mode says so. Of transceivers, path1, path2 and loop stand for
all of their lanes on that path. The change is recorded with its inverse
before it is sent, and read back afterwards: see "ocslab undo".`,
		Example: "  ocslab connect rail0 '1>33,2>34'\n  ocslab connect tl1://admin@192.0.2.10:3082 '1-4>33-36' --mode update",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode, err := a.mode()
			if err != nil {
				return err
			}
			want, err := a.wishOf(cmd.Context(), args[0], args[1])
			if err != nil {
				return err
			}
			if want.Len() == 0 {
				return usagef("nothing to connect: want a map such as 1>33,2>34")
			}
			return a.change(cmd.Context(), args[0], f, wish(want, mode))
		},
	}
	f.add(c)
	a.addMode(c, "safe")
	return c
}

func (a *app) disconnectCommand() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:     "disconnect SWITCH PORTS",
		Short:   "Remove the cross-connects that use these ports at either end",
		Example: "  ocslab disconnect rail0 1,2\n  ocslab disconnect rail0 33-36 --dry-run",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ports, err := ocs.ParsePorts(args[1])
			if err != nil {
				return err
			}
			if len(ports) == 0 {
				return usagef("nothing to disconnect: want ports such as 1,2 or 33-36")
			}
			return a.change(cmd.Context(), args[0], f, disconnection(ports))
		},
	}
	f.add(c)
	return c
}

func (a *app) linkCommand() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:     "link NIC NIC",
		Short:   "Join two NICs of the lab both ways",
		Example: "  ocslab --lab lab.yaml link gpu1/ens1f0 gpu2/ens1f0",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			mode, err := a.mode()
			if err != nil {
				return err
			}
			l, err := a.needLab()
			if err != nil {
				return err
			}
			maps, err := l.File.Link(args[0], args[1])
			if err != nil {
				return usageError{err}
			}
			return a.changeAll(cmd.Context(), f, maps, mode)
		},
	}
	f.add(c)
	a.addMode(c, "safe")
	return c
}

func (a *app) unlinkCommand() *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use:   "unlink NIC",
		Short: "Remove the cross-connects that light of a NIC goes through",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := a.needLab()
			if err != nil {
				return err
			}
			n, err := l.File.NIC(args[0])
			if err != nil {
				return usageError{err}
			}
			lit := 0
			for _, s := range slices.Compact([]string{n.Tx.Switch, n.Rx.Switch}) {
				sw, err := l.Switch(cmd.Context(), s)
				if err != nil {
					return err
				}
				have, err := sw.CrossConnects(cmd.Context())
				if err != nil {
					return err
				}
				var used []ocs.Port
				for _, p := range []lab.PortRef{n.Tx, n.Rx} {
					if p.Switch == s && len(have.At(p.Port)) > 0 {
						used = append(used, p.Port)
					}
				}
				if lit += len(used); len(used) == 0 {
					continue
				}
				if err := a.change(cmd.Context(), s, f, disconnection(used)); err != nil {
					return err
				}
			}
			if lit == 0 {
				return fmt.Errorf("%s: %w", n.FullName(), ocs.ErrNotConnected)
			}
			return nil
		},
	}
	f.add(c)
	return c
}

func (a *app) needLab() (*lab.Lab, error) {
	l, err := a.lab()
	if err == nil && l == nil {
		err = usagef("this needs --lab FILE")
	}
	return l, err
}

// intent is how a change comes about: make is given what the device holds or, if
// that is nil, want is brought about under mode.
type intent struct {
	make  func(have ocs.Map) (ocs.Change, error)
	want  ocs.Map
	mode  ocs.Policy
	ports []ocs.Port // must exist on the device
	undo  int        // entry of the history that is taken back
}

func wish(want ocs.Map, mode ocs.Policy) intent { return intent{want: want, mode: mode} }

type changeLine struct {
	Kind     string  `json:"kind"` // "change"
	Switch   string  `json:"switch"`
	Remove   ocs.Map `json:"remove"`
	Add      ocs.Map `json:"add"`
	DryRun   bool    `json:"dry_run"`
	ID       int     `json:"id"`       // in the history, 0 if nothing was sent
	Requests int     `json:"requests"` // sent to the device
	AckNS    int64   `json:"ack_ns"`   // from sending the last request to its acknowledgement
	Verified bool    `json:"verified"` // read back and as wished
}

type outcomeLine struct {
	Kind    string    `json:"kind"` // "circuit"
	Switch  string    `json:"switch"`
	Ingress ocs.Port  `json:"ingress"`
	Egress  ocs.Port  `json:"egress"`
	State   ocs.State `json:"state"`
}

func disconnection(ports []ocs.Port) intent {
	return intent{ports: ports, make: func(have ocs.Map) (ocs.Change, error) { return ocs.PlanDisconnect(have, ports...) }}
}

// planned opens a switch and returns the change that a plan comes to on what
// it holds now. Nothing is sent that changes anything.
func (a *app) planned(ctx context.Context, name string, p intent) (*lab.Opened, ocs.Change, error) {
	sw, err := a.open(ctx, name)
	if err != nil {
		return nil, ocs.Change{}, err
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return sw, ocs.Change{}, err
	}
	for _, n := range p.ports {
		if !id.Geometry.Has(n) {
			return sw, ocs.Change{}, aboutSwitch(sw.Name, &ocs.PortError{Port: n, Geometry: id.Geometry, Reason: "is not a port"})
		}
	}
	var r ocs.Report
	if p.make != nil {
		r, err = ocs.PreviewExecute(ctx, sw, p.make)
	} else {
		r, err = ocs.Preview(ctx, sw, p.want, p.mode)
	}
	if err == nil {
		err = a.notInPanic(sw, r.Change)
	}
	return sw, r.Change, aboutSwitch(sw.Name, err)
}

// notInPanic refuses a change that would bring light to where a panic keeps it dark.
func (a *app) notInPanic(sw *lab.Opened, c ocs.Change) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	f, err := a.file()
	if err != nil {
		return err
	}
	return blackout.New(blackout.Options{File: f, StateDir: dir}).Refuse(blackout.Light{Switch: sw.Name, Device: sw.Device, Add: c.Add})
}

// unlessPanic refuses what a panic forbids that was called since the change was planned.
type unlessPanic struct {
	ocs.Switch
	refuse func(ocs.Change) error
}

// Unwrap returns the switch inside.
func (u unlessPanic) Unwrap() ocs.Switch { return u.Switch }

// Apply refuses, or does what the switch inside does.
func (u unlessPanic) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if err := u.refuse(c); err != nil {
		return ocs.Receipt{}, err
	}
	return u.Switch.Apply(ctx, c)
}

// noPanic refuses a run as long as a panic is in force in its lab.
func (a *app) noPanic(f *lab.File, opt lab.Options) error {
	dir, err := a.stateDir()
	if err != nil {
		return err
	}
	return blackout.New(blackout.Options{File: f, Device: lab.New(f, opt).Device, StateDir: dir}).Refuse(blackout.Light{})
}

// change moves light on one switch: it is recorded, sent, read back, and told.
func (a *app) change(ctx context.Context, name string, f changeFlags, p intent) error {
	sw, c, err := a.planned(ctx, name, p)
	if err != nil {
		return err
	}
	if f.dryRun {
		if a.set.JSON {
			a.json(changeLine{Kind: "change", Switch: sw.Name, Remove: c.Remove, Add: c.Add, DryRun: true})
		}
		a.printf("%s: would change: %v\n", sw.Name, c)
		return nil
	}
	log, err := a.history()
	if err != nil {
		return err
	}
	rec := log.Wrap(sw, history.Entry{Switch: name, Device: sw.Device, Command: commandLine(), UndoOf: p.undo})
	var report ocs.Report
	safe := unlessPanic{rec, func(c ocs.Change) error { return a.notInPanic(sw, c) }}
	if p.make != nil {
		report, err = ocs.Execute(ctx, safe, p.make)
	} else {
		report, err = ocs.Reconcile(ctx, safe, p.want, p.mode)
	}
	recorded := rec.Confirm(report, err)
	a.tell(sw.Name, report, rec.ID(), err)
	err = aboutSwitch(sw.Name, err)
	if err != nil && !report.ReadBack && report.Receipt.Requests > 0 {
		err = fmt.Errorf("%w; it may have taken effect: see change %d in the history", err, rec.ID())
	}
	return errors.Join(err, recorded)
}

// aboutSwitch puts the name of the switch before errors that do not have it.
func aboutSwitch(name string, err error) error {
	var op *ocs.OpError
	if err == nil || errors.As(err, &op) {
		return err
	}
	return fmt.Errorf("%s: %w", name, err)
}

// commandLine is what the user typed, for the history.
func commandLine() string { return strings.Join(os.Args[1:], " ") }

// tell prints what became of a change.
func (a *app) tell(name string, r ocs.Report, id int, err error) {
	ack := time.Duration(0)
	if !r.Receipt.Acked.IsZero() {
		ack = r.Receipt.Acked.Sub(r.Receipt.SendStart)
	}
	if a.set.JSON {
		if r.ReadBack || id != 0 {
			a.json(changeLine{
				Kind: "change", Switch: name, Remove: r.Change.Remove, Add: r.Change.Add, ID: id,
				Requests: r.Receipt.Requests, AckNS: int64(ack), Verified: r.ReadBack && err == nil,
			})
		}
		a.tellParts(name, r.Receipt)
		for _, o := range r.Outcomes {
			a.json(outcomeLine{"circuit", name, o.CrossConnect.Ingress, o.CrossConnect.Egress, o.State})
		}
		return
	}
	t := table{}
	for _, line := range outcomeRows(r.Outcomes) {
		t.row(name, line[0], line[1])
	}
	t.write(a.out, "")
	switch {
	case err != nil:
	case r.Change.Empty():
		a.printf("nothing to change\n")
	default:
		a.tellParts(name, r.Receipt)
		a.printf("acknowledged in %s, read back as asked; change %d, \"ocslab undo %d\" takes it back\n", round(ack), id, id)
	}
}

// manyOutcomes is from how many circuits on they are told in ranges.
const manyOutcomes = 17

// outcomeRows returns circuits and what became of them: one by one, or, when they are many,
// in ranges for each state.
func outcomeRows(outcomes []ocs.Outcome) (rows [][2]string) {
	if len(outcomes) < manyOutcomes {
		for _, o := range outcomes {
			rows = append(rows, [2]string{o.CrossConnect.String(), string(o.State)})
		}
		return rows
	}
	for _, s := range []ocs.State{ocs.Kept, ocs.Removed, ocs.Connected, ocs.Failed, ocs.Stuck, ocs.Vanished, ocs.Appeared} {
		var with []ocs.CrossConnect
		for _, o := range outcomes {
			if o.State == s {
				with = append(with, o.CrossConnect)
			}
		}
		if m, err := ocs.NewMap(with...); err == nil && m.Len() > 0 {
			rows = append(rows, [2]string{m.String(), string(s)})
		}
	}
	return rows
}

// round makes a duration readable: three digits.
func round(d time.Duration) string {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

// changeAll moves light on several switches, in order of their names. It is
// first made sure that each can take its change, so that a mistake in one
// leaves all alone; after that the first that fails ends it.
func (a *app) changeAll(ctx context.Context, f changeFlags, maps map[string]ocs.Map, mode ocs.Policy) error {
	if len(maps) > 1 && !f.dryRun {
		for _, name := range sorted(maps) {
			if _, _, err := a.planned(ctx, name, wish(maps[name], mode)); err != nil {
				return fmt.Errorf("nothing was changed: %w", err)
			}
		}
	}
	for _, name := range sorted(maps) {
		if err := a.change(ctx, name, f, wish(maps[name], mode)); err != nil {
			return err
		}
	}
	return nil
}
