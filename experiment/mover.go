package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// A Mover makes the changes of an experiment through the gate of the lab: circuits
// that belong to none of the configurations are left alone, and in the end all can be put
// back. It is used by one goroutine at a time.
type Mover struct {
	// Policy is what may happen to circuits that are in no configuration and in the way:
	// Safe refuses, Update moves them.
	Policy ocs.Policy
	// Ours are the circuits of all configurations, by switch; see also Own.
	Ours map[string]Circuits
	// Exact says that what is brought about takes the place of all our circuits on a switch; otherwise
	// those of them that are in nobody's way stay.
	Exact bool
}

// Circuits is a set of cross-connects, in which a port may occur more than once.
type Circuits map[ocs.CrossConnect]bool

// NewMover returns a mover between configurations.
func NewMover(policy ocs.Policy, configurations []map[string]ocs.Map) *Mover {
	m := &Mover{Policy: policy, Ours: map[string]Circuits{}}
	for _, c := range configurations {
		for name, circuits := range c {
			m.Own(name, circuits)
		}
	}
	return m
}

// Own makes circuits of a switch m's own: it may remove them, and when it leaves it brings
// back what they have displaced.
func (m *Mover) Own(onSwitch string, circuits ocs.Map) {
	if m.Ours[onSwitch] == nil {
		m.Ours[onSwitch] = Circuits{}
	}
	for c := range circuits.All() {
		m.Ours[onSwitch][c] = true
	}
}

// TakeOver lets m make the changes of a testbed, and returns the circuits that it found, by
// switch. Under the policy Safe, nothing is sent when circuits of nobody's are in the way
// of a configuration of the testbed.
func (m *Mover) TakeOver(ctx context.Context, t *Testbed) (found map[string]ocs.Map, err error) {
	found = map[string]ocs.Map{}
	for _, r := range t.Bench.Rigs {
		sw := r.Switch.(*lab.Opened)
		if found[r.Name], err = sw.CrossConnects(ctx); err != nil {
			return nil, err
		}
		for _, c := range t.Maps {
			if err := m.Check(r.Name, found[r.Name], c[r.Name]); err != nil {
				return nil, err
			}
		}
		r.Reconcile = func(ctx context.Context, want ocs.Map, _ ocs.Policy) (ocs.Report, error) {
			return m.change(ctx, sw, false, func(have ocs.Map) (ocs.Change, error) { return m.plan(r.Name, have, want) })
		}
	}
	return found, nil
}

// Check returns why m would not bring want about on a switch that holds have: under Safe,
// an error that matches [ocs.ErrConflict].
func (m *Mover) Check(onSwitch string, have, want ocs.Map) error {
	_, err := m.plan(onSwitch, have, want)
	return err
}

// plan moves busy ports, but under Safe only those of our own circuits.
func (m *Mover) plan(onSwitch string, have, want ocs.Map) (ocs.Change, error) {
	change, err := ocs.Plan(have, want, ocs.Update)
	if err == nil && m.Exact {
		change.Remove, err = m.replaced(onSwitch, have, want, change.Remove)
	}
	if err != nil || m.Policy == ocs.Update {
		return change, err
	}
	for w := range want.All() {
		for _, c := range have.Rivals(w) {
			if !m.Ours[onSwitch][c] {
				return ocs.Change{}, fmt.Errorf("%w; it is in none of the configurations: see --mode", &ocs.ConflictError{Want: w, Have: c, Where: onSwitch})
			}
		}
	}
	return change, nil
}

// replaced returns what is removed so that want takes the place of all our circuits on a switch, those
// in its way included.
func (m *Mover) replaced(onSwitch string, have, want, inTheWay ocs.Map) (ocs.Map, error) {
	var remove []ocs.CrossConnect
	for c := range have.Minus(want).All() {
		if inTheWay.Has(c) || m.Ours[onSwitch][c] {
			remove = append(remove, c)
		}
	}
	return ocs.NewMap(remove...)
}

// change makes one change. The light is not looked at: who measures does that.
func (m *Mover) change(ctx context.Context, sw *lab.Opened, restore bool, plan func(ocs.Map) (ocs.Change, error)) (ocs.Report, error) {
	r, err := sw.Gate().Apply(ctx, lab.Intent{On: sw, Plan: plan, Verify: lab.VerifyTable, Restore: restore})
	return r.Report, err
}

