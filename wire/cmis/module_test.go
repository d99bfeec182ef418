package cmis_test

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
)

// Bytes 00h:3 to 25 written by hand.
func TestModuleStatus_Golden(t *testing.T) {
	t.Parallel()
	s := cmis.ModuleStatus{
		State: cmis.ModuleReady, Interrupt: true, LaneFlags: true,
		Flags:   cmis.ModuleStateChanged | cmis.CDBComplete1 | cmis.TempHighWarning | cmis.VccLowAlarm | cmis.CustomFlags(0x81),
		Celsius: -1.5, Volts: 3.3, Aux: [3]uint16{1, 2, 0xffff}, Custom: 0x1234,
	}
	want := "06" + "01000000" + "412400000081" + "fe80" + "80e8" + "0001" + "0002" + "ffff" + "1234"
	got := s.Encode()
	if hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
	back, err := cmis.DecodeModuleStatus(got)
	if diff := cmp.Diff(s, back, approx); err != nil || diff != "" {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	if text, want := s.Flags.String(), "state-changed,cdb-complete-1,temp-high-warning,vcc-low-alarm,13.0,13.7"; text != want {
		t.Errorf("got  %s\nwant %s", text, want)
	}
	if got := s.Flags.Custom(); got != 0x81 {
		t.Errorf("the vendor's flags are %02Xh", got)
	}
	if got := cmis.ModuleFlags(0).String(); got != "none" {
		t.Errorf("no flags are %q", got)
	}
	if span := cmis.ModuleStatusSpan; span.Offset != 3 || span.Check(span.Length) != nil || len(got) != span.Length {
		t.Errorf("span %v for %d bytes", span.Address, span.Length)
	}
}

// Any 23 bytes that are no absent module decode, and what they say is written again.
func TestModuleStatus_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Byte(), 23, 23).Draw(t, "bytes")
		p[0] &= 0x0f // bits 7-4 are reserved
		p[1], p[2], p[3], p[4] = p[1]&1, 0, 0, 0
		s, err := cmis.DecodeModuleStatus(p)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Encode(); !bytes.Equal(got, p) {
			t.Fatalf("got  % x\nwant % x", got, p)
		}
	})
}

func TestModuleStatus_Limits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ celsius, volts, wantC, wantV float64 }{
		{1000, 100, 127.99609375, 6.5535}, {-1000, -1, -128, 0}, {math.Inf(1), math.Inf(1), 127.99609375, 6.5535}, {math.NaN(), math.NaN(), 0, 0},
	} {
		got, err := cmis.DecodeModuleStatus(cmis.ModuleStatus{Celsius: tt.celsius, Volts: tt.volts}.Encode())
		if err != nil || got.Celsius != tt.wantC || math.Abs(got.Volts-tt.wantV) > 1e-9 {
			t.Errorf("%v °C, %v V: %v °C, %v V, %v", tt.celsius, tt.volts, got.Celsius, got.Volts, err)
		}
	}
	ff := bytes.Repeat([]byte{0xff}, 23)
	if _, err := cmis.DecodeModuleStatus(ff); !errors.Is(err, cmis.ErrNoModule) {
		t.Errorf("all FFh: %v", err)
	}
	if _, err := cmis.DecodeModuleStatus(ff[1:]); err == nil {
		t.Error("22 bytes were taken")
	}
	if got, err := cmis.DecodeTemperature([]byte{0x46, 0x80}); err != nil || got != 70.5 {
		t.Errorf("4680h is %v °C, %v", got, err)
	}
	if _, err := cmis.DecodeTemperature(nil); err == nil {
		t.Error("no bytes are a temperature")
	}
	if _, err := cmis.DecodeModuleFlags(make([]byte, 5)); err == nil {
		t.Error("five bytes are module flags")
	}
}

func TestModuleNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ got, want string }{
		{cmis.Revision52.String(), "5.2"}, {cmis.NoFault.String(), "no fault"}, {cmis.TemperatureFault.String(), "temperature fault"},
		{cmis.FaultCause(7).String(), "reserved fault 7"}, {cmis.FaultCause(32).String(), "vendor's fault 32"}, {cmis.FaultCause(64).String(), "reserved fault 64"},
		{cmis.DFB1310.String(), "1310 nm DFB"}, {cmis.DFB1490.String(), "1490 nm DFB"}, {cmis.CTunable.String(), "C-band tunable"},
		{cmis.LTunable.String(), "L-band tunable"}, {cmis.Technology(0x0a).String(), "technology 0Ah"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
	for bit, c := range map[int]cmis.GlobalControl{3: cmis.SoftwareReset, 4: cmis.LowPwrRequestSW, 5: cmis.SquelchPav, 6: cmis.LowPwrAllowRequestHW, 7: cmis.BankBroadcastEnable} {
		if c != 1<<bit {
			t.Errorf("bit %d is %02Xh", bit, uint8(c))
		}
	}
}

// The password goes into 00h:122 in one write, big-endian, and cannot be read back.
func TestEnterPassword(t *testing.T) {
	t.Parallel()
	m := newModule(nil)
	if err := cmis.EnterPassword(t.Context(), m, 0x00001011); err != nil {
		t.Fatal(err)
	}
	at := cmis.Address{Offset: 122}
	if got := m.Bytes(at, 4); !bytes.Equal(got, []byte{0, 0, 0x10, 0x11}) {
		t.Errorf("the module got % x", got)
	}
	got := []byte{9, 9, 9, 9}
	if err := m.Store.Read(at, got); err != nil || !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("the host reads % x, %v", got, err)
	}
}

func product() cmis.Product {
	return cmis.Product{
		Identifier: cmis.OSFP, Vendor: "ACME OPTICS", PartNumber: "OCSTRX-8X112G", Serial: "SN0003", Revision: "A1", Date: "251122", CLEI: "CLEI",
		OUI: [3]byte{0x00, 0x1b, 0x2c}, PowerClass: 6, MaxPower: 12, Connector: 0x28, Lanes: 0x0f, Technology: cmis.DFB1310,
	}
}

// Page 00h as the specification lays it out; 12 W is 30h.
func TestProduct_Golden(t *testing.T) {
	t.Parallel()
	got, err := product().Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 128)
	at := func(reg int) []byte { return want[reg-128:] }
	want[0] = 0x19
	copy(at(129), "ACME OPTICS     \x00\x1b\x2cOCSTRX-8X112G   A1SN0003          251122  CLEI      \xa0\x30")
	at(203)[0], at(210)[0], at(212)[0] = 0x28, 0xf0, 0x04
	for _, b := range want[:94] {
		at(222)[0] += b
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	// It is the page that Identify reads.
	im := osfp()
	copy(im[128:], got)
	id, err := cmis.Identify(im.Read)
	if err != nil || id.Serial != "SN0003" || id.PartNumber != "OCSTRX-8X112G" || id.Lanes != 0x0f {
		t.Errorf("%+v, %v", id, err)
	}
}

func TestProduct_RoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		short := func(n int) string {
			s := genText().Draw(t, "text")
			return strings.TrimSpace(s[:min(n, len(s))])
		}
		p := cmis.Product{
			Identifier: cmis.Identifier(rapid.Uint8Range(0, 254).Draw(t, "identifier")), Vendor: short(16), PartNumber: short(16), Serial: short(16),
			Revision: short(2), Date: short(8), CLEI: short(10), OUI: [3]byte(rapid.SliceOfN(rapid.Byte(), 3, 3).Draw(t, "oui")),
			PowerClass: rapid.IntRange(1, 8).Draw(t, "class"), MaxPower: float64(rapid.Uint8().Draw(t, "power")) / 4,
			Connector: rapid.Byte().Draw(t, "connector"), Lanes: rapid.Uint8Range(0, 254).Draw(t, "lanes"), Technology: cmis.Technology(rapid.Byte().Draw(t, "technology")),
		}
		page, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := cmis.DecodeProduct(page)
		if diff := cmp.Diff(p, got); err != nil || diff != "" {
			t.Fatalf("error %v, -want +got\n%s", err, diff)
		}
		bit := rapid.IntRange(0, 8*95-1).Draw(t, "bit")
		page[bit/8] ^= 1 << (bit % 8)
		if _, err := cmis.DecodeProduct(page); err == nil || !strings.Contains(err.Error(), "00h:222 is damaged") {
			t.Fatalf("bit %d flipped: %v", bit, err)
		}
	})
}

