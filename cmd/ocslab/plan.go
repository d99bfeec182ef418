package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

const planFileHelp = `A plan file says what shall be connected:

  mode: update              # safe (default), update or overwrite
  switches:
    rail0: 1-4>33-36,7>40   # by name in the lab, or by URL
  links:                    # by NIC of the lab, both ways
    - [gpu1/ens1f0, gpu2/ens1f0]
  configuration: dp         # of the lab`

func (a *app) planCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "plan FILE",
		Short: "Print the change a plan file asks for, who it darkens and for how long",
		Long: `Print the change, its blast radius (circuits and NICs that lose light) and the
predicted outage, and touch nothing.

` + planFileHelp,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wishes, mode, err := a.loadWish(cmd, args[0])
			if err != nil {
				return err
			}
			for _, name := range sorted(wishes) {
				if err := a.predict(cmd.Context(), name, wishes[name], mode); err != nil {
					return err
				}
			}
			return nil
		},
	}
	a.addMode(c, "")
	return c
}

func (a *app) applyCommand() *cobra.Command {
	return a.wishCommand("apply FILE", "Bring about what a plan file asks for",
		"Bring about what a plan file asks for, one switch after another, read back\nand verified.\n\n"+planFileHelp)
}

func (a *app) restoreCommand() *cobra.Command {
	return a.wishCommand("restore FILE", "Make switches equal to a snapshot",
		"Make the switches of a snapshot hold what it says and nothing else, unless\n--mode says otherwise. Switches that are not in it are not touched.")
}

// wishCommand is a command that brings about what a file asks for.
func (a *app) wishCommand(use, short, long string) *cobra.Command {
	var f changeFlags
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			wishes, mode, err := a.loadWish(cmd, args[0])
			if err != nil {
				return err
			}
			return a.changeAll(cmd.Context(), f, intentsOf(wishes, mode))
		},
	}
	f.add(c)
	a.addMode(c, "")
	return c
}

// loadWish reads a plan file. The mode is that of the flag, else of the file,
// else of the settings, else safe: a file that says overwrite, as a snapshot
// does, means it.
func (a *app) loadWish(cmd *cobra.Command, path string) (map[string]ocs.Map, ocs.Policy, error) {
	l, err := a.lab()
	if err != nil {
		return nil, "", err
	}
	var f *lab.File
	if l != nil {
		f = l.File
	}
	w, err := lab.LoadWish(path, f)
	if err != nil {
		return nil, "", usageError{err}
	}
	wishes, err := w.Maps(f)
	if err != nil {
		return nil, "", usageError{err}
	}
	mode := ocs.Safe
	switch {
	case w.Mode != "" && !cmd.Flags().Changed("mode"):
		mode = w.Mode
	case a.set.Mode != "":
		if mode, err = a.mode(); err != nil {
			return nil, "", err
		}
	}
	return wishes, mode, nil
}

type planLine struct {
	Kind     string   `json:"kind"` // "plan"
	Switch   string   `json:"switch"`
	Mode     string   `json:"mode"`
	Remove   ocs.Map  `json:"remove"`
	Add      ocs.Map  `json:"add"`
	NICs     []string `json:"nics"` // that lose light, for a while or for good
	OutageNS *int64   `json:"outage_ns"`
	Basis    string   `json:"outage_basis"` // what the prediction rests on
}

