package ocs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Policy says what [Reconcile] may do to cross-connects it was not asked for.
type Policy string

const (
	// Safe refuses the whole wish when any port of it is busy otherwise.
	Safe Policy = "safe"
	// Update removes what stands in the way and leaves all else alone.
	Update Policy = "update"
	// Overwrite makes the device equal to the wish: it removes all else.
	Overwrite Policy = "overwrite"
)

// ParsePolicy reads "safe", "update" or "overwrite".
func ParsePolicy(s string) (Policy, error) {
	switch p := Policy(s); p {
	case Safe, Update, Overwrite:
		return p, nil
	}
	return "", fmt.Errorf("policy %q: want safe, update or overwrite", s)
}

// Plan returns the change that brings want about on a device that holds have,
// as far as that can be told without its geometry: [Preview] asks the device.
// Under [Safe] every busy port is reported, joined into one error that matches
// [ErrConflict].
func Plan(have, want Map, policy Policy) (Change, error) {
	if policy == Overwrite {
		return Diff(have, want), nil
	}
	var conflicts []error
	inTheWay := map[CrossConnect]bool{}
	for c := range want.All() {
		for _, rival := range have.Rivals(c) {
			inTheWay[rival] = true
			if policy == Safe {
				conflicts = append(conflicts, &ConflictError{Want: c, Have: rival})
			}
		}
	}
	if len(conflicts) > 0 {
		return Change{}, Join(conflicts...)
	}
	return Change{
		Remove: have.filter(func(c CrossConnect) bool { return inTheWay[c] }),
		Add:    want.Minus(have),
	}, nil
}

// PlanDisconnect returns the change that removes every cross-connect of have
// that uses one of ports at either end. A port that is not in use gives an
// error that matches [ErrNotConnected].
func PlanDisconnect(have Map, ports ...Port) (Change, error) {
	gone := map[CrossConnect]bool{}
	for _, p := range ports {
		ccs := have.At(p)
		if len(ccs) == 0 {
			return Change{}, fmt.Errorf("port %d: %w", p, ErrNotConnected)
		}
		for _, c := range ccs {
			gone[c] = true
		}
	}
	return Change{Remove: have.filter(func(c CrossConnect) bool { return gone[c] })}, nil
}

// PlanUndo returns the change that takes back done on a device that holds
// have, as far as done is still there: what it added and is still there is
// removed, what it removed and is not back is added. It fails as [Plan] under
// [Safe] does when somebody else has used the ports since.
func PlanUndo(have Map, done Change) (Change, error) {
	added := have.filter(func(c CrossConnect) bool { return done.Add.Has(c) })
	rest := have.Minus(added)
	back, err := Plan(rest, done.Remove, Safe)
	if err != nil {
		return Change{}, err
	}
	return Change{Remove: added, Add: back.Add}, nil
}

// State is what became of one cross-connect.
type State string

const (
	Kept      State = "kept"      // was there as wished, was not touched
	Connected State = "connected" // was added, reads back
	Removed   State = "removed"   // was removed, reads back as gone
	Failed    State = "failed"    // was to be added, does not read back
	Stuck     State = "stuck"     // was to be removed, still reads back
	Vanished  State = "vanished"  // was not to be touched, is gone
	Appeared  State = "appeared"  // was not asked for, has come
)

// Outcome is one line of a [Report].
type Outcome struct {
	CrossConnect CrossConnect
	State        State
}

// Report is what was asked of a device and what became of it.
type Report struct {
	Before  Map    // read before the change
	Change  Change // what had to be done
	After   Map    // read back; empty unless ReadBack
	Receipt Receipt
	// ReadBack is false when the device could not be asked after the change:
	// what it holds is then not known.
	ReadBack bool
	// Outcomes has one entry for each cross-connect that was asked for or
	// touched, and for those of others that changed meanwhile, in order of
	// ingress. Empty unless ReadBack.
	Outcomes []Outcome
}

// Reconcile brings want about on sw under policy: it reads what the device
// holds, refuses or plans (see [Plan]), applies only what differs, reads back
// and compares circuit by circuit.
//
// It returns an error that matches [ErrConflict] when the policy refuses,
// [ErrPort] when the device has no such port, both before anything was sent;
// [ErrVerify] when the device acknowledged but holds something else; otherwise
// the error of the device. The Report is filled as far as things went, also
// with an error. Cross-connects that others changed meanwhile are in
// the Outcomes as [Vanished] or [Appeared] and are not an error.
//
// Between the reading and the change another client may take a port. Devices
// offer no lock against that; what it did is seen in the read-back.
func Reconcile(ctx context.Context, sw Switch, want Map, policy Policy) (Report, error) {
	return execute(ctx, sw, want, policy, func(have Map) (Change, error) { return Plan(have, want, policy) })
}

