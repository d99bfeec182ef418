package tl1server

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

var calient = dialect{
	nullCTAG: true, noLogin: "Login Not Active", badLogin: "Invalid user or password", unknown: "Invalid command %.40s",
	commands: map[string]command{
		"ACT-USER":      {"", (*session).calientLogin},
		"CANC-USER":     {emulator.Viewer, (*session).cancUser},
		"RTRV-HDR":      {emulator.Viewer, nothing},
		"RTRV-NE":       {emulator.Viewer, (*session).calientNE},
		"RTRV-PORT":     {emulator.Viewer, (*session).calientPorts},
		"RTRV-PORT-SUM": {emulator.Viewer, (*session).calientSummary},
		"RTRV-CRS":      {emulator.Viewer, (*session).calientCircuits},
		"ENT-CRS":       {emulator.Operator, (*session).calientEnter},
		"ACT-CRS":       {emulator.Operator, (*session).calientActivate},
		"CANC-CRS":      {emulator.Operator, (*session).calientCancel},
		"DLT-CRS":       {emulator.Operator, (*session).calientDelete},
	},
}

// calientName is what the k-th port is called.
func (ss *session) calientName(k ocs.Port) string {
	t := &ss.dev.Personality().TL1
	if t.Slot == 0 {
		return k.String()
	}
	i := int(k) - 1
	return fmt.Sprintf("%d.%d.%d", i/(t.Slot*t.Shelf)+1, i/t.Slot%t.Shelf+1, i%t.Slot+1)
}

// calientPort is the inverse of calientName.
func (ss *session) calientPort(s string) (ocs.Port, *denial) {
	for k := range ss.inputs() {
		if ss.calientName(k+1) == s {
			return k + 1, nil
		}
	}
	return 0, invalid(tl1.IIAC, "port", s)
}

func (ss *session) calientConnection(from, to ocs.Port) string {
	return ss.calientName(from) + ">" + ss.calientName(to)
}

func (ss *session) calientLogin(c *tl1.Command) (reply, *denial) {
	r, bad := ss.actUser(c)
	if bad != nil {
		return r, bad
	}
	name := c.AID.Text()
	g, _ := ss.dev.GroupOf(name)
	r.text = []string{fmt.Sprintf("%s:%s,%d", name, name, rank[g])}
	if notice := ss.dev.Personality().TL1.Notice; notice != "" {
		r.notes = []string{notice}
	}
	return r, nil
}

func (ss *session) calientNE(*tl1.Command) (reply, *denial) {
	p := ss.dev.Personality()
	return line(fmt.Sprintf("%s:SERIALNUMBER=%s,SWPACKAGE=%s,STATUS=OK,CHASSISTYPE=%s,PLATFORM=VERSION2", ss.dev.SID(), ss.dev.Serial(), p.Firmware, p.Product))
}

// calientEach makes a reply of one line for a port, or for each of them: 0.
func (ss *session) calientEach(c *tl1.Command, text func(k ocs.Port, name string) string) (reply, *denial) {
	var r reply
	add := func(k ocs.Port) {
		name := ss.calientName(k)
		r.text = append(r.text, name+":"+text(k, name))
	}
	switch aid := c.AID.Text(); aid {
	case "":
		return r, tooFew(tl1.IIAC, 0, 1)
	case "0":
		for k := range ss.inputs() {
			add(k + 1)
		}
	default:
		k, bad := ss.calientPort(aid)
		if bad != nil {
			return r, bad
		}
		add(k)
	}
	return r, nil
}

func (ss *session) calientPorts(c *tl1.Command) (reply, *denial) {
	m, n := ss.dev.CrossConnects(), ss.inputs()
	state := func(side string, p ocs.Port) (use, text string) {
		use, as, os, oc := "NONE", "OOS-NP", "OOS", "OK"
		if len(m.At(p)) > 0 {
			use, as, os = "TRANSIT", "IS", "IS"
		}
		if ss.dev.Failed(p) {
			oc = "FAIL"
		}
		return use, fmt.Sprintf("%[1]sAS=%[2]s,%[1]sOS=%[3]s,%[1]sOC=%[4]s,%[1]sRS=NPR", side, as, os, oc)
	}
	return ss.calientEach(c, func(k ocs.Port, _ string) string {
		inUse, in := state("IN", k)
		outUse, out := state("OUT", n+k)
		return "WX," + inUse + "," + outUse + ":" + in + "," + out
	})
}

