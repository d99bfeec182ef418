package trxlink

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Version is that of the protocol.
const Version = 1

// Limits and times of the protocol.
const (
	MaxPayload  = 256
	MaxSlots    = 16
	Window      = 16                     // requests that the board remembers
	Outstanding = 8                      // requests that a host may have under way
	Gap         = 20 * time.Millisecond  // silence that ends a frame
	CDBTime     = 500 * time.Millisecond // that a CDB command may take
)

// Board is the slot of a request to the board itself.
const Board = 0xff

const (
	sync0, sync1 = 0xa5, 0x5a
	headSize     = 9
	overhead     = headSize + 2
)

// Kind is what a frame is for.
type Kind uint8

const (
	Hello   Kind = 0x01
	Read    Kind = 0x02
	Write   Kind = 0x03
	CDB     Kind = 0x04
	Trigger Kind = 0x05
	Plate   Kind = 0x06

	// Reply is added to the kind of a request.
	Reply Kind = 0x80
)

// String names the kind: "read", "read reply".
func (k Kind) String() string {
	names := map[Kind]string{Hello: "hello", Read: "read", Write: "write", CDB: "CDB", Trigger: "trigger", Plate: "plate"}
	n, known := names[k&^Reply]
	if !known {
		n = fmt.Sprintf("kind %02Xh", uint8(k&^Reply))
	}
	if k&Reply != 0 {
		n += " reply"
	}
	return n
}

// Code is how a request went.
type Code uint8

const (
	CodeOK         Code = iota
	CodeVersion         // a version that the board does not speak
	CodeKind            // an unknown kind
	CodeArgument        // a payload that makes no sense
	CodeSlot            // there is no such slot
	CodeNoModule        // the slot is empty, or its module does not answer
	CodeBusy            // the module did not end a CDB command in time
	CodeNotArmed        // of TRIGGER: a module is not armed; none was triggered
	CodeNotPresent      // the board has no such feature
	CodeHello           // the board has started, and wants HELLO before anything else; nothing was done
)

// String says in a few words what is wrong.
func (c Code) String() string {
	names := []string{"ok", "protocol version not spoken", "unknown request", "request makes no sense", "no such slot",
		"no module answers", "module is busy", "module is not armed", "board cannot do this",
		"board has started, and wants hello"}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("error code %d", uint8(c))
}

// Features are what a board has.
type Features uint8

const (
	HasTrigger Features = 1 << iota // a trigger line to every slot
	HasPlate                        // a plate that heats and cools the modules
)

// Frame is one request or reply.
type Frame struct {
	Version uint8 // 0 stands for Version
	Kind    Kind
	Slot    uint8
	Seq     uint8
	Payload []byte
}

// String is the frame for logs: "#12 read slot 0: 00 b0 86 14".
func (f Frame) String() string {
	where := fmt.Sprintf("slot %d", f.Slot)
	if f.Slot == Board {
		where = "board"
	}
	return fmt.Sprintf("#%d %v %s: % x", f.Seq, f.Kind, where, f.Payload)
}

// Append appends the bytes of f to b. A payload beyond MaxPayload is a mistake of the
// program, and panics.
func (f Frame) Append(b []byte) []byte {
	if len(f.Payload) > MaxPayload {
		panic(fmt.Sprintf("trxlink: a payload of %d bytes", len(f.Payload)))
	}
	version := f.Version
	if version == 0 {
		version = Version
	}
	at := len(b)
	b = append(b, sync0, sync1, version, byte(f.Kind), f.Slot, f.Seq)
	b = binary.BigEndian.AppendUint16(b, uint16(len(f.Payload)))
	b = append(b, crc8(b[at+2:]))
	b = append(b, f.Payload...)
	return binary.BigEndian.AppendUint16(b, ocst.CRC16(b[at+2:]))
}

// Decoder finds frames in a stream of bytes. The zero Decoder is ready. It is not safe for
// concurrent use.
//
// Call Next until it reports false after each Feed: then less than one frame is kept,
// whatever is received.
type Decoder struct {
	buf     []byte // those behind at are still to be looked at
	at      int
	skipped int
}

// Feed adds bytes that have been received. It keeps no part of p.
func (d *Decoder) Feed(p []byte) {
	d.buf = append(d.buf[:copy(d.buf, d.buf[d.at:])], p...)
	d.at = 0
}

// Next returns the next frame, in memory of its own; false when more must be received.
func (d *Decoder) Next() (Frame, bool) {
	for {
		b := d.buf[d.at:]
		i := 0
		for i < len(b) && (b[i] != sync0 || i+1 < len(b) && b[i+1] != sync1) {
			i++
		}
		d.skip(i)
		b = b[i:]
		if len(b) < headSize {
			return Frame{}, false
		}
		n := int(binary.BigEndian.Uint16(b[6:]))
		if n > MaxPayload || crc8(b[2:8]) != b[8] {
			d.skip(1)
			continue
		}
		if len(b) < overhead+n {
			return Frame{}, false
		}
		end := headSize + n
		if ocst.CRC16(b[2:end]) != binary.BigEndian.Uint16(b[end:]) {
			d.skip(1)
			continue
		}
		d.at += end + 2
		return Frame{b[2], Kind(b[3]), b[4], b[5], append([]byte(nil), b[headSize:end]...)}, true
	}
}

// Pending reports whether a frame has begun and is not complete.
func (d *Decoder) Pending() bool { return d.at < len(d.buf) }

// Expire gives up a frame that has begun and did not go on; what is behind its first byte
// is looked at again by Next. While Pending still reports true another may have to be given up.
func (d *Decoder) Expire() {
	if d.Pending() {
		d.skip(1)
	}
}

// Skipped returns how many bytes belonged to no frame.
func (d *Decoder) Skipped() int { return d.skipped }

func (d *Decoder) skip(n int) {
	d.skipped += n
	d.at += n
}

// crc8 is CRC-8/SMBUS. Of "123456789" it is F4h.
func crc8(p []byte) (crc uint8) {
	for _, c := range p {
		crc = crc8Table[crc^c]
	}
	return crc
}

var crc8Table = func() (t [256]uint8) {
	for i := range t {
		crc := uint8(i)
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x07
			} else {
				crc <<= 1
			}
		}
		t[i] = crc
	}
	return t
}()
