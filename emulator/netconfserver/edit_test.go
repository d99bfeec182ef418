package netconfserver_test

import (
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/netconfserver"
	"github.com/ocslab/ocslab/ocs"
)

// memory keeps a device over restarts.
type memory struct{ data []byte }

func (m *memory) Load() ([]byte, error) { return m.data, nil }
func (m *memory) Save(p []byte)         { m.data = p }

func ports(name, entries string) string {
	return "<" + name + " " + opsw + ">" + entries + "</" + name + ">"
}

func system(inner string) string {
	return `<system-config ` + opsw + ` xmlns:p="http://www.polatis.com/yang/polatis-switch" xmlns:nc="urn:ietf:params:xml:ns:netconf:base:1.0">` + inner + `</system-config>`
}

// Ensure that what is edited is at the device, or is kept, and both survive a
// restart of the program.
func TestEdit_Everything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := &memory{}
		boot := func() (*netconfserver.Server, *client) {
			d, err := emulator.New(personality(), emulator.Options{Name: "rail0", Memory: mem})
			if err != nil {
				t.Fatal(err)
			}
			s := &netconfserver.Server{Device: d}
			return s, login(t, s, "admin")
		}
		s, c := boot()
		c.wantEdit(strings.Join([]string{
			pairs(ocs.CrossConnect{Ingress: 1, Egress: 17}),
			ports("port-config", `<port><port-id>1</port-id><label>nic 1</label><peer-port>node1 hca0</peer-port></port>`),
			ports("opm-config", `<port><port-id>17</port-id><wavelength>1310</wavelength><offset>-0.5</offset><averaging-time>2</averaging-time></port>`),
			ports("opm-alarm-config", `<port><port-id>17</port-id><mode>POWER_ALARM_ENABLED</mode><signal-low-threshold>-30.5</signal-low-threshold><signal-degrade-threshold>-10</signal-degrade-threshold><alarm-clear-holdoff>7</alarm-clear-holdoff></port>`),
			ports("voa", `<port><port-id>17</port-id><atten-mode>VOA_MODE_RELATIVE</atten-mode><atten-level>-3.0</atten-level><reference-port>1</reference-port></port>`),
			ports("ports", `<port><port-id>2</port-id><port-state>PC_DISABLED</port-state><opm><power-high-warning-offset>2.5</power-high-warning-offset><power-alarm-hysteresis `+plts+`>3</power-alarm-hysteresis></opm></port>`),
			ports("groups", `<group><group-name>a</group-name><ingress>1</ingress><ingress>4</ingress><egress>20</egress></group><group><group-name>b</group-name><egress>17</egress><egress>19</egress></group>`),
			ports("subswitches", `<subswitch><sname>left</sname><username>user</username><port-id>1</port-id></subswitch>`),
			ports("aps", `<protection-service><sname>x</sname><working-port><port-id>1</port-id></working-port></protection-service>`),
			`<mask-notification ` + plts + `>NOTIF_SYSTEM</mask-notification>`,
			system(`<interface><name>eth0</name><ip-address>192.0.2.7</ip-address></interface>
				<user><name>bob</name><type>LOCAL_USER</type><password>secret1</password><authorized-key><name>k</name><key-data>AAAA</key-data></authorized-key><p:group>view</p:group></user>
				<radius-servers><radius-server><ip-address>192.0.2.1</ip-address><port>1812</port><secret>hush</secret></radius-server><radius-server><ip-address>192.0.2.2</ip-address><port>1812</port></radius-server></radius-servers>
				<remote-syslog><rname>log</rname><facility>LOCAL3</facility></remote-syslog><openflow><host>of</host></openflow>
				<protocols><protocol><protocol-id>2</protocol-id><enabled>false</enabled></protocol></protocols>
				<alarm-clear-hysteresis>2</alarm-clear-hysteresis><p:startup-mode>MODE_PRESERVE</p:startup-mode>`),
		}, ""), "<ok/>")
		c.want(`<radius-server-set-position `+opsw+`><ip-address>192.0.2.2</ip-address><port>1812</port><position>0</position></radius-server-set-position>`, "<ok/>")
		for again := range 2 {
			d := s.Device
			if m := d.Monitor(emulator.Forward, 17); m.Wavelength != 1310 || m.Offset != -0.5 || m.Averaging != 2 {
				t.Errorf("monitor %+v", m)
			}
			if v := d.VOA(17); v != (emulator.VOA{Mode: emulator.VOARelative, Level: -3, Reference: 1}) {
				t.Errorf("attenuator %+v", v)
			}
			if a := d.Alarm(emulator.Forward, 17, emulator.LossOfSignal); a.Mode != emulator.AlarmContinuous || a.Low != -30.5 {
				t.Errorf("alarm %+v", a)
			}
			if a := d.Alarm(emulator.Forward, 17, emulator.Degraded); a.Low != -10 {
				t.Errorf("warning %+v", a)
			}
			if d.Label(1) != "nic 1" || d.Peer(1) != "node1 hca0" || !d.ShutterClosed(2) || d.CrossConnects().Len() != 1 {
				t.Error("label, peer, shutter or map")
			}
			if _, err := d.Login("bob", "secret1"); err != nil {
				t.Error(err)
			}
			all := c.do("<get/>")
			for _, part := range []string{
				"<alarm-clear-holdoff>7</alarm-clear-holdoff>", "<power-high-warning-offset>2.5</power-high-warning-offset>", ">3</power-alarm-hysteresis>",
				"<group-name>a</group-name><ingress>1</ingress><ingress>4</ingress>", "<sname>left</sname><username>user</username><port-id>1</port-id>",
				"<working-port><port-id>1</port-id></working-port>", ">NOTIF_SYSTEM</mask-notification>", "<ip-address>192.0.2.7</ip-address>",
				"<name>bob</name><type>LOCAL_USER</type><authorized-key><name>k</name><key-data>AAAA</key-data></authorized-key>", ">view</group>",
				"<ip-address>192.0.2.2</ip-address><port>1812</port></radius-server><radius-server><ip-address>192.0.2.1</ip-address>", "<rname>log</rname><facility>LOCAL3</facility>",
				"<host>of</host>", "<protocol-id>2</protocol-id><protocol-name>SCPI</protocol-name><protocol-type>TCP</protocol-type><protocol-port>5025</protocol-port><enabled>false</enabled>",
				"<alarm-clear-hysteresis>2</alarm-clear-hysteresis>", "<reference-port>1</reference-port>", "<user-name>bob</user-name>",
			} {
				if !strings.Contains(all, part) {
					t.Errorf("round %d: no %s in\n%s", again, part, all)
				}
			}
			if strings.Contains(all, "secret1") || strings.Contains(all, "hush") || strings.Contains(all, "<password>") {
				t.Error("get shows a secret")
			}
			s, c = boot()
		}
		// What is deleted goes back to its default; a secret outlives an edit
		// beside it.
		c.wantEdit(ports("port-config", `<port operation="delete"><port-id>1</port-id></port>`)+ports("opm-config", `<port operation="delete"><port-id>17</port-id></port>`)+
			ports("voa", `<port operation="delete"><port-id>17</port-id></port>`)+ports("ports", `<port operation="remove"><port-id>2</port-id></port>`)+
			ports("opm-alarm-config", `<port operation="remove"><port-id>17</port-id></port>`)+
			system(`<user nc:operation="delete"><name>bob</name></user><interface nc:operation="remove"><name>eth0</name></interface><p:startup-mode>MODE_VOLATILE</p:startup-mode>`)+
			ports("groups", "")+`<groups `+opsw+` operation="delete"/>`, "<ok/>")
		d := s.Device
		if d.Label(1) != "" || d.Peer(1) != "" || d.ShutterClosed(2) || d.VOA(17).Mode != emulator.VOANone || d.Monitor(emulator.Forward, 17).Wavelength != 1550 ||
			d.Alarm(emulator.Forward, 17, emulator.LossOfSignal).Mode != emulator.AlarmOff || d.BootMode() != ocs.BootDark {
			t.Error("not the defaults")
		}
		if _, known := d.GroupOf("bob"); known || !strings.Contains(string(mem.data), "hush") || strings.Contains(string(mem.data), "group-name") {
			t.Errorf("%s", mem.data)
		}
	})
}

