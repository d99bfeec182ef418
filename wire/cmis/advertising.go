package cmis

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"
)

// Registers of page 01h.
const (
	RegHardware      = 130 // version, major and minor
	RegWavelength    = 138 // 0.05 nm, two bytes; then its tolerance, 0.005 nm
	RegPages         = 142 // Pages, and banks in bits 1-0
	RegControls      = 155 // Controls
	RegMonitors      = 159 // Monitors, and the scale of the bias in bits 4-3 of 160
	RegCDB           = 163 // four bytes of CDBSupport
	RegAdvertisedSum = 255 // the low byte of the sum of bytes 130 to 254
)

// Pages are pages that a module has beside those that all have, 01h:142.
type Pages uint8

const (
	Page03h         Pages = 0x04
	Page05h         Pages = 0x08
	DiagnosticPages Pages = 0x20 // 13h and 14h
	VDMPages        Pages = 0x40 // 20h to 2Fh
	NetworkPages    Pages = 0x80 // 16h and 17h

	banksField = 0x03
)

// Controls are the controls of lanes that a module has, 01h:155 in the high byte and 156 in
// the low. Bits that have no name here are kept.
type Controls uint16

const (
	CanFlipTx           Controls = 0x0100 // polarity
	CanDisableTx        Controls = 0x0200
	CanDisableTxSquelch Controls = 0x0400
	CanForceTxSquelch   Controls = 0x0800
	CanTune             Controls = 0x4000
	CanFlipRx           Controls = 0x0001
	CanDisableRx        Controls = 0x0002
	CanDisableRxSquelch Controls = 0x0004
	CanBankBroadcast    Controls = 0x0080
)

// Monitors are what a module measures, 01h:159 in the high byte and 160 in the low.
type Monitors uint16

const (
	HasTemperature Monitors = 0x0100
	HasVcc         Monitors = 0x0200
	HasAux1        Monitors = 0x0400
	HasAux2        Monitors = 0x0800
	HasAux3        Monitors = 0x1000
	HasCustom      Monitors = 0x2000
	HasTxBias      Monitors = 0x0001
	HasTxPower     Monitors = 0x0002
	HasRxPower     Monitors = 0x0004

	biasShift = 3
	biasField = 3 << biasShift
)

// CDBSupport is how far a module understands CDB messages, 01h:163 to 166.
type CDBSupport struct {
	Instances  int  // 0: it does not
	Background bool // the memory can be used while a command is done
	MaxWrite   int  // most bytes in one transaction with page 9Fh, in steps of 8 from 8 on; 0 counts as 8, above 128 as 128
	// OnStop says that a command begins at the end of any write that covers its id, as
	// [DoCDB] writes it. Without, it begins when the id alone is written, last of all.
	OnStop bool
	// MaxBusy is how long the module may refuse to answer, or be busy if Background is set:
	// 0 to 80 ms, or 160 to 4960 ms in steps of 160.
	MaxBusy time.Duration
}

// Advertising is page 01h of a CMIS module: what it can do (OIF-CMIS-05.2, section 8.4).
// Bytes that no field stands for are 0 when it is written.
type Advertising struct {
	Hardware              [2]uint8 // version, major and minor
	Wavelength, Tolerance float64  // nm
	Pages                 Pages
	Banks                 int // of pages 10h to 2Fh: 1, 2 or 4
	Controls              Controls
	Monitors              Monitors
	BiasScale             uint8 // as in Identity: 1, 2 or 4; 0 is 1
	CDB                   CDBSupport
}

// AdvertisingSpan is the read that [DecodeAdvertising] wants: page 01h.
var AdvertisingSpan = Span{Address{Page: 1, Offset: half}, half}

// Of the CDB bytes.
const (
	cdbBackground  = 0x20
	cdbOnStop      = 0x80
	cdbExtended    = 0x80 // in the fourth byte: the time is in the second
	cdbBusyStep    = 160 * time.Millisecond
	cdbBusyMost    = 31 * cdbBusyStep
	cdbShortMost   = 80 * time.Millisecond
	cdbWriteStep   = 8
	wavelengthUnit = 0.05
	toleranceUnit  = 0.005
)

