package ocstrx

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestCDBErrors ensures what the command block says to what it cannot do.
func TestCDBErrors(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 31)
	for _, c := range []struct {
		command uint16
		payload []byte
		want    cmis.CDBStatus
	}{
		{0x1234, nil, cmis.CDBUnknown},
		{ocst.CDBSwitch, []byte{1}, cmis.CDBParameter},
		{ocst.CDBSwitch, []byte{1, 0, 1}, cmis.CDBFailed},
		{ocst.CDBCalibrate, []byte{1}, cmis.CDBPassword},
		{ocst.CDBHeaterTest, nil, cmis.CDBPassword},
		{ocst.CDBLoadTable, []byte{1}, cmis.CDBPassword},
		{ocst.CDBReadTable, []byte{64, 0, 1}, cmis.CDBParameter},
		{ocst.CDBReadTable, []byte{0, 120, 9}, cmis.CDBParameter},
		{ocst.CDBReadTable, []byte{0, 0, 121}, cmis.CDBParameter},
		{ocst.CDBPermute, []byte{0, 0, 1, 2, 3, 4, 5, 6}, cmis.CDBParameter},
		{ocst.CDBPermute, []byte{0, 1, 2, 3, 4, 5, 6, 200}, cmis.CDBParameter},
	} {
		if status, _ := b.cdb(c.command, c.payload...); status != c.want {
			t.Errorf("command %04Xh % x: %v, want %v", c.command, c.payload, status, c.want)
		}
	}
	// Lengths that cannot be: of an extended payload, which has no pages, and of this one.
	for _, lengths := range [][3]byte{{0, 1, 0}, {0xff, 0xff, 0}, {0x08, 0, 0xff}, {0, 0, cmis.CDBMaxPayload + 1}, {0, 0, 0xff}} {
		p, _ := cmis.EncodeCDB(ocst.CDBVerification, nil)
		p[2], p[3], p[4], p[5] = lengths[0], lengths[1], lengths[2], 0
		p[5] = cmis.CheckCode(p)
		b.put(cdbPage, p...)
		if status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0]); status != cmis.CDBParameter {
			t.Errorf("lengths % x: %v, want %v", lengths, status, cmis.CDBParameter)
		}
	}
	// A command is what is written with its id; what follows it can be written before.
	p, _ := cmis.EncodeCDB(ocst.CDBReadTable, []byte{0, 0, 3})
	b.put(cmis.Address{Page: cmis.CDBPage, Offset: 130}, p[2:]...)
	b.put(cdbPage, p[0])
	if status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0]); status != cmis.CDBParameter {
		t.Errorf("half of an id: %v, want nothing to happen", status)
	}
	b.put(cdbPage, p[:2]...)
	if status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0]); status != cmis.CDBSuccess {
		t.Errorf("the id last: %v", status)
	}
	p, _ = cmis.EncodeCDB(ocst.CDBVerification, nil)
	p[5]++
	b.put(cdbPage, p...)
	if status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0]); status != cmis.CDBCheckCode {
		t.Errorf("wrong check code: %v", status)
	}
	b.put(cmis.Address{Offset: cmis.RegPassword}, 1, 2, 3, 4)
	if status, _ := b.cdb(ocst.CDBCalibrate, 1); status != cmis.CDBPassword {
		t.Errorf("wrong password: %v", status)
	}
	if got := b.get(cmis.Address{Offset: cmis.RegPassword}, 4); !bytes.Equal(got, make([]byte, 4)) {
		t.Errorf("the password can be read: % x", got)
	}
}

