package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/panels"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// panelFlags are those of a patch list that is brought about.
type panelFlags struct {
	apply, leave bool
	writeLab     string
	fibres       int
	switching    time.Duration
}

func (f *panelFlags) add(a *app, c *cobra.Command) {
	s := c.Flags()
	s.BoolVar(&f.apply, "apply", false, "bring the patch list about on the lab, whose switches are patch panels")
	s.BoolVar(&f.leave, "leave", true, "with --apply, leave it so; --leave=false puts back what was there")
	s.StringVar(&f.writeLab, "write-lab", "", "write an emulated lab with patch panels for it to `FILE`; - is stdout")
	s.IntVar(&f.fibres, "fibres", 0, "with --write-lab, room for `N` fibres between neighbours (default as many as are needed)")
	s.DurationVar(&f.switching, "switching", 0, "with --write-lab, how long the panels take (default as the model)")
	a.addMode(c, string(ocs.Safe))
}

// check refuses flags that do not go together.
func (f *panelFlags) check(cmd *cobra.Command) error {
	for _, x := range []struct {
		with  bool
		name  string
		names []string
	}{{f.apply, "apply", []string{"leave", "mode"}}, {f.writeLab != "", "write-lab", []string{"fibres", "switching"}}} {
		for _, name := range x.names {
			if cmd.Flags().Changed(name) && !x.with {
				return usagef("--%s goes with --%s", name, x.name)
			}
		}
	}
	switch {
	case f.apply && f.writeLab != "":
		return usagef("--write-lab writes a lab, and --apply drives one: one at a time")
	case f.fibres < 0 || f.switching < 0:
		return usagef("--fibres %d, --switching %v: want 0 or more", f.fibres, f.switching)
	}
	return nil
}

// writePanels writes a lab for a result.
func (a *app) writePanels(f fibresFlags, r *fibre.Result) error {
	room, err := f.room(max(1, f.panels.fibres))
	if err != nil {
		return err
	}
	if f.panels.fibres == 0 {
		room.Fibres = max(1, r.Fibres)
	}
	text, err := panels.LabFile(room, panels.LabOptions{Switching: f.panels.switching, Seed: f.seed})
	if err != nil {
		return usageError{err}
	}
	if f.panels.writeLab == "-" {
		_, err := a.out.Write(text)
		return err
	}
	if err := writeOut(f.panels.writeLab, text, false); err != nil {
		return err
	}
	a.printf("written to %s; try: ocslab --lab %[1]s --emulated topology pccl fibres ... --apply\n", f.panels.writeLab)
	return nil
}

// room returns the servers that --servers says.
func (f *fibresFlags) room(fibres int) (panels.Room, error) {
	rows, columns, _ := strings.Cut(f.servers, "x") // fibre.ParseGrid has read it
	r := panels.Room{Fibres: fibres}
	var first, second error
	r.Rows, first = strconv.Atoi(rows)
	r.Columns, second = strconv.Atoi(columns)
	return r, errors.Join(first, second)
}

// applyFibres brings a patch list about on the lab.
func (a *app) applyFibres(ctx context.Context, f fibresFlags, p *fibre.Patch) error {
	file, err := a.file()
	if err != nil {
		return err
	}
	if file == nil {
		return usagef("--apply needs --lab FILE: \"ocslab topology pccl fibres --servers %s ... --write-lab FILE\" writes an emulated one", f.servers)
	}
	opt, err := a.sequenceOptions(file, "fibres", fmt.Sprintf("PCCL: %s between %s", natural.Count(len(p.Result.Requests), "circuit"),
		natural.Count(p.Result.Graph.Servers(), "server")))
	if err != nil {
		return err
	}
	opt.Leave = f.panels.leave
	room, err := f.room(p.Result.Fibres)
	if err != nil {
		return err
	}
	tell := a.progress()
	tell.set("%s", natural.Count(len(p.Fibres), "fibre"))
	r, err := panels.Apply(ctx, file, room, p, opt)
	tell.done()
	if r != nil && r.Run != "" {
		a.printPatched(r, f.patch, f.panels.leave)
	}
	return panelError(err)
}

// panelError has what the lab or the sizes lack be an error of usage.
func panelError(err error) error {
	for _, bad := range []error{panels.ErrRoom, pccl.ErrSize, pccl.ErrArgument} {
		if errors.Is(err, bad) {
			return usageError{err}
		}
	}
	return err
}

// Lines of JSON.
type (
	// fibrePatched is a fibre that was brought about.
	fibrePatched struct {
		Kind    string             `json:"kind"` // "fibre-patched"
		From    int                `json:"from"`
		To      int                `json:"to"`
		Number  int                `json:"number"`
		Circuit int                `json:"circuit"`
		Hop     int                `json:"hop"`
		Switch  string             `json:"switch"`
		Ingress ocs.Port           `json:"ingress"`
		Egress  ocs.Port           `json:"egress"`
		Held    bool               `json:"held"` // read back
		Light   *timeline.Interval `json:"light,omitempty"`
	}
	// fibresApplied is what a patch list came to.
	fibresApplied struct {
		Kind     string `json:"kind"` // "fibres-applied"
		Run      string `json:"run"`
		Panels   int    `json:"panels"`
		Fibres   int    `json:"fibres"` // that were read back as they should be
		Kept     int    `json:"kept"`
		Removed  int    `json:"removed"`
		Left     int    `json:"left"`
		Lit      int    `json:"lit"`      // whose light was seen to come
		Circuits int    `json:"circuits"` // that were followed
	}
)

