package trxlink_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/trxlink"
)

func TestInfo_Golden(t *testing.T) {
	t.Parallel()
	i := trxlink.Info{Version: 1, Slots: 8, Features: trxlink.HasTrigger | trxlink.HasPlate, Serial: "EVB-0001", Firmware: "1.2.3"}
	got := i.Append([]byte{byte(trxlink.CodeOK)}, trxlink.Nonce{0xde, 0xad, 0xbe, 0xef})
	if want := "\x00\x01\x08\x03EVB-0001        1.2.3   \xde\xad\xbe\xef"; string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if back, nonce, err := trxlink.ParseInfo(got[1:]); err != nil || back != i || nonce[0] != 0xde || nonce[3] != 0xef {
		t.Errorf("%+v, %v", back, err)
	}
	if back, _, err := trxlink.ParseInfo(append(got[1:], "more"...)); err != nil || back != i {
		t.Errorf("with more behind it: %+v, %v", back, err)
	}
}

func TestInfo_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		i := trxlink.Info{
			Version: rapid.Byte().Draw(t, "version"), Slots: rapid.IntRange(1, trxlink.MaxSlots).Draw(t, "slots"), Features: trxlink.Features(rapid.Byte().Draw(t, "features")),
			Serial: rapid.StringMatching(`([!-~][ -~]{0,14}[!-~])?`).Draw(t, "serial"), Firmware: rapid.StringMatching(`([!-~][ -~]{0,6}[!-~])?`).Draw(t, "firmware"),
		}
		hello := trxlink.Nonce(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "nonce"))
		if got, nonce, err := trxlink.ParseInfo(i.Append(nil, hello)); err != nil || got != i || nonce != hello {
			t.Fatalf("%+v, %v, want %+v", got, err, i)
		}
	})
}

// Text of any length and kind takes its field and no more, and what comes over the line is
// safe to print.
func TestInfo_Limits(t *testing.T) {
	t.Parallel()
	i := trxlink.Info{Slots: 1 << 40, Serial: strings.Repeat("é", 20), Firmware: "\x1b[2J"}
	p := i.Append(nil, trxlink.Nonce{})
	if len(p) != 31 || p[1] != 255 {
		t.Errorf("%d bytes: %q", len(p), p)
	}
	p[1] = 16
	got, _, err := trxlink.ParseInfo(p)
	if err != nil || got.Serial != strings.Repeat("?", 16) || got.Firmware != "?[2J" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, slots := range []byte{0, 17, 255} {
		p[1] = slots
		if got, _, err := trxlink.ParseInfo(p); err == nil {
			t.Errorf("%d slots: %+v", slots, got)
		}
	}
	if _, _, err := trxlink.ParseInfo(p[:30]); err == nil {
		t.Error("30 bytes were taken")
	}
}

// What one side writes the other reads, for all of the memory that there can be.
func TestPayloads_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := cmis.Address{Bank: rapid.Byte().Draw(t, "bank"), Page: rapid.Byte().Draw(t, "page"), Offset: rapid.Byte().Draw(t, "offset")}
		n := rapid.IntRange(0, 200).Draw(t, "length")
		data := rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "data")
		whole := a.Check(n) == nil
		if got, count, err := trxlink.ParseRead(trxlink.AppendRead(nil, a, n)); (err == nil) != whole || whole && (got != a || count != n) {
			t.Fatalf("read: %v for %d, %v", got, count, err)
		}
		if got, back, err := trxlink.ParseWrite(trxlink.AppendWrite(nil, a, data)); (err == nil) != whole || whole && (got != a || !bytes.Equal(back, data)) {
			t.Fatalf("write: %v, % x, %v", got, back, err)
		}
		command, mask := rapid.Uint16().Draw(t, "command"), rapid.Uint16().Draw(t, "mask")
		if got, back, err := trxlink.ParseCDB(trxlink.AppendCDB(nil, command, data)); (err == nil) != (n <= 120) || err == nil && (got != command || !bytes.Equal(back, data)) {
			t.Fatalf("CDB: %04Xh, % x, %v", got, back, err)
		}
		if got, err := trxlink.ParseTrigger(trxlink.AppendTrigger(nil, mask)); err != nil || got != mask {
			t.Fatalf("trigger: %04Xh, %v", got, err)
		}
		set := trxlink.PlateSetting(rapid.Int16().Draw(t, "setting"))
		if got, err := trxlink.ParsePlate(set.Append(nil)); err != nil || got != set {
			t.Fatalf("plate: %d, %v", got, err)
		}
		status := trxlink.PlateStatus{Set: set, Now: float64(rapid.Int16Range(-127*256, 127*256).Draw(t, "now")) / 256}
		if got, err := trxlink.ParsePlateStatus(status.Append(nil)); err != nil || got != status {
			t.Fatalf("plate: %+v, %v", got, err)
		}
	})
}

