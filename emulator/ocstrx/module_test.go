package ocstrx

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// bench is a module on a virtual clock.
type bench struct {
	testing.TB
	*Module
	clock *VirtualClock
}

// testWall is the time of day in tests.
func testWall() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func newBench(t testing.TB, opt Options) *bench {
	t.Helper()
	clock := new(VirtualClock)
	opt.Clock, opt.Wall = clock, testWall
	return &bench{t, NewModule(DefaultParams(), opt), clock}
}

// readyBench is a module that has warmed up.
func readyBench(t testing.TB, seed uint64) *bench {
	t.Helper()
	b := newBench(t, Options{Seed: seed})
	b.clock.Advance(20 * time.Millisecond)
	b.wantState(ocst.StateReady)
	return b
}

func (b *bench) get(a cmis.Address, n int) []byte {
	b.Helper()
	p := make([]byte, n)
	if err := b.Read(context.Background(), a, p); err != nil {
		b.Fatalf("reading %d bytes at %v: %v", n, a, err)
	}
	return p
}

func (b *bench) put(a cmis.Address, p ...byte) {
	b.Helper()
	if err := b.Write(context.Background(), a, p); err != nil {
		b.Fatalf("writing % x at %v: %v", p, a, err)
	}
}

func (b *bench) status() ocst.Status {
	b.Helper()
	s, err := ocst.DecodeStatus(b.get(ocst.StatusSpan.Address, ocst.StatusSpan.Length))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func (b *bench) lanes() ocst.LaneStatus {
	b.Helper()
	s, err := ocst.DecodeLanes(b.get(ocst.LanesSpan.Address, ocst.LanesSpan.Length))
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// takeFlags reads the latched flags, which clears them.
func (b *bench) takeFlags() ocst.Flags {
	b.Helper()
	return ocst.Flags(b.get(ocst.At(ocst.RegFlags), 1)[0])
}

func (b *bench) entries() []ocst.LogEntry {
	b.Helper()
	at := cmis.Address{Page: ocst.PageLog, Offset: 128}
	next := at
	next.Bank = 1
	log, err := ocst.DecodeLog([2][]byte{b.get(at, 128), b.get(next, 128)})
	if err != nil {
		b.Fatal(err)
	}
	return log
}

func (b *bench) order(path ocst.Path, lanes uint8, c ocst.Commit) {
	b.Helper()
	b.put(ocst.At(ocst.RegStaged), byte(path), lanes, byte(c))
}

// switchTo switches and waits until receivers have locked.
func (b *bench) switchTo(path ocst.Path, lanes uint8) {
	b.Helper()
	before := b.status().Sequence
	b.order(path, lanes, ocst.CommitNow)
	b.clock.Advance(2 * time.Millisecond)
	s := b.status()
	if s.Result != ocst.NoFault || s.Sequence != before+1 || s.State != ocst.StateReady {
		b.Fatalf("switch to %v of lanes %08b: state %v, %v, sequence number %d after %d; fault %v at %d",
			path, lanes, s.State, s.Result, s.Sequence, before, b.lanes().Fault, b.lanes().FaultAt)
	}
}

func (b *bench) wantState(want ocst.State) {
	b.Helper()
	if got := b.status().State; got != want {
		l := b.lanes()
		b.Fatalf("state %v, want %v; fault %v at %d", got, want, l.Fault, l.FaultAt)
	}
}

// wantDark ensures that no lane carries light, by the registers and by the chip.
func (b *bench) wantDark() {
	b.Helper()
	if got := b.lanes().Path; got != [ocst.Lanes]ocst.Path{} {
		b.Errorf("paths %v, want all dark", got)
	}
	p := b.chip.powers(b.now)
	for lane := range ocst.Lanes {
		if p[ocst.PDOut1][lane]+p[ocst.PDOut2][lane]+p[ocst.PDLoopTap][lane] > 0 {
			b.Errorf("lane %d: there is light, want none", lane+1)
		}
	}
}

func (b *bench) cdb(command uint16, payload ...byte) (cmis.CDBStatus, []byte) {
	b.Helper()
	p, err := cmis.EncodeCDB(command, payload)
	if err != nil {
		b.Fatal(err)
	}
	b.put(cdbPage, p...)
	for range 100 {
		status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0])
		if !status.Busy() {
			head := b.get(cdbPage, 8)
			reply := []byte{}
			if head[6] > 0 {
				reply = b.get(cmis.Address{Page: cmis.CDBPage, Offset: 136}, int(head[6]))
			}
			return status, reply
		}
		b.clock.Advance(10 * time.Microsecond)
	}
	b.Fatalf("command %04Xh does not end", command)
	return 0, nil
}

