package ocstrx

import (
	"encoding/binary"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// cdb is how the command block goes.
type cdb struct {
	status  cmis.CDBStatus
	waiting bool // for the end of a switch
}

// cdbPage is where commands are.
var cdbPage = cmis.Address{Page: cmis.CDBPage, Offset: 128}

// cdbWritten takes a command that has been written.
func (m *Module) cdbWritten() {
	page := m.store.Bytes(cdbPage, pageSize)
	page[6], page[7] = 0, 0
	if epl, lpl := binary.BigEndian.Uint16(page[2:]), page[4]; epl != 0 || lpl > cmis.CDBMaxPayload {
		m.cdbReply(cmis.CDBParameter, nil) // there are no pages for an extended payload
		return
	}
	command, payload, ok := cmis.DecodeCDB(page)
	if !ok {
		m.cdbReply(cmis.CDBCheckCode, nil)
		return
	}
	status, reply := m.command(command, payload)
	m.cdbReply(status, reply)
}

// cdbReply ends a command, or says that it goes on.
func (m *Module) cdbReply(status cmis.CDBStatus, reply []byte) {
	m.cdb.status = status
	cmis.EncodeCDBReply(m.store.Bytes(cdbPage, pageSize), reply)
	if !status.Busy() {
		m.moduleFlag(cmis.CDBComplete1)
	}
}

// cdbSwitched ends the command that has begun a switch.
func (m *Module) cdbSwitched() {
	if m.cdb.waiting {
		m.cdb.waiting = false
		m.cdbReply(m.switchReply())
	}
}

// switchReply is the reply to what switches: result and sequence number.
func (m *Module) switchReply() (cmis.CDBStatus, []byte) {
	reply := binary.BigEndian.AppendUint32([]byte{byte(m.result)}, m.sequence)
	if m.result != ocst.NoFault {
		return cmis.CDBFailed, reply
	}
	return cmis.CDBSuccess, reply
}

// command does a command.
func (m *Module) command(command uint16, payload []byte) (cmis.CDBStatus, []byte) {
	protected := false
	length := -1
	switch command {
	case ocst.CDBSwitch:
		length = 3
	case ocst.CDBCalibrate:
		length, protected = 1, true
	case ocst.CDBReadTable:
		length = 3
	case ocst.CDBVerification:
		length = 0
	case ocst.CDBHeaterTest:
		length, protected = 0, true
	case ocst.CDBPermute:
		length = ocst.Lanes
	case ocst.CDBLoadTable:
		length, protected = 1, true
	}
	switch {
	case length < 0:
		return cmis.CDBUnknown, nil
	case len(payload) != length:
		return cmis.CDBParameter, nil
	case protected && !m.password:
		return cmis.CDBPassword, nil
	case m.run != nil:
		m.refuse(ocst.FaultBusy)
		return m.switchReply()
	}
	switch command {
	case ocst.CDBSwitch:
		return m.cdbSwitch(ocst.Path(payload[0]), payload[1], ocst.Commit(payload[2]))
	case ocst.CDBCalibrate:
		return m.cdbCalibrate(payload[0])
	case ocst.CDBReadTable:
		return m.cdbReadTable(payload[0], int(payload[1]), int(payload[2]))
	case ocst.CDBVerification:
		if m.table == nil {
			return cmis.CDBFailed, []byte{byte(ocst.FaultTable)}
		}
		return cmis.CDBSuccess, m.table.Verified.Encode()
	case ocst.CDBHeaterTest:
		return m.cdbHeaterTest()
	case ocst.CDBPermute:
		return m.cdbPermute(ocst.Permutation(payload))
	}
	return m.loadTable(int(payload[0]))
}

// cdbSwitch stages and commits at once.
func (m *Module) cdbSwitch(path ocst.Path, lanes uint8, c ocst.Commit) (cmis.CDBStatus, []byte) {
	m.setControl8(ocst.RegStaged, uint8(path))
	m.setControl8(ocst.RegMask, lanes)
	m.commit(c)
	return m.switching()
}

// switching is the reply to a command that may have begun a switch.
func (m *Module) switching() (cmis.CDBStatus, []byte) {
	if m.run != nil {
		m.cdb.waiting = true
		return cmis.CDBExecuting, nil
	}
	return m.switchReply()
}

// cdbPermute moves the loop, and with it the lanes that are on it.
func (m *Module) cdbPermute(p ocst.Permutation) (cmis.CDBStatus, []byte) {
	if p.Check() != nil {
		m.refuse(ocst.FaultStage)
		return cmis.CDBParameter, []byte{byte(m.result)}
	}
	if m.state != ocst.StateReady || m.armed != 0 {
		m.refuse(ocst.FaultNotAllowed)
		return m.switchReply()
	}
	m.stageLoop(p)
	m.start(order{path: m.path, loop: p})
	return m.switching()
}

// cdbCalibrate enters and leaves State Cal.
func (m *Module) cdbCalibrate(enter byte) (cmis.CDBStatus, []byte) {
	switch {
	case enter > 1:
		return cmis.CDBParameter, nil
	case enter == 1 && m.session:
		m.refuse(ocst.FaultBusy) // the heaters are somebody's
		return cmis.CDBFailed, []byte{byte(m.result)}
	case enter == 1 && (m.state == ocst.StateReady || m.state == ocst.StateCal):
		m.beginSession()
	case enter == 0 && m.session:
		m.endSession()
	case enter == 0 && m.state == ocst.StateCal:
	default:
		m.refuse(ocst.FaultNotAllowed)
		return cmis.CDBFailed, []byte{byte(m.result)}
	}
	return cmis.CDBSuccess, nil
}

func (m *Module) cdbReadTable(bank byte, offset, n int) (cmis.CDBStatus, []byte) {
	if int(bank) >= ocst.TableBanks || n < 1 || n > cmis.CDBMaxPayload || offset+n > pageSize {
		return cmis.CDBParameter, nil
	}
	page := m.store.Bytes(tableAt(bank), pageSize)
	return cmis.CDBSuccess, append([]byte(nil), page[offset:offset+n]...)
}

// testVolts is what heaters are tested with: enough to measure, too little to warm anything
// in the microseconds that a measurement takes.
const testVolts = 1.0

// cdbHeaterTest measures the current of each heater.
func (m *Module) cdbHeaterTest() (cmis.CDBStatus, []byte) {
	if m.bright() != 0 || m.state != ocst.StateReady && m.state != ocst.StateCal {
		m.refuse(ocst.FaultNotAllowed)
		return cmis.CDBFailed, []byte{byte(m.result)}
	}
	drives, direct := m.drives, m.codes()
	var opens, shorts [(2*ocst.Elements + 7) / 8]byte
	m.heatersOff()
	for e := range ocst.Element(ocst.Elements) {
		for arm := range 2 {
			m.chip.setDirect(m.now, e, arm, testVolts)
			n := 2*int(e) + arm
			switch heaterState(testVolts, m.chip.current(m.now, e, arm), m.p.Resistance) {
			case ocst.FaultOpen:
				opens[n/8] |= 1 << (n % 8)
			case ocst.FaultShort:
				shorts[n/8] |= 1 << (n % 8)
			}
			m.chip.setDirect(m.now, e, arm, 0)
		}
	}
	if m.session {
		m.driveCodes(&direct)
	} else {
		m.apply(&drives)
	}
	return cmis.CDBSuccess, append(opens[:], shorts[:]...)
}
