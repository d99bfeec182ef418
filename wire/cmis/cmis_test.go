package cmis_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/cmis"
)

// qsfp28 is the memory of a module written byte by byte from SFF-8636, and not with Encode.
func qsfp28() cmis.Image {
	im := make(cmis.Image, 256)
	im[0] = 0x11
	im[3] = 0x42 // Tx LOS of lane 3, Rx LOS of lane 2
	im[5] = 0x18 // Tx LOL of lane 1, Rx LOL of lane 4
	copy(im[34:], []byte{0x13, 0x88, 0x00, 0x01, 0x00, 0x00, 0xff, 0xff})
	copy(im[42:], []byte{0x42, 0x68, 0, 0, 0, 0, 0, 1})
	copy(im[50:], []byte{0x27, 0x10, 0, 0, 0, 0, 0, 2})
	im[128] = 0x11
	copy(im[148:], "ACME OPTICS     ")
	copy(im[168:], "LR4-100G        ")
	copy(im[196:], "S\x01N0001\x00\x00")
	return im
}

func osfp() cmis.Image {
	im := make(cmis.Image, 128+18*128)
	im[0], im[1], im[3] = 0x19, 0x52, 0x07 // ModuleReady, no interrupt
	im[128] = 0x19
	copy(im[129:], "ACME OPTICS     ")
	copy(im[148:], "400G-DR4        ")
	copy(im[166:], "SN0002          ")
	im[210] = 0xf0                      // lanes 5 to 8 are not there
	im[128+128+160-128] = 0x07 | 1<<3   // page 01h: all monitors, bias counts double
	p := im[128+0x11*128:]              // p[0] is 11h:128
	p[0], p[1] = 0x14, 0x74             // lane 1 DPActivated, 2 DPDeactivated, 3 DPActivated, 4 DPInitialized
	p[136-128], p[137-128] = 0x01, 0x02 // Tx LOS of lane 1, Tx LOL of lane 2
	p[147-128], p[148-128] = 0x04, 0x08 // Rx LOS of lane 3, Rx LOL of lane 4
	binary.BigEndian.PutUint16(p[154-128:], 10000)
	binary.BigEndian.PutUint16(p[170-128:], 20000)
	binary.BigEndian.PutUint16(p[186-128:], 5000)
	binary.BigEndian.PutUint16(p[188-128:], 5001)
	binary.BigEndian.PutUint16(p[194-128:], 777) // lane 5
	return im
}

func TestDecode_SFF8636(t *testing.T) {
	got, err := cmis.Decode(qsfp28().Read)
	if err != nil {
		t.Fatal(err)
	}
	want := cmis.Module{
		Identity: cmis.Identity{Identifier: cmis.QSFP28, Vendor: "ACME OPTICS", PartNumber: "LR4-100G", Serial: "S?N0001"},
		State:    cmis.ModuleReady,
		Monitors: []cmis.Lane{
			{Number: 1, RxPower: 5000, TxPower: 10000, TxBias: 34, TxLOL: true},
			{Number: 2, RxPower: 1, RxLOS: true},
			{Number: 3, TxLOS: true},
			{Number: 4, RxPower: 65535, TxPower: 2, TxBias: 0.002, RxLOL: true},
		},
	}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got := got.Monitors[0].RxPower.Microwatts(); got != 500 {
		t.Errorf("5000 counts are %v µW, want 500", got)
	}
}

var approx = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })

