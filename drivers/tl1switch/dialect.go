package tl1switch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Dialect is the kind of TL1 that a device speaks.
type Dialect string

// The dialects. What of [Switch] a device has no command for returns an error
// that matches [ocs.ErrNotSupported], and nothing is sent.
const (
	Polatis      Dialect = "polatis"
	Calient      Dialect = "calient"      // S-series; TCP port 3083
	Glimmerglass Dialect = "glimmerglass" // TCP port 10034, on older units 10033
)

// TwoStep says how a Calient unit makes a cross-connect.
type TwoStep string

const (
	TwoStepLearn  TwoStep = ""       // look after the first one, and remember
	TwoStepAlways TwoStep = "always" // ENT-CRS, then ACT-CRS
	TwoStepNever  TwoStep = "never"  // ENT-CRS alone; DLT-CRS without CANC-CRS
)

// dialect is what differs between kinds of TL1. Its methods are called with the
// turn.
type dialect interface {
	// has reports whether the device has a command.
	has(code string) bool
	// keepAlive is after which idle time the device wants to hear something; 0
	// is never.
	keepAlive() time.Duration
	// fenced reports whether the last block of a long reply cannot be told from
	// those before.
	fenced() bool
	// identify is asked until the geometry is known.
	identify(ctx context.Context) (ocs.Identity, error)
	crossConnects(ctx context.Context) (ocs.Map, error)
	apply(ctx context.Context, w *work, c ocs.Change) error
	power(ctx context.Context, ports []ocs.Port) (ocs.PowerReading, error)
	labels(ctx context.Context, ports []ocs.Port) (map[ocs.Port]string, error)
}

// newDialect returns the dialect that cfg names.
func newDialect(sw *Switch) (dialect, error) {
	switch sw.cfg.Dialect {
	case "", Polatis:
		return &polatis{sw: sw}, nil
	case Calient:
		switch sw.cfg.TwoStep {
		case TwoStepLearn, TwoStepAlways, TwoStepNever:
			return &calient{sw: sw, twoStep: sw.cfg.TwoStep}, nil
		}
		return nil, fmt.Errorf("tl1switch: TwoStep %q: want always, never or nothing", sw.cfg.TwoStep)
	case Glimmerglass:
		return &glimmerglass{sw: sw}, nil
	}
	return nil, fmt.Errorf("tl1switch: dialect %q: want one of %v", sw.cfg.Dialect, []Dialect{Polatis, Calient, Glimmerglass})
}

// lacks is the error for a request that the device has no command for.
func (sw *Switch) lacks(op string) error {
	return sw.fail(op, "", "", fmt.Errorf("%s switches have no command for it: %w", sw.cfg.Dialect, ocs.ErrNotSupported))
}

// work is a change under way: the requests that carry it out.
type work struct {
	sw    *Switch
	total ocs.Receipt // of the requests so far
	done  int         // of them were carried out
}

func (w *work) send(ctx context.Context, r request) error {
	_, err := w.exchange(ctx, r)
	return err
}

func (w *work) exchange(ctx context.Context, r request) (answer, error) {
	r.op, r.again = opChange, true
	if err := ocs.Ready(ctx); err != nil {
		return answer{}, w.sw.fail(opChange, "", "", err)
	}
	a, err := w.sw.perform(ctx, r)
	w.total = w.total.Then(a.receipt)
	if err == nil {
		w.done++
	}
	return a, err
}

// partly says that other requests of the change had an effect before err, if any had.
func (w *work) partly(err error) error {
	if err == nil || w.done == 0 {
		return err
	}
	return &partlyError{w.done, err}
}

// partlyError is an error after requests of the same change that had an effect. So it
// does not match the sentinels that promise that nothing was changed.
type partlyError struct {
	done int
	err  error
}

func (e *partlyError) Error() string {
	return fmt.Sprintf("%v; requests of this change that were carried out before: %d", e.err, e.done)
}

func (e *partlyError) Is(target error) bool {
	switch target {
	case ocs.ErrDenied, ocs.ErrConflict, ocs.ErrInterlock, ocs.ErrPort, ocs.ErrNotConnected, ocs.ErrNotSupported:
		return false
	}
	return errors.Is(e.err, target)
}

