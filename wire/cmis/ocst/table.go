package ocst

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"time"
)

// Table is what calibration has found out about a module, and what the module sets its
// heaters by.
//
// The phase of element i, and so its state, is
//
//	φi = Phase0i + di + Σj Gij·|dj|,   d = A(V²) of arm A or -B(V²) of arm B
//
// where bar is φ = π, cross φ = 0 (modulo 2π), and [Arm] tells phase from voltage. One arm
// of an element is heated at a time.
type Table struct {
	Serial   string // of the module it belongs to, 1 to 16 characters of printable ASCII
	Version  uint32 // counts up with each table of a module
	Made     time.Time
	Expires  time.Time // the module refuses it from then on; zero: never
	Dark     [Photodiodes][Lanes]uint16
	Points   []Point // 1 to 3, in ascending order of temperature
	Coupling Coupling
	Verified Verification
}

// Photodiodes are the arrays of eight, in the order of [Table.Dark].
const (
	PDOut1 = iota
	PDOut2
	PDLoopTap
	PDRx1
	PDRx2
	PDRxLoop
	PDLaunched
	Photodiodes
)

// MaxPoints is how many temperatures a table has at most.
const MaxPoints = 3

// Point is the calibration at one temperature.
type Point struct {
	Celsius  float64 // of the case, in steps of 1/256
	Elements [Elements]Fit
}

// Fit is what is known of an element at one temperature. Single precision is what the
// table keeps.
type Fit struct {
	Phase0 float64 // radians, with no heater of the module on
	A, B   Arm
	// Bar and Cross take the element to its states with all others cold.
	Bar, Cross Drive
	// Extinction ratio in either state: power where it belongs over that at the other
	// output, dB, from 0 to 655.35.
	BarER, CrossER float64
}

// Arm tells phase from the voltage at a heater: Slope·V² + Curve·V⁴, in radians. The
// second term is the heater's resistance, which changes with its temperature.
type Arm struct{ Slope, Curve float64 }

// Phase returns the radians that a voltage gives.
func (a Arm) Phase(volts float64) float64 {
	u := volts * volts
	return u * (a.Slope + u*a.Curve)
}

// Volts returns the voltage that gives so many radians, from 0 on; false if none within
// the range of the converter does.
func (a Arm) Volts(phase float64) (float64, bool) {
	if !(phase >= 0) || !(a.Slope > 0) {
		return 0, false
	}
	// The root next to phase/Slope, in the form that does not cancel.
	disc := a.Slope*a.Slope + 4*a.Curve*phase
	if disc < 0 {
		return 0, false
	}
	v := math.Sqrt(2 * phase / (a.Slope + math.Sqrt(disc)))
	return v, v <= DACFull
}

// Drive is the code of one heater of an element: bit 15 chooses arm B.
type Drive uint16

// ArmB is set in a Drive of arm B.
const ArmB Drive = 1 << 15

// Code returns the code for the converter, and whether it is that of arm B.
func (d Drive) Code() (code uint16, armB bool) { return uint16(d & DACMax), d&ArmB != 0 }

// Volts returns the voltage at the heater.
func (d Drive) Volts() float64 { return float64(d&DACMax) / DACMax * DACFull }

// DriveOf returns the code next to a voltage; what is not a number counts as 0.
func DriveOf(volts float64, armB bool) Drive {
	if !(volts > 0) {
		volts = 0
	}
	d := Drive(math.Round(min(volts, DACFull) / DACFull * DACMax))
	if armB {
		d |= ArmB
	}
	return d
}

// Own returns the phase that a drive gives: positive of arm A, negative of arm B.
func (f Fit) Own(d Drive) float64 {
	if d&ArmB != 0 {
		return -f.B.Phase(d.Volts())
	}
	return f.A.Phase(d.Volts())
}

// Reach is how far coupling is kept, in numbers of elements.
const Reach = 6

// Coupling is how much phase element i gains from element j per radian that j has by its
// own heaters: Gij, 0 beyond Reach and of an element with itself.
type Coupling [Elements][Elements]float64

// Verification is how good a module was with its table: the figures of
// 3 paths and of the 6 changes between them, the worst of all lanes.
type Verification struct {
	Pass    bool
	Paths   [3]PathCheck      // of Path1, Path2, LoopPath
	Changes [6]TransientCheck // in the order of [Transitions]
}

// PathCheck is how good a path is.
type PathCheck struct {
	Loss      float64 // dB, from the modulator to the tap or, of the loop, to the receiver
	Isolation float64 // dB, towards the brighter of the other two outputs
}

// TransientCheck is how fast a change was.
type TransientCheck struct {
	Rise   time.Duration // 10 to 90 %
	Settle time.Duration // from the commit until 25 dB (or what the couplers allow) are kept
}

