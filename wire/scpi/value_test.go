package scpi_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/scpi"
)

func TestChannelLists(t *testing.T) {
	for ports, want := range map[string]string{"[]": "(@)", "[1]": "(@1)", "[1 2 5]": "(@1,2,5)", "[4294967295]": "(@4294967295)"} {
		var list []uint32
		for _, f := range strings.Fields(strings.Trim(ports, "[]")) {
			var n uint32
			fmt.Sscan(f, &n)
			list = append(list, n)
		}
		if got := string(scpi.AppendChannelList([]byte("x"), list)); got != "x"+want {
			t.Errorf("%s: %s", ports, got)
		}
	}
	for _, test := range []struct{ in, want string }{
		{"(@)", "[]"}, {"(@1,3:5)", "[1 3 4 5]"}, {"(@5:3,1)", "[5 4 3 1]"}, {" ( @1)", "-171@3"}, {" (@ 1 , 2 : 3 ) \r\n", "[1 2 3]"}, {"(@7:7)", "[7]"},
		{"(@4294967295)", "[4294967295]"}, {"(@0)", "[0]"}, {"(@4294967294:4294967295)", "[4294967294 4294967295]"},
		{"", "-171@1"}, {"(", "-171@2"}, {"(@", "-171@3"}, {"(@1", "-171@4"}, {"(@1,)", "-171@5"}, {"(@,1)", "-171@3"}, {"(@-1)", "-171@3"}, {"(@1)x", "-171@5"},
		{"(@1!2)", "-171@4"}, {"(@1:)", "-171@5"}, {"(1)", "-171@2"}, {"(@a)", "-171@3"}, {"(@4294967296)", "-222@3"}, {"(@99999999999999999999999)", "-222@3"},
		{"(@1:99999999)", "-223@4"}, {"(@0:4294967295)", "-223@4"}, {"(@1:131072)", "131072"}, {"(@1:131072,1)", "-223@13"}, {"(@131073:1)", "-223@9"},
	} {
		list, err := scpi.ParseChannelList(test.in)
		got := fmt.Sprint(list)
		var s *scpi.SyntaxError
		if errors.As(err, &s) {
			got = fmt.Sprintf("%d@%d", s.Code, s.Offset)
		} else if len(list) > 1000 {
			got = fmt.Sprint(len(list))
		}
		if got != test.want {
			t.Errorf("%q: got %s, want %s", test.in, got, test.want)
		}
	}
	for _, test := range []struct{ in, want string }{
		{"", "[]"}, {"(@),(@)", "[[] []]"}, {"(@1,2),(@19,18)\r\n", "[[1 2] [19 18]]"}, {"(@1) , (@2:3)", "[[1] [2 3]]"},
		{"(@1),", "-171@6"}, {",(@1)", "-171@1"}, {"(@1)(@2)", "-103@5"}, {"(@1:131072),(@1)", "-223@16"},
	} {
		lists, err := scpi.ParseLists(test.in)
		got := fmt.Sprint(lists)
		var s *scpi.SyntaxError
		if errors.As(err, &s) {
			got = fmt.Sprintf("%d@%d", s.Code, s.Offset)
		}
		if got != test.want {
			t.Errorf("%q: got %s, want %s", test.in, got, test.want)
		}
	}
}

func TestChannelLists_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfN(rapid.SliceOf(rapid.Uint32()), 1, 3).Draw(t, "lists")
		var text []byte
		for i, l := range lists {
			if i > 0 {
				text = append(text, ',')
			}
			text = scpi.AppendChannelList(text, l)
			one, err := scpi.ParseChannelList(string(scpi.AppendChannelList(nil, l)))
			if err != nil || !slices.Equal(one, l) {
				t.Fatalf("%v: %v, %v", l, one, err)
			}
		}
		got, err := scpi.ParseLists(string(text))
		if err != nil || !slices.EqualFunc(got, lists, slices.Equal[[]uint32]) {
			t.Fatalf("%s: %v, %v", text, got, err)
		}
		values, err := scpi.ParseValues(string(text))
		if err != nil || len(values) != len(lists) || scpi.CheckStrictReply(text) != nil {
			t.Fatalf("%s: %q, %v", text, values, err)
		}
	})
}

