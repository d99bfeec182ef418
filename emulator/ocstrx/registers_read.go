package ocstrx

import (
	"encoding/binary"
	"math"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// read brings what the host reads up to date, and then gives it to the host.
func (m *Module) read(a cmis.Address, buf []byte) error {
	if err := a.Check(len(buf)); err != nil {
		return err
	}
	if a.Offset < pageSize {
		m.fillLower()
	} else if m.store.Has(a.Bank, a.Page) {
		m.touch(a)
		m.fill(a, len(buf))
	}
	return m.store.Read(a, buf)
}

// fill brings a page up to date, or the part of it that n bytes at a show.
func (m *Module) fill(a cmis.Address, n int) {
	switch a.Page {
	case 0x11:
		m.fillLanes()
	case ocst.PageControl:
		m.fillControl(int(a.Offset)+n > ocst.RegOut1)
	case ocst.PageMonitors:
		r := m.measure()
		p := m.store.Bytes(cmis.Address{Page: ocst.PageMonitors, Offset: 128}, 2*ocst.Lanes*(ocst.Photodiodes-1))
		for array := ocst.PDOut2; array < ocst.Photodiodes; array++ {
			put16(p[2*ocst.Lanes*(array-1):], r[array][:])
		}
	case ocst.PageElements:
		m.fillElements(a.Bank)
	case ocst.PageLog:
		banks := ocst.EncodeLog(m.log)
		copy(m.store.Bytes(cmis.Address{Page: a.Page, Bank: a.Bank, Offset: 128}, pageSize), banks[a.Bank])
	case ocst.PageHeaters:
		m.fillHeaters()
	case ocst.PageCurrents:
		p := m.store.Bytes(cmis.Address{Page: a.Page, Bank: a.Bank, Offset: 128}, 2*ocst.Elements)
		for e := range ocst.Elements {
			if reg := 128 + 2*e; reg+1 >= int(a.Offset) && reg < int(a.Offset)+n {
				amps := m.chip.current(m.now, ocst.Element(e), int(a.Bank))
				binary.BigEndian.PutUint16(p[2*e:], fixed(amps, 1e-6))
			}
		}
	case ocst.PageScope:
		copy(m.store.Bytes(scopeAt(a.Bank, 128), pageSize), m.capture.read(int(a.Bank)).Encode())
	}
}

func put16(p []byte, list []uint16) {
	for i, v := range list {
		binary.BigEndian.PutUint16(p[2*i:], v)
	}
}

// measure reads all photodiodes. Outside of calibration what they give in the dark, by the
// table, is taken off.
func (m *Module) measure() readings {
	r := m.chip.read(m.now)
	if m.state == ocst.StateCal || m.table == nil {
		return r
	}
	for array := range r {
		for lane, v := range r[array] {
			r[array][lane] = v - min(v, m.table.Dark[array][lane])
		}
	}
	return r
}

func (m *Module) fillControl(powers bool) {
	paths := m.pathsNow()
	s := ocst.Status{
		State: m.stateNow(), Path: pathOf(&paths, 0), Staged: ocst.Path(m.control8(ocst.RegStaged)), Mask: m.control8(ocst.RegMask),
		Result: m.result, Sequence: m.sequence, Duration: m.duration, Switches: m.switches,
	}
	timeout := m.control16(ocst.RegTimeout)
	p := m.store.Bytes(ocst.StatusSpan.Address, ocst.StatusSpan.Length)
	copy(p, s.Encode())
	binary.BigEndian.PutUint16(p[ocst.RegTimeout-ocst.RegState:], timeout)
	p[ocst.RegCommit-ocst.RegState] = 0

	l := ocst.LaneStatus{
		Path: paths, Loop: m.loop, Next: m.stagedLoop(), Fault: m.fault, FaultAt: m.faultAt,
		Control: m.control8(ocst.RegControl), State: s.State,
	}
	for lane := range l.Lock {
		l.Lock[lane] = m.hearing.lock(lane)
	}
	copy(m.store.Bytes(ocst.LanesSpan.Address, ocst.LanesSpan.Length), l.Encode())
	if powers {
		r := m.measure()
		put16(m.store.Bytes(ocst.At(ocst.RegOut1), 2*ocst.Lanes), r[ocst.PDOut1][:])
	}
}

// pathsNow is where the light of the lanes goes: nowhere for those that are being switched.
func (m *Module) pathsNow() [ocst.Lanes]ocst.Path {
	paths := m.path
	if m.run != nil {
		for lane := range paths {
			if m.run.lanes>>lane&1 != 0 {
				paths[lane] = ocst.Dark
			}
		}
	}
	return paths
}

// fillElements shows the settings of elements; without a table there are none, and the CRC is
// that of nothing.
func (m *Module) fillElements(bank uint8) {
	var list [ocst.Elements]ocst.Setting
	defer func() {
		banks := ocst.EncodeSettings(list)
		copy(m.store.Bytes(cmis.Address{Page: ocst.PageElements, Bank: bank, Offset: 128}, pageSize), banks[bank])
	}()
	if m.table == nil {
		return
	}
	celsius := m.chip.temperature(m.now)
	next := &m.table.Points[0]
	for i := range m.table.Points {
		if q := &m.table.Points[i]; math.Abs(q.Celsius-celsius) < math.Abs(next.Celsius-celsius) {
			next = q
		}
	}
	for e := range list {
		f := &next.Elements[e]
		list[e] = ocst.Setting{Bar: f.Bar, Cross: f.Cross, Phase0: f.Phase0, PowerPi: m.powerPi(f.A), Extinction: min(f.BarER, f.CrossER)}
	}
}

// powerPi is the power in W that gives π, at the nominal resistance.
func (m *Module) powerPi(a ocst.Arm) float64 {
	volts, _ := a.Volts(math.Pi)
	return volts * volts / m.p.Resistance
}

func (m *Module) fillHeaters() {
	if !m.session {
		var codes [2][ocst.Elements]uint16
		for e, d := range m.drives {
			code, armB := d.Code()
			codes[armNumber(armB)][e] = code
		}
		for arm := range codes {
			put16(m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Bank: uint8(arm), Offset: ocst.RegCodes}, 2*ocst.Elements), codes[arm][:])
		}
	}
	p := m.store.Bytes(cmis.Address{Page: ocst.PageHeaters, Offset: ocst.RegLit}, 4)
	p[0], p[1] = m.lit, 0
	if m.laser {
		p[1] = 1
	}
	binary.BigEndian.PutUint16(p[2:], fixed(m.chip.heaterPower(m.now), 1e-4))
}
