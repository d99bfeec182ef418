package proto

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

// Three messages are nearly all there is on a connection, at the moment when everybody waits. They are written and read here without
// reflection, in the one form that encoding/json gives them; whatever is not in that form is left to encoding/json, so
// that what a message means is said in one place.

// appendHot appends the frame of a message exactly as the generic codec would, or reports that it cannot.
func appendHot(dst []byte, m Message) ([]byte, bool) {
	start := len(dst)
	b := append(dst, 0, 0, 0, 0)
	switch m := m.(type) {
	case *TopoAck:
		if !plain(m.ID) || !plain(string(m.Result)) {
			return dst, false
		}
		b = appendUint(b, `{"kind":"topo-ack","req":`, m.Req)
		if m.ID != "" {
			b = appendString(b, `,"topology_id":`, m.ID)
		}
		b = appendUint(b, `,"generation":`, m.Generation)
		b = appendString(b, `,"result":`, string(m.Result))
		b = appendInt(b, `,"ready_ns":`, m.ReadyNS)
		b = appendInt(b, `,"command_ns":`, m.CommandNS)
		b = appendInt(b, `,"switch_ack_ns":`, m.SwitchAckNS)
		b = appendInt(b, `,"verified_ns":`, m.VerifiedNS)
		b = appendInt(b, `,"removed":`, int64(m.Removed))
		b = appendInt(b, `,"added":`, int64(m.Added))
		if m.Lanes != 0 {
			b = appendInt(b, `,"lanes":`, int64(m.Lanes))
		}
	case *TopoWrite:
		if !plain(m.Group) || !plain(string(m.Mode)) || m.Last != nil && !plain(m.Last.Group) {
			return dst, false
		}
		b = appendUint(b, `{"kind":"topo-write","req":`, m.Req)
		b = appendUint(b, `,"epoch":`, m.Epoch)
		b = appendRef(b, `,"group":`, &m.OpRef)
		b = appendString(b, `,"mode":`, string(m.Mode))
		if m.Last != nil {
			b = append(appendRef(b, `,"last":{"group":`, m.Last), '}')
		}
		b = appendInt(b, `,"issue_ns":`, m.IssueNS)
	case *Release:
		if !plain(m.Group) {
			return dst, false
		}
		b = appendUint(b, `{"kind":"release","epoch":`, m.Epoch)
		b = appendRef(b, `,"group":`, &m.OpRef)
	default:
		return dst, false
	}
	b = append(b, '}')
	n := len(b) - start - 4
	if n > MaxFrame {
		return dst, false
	}
	binary.BigEndian.PutUint32(b[start:], uint32(n))
	return b, true
}

func appendUint(b []byte, key string, v uint64) []byte {
	return strconv.AppendUint(append(b, key...), v, 10)
}
func appendInt(b []byte, key string, v int64) []byte {
	return strconv.AppendInt(append(b, key...), v, 10)
}

// appendString appends a string that is plain.
func appendString(b []byte, key, v string) []byte {
	return append(append(append(append(b, key...), '"'), v...), '"')
}

func appendRef(b []byte, key string, r *OpRef) []byte {
	return appendInt(appendUint(appendString(b, key, r.Group), `,"op":`, r.Op), `,"way":`, int64(r.Way))
}

// plain reports whether a string is written between quotes as it is.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < ' ' || c > '~':
			return false
		case c == '"' || c == '\\' || c == '<' || c == '>' || c == '&':
			return false
		}
	}
	return true
}

// parseHot reads a message that is in the form of appendHot; nil is any other.
func parseHot(body []byte) Message {
	c := cursor{rest: body, ok: true}
	switch {
	case c.has(`{"kind":"topo-write","req":`):
		m := &TopoWrite{Req: c.uint()}
		m.Epoch = c.want(`,"epoch":`).uint()
		m.OpRef = c.want(`,"group":`).ref()
		m.Mode = among(c.want(`,"mode":`).text(), Demand, Provision)
		if c.has(`,"last":{"group":`) {
			last := c.ref()
			m.Last = &last
			c.want(`}`)
		}
		m.IssueNS = c.want(`,"issue_ns":`).int()
		if c.end() {
			return m
		}
	case c.has(`{"kind":"topo-ack","req":`):
		m := &TopoAck{Req: c.uint()}
		if c.has(`,"topology_id":`) {
			m.ID = string(c.text())
		}
		m.Generation = c.want(`,"generation":`).uint()
		m.Result = among(c.want(`,"result":`).text(), Applied, NoOp, OnRing, Detoured)
		m.ReadyNS = c.want(`,"ready_ns":`).int()
		m.CommandNS = c.want(`,"command_ns":`).int()
		m.SwitchAckNS = c.want(`,"switch_ack_ns":`).int()
		m.VerifiedNS = c.want(`,"verified_ns":`).int()
		m.Removed = c.want(`,"removed":`).small()
		m.Added = c.want(`,"added":`).small()
		if c.has(`,"lanes":`) {
			m.Lanes = c.small()
		}
		if c.end() {
			return m
		}
	case c.has(`{"kind":"release","epoch":`):
		m := &Release{Epoch: c.uint()}
		m.OpRef = c.want(`,"group":`).ref()
		if c.end() {
			return m
		}
	}
	return nil
}

// A cursor reads on for as long as everything is as expected.
type cursor struct {
	rest []byte
	ok   bool
}

// has goes on behind s if that comes next.
func (c *cursor) has(s string) bool {
	if len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

func (c *cursor) want(s string) *cursor {
	c.ok = c.has(s) && c.ok
	return c
}

// end reads the end of the message.
func (c *cursor) end() bool { return c.has(`}`) && c.ok && len(c.rest) == 0 }

// uint reads a number of at most 18 digits, which no type here is too small for.
func (c *cursor) uint() uint64 {
	var v uint64
	n := 0
	for ; n < len(c.rest) && '0' <= c.rest[n] && c.rest[n] <= '9'; n++ {
		if n == 18 {
			c.ok = false
			return 0
		}
		v = 10*v + uint64(c.rest[n]-'0')
	}
	if n == 0 || n > 1 && c.rest[0] == '0' {
		c.ok = false
	}
	c.rest = c.rest[n:]
	return v
}

func (c *cursor) int() int64 {
	if c.has("-") {
		return -int64(c.uint())
	}
	return int64(c.uint())
}

// small reads a number that may have 32 bits only.
func (c *cursor) small() int {
	v := c.int()
	c.ok = c.ok && int64(int(v)) == v
	return int(v)
}

// text reads a string without anything that stands for something else.
func (c *cursor) text() []byte {
	if !c.has(`"`) {
		c.ok = false
		return nil
	}
	n := bytes.IndexByte(c.rest, '"')
	if n < 0 {
		c.ok = false
		return nil
	}
	s := c.rest[:n]
	for _, b := range s {
		if b < ' ' || b > '~' || b == '\\' {
			c.ok = false
			return nil
		}
	}
	c.rest = c.rest[n+1:]
	return s
}

func (c *cursor) ref() OpRef {
	r := OpRef{Group: string(c.text())}
	r.Op = c.want(`,"op":`).uint()
	r.Way = c.want(`,"way":`).small()
	return r
}

// among returns a word without making a new one of those that are known.
func among[T ~string](word []byte, known ...T) T {
	for _, k := range known {
		if string(word) == string(k) {
			return k
		}
	}
	return T(word)
}