// TestCDBSwitch ensures that a command which switches ends when the switch does, and the
// block is not taken meanwhile.
func TestCDBSwitch(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 32)
	p, _ := cmis.EncodeCDB(ocst.CDBSwitch, []byte{byte(ocst.LoopPath), 0xff, byte(ocst.CommitNow)})
	b.put(cdbPage, p...)
	if status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0]); status != cmis.CDBExecuting {
		t.Errorf("during the switch: %v", status)
	}
	other, _ := cmis.EncodeCDB(ocst.CDBVerification, nil)
	b.put(cdbPage, other...)
	b.clock.Advance(time.Millisecond)
	if status := cmis.CDBStatus(b.get(cmis.CDBStatusAddress, 1)[0]); status != cmis.CDBSuccess {
		t.Errorf("after the switch: %v", status)
	}
	if got := b.get(cdbPage, 13); got[1] != 0x01 || !bytes.Equal(got[8:], []byte{0, 0, 0, 0, 1}) || got[6] != 5 {
		t.Errorf("reply % x", got)
	}
	if status, reply := b.cdb(ocst.CDBVerification); status != cmis.CDBSuccess {
		t.Errorf("verification: %v", status)
	} else if v, err := ocst.DecodeVerification(reply); err != nil || !v.Pass {
		t.Errorf("verification %+v, %v", v, err)
	}
	if status, reply := b.cdb(ocst.CDBReadTable, 1, 8, 120); status != cmis.CDBSuccess || !bytes.Equal(reply, b.stored[1][8:]) {
		t.Errorf("reading the table: %v", status)
	}
}

// TestHeaterTest ensures that broken heaters are found one by one, that it is refused while
// there is light, and that heaters are as before.
func TestHeaterTest(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 33)
	b.unlock()
	b.Inject(DeviceFault{Kind: HeaterOpen, Element: 4, Arm: ArmB})
	b.Inject(DeviceFault{Kind: HeaterShort, Element: 20, Arm: ArmA})
	status, reply := b.cdb(ocst.CDBHeaterTest)
	if status != cmis.CDBSuccess || len(reply) != 18 {
		t.Fatalf("%v, % x", status, reply)
	}
	for n := range 2 * ocst.Elements {
		open, short := reply[n/8]>>(n%8)&1 == 1, reply[9+n/8]>>(n%8)&1 == 1
		if open != (n == 9) || short != (n == 40) {
			t.Errorf("heater %d: open %v, short %v", n, open, short)
		}
	}
	c := readyBench(t, 33)
	c.unlock()
	c.cdb(ocst.CDBHeaterTest)
	c.clock.Advance(10 * time.Millisecond)
	c.switchTo(ocst.Path1, 0xff)
	if status, reply := c.cdb(ocst.CDBHeaterTest); status != cmis.CDBFailed || ocst.Fault(reply[0]) != ocst.FaultNotAllowed {
		t.Errorf("with light: %v, % x", status, reply)
	}
}

func heaterAt(bank uint8, e int) cmis.Address {
	return cmis.Address{Page: ocst.PageHeaters, Bank: bank, Offset: uint8(ocst.RegCodes + 2*e)}
}

// TestSession ensures what a session of calibration may do, and how it ends.
func TestSession(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 34)
	b.switchTo(ocst.Path1, 0xff)
	b.put(heaterAt(0, 0), 0x0f, 0xff)
	if s := b.status(); s.Result != ocst.FaultNotAllowed {
		t.Errorf("heaters outside of a session: %v", s.Result)
	}
	b.calibrate()
	b.wantDark()
	if got := b.get(heaterAt(0, 0), 2*ocst.Elements); !bytes.Equal(got, make([]byte, len(got))) {
		t.Errorf("heaters at the begin: % x", got)
	}
	// Without a look at the page since the session began: the laser is on, and stays so.
	b.put(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegLit}, 0xff, 0)
	b.cdb(ocst.CDBCalibrate, 0)
	b.clock.Advance(10 * time.Millisecond)
	b.calibrate()
	b.put(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegLit}, 0x01)
	b.put(heaterAt(1, 3), 0x08, 0x00, 0x07, 0xff)
	// Somebody else may not begin anew, with all heaters off, under the first one's hands.
	if status, reply := b.cdb(ocst.CDBCalibrate, 1); status != cmis.CDBFailed || ocst.Fault(reply[0]) != ocst.FaultBusy {
		t.Errorf("a second session: %v, % x", status, reply)
	}
	b.clock.Advance(20 * time.Millisecond)
	if p := b.powersOf(ocst.PDLaunched); p[0] < 15000 || p[1] > 500 {
		t.Errorf("launched %d, want light in lane 1 only", p)
	}
	amps := b.get(cmis.Address{Page: ocst.PageCurrents, Bank: 1, Offset: 128 + 6}, 4)
	if a := binary.BigEndian.Uint16(amps); a < 3500 || a > 4700 {
		t.Errorf("current %d µA at 1.65 V, want about 4100", a)
	}
	if p := binary.BigEndian.Uint16(b.get(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegHeaterPower}, 2)); p < 100 || p > 170 {
		t.Errorf("heaters take %d x 0.1 mW, want about 136", p)
	}
	b.put(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegLaser}, 0)
	if p := b.powersOf(ocst.PDLaunched); p[0] > 500 {
		t.Errorf("launched %d without laser", p)
	}
	// Reading its pages keeps it alive, anything else does not.
	for range 5 {
		b.clock.Advance(ocst.CalTimeout - time.Second)
		b.get(heaterAt(0, 0), 2)
		b.wantState(ocst.StateCal)
	}
	b.clock.Advance(ocst.CalTimeout - time.Second)
	b.status()
	b.clock.Advance(time.Second)
	b.wantState(ocst.StateWarmUp)
	b.clock.Advance(10 * time.Millisecond)
	b.wantState(ocst.StateReady)
	b.wantDark()
	b.switchTo(ocst.Path2, 0xff)
	// And by command.
	b.calibrate()
	if status, _ := b.cdb(ocst.CDBCalibrate, 0); status != cmis.CDBSuccess {
		t.Errorf("leaving: %v", status)
	}
	b.wantState(ocst.StateWarmUp)
}

