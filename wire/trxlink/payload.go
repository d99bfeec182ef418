package trxlink

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/ocslab/ocslab/wire/cmis"
)

// Info is what a board says of itself in its reply to HELLO.
type Info struct {
	Version  uint8 // of the protocol that it speaks
	Slots    int   // 1 to MaxSlots
	Features Features
	Serial   string // at most 16 characters of printable ASCII
	Firmware string // at most 8
}

// Nonce is the payload of HELLO, which the host chooses at random, and the end of the reply.
type Nonce [4]byte

// ParseHello takes apart the payload of HELLO. An error means CodeArgument.
func ParseHello(p []byte) (Nonce, error) {
	if len(p) != len(Nonce{}) {
		return Nonce{}, fmt.Errorf("hello: a payload of %d bytes, want %d", len(p), len(Nonce{}))
	}
	return Nonce(p), nil
}

// Sizes of the fields of Info, and of all of it.
const (
	infoSerial   = 16
	infoFirmware = 8
	infoSize     = 3 + infoSerial + infoFirmware
)

// Append appends the reply to a HELLO behind its code to b. Text that is too long is cut off.
func (i Info) Append(b []byte, hello Nonce) []byte {
	b = append(b, i.Version, byte(min(max(i.Slots, 0), math.MaxUint8)), byte(i.Features))
	b = appendText(b, i.Serial, infoSerial)
	b = appendText(b, i.Firmware, infoFirmware)
	return append(b, hello[:]...)
}

// appendText appends a field of n bytes, filled with blanks.
func appendText(b []byte, s string, n int) []byte {
	b = append(b, s[:min(len(s), n)]...)
	for range n - len(s) {
		b = append(b, ' ')
	}
	return b
}

// ParseInfo takes apart the reply to HELLO behind its code, and returns to which HELLO it is.
// What is not printable in its texts shows as '?'. Bytes behind what is known are ignored:
// later boards may say more.
func ParseInfo(p []byte) (Info, Nonce, error) {
	var hello Nonce
	if len(p) < infoSize+len(hello) {
		return Info{}, hello, fmt.Errorf("reply to hello: %d bytes where %d belong", len(p), infoSize+len(hello))
	}
	copy(hello[:], p[infoSize:])
	i := Info{
		Version: p[0], Slots: int(p[1]), Features: Features(p[2]),
		Serial: text(p[3 : 3+infoSerial]), Firmware: text(p[3+infoSerial : infoSize]),
	}
	if i.Slots < 1 || i.Slots > MaxSlots {
		return Info{}, hello, fmt.Errorf("reply to hello: the board says it has %d slots, want 1 to %d", i.Slots, MaxSlots)
	}
	return i, hello, nil
}

