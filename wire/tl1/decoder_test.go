package tl1_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/tl1"
)

var ignoreRaw = cmpopts.IgnoreFields(tl1.Message{}, "Raw")

// next takes all complete messages out of d.
func next(d *tl1.Decoder) (msgs []tl1.Message, errs []error) {
	for {
		m, ok, err := d.Next()
		switch {
		case err != nil:
			errs = append(errs, err)
		case ok:
			msgs = append(msgs, m)
		default:
			return msgs, errs
		}
	}
}

// decode returns what d makes of stream, and checks that nothing is left over.
func decode(t *testing.T, d *tl1.Decoder, stream []byte) ([]tl1.Message, []error) {
	t.Helper()
	d.Feed(stream)
	msgs, errs := next(d)
	if d.Pending() {
		t.Errorf("a message is pending after %q", stream)
	}
	return msgs, errs
}

// trace feeds stream to a decoder in pieces and describes all that comes out.
func trace(d *tl1.Decoder, stream []byte, cut func(rest int) int) (out []string) {
	for len(stream) > 0 {
		n := cut(len(stream))
		d.Feed(stream[:n])
		stream = stream[n:]
		for {
			m, ok, err := d.Next()
			if !ok {
				break
			}
			out = append(out, fmt.Sprintf("%#v %v", m, err))
		}
	}
	return append(out, fmt.Sprintf("pending: %t", d.Pending()))
}

const header = "\r\n\n   OCS 26-11-20 10:00:00\r\n"

