package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

func (a *app) emulateCommand() *cobra.Command {
	var model, name string
	var at endpointFlags
	var hosts hostFlags
	var seed uint64
	var faults, stuck, dark []string
	var board boardFlags
	c := &cobra.Command{
		Use:   "emulate",
		Short: "Serve emulated switches until interrupted",
		Long: `Serve one emulated switch of --model, or all switches of a lab file that have
an emulate section. Log in as admin with the password root.

A switch is served in every language that its model speaks, at once and over one
matrix: TL1, TL1 in an SSH shell, SCPI, and NETCONF over SSH. An address of "none"
leaves one out. --serial makes a pseudo-terminal at a path, for TL1 and SCPI.

Models: ` + strings.Join(emulator.Models(), ", ") + `,
or a .yaml file of your own.

Transceivers: ` + strings.Join(ocstrx.Models(), ", ") + `. A board with such modules speaks the
controller link over TCP (--ocstrx) and over --serial. --table and --ambient say in which state they come.
Faults of transceivers are, in all modules or with MODULE/ before them in one:
  heater-open:ELEMENT, heater-short:ELEMENT, weak-heater:ELEMENT, of 1-36, with .a or .b of one arm
  stuck-pd:ARRAY:LANE, swapped-taps:ARRAY:LANE:[ARRAY:]LANE
  laser-low, laser-step, hot
of their line noise:P and drop:P, the probability that a byte is changed or lost, and power-off or
power-off:TIME, no power at all from the beginning or from that time on. NAME= before a fault has
it in one switch of a lab only: n06-l=power-off:5s. The elements are S1 of the
lanes (1-8), S2 (9-16) and the loop network, column by column (17-36); the arrays of photodiodes out1, out2,
loop, rx1, rx2, rx-loop and launched.

Faults of other switches, on the wire, are KIND:VERB[:TIMES[:AFTER]] with KIND one of
deny, lose, hang, close, ctag, flood, twice, shred; for example close:ENT-PATCH:1,
hang:OXC.SWIT.CONN.ADD, deny:EDIT-CONFIG.

With --fabric the hosts of the lab are there, too: network namespaces with real
interfaces that have carrier where there is light, and pass packets along circuits.
A lab file is written that leads to all of it, for "ocslab watch", "ocslab measure" and
"ocslab connect" in other terminals, as if it were real.`,
		Example: "  ocslab emulate --model polatis-6000-32x32 --tl1 127.0.0.1:3082 --netconf 127.0.0.1:1830\n  ocslab emulate --lab examples/opus-testbed.yaml --json\n  ocslab emulate --lab examples/opus-testbed.yaml --fabric --firmware quick\n  ocslab emulate --lab hbd.yaml --fault n06-l=power-off:5s --fault n06-r=power-off:5s",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := a.emulations(cmd, model, name, seed, &at)
			if err != nil {
				return err
			}
			if err := board.set(cmd, list); err != nil {
				return err
			}
			if err := hosts.check(model); err != nil {
				return err
			}
			hosts.options.Seed = seed
			if hosts.on {
				if done, err := enter(); done || err != nil {
					return err
				}
			}
			if err := addFaults(list, faults); err != nil {
				return err
			}
			stuckPorts, err := ocs.ParsePorts(strings.Join(stuck, ","))
			if err != nil {
				return err
			}
			darkPorts, err := ocs.ParsePorts(strings.Join(dark, ","))
			if err != nil {
				return err
			}
			for _, n := range slices.Concat(stuckPorts, darkPorts) {
				if err := portOfAny(list, n); err != nil {
					return err
				}
			}
			return a.serve(cmd.Context(), list, &hosts, func(d *emulator.Device) {
				d.Stick(stuckPorts...)
				d.Unlight(darkPorts...)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&model, "model", "", "`NAME` of the model, or a .yaml file")
	if err := c.RegisterFlagCompletionFunc("model", cobra.FixedCompletions(lab.Models(), cobra.ShellCompDirectiveDefault)); err != nil {
		panic(err) // the flag is there
	}
	f.StringVar(&name, "name", "", "`NAME` of the switch (default the model)")
	at.add(f)
	f.Uint64Var(&seed, "seed", 0, "seed of all that is random")
	f.StringArrayVar(&faults, "fault", nil, "`FAULT` of the wire or the device, or NAME=FAULT of one switch; may be repeated")
	f.StringArrayVar(&stuck, "stuck", nil, "`PORTS` whose mirrors are jammed")
	hosts.add(f)
	board.add(f)
	f.StringArrayVar(&dark, "dark", nil, "`PORTS` that pass no light")
	return c
}

// portOfAny returns an error unless one of the switches has port n.
func portOfAny(list []lab.Emulation, n ocs.Port) error {
	var g ocs.Geometry
	for _, e := range list {
		var err error
		if e.Transceivers != nil {
			continue // heaters and photodiodes fail there, see --fault
		}
		if g, err = ocs.ParseGeometry(e.Personality.Size); err != nil {
			return err
		}
		if g.Has(n) {
			return nil
		}
	}
	if g == (ocs.Geometry{}) {
		return usagef("--stuck and --dark are for switches with mirrors; transceivers have --fault")
	}
	return &ocs.PortError{Port: n, Geometry: g, Reason: "is not a port"}
}

// emulations returns what is to be served.
func (a *app) emulations(cmd *cobra.Command, model, name string, seed uint64, at *endpointFlags) ([]lab.Emulation, error) {
	if model != "" {
		e, err := lab.EmulationOf(model)
		if err != nil {
			return nil, usageError{err}
		}
		e.Name, e.Seed = name, seed
		if err := at.set(&e); err != nil {
			return nil, err
		}
		return []lab.Emulation{e}, nil
	}
	if a.set.Lab == "" && !a.set.Emulated {
		return nil, usagef("want --model NAME or --lab FILE; models: %s", strings.Join(lab.Models(), ", "))
	}
	if name != "" || at.given() {
		return nil, usagef("--name and addresses go with --model")
	}
	f, err := a.file()
	if err != nil {
		return nil, err
	}
	var list []lab.Emulation
	cabling := f.Cabling()
	for _, s := range f.Switches {
		if s.Emulate == nil {
			continue
		}
		e, err := f.Emulation(s.Name)
		if err != nil {
			return nil, usageError{err}
		}
		if cmd.Flags().Changed("seed") {
			e.Seed = seed
		}
		e.Cabling = cabling
		if err := at.set(&e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	if len(list) == 0 {
		return nil, usagef("%s: no switch has an emulate section", a.set.Lab)
	}
	return list, nil
}

// addFaults injects faults, each in the words of what is emulated: in all of list, or in the one whose name
// is before a "=".
func addFaults(list []lab.Emulation, faults []string) error {
	for _, s := range faults {
		name, fault, named := strings.Cut(s, "=")
		if !named {
			fault = s
		}
		there := false
		for i := range list {
			if named && list[i].Name != name {
				continue
			}
			there = true
			if err := addFault(&list[i], fault); err != nil {
				return err
			}
		}
		if !there {
			return usagef("--fault %s: no switch %q is emulated here", s, name)
		}
	}
	return nil
}

// addFault injects a fault into one switch.
func addFault(e *lab.Emulation, fault string) error {
	t := e.Transceivers
	if t == nil {
		f, err := emulator.ParseFault(fault)
		if err != nil {
			return usageError{err}
		}
		e.Faults = append(e.Faults, f)
		return nil
	}
	f, err := ocstrx.ParseFault(fault)
	if err != nil {
		return usageError{err}
	}
	slot, _, _ := strings.Cut(fault, "/")
	if n, err := strconv.Atoi(slot); err == nil && n > t.Personality.Modules {
		return usagef("--fault %s: %s has modules 1 to %d", fault, t.Personality.Model, t.Personality.Modules)
	}
	t.Faults = append(t.Faults, f)
	return nil
}

// boardFlags say in which state transceivers come.
type boardFlags struct {
	table   string
	ambient float64
}

func (b *boardFlags) add(f *pflag.FlagSet) {
	f.StringVar(&b.table, "table", "factory", "calibration `TABLE` of transceivers: factory, none, damaged")
	f.Float64Var(&b.ambient, "ambient", 25, "temperature around transceivers, `CELSIUS`")
}

func (b *boardFlags) set(cmd *cobra.Command, list []lab.Emulation) error {
	given := cmd.Flags().Changed("table") || cmd.Flags().Changed("ambient")
	state, states := ocstrx.TableState(b.table), []ocstrx.TableState{ocstrx.TableFactory, ocstrx.TableNone, ocstrx.TableDamaged}
	if !slices.Contains(states, state) {
		return usagef("--table %q: want factory, none or damaged", b.table)
	}
	if !(b.ambient >= -40 && b.ambient <= 125) { // NaN is neither
		return usagef("--ambient %g: want -40 to 125 °C", b.ambient)
	}
	for i := range list {
		if t := list[i].Transceivers; t != nil {
			t.Table, t.Ambient = state, &b.ambient
			given = false
		}
	}
	if given {
		return usagef("--table and --ambient are for transceivers; models: %s", strings.Join(ocstrx.Models(), ", "))
	}
	return nil
}

type readyLine struct {
	Kind   string `json:"kind"` // "ready"
	Device string `json:"device"`
	Model  string `json:"model"`
	// Endpoints are addresses, URLs what a driver is opened with, both by
	// protocol.
	Endpoints map[lab.Endpoint]string `json:"endpoints"`
	URLs      map[lab.Endpoint]string `json:"urls"`
	HostKey   string                  `json:"host_key"` // SSH fingerprint
}

// printReady says where an emulated switch is.
func (a *app) printReady(r *lab.Emulated) {
	urls := r.URLs()
	delete(urls, lab.Serial) // the other two say more
	if a.set.JSON {
		a.json(readyLine{"ready", r.Name(), r.Model(), r.Endpoints, urls, r.HostKey})
		return
	}
	a.printf("%s is a %s at\n", r.Name(), r.Model())
	for _, at := range slices.Sorted(maps.Keys(urls)) {
		a.printf("  '%s'\n", urls[at])
	}
}

// serve runs emulated switches until ctx ends.
func (a *app) serve(ctx context.Context, list []lab.Emulation, hosts *hostFlags, prepare func(*emulator.Device)) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running []*lab.Emulated
	defer func() {
		for _, e := range running {
			err = errors.Join(err, e.Close())
		}
	}()
	for _, e := range list {
		r, err := e.Start()
		if err != nil {
			return err
		}
		if r.Device != nil {
			prepare(r.Device)
		}
		running = append(running, r)
		a.printReady(r)
	}
	if hosts.on {
		f, hostsErr := a.serveHosts(hosts, running)
		if hostsErr != nil {
			return hostsErr
		}
		defer func() { err = errors.Join(err, f.Close()) }()
	}
	if slices.ContainsFunc(running, func(r *lab.Emulated) bool { return r.Device != nil }) {
		a.printf("log in as admin, password %s; ", lab.EmulatedPassword)
	}
	a.printf("Ctrl-C ends\n")
	var all sync.WaitGroup
	for _, r := range running {
		all.Go(func() {
			if err := r.Wait(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", r.Name(), err))
			}
		})
	}
	<-ctx.Done()
	all.Wait()
	if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
		return cause
	}
	return nil // ending it is the ordinary way
}
