package netconfserver_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/emulator"
)

// TestRights asks every operation as every group in every revision.
func TestRights(t *testing.T) {
	const all, edits, admin = "admin user view", "admin user", "admin"
	operations := []struct{ operation, may, since string }{
		{`<get><filter/></get>`, all, ""},
		{`<get-config><source><running/></source><filter/></get-config>`, all, ""},
		{`<get-schema xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"><identifier>optical-switch</identifier></get-schema>`, all, ""},
		{`<create-subscription xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"/>`, all, ""},
		{`<edit-config><target><running/></target><config/></edit-config>`, edits, ""},
		{`<edit-config><target><running/></target><config><cross-connects ` + opsw + `/></config></edit-config>`, edits, ""},
		{`<edit-config><target><running/></target><config>` + system(`<alarm-clear-hysteresis>2</alarm-clear-hysteresis>`) + `</config></edit-config>`, admin, ""},
		{`<lock><target><running/></target></lock>`, edits, ""},
		{`<unlock><target><running/></target></unlock>`, edits, ""},
		{`<port-set-state ` + opsw + `/>`, edits, ""},
		{`<set-current-datetime ` + opsw + `><current-datetime>2030-05-06T07:08:09+02:00</current-datetime></set-current-datetime>`, admin, ""},
		{`<system-restart ` + opsw + `><seconds>3600</seconds></system-restart>`, admin, ""},
		{`<system-restart-cancel ` + opsw + `/>`, admin, ""},
		{`<shutter-config ` + plts + `/>`, edits, ""},
		{`<shutter-operation ` + plts + `><activate>false</activate></shutter-operation>`, edits, ""},
		{`<clear-notification-ids ` + plts + `/>`, edits, ""},
		{`<get_alarm_state ` + plts + `/>`, all, "until 2017-09-11"},
		{`<shutter-status ` + plts + `/>`, all, "until 2017-09-11"},
		{`<disconnect-session ` + plts + `><session-id>9</session-id></disconnect-session>`, admin, "2018-01-19"},
		{`<kill-session><session-id>9</session-id></kill-session>`, admin, ""},
		{`<close-session/>`, all, ""},
	}
	for _, n := range revisions() {
		for _, user := range strings.Fields(all) {
			synctest.Test(t, func(t *testing.T) {
				p := personality()
				p.NETCONF = n
				c := login(t, newServer(t, p), user)
				for _, op := range operations {
					got := c.do(op.operation)
					there := n.PolatisSwitch >= op.since
					if date, until := strings.CutPrefix(op.since, "until "); until {
						there = n.PolatisSwitch < date
					}
					switch {
					case !there:
						if !strings.Contains(got, "operation-not-supported") {
							t.Errorf("%s %s %s: %s", n.PolatisSwitch, user, op.operation, got)
						}
					case strings.Contains(got, "access-denied") == strings.Contains(op.may, user):
						t.Errorf("%s %s %s: %s", n.PolatisSwitch, user, op.operation, got)
					case strings.Contains(op.may, user) && strings.Contains(got, "<rpc-error>") && !strings.Contains(got, " session 9"):
						t.Errorf("%s %s %s: %s", n.PolatisSwitch, user, op.operation, got)
					}
				}
			})
		}
	}
}

func TestFaults(t *testing.T) {
	const edit = `<rpc message-id="1" ` + base + `><edit-config><target><running/></target><config><cross-connects ` + opsw + `><pair><ingress>1</ingress><egress>17</egress></pair></cross-connects></config></edit-config></rpc>`
	const ok = `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="1"><ok/></rpc-reply>`
	for _, test := range []struct {
		kind    emulator.FaultKind
		want    func(got string) bool
		changed bool
		closed  bool
	}{
		{emulator.FaultDeny, func(s string) bool { return strings.Contains(s, "operation-failed") }, false, false},
		{emulator.FaultLose, func(s string) bool { return s == "" }, false, false},
		{emulator.FaultHang, func(s string) bool { return s == "" }, true, false},
		{emulator.FaultClose, func(s string) bool { return s != "" && strings.HasPrefix(ok+eom, s) }, true, true},
		{emulator.FaultTag, func(s string) bool { return s == strings.Replace(ok, `"1"`, `"somebody"`, 1)+eom }, true, false},
		{emulator.FaultFlood, func(s string) bool { return len(s) >= 10<<20 && !strings.Contains(s, eom) }, true, false},
		{emulator.FaultTwice, func(s string) bool { return s == ok+eom+ok+eom }, true, false},
		{emulator.FaultShred, func(s string) bool { return s == ok+eom }, true, false},
		{"", func(s string) bool { return s == ok+eom }, true, false},
	} {
		t.Run(string(test.kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := personality()
				p.Switching.Ack = emulator.AckBefore
				s := newServer(t, p)
				s.Faults.Add(emulator.Fault{Kind: test.kind, Verb: "EDIT-CONFIG", Times: 1})
				c := login(t, s, "admin")
				c.Send(edit + eom)
				if got := c.Hear(); !test.want(got) {
					t.Errorf("got %d bytes: %.300q", len(got), got)
				}
				if (s.Device.CrossConnects().Len() == 1) != test.changed || c.Closed() != test.closed {
					t.Errorf("map %v, closed %v", s.Device.CrossConnects(), c.Closed())
				}
				if !test.closed && test.kind != emulator.FaultFlood {
					c.want("<get><filter/></get>", "<data/>")
				}
			})
		})
	}
	// In chunks, too.
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		s.Faults.Add(emulator.Fault{Kind: emulator.FaultShred, Verb: "*"})
		c := dial(t, s, "admin")
		const get = `<rpc message-id="1" ` + base + `><get><filter/></get></rpc>`
		c.Send(hello1 + eom + "\n#" + strconv.Itoa(len(get)) + "\n" + get + "\n##\n")
		_, got, _ := strings.Cut(c.Hear(), eom)
		if !strings.HasPrefix(got, "\n#1\n<\n#2\nrp\n#3\nc-r\n#4\neply\n#5\n") || !strings.HasSuffix(got, "\n##\n") {
			t.Errorf("got %q", got)
		}
	})
}