// predict prints what a wish would do to one switch.
func (a *app) predict(ctx context.Context, name string, want ocs.Map, mode ocs.Policy) error {
	sw, err := a.open(ctx, name)
	if err != nil {
		return err
	}
	r, err := sw.Gate().Preview(ctx, lab.Intent{On: sw, Want: want, Policy: mode})
	if err != nil {
		return err
	}
	c := r.Change
	line := planLine{Kind: "plan", Switch: sw.Name, Mode: string(mode), Remove: c.Remove, Add: c.Add, NICs: []string{}}
	if f := a.labFile(); f != nil {
		line.NICs = append(line.NICs, f.NICsOn(sw.Name, c.Remove.Ports())...)
	}
	outage, basis, err := a.predictOutage(sw, c)
	if err != nil {
		return err
	}
	line.Basis = basis
	if outage >= 0 {
		ns := int64(outage)
		line.OutageNS = &ns
	}
	if a.set.JSON {
		a.json(line)
		return nil
	}
	if c.Empty() {
		a.printf("%s: nothing to change\n", sw.Name)
		return nil
	}
	t := table{}
	for r := range c.Remove.All() {
		t.row("-", r.String(), "goes dark", strings.Join(a.nicsAt(sw.Name, r), " > "))
	}
	for x := range c.Add.All() {
		t.row("+", x.String(), "is lit", strings.Join(a.nicsAt(sw.Name, x), " > "))
	}
	a.printf("%s (%s)\n", sw.Name, mode)
	t.write(a.out, "  ")
	a.printf("  blast radius: %s without light", natural.Count(c.Remove.Len(), "circuit"))
	if len(line.NICs) > 0 {
		a.printf(", NICs %s", strings.Join(line.NICs, ", "))
	}
	switch {
	case c.Remove.Len() == 0:
		a.printf("\n  no outage: %s\n", basis)
	case outage >= 0:
		a.printf("\n  predicted outage of light: %s, from %s; link-up of the NICs comes on top\n", round(outage), basis)
	default:
		a.printf("\n  predicted outage of light: %s\n", basis)
	}
	return nil
}

// nicsAt names the NICs at both ends of a circuit, if any is known.
func (a *app) nicsAt(name string, c ocs.CrossConnect) []string {
	nics := a.nicNames(name)
	if nics[c.Ingress] == "" && nics[c.Egress] == "" {
		return nil
	}
	return []string{nics[c.Ingress], nics[c.Egress]}
}

// predictOutage says how long the light will be away, and how we know; a
// negative time means that we do not.
func (a *app) predictOutage(sw *lab.Opened, c ocs.Change) (time.Duration, string, error) {
	if c.Remove.Len() == 0 {
		return 0, "no circuit that is lit is touched", nil
	}
	log, err := a.history()
	if err != nil {
		return 0, "", err
	}
	entries, _, err := log.Entries()
	if err != nil {
		return 0, "", err
	}
	// Deleting alone is quick: it brings no light.
	entries = slices.DeleteFunc(entries, func(e history.Entry) bool { return e.Change.Add.Len() == 0 })
	if ack, n := history.MedianAck(entries, sw.Device); n > 0 {
		return ack, fmt.Sprintf("the median acknowledgement in the history (%d)", n), nil
	}
	if f := a.labFile(); f != nil {
		if s, ok := f.Switch(sw.Name); ok && s.Emulate != nil && s.Emulate.Switching != nil {
			return *s.Emulate.Switching, "emulate.switching in the lab file", nil
		}
	}
	return -1, "not known, as this switch has no history yet", nil
}