func TestEdit_Refused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := login(t, s, "admin")
		for config, want := range map[string]string{
			ports("port-config", `<port><port-id>99</port-id><label>x</label></port>`):                                                      "Invalid port: 99",
			ports("port-config", `<port><port-id>0</port-id><label>x</label></port>`):                                                       "0 is outside 1..65535",
			ports("port-config", `<port><label>x</label></port>`):                                                                           "missing-element",
			ports("port-config", `<port><port-id>1</port-id><label>`+strings.Repeat("x", 129)+`</label></port>`):                            "does not match",
			ports("port-config", `<port><port-id>1</port-id><label>ä</label></port>`):                                                       "does not match",
			ports("port-config", `<port><port-id>1</port-id><status>FAILED</status></port>`):                                                "<rpc-error>",
			ports("voa", `<port><port-id>1</port-id><atten-mode>VOA_MODE_FIXED</atten-mode></port>`):                                        "Invalid port: 1",
			ports("voa", `<port><port-id>17</port-id><atten-mode>VOA_MODE_ABSOLUTE</atten-mode><atten-level>500</atten-level></port>`):      "500 is outside",
			ports("voa", `<port><port-id>17</port-id><atten-mode>VOA_MODE_RELATIVE</atten-mode><reference-port>99</reference-port></port>`): "Invalid port: 99",
			ports("ports", `<port><port-id>1</port-id><voa><atten-mode>VOA_MODE_FIXED</atten-mode></voa></port>`):                           "no attenuator",
			ports("opm-config", `<port><port-id>1</port-id><averaging-time>9</averaging-time></port>`):                                      "9 is outside 1..8",
			ports("opm-config", `<port><port-id>1</port-id><offset>1.234</offset></port>`):                                                  "1.234 is not a number with at most 2 decimals",
			ports("opm-config", `<port><port-id>1</port-id><averaging-time>two</averaging-time></port>`):                                    "two is not a whole number",
			system(`<user><name>x</name><password>p</password></user>`):                                                                     "missing-element",
			system(`<user><name>x y</name><type>LOCAL_USER</type></user>`):                                                                  "x y",
			system(`<user nc:operation="delete"><name>admin</name></user>`):                                                                 "administrator",
			system(`<user><name>x</name><type>LOCAL_USER</type><password>a b</password></user>`):                                            "does not match",
			system(`<protocols><protocol><protocol-id>9</protocol-id></protocol></protocols>`):                                              "There is no protocol 9",
			system(`<activity-log><logging-enabled>yes</logging-enabled></activity-log>`):                                                   "yes is neither true nor false",
			system(`<activity-log><log-filter>USER DOG</log-filter></activity-log>`):                                                        "USER DOG: want some of SYSTEM, USER, OXC, OPM",
			`<nacm xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-acm"><enable-nacm>false</enable-nacm></nacm>`:                            "operation-not-supported",
			pairs(ocs.CrossConnect{Ingress: 1, Egress: 17}) + ports("port-config", `<port><port-id>99</port-id></port>`):                    "Invalid port: 99",
		} {
			if got := c.edit(config); !strings.Contains(got, want) || !strings.Contains(got, "<rpc-error>") {
				t.Errorf("%s\ngot %s\nwant %s", config, got, want)
			}
		}
		if s.Device.CrossConnects().Len() != 0 || s.Device.Notes() != "" {
			t.Error("an edit that failed has changed something")
		}
		for op, want := range map[string]string{
			`<edit-config><target><running/></target><test-option>set</test-option><config/></edit-config>`:                                                             "operation-not-supported",
			`<edit-config><target><running/></target><error-option>continue-on-error</error-option><config/></edit-config>`:                                             "as a whole or not at all",
			`<edit-config><target><running/></target><error-option>rollback-on-error</error-option><config/></edit-config>`:                                             "<ok/>",
			`<edit-config><target><candidate/></target><config/></edit-config>`:                                                                                         "no datastore candidate",
			`<port-set-state ` + opsw + `><port-enab>99</port-enab></port-set-state>`:                                                                                   "Invalid OXC port: 99",
			`<port-set-state ` + opsw + `><port-enab>1</port-enab><port-disab>1</port-disab></port-set-state>`:                                                          "at once",
			`<port-set-state ` + opsw + `><port>1</port></port-set-state>`:                                                                                              "unknown-element",
			`<set-current-datetime ` + opsw + `/>`:                                                                                                                      "missing-element",
			`<set-current-datetime ` + opsw + `><current-datetime>2026-02-30T00:00:00Z</current-datetime></set-current-datetime>`:                                       "no such date",
			`<radius-server-set-position ` + opsw + `><ip-address>192.0.2.1</ip-address><port>1</port><position>0</position></radius-server-set-position>`:              "no RADIUS server",
			`<aps-activate ` + opsw + `><sname>x</sname><active>true</active></aps-activate>`:                                                                           "operation-not-supported",
			`<add-group-cross-connect ` + plts + `><group-name-from>a</group-name-from><group-name-to>b</group-name-to></add-group-cross-connect>`:                      "There is no group a",
			`<delete-group-cross-connect ` + plts + `><group-name>a</group-name></delete-group-cross-connect>`:                                                          "There is no group a",
			`<shutter-config ` + plts + `><port><port-id>17</port-id><signal-block-time>10</signal-block-time></port></shutter-config>`:                                 "Invalid OXC port: 17",
			`<shutter-config ` + plts + `><port><port-id>1</port-id></port></shutter-config>`:                                                                           "missing-element",
			`<shutter-config ` + plts + `><port><port-id>1</port-id><signal-block-time>9</signal-block-time></port></shutter-config>`:                                   "9 is outside 10..10000",
			`<shutter-operation ` + plts + `><activate>true</activate><port>1</port></shutter-operation>`:                                                               "operation-failed",
			`<shutter-operation ` + plts + `><activate>true</activate><port>17</port></shutter-operation>`:                                                              "Invalid OXC port: 17",
			`<clear-notification-ids ` + plts + `><notif-ids><notif-id>99</notif-id></notif-ids></clear-notification-ids>`:                                              "There is no entry 99",
			`<get><filter type="xpath" select="/"/></get>`:                                                                                                              "bad-attribute",
			`<create-subscription xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"><stream>x</stream></create-subscription>`:                                     "no stream x",
			`<create-subscription xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0"><startTime>2000-01-01T00:00:00Z</startTime></create-subscription>`:            "replayed",
			`<get-schema xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"/>`:                                                                                 "missing-element",
			`<get-schema xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"><identifier>optical-switch</identifier><version>2017-08-04</version></get-schema>`: "no schema",
		} {
			c.want(op, want)
		}
	})
}

func TestOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := login(t, s, "admin")
		c.want(`<set-current-datetime `+opsw+`><current-datetime>2030-05-06T07:08:09Z</current-datetime></set-current-datetime>`, "<ok/>")
		c.want(`<get><filter><system-config `+opsw+`><current-datetime/></system-config></filter></get>`, "<current-datetime>2030-05-06T07:08:1")

		c.wantEdit(ports("groups", `<group><group-name>a</group-name><ingress>2</ingress><ingress>1</ingress></group><group><group-name>b</group-name><egress>20</egress><egress>19</egress></group><group><group-name>c</group-name><egress>20</egress></group>`), "<ok/>")
		join := func(to string) string {
			return `<add-group-cross-connect ` + plts + `><group-name-from>a</group-name-from><group-name-to>` + to + `</group-name-to></add-group-cross-connect>`
		}
		c.want(join("c"), "differ")
		c.want(join("b"), "<ok/>")
		if m := s.Device.CrossConnects(); !m.Equal(ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: 20}, ocs.CrossConnect{Ingress: 1, Egress: 19})) {
			t.Errorf("map %v", m)
		}
		c.want(`<get><filter><groups `+opsw+`><group><connected-group/></group></groups></filter></get>`, "<connected-group>b</connected-group>")
		c.want(`<delete-group-cross-connect `+plts+`><group-name>a</group-name></delete-group-cross-connect>`, "<ok/>")
		if m := s.Device.CrossConnects(); m.Len() != 0 {
			t.Errorf("map %v", m)
		}

		const status = `<get><filter><shutter-status ` + plts + `/></filter></get>`
		c.want(`<shutter-config `+plts+`><port><port-id>1</port-id><signal-block-time>1000</signal-block-time><cycles>2</cycles></port><port><port-id>2</port-id><signal-block-time>20</signal-block-time><signal-restore-time>600</signal-restore-time></port></shutter-config>`, "<ok/>")
		c.want(status, "<port-id>1</port-id><signal-block-time>1000</signal-block-time><signal-restore-time>500</signal-restore-time><cycles>2</cycles><status>SHUTTER_SET</status>")
		c.want(`<shutter-operation `+plts+`><activate>true</activate><port>1</port><port>2</port></shutter-operation>`, "<ok/>")
		c.want(status, "<cycles>2</cycles><status>SHUTTER_ACTIVE</status>", "<cycles>0</cycles><status>SHUTTER_ACTIVE</status>")
		time.Sleep(5 * time.Second)
		c.want(status, "<cycles>2</cycles><status>SHUTTER_SET</status>", "<cycles>0</cycles><status>SHUTTER_ACTIVE</status>")
		c.want(`<shutter-operation `+plts+`><activate>false</activate><port>2</port></shutter-operation>`, "<ok/>")
		c.want(status, "<cycles>0</cycles><status>SHUTTER_SET</status>")

		const log = `<get><filter><notification-log ` + plts + `/></filter></get>`
		c.want(log, "<notif-message>Logged in</notif-message>", "<notif-message>Clock set to 2030-05-06T07:08:09Z</notif-message>")
		c.want(`<clear-notification-ids `+plts+`><notif-ids><notif-id>1</notif-id></notif-ids></clear-notification-ids>`, "<ok/>")
		if got := c.do(log); strings.Contains(got, "Logged in") || !strings.Contains(got, "Clock") {
			t.Error(got)
		}
		c.want(`<clear-notification-ids `+plts+`/>`, "<ok/>")
		c.want(log, "<data><notification-log "+plts+"/></data>")

		texts, _ := netconfserver.Modules(emulator.NETCONF{})
		got := c.do(`<get-schema xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"><identifier>polatis-switch</identifier><version>2018-01-19</version><format>yang</format></get-schema>`)
		if want := strings.ReplaceAll(strings.ReplaceAll(texts["polatis-switch"], "<", "&lt;"), ">", "&gt;"); len(got) < len(want) {
			t.Errorf("schema of %d bytes", len(got))
		}
		c.want(`<get><filter><netconf-state xmlns="urn:ietf:params:xml:ns:yang:ietf-netconf-monitoring"/></filter></get>`, "<identifier>optical-switch</identifier><version>2018-03-22</version>")
	})
}

