package wiring

import (
	"encoding/binary"
	"errors"
)

// EtherType of the frames that carry names: the first that IEEE 802 leaves to local experiments.
const EtherType = 0x88B5

// A name is the payload of a frame, big endian:
//
//	0   4  magic "ocsw"
//	4   1  version
//	5   1  length of the name
//	6   8  run, drawn at random: names of others are ignored
//	14     the name, and what the frame is filled up with
const (
	nameMagic   = "ocsw"
	nameVersion = 1
	nameHeader  = 14
	maxName     = 255
)

var errForeign = errors.New("not a name")

// putName returns the payload that says a name.
func putName(run uint64, name string) ([]byte, error) {
	if len(name) == 0 || len(name) > maxName {
		return nil, errors.New("a name has 1 to 255 bytes")
	}
	b := make([]byte, nameHeader, nameHeader+len(name))
	copy(b, nameMagic)
	b[4], b[5] = nameVersion, byte(len(name))
	binary.BigEndian.PutUint64(b[6:], run)
	return append(b, name...), nil
}

// parseName reads a payload; what follows the name is not looked at, since frames are filled up.
func parseName(b []byte) (run uint64, name string, err error) {
	if len(b) < nameHeader || string(b[:4]) != nameMagic || b[4] != nameVersion {
		return 0, "", errForeign
	}
	n := int(b[5])
	if n == 0 || len(b) < nameHeader+n {
		return 0, "", errForeign
	}
	return binary.BigEndian.Uint64(b[6:]), string(b[nameHeader : nameHeader+n]), nil
}
