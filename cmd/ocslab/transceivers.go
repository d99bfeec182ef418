package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

type moduleLine struct {
	Kind     string  `json:"kind"` // "module"
	Switch   string  `json:"switch"`
	Module   int     `json:"module"` // from 1
	Serial   string  `json:"serial"`
	State    string  `json:"state"`
	Fault    string  `json:"fault"` // "ok" if there is none
	FaultAt  string  `json:"fault_at"`
	Celsius  float64 `json:"temperature_c"`
	Volts    float64 `json:"supply_v"`
	Switches uint32  `json:"switches"` // in its life
	LastNS   int64   `json:"last_switch_dur_ns"`
}

type laneLine struct {
	Kind   string  `json:"kind"` // "lane"
	Switch string  `json:"switch"`
	Module int     `json:"module"`
	Lane   int     `json:"lane"` // from 1
	Path   string  `json:"path"`
	Lock   string  `json:"lock"`
	Sent   float64 `json:"launched_uw"`
	Fibre1 float64 `json:"fibre1_uw"`
	Fibre2 float64 `json:"fibre2_uw"`
	Loop   float64 `json:"loop_uw"`
	Rx1    float64 `json:"rx_fibre1_uw"`
	Rx2    float64 `json:"rx_fibre2_uw"`
	RxLoop float64 `json:"rx_loop_uw"`
}

type moduleLogLine struct {
	Kind     string `json:"kind"` // "module-switch"
	Switch   string `json:"switch"`
	Module   int    `json:"module"`
	Sequence uint32 `json:"sequence"`
	AtNS     int64  `json:"at_ns"` // since the module started, modulo 2^32 µs
	From     string `json:"from"`
	To       string `json:"to"`
	Lanes    string `json:"lanes"` // as ocs.ParsePorts reads it
	Result   string `json:"result"`
	DurNS    int64  `json:"dur_ns"`
}

// showModules tells of the modules of a transceiver, if sw is one.
func (a *app) showModules(ctx context.Context, name string, sw ocs.Switch, all, log bool) error {
	trx, ok := ocs.As[*ocstrx.Switch](sw)
	if !ok {
		if log {
			return fmt.Errorf("%s keeps no log that can be read: %w", name, ocs.ErrNotSupported)
		}
		return nil
	}
	modules, err := trx.Telemetry(ctx)
	if err != nil {
		return err
	}
	t := table{align: ">...>>>>"}
	t.row("module", "serial", "state", "fault", "case °C", "supply V", "switches", "last")
	for _, m := range modules {
		fault := m.Fault.String()
		if m.FaultAt != "" {
			fault += " (" + m.FaultAt + ")"
		}
		if a.set.JSON {
			a.json(moduleLine{"module", name, m.Slot + 1, m.Serial, m.State.String(), m.Fault.String(), m.FaultAt, m.Celsius, m.Volts, m.Switches, int64(m.LastDuration)})
		}
		t.row(fmt.Sprint(m.Slot+1), m.Serial, m.State.String(), fault, fmt.Sprintf("%.1f", m.Celsius), fmt.Sprintf("%.2f", m.Volts), fmt.Sprint(m.Switches), micro(m.LastDuration))
	}
	if !a.set.JSON {
		t.write(a.out, "  ")
	}
	if all {
		a.showLanes(name, modules)
	}
	if !log {
		return nil
	}
	return a.showLog(ctx, name, trx)
}

func (a *app) showLanes(name string, modules []ocstrx.Telemetry) {
	t := table{align: ">>..>>>>>>>"}
	t.row("module", "lane", "path", "lock", "sent µW", "fibre 1", "fibre 2", "loop", "rx 1", "rx 2", "rx loop")
	for _, m := range modules {
		for i, l := range m.Lanes {
			powers := []cmis.Power{l.Launched, l.Fibre1, l.Fibre2, l.Loop, l.Rx1, l.Rx2, l.RxLoop}
			if a.set.JSON {
				a.json(laneLine{"lane", name, m.Slot + 1, i + 1, l.Path.String(), l.Lock.String(), powers[0].Microwatts(), powers[1].Microwatts(),
					powers[2].Microwatts(), powers[3].Microwatts(), powers[4].Microwatts(), powers[5].Microwatts(), powers[6].Microwatts()})
				continue
			}
			row := []string{fmt.Sprint(m.Slot + 1), fmt.Sprint(i + 1), l.Path.String(), l.Lock.String()}
			for _, p := range powers {
				row = append(row, fmt.Sprintf("%.1f", p.Microwatts()))
			}
			t.row(row...)
		}
	}
	if !a.set.JSON {
		t.write(a.out, "  ")
	}
}

