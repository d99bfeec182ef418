package tl1server

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

var glimmerglass = dialect{
	nullCTAG: true, marksLast: true, plainEcho: true,
	noLogin: "Login Not Active", badLogin: "Invalid user or password", unknown: "Invalid command %.40s",
	commands: map[string]command{
		"ACT-USER":         {"", (*session).actUser},
		"CANC-USER":        {emulator.Viewer, (*session).cancUser},
		"RTRV-HDR":         {emulator.Viewer, nothing},
		"RTRV-SYSTEM-INFO": {emulator.Viewer, (*session).fiberSystem},
		"RTRV-CFG-FIBER":   {emulator.Viewer, (*session).fiberPorts},
		"RTRV-CRS-FIBER":   {emulator.Viewer, (*session).fiberCircuits},
		"RTRV-PORT-POWER":  {emulator.Viewer, (*session).fiberPower},
		"ENT-CRS-FIBER":    {emulator.Operator, (*session).fiberConnect},
		"DLT-CRS-FIBER":    {emulator.Operator, (*session).fiberDisconnect},
		"ED-PARAM":         {emulator.Operator, (*session).fiberParam},
	},
}

// Inputs and outputs are numbered from these, 1 for the first.
const (
	inputBase  = 10000
	outputBase = 20000
)

// fiberNumber is the device's number of a port.
func (ss *session) fiberNumber(p ocs.Port) int {
	if n := ss.inputs(); p > n {
		return outputBase + int(p-n)
	}
	return inputBase + int(p)
}

// fiberPort is the inverse.
func (ss *session) fiberPort(s string) (ocs.Port, *denial) {
	n, err := strconv.Atoi(s)
	g := ss.dev.Geometry()
	switch in, out := n-inputBase, n-outputBase; {
	case err != nil:
	case in >= 1 && in <= g.Ingress:
		return ocs.Port(in), nil
	case out >= 1 && out <= g.Egress:
		return ocs.Port(g.Ingress + out), nil
	}
	return 0, invalid(tl1.IIAC, "port", s)
}

