package scpiswitch

import (
	"context"
	"errors"

	"github.com/ocslab/ocslab/drivers/internal/polatiscard"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// Apply sends at most one SUB, for what is removed and not replaced, and then one
// ADD (more with Config.MaxPairs). The Receipt counts these; its SendStart and
// Sent are about the last of them, and FirstByte and Acked about the replies to
// the queries that follow it. See [ocs.Switch].
func (sw *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	const op = "change circuits"
	var total ocs.Receipt
	if c.Empty() {
		return total, nil
	}
	if err := sw.take(ctx, op); err != nil {
		return total, err
	}
	defer sw.turn.Pass()
	send := func(command string, ccs []ocs.CrossConnect) error {
		if len(ccs) == 0 {
			return nil
		}
		if err := ocs.Ready(ctx); err != nil {
			return sw.fail(op, "", "", err)
		}
		size := len(ccs)
		if sw.cfg.MaxPairs > 0 {
			size = sw.cfg.MaxPairs
		}
		for ; len(ccs) > 0; ccs = ccs[min(size, len(ccs)):] {
			a, err := sw.perform(ctx, request{op: op, command: pairs(command, ccs[:min(size, len(ccs))]), ports: true})
			total = total.Then(a.receipt)
			if err != nil {
				return err
			}
		}
		return nil
	}
	const add, sub = ":OXC:SWIT:CONN:ADD ", ":OXC:SWIT:CONN:SUB "
	gone := c.Remove
	if !sw.refusesTakeover {
		gone = polatiscard.Unreplaced(c)
	}
	if err := send(sub, gone.Slice()); err != nil {
		return total, err
	}
	rest := c.Add.Slice()
	before := total.Requests
	err := send(add, rest)
	if errors.Is(err, ocs.ErrConflict) && gone.Len() < c.Remove.Len() {
		// What was added before the refusal stays.
		if sw.cfg.MaxPairs > 0 {
			rest = rest[min(len(rest), (total.Requests-before-1)*sw.cfg.MaxPairs):]
		}
		if err := send(sub, c.Remove.Minus(gone).Slice()); err != nil {
			return total, err
		}
		if err = send(add, rest); err == nil {
			sw.refusesTakeover = true
		}
	}
	return total, err
}

// pairs is a command with two lists, paired by position.
func pairs(command string, ccs []ocs.CrossConnect) string {
	ports := make([]uint32, 2*len(ccs))
	in, out := ports[:len(ccs)], ports[len(ccs):]
	for i, c := range ccs {
		in[i], out[i] = uint32(c.Ingress), uint32(c.Egress)
	}
	p := append(make([]byte, 0, len(command)+6*len(ports)+7), command...) // ports of five digits
	return string(scpi.AppendChannelList(append(scpi.AppendChannelList(p, in), ','), out))
}

// list is a channel list.
func list(ports []ocs.Port) string {
	ps := make([]uint32, len(ports))
	for i, p := range ports {
		ps[i] = uint32(p)
	}
	return string(scpi.AppendChannelList(nil, ps))
}
