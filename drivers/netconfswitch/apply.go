package netconfswitch

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// CrossConnects returns what the device holds.
func (sw *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	const op = "read cross-connects"
	a, err := sw.do(ctx, get(op, "cross-connects", ""))
	if err != nil {
		return ocs.Map{}, err
	}
	var ccs []ocs.CrossConnect
	if list := a.reply.Data.Child("", "cross-connects"); list != nil {
		ccs = make([]ocs.CrossConnect, 0, len(list.Children))
		for _, pair := range list.Children {
			if pair.Name.Local != "pair" && pair.Name.Local != "pairs" {
				continue
			}
			i, err1 := parsePort(pair.Value("ingress"))
			o, err2 := parsePort(pair.Value("egress"))
			if err1 != nil || err2 != nil {
				return ocs.Map{}, sw.garbled(op, a, pair)
			}
			ccs = append(ccs, ocs.CrossConnect{Ingress: i, Egress: o})
		}
	}
	m, err := ocs.NewMap(ccs...)
	if err != nil {
		// Not wrapped: nobody asked for anything that could be a conflict.
		return m, sw.fail(op, "", string(a.raw), fmt.Errorf("the device contradicts itself: %v", err))
	}
	return m, nil
}

// Apply sends one edit-config with the removals first. See [ocs.Switch], and the
// package comment for when it takes a second one.
func (sw *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	var total ocs.Receipt
	if c.Empty() {
		return total, nil
	}
	send := func(remove, add ocs.Map) error {
		r, err := sw.sendChange(ctx, remove, add)
		total = total.Then(r)
		return err
	}
	remove := c.Remove
	if sw.refusesTakeover.Load() && c.Add.Len() > 0 {
		if remove.Len() > 0 {
			if err := send(remove, ocs.Map{}); err != nil {
				return total, err
			}
		}
		return total, send(ocs.Map{}, c.Add)
	}
	gone := unreplaced(c)
	err := send(gone, c.Add)
	switch {
	case errors.Is(err, ocs.ErrNotConnected) && gone.Len() > 0:
		// "delete" of what is gone already: the device knows no "remove".
		have, readErr := sw.CrossConnects(ctx)
		if readErr != nil {
			return total, fmt.Errorf("%w; then %w", err, readErr)
		}
		if gone = stillThere(gone, have); gone.Len()+c.Add.Len() == 0 {
			return total, nil
		}
		err = send(gone, c.Add)
	case errors.Is(err, ocs.ErrConflict) && remove.Len() > 0 && c.Add.Len() > 0:
		if err := send(remove, ocs.Map{}); err != nil {
			return total, err
		}
		if err = send(ocs.Map{}, c.Add); err == nil {
			sw.refusesTakeover.Store(true)
		}
	}
	return total, err
}

// sendChange sends one edit-config.
func (sw *Switch) sendChange(ctx context.Context, remove, add ocs.Map) (ocs.Receipt, error) {
	const op = "change circuits"
	s, _, err := sw.session(ctx)
	if err != nil {
		return ocs.Receipt{}, err
	}
	if err := ocs.Ready(ctx); err != nil {
		return ocs.Receipt{}, sw.fail(op, "", "", err)
	}
	// What the device calls things stays the same when do opens a new session.
	a, err := sw.do(ctx, s.dev.edit(op, opticalNS, "cross-connects", pairs(&s.dev, s.framing, remove, add)))
	return a.receipt, err
}

// pairs is the content of cross-connects in an edit. Removals are by ingress,
// the key of the list, and come first.
func pairs(dev *announced, framing netconf.Framing, remove, add ocs.Map) string {
	gone := "remove"
	if framing == netconf.EndOfMessage { // base:1.0 does not have it
		gone = "delete"
	}
	name := dev.pair()
	b := make([]byte, 0, 64*remove.Len()+96*add.Len())
	open := func(operation string) {
		b = append(b, '<')
		b = append(b, name...)
		b = append(b, ` nc:operation="`...)
		b = append(b, operation...)
		b = append(b, `">`...)
	}
	leaf := func(name string, p ocs.Port) {
		b = append(b, '<')
		b = append(b, name...)
		b = append(b, '>')
		b = strconv.AppendUint(b, uint64(p), 10)
		b = append(b, "</"...)
		b = append(b, name...)
		b = append(b, '>')
	}
	end := func() {
		b = append(b, "</"...)
		b = append(b, name...)
		b = append(b, '>')
	}
	for c := range remove.All() {
		open(gone)
		leaf("ingress", c.Ingress)
		end()
	}
	for c := range add.All() {
		open("merge")
		leaf("ingress", c.Ingress)
		leaf("egress", c.Egress)
		end()
	}
	return string(b)
}

// unreplaced returns what of c.Remove has to be named in an edit that adds
// c.Add: an ingress that gets another egress stays the same entry of the list,
// and an entry may be named only once.
func unreplaced(c ocs.Change) ocs.Map {
	var ccs []ocs.CrossConnect
	for r := range c.Remove.All() {
		if _, again := c.Add.EgressOf(r.Ingress); !again {
			ccs = append(ccs, r)
		}
	}
	return ocs.MustMap(ccs...) // a part of a Map
}

// stillThere returns what of m has an entry in what the device holds.
func stillThere(m, have ocs.Map) ocs.Map {
	var ccs []ocs.CrossConnect
	for c := range m.All() {
		if _, there := have.EgressOf(c.Ingress); there {
			ccs = append(ccs, c)
		}
	}
	return ocs.MustMap(ccs...) // a part of a Map
}
