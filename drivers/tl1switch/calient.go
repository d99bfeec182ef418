package tl1switch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// calient is the dialect of Calient S-series units. Each of their ports is an input and an
// output: input k of n is port k, its output is port n+k. What they are called, "7" or
// "1.2.3", is what RTRV-PORT lists.
type calient struct {
	sw      *Switch
	twoStep TwoStep // TwoStepLearn until it is known
	names   []string
	numbers map[string]ocs.Port // of the inputs, by name
}

func (*calient) has(code string) bool {
	switch code {
	case "RTRV-NE", "RTRV-HDR", "RTRV-PORT", "RTRV-PORT-SUM", "RTRV-CRS", "ENT-CRS", "ACT-CRS", "CANC-CRS", "DLT-CRS":
		return true
	}
	return false
}

// The interval is that of a public client; after which time a unit ends an idle
// session is not known.
func (*calient) keepAlive() time.Duration { return time.Minute }

func (*calient) fenced() bool { return true }

func (d *calient) ask(ctx context.Context, op, code, aid string, long bool, blocks ...string) (answer, error) {
	return d.sw.perform(ctx, request{op: op, code: code, aid: aid, blocks: blocks, again: true, read: true, long: long})
}

// geometry reads the table of ports, once: with another one the numbers would mean
// other ports.
func (d *calient) geometry(ctx context.Context) (ocs.Geometry, error) {
	if d.names == nil {
		a, err := d.ask(ctx, opIdentify, "RTRV-PORT", "0", true)
		if err != nil {
			return ocs.Geometry{}, err
		}
		numbers := map[string]ocs.Port{}
		var names []string
		for _, line := range a.msg.Text {
			name, _ := pairs(line)
			if name == "" || numbers[name] != 0 {
				return ocs.Geometry{}, d.sw.garbled(opIdentify, a, line)
			}
			names = append(names, name)
			numbers[name] = ocs.Port(len(names))
		}
		if len(names) == 0 || len(names) > int(ocs.MaxPort)/2 {
			return ocs.Geometry{}, d.sw.fail(opIdentify, "", string(a.msg.Raw), fmt.Errorf("the device lists %d ports", len(names)))
		}
		d.names, d.numbers = names, numbers
	}
	return ocs.TwoSided(len(d.names), len(d.names)), nil
}

func (d *calient) identify(ctx context.Context) (ocs.Identity, error) {
	a, err := d.ask(ctx, opIdentify, "RTRV-NE", "", false)
	if err != nil && !errors.Is(err, ocs.ErrNotSupported) {
		return ocs.Identity{}, err
	}
	id := ocs.Identity{Vendor: "Calient"}
	for _, line := range a.msg.Text {
		if _, v := pairs(line); v["SERIALNUMBER"] != "" {
			id.Model, id.Serial, id.Firmware = v["CHASSISTYPE"], v["SERIALNUMBER"], v["SWPACKAGE"]
		}
	}
	id.Geometry, err = d.geometry(ctx)
	return id, err
}

// circuits reads the table of connections.
func (d *calient) circuits(ctx context.Context, op string) ([]circuit, answer, error) {
	if _, err := d.geometry(ctx); err != nil {
		return nil, answer{}, err
	}
	a, err := d.ask(ctx, op, "RTRV-CRS", "", true, "ALL")
	if err != nil {
		return nil, a, err
	}
	n := ocs.Port(len(d.names))
	var cs []circuit
	for _, line := range a.msg.Text {
		head, v := pairs(line)
		src, dst := d.numbers[v["SRCPORT"]], d.numbers[v["DSTPORT"]]
		if src == 0 || dst == 0 {
			return nil, a, d.sw.garbled(op, a, line)
		}
		c := circuit{name: v["CONNNAME"], owner: v["GRPNAME"]}
		if c.name == "" {
			c.name = head
		}
		c.ccs = []ocs.CrossConnect{{Ingress: src, Egress: n + dst}}
		if strings.EqualFold(v["CONNTYPE"], "2WAY") && src != dst {
			c.ccs = append(c.ccs, ocs.CrossConnect{Ingress: dst, Egress: n + src})
		}
		oc, told := v["OC"]
		c.failed = told && !strings.EqualFold(oc, "OK")
		cs = append(cs, c)
	}
	return cs, a, nil
}

func (d *calient) crossConnects(ctx context.Context) (ocs.Map, error) {
	cs, a, err := d.circuits(ctx, opRead)
	if err != nil {
		return ocs.Map{}, err
	}
	m, err := carrying(cs)
	return d.sw.mapOf(a, m, err)
}

// apply reads the table of connections, removes by name with CANC-CRS and DLT-CRS,
// and makes one-way connections with ENT-CRS and, where that is needed, ACT-CRS: no
// bulk command is known well enough.
func (d *calient) apply(ctx context.Context, w *work, c ocs.Change) error {
	g, err := d.geometry(ctx)
	if err != nil {
		return err
	}
	if err := g.Check(c.Add); err != nil {
		return d.sw.fail(opChange, "", "", err)
	}
	have, a, err := d.circuits(ctx, opChange)
	if err != nil {
		return err
	}
	drop, add, err := arrange(have, c, d.sw.cfg.Group)
	if err != nil {
		return d.sw.fail(opChange, "", string(a.msg.Raw), err)
	}
	for _, h := range drop {
		if err := d.remove(ctx, w, h.name); err != nil {
			return err
		}
	}
	for _, cc := range add {
		if err := d.connect(ctx, w, cc.Ingress, cc.Egress-ocs.Port(len(d.names))); err != nil {
			return err
		}
	}
	return nil
}

