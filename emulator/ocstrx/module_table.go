package ocstrx

import (
	"bytes"
	"encoding/binary"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// pageSize is that of an upper page.
const pageSize = 128

func tableAt(bank uint8) cmis.Address {
	return cmis.Address{Page: ocst.PageTable, Bank: bank, Offset: 128}
}

// storedTable returns the table that is kept, nil if the module may not use it, and shows
// its pages as they are.
func (m *Module) storedTable() *ocst.Table {
	for bank := range uint8(ocst.TableBanks) {
		p := m.store.Bytes(tableAt(bank), pageSize)
		clear(p)
		if int(bank) < len(m.stored) {
			copy(p, m.stored[bank])
		}
	}
	t, err := m.usable(m.stored)
	if err != nil {
		return nil
	}
	return t
}

// usable takes a table apart, and returns an error unless this module may use it now.
func (m *Module) usable(pages [][]byte) (*ocst.Table, error) {
	t, err := ocst.ParsePages(pages)
	if err != nil {
		return nil, err
	}
	return t, t.Usable(m.serial, m.wall())
}

// stage keeps what was written to page B7h.
func (m *Module) stage(a cmis.Address, data []byte) {
	if m.staged == nil {
		m.staged = make(map[uint8]*[pageSize]byte)
	}
	p := m.staged[a.Bank]
	if p == nil {
		p = new([pageSize]byte)
		m.staged[a.Bank] = p
	}
	copy(p[a.Offset-pageSize:], data)
}

// loadTable is CDB command 8007h: what was staged becomes the table, if it may.
func (m *Module) loadTable(pages int) (cmis.CDBStatus, []byte) {
	if m.state != ocst.StateCal {
		m.refuse(ocst.FaultNotAllowed)
		return cmis.CDBFailed, []byte{byte(m.result)}
	}
	if pages < 1 || pages > ocst.TableBanks {
		return cmis.CDBParameter, nil
	}
	list := make([][]byte, pages)
	for i := range list {
		list[i] = make([]byte, pageSize)
		if p := m.staged[uint8(i)]; p != nil {
			copy(list[i], p[:])
		}
	}
	t, err := m.usable(list)
	if err != nil {
		m.result = ocst.FaultTable
		m.flag(ocst.FlagTable)
		return cmis.CDBFailed, []byte{byte(m.result)}
	}
	m.stored, m.staged = list, nil
	m.storedTable()
	m.table = t
	m.result = ocst.NoFault
	if m.fault == ocst.FaultTable {
		m.fault = ocst.NoFault
	}
	if !m.session {
		m.warmUp()
	}
	return cmis.CDBSuccess, []byte{byte(m.result)}
}

// beginSession begins calibration: all heaters off, the laser on, every lane dark.
func (m *Module) beginSession() {
	m.quiet()
	m.setLaser(true)
	m.until = noEvent
	m.setState(ocst.StateCal)
	m.session = true
	m.calUntil = m.now + ocst.CalTimeout
	m.trackSoon()
	for bank := range uint8(2) {
		clear(m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Bank: bank, Offset: ocst.RegCodes}, 2*ocst.Elements))
	}
	// A write of some of the page does what all of it says, so it must say what is.
	lit := m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegLit}, 2)
	lit[0], lit[1] = 0, 1
}

// endSession leaves calibration, by command or because the host is gone.
func (m *Module) endSession() {
	m.quiet()
	m.warmUp()
}

// codes are those of all heaters, arms A and B.
func (m *Module) codes() (codes [2][ocst.Elements]uint16) {
	for arm := range codes {
		p := m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Bank: uint8(arm), Offset: ocst.RegCodes}, 2*ocst.Elements)
		for e := range codes[arm] {
			codes[arm][e] = min(binary.BigEndian.Uint16(p[2*e:]), ocst.DACMax)
		}
	}
	return codes
}

// driveCodes drives all heaters as calibration wants them.
func (m *Module) driveCodes(codes *[2][ocst.Elements]uint16) {
	for arm := range codes {
		for e, code := range codes[arm] {
			m.chip.setDirect(m.now, ocst.Element(e), arm, ocst.Drive(code).Volts())
		}
	}
}

// heat takes a write to page B4h: all of it at once, or nothing of it.
func (m *Module) heat(a cmis.Address, data []byte) error {
	page := m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Bank: a.Bank, Offset: 128}, pageSize)
	if page == nil {
		return m.store.Write(a, data) // says why
	}
	if !m.session {
		m.refuse(ocst.FaultNotAllowed)
		return nil
	}
	before := bytes.Clone(page)
	if err := m.store.Write(a, data); err != nil {
		return err
	}
	m.heated()
	if m.chip.power(m.now) > maxPower {
		copy(page, before)
		m.heated()
		m.refuse(ocst.FaultPower)
		return nil
	}
	m.result = ocst.NoFault
	return nil
}

// heated does what page B4h says now.
func (m *Module) heated() {
	codes := m.codes()
	m.driveCodes(&codes)
	lit := m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegLit}, 2)
	m.lit = lit[0]
	m.shine()
	m.setLaser(lit[1] != 0)
}