// fiberList reads a list of single ports and ranges.
func (ss *session) fiberList(s string) ([]ocs.Port, *denial) {
	items, err := tl1.ParseList(s)
	if err != nil || len(items) == 0 {
		return nil, invalid(tl1.IIAC, "port", s)
	}
	var ps []ocs.Port
	for _, it := range items {
		first, bad := ss.fiberPort(it.First)
		if bad != nil {
			return nil, bad
		}
		last := first
		if it.Last != "" {
			if last, bad = ss.fiberPort(it.Last); bad != nil {
				return nil, bad
			}
		}
		if n := ss.inputs(); last < first || first <= n && last > n {
			return nil, invalid(tl1.IIAC, "range", it.First+"&&"+it.Last)
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

// fiberAID reads the ports of a command: "all", or a list.
func (ss *session) fiberAID(c *tl1.Command) ([]ocs.Port, *denial) {
	switch {
	case c.AID.Text() == "":
		return nil, tooFew(tl1.IIAC, 0, 1)
	case isOneOf(c.AID, "ALL"):
		return ss.dev.Geometry().Ports(), nil
	}
	return ss.fiberList(c.AID.Text())
}

func (ss *session) fiberSystem(*tl1.Command) (reply, *denial) {
	p := ss.dev.Personality()
	return reply{text: []string{
		"GGN:SerialNumber=" + ss.dev.Serial(),
		"GGN:SystemType=" + p.Product,
		"GGN:ChassisType=" + p.Product,
		"GGN:LicensedPortMatrix=" + ss.dev.Geometry().String(),
		"GGN:SoftwareActiveVersion=" + p.Firmware,
	}}, nil
}

// fiberName is the name of a port.
func (ss *session) fiberName(p ocs.Port) string {
	n := ss.inputs()
	switch label := ss.dev.Label(p); {
	case label != "":
		return label
	case p > n:
		return "OUT" + (p - n).String()
	}
	return "IN" + p.String()
}

func (ss *session) fiberPorts(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.fiberAID(c)
	var r reply
	for _, p := range ports {
		health, fault := "good", ""
		if ss.dev.Failed(p) {
			health = "bad"
		}
		if p > ss.inputs() {
			fault = ",CSFLTSEV=CR"
		}
		r.text = append(r.text, fmt.Sprintf("GGN:PORTID=%d,PORTGROUP=OpenGroup,PORTNAME=%s,SIGBAND=1550,SIGTHRESH=1550,PORTHEALTH=%s,PORTCAT=nor,PORTCOMMENT=,STMINSEV=DI,STMAXSEV=DI%s",
			ss.fiberNumber(p), ss.fiberName(p), health, fault))
	}
	return r, bad
}

func (ss *session) fiberPower(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.fiberAID(c)
	var r reply
	for _, p := range ports {
		r.text = append(r.text, fmt.Sprintf("GGN:PORTID=%d,PORTNAME=%s,POWER=%s", ss.fiberNumber(p), ss.fiberName(p), ss.powerOr(p, "NA")))
	}
	return r, bad
}

// fiberCircuits lists the connections of the ports and the ports without one: in the order of the list,
// each once, with what ends at an output where its input is listed if that is.
func (ss *session) fiberCircuits(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.fiberAID(c)
	if bad != nil {
		return reply{}, bad
	}
	b, done := ss.openBook(ss.fiberConnection)
	defer done()
	at := map[ocs.Port]*entry{}
	n := ss.inputs()
	for i := range b.Entries {
		e := &b.Entries[i]
		at[e.From], at[n+e.To] = e, e
	}
	var r reply
	told := map[*entry]bool{}
	for _, p := range ports {
		e := at[p]
		switch {
		case e == nil && p <= n:
			r.text = append(r.text, ss.fiberLine(p, 0, nil))
		case e == nil:
			r.text = append(r.text, ss.fiberLine(0, p, nil))
		case !told[e]:
			told[e] = true
			r.text = append(r.text, ss.fiberLine(e.From, n+e.To, e))
		}
	}
	return r, nil
}

// fiberConnection is the name of a connection: that of its input.
func (ss *session) fiberConnection(from, _ ocs.Port) string { return ss.fiberName(from) }

// fiberLine shows a connection, or a port without one: the other is 0 then.
func (ss *session) fiberLine(in, out ocs.Port, e *entry) string {
	side := func(letter string, p ocs.Port, power string) string {
		id, group, name, level := 0, "", "", "NA"
		if p != 0 {
			id, group, name, level = ss.fiberNumber(p), "OpenGroup", ss.fiberName(p), ss.powerOr(p, "NA")
		}
		return fmt.Sprintf("%[1]sPORTID=%[2]d,%[1]sPORTGROUP=%[3]s,%[1]sPORTNAME=%[4]s,%[1]sPORTCOMMENT=,%[5]s=%[6]s", letter, id, group, name, power, level)
	}
	loss, name, state, cause, lock, user := "NA", "", "single", "none", 0, ""
	if e != nil {
		name, state, user = ss.fiberName(e.From), "steady", e.Owner
		if ss.dev.HasMonitor(in) && ss.dev.HasMonitor(out) {
			loss = decimal(float64(ss.dev.Power(in).Sub(ss.dev.Power(out))))
		}
		if ss.failing(e) {
			state, cause = "fault", "initial_connection_timer_expired"
		}
		if locked := ss.fiberLock(e.From); locked != "" {
			lock, user = 1, locked
		}
	}
	return fmt.Sprintf("GGN:%s,%s,SIGBAND=1550,PWRLOSS=%s,CONNID=0,CONNNAME=%s,CONNSTATE=%s,CONNCAUSE=%s,CONNLOCK=%d,CONNLOCKUSER=%s",
		side("I", in, "INPWR"), side("O", out, "OUTPWR"), loss, name, state, cause, lock, user)
}

// fiberLock returns who has locked the connection of an input.
func (ss *session) fiberLock(in ocs.Port) string {
	for _, l := range ss.dev.Personality().TL1.Locks {
		if ocs.Port(l.Port) == in {
			return l.User
		}
	}
	return ""
}

// fiberLocked refuses to touch connections that somebody else has locked.
func (ss *session) fiberLocked(b *book, touched func(*entry) bool) *denial {
	user, _ := ss.who()
	for i := range b.Entries {
		e := &b.Entries[i]
		if by := ss.fiberLock(e.From); by != "" && by != user && touched(e) {
			return deny(tl1.SNVS, "Connection of port %d is locked by %s", ss.fiberNumber(e.From), by)
		}
	}
	return nil
}

func (ss *session) fiberConnect(c *tl1.Command) (reply, *denial) {
	in, out, two := strings.Cut(c.AID.Text(), ",")
	if !two {
		return reply{}, tooFew(tl1.IIAC, 1, 2)
	}
	mode := ""
	if c.Block(block2).Text() != "" {
		b, bad := named(c, "OPMODE")
		if bad != nil {
			return reply{}, bad
		}
		mode, _ = b.Value("OPMODE")
		if mode = strings.ToLower(mode); mode != "sync" && mode != "async" {
			return reply{}, invalid(tl1.IPNV, "OPMODE", mode)
		}
	}
	ins, bad := ss.fiberList(in)
	if bad != nil {
		return reply{}, bad
	}
	outs, bad := ss.fiberList(out)
	if bad != nil {
		return reply{}, bad
	}
	if len(ins) != len(outs) {
		return reply{}, deny(tl1.IDNV, "Invalid lists: %d inputs and %d outputs", len(ins), len(outs))
	}
	add := make([]ocs.CrossConnect, len(ins))
	for i := range add {
		add[i] = ocs.CrossConnect{Ingress: ins[i], Egress: outs[i]}
	}
	return ss.fiberEdit(emulator.Edit{Add: add}, mode)
}

func (ss *session) fiberDisconnect(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.fiberAID(c)
	if bad != nil {
		return reply{}, bad
	}
	return ss.fiberEdit(emulator.Edit{Drop: ports}, "")
}

// fiberEdit changes circuits, and notes whose they are.
func (ss *session) fiberEdit(e emulator.Edit, mode string) (reply, *denial) {
	b, done := ss.openBook(ss.fiberConnection)
	defer done()
	touched := map[ocs.Port]bool{}
	for _, p := range e.Drop {
		touched[p] = true
	}
	user, _ := ss.who()
	n := ss.inputs()
	held := ss.dev.CrossConnects()
	for _, c := range e.Add {
		if !held.Has(c) {
			touched[c.Ingress], touched[c.Egress] = true, true
		}
	}
	hit := func(x *entry) bool { return touched[x.From] || touched[n+x.To] }
	if bad := ss.fiberLocked(b, hit); bad != nil {
		return reply{}, bad
	}
	kept := b.Entries[:0]
	for i := range b.Entries {
		if x := &b.Entries[i]; !hit(x) {
			kept = append(kept, *x)
		}
	}
	b.Entries = kept
	for _, c := range e.Add {
		if touched[c.Ingress] && c.Egress > n {
			b.Entries = append(b.Entries, entry{Name: ss.fiberName(c.Ingress), From: c.Ingress, To: c.Egress - n, Owner: user})
		}
	}
	op, err := ss.commit(b, e)
	if err != nil {
		return reply{}, ss.fiberRefusal(err)
	}
	switch mode {
	case "sync":
		op.Ack = op.Settled
	case "async":
		op.Ack = time.Now()
	}
	return reply{op: op}, nil
}

// fiberRefusal is refusal with the device's numbers of the ports.
func (ss *session) fiberRefusal(err error) *denial {
	bad := refusal(err)
	if port, ok := errors.AsType[*ocs.PortError](err); ok {
		return invalid(tl1.IIAC, "port", strconv.Itoa(ss.fiberNumber(port.Port)))
	}
	if busy, ok := errors.AsType[*ocs.ConflictError](err); ok {
		if busy.Where != "" {
			return deny(tl1.IDNV, "Invalid lists: a port is there twice")
		}
		return deny(tl1.IDNC, "Failed, a port is in use by %d,%d", ss.fiberNumber(busy.Have.Ingress), ss.fiberNumber(busy.Have.Egress))
	}
	if port, ok := errors.AsType[*emulator.FailedPortError](err); ok {
		return deny(tl1.SROF, "Failed, port %d is bad", ss.fiberNumber(port.Port))
	}
	return bad
}

// fiberParam accepts the period of the power monitors, in seconds. They measure when
// they are asked.
func (ss *session) fiberParam(c *tl1.Command) (reply, *denial) {
	b, bad := named(c, "NAME", "VAL")
	if bad != nil {
		return reply{}, bad
	}
	name, _ := b.Value("NAME")
	text, _ := b.Value("VAL")
	if !strings.EqualFold(name, "PowerMonitoringPeriod") {
		return reply{}, invalid(tl1.IPNV, "parameter", name)
	}
	if n, err := strconv.Atoi(text); err != nil || n < 1 || n > 3600 {
		return reply{}, invalid(tl1.IPNV, "value", text)
	}
	return reply{}, nil
}