// Hold brings about that some ports of a switch hold exactly the circuits of want, which are
// m's own: see Own. Several switches may be held at the same time, by a goroutine each. It
// reports whether anything had to be changed.
//
// A circuit at these ports that is not m's own is of somebody who has connected it meanwhile:
// the error matches [ocs.ErrConflict], and nothing is sent. Others are those of [lab.Gate.Apply].
func (m *Mover) Hold(ctx context.Context, sw *lab.Opened, ports map[ocs.Port]bool, want ocs.Map) (changed bool, err error) {
	_, err = m.change(ctx, sw, false, func(have ocs.Map) (ocs.Change, error) {
		var remove []ocs.CrossConnect
		for c := range have.Minus(want).All() {
			if !ports[c.Ingress] && !ports[c.Egress] {
				continue
			}
			if !m.Ours[sw.Name][c] {
				return ocs.Change{}, fmt.Errorf("somebody else has connected %v of %s meanwhile: %w", c, sw.Name, ocs.ErrConflict)
			}
			remove = append(remove, c)
		}
		change := ocs.Change{Remove: ocs.MustMap(remove...), Add: want.Minus(have)}
		changed = !change.Empty()
		return change, nil
	})
	return changed, err
}

// Leave brings the switches of a lab to what they are to be left in, by switch, as far as
// that is the mover's business: circuits of the configurations that are not wanted are
// removed, and what is wanted is added, on ports that are free or hold such circuits. What
// others have connected meanwhile stays. All switches are tried, at the same time; the
// errors are of those that could not be brought there. Where the history cannot be written,
// on a full disk for example, the change is made without it. Where the gate refuses what would be
// added, our circuits are removed all the same, and the error says so.
func (m *Mover) Leave(ctx context.Context, l *lab.Lab, want map[string]ocs.Map) error {
	names := slices.Sorted(maps.Keys(want))
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() {
			err := Guard(func() error {
				sw, err := l.Switch(ctx, name)
				if err != nil {
					return err
				}
				return m.LeaveSwitch(ctx, sw, want[name])
			})
			if err != nil {
				errs[i] = fmt.Errorf("put the circuits of %s back: %w", name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// LeaveSwitch is Leave for one switch.
func (m *Mover) LeaveSwitch(ctx context.Context, sw *lab.Opened, want ocs.Map) error {
	have, err := sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	back := m.leave(sw.Name, have, want)
	if back.Empty() {
		return nil
	}
	plan := func(have ocs.Map) (ocs.Change, error) { return m.leave(sw.Name, have, want), nil }
	_, err = m.change(ctx, sw, true, plan)
	if back.Add.Len() == 0 || back.Remove.Len() == 0 || !errors.Is(err, panics.ErrInForce) && !errors.Is(err, ocs.ErrInterlock) {
		return err
	}
	refused := fmt.Errorf("%v was not restored: %w", back.Add, err)
	want = want.Minus(back.Add)
	_, err = m.change(ctx, sw, true, plan)
	return errors.Join(refused, err)
}

// leave is the change of [Mover.Leave] on one switch. A circuit that is wanted and is not
// there is only added if it is ours, or one of ours may have displaced it.
func (m *Mover) leave(onSwitch string, have, want ocs.Map) ocs.Change {
	var remove, add []ocs.CrossConnect
	for c := range have.All() {
		if m.Ours[onSwitch][c] && !want.Has(c) {
			remove = append(remove, c)
		}
	}
	left := have.Minus(ocs.MustMap(remove...))
	for c := range want.All() {
		if !have.Has(c) && len(left.Rivals(c)) == 0 && m.Ours[onSwitch].touches(c) {
			add = append(add, c)
		}
	}
	return ocs.Change{Remove: ocs.MustMap(remove...), Add: ocs.MustMap(add...)}
}

// touches reports whether c, or a circuit at one of its ports, is in the set.
func (s Circuits) touches(c ocs.CrossConnect) bool {
	for x := range s {
		if x.Ingress == c.Ingress || x.Egress == c.Egress || x.Ingress == c.Egress || x.Egress == c.Ingress {
			return true
		}
	}
	return false
}