// TestPowerLimit ensures that a write which would take the module beyond 12 W is undone as a
// whole.
func TestPowerLimit(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 35)
	b.calibrate()
	all := bytes.Repeat([]byte{0x0f, 0xff}, ocst.Elements)
	b.put(heaterAt(0, 0), all[:40]...)
	if s := b.status(); s.Result != ocst.NoFault {
		t.Fatalf("20 heaters: %v", s.Result)
	}
	before := b.get(heaterAt(1, 0), 2*ocst.Elements)
	b.put(heaterAt(1, 0), all...)
	if s := b.status(); s.Result != ocst.FaultPower || b.takeFlags()&ocst.FlagRejected == 0 {
		t.Errorf("56 heaters: %v, want %v", s.Result, ocst.FaultPower)
	}
	if got := b.get(heaterAt(1, 0), 2*ocst.Elements); !bytes.Equal(got, before) {
		t.Errorf("heaters after what was refused: % x", got)
	}
	if p := b.chip.power(b.now); p > maxPower {
		t.Errorf("%g W", p)
	}
	// One heater after the other: refused is the first that is too much.
	for e := range ocst.Elements {
		b.put(heaterAt(1, e), 0x0f, 0xff)
		if b.status().Result == ocst.FaultPower {
			break
		}
	}
	p := b.chip.power(b.now)
	if s := b.status(); s.Result != ocst.FaultPower || p > maxPower || p < maxPower-0.15 {
		t.Errorf("%v at %g W, want to be refused within the power of one heater below %g W", s.Result, p, maxPower)
	}
	// In the cold they take more.
	b.SetAmbient(-40)
	for range 20 {
		b.clock.Advance(5 * time.Second)
		b.get(heaterAt(0, 0), 2)
		if w := b.chip.power(b.now); w > maxPower {
			t.Fatalf("%g W at %g °C", w, b.chip.temperature(b.now))
		}
	}
	if l := b.lanes(); l.State != ocst.StateFault || l.Fault != ocst.FaultPower {
		t.Errorf("cold: %v, %v, want fault and %v", l.State, l.Fault, ocst.FaultPower)
	}
}