// Transitions are the changes of path that are verified.
var Transitions = [6][2]Path{
	{Path1, Path2}, {Path1, LoopPath}, {Path2, Path1}, {Path2, LoopPath}, {LoopPath, Path1}, {LoopPath, Path2},
}

const verificationSize = 1 + 3*4 + 6*4

// Encode writes the verification in 37 bytes: pass, then loss and isolation of each path in
// 0.01 dB, then rise and settle of each change in 0.1 µs; the largest number stands for all
// above.
func (v Verification) Encode() []byte {
	p := make([]byte, 0, verificationSize)
	p = append(p, 0)
	if v.Pass {
		p[0] = 1
	}
	for _, c := range v.Paths {
		p = binary.BigEndian.AppendUint16(p, fixed(c.Loss, 0.01))
		p = binary.BigEndian.AppendUint16(p, fixed(c.Isolation, 0.01))
	}
	for _, c := range v.Changes {
		p = binary.BigEndian.AppendUint16(p, fixed(float64(c.Rise), 100))
		p = binary.BigEndian.AppendUint16(p, fixed(float64(c.Settle), 100))
	}
	return p
}

// DecodeVerification is the inverse of [Verification.Encode].
func DecodeVerification(p []byte) (v Verification, err error) {
	if len(p) != verificationSize {
		return v, fmt.Errorf("verification of a module: %d bytes where %d belong", len(p), verificationSize)
	}
	v.Pass = p[0] == 1
	next := func() float64 { n := binary.BigEndian.Uint16(p); p = p[2:]; return float64(n) }
	p = p[1:]
	for i := range v.Paths {
		v.Paths[i] = PathCheck{next() / 100, next() / 100}
	}
	for i := range v.Changes {
		v.Changes[i] = TransientCheck{time.Duration(next()) * 100, time.Duration(next()) * 100}
	}
	return v, nil
}

// fixed returns x in units, rounded, and within 0..65535.
func fixed(x, unit float64) uint16 {
	if !(x > 0) {
		return 0
	}
	return uint16(min(math.Round(x/unit), math.MaxUint16))
}

// ErrTable is a table that cannot be used; errors of [ParsePages] and [Table.Check] match it.
var ErrTable = errors.New("calibration table cannot be used")

// What is beyond these is no calibration of an element: phases are taken modulo 2π, and 1 V²
// gives a third of a radian.
const (
	maxPhase0   = 100 // radians
	maxArm      = 1e6 // radians per V² and per V⁴
	maxCoupling = 0.5
)

// steps is a temperature as the table keeps it.
func steps(celsius float64) int16 { return int16(math.Round(celsius * 256)) }

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// Check returns an error unless the table can be written: what ParsePages would refuse.
func (t *Table) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrTable, fmt.Sprintf(format, args...))
	}
	if n := len(t.Serial); n == 0 || n > 16 || strings.TrimSpace(t.Serial) != t.Serial || strings.ContainsFunc(t.Serial, unprintable) {
		return bad("the serial number is %.40q, want 1 to 16 characters of printable ASCII without blanks around them", t.Serial)
	}
	for _, when := range []time.Time{t.Made, t.Expires} {
		if y := when.UTC().Year(); y < 1 || y > 9999 {
			return bad("it is made or expires in the year %d", y)
		}
	}
	if n := len(t.Points); n == 0 || n > MaxPoints {
		return bad("%d temperatures, want 1 to %d", n, MaxPoints)
	}
	for i, p := range t.Points {
		if !(p.Celsius >= -40 && p.Celsius <= 125) || i > 0 && steps(p.Celsius) <= steps(t.Points[i-1].Celsius) {
			return bad("temperature %d is %.2f °C, want -40 to 125 and more than the one before", i+1, p.Celsius)
		}
		for e, f := range p.Elements {
			if !(math.Abs(f.Phase0) <= maxPhase0) || math.IsNaN(f.BarER) || math.IsNaN(f.CrossER) {
				return bad("%v at %.2f °C has a phase or an extinction ratio that cannot be", Element(e), p.Celsius)
			}
			for _, arm := range []Arm{f.A, f.B} {
				// In single precision, a slope that is too small becomes 0.
				if !(float32(arm.Slope) > 0 && arm.Slope <= maxArm && math.Abs(arm.Curve) <= maxArm) {
					return bad("%v at %.2f °C gains no phase from its heaters, or more than can be", Element(e), p.Celsius)
				}
			}
		}
	}
	for i, row := range t.Coupling {
		for j, g := range row {
			if g != 0 && (i == j || max(i-j, j-i) > Reach) || !(float32(math.Abs(g)) < maxCoupling) {
				return bad("the coupling of %v to %v is %g", Element(j), Element(i), g)
			}
		}
	}
	return nil
}