func (b *bench) unlock() {
	b.Helper()
	if err := cmis.EnterPassword(context.Background(), b, ocst.HostPassword); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) calibrate() {
	b.Helper()
	b.unlock()
	if status, _ := b.cdb(ocst.CDBCalibrate, 1); status != cmis.CDBSuccess {
		b.Fatalf("calibration does not begin: %v", status)
	}
	b.wantState(ocst.StateCal)
}

// powersOf reads what the taps of an array say, in 0.1 µW.
func (b *bench) powersOf(array int) (list [ocst.Lanes]uint16) {
	b.Helper()
	a := ocst.At(ocst.RegOut1)
	if array > 0 {
		a = cmis.Address{Page: ocst.PageMonitors, Offset: uint8(ocst.RegOut2 + 2*ocst.Lanes*(array-1))}
	}
	p := b.get(a, 2*ocst.Lanes)
	for lane := range list {
		list[lane] = binary.BigEndian.Uint16(p[2*lane:])
	}
	return list
}

// TestStart ensures the way from power on to ready, with what CMIS says of it.
func TestStart(t *testing.T) {
	t.Parallel()
	b := newBench(t, Options{Seed: 1})
	for _, step := range []struct {
		wait  time.Duration
		state ocst.State
		cmis  cmis.ModuleState
	}{
		{0, ocst.StateReset, cmis.ModuleLowPower},
		{resetTime - 1, ocst.StateReset, cmis.ModuleLowPower},
		{1, ocst.StateWarmUp, cmis.ModulePowerUp},
		{10*time.Millisecond - 1, ocst.StateWarmUp, cmis.ModulePowerUp},
		{1, ocst.StateReady, cmis.ModuleReady},
	} {
		b.clock.Advance(step.wait)
		b.wantState(step.state)
		if got := cmis.ModuleState(b.get(cmis.Address{Offset: cmis.RegModuleState}, 1)[0] >> 1 & 7); got != step.cmis {
			t.Errorf("in state %v CMIS says %v, want %v", step.state, got, step.cmis)
		}
	}
	b.wantDark()
	id, err := cmis.Identify(func(a cmis.Address, p []byte) error { return b.Read(context.Background(), a, p) })
	if err != nil || id.Vendor != vendorName || id.Serial != b.Serial() || id.Lanes != 0 {
		t.Errorf("identity %+v, %v", id, err)
	}
	page := b.get(cmis.ProductSpan.Address, cmis.ProductSpan.Length)
	product, err := cmis.DecodeProduct(page)
	if err != nil || page[201-128] != 0x30 || page[200-128]>>5 != 5 || product.PartNumber != partNumber {
		t.Errorf("power %d, class byte %02X: want 48, A0; %+v, %v", page[201-128], page[200-128], product, err)
	}
	can, err := cmis.DecodeAdvertising(b.get(cmis.AdvertisingSpan.Address, cmis.AdvertisingSpan.Length))
	if err != nil || can.Pages != 0 || can.CDB.Instances != 1 || !can.CDB.OnStop || !can.CDB.Background || can.CDB.MaxWrite != 128 {
		t.Errorf("advertised: %+v, %v", can, err)
	}
	for _, p := range []struct {
		page  uint8
		pages cmis.Pages
	}{{3, cmis.Page03h}, {5, cmis.Page05h}, {0x13, cmis.DiagnosticPages}, {0x20, cmis.VDMPages}, {0x16, cmis.NetworkPages}} {
		if has := b.store.Has(0, p.page); has != (can.Pages&p.pages != 0) {
			t.Errorf("page %02Xh: there %v, and advertised %v", p.page, has, !has)
		}
	}
}

