package cmis

import (
	"fmt"
	"math"
)

// Registers of page 00h that [Identity] does not read.
const (
	RegOUI        = 145
	RegVendorRev  = 164
	RegDateCode   = 182
	RegCLEI       = 190
	RegPowerClass = 200
	RegMaxPower   = 201 // 0.25 W
	RegConnector  = 203
	RegMediaLanes = 210
	RegTechnology = 212
	RegChecksum   = 222 // of page 00h: the low byte of the sum of bytes 128 to 221
)

// Technology is how a module makes its light, 00h:212.
type Technology uint8

const (
	VCSEL850  Technology = 0x00
	VCSEL1310 Technology = 0x01
	VCSEL1550 Technology = 0x02
	FP1310    Technology = 0x03
	DFB1310   Technology = 0x04
	DFB1550   Technology = 0x05
	EML1310   Technology = 0x06
	EML1550   Technology = 0x07
	Other     Technology = 0x08 // light of another source
	DFB1490   Technology = 0x09
	CTunable  Technology = 0x10 // C band, tunable
	LTunable  Technology = 0x11 // L band, tunable
)

// String names the light source: "1310 nm DFB". What is no light source shows as a number.
func (t Technology) String() string {
	switch t {
	case VCSEL850, VCSEL1310, VCSEL1550, FP1310, DFB1310, DFB1550, EML1310, EML1550, Other, DFB1490:
		return [...]string{"850 nm VCSEL", "1310 nm VCSEL", "1550 nm VCSEL", "1310 nm FP", "1310 nm DFB", "1550 nm DFB",
			"1310 nm EML", "1550 nm EML", "other", "1490 nm DFB"}[t]
	case CTunable:
		return "C-band tunable"
	case LTunable:
		return "L-band tunable"
	}
	return fmt.Sprintf("technology %02Xh", uint8(t))
}

// Product is page 00h of a CMIS module: who made it, and what it is (OIF-CMIS-05.2, section
// 8.3). It holds more than an [Identity], and takes one read; the module may be in any
// state.
type Product struct {
	Identifier Identifier

	// Printable ASCII without the blanks that fill the field, as in Identity.
	Vendor, PartNumber, Serial string // at most 16 characters
	Revision                   string // at most 2
	Date                       string // YYMMDD and at most two characters of the lot
	CLEI                       string // at most 10

	OUI        [3]byte // of the vendor, by the IEEE
	PowerClass int     // 1 to 8
	MaxPower   float64 // W, in steps of 0.25, 0 to 63.75
	Connector  uint8   // SFF-8024, table 4-3
	Lanes      uint8   // as in Identity: bit 0 is lane 1; 0 stands for all
	Technology Technology
}

// ProductSpan is the read that [DecodeProduct] wants: page 00h.
var ProductSpan = Span{Address{Offset: half}, half}

// texts is where the texts of a product are, and how long they may be.
func (p *Product) texts() []textField {
	return []textField{
		{"vendor", &p.Vendor, 129, 16}, {"part number", &p.PartNumber, 148, 16}, {"revision", &p.Revision, RegVendorRev, 2},
		{"serial number", &p.Serial, 166, 16}, {"date code", &p.Date, RegDateCode, 8}, {"CLEI code", &p.CLEI, RegCLEI, 10},
	}
}

type textField struct {
	what  string
	text  *string
	at, n int
}

// DecodeProduct takes apart what ProductSpan gave. A wrong checksum is an error, and bytes
// that are all FFh match [ErrNoModule].
func DecodeProduct(b []byte) (Product, error) {
	if err := checkData(ProductSpan, b); err != nil {
		return Product{}, err
	}
	at := func(reg int) []byte { return b[reg-half:] }
	if got, want := at(RegChecksum)[0], sum(b[:RegChecksum-half]); got != want {
		return Product{}, fmt.Errorf("module memory %v is damaged: its checksum is %02Xh, and %02Xh that of what it holds",
			Address{Offset: RegChecksum}, got, want)
	}
	p := Product{
		Identifier: Identifier(b[0]), OUI: [3]byte(at(RegOUI)), PowerClass: int(at(RegPowerClass)[0]>>5) + 1,
		MaxPower: float64(at(RegMaxPower)[0]) / 4, Connector: at(RegConnector)[0], Technology: Technology(at(RegTechnology)[0]),
	}
	for _, f := range p.texts() {
		*f.text = text(at(f.at), f.n)
	}
	id := Identity{}
	id.setLanes(^at(RegMediaLanes)[0], cmisAllLanes)
	p.Lanes = id.Lanes
	return p, nil
}

// Encode is the inverse of [DecodeProduct], with the checksum. MaxPower is rounded up, as
// modules do that promise not to draw more. An error tells of what cannot be written.
func (p Product) Encode() ([]byte, error) {
	im := make(Image, 2*half)
	im[half] = byte(p.Identifier)
	for _, f := range p.texts() {
		if err := im.putText(f.what, *f.text, f.at, f.n); err != nil {
			return nil, err
		}
	}
	watts := math.Ceil(p.MaxPower * 4)
	if !(watts >= 0 && watts <= math.MaxUint8) {
		return nil, fmt.Errorf("a greatest power of %v W is not between 0 and 63.75", p.MaxPower)
	}
	if p.PowerClass < 1 || p.PowerClass > 8 {
		return nil, fmt.Errorf("power class %d: want 1 to 8", p.PowerClass)
	}
	copy(im[RegOUI:], p.OUI[:])
	im[RegPowerClass], im[RegMaxPower] = byte(p.PowerClass-1)<<5, byte(watts)
	im[RegConnector], im[RegTechnology] = p.Connector, byte(p.Technology)
	if p.Lanes != 0 {
		im[RegMediaLanes] = ^p.Lanes
	}
	im[RegChecksum] = sum(im[half:RegChecksum])
	return im[half:], nil
}
