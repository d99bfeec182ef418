package netconfswitch_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/netconfswitch"
	"github.com/ocslab/ocslab/ocs"
)

const plts = ` xmlns="http://www.polatis.com/yang/polatis-switch"`

func subscription(stream string) string {
	return `<create-subscription xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"><stream>` + stream + `</stream></create-subscription>`
}

const readMask = `<get><filter type="subtree"><mask-notification` + plts + `/></filter></get>`

// bitsEdit sets which notifications are sent.
func bitsEdit(leaf, value string) string {
	return `<edit-config><target><running/></target><config><` + leaf + plts + ` xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0">` +
		value + `</` + leaf + `></config></edit-config>`
}

// subscribed serves a listener on a device that sends everything.
func (l *line) subscribed() {
	l.ask(readMask, "<data/>")
	l.ask(subscription("Polatis"), ok)
}

func notification(content string) string {
	return `<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"><eventTime>2018-03-14T12:24:46Z</eventTime>` + content + `</notification>`
}

// listening is a call of Notify.
type listening struct {
	events chan ocs.Event
	ended  chan error
	stop   context.CancelFunc
}

func listen(sw *netconfswitch.Switch) *listening {
	heard, stop := context.WithCancel(ctx)
	l := &listening{make(chan ocs.Event, 100), make(chan error, 1), stop}
	go func() { l.ended <- sw.Notify(heard, func(e ocs.Event) { l.events <- e }) }()
	synctest.Wait()
	return l
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct {
		message string
		want    ocs.Event
	}{
		{alarm, ocs.Event{Severity: "major", Port: 53, Text: "port-power-alarm: port-id 53, port-label gpu1"}},
		{notification(`<port-power-clear` + plts + `><port-id>53</port-id><port-label/></port-power-clear>`), ocs.Event{Severity: "event", Port: 53, Text: "port-power-clear: port-id 53"}},
		{notification(`<port-power-warn-alarm` + plts + `><port-id>53</port-id></port-power-warn-alarm>`), ocs.Event{Severity: "minor", Port: 53, Text: "port-power-warn-alarm: port-id 53"}},
		{notification(`<system-error` + plts + `><error-code>3</error-code><switch-status>REQUEST_SERVICE</switch-status><message>fan</message></system-error>`),
			ocs.Event{Severity: "critical", Text: "system-error: error-code 3, switch-status REQUEST_SERVICE, message fan"}},
		{notification(`<activity-log-notification` + plts + `><notification-username>admin</notification-username><notification-activity>Port 3 disabled</notification-activity></activity-log-notification>`),
			ocs.Event{Severity: "event", Port: 3, Text: "Port 3 disabled, by admin"}},
		{notification(`<activity-log-notification` + plts + `><notification-username/><notification-ip-address>192.0.2.1</notification-ip-address><notification-protocol>SCPI</notification-protocol><notification-activity>connected 1&gt;33</notification-activity></activity-log-notification>`),
			ocs.Event{Severity: "event", Text: "connected 1>33 over SCPI from 192.0.2.1"}},
		{notification(`<x xmlns="urn:x"><y><z>1</z></y><password>hunter2</password><port-id>99999</port-id></x>`),
			ocs.Event{Severity: "event", Text: "x: z 1, password ***, port-id 99999"}},
		{notification(``), ocs.Event{Severity: "event"}},
	} {
		run(t, one(func(l *line) {
			l.hello()
			l.subscribed()
			l.raw(l.frame(tc.message))
		}), func(t *testing.T, sw *netconfswitch.Switch) {
			l := listen(sw)
			e := <-l.events
			raw := e.Raw
			tc.want.Received = time.Now()
			e.Raw = ""
			if !reflect.DeepEqual(e, tc.want) || !strings.Contains(raw, "<notification") || strings.Contains(raw, "hunter") {
				t.Errorf("got %+v, %q", e, raw)
			}
			l.stop()
			if err := <-l.ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestNotifyTwice shares one subscription, which goes on unheard.
func TestNotifyTwice(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.subscribed()
		l.raw(l.frame(alarm))
		l.ask(readMap, data("cross-connects", pair1))
		l.raw(l.frame(alarm))
		l.expect(readMap)
		l.raw(l.frame(alarm) + l.reply(data("cross-connects", pair1)))
		l.Close()
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		l1 := listen(sw)
		<-l1.events
		l2 := listen(sw)
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Error(err)
		}
		<-l1.events
		<-l2.events
		l1.stop()
		l2.stop()
		<-l1.ended
		<-l2.ended
		l3 := listen(sw)
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Error(err)
		}
		<-l3.events
		if err := <-l3.ended; !errors.Is(err, io.EOF) || !strings.HasPrefix(err.Error(), "rail0: listen:") {
			t.Errorf("got %v", err)
		}
	})
}

