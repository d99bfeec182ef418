package tl1server

import (
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// blanks may stand around what a client types; other control characters may not.
const blanks = " \t\r\n"

func (ss *session) entPatch(c *tl1.Command) (reply, *denial) {
	in, out, two := strings.Cut(c.AID.Text(), ",")
	in, out = strings.Trim(in, blanks), strings.Trim(out, blanks)
	switch {
	case two && in == "" && out == "":
		return reply{}, deny(tl1.IIAC, "Empty parameters")
	case in == "" && out == "":
		return reply{}, tooFew(tl1.IIAC, 0, 2)
	case in == "" || out == "":
		return reply{}, tooFew(tl1.IIAC, 1, 2)
	case strings.Contains(out, ","):
		return reply{}, deny(tl1.IIAC, "Too many parameters (%d/2)", 2+strings.Count(out, ","))
	case !isOneOf(c.Block(block1).Field, "", "FRCD"):
		return reply{}, notValid()
	}
	ingress, bad := ss.portList(in)
	if bad != nil {
		return reply{}, bad
	}
	egress, bad := ss.portList(out)
	if bad != nil {
		return reply{}, bad
	}
	if len(ingress) != len(egress) {
		return reply{}, deny(tl1.IDNV, "Port lists differ in length (%d/%d)", len(ingress), len(egress))
	}
	ccs := make([]ocs.CrossConnect, len(ingress))
	for i := range ccs {
		ccs[i] = ocs.CrossConnect{Ingress: ingress[i], Egress: egress[i]}
	}
	op, err := ss.dev.Edit(ss.me, emulator.Edit{Add: ccs})
	return reply{op: op}, refusal(err)
}

func (ss *session) dltPatch(c *tl1.Command) (reply, *denial) {
	switch aid := c.AID.Text(); {
	case strings.Contains(aid, ","):
		return reply{}, deny(tl1.IIAC, "Too many parameters (%d/1)", 1+strings.Count(aid, ","))
	case c.GB.Text() != "":
		return reply{}, badField(tl1.IIPG, c.GB.Offset)
	}
	ports, bad := ss.portsOrAll(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	op, err := ss.dev.Edit(ss.me, emulator.Edit{Drop: ports})
	return reply{op: op}, refusal(err)
}

func (ss *session) rtrvPatch(c *tl1.Command) (reply, *denial) {
	m := ss.dev.CrossConnects()
	var r reply
	line := func(x ocs.CrossConnect) { r.text = append(r.text, x.Ingress.String()+","+x.Egress.String()) }
	if isOneOf(c.AID, "ALL", "") {
		for x := range m.All() {
			line(x)
		}
		return r, nil
	}
	ports, bad := ss.portList(c.AID.Text())
	told := map[ocs.CrossConnect]bool{}
	for _, p := range ports {
		for _, x := range m.At(p) {
			if !told[x] {
				told[x] = true
				line(x)
			}
		}
	}
	return r, bad
}
