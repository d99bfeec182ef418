package netconf_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/wire/netconf"
)

const base = netconf.Base

func TestCapability(t *testing.T) {
	for _, tt := range []struct {
		text string
		want netconf.Capability
	}{
		{" urn:ietf:params:netconf:base:1.1\n", netconf.Capability{URI: netconf.Base11Capability}},
		{"urn:ietf:params:netconf:capability:url:1.0?scheme=http,ftp", netconf.Capability{URI: "urn:ietf:params:netconf:capability:url:1.0", Query: "scheme=http,ftp"}},
		{opsw + "?module=optical-switch&revision=2018-03-22", netconf.Capability{URI: opsw, Module: "optical-switch", Revision: "2018-03-22", Query: "module=optical-switch&revision=2018-03-22"}},
		{"u?revision=1&amp;features=a,b&module=m&features", netconf.Capability{URI: "u", Module: "m", Revision: "1", Features: []string{"a", "b"}, Query: "revision=1&amp;features=a,b&module=m&features"}},
	} {
		got := netconf.ParseCapability(tt.text)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
		if s := got.String(); s != strings.TrimSpace(tt.text) {
			t.Errorf("%q is written as %q", tt.text, s)
		}
	}
}

const helloText = `<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"><capabilities>` +
	`<capability>urn:ietf:params:netconf:base:1.0</capability>` +
	`<capability>urn:ietf:params:netconf:base:1.1</capability>` +
	`<capability>http://www.polatis.com/yang/optical-switch?module=optical-switch&amp;revision=2018-03-22</capability>` +
	`</capabilities><session-id>4</session-id></hello>`

