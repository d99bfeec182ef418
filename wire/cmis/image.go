package cmis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Module is what [Decode] finds and [Encode] writes.
type Module struct {
	Identity
	State    ModuleState // of CMIS; ModuleReady of SFF-8636
	Monitors []Lane      // the lanes that carry light, in order
}

// Decode reads a module completely; that clears its flags. For errors see [Identify].
func Decode(read ReadFunc) (Module, error) {
	id, state, err := identify(read)
	if err != nil {
		return Module{}, err
	}
	span := id.MonitorSpan()
	data := make([]byte, span.Length)
	if err := read(span.Address, data); err != nil {
		return Module{}, err
	}
	lanes, err := id.Monitors(data)
	if err != nil {
		return Module{}, err
	}
	return Module{id, state, lanes}, nil
}

// Image is the memory of a module as files keep it: the lower memory of 128 bytes, then
// upper pages of 128 bytes in order, page p at 128+128*p. Pages at the end may be missing.
type Image []byte

// imageSize holds the pages up to 11h.
const imageSize = half + half*0x12

// Read copies bytes from the image; it is a [ReadFunc]. A page that the image does not have
// is an error.
func (im Image) Read(a Address, buf []byte) error {
	if err := a.Check(len(buf)); err != nil {
		return err
	}
	at, ok := a.ImageOffset()
	if !ok {
		return fmt.Errorf("module memory %v: an image has bank 0 only", a)
	}
	if at+len(buf) > len(im) {
		return fmt.Errorf("module memory %v is not in the image, which ends after %d bytes", a, len(im))
	}
	copy(buf, im[at:])
	return nil
}

// Encode makes an image of 2432 bytes, up to page 11h, from which Decode returns m again:
// State is taken as ModuleReady and powers and bias are as exact as the counts are. It
// sets no more than Decode reads, and the checksums of page 00h. An error tells of what
// cannot be written: an unknown identifier, text that is too long or not printable ASCII,
// a lane that the module has not.
func Encode(m Module) (Image, error) {
	kind, known := m.Identifier.Map()
	if !known {
		return nil, fmt.Errorf("%v: no memory map is known: %w", m.Identifier, errors.ErrUnsupported)
	}
	im := make(Image, imageSize)
	im[0], im[half] = byte(m.Identifier), byte(m.Identifier)
	vendor, part, serial := 148, 168, 196
	if kind == CMIS {
		vendor, part, serial = 129, 148, 166
	}
	for _, f := range []struct {
		what, text string
		at         int
	}{{"vendor", m.Vendor, vendor}, {"part number", m.PartNumber, part}, {"serial number", m.Serial, serial}} {
		if err := im.putText(f.what, f.text, f.at, 16); err != nil {
			return nil, err
		}
	}
	if m.BiasScale > 4 || m.BiasScale == 3 || (kind == SFF8636 && m.BiasScale > 1) {
		return nil, fmt.Errorf("bias scale %d: want 1, or with CMIS 2 or 4", m.BiasScale)
	}
	missing := byte(0)
	if m.Lanes != 0 {
		missing = ^m.Lanes
	}
	switch kind {
	case SFF8636:
		if m.Lanes > sffLanes {
			return nil, fmt.Errorf("lanes %08b: SFF-8636 has four", m.Lanes)
		}
		im[113] = missing & sffLanes
		im[191] = sum(im[128:191])
		im[223] = sum(im[192:223])
	case CMIS:
		im[1] = 0x52
		im[3] = byte(ModuleReady) << 1
		im[210] = missing
		im[222] = sum(im[128:222])
		at, _ := Address{Page: 1, Offset: 160}.ImageOffset()
		im[at] = cmisRxPower | 0x03 | m.biasScale()>>1<<3
	}
	return im, im.SetMonitors(m.Identity, m.Monitors)
}

// sum is the checksum of both maps: the low byte of the sum.
func sum(b []byte) (s byte) {
	for _, x := range b {
		s += x
	}
	return s
}

// putText writes a field of n characters.
func (im Image) putText(what, s string, at, n int) error {
	if len(s) > n {
		return fmt.Errorf("%s %.40q: want at most %d characters", what, s, n)
	}
	field := fmt.Appendf(nil, "%-*s", n, s)
	if text(field, n) != s {
		return fmt.Errorf("%s %q: want printable ASCII without blanks around it", what, s)
	}
	copy(im[at:at+n], field)
	return nil
}

// SetMonitors writes what a module of that identity measures into its image, of the lanes
// given, and leaves other lanes alone. It writes within [Identity.MonitorSpan], so this is
// what an emulation has to publish afterwards. On an error nothing was written.
func (im Image) SetMonitors(id Identity, lanes []Lane) error {
	span := id.MonitorSpan()
	base, _ := span.ImageOffset()
	if span.Length == 0 || base+span.Length > len(im) {
		return fmt.Errorf("the image of %d bytes has no room for the monitors of a %v", len(im), id.Identifier)
	}
	there := map[int]bool{}
	for _, n := range id.lanes() {
		there[n] = true
	}
	unit := biasUnit * float64(id.biasScale())
	for _, lane := range lanes {
		switch {
		case !there[lane.Number]:
			return fmt.Errorf("the %v has no lane %d", id.Identifier, lane.Number)
		case !(lane.TxBias >= 0 && math.Round(lane.TxBias/unit) <= math.MaxUint16):
			return fmt.Errorf("lane %d: a laser bias of %v mA is not between 0 and %.1f", lane.Number, lane.TxBias, math.MaxUint16*unit)
		case lane.State > 0xf:
			return fmt.Errorf("lane %d: DataPath state %d does not fit into four bits", lane.Number, lane.State)
		}
	}
	l := id.layout()
	data := im[base : base+span.Length]
	for _, lane := range lanes {
		n := lane.Number
		put := func(at uint8, v uint16) { binary.BigEndian.PutUint16(data[int(at-l.first)+2*(n-1):], v) }
		set := func(f flag, on bool) {
			bit := byte(1) << (f.bit + uint8(n-1))
			data[f.at-l.first] &^= bit
			if on {
				data[f.at-l.first] |= bit
			}
		}
		put(l.rxPower, uint16(lane.RxPower))
		put(l.txPower, uint16(lane.TxPower))
		put(l.txBias, uint16(math.Round(lane.TxBias/unit)))
		set(l.rxLOS, lane.RxLOS)
		set(l.txLOS, lane.TxLOS)
		set(l.rxLOL, lane.RxLOL)
		set(l.txLOL, lane.TxLOL)
		if l.states != 0 {
			at, shift := int(l.states-l.first)+(n-1)/2, (n-1)%2*4
			data[at] = data[at]&^(0xf<<shift) | byte(lane.State)<<shift
		}
	}
	return nil
}