func TestProduct_Errors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fn   func(*cmis.Product)
		want string
	}{
		{func(p *cmis.Product) { p.Revision = "A10" }, "revision \"A10\": want at most 2"},
		{func(p *cmis.Product) { p.Date = "\x01" }, "printable ASCII"},
		{func(p *cmis.Product) { p.Vendor = "é" }, "printable ASCII"},
		{func(p *cmis.Product) { p.MaxPower = 64 }, "64 W"},
		{func(p *cmis.Product) { p.MaxPower = -1 }, "-1 W"},
		{func(p *cmis.Product) { p.MaxPower = math.NaN() }, "NaN W"},
		{func(p *cmis.Product) { p.PowerClass = 0 }, "power class 0"},
		{func(p *cmis.Product) { p.PowerClass = 9 }, "power class 9"},
	} {
		p := product()
		tt.fn(&p)
		if _, err := p.Encode(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q in it", err, tt.want)
		}
	}
	p := product()
	p.MaxPower = 11.8
	page, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := cmis.DecodeProduct(page); err != nil || got.MaxPower != 12 {
		t.Errorf("11.8 W is written as %v W, %v", got.MaxPower, err)
	}
	if _, err := cmis.DecodeProduct(bytes.Repeat([]byte{0xff}, 128)); !errors.Is(err, cmis.ErrNoModule) {
		t.Errorf("all FFh: %v", err)
	}
	if _, err := cmis.DecodeProduct(page[1:]); err == nil {
		t.Error("127 bytes were taken for page 00h")
	}
}

func advertising() cmis.Advertising {
	return cmis.Advertising{
		Hardware: [2]uint8{1, 2}, Wavelength: 1310, Tolerance: 6.5, Pages: cmis.VDMPages, Banks: 1,
		Controls: cmis.CanDisableTx | cmis.CanDisableRx, Monitors: cmis.HasTemperature | cmis.HasVcc | cmis.HasTxPower | cmis.HasRxPower, BiasScale: 2,
		CDB: cmis.CDBSupport{Instances: 1, Background: true, MaxWrite: 128, OnStop: true, MaxBusy: 480 * time.Millisecond},
	}
}

// Page 01h as the specification lays it out.
func TestAdvertising_Golden(t *testing.T) {
	t.Parallel()
	got, err := advertising().Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := make([]byte, 128)
	for reg, b := range map[int]string{
		130: "\x01\x02", 138: "\x66\x58\x05\x14", 142: "\x40", 155: "\x02\x02", 159: "\x03\x0e", 163: "\x60\x0f\x83\x80",
	} {
		copy(want[reg-128:], b)
	}
	for _, b := range want[2:127] {
		want[127] += b
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
	back, err := cmis.DecodeAdvertising(got)
	if diff := cmp.Diff(advertising(), back, approx); err != nil || diff != "" {
		t.Errorf("error %v, -want +got\n%s", err, diff)
	}
	im := osfp()
	copy(im[256:], got)
	if id, err := cmis.Identify(im.Read); err != nil || id.BiasScale != 2 {
		t.Errorf("Identify finds %+v, %v", id, err)
	}
}

// Whatever page 01h holds: it decodes or is an error, and what it says is written again.
func FuzzDecodeAdvertising(f *testing.F) {
	page, _ := advertising().Encode()
	f.Add(page)
	page = bytes.Clone(page)
	page[165-128], page[166-128] = 0, 0x7f
	f.Add(page)
	f.Add(make([]byte, 128))
	f.Fuzz(func(t *testing.T, page []byte) {
		if len(page) == 128 { // so that more than a checksum is tried
			page[127] = 0
			for _, b := range page[2:127] {
				page[127] += b
			}
		}
		a, err := cmis.DecodeAdvertising(page)
		if err != nil {
			return
		}
		again, err := a.Encode()
		if a.CDB.Instances == 3 { // reserved
			return
		}
		if err != nil {
			t.Fatalf("%+v: %v", a, err)
		}
		b, err := cmis.DecodeAdvertising(again)
		if diff := cmp.Diff(a, b, approx); err != nil || diff != "" {
			t.Fatalf("error %v, -first +again\n%s", err, diff)
		}
	})
}

// The time that a module may be busy is never written shorter than it is.
func TestCDBSupport_MaxBusy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ busy, want time.Duration }{
		{-1, 0}, {0, 0}, {time.Microsecond, time.Millisecond}, {80 * time.Millisecond, 80 * time.Millisecond},
		{81 * time.Millisecond, 160 * time.Millisecond}, {161 * time.Millisecond, 320 * time.Millisecond},
		{4960 * time.Millisecond, 4960 * time.Millisecond}, {time.Hour, 4960 * time.Millisecond},
	} {
		a := advertising()
		a.CDB.MaxBusy = tt.busy
		page, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := cmis.DecodeAdvertising(page); err != nil || got.CDB.MaxBusy != tt.want {
			t.Errorf("%v is written as %v, want %v; %v", tt.busy, got.CDB.MaxBusy, tt.want, err)
		}
	}
}