// TestSecondSession listens on a session of its own when the device does not
// announce interleave, and closes it with the last listener.
func TestSecondSession(t *testing.T) {
	caps := []string{base10, base11, notifies, optical, polatis}
	run(t, []func(*line){
		func(l *line) {
			l.hello(caps...)
			l.ask(readMask, "<data/>")
			l.ask(readMap, data("cross-connects", pair1))
			l.ask(readMap, data("cross-connects", pair1))
		},
		func(l *line) {
			l.hello(caps...)
			l.ask(subscription("Polatis"), ok)
			l.raw(l.frame(alarm))
			if extra := l.next(); extra != "" {
				t.Errorf("got %q on the session of notifications", extra)
			}
		},
		nil,
	}, func(t *testing.T, sw *netconfswitch.Switch) {
		l1, l2 := listen(sw), listen(sw)
		<-l1.events // before the second listened
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Error(err)
		}
		l1.stop()
		<-l1.ended
		l2.stop()
		<-l2.ended
		if _, err := sw.CrossConnects(ctx); err != nil {
			t.Error(err)
		}
		if err := sw.Notify(ctx, func(ocs.Event) {}); err == nil || !strings.Contains(err.Error(), "refused") {
			t.Errorf("got %v", err)
		}
	})
}

// TestSwitchOn is what the device was told not to send.
func TestSwitchOn(t *testing.T) {
	const kinds = "NOTIF_PORT_POWER NOTIF_PORT_POWER_WARN NOTIF_SYSTEM NOTIF_APS NOTIF_ACTIVITY"
	const readEnabled = `<get><filter type="subtree"><enable-notifications` + plts + `/></filter></get>`
	leaf := func(name, value string) string {
		return "<data><" + name + plts + ">" + value + "</" + name + "></data>"
	}
	no := rpcError("access-denied", "", "view may only read")
	for _, tc := range []struct {
		name, revision string
		script         func(l *line)
		warned         string
	}{
		{"masked", polatis, func(l *line) {
			l.ask(readMask, leaf("mask-notification", "NOTIF_ACTIVITY"))
			l.ask(bitsEdit("mask-notification", ""), ok)
		}, ""},
		{"masked, and may not", polatis, func(l *line) {
			l.ask(readMask, leaf("mask-notification", "NOTIF_ACTIVITY"))
			l.ask(bitsEdit("mask-notification", ""), no)
		}, "view may only read"},
		{"may not even read", polatis, func(l *line) { l.ask(readMask, no) }, "view may only read"},
		{"old and on", oldPolatis, func(l *line) {
			l.ask(readEnabled, leaf("enable-notifications", "NOTIF_ACTIVITY NOTIF_APS NOTIF_SYSTEM\n NOTIF_PORT_POWER_WARN NOTIF_PORT_POWER"))
		}, ""},
		{"old and off", oldPolatis, func(l *line) {
			l.ask(readEnabled, "<data/>")
			l.ask(bitsEdit("enable-notifications", kinds), ok)
		}, ""},
		{"no module", "urn:x", func(l *line) {}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			run(t, one(func(l *line) {
				l.hello(base10, base11, notifies, interleave, optical, tc.revision)
				tc.script(l)
				l.ask(subscription("Polatis"), ok)
				l.raw(l.frame(alarm))
			}), func(t *testing.T, sw *netconfswitch.Switch) {
				l := listen(sw)
				if tc.warned != "" {
					if e := <-l.events; e.Severity != "event" || !strings.Contains(e.Text, tc.warned) {
						t.Errorf("got %+v", e)
					}
				}
				if e := <-l.events; e.Port != 53 {
					t.Errorf("got %+v", e)
				}
				l.stop()
				<-l.ended
			})
		})
	}
}