func (a *app) showLog(ctx context.Context, name string, trx *ocstrx.Switch) error {
	logs, err := trx.Log(ctx)
	if err != nil {
		return err
	}
	t := table{align: ">>>....>"}
	t.row("module", "switch", "at", "from", "to", "lanes", "result", "took")
	for slot, log := range logs {
		for _, e := range log {
			at := time.Duration(e.At) * time.Microsecond
			lanes := ocs.FormatPorts(lanesOf(e.Mask))
			if a.set.JSON {
				a.json(moduleLogLine{"module-switch", name, slot + 1, e.Sequence, int64(at), e.From.String(), e.To.String(), lanes, e.Result.String(), int64(e.Duration)})
				continue
			}
			t.row(fmt.Sprint(slot+1), fmt.Sprint(e.Sequence), at.Round(time.Microsecond).String(), e.From.String(), e.To.String(), lanes, e.Result.String(), micro(e.Duration))
		}
	}
	if !a.set.JSON {
		t.write(a.out, "  ")
	}
	return nil
}

func lanesOf(mask uint8) (lanes []ocs.Port) {
	for lane := range ocst.Lanes {
		if mask>>lane&1 != 0 {
			lanes = append(lanes, ocs.Port(lane+1))
		}
	}
	return lanes
}

// micro writes a time in microseconds, "-" for none.
func micro(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f µs", float64(d)/1e3)
}

type partLine struct {
	Kind   string `json:"kind"` // "part"
	Switch string `json:"switch"`
	Part   string `json:"part"` // "module 3"
	DurNS  int64  `json:"dur_ns"`
}

// tellParts prints what the parts of a device say of their share in a change.
func (a *app) tellParts(name string, r ocs.Receipt) {
	if a.set.JSON {
		for _, p := range r.Parts {
			a.json(partLine{"part", name, p.Name, int64(p.Took)})
		}
		return
	}
	var said []string
	for _, p := range r.Parts {
		said = append(said, p.Name+" "+micro(p.Took))
	}
	if len(said) > 0 {
		a.printf("by their own clocks: %s\n", strings.Join(said, ", "))
	}
}

// wishOf reads a map, or the name of a path that all lanes of transceivers are to take.
func (a *app) wishOf(ctx context.Context, name, text string) (ocs.Map, error) {
	paths := []string{"path1", "path2", "loop"}
	path := slices.Index(paths, text)
	if path < 0 {
		return ocs.ParseMap(text)
	}
	sw, err := a.open(ctx, name)
	if err != nil {
		return ocs.Map{}, err
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return ocs.Map{}, err
	}
	g := id.Geometry
	if g.Lanes == 0 {
		return ocs.Map{}, fmt.Errorf("%s is no transceiver, and %q no map: want one such as 1>33,2>34: %w", sw.Name, text, ocs.ErrNotSupported)
	}
	var all []ocs.CrossConnect
	for i, p := range g.IngressPorts() {
		to := i
		if path == 2 { // the lower half of a module's lanes to the upper, and back
			to = i - i%g.Lanes + (i%g.Lanes+g.Lanes/2)%g.Lanes
		}
		all = append(all, ocs.CrossConnect{Ingress: p, Egress: g.EgressPorts()[path*g.Ingress+to]})
	}
	return ocs.NewMap(all...)
}

type restartLine struct {
	Kind   string `json:"kind"` // "restarted"
	Switch string `json:"switch"`
	DurNS  int64  `json:"dur_ns"`
}

func (a *app) restartCommand() *cobra.Command {
	var dark bool
	c := &cobra.Command{
		Use:   "restart SWITCH",
		Short: "Restart the matrix of a switch, or the modules of a bundle",
		Long: `Restart a switch. It interrupts all light. A switch that holds circuits is refused
unless --dark allows it. The faults of transceivers are cleared by nothing else.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			sw, err := a.open(ctx, args[0])
			if err != nil {
				return err
			}
			r, ok := ocs.As[ocs.Restarter](sw)
			if !ok {
				return fmt.Errorf("%s cannot be restarted from here: %w", sw.Name, ocs.ErrNotSupported)
			}
			m, err := sw.CrossConnects(ctx)
			switch {
			case err != nil && !dark:
				return fmt.Errorf("%w; what it holds is not known, and --dark restarts it all the same", err)
			case m.Len() > 0 && !dark:
				return fmt.Errorf("%s holds %v, which a restart interrupts: allow it with --dark: %w", sw.Name, m, ocs.ErrConflict)
			}
			began := time.Now()
			if err := r.Restart(ctx); err != nil {
				return err
			}
			took := time.Since(began)
			if a.set.JSON {
				a.json(restartLine{"restarted", sw.Name, int64(took)})
			}
			a.printf("%s has restarted, acknowledged in %s\n", sw.Name, round(took))
			return nil
		},
	}
	c.Flags().BoolVar(&dark, "dark", false, "also when that interrupts light")
	return c
}
