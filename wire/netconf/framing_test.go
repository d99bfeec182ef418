package netconf_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/netconf"
)

// The example of RFC 6242 section 4.2.
const (
	closeSession = "<rpc message-id=\"102\"\n     xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n  <close-session/>\n</rpc>"
	rfcChunks    = "\n#4\n<rpc" +
		"\n#18\n message-id=\"102\"\n" +
		"\n#79\n     xmlns=\"urn:ietf:params:xml:ns:netconf:base:1.0\">\n  <close-session/>\n</rpc>" +
		"\n##\n"
)

// decode feeds stream in pieces that step cuts from the rest. The first message
// has end-of-message framing and f holds for the others.
func decode(d *netconf.Decoder, f netconf.Framing, stream []byte, step func(rest int) int) (msgs []string, err error) {
	if f == netconf.EndOfMessage {
		d.SetFraming(f)
	}
	for len(stream) > 0 {
		n := step(len(stream))
		d.Feed(stream[:n])
		stream = stream[n:]
		for {
			msg, ok, err := d.Next()
			if err != nil {
				return msgs, err
			}
			if !ok {
				break
			}
			msgs = append(msgs, string(msg))
			if len(msgs) == 1 {
				d.SetFraming(f)
			}
		}
	}
	return msgs, nil
}

func whole(rest int) int { return rest }
func one(int) int        { return 1 }

func TestDecoder(t *testing.T) {
	for _, tt := range []struct {
		name, stream string
		framing      netconf.Framing
		want         []string
	}{
		{"end of message", "<hello/>]]>]]><rpc/>]]>]]>", netconf.EndOfMessage, []string{"<hello/>", "<rpc/>"}},
		{"line ends between", "<hello/>]]>]]>\n<rpc/>\r\n]]>]]>\n", netconf.EndOfMessage, []string{"<hello/>", "\n<rpc/>\r\n"}},
		{"almost an end", "<a>]]]>]]</a>]]>]]]>]]>]]>]]>", netconf.EndOfMessage, []string{"<a>]]]>]]</a>]]>]", ""}},
		{"chunks of RFC 6242", "<hello/>]]>]]>" + rfcChunks, netconf.Chunked, []string{"<hello/>", closeSession}},
		{"line end behind the hello", "<hello/>]]>]]>\r\n" + rfcChunks + rfcChunks, netconf.Chunked, []string{"<hello/>", closeSession, closeSession}},
		{"header in the data", "<hello/>]]>]]>\n#10\n\n#3\nab]]>x\n#1\ny\n##\n", netconf.Chunked, []string{"<hello/>", "\n#3\nab]]>xy"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream := []byte(tt.stream)
			for i := range len(stream) {
				cut := func(rest int) int {
					if rest == len(stream) {
						return i + 1
					}
					return rest
				}
				got, err := decode(new(netconf.Decoder), tt.framing, stream, cut)
				if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
					t.Fatalf("cut at %d: %v\n%s", i+1, err, diff)
				}
			}
			var d netconf.Decoder
			got, err := decode(&d, tt.framing, stream, one)
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Fatalf("byte by byte: %v\n%s", err, diff)
			}
			if d.Pending() {
				t.Error("Pending behind the last message")
			}
		})
	}
}