// Usable returns an error, matching ErrTable, unless a module with that serial number may
// use the table at that time: it has passed verification and has not expired.
func (t *Table) Usable(serial string, now time.Time) error {
	switch {
	case t.Serial != serial:
		return fmt.Errorf("%w: it is of module %s, not of %s", ErrTable, t.Serial, serial)
	case !t.Verified.Pass:
		return fmt.Errorf("%w: it has not passed verification", ErrTable)
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		return fmt.Errorf("%w: it has expired on %s", ErrTable, t.Expires.UTC().Format(time.DateOnly))
	}
	return nil
}

// Pages of a table hold PageData bytes each and a CRC-16 of them (see [CRC16]) at the end.
const (
	pageSize = 128
	PageData = pageSize - 2
)

const (
	tableMagic  = "OLUT"
	tableFormat = 1
	tableHead   = 4 + 2 + 4
)

// Pages writes the table in the form in which a module keeps it, 128 bytes for each bank of
// page B7h. The table must pass Check.
//
// All numbers are big-endian: "OLUT", format (1 byte, 1), number of points (1 byte), length
// of all without the filling of the last page (U32), serial number (16 bytes, filled with
// blanks), version (U32), made and expires (seconds since 1970, I64, 0 never), dark
// readings (7 x 8 U16), verification (37 bytes); for each point the temperature (I16,
// 1/256 °C) and of each element phase, slope and curve of arms A and B (5 x float32), bar
// and cross (U16), ratios in bar and cross (U16, 0.01 dB); for each element the coupling from
// those up to 6 before and behind it (12 x float32, 0 where there is none); CRC-32 (IEEE) of
// all before it.
func (t *Table) Pages() ([][]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	be := binary.BigEndian
	b := []byte(tableMagic)
	b = append(b, tableFormat, byte(len(t.Points)), 0, 0, 0, 0)
	b = append(b, fmt.Sprintf("%-16s", t.Serial)...)
	b = be.AppendUint32(b, t.Version)
	b = be.AppendUint64(b, uint64(seconds(t.Made)))
	b = be.AppendUint64(b, uint64(seconds(t.Expires)))
	for _, array := range t.Dark {
		for _, v := range array {
			b = be.AppendUint16(b, v)
		}
	}
	b = append(b, t.Verified.Encode()...)
	single := func(x float64) { b = be.AppendUint32(b, math.Float32bits(float32(x))) }
	for _, p := range t.Points {
		b = be.AppendUint16(b, uint16(steps(p.Celsius)))
		for _, f := range p.Elements {
			for _, x := range []float64{f.Phase0, f.A.Slope, f.A.Curve, f.B.Slope, f.B.Curve} {
				single(x)
			}
			b = be.AppendUint16(b, uint16(f.Bar))
			b = be.AppendUint16(b, uint16(f.Cross))
			b = be.AppendUint16(b, fixed(f.BarER, 0.01))
			b = be.AppendUint16(b, fixed(f.CrossER, 0.01))
		}
	}
	for i := range t.Coupling {
		for _, j := range neighbours(i) {
			g := 0.0
			if j >= 0 && j < Elements {
				g = t.Coupling[i][j]
			}
			single(g)
		}
	}
	be.PutUint32(b[6:], uint32(len(b)+4))
	b = be.AppendUint32(b, crc32.ChecksumIEEE(b))
	var pages [][]byte
	for part := range slicesOf(b, PageData) {
		page := make([]byte, PageData, pageSize)
		copy(page, part)
		pages = append(pages, be.AppendUint16(page, CRC16(page)))
	}
	return pages, nil
}

// neighbours are the elements whose coupling to i is kept, in order; some are not there.
func neighbours(i int) (list [2 * Reach]int) {
	for k := range Reach {
		list[k], list[Reach+k] = i-Reach+k, i+1+k
	}
	return list
}

func slicesOf(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			k := min(n, len(b))
			if !yield(b[:k]) {
				return
			}
			b = b[k:]
		}
	}
}

// seconds is a moment as the table keeps it. As 0 stands for none, the moment 0 itself is
// taken for the next second.
func seconds(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() == 0:
		return 1
	}
	return t.Unix()
}

func moment(s int64) time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0).UTC()
}