// TestElementSettings ensures that page B2h has a good CRC in each bank, and the table's
// settings, or none without a table.
func TestElementSettings(t *testing.T) {
	t.Parallel()
	settings := func(b *bench) [ocst.Elements]ocst.Setting {
		var banks [ocst.SettingBanks][]byte
		for i := range banks {
			banks[i] = b.get(cmis.Address{Page: ocst.PageElements, Bank: uint8(i), Offset: 128}, 128)
		}
		list, err := ocst.DecodeSettings(banks)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	b := readyBench(t, 4)
	point := &b.table.Points[1] // 45 °C; the case is at 35.2 °C and a little above
	for e, s := range settings(b) {
		f := &point.Elements[e]
		volts, _ := f.A.Volts(math.Pi)
		if s.Bar != f.Bar || s.Cross != f.Cross || math.Abs(s.Phase0-f.Phase0) > 1e-4 ||
			math.Abs(s.PowerPi-volts*volts/400) > 1e-6 || math.Abs(s.Extinction-min(f.BarER, f.CrossER)) > 0.01 {
			t.Errorf("%v: %+v, in the table %+v", ocst.Element(e), s, f)
		}
	}
	if list := settings(newBench(t, Options{Table: TableNone})); list != [ocst.Elements]ocst.Setting{} {
		t.Errorf("settings without a table: %+v", list)
	}
}

// TestTrimSign ensures that a trim is added to the phase of its element, as the map says, and
// to no other.
func TestTrimSign(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 4)
	const e, trim = 5, 0.08
	before := phases(b.chip, b.now)
	b.put(cmis.Address{Page: ocst.PageTrim, Offset: 128 + 2*e}, 0x03, 0x20) // 800 x 0.1 mrad
	b.clock.Advance(10 * time.Millisecond)
	b.status()
	after := phases(b.chip, b.now)
	for i := range after {
		want := 0.0
		if i == e {
			want = trim
		}
		if got := after[i] - before[i]; math.Abs(got-want) > 4e-3 {
			t.Errorf("%v went on by %.4f rad, want %g", ocst.Element(i), got, want)
		}
	}
}

// TestLowPower ensures that LowPwrRequestSW takes light and heat away, from every state but
// Fault, and that the module comes back.
func TestLowPower(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 2)
	b.switchTo(ocst.Path1, 0xff)
	at := cmis.Address{Offset: cmis.RegGlobalControl}
	b.put(at, byte(cmis.LowPwrRequestSW))
	b.wantState(ocst.StateLowPower)
	b.wantDark()
	if p := b.chip.heaterPower(b.now); p != 0 {
		t.Errorf("heaters take %g W in low power, want 0", p)
	}
	b.order(ocst.Path1, 1, ocst.CommitNow)
	if got := b.status().Result; got != ocst.FaultNotAllowed {
		t.Errorf("a commit in low power gives %v, want %v", got, ocst.FaultNotAllowed)
	}
	b.clock.Advance(time.Hour)
	b.wantState(ocst.StateLowPower)
	b.put(at, 0)
	b.wantState(ocst.StateWarmUp)
	b.clock.Advance(10 * time.Millisecond)
	b.switchTo(ocst.Path2, 0xff)
}

// TestSoftwareReset ensures that a reset clears what does not outlive it, and keeps the log
// and the wear counter.
func TestSoftwareReset(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 3)
	b.switchTo(ocst.Path1, 0xff)
	b.unlock()
	b.put(cmis.Address{Page: ocst.PageTrim, Offset: 128}, 0, 100)
	b.put(cmis.Address{Offset: cmis.RegGlobalControl}, byte(cmis.SoftwareReset))
	b.wantState(ocst.StateReset)
	b.wantDark()
	b.clock.Advance(11 * time.Millisecond)
	b.wantState(ocst.StateReady)
	s := b.status()
	if s.Sequence != 0 || s.Switches != 1 || s.Mask != 0xff || s.SettleTimeout != 200*time.Microsecond || len(b.entries()) != 1 || b.trim[0] != 0 {
		t.Errorf("after a reset: %+v, %d in the log, trim %g", s, len(b.entries()), b.trim[0])
	}
	if got := b.get(cmis.Address{Offset: cmis.RegGlobalControl}, 1)[0]; got != byte(cmis.LowPwrAllowRequestHW) {
		t.Errorf("global control %02X after a reset, want 40", got)
	}
	// The password must be entered anew, and all of it.
	b.put(cmis.Address{Offset: cmis.RegPassword + 3}, byte(ocst.HostPassword&0xff))
	if status, _ := b.cdb(ocst.CDBHeaterTest); status != cmis.CDBPassword {
		t.Errorf("after a reset and the last byte of the password: %v, want %v", status, cmis.CDBPassword)
	}
}

