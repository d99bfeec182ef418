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
	addVerify(c)
}

// ofGate marks the flag --verify that is about the gate of the lab.
const ofGate = "ocslab-gate"

// addVerify adds the flags that say how far a change is verified.
func addVerify(c *cobra.Command) {
	c.Flags().String("verify", string(lab.VerifyLight), "`table|light`: read the map back, or also look for light where the switch has power monitors")
	// The only error is that there is no such flag.
	_ = c.Flags().SetAnnotation("verify", ofGate, []string{"yes"})
	c.Flags().Duration("recheck", time.Second, "read the circuits once more this long after the last change; 0 does not")
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
			return a.change(cmd.Context(), f, lab.Intent{Switch: args[0], Want: want, Policy: mode})
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
			return a.change(cmd.Context(), f, disconnection(args[0], ports))
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
			return a.changeAll(cmd.Context(), f, intentsOf(maps, mode))
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
			var intents []lab.Intent
			for _, name := range slices.Compact([]string{n.Tx.Switch, n.Rx.Switch}) {
				sw, err := l.Switch(cmd.Context(), name)
				if err != nil {
					return err
				}
				have, err := sw.CrossConnects(cmd.Context())
				if err != nil {
					return err
				}
				var used []ocs.Port
				for _, p := range []lab.PortRef{n.Tx, n.Rx} {
					if p.Switch == name && len(have.At(p.Port)) > 0 {
						used = append(used, p.Port)
					}
				}
				if len(used) > 0 {
					intents = append(intents, disconnection(name, used))
				}
			}
			if len(intents) == 0 {
				return fmt.Errorf("%s: %w", n.FullName(), ocs.ErrNotConnected)
			}
			return a.changeAll(cmd.Context(), f, intents)
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

type changeLine struct {
	Kind     string  `json:"kind"` // "change"
	Switch   string  `json:"switch"`
	Remove   ocs.Map `json:"remove"`
	Add      ocs.Map `json:"add"`
	DryRun   bool    `json:"dry_run"`
	ID       int     `json:"id"`       // in the history, 0 if nothing was sent
	Requests int     `json:"requests"` // sent to the device
	AckNS    int64   `json:"ack_ns"`   // from sending the last request to its acknowledgement
	Verified bool    `json:"verified"` // read back and as asked
	// TookEffect says that the device gave no clear answer, and that reading back showed the change.
	TookEffect bool `json:"took_effect,omitempty"`
}

type outcomeLine struct {
	Kind    string    `json:"kind"` // "circuit"
	Switch  string    `json:"switch"`
	Ingress ocs.Port  `json:"ingress"`
	Egress  ocs.Port  `json:"egress"`
	State   ocs.State `json:"state"`

	Light lab.LightState `json:"light,omitempty"` // of a circuit that was asked for
	In    *ocs.DBm       `json:"in_dbm,omitempty"`
	Out   *ocs.DBm       `json:"out_dbm,omitempty"`
}

// intentsOf are the changes that bring maps about on switches, in order of their names.
func intentsOf(maps map[string]ocs.Map, mode ocs.Policy) (intents []lab.Intent) {
	for _, name := range sorted(maps) {
		intents = append(intents, lab.Intent{Switch: name, Want: maps[name], Policy: mode})
	}
	return intents
}

func disconnection(name string, ports []ocs.Port) lab.Intent {
	return lab.Intent{Switch: name, Ports: ports, Plan: func(have ocs.Map) (ocs.Change, error) { return ocs.PlanDisconnect(have, ports...) }}
}

// noPanic refuses a run as long as a panic is in force in its lab.
func (a *app) noPanic(f *lab.File, opt lab.Options) error {
	return lab.New(f, opt).Gate().RefuseInPanic()
}

// change applies one change, or with --dry-run prints it, and prints what became of it.
func (a *app) change(ctx context.Context, f changeFlags, i lab.Intent) error {
	return a.changeAll(ctx, f, []lab.Intent{i})
}

// changeAll applies changes of several switches as one operation.
func (a *app) changeAll(ctx context.Context, f changeFlags, intents []lab.Intent) error {
	l, err := a.switches()
	if err != nil {
		return err
	}
	for i := range intents {
		if intents[i].On, err = a.open(ctx, intents[i].Switch); err != nil {
			return err
		}
	}
	if f.dryRun {
		for _, i := range intents {
			r, err := l.Gate().Preview(ctx, i)
			if err != nil {
				return err
			}
			if a.set.JSON {
				a.json(changeLine{Kind: "change", Switch: r.Switch, Remove: r.Change.Remove, Add: r.Change.Add, DryRun: true})
			}
			a.printf("%s: would change: %v\n", r.Switch, r.Change)
		}
		return nil
	}
	reports, err := l.Gate().ApplyAll(ctx, intents)
	for _, r := range reports {
		a.tell(r, err)
	}
	a.tellUndo(reports, err)
	return err
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

// tell prints what became of a change of one switch; err is of the whole operation.
func (a *app) tell(r lab.Report, err error) {
	ack := ackOf(r)
	if a.set.JSON {
		if r.ReadBack || r.ID != 0 {
			a.json(changeLine{
				Kind: "change", Switch: r.Switch, Remove: r.Change.Remove, Add: r.Change.Add, ID: r.ID,
				Requests: r.Receipt.Requests, AckNS: int64(ack), Verified: r.ReadBack && err == nil, TookEffect: r.TookEffect,
			})
		}
		a.tellParts(r.Switch, r.Receipt)
		for _, o := range r.Outcomes {
			line := outcomeLine{Kind: "circuit", Switch: r.Switch, Ingress: o.CrossConnect.Ingress, Egress: o.CrossConnect.Egress, State: o.State}
			if l, looked := lightOf(r, o); looked {
				line.Light, line.In, line.Out = l.State, l.In, l.Out
			}
			a.json(line)
		}
		return
	}
	t := table{}
	for _, line := range outcomeRows(r) {
		t.row(append([]string{r.Switch}, line...)...)
	}
	t.write(a.out, "")
}

// ackOf is how long the switch took to acknowledge, 0 if that is not known.
func ackOf(r lab.Report) time.Duration {
	if r.Receipt.Acked.IsZero() {
		return 0
	}
	return r.Receipt.Acked.Sub(r.Receipt.SendStart)
}

// lightOf returns what was seen of a circuit, if it is one whose light was to be looked at.
func lightOf(r lab.Report, o ocs.Outcome) (lab.Light, bool) {
	i := slices.IndexFunc(r.Light, func(l lab.Light) bool { return l.Circuit == o.CrossConnect })
	if i < 0 {
		return lab.Light{}, false
	}
	return r.Light[i], true
}

// tellUndo says how long the switches took, and how the operation is undone.
func (a *app) tellUndo(reports []lab.Report, err error) {
	if a.set.JSON || err != nil {
		return
	}
	var ids []int
	var slowest time.Duration
	for _, r := range reports {
		if r.Change.Empty() {
			if r.ID != 0 {
				a.printf("%s: nothing of change %d is left, it counts as undone\n", r.Switch, r.UndoOf)
			}
			continue
		}
		a.tellParts(r.Switch, r.Receipt)
		ids, slowest = append(ids, r.ID), max(slowest, ackOf(r))
	}
	switch len(ids) {
	case 0:
		if !slices.ContainsFunc(reports, func(r lab.Report) bool { return r.ID != 0 }) { // an undo says so itself
			a.printf("nothing to change\n")
		}
	case 1:
		a.printf("acknowledged in %s, read back as asked; change %d, \"ocslab undo %d\" takes it back\n", round(slowest), ids[0], ids[0])
	default:
		a.printf("acknowledged in %s at most, read back as asked; changes %d to %d, \"ocslab undo %d\" takes all of them back\n",
			round(slowest), ids[0], ids[len(ids)-1], ids[0])
	}
}

// manyOutcomes is from how many circuits on they are told in ranges.
const manyOutcomes = 17

// outcomeRows returns circuits, what became of them and of their light: one by one, or, when they are many, in ranges
// for each state and light.
func outcomeRows(r lab.Report) (rows [][]string) {
	row := func(circuits string, o ocs.Outcome) []string {
		l, looked := lightOf(r, o)
		if !looked {
			return []string{circuits, string(o.State)}
		}
		text := string(l.State)
		if l.State != lab.LightOn && l.Out != nil {
			text += fmt.Sprintf(" (%.1f dBm", float64(*l.Out))
			if l.In != nil {
				text += fmt.Sprintf(", %.1f dBm go in", float64(*l.In))
			}
			text += ")"
		}
		return []string{circuits, string(o.State), text}
	}
	if len(r.Outcomes) < manyOutcomes {
		for _, o := range r.Outcomes {
			rows = append(rows, row(o.CrossConnect.String(), o))
		}
		return rows
	}
	type kind struct {
		state ocs.State
		light lab.LightState
	}
	var kinds []kind
	with := map[kind][]ocs.Outcome{}
	for _, o := range r.Outcomes {
		l, _ := lightOf(r, o)
		k := kind{o.State, l.State}
		if with[k] == nil {
			kinds = append(kinds, k)
		}
		with[k] = append(with[k], o)
	}
	for _, k := range kinds {
		var circuits []ocs.CrossConnect
		for _, o := range with[k] {
			circuits = append(circuits, o.CrossConnect)
		}
		if m, err := ocs.NewMap(circuits...); err == nil {
			line := []string{m.String(), string(k.state)}
			if k.light != "" {
				line = append(line, string(k.light))
			}
			rows = append(rows, line)
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
