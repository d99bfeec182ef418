package scpi_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/wire/scpi"
)

var messages = []string{
	"*IDN?\r\n", ":OXC:SWITch:CONNect:ADD (@1,2),(@17,18);STATe?;*OPC?\n", "*CLS;:OXC:SWITch:CONNect:PORT? 2;*OPC?\n",
	":A 1.5mV,\"x;\"\"y\",'z',#15a;b;c,#H1F,10.0.0.1,(@1,(\"x\"))\r", "A:B (@1;ADD 1\n", "A #0rest\nB \"open\n\"\n",
}

// FuzzDecoder checks that nothing is lost, and that what can be read does not
// depend on how it comes.
func FuzzDecoder(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(m), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, n uint8) {
		var pieces []string
		for p := range slices.Chunk(data, int(n%16)+1) {
			pieces = append(pieces, string(p))
		}
		for name, mk := range map[string]func() cutter{
			"Decoder":      func() cutter { return &scpi.Decoder{MaxLen: 64} },
			"ReplyDecoder": func() cutter { return &scpi.ReplyDecoder{MaxLen: 64} },
		} {
			whole, parts := cut(mk(), string(data)), cut(mk(), pieces...)
			if !slices.Equal(whole, parts) {
				t.Fatalf("%s: %q, in pieces %q", name, whole, parts)
			}
			rest := data
			for _, line := range whole {
				if len(line) > 64 {
					t.Fatalf("%s: a line of %d bytes", name, len(line))
				}
				if line == "!" { // or a line that says so
					break
				}
				i := bytes.Index(rest, []byte(line))
				if i < 0 {
					t.Fatalf("%s: %q is not in the rest of %q", name, line, data)
				}
				rest = rest[i+len(line):]
			}
		}
	})
}

// FuzzParseMessage checks that whatever is read is where it is said to be, and
// that what the strict check allows is read.
func FuzzParseMessage(f *testing.F) {
	for _, m := range messages {
		f.Add([]byte(strings.TrimRight(m, "\r\n")))
	}
	tree := polatis()
	f.Fuzz(func(t *testing.T, line []byte) {
		m, err := scpi.ParseMessage(line)
		var path scpi.Path
		for _, u := range m.Units {
			at := func(offset int, text string) {
				if offset < 1 || !strings.HasPrefix(string(line[offset-1:]), text) {
					t.Fatalf("%q is not at offset %d of %q", text, offset, line)
				}
			}
			at(u.Offset, u.Raw)
			for _, p := range u.Params {
				at(p.Offset, p.Raw)
				_, _ = p.Text(), p.Kind.String()
			}
			if u.Err != nil && (err == nil || u.Err.Offset < 1 || u.Err.Offset > len(line)+1 || u.Err.Code > -100 || u.Err.Code < -199) {
				t.Fatalf("%q: %+v", line, u.Err)
			}
			_, canonical, next, ferr := tree.Find(path, u)
			if (canonical == "") != (ferr != nil) {
				t.Fatalf("%q: canonical %q, %v", line, canonical, ferr)
			}
			path = next
		}
		if strict := scpi.CheckStrict(line); strict == nil && err != nil {
			t.Fatalf("%q is strict: %v", line, err)
		}
	})
}

// FuzzReply checks that what devices say is read or refused, and that what was
// read can be written.
func FuzzReply(f *testing.F) {
	for _, s := range []string{"(@1,2),(@19:18)", "(D,E,F)", "16,16", `"361"`, `0, "No error"`, `-1,"a""b",2,'c'`, "(@1:99999999)", "(-12.05,\"x,y\",(z))"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		scpi.CheckStrictReply([]byte(s))
		if list, err := scpi.ParseChannelList(s); err == nil {
			again, err := scpi.ParseChannelList(string(scpi.AppendChannelList(nil, list)))
			if err != nil || !slices.Equal(list, again) || len(list) > scpi.MaxChannels {
				t.Fatalf("%q: %v, then %v, %v", s, list, again, err)
			}
		}
		if lists, err := scpi.ParseLists(s); err == nil {
			n := 0
			for _, l := range lists {
				n += len(l)
			}
			if n > scpi.MaxChannels {
				t.Fatalf("%q: %d channels", s, n)
			}
		}
		if values, err := scpi.ParseValues(s); err == nil && len(values) > 0 {
			again, err := scpi.ParseValues(strings.Join(values, ","))
			if len(values) > 1 && (err != nil || !slices.Equal(values, again)) {
				t.Fatalf("%q: %q, then %q, %v", s, values, again, err)
			}
		}
		if text, err := scpi.Unquote(s); err == nil {
			if again, err := scpi.Unquote(scpi.Quote(text)); err != nil || again != text {
				t.Fatalf("%q: %q, then %q, %v", s, text, again, err)
			}
		}
		if errs, err := scpi.ParseError(s); err == nil {
			var b []byte
			for i, e := range errs {
				if i > 0 {
					b = append(b, ',')
				}
				b = scpi.AppendError(b, e, i%2 == 0)
			}
			if again, err := scpi.ParseError(string(b)); len(errs) > 0 && (err != nil || !slices.Equal(errs, again)) {
				t.Fatalf("%q: %v, then %v, %v", s, errs, again, err)
			}
		}
	})
}
