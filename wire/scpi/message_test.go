package scpi_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/scpi"
)

func TestParseMessage(t *testing.T) {
	for _, test := range []struct {
		line string
		want string // units joined by " ; ", parameters as kind:text[suffix]@offset
	}{
		{"", ""},
		{" \t\x00;; ; ", ""},
		{"*idn?", "*idn? @1"},
		{":a:b2_c 1", ":a:b2_c @1 a number:1@9"},
		{"a:b?;*wai;:c", "a:b? @1 ; *wai @6 ; :c @11"},
		{"  a\x00 1 , 2 ", "a @3 a number:1@6 a number:2@10"},
		{"a +1.5,-.5,3.,1e3,1 E -3", "a @1 a number:+1.5@3 a number:-.5@8 a number:3.@12 a number:1e3@15 a number:1 E -3@19"},
		{"a 5ms,5 Hz,3%,2e", "a @1 a number:5[ms]@3 a number:5[Hz]@7 a number:3[%]@12 a number:2[e]@15"},
		{"a #hFf,#Q17,#b01", "a @1 a number in another base:#hFf@3 a number in another base:#Q17@8 a number in another base:#b01@13"},
		{`a "x;""y",'it''s; "'`, `a @1 a string:x;"y@3 a string:it's; "@11`},
		{"a #15he;\nx,2", "a @1 a block:he;\nx@3 a number:2@12"},
		{"a #13x  ;b", "a @1 a block:x  @3 ; b @10"},
		{"a #0x;y z", "a @1 a block:x@3 ; y @7 a word:z@9"},
		{"a (@1,(2)),(x\"),(\")", `a @1 an expression:(@1,(2))@3 an expression:(x"),(")@12`},
		{`a (@1,(2)),(x,"),(")`, `a @1 an expression:(@1,(2))@3 an expression:(x,"),(")@12`},
		{"a 10.0.0.1", "a @1 an address:10.0.0.1@3"},

		{"*", "* @1 -102"},
		{":", ": @1 -102"},
		{"a::b", "a @1 -102"},
		{"a:;b", "a @1 -102 ; b @4"},
		{"1a", " @1 -102"},
		{"\xffa", " @1 -101"},
		{"a\nb", "a @1 -101"},
		{"a(@1)", "a @1 -111"},
		{"*idn ?", "*idn @1 -102"},
		{"a\x80", "a @1 -101"},
		{"abcdefghijklm", " @1 -112"},
		{"abcdefghijkl", "abcdefghijkl @1"},
		{"a abcdefghijklm", "a @1 -144"},
		{"a 1 2", "a @1 a number:1@3 -103"},
		{"a 1,", "a @1 a number:1@3 -102"},
		{"a ,1", "a @1 -102"},
		{"a 1..2", "a @1 an address:1..2@3"},
		{"a .1.2", "a @1 -121"},
		{"a +,b", "a @1 -121"},
		{`a "x;b`, "a @1 -151"},
		{"a 'x;b", "a @1 -151"},
		{"a (@1;b", "a @1 -171 ; b @7"},
		{"a (\x80)", "a @1 -101"},
		{"a ('x)", "a @1 -151"},
		{"a #", "a @1 -161"},
		{"a #x", "a @1 -161"},
		{"a #2x", "a @1 -161"},
		{"a #19abc;d", "a @1 -161"},
		{"a #h;b", "a @1 -161 ; b @6"},
	} {
		m, err := scpi.ParseMessage([]byte(test.line))
		var units []string
		for _, u := range m.Units {
			s := u.Header.String()
			if u.Query {
				s += "?"
			}
			s += fmt.Sprintf(" @%d", u.Offset)
			for _, p := range u.Params {
				s += fmt.Sprintf(" %s:%s", p.Kind, p.Text())
				if p.Suffix != "" {
					s += "[" + p.Suffix + "]"
				}
				s += fmt.Sprintf("@%d", p.Offset)
			}
			if u.Err != nil {
				s += fmt.Sprintf(" %d", u.Err.Code)
				if err == nil || u.Err.Error() == "" {
					t.Errorf("%q: no error", test.line)
				}
			}
			units = append(units, s)
		}
		if got := strings.Join(units, " ; "); got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.line, got, test.want)
		}
	}
}

