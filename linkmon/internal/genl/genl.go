// Package genl speaks generic netlink, as far as ethtool-netlink needs it: one request,
// one reply. Messages are made and taken apart by functions without I/O; a [Conn] sends
// and receives them, and an [Interface] asks about one network interface.
//
// Netlink is in the byte order of the machine. The formats are in linux/netlink.h and
// linux/genetlink.h; the names of the constants are those of the headers.
package genl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"syscall"
)

// Message types and flags (linux/netlink.h).
const (
	nlmsgNoop    = 1 // NLMSG_NOOP
	nlmsgError   = 2 // NLMSG_ERROR; with error 0 it is an acknowledgement
	nlmsgOverrun = 4 // NLMSG_OVERRUN

	flagRequest = 0x001 // NLM_F_REQUEST
	flagAck     = 0x004 // NLM_F_ACK
	flagCapped  = 0x100 // NLM_F_CAPPED: the request is not repeated in the acknowledgement
	flagACKTLVs = 0x200 // NLM_F_ACK_TLVS: attributes follow in it

	attrMsg = 1 // NLMSGERR_ATTR_MSG

	nested   = 0x8000 // NLA_F_NESTED
	attrMask = 0x3fff // NLA_TYPE_MASK

	headerLen = 16 // struct nlmsghdr
	genlLen   = 4  // struct genlmsghdr
	attrLen   = 4  // struct nlattr
)

// The controller, which knows the other families (linux/genetlink.h).
const (
	ctrlFamily      = 0x10 // GENL_ID_CTRL
	ctrlGetFamily   = 3    // CTRL_CMD_GETFAMILY
	ctrlVersion     = 2
	ctrlAttrID      = 1 // CTRL_ATTR_FAMILY_ID
	ctrlAttrName    = 2 // CTRL_ATTR_FAMILY_NAME
	ethtoolFamily   = "ethtool"
	ethtoolVersion  = 1 // ETHTOOL_GENL_VERSION
	attrHeader      = 1 // ETHTOOL_A_*_HEADER, the same in all messages
	headerDevName   = 2 // ETHTOOL_A_HEADER_DEV_NAME
	maxInterfaceLen = 15
)

var native = binary.NativeEndian

// Error is what the kernel answered instead of doing as asked.
type Error struct {
	Errno syscall.Errno
	Text  string // the kernel's explanation, or ""
}

// Error is the kernel's explanation, or else the name of the error.
func (e *Error) Error() string {
	if e.Text != "" {
		return fmt.Sprintf("%s (%s)", e.Errno, e.Text)
	}
	return e.Errno.Error()
}

// Unwrap returns the error number, so that [errors.Is] finds it and its kind, such as
// [errors.ErrUnsupported].
func (e *Error) Unwrap() error { return e.Errno }

// errMalformed is a message that ends too early or contradicts itself.
var errMalformed = errors.New("malformed netlink message")

// AppendAttr appends an attribute and pads it to 4 bytes.
func AppendAttr(b []byte, kind uint16, data []byte) []byte {
	b = native.AppendUint16(b, uint16(attrLen+len(data)))
	b = native.AppendUint16(b, kind)
	b = append(b, data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

// AppendUint32 appends an attribute of 32 bits.
func AppendUint32(b []byte, kind uint16, v uint32) []byte {
	return AppendAttr(b, kind, native.AppendUint32(nil, v))
}

// Attrs takes attributes apart, by type without flags. Of several of one type the last
// counts, as in the kernel.
func Attrs(b []byte) (map[uint16][]byte, error) {
	attrs := map[uint16][]byte{}
	for len(b) > 0 {
		if len(b) < attrLen {
			return nil, errMalformed
		}
		n := int(native.Uint16(b))
		if n < attrLen || n > len(b) {
			return nil, errMalformed
		}
		attrs[native.Uint16(b[2:])&attrMask] = b[attrLen:n]
		b = b[min(align(n), len(b)):]
	}
	return attrs, nil
}

// Uint32 reads an attribute of 32 bits.
func Uint32(data []byte) (uint32, bool) {
	if len(data) != 4 {
		return 0, false
	}
	return native.Uint32(data), true
}

func align(n int) int { return (n + 3) &^ 3 }

// request makes a message that asks for an acknowledgement, too: then the end of the
// answer is known.
func request(family uint16, command, version uint8, seq uint32, attrs []byte) []byte {
	b := native.AppendUint32(nil, uint32(headerLen+genlLen+len(attrs)))
	b = native.AppendUint16(b, family)
	b = native.AppendUint16(b, flagRequest|flagAck)
	b = native.AppendUint32(b, seq)
	b = native.AppendUint32(b, 0) // port: the kernel fills it in
	b = append(b, command, version, 0, 0)
	return append(b, attrs...)
}

// reply collects the answer to one request from datagrams.
type reply struct {
	family  uint16
	seq     uint32
	attrs   []byte // of the answer
	replied bool
	done    bool // acknowledged or refused
	err     error
}

// add takes in one datagram. What answers another request is passed over: it was given up
// on earlier.
func (r *reply) add(b []byte) error {
	for len(b) > 0 && !r.done {
		if len(b) < headerLen {
			return errMalformed
		}
		n := int(native.Uint32(b))
		if n < headerLen || n > len(b) {
			return errMalformed
		}
		kind, flags, seq := native.Uint16(b[4:]), native.Uint16(b[6:]), native.Uint32(b[8:])
		body := b[headerLen:n]
		b = b[min(align(n), len(b)):]
		switch {
		case kind == nlmsgOverrun:
			return errors.New("the kernel reports lost netlink messages")
		case seq != r.seq || kind == nlmsgNoop:
		case kind == nlmsgError:
			r.done = true
			if err := ackError(body, flags); err != nil {
				r.err = err
			}
		case kind == r.family:
			if len(body) < genlLen {
				return errMalformed
			}
			r.attrs, r.replied = append([]byte(nil), body[genlLen:]...), true
		}
	}
	return nil
}

// ackError takes apart struct nlmsgerr: the negative error number, the header of the
// request, the rest of the request unless capped, and attributes.
func ackError(body []byte, flags uint16) error {
	if len(body) < 4+headerLen {
		return errMalformed
	}
	code := int32(native.Uint32(body))
	if code == 0 {
		return nil
	}
	if code > 0 || code < -4095 { // MAX_ERRNO
		return errMalformed
	}
	e := &Error{Errno: syscall.Errno(-code)}
	if flags&flagACKTLVs != 0 {
		skip := headerLen
		if flags&flagCapped == 0 {
			skip = align(int(min(native.Uint32(body[4:]), 1<<20)))
		}
		if skip >= headerLen && 4+skip <= len(body) {
			if attrs, err := Attrs(body[4+skip:]); err == nil {
				e.Text = strings.TrimRight(string(attrs[attrMsg]), "\x00")
			}
		}
	}
	return e
}
