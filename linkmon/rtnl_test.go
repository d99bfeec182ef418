package linkmon

import (
	"encoding/binary"
	"testing"
)

// message makes a netlink message; attrs are pairs of type and value.
func message(kind uint16, family byte, index, flags uint32, attrs ...any) []byte {
	native := binary.NativeEndian
	b := make([]byte, nlHeaderLen+ifInfoLen)
	native.PutUint16(b[4:], kind)
	b[16] = family
	native.PutUint32(b[20:], index)
	native.PutUint32(b[24:], flags)
	for i := 0; i < len(attrs); i += 2 {
		var value []byte
		switch v := attrs[i+1].(type) {
		case string:
			value = append([]byte(v), 0)
		case byte:
			value = []byte{v}
		case uint32:
			value = native.AppendUint32(nil, v)
		}
		b = native.AppendUint16(b, uint16(4+len(value)))
		b = native.AppendUint16(b, uint16(attrs[i].(int)))
		b = append(b, value...)
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
	}
	native.PutUint32(b, uint32(len(b)))
	return b
}

func TestParseLinks(t *testing.T) {
	full := message(rtmNewLink, 0, 7, 1|iffLowerUp, 99, uint32(1), iflaIfname, "ens1", iflaOperState, byte(6), iflaCarrierChanges|1<<15, uint32(12))
	both := append(append([]byte{}, full...), message(rtmDelLink, 0, 8, 0, iflaOperState, byte(99))...)
	for name, tc := range map[string]struct {
		b    []byte
		want []linkMessage
		bad  bool
	}{
		"full":      {full, []linkMessage{{index: 7, carrier: true, name: "ens1", oper: "up", changes: 12, counted: true}}, false},
		"two":       {both, []linkMessage{{index: 7, carrier: true, name: "ens1", oper: "up", changes: 12, counted: true}, {gone: true, index: 8, oper: "unknown"}}, false},
		"bridge":    {message(rtmDelLink, 7, 7, 0), nil, false},
		"address":   {message(20, 2, 7, 0), nil, false},
		"odd sizes": {message(rtmNewLink, 0, 7, 0, iflaCarrierChanges, "x", iflaOperState, "ab"), []linkMessage{{index: 7}}, false},
		"empty":     {nil, nil, false},
		"cut":       {full[:len(full)-1], nil, true},
		"header":    {full[:15], nil, true},
		"short":     {[]byte{20, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, nil, true},
		"zero":      {make([]byte, 16), nil, true},
		"attribute": {append(message(rtmNewLink, 0, 7, 0)[:0:0], func() []byte {
			b := message(rtmNewLink, 0, 7, 0, iflaIfname, "ens1")
			b[32] = 200
			return b
		}()...), nil, true},
	} {
		var got []linkMessage
		err := parseLinks(tc.b, func(m linkMessage) { got = append(got, m) })
		if (err != nil) != tc.bad {
			t.Errorf("%s: error %v", name, err)
		}
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %+v", name, got)
			continue
		}
		for i := range got {
			if got[i] != tc.want[i] {
				t.Errorf("%s: got %+v, want %+v", name, got[i], tc.want[i])
			}
		}
	}
}

func FuzzParseLinks(f *testing.F) {
	full := message(rtmNewLink, 0, 7, 1, iflaIfname, "ens1", iflaOperState, byte(6), iflaCarrierChanges, uint32(12))
	f.Add(full)
	f.Add(append(full, message(rtmDelLink, 0, 8, 0)...))
	f.Add(full[:40])
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		_ = parseLinks(b, func(m linkMessage) {
			n++
			if len(m.name) > len(b) {
				t.Errorf("%+v", m)
			}
		})
		if n*(nlHeaderLen+ifInfoLen) > len(b) {
			t.Errorf("%d messages in %d bytes", n, len(b))
		}
	})
}