// DecodeAdvertising takes apart what AdvertisingSpan gave. A wrong checksum is an error,
// and bytes that are all FFh match [ErrNoModule].
func DecodeAdvertising(b []byte) (Advertising, error) {
	if err := checkData(AdvertisingSpan, b); err != nil {
		return Advertising{}, err
	}
	at := func(reg int) []byte { return b[reg-half:] }
	number := func(reg int) uint16 { return binary.BigEndian.Uint16(at(reg)) }
	if got, want := at(RegAdvertisedSum)[0], sum(b[RegHardware-half:half-1]); got != want {
		return Advertising{}, fmt.Errorf("module memory %v is damaged: its checksum is %02Xh, and %02Xh that of what it holds",
			Address{Page: 1, Offset: RegAdvertisedSum}, got, want)
	}
	pages, monitors := at(RegPages)[0], number(RegMonitors)
	a := Advertising{
		Hardware:   [2]uint8(at(RegHardware)),
		Wavelength: float64(number(RegWavelength)) * wavelengthUnit, Tolerance: float64(number(RegWavelength+2)) * toleranceUnit,
		Pages: Pages(pages &^ banksField), Banks: 1 << (pages & banksField),
		Controls: Controls(number(RegControls)), Monitors: Monitors(monitors &^ biasField),
		BiasScale: 1 << (monitors & biasField >> biasShift),
		CDB:       decodeCDBSupport([4]byte(at(RegCDB))),
	}
	if a.Banks > 4 || a.BiasScale > 4 {
		return Advertising{}, fmt.Errorf("module memory %v: its banks or the scale of its laser bias are a reserved number",
			Address{Page: 1, Offset: RegPages})
	}
	return a, nil
}

func decodeCDBSupport(p [4]byte) CDBSupport {
	c := CDBSupport{
		Instances: int(p[0] >> 6), Background: p[0]&cdbBackground != 0, MaxWrite: min(cdbWriteStep*(1+int(p[1])), half), OnStop: p[2]&cdbOnStop != 0,
		MaxBusy: cdbShortMost - time.Duration(min(p[3]&^cdbExtended, 80))*time.Millisecond,
	}
	if p[3]&cdbExtended != 0 {
		c.MaxBusy = time.Duration(max(p[2]&0x1f, 1)) * cdbBusyStep
	}
	return c
}

func (c CDBSupport) encode() (p [4]byte) {
	p[0] = byte(min(max(c.Instances, 0), 2)) << 6
	if c.Background {
		p[0] |= cdbBackground
	}
	p[1] = byte(min(max(c.MaxWrite, cdbWriteStep), half)/cdbWriteStep - 1)
	if c.OnStop {
		p[2] = cdbOnStop
	}
	if c.MaxBusy > cdbShortMost {
		// Rounded up: who waits longer waits long enough.
		steps := (min(c.MaxBusy, cdbBusyMost) + cdbBusyStep - 1) / cdbBusyStep
		p[2] |= byte(steps)
		p[3] = cdbExtended
	} else {
		ms := (max(c.MaxBusy, 0) + time.Millisecond - 1) / time.Millisecond
		p[3] = byte(cdbShortMost/time.Millisecond - ms)
	}
	return p
}

// Encode is the inverse of [DecodeAdvertising], with the checksum. An error tells of what
// cannot be written.
func (a Advertising) Encode() ([]byte, error) {
	b := make([]byte, half)
	at := func(reg int) []byte { return b[reg-half:] }
	put := func(reg int, what string, nm, unit float64) error {
		n := math.Round(nm / unit)
		if !(n >= 0 && n <= math.MaxUint16) {
			return fmt.Errorf("a %s of %v nm is not between 0 and %.1f", what, nm, math.MaxUint16*unit)
		}
		binary.BigEndian.PutUint16(at(reg), uint16(n))
		return nil
	}
	if err := put(RegWavelength, "wavelength", a.Wavelength, wavelengthUnit); err != nil {
		return nil, err
	}
	if err := put(RegWavelength+2, "wavelength tolerance", a.Tolerance, toleranceUnit); err != nil {
		return nil, err
	}
	banks, ok := map[int]byte{1: 0, 2: 1, 4: 2}[a.Banks]
	if !ok {
		return nil, fmt.Errorf("%d banks: want 1, 2 or 4", a.Banks)
	}
	bias, ok := map[uint8]uint16{0: 0, 1: 0, 2: 1, 4: 2}[a.BiasScale]
	if !ok {
		return nil, fmt.Errorf("bias scale %d: want 1, 2 or 4", a.BiasScale)
	}
	copy(at(RegHardware), a.Hardware[:])
	at(RegPages)[0] = byte(a.Pages)&^banksField | banks
	binary.BigEndian.PutUint16(at(RegControls), uint16(a.Controls))
	binary.BigEndian.PutUint16(at(RegMonitors), uint16(a.Monitors)&^biasField|bias<<biasShift)
	cdb := a.CDB.encode()
	copy(at(RegCDB), cdb[:])
	at(RegAdvertisedSum)[0] = sum(b[RegHardware-half : half-1])
	return b, nil
}