func TestDecoder(t *testing.T) {
	ok := func(ctag string, text ...string) tl1.Message {
		return tl1.Message{
			SID: "OCS", Date: "26-11-20", Time: "10:00:00",
			CTAG: ctag, Completion: tl1.COMPLD, Text: text,
		}
	}
	ack := tl1.Message{Kind: tl1.Acknowledgement, Ack: tl1.OK, CTAG: "7"}
	commented := func(comments ...string) tl1.Message {
		m := ok("1")
		m.Comments = comments
		return m
	}
	for _, tt := range []struct {
		name, stream string
		want         []tl1.Message
		errs         []string // message errors
	}{
		{"semicolon in label", header + "M  1 COMPLD\r\n   \"1:a;b\"\r\n;" + header + "M  2 COMPLD\r\n;",
			[]tl1.Message{ok("1", "1:a;b"), ok("2")}, nil},
		{"lone quote", header + "M  1 COMPLD\r\n   \"1:a;b\r\n   2\"\r\n;",
			[]tl1.Message{ok("1", "\"1:a;b", "2\"")}, nil},
		{"escaped quote", header + "M  1 COMPLD\r\n   \"1:\\\"a\\\";\\\\\"\r\n;",
			[]tl1.Message{ok("1", `1:"a";\`)}, nil},
		{"unquoted text", header + "M  1 COMPLD\r\n   \"1\",\"2\"\r\n   x/y\r\n;",
			[]tl1.Message{ok("1", `"1","2"`, "x/y")}, nil},
		{"terminator behind text", header + "M  1 COMPLD\r\n   \"1\";" + header + "M  2 COMPLD;",
			[]tl1.Message{ok("1", "1"), ok("2")}, nil},
		{"text on the status line", header + "M  1 COMPLD \"1,17\"\r\n;",
			[]tl1.Message{ok("1", "1,17")}, nil},
		{"no tag", header + "M   COMPLD\r\n;", []tl1.Message{ok("")}, nil},
		{"broken quoted tag", header + "M  \"a\"b COMPLD\r\n;", []tl1.Message{ok(`"a"b`)}, nil},
		{"open quoted tag", header + "M  \"a COMPLD\r\n;", []tl1.Message{ok(`"a`)}, nil},
		{"comment with semicolon", header + "M  1 COMPLD\r\n   /* a; don't \"b */\r\n;",
			[]tl1.Message{commented(`a; don't "b`)}, nil},
		{"long comment", header + "M  1 COMPLD\r\n   /* a;\r\n\r\n  \"b;\r\n  c; */ \"1\"\r\n;",
			[]tl1.Message{{SID: "OCS", Date: "26-11-20", Time: "10:00:00", CTAG: "1", Completion: tl1.COMPLD,
				Text: []string{"1"}, Comments: []string{"a;", `"b;`, "c;"}}}, nil},
		{"unterminated comments", header + "M  1 COMPLD\r\n   /* a;\r\n   /* b\r\n   \"1\"\r\n;",
			[]tl1.Message{{SID: "OCS", Date: "26-11-20", Time: "10:00:00", CTAG: "1", Completion: tl1.COMPLD,
				Text: []string{"1"}, Comments: []string{"a;", "b"}}}, nil},
		{"comment that looks closed", header + "M  1 COMPLD\r\n   /*/ a; */\r\n;",
			[]tl1.Message{commented("/ a;")}, nil},
		{"LF and CR", "\n   OCS 26-11-20 10:00:00\n\n\rM 1 COMPLD\n\r\"1\"\n\r;",
			[]tl1.Message{ok("1", "1")}, nil},
		{"echoes", "RTRV-PATCH:::1:;\r\n> act - user::u:1::\"a;b\";\r\nagent> rtrv-ne;" + header + "M  1 COMPLD\r\n;",
			[]tl1.Message{ok("1")}, nil},
		{"banner", "Welcome.\r\n> no\r\nagent>" + header + "M  1 COMPLD\r\n;\r\nagent>",
			[]tl1.Message{ok("1")}, nil},
		{"stray terminators", ";\r\n ;>" + header + "M  1 COMPLD\r\n;;", []tl1.Message{ok("1")}, nil},
		{"ack, then prompt", "OK 7\r\n<\r\n<" + header + "M  1 COMPLD\r\n;", []tl1.Message{ack, ok("1")}, nil},
		{"ack without terminator", "> OK 7\r\n" + header + "M  1 COMPLD\r\n;", []tl1.Message{ack, ok("1")}, nil},
		{"no header", "3 COMPLD\r\n   \"1\"\r\n;" + header + "M  1 COMPLD\r\n;",
			[]tl1.Message{ok("1")}, []string{"no header line"}},
		{"no header, one line", "\"1,17\";\r\n" + header + "M  1 COMPLD\r\n;",
			[]tl1.Message{ok("1")}, []string{"no header line"}},
		{"no status", header + "   \"1\"\r\n;" + header + ";" + header + "M  1 COMPLD\r\n;",
			[]tl1.Message{ok("1")}, []string{"no line with a completion code or an alarm code", "no line with a completion code or an alarm code"}},
		{"bad completion", header + "M  1 DONE\r\n;" + header + "M  1 COMPLD\r\n;",
			[]tl1.Message{ok("1")}, []string{"no line with a completion code or an alarm code"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, errs := decode(t, new(tl1.Decoder), []byte(tt.stream))
			if diff := cmp.Diff(tt.want, got, ignoreRaw); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
			var msgs []string
			for _, err := range errs {
				var me *tl1.MessageError
				if !errors.As(err, &me) {
					t.Fatalf("got error %v, want a MessageError", err)
				}
				if len(me.Raw) == 0 || !strings.Contains(me.Error(), me.Msg) {
					t.Errorf("error without raw text or message: %v", me)
				}
				msgs = append(msgs, me.Msg)
			}
			if diff := cmp.Diff(tt.errs, msgs); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(trace(new(tl1.Decoder), []byte(tt.stream), whole), trace(new(tl1.Decoder), []byte(tt.stream), single)); diff != "" {
				t.Errorf("fed in one piece and in single bytes:\n%s", diff)
			}
		})
	}
}

func TestDecoderTooLong(t *testing.T) {
	const good = "   O 26-11-20 10:00:00\r\nM  1 COMPLD\r\n;" // 38 bytes
	long := strings.TrimSuffix(good, ";") + strings.Repeat("x\r\n", 20) + ";"
	for _, tt := range []struct {
		name, stream string
		msgs, errs   int
	}{
		{"at the limit", good, 1, 0},
		{"body", long + good, 1, 1},
		{"body in the middle of a line", strings.TrimSuffix(good, ";") + strings.Repeat("x", 60) + ";" + good, 1, 1},
		{"just over", strings.TrimSuffix(good, ";") + " ;" + good, 1, 1},
		{"line", strings.Repeat("x", 40) + "\r\n" + good, 1, 1},
		{"lines", strings.Repeat("x\r\n", 14) + "\r\n" + good, 1, 1},
		{"blanks", strings.Repeat(" ", 40) + "\r\n" + good, 1, 1},
		{"acknowledgement", "OK 1" + strings.Repeat("\n", 40) + good, 1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, cut := range []func(int) int{whole, single} {
				d := tl1.Decoder{MaxLen: len(good)}
				var msgs, errs int
				for rest := tt.stream; rest != ""; {
					n := cut(len(rest))
					d.Feed([]byte(rest[:n]))
					rest = rest[n:]
					m, e := next(&d)
					msgs += len(m)
					for _, err := range e {
						var tl *tl1.TooLongError
						if !errors.As(err, &tl) || tl.Limit != len(good) || len(tl.Head) == 0 {
							t.Errorf("got error %v", err)
						}
						errs++
					}
				}
				if msgs != tt.msgs || errs != tt.errs {
					t.Errorf("%d messages and %d errors, want %d and %d", msgs, errs, tt.msgs, tt.errs)
				}
			}
		})
	}
}

func TestDecoderPending(t *testing.T) {
	for stream, want := range map[string]bool{
		"":                              false,
		"\r\n \n":                       false,
		"<":                             false,
		"agent> ":                       false,
		"RTRV-PATCH:::1:;":              false,
		"RTRV-PATCH:::1:;\r\n":          false,
		"   O":                          true,
		"banner\r\n":                    true,
		"PF 1\r\n":                      true,
		"PF 1\r\n<":                     false,
		header:                          true,
		header + "M  1 COMPLD\r\n":      true,
		header + "M  1 COMPLD\r\n;\r\n": false,
		header + "M  1 COMPLD\r\n>":     false,
	} {
		var d tl1.Decoder
		d.Feed([]byte(stream))
		next(&d)
		if got := d.Pending(); got != want {
			t.Errorf("Pending after %q: %t, want %t", stream, got, want)
		}
	}
}

// A message must survive the reuse of the buffers of Feed and Decoder.
func TestDecoderDoesNotKeepInput(t *testing.T) {
	var (
		d   tl1.Decoder
		in  = []byte(header + "M  1 COMPLD\r\n   \"1,17\"\r\n;")
		raw = strings.TrimLeft(string(in), "\r\n")
	)
	d.Feed(in)
	clear(in)
	m, ok, err := d.Next()
	if !ok || err != nil {
		t.Fatalf("Next: %t, %v", ok, err)
	}
	for range 100 {
		d.Feed([]byte("xxxxxxxxxxxxxxxxxx;\r\n"))
		next(&d)
	}
	if string(m.Raw) != raw || m.Text[0] != "1,17" {
		t.Errorf("message changed to %#v", m)
	}
}

func messageGen() *rapid.Generator[tl1.Message] {
	return rapid.Custom(func(t *rapid.T) tl1.Message {
		var (
			text = textGen()
			line = rapid.Map(text, strings.TrimSpace)
			word = rapid.StringMatching(`[0-9A-Za-z.]{1,6}`)
		)
		if rapid.IntRange(0, 9).Draw(t, "ack") == 0 {
			return tl1.Message{
				Kind: tl1.Acknowledgement,
				Ack:  rapid.SampledFrom([]tl1.Ack{tl1.IP, tl1.PF, tl1.OK, tl1.NA, tl1.NG, tl1.RL}).Draw(t, "Ack"),
				CTAG: word.Draw(t, "CTAG"),
			}
		}
		m := tl1.Message{
			SID:  line.Draw(t, "SID"),
			Date: "26-11-20",
			Time: "10:00:00",
			More: rapid.Bool().Draw(t, "More"),
		}
		if rapid.Bool().Draw(t, "autonomous") {
			m.Kind = tl1.Autonomous
			m.Alarm = rapid.SampledFrom([]string{"*C", "**", "*", "A"}).Draw(t, "Alarm")
			m.ATAG = word.Draw(t, "ATAG")
			m.Event = "REPT " + word.Draw(t, "Event")
		} else {
			m.CTAG = rapid.OneOf(word, rapid.Map(text, tl1.QuoteAlways)).Draw(t, "CTAG")
			m.Completion = rapid.SampledFrom([]tl1.Completion{tl1.COMPLD, tl1.PRTL, tl1.DENY, tl1.DELAY, tl1.RTRV}).Draw(t, "Completion")
			if m.Completion == tl1.DENY || m.Completion == tl1.PRTL {
				m.Code = rapid.StringMatching(`([A-Z]{4})?`).Draw(t, "Code")
			}
		}
		if s := rapid.SliceOfN(text, 0, 5).Draw(t, "Text"); len(s) > 0 {
			m.Text = s
		}
		comment := line.Filter(func(s string) bool { return !strings.Contains(s, "*/") })
		if s := rapid.SliceOfN(comment, 0, 3).Draw(t, "Comments"); len(s) > 0 {
			m.Comments = s
		}
		return m
	})
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			want   = rapid.SliceOfN(messageGen(), 1, 4).Draw(t, "messages")
			style  = tl1.Style{ShortLead: rapid.Bool().Draw(t, "short"), After: rapid.SampledFrom([]string{"", "\r\n", "\r\n>", "\r\nagent>"}).Draw(t, "after")}
			stream []byte
		)
		for _, m := range want {
			stream = tl1.AppendMessage(stream, m, style)
			if m.Kind == tl1.Acknowledgement {
				stream = append(stream, "\r\n"...)
			}
		}
		var d tl1.Decoder
		d.Feed(stream)
		got, errs := next(&d)
		if len(errs) > 0 {
			t.Fatalf("decoding %q: %v", stream, errs)
		}
		if diff := cmp.Diff(want, got, ignoreRaw); diff != "" {
			t.Fatalf("decoding %q (-want +got):\n%s", stream, diff)
		}
	})
}

