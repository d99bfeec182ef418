package cmis

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Registers of the lower memory of a CMIS module.
const (
	RegIdentifier    = 0
	RegRevision      = 1
	RegMemoryModel   = 2
	RegModuleState   = 3
	RegFlagsSummary  = 4
	RegModuleFlags   = 8 // six bytes of [ModuleFlags]
	RegTemperature   = 14
	RegVcc           = 16
	RegAux           = 18
	RegCustomMonitor = 24
	RegGlobalControl = 26
	RegModuleMasks   = 31 // six bytes of ModuleFlags: a set bit keeps that flag from raising the interrupt
	RegCDBStatus     = 37
	RegFirmware      = 39
	RegFaultCause    = 41
	RegPassword      = 122
)

// Revision is that of CMIS which a module follows: major in bits 7-4, minor in bits 3-0.
type Revision uint8

// Revision52 is CMIS 5.2.
const Revision52 Revision = 0x52

// String is the revision as people write it: "5.2".
func (r Revision) String() string { return fmt.Sprintf("%d.%d", r>>4, r&0xf) }

// GlobalControl are the controls of a whole module, [RegGlobalControl]. Bits 2-0 are left
// to vendors.
type GlobalControl uint8

const (
	SoftwareReset        GlobalControl = 1 << (3 + iota) // starts the module anew; it clears the bit itself
	LowPwrRequestSW                                      // go to low power, or stay there
	SquelchPav                                           // squelch lowers the average power, not the modulation
	LowPwrAllowRequestHW                                 // the signal LPMode counts too
	BankBroadcastEnable                                  // writes go to all banks of a page
)

// ModuleFlags are the latched flags of a whole module, 00h:8 to 13, and the masks of the
// interrupt, 00h:31 to 36: bit b of the k-th of the six bytes is 1 << (8*k + b).
type ModuleFlags uint64

// Flags of bytes 8 and 9. Those of the monitors Aux 1 to 3 and the vendor's own are in the
// next two, in the order of TempHighAlarm to TempLowWarning. Byte 13 is left to vendors.
const (
	ModuleStateChanged ModuleFlags = 1 << iota
	ModuleFirmwareError
	DataPathFirmwareError
	_
	_
	_
	CDBComplete1
	CDBComplete2
	TempHighAlarm
	TempLowAlarm
	TempHighWarning
	TempLowWarning
	VccHighAlarm
	VccLowAlarm
	VccHighWarning
	VccLowWarning
)

// CustomFlags returns the flags of byte 13, which are the vendor's.
func CustomFlags(b byte) ModuleFlags { return ModuleFlags(b) << 40 }

// Custom is the inverse of [CustomFlags].
func (f ModuleFlags) Custom() byte { return byte(f >> 40) }

const moduleFlagBytes = 6

// Encode writes the flags in six bytes.
func (f ModuleFlags) Encode() []byte {
	return binary.LittleEndian.AppendUint64(nil, uint64(f))[:moduleFlagBytes]
}

// DecodeModuleFlags is the inverse of [ModuleFlags.Encode].
func DecodeModuleFlags(p []byte) (ModuleFlags, error) {
	if len(p) != moduleFlagBytes {
		return 0, fmt.Errorf("module flags: %d bytes where %d belong", len(p), moduleFlagBytes)
	}
	var all [8]byte
	copy(all[:], p)
	return ModuleFlags(binary.LittleEndian.Uint64(all[:])), nil
}

// String lists the flags that are set, those without a name as "8.3", byte and bit, or says
// "none".
func (f ModuleFlags) String() string {
	names := [...]string{
		0: "state-changed", 1: "firmware-error", 2: "data-path-firmware-error", 6: "cdb-complete-1", 7: "cdb-complete-2",
		8: "temp-high-alarm", 9: "temp-low-alarm", 10: "temp-high-warning", 11: "temp-low-warning",
		12: "vcc-high-alarm", 13: "vcc-low-alarm", 14: "vcc-high-warning", 15: "vcc-low-warning",
	}
	var set []string
	for bit := range 8 * moduleFlagBytes {
		switch {
		case f>>bit&1 == 0:
		case bit < len(names) && names[bit] != "":
			set = append(set, names[bit])
		default:
			set = append(set, fmt.Sprintf("%d.%d", RegModuleFlags+bit/8, bit%8))
		}
	}
	if set == nil {
		return "none"
	}
	return strings.Join(set, ",")
}

// FaultCause is why a module is in state ModuleFault, [RegFaultCause]. From 32 to 63 it is
// the vendor's.
type FaultCause uint8

const (
	NoFault FaultCause = iota // or the module does not tell
	TECRunaway
	DataMemoryCorrupted
	ProgramMemoryCorrupted
	TransmitterFault
	ReceiverFault
	TemperatureFault
)

