package tl1server

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// ---- session

func (ss *session) actUser(c *tl1.Command) (reply, *denial) {
	name := c.AID.Text()
	if name == "" {
		return reply{}, tooFew(tl1.IIAC, 0, 1)
	}
	if user, _ := ss.who(); user != "" {
		return reply{}, deny(tl1.SNVS, "Already logged in")
	}
	password, missing := text1(c)
	if missing != nil && ss.dev.NeedsPassword(name) {
		return reply{}, missing
	}
	group, err := ss.dev.Login(name, password)
	if err != nil {
		return reply{}, deny(tl1.PICC, "%s", ss.dialect.badLogin)
	}
	return reply{login: func() { ss.login(name, group) }}, nil
}

func (ss *session) cancUser(c *tl1.Command) (reply, *denial) {
	if user, _ := ss.who(); c.AID.Text() != user && c.AID.Text() != "" {
		return reply{}, permissionDenied()
	}
	ss.logout()
	return reply{}, nil
}

func (ss *session) oprArc(c *tl1.Command) (reply, *denial) { return ss.setQuiet(c, true) }
func (ss *session) rlsArc(c *tl1.Command) (reply, *denial) { return ss.setQuiet(c, false) }

func (ss *session) setQuiet(c *tl1.Command, quiet bool) (reply, *denial) {
	if !isOneOf(c.AID, "REPMGR") {
		return reply{}, badAID(c)
	}
	if !isOneOf(c.Block(block1).Field, "IND", "") {
		return reply{}, notValid()
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.quiet = quiet
	return reply{}, nil
}

func (ss *session) rtrvArc(c *tl1.Command) (reply, *denial) {
	if !isOneOf(c.AID, "REPMGR", "ALL") {
		return reply{}, badAID(c)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if ss.quiet {
		return line("REPMGR:IND,,")
	}
	return line("REPMGR:NONE,,")
}

// line is a reply of one line.
func line(s string) (reply, *denial) { return reply{text: []string{s}}, nil }

// ---- equipment

var bootModes = map[string]ocs.BootMode{"DARK": ocs.BootDark, "RESTORE": ocs.BootRestore}

func (ss *session) rtrvEqpt(c *tl1.Command) (reply, *denial) {
	aid := strings.ToUpper(c.AID.Text())
	if !isOneOf(c.AID, "SYSTEM", "BOOT", "TIMEOUT", "PMON", "REVPMON", "ATTEN") {
		return reply{}, badAID(c)
	}
	b, bad := named(c, "PARAMETER")
	if bad != nil {
		return reply{}, bad
	}
	param, _ := b.Value("PARAMETER")
	switch param = strings.ToUpper(param); aid + " " + param {
	case "SYSTEM SIZE":
		return line("SYSTEM:SIZE=" + ss.dev.Geometry().String())
	case "BOOT MODE":
		return line("BOOT:MODE=" + strings.ToUpper(string(ss.dev.BootMode())))
	case "TIMEOUT ADMIN", "TIMEOUT USER":
		return line(fmt.Sprintf("TIMEOUT:%s=%d", param, ss.dev.IdleTimeout(emulator.Group(param))/time.Minute))
	case "ATTEN CONFIG":
		return line("ATTEN:CONFIG=" + ss.attenuatorConfig())
	case "PMON CONFIG", "REVPMON CONFIG":
		var r reply
		for _, p := range ss.dev.Geometry().Ports() {
			if mode := "INPUT"; ss.dev.HasMonitor(p) {
				if ss.dev.MeasuresOutput(p) {
					mode = "OUTPUT"
				}
				r.text = append(r.text, fmt.Sprintf("%s::PORT=%d,MODE=%s", aid, p, mode))
			}
		}
		return r, nil
	}
	return reply{}, notValid()
}

func (ss *session) edEqpt(c *tl1.Command) (reply, *denial) {
	switch strings.ToUpper(c.AID.Text()) {
	case "BOOT":
		b, bad := named(c, "MODE")
		if bad != nil {
			return reply{}, bad
		}
		s, _ := b.Value("MODE")
		if m, ok := bootModes[strings.ToUpper(s)]; ok {
			return reply{}, refusal(ss.edit(emulator.Edit{Boot: m}))
		}
		if _, err := strconv.Atoi(s); err == nil {
			return reply{}, notValid()
		}
		return reply{}, invalidValue(s)
	case "TIMEOUT":
		b, bad := named(c, "ADMIN", "USER")
		if bad != nil {
			return reply{}, bad
		}
		timeouts := map[emulator.Group]time.Duration{}
		for _, p := range b.Params {
			n, err := strconv.Atoi(p.Value.Text())
			if err != nil || n < 0 || n > 60 {
				return reply{}, notValid()
			}
			timeouts[emulator.Group(p.Name)] = time.Duration(n) * time.Minute
		}
		for g, t := range timeouts {
			ss.dev.SetIdleTimeout(g, t)
		}
		return reply{}, nil
	}
	return reply{}, badAID(c)
}

func (ss *session) rtrvInv(c *tl1.Command) (reply, *denial) {
	if !isOneOf(c.AID, "OCS", "ALL", "") {
		return reply{}, badAID(c)
	}
	p := ss.dev.Personality()
	return line(fmt.Sprintf("OCS::PN=%s,SN=%s,FW=%s", p.Product, ss.dev.Serial(), p.Firmware))
}

func (ss *session) rtrvNetype(*tl1.Command) (reply, *denial) {
	p := ss.dev.Personality()
	return line(p.Vendor + "," + p.Product + ",OCS," + p.Firmware)
}

func (ss *session) setSID(c *tl1.Command) (reply, *denial) {
	sid, bad := text1(c)
	if bad != nil {
		return reply{}, bad
	}
	if len(sid) > emulator.MaxSID || !wordOf(sid, "-_. ") {
		return reply{}, invalidValue(sid)
	}
	ss.dev.SetSID(sid)
	return reply{}, nil
}

func (ss *session) edDat(c *tl1.Command) (reply, *denial) {
	text, bad := text1(c)
	if bad != nil {
		return reply{}, bad
	}
	t, err := time.Parse("06-01-02,15-04-05", text)
	switch {
	case err != nil:
		return reply{}, deny(tl1.IDNV, "Bad parameter value")
	case t.Year() >= 2038 || t.Year() < 2000: // a two-digit year from 69 on reads as 19xx
		return reply{}, deny(tl1.SSTP, "Bad parameter value")
	}
	ss.dev.SetClock(t)
	return reply{}, nil
}

func (ss *session) rtrvTod(*tl1.Command) (reply, *denial) {
	return line(ss.dev.Now().Format("2006,01,02,15,04,05") + ",0")
}

func netInterface(text string) func(*session, *tl1.Command) (reply, *denial) {
	return func(_ *session, c *tl1.Command) (reply, *denial) {
		if !isOneOf(c.AID, "eth0") {
			return reply{}, badAID(c)
		}
		return line(text)
	}
}

func (ss *session) initSys(c *tl1.Command) (reply, *denial) {
	if !isOneOf(c.AID, "SYSTEM", "ALARM") {
		return reply{}, badAID(c)
	}
	phase, bad := text1(c)
	if bad != nil {
		return reply{}, bad
	}
	switch strings.ToUpper(c.AID.Text()) + " " + phase {
	case "SYSTEM 0":
		return reply{}, nil
	case "SYSTEM 1":
		return reply{op: ss.dev.ResetMatrix(ss.me)}, nil
	case "SYSTEM 10":
		return reply{reboot: true}, nil
	case "ALARM 1", "ALARM 2", "ALARM 3":
		ss.dev.ClearAlarms(emulator.Forward, ss.dev.Geometry().Ports()...)
		ss.dev.ClearAlarms(emulator.Reverse, ss.dev.Geometry().Ports()...)
		return reply{}, nil
	}
	return reply{}, notValid()
}
