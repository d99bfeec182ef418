package ocst_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Bytes B0h:134 to 153 written by hand.
func TestStatus_Golden(t *testing.T) {
	t.Parallel()
	s := ocst.Status{
		State: ocst.StateReady, Path: ocst.Mixed, Staged: ocst.LoopPath, Mask: 0xf0, Result: ocst.FaultBusy,
		Sequence: 0x01020304, Duration: 72_340 * time.Nanosecond, SettleTimeout: 200 * time.Microsecond, Switches: 0xfffefdfc,
	}
	want := "04" + "04" + "03" + "f0" + "00" + "08" + "01020304" + "00001c42" + "00c8" + "fffefdfc"
	if got := hex.EncodeToString(s.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, err := ocst.DecodeStatus(s.Encode()); err != nil || got != s {
		t.Errorf("%+v, %v", got, err)
	}
	if got := ocst.StatusSpan; got.Address != (cmis.Address{Page: 0xb0, Offset: 134}) || got.Length != 20 {
		t.Errorf("the span is %v", got)
	}
	for _, d := range []time.Duration{math.MinInt64, -1} {
		if got, err := ocst.DecodeStatus(ocst.Status{Duration: d, SettleTimeout: d}.Encode()); err != nil || got.Duration != 0 || got.SettleTimeout != 0 {
			t.Errorf("%v is written as %+v, %v", d, got, err)
		}
	}
	got, err := ocst.DecodeStatus(ocst.Status{Duration: math.MaxInt64, SettleTimeout: math.MaxInt64}.Encode())
	if err != nil || got.Duration != math.MaxUint32*ocst.DurationUnit || got.SettleTimeout != 65535*time.Microsecond {
		t.Errorf("the largest are written as %+v, %v", got, err)
	}
	if _, err := ocst.DecodeStatus(make([]byte, 19)); err == nil {
		t.Error("19 bytes were taken for a status")
	}
}

// Bytes B0h:156 to 175 written by hand.
func TestLaneStatus_Golden(t *testing.T) {
	t.Parallel()
	s := ocst.LaneStatus{
		Path: [8]ocst.Path{0, 1, 2, 3, 3, 2, 1, 0}, Lock: [8]ocst.Lock{0, 1, 2, 0, 1, 2, 0, 1},
		Loop: ocst.DefaultPermutation(), Next: ocst.Permutation{7, 6, 5, 4, 3, 2, 1, 0},
		Fault: ocst.FaultOpen, FaultAt: 35, Control: ocst.PreEmphasis, State: ocst.StateFault,
	}
	want := "0011220313220110" + "4756657403122130" + "01" + "23" + "01" + "09"
	if got := hex.EncodeToString(s.Encode()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, err := ocst.DecodeLanes(s.Encode()); err != nil || got != s {
		t.Errorf("%+v, %v", got, err)
	}
	if got := ocst.LanesSpan; got.Address != (cmis.Address{Page: 0xb0, Offset: 156}) || got.Length != 20 {
		t.Errorf("the span is %v", got)
	}
	if _, err := ocst.DecodeLanes(make([]byte, 21)); err == nil {
		t.Error("21 bytes were taken for lanes")
	}
}

// A log is read back as it was written, the newest sixteen of it; empty entries are none, but
// one that happened with no lane is.
func TestLog(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var list []ocst.LogEntry
		for range rapid.IntRange(0, 20).Draw(t, "entries") {
			list = append(list, ocst.LogEntry{
				At: rapid.Uint32().Draw(t, "at"), Sequence: rapid.Uint32().Draw(t, "sequence"),
				From: ocst.Path(rapid.Byte().Draw(t, "from")), To: ocst.Path(rapid.Byte().Draw(t, "to")), Mask: rapid.Byte().Draw(t, "mask"),
				Result: ocst.Fault(rapid.Uint8Range(1, 14).Draw(t, "result")), Duration: time.Duration(rapid.Uint32().Draw(t, "duration")) * ocst.DurationUnit,
			})
		}
		got, err := ocst.DecodeLog(ocst.EncodeLog(list))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(list[:min(len(list), ocst.LogSize)], got); len(list)+len(got) > 0 && diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
	e := ocst.LogEntry{At: 1, Sequence: 2, From: ocst.Dark, To: ocst.Path1, Mask: 0xff, Result: ocst.FaultTimeout, Duration: time.Millisecond}
	if got, want := hex.EncodeToString(ocst.EncodeLog([]ocst.LogEntry{e})[0][:16]), "00000001"+"00000002"+"0001ff03"+"000186a0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := ocst.DecodeLog([2][]byte{make([]byte, 128), nil}); err == nil {
		t.Error("half a log was taken")
	}
}

// What a module says shows as words, and numbers that are not known do not panic.
func TestMapNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{ocst.StateReset.String(), "reset"}, {ocst.StateLocking.String(), "locking"}, {ocst.StateFault.String(), "fault"}, {ocst.State(200).String(), "reserved 200"},
		{ocst.Dark.String(), "dark"}, {ocst.Mixed.String(), "mixed"}, {ocst.Path(9).String(), "reserved 9"},
		{ocst.NoLight.String(), "no-light"}, {ocst.Locked.String(), "locked"}, {ocst.Lock(3).String(), "reserved 3"},
		{ocst.NoFault.String(), "ok"}, {ocst.FaultHot.String(), "over-temperature"}, {ocst.FaultNotAllowed.String(), "not possible in this state"},
		{ocst.Fault(255).String(), "reserved 255"},
		{ocst.Flags(0).String(), "none"}, {(ocst.FlagDone | ocst.FlagRejected).String(), "done,rejected"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
	for s := range ocst.State(20) {
		if want := s == ocst.StateBreak || s == ocst.StateSettle; s.Busy() != want {
			t.Errorf("%v is busy: %v", s, s.Busy())
		}
	}
}

// The vendor pages as doc.go has them: what is there in which bank, and who may write it.
func TestRegisters(t *testing.T) {
	t.Parallel()
	end := map[uint8]int{}
	for _, r := range ocst.Registers() {
		if err := r.Check(r.Length); err != nil || r.Name == "" {
			t.Errorf("%s: %v", r.Name, err)
		}
		if int(r.Offset) < end[r.Page] {
			t.Errorf("%s at %v overlaps with the one before it", r.Name, r.Address)
		}
		end[r.Page] = int(r.Offset) + r.Length
	}
	s := cmis.NewStore(append(cmis.Registers(), ocst.Registers()...))
	for page, banks := range map[uint8]int{0xb0: 1, 0xb1: 1, 0xb2: 3, 0xb3: 2, 0xb4: 2, 0xb5: 2, 0xb6: 1, 0xb7: 64, 0xb8: 3, 0xb9: 0} {
		for bank := range 256 {
			if got := s.Has(uint8(bank), page); got != (bank < banks) {
				t.Errorf("page %02Xh, bank %d: %v", page, bank, got)
			}
		}
	}
	ones := bytes.Repeat([]byte{0xff}, 128)
	written := func(bank, page uint8) (runs string) {
		at := cmis.Address{Page: page, Bank: bank, Offset: 128}
		if err := s.Write(at, ones); err != nil {
			t.Fatal(err)
		}
		for i, b := range s.Bytes(at, 128) {
			if b != 0 {
				runs += string(rune('!' + i))
			}
		}
		return runs
	}
	run := func(from, to int) (runs string) {
		for i := from; i <= to; i++ {
			runs += string(rune('!' + i - 128))
		}
		return runs
	}
	for _, tt := range []struct {
		bank, page uint8
		want       string
	}{
		{0, 0xb0, run(136, 138) + run(148, 149) + run(155, 155) + run(164, 171) + run(174, 174)},
		{0, 0xb1, ""}, {2, 0xb2, ""}, {1, 0xb3, ""}, {0, 0xb4, run(128, 201)}, {1, 0xb4, run(128, 199)}, {1, 0xb5, ""},
		{0, 0xb6, run(128, 199)}, {63, 0xb7, run(128, 255)}, {2, 0xb8, run(128, 128)},
	} {
		if got := written(tt.bank, tt.page); got != tt.want {
			t.Errorf("page %02Xh, bank %d: %q can be written, want %q", tt.page, tt.bank, got, tt.want)
		}
	}
	if got := []byte{1}; s.Read(ocst.At(ocst.RegCommit), got) != nil || got[0] != 0 {
		t.Errorf("the commit reads %d", got[0])
	}
	// Neither of the two reads that a driver makes again and again touches the flags.
	flags := s.Bytes(ocst.At(ocst.RegFlags), 1)
	flags[0] = 0xa5
	for _, span := range []cmis.Span{ocst.StatusSpan, ocst.LanesSpan} {
		if err := s.Read(span.Address, make([]byte, span.Length)); err != nil {
			t.Fatal(err)
		}
	}
	if flags[0] != 0xa5 {
		t.Error("reading the status cleared flags")
	}
	if err := s.Read(ocst.At(ocst.RegFlags), make([]byte, 1)); err != nil || flags[0] != 0 {
		t.Errorf("reading the flags left %02Xh, %v", flags[0], err)
	}
}

// Each array of photodiodes has sixteen bytes of its own.
func TestPowers(t *testing.T) {
	t.Parallel()
	seen := map[cmis.Span]bool{}
	for array := range ocst.Photodiodes {
		span := ocst.PowersAt(array)
		if seen[span] || span.Length != 16 || span.Check(16) != nil {
			t.Errorf("array %d is at %v", array, span)
		}
		seen[span] = true
	}
	if got := ocst.PowersAt(ocst.PDRxLoop).Address.String(); got != "B1h:192" {
		t.Errorf("what comes from the loop is at %s", got)
	}
	for _, array := range []int{-1, ocst.Photodiodes} {
		if got := ocst.PowersAt(array); got.Length != 0 {
			t.Errorf("array %d is at %v", array, got)
		}
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want [ocst.Elements]ocst.Setting
		for range 10 {
			want[rapid.IntRange(0, ocst.Elements-1).Draw(t, "element")] = ocst.Setting{
				Bar: ocst.Drive(rapid.Uint16().Draw(t, "bar")), Cross: ocst.Drive(rapid.Uint16().Draw(t, "cross")),
				Phase0: float64(rapid.IntRange(-31415, 31415).Draw(t, "phase")) * 1e-4, PowerPi: float64(rapid.Uint16().Draw(t, "power")) * 1e-6,
				Extinction: float64(rapid.Uint16().Draw(t, "ratio")) / 100,
			}
		}
		banks := ocst.EncodeSettings(want)
		got, err := ocst.DecodeSettings(banks)
		if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })); err != nil || diff != "" {
			t.Fatalf("error %v, -want +got\n%s", err, diff)
		}
		bank, bit := rapid.IntRange(0, 2).Draw(t, "bank"), rapid.IntRange(0, 1023).Draw(t, "bit")
		banks[bank][bit/8] ^= 1 << (bit % 8)
		if _, err := ocst.DecodeSettings(banks); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Fatalf("bit %d of bank %d flipped: %v", bit, bank, err)
		}
	})
	// Element 13 is the second of bank 1; -π/2 is FFFFh less 15707.
	var list [ocst.Elements]ocst.Setting
	list[13] = ocst.Setting{Bar: 0x8123, Cross: 0x0456, Phase0: 1.5 * math.Pi, PowerPi: 0.025, Extinction: 25.5}
	banks := ocst.EncodeSettings(list)
	if got, want := hex.EncodeToString(banks[1][10:20]), "81230456c2a461a809f6"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300} { // nothing panics, and zero is zero
		list[13] = ocst.Setting{Phase0: x, PowerPi: x, Extinction: x}
		ocst.EncodeSettings(list)
	}
	if _, err := ocst.DecodeSettings([3][]byte{banks[0], banks[1], nil}); err == nil {
		t.Error("two banks were taken for three")
	}
}

