package probe

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// header is the payload of a probe packet, big endian:
//
//	0   4  magic "ocsp"
//	4   1  version
//	5   3  zero
//	8   8  run, drawn at random: packets of other probes are ignored
//	16  4  number of the flow
//	20  4  zero
//	24  8  sequence number, from 1
//	32  8  send stamp, ns on the sender's axis
type header struct {
	run  uint64
	flow uint32
	seq  uint64
	sent int64
}

const (
	magic      = "ocsp"
	version    = 1
	packetSize = 40
)

var errForeign = errors.New("not a packet of a probe")

// put writes h to b, which has packetSize bytes that are zero or were written by
// put before.
func (h header) put(b []byte) {
	copy(b, magic)
	b[4] = version
	binary.BigEndian.PutUint64(b[8:], h.run)
	binary.BigEndian.PutUint32(b[16:], h.flow)
	binary.BigEndian.PutUint64(b[24:], h.seq)
	binary.BigEndian.PutUint64(b[32:], uint64(h.sent))
}

// parse reads a packet. It accepts exactly what put writes.
func parse(b []byte) (header, error) {
	if len(b) != packetSize || string(b[:4]) != magic {
		return header{}, errForeign
	}
	if b[4] != version {
		return header{}, fmt.Errorf("packet of a probe of version %d, want %d", b[4], version)
	}
	if b[5]|b[6]|b[7]|b[20]|b[21]|b[22]|b[23] != 0 {
		return header{}, errForeign
	}
	return header{
		run:  binary.BigEndian.Uint64(b[8:]),
		flow: binary.BigEndian.Uint32(b[16:]),
		seq:  binary.BigEndian.Uint64(b[24:]),
		sent: int64(binary.BigEndian.Uint64(b[32:])),
	}, nil
}
