package tl1server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

func power(read func(*emulator.Device, ocs.Port) ocs.DBm) func(*session, *tl1.Command) (reply, *denial) {
	return func(ss *session, c *tl1.Command) (reply, *denial) {
		return ss.eachMonitor(c.AID, func(p ocs.Port) string { return decimal(float64(read(ss.dev, p))) })
	}
}

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', 2, 64) }

// direction returns which of the two monitors of a port a command is about.
func direction(c *tl1.Command) emulator.Direction {
	if strings.HasSuffix(c.Code, "-REVPMON") {
		return emulator.Reverse
	}
	return emulator.Forward
}

// eachMonitor is each for the ports that have a monitor.
func (ss *session) eachMonitor(aid tl1.Field, line func(ocs.Port) string) (reply, *denial) {
	return ss.each(aid, func(p ocs.Port) string {
		if !ss.dev.HasMonitor(p) {
			return ""
		}
		return line(p)
	})
}

// monitored reads a list of ports that must have monitors; "ALL" are those
// that have one.
func (ss *session) monitored(f tl1.Field) ([]ocs.Port, *denial) {
	return ss.fitted(f, ss.dev.HasMonitor)
}

// fitted reads a list of ports that must have something; "ALL" are those that
// have it.
func (ss *session) fitted(f tl1.Field, has func(ocs.Port) bool) ([]ocs.Port, *denial) {
	ports, bad := ss.portsNamed(f)
	var ps []ocs.Port
	for _, p := range ports {
		switch {
		case has(p):
			ps = append(ps, p)
		case !isOneOf(f, "ALL"):
			return nil, badPort(p.String())
		}
	}
	return ps, bad
}

func (ss *session) rtrvMonitor(c *tl1.Command) (reply, *denial) {
	return ss.eachMonitor(c.AID, func(p ocs.Port) string {
		m := ss.dev.Monitor(direction(c), p)
		return strconv.FormatFloat(m.Wavelength, 'f', 1, 64) + "," + decimal(float64(m.Offset)) + "," + strconv.Itoa(m.Averaging)
	})
}

func (ss *session) setMonitor(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.monitored(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	b, bad := named(c, "WAVE", "OFFSET", "ATIME")
	if bad != nil {
		return reply{}, bad
	}
	settings := map[ocs.Port]emulator.Monitor{}
	for _, p := range ports {
		m := ss.dev.Monitor(direction(c), p)
		atime := float64(m.Averaging)
		if !number(b, "WAVE", &m.Wavelength) || !number(b, "OFFSET", (*float64)(&m.Offset)) || !number(b, "ATIME", &atime) {
			return reply{}, notValid()
		}
		if m.Averaging = int(atime); float64(m.Averaging) != atime {
			return reply{}, notValid()
		}
		settings[p] = m
	}
	return reply{}, refusal(ss.dev.SetMonitors(ss.me, direction(c), settings))
}

// number reads parameter name of b, if it is there, as a number that may stand
// in parentheses, and reports whether that went well.
func number(b tl1.Block, name string, into *float64) bool {
	s, ok := b.Value(name)
	if !ok {
		return true
	}
	if inner, cut := strings.CutPrefix(s, "("); cut {
		if s, cut = strings.CutSuffix(inner, ")"); !cut {
			return false
		}
	}
	x, err := strconv.ParseFloat(s, 64)
	*into = x
	return err == nil && x >= -1e6 && x <= 1e6
}

func alarmType(b tl1.Block) (emulator.AlarmType, *denial) {
	s, ok := b.Value("TYPE")
	switch t := emulator.AlarmType(strings.ToUpper(s)); {
	case !ok:
		return emulator.LossOfSignal, nil
	case t == emulator.LossOfSignal, t == emulator.Degraded:
		return t, nil
	}
	return "", notValid()
}

func (ss *session) setThreshold(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.monitored(c.AID)
	if bad != nil {
		return reply{}, bad
	}
	b, bad := named(c, "TYPE", "MODE", "EDGE", "LOW", "HIGH")
	if bad != nil {
		return reply{}, bad
	}
	kind, bad := alarmType(b)
	if bad != nil {
		return reply{}, bad
	}
	alarms := map[ocs.Port]emulator.Alarm{}
	for _, p := range ports {
		a := ss.dev.Alarm(direction(c), p, kind)
		if s, ok := b.Value("MODE"); ok {
			a.Mode = emulator.AlarmMode(strings.ToUpper(s))
		}
		if s, ok := b.Value("EDGE"); ok {
			a.Edge = emulator.AlarmEdge(strings.ToUpper(s))
		}
		switch a.Mode {
		case emulator.AlarmOff, emulator.AlarmSingle, emulator.AlarmContinuous:
		default:
			return reply{}, notValid()
		}
		edge := a.Edge == emulator.EdgeLow || a.Edge == emulator.EdgeHigh && kind == emulator.LossOfSignal
		if !edge || !number(b, "LOW", (*float64)(&a.Low)) || !number(b, "HIGH", (*float64)(&a.High)) {
			return reply{}, notValid()
		}
		alarms[p] = a
	}
	return reply{}, refusal(ss.dev.SetAlarms(direction(c), kind, alarms))
}

func (ss *session) rtrvThreshold(c *tl1.Command) (reply, *denial) {
	kind, bad := alarmType(c.Block(block2))
	if bad != nil {
		return reply{}, bad
	}
	return ss.eachMonitor(c.AID, func(p ocs.Port) string {
		a := ss.dev.Alarm(direction(c), p, kind)
		high := ""
		if kind == emulator.LossOfSignal {
			high = decimal(float64(a.High))
		}
		return fmt.Sprintf("%s,%s,%s,%s", a.Mode, a.Edge, high, decimal(float64(a.Low)))
	})
}

func (ss *session) clearAlarms(c *tl1.Command) (reply, *denial) {
	ports, bad := ss.portsOrAll(c.AID)
	ss.dev.ClearAlarms(direction(c), ports...)
	return reply{}, bad
}

func (ss *session) rtrvAlarmState(c *tl1.Command) (reply, *denial) {
	return ss.eachMonitor(c.AID, func(p ocs.Port) string {
		los := ss.dev.Alarm(direction(c), p, emulator.LossOfSignal)
		if los.Triggered || ss.dev.Alarm(direction(c), p, emulator.Degraded).Triggered {
			return string(los.Mode) + "&TRIGGERED"
		}
		return string(los.Mode)
	})
}

// rtrvAlarms lists the alarms that have come and were not cleared. Block 1 may
// name the severity, the type and the effect of those wanted.
func (ss *session) rtrvAlarms(c *tl1.Command) (reply, *denial) {
	if !isOneOf(c.AID, "ALL", "") {
		return reply{}, badAID(c)
	}
	var r reply
	if c.Code == "RTRV-ALM-ENV" {
		return r, nil
	}
	filter := positions(c, 3)
	for _, p := range ss.dev.Geometry().Ports() {
		for _, dir := range []emulator.Direction{emulator.Forward, emulator.Reverse} {
			for _, kind := range []emulator.AlarmType{emulator.LossOfSignal, emulator.Degraded} {
				alarm := [...]string{"MJ", string(kind), "SA"}
				fits := ss.dev.Alarm(dir, p, kind).Triggered
				for i, s := range alarm {
					fits = fits && (filter[i] == "" || strings.EqualFold(filter[i], s))
				}
				if fits {
					r.text = append(r.text, p.String()+":"+strings.Join(alarm[:], ","))
				}
			}
		}
	}
	return r, nil
}