func text(p []byte) string {
	b := []byte(strings.Trim(string(p), " \x00"))
	for i, c := range b {
		if c < ' ' || c > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// AppendRead appends the payload of READ of n bytes at a to b; a passes [cmis.Address.Check]
// with n.
func AppendRead(b []byte, a cmis.Address, n int) []byte {
	return append(b, a.Bank, a.Page, a.Offset, byte(n))
}

// ParseRead is the inverse of [AppendRead]. An error means CodeArgument.
func ParseRead(p []byte) (a cmis.Address, n int, err error) {
	if len(p) != 4 {
		return a, 0, fmt.Errorf("read: a payload of %d bytes, want 4", len(p))
	}
	a, n = cmis.Address{Bank: p[0], Page: p[1], Offset: p[2]}, int(p[3])
	return a, n, a.Check(n)
}

// AppendWrite appends the payload of WRITE of data at a to b; a passes [cmis.Address.Check]
// with the length of data.
func AppendWrite(b []byte, a cmis.Address, data []byte) []byte {
	return append(append(b, a.Bank, a.Page, a.Offset), data...)
}

// ParseWrite is the inverse of [AppendWrite]; data is part of p. An error means
// CodeArgument.
func ParseWrite(p []byte) (a cmis.Address, data []byte, err error) {
	if len(p) < 3 {
		return a, nil, fmt.Errorf("write: a payload of %d bytes, want 4 or more", len(p))
	}
	a, data = cmis.Address{Bank: p[0], Page: p[1], Offset: p[2]}, p[3:]
	return a, data, a.Check(len(data))
}

// AppendCDB appends the payload of CDB with a message of at most [cmis.CDBMaxPayload] bytes
// to b.
func AppendCDB(b []byte, command uint16, message []byte) []byte {
	return append(binary.BigEndian.AppendUint16(b, command), message...)
}

// ParseCDB is the inverse of [AppendCDB]; message is part of p. An error means CodeArgument.
func ParseCDB(p []byte) (command uint16, message []byte, err error) {
	if len(p) < 2 || len(p) > 2+cmis.CDBMaxPayload {
		return 0, nil, fmt.Errorf("CDB: a payload of %d bytes, want 2 to %d", len(p), 2+cmis.CDBMaxPayload)
	}
	return binary.BigEndian.Uint16(p), p[2:], nil
}

// AppendTrigger appends the payload of TRIGGER to b; bit 0 of the mask is slot 0.
func AppendTrigger(b []byte, slots uint16) []byte { return binary.BigEndian.AppendUint16(b, slots) }

// ParseTrigger is the inverse of [AppendTrigger]. An error means CodeArgument.
func ParseTrigger(p []byte) (slots uint16, err error) {
	if len(p) != 2 {
		return 0, fmt.Errorf("trigger: a payload of %d bytes, want 2", len(p))
	}
	return binary.BigEndian.Uint16(p), nil
}

// PlateSetting is the temperature that a plate is to hold, in 1/256 °C, or one of the two
// special ones.
type PlateSetting int16

const (
	PlateLeave PlateSetting = math.MinInt16 // of a request: go on as before
	PlateOff   PlateSetting = math.MaxInt16
)

// PlateAt returns the setting next to a temperature in °C that is not special, within ±127 °C.
// What is not a number is PlateLeave.
func PlateAt(celsius float64) PlateSetting {
	if math.IsNaN(celsius) {
		return PlateLeave
	}
	return PlateSetting(math.Round(min(max(celsius, -127), 127) * 256))
}

// Celsius returns the temperature in °C; false of the special settings.
func (s PlateSetting) Celsius() (float64, bool) {
	return float64(s) / 256, s != PlateLeave && s != PlateOff
}

// Append appends the payload of PLATE to b.
func (s PlateSetting) Append(b []byte) []byte {
	return binary.BigEndian.AppendUint16(b, uint16(s))
}

// ParsePlate takes apart the payload of PLATE. An error means CodeArgument.
func ParsePlate(p []byte) (PlateSetting, error) {
	if len(p) != 2 {
		return 0, fmt.Errorf("plate: a payload of %d bytes, want 2", len(p))
	}
	return PlateSetting(binary.BigEndian.Uint16(p)), nil
}

// PlateStatus is what a board says of its plate in its reply to PLATE.
type PlateStatus struct {
	Set PlateSetting // a temperature, or PlateOff
	Now float64      // °C, in steps of 1/256
}

// Append appends the reply to PLATE behind its code to b.
func (s PlateStatus) Append(b []byte) []byte {
	return PlateAt(s.Now).Append(s.Set.Append(b))
}

// ParsePlateStatus takes apart the reply to PLATE behind its code.
func ParsePlateStatus(p []byte) (PlateStatus, error) {
	if len(p) != 4 {
		return PlateStatus{}, fmt.Errorf("reply to plate: %d bytes where 4 belong", len(p))
	}
	now := PlateSetting(binary.BigEndian.Uint16(p[2:]))
	return PlateStatus{Set: PlateSetting(binary.BigEndian.Uint16(p)), Now: float64(now) / 256}, nil
}
