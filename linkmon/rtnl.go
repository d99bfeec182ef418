package linkmon

import (
	"encoding/binary"
	"errors"
)

// Of include/uapi/linux/netlink.h, rtnetlink.h and if_link.h.
const (
	nlHeaderLen   = 16
	ifInfoLen     = 16
	rtmNewLink    = 16
	rtmDelLink    = 17
	attrTypeMask  = 1<<14 - 1 // without NLA_F_NESTED and NLA_F_NET_BYTEORDER
	iflaIfname    = 3
	iflaOperState = 16
	// Up and down together; it comes in the same message as the counters of each
	// direction (47, 48) but is 3 years older.
	iflaCarrierChanges = 35
	iffLowerUp         = 1 << 16
)

// linkMessage is what matters of an RTM_NEWLINK or RTM_DELLINK.
type linkMessage struct {
	gone    bool // RTM_DELLINK
	index   int
	carrier bool
	name    string // "" if not said
	oper    string // "" if not said

	changes uint32
	counted bool // changes is said
}

var errMessage = errors.New("malformed rtnetlink message")

// parseLinks calls fn for each message about a link in a datagram. Others are
// passed over, such as those of bridges about their ports, which have a family. What
// came before a malformed one has been handed out when it returns an error.
func parseLinks(b []byte, fn func(linkMessage)) error {
	native := binary.NativeEndian
	for len(b) > 0 {
		if len(b) < nlHeaderLen {
			return errMessage
		}
		n := native.Uint32(b)
		if n < nlHeaderLen || uint64(n) > uint64(len(b)) {
			return errMessage
		}
		kind, body := native.Uint16(b[4:]), b[nlHeaderLen:n]
		b = b[min((int(n)+3)&^3, len(b)):]
		if kind != rtmNewLink && kind != rtmDelLink {
			continue
		}
		if len(body) < ifInfoLen {
			return errMessage
		}
		if body[0] != 0 { // AF_UNSPEC
			continue
		}
		m := linkMessage{
			gone:    kind == rtmDelLink,
			index:   int(int32(native.Uint32(body[4:]))),
			carrier: native.Uint32(body[8:])&iffLowerUp != 0,
		}
		if err := m.attributes(body[ifInfoLen:]); err != nil {
			return err
		}
		fn(m)
	}
	return nil
}

func (m *linkMessage) attributes(b []byte) error {
	native := binary.NativeEndian
	for len(b) >= 4 {
		n := int(native.Uint16(b))
		if n < 4 || n > len(b) {
			return errMessage
		}
		value := b[4:n]
		switch native.Uint16(b[2:]) & attrTypeMask {
		case iflaIfname:
			for i, c := range value {
				if c == 0 {
					value = value[:i]
					break
				}
			}
			m.name = string(value)
		case iflaOperState:
			if len(value) == 1 {
				m.oper = operState(value[0])
			}
		case iflaCarrierChanges:
			if len(value) == 4 {
				m.changes, m.counted = native.Uint32(value), true
			}
		}
		b = b[min((n+3)&^3, len(b)):]
	}
	return nil
}

// operState names an IF_OPER constant (include/uapi/linux/if.h) as sysfs does.
func operState(s byte) string {
	names := [...]string{"unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}