// Ensure that an edit of what get-config shows, the access rules included,
// changes nothing, in every revision.
func TestEdit_RoundTrip(t *testing.T) {
	for _, n := range revisions() {
		synctest.Test(t, func(t *testing.T) {
			p := personality()
			p.NETCONF = n
			s := newServer(t, p)
			c := login(t, s, "admin")
			if _, err := s.Device.Connect([]ocs.CrossConnect{{Ingress: 3, Egress: 20}}); err != nil {
				t.Fatal(err)
			}
			get := func() string { return c.do(`<get-config><source><running/></source></get-config>`) }
			before := get()
			inner := strings.TrimSuffix(strings.TrimPrefix(before, "<data>"), "</data>")
			for _, op := range []string{"merge", "replace"} {
				c.want(`<edit-config><target><running/></target><default-operation>`+op+`</default-operation><config>`+inner+`</config></edit-config>`, "<ok/>")
				if after := get(); after != before {
					t.Errorf("%s %s: %s", n.OpticalSwitch, op, cmp.Diff(strings.SplitAfter(before, ">"), strings.SplitAfter(after, ">")))
				}
			}
		})
	}
}

// Any sequence of edits leaves the device with the map of a model, and one that
// fails changes nothing.
func TestEdit_Model(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			p := personality()
			p.Control.Failed = nil
			s := newServer(t, p)
			c := login(t, s, "admin")
			model := map[ocs.Port]ocs.Port{}
			for range rapid.IntRange(1, 8).Draw(rt, "edits") {
				var inner strings.Builder
				next := maps.Clone(model)
				whole := rapid.SampledFrom([]string{"", "", "", ` operation="replace"`}).Draw(rt, "whole")
				if whole != "" {
					clear(next)
				}
				fails := false
				named, used := map[ocs.Port]bool{}, map[ocs.Port]bool{}
				for range rapid.IntRange(0, 4).Draw(rt, "pairs") {
					in, out := rapid.SampledFrom([]ocs.Port{1, 2, 3, 4, 17}).Draw(rt, "in"), rapid.SampledFrom([]ocs.Port{17, 18, 19, 20, 16}).Draw(rt, "out")
					if named[in] {
						continue
					}
					named[in] = true
					op := "merge"
					if whole == "" {
						op = rapid.SampledFrom([]string{"merge", "create", "delete", "remove", "replace"}).Draw(rt, "op")
					}
					inner.WriteString(`<pair operation="` + op + `"><ingress>` + in.String() + `</ingress><egress>` + out.String() + `</egress></pair>`)
					_, there := model[in]
					switch op {
					case "delete", "remove":
						fails = fails || op == "delete" && !there
						delete(next, in)
						continue
					case "create":
						fails = fails || there
					}
					fails = fails || in > 16 || out < 17 || used[out]
					used[out] = true
					for k, v := range next {
						if v == out && !named[k] {
							delete(next, k)
						}
					}
					next[in] = out
				}
				// What is left of others on a port that is taken.
				for k, v := range next {
					if !named[k] && used[v] {
						delete(next, k)
					}
				}
				got := c.edit(`<cross-connects ` + opsw + whole + `>` + inner.String() + `</cross-connects>`)
				if ok := got == "<ok/>"; ok == fails {
					rt.Fatalf("%s\nis answered %s", inner.String(), got)
				}
				if !fails {
					model = next
				}
				var ccs []ocs.CrossConnect
				for k, v := range model {
					ccs = append(ccs, ocs.CrossConnect{Ingress: k, Egress: v})
				}
				if want := ocs.MustMap(ccs...); !s.Device.CrossConnects().Equal(want) {
					rt.Fatalf("%s\nmap %v, want %v", inner.String(), s.Device.CrossConnects(), want)
				}
			}
		})
	})
}

