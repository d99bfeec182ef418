package tl1switch

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/polatiscard"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// polatis is the dialect of Polatis network interface cards.
type polatis struct {
	sw *Switch
	// refusesTakeover is learned: the device denies a busy port.
	refusesTakeover bool
}

func (*polatis) has(string) bool          { return true } // the device says what it has not
func (*polatis) keepAlive() time.Duration { return 0 }
func (*polatis) fenced() bool             { return false }

// identify asks three questions. Not every device knows each of them, but one
// that refuses all of them is an error.
func (d *polatis) identify(ctx context.Context) (ocs.Identity, error) {
	var said [3]string
	var refusals []error
	for i, r := range [...]request{
		{code: "RTRV-NETYPE"},
		{code: "RTRV-INV", aid: "OCS"},
		{code: "RTRV-EQPT", aid: "SYSTEM", blocks: []string{"", "PARAMETER=SIZE"}},
	} {
		r.op, r.again, r.read = opIdentify, true, true
		a, err := d.sw.perform(ctx, r)
		var refused *tl1.Error
		switch {
		case errors.As(err, &refused):
			refusals = append(refusals, err)
		case err != nil:
			return ocs.Identity{}, err
		}
		said[i] = strings.Join(a.msg.Text, "\n")
	}
	if len(refusals) == len(said) {
		return ocs.Identity{}, refusals[0]
	}
	var id ocs.Identity
	if f := strings.Split(said[0], ","); len(f) == 4 {
		id.Vendor, id.Model, id.Firmware = f[0], f[1], f[3]
	}
	id.Serial = keyword(said[1], "SN=")
	var err error
	if id.Geometry, err = ocs.ParseGeometry(keyword(said[2], "SYSTEM:SIZE=")); err != nil {
		id.Geometry = polatiscard.Geometry(id.Model)
	}
	return id, nil
}

// keyword returns the word that follows key in text.
func keyword(text, key string) string {
	_, rest, _ := strings.Cut(text, key)
	if i := strings.IndexAny(rest, ", \"\r\n"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

func (d *polatis) crossConnects(ctx context.Context) (ocs.Map, error) {
	a, err := d.sw.perform(ctx, request{op: opRead, code: "RTRV-PATCH", again: true, read: true})
	if err != nil {
		return ocs.Map{}, err
	}
	ccs := make([]ocs.CrossConnect, 0, len(a.msg.Text))
	for _, line := range a.msg.Text {
		in, out, two := strings.Cut(line, ",")
		if out = strings.TrimSpace(out); two && (out == "" || out == "0") {
			continue // how a port without a cross-connect may be shown
		}
		i, err1 := parsePort(in)
		o, err2 := parsePort(out)
		if err1 != nil || err2 != nil {
			return ocs.Map{}, d.sw.garbled(opRead, a, line)
		}
		ccs = append(ccs, ocs.CrossConnect{Ingress: i, Egress: o})
	}
	m, err := ocs.NewMap(ccs...)
	return d.sw.mapOf(a, m, err)
}

// apply sends at most one DLT-PATCH, for what is removed and not replaced, and
// then one ENT-PATCH, or more with Config.MaxPairs.
func (d *polatis) apply(ctx context.Context, w *work, c ocs.Change) error {
	gone := c.Remove
	if !d.refusesTakeover {
		gone = polatiscard.Unreplaced(c)
	}
	if gone.Len() > 0 {
		if err := w.send(ctx, request{code: "DLT-PATCH", aid: ingresses(gone)}); err != nil {
			return err
		}
	}
	add := c.Add.Slice()
	size := len(add)
	if most := d.sw.cfg.MaxPairs; most > 0 {
		size = most
	}
	for len(add) > 0 {
		pairs := add[:min(size, len(add))]
		connect := request{code: "ENT-PATCH", aid: pairList(pairs)}
		err := w.send(ctx, connect)
		if errors.Is(err, ocs.ErrConflict) && gone.Len() < c.Remove.Len() {
			if err := w.send(ctx, request{code: "DLT-PATCH", aid: ingresses(c.Remove.Minus(gone))}); err != nil {
				return err
			}
			gone = c.Remove
			if err = w.send(ctx, connect); err == nil {
				d.refusesTakeover = true
			}
		}
		if err != nil {
			return err
		}
		add = add[len(pairs):]
	}
	return nil
}

// ingresses is the AID of DLT-PATCH.
func ingresses(m ocs.Map) string {
	var aid []byte
	for i, c := range m.Slice() {
		aid = appendPort(aid, i, c.Ingress)
	}
	return string(aid)
}

// pairList is the AID of ENT-PATCH: two lists, paired by position.
func pairList(ccs []ocs.CrossConnect) string {
	aid := make([]byte, 0, 12*len(ccs)) // two ports of five digits
	for i, c := range ccs {
		aid = appendPort(aid, i, c.Ingress)
	}
	aid = append(aid, ',')
	for i, c := range ccs {
		aid = appendPort(aid, i, c.Egress)
	}
	return string(aid)
}

func appendPort(aid []byte, i int, p ocs.Port) []byte {
	if i > 0 {
		aid = append(aid, '&')
	}
	return strconv.AppendUint(aid, uint64(p), 10)
}