func TestDecoderErrors(t *testing.T) {
	for _, tt := range []struct {
		stream string
		offset int64
		msg    string
	}{
		{"<rpc/>]]>]]>", 0, "a chunk must begin with"},
		{"\n\n#1\n", 1, "a chunk must begin with"},
		{"\r\n#1\n", 0, "a chunk must begin with"},
		{"\n#0\n", 2, "without leading zeros"},
		{"\n#01\nx", 2, "without leading zeros"},
		{"\n#\n", 2, "without leading zeros"},
		{"\n#-1\n", 2, "without leading zeros"},
		{"\n#1\r\nx", 3, "followed by a line end"},
		{"\n#1 \nx", 3, "followed by a line end"},
		{"\n#4294967296\n", 2, "larger than 4294967295"},
		{"\n#99999999999999999999999\n", 2, "larger than 4294967295"},
		{"\n#4294967295\n", 0, "longer than 100 bytes"},
		{"\n#60\n" + strings.Repeat("x", 60) + "\n#41\n", 65, "longer than 100 bytes"},
		{"\n##\n", 2, "without any chunk"},
		{"\n#1\nx\n##", -1, ""},
		{"\n#1\nx\n##\r\n", 8, `"##" must be followed`},
		{"\n#1\nx\n##\n\n#1\nxy", 14, "a chunk must begin with"},
	} {
		for _, step := range []func(int) int{whole, one} {
			d := netconf.Decoder{MaxMessage: 100}
			d.SetFraming(netconf.Chunked)
			d.SetFraming(netconf.Chunked) // of old, so white space is not skipped
			_, err := decode(&d, netconf.Chunked, []byte(tt.stream), step)
			var fe *netconf.FramingError
			if tt.offset < 0 {
				if err != nil || !d.Pending() {
					t.Errorf("%q: %v, pending %t", tt.stream, err, d.Pending())
				}
				continue
			}
			if !errors.As(err, &fe) || fe.Offset != tt.offset || !strings.Contains(fe.Error(), tt.msg) {
				t.Errorf("%q: %v, want %q at %d", tt.stream, err, tt.msg, tt.offset)
				continue
			}
			d.Feed([]byte(rfcChunks))
			if _, ok, again := d.Next(); ok || !errors.Is(again, err) {
				t.Errorf("%q: after the error Next gives %t, %v", tt.stream, ok, again)
			}
		}
	}
}

func TestDecoderTooLong(t *testing.T) {
	for n := 98; n <= 103; n++ {
		stream := []byte("<hello/>]]>]]>" + strings.Repeat("x", n) + "]]>]]>")
		for _, step := range []func(int) int{whole, one} {
			d := netconf.Decoder{MaxMessage: 100}
			msgs, err := decode(&d, netconf.EndOfMessage, stream, step)
			var fe *netconf.FramingError
			switch {
			case n <= 100 && (err != nil || len(msgs) != 2):
				t.Errorf("%d bytes: %v", n, err)
			case n > 100 && (!errors.As(err, &fe) || fe.Offset != 14):
				t.Errorf("%d bytes: error %v", n, err)
			}
		}
	}
	d := netconf.Decoder{MaxMessage: 100}
	d.Feed(bytes.Repeat([]byte("x"), 106))
	if _, _, err := d.Next(); err == nil {
		t.Error("no error without the end of the message")
	}
}

func TestPending(t *testing.T) {
	var d netconf.Decoder
	steps := []struct {
		feed string
		want bool
	}{
		{"", false}, {"\n", false}, {"<a", true}, {"/>]]>]]>", false}, {" \r\n", false},
	}
	for _, s := range steps {
		d.Feed([]byte(s.feed))
		for ok := true; ok; _, ok, _ = d.Next() {
		}
		if d.Pending() != s.want {
			t.Errorf("after %q: pending %t", s.feed, d.Pending())
		}
	}
	d.SetFraming(netconf.Chunked)
	for _, s := range []struct {
		feed string
		want bool
	}{
		{" ", false}, {"\n#2\n", true}, {"a", true}, {"b", true}, {"\n##", true}, {"\n", false}, {"\n", true},
	} {
		d.Feed([]byte(s.feed))
		for ok := true; ok; _, ok, _ = d.Next() {
		}
		if d.Pending() != s.want {
			t.Errorf("chunked, after %q: pending %t", s.feed, d.Pending())
		}
	}
}

