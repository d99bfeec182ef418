package tl1_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/tl1"
)

func TestParseCommand(t *testing.T) {
	c, err := tl1.ParseCommand([]byte("\r\n ent - user-secu:\"Lab 1\":bob:\"my; tag\"::\"p\\\"w\",,ADMIN:x=(1,2),Label = \"a,b\";\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ what, got, want string }{
		{"Code", c.Code, "ENT-USER-SECU"},
		{"TID", c.TID.Text(), "Lab 1"},
		{"AID", c.AID.Text(), "bob"},
		{"CTAG.Raw", c.CTAG.Raw, `"my; tag"`},
		{"GB", c.GB.Text(), ""},
		{"block 1, param 1", c.Block(0).Params[0].Value.Text(), `p"w`},
		{"block 1, param 2", c.Block(0).Params[1].Value.Text(), ""},
		{"block 1, param 3", c.Block(0).Params[2].Value.Text(), "ADMIN"},
		{"block 2, param 1", c.Block(1).Params[0].Name, "X"},
		{"block 2, param 1", c.Block(1).Params[0].Value.Text(), "(1,2)"},
		{"block 2, param 2", c.Block(1).Params[1].Name, "LABEL"},
		{"block 2, param 2", c.Block(1).Params[1].Value.Text(), "a,b"},
		{"Raw", c.Raw, "ent - user-secu:\"Lab 1\":bob:\"my; tag\"::\"p\\\"w\",,ADMIN:x=(1,2),Label = \"a,b\""},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.what, tt.got, tt.want)
		}
	}
	if got, ok := c.Block(1).Value("label"); got != "a,b" || !ok {
		t.Errorf("Value(label) = %q, %t", got, ok)
	}
	for _, name := range []string{"", "none"} {
		if got, ok := c.Block(0).Value(name); got != "" || ok {
			t.Errorf("Value(%q) = %q, %t", name, got, ok)
		}
	}
	for _, i := range []int{-1, 2} {
		if diff := cmp.Diff(tl1.Block{}, c.Block(i)); diff != "" {
			t.Errorf("Block(%d) is not zero: %s", i, diff)
		}
	}
}

// An unbalanced parenthesis is an ordinary character.
func TestParseCommandParentheses(t *testing.T) {
	for block, want := range map[string]int{
		"a(b,,ADMIN":   3,
		"a)b,,ADMIN":   3,
		"LOW=(-30),X":  2,
		"(a,(b,c),d)":  1,
		`"(",b`:        2,
		"LOW=(1,2=3),": 2,
	} {
		c, err := tl1.ParseCommand(tl1.AppendCommand(nil, "X", "", "", "", block))
		if err != nil {
			t.Errorf("block %q: %v", block, err)
		}
		if got := len(c.Block(0).Params); got != want {
			t.Errorf("block %q: %d parameters, want %d", block, got, want)
		}
	}
}

func TestParseCommandErrors(t *testing.T) {
	for _, tt := range []struct {
		text   string
		offset int
		msg    string
		ctag   string
	}{
		{"", 1, "the command code is missing", ""},
		{" ;", 1, "the command code is missing", ""},
		{"::1:7;", 1, "the command code is missing", "7"},
		{"ENT@PATCH::1:7;", 4, "invalid character in the command code", "7"},
		{"ENT-PÄTCH::1:7;", 6, "invalid character in the command code", "7"},
		{"ENT-PATCH::1:7::\"abc;", 17, "the quoted string is not closed", "7"},
		{"ENT-PATCH::\"1\r\n:7::\"abc\";", 12, "the quoted string is not closed", "7"},
		{"A;B;", 3, "there is text behind the terminator", ""},
	} {
		c, err := tl1.ParseCommand([]byte(tt.text))
		var se *tl1.SyntaxError
		if !errors.As(err, &se) {
			t.Errorf("ParseCommand(%q): error %v, want a SyntaxError", tt.text, err)
			continue
		}
		if se.Offset != tt.offset || se.Msg != tt.msg {
			t.Errorf("ParseCommand(%q): %q at %d, want %q at %d", tt.text, se.Msg, se.Offset, tt.msg, tt.offset)
		}
		if c.CTAG.Raw != tt.ctag {
			t.Errorf("ParseCommand(%q): CTAG %q, want %q", tt.text, c.CTAG.Raw, tt.ctag)
		}
	}
}

func TestQuote(t *testing.T) {
	for s, want := range map[string]string{
		"":       "",
		"OCS_1.": "OCS_1.",
		"a-b":    `"a-b"`,
		"a b":    `"a b"`,
		`a"b\`:   `"a\"b\\"`,
		"a\r\nb": `"a  b"`,
		"Ä":      `"Ä"`,
	} {
		if got := tl1.Quote(s); got != want {
			t.Errorf("Quote(%q) = %s, want %s", s, got, want)
		}
	}
	for s, want := range map[string]string{
		"":             "",
		`"`:            `"`,
		`""`:           "",
		`"a`:           `"a`,
		`"a"&"b"`:      `"a"&"b"`,
		`"a\"`:         `"a\"`,
		`"a\n\\\"b"`:   `a\n\"b`,
		"\"a\\\r\nb\"": "\"a\\\r\nb\"",
	} {
		if got := tl1.Unquote(s); got != want {
			t.Errorf("Unquote(%q) = %q, want %q", s, got, want)
		}
	}
	if got, want := tl1.QuoteAlways(""), `""`; got != want {
		t.Errorf("QuoteAlways: got %s, want %s", got, want)
	}
}

