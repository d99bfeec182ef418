package netconfswitch

import (
	"context"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// perPort asks for leaves of ports in a container, and calls line with each
// port of the reply.
func (sw *Switch) perPort(ctx context.Context, op, container, leaves string, ports []ocs.Port, line func(p ocs.Port, n *netconf.Node) bool) (answer, error) {
	a, err := sw.do(ctx, get(op, container, entries(ports, leaves)))
	if err != nil {
		return a, err
	}
	found := 0
	if list := a.reply.Data.Child("", container); list != nil {
		for _, n := range list.Children {
			if n.Name.Local != "port" {
				continue
			}
			p, err := parsePort(n.Value("port-id"))
			if err != nil || !line(p, n) {
				return a, sw.garbled(op, a, n)
			}
			found++
		}
	}
	if found < len(ports) {
		return a, sw.exist(ctx, op, ports)
	}
	return a, nil
}

// exist reports a port that the device does not have, as far as its size is
// known: not every device says so when it is asked about one.
func (sw *Switch) exist(ctx context.Context, op string, ports []ocs.Port) error {
	id, err := sw.Identify(ctx)
	if err != nil {
		return err
	}
	for _, p := range ports {
		if !id.Geometry.Has(p) {
			return sw.fail(op, "", "", &ocs.PortError{Port: p, Geometry: id.Geometry, Reason: "is not a port"})
		}
	}
	return nil
}

// device returns what the device has announced.
func (sw *Switch) device(ctx context.Context) (*announced, error) {
	s, _, err := sw.session(ctx)
	if err != nil {
		return nil, err
	}
	return &s.dev, nil
}

// Shutters reads the states of ports with one get. A port that has failed or
// that cannot be closed is neither open nor closed, and left out.
func (sw *Switch) Shutters(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]bool, error) {
	dev, err := sw.device(ctx)
	if err != nil {
		return nil, err
	}
	container, leaf, prefix := "port-config", "status", ""
	if dev.oldOptical {
		container, leaf, prefix = "ports", "port-status", "PO_"
	}
	closed := map[ocs.Port]bool{}
	_, err = sw.perPort(ctx, "read shutters", container, "<"+leaf+"/>", ports, func(p ocs.Port, n *netconf.Node) bool {
		status, ok := strings.CutPrefix(strings.TrimSpace(n.Value(leaf)), prefix)
		switch status {
		case "ENABLED", "DISABLED":
			closed[p] = status == "DISABLED"
		case "FAILED", "UNSUPPORTED", "":
		default:
			return false
		}
		return ok || status == ""
	})
	if err != nil {
		return nil, err
	}
	return closed, nil
}

// SetShutters sends one port-set-state.
func (sw *Switch) SetShutters(ctx context.Context, closed bool, ports ...ocs.Port) error {
	if len(ports) == 0 {
		return nil
	}
	op, leaf := "open shutters", "port-enab"
	if closed {
		op, leaf = "close shutters", "port-disab"
	}
	var b strings.Builder
	b.WriteString(`<port-set-state xmlns="` + opticalNS + `">`)
	for _, p := range ports {
		fmt.Fprintf(&b, "<%s>%d</%s>", leaf, p, leaf)
	}
	b.WriteString(`</port-set-state>`)
	_, err := sw.do(ctx, request{op: op, body: b.String()})
	return err
}

// labels returns where labels are kept.
func (a *announced) labels() (container, leaf string) {
	if a.oldOptical {
		return "ports", "port-label"
	}
	return "port-config", "label"
}

// Labels reads with one get.
func (sw *Switch) Labels(ctx context.Context, ports ...ocs.Port) (map[ocs.Port]string, error) {
	dev, err := sw.device(ctx)
	if err != nil {
		return nil, err
	}
	container, leaf := dev.labels()
	labels := map[ocs.Port]string{}
	_, err = sw.perPort(ctx, "read labels", container, "<"+leaf+"/>", ports, func(p ocs.Port, n *netconf.Node) bool {
		if label := n.Value(leaf); label != "" {
			labels[p] = label
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return labels, nil
}

// SetLabel sends one edit-config. The empty label is the default of the leaf.
func (sw *Switch) SetLabel(ctx context.Context, p ocs.Port, label string) error {
	const op = "set label"
	text, err := escape(label)
	if err != nil {
		return sw.fail(op, "", "", err)
	}
	dev, err := sw.device(ctx)
	if err != nil {
		return err
	}
	container, leaf := dev.labels()
	_, err = sw.do(ctx, dev.edit(op, opticalNS, container, entries([]ocs.Port{p}, "<"+leaf+">"+text+"</"+leaf+">")))
	return err
}