// A large message does not keep its buffer, and the offsets go on.
func TestDecoderLarge(t *testing.T) {
	var d netconf.Decoder
	msg := bytes.Repeat([]byte("0123456789"), 300_000)
	stream := append(netconf.AppendMessage(nil, msg, netconf.EndOfMessage), netconf.AppendChunks(nil, msg, 7)...)
	stream = append(stream, "\n#1\nx\n##\nBAD"...)
	msgs, err := decode(&d, netconf.Chunked, stream, func(rest int) int {
		if rest == len(stream) {
			return len(msg) + len("]]>]]>") // just the first
		}
		return min(rest, 65536)
	})
	if len(msgs) != 3 || msgs[0] != string(msg) || msgs[1] != string(msg) || msgs[2] != "x" {
		t.Errorf("%d messages", len(msgs))
	}
	var fe *netconf.FramingError
	if !errors.As(err, &fe) || fe.Offset != int64(len(stream)-3) || string(fe.Excerpt) != "BAD" {
		t.Errorf("error %v", err)
	}
}

func TestAppend(t *testing.T) {
	for _, tt := range []struct {
		msg  string
		size int
		want string
	}{
		{"", 4, ""},
		{"abcdefgh", 4, "\n#4\nabcd\n#4\nefgh\n##\n"},
		{"abcde", 4, "\n#4\nabcd\n#1\ne\n##\n"},
		{"abc", 0, "\n#1\na\n#1\nb\n#1\nc\n##\n"},
		{"abc", math.MaxInt, "\n#3\nabc\n##\n"},
		{"aä€😀b", 4, "\n#3\naä\n#3\n€\n#4\n😀\n#1\nb\n##\n"},
		{"€", 2, "\n#2\n\xe2\x82\n#1\n\xac\n##\n"},
		{"\x80\x80\x80\x80\x80\x80", 4, "\n#4\n\x80\x80\x80\x80\n#2\n\x80\x80\n##\n"},
	} {
		if got := netconf.AppendChunks([]byte("."), []byte(tt.msg), tt.size); string(got) != "."+tt.want {
			t.Errorf("AppendChunks(%q, %d) = %q, want %q", tt.msg, tt.size, got, tt.want)
		}
	}
	for f, want := range map[netconf.Framing]string{
		netconf.EndOfMessage: "<a/>]]>]]>",
		netconf.Chunked:      "\n#4\n<a/>\n##\n",
	} {
		if got := netconf.AppendMessage(nil, []byte("<a/>"), f); string(got) != want {
			t.Errorf("%v: %q", f, got)
		}
		if got := netconf.AppendMessage(nil, nil, f); len(got) != 0 {
			t.Errorf("%v: an empty message becomes %q", f, got)
		}
	}
	if s := fmt.Sprint(netconf.EndOfMessage, netconf.Chunked, netconf.Framing(7)); s != "end-of-message chunked Framing(7)" {
		t.Error(s)
	}
}

// Any messages, in any chunks, come out as they went in, however they are read.
func TestFramingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := rapid.StringN(1, 60, -1).Filter(func(s string) bool { return !strings.Contains(s+"]]>]]", "]]>]]>") })
		want := append([]string{"<hello/>"}, rapid.SliceOfN(msg, 0, 6).Draw(t, "messages")...)
		f := rapid.SampledFrom([]netconf.Framing{netconf.EndOfMessage, netconf.Chunked}).Draw(t, "framing")
		size := rapid.IntRange(1, 70).Draw(t, "chunk")
		var stream []byte
		for i, m := range want {
			if i == 0 || f == netconf.EndOfMessage {
				stream = netconf.AppendMessage(stream, []byte(m), netconf.EndOfMessage)
				continue
			}
			chunks := netconf.AppendChunks(nil, []byte(m), size)
			if size >= 4 && utf8.ValidString(m) && !utf8.Valid(chunks) {
				t.Fatalf("a chunk of %q is cut inside a character", chunks)
			}
			stream = append(stream, chunks...)
		}
		step := func(rest int) int { return rapid.IntRange(1, min(rest, 40)).Draw(t, "read") }
		var d netconf.Decoder
		got, err := decode(&d, f, stream, step)
		if err != nil || !slices.Equal(got, want) || d.Pending() {
			t.Fatalf("%q came out as %q, %v", want, got, err)
		}
	})
}