// TestDeterministic ensures that the same seed is the same device, whoever asks it when, and
// another seed another one.
func TestDeterministic(t *testing.T) {
	t.Parallel()
	play := func(seed uint64, nosy bool) []ocst.LogEntry {
		b := readyBench(t, seed)
		for i, p := range []ocst.Path{ocst.Path1, ocst.LoopPath, ocst.Path2, ocst.LoopPath} {
			b.order(p, 0xff>>i, ocst.CommitNow)
			for range 200 {
				b.clock.Advance(10 * time.Microsecond)
				if nosy {
					b.lanes()
					b.powersOf(ocst.PDOut2)
				}
			}
			b.clock.Advance(time.Minute)
		}
		return b.entries()
	}
	one, other := fmt.Sprint(play(5, false)), fmt.Sprint(play(5, true))
	if one != other {
		t.Errorf("asked seldom: %s\nasked often:  %s", one, other)
	}
	if third := fmt.Sprint(play(6, false)); third == one {
		t.Errorf("seeds 5 and 6 give the same switches: %s", one)
	}
}

// TestTable ensures what a module does with the table that it finds when it starts.
func TestTable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		table TableState
		wall  time.Time
		want  ocst.State
	}{
		{"", testWall(), ocst.StateReady},
		{TableFactory, testWall(), ocst.StateReady},
		{TableNone, testWall(), ocst.StateCal},
		{TableDamaged, testWall(), ocst.StateCal},
	} {
		b := newBench(t, Options{Seed: 4, Table: c.table})
		b.clock.Advance(20 * time.Millisecond)
		b.wantState(c.want)
		l := b.lanes()
		if c.want == ocst.StateReady {
			if l.Fault != ocst.NoFault {
				t.Errorf("table %q: fault %v, want none", c.table, l.Fault)
			}
			continue
		}
		if f := b.takeFlags(); l.Fault != ocst.FaultTable || f&ocst.FlagTable == 0 {
			t.Errorf("table %q: fault %v, flags %v, want %v and its flag", c.table, l.Fault, f, ocst.FaultTable)
		}
		b.wantDark()
		b.order(ocst.Path1, 1, ocst.CommitNow)
		if got := b.status().Result; got != ocst.FaultNotAllowed {
			t.Errorf("table %q: a commit gives %v, want %v", c.table, got, ocst.FaultNotAllowed)
		}
	}
}

// TestExpiry ensures that a table is refused from the day on which it expires.
func TestExpiry(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 4)
	table, err := ocst.ParsePages(b.stored)
	if err != nil {
		t.Fatal(err)
	}
	table.Expires = testWall().Add(-time.Second)
	if b.stored, err = table.Pages(); err != nil {
		t.Fatal(err)
	}
	b.put(cmis.Address{Offset: cmis.RegGlobalControl}, byte(cmis.SoftwareReset))
	b.clock.Advance(20 * time.Millisecond)
	b.wantState(ocst.StateCal)
}

// TestAmbient ensures that a module which carries light while the temperature around it
// moves far is neither misled nor caught in between, however seldom it is asked.
func TestAmbient(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		b := readyBench(t, seed)
		b.switchTo(ocst.Path1, 0x0f)
		b.switchTo(ocst.LoopPath, 0xf0)
		for _, celsius := range []float64{50, 10, 55, 25} {
			b.SetAmbient(celsius)
			b.clock.Advance(5 * time.Minute)
			b.wantState(ocst.StateReady)
		}
	}
}
