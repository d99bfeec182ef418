package scpiswitch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/drivers/internal/polatiscard"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// Identify returns what the device says of itself. It is asked until it has
// told its size, then no more.
func (sw *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	if err := sw.take(ctx, opIdentify); err != nil {
		return ocs.Identity{}, err
	}
	defer sw.turn.Pass()
	return sw.identify(ctx)
}

const opIdentify = "identify"

// identify is Identify for who has the turn. The size is in the reply to SIZE?
// or, for a device that does not know that, in the product code, and only there
// when a device is single-sided.
func (sw *Switch) identify(ctx context.Context) (ocs.Identity, error) {
	if sw.id != nil {
		return *sw.id, nil
	}
	a, err := sw.perform(ctx, request{op: opIdentify, query: "*IDN?"})
	if err != nil {
		return ocs.Identity{}, err
	}
	// Vendor, model, serial number, firmware (IEEE 488.2, 10.14.3).
	f := strings.Split(a.data, ",")
	if len(f) != 4 {
		return ocs.Identity{}, sw.garbled(opIdentify, a)
	}
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	id := ocs.Identity{Vendor: f[0], Model: f[1], Serial: f[2], Firmware: f[3], Geometry: polatiscard.Geometry(f[1])}
	if !id.Geometry.SingleSided {
		a, err := sw.perform(ctx, request{op: opIdentify, query: ":OXC:SWIT:SIZE?"})
		switch {
		case err == nil:
			var ok bool
			if id.Geometry, ok = parseSize(a.data); !ok {
				return ocs.Identity{}, sw.garbled(opIdentify, a)
			}
		case !errors.Is(err, ocs.ErrNotSupported):
			return ocs.Identity{}, err
		}
	}
	if id.Geometry.Known() {
		sw.id = &id
	}
	return id, nil
}

// parseSize reads the reply to SIZE?, "16,16". One side without ports is a
// single-sided device, however that says it.
func parseSize(s string) (ocs.Geometry, bool) {
	var n [2]int
	values, err := scpi.ParseValues(s)
	if err != nil || len(values) == 0 || len(values) > len(n) {
		return ocs.Geometry{}, false
	}
	for i, v := range values {
		x, err := strconv.ParseUint(v, 10, 15)
		if err != nil || i == 0 && x == 0 {
			return ocs.Geometry{}, false
		}
		n[i] = int(x)
	}
	if n[1] == 0 {
		return ocs.SingleSided(n[0]), true
	}
	return ocs.TwoSided(n[0], n[1]), true
}

// garbled is the error for a reply that cannot be understood.
func (sw *Switch) garbled(op string, a answer) error {
	return sw.fail(op, "", a.data, fmt.Errorf("cannot understand the reply %.60q", a.data))
}

// CrossConnects returns what the device holds.
func (sw *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	const op = "read cross-connects"
	a, err := sw.do(ctx, request{op: op, query: ":OXC:SWIT:CONN:STAT?"})
	if err != nil {
		return ocs.Map{}, err
	}
	lists, err := scpi.ParseLists(a.data)
	if err != nil || len(lists) != 2 {
		return ocs.Map{}, sw.garbled(op, a)
	}
	in, out := lists[0], lists[1]
	if len(in) != len(out) {
		return ocs.Map{}, sw.fail(op, "", a.data, fmt.Errorf("the device names %d ingress but %d egress ports", len(in), len(out)))
	}
	ccs := make([]ocs.CrossConnect, len(in))
	for i := range in {
		ccs[i] = ocs.CrossConnect{Ingress: ocs.Port(in[i]), Egress: ocs.Port(out[i])}
	}
	m, err := ocs.NewMap(ccs...)
	if err != nil {
		// Not wrapped: nobody asked for anything that could be a conflict.
		return m, sw.fail(op, "", a.data, fmt.Errorf("the device contradicts itself: %v", err))
	}
	return m, nil
}