func (a *app) printPatched(r *panels.Report, list, left bool) {
	done := fibresApplied{Kind: "fibres-applied", Run: r.Run, Panels: r.Panels, Kept: r.Kept, Removed: r.Removed, Left: r.Left, Circuits: r.Circuits}
	var lights []timeline.Interval
	t := table{align: ">>>><>>>>"}
	t.row("FROM", "TO", "FIBRE", "CIRCUIT", "PANEL", "IN", "OUT", "READ BACK", "LIGHT ms")
	for _, x := range r.Fibres {
		line := fibrePatched{Kind: "fibre-patched", From: x.From, To: x.To, Number: x.Number, Circuit: x.Circuit, Hop: x.Hop,
			Switch: x.Sender.Tx.Switch, Ingress: x.Sender.Tx.Port, Egress: x.Receiver.Rx.Port, Held: x.Held}
		held, light := "no", "-"
		if x.Held {
			done.Fibres++
			held = "yes"
		}
		if x.Light != (timeline.Interval{}) {
			line.Light = &x.Light
			lights = append(lights, x.Light)
			light = fmt.Sprintf("%.1f", inMS(x.Light.Mid()))
		}
		if a.set.JSON {
			a.json(line)
		}
		t.row(strconv.Itoa(x.From), strconv.Itoa(x.To), strconv.Itoa(x.Number), strconv.Itoa(x.Circuit), line.Switch,
			line.Ingress.String(), line.Egress.String(), held, light)
	}
	done.Lit = len(lights)
	if a.set.JSON {
		a.json(done)
		return
	}
	if list {
		a.printf("\n")
		t.write(a.out, "")
		a.printf("\n")
	}
	a.printf("%s: %s on %s, %d there before; %s removed\n", r.Run, natural.Count(len(r.Fibres), "fibre"), natural.Count(r.Panels, "panel"),
		r.Kept, natural.Count(r.Removed, "other circuit"))
	if r.Left > 0 {
		a.printf("%s between servers' ports that are not in the list are left: --mode update removes them\n", natural.Count(r.Left, "circuit"))
	}
	a.printf("read back: %d of %d; %s followed from server to server\n", done.Fibres, len(r.Fibres), natural.Count(r.Circuits, "circuit"))
	if len(lights) > 0 {
		a.printf("light came on %s, p50 / p99 %s ms after the command\n", natural.Count(len(lights), "fibre"), quantiles(lights))
	}
	if !left {
		a.printf("and what was there before was put back\n")
	}
	a.printf("\"ocslab runs show %s\" has every mark, \"ocslab report %[1]s\" a page\n", r.Run)
}

func (a *app) fibresDemoCommand() *cobra.Command {
	f := fibresFlags{demo: true, panels: panelFlags{leave: true}}
	c := &cobra.Command{
		Use:   "fibres",
		Short: "Circuits between servers over the fewest fibres, patched on emulated panels",
		Long: `Draw circuits between servers, route them so that the two neighbours with the most fibres have
as few as possible (PCCL, algorithm 4), beside a bound that no routing can beat, and bring
the patch list about on emulated patch panels, each behind a real socket. All fibres are
read back, and every circuit is followed from server to server through what the panels
hold. The run is recorded.`,
		Example: "  ocslab demo fibres\n  ocslab demo fibres --servers 4x4 --circuits 40 --seed 7",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := fibre.ParseGrid(f.servers); err != nil {
				return usagef("--servers: %w", err)
			}
			room, err := f.room(1)
			if err != nil {
				return err
			}
			if f.panels.switching < 0 {
				return usagef("--switching %v: want 0 or more", f.panels.switching)
			}
			with, err := a.executionOptions()
			if err != nil {
				return err
			}
			r, err := panels.Demo(cmd.Context(), panels.DemoOptions{
				Options: sequence.Options{Options: with, About: "The demonstration of fibres", Args: []string{"ocslab", "demo", "fibres"}, Leave: true},
				Rows:    room.Rows, Columns: room.Columns, Circuits: f.circuits, Directed: f.directed, Switching: f.panels.switching, Seed: f.seed,
				Routed: func(r *fibre.Result, p *fibre.Patch, took time.Duration) {
					if a.set.JSON {
						a.jsonFibres(r, p, f, took)
						return
					}
					a.printFibres(r, p, f, took)
					a.printf("\n")
				},
			})
			if r != nil && r.Run != "" {
				a.printPatched(r, f.list, true)
			}
			return panelError(err)
		},
	}
	s := c.Flags()
	s.StringVar(&f.servers, "servers", "8x8", "`ROWSxCOLUMNS` of the grid")
	s.IntVar(&f.circuits, "circuits", 100, "how many are drawn at random")
	s.Uint64Var(&f.seed, "seed", 1, "of the circuits")
	s.BoolVar(&f.directed, "directed", false, "count the fibres of each direction on their own")
	s.BoolVar(&f.list, "list", false, "print every fibre, and what was read back")
	s.DurationVar(&f.panels.switching, "switching", 0, "how long the panels take (default as the model)")
	return c
}
