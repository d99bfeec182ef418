package tl1_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/wire/tl1"
)

// FuzzParseCommand checks that a command which parses can be written again and
// then parses to the same, and that offsets point at their fields.
func FuzzParseCommand(f *testing.F) {
	for _, step := range polatis {
		f.Add(step.command)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := tl1.ParseCommand(text)
		var se *tl1.SyntaxError
		if err != nil && (!errors.As(err, &se) || se.Offset < 1 || se.Offset > len(se.Text)+1) {
			t.Fatalf("ParseCommand(%q): error %#v", text, err)
		}
		check := func(f tl1.Field) {
			if at := f.Offset - 1; at < 0 || at > len(c.Raw) || at+len(f.Raw) > len(c.Raw) || c.Raw[at:at+len(f.Raw)] != f.Raw {
				t.Fatalf("field %+v is not in %q", f, c.Raw)
			}
		}
		fields := []tl1.Field{c.TID, c.AID, c.CTAG, c.GB}
		var blocks []string
		for _, b := range c.Blocks {
			fields = append(fields, b.Field)
			blocks = append(blocks, b.Raw)
			for _, p := range b.Params {
				fields = append(fields, p.Value)
			}
		}
		for _, f := range fields {
			check(f)
		}
		if err != nil || c.GB.Raw != "" {
			return
		}

		wire := tl1.AppendCommand(nil, c.Code, c.TID.Raw, c.AID.Raw, c.CTAG.Raw, blocks...)
		var d tl1.CommandDecoder
		d.Feed(wire)
		raw, ok, err := d.Next()
		if !ok || err != nil || d.Pending() {
			t.Fatalf("%q, written as %q: Next gives %t, %v", text, wire, ok, err)
		}
		again, err := tl1.ParseCommand(raw)
		if err != nil {
			t.Fatalf("%q, written as %q: %v", text, wire, err)
		}
		if wire2 := tl1.AppendCommand(nil, again.Code, again.TID.Raw, again.AID.Raw, again.CTAG.Raw, blocks...); !bytes.Equal(wire, wire2) {
			t.Fatalf("%q, written as %q, and again as %q", text, wire, wire2)
		}
	})
}

// FuzzDecoder checks that results do not depend on how a stream is cut, and
// that messages written again are read as the same.
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{calient, glimmerglass, gr831} {
		f.Add([]byte(s), uint16(0), uint8(1))
	}
	f.Fuzz(func(t *testing.T, stream []byte, limit uint16, size uint8) {
		step := func(rest int) int { return min(rest, int(size)+1) }
		newDecoder := func() *tl1.Decoder { return &tl1.Decoder{MaxLen: int(limit)} }
		want := trace(newDecoder(), stream, whole)
		if got := trace(newDecoder(), stream, step); !slices.Equal(got, want) {
			t.Fatalf("%q in one piece gives\n%q\nand in pieces of %d\n%q", stream, want, int(size)+1, got)
		}
		cmds := commands(&tl1.CommandDecoder{MaxLen: int(limit)}, stream, whole)
		if got := commands(&tl1.CommandDecoder{MaxLen: int(limit)}, stream, step); !slices.Equal(got, cmds) {
			t.Fatalf("%q in one piece gives commands\n%q\nand in pieces of %d\n%q", stream, cmds, int(size)+1, got)
		}

		d := newDecoder()
		d.Feed(stream)
		msgs, _ := next(d)
		for _, m := range msgs {
			wire := tl1.AppendMessage(nil, m, tl1.Style{})
			var d tl1.Decoder
			d.Feed(wire)
			got, errs := next(&d)
			if len(got) != 1 || len(errs) > 0 || d.Pending() {
				t.Fatalf("%q, written as %q, decodes to %d messages, errors %v", m.Raw, wire, len(got), errs)
			}
			if again := tl1.AppendMessage(nil, got[0], tl1.Style{}); !bytes.Equal(again, wire) {
				t.Fatalf("%q, written as %q, and again as %q", m.Raw, wire, again)
			}
		}
	})
}

// FuzzParseList checks that a list can be put together again from its items.
func FuzzParseList(f *testing.F) {
	for _, s := range []string{"", "1", "1&&4&7", "10001&&10048&20001&&20048", `src1&"a & b"`, "1&&3&&5", "&"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		items, err := tl1.ParseList(s)
		var se *tl1.SyntaxError
		if err != nil {
			if !errors.As(err, &se) || se.Offset < 1 || se.Offset > len(s)+1 || items != nil {
				t.Fatalf("ParseList(%q): %v, error %#v", s, items, err)
			}
			return
		}
		var wire string
		for i, it := range items {
			if i > 0 {
				wire += "&"
			}
			wire += tl1.QuoteAlways(it.First)
			if it.Last != "" {
				wire += "&&" + tl1.QuoteAlways(it.Last)
			}
		}
		again, err := tl1.ParseList(wire)
		if err != nil {
			t.Fatalf("%q, written as %q: %v", s, wire, err)
		}
		if len(again) != len(items) {
			t.Fatalf("%q, written as %q: %q, want %q", s, wire, again, items)
		}
	})
}
