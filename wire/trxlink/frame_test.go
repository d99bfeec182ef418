package trxlink_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/trxlink"
)

// Frames byte for byte; the CRCs were worked out bit by bit, not with this package.
func TestFrame_Golden(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		f    trxlink.Frame
		want string
		text string
	}{
		{trxlink.Frame{Kind: trxlink.Read, Seq: 12, Payload: []byte{0, 0xb0, 134, 20}}, "a55a0102000c00040b" + "00b08614" + "3451", "#12 read slot 0: 00 b0 86 14"},
		{trxlink.Frame{Version: 1, Kind: trxlink.Trigger | trxlink.Reply, Slot: trxlink.Board, Seq: 255, Payload: []byte{7, 3}},
			"a55a0185ffff0002a7" + "0703" + "cb30", "#255 trigger reply board: 07 03"},
		{trxlink.Frame{Kind: trxlink.Hello, Slot: trxlink.Board}, "a55a0101ff0000009a" + "" + "7453", "#0 hello board: "},
	} {
		b := tt.f.Append([]byte("before"))
		if got := hex.EncodeToString(b[6:]); got != tt.want || string(b[:6]) != "before" {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
		if got := tt.f.String(); got != tt.text {
			t.Errorf("got  %q\nwant %q", got, tt.text)
		}
		var d trxlink.Decoder
		d.Feed(b[6:])
		got, ok := d.Next()
		tt.f.Version = 1
		if diff := cmp.Diff(tt.f, got, same); !ok || diff != "" || d.Pending() || d.Skipped() != 0 {
			t.Errorf("found %v, skipped %d, -want +got\n%s", ok, d.Skipped(), diff)
		}
	}
}

// same takes no payload for an empty one.
var same = cmp.Comparer(func(a, b []byte) bool { return bytes.Equal(a, b) })

func TestFrame_TooLong(t *testing.T) {
	t.Parallel()
	(trxlink.Frame{Payload: make([]byte, trxlink.MaxPayload)}).Append(nil)
	defer func() {
		if recover() == nil {
			t.Error("a frame of 257 bytes was written")
		}
	}()
	(trxlink.Frame{Payload: make([]byte, trxlink.MaxPayload+1)}).Append(nil)
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{trxlink.CDB.String(), "CDB"}, {(trxlink.Plate | trxlink.Reply).String(), "plate reply"}, {trxlink.Kind(0x7f).String(), "kind 7Fh"},
		{trxlink.Kind(0xff).String(), "kind 7Fh reply"}, {trxlink.CodeOK.String(), "ok"}, {trxlink.CodeNotPresent.String(), "board cannot do this"},
		{trxlink.Code(99).String(), "error code 99"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func genFrame() *rapid.Generator[trxlink.Frame] {
	return rapid.Custom(func(t *rapid.T) trxlink.Frame {
		return trxlink.Frame{
			Version: rapid.Uint8Range(1, 255).Draw(t, "version"), Kind: trxlink.Kind(rapid.Byte().Draw(t, "kind")),
			Slot: rapid.Byte().Draw(t, "slot"), Seq: rapid.Byte().Draw(t, "seq"),
			Payload: rapid.SliceOfN(genByte(), 0, trxlink.MaxPayload).Draw(t, "payload"),
		}
	})
}

// genByte prefers the bytes that frames begin with.
func genByte() *rapid.Generator[byte] {
	return rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte{0xa5, 0x5a, 0, 1}))
}

// decode feeds chunks of the sizes given, in turn, and returns all that is found; at the end it
// gives up what has begun, as a receiver does after the gap. It also returns how many bytes
// were part of no frame.
func decode(stream []byte, sizes []uint8) (frames []trxlink.Frame, skipped int) {
	var d trxlink.Decoder
	take := func() {
		for f, ok := d.Next(); ok; f, ok = d.Next() {
			frames = append(frames, f)
		}
	}
	for i := 0; len(stream) > 0; i++ {
		n := len(stream)
		if len(sizes) > 0 {
			n = min(n, int(sizes[i%len(sizes)])+1)
		}
		chunk := bytes.Clone(stream[:n])
		d.Feed(chunk)
		clear(chunk) // it keeps no part of it
		stream = stream[n:]
		take()
	}
	for d.Pending() {
		d.Expire()
		take()
	}
	return frames, d.Skipped()
}