// Ensure that what the standard allows is read, by a check that shares no code.
func TestParseMessage_Standard(t *testing.T) {
	join := rapid.StringMatching(`[ \t]?;[ \t]?`)
	header := rapid.StringMatching(`(\*[A-Za-z]{3}|:?[A-Za-z][A-Za-z0-9_]{0,11}(:[A-Z]{1,12}){0,3})\??`)
	param := rapid.StringMatching(`[+-]?[0-9]{1,3}(\.[0-9]{0,2})?( ?E ?-?[0-9])?|[A-Za-z][A-Za-z0-9_]{0,11}|"([ !#-~]|""){0,8}"|'([ -&(-~]|''){0,8}'|\(@[0-9]{1,3}([:,][0-9]{1,3}){0,3}\)|#H[0-9A-F]{1,4}|#15[ -~]{5}`)
	rapid.Check(t, func(t *rapid.T) {
		var line strings.Builder
		for i := range rapid.IntRange(1, 4).Draw(t, "units") {
			if i > 0 {
				line.WriteString(join.Draw(t, "join"))
			}
			line.WriteString(header.Draw(t, "header"))
			for j := range rapid.IntRange(0, 3).Draw(t, "params") {
				line.WriteString([]string{" ", ", "}[min(j, 1)])
				line.WriteString(param.Draw(t, "param"))
			}
		}
		text := []byte(line.String())
		if errs := scpi.CheckStrict(text); errs != nil {
			t.Fatalf("%q is not strict: %v", text, errs)
		}
		m, err := scpi.ParseMessage(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		// The units as written make the same message.
		var raw []string
		for _, u := range m.Units {
			raw = append(raw, u.Raw)
		}
		again, err := scpi.ParseMessage([]byte(strings.Join(raw, ";")))
		if err != nil || len(again.Units) != len(m.Units) {
			t.Fatalf("%q: %v", text, err)
		}
		for i, u := range again.Units {
			if !reflect.DeepEqual(u.Header, m.Units[i].Header) || len(u.Params) != len(m.Units[i].Params) || u.Query != m.Units[i].Query {
				t.Fatalf("%q: unit %d %+v", text, i, u)
			}
		}
		var d scpi.Decoder
		d.Feed(append(text, '\n'))
		if got, ok, err := d.Next(); !ok || err != nil || string(got) != string(text) {
			t.Fatalf("%q is cut to %q, %v, %v", text, got, ok, err)
		}
	})
}

func TestCheckStrict(t *testing.T) {
	for _, line := range []string{
		"", "*IDN?", ":OXC:SWIT:CONN:ADD (@1,2),(@17,18);STAT?;*OPC?", "*CLS\r", `A "x;y" , 'z'`, "A #15a;b;c,#B1;B", "A 1.5 mV, -3E-2",
	} {
		if errs := scpi.CheckStrict([]byte(line)); errs != nil {
			t.Errorf("%q: %v", line, errs)
		}
	}
	for _, line := range []string{
		";", "*IDN?;", "A;;B", "(@1)", "A(@1)", "A 1 2", "A 1,", "A 10.0.0.1", `A "x`, "A #25ab", "1A", "ABCDEFGHIJKLM", "A ((1))", "A \x80",
	} {
		if errs := scpi.CheckStrict([]byte(line)); errs == nil {
			t.Errorf("%q is allowed", line)
		}
	}
	for _, reply := range []string{`16,16`, `(@),(@)`, `"361"`, `0,"No error"`, "-1.5,1.0E+3", "DARK", "1;0", "#H1F", `"a;b";1`, "#13a;b"} {
		if errs := scpi.CheckStrictReply([]byte(reply)); errs != nil {
			t.Errorf("%q: %v", reply, errs)
		}
	}
	for _, reply := range []string{"", `0, "No error"`, "1e3", "dark", "1\r", "1;", "'x'", "((1))"} {
		if errs := scpi.CheckStrictReply([]byte(reply)); errs == nil {
			t.Errorf("%q is allowed", reply)
		}
	}
}
