package tl1_test

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/wire/tl1"
)

func TestParseList(t *testing.T) {
	for _, tt := range []struct {
		s      string
		want   []tl1.Item
		offset int // of the error
	}{
		{s: ""},
		{s: " "},
		{s: "3", want: []tl1.Item{{First: "3"}}},
		{s: "1&4&7", want: []tl1.Item{{First: "1"}, {First: "4"}, {First: "7"}}},
		{s: "10001&&10048&20001&&20048", want: []tl1.Item{{"10001", "10048"}, {"20001", "20048"}}},
		{s: " 1 && 3 & ALL ", want: []tl1.Item{{"1", "3"}, {First: "ALL"}}},
		{s: `src1&"a & b"`, want: []tl1.Item{{First: "src1"}, {First: "a & b"}}},
		{s: "-10", want: []tl1.Item{{First: "-10"}}},
		{s: "1.1.1&-3", want: []tl1.Item{{First: "1.1.1"}, {First: "-3"}}},
		{s: "&1", offset: 1},
		{s: "1&", offset: 3},
		{s: "1&&", offset: 4},
		{s: "1&&&3", offset: 4},
		{s: "1&&3&&5", offset: 5},
	} {
		got, err := tl1.ParseList(tt.s)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("ParseList(%q) (-want +got):\n%s", tt.s, diff)
		}
		var se *tl1.SyntaxError
		if errors.As(err, &se) != (tt.offset > 0) || se != nil && se.Offset != tt.offset {
			t.Errorf("ParseList(%q): error %v, want one at offset %d", tt.s, err, tt.offset)
		}
	}
}

func TestAppendRanges(t *testing.T) {
	for _, tt := range []struct {
		ports        []uint32
		single, runs string
	}{
		{nil, "", ""},
		{[]uint32{5}, "5", "5"},
		{[]uint32{1, 2}, "1&2", "1&2"},
		{[]uint32{1, 2, 3, 4, 7, 8, 10}, "1&2&3&4&7&8&10", "1&&4&7&8&10"},
		{[]uint32{3, 2, 1}, "3&2&1", "3&2&1"},
		{[]uint32{math.MaxUint32 - 1, math.MaxUint32, 0}, "4294967294&4294967295&0", "4294967294&4294967295&0"},
	} {
		if got := string(tl1.AppendPorts(nil, tt.ports)); got != tt.single {
			t.Errorf("AppendPorts(%v) = %q, want %q", tt.ports, got, tt.single)
		}
		if got := string(tl1.AppendRanges(nil, tt.ports)); got != tt.runs {
			t.Errorf("AppendRanges(%v) = %q, want %q", tt.ports, got, tt.runs)
		}
	}
}

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ports := rapid.SliceOf(rapid.Uint32Range(0, 12)).Draw(t, "ports")
		for _, wire := range [][]byte{tl1.AppendPorts(nil, ports), tl1.AppendRanges(nil, ports)} {
			items, err := tl1.ParseList(string(wire))
			if err != nil {
				t.Fatal(err)
			}
			var got []uint32
			for _, it := range items {
				first, _ := strconv.ParseUint(it.First, 10, 32)
				last := first
				if it.Last != "" {
					last, _ = strconv.ParseUint(it.Last, 10, 32)
				}
				for p := first; p <= last; p++ {
					got = append(got, uint32(p))
				}
			}
			if !slices.Equal(got, ports) {
				t.Fatalf("%s expands to %v, want %v", wire, got, ports)
			}
		}
	})
}
