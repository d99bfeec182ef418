package netconfserver

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/netconf"
)

// maxLog is how many entries the log has; the oldest make room.
const maxLog = 1000

// eventLog is what was notified since the log began.
type eventLog struct {
	mu      sync.Mutex // guards what follows; no other is locked while it is held
	last    int        // number of the newest entry
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

// Record begins the notification log and the list of alarms, which then cover
// all that happens. Without it they begin with Serve, ServeTLS or the first
// session.
func (s *Server) Record() {
	s.logged.Do(func() { s.Device.Observe(s.log.record) })
}

// record writes down an event. The device calls it.
func (l *eventLog) record(e emulator.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	name, kind := kindOf(e)
	l.add(name, e, e.Time)
	if e.Kind == emulator.PowerEvent {
		l.alarm(e, kind, e.Time)
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
	v.srv.log.mu.Lock()
	defer v.srv.log.mu.Unlock()
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
	v.srv.log.mu.Lock()
	defer v.srv.log.mu.Unlock()
	list := netconf.El(plts, "system-alarms")
	for _, a := range slices.SortedFunc(slices.Values(v.srv.log.alarms), func(a, b activeAlarm) int { return cmp.Compare(a.since.UnixNano(), b.since.UnixNano()) }) {
		list.Children = append(list.Children, netconf.El(plts, "alarm",
			pl("alarm-time", a.since.UTC().Format("2006-01-02T15:04:05.000000Z")), pl("alarm-type", a.kind), pl("alarm-message", a.text)))
	}
	return list
}

// clearLog removes entries from the log, all if none is named.
func (ss *session) clearLog(op *netconf.Node) reply {
	l := &ss.srv.log
	l.mu.Lock()
	defer l.mu.Unlock()
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
