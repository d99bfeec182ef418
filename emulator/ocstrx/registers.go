package ocstrx

import (
	"encoding/binary"
	"math"
	"time"

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
	clear(m.store.Bytes(cmis.Address{Page: cmis.ControlPage, Offset: 128}, pageSize))
	clear(m.store.Bytes(cmis.Address{Page: 0x11, Offset: 128}, pageSize))
	clear(m.store.Bytes(cdbPage, pageSize))
	clear(m.store.Bytes(cmis.Address{Offset: cmis.RegPassword}, 4))
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
	p := m.store.Bytes(cmis.LaneControlSpan.Address, cmis.LaneControlSpan.Length)
	return p[0] | p[cmis.RegTxDisable-cmis.RegDPDeinit]
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
	wavelength = 1310 // nm, with the tolerance of that window
	tolerance  = 6.5
	supplyV    = 3.3
)

// capabilities are what every module can do.
const capabilities = ocst.CanLanes | ocst.CanPermute | ocst.CanArm | ocst.CanTrim | ocst.CanHeaters | ocst.CanCapture

// writeIdentity fills what never changes. A serial number that cannot be written is left out,
// as all of page 00h then.
func (m *Module) writeIdentity() {
	put := func(page, offset uint8, b ...byte) {
		copy(m.store.Bytes(cmis.Address{Page: page, Offset: offset}, len(b)), b)
	}
	put(0, cmis.RegIdentifier, byte(cmis.QSFPDD), byte(cmis.Revision52))
	put(0, cmis.RegFirmware, firmware>>8, firmware&0xff)
	put(0, 85, 0x02) // optical, single mode (CMIS table 8-16)
	product := cmis.Product{
		Identifier: cmis.QSFPDD, Vendor: vendorName, PartNumber: partNumber, Serial: m.serial, Revision: "1", Date: "260101",
		PowerClass: powerClass, MaxPower: maxPower, Technology: cmis.DFB1310,
	}
	if page, err := product.Encode(); err == nil {
		put(0, 128, page...)
	}
	can := cmis.Advertising{
		Wavelength: wavelength, Tolerance: tolerance, Banks: 1, Controls: cmis.CanDisableTx,
		Monitors: cmis.HasTemperature | cmis.HasVcc | cmis.HasCustom | cmis.HasTxBias | cmis.HasTxPower | cmis.HasRxPower,
		// A command may be a switch, and wait for as long as the settle timeout can be.
		CDB: cmis.CDBSupport{Instances: 1, Background: true, MaxWrite: pageSize, OnStop: true, MaxBusy: 80 * time.Millisecond},
	}
	if page, err := can.Encode(); err == nil {
		put(1, 128, page...)
	}

	put(ocst.PageControl, ocst.RegMagic, []byte(ocst.Magic)...)
	put(ocst.PageControl, ocst.RegVersion, ocst.MapVersion, byte(capabilities))
}

func scopeAt(bank, offset uint8) cmis.Address {
	return cmis.Address{Page: ocst.PageScope, Bank: bank, Offset: offset}
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
	case cmis.ControlPage:
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
	if covers(a, len(data), cdbPage.Offset) && covers(a, len(data), cdbPage.Offset+1) { // the id
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