func TestDecoderCuts(t *testing.T) {
	pieces := []string{
		header, header, "M  1 COMPLD\r\n", "M  1 DENY\r\n", "*C 1 REPT ALM EQPT\r\n", "   \"1,17\"\r\n",
		"   \"a;b\\\"\"\r\n", "   \"lone\r\n", "/* x; */", "/*", "*/", "\r", "\n", "\r\n", ";", ";", ">", "<", "agent>",
		"PF 1\r\n<", "RTRV-X:::1:;\r\n", " ", "x", "\\", "\"",
	}
	rapid.Check(t, func(t *rapid.T) {
		stream := []byte(strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), ""))
		limit := rapid.SampledFrom([]int{0, 1, 8, 40, 60}).Draw(t, "limit")
		want := trace(&tl1.Decoder{MaxLen: limit}, stream, whole)
		got := trace(&tl1.Decoder{MaxLen: limit}, stream, func(rest int) int {
			return rapid.IntRange(1, rest).Draw(t, "cut")
		})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("stream %q depends on cuts (-whole +cut):\n%s", stream, diff)
		}
		wantCmds := commands(&tl1.CommandDecoder{MaxLen: limit}, stream, whole)
		gotCmds := commands(&tl1.CommandDecoder{MaxLen: limit}, stream, func(rest int) int {
			return rapid.IntRange(1, rest).Draw(t, "cut")
		})
		if diff := cmp.Diff(wantCmds, gotCmds); diff != "" {
			t.Fatalf("commands of %q depend on cuts (-whole +cut):\n%s", stream, diff)
		}
	})
}
