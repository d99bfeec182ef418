package optics

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/ocslab/ocslab/linkmon/internal/genl"
	"github.com/ocslab/ocslab/wire/cmis"
)

// The request for 11h:186, 16 bytes, as a little-endian machine has it: offset, length,
// page, bank and I2C address, each padded to 4 bytes.
func TestEEPROMRequest_Bytes(t *testing.T) {
	want, err := hex.DecodeString(strings.Join(strings.Fields(`
		0800 0200 ba000000
		0800 0300 10000000
		0500 0400 11 000000
		0500 0500 00 000000
		0500 0600 50 000000`), ""))
	if err != nil {
		t.Fatal(err)
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the expected bytes are those of a little-endian machine")
	}
	if got := eepromRequest(cmis.Address{Page: 0x11, Offset: 186}, 16); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

// kernel answers as ethtool does for a driver with a module in its cage.
type kernel struct {
	t      *testing.T
	module cmis.Image
	short  int // bytes that it keeps back
	err    error
}

func (k *kernel) Ask(_ context.Context, command uint8, request []byte) (map[uint16][]byte, error) {
	attrs, err := genl.Attrs(request)
	if err != nil || command != 31 {
		k.t.Errorf("command %d, %x: %v", command, request, err)
	}
	if k.err != nil {
		return nil, k.err
	}
	offset, _ := genl.Uint32(attrs[2])
	length, _ := genl.Uint32(attrs[3])
	if !bytes.Equal(attrs[6], []byte{0x50}) {
		k.t.Errorf("I2C address %x", attrs[6])
	}
	data := make([]byte, length)
	if err := k.module.Read(cmis.Address{Page: attrs[4][0], Bank: attrs[5][0], Offset: uint8(offset)}, data); err != nil {
		return nil, err
	}
	return map[uint16][]byte{1: nil, 7: data[k.short:]}, nil
}

func (k *kernel) String() string { return "ens1f0 in gpu1" }
func (k *kernel) Close() error   { return nil }

func TestEthtool_Reads(t *testing.T) {
	im, err := cmis.Encode(cmis.Module{
		Identity: cmis.Identity{Identifier: cmis.OSFP, Vendor: "ACME", Lanes: 0x03},
		Monitors: []cmis.Lane{{Number: 1, RxPower: 5000}, {Number: 2, RxPower: 2500}},
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{t: t, module: im}
	s := Sampler{Reader: &Ethtool{k}}
	sample, err := s.Sample(t.Context())
	if err != nil || sample.String() != "-6.02 dBm (-3.0 -6.0)" {
		t.Errorf("%v, %v", sample, err)
	}
	k.short = 1
	if sample, err := s.Sample(t.Context()); err == nil || !strings.Contains(err.Error(), "gave 15 bytes of 16 at 11h:186") {
		t.Errorf("a short answer: %v, %v", sample, err)
	}
}

func TestEthtool_Explain(t *testing.T) {
	for _, tt := range []struct {
		errno syscall.Errno
		text  string
		is    error
		want  string
	}{
		{syscall.EIO, "", cmis.ErrNoModule, "no module answers at ens1f0 in gpu1: "},
		{syscall.ENXIO, "", cmis.ErrNoModule, "no module answers at ens1f0 in gpu1: "},
		{syscall.EPERM, "", syscall.EPERM, "CAP_NET_ADMIN"},
		{syscall.EINVAL, "no module", syscall.EINVAL, "read the module of ens1f0 in gpu1: "},
	} {
		e := &Ethtool{&kernel{t: t, err: &genl.Error{Errno: tt.errno, Text: tt.text}}}
		err := e.ReadPage(t.Context(), cmis.Address{}, make([]byte, 3))
		if !errors.Is(err, tt.is) || !errors.Is(err, tt.errno) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%v: %v", tt.errno, err)
		}
	}
}