func TestDecode_CMIS(t *testing.T) {
	got, err := cmis.Decode(osfp().Read)
	if err != nil {
		t.Fatal(err)
	}
	want := cmis.Module{
		Identity: cmis.Identity{Identifier: cmis.OSFP, Vendor: "ACME OPTICS", PartNumber: "400G-DR4", Serial: "SN0002", Lanes: 0x0f, BiasScale: 2},
		State:    cmis.ModuleReady,
		Monitors: []cmis.Lane{
			{Number: 1, RxPower: 5000, TxPower: 10000, TxBias: 80, TxLOS: true, State: cmis.DataPathActivated},
			{Number: 2, RxPower: 5001, TxLOL: true, State: cmis.DataPathDeactivated},
			{Number: 3, RxLOS: true, State: cmis.DataPathActivated},
			{Number: 4, RxLOL: true, State: cmis.DataPathInitialized},
		},
	}
	if diff := cmp.Diff(want, got, approx); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestRxPower(t *testing.T) {
	for _, tt := range []struct {
		im   cmis.Image
		span cmis.Span
		want []cmis.Power
	}{
		{qsfp28(), cmis.Span{Address: cmis.Address{Offset: 34}, Length: 8}, []cmis.Power{5000, 1, 0, 65535}},
		{osfp(), cmis.Span{Address: cmis.Address{Page: 0x11, Offset: 186}, Length: 16}, []cmis.Power{5000, 5001, 0, 0}},
	} {
		id, err := cmis.Identify(tt.im.Read)
		if err != nil {
			t.Fatal(err)
		}
		span := id.RxPowerSpan()
		if span != tt.span {
			t.Errorf("%v: span %v, want %v", id.Identifier, span, tt.span)
		}
		data := make([]byte, span.Length)
		if err := tt.im.Read(span.Address, data); err != nil {
			t.Fatal(err)
		}
		got, err := id.RxPower(data)
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%v: error %v, -want +got\n%s", id.Identifier, err, diff)
		}

		for i := range data {
			data[i] = 0xff
		}
		if _, err := id.RxPower(data); !errors.Is(err, cmis.ErrNoModule) {
			t.Errorf("%v, all FFh: %v", id.Identifier, err)
		}
		if _, err := id.RxPower(data[1:]); err == nil {
			t.Errorf("%v: a short read was taken for a whole one", id.Identifier)
		}
	}
	if _, err := (cmis.Identity{}).RxPower(nil); err == nil {
		t.Error("the zero Identity gave powers")
	}
	if _, err := (cmis.Identity{Identifier: cmis.OSFP}).Monitors(make([]byte, 8)); err == nil {
		t.Error("a short read was taken for all monitors")
	}
}

func TestIdentify_Errors(t *testing.T) {
	change := func(im cmis.Image, fn func(cmis.Image)) cmis.Image { fn(im); return im }
	ff := make(cmis.Image, 256)
	for i := range ff {
		ff[i] = 0xff
	}
	for _, tt := range []struct {
		name string
		im   cmis.Image
		is   error
		want string
	}{
		{"unplugged", ff, cmis.ErrNoModule, "reads FFh"},
		{"blank", make(cmis.Image, 256), cmis.ErrNoModule, "no identifier"},
		{"SFP", change(qsfp28(), func(im cmis.Image) { im[0] = 3 }), errors.ErrUnsupported, "identifier 03h"},
		{"starting", change(qsfp28(), func(im cmis.Image) { im[2] = 1 }), cmis.ErrNotReady, "no valid values yet"},
		{"copper", change(qsfp28(), func(im cmis.Image) { im[147] = 0xb0 }), errors.ErrUnsupported, "copper"},
		{"low power", change(osfp(), func(im cmis.Image) { im[3] = 1 << 1 }), cmis.ErrNotReady, "ModuleLowPwr"},
		{"flat", change(osfp(), func(im cmis.Image) { im[2] = 0x80 }), errors.ErrUnsupported, "one page"},
		{"no monitor", change(osfp(), func(im cmis.Image) { im[256+32] = 3 }), errors.ErrUnsupported, "400G-DR4 does not measure"},
		{"nothing", nil, nil, "ends after 0 bytes"},
		{"three bytes", qsfp28()[:3], nil, "00h:113"},
		{"lower memory", qsfp28()[:128], nil, "00h:128"},
		{"three bytes of CMIS", osfp()[:3], nil, "00h:3 "},
		{"CMIS without page 00h", osfp()[:128], nil, "00h:128"},
		{"CMIS without page 01h", osfp()[:256], nil, "01h:160"},
		{"CMIS without page 11h", osfp()[:512], nil, "11h:128"},
	} {
		_, err := cmis.Decode(tt.im.Read)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.want)
		}
		if tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v does not match %v", tt.name, err, tt.is)
		}
	}
}

