package ocstrx

import (
	"encoding/binary"
	"slices"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// biasUnits is the laser bias that lanes show, in units of 2 µA: one laser feeds all of
// them, and this is its share.
const biasUnits = 30000

// Flags of page 11h.
const (
	regLaneFlags  = 134
	laneFlagBytes = 20

	regRxLOS = 147
	regRxLOL = 148
)

// fillLower brings the lower memory up to date.
func (m *Module) fillLower() {
	m.latchLanes()
	p := m.store.Bytes(cmis.Address{}, pageSize)
	flags, _ := cmis.DecodeModuleFlags(p[cmis.RegModuleFlags:cmis.RegTemperature])
	lanes := slices.ContainsFunc(m.laneFlags(), func(b byte) bool { return b != 0 })
	s := cmis.ModuleStatus{
		State: cmisState(m.state), Interrupt: m.interrupt(flags), LaneFlags: lanes, Flags: flags,
		Celsius: m.chip.temperature(m.now), Volts: supplyV,
		// The vendor's monitor is the power that the module takes, in mW.
		Custom: fixed(m.chip.power(m.now), 1e-3),
	}
	copy(p[cmis.RegModuleState:], s.Encode())
	p[cmis.RegCDBStatus] = byte(m.cdb.status)
	p[cmis.RegFaultCause] = byte(m.faultCause())
}

// faultCause is why the module is in fault: as CMIS calls it, or the vendor's code.
func (m *Module) faultCause() cmis.FaultCause {
	switch {
	case m.state != ocst.StateFault:
		return cmis.NoFault
	case m.fault == ocst.FaultHot:
		return cmis.TemperatureFault
	case m.fault == ocst.FaultLaser:
		return cmis.TransmitterFault
	}
	return vendorFault + cmis.FaultCause(m.fault)
}

const vendorFault cmis.FaultCause = 32

// interrupt reports whether a flag is set that the host has not masked.
func (m *Module) interrupt(flags cmis.ModuleFlags) bool {
	masks, _ := cmis.DecodeModuleFlags(m.store.Bytes(cmis.Address{Offset: cmis.RegModuleMasks}, 6))
	if flags&^masks != 0 {
		return true
	}
	if m.control8(ocst.RegFlags)&^m.control8(ocst.RegFlagMask) != 0 {
		return true
	}
	masked := m.store.Bytes(cmis.Address{Page: cmis.ControlPage, Offset: cmis.RegLaneMasks}, laneFlagBytes)
	for i, b := range m.laneFlags() {
		if b&^masked[i] != 0 {
			return true
		}
	}
	return false
}

// laneFlags are the latched flags of lanes.
func (m *Module) laneFlags() []byte {
	return m.store.Bytes(cmis.Address{Page: 0x11, Offset: regLaneFlags}, laneFlagBytes)
}

// latchLanes latches the flags of lanes that are so now: no light at the receiver, or none
// that its clock can be recovered of. What a cable has brought of that since the last time is
// latched, too.
func (m *Module) latchLanes() {
	if m.state == ocst.StateReset || m.state == ocst.StateLowPower {
		return
	}
	los, lol := m.hearing.los, m.hearing.lol
	m.hearing.los, m.hearing.lol = 0, 0
	for lane := range ocst.Lanes {
		switch m.hearing.lock(lane) {
		case ocst.NoLight:
			los |= 1 << lane
		case ocst.Acquiring:
			lol |= 1 << lane
		}
	}
	m.store.Bytes(cmis.Address{Page: 0x11, Offset: regRxLOS}, 1)[0] |= los
	m.store.Bytes(cmis.Address{Page: 0x11, Offset: regRxLOL}, 1)[0] |= los | lol
}

// fillLanes brings page 11h up to date.
func (m *Module) fillLanes() {
	m.latchLanes()
	r := m.measure()
	p := m.store.Bytes(cmis.Address{Page: 0x11, Offset: 128}, pageSize)
	clear(p[:4])
	p[132-128], p[133-128] = 0, m.bright()
	for lane := range ocst.Lanes {
		p[lane/2] |= byte(m.dataPath(lane)) << (lane % 2 * 4)
		if m.hearing.lock(lane) != ocst.NoLight {
			p[132-128] |= 1 << lane
		}
		bias, rx := 0, uint16(0)
		if m.laser {
			bias = biasUnits
		}
		if s := m.listensTo(lane); s != 0 {
			rx = r[s.array()][lane]
		}
		binary.BigEndian.PutUint16(p[154-128+2*lane:], r[ocst.PDLaunched][lane])
		binary.BigEndian.PutUint16(p[170-128+2*lane:], uint16(bias))
		binary.BigEndian.PutUint16(p[186-128+2*lane:], rx)
	}
}

// dataPath is what CMIS calls the state of a lane.
func (m *Module) dataPath(lane int) cmis.DataPathState {
	deinit := m.store.Bytes(cmis.Address{Page: cmis.ControlPage, Offset: cmis.RegDPDeinit}, 1)[0]
	switch {
	case m.state != ocst.StateReady || deinit>>lane&1 != 0:
		return cmis.DataPathDeactivated
	case m.run != nil && m.run.lanes>>lane&1 != 0:
		return cmis.DataPathTxTurnOn
	case m.bright()>>lane&1 != 0:
		return cmis.DataPathActivated
	}
	return cmis.DataPathInitialized
}

// source is what a receiver listens to; 0 is nothing.
type source uint8

const (
	fromFibre1 source = iota + 1
	fromFibre2
	fromLoop
)

// array is the photodiodes that the source is seen by.
func (s source) array() int {
	switch s {
	case fromFibre2:
		return ocst.PDRx2
	case fromLoop:
		return ocst.PDRxLoop
	}
	return ocst.PDRx1
}

// listensTo is what the receiver of a lane is switched to: the fibre that the lane is on,
// or the loop if a lane on it is taken there.
func (m *Module) listensTo(lane int) source {
	switch m.path[lane] {
	case ocst.Path1:
		return fromFibre1
	case ocst.Path2:
		return fromFibre2
	case ocst.LoopPath:
		return fromLoop
	}
	for from, to := range m.loop {
		if int(to) == lane && m.path[from] == ocst.LoopPath {
			return fromLoop
		}
	}
	return 0
}

// muted are the lanes whose receivers hear nothing while a switch is under way: those that
// are switched, and those that the loop took them to.
func (m *Module) muted() uint8 {
	lanes := m.run.lanes
	for from, to := range m.loop {
		if m.run.lanes>>from&1 != 0 && m.run.from[from] == ocst.LoopPath {
			lanes |= 1 << to
		}
	}
	return lanes
}
