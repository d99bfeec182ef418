package ocstrx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// newStore returns the memory of a module: what CMIS has, and the vendor pages.
func newStore() *cmis.Store {
	return cmis.NewStore(append(cmis.Registers(), ocst.Registers()...))
}

// settleDefault is the settle timeout after a reset, in µs.
const settleDefault = 200

// clearRegisters sets what the host may write to what it is after a reset.
func (m *Module) clearRegisters() {
	m.store.Bytes(cmis.Address{Offset: cmis.RegGlobalControl}, 1)[0] = byte(cmis.LowPwrAllowRequestHW)
	clear(m.store.Bytes(cmis.Address{Offset: cmis.RegModuleFlags}, 6))
	clear(m.store.Bytes(cmis.Address{Offset: cmis.RegModuleMasks}, 6))
	clear(m.store.Bytes(cmis.Address{Page: 0x10, Offset: 128}, pageSize))
	clear(m.store.Bytes(cmis.Address{Page: 0x11, Offset: 128}, pageSize))
	clear(m.store.Bytes(cdbPage, pageSize))
	clear(m.store.Bytes(cmis.Address{Page: ocst.PageTrim, Offset: 128}, 2*ocst.Elements))
	m.setControl8(ocst.RegStaged, byte(ocst.Dark))
	m.setControl8(ocst.RegMask, 0xff)
	m.setControl8(ocst.RegFlags, 0)
	m.setControl8(ocst.RegFlagMask, 0)
	m.setControl8(ocst.RegControl, 0)
	binary.BigEndian.PutUint16(m.store.Bytes(ocst.At(ocst.RegTimeout), 2), settleDefault)
	m.stageLoop(m.loop)
	m.shine()
}

// Registers of page B0h that the module itself looks at or sets.
func (m *Module) control8(reg uint8) uint8       { return m.store.Bytes(ocst.At(reg), 1)[0] }
func (m *Module) setControl8(reg uint8, v uint8) { m.store.Bytes(ocst.At(reg), 1)[0] = v }
func (m *Module) control16(reg uint8) uint16 {
	return binary.BigEndian.Uint16(m.store.Bytes(ocst.At(reg), 2))
}

// flag latches flags.
func (m *Module) flag(f ocst.Flags) { m.store.Bytes(ocst.At(ocst.RegFlags), 1)[0] |= byte(f) }

// moduleFlag latches flags of the lower memory.
func (m *Module) moduleFlag(f cmis.ModuleFlags) {
	p := m.store.Bytes(cmis.Address{Offset: cmis.RegModuleFlags}, 6)
	for i := range p {
		p[i] |= byte(f >> (8 * i))
	}
}

// control is the global control register.
func (m *Module) control() cmis.GlobalControl {
	return cmis.GlobalControl(m.store.Bytes(cmis.Address{Offset: cmis.RegGlobalControl}, 1)[0])
}

// disabled are the lanes whose light the host has switched off, or whose data path it has
// taken down.
func (m *Module) disabled() uint8 {
	p := m.store.Bytes(cmis.Address{Page: 0x10, Offset: 128}, 3)
	return p[0] | p[2]
}

// stagedLoop is where the next switch is to take the lanes.
func (m *Module) stagedLoop() (p ocst.Permutation) {
	for lane, b := range m.store.Bytes(ocst.At(ocst.RegLoop), ocst.Lanes) {
		p[lane] = b & 0xf
	}
	return p
}

func (m *Module) stageLoop(p ocst.Permutation) {
	b := m.store.Bytes(ocst.At(ocst.RegLoop), ocst.Lanes)
	for lane := range b {
		b[lane] = p[lane]
	}
}

// Identity of the module.
const (
	vendorName = "OCSLAB"
	partNumber = "OCSTRX-8X112G"
	firmware   = 0x0100 // 1.0
	powerClass = 6
	quarters   = 4 // of a watt, the unit of the power register
	cband      = 0x04
	supplyV    = 3.3
)

// capabilities are what every module can do.
const capabilities = ocst.CanLanes | ocst.CanPermute | ocst.CanArm | ocst.CanTrim | ocst.CanHeaters | ocst.CanCapture

// writeIdentity fills what never changes.
func (m *Module) writeIdentity() {
	put := func(page, offset uint8, b ...byte) {
		copy(m.store.Bytes(cmis.Address{Page: page, Offset: offset}, len(b)), b)
	}
	text := func(page, offset uint8, n int, s string) { put(page, offset, fmt.Appendf(nil, "%-*.*s", n, n, s)...) }
	put(0, cmis.RegIdentifier, byte(cmis.QSFPDD), byte(cmis.Revision52))
	put(0, cmis.RegFirmware, firmware>>8, firmware&0xff)
	put(0, 85, 0x02) // optical, single mode (CMIS table 8-16)
	put(0, 128, byte(cmis.QSFPDD))
	text(0, 129, 16, vendorName)
	text(0, 148, 16, partNumber)
	text(0, 164, 2, "1")
	text(0, 166, 16, m.serial)
	text(0, 182, 8, "260101")
	put(0, 200, (powerClass-1)<<5, maxPower*quarters)
	put(0, 212, cband)
	page := m.store.Bytes(cmis.Address{Offset: 128}, pageSize)
	put(0, 222, sum(page[:222-128]))

	put(1, 142, 0x04) // pages 10h and 11h; bank 0 only
	put(1, 159, 0x03) // temperature and supply
	put(1, 160, 0x07) // bias, transmitted and received power
	put(1, 163, 0x40) // one CDB instance
	page = m.store.Bytes(cmis.Address{Page: 1, Offset: 128}, pageSize)
	put(1, 255, sum(page[2:127]))

	put(ocst.PageControl, ocst.RegMagic, []byte(ocst.Magic)...)
	put(ocst.PageControl, ocst.RegVersion, ocst.MapVersion, byte(capabilities))
	for bank := range uint8(outputs) {
		m.store.Bytes(scopeAt(bank, 129), 1)[0] = byte(captureTime.Microseconds())
	}
}