// A good frame that follows noise is found once what the noise began is given up, however
// the bytes come; so is the one behind it.
func TestDecoder_Noise(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		var want []trxlink.Frame
		noisy := 0
		for range rapid.IntRange(1, 4).Draw(t, "frames") {
			noise := rapid.SliceOfN(genByte(), 0, 40).Draw(t, "noise")
			if rapid.Bool().Draw(t, "cut") { // the worst noise: a frame that was cut off
				whole := genFrame().Draw(t, "lost").Append(nil)
				// Of at least three bytes: one or two that are missing may happen to be those
				// that the next frame begins with, and then it is the next that is cut.
				noise = append(noise, whole[:rapid.IntRange(1, len(whole)-3).Draw(t, "length")]...)
			}
			f := genFrame().Draw(t, "frame")
			stream = f.Append(append(stream, noise...))
			want = append(want, f)
			noisy += len(noise)
		}
		sizes := rapid.SliceOfN(rapid.Uint8Range(0, 30), 0, 10).Draw(t, "chunks")
		got, skipped := decode(stream, sizes)
		if diff := cmp.Diff(want, got, same); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
		if skipped != noisy {
			t.Fatalf("%d bytes were skipped, and %d were noise", skipped, noisy)
		}
	})
}

// Without noise nothing has to be given up: the last byte of a frame completes it.
func TestDecoder_AtOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := genFrame().Draw(t, "frame")
		b := f.Append(nil)
		var d trxlink.Decoder
		for i := range b {
			if _, ok := d.Next(); ok || d.Pending() != (i > 0) {
				t.Fatalf("after %d of %d bytes: found %v, pending %v", i, len(b), ok, d.Pending())
			}
			d.Feed(b[i : i+1])
		}
		got, ok := d.Next()
		if diff := cmp.Diff(f, got, same); !ok || diff != "" || d.Pending() {
			t.Fatalf("found %v, -want +got\n%s", ok, diff)
		}
		// The frame has memory of its own.
		d.Feed(bytes.Repeat([]byte{0xee}, len(b)))
		if !bytes.Equal(got.Payload, f.Payload) {
			t.Fatal("the payload has changed")
		}
	})
}

// A frame with a flipped bit is none.
func TestDecoder_FlippedBit(t *testing.T) {
	t.Parallel()
	b := trxlink.Frame{Kind: trxlink.Write, Slot: 3, Seq: 9, Payload: []byte{0, 0xb0, 138, 1}}.Append(nil)
	for bit := range 8 * len(b) {
		bad := bytes.Clone(b)
		bad[bit/8] ^= 1 << (bit % 8)
		if got, skipped := decode(bad, nil); len(got) != 0 || skipped != len(bad) {
			t.Errorf("bit %d flipped: %v, %d bytes skipped", bit, got, skipped)
		}
	}
}

// A length that cannot be is not waited for, though its header has a good CRC.
func TestDecoder_Length(t *testing.T) {
	t.Parallel()
	head := []byte{0xa5, 0x5a, 1, 2, 0, 0, 0x01, 0x01} // 257 bytes
	head = append(head, crc8(head[2:]))
	var d trxlink.Decoder
	good := trxlink.Frame{Kind: trxlink.Hello, Slot: trxlink.Board}.Append(nil)
	d.Feed(head)
	d.Feed(good)
	if _, ok := d.Next(); !ok || d.Skipped() != len(head) {
		t.Errorf("found %v, %d bytes skipped", ok, d.Skipped())
	}
	d.Expire() // with nothing begun it does nothing
	if d.Pending() || d.Skipped() != len(head) {
		t.Errorf("pending %v, %d bytes skipped", d.Pending(), d.Skipped())
	}
}

// A single byte that was given up takes nothing with it of what follows.
func TestDecoder_Expire(t *testing.T) {
	t.Parallel()
	var d trxlink.Decoder
	d.Feed([]byte{0xa5})
	if _, ok := d.Next(); ok || !d.Pending() {
		t.Errorf("found %v, pending %v", ok, d.Pending())
	}
	d.Expire()
	d.Feed(trxlink.Frame{Kind: trxlink.Hello, Slot: trxlink.Board}.Append(nil))
	if _, ok := d.Next(); !ok || d.Skipped() != 1 {
		t.Errorf("found %v, %d bytes skipped", ok, d.Skipped())
	}
}