func TestCapture(t *testing.T) {
	t.Parallel()
	c := ocst.Capture{Lane: 7, Step: time.Microsecond, Below: []float64{0, 0.25, 63.75, 40}}
	p := c.Encode()
	if got, want := hex.EncodeToString(p[:14]), "070104"+"0000000000"+"0001ffa00000"; got != want || len(p) != 128 {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got, err := ocst.DecodeCapture(p)
	if diff := cmp.Diff(c, got); err != nil || diff != "" {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	dark := ocst.Capture{Lane: -3, Step: time.Hour, Below: []float64{math.Inf(1), -5}}
	dark.Below = append(dark.Below, make([]float64, 200)...)
	got, err = ocst.DecodeCapture(dark.Encode())
	if err != nil || got.Lane != 0 || got.Step != 255*time.Microsecond || len(got.Below) != 120 || got.Below[0] != 63.75 || got.Below[1] != 0 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, fn := range []func(p []byte) []byte{
		func(p []byte) []byte { return p[1:] },
		func(p []byte) []byte { p[0] = 8; return p },
		func(p []byte) []byte { p[0], p[2] = 0, 121; return p },
	} {
		if got, err := ocst.DecodeCapture(fn(c.Encode())); err == nil {
			t.Errorf("%+v", got)
		}
	}
}

// Errors of tables match one that callers can test for.
func TestErrTable(t *testing.T) {
	t.Parallel()
	if _, err := ocst.ParsePages([][]byte{{1}}); !errors.Is(err, ocst.ErrTable) || strings.Contains(err.Error(), "\n") {
		t.Error(err)
	}
}
