package hbd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// enough is the power from which there is light: what receivers of OCSTrx need, and more than the elements leak into the
// paths that are not taken. It is 50 µW, or -13 dBm.
const enough cmis.Power = 500

// teller is a bundle that says how its modules are.
type teller interface {
	Telemetry(ctx context.Context) ([]ocstrx.Telemetry, error)
	Lanes(ctx context.Context, slots ...int) ([]ocst.LaneStatus, ocs.Receipt, error)
}

// look is what a bundle said once.
type look struct {
	ref     Ref
	at      timeline.Interval // from before it was asked until it had answered
	modules []ocstrx.Telemetry
	err     error
}

// switchOf returns the switch of a bundle, and what tells of its modules.
func (d *Domain) switchOf(ctx context.Context, r Ref) (*lab.Opened, teller, error) {
	sw, err := d.lab.Switch(ctx, d.Name(r))
	if err != nil {
		return nil, nil, err
	}
	t, ok := ocs.As[teller](sw)
	if !ok {
		return nil, nil, fmt.Errorf("%w: %s is no bundle of OCSTrx", ErrLab, d.Name(r))
	}
	return sw, t, nil
}

// look asks one bundle, within a time; 0 is as long as it takes.
func (d *Domain) look(ctx context.Context, r Ref, within time.Duration) look {
	if within > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	from := time.Now()
	_, t, err := d.switchOf(ctx, r)
	var modules []ocstrx.Telemetry
	if err == nil {
		modules, err = t.Telemetry(ctx)
	}
	return look{ref: r, at: timeline.HostAxis().Span(from, time.Now()), modules: modules, err: err}
}

// lookAll asks bundles, all at the same time.
func (d *Domain) lookAll(ctx context.Context, refs []Ref, within time.Duration) (map[Ref]look, error) {
	all := make([]look, len(refs))
	index := map[Ref]int{}
	for i, r := range refs {
		index[r] = i
	}
	err := d.each(refs, func(r Ref) error {
		all[index[r]] = d.look(ctx, r, within)
		return nil
	})
	byRef := map[Ref]look{}
	for _, l := range all {
		byRef[l.ref] = l
	}
	if err == nil {
		err = context.Cause(ctx)
	}
	return byRef, err
}

// state returns the state of the bundle; see [StateOf].
func (l *look) state() (infinitehbd.State, error) {
	if l.err != nil {
		return infinitehbd.Dark, l.err
	}
	var first infinitehbd.State
	for m, t := range l.modules {
		for lane := range t.Lanes {
			s, err := l.laneState(m, lane)
			if err != nil {
				return infinitehbd.Dark, err
			}
			if m+lane == 0 {
				first = s
			}
			if s != first {
				return infinitehbd.Dark, fmt.Errorf("%w: lane 1 of module 1 is %v, and %s is %v", ErrMixed, first, laneName(m*lanes+lane), s)
			}
		}
	}
	if len(l.modules) == 0 {
		return infinitehbd.Dark, fmt.Errorf("%w: the board has no modules", ErrLab)
	}
	return first, nil
}

// circuits are those of the bundle, as its driver has them: a lane on a loop goes where the loop takes it.
func (l *look) circuits() ocs.Map {
	n := ocs.Port(len(l.modules) * lanes)
	var ccs []ocs.CrossConnect
	for m := range l.modules {
		t := &l.modules[m]
		for lane := range t.Lanes {
			in := ocs.Port(m*lanes + lane + 1)
			switch t.Lanes[lane].Path {
			case ocst.Path1:
				ccs = append(ccs, ocs.CrossConnect{Ingress: in, Egress: n + in})
			case ocst.Path2:
				ccs = append(ccs, ocs.CrossConnect{Ingress: in, Egress: 2*n + in})
			case ocst.LoopPath:
				ccs = append(ccs, ocs.CrossConnect{Ingress: in, Egress: 3*n + ocs.Port(m*lanes+int(t.Loop[lane])+1)})
			}
		}
	}
	m, _ := ocs.NewMap(ccs...) // what modules contradict themselves about is empty here; the change finds it
	return m
}

// laneState is the state of one lane of a module.
func (l *look) laneState(module, lane int) (infinitehbd.State, error) {
	t := &l.modules[module]
	switch t.Lanes[lane].Path {
	case ocst.Path1:
		return infinitehbd.Path1, nil
	case ocst.Path2:
		return infinitehbd.Path2, nil
	case ocst.LoopPath:
		if to := int(t.Loop[lane]); to != lane^half {
			return infinitehbd.Dark, fmt.Errorf("%w: the loop takes %s to lane %d", ErrMixed, laneName(module*lanes+lane), to+1)
		}
		return infinitehbd.Loop, nil
	}
	return infinitehbd.Dark, nil
}

// sends reports whether light goes from a lane into a path or the loop, by its tap.
func sends(t *ocstrx.LaneTelemetry, s infinitehbd.State) bool {
	switch s {
	case infinitehbd.Loop:
		return t.Path == ocst.LoopPath && t.Loop >= enough
	case infinitehbd.Path1:
		return t.Path == ocst.Path1 && t.Fibre1 >= enough
	case infinitehbd.Path2:
		return t.Path == ocst.Path2 && t.Fibre2 >= enough
	}
	return false
}

// receives reports whether light comes to a lane out of a fibre or the loop, whether it listens there or not.
func receives(t *ocstrx.LaneTelemetry, s infinitehbd.State) bool {
	switch s {
	case infinitehbd.Loop:
		return t.RxLoop >= enough
	case infinitehbd.Path1:
		return t.Rx1 >= enough
	case infinitehbd.Path2:
		return t.Rx2 >= enough
	}
	return false
}

// Lane is a lane of a bundle. Module and Lane count from 1.
type Lane struct {
	Ref
	Module, Lane int
}

// lane returns the name of a lane of a look.
func (l *look) lane(module, lane int) Lane { return Lane{l.ref, l.modules[module].Slot + 1, lane + 1} }

// laneText names a lane for people.
func (d *Domain) laneText(l Lane) string {
	return fmt.Sprintf("lane %d of module %d of %s", l.Lane, l.Module, d.Name(l.Ref))
}

// States reads what all bundles do, by their modules: a plan of which nothing is known but the states. Bundles that do not
// answer, and those whose lanes differ, are Dark in it; the error names them, and the plan holds the others.
func (d *Domain) States(ctx context.Context) (*infinitehbd.Plan, error) {
	looks, err := d.lookAll(ctx, d.refs(), 0)
	if err != nil {
		return nil, err
	}
	var errs []error
	states := map[infinitehbd.Node][]infinitehbd.State{}
	for _, r := range d.refs() {
		l := looks[r]
		s, err := l.state()
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", d.Name(r), err))
		}
		states[r.Node] = append(states[r.Node], s)
	}
	p, err := infinitehbd.NewPlan(d.line, states)
	return p, errors.Join(append(errs, err)...)
}
