package tl1switch

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/ocs"
)

// What is done, for messages.
const (
	opIdentify = "identify"
	opRead     = "read cross-connects"
	opChange   = "change circuits"
	opPower    = "read power"
	opLabels   = "read labels"
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

func (sw *Switch) identify(ctx context.Context) (ocs.Identity, error) {
	if sw.id != nil {
		return *sw.id, nil
	}
	id, err := sw.d.identify(ctx)
	if err == nil && id.Geometry.Known() {
		sw.id = &id
	}
	return id, err
}

// CrossConnects returns what the device holds. Circuits that it lists as failed
// are not among them: they carry no light.
func (sw *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if err := sw.take(ctx, opRead); err != nil {
		return ocs.Map{}, err
	}
	defer sw.turn.Pass()
	return sw.d.crossConnects(ctx)
}

// Apply carries out a change; see [ocs.Switch]. How many requests that takes
// depends on the dialect, see the package documentation.
func (sw *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if c.Empty() {
		return ocs.Receipt{}, nil
	}
	if err := sw.take(ctx, opChange); err != nil {
		return ocs.Receipt{}, err
	}
	defer sw.turn.Pass()
	w := work{sw: sw}
	err := sw.d.apply(ctx, &w, c)
	return w.total, err
}

// mapOf makes a map of what a reply listed.
func (sw *Switch) mapOf(a answer, m ocs.Map, err error) (ocs.Map, error) {
	if err != nil {
		// Not wrapped: nobody asked for anything that could be a conflict.
		return m, sw.fail(opRead, "", string(a.msg.Raw), fmt.Errorf("the device contradicts itself: %v", err))
	}
	return m, nil
}

func parsePort(s string) (ocs.Port, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return ocs.Port(n), err
}

// garbled is the error for a line of a reply that cannot be understood.
func (sw *Switch) garbled(op string, a answer, line string) error {
	return sw.fail(op, "", string(a.msg.Raw), fmt.Errorf("cannot understand %.60q in the reply", sw.hide.text(line)))
}
