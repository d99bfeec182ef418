package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
)

func (a *app) showCommand() *cobra.Command {
	var all, ports, log bool
	c := &cobra.Command{
		Use:   "show [SWITCH...]",
		Short: "Show identity, cross-connects, power, labels and shutters",
		Long: `Show what switches hold now. Powers are those of the switch's own monitors;
"-" where there is none. With --all, every port is listed, and every lane of transceivers;
with --log what their modules remember of the last switches.

With --ports, list the serial lines of this machine that a switch may be at, by the
USB identity of their adapters. None is opened.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if ports {
				if len(args) > 0 {
					return usagef("--ports lists the serial lines of this machine: name no switch")
				}
				return a.showSerialPorts()
			}
			names, err := a.names(args)
			if err != nil {
				return err
			}
			var errs []error // one switch that is away does not hide the others
			for i, name := range names {
				if i > 0 {
					a.printf("\n")
				}
				if err := a.show(cmd.Context(), name, all, log); err != nil {
					errs = append(errs, err)
				}
				if cmd.Context().Err() != nil {
					break
				}
			}
			return errors.Join(errs...)
		},
	}
	c.Flags().BoolVar(&ports, "ports", false, "list the serial lines of this machine")
	c.Flags().BoolVar(&log, "log", false, "print the log of transceivers")
	c.Flags().BoolVar(&all, "all", false, "list every port, also unused ones")
	return c
}

// view is what a switch says of itself at one time.
type view struct {
	id       ocs.Identity
	m        ocs.Map
	power    map[ocs.Port]ocs.DBm
	labels   map[ocs.Port]string
	shutters map[ocs.Port]bool
}

func readView(ctx context.Context, sw ocs.Switch) (view, error) {
	var v view
	var err error
	if v.id, err = sw.Identify(ctx); err != nil {
		return v, err
	}
	if v.m, err = sw.CrossConnects(ctx); err != nil {
		return v, err
	}
	// What a device cannot do is left out; what fails otherwise is an error.
	optional := func(err error) error {
		if errors.Is(err, ocs.ErrNotSupported) || errors.Is(err, ocs.ErrDenied) {
			return nil
		}
		return err
	}
	if pm, ok := ocs.As[ocs.PowerMeter](sw); ok {
		r, err := pm.Power(ctx)
		if optional(err) != nil {
			return v, err
		}
		v.power = r.Ports
	}
	if l, ok := ocs.As[ocs.Labeler](sw); ok {
		if v.labels, err = l.Labels(ctx); optional(err) != nil {
			return v, err
		}
	}
	if s, ok := ocs.As[ocs.Shutter](sw); ok {
		if v.shutters, err = s.Shutters(ctx); optional(err) != nil {
			return v, err
		}
	}
	return v, nil
}

type switchLine struct {
	Kind     string `json:"kind"` // "switch"
	Switch   string `json:"switch"`
	Vendor   string `json:"vendor"`
	Model    string `json:"model"`
	Serial   string `json:"serial"`
	Firmware string `json:"firmware"`
	Size     string `json:"size"`
	Circuits int    `json:"cross_connects"`
}

// leaseLine says which ports only one program may move while it runs.
type leaseLine struct {
	Kind   string    `json:"kind"` // "lease"
	Switch string    `json:"switch"`
	Ports  string    `json:"ports"` // "1-16,33-48"
	Holder string    `json:"holder"`
	PID    int       `json:"pid"`
	Since  time.Time `json:"since"`
}

// leases are those in force on a device.
func (a *app) leases(device string) ([]lease.Lease, error) {
	dir, err := a.stateDir()
	if err != nil {
		return nil, err
	}
	return lease.InForce(dir, device)
}

type circuitLine struct {
	Kind     string   `json:"kind"` // "cross-connect"
	Switch   string   `json:"switch"`
	Ingress  ocs.Port `json:"ingress"`
	Egress   ocs.Port `json:"egress"`
	InPower  *ocs.DBm `json:"in_power_dbm"` // null where there is no monitor
	OutPower *ocs.DBm `json:"out_power_dbm"`
}

type portLine struct {
	Kind    string   `json:"kind"` // "port"
	Switch  string   `json:"switch"`
	Port    ocs.Port `json:"port"`
	Role    string   `json:"role"` // "ingress", "egress" or "either"
	Peer    ocs.Port `json:"peer"` // 0 if not connected
	Power   *ocs.DBm `json:"power_dbm"`
	Shutter string   `json:"shutter"` // "open", "closed", or "" if unknown
	Label   string   `json:"label"`
	NIC     string   `json:"nic"`
}

func (a *app) show(ctx context.Context, name string, all, log bool) error {
	sw, err := a.open(ctx, name)
	if err != nil {
		return err
	}
	v, err := readView(ctx, sw)
	if err != nil {
		return err
	}
	leases, err := a.leases(sw.Device)
	if err != nil {
		return err
	}
	nics := a.nicNames(sw.Name)
	power := func(p ocs.Port) *ocs.DBm {
		if x, ok := v.power[p]; ok {
			return &x
		}
		return nil
	}
	if a.set.JSON {
		a.json(switchLine{"switch", sw.Name, v.id.Vendor, v.id.Model, v.id.Serial, v.id.Firmware, v.id.Geometry.String(), v.m.Len()})
		for _, l := range leases {
			a.json(leaseLine{"lease", sw.Name, ocs.FormatPorts(l.Ports), l.Holder, l.PID, l.Since.UTC()})
		}
		for c := range v.m.All() {
			a.json(circuitLine{"cross-connect", sw.Name, c.Ingress, c.Egress, power(c.Ingress), power(c.Egress)})
		}
		for _, p := range v.id.Geometry.Ports() {
			if line := v.port(sw.Name, p, nics); all || line.notable() {
				line.Power = power(p)
				a.json(line)
			}
		}
		return a.showModules(ctx, sw.Name, sw, all, log)
	}
	a.printf("%s  %s %s, serial %s, firmware %s, %v\n", sw.Name, v.id.Vendor, v.id.Model, v.id.Serial, v.id.Firmware, v.id.Geometry)
	if v.m.Len() > 0 {
		t := table{align: ">>.>>>."}
		t.row("ingress", "egress", "", "in dBm", "out dBm", "loss dB", "")
		for c := range v.m.All() {
			in, out := power(c.Ingress), power(c.Egress)
			loss := "-"
			if in != nil && out != nil && *in >= ocs.NoLight {
				loss = fmt.Sprintf("%.2f", float64(in.Sub(*out)))
			}
			t.row(c.Ingress.String(), c.Egress.String(), v.ends(c, nics), dbm(in), dbm(out), loss, v.closedAt(c))
		}
		t.write(a.out, "  ")
	}
	g := v.id.Geometry
	if g.Known() {
		a.printf("  %d cross-connects; free: %s\n", v.m.Len(), v.free())
	} else {
		a.printf("  %d cross-connects\n", v.m.Len())
	}
	for _, l := range leases {
		a.printf("  leased: ports %s, by %s since %s (process %d)\n", ocs.FormatPorts(l.Ports), l.Holder, l.Since.Local().Format("15:04:05"), l.PID)
	}
	t := table{align: ">...."}
	for _, p := range g.Ports() {
		line := v.port(sw.Name, p, nics)
		if all || line.notable() && line.Peer == 0 {
			t.row(p.String(), line.Role, dbm(power(p))+" dBm", line.Shutter, line.NIC, cmp.Or(line.Label, g.PortName(p)))
		}
	}
	if len(t.rows) > 0 {
		a.printf("  ports\n")
		t.write(a.out, "    ")
	}
	return a.showModules(ctx, sw.Name, sw, all, log)
}

func dbm(p *ocs.DBm) string {
	if p == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", float64(*p))
}

func (v *view) port(name string, p ocs.Port, nics map[ocs.Port]string) portLine {
	l := portLine{Kind: "port", Switch: name, Port: p, Label: v.labels[p], NIC: nics[p]}
	g := v.id.Geometry
	switch {
	case g.SingleSided:
		l.Role = "either"
	case g.IsIngress(p):
		l.Role = "ingress"
	default:
		l.Role = "egress"
	}
	for _, c := range v.m.At(p) {
		l.Peer = c.Ingress + c.Egress - p
	}
	if closed, known := v.shutters[p]; known {
		l.Shutter = "open"
		if closed {
			l.Shutter = "closed"
		}
	}
	return l
}

// notable reports whether there is more to say of the port than that it
// exists.
func (l portLine) notable() bool { return l.Label != "" || l.NIC != "" || l.Shutter == "closed" }

// ends names what is at both ends of a circuit: NICs, or labels.
func (v *view) ends(c ocs.CrossConnect, nics map[ocs.Port]string) string {
	end := func(p ocs.Port) string {
		return cmp.Or(nics[p], v.labels[p], v.id.Geometry.PortName(p))
	}
	in, out := end(c.Ingress), end(c.Egress)
	if in == "" && out == "" {
		return ""
	}
	if in == "" {
		in = "?"
	}
	if out == "" {
		out = "?"
	}
	return in + " > " + out
}

func (v *view) closedAt(c ocs.CrossConnect) string {
	var s []string
	for _, p := range []ocs.Port{c.Ingress, c.Egress} {
		if v.shutters[p] {
			s = append(s, fmt.Sprintf("shutter %d closed", p))
		}
	}
	return strings.Join(s, ", ")
}

func (v *view) free() string {
	g := v.id.Geometry
	unused := func(ports []ocs.Port) []ocs.Port {
		return slices.DeleteFunc(ports, func(p ocs.Port) bool { return len(v.m.At(p)) > 0 })
	}
	if g.SingleSided {
		return "ports " + orNone(ocs.FormatPorts(unused(g.Ports())))
	}
	return "ingress " + orNone(ocs.FormatPorts(unused(g.IngressPorts()))) + ", egress " + orNone(ocs.FormatPorts(unused(g.EgressPorts())))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// nicNames returns the NICs of the lab by the ports they are on.
func (a *app) nicNames(name string) map[ocs.Port]string {
	names := map[ocs.Port]string{}
	f := a.labFile()
	if f == nil {
		return names
	}
	for _, h := range f.Hosts {
		for _, n := range h.NICs {
			for _, p := range []lab.PortRef{n.Tx, n.Rx} {
				if p.Switch == name {
					names[p.Port] = n.FullName()
				}
			}
		}
	}
	return names
}

// labFile returns the lab file if a lab is open.
func (a *app) labFile() *lab.File {
	if a.bench == nil {
		return nil
	}
	return a.bench.File
}
