package scpi_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/scpi"
)

// cutter is a Decoder or ReplyDecoder.
type cutter interface {
	Feed([]byte)
	Next() ([]byte, bool, error)
}

// cut feeds pieces and returns the lines and "!" for what is too long.
func cut(d cutter, pieces ...string) []string {
	lines := []string{}
	for _, p := range pieces {
		d.Feed([]byte(p))
		for {
			line, ok, err := d.Next()
			if !ok {
				break
			}
			if err != nil {
				lines = append(lines, "!")
			} else {
				lines = append(lines, string(line))
			}
		}
	}
	return lines
}

func TestDecoder(t *testing.T) {
	for _, test := range []struct {
		in            string
		lines, replys []string // nil: as lines
	}{
		{"a\nb\r\nc\rd", []string{"a", "b", "c"}, nil},
		{"a;\r\n\r\n \t\n\x00\nb\n", []string{"a;", "b"}, []string{"a;", "", " \t", "\x00", "b"}},
		{"\r\n", []string{}, []string{""}},
		{"a\r\r\nb\n\n", []string{"a", "b"}, []string{"a", "", "b", ""}},
		{"\"a\nb\"\nc\n", []string{"\"a\nb\"", "c"}, nil},
		{"x 'a\nb'\nc\n", []string{"x 'a\nb'", "c"}, []string{"x 'a", "b'", "c"}},
		{"x \"a\"\"\nb\"\nc\n", []string{"x \"a\"\"\nb\"", "c"}, nil},
		{"it's\nx=\"\nb\n", []string{"it's", "x=\"", "b"}, nil},
		{"x #12\n\n\ny\n", []string{"x #12\n\n", "y"}, nil},
		{"x #0a\nb\n", []string{"x #0a", "b"}, nil},
		{"x#15\ny\n", []string{"x#15", "y"}, nil},
		{"x #3a\nb\n", []string{"x #3a", "b"}, nil},
		{"0123456789\na\n", []string{"0123456789", "a"}, nil},
		{"01234567890\na\n", []string{"!", "a"}, nil},
		{"01234567890123456789\r\na\n", []string{"!", "a"}, nil},
		{"x \"6789012\na\nb\n", []string{"!", "a", "b"}, nil},
		{"x \"678901\n\na\nb\n", []string{"!", "a", "b"}, nil},
		{"x #9999999999\na\n", []string{"!", "a"}, nil},
		{"x #17\n234567\na\n", []string{"!", "234567", "a"}, nil},
	} {
		if test.replys == nil {
			test.replys = test.lines
		}
		for name, try := range map[string]struct {
			make func() cutter
			want []string
		}{
			"Decoder":      {func() cutter { return &scpi.Decoder{MaxLen: 10} }, test.lines},
			"ReplyDecoder": {func() cutter { return &scpi.ReplyDecoder{MaxLen: 10} }, test.replys},
		} {
			for _, pieces := range [][]string{{test.in}, strings.Split(test.in, "")} {
				if got := cut(try.make(), pieces...); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", try.want) {
					t.Errorf("%s %q in %d pieces: got %q, want %q", name, test.in, len(pieces), got, try.want)
				}
			}
		}
	}
}

// Ensure that lines do not depend on how a stream comes in pieces.
func TestDecoder_Pieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \r\n\"'#123;,(")), 0, 60, -1).Draw(t, "text")
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		whole, parts := cut(&scpi.Decoder{MaxLen: 12}, text), cut(&scpi.Decoder{MaxLen: 12}, pieces...)
		if fmt.Sprintf("%q", whole) != fmt.Sprintf("%q", parts) {
			t.Fatalf("%q: %q, in pieces %q", text, whole, parts)
		}
	})
}

func TestDecoder_Limits(t *testing.T) {
	var d scpi.Decoder
	block := []byte(strings.Repeat("x", 1<<20))
	errs := 0
	for range 10 {
		d.Feed(block)
		for {
			_, ok, err := d.Next()
			if !ok {
				break
			}
			var long *scpi.TooLongError
			if errs++; !errors.As(err, &long) || long.Limit != scpi.DefaultMaxLine || len(long.Head) != 64 || !strings.Contains(err.Error(), "65536") {
				t.Errorf("%v", err)
			}
		}
	}
	if errs != 1 {
		t.Errorf("%d errors for a line of 10 MB", errs)
	}
	if got := cut(&d, "\n*IDN?\n"); len(got) != 1 || got[0] != "*IDN?" {
		t.Errorf("then %q", got)
	}

	var r scpi.ReplyDecoder
	if r.Pending() {
		t.Error("pending before anything has come")
	}
	r = scpi.ReplyDecoder{MaxLen: 4}
	for _, step := range []struct {
		in      string
		pending bool
	}{{"a", true}, {"\r", false}, {"\n", false}, {" ", false}, {"\"", true}, {"\n", true}, {"\"", true}, {"123", true}, {"5", true}, {"\n", false}} {
		cut(&r, step.in)
		if got := r.Pending(); got != step.pending {
			t.Errorf("behind %q: pending %v", step.in, got)
		}
	}
}
