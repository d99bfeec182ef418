package scpiserver

import (
	"fmt"
	"slices"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

func (c *call) edit(e emulator.Edit) (result, error) {
	op, err := c.dev.Edit(c.me, e)
	return result{op: op}, err
}

// lists reads the ingress and egress ports of a command.
func (c *call) lists() (in, out []ocs.Port, err error) {
	g := c.dev.Geometry()
	if in, err = c.ports(0, g.IsIngress, "an ingress port"); err != nil {
		return nil, nil, err
	}
	out, err = c.ports(1, g.IsEgress, "an egress port")
	return in, out, err
}

// pairs reads lists of the same length.
func (c *call) pairs() ([]ocs.CrossConnect, error) {
	in, out, err := c.lists()
	if err != nil {
		return nil, err
	}
	return pair(in, out)
}

func pair(in, out []ocs.Port) ([]ocs.CrossConnect, error) {
	if len(in) != len(out) {
		return nil, scpi.NewError(scpi.ListsNotSameLength, fmt.Sprintf("%d ingress, %d egress", len(in), len(out)))
	}
	ccs := make([]ocs.CrossConnect, len(in))
	for i := range ccs {
		ccs[i] = ocs.CrossConnect{Ingress: in[i], Egress: out[i]}
	}
	return ccs, nil
}

func (c *call) add() (result, error) {
	ccs, err := c.pairs()
	if err != nil {
		return result{}, err
	}
	return c.edit(emulator.Edit{Add: ccs})
}

func (c *call) only() (result, error) {
	ccs, err := c.pairs()
	if err != nil {
		return result{}, err
	}
	return c.edit(emulator.Edit{Only: true, Add: ccs})
}

// sub drops what is at the ports of one list, or the pairs of two.
func (c *call) sub() (result, error) {
	in, out, err := c.lists()
	if err != nil {
		return result{}, err
	}
	if len(in) == 0 || len(out) == 0 {
		return c.edit(emulator.Edit{Drop: slices.Concat(in, out)})
	}
	ccs, err := pair(in, out)
	if err != nil {
		return result{}, err
	}
	return c.edit(emulator.Edit{DropPairs: ccs})
}

func (c *call) disconnectAll() (result, error) { return c.edit(emulator.Edit{Only: true}) }

func (c *call) circuits() (result, error) {
	held := c.dev.CrossConnects()
	in, out := make([]uint32, 0, held.Len()), make([]uint32, 0, held.Len())
	for x := range held.All() {
		in, out = append(in, uint32(x.Ingress)), append(out, uint32(x.Egress))
	}
	reply := scpi.AppendChannelList(nil, in)
	return result{reply: scpi.AppendChannelList(append(reply, ','), out)}, nil
}

// partner answers with the port at the other end.
func (c *call) partner() (result, error) {
	n, err := whole(c.params[0], 1, float64(ocs.MaxPort))
	if err != nil {
		return result{}, err
	}
	p := ocs.Port(n)
	if !c.dev.Geometry().Has(p) {
		return result{}, &ocs.PortError{Port: p, Geometry: c.dev.Geometry(), Reason: "is not a port"}
	}
	at := c.dev.CrossConnects().At(p)
	switch {
	case len(at) > 0 && at[0].Ingress == p:
		return say(scpi.Quote(at[0].Egress.String()))
	case len(at) > 0:
		return say(scpi.Quote(at[0].Ingress.String()))
	case c.dev.Personality().SCPI.EmptyNothing:
		return say("")
	}
	return say(`""`)
}
