package netconfserver

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
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
	n, kind := notification(ss.dev, e)
	if n == nil || !ss.srv.sends(ss.model, kind) {
		return
	}
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
	ss.buf = netconf.Notification{EventTime: ss.dev.Now().Truncate(time.Second), Event: chosen[0]}.Node().Append(ss.buf[:0], indent)
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

// notification returns an event as it is sent, and its kind; nil if it is not.
func notification(d *emulator.Device, e emulator.Event) (n *netconf.Node, kind string) {
	if e.Kind != emulator.PowerEvent {
		return netconf.El(plts, "activity-log-notification",
			pl("notification-username", e.By.User), pl("notification-ip-address", e.By.Client),
			pl("notification-protocol", e.By.Protocol), pl("notification-activity", e.Text)), notifActivity
	}
	name, kind := "port-power-", notifPower
	if e.Condition == string(emulator.Degraded) {
		name, kind = "port-power-warn-", notifPowerWarn
	}
	if e.Severity == "" {
		name += "clear"
	} else {
		name += "alarm"
	}
	return netconf.El(plts, name, pl("port-id", e.Port.String()), pl("port-label", d.Label(e.Port))), kind
}

// maxLog is how many entries the log has; the oldest make room.
const maxLog = 1000

// eventLog is what was notified while there were sessions.
type eventLog struct {
	last    int // number of the newest entry
	entries []logEntry
	alarms  []activeAlarm
}

// logEntry is notifications that say the same.
type logEntry struct {
	id          int
	name, text  string
	port        ocs.Port
	count       int
	first, last time.Time
}

// activeAlarm is a power alarm that has not been cleared.
type activeAlarm struct {
	port      ocs.Port
	condition string
	kind      string
	text      string
	since     time.Time
}

// record writes down events until the subscription ends.
func (s *Server) record(events *emulator.Subscription) {
	for e := range events.C {
		n, kind := notification(s.Device, e)
		now := s.Device.Now()
		s.mu.Lock()
		s.log.add(n.Name.Local, e, now)
		if e.Kind == emulator.PowerEvent {
			s.log.alarm(e, kind, now)
		}
		s.mu.Unlock()
	}
}

func (l *eventLog) add(name string, e emulator.Event, now time.Time) {
	for i := range l.entries {
		if x := &l.entries[i]; x.name == name && x.text == e.Text && x.port == e.Port {
			x.count++
			x.last = now
			return
		}
	}
	if len(l.entries) == maxLog {
		l.entries = slices.Delete(l.entries, 0, 1)
	}
	l.last++
	l.entries = append(l.entries, logEntry{l.last, name, e.Text, e.Port, 1, now, now})
}

func (l *eventLog) alarm(e emulator.Event, kind string, now time.Time) {
	l.alarms = slices.DeleteFunc(l.alarms, func(a activeAlarm) bool { return a.port == e.Port && a.condition == e.Condition })
	if e.Severity == "" {
		return
	}
	// The time is the key.
	for _, a := range l.alarms {
		if !a.since.Before(now) {
			now = a.since.Add(time.Microsecond)
		}
	}
	l.alarms = append(l.alarms, activeAlarm{e.Port, e.Condition, kind, e.Text, now})
}

func (v *view) notificationLog(want) *netconf.Node {
	v.srv.mu.Lock()
	defer v.srv.mu.Unlock()
	list := netconf.El(plts, "notification-log")
	for _, e := range v.srv.log.entries {
		n := netconf.El(plts, "log", pl("notif-id", strconv.Itoa(e.id)), pl("notif-type", e.name), pl("notif-count", strconv.Itoa(e.count)),
			pl("notif-time-first", stamp(e.first)), pl("notif-time-last", stamp(e.last)), pl("notif-message", e.text))
		if e.port != 0 {
			n.Children = append(n.Children, pl("notif-port", e.port.String()))
		}
		list.Children = append(list.Children, n)
	}
	return list
}

func (v *view) systemAlarms(want) *netconf.Node {
	v.srv.mu.Lock()
	defer v.srv.mu.Unlock()
	list := netconf.El(plts, "system-alarms")
	for _, a := range slices.SortedFunc(slices.Values(v.srv.log.alarms), func(a, b activeAlarm) int { return cmp.Compare(a.since.UnixNano(), b.since.UnixNano()) }) {
		list.Children = append(list.Children, netconf.El(plts, "alarm",
			pl("alarm-time", a.since.UTC().Format("2006-01-02T15:04:05.000000Z")), pl("alarm-type", a.kind), pl("alarm-message", a.text)))
	}
	return list
}

// clearLog removes entries from the log, all if none is named.
func (ss *session) clearLog(op *netconf.Node) reply {
	ss.srv.mu.Lock()
	defer ss.srv.mu.Unlock()
	l := &ss.srv.log
	if len(op.Children) == 0 {
		l.entries = nil
		return reply{}
	}
	for _, n := range op.Children {
		id := n.Value("notif-id")
		if !slices.ContainsFunc(l.entries, func(e logEntry) bool { return strconv.Itoa(e.id) == id }) {
			return fail(invalid("There is no entry %s", id))
		}
	}
	for _, n := range op.Children {
		l.entries = slices.DeleteFunc(l.entries, func(e logEntry) bool { return strconv.Itoa(e.id) == n.Value("notif-id") })
	}
	return reply{}
}
