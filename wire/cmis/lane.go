package cmis

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
)

// Power is an optical power as modules count it, in units of 0.1 µW, from 0 (no light that
// the module can tell from none) to 6.5535 mW, which also stands for all above. A module
// is usually accurate to ±3 dB, and repeats itself much better than that.
type Power uint16

// PowerOf returns the count nearest to a power in microwatts. What is below 0 or not a
// number counts as 0; what is too much is the largest count.
func PowerOf(microwatts float64) Power {
	if !(microwatts > 0) {
		return 0
	}
	return Power(min(math.Round(microwatts*10), math.MaxUint16))
}

// Microwatts returns the power in µW.
func (p Power) Microwatts() float64 { return float64(p) / 10 }

// Lane is what a module measures of one lane.
type Lane struct {
	Number           int // from 1
	RxPower, TxPower Power
	TxBias           float64 // laser bias in mA

	// Flags since they were last read: loss of the optical signal (Rx) or of the host's
	// electrical one (Tx), and clock recovery out of lock.
	RxLOS, TxLOS, RxLOL, TxLOL bool

	State DataPathState // of CMIS; 0 of SFF-8636
}

// ModuleState is the state of a CMIS module (OIF-CMIS-05.2, table 8-7).
type ModuleState uint8

const (
	ModuleLowPower ModuleState = iota + 1
	ModulePowerUp
	ModuleReady
	ModulePowerDown
	ModuleFault
)

// String is the state as the specification writes it.
func (s ModuleState) String() string {
	return stateName(uint8(s), "ModuleLowPwr", "ModulePwrUp", "ModuleReady", "ModulePwrDn", "ModuleFault")
}

// DataPathState is the state of the data path that a lane is part of (OIF-CMIS-05.2, table
// 8-79). Loss of received light does not change it.
type DataPathState uint8

const (
	DataPathDeactivated DataPathState = iota + 1
	DataPathInit
	DataPathDeinit
	DataPathActivated
	DataPathTxTurnOn
	DataPathTxTurnOff
	DataPathInitialized
)

// String is the state as the specification writes it.
func (s DataPathState) String() string {
	return stateName(uint8(s), "DPDeactivated", "DPInit", "DPDeinit", "DPActivated", "DPTxTurnOn", "DPTxTurnOff", "DPInitialized")
}

func stateName(n uint8, names ...string) string {
	if n >= 1 && int(n) <= len(names) {
		return names[n-1]
	}
	return fmt.Sprintf("reserved state %d", n)
}

// layout is where the lanes' values are, all within one half page.
type layout struct {
	page                       uint8
	lanes                      int
	first, end                 uint8 // of the monitors: [first, end)
	rxPower, txPower, txBias   uint8
	states                     uint8 // 0: there are none
	rxLOS, txLOS, rxLOL, txLOL flag
}

// flag is where the flag of lane 1 is.
type flag struct{ at, bit uint8 }

var layouts = map[Map]layout{
	SFF8636: {
		page: 0, lanes: 4, first: 3, end: 58, rxPower: 34, txBias: 42, txPower: 50,
		rxLOS: flag{3, 0}, txLOS: flag{3, 4}, rxLOL: flag{5, 0}, txLOL: flag{5, 4},
	},
	CMIS: {
		page: 0x11, lanes: 8, first: 128, end: 202, states: 128, txPower: 154, txBias: 170, rxPower: 186,
		rxLOS: flag{147, 0}, txLOS: flag{136, 0}, rxLOL: flag{148, 0}, txLOL: flag{137, 0},
	},
}

func (id Identity) layout() layout {
	m, _ := id.Identifier.Map()
	return layouts[m]
}

// RxPowerSpan returns the one read that gives the received power of all lanes and touches
// no flags: 00h:34 for 8 bytes, or 11h:186 for 16. It is empty for an identifier without
// a map.
func (id Identity) RxPowerSpan() Span {
	l := id.layout()
	return Span{Address{Page: l.page, Offset: l.rxPower}, 2 * l.lanes}
}

// MonitorSpan returns the one read that gives everything in [Lane]: 00h:3 for 55 bytes, or
// 11h:128 for 74. It clears flags.
func (id Identity) MonitorSpan() Span {
	l := id.layout()
	return Span{Address{Page: l.page, Offset: l.first}, int(l.end - l.first)}
}

// RxPower takes apart what RxPowerSpan gave: the received power of each lane that carries
// light, in order. Bytes that are all FFh match [ErrNoModule].
func (id Identity) RxPower(data []byte) ([]Power, error) {
	if err := checkData(id.RxPowerSpan(), data); err != nil {
		return nil, err
	}
	var out []Power
	for _, n := range id.lanes() {
		out = append(out, Power(binary.BigEndian.Uint16(data[2*(n-1):])))
	}
	return out, nil
}

// Monitors takes apart what MonitorSpan gave: the lanes that carry light, in order. Bytes
// that are all FFh match [ErrNoModule].
func (id Identity) Monitors(data []byte) ([]Lane, error) {
	if err := checkData(id.MonitorSpan(), data); err != nil {
		return nil, err
	}
	l := id.layout()
	count := func(at uint8, lane int) uint16 {
		return binary.BigEndian.Uint16(data[int(at-l.first)+2*(lane-1):])
	}
	set := func(f flag, lane int) bool { return data[f.at-l.first]>>(f.bit+uint8(lane-1))&1 != 0 }
	var out []Lane
	for _, n := range id.lanes() {
		lane := Lane{
			Number:  n,
			RxPower: Power(count(l.rxPower, n)),
			TxPower: Power(count(l.txPower, n)),
			TxBias:  float64(count(l.txBias, n)) * biasUnit * float64(id.biasScale()),
			RxLOS:   set(l.rxLOS, n), TxLOS: set(l.txLOS, n),
			RxLOL: set(l.rxLOL, n), TxLOL: set(l.txLOL, n),
		}
		if l.states != 0 {
			lane.State = DataPathState(data[int(l.states-l.first)+(n-1)/2] >> ((n - 1) % 2 * 4) & 0xf)
		}
		out = append(out, lane)
	}
	return out, nil
}

const biasUnit = 0.002 // mA

func (id Identity) biasScale() uint8 { return max(id.BiasScale, 1) }

func checkData(s Span, data []byte) error {
	switch {
	case s.Length == 0:
		return fmt.Errorf("the module is of no known kind")
	case len(data) != s.Length:
		return fmt.Errorf("module memory %v: %d bytes where %d belong", s.Address, len(data), s.Length)
	case len(bytes.Trim(data, "\xff")) == 0:
		return fmt.Errorf("module memory %v reads FFh: %w", s.Address, ErrNoModule)
	}
	return nil
}
