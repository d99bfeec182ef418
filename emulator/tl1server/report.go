package tl1server

import (
	"fmt"
	"strconv"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// report sends events as autonomous messages until the subscription ends.
func (ss *session) report(events *emulator.Subscription) {
	for e := range events.C {
		ss.announce(events, e)
	}
}

// alarmCodes are the TL1 marks of severities, and what stands for them in the
// text of an alarm.
var alarmCodes = map[string][2]string{"critical": {"*C", "CR"}, "major": {"**", "MJ"}, "minor": {"*", "MN"}, "": {"A", "CL"}}

func (ss *session) announce(events *emulator.Subscription, e emulator.Event) {
	ss.wire.Lock()
	defer ss.wire.Unlock()
	// Who makes a cross-connect knows of it; many clients never inhibit reports,
	// and would trip over one for each command of their own.
	mine := e.Kind == emulator.CircuitEvent && (e.By.ID == ss.me.Info().ID || ss.dev.Personality().TL1.OwnCircuits)
	ss.mu.Lock()
	wanted := ss.events == events && !ss.quiet && !mine && e.Kind != emulator.ActivityEvent
	ss.mu.Unlock()
	if !wanted {
		return
	}
	ss.atag = ss.atag%65535 + 1
	code := alarmCodes[e.Severity]
	m := tl1.Message{Kind: tl1.Autonomous, Alarm: code[0], ATAG: strconv.Itoa(ss.atag)}
	switch e.Kind {
	case emulator.PowerEvent:
		m.Event = "REPT ALM EQPT"
		m.Text = []string{fmt.Sprintf(`PORT-%d:%s,%s,SA:"%s"`, e.Port, code[1], e.Condition, e.Text)}
	case emulator.PortEvent:
		m.Event = "REPT EVT EQPT"
		m.Text = []string{fmt.Sprintf(`PORT-%d:%s,TC:"%s"`, e.Port, e.Condition, e.Text)}
	case emulator.CircuitEvent:
		m.Event = "REPT EVT EQPT"
		m.Text = circuitLines(e)
	}
	ss.writeLocked(ss.encodeLocked(m))
}

// circuitLines are the lines of a report, one for each cross-connect.
func circuitLines(e emulator.Event) []string {
	by := ""
	if e.By.User != "" {
		by = " by " + e.By.User
	}
	var lines []string
	for _, part := range []struct {
		m    ocs.Map
		text string
	}{{e.Change.Remove, "disconnected"}, {e.Change.Add, "connected"}} {
		for c := range part.m.All() {
			lines = append(lines, fmt.Sprintf(`PORT-%d:OXC,TC:"Port %d,%d %s%s"`, c.Ingress, c.Ingress, c.Egress, part.text, by))
		}
	}
	return lines
}