func TestHello(t *testing.T) {
	h := netconf.Hello{
		Capabilities: []string{netconf.Base10Capability, netconf.Base11Capability, opsw + "?module=optical-switch&revision=2018-03-22"},
		SessionID:    4,
	}
	if got := h.Node().String(); got != helloText {
		t.Errorf("got  %s\nwant %s", got, helloText)
	}
	pretty := "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + strings.NewReplacer("><", ">\n<", "<capability>", "<capability>\n ", "</capability>", "\n</capability>").Replace(helloText)
	for _, text := range []string{helloText, pretty} {
		got, err := netconf.ParseHello(parse(t, text))
		if diff := cmp.Diff(h, got); diff != "" || err != nil {
			t.Error(err, diff)
		}
	}
	if c, ok := h.Module("optical-switch"); !ok || c.Revision != "2018-03-22" || c.URI != opsw {
		t.Errorf("Module: %+v", c)
	}
	for _, name := range []string{"", "none"} {
		if _, ok := h.Module(name); ok {
			t.Errorf("there is a module %q", name)
		}
	}
	if !h.Has(opsw) || h.Has(plts) {
		t.Error("Has is wrong")
	}
	old := netconf.Hello{Capabilities: []string{netconf.Base10Capability}}
	if netconf.Negotiate(h, h) != netconf.Chunked || netconf.Negotiate(h, old) != netconf.EndOfMessage || netconf.Negotiate(old, h) != netconf.EndOfMessage {
		t.Error("Negotiate is wrong")
	}
	if s := old.Node().String(); strings.Contains(s, "session-id") {
		t.Error(s)
	}

	for text, want := range map[string]string{
		`<hello><capabilities/></hello>`:                      "no namespace",
		`<rpc xmlns="` + base + `"/>`:                         "but is <rpc>",
		`<hello xmlns="` + base + `"/>`:                       "no <capabilities>",
		strings.Replace(helloText, ">4<", ">0<", 1):           `is "0"`,
		strings.Replace(helloText, ">4<", ">x<", 1):           `is "x"`,
		strings.Replace(helloText, ">4<", "><", 1):            `is ""`,
		strings.Replace(helloText, ">4<", ">99999999999<", 1): "4294967295",
	} {
		if _, err := netconf.ParseHello(parse(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := netconf.ParseHello(nil); err == nil {
		t.Error("nil is a hello")
	}
}

func TestRPC(t *testing.T) {
	const attrs = ` xmlns="` + base + `" xmlns:ex="http://example.net/content/1.0" ex:user-id="fred" message-id="&lt;1&amp;2"`
	rpc, rerr := netconf.ParseRPC(parse(t, `<rpc`+attrs+`><get/></rpc>`))
	if rerr != nil {
		t.Fatal(rerr)
	}
	if rpc.MessageID != "<1&2" || !rpc.Operation.Is(base, "get") {
		t.Errorf("got %+v", rpc)
	}
	// All attributes come back (RFC 6241 section 4.2).
	got := string(netconf.AppendReply(nil, rpc, netconf.El(base, "ok")))
	if want := `<rpc-reply` + attrs + `><ok/></rpc-reply>`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	for _, tt := range []struct{ text, tag, reply string }{
		// The example of RFC 6241 section 4.3, in our words.
		{`<rpc xmlns="` + base + `"><get-config/></rpc>`, netconf.MissingAttribute,
			`<rpc-reply xmlns="` + base + `"><rpc-error><error-type>rpc</error-type><error-tag>missing-attribute</error-tag>` +
				`<error-severity>error</error-severity><error-message xml:lang="en">&lt;rpc&gt; has no message-id</error-message><error-info>` +
				`<bad-attribute>message-id</bad-attribute><bad-element>rpc</bad-element></error-info></rpc-error></rpc-reply>`},
		{`<rpc xmlns="` + base + `" message-id="1"/>`, netconf.MissingElement, ""},
		{`<rpc xmlns="` + base + `" message-id="1"><get/><get/></rpc>`, netconf.BadElement, ""},
		{`<hello xmlns="` + base + `"/>`, netconf.OperationNotSupported, ""},
		{`<rpc message-id="1"><get/></rpc>`, netconf.UnknownNamespace, ""},
	} {
		rpc, rerr := netconf.ParseRPC(parse(t, tt.text))
		if rerr == nil || rerr.Tag != tt.tag || rerr.Type != netconf.TypeRPC {
			t.Errorf("%s: %v, want %s", tt.text, rerr, tt.tag)
			continue
		}
		if strings.Contains(tt.text, `<rpc xmlns`) && strings.Contains(tt.text, "message-id") && rpc.MessageID != "1" {
			t.Errorf("%s: message-id %q", tt.text, rpc.MessageID)
		}
		if got := string(netconf.AppendReply(nil, rpc, rerr.Node())); tt.reply != "" && got != tt.reply {
			t.Errorf("got  %s\nwant %s", got, tt.reply)
		}
	}
	if _, rerr := netconf.ParseRPC(nil); rerr == nil {
		t.Error("nil is a request")
	}
}

func TestReply(t *testing.T) {
	r, err := netconf.ParseReply(parse(t, `<rpc-reply message-id="101" xmlns="`+base+`"><ok/></rpc-reply>`))
	if err != nil || !r.OK || r.MessageID != "101" || r.Err() != nil {
		t.Errorf("%+v, %v", r, err)
	}

	// Data next to errors, as a switch without OpenFlow sends it.
	r, err = netconf.ParseReply(parse(t, `<nc:rpc-reply message-id="5" xmlns:nc="`+base+`" xmlns:opsw="`+opsw+`">
 <nc:data><opsw:cross-connects><opsw:pair><opsw:ingress>1</opsw:ingress></opsw:pair></opsw:cross-connects></nc:data>
 <nc:rpc-error>
  <nc:error-type>application</nc:error-type><nc:error-tag>operation-failed</nc:error-tag>
  <nc:error-severity>error</nc:error-severity><nc:error-app-tag>a-t</nc:error-app-tag>
  <nc:error-path xmlns:t="u"> /opsw:system-config/opsw:openflow </nc:error-path>
  <nc:error-message xml:lang="en">
   no OpenFlow
  </nc:error-message>
  <nc:error-info><nc:bad-element>openflow</nc:bad-element></nc:error-info>
 </nc:rpc-error>
 <nc:rpc-error><nc:error-tag>data-missing</nc:error-tag></nc:rpc-error>
 <nc:rpc-error><nc:error-severity>warning</nc:error-severity></nc:rpc-error>
 <x xmlns="v"/>
</nc:rpc-reply>`))
	if err != nil {
		t.Fatal(err)
	}
	if r.OK || r.Data.Child(opsw, "cross-connects").Child("", "pair").Value("ingress") != "1" || len(r.Body) != 1 || !r.Body[0].Is("v", "x") {
		t.Errorf("got %+v", r)
	}
	var texts []string
	for _, e := range r.Errors {
		texts = append(texts, e.Error())
	}
	if diff := cmp.Diff([]string{
		`operation-failed (a-t) at /opsw:system-config/opsw:openflow: "no OpenFlow" (application error)`,
		`data-missing`,
		`error without tag`,
	}, texts); diff != "" {
		t.Error(diff)
	}
	first := r.Errors[0]
	if len(first.Namespaces) != 1 || first.Namespaces[0].Value != "u" || len(first.Info) != 1 || first.Info[0].Text != "openflow" {
		t.Errorf("got %+v", first)
	}
	if !r.Errors[2].Warning() || r.Errors[1].Warning() {
		t.Error("Warning is wrong")
	}
	var e *netconf.Error
	if err := r.Err(); !errors.As(err, &e) || e != first || strings.Contains(err.Error(), "without tag") {
		t.Errorf("Err() = %v", err)
	}
	if err := (netconf.Reply{Errors: r.Errors[1:]}).Err(); err != error(r.Errors[1]) { //nolint:errorlint // this very one
		t.Errorf("Err() = %v", err)
	}
	if diff := cmp.Diff(r.Errors, netconf.ParseErrors(netconf.El(base, "rpc-reply", r.Errors[0].Node(), r.Errors[1].Node(), r.Errors[2].Node()))); diff != "" {
		t.Errorf("written and read again: %s", diff)
	}
	if errs := netconf.ParseErrors(nil); errs != nil {
		t.Error(errs)
	}
	if _, err := netconf.ParseReply(parse(t, `<rpc-reply message-id="1"/>`)); err == nil {
		t.Error("a reply of no namespace is taken")
	}
}

func TestErrorNodes(t *testing.T) {
	const head = `<rpc-error xmlns="` + base + `"><error-type>protocol</error-type>`
	for _, tt := range []struct {
		e    *netconf.Error
		want string
	}{
		{netconf.NewLockDenied(454), head + `<error-tag>lock-denied</error-tag><error-severity>error</error-severity>` +
			`<error-message xml:lang="en">session 454 has the lock</error-message><error-info><session-id>454</session-id></error-info></rpc-error>`},
		{netconf.NewLockDenied(0), head + `<error-tag>lock-denied</error-tag><error-severity>error</error-severity>` +
			`<error-message xml:lang="en">the lock is not held by a NETCONF session</error-message><error-info><session-id>0</session-id></error-info></rpc-error>`},
		{netconf.NewUnknownNamespace("protocol", netconf.El("u", "x")), head + `<error-tag>unknown-namespace</error-tag><error-severity>error</error-severity>` +
			`<error-message xml:lang="en">the namespace of &lt;x&gt; of namespace u is unknown</error-message><error-info><bad-element>x</bad-element><bad-namespace>u</bad-namespace></error-info></rpc-error>`},
		{&netconf.Error{Type: "protocol", Tag: "in-use", Severity: "error"}, head + `<error-tag>in-use</error-tag><error-severity>error</error-severity></rpc-error>`},
		{&netconf.Error{Type: "protocol", Tag: netconf.InvalidValue, Severity: "error", Message: "Invalid OXC port: 1000"}, head +
			`<error-tag>invalid-value</error-tag><error-severity>error</error-severity><error-message xml:lang="en">Invalid OXC port: 1000</error-message></rpc-error>`},
	} {
		if got := tt.e.Node().String(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

const notificationText = `<notification xmlns="urn:ietf:params:xml:ns:netconf:notification:1.0">
  <eventTime>2018-03-14T12:24:46Z</eventTime>
  <port-power-alarm xmlns="http://www.polatis.com/yang/polatis-switch">
    <port-id>53</port-id>
    <port-label/>
  </port-power-alarm>
</notification>`

func TestNotification(t *testing.T) {
	want := netconf.Notification{
		EventTime: time.Date(2018, 3, 14, 12, 24, 46, 0, time.UTC),
		Event:     netconf.El(plts, "port-power-alarm", netconf.Leaf(plts, "port-id", "53"), netconf.Leaf(plts, "port-label", "")),
	}
	if got := string(want.Node().Append(nil, "  ")); got != notificationText {
		t.Errorf("got\n%s\nwant\n%s", got, notificationText)
	}
	for _, text := range []string{notificationText, strings.Replace(notificationText, "12:24:46Z", "13:24:46.0+01:00\n", 1)} {
		got, err := netconf.ParseNotification(parse(t, text))
		if err != nil || !got.EventTime.Equal(want.EventTime) || !netconf.Equal(got.Event, want.Event) {
			t.Errorf("%+v, %v", got, err)
		}
	}
	for text, msg := range map[string]string{
		strings.Replace(notificationText, ":notification:", ":base:", 1): "must be <notification>",
		strings.Replace(notificationText, "eventTime", "eventtime", 2):   "no eventTime",
		strings.Replace(notificationText, "46Z", "46", 1):                "no time of RFC 3339",
	} {
		got, err := netconf.ParseNotification(parse(t, text))
		if err == nil || !strings.Contains(err.Error(), msg) {
			t.Errorf("%v, want %q", err, msg)
		}
		if strings.Contains(msg, "RFC") && !netconf.Equal(got.Event, want.Event) {
			t.Error("the event is lost with its time")
		}
	}
	if s := (netconf.Notification{}).Node().String(); !strings.Contains(s, "0001-01-01T00:00:00Z") {
		t.Error(s)
	}
}

func TestRequests(t *testing.T) {
	// op parses an operation, given without its namespace.
	op := func(text string) *netconf.Node {
		return parse(t, `<r xmlns="`+base+`" xmlns:nc="`+base+`">`+text+`</r>`).Children[0]
	}
	check := func(text string, got any, err *netconf.Error, want any, tag string) {
		t.Helper()
		if tag != "" || err != nil {
			if err == nil || err.Tag != tag {
				t.Errorf("%s: error %v, want %s", text, err, tag)
			}
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, tt := range []struct{ text, source, filter, tag string }{
		{`<get/>`, "", "", ""},
		{`<get><filter/></get>`, "", "filter", ""},
		{`<get><filter type="subtree"/></get>`, "", "filter", ""},
		{`<get><filter nc:type="subtree"/></get>`, "", "filter", ""},
		{`<get><filter type="xpath" select="/"/></get>`, "", "", netconf.BadAttribute},
		{`<get><filter/><filter/></get>`, "", "", netconf.UnknownElement},
		{`<get><source><running/></source></get>`, "", "", netconf.UnknownElement},
		{`<get-config><source><running/></source><filter/></get-config>`, "running", "filter", ""},
		{`<get-config><filter/></get-config>`, "", "", netconf.MissingElement},
		{`<get-config><source/></get-config>`, "", "", netconf.BadElement},
		{`<get-config><source><none/></source></get-config>`, "", "", netconf.UnknownElement},
		{`<get-config><source><running xmlns="u"/></source></get-config>`, "", "", netconf.UnknownNamespace},
		{`<get-config><source><url>x</url></source></get-config>`, "", "", netconf.OperationNotSupported},
	} {
		g, err := netconf.ParseGet(op(tt.text))
		got := [2]string{g.Source}
		if g.Filter != nil {
			got[1] = g.Filter.Name.Local
		}
		check(tt.text, got, err, [2]string{tt.source, tt.filter}, tt.tag)
	}
	for _, tt := range []struct{ text, target, tag string }{
		{`<lock><target><candidate/></target></lock>`, "candidate", ""},
		{`<lock/>`, "", netconf.MissingElement},
		{`<lock><x/></lock>`, "", netconf.UnknownElement},
		{`<lock><target><running/></target><target><running/></target></lock>`, "", netconf.UnknownElement},
		{`<lock><target><running/><startup/></target></lock>`, "", netconf.BadElement},
	} {
		got, err := netconf.ParseTarget(op(tt.text))
		check(tt.text, got, err, tt.target, tt.tag)
	}
	for _, tt := range []struct {
		text string
		id   uint32
		tag  string
	}{
		{"<kill-session><session-id> 7 </session-id></kill-session>", 7, ""},
		{"<kill-session/>", 0, netconf.MissingElement},
		{"<kill-session><session-id>0</session-id></kill-session>", 0, netconf.InvalidValue},
		{"<kill-session><session-id>-1</session-id></kill-session>", 0, netconf.InvalidValue},
	} {
		got, err := netconf.ParseKillSession(op(tt.text))
		check(tt.text, got, err, tt.id, tt.tag)
	}
	const ns = ` xmlns="` + netconf.NotificationNS + `"`
	for _, tt := range []struct {
		text, stream, tag string
		filter            bool
		start, stop       string
	}{
		{text: `<create-subscription` + ns + `/>`, stream: "NETCONF"},
		{text: `<create-subscription` + ns + `><stream>Polatis</stream></create-subscription>`, stream: "Polatis"},
		{text: `<create-subscription` + ns + `><filter type="subtree"/><startTime>2026-01-01T00:00:00Z</startTime><stopTime>2026-01-02T00:00:00Z</stopTime></create-subscription>`,
			stream: "NETCONF", filter: true, start: "2026-01-01", stop: "2026-01-02"},
		{text: `<create-subscription` + ns + `><nc:filter type="subtree"/></create-subscription>`, stream: "NETCONF", filter: true},
		{text: `<create-subscription` + ns + `><filter type="xpath"/></create-subscription>`, tag: netconf.BadAttribute},
		{text: `<create-subscription` + ns + `><startTime>now</startTime></create-subscription>`, tag: netconf.BadElement},
		{text: `<create-subscription` + ns + `><stopTime>2026-01-02T00:00:00Z</stopTime></create-subscription>`, tag: netconf.MissingElement},
		{text: `<create-subscription` + ns + `><startTime>2026-01-02T00:00:00Z</startTime><stopTime>2026-01-02T00:00:00Z</stopTime></create-subscription>`, tag: netconf.BadElement},
		{text: `<create-subscription` + ns + `><x/></create-subscription>`, tag: netconf.UnknownElement},
		{text: `<create-subscription` + ns + `><x xmlns="u"/></create-subscription>`, tag: netconf.UnknownNamespace},
	} {
		s, err := netconf.ParseSubscription(op(tt.text))
		day := func(t time.Time) string {
			if t.IsZero() {
				return ""
			}
			return t.Format(time.DateOnly)
		}
		check(tt.text, []any{s.Stream, s.Filter != nil, day(s.Start), day(s.Stop)}, err, []any{tt.stream, tt.filter, tt.start, tt.stop}, tt.tag)
	}
	for _, tt := range []struct {
		text, tag string
		want      netconf.EditConfig
	}{
		{`<edit-config><target><running/></target><config/></edit-config>`, "", netconf.EditConfig{Target: "running", Default: netconf.Merge}},
		{"<edit-config><target><candidate/></target><default-operation> none\n</default-operation><test-option>set</test-option>" +
			`<error-option>rollback-on-error</error-option><config><a/></config></edit-config>`, "",
			netconf.EditConfig{Target: "candidate", Default: netconf.None, TestOption: "set", ErrorOption: "rollback-on-error", Config: []*netconf.Node{netconf.El(base, "a")}}},
		{`<edit-config><config/></edit-config>`, netconf.MissingElement, netconf.EditConfig{}},
		{`<edit-config><target><running/></target></edit-config>`, netconf.MissingElement, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><config/><config/></edit-config>`, netconf.UnknownElement, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><config xmlns="u"/></edit-config>`, netconf.UnknownNamespace, netconf.EditConfig{}},
		{`<edit-config><target><x/></target><config/></edit-config>`, netconf.UnknownElement, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><url>x</url></edit-config>`, netconf.OperationNotSupported, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><x/></edit-config>`, netconf.UnknownElement, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><default-operation>create</default-operation></edit-config>`, netconf.InvalidValue, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><test-option>x</test-option></edit-config>`, netconf.InvalidValue, netconf.EditConfig{}},
		{`<edit-config><target><running/></target><error-option>x</error-option></edit-config>`, netconf.InvalidValue, netconf.EditConfig{}},
	} {
		e, err := netconf.ParseEditConfig(op(tt.text))
		check(tt.text, e, err, tt.want, tt.tag)
	}
}
