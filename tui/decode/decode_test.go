package decode

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/netconf"
	"github.com/ocslab/ocslab/wire/trxlink"
)

func TestText(t *testing.T) {
	for _, x := range []struct {
		scheme string
		sent   bool
		give   string
		want   string
	}{
		{"tl1", true, "ENT-PATCH::1,33:4:;", "connect 1>33 (ENT-PATCH)"},
		{"tl1+ssh", true, "ENT-PATCH::1&2,17&18:4:;", "connect 1>17,2>18 (ENT-PATCH)"},
		{"tl1", true, "ENT-PATCH::1&2&3&4&5&6&7&8&9,21&22&23&24&25&26&27&28&29:4:;", "connect 1>21,2>22,3>23,4>24,5>25,6>26,7>27,8>28,… of 9 (ENT-PATCH)"},
		{"tl1", true, "DLT-CRS::1,2:26::,Quali,1>2;", "disconnect 1>2 (DLT-CRS)"},
		{"tl1", true, "FOO-BAR::1:2:;", "FOO-BAR::1:2:;"},
		{"tl1", true, "\r\n\r\n", "blank line"},
		{"tl1", false, "\r\n\n   P 26-11-20 10:00:00\r\nM  3 COMPLD\r\n;", "completed"},
		{"tl1", false, "\r\n\n   P 26-11-20 10:00:00\r\nM  3 COMPLD\r\n   \"1,18\"\r\n   \"2,19\"\r\n;", "2 cross-connects: 1>18,2>19"},
		{"tl1", false, "\r\n\n   P 26-11-20 10:00:00\r\nM  3 COMPLD\r\n   \"1:-1.20\"\r\n   \"2:-14.00\"\r\n>", "power of 2 ports, -14.00 to -1.20 dBm, more follows"},
		{"tl1", false, "\r\n\n   P 26-11-20 10:00:00\r\nM  7 DENY\r\n   IIAC\r\n   /* Invalid value OTHER */\r\n;", "denied: IIAC, invalid access identifier: Invalid value OTHER"},
		{"tl1", false, "PF 123\r\n<", "command 123: the reply follows (PF)"},
		{"tl1", false, "\r\n\n   P 26-11-20 10:00:10\r\n*C 1 REPT ALM EQPT\r\n   \"SYSTEM:CR,FAN,SA\"\r\n;", "report, critical: SYSTEM:CR,FAN,SA"},
		{"scpi", true, "*IDN?\r\n", "read identity (*IDN?)"},
		{"scpi", true, ":OXC:SWIT:CONN:SUB (@1,2),(@);:SYST:ERR?\n", "disconnect 1,2; read an error (:OXC:SWIT:CONN:SUB)"},
		{"scpi", false, "(@1,2),(@19,18)\r\n", "2 cross-connects: 1>19,2>18"},
		{"scpi", false, "0, \"No error\"\r\n", "no error"},
		{"scpi", false, "(-12.05,-60.00,1e1)\n", "power of 3 ports, -60.00 to 10.00 dBm"},
		{"scpi", false, "(-12.05,what)\n", "(-12.05,what)"},
		{"netconf", true, chunked(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="12"><get-config><source><running/></source><filter type="subtree"><cross-connects xmlns="x"/></filter></get-config></rpc>`),
			"rpc 12: get-config cross-connects"},
		{"netconf+tls", false, `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="12"><ok/></rpc-reply>`, "reply 12: ok"},
		{"netconf", false, `<rpc-reply xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="9"><data><opm-power xmlns="x"><port><port-id>1</port-id><power>-1.2</power></port><port><port-id>2</port-id><power>-14</power></port></opm-power></data></rpc-reply>`,
			"reply 9: power of 2 ports, -14.00 to -1.20 dBm"},
		{"netconf", true, `<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="3"><port-set-state xmlns="x"><port-disab>2</port-disab><port-disab>3</port-disab></port-set-state></rpc>]]>]]>`,
			"rpc 3: port-set-state close shutters 2,3"},
		{"netconf", false, "<rpc-reply", "<rpc-reply"},
		{"ocstrx", true, trxlink.Frame{Kind: trxlink.Read, Slot: 0, Seq: 4, Payload: trxlink.AppendRead(nil, cmis.Address{Page: ocst.PageControl, Offset: 134}, 20)}.String(),
			"module 1: read 20 bytes at page B0h:134 (control) (#4)"},
		{"ocstrx+serial", true, trxlink.Frame{Kind: trxlink.Write, Slot: 2, Seq: 5, Payload: trxlink.AppendWrite(nil, ocst.At(ocst.RegStaged), []byte{byte(ocst.Path2), 0x0f, byte(ocst.CommitArm)})}.String(),
			"module 3: write 02 0f 02 at page B0h:136 (control): arm, lanes 00001111 to path2 (#5)"},
		{"ocstrx", true, trxlink.Frame{Kind: trxlink.Trigger, Slot: trxlink.Board, Seq: 6, Payload: trxlink.AppendTrigger(nil, 0x0103)}.String(), "board: trigger of 3 modules (#6)"},
		{"ocstrx", false, trxlink.Frame{Kind: trxlink.Trigger | trxlink.Reply, Slot: trxlink.Board, Seq: 6, Payload: []byte{byte(trxlink.CodeNotArmed), 1}}.String(),
			"board: trigger refused: module is not armed, module 2 (#6)"},
		{"ocstrx", false, trxlink.Frame{Kind: trxlink.Read | trxlink.Reply, Slot: 0, Seq: 4, Payload: []byte{0, 1, 2, 3}}.String(), "module 1: 3 bytes: 01 02 03 (#4)"},
		{"ocstrx", false, "12 bytes of no frame", "12 bytes of no frame"},
		{"ocstrx", true, trxlink.Frame{Kind: 0x33, Slot: 1, Payload: []byte{7}}.String(), "#0 kind 33h slot 1: 07"},
		{"telnet", true, "hello\x00\x1b[31m\r\n", "hello··[31m"},
		{"", false, "", ""},
	} {
		if got := Text(x.scheme, x.sent, x.give); got != x.want {
			t.Errorf("%s %q:\n got %s\nwant %s", x.scheme, x.give, got, x.want)
		}
	}
}

func TestPretty(t *testing.T) {
	for _, x := range []struct {
		give string
		want []string
	}{
		{"\r\n\n   P 26\r\nM  3 COMPLD\r\n\t\"\u00fc\xff\x00\"\r\n;", []string{`\r\n`, `\n`, `   P 26\r\n`, `M  3 COMPLD\r\n`, `\t"ü\xff\x00"\r\n`, ";"}},
		{"a \u009b31m \ufffd", []string{`a \x9b31m �`}},
		{chunked(`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="12"><get><filter><a xmlns="x">1</a></filter></get></rpc>`), []string{
			`<rpc xmlns="urn:ietf:params:xml:ns:netconf:base:1.0" message-id="12">`, `  <get>`, `    <filter>`, `      <a xmlns="x">1</a>`, `    </filter>`, `  </get>`, `</rpc>`,
		}},
		{"]]>]]>\n<ok/>]]>]]>", []string{"<ok/>"}},
		{"<rpc><", []string{"<rpc><"}},
		{"", nil},
	} {
		if diff := cmp.Diff(x.want, Pretty(x.give)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", x.give, diff)
		}
	}
}

func chunked(message string) string {
	return string(netconf.AppendChunks(nil, []byte(message), 40))
}

func TestFramer(t *testing.T) {
	const reply = "\r\n\n   P 26-11-20 10:00:00\r\nM  1 COMPLD\r\n   \"a;b\"\r\n   /* c; d */\r\n;"
	const hello = `<hello xmlns="urn:ietf:params:xml:ns:netconf:base:1.0"></hello>`
	for _, x := range []struct {
		name, scheme string
		sent         bool
		pieces, want []string
		rest         string
	}{
		{"quoted semicolons", "tl1", true, []string{`ED-PORT-LABEL::1:2:::LABEL="a;\";b";RTRV-HDR;`}, []string{`ED-PORT-LABEL::1:2:::LABEL="a;\";b";`, "RTRV-HDR;"}, ""},
		{"a quote that is not closed", "tl1", true, []string{"X:\"a;\r\n;", "Y;"}, []string{"X:\"a;\r\n;", "Y;"}, ""},
		{"strings and comments", "tl1", false, []string{reply, reply}, []string{reply, reply}, ""},
		{"a comment that is not closed", "tl1", false, []string{"\n  P 26-11-20 10:00:00\r\nM 1 COMPLD\r\n /* x\r\n;" + reply}, []string{"\n  P 26-11-20 10:00:00\r\nM 1 COMPLD\r\n /* x\r\n;", reply}, ""},
		{"prompts come with what follows", "tl1", false, []string{"\r\n<", reply, "\r\nagent>", reply}, []string{"\r\n<" + reply, "\r\nagent>" + reply}, ""},
		{"more follows", "tl1", false, []string{"\r\n\n   P 26-11-20 10:00:00\r\nM  1 COMPLD\r\n   \"x\"\r\n>" + reply}, []string{"\r\n\n   P 26-11-20 10:00:00\r\nM  1 COMPLD\r\n   \"x\"\r\n>", reply}, ""},
		{"acknowledged", "tl1", false, []string{"PF 12\r\n<", reply}, []string{"PF 12\r\n<", reply}, ""},
		{"not complete", "tl1", false, []string{"\r\n\n   P 26"}, nil, "\r\n\n   P 26"},
		{"line ends", "scpi", false, []string{"1\r\n2\n3\r4\r", "\n5\r", "6\r\n"}, []string{"1\r\n", "2\n", "3\r", "4\r", "\n5\r", "6\r\n"}, ""},
		{"empty lines", "scpi", false, []string{"\r\n", "\n", "\n1\n"}, []string{"\r\n", "\n", "\n", "1\n"}, ""},
		{"end of message", "netconf", false, []string{hello + "]]>", "]]>\n" + hello + "]]>]]>"}, []string{hello + "]]>]]>", "\n" + hello + "]]>]]>"}, ""},
		{"chunks", "netconf", true, []string{chunked(hello) + chunked(hello)}, []string{chunked(hello), chunked(hello)}, ""},
		{"an end of chunks in a chunk", "netconf", true, []string{"\n#5\n\n##\n\n\n##\n"}, []string{"\n#5\n\n##\n\n\n##\n"}, ""},
		{"no header of a chunk", "netconf", true, []string{"\n#5\nab\n#x\n", "cd\n##\n"}, []string{"\n#5\nab\n#x\ncd\n##\n"}, ""},
		{"without framing", "netconf", false, []string{hello, hello}, []string{hello, hello}, ""},
		{"a session that ended within a message", "netconf", false, []string{"<rpc-reply><da", hello}, []string{"<rpc-reply><da", hello}, ""},
		{"frames", "ocstrx", true, []string{"#1 read slot 0: 00", "x"}, []string{"#1 read slot 0: 00", "x"}, ""},
	} {
		f := New(x.scheme, x.sent)
		var got []string
		for _, p := range x.pieces {
			got = append(got, f.Add([]byte(p))...)
		}
		if diff := cmp.Diff(x.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", x.name, diff)
		}
		if got := f.Rest(); got != x.rest {
			t.Errorf("%s: the rest is %q, want %q", x.name, got, x.rest)
		}
	}
}

// TestLong: a message that does not end costs a bounded amount of memory, and no byte of it is
// lost; what comes behind it is a message again.
func TestLong(t *testing.T) {
	for _, x := range []struct{ scheme, begin, fill, end, next string }{
		{"tl1", "\r\n\n   P 26-11-20 10:00:00\r\nM  1 COMPLD\r\n", "   \"1:-1.20\"\r\n", ";", "\r\n\n   P 26-11-20 10:00:00\r\nM  1 COMPLD\r\n;"},
		{"scpi", "(@1", ",1", "\n", "1\n"},
		{"netconf", "<data>", "<x>1</x>", "]]>]]>", "<ok/>]]>]]>"},
		{"netconf", "\n#99999999\n", "<x>1</x>", "\n##\n", "<ok/>]]>]]>"},
	} {
		f := New(x.scheme, false)
		in := x.begin + strings.Repeat(x.fill, 3*MaxMessage/len(x.fill)) + x.end + x.next
		var out []string
		for rest := in; rest != ""; {
			n := min(len(rest), 60000)
			out = append(out, f.Add([]byte(rest[:n]))...)
			rest = rest[n:]
			if len(f.buf) > MaxMessage || cap(f.buf) > 4*MaxMessage {
				t.Fatalf("%s: keeps %d bytes, room for %d", x.scheme, len(f.buf), cap(f.buf))
			}
		}
		if got := strings.Join(out, "") + f.Rest(); got != in {
			t.Errorf("%s: what came out is not what went in: %d bytes of %d", x.scheme, len(got), len(in))
		}
		if len(out) < 4 || out[len(out)-1] != x.next {
			t.Errorf("%s: %d parts, the last is %.40q, want %q", x.scheme, len(out), out[len(out)-1], x.next)
		}
		for _, m := range out {
			if len(m) > 2*MaxMessage {
				t.Errorf("%s: a part of %d bytes", x.scheme, len(m))
			}
			check(t, Text(x.scheme, false, m), m)
		}
	}
}

// check fails unless a text is one line for people, and there is one.
func check(t *testing.T, text, message string) {
	t.Helper()
	if text == "" && message != "" {
		t.Errorf("no text for %.60q", message)
	}
	if n := utf8.RuneCountInString(text); n > MaxText {
		t.Errorf("a text of %d characters: %q", n, text)
	}
	for _, r := range text {
		if unicode.IsControl(r) {
			t.Errorf("a control character in %q", text)
		}
	}
}

// FuzzText: whatever bytes come, in whatever pieces, nothing breaks, none is lost, and each
// message has a text.
func FuzzText(f *testing.F) {
	schemes := []string{"tl1", "scpi", "netconf", "ocstrx", ""}
	for scheme, paths := range sessions(f) {
		for _, path := range paths {
			for i, s := range session(f, scheme, path) {
				if i < 12 && len(s.text) < 4000 {
					f.Add(uint8(indexOf(schemes, scheme)), s.sent, []byte(s.text), uint8(7))
				}
			}
		}
	}
	f.Add(uint8(3), true, []byte("#4 read slot 0: 00 b0 86 14"), uint8(255))
	f.Add(uint8(3), false, []byte("#4 hello reply board: 00 01"), uint8(255))
	f.Fuzz(func(t *testing.T, which uint8, sent bool, data []byte, size uint8) {
		scheme := schemes[int(which)%len(schemes)]
		fr := New(scheme, sent)
		var out []string
		for rest := data; len(rest) > 0; {
			n := min(len(rest), int(size)+1)
			out = append(out, fr.Add(rest[:n])...)
			rest = rest[n:]
		}
		out = append(out, fr.Rest())
		if got := strings.Join(out, ""); got != string(data) {
			t.Errorf("fed %q, got %q", data, got)
		}
		for _, m := range out {
			check(t, Text(scheme, sent, m), m)
		}
	})
}

func indexOf(list []string, s string) int {
	for i, x := range list {
		if x == s {
			return i
		}
	}
	return 0
}

// BenchmarkText is the cost of a message that comes each second: the powers of 384 ports.
func BenchmarkText(b *testing.B) {
	var m strings.Builder
	m.WriteString("\r\n\n   P 26-11-20 10:00:00\r\nM  3 COMPLD\r\n")
	for range 768 {
		m.WriteString("   \"17:-14.00\"\r\n")
	}
	m.WriteString(";")
	f, p := New("tl1", false), []byte(m.String())
	b.ReportAllocs()
	for b.Loop() {
		for _, x := range f.Add(p) {
			Text("tl1", false, x)
		}
	}
}