// change sends a request that changes something. Public clients of these units take some words
// for a failure wherever they come, so those are looked for in a reply that says COMPLD, too.
func (d *calient) change(ctx context.Context, w *work, r request) error {
	a, err := w.exchange(ctx, r)
	if err != nil {
		return w.partly(err)
	}
	text := strings.Join(append(a.msg.Comments, a.msg.Text...), "; ")
	if lower := strings.ToLower(text); strings.Contains(lower, "failed") || strings.Contains(lower, "invalid") {
		err := &tl1.Error{Completion: tl1.COMPLD, Text: text, CTAG: a.msg.CTAG}
		return d.sw.fail(opChange, "", string(a.msg.Raw), err)
	}
	return nil
}

// remove deletes a connection. That it was not active is no reason to stop.
func (d *calient) remove(ctx context.Context, w *work, name string) error {
	name = connection(name)
	if d.twoStep != TwoStepNever {
		err := d.change(ctx, w, request{code: "CANC-CRS", blocks: []string{name}})
		var refused *tl1.Error
		if err != nil && !errors.As(err, &refused) {
			return err
		}
	}
	return d.change(ctx, w, request{code: "DLT-CRS", blocks: []string{name}})
}

// connect makes a one-way connection between two ports of the device.
func (d *calient) connect(ctx context.Context, w *work, from, to ocs.Port) error {
	src, dst := d.names[from-1], d.names[to-1]
	aid, name, group := src+","+dst, src+">"+dst, tl1.Quote(d.sw.cfg.Group)
	if err := d.change(ctx, w, request{code: "ENT-CRS", aid: aid, blocks: []string{group + ",1WAY"}}); err != nil {
		return err
	}
	activate := d.twoStep == TwoStepAlways
	if d.twoStep == TwoStepLearn {
		var err error
		if activate, err = d.inactive(ctx, src, name); err != nil {
			return w.partly(err)
		}
	}
	if !activate {
		return nil
	}
	return d.change(ctx, w, request{code: "ACT-CRS", aid: aid, blocks: []string{connection(name) + "," + group}})
}

// inactive reports whether a connection that was just made still waits for its activation,
// and remembers what that says of the unit.
func (d *calient) inactive(ctx context.Context, src, name string) (bool, error) {
	a, err := d.ask(ctx, opChange, "RTRV-PORT-SUM", src, false)
	if err != nil {
		return false, err
	}
	for _, line := range a.msg.Text {
		_, v := pairs(line)
		for _, i := range [...]string{"1", "2"} {
			if v["CONNNAME"+i] != name {
				continue
			}
			d.twoStep = TwoStepAlways
			if strings.EqualFold(v["CONNSTATE"+i], "ACT") {
				d.twoStep = TwoStepNever
			}
			return d.twoStep == TwoStepAlways, nil
		}
	}
	return false, d.sw.garbled(opChange, a, strings.Join(a.msg.Text, " "))
}

// connection writes the name of a connection as public clients do, unless
// that could be mistaken.
func connection(name string) string {
	if strings.ContainsAny(name, " ,:;&=()\"\\") {
		return tl1.QuoteAlways(name)
	}
	return name
}

// summary reads RTRV-PORT-SUM and calls line for each port that may be among those wanted.
func (d *calient) summary(ctx context.Context, op string, ports []ocs.Port, line func(p ocs.Port, v map[string]string) bool) (answer, error) {
	g, err := d.geometry(ctx)
	if err != nil {
		return answer{}, err
	}
	if err := d.sw.checkPorts(op, g, ports); err != nil {
		return answer{}, err
	}
	aid, n := "0", ocs.Port(g.Ingress)
	if len(ports) == 1 {
		aid = d.names[(ports[0]-1)%n]
	}
	a, err := d.ask(ctx, op, "RTRV-PORT-SUM", aid, aid == "0")
	if err != nil {
		return a, err
	}
	for _, text := range a.msg.Text {
		name, v := pairs(text)
		if p := d.numbers[name]; p == 0 || !line(p, v) {
			return a, d.sw.garbled(op, a, text)
		}
	}
	return a, nil
}

func (d *calient) power(ctx context.Context, ports []ocs.Port) (ocs.PowerReading, error) {
	r := ocs.PowerReading{Ports: map[ocs.Port]ocs.DBm{}}
	want := wanted(ports)
	a, err := d.summary(ctx, opPower, ports, func(p ocs.Port, v map[string]string) bool {
		return enter(r.Ports, want, p, v["INPWR"]) && enter(r.Ports, want, p+ocs.Port(len(d.names)), v["OUTPWR"])
	})
	if err != nil {
		return ocs.PowerReading{}, err
	}
	r.Earliest, r.Latest = a.receipt.SendStart, a.receipt.Acked
	return r, nil
}

// enter stores a power in dBm, unless there is none, and reports whether it could be read.
func enter(into map[ocs.Port]ocs.DBm, want func(ocs.Port) bool, p ocs.Port, s string) bool {
	if s == "" || strings.EqualFold(s, "NONE") || strings.EqualFold(s, "NA") || !want(p) {
		return true
	}
	x, ok := number(s)
	if ok {
		into[p] = ocs.DBm(x)
	}
	return ok
}

// labels are the aliases; that of a port is that of its input and its output.
func (d *calient) labels(ctx context.Context, ports []ocs.Port) (map[ocs.Port]string, error) {
	labels := map[ocs.Port]string{}
	want := wanted(ports)
	_, err := d.summary(ctx, opLabels, ports, func(p ocs.Port, v map[string]string) bool {
		alias := v["ALIAS"]
		for _, q := range [...]ocs.Port{p, p + ocs.Port(len(d.names))} {
			if want(q) && alias != "" && !strings.EqualFold(alias, "NONE") {
				labels[q] = alias
			}
		}
		return true
	})
	return labels, err
}