// TestLoadTable ensures that only a table that is whole, verified, in time and of this
// module replaces the one in use.
func TestLoadTable(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 36)
	old, err := ocst.ParsePages(b.stored)
	if err != nil {
		t.Fatal(err)
	}
	load := func(change func(*ocst.Table), spoil func([][]byte)) (cmis.CDBStatus, []byte) {
		t.Helper()
		table := *old
		table.Version++
		change(&table)
		pages, err := table.Pages()
		if err != nil {
			t.Fatal(err)
		}
		spoil(pages)
		for i, p := range pages {
			b.put(tableAt(uint8(i)), p[:64]...)
			b.put(cmis.Address{Page: ocst.PageTable, Bank: uint8(i), Offset: 192}, p[64:]...)
		}
		return b.cdb(ocst.CDBLoadTable, byte(len(pages)))
	}
	keep, whole := func(*ocst.Table) {}, func([][]byte) {}
	b.unlock()
	if status, reply := load(keep, whole); status != cmis.CDBFailed || ocst.Fault(reply[0]) != ocst.FaultNotAllowed {
		t.Errorf("outside of State Cal: %v, % x", status, reply)
	}
	b.calibrate()
	for name, c := range map[string]struct {
		change func(*ocst.Table)
		spoil  func([][]byte)
	}{
		"of another module": {func(t *ocst.Table) { t.Serial = "X" }, whole},
		"not verified":      {func(t *ocst.Table) { t.Verified.Pass = false }, whole},
		"expired":           {func(t *ocst.Table) { t.Expires = testWall().Add(-time.Hour) }, whole},
		"damaged":           {keep, func(p [][]byte) { p[7][100] ^= 1 }},
		"in wrong order":    {keep, func(p [][]byte) { p[1], p[2] = p[2], p[1] }},
	} {
		status, reply := load(c.change, c.spoil)
		if status != cmis.CDBFailed || ocst.Fault(reply[0]) != ocst.FaultTable || b.takeFlags()&ocst.FlagTable == 0 {
			t.Errorf("a table %s: %v, % x, want refused", name, status, reply)
		}
		if b.table.Version != old.Version || !bytes.Equal(b.get(tableAt(3), 128), b.stored[3]) {
			t.Errorf("a table %s has replaced the old one", name)
		}
	}
	if status, reply := load(keep, whole); status != cmis.CDBSuccess || ocst.Fault(reply[0]) != ocst.NoFault {
		t.Errorf("a good table: %v, % x", status, reply)
	}
	b.BrownOut()
	b.clock.Advance(11 * time.Millisecond)
	b.wantState(ocst.StateReady)
	if b.table.Version != old.Version+1 {
		t.Errorf("version %d after a restart, want %d", b.table.Version, old.Version+1)
	}
	b.switchTo(ocst.Path1, 0xff)
}

// TestFirstTable ensures that a module without a table is at work once it has one.
func TestFirstTable(t *testing.T) {
	t.Parallel()
	pages := readyBench(t, 37).stored
	b := newBench(t, Options{Seed: 37, Table: TableNone})
	b.clock.Advance(20 * time.Millisecond)
	b.unlock()
	for i, p := range pages {
		b.put(tableAt(uint8(i)), p...)
	}
	if status, _ := b.cdb(ocst.CDBLoadTable, byte(len(pages))); status != cmis.CDBSuccess {
		t.Fatalf("loading: %v", status)
	}
	b.wantState(ocst.StateWarmUp)
	b.clock.Advance(10 * time.Millisecond)
	b.switchTo(ocst.LoopPath, 0xff)
}

// TestNoPage ensures that pages and banks that are not there, and reads that make no sense,
// are errors.
func TestNoPage(t *testing.T) {
	t.Parallel()
	b := readyBench(t, 38)
	for _, a := range []cmis.Address{{Page: 0x20, Offset: 128}, {Page: ocst.PageControl, Bank: 1, Offset: 128}, {Page: ocst.PageTable, Bank: 64, Offset: 128}, {Page: ocst.PageHeaters, Bank: 2, Offset: 128}, {Page: ocst.PageScope, Bank: 3, Offset: 128}} {
		if err := b.Read(context.Background(), a, make([]byte, 1)); !errors.Is(err, cmis.ErrNoPage) {
			t.Errorf("reading %v: %v", a, err)
		}
		if err := b.Write(context.Background(), a, make([]byte, 1)); !errors.Is(err, cmis.ErrNoPage) {
			t.Errorf("writing %v: %v", a, err)
		}
	}
	for _, a := range []cmis.Address{{Offset: 127}, {Page: 1, Offset: 5}, {Page: 0xb0, Offset: 255}} {
		if err := b.Read(context.Background(), a, make([]byte, 2)); err == nil {
			t.Errorf("reading two bytes at %v: no error", a)
		}
	}
}