func (a *app) snapshotCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "snapshot [SWITCH...]",
		Short: "Write what switches hold as a plan file that restore takes",
		Long: `Write the cross-connects of switches as a plan file, to stdout or to --out.
Labels, shutters and monitor settings are not part of it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := a.names(args)
			if err != nil {
				return err
			}
			maps := map[string]ocs.Map{}
			for _, name := range names {
				sw, err := a.open(cmd.Context(), name)
				if err != nil {
					return err
				}
				if maps[name], err = sw.CrossConnects(cmd.Context()); err != nil {
					return err
				}
			}
			if out == "" {
				if a.set.JSON {
					for _, name := range names {
						a.json(struct {
							Kind   string  `json:"kind"`
							Switch string  `json:"switch"`
							Map    ocs.Map `json:"map"`
						}{"snapshot", name, maps[name]})
					}
					return nil
				}
				_, err := a.out.Write(snapshot(names, maps))
				return err
			}
			abs, err := filepath.Abs(out)
			if err != nil {
				return err
			}
			return statedir.WriteFile(abs, snapshot(names, maps))
		},
	}
	c.Flags().StringVarP(&out, "out", "o", "", "write to `FILE`")
	return c
}

func snapshot(names []string, maps map[string]ocs.Map) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Snapshot of %s; \"ocslab restore FILE\" brings it back.\nmode: overwrite\nswitches:\n", time.Now().Format(time.RFC3339))
	for _, name := range names {
		fmt.Fprintf(&b, "  %q: %q\n", name, maps[name].String())
	}
	return b.Bytes()
}

func (a *app) historyCommand() *cobra.Command {
	var n int
	c := &cobra.Command{
		Use:   "history [SWITCH]",
		Short: "List the changes made, newest last",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			log, err := a.history()
			if err != nil {
				return err
			}
			entries, problems, err := log.Entries()
			if err != nil {
				return err
			}
			for _, p := range problems {
				fmt.Fprintf(a.err, "ocslab: history: %v\n", p)
			}
			if len(args) == 1 {
				entries = slices.DeleteFunc(entries, func(e history.Entry) bool { return e.Switch != args[0] && e.Device != args[0] })
			}
			if n > 0 && len(entries) > n {
				entries = entries[len(entries)-n:]
			}
			a.list(entries)
			return nil
		},
	}
	c.Flags().IntVarP(&n, "last", "n", 0, "only the last `N`")
	return c
}

type historyLine struct {
	Kind     string  `json:"kind"` // "history"
	ID       int     `json:"id"`
	Began    string  `json:"began"` // RFC 3339
	Switch   string  `json:"switch"`
	Device   string  `json:"device"`
	Remove   ocs.Map `json:"remove"`
	Add      ocs.Map `json:"add"`
	State    string  `json:"state"`
	AckNS    int64   `json:"ack_ns"`
	UndoOf   int     `json:"undo_of"`
	UndoneBy int     `json:"undone_by"`
	Command  string  `json:"command"`
	Error    string  `json:"error"`
	Who      string  `json:"who,omitempty"`
	Group    int     `json:"group,omitempty"` // the first change of the operation that this one is part of

	Set []history.Setting `json:"set,omitempty"` // settings that are no circuits
}

func (a *app) list(entries []history.Entry) {
	t := table{align: ">"}
	for _, e := range entries {
		if a.set.JSON {
			a.json(historyLine{
				"history", e.ID, e.Began.Format(time.RFC3339Nano), e.Switch, e.Device, e.Change.Remove, e.Change.Add,
				string(e.State), e.AckNS, e.UndoOf, e.UndoneBy, e.Command, e.Error, e.Who, e.Group, e.Set,
			})
			continue
		}
		note := ""
		switch {
		case e.UndoneBy != 0:
			note = fmt.Sprintf("undone by %d", e.UndoneBy)
		case e.UndoOf != 0:
			note = fmt.Sprintf("undo of %d", e.UndoOf)
		}
		if e.Group != 0 && e.Group != e.ID {
			note = strings.TrimPrefix(note+fmt.Sprintf(", with %d", e.Group), ", ")
		}
		if e.State == history.Failed && e.Who != "" {
			note = strings.TrimPrefix(note+", asked by "+e.Who, ", ")
		}
		t.row(fmt.Sprint(e.ID), e.Began.Local().Format("2006-01-02 15:04:05"), e.Switch, whatOf(e), string(e.State), note)
	}
	if !a.set.JSON {
		if len(entries) == 0 {
			a.printf("no changes yet\n")
		}
		t.write(a.out, "")
	}
}

// whatOf says what an entry of the history changed.
func whatOf(e history.Entry) string {
	if len(e.Set) == 0 {
		return e.Change.String()
	}
	text := e.Set[0].String()
	if more := len(e.Set) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (a *app) undoCommand() *cobra.Command {
	var f changeFlags
	var on string
	c := &cobra.Command{
		Use:   "undo [ID]",
		Short: "Take a change back: the last one, or that of the history's ID",
		Long: `Take back what a change did, as far as it is still there. It is refused when
