package tl1server

import (
	"errors"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// port reads a port number of the device.
func (ss *session) port(s string) (ocs.Port, *denial) {
	n, err := strconv.ParseUint(s, 10, 16)
	if p := ocs.Port(n); err == nil && ss.dev.Geometry().Has(p) {
		return p, nil
	}
	return 0, badPort(s)
}

func badPort(s string) *denial { return deny(tl1.IDNV, "Invalid OXC port: %.40s", s) }

// maxList bounds the ports that one list may name, some of them again and again.
const maxList = 2 * int(ocs.MaxPort)

// plainList reads lists without ranges, such as "1&4&7"; ok is false for any
// other, right or wrong. Bulk commands have them, and long.
func plainList(s string, g ocs.Geometry) (ps []ocs.Port, ok bool) {
	top := ocs.Port(g.Ingress + g.Egress) // emulated ports count from 1 without a gap
	ps = make([]ocs.Port, 0, len(s)/4+1)
	n, digits := ocs.Port(0), 0
	for i := 0; i <= len(s); i++ {
		if i == len(s) || s[i] == '&' {
			if n < 1 || n > top {
				return nil, false
			}
			ps = append(ps, n)
			n, digits = 0, 0
			continue
		}
		if c := s[i] - '0'; c <= 9 && digits < 5 {
			n = 10*n + ocs.Port(c)
			digits++
			continue
		}
		return nil, false
	}
	return ps, true
}

// portList reads "3", "1&4&7", "1&&5" and mixtures of them.
func (ss *session) portList(s string) ([]ocs.Port, *denial) {
	if ps, ok := plainList(s, ss.dev.Geometry()); ok {
		return ps, nil
	}
	items, err := tl1.ParseList(s)
	if err != nil {
		return nil, badPort(s)
	}
	var ps []ocs.Port
	for _, it := range items {
		first, bad := ss.port(it.First)
		if bad != nil {
			return nil, bad
		}
		last := first
		if it.Last != "" {
			if last, bad = ss.port(it.Last); bad != nil {
				return nil, bad
			}
		}
		if last < first {
			return nil, badPort(it.First + "&&" + it.Last)
		}
		if len(ps)+int(last-first) > maxList {
			return nil, deny(tl1.SSRE, "Too many ports")
		}
		for p := first; p <= last; p++ {
			ps = append(ps, p)
		}
	}
	return ps, nil
}

// portsOrAll reads a list; "ALL" and nothing are all ports.
func (ss *session) portsOrAll(f tl1.Field) ([]ocs.Port, *denial) {
	if isOneOf(f, "ALL", "") {
		return ss.dev.Geometry().Ports(), nil
	}
	return ss.portList(f.Text())
}

// portsNamed reads a list that must not be empty.
func (ss *session) portsNamed(f tl1.Field) ([]ocs.Port, *denial) {
	if f.Text() == "" {
		return nil, tooFew(tl1.IIAC, 0, 1)
	}
	return ss.portsOrAll(f)
}

// each makes a reply of one line a port; ports for which line returns "" are
// left out.
func (ss *session) each(aid tl1.Field, line func(ocs.Port) string) (reply, *denial) {
	ports, bad := ss.portsOrAll(aid)
	if bad != nil {
		return reply{}, bad
	}
	var r reply
	for _, p := range ports {
		if l := line(p); l != "" {
			r.text = append(r.text, p.String()+":"+l)
		}
	}
	return r, nil
}

// refusal turns an error of the device into what goes on the wire.
func refusal(err error) *denial {
	if err == nil {
		return nil
	}
	var port *ocs.PortError
	var conflict *ocs.ConflictError
	var failed *emulator.FailedPortError
	var limit *emulator.LimitError
	switch {
	case errors.As(err, &port):
		return badPort(port.Port.String())
	case errors.As(err, &failed):
		return deny(tl1.SROF, "Port %d has failed", failed.Port)
	case errors.As(err, &limit):
		return deny(tl1.SSRE, "Too many ports (%d/%d)", limit.Pairs, limit.Max)
	case errors.As(err, &conflict):
		// The port is the end of the new cross-connect that the other has, too.
		p := conflict.Want.Egress
		if in := conflict.Want.Ingress; conflict.Have.Ingress == in || conflict.Have.Egress == in {
			p = in
		}
		if conflict.Where != "" {
			return deny(tl1.IDNV, "Duplicate OXC port: %d", p)
		}
		return deny(tl1.IDNC, "Port %d is in use by %d,%d", p, conflict.Have.Ingress, conflict.Have.Egress)
	case errors.Is(err, emulator.ErrNoFlap):
		return deny(tl1.SNVS, "No shutter programme")
	}
	return notValid()
}

// edit changes what does not concern the matrix.
func (ss *session) edit(e emulator.Edit) error {
	_, err := ss.dev.Edit(ss.me, e)
	return err
}

func shutter(closed bool) func(*session, *tl1.Command) (reply, *denial) {
	return func(ss *session, c *tl1.Command) (reply, *denial) {
		ports, bad := ss.portsNamed(c.AID)
		if bad != nil {
			return reply{}, bad
		}
		set := make(map[ocs.Port]bool, len(ports))
		for _, p := range ports {
			set[p] = closed
		}
		return reply{}, refusal(ss.edit(emulator.Edit{Closed: set}))
	}
}

func (ss *session) rtrvShutter(c *tl1.Command) (reply, *denial) {
	return ss.each(c.AID, func(p ocs.Port) string {
		if ss.dev.ShutterClosed(p) {
			return "CLOSED"
		}
		return "OPEN"
	})
}

func (ss *session) entFlap(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.portsNamed(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	if _, bad := text1(c); bad != nil {
		return reply{}, bad
	}
	ps := positions(c, 3)
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = strconv.Atoi(ps[i]); err != nil || n[i] > 1e6 || len(ps) > len(n) {
			return reply{}, notValid()
		}
	}
	return reply{}, refusal(ss.dev.SetFlap(emulator.Flap{
		Off: time.Duration(n[0]) * time.Millisecond, On: time.Duration(n[1]) * time.Millisecond, Cycles: n[2],
	}, ports...))
}

func (ss *session) oprFlap(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.portsNamed(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	return reply{}, refusal(ss.dev.StartFlap(ports...))
}

func (ss *session) rlsFlap(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.portsNamed(c.AID)
	ss.dev.StopFlap(ports...)
	return reply{}, bad
}

func (ss *session) rtrvFlap(c *tl1.Command) (reply, *denial) {
	return ss.each(c.AID, func(p ocs.Port) string {
		f, ok := ss.dev.Flap(p)
		if !ok {
			return ""
		}
		return strconv.FormatInt(f.Off.Milliseconds(), 10) + "," + strconv.FormatInt(f.On.Milliseconds(), 10) + "," + strconv.Itoa(f.Cycles)
	})
}

func (ss *session) rtrvLabel(c *tl1.Command) (reply, *denial) { return ss.each(c.AID, ss.dev.Label) }

func (ss *session) edLabel(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.portsNamed(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	b, bad := named(c, "LABEL")
	if bad != nil {
		return reply{}, bad
	}
	items, err := tl1.ParseList(b.Params[0].Value.Raw)
	switch {
	case err != nil || len(b.Params) > 1:
		return reply{}, notValid()
	case len(items) < len(ports):
		return reply{}, deny(tl1.IPMS, "Too few parameters (%d/%d) in block 2", len(items), len(ports))
	case len(items) > len(ports):
		return reply{}, deny(tl1.IPNV, "Too many parameters (%d/%d) in block 2", len(items), len(ports))
	}
	labels := map[ocs.Port]string{}
	for i, p := range ports {
		if items[i].Last != "" {
			return reply{}, notValid()
		}
		labels[p] = items[i].First
	}
	return reply{}, refusal(ss.edit(emulator.Edit{Labels: labels}))
}

func (ss *session) dltLabel(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.portsOrAll(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	labels := map[ocs.Port]string{}
	for _, p := range ports {
		labels[p] = ""
	}
	return reply{}, refusal(ss.edit(emulator.Edit{Labels: labels}))
}