// Ensure that accounts keep what an edit does not tell.
func TestEdit_Accounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := login(t, s, "admin")
		check := func(password string, group emulator.Group) {
			t.Helper()
			if g, err := s.Device.Login("user", password); err != nil || g != group {
				t.Errorf("group %s, error %v", g, err)
			}
		}
		c.wantEdit(system(`<user><name>user</name><p:group>admin</p:group></user>`), "<ok/>")
		check("pw", emulator.Admin)
		c.wantEdit(system(`<user><name>user</name><password>new1</password></user>`), "<ok/>")
		check("new1", emulator.Admin)
		c.wantEdit(system(`<user nc:operation="replace"><name>user</name><type>LOCAL_USER</type></user>`), "<ok/>")
		check("new1", emulator.Operator)
		c.wantEdit(system(`<user nc:operation="delete"><name>user</name></user><user><name>eve</name><type>RADIUS_USER</type></user>`), "<ok/>")
		if _, known := s.Device.GroupOf("user"); known {
			t.Error("the account is there")
		}
		c.want(`<get><filter><system-config `+opsw+`><user><name>eve</name></user></system-config></filter></get>`, "<type>RADIUS_USER</type>", ">user</group>")
	})
}

// Ensure that a cross-connect which an edit names without changing it stands
// against one that takes its egress.
func TestEdit_Contradiction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, personality())
		c := login(t, s, "admin")
		one, two := ocs.CrossConnect{Ingress: 1, Egress: 17}, ocs.CrossConnect{Ingress: 2, Egress: 17}
		c.wantEdit(pairs(one), "<ok/>")
		c.wantEdit(pairs(one, two), "Duplicate OXC port: 17")
		c.wantEdit(pairs(two), "<ok/>")
		if m := s.Device.CrossConnects(); !m.Equal(ocs.MustMap(two)) {
			t.Errorf("map %v", m)
		}
	})
}

func TestEdit_SingleSided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := personality()
		p.Size, p.Control.Failed = "8xCC", nil
		s := newServer(t, p)
		c := login(t, s, "admin")
		c.wantEdit(pairs(ocs.CrossConnect{Ingress: 5, Egress: 1}), "<ok/>")
		c.wantEdit(pairs(ocs.CrossConnect{Ingress: 2, Egress: 2}), "switching capability")
		// Both ends are named, it is shown once.
		c.want(`<get><filter><cross-connects `+opsw+`><pair><ingress>1</ingress></pair><pair><ingress>5</ingress></pair></cross-connects></filter></get>`,
			"<data><cross-connects "+opsw+"><pair><ingress>5</ingress><egress>1</egress></pair></cross-connects></data>")
		c.wantEdit(pairs(ocs.CrossConnect{Ingress: 1, Egress: 2}), "<ok/>")
		if m := s.Device.CrossConnects(); !m.Equal(ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 2})) {
			t.Errorf("map %v", m)
		}
	})
}
