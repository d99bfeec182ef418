package netconfswitch

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Attenuation returns the loss that the attenuator at egress p keeps in its
// relative mode: that of the whole path, from the ingress that is connected, the
// loss of the mirrors included. In mode none it is zero. In the other modes the
// device does not say how much it attenuates, and that is an error that matches
// [ocs.ErrNotSupported].
func (sw *Switch) Attenuation(ctx context.Context, p ocs.Port) (ocs.DB, error) {
	const op = "read attenuation"
	if _, err := sw.attenuates(ctx, op); err != nil {
		return 0, err
	}
	var entry *netconf.Node
	a, err := sw.perPort(ctx, op, "voa", "<atten-mode/><atten-level/><reference-port/>", []ocs.Port{p}, func(q ocs.Port, n *netconf.Node) bool {
		if q == p {
			entry = n
		}
		return q == p
	})
	if err != nil {
		return 0, err
	}
	fail := func(why error, format string, args ...any) error {
		return sw.fail(op, "", string(a.raw), fmt.Errorf(format+": %w", append(args, why)...))
	}
	if entry == nil {
		return 0, fail(ocs.ErrNotSupported, "port %v has no attenuator", p)
	}
	switch mode := strings.TrimSpace(entry.Value("atten-mode")); mode {
	case "", "VOA_MODE_NONE":
		return 0, nil
	case "VOA_MODE_RELATIVE":
		if ref := strings.TrimSpace(entry.Value("reference-port")); ref != "" && ref != "0" {
			return 0, fail(ocs.ErrUntold, "the attenuator of port %v keeps its light relative to that of port %.5s", p, ref)
		}
		level, ok := setting(entry, "atten-level", 0)
		if !ok {
			return 0, sw.garbled(op, a, entry)
		}
		return ocs.DB(0 - level), nil
	default:
		return 0, fail(ocs.ErrUntold, "the attenuator of port %v is in mode %.40s, in which the device does not say how much it attenuates", p, mode)
	}
}

// SetAttenuation puts the attenuator at egress p in its relative mode, with the
// ingress that is connected as reference. What it keeps is the loss of the whole
// path, so that less than the loss of the mirrors has no effect. Zero switches
// the attenuator off.
func (sw *Switch) SetAttenuation(ctx context.Context, p ocs.Port, loss ocs.DB) error {
	const op = "set attenuation"
	err := finite(float64(loss))
	if err == nil && loss < 0 {
		err = fmt.Errorf("a loss of %v would be a gain", loss)
	}
	if err != nil {
		return sw.fail(op, "", "", err)
	}
	dev, err := sw.attenuates(ctx, op)
	if err != nil {
		return err
	}
	leaves := `<atten-mode>VOA_MODE_NONE</atten-mode>`
	if loss > 0 {
		leaves = `<atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>` + decimal(-float64(loss)) + `</atten-level><reference-port>0</reference-port>`
	}
	_, err = sw.do(ctx, dev.edit(op, opticalNS, "voa", entries([]ocs.Port{p}, leaves)))
	if errors.Is(err, ocs.ErrPort) {
		// It may have the port, but no attenuator there.
		if _, none := sw.Attenuation(ctx, p); errors.Is(none, ocs.ErrNotSupported) {
			return none
		}
	}
	return err
}

// attenuates returns what the device has announced, or that it has no
// attenuators that this driver knows how to set.
func (sw *Switch) attenuates(ctx context.Context, op string) (*announced, error) {
	dev, err := sw.device(ctx)
	if err == nil && dev.oldOptical {
		err = sw.fail(op, "", "", fmt.Errorf("attenuators of optical-switch before %s are not known: %w", pairSince, ocs.ErrNotSupported))
	}
	return dev, err
}