// Payloads as doc.go has them.
func TestPayloads_Golden(t *testing.T) {
	t.Parallel()
	a := cmis.Address{Page: 0xb2, Bank: 2, Offset: 128}
	for _, tt := range []struct{ got, want []byte }{
		{trxlink.AppendRead(nil, a, 128), []byte{2, 0xb2, 128, 128}},
		{trxlink.AppendWrite(nil, a, []byte{7, 8}), []byte{2, 0xb2, 128, 7, 8}},
		{trxlink.AppendCDB(nil, 0x8001, []byte{1}), []byte{0x80, 1, 1}},
		{trxlink.AppendTrigger(nil, 0x0102), []byte{1, 2}},
		{trxlink.PlateAt(25.5).Append(nil), []byte{0x19, 0x80}},
		{trxlink.PlateAt(-1).Append(nil), []byte{0xff, 0x00}},
		{trxlink.PlateLeave.Append(nil), []byte{0x80, 0x00}},
		{trxlink.PlateOff.Append(nil), []byte{0x7f, 0xff}},
		{trxlink.PlateStatus{Set: trxlink.PlateOff, Now: 25.5}.Append(nil), []byte{0x7f, 0xff, 0x19, 0x80}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("got % x, want % x", tt.got, tt.want)
		}
	}
}

func TestPlateSetting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		celsius float64
		want    trxlink.PlateSetting
	}{{1e9, 127 * 256}, {-1e9, -127 * 256}, {math.Inf(1), 127 * 256}, {math.NaN(), trxlink.PlateLeave}} {
		if got := trxlink.PlateAt(tt.celsius); got != tt.want {
			t.Errorf("%v °C is %d, want %d", tt.celsius, got, tt.want)
		}
	}
	for _, s := range []trxlink.PlateSetting{trxlink.PlateLeave, trxlink.PlateOff} {
		if c, ok := s.Celsius(); ok {
			t.Errorf("%d is %v °C", s, c)
		}
	}
	if c, ok := trxlink.PlateAt(70.25).Celsius(); !ok || c != 70.25 {
		t.Errorf("%v °C, %v", c, ok)
	}
}

// No payload panics, and the one of a wrong length is refused.
func FuzzPayloads(f *testing.F) {
	for _, p := range [][]byte{nil, {0}, {1, 2}, {0, 0xb0, 128}, {0, 0xb0, 128, 4}, {0, 1, 3, 1}, {2, 0xb2, 250, 6, 6, 6, 6, 6, 6, 6}} {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		if a, n, err := trxlink.ParseRead(p); err == nil && (a.Check(n) != nil || !bytes.Equal(trxlink.AppendRead(nil, a, n), p)) {
			t.Fatalf("% x is a read of %d at %v", p, n, a)
		}
		if a, data, err := trxlink.ParseWrite(p); err == nil && (a.Check(len(data)) != nil || !bytes.Equal(trxlink.AppendWrite(nil, a, data), p)) {
			t.Fatalf("% x is a write of % x at %v", p, data, a)
		}
		if id, data, err := trxlink.ParseCDB(p); err == nil && !bytes.Equal(trxlink.AppendCDB(nil, id, data), p) {
			t.Fatalf("% x is command %04Xh with % x", p, id, data)
		}
		if mask, err := trxlink.ParseTrigger(p); err == nil && !bytes.Equal(trxlink.AppendTrigger(nil, mask), p) {
			t.Fatalf("% x triggers %04Xh", p, mask)
		}
		if s, err := trxlink.ParsePlate(p); err == nil && !bytes.Equal(s.Append(nil), p) {
			t.Fatalf("% x sets %d", p, s)
		}
		if i, nonce, err := trxlink.ParseInfo(p); err == nil {
			if again, _, err := trxlink.ParseInfo(i.Append(nil, nonce)); err != nil || again != i {
				t.Fatalf("%+v is read again as %+v, %v", i, again, err)
			}
		}
		if _, err := trxlink.ParsePlateStatus(p); (err == nil) != (len(p) == 4) {
			t.Fatalf("% x: %v", p, err)
		}
	})
}