func (e *partlyError) As(target any) bool { return errors.As(e.err, target) }

// circuit is an entry of a device's own table of connections.
type circuit struct {
	ccs    []ocs.CrossConnect // one, or the two directions of a two-way connection
	name   string             // the device's
	owner  string             // who made it
	failed bool               // listed, but carries no light
	locked string             // who has locked it; "" is nobody
}

// carrying is the map of the circuits that the device does not call failed.
func carrying(cs []circuit) (ocs.Map, error) {
	var ccs []ocs.CrossConnect
	for _, c := range cs {
		if !c.failed {
			ccs = append(ccs, c.ccs...)
		}
	}
	return ocs.NewMap(ccs...)
}

// arrange says how a device that refuses busy ports, and that holds have, is
// taken through c: what to drop, and what to make then. It refuses what would
// darken light that c does not name, before anything is sent: neither one
// direction of a two-way connection nor a locked connection is touched.
//
// A circuit that has failed is in no map, so nobody can ask for its removal. It
// goes when it is in the way and is our own; me is the owner that we are.
func arrange(have []circuit, c ocs.Change, me string) (drop []circuit, add []ocs.CrossConnect, err error) {
	stands := map[ocs.CrossConnect]bool{}
	for _, h := range have {
		goes := slices.ContainsFunc(h.ccs, c.Remove.Has)
		for _, cc := range h.ccs {
			var blocks []ocs.CrossConnect // what cc is in the way of
			switch {
			case goes && (c.Remove.Has(cc) || h.failed):
				continue
			case goes:
				return nil, nil, fmt.Errorf("%s is a two-way connection and can only be removed as a whole, which would darken %v, too: remove both directions: %w", h.name, cc, ocs.ErrConflict)
			case !c.Add.Has(cc):
				blocks = c.Add.Rivals(cc)
			case h.failed:
				blocks = []ocs.CrossConnect{cc}
			default:
				stands[cc] = true
			}
			switch {
			case len(blocks) == 0:
			case !h.failed:
				return nil, nil, &ocs.ConflictError{Want: blocks[0], Have: cc}
			case h.owner != me:
				return nil, nil, fmt.Errorf("%w, which has failed but belongs to %q", &ocs.ConflictError{Want: blocks[0], Have: cc}, h.owner)
			default:
				goes = true
			}
		}
		if !goes {
			continue
		}
		if h.locked != "" && h.locked != me {
			return nil, nil, fmt.Errorf("%v is locked by %q: %w", h.ccs[0], h.locked, ocs.ErrInterlock)
		}
		drop = append(drop, h)
	}
	for cc := range c.Add.All() {
		if !stands[cc] {
			add = append(add, cc)
		}
	}
	return drop, add, nil
}

// pairs reads NAME=VALUE,NAME=VALUE behind the first colon of a line, with the
// names in upper case, and returns what stands before the colon.
func pairs(line string) (head string, values map[string]string) {
	head, rest, _ := strings.Cut(line, ":")
	values = map[string]string{}
	for p := range strings.SplitSeq(rest, ",") {
		if k, v, ok := strings.Cut(p, "="); ok {
			values[strings.ToUpper(strings.TrimSpace(k))] = strings.TrimSpace(v)
		}
	}
	return strings.TrimSpace(head), values
}

// checkPorts refuses ports that the device does not have, before it is asked.
func (sw *Switch) checkPorts(op string, g ocs.Geometry, ports []ocs.Port) error {
	for _, p := range ports {
		if !g.Has(p) {
			return sw.fail(op, "", "", &ocs.PortError{Port: p, Geometry: g, Reason: "is not a port"})
		}
	}
	return nil
}

// wanted returns a function that reports whether a port was asked for: one of
// ports, or any when there are none.
func wanted(ports []ocs.Port) func(ocs.Port) bool {
	if len(ports) == 0 {
		return func(ocs.Port) bool { return true }
	}
	set := make(map[ocs.Port]bool, len(ports))
	for _, p := range ports {
		set[p] = true
	}
	return func(p ocs.Port) bool { return set[p] }
}