func (ss *session) calientSummary(c *tl1.Command) (reply, *denial) {
	b, done := ss.openBook(ss.calientConnection)
	defer done()
	n := ss.inputs()
	at := map[ocs.Port][]*entry{}
	for i := range b.Entries {
		e := &b.Entries[i]
		at[e.From] = append(at[e.From], e)
		if e.To != e.From {
			at[e.To] = append(at[e.To], e)
		}
	}
	return ss.calientEach(c, func(k ocs.Port, _ string) string {
		alias := ss.dev.Label(k)
		if alias == "" {
			alias = "NONE"
		}
		text := fmt.Sprintf("ALIAS=%s,INPWR=%s,OUTPWR=%s", alias, ss.powerOr(k, "NONE"), ss.powerOr(n+k, "NONE"))
		for i := range 2 {
			name, state := "NONE", "NONE"
			if i < len(at[k]) {
				name = at[k][i].Name
				if !at[k][i].Idle {
					state = "ACT"
				}
			}
			text += fmt.Sprintf(",CONNNAME%d=%s,CONNSTATE%d=%s", i+1, name, i+1, state)
		}
		return text
	})
}

func (ss *session) calientCircuits(c *tl1.Command) (reply, *denial) {
	which, _ := connectionIn(c) // none is all
	b, done := ss.openBook(ss.calientConnection)
	defer done()
	var r reply
	for i := range b.Entries {
		e := &b.Entries[i]
		if which != "" && !strings.EqualFold(which, "ALL") && which != e.Name {
			continue
		}
		kind, oc := "1WAY", "OK"
		if e.TwoWay {
			kind = "2WAY"
		}
		if e.Idle || ss.failing(e) {
			oc = "FAIL"
		}
		owner := e.Owner
		if owner == "" {
			owner = "NONE"
		}
		r.text = append(r.text, fmt.Sprintf("%s:SRCPORT=%s,DSTPORT=%s,GRPNAME=%s,CONNNAME=%s,CONNTYPE=%s,AS=UMA,OS=RDY,OC=%s,PS=UPR,AL=CL",
			e.Name, ss.calientName(e.From), ss.calientName(e.To), owner, e.Name, kind, oc))
	}
	return r, nil
}

// connectionIn is the connection that block 1 names: first in "NAME" and "NAME,GROUP",
// second in ",NAME", third in ",GROUP,NAME". Clients write each of them.
func connectionIn(c *tl1.Command) (string, *denial) {
	ps := positions(c, 3)
	for _, i := range [...]int{0, 2, 1} {
		if ps[i] != "" {
			return ps[i], nil
		}
	}
	return "", deny(tl1.IPMS, "Too few parameters (0/1) in block 1")
}