somebody else has used the ports since. An undo is a change, too: undo its ID
to redo. Without ID, repeated undos go back one change each.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := a.history()
			if err != nil {
				return err
			}
			e, err := a.toUndo(cmd.Context(), log, args, on)
			if err != nil {
				return err
			}
			entries, _, err := log.Entries()
			if err != nil {
				return err
			}
			if len(e.Set) > 0 {
				return a.undoSettings(cmd.Context(), f, e, cmp.Or(on, e.Switch))
			}
			intents := lab.Undo(entries, e)
			for i := range intents {
				of := entries[slices.IndexFunc(entries, func(x history.Entry) bool { return x.ID == intents[i].UndoOf })]
				if intents[i].On, err = a.openToUndo(cmd.Context(), of, on); err != nil {
					return err
				}
				intents[i].Switch = intents[i].On.Name
			}
			return a.changeAll(cmd.Context(), f, intents)
		},
	}
	f.add(c)
	c.Flags().StringVar(&on, "switch", "", "of the last change on this `SWITCH`")
	return c
}

// openToUndo opens the switch of a change that is to be undone: as the history has it, or by another name of the same.
func (a *app) openToUndo(ctx context.Context, e history.Entry, on string) (*lab.Opened, error) {
	name := e.Switch
	if on != "" {
		sw, err := a.open(ctx, on)
		if err != nil || sw.Device == e.Device {
			return sw, err
		}
		if e.Group == 0 {
			return nil, usagef("change %d was made to %s, but %s is %s", e.ID, e.Device, on, sw.Device)
		}
	}
	sw, err := a.open(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("change %d was on %s: %w", e.ID, e.Switch, err)
	}
	if sw.Device != e.Device {
		return nil, usagef("change %d was made to %s, but %s is %s", e.ID, e.Device, name, sw.Device)
	}
	return sw, nil
}

// undoSettings takes back settings that are no circuits.
func (a *app) undoSettings(ctx context.Context, f changeFlags, e history.Entry, name string) error {
	sw, err := a.openToUndo(ctx, e, name)
	if err != nil {
		return err
	}
	for _, s := range e.Set {
		a.printf("%s: %s\n", sw.Name, history.Setting{Kind: s.Kind, Port: s.Port, From: s.To, To: s.From})
	}
	if f.dryRun {
		return nil
	}
	return sw.Gate().UndoSettings(ctx, sw, e)
}

// toUndo finds the change that is meant.
func (a *app) toUndo(ctx context.Context, log *history.Log, args []string, on string) (history.Entry, error) {
	entries, _, err := log.Entries()
	if err != nil {
		return history.Entry{}, err
	}
	if len(args) == 1 {
		for _, e := range entries {
			if fmt.Sprint(e.ID) == args[0] {
				return e, nil
			}
		}
		return history.Entry{}, usagef("the history has no change %q: see \"ocslab history\"", args[0])
	}
	if on != "" {
		sw, err := a.open(ctx, on)
		if err != nil {
			return history.Entry{}, err
		}
		e, found, err := log.Last(sw.Device)
		if err == nil && !found {
			err = usagef("there is no change on %s to undo", on)
		}
		return e, err
	}
	// The newest of all devices.
	var newest history.Entry
	seen := map[string]bool{}
	for _, e := range entries {
		if seen[e.Device] {
			continue
		}
		seen[e.Device] = true
		last, found, err := log.Last(e.Device)
		if err != nil {
			return last, err
		}
		if found && last.ID > newest.ID {
			newest = last
		}
	}
	if newest.ID == 0 {
		return newest, usagef("there is no change to undo")
	}
	return newest, nil
}