// String says the cause in a few words.
func (c FaultCause) String() string {
	names := [...]string{"no fault", "TEC runaway", "data memory corrupted", "program memory corrupted",
		"transmitter fault", "receiver fault", "temperature fault"}
	switch {
	case int(c) < len(names):
		return names[c]
	case c >= 32 && c < 64:
		return fmt.Sprintf("vendor's fault %d", uint8(c))
	}
	return fmt.Sprintf("reserved fault %d", uint8(c))
}

// ModuleStatus is what a CMIS module says of itself as a whole.
type ModuleStatus struct {
	State     ModuleState
	Interrupt bool // it asserts its interrupt signal
	LaneFlags bool // a flag of page 11h, bank 0, is set
	Flags     ModuleFlags
	Celsius   float64   // of the case, in steps of 1/256, ±128
	Volts     float64   // of the supply, in steps of 100 µV, 0 to 6.5535
	Aux       [3]uint16 // raw: what they are is in 01h:145
	Custom    uint16    // raw: the vendor's
}

// ModuleStatusSpan is the read that [DecodeModuleStatus] wants. It clears flags.
var ModuleStatusSpan = Span{Address{Offset: RegModuleState}, RegGlobalControl - RegModuleState}

// TemperatureSpan is the read that [DecodeTemperature] wants. It clears no flag.
var TemperatureSpan = Span{Address{Offset: RegTemperature}, 2}

// DecodeTemperature returns the °C of two bytes at 00h:14.
func DecodeTemperature(p []byte) (celsius float64, err error) {
	if len(p) != TemperatureSpan.Length {
		return 0, fmt.Errorf("temperature of a module: %d bytes where %d belong", len(p), TemperatureSpan.Length)
	}
	return float64(int16(binary.BigEndian.Uint16(p))) / 256, nil
}

// EncodeTemperature is the inverse of [DecodeTemperature]; what does not fit is cut off at
// the largest, and what is not a number is 0.
func EncodeTemperature(celsius float64) []byte {
	n := math.Round(min(max(celsius*256, math.MinInt16), math.MaxInt16))
	if math.IsNaN(n) {
		n = 0
	}
	return binary.BigEndian.AppendUint16(nil, uint16(int16(n)))
}

// DecodeModuleStatus takes apart what ModuleStatusSpan gave. Bytes that are all FFh match
// [ErrNoModule].
func DecodeModuleStatus(p []byte) (ModuleStatus, error) {
	if err := checkData(ModuleStatusSpan, p); err != nil {
		return ModuleStatus{}, err
	}
	at := func(reg, n int) []byte { return p[reg-RegModuleState:][:n] }
	number := func(reg int) uint16 { return binary.BigEndian.Uint16(at(reg, 2)) }
	s := ModuleStatus{
		State: ModuleState(p[0] >> 1 & 7), Interrupt: p[0]&1 == 0, LaneFlags: at(RegFlagsSummary, 1)[0]&1 != 0,
		Celsius: float64(int16(number(RegTemperature))) / 256, Volts: float64(number(RegVcc)) * 1e-4,
		Custom: number(RegCustomMonitor),
	}
	for i := range s.Aux {
		s.Aux[i] = number(RegAux + 2*i)
	}
	s.Flags, _ = DecodeModuleFlags(at(RegModuleFlags, moduleFlagBytes))
	return s, nil
}

// Encode is the inverse of [DecodeModuleStatus]; what does not fit is cut off at the
// largest.
func (s ModuleStatus) Encode() []byte {
	p := make([]byte, ModuleStatusSpan.Length)
	at := func(reg int) []byte { return p[reg-RegModuleState:] }
	p[0] = byte(s.State&7) << 1
	if !s.Interrupt {
		p[0] |= 1
	}
	if s.LaneFlags {
		at(RegFlagsSummary)[0] = 1
	}
	copy(at(RegModuleFlags), s.Flags.Encode())
	copy(at(RegTemperature), EncodeTemperature(s.Celsius))
	// A count of 0.1 is one of 100 µV as far as rounding and limits go.
	binary.BigEndian.PutUint16(at(RegVcc), uint16(PowerOf(s.Volts*1e3)))
	for i, v := range s.Aux {
		binary.BigEndian.PutUint16(at(RegAux+2*i), v)
	}
	binary.BigEndian.PutUint16(at(RegCustomMonitor), s.Custom)
	return p
}

// EnterPassword gives a module the password that unlocks what its vendor protects. The
// module does not say whether it is right: what wants it says so.
func EnterPassword(ctx context.Context, m Memory, password uint32) error {
	return m.Write(ctx, Address{Offset: RegPassword}, binary.BigEndian.AppendUint32(nil, password))
}
