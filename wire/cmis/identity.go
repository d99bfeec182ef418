package cmis

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

// ErrNoModule says that nothing answers where a module should be: no module is plugged in,
// or it was pulled.
var ErrNoModule = errors.New("no module answers")

// ErrNotReady says that a module is there but has nothing to tell yet.
var ErrNotReady = errors.New("the module is not ready")

// Map is a memory map.
type Map uint8

const (
	SFF8636 Map = iota + 1
	CMIS
)

// String is the name of the specification.
func (m Map) String() string {
	switch m {
	case SFF8636:
		return "SFF-8636"
	case CMIS:
		return "CMIS"
	}
	return fmt.Sprintf("Map(%d)", uint8(m))
}

// Identifier is the kind of a module as its first byte tells (SFF-8024, table 4-1).
type Identifier uint8

// The identifiers whose memory map is known.
const (
	QSFPPlus Identifier = 0x0d
	QSFP28   Identifier = 0x11
	QSFPDD   Identifier = 0x18
	OSFP     Identifier = 0x19
	QSFPCMIS Identifier = 0x1e // QSFP+ or later with CMIS
)

// String names the kind of module.
func (i Identifier) String() string {
	switch i {
	case QSFPPlus:
		return "QSFP+"
	case QSFP28:
		return "QSFP28"
	case QSFPDD:
		return "QSFP-DD"
	case OSFP:
		return "OSFP"
	case QSFPCMIS:
		return "QSFP with CMIS"
	}
	return fmt.Sprintf("module of identifier %02Xh", uint8(i))
}

// Map returns the memory map of such modules. It reports false when none is known.
func (i Identifier) Map() (Map, bool) {
	switch i {
	case QSFPPlus, QSFP28:
		return SFF8636, true
	case QSFPDD, OSFP, QSFPCMIS:
		return CMIS, true
	}
	return 0, false
}

// Identity is what does not change while a module is plugged in.
type Identity struct {
	Identifier Identifier

	// Printable ASCII, at most 16 characters, without the blanks that fill the field. What
	// is not printable shows as '?'.
	Vendor, PartNumber, Serial string

	// Lanes has bit 0 set for lane 1 and so on: the lanes that carry light. 0 stands for
	// all that the form has, which are 4 of SFF-8636 and 8 of CMIS.
	Lanes uint8

	// BiasScale is what the counts of laser bias are multiplied with: 1, 2 or 4. 0 is 1.
	// Only CMIS knows others than 1.
	BiasScale uint8
}

// Identify finds out what a module is, in three to six reads. None of them touches flags.
//
// Errors match [ErrNoModule] when there is none (all bytes are FFh, as a bus without a
// module reads, or the identifier is 00h), [ErrNotReady] when there is one that has not
// started or is in low power, and [errors.ErrUnsupported] when it is of a kind that is not
// known or does not measure received light, as copper cables do not.
func Identify(read ReadFunc) (Identity, error) {
	id, _, err := identify(read)
	return id, err
}

func identify(read ReadFunc) (Identity, ModuleState, error) {
	var head [3]byte
	if err := read(Address{}, head[:]); err != nil {
		return Identity{}, 0, err
	}
	id := Identity{Identifier: Identifier(head[0])}
	switch head[0] {
	case 0xff:
		return Identity{}, 0, fmt.Errorf("the module memory reads FFh: %w", ErrNoModule)
	case 0:
		return Identity{}, 0, fmt.Errorf("the module memory has no identifier: %w", ErrNoModule)
	}
	m, known := id.Identifier.Map()
	if !known {
		return Identity{}, 0, fmt.Errorf("%v: neither SFF-8636 nor CMIS, so where its optical power is remains unknown: %w",
			id.Identifier, errors.ErrUnsupported)
	}
	if m == SFF8636 {
		state, err := id.readSFF(read, head[2])
		return id, state, err
	}
	state, err := id.readCMIS(read, head[2])
	return id, state, err
}

const (
	sffNotReady  = 0x01 // 00h:2, Data_Not_Ready
	cmisFlat     = 0x80 // 00h:2, MemoryModel: only page 00h
	sffCopper    = 0xa0 // 00h:147, device technology: from here on copper
	cmisRxPower  = 0x04 // 01h:160, RxOpticalPowerMonitorSupported
	sffLanes     = 0x0f
	cmisAllLanes = 0xff
)

func (id *Identity) readSFF(read ReadFunc, status byte) (ModuleState, error) {
	if status&sffNotReady != 0 {
		return 0, fmt.Errorf("%v has no valid values yet: %w", id.Identifier, ErrNotReady)
	}
	var lanes [1]byte
	if err := read(Address{Offset: 113}, lanes[:]); err != nil {
		return 0, err
	}
	var page [half]byte
	if err := read(Address{Offset: half}, page[:]); err != nil {
		return 0, err
	}
	if page[147-half] >= sffCopper {
		return 0, fmt.Errorf("%v %s is a copper cable and has no light: %w", id.Identifier, text(page[148-half:], 16), errors.ErrUnsupported)
	}
	id.Vendor = text(page[148-half:], 16)
	id.PartNumber = text(page[168-half:], 16)
	id.Serial = text(page[196-half:], 16)
	id.setLanes(^lanes[0]&sffLanes, sffLanes)
	return ModuleReady, nil
}

func (id *Identity) readCMIS(read ReadFunc, model byte) (ModuleState, error) {
	if model&cmisFlat != 0 {
		return 0, fmt.Errorf("%v has a memory of one page, as cables do, and measures no light: %w", id.Identifier, errors.ErrUnsupported)
	}
	var b [1]byte
	if err := read(Address{Offset: 3}, b[:]); err != nil {
		return 0, err
	}
	state := ModuleState(b[0] >> 1 & 7)
	if state != ModuleReady {
		return state, fmt.Errorf("%v is in module state %v, where it measures no light; set the interface up: %w", id.Identifier, state, ErrNotReady)
	}
	var page [half]byte
	if err := read(Address{Offset: half}, page[:]); err != nil {
		return 0, err
	}
	id.Vendor = text(page[129-half:], 16)
	id.PartNumber = text(page[148-half:], 16)
	id.Serial = text(page[166-half:], 16)
	id.setLanes(^page[210-half], cmisAllLanes)
	if err := read(Address{Page: 1, Offset: 160}, b[:]); err != nil {
		return 0, err
	}
	if b[0]&cmisRxPower == 0 {
		return 0, fmt.Errorf("%v %s does not measure received light: %w", id.Identifier, id.PartNumber, errors.ErrUnsupported)
	}
	if scale := b[0] >> 3 & 3; scale == 1 || scale == 2 { // 3 is reserved
		id.BiasScale = 1 << scale
	}
	return state, nil
}

// setLanes leaves 0 when all lanes are there. A module that says it has none is taken to
// have all: it does not fill in that byte.
func (id *Identity) setLanes(lanes, all uint8) {
	if lanes != all {
		id.Lanes = lanes
	}
}

// lanes returns the numbers, from 1, of the lanes that carry light.
func (id Identity) lanes() []int {
	n := 4
	if m, _ := id.Identifier.Map(); m == CMIS {
		n = 8
	}
	var out []int
	for lane := 1; lane <= n; lane++ {
		if id.Lanes == 0 || id.Lanes>>(lane-1)&1 != 0 {
			out = append(out, lane)
		}
	}
	return out
}

// text takes a field of n bytes that blanks or zeros fill.
func text(field []byte, n int) string {
	s := bytes.TrimRight(field[:n], " \x00")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, string(bytes.TrimLeft(s, " ")))
}