func scopeAt(bank, offset uint8) cmis.Address {
	return cmis.Address{Page: ocst.PageScope, Bank: bank, Offset: offset}
}

func sum(p []byte) (s byte) {
	for _, b := range p {
		s += b
	}
	return s
}

// write does what the host writes.
func (m *Module) write(a cmis.Address, data []byte) error {
	if err := a.Check(len(data)); err != nil {
		return err
	}
	if a.Offset >= pageSize && !m.store.Has(a.Bank, a.Page) {
		return m.store.Write(a, data) // says that there is no such page
	}
	m.touch(a)
	if a.Offset < pageSize {
		return m.writeLower(a, data)
	}
	switch a.Page {
	case 0x10:
		err := m.store.Write(a, data)
		m.shine()
		m.listen()
		return err
	case cmis.CDBPage:
		return m.writeCDB(a, data)
	case ocst.PageControl:
		return m.writeControl(a, data)
	case ocst.PageHeaters:
		return m.heat(a, data)
	case ocst.PageTrim:
		return m.writeTrim(a, data)
	case ocst.PageTable:
		if m.state != ocst.StateCal {
			m.refuse(ocst.FaultNotAllowed)
			return nil
		}
		m.stage(a, data)
		return nil
	case ocst.PageScope:
		return m.writeScope(a, data)
	}
	return m.store.Write(a, data)
}

// touch keeps a session of calibration alive.
func (m *Module) touch(a cmis.Address) {
	if m.session && a.Offset >= pageSize && a.Page >= ocst.PageHeaters && a.Page <= ocst.PageTable {
		m.calUntil = m.now + ocst.CalTimeout
	}
}

// covers reports whether n bytes at a have the register in them.
func covers(a cmis.Address, n int, reg uint8) bool {
	return reg >= a.Offset && int(reg) < int(a.Offset)+n
}

func (m *Module) writeLower(a cmis.Address, data []byte) error {
	before := m.control()
	if err := m.store.Write(a, data); err != nil {
		return err
	}
	if covers(a, len(data), cmis.RegPassword+3) {
		p := m.store.Bytes(cmis.Address{Offset: cmis.RegPassword}, 4)
		m.password = binary.BigEndian.Uint32(p) == ocst.HostPassword
	}
	after := m.control()
	low := after&cmis.LowPwrRequestSW != 0
	switch {
	case after&cmis.SoftwareReset != 0:
		m.softReset()
	case after == before:
	case low && m.state != ocst.StateReset && m.state != ocst.StateFault && m.state != ocst.StateLowPower:
		m.lowPower()
	case !low && m.state == ocst.StateLowPower:
		m.leaveLowPower()
	}
	return nil
}

func (m *Module) writeCDB(a cmis.Address, data []byte) error {
	if m.cdb.status.Busy() {
		return nil // the block belongs to the module until it is done
	}
	if err := m.store.Write(a, data); err != nil {
		return err
	}
	if a.Offset == cdbPage.Offset {
		m.cdbWritten()
	}
	return nil
}

func (m *Module) writeControl(a cmis.Address, data []byte) error {
	if err := m.store.Write(a, data); err != nil {
		return err
	}
	if covers(a, len(data), ocst.RegCommit) {
		m.setControl8(ocst.RegCommit, 0)
		m.commit(ocst.Commit(data[ocst.RegCommit-a.Offset]))
	}
	return nil
}

// trimUnit is that of the trim registers, rad.
const trimUnit = 1e-4

func (m *Module) writeTrim(a cmis.Address, data []byte) error {
	switch {
	case m.run != nil:
		m.refuse(ocst.FaultBusy)
		return nil
	case m.state != ocst.StateReady:
		m.refuse(ocst.FaultNotAllowed)
		return nil
	}
	if err := m.store.Write(a, data); err != nil {
		return err
	}
	p := m.store.Bytes(cmis.Address{Page: ocst.PageTrim, Offset: 128}, 2*ocst.Elements)
	for e := range m.trim {
		m.trim[e] = float64(int16(binary.BigEndian.Uint16(p[2*e:]))) * trimUnit
	}
	m.hold()
	return nil
}

func (m *Module) writeScope(a cmis.Address, data []byte) error {
	if err := m.store.Write(a, data); err != nil {
		return err
	}
	if lane := m.store.Bytes(scopeAt(a.Bank, 128), 1)[0]; lane < ocst.Lanes {
		m.capture.lane = lane
	}
	return nil
}

// fixed returns x in units, rounded, and within 16 bits.
func fixed(x, unit float64) uint16 {
	if !(x > 0) {
		return 0
	}
	return uint16(min(math.Round(x/unit), math.MaxUint16))
}
