package netconfserver

import (
	"encoding/xml"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/netconf"
)

// Leaves that say which notifications are sent, and the kinds that they name.
const (
	maskNotification    = "mask-notification"
	enableNotifications = "enable-notifications"

	notifPower     = "NOTIF_PORT_POWER"
	notifPowerWarn = "NOTIF_PORT_POWER_WARN"
	notifActivity  = "NOTIF_ACTIVITY"
)

func (ss *session) createSubscription(op *netconf.Node) reply {
	s, bad := netconf.ParseSubscription(op)
	switch {
	case bad != nil:
		return fail(bad)
	case s.Stream != "Polatis" && s.Stream != "NETCONF":
		return fail(netconf.NewError(netconf.TypeProtocol, netconf.InvalidValue, "there is no stream %s, only Polatis and NETCONF", excerpt(s.Stream)))
	case !s.Start.IsZero():
		return fail(unsupported("what is past cannot be replayed"))
	case ss.events != nil:
		return fail(netconf.NewError(netconf.TypeProtocol, netconf.InUse, "this session has a subscription"))
	}
	ss.events = ss.dev.Subscribe()
	events, filter := ss.events, s.Filter.Clone()
	ss.reporters.Go(func() {
		for e := range events.C {
			ss.notify(e, filter)
		}
	})
	return reply{}
}

func (ss *session) unsubscribe() {
	if ss.events != nil {
		ss.events.Close()
	}
}

// notify sends an event, if it is wanted.
func (ss *session) notify(e emulator.Event, filter *netconf.Node) {
	name, kind := kindOf(e)
	if !ss.srv.sends(ss.model, kind) {
		return
	}
	n := notification(name, ss.dev, e)
	chosen := netconf.Filter(filter, []*netconf.Node{n})
	if len(chosen) == 0 {
		return
	}
	indent := "  "
	if ss.dev.Personality().NETCONF.Compact {
		indent = ""
	}
	ss.wire.Lock()
	defer ss.wire.Unlock()
	ss.buf = netconf.Notification{EventTime: e.Time.Truncate(time.Second), Event: chosen[0]}.Node().Append(ss.buf[:0], indent)
	ss.frames = netconf.AppendMessage(ss.frames[:0], ss.buf, ss.framing)
	ss.write(ss.frames)
}

// sends reports whether a kind of notification is switched on.
func (s *Server) sends(model *schema, kind string) bool {
	text := parseNotes(s.Device.Notes())
	if model.roots[xml.Name{Space: plts, Local: enableNotifications}] != nil {
		n := text.root(enableNotifications)
		return n != nil && slices.Contains(strings.Fields(n.Text), kind)
	}
	n := text.root(maskNotification)
	return n == nil || !slices.Contains(strings.Fields(n.Text), kind)
}

// activityLog is the notification of all that is no alarm.
const activityLog = "activity-log-notification"

// kindOf returns which notification an event is, and the kind that masks name.
func kindOf(e emulator.Event) (name, kind string) {
	if e.Kind != emulator.PowerEvent {
		return activityLog, notifActivity
	}
	name, kind = "port-power-", notifPower
	if e.Condition == string(emulator.Degraded) {
		name, kind = "port-power-warn-", notifPowerWarn
	}
	if e.Severity == "" {
		return name + "clear", kind
	}
	return name + "alarm", kind
}

// notification returns an event as it is sent.
func notification(name string, d *emulator.Device, e emulator.Event) *netconf.Node {
	if name == activityLog {
		return netconf.El(plts, name,
			pl("notification-username", e.By.User), pl("notification-ip-address", e.By.Client),
			pl("notification-protocol", e.By.Protocol), pl("notification-activity", e.Text))
	}
	return netconf.El(plts, name, pl("port-id", e.Port.String()), pl("port-label", d.Label(e.Port)))
}