func (ss *session) calientEnter(c *tl1.Command) (reply, *denial) {
	from, to, two := strings.Cut(c.AID.Text(), ",")
	if !two {
		return reply{}, tooFew(tl1.IIAC, 1, 2)
	}
	var e entry
	var bad *denial
	if e.From, bad = ss.calientPort(strings.TrimSpace(from)); bad != nil {
		return reply{}, bad
	}
	if e.To, bad = ss.calientPort(strings.TrimSpace(to)); bad != nil {
		return reply{}, bad
	}
	ps := positions(c, 3)
	e.Owner = ps[0]
	e.Name = ss.calientConnection(e.From, e.To)
	switch strings.ToUpper(ps[1]) {
	case "1WAY":
	case "2WAY":
		e.TwoWay = true
		e.Name = ss.calientName(e.From) + "-" + ss.calientName(e.To)
	default:
		return reply{}, invalid(tl1.IPNV, "connection type", ps[1])
	}
	if ps[2] != "" {
		e.Name = ps[2]
	}
	switch {
	case e.Owner == "" || !wordOf(e.Owner, "-_.") || len(e.Owner) > 32:
		return reply{}, invalid(tl1.IPNV, "group", e.Owner)
	case !wordOf(e.Name, "-_.>") || len(e.Name) > 64 || strings.EqualFold(e.Name, "ALL") || strings.EqualFold(e.Name, "NONE"):
		return reply{}, invalid(tl1.IPNV, "connection name", e.Name)
	}
	e.Idle = ss.dev.Personality().TL1.TwoStep
	b, done := ss.openBook(ss.calientConnection)
	defer done()
	// Which ports an entry keeps busy does not depend on whether it is active.
	denies := ss.dev.Personality().Control.Busy == emulator.Deny
	for i := range b.Entries {
		if o := &b.Entries[i]; o.uses(&e) && (denies || o.Idle || e.Idle) {
			return reply{}, deny(tl1.IDNC, "Failed, a port is in use by %s", o.Name)
		}
	}
	var edit emulator.Edit
	if !e.Idle {
		edit.Add = e.ends(ss.inputs())
		b.Entries = slices.DeleteFunc(b.Entries, func(o entry) bool { return o.uses(&e) })
	}
	if b.find(e.Name) != nil {
		return reply{}, invalid(tl1.IDNV, "connection name, it exists", e.Name)
	}
	b.Entries = append(b.Entries, e)
	op, err := ss.commit(b, edit)
	return reply{op: op}, ss.calientRefusal(err)
}

// calientRefusal is refusal with the device's names of the ports.
func (ss *session) calientRefusal(err error) *denial {
	if busy, ok := errors.AsType[*ocs.ConflictError](err); ok {
		return deny(tl1.IDNC, "Failed, a port is in use by %s", ss.calientConnection(busy.Have.Ingress, busy.Have.Egress-ss.inputs()))
	}
	if port, ok := errors.AsType[*emulator.FailedPortError](err); ok {
		return deny(tl1.SROF, "Failed, a port of %s is bad", ss.calientName((port.Port-1)%ss.inputs()+1))
	}
	return refusal(err)
}

// calientEntry returns the entry that a command names.
func (ss *session) calientEntry(b *book, c *tl1.Command) (*entry, *denial) {
	name, bad := connectionIn(c)
	if bad != nil {
		return nil, bad
	}
	e := b.find(name)
	if e == nil {
		return nil, invalid(tl1.IENE, "connection", name)
	}
	return e, nil
}

func (ss *session) calientActivate(c *tl1.Command) (reply, *denial) {
	b, done := ss.openBook(ss.calientConnection)
	defer done()
	e, bad := ss.calientEntry(b, c)
	if bad != nil || !e.Idle {
		return reply{}, bad
	}
	e.Idle = false
	op, err := ss.commit(b, emulator.Edit{Add: e.ends(ss.inputs())})
	return reply{op: op}, ss.calientRefusal(err)
}

func (ss *session) calientCancel(c *tl1.Command) (reply, *denial) {
	b, done := ss.openBook(ss.calientConnection)
	defer done()
	e, bad := ss.calientEntry(b, c)
	switch {
	case bad != nil:
		return reply{}, bad
	case e.Idle:
		return reply{}, invalid(tl1.SNVS, "state, not active", e.Name)
	}
	e.Idle = true
	op, err := ss.commit(b, ss.calientDrop(e))
	return reply{op: op}, ss.calientRefusal(err)
}

func (ss *session) calientDelete(c *tl1.Command) (reply, *denial) {
	b, done := ss.openBook(ss.calientConnection)
	defer done()
	e, bad := ss.calientEntry(b, c)
	switch {
	case bad != nil:
		return reply{}, bad
	case !e.Idle && ss.dev.Personality().TL1.TwoStep:
		return reply{}, invalid(tl1.SNVS, "state, still active", e.Name)
	}
	var edit emulator.Edit
	if !e.Idle {
		edit = ss.calientDrop(e)
	}
	b.remove(e.Name)
	op, err := ss.commit(b, edit)
	return reply{op: op}, ss.calientRefusal(err)
}

// calientDrop takes the light of an entry away. An input is in one connection only.
func (ss *session) calientDrop(e *entry) emulator.Edit {
	var edit emulator.Edit
	for _, c := range e.ends(ss.inputs()) {
		edit.Drop = append(edit.Drop, c.Ingress)
	}
	return edit
}