func TestAdvertising_Errors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		fn   func(*cmis.Advertising)
		want string
	}{
		{func(a *cmis.Advertising) { a.Banks = 3 }, "3 banks"},
		{func(a *cmis.Advertising) { a.BiasScale = 3 }, "bias scale 3"},
		{func(a *cmis.Advertising) { a.Wavelength = 4000 }, "wavelength of 4000 nm"},
		{func(a *cmis.Advertising) { a.Tolerance = math.NaN() }, "tolerance of NaN nm"},
	} {
		a := advertising()
		tt.fn(&a)
		if _, err := a.Encode(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, want %q in it", err, tt.want)
		}
	}
	page, err := advertising().Encode()
	if err != nil {
		t.Fatal(err)
	}
	page[0]++ // the version of the inactive firmware may change: it is not in the sum
	if _, err := cmis.DecodeAdvertising(page); err != nil {
		t.Error(err)
	}
	page[50] ^= 1
	if _, err := cmis.DecodeAdvertising(page); err == nil || !strings.Contains(err.Error(), "01h:255 is damaged") {
		t.Errorf("a flipped bit: %v", err)
	}
	page[50] ^= 1
	page[142-128] |= 3
	page[127] += 3
	if _, err := cmis.DecodeAdvertising(page); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("a reserved number of banks: %v", err)
	}
}

// Each control is in the byte that the specification gives it.
func TestLaneControl_Golden(t *testing.T) {
	t.Parallel()
	c := cmis.LaneControl{Deinit: 1, TxFlip: 2, TxDisable: 3, TxSquelchOff: 4, TxSquelch: 5, RxFlip: 6, RxDisable: 7, RxSquelchOff: 8}
	got := c.Encode()
	if want := []byte{1, 2, 3, 4, 5, 0, 0, 0, 0, 6, 7, 8}; !bytes.Equal(got, want) {
		t.Errorf("got  % x\nwant % x", got, want)
	}
	if back, err := cmis.DecodeLaneControl(got); err != nil || back != c {
		t.Errorf("%+v, %v", back, err)
	}
	if _, err := cmis.DecodeLaneControl(got[1:]); err == nil {
		t.Error("eleven bytes were taken")
	}
	for b := range 256 {
		if got := cmis.DecodeDataPathConfig(byte(b)).Encode(); got != byte(b) {
			t.Errorf("data path %02Xh is written as %02Xh", b, got)
		}
	}
	if got, want := cmis.DecodeDataPathConfig(0x29), (cmis.DataPathConfig{Application: 2, First: 4, Explicit: true}); got != want {
		t.Errorf("29h is %+v, want %+v", got, want)
	}
}
