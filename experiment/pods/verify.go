package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

// opposite returns why the switches of pairs are not what makes links, by what was read back of them. The error matches
// [ocs.ErrVerify].
func (a *applying) opposite(held map[string]ocs.Map, pairs []crosswiring.Pair) error {
	f := a.to.Fabric()
	circuits, err := a.cables.Circuits(held)
	if err != nil {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
	}
	maps.DeleteFunc(circuits, func(s crosswiring.Switch, _ []crosswiring.Circuit) bool { return !slices.Contains(pairs, f.PairOf(s)) })
	var fibres []crosswiring.Fibre
	for x := range f.AllFibres() {
		if slices.Contains(pairs, f.PairOf(x.Switch)) {
			fibres = append(fibres, x)
		}
	}
	r, err := walk.Walk(fibres, circuits)
	if err != nil {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
	}
	return wrong(r)
}

// wrong returns the violations of a walk as an error.
func wrong(r *walk.Result) error {
	switch n := len(r.Violations); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("%w: %w", ocs.ErrVerify, r.Violations[0])
	default:
		return fmt.Errorf("%w: %w; and %d more", ocs.ErrVerify, r.Violations[0], n-1)
	}
}

// verify reads all switches, follows the light of every port, and compares the links with those of the plan.
func (a *applying) verify(ctx context.Context) error {
	circuits, held, err := a.cables.read(ctx, a.session.Testbed.Lab, a.opt.Off)
	if err != nil {
		if errors.Is(err, ErrLab) {
			return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
		}
		return err
	}
	r, err := walk.Walk(a.to.Fabric().Fibres(), circuits)
	if err != nil {
		return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
	}
	if err := wrong(r); err != nil {
		return err
	}
	if err := a.compare(r.Links); err != nil {
		return err
	}
	if err := a.lit(ctx, held); err != nil {
		return err
	}
	a.report.Followed = len(r.Links)
	return a.session.Event("verified", fmt.Sprintf("light followed both ways along %s", natural.Count(len(r.Links), "link")))
}

// compare returns which link is missing, or is not in the plan.
func (a *applying) compare(found []crosswiring.PortLink) error {
	want := map[crosswiring.PortLink]bool{}
	for _, l := range a.to.Links() {
		want[l] = true
	}
	for _, l := range found {
		if !want[l] {
			return fmt.Errorf("%w: light joins %v, which is not planned", ocs.ErrVerify, l)
		}
		delete(want, l)
	}
	for _, l := range a.to.Links() {
		if want[l] {
			return fmt.Errorf("%w: no light joins %v (%s of %d are missing)", ocs.ErrVerify, l, natural.Count(len(want), "link"), len(want)+len(found))
		}
	}
	return nil
}

// patience is how long light that was not seen to come is waited for in the end: monitors average.
const patience = 2 * time.Second

// mostLoss is more than what any circuit of a switch loses.
const mostLoss ocs.DB = 15

// lit returns why light does not go where the circuits say, as far as there are monitors: a mirror can be stuck
// although its switch says otherwise. Where no light goes in nothing can be said. The error matches [ocs.ErrVerify].
func (a *applying) lit(ctx context.Context, held map[string]ocs.Map) error {
	names := slices.Sorted(maps.Keys(held))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			errs[i] = experiment.Guard(func() error { return a.litOn(ctx, name, held[name]) })
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (a *applying) litOn(ctx context.Context, name string, circuits ocs.Map) error {
	sw, err := a.session.Testbed.Lab.Switch(ctx, name)
	if err != nil {
		return err
	}
	meter, ok := ocs.As[ocs.PowerMeter](sw)
	if !ok || circuits.Len() == 0 {
		return nil
	}
	for until := time.Now().Add(patience); ; {
		reading, err := meter.Power(ctx)
		if err != nil {
			return err
		}
		dark := a.unlit(name, circuits, reading)
		if len(dark) == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%w: %s says that it holds %v, and light goes in at port %d and does not come out at port %d (%s of %d do so)",
				ocs.ErrVerify, name, dark[0], dark[0].Ingress, dark[0].Egress, natural.Count(len(dark), "circuit"), circuits.Len())
		}
		if err := pause.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// unlit returns the circuits of the fabric into which light goes and out of which none comes.
func (a *applying) unlit(name string, circuits ocs.Map, reading ocs.PowerReading) (dark []ocs.CrossConnect) {
	for c := range circuits.All() {
		if _, ours := a.cables.inputs[topology.Port{Switch: name, Port: c.Ingress}]; !ours {
			continue
		}
		in, known := reading.Ports[c.Ingress]
		out, also := reading.Ports[c.Egress]
		if known && also && out < ocs.NoLight && in > ocs.NoLight+ocs.DBm(mostLoss) {
			dark = append(dark, c)
		}
	}
	return dark
}