// freeExcluded extends c by what stands in its way though it shares no port with
// it in the same role: see [Geometry.Excludes].
func freeExcluded(have Map, c Change, g Geometry, policy Policy) (Change, error) {
	if !g.SingleSided && g.Lanes == 0 || policy == Overwrite {
		return c, nil
	}
	rest := have.Minus(c.Remove)
	gone := map[CrossConnect]bool{}
	var conflicts []error
	for a := range c.Add.All() {
		for _, other := range g.excluded(rest, a) {
			gone[other] = true
			conflicts = append(conflicts, &ConflictError{Want: a, Have: other})
		}
	}
	if len(gone) == 0 {
		return c, nil
	}
	if policy == Safe {
		return Change{}, Join(conflicts...)
	}
	return Change{Remove: have.filter(func(x CrossConnect) bool { return c.Remove.Has(x) || gone[x] }), Add: c.Add}, nil
}

// Preview returns what [Reconcile] would read and change now, and its refusals;
// it sends nothing that changes anything.
func Preview(ctx context.Context, sw Switch, want Map, policy Policy) (Report, error) {
	return preview(ctx, sw, want, policy, func(have Map) (Change, error) { return Plan(have, want, policy) })
}

// Execute reads the device, asks plan for the change, applies it, reads back
// and compares, as [Reconcile] does. It is for changes that are not wishes:
// see [PlanDisconnect] and [PlanUndo].
func Execute(ctx context.Context, sw Switch, plan func(have Map) (Change, error)) (Report, error) {
	return execute(ctx, sw, Map{}, Safe, plan)
}

// PreviewExecute is to [Execute] what [Preview] is to [Reconcile].
func PreviewExecute(ctx context.Context, sw Switch, plan func(have Map) (Change, error)) (Report, error) {
	return preview(ctx, sw, Map{}, Safe, plan)
}

func preview(ctx context.Context, sw Switch, want Map, policy Policy, plan func(have Map) (Change, error)) (Report, error) {
	var r Report
	if _, err := ParsePolicy(string(policy)); err != nil {
		return r, err
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return r, err
	}
	if err := id.Geometry.Check(want); err != nil {
		return r, err
	}
	if r.Before, err = sw.CrossConnects(ctx); err != nil {
		return r, err
	}
	if r.Change, err = plan(r.Before); err != nil {
		return r, err
	}
	if err := id.Geometry.Check(r.Change.Add); err != nil {
		return r, err
	}
	// Some of what is in the way only the geometry tells.
	r.Change, err = freeExcluded(r.Before, r.Change, id.Geometry, policy)
	return r, err
}

func execute(ctx context.Context, sw Switch, want Map, policy Policy, plan func(have Map) (Change, error)) (Report, error) {
	r, err := preview(ctx, sw, want, policy, plan)
	if err != nil {
		return r, err
	}
	if r.Change.Empty() {
		return r, r.compare(r.Before, want)
	}
	var applyErr error
	r.Receipt, applyErr = sw.Apply(ctx, r.Change)
	if applyErr != nil && (r.Receipt.Requests == 0 || ctx.Err() != nil) {
		return r, applyErr // nothing was sent, or nobody waits any more
	}
	after, err := sw.CrossConnects(ctx)
	switch {
	case err != nil && applyErr == nil:
		return r, fmt.Errorf("the change was acknowledged but could not be read back: %w", err)
	case err != nil:
		return r, applyErr
	}
	wrong := r.compare(after, want)
	if applyErr != nil {
		return r, applyErr
	}
	return r, wrong
}

// Again returns r with what a device was read to hold later, or on another session, and an error that matches
// [ErrVerify] for circuits that are not as they should be. want are circuits that were asked for and may have been there.
func (r Report) Again(after, want Map) (Report, error) {
	r.Outcomes = nil
	err := r.compare(after, want)
	return r, err
}

// compare fills in what became of each cross-connect and returns an error for
// those that are not as they should be.
func (r *Report) compare(after, want Map) error {
	r.After, r.ReadBack = after, true
	add := func(c CrossConnect, s State) { r.Outcomes = append(r.Outcomes, Outcome{c, s}) }
	asked := map[CrossConnect]bool{}
	var wrong []CrossConnect
	for c := range r.Change.Add.All() {
		asked[c] = true
		if after.Has(c) {
			add(c, Connected)
		} else {
			add(c, Failed)
			wrong = append(wrong, c)
		}
	}
	for c := range r.Change.Remove.All() {
		asked[c] = true
		if after.Has(c) {
			add(c, Stuck)
			wrong = append(wrong, c)
		} else {
			add(c, Removed)
		}
	}
	for c := range r.Before.All() {
		switch {
		case asked[c]:
		case !after.Has(c):
			add(c, Vanished)
			if want.Has(c) {
				wrong = append(wrong, c)
			}
		case want.Has(c):
			add(c, Kept)
		}
	}
	for c := range after.All() {
		if !asked[c] && !r.Before.Has(c) {
			add(c, Appeared)
		}
	}
	sortOutcomes(r.Outcomes)
	if len(wrong) == 0 {
		return nil
	}
	return &VerifyError{Wrong: wrong, After: after}
}

func sortOutcomes(os []Outcome) {
	slices.SortFunc(os, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.CrossConnect.Ingress, b.CrossConnect.Ingress),
			cmp.Compare(a.CrossConnect.Egress, b.CrossConnect.Egress))
	})
}