func TestParseValues(t *testing.T) {
	for _, test := range []struct {
		in   string
		want []string
	}{
		{"", nil}, {"()", nil}, {" ( ) \r\n", nil}, {"(D,E,F)", []string{"D", "E", "F"}}, {"(D)", []string{"D"}}, {"16, 16\r\n", []string{"16", "16"}},
		{`"a,""b)",c`, []string{`"a,""b)"`, "c"}}, {`("a,b",(c,d))`, []string{`"a,b"`, "(c,d)"}}, {"(@1,2)", []string{"(@1,2)"}},
		{"(1),(2)", []string{"(1)", "(2)"}}, {`""`, []string{`""`}},
		{"a,", []string{}}, {",a", []string{}}, {"(a", []string{}}, {"a)", []string{}}, {"(a)(b)", []string{}}, {`"a`, []string{}}, {"(,)", []string{}},
	} {
		got, err := scpi.ParseValues(test.in)
		wantErr := test.want != nil && len(test.want) == 0
		if (err != nil) != wantErr || !slices.Equal(got, test.want) {
			t.Errorf("%q: %q, %v", test.in, got, err)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, bad := range []string{"", `"`, "361", `"a`, `a"`, `"a"b"`, `"a'`, `"""`} {
		if s, err := scpi.Unquote(bad); err == nil {
			t.Errorf("%q is %q", bad, s)
		}
	}
	if s, err := scpi.Unquote("  'it''s \"x\"'\r\n"); err != nil || s != `it's "x"` {
		t.Errorf("%q, %v", s, err)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got, err := scpi.Unquote(scpi.Quote(s)); err != nil || got != s {
			t.Fatalf("%q: %q, %v", s, got, err)
		}
	})
}

func TestParseError(t *testing.T) {
	for _, test := range []struct{ in, want string }{
		{`0, "No error"`, "[]"}, {`+0,"No error"`, "[]"}, {`-113,"Undefined header"` + "\r\n", `[error -113 "Undefined header"]`},
		{`-222,"Data out of range;""x""", 361 , 'mine'`, `[error -222 "Data out of range;\"x\"" error 361 "mine"]`}, {`0,""`, "[]"},
		{"", "!"}, {"1", "!"}, {"16,16", "!"}, {`"361"`, "!"}, {`x,"y"`, "!"}, {`1,"a",2`, "!"}, {`99999999999,"y"`, "!"}, {`1,"y`, "!"}, {`1,"a"b`, "!"},
	} {
		list, err := scpi.ParseError(test.in)
		got := fmt.Sprint(list)
		if err != nil {
			got = "!"
			if !strings.HasPrefix(err.Error(), "scpi: ") {
				t.Error(err)
			}
		}
		if got != test.want {
			t.Errorf("%q: got %s, want %s", test.in, got, test.want)
		}
	}
	e := scpi.NewError(scpi.DataOutOfRange, "port\t\"99\"\xff")
	if got := string(scpi.AppendError(nil, e, true)); got != `-222, "Data out of range;port?""99""?"` {
		t.Error(got)
	}
	if got := string(scpi.AppendError(nil, e, false)); got != `-222,"Data out of range;port?""99""?"` || scpi.CheckStrictReply([]byte(got)) != nil {
		t.Error(got)
	}
	if n := len(scpi.NewError(scpi.BadSyntax, strings.Repeat("x", 999)).Text); n != 255 {
		t.Errorf("a text of %d", n)
	}
	if s := (&scpi.SyntaxError{Code: -102, Offset: 3, Text: strings.Repeat("y", 200), Reason: "want more"}).Error(); s != "scpi: want more at offset 3 of \""+strings.Repeat("y", 120)+"\" and 80 bytes more" {
		t.Error(s)
	}
	rapid.Check(t, func(t *rapid.T) {
		code, text := rapid.Int32().Draw(t, "code"), rapid.StringMatching(`[ -~]{0,40}`).Draw(t, "text")
		if code == 0 {
			return
		}
		e := scpi.Error{Code: int(code), Text: text}
		line := scpi.AppendError(append(scpi.AppendError(nil, e, true), ','), e, false)
		got, err := scpi.ParseError(string(line))
		if err != nil || !slices.Equal(got, []scpi.Error{e, e}) {
			t.Fatalf("%s: %v, %v", line, got, err)
		}
	})
}
