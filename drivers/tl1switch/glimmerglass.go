package tl1switch

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// glimmerglass is the dialect of Glimmerglass units. Input k is port k there and
// here, but is written 10000+k; output k is written 20000+k and is port N+k of an
// N x M switch.
type glimmerglass struct{ sw *Switch }

const (
	inputBase  = 10000
	outputBase = 20000
)

func (*glimmerglass) has(code string) bool {
	switch code {
	case "RTRV-SYSTEM-INFO", "RTRV-CFG-FIBER", "RTRV-CRS-FIBER", "ENT-CRS-FIBER", "DLT-CRS-FIBER":
		return true
	}
	return false
}

func (*glimmerglass) keepAlive() time.Duration { return 0 }
func (*glimmerglass) fenced() bool             { return false }

func (d *glimmerglass) ask(ctx context.Context, op, code, aid string) (answer, error) {
	return d.sw.perform(ctx, request{op: op, code: code, aid: aid, again: true, read: true})
}

func (d *glimmerglass) identify(ctx context.Context) (ocs.Identity, error) {
	a, err := d.ask(ctx, opIdentify, "RTRV-SYSTEM-INFO", "")
	if err != nil {
		return ocs.Identity{}, err
	}
	said := map[string]string{}
	for _, line := range a.msg.Text {
		_, v := pairs(line)
		for key, value := range v {
			said[key] = value
		}
	}
	id := ocs.Identity{Vendor: "Glimmerglass", Model: said["CHASSISTYPE"], Serial: said["SERIALNUMBER"], Firmware: said["SOFTWAREACTIVEVERSION"]}
	if id.Geometry, err = ocs.ParseGeometry(said["LICENSEDPORTMATRIX"]); err != nil || id.Geometry.SingleSided {
		return ocs.Identity{}, d.sw.garbled(opIdentify, a, "LicensedPortMatrix="+said["LICENSEDPORTMATRIX"])
	}
	return id, nil
}

// geometry is asked for first, as the numbers of the outputs follow from it.
func (d *glimmerglass) geometry(ctx context.Context) (ocs.Geometry, error) {
	id, err := d.sw.identify(ctx)
	return id.Geometry, err
}

// port reads the device's number of a port. Zero is no port.
func (d *glimmerglass) port(g ocs.Geometry, s string) (p ocs.Port, ok bool) {
	n, err := strconv.Atoi(s)
	switch {
	case err != nil || n < 0:
		return 0, false
	case n == 0:
		return 0, true
	case n > outputBase && n < outputBase+inputBase:
		return ocs.Port(n - outputBase + g.Ingress), true
	case n > inputBase && n < outputBase:
		return ocs.Port(n - inputBase), true
	}
	return 0, false
}

// list is the AID that names ports; "all" when there are none.
func (d *glimmerglass) list(g ocs.Geometry, ports []ocs.Port) string {
	if len(ports) == 0 {
		return "all"
	}
	var aid []byte
	for i, p := range ports {
		n := p + inputBase
		if p > ocs.Port(g.Ingress) { // also of outputs beyond the licensed matrix
			n = p - ocs.Port(g.Ingress) + outputBase
		}
		aid = appendPort(aid, i, n)
	}
	return string(aid)
}

// fiber is a line of RTRV-CRS-FIBER: a connection, or a port without one.
type fiber struct {
	in, out ocs.Port // 0 where there is none
	values  map[string]string
}

func (d *glimmerglass) fibers(ctx context.Context, op string, g ocs.Geometry, ports []ocs.Port) ([]fiber, answer, error) {
	a, err := d.ask(ctx, op, "RTRV-CRS-FIBER", d.list(g, ports))
	if err != nil {
		return nil, a, err
	}
	var fs []fiber
	for _, line := range a.msg.Text {
		_, v := pairs(line)
		in, ok1 := d.port(g, v["IPORTID"])
		out, ok2 := d.port(g, v["OPORTID"])
		if !ok1 || !ok2 {
			return nil, a, d.sw.garbled(op, a, line)
		}
		fs = append(fs, fiber{in, out, v})
	}
	return fs, a, nil
}

// circuits are the connections among fs. One is listed once for each of the ports
// that were asked for.
func circuits(fs []fiber) []circuit {
	var cs []circuit
	seen := map[ocs.CrossConnect]bool{}
	for _, f := range fs {
		cc := ocs.CrossConnect{Ingress: f.in, Egress: f.out}
		if f.in == 0 || f.out == 0 || seen[cc] {
			continue
		}
		seen[cc] = true
		state := strings.ToLower(f.values["CONNSTATE"])
		c := circuit{ccs: []ocs.CrossConnect{cc}, owner: f.values["CONNLOCKUSER"], failed: state == "fault" || state == "single"}
		if lock := f.values["CONNLOCK"]; lock != "" && lock != "0" {
			c.locked = c.owner
			if c.locked == "" {
				c.locked = "somebody"
			}
		}
		cs = append(cs, c)
	}
	return cs
}