// TestNoStream takes the stream that every device has when there is no Polatis,
// unless notifications are denied.
func TestNoStream(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.ask(readMask, "<data/>")
		l.ask(subscription("Polatis"), rpcError("invalid-value", "", "no such stream"))
		l.ask(subscription("NETCONF"), ok)
		l.raw(l.frame(alarm))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		l := listen(sw)
		<-l.events
		l.stop()
		<-l.ended
	})
	run(t, one(func(l *line) {
		l.hello()
		l.ask(readMask, "<data/>")
		l.ask(subscription("Polatis"), rpcError("operation-failed", "", "first"))
		l.ask(subscription("NETCONF"), rpcError("operation-failed", "", "second"))
		l.ask(readMask, "<data/>")
		l.ask(subscription("Polatis"), rpcError("access-denied", "", "no"))
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		for _, want := range []string{"first", "no"} {
			if err := sw.Notify(ctx, nil); !errors.Is(err, ocs.ErrDenied) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestNotifyFails passes on why listening could not begin.
func TestNotifyFails(t *testing.T) {
	run(t, one(func(l *line) {
		l.hello()
		l.expect(readMask)
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		other, stop := context.WithTimeout(ctx, time.Millisecond) // waits for the first
		defer stop()
		ended := make(chan error)
		go func() { ended <- sw.Notify(short, nil) }()
		synctest.Wait()
		for _, err := range []error{sw.Notify(other, nil), <-ended} {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		}
	})
}

// TestSubscriptionLost is a subscription of which nobody knows whether it is
// there: the session goes on for those who wait on it, and no further.
func TestSubscriptionLost(t *testing.T) {
	for _, late := range []bool{true, false} {
		run(t, []func(*line){
			func(l *line) {
				l.hello()
				l.ask(readMask, "<data/>")
				l.expect(subscription("Polatis"))
				l.expect(readMap)
				if late {
					time.Sleep(2 * time.Second)
					l.raw(l.reply(data("cross-connects", pair1)))
					replied := time.Now()
					if extra := l.next(); extra != "" || time.Since(replied) != 0 {
						t.Errorf("got %q %v after the last reply, want the end", extra, time.Since(replied))
					}
				}
			},
			func(l *line) {
				l.hello()
				l.ask(readMap, data("cross-connects", ""))
				l.subscribed()
			},
		}, func(t *testing.T, sw *netconfswitch.Switch) {
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- sw.Notify(short, nil) }()
			synctest.Wait()
			m, err := sw.CrossConnects(ctx)
			if late && (err != nil || m.Len() != 1) || !late && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, %v", m, err)
			}
			if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 0 {
				t.Errorf("got %v, %v", m, err)
			}
			l := listen(sw)
			l.stop()
			<-l.ended
		})
	}
}

// TestEventsInTheWay lets notifications pass by the hundred while requests go on.
func TestEventsInTheWay(t *testing.T) {
	const n = 100
	run(t, one(func(l *line) {
		l.hello()
		l.subscribed()
		for i := range n {
			l.expect(readMap)
			l.raw(l.frame(strings.Replace(alarm, "53", fmt.Sprint(i+1), 1)) + l.reply(data("cross-connects", pair1)))
		}
	}), func(t *testing.T, sw *netconfswitch.Switch) {
		l := listen(sw)
		for i := range n {
			if m, err := sw.CrossConnects(ctx); err != nil || m.Len() != 1 {
				t.Fatalf("got %v, %v", m, err)
			}
			if e := <-l.events; e.Port != ocs.Port(i+1) || e.Lost != 0 {
				t.Errorf("got %+v", e)
			}
		}
		l.stop()
		<-l.ended
	})
}
