package netconfserver

import (
	"bytes"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/netconf"
)

// emit writes the message in ss.buf in the way of a fault, and reports whether
// the session goes on.
func (ss *session) emit(f emulator.Fault) bool {
	if f.Kind == emulator.FaultShred {
		return ss.shred()
	}
	ss.frames = netconf.AppendMessage(ss.frames[:0], ss.buf, ss.framing)
	switch f.Kind {
	case emulator.FaultClose:
		ss.write(ss.frames[:len(ss.frames)/2])
		return false
	case emulator.FaultFlood:
		return ss.flood()
	case emulator.FaultTwice:
		if !ss.write(ss.frames) {
			return false
		}
	}
	return ss.write(ss.frames)
}

func (ss *session) write(p []byte) bool {
	_, err := ss.conn.Write(p)
	return err == nil
}

// shred writes a message in chunks and writes of 1 to 7 bytes.
func (ss *session) shred() bool {
	whole := ss.buf
	ss.frames = ss.frames[:0]
	if ss.framing == netconf.Chunked {
		for i := 0; len(whole) > 0; i++ {
			n := min(1+i%7, len(whole))
			part := netconf.AppendMessage(nil, whole[:n], netconf.Chunked)
			ss.frames = append(ss.frames, bytes.TrimSuffix(part, []byte(endOfChunks))...)
			whole = whole[n:]
		}
		ss.frames = append(ss.frames, endOfChunks...)
	} else {
		ss.frames = netconf.AppendMessage(ss.frames, whole, ss.framing)
	}
	for i, rest := 0, ss.frames; len(rest) > 0; i++ {
		n := min(1+i%7, len(rest))
		if !ss.write(rest[:n]) {
			return false
		}
		rest = rest[n:]
	}
	return true
}

const endOfChunks = "\n##\n"

// flood sends a reply that does not end.
func (ss *session) flood() bool {
	part := bytes.Repeat([]byte("<a>0123456789</a>\n"), 1024)
	if ss.framing == netconf.Chunked {
		part = bytes.TrimSuffix(netconf.AppendMessage(nil, part, ss.framing), []byte(endOfChunks))
	}
	for sent := 0; sent < 10<<20; sent += len(part) {
		if ss.ctx.Err() != nil || !ss.write(part) {
			return false
		}
	}
	return true
}
