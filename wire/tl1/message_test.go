package tl1_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/wire/tl1"
)

func TestParseMessageErrors(t *testing.T) {
	for raw, want := range map[string]string{
		"":                                 "no header line",
		"M  1 COMPLD\r\n;":                 "no header line",
		"OCS 26-11-20 noon\r\n;":           "no header line",
		"OCS today 10:00:00\r\n;":          "no header line",
		"OCS 26--11-20 10:00:00\r\n;":      "no header line",
		header:                             "no terminator",
		header + "M  1 COMPLD\r\n":         "no terminator",
		header + "M  1 COMPLD\r\n   x>":    "no terminator",
		header + "X\r\n;":                  "no line with a completion code or an alarm code",
		header + "M  1 COMPLD\r\n;\r\n;":   "text behind the terminator",
		"PF 1\r\n<" + header:               "text behind the acknowledgement",
		"PF 1\r\n;" + header + "M 1 DENY;": "text behind the acknowledgement",
	} {
		_, err := tl1.ParseMessage([]byte(raw))
		var me *tl1.MessageError
		if !errors.As(err, &me) || me.Msg != want || string(me.Raw) != raw {
			t.Errorf("ParseMessage(%q): error %v, want %q", raw, err, want)
		}
	}
}

func TestParseMessageDate(t *testing.T) {
	m, err := tl1.ParseMessage([]byte("  2026-11-20 10:00:00.125\nM 1 COMPLD\n;"))
	if err != nil {
		t.Fatal(err)
	}
	if m.SID != "" || m.Date != "2026-11-20" || m.Time != "10:00:00.125" {
		t.Errorf("header parses as %q %q %q", m.SID, m.Date, m.Time)
	}
}

// Nothing that a command or a file can put into a message may break its frame.
func TestAppendMessageFraming(t *testing.T) {
	m := tl1.Message{
		SID: "a\r\n;\"", Date: "26-11-20", Time: "10:00:00",
		CTAG: " 1\r\n", Completion: tl1.DENY, Code: "IICT",
		Text:     []string{"x\r\n;"},
		Comments: []string{"a */\r\n;\n> b"},
	}
	var d tl1.Decoder
	d.Feed(tl1.AppendMessage(nil, m, tl1.Style{}))
	got, errs := next(&d)
	if len(errs) > 0 || len(got) != 1 {
		t.Fatalf("%d messages, errors %v", len(got), errs)
	}
	want := m
	want.SID, want.CTAG, want.Text, want.Comments = "a  ;\"", "1", []string{"x  ;"}, []string{"a * /  ; > b"}
	if diff := cmp.Diff(want, got[0], ignoreRaw); diff != "" {
		t.Errorf("message (-want +got):\n%s", diff)
	}
	for _, sid := range []string{"( nil )", "(nil)", " a", "<a"} {
		b := tl1.AppendMessage(nil, tl1.Message{SID: sid}, tl1.Style{})
		if want := tl1.QuoteAlways(sid); !strings.Contains(string(b), want) {
			t.Errorf("header with SID %q is %q", sid, b)
		}
	}
}

func TestJoin(t *testing.T) {
	blocks := []tl1.Message{
		{CTAG: "1", Completion: tl1.COMPLD, Text: append(make([]string, 0, 9), "a"), Raw: []byte("A>"), More: true},
		{CTAG: "1", Completion: tl1.PRTL, Code: "SROF", Text: []string{"b", "c"}, Comments: []string{"x"}, Raw: []byte("B>"), More: true},
		{CTAG: "1", Completion: tl1.PRTL, Comments: []string{"y"}, Raw: []byte("C;")},
	}
	want := tl1.Message{
		CTAG: "1", Completion: tl1.PRTL, Code: "SROF",
		Text: []string{"a", "b", "c"}, Comments: []string{"x", "y"}, Raw: []byte("A>B>C;"),
	}
	if diff := cmp.Diff(want, tl1.Join(blocks)); diff != "" {
		t.Errorf("joined (-want +got):\n%s", diff)
	}
	if got := blocks[0].Text[:2][1]; got != "" {
		t.Errorf("Join wrote %q into the first block", got)
	}
	if diff := cmp.Diff(tl1.Message{}, tl1.Join(nil)); diff != "" {
		t.Errorf("joining nothing (-want +got):\n%s", diff)
	}
}

func TestMessageErr(t *testing.T) {
	for _, tt := range []struct {
		m             tl1.Message
		want          string
		logout, login bool
	}{
		{m: tl1.Message{Completion: tl1.COMPLD}},
		{m: tl1.Message{Completion: tl1.DELAY}},
		{m: tl1.Message{Completion: tl1.RTRV}},
		{m: tl1.Message{Kind: tl1.Acknowledgement, Ack: tl1.NG}},
		{
			m:    tl1.Message{Completion: tl1.DENY, Code: "IDNV", Comments: []string{"Invalid OXC port: 1000"}},
			want: `DENY IDNV "Invalid OXC port: 1000" (data not valid)`,
		}, {
			m:    tl1.Message{Completion: tl1.PRTL, Text: []string{"1,17"}},
			want: `PRTL`,
		}, {
			m:    tl1.Message{Completion: tl1.DENY, Code: "XXXX", Text: []string{"a", "b"}},
			want: `DENY XXXX "a; b"`,
		}, {
			m:      tl1.Message{Completion: tl1.DENY, Code: "PLNA"},
			want:   `DENY PLNA (login not active)`,
			logout: true,
		}, {
			m:      tl1.Message{Completion: tl1.DENY, Code: "PICC", Comments: []string{"NOT LOGGED IN"}},
			want:   `DENY PICC "NOT LOGGED IN" (illegal command code or no permission)`,
			logout: true,
		}, {
			m:     tl1.Message{Completion: tl1.DENY, Comments: []string{"User is already logged in"}},
			want:  `DENY "User is already logged in"`,
			login: true,
		},
	} {
		err := tt.m.Err()
		if tt.want == "" {
			if err != nil {
				t.Errorf("%+v: unexpected error %v", tt.m, err)
			}
			continue
		}
		var e *tl1.Error
		if !errors.As(err, &e) {
			t.Errorf("got error %v, want an Error", err)
			continue
		}
		if got := e.Error(); got != tt.want {
			t.Errorf("got error %s, want %s", got, tt.want)
		}
		if e.NotLoggedIn() != tt.logout || e.AlreadyLoggedIn() != tt.login {
			t.Errorf("%v: NotLoggedIn %t, AlreadyLoggedIn %t", e, e.NotLoggedIn(), e.AlreadyLoggedIn())
		}
	}
}

func TestKindString(t *testing.T) {
	for k, want := range []string{"response", "autonomous", "acknowledgement", "unknown kind"} {
		if got := tl1.Kind(k).String(); got != want {
			t.Errorf("Kind(%d) = %q, want %q", k, got, want)
		}
	}
}

// Errors stay readable however long the text at fault is.
func TestErrorExcerpt(t *testing.T) {
	_, err := tl1.ParseCommand([]byte("ENT@" + strings.Repeat("x", 1000)))
	if got := err.Error(); len(got) > 250 || !strings.Contains(got, "884 bytes more") {
		t.Errorf("got %d bytes: %s", len(got), got)
	}
}