// crc8 is CRC-8/SMBUS bit by bit.
func crc8(p []byte) (crc byte) {
	for _, c := range p {
		crc ^= c
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 7
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// crc16 is CRC-16/IBM-3740 bit by bit.
func crc16(p []byte) uint16 {
	crc := uint16(0xffff)
	for _, c := range p {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// The check values in the catalogue of CRCs.
func TestCRC(t *testing.T) {
	t.Parallel()
	if a, b := crc8([]byte("123456789")), crc16([]byte("123456789")); a != 0xf4 || b != 0x29b1 {
		t.Errorf("%02Xh and %04Xh", a, b)
	}
}

// scan finds frames in bytes that are all there: the specification of the decoder, without
// anything clever.
func scan(b []byte) (frames []trxlink.Frame, skipped int) {
	for len(b) > 0 {
		if len(b) >= 11 && b[0] == 0xa5 && b[1] == 0x5a && crc8(b[2:8]) == b[8] {
			n := int(binary.BigEndian.Uint16(b[6:]))
			if n <= trxlink.MaxPayload && len(b) >= 11+n && crc16(b[2:9+n]) == binary.BigEndian.Uint16(b[9+n:]) {
				frames = append(frames, trxlink.Frame{Version: b[2], Kind: trxlink.Kind(b[3]), Slot: b[4], Seq: b[5], Payload: b[9 : 9+n]})
				b = b[11+n:]
				continue
			}
		}
		b, skipped = b[1:], skipped+1
	}
	return frames, skipped
}

// What is found does not depend on how the bytes come, is what the plainest scan finds, and
// no byte is lost: each is part of a frame or was skipped.
func FuzzDecoder(f *testing.F) {
	good := trxlink.Frame{Kind: trxlink.Read, Slot: 1, Seq: 2, Payload: []byte{0, 0xb0, 128, 4}}.Append(nil)
	f.Add(good, []byte{0})
	f.Add(slices.Concat([]byte{0xa5, 0xa5, 0x5a, 1}, good, good[:9], good, good[:12]), []byte{3, 0, 7})
	inner := trxlink.Frame{Kind: trxlink.Write, Payload: good}.Append(nil)
	inner[len(inner)-1] ^= 1 // a damaged frame with a good one inside
	f.Add(inner, []byte{})
	f.Fuzz(func(t *testing.T, stream, sizes []byte) {
		want, wantSkipped := scan(stream)
		got, skipped := decode(stream, sizes)
		if diff := cmp.Diff(want, got, same); diff != "" || skipped != wantSkipped {
			t.Fatalf("%d bytes skipped, want %d, -want +got\n%s", skipped, wantSkipped, diff)
		}
		length := skipped
		for _, f := range got {
			length += len(f.Append(nil))
			if !strings.Contains(f.String(), f.Kind.String()) {
				t.Fatalf("%q", f)
			}
		}
		if length != len(stream) && !slices.ContainsFunc(got, func(f trxlink.Frame) bool { return f.Version == 0 }) {
			t.Fatalf("%d bytes of %d are accounted for", length, len(stream))
		}
	})
}

// A peer that sends nothing but beginnings of frames costs little: each byte is looked at a
// few times, not all that follow it again.
func BenchmarkDecoder_Hostile(b *testing.B) {
	noise := bytes.Repeat([]byte{0xa5, 0x5a}, 32<<10)
	b.SetBytes(int64(len(noise)))
	for b.Loop() {
		var d trxlink.Decoder
		d.Feed(noise)
		for _, ok := d.Next(); ok; _, ok = d.Next() {
		}
	}
}

func BenchmarkDecoder(b *testing.B) {
	stream := trxlink.Frame{Kind: trxlink.Read | trxlink.Reply, Payload: make([]byte, 21)}.Append(nil)
	b.SetBytes(int64(len(stream)))
	b.ReportAllocs()
	var d trxlink.Decoder
	for b.Loop() {
		d.Feed(stream)
		if _, ok := d.Next(); !ok {
			b.Fatal("no frame")
		}
	}
}