func TestAddress(t *testing.T) {
	for _, tt := range []struct {
		a    cmis.Address
		n    int
		ok   bool
		text string
		at   int
	}{
		{cmis.Address{}, 128, true, "00h:0", 0},
		{cmis.Address{Offset: 34}, 8, true, "00h:34", 34},
		{cmis.Address{Page: 0x11, Offset: 186}, 16, true, "11h:186", 128 + 17*128 + 58},
		{cmis.Address{Page: 0x11, Offset: 255}, 1, true, "11h:255", 128 + 17*128 + 127},
		{cmis.Address{Page: 0x11, Bank: 1, Offset: 186}, 16, true, "1:11h:186", -1},
		{cmis.Address{Page: 0xff, Offset: 128}, 128, true, "FFh:128", 128 + 255*128},
		{cmis.Address{Offset: 120}, 9, false, "00h:120", 120},
		{cmis.Address{Offset: 128}, 129, false, "00h:128", 128},
		{cmis.Address{Offset: 250}, 0, false, "00h:250", 250},
		{cmis.Address{Offset: 250}, -1, false, "00h:250", 250},
		{cmis.Address{Page: 1, Offset: 3}, 1, false, "01h:3", 131},
		{cmis.Address{Bank: 1, Offset: 3}, 1, false, "1:00h:3", -1},
	} {
		if err := tt.a.Check(tt.n); (err == nil) != tt.ok {
			t.Errorf("%v.Check(%d) = %v", tt.a, tt.n, err)
		}
		if got := tt.a.String(); got != tt.text {
			t.Errorf("String = %q, want %q", got, tt.text)
		}
		if at, ok := tt.a.ImageOffset(); ok != (tt.at >= 0) || ok && at != tt.at {
			t.Errorf("%v.ImageOffset() = %d, %v, want %d", tt.a, at, ok, tt.at)
		}
	}
	if err := osfp().Read(cmis.Address{Page: 0x11, Bank: 1, Offset: 186}, make([]byte, 16)); err == nil {
		t.Error("an image gave bank 1")
	}
	if err := osfp().Read(cmis.Address{Offset: 120}, make([]byte, 16)); err == nil {
		t.Error("an image was read across the half page")
	}
}

func TestPowerOf(t *testing.T) {
	for _, tt := range []struct {
		uw   float64
		want cmis.Power
	}{
		{500, 5000}, {0.04, 0}, {0.06, 1}, {0, 0}, {-3, 0}, {math.NaN(), 0}, {math.Inf(-1), 0},
		{6553.5, 65535}, {7000, 65535}, {math.Inf(1), 65535},
	} {
		if got := cmis.PowerOf(tt.uw); got != tt.want {
			t.Errorf("PowerOf(%v) = %d, want %d", tt.uw, got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	got := fmt.Sprint(cmis.SFF8636, cmis.CMIS, cmis.Map(9), cmis.QSFPPlus, cmis.QSFP28, cmis.QSFPDD, cmis.OSFP, cmis.QSFPCMIS,
		cmis.ModuleFault, cmis.ModuleState(0), cmis.DataPathTxTurnOff, cmis.DataPathState(15))
	want := "SFF-8636 CMIS Map(9) QSFP+ QSFP28 QSFP-DD OSFP QSFP with CMIS ModuleFault reserved state 0 DPTxTurnOff reserved state 15"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func genText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.TrimSpace(rapid.StringMatching(`[!-~][ -~]{0,14}[!-~]|`).Draw(t, "text"))
	})
}

func genModule() *rapid.Generator[cmis.Module] {
	return rapid.Custom(func(t *rapid.T) cmis.Module {
		m := cmis.Module{
			Identity: cmis.Identity{
				Identifier: rapid.SampledFrom([]cmis.Identifier{cmis.QSFPPlus, cmis.QSFP28, cmis.QSFPDD, cmis.OSFP, cmis.QSFPCMIS}).Draw(t, "identifier"),
				Vendor:     genText().Draw(t, "vendor"),
				PartNumber: genText().Draw(t, "part"),
				Serial:     genText().Draw(t, "serial"),
			},
			State: cmis.ModuleReady,
		}
		kind, _ := m.Identifier.Map()
		lanes := 4
		if kind == cmis.CMIS {
			lanes = 8
			m.BiasScale = rapid.SampledFrom([]uint8{0, 2, 4}).Draw(t, "scale")
		}
		m.Lanes = rapid.Uint8Range(0, uint8(1<<lanes-2)).Draw(t, "lanes")
		unit := 0.002 * float64(max(m.BiasScale, 1))
		for n := 1; n <= lanes; n++ {
			if m.Lanes != 0 && m.Lanes>>(n-1)&1 == 0 {
				continue
			}
			lane := cmis.Lane{
				Number:  n,
				RxPower: cmis.Power(rapid.Uint16Range(0, 65534).Draw(t, "rx")),
				TxPower: cmis.Power(rapid.Uint16().Draw(t, "tx")),
				TxBias:  float64(rapid.Uint16().Draw(t, "bias")) * unit,
				RxLOS:   rapid.Bool().Draw(t, "rxlos"), TxLOS: rapid.Bool().Draw(t, "txlos"),
				RxLOL: rapid.Bool().Draw(t, "rxlol"), TxLOL: rapid.Bool().Draw(t, "txlol"),
			}
			if kind == cmis.CMIS {
				lane.State = cmis.DataPathState(rapid.Uint8Range(0, 15).Draw(t, "state"))
			}
			m.Monitors = append(m.Monitors, lane)
		}
		return m
	})
}

func TestEncode_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := genModule().Draw(t, "module")
		im, err := cmis.Encode(want)
		if err != nil {
			t.Fatal(err)
		}
		if len(im) != 2432 {
			t.Fatalf("the image has %d bytes", len(im))
		}
		got, err := cmis.Decode(im.Read)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, approx); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}