// textGen generates text of one line with many characters that matter.
func textGen() *rapid.Generator[string] {
	return rapid.StringOf(rapid.OneOf(
		rapid.RuneFrom([]rune(`";:,=&()\/*<> -M`)),
		rapid.RuneFrom([]rune("abcXYZ019._")),
		rapid.Rune().Filter(func(r rune) bool { return r != '\r' && r != '\n' }),
	))
}

func TestQuoteRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := textGen().Draw(t, "s")
		if got := tl1.Unquote(tl1.Quote(s)); got != s {
			t.Fatalf("Unquote(%s) = %q, want %q", tl1.Quote(s), got, s)
		}
		if got := tl1.Unquote(tl1.QuoteAlways(s)); got != s {
			t.Fatalf("Unquote(%s) = %q, want %q", tl1.QuoteAlways(s), got, s)
		}
	})
}

func TestCommandRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var (
			code   = rapid.StringMatching(`[A-Z]{2,5}(-[A-Z0-9]{1,6}){0,2}`).Draw(t, "code")
			text   = textGen().Filter(func(s string) bool { return strings.TrimSpace(s) == s })
			fields = rapid.SliceOfN(text, 3, 3).Draw(t, "fields")
			blocks = rapid.SliceOf(rapid.SliceOfN(text, 1, 4)).Draw(t, "blocks")
			wire   []string
		)
		for _, values := range blocks {
			var params []string
			for _, v := range values {
				params = append(params, "K="+tl1.Quote(v))
			}
			wire = append(wire, strings.Join(params, ","))
		}
		b := tl1.AppendCommand(nil, code, tl1.Quote(fields[0]), tl1.Quote(fields[1]), tl1.Quote(fields[2]), wire...)

		var d tl1.CommandDecoder
		d.Feed(b)
		raw, ok, err := d.Next()
		if !ok || err != nil || d.Pending() {
			t.Fatalf("Next after %q: ok %t, error %v, pending %t", b, ok, err, d.Pending())
		}
		c, err := tl1.ParseCommand(raw)
		if err != nil {
			t.Fatal(err)
		}
		got := []string{c.TID.Text(), c.AID.Text(), c.CTAG.Text()}
		if c.Code != code || !slices.Equal(got, fields) || len(c.Blocks) != len(blocks) {
			t.Fatalf("%q parses as %q %q with %d blocks", b, c.Code, got, len(c.Blocks))
		}
		for i, values := range blocks {
			var got []string
			for _, p := range c.Block(i).Params {
				got = append(got, p.Value.Text())
				if at := p.Value.Offset - 1; !strings.HasPrefix(c.Raw[at:], p.Value.Raw) {
					t.Fatalf("%q is not at offset %d of %q", p.Value.Raw, p.Value.Offset, c.Raw)
				}
			}
			if !slices.Equal(got, values) {
				t.Fatalf("block %d of %q parses as %q, want %q", i, b, got, values)
			}
		}
	})
}

// commands feeds stream to d in pieces of at most n bytes and returns what
// comes out as text, errors included.
func commands(d *tl1.CommandDecoder, stream []byte, cut func(rest int) int) (out []string) {
	for len(stream) > 0 {
		n := cut(len(stream))
		d.Feed(stream[:n])
		stream = stream[n:]
		for {
			raw, ok, err := d.Next()
			if !ok {
				break
			}
			if err != nil {
				out = append(out, "error: "+err.Error())
			} else {
				out = append(out, string(raw))
			}
		}
	}
	return out
}

func whole(rest int) int { return rest }
func single(int) int     { return 1 }

func TestCommandDecoder(t *testing.T) {
	for _, tt := range []struct {
		stream  string
		want    []string
		pending bool
	}{
		{"A;\r\n B ;;C", []string{"A", "B ", ""}, true},
		{"A::\"x;y\";\r\n", []string{`A::"x;y"`}, false},
		{"A::\"x\\\";y\";", []string{`A::"x\";y"`}, false},
		{"A::\"x;\r\nB;", []string{"A::\"x;\r\nB"}, false},
		{"12345678;123456789;1;", []string{"12345678", `error: tl1: text that begins with "12345678" is longer than 8 bytes`, "1"}, false},
		{"12345678\"12;34\";1;", []string{`error: tl1: text that begins with "12345678" is longer than 8 bytes`, "1"}, false},
		{"123456789012", []string{`error: tl1: text that begins with "12345678" is longer than 8 bytes`}, true},
	} {
		limit := 0
		if strings.HasPrefix(tt.stream, "1") {
			limit = 8
		}
		for _, cut := range []func(int) int{whole, single} {
			d := tl1.CommandDecoder{MaxLen: limit}
			if diff := cmp.Diff(tt.want, commands(&d, []byte(tt.stream), cut)); diff != "" {
				t.Errorf("commands of %q (-want +got):\n%s", tt.stream, diff)
			}
			if got := d.Pending(); got != tt.pending {
				t.Errorf("Pending after %q: %t, want %t", tt.stream, got, tt.pending)
			}
		}
	}
}
