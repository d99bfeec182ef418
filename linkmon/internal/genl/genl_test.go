package genl

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"syscall"
	"testing"
)

// unhex takes bytes as a little-endian machine has them.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the expected bytes are those of a little-endian machine")
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The request that asks the controller for the ethtool family.
func TestRequest_Bytes(t *testing.T) {
	want := unhex(t, `
		20000000 1000 0500 07000000 00000000
		03 02 0000
		0c00 0200 657468746f6f6c00`)
	got := request(ctrlFamily, ctrlGetFamily, ctrlVersion, 7, AppendAttr(nil, ctrlAttrName, []byte("ethtool\x00")))
	if !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

func TestAppendName_Bytes(t *testing.T) {
	// A nest of 12 bytes: type 1 with the flag, in it the name of 5 bytes with its zero,
	// padded to 8. The length of the inner attribute does not count the padding.
	want := unhex(t, `1000 0180  0900 0200 6e69633000 000000`)
	if got := appendName(nil, "nic0"); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
	want = unhex(t, `0800 0300 08000000`)
	if got := AppendUint32(nil, 3, 8); !bytes.Equal(got, want) {
		t.Errorf("got  %x\nwant %x", got, want)
	}
}

const (
	answer  = `1c000000 1500 0000 07000000 11110000  06 01 0000  05000200 01 000000`
	ack     = `24000000 0200 0001 07000000 11110000  00000000 20000000 1000 0500 07000000 00000000`
	refusal = `3c000000 0200 0003 07000000 11110000
		a1ffffff 20000000 1000 0500 07000000 00000000
		1400 0100 6e6f742074686973206e6963 00000000 0000`
)

func TestReply(t *testing.T) {
	const other = `14000000 1500 0000 06000000 11110000 06 01 0000`
	for _, tt := range []struct {
		name      string
		datagrams []string
		attrs     string
		done      bool
		refused   syscall.Errno
		text      string
		bad       bool
	}{
		{name: "answer and acknowledgement", datagrams: []string{answer, ack}, attrs: `05000200 01 000000`, done: true},
		{name: "in one datagram", datagrams: []string{answer + ack}, attrs: `05000200 01 000000`, done: true},
		{name: "acknowledgement missing", datagrams: []string{answer}, attrs: `05000200 01 000000`},
		{name: "answer to another request", datagrams: []string{other, ack}, done: true},
		{name: "refused", datagrams: []string{`24000000 0200 0001 07000000 11110000  a1ffffff 20000000 1000 0500 07000000 00000000`}, done: true, refused: 0x5f},
		{
			// EOPNOTSUPP, then the request of 0x20 bytes again, then the text.
			name: "refused with a text, request repeated",
			datagrams: []string{`44000000 0200 0002 07000000 11110000
				a1ffffff
				20000000 1000 0500 07000000 00000000  03020000 0c000200 657468746f6f6c00
				0f00 0100 6e6f742074686973 21 0000 00`},
			done: true, refused: 0x5f, text: "not this!",
		},
		{
			name: "refused with a text, capped",
			datagrams: []string{`34000000 0200 0003 07000000 11110000
				a1ffffff 20000000 1000 0500 07000000 00000000
				0f00 0100 6e6f742074686973 21 0000 00`},
			done: true, refused: 0x5f, text: "not this!",
		},
		{name: "text cut off", datagrams: []string{`2a000000 0200 0003 07000000 11110000  a1ffffff 20000000 1000 0500 07000000 00000000 ffff 0100 6e6f`}, done: true, refused: 0x5f},
		{name: "empty datagram", datagrams: []string{``}},
		{name: "short header", datagrams: []string{`14000000 1500`}, bad: true},
		{name: "length below the header", datagrams: []string{`0f000000 1500 0000 07000000 11110000`}, bad: true},
		{name: "length beyond the end", datagrams: []string{`24000000 1500 0000 07000000 11110000`}, bad: true},
		{name: "answer without its header", datagrams: []string{`12000000 1500 0000 07000000 11110000 0601`}, bad: true},
		{name: "overrun", datagrams: []string{`10000000 0400 0000 00000000 00000000`}, bad: true},
		{name: "no operation", datagrams: []string{`10000000 0100 0000 07000000 00000000`}},
	} {
		r := reply{family: 0x15, seq: 7}
		var err error
		for _, d := range tt.datagrams {
			if err = r.add(unhex(t, d)); err != nil {
				break
			}
		}
		if (err != nil) != tt.bad || r.done != tt.done {
			t.Errorf("%s: error %v, done %v", tt.name, err, r.done)
			continue
		}
		if want := unhex(t, tt.attrs); !bytes.Equal(r.attrs, want) || r.replied != (len(want) > 0) {
			t.Errorf("%s: attributes %x, want %x", tt.name, r.attrs, want)
		}
		var refused *Error
		switch errors.As(r.err, &refused); {
		case tt.refused == 0:
			if r.err != nil {
				t.Errorf("%s: %v", tt.name, r.err)
			}
		case refused == nil || refused.Errno != tt.refused || refused.Text != tt.text:
			t.Errorf("%s: %+v, want error %d with text %q", tt.name, refused, tt.refused, tt.text)
		case tt.text != "" && !strings.Contains(refused.Error(), tt.text):
			t.Errorf("%s: %q does not say %q", tt.name, refused.Error(), tt.text)
		}
	}
}

func TestReply_BadAcknowledgement(t *testing.T) {
	for _, s := range []string{
		`14000000 0200 0000 07000000 11110000  00000000`,                                      // no request in it
		`24000000 0200 0001 07000000 11110000  01000000 20000000 1000 0500 07000000 00000000`, // a positive number
		`24000000 0200 0001 07000000 11110000  00000080 20000000 1000 0500 07000000 00000000`, // no error number
	} {
		r := reply{family: 0x15, seq: 7}
		if err := r.add(unhex(t, s)); err != nil || !errors.Is(r.err, errMalformed) {
			t.Errorf("%s: %v, %v", s, err, r.err)
		}
	}
}

func TestAttrs(t *testing.T) {
	got, err := Attrs(unhex(t, `0500 0200 01 000000  0800 0340 02000000  0600 0280 0304`))
	if err != nil || len(got) != 2 || !bytes.Equal(got[2], []byte{3, 4}) || !bytes.Equal(got[3], []byte{2, 0, 0, 0}) {
		t.Errorf("%x, %v", got, err)
	}
	for _, s := range []string{`0400`, `0300 0100`, `0900 0100 00000000`} {
		if _, err := Attrs(unhex(t, s)); err == nil {
			t.Errorf("%s was taken for attributes", s)
		}
	}
	if v, ok := Uint32(got[3]); !ok || v != 2 {
		t.Errorf("32 bits are %d, %v", v, ok)
	}
	if _, ok := Uint32([]byte{1, 2, 3}); ok {
		t.Error("three bytes were taken for 32 bits")
	}
}

func TestCheckName(t *testing.T) {
	for name, ok := range map[string]bool{
		"ens1f0": true, "enp1s0f1np0.100": true, "abcdefghijklmno": true,
		"": false, "abcdefghijklmnop": false, ".": false, "..": false, "a/b": false, "a b": false, "a:1": false, "a\x00": false,
	} {
		if err := checkName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Any datagram is an answer or an error.
func FuzzReply(f *testing.F) {
	for _, s := range []string{answer + ack, refusal} {
		b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := reply{family: 0x15, seq: 7}
		if err := r.add(b); err != nil {
			return
		}
		if _, err := Attrs(r.attrs); err != nil {
			return
		}
		if r.err != nil && r.err.Error() == "" {
			t.Error("an error without words")
		}
	})
}