func (d *glimmerglass) crossConnects(ctx context.Context) (ocs.Map, error) {
	g, err := d.geometry(ctx)
	if err != nil {
		return ocs.Map{}, err
	}
	fs, a, err := d.fibers(ctx, opRead, g, nil)
	if err != nil {
		return ocs.Map{}, err
	}
	m, err := carrying(circuits(fs))
	return d.sw.mapOf(a, m, err)
}

// apply reads the ports of c, then sends at most one DLT-CRS-FIBER and one
// ENT-CRS-FIBER, or more with Config.MaxPairs.
func (d *glimmerglass) apply(ctx context.Context, w *work, c ocs.Change) error {
	g, err := d.geometry(ctx)
	if err != nil {
		return err
	}
	if err := g.Check(c.Add); err != nil {
		return d.sw.fail(opChange, "", "", err)
	}
	fs, a, err := d.fibers(ctx, opChange, g, c.Ports())
	if err != nil {
		return err
	}
	drop, add, err := arrange(circuits(fs), c, d.sw.cfg.User)
	if err != nil {
		return d.sw.fail(opChange, "", string(a.msg.Raw), err)
	}
	if len(drop) > 0 {
		ins := make([]ocs.Port, len(drop))
		for i, h := range drop {
			ins[i] = h.ccs[0].Ingress
		}
		if err := w.send(ctx, request{code: "DLT-CRS-FIBER", aid: d.list(g, ins)}); err != nil {
			return err
		}
	}
	mode := "OPMODE=sync"
	if d.sw.cfg.Async {
		mode = "OPMODE=async"
	}
	size := len(add)
	if most := d.sw.cfg.MaxPairs; most > 0 {
		size = most
	}
	for len(add) > 0 {
		var ins, outs []ocs.Port
		for _, cc := range add[:min(size, len(add))] {
			ins, outs = append(ins, cc.Ingress), append(outs, cc.Egress)
		}
		err := w.send(ctx, request{code: "ENT-CRS-FIBER", aid: d.list(g, ins) + "," + d.list(g, outs), blocks: []string{"", mode}})
		if err != nil {
			return w.partly(err)
		}
		add = add[len(ins):]
	}
	return nil
}

// power is what RTRV-CRS-FIBER shows of each end.
func (d *glimmerglass) power(ctx context.Context, ports []ocs.Port) (ocs.PowerReading, error) {
	g, err := d.geometry(ctx)
	if err != nil {
		return ocs.PowerReading{}, err
	}
	if err := d.sw.checkPorts(opPower, g, ports); err != nil {
		return ocs.PowerReading{}, err
	}
	fs, a, err := d.fibers(ctx, opPower, g, ports)
	if err != nil {
		return ocs.PowerReading{}, err
	}
	r := ocs.PowerReading{Ports: map[ocs.Port]ocs.DBm{}}
	asked := wanted(ports)
	want := func(p ocs.Port) bool { return g.Has(p) && asked(p) }
	for _, f := range fs {
		ok := f.in == 0 || enter(r.Ports, want, f.in, f.values["INPWR"])
		ok = ok && (f.out == 0 || enter(r.Ports, want, f.out, f.values["OUTPWR"]))
		if !ok {
			return ocs.PowerReading{}, d.sw.garbled(opPower, a, "INPWR="+f.values["INPWR"]+",OUTPWR="+f.values["OUTPWR"])
		}
	}
	r.Earliest, r.Latest = a.receipt.SendStart, a.receipt.Acked
	return r, nil
}

// labels are the port names.
func (d *glimmerglass) labels(ctx context.Context, ports []ocs.Port) (map[ocs.Port]string, error) {
	g, err := d.geometry(ctx)
	if err != nil {
		return nil, err
	}
	if err := d.sw.checkPorts(opLabels, g, ports); err != nil {
		return nil, err
	}
	a, err := d.ask(ctx, opLabels, "RTRV-CFG-FIBER", d.list(g, ports))
	if err != nil {
		return nil, err
	}
	labels := map[ocs.Port]string{}
	want := wanted(ports)
	for _, line := range a.msg.Text {
		_, v := pairs(line)
		p, ok := d.port(g, v["PORTID"])
		if !ok {
			return nil, d.sw.garbled(opLabels, a, line)
		}
		if name := v["PORTNAME"]; name != "" && g.Has(p) && want(p) {
			labels[p] = name
		}
	}
	return labels, nil
}