// SetMonitors keeps to its span, and to the lanes that it is given.
func TestSetMonitors_Within(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := genModule().Draw(t, "module")
		old, err := cmis.Encode(m)
		if err != nil {
			t.Fatal(err)
		}
		im := append(cmis.Image(nil), old...)
		lane := rapid.SampledFrom(m.Monitors).Draw(t, "lane")
		lane.RxPower++
		lane.RxLOS = !lane.RxLOS
		if err := im.SetMonitors(m.Identity, []cmis.Lane{lane}); err != nil {
			t.Fatal(err)
		}
		span := m.MonitorSpan()
		at, _ := span.ImageOffset()
		for i := range im {
			if im[i] != old[i] && (i < at || i >= at+span.Length) {
				t.Fatalf("byte %d changed, outside of %v", i, span)
			}
		}
		got, err := cmis.Decode(im.Read)
		if err != nil {
			t.Fatal(err)
		}
		for i := range m.Monitors {
			if m.Monitors[i].Number == lane.Number {
				m.Monitors[i] = lane
			}
		}
		if diff := cmp.Diff(m, got, approx); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
	})
}

func TestEncode_Checksums(t *testing.T) {
	for _, tt := range []struct {
		id   cmis.Identifier
		sums [][3]int // from, to, where
	}{
		{cmis.QSFP28, [][3]int{{128, 191, 191}, {192, 223, 223}}},
		{cmis.OSFP, [][3]int{{128, 222, 222}}},
	} {
		im, err := cmis.Encode(cmis.Module{Identity: cmis.Identity{Identifier: tt.id, Vendor: "ACME", Serial: "7"}})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tt.sums {
			var sum byte
			for _, b := range im[s[0]:s[1]] {
				sum += b
			}
			if sum == 0 || im[s[2]] != sum {
				t.Errorf("%v: checksum at %d is %02X, want %02X", tt.id, s[2], im[s[2]], sum)
			}
		}
	}
}

func TestEncode_Errors(t *testing.T) {
	ok := cmis.Identity{Identifier: cmis.QSFP28}
	with := func(fn func(*cmis.Identity)) cmis.Module {
		id := ok
		fn(&id)
		return cmis.Module{Identity: id}
	}
	lane := func(l cmis.Lane) cmis.Module { return cmis.Module{Identity: ok, Monitors: []cmis.Lane{l}} }
	for _, tt := range []struct {
		m    cmis.Module
		want string
	}{
		{with(func(id *cmis.Identity) { id.Identifier = 3 }), "identifier 03h"},
		{with(func(id *cmis.Identity) { id.Vendor = strings.Repeat("x", 17) }), "at most 16"},
		{with(func(id *cmis.Identity) { id.Serial = "é" }), "printable ASCII"},
		{with(func(id *cmis.Identity) { id.PartNumber = " x" }), "blanks"},
		{with(func(id *cmis.Identity) { id.Lanes = 0x10 }), "has four"},
		{with(func(id *cmis.Identity) { id.BiasScale = 2 }), "bias scale 2"},
		{lane(cmis.Lane{Number: 5}), "no lane 5"},
		{lane(cmis.Lane{Number: 0}), "no lane 0"},
		{lane(cmis.Lane{Number: 1, TxBias: math.NaN()}), "bias"},
		{lane(cmis.Lane{Number: 1, TxBias: 132}), "between 0 and 131.1"},
		{lane(cmis.Lane{Number: 1, State: 16}), "four bits"},
	} {
		if _, err := cmis.Encode(tt.m); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q in it", tt.m, err, tt.want)
		}
	}
	if err := make(cmis.Image, 57).SetMonitors(ok, nil); err == nil {
		t.Error("monitors fit into 57 bytes")
	}
}

// Any bytes are a module or an error, and what is a module is written and read back.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(qsfp28()))
	f.Add([]byte(osfp()))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := cmis.Decode(cmis.Image(data).Read)
		if err != nil {
			return
		}
		im, err := cmis.Encode(m)
		if err != nil {
			t.Fatalf("%+v: %v", m, err)
		}
		again, err := cmis.Decode(im.Read)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, again, approx); diff != "" {
			t.Fatalf("-first +again\n%s", diff)
		}
	})
}