// ParsePages is the inverse of [Table.Pages]. Errors match ErrTable and name the page that
// is damaged.
func ParsePages(pages [][]byte) (*Table, error) {
	bad := func(format string, args ...any) (*Table, error) {
		return nil, fmt.Errorf("%w: %s", ErrTable, fmt.Sprintf(format, args...))
	}
	if len(pages) == 0 || len(bytes.Trim(pages[0], "\x00")) == 0 {
		return bad("there is none")
	}
	var b []byte
	be := binary.BigEndian
	for i, page := range pages {
		if len(page) != pageSize {
			return bad("page %d has %d bytes, want %d", i, len(page), pageSize)
		}
		if got, want := be.Uint16(page[PageData:]), CRC16(page[:PageData]); got != want {
			return bad("page %d is damaged: its CRC is %04Xh, and %04Xh that of what it holds", i, got, want)
		}
		b = append(b, page[:PageData]...)
	}
	if string(b[:4]) != tableMagic {
		return bad("it does not begin with %q", tableMagic)
	}
	if b[4] != tableFormat {
		return bad("its format is %d, and only %d is known", b[4], tableFormat)
	}
	points := int(b[5])
	length := int64(be.Uint32(b[6:]))
	if points == 0 || points > MaxPoints {
		return bad("%d temperatures, want 1 to %d", points, MaxPoints)
	}
	if want := int64(tableSize(points)); length != want || int64(len(b)) < length || int64(len(b)) >= length+PageData {
		return bad("its length is said to be %d bytes, and that of %d temperatures is %d, on %d pages", length, points, want, len(pages))
	}
	b = b[:length]
	if got, want := be.Uint32(b[len(b)-4:]), crc32.ChecksumIEEE(b[:len(b)-4]); got != want {
		return bad("its CRC is %08Xh, and %08Xh that of what it holds", got, want)
	}
	b = b[tableHead:]
	take := func(n int) []byte { p := b[:n]; b = b[n:]; return p }
	single := func() float64 { return float64(math.Float32frombits(be.Uint32(take(4)))) }
	t := &Table{Serial: string(bytes.TrimRight(take(16), " ")), Version: be.Uint32(take(4))}
	t.Made, t.Expires = moment(int64(be.Uint64(take(8)))), moment(int64(be.Uint64(take(8))))
	for i := range t.Dark {
		for lane := range t.Dark[i] {
			t.Dark[i][lane] = be.Uint16(take(2))
		}
	}
	t.Verified, _ = DecodeVerification(take(verificationSize))
	for range points {
		p := Point{Celsius: float64(int16(be.Uint16(take(2)))) / 256}
		for e := range p.Elements {
			f := &p.Elements[e]
			f.Phase0, f.A.Slope, f.A.Curve, f.B.Slope, f.B.Curve = single(), single(), single(), single(), single()
			f.Bar, f.Cross = Drive(be.Uint16(take(2))), Drive(be.Uint16(take(2)))
			f.BarER, f.CrossER = float64(be.Uint16(take(2)))/100, float64(be.Uint16(take(2)))/100
		}
		t.Points = append(t.Points, p)
	}
	for i := range t.Coupling {
		for _, j := range neighbours(i) {
			if g := single(); j >= 0 && j < Elements {
				t.Coupling[i][j] = g
			}
		}
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// TablePages returns how many pages a table has, by its first. Errors match ErrTable.
func TablePages(first []byte) (int, error) {
	switch {
	case len(first) != pageSize:
		return 0, fmt.Errorf("%w: its first page has %d bytes, want %d", ErrTable, len(first), pageSize)
	case len(bytes.Trim(first, "\x00")) == 0:
		return 0, fmt.Errorf("%w: there is none", ErrTable)
	case CRC16(first[:PageData]) != binary.BigEndian.Uint16(first[PageData:]):
		return 0, fmt.Errorf("%w: its first page is damaged", ErrTable)
	case string(first[:4]) != tableMagic || first[4] != tableFormat || first[5] == 0 || first[5] > MaxPoints:
		return 0, fmt.Errorf("%w: its first page is none that is known", ErrTable)
	}
	return (tableSize(int(first[5])) + PageData - 1) / PageData, nil
}

// tableSize is the length of a table, without filling.
func tableSize(points int) int {
	return tableHead + 16 + 4 + 8 + 8 + 2*Photodiodes*Lanes + verificationSize +
		points*(2+Elements*(5*4+4*2)) + Elements*2*Reach*4 + 4
}

// CRC16 is CRC-16/IBM-3740, also known as CCITT-FALSE: polynomial 1021h, initially FFFFh, not
// reflected. Of "123456789" it is 29B1h.
func CRC16(p []byte) uint16 {
	crc := uint16(0xffff)
	for _, c := range p {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^c]
	}
	return crc
}

var crcTable = func() (t [256]uint16) {
	for i := range t {
		crc := uint16(i) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()
