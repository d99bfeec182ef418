package ocs_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/ocs"
	"pgregory.net/rapid"
)

func TestParseMap(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{"", ""},
		{"  ", ""},
		{"1>33", "1>33"},
		{" 1 > 33 , 2 >34 ", "1>33,2>34"},
		{"1-4>33-36,7>40", "1-4>33-36,7>40"},
		{"2>34,1>33,3>35", "1-3>33-35"},
		{"1-2>34-33", "1>34,2>33"},
		{"5-5>7-7", "5>7"},
		{"65535>1", "65535>1"},
	} {
		m, err := ocs.ParseMap(tc.text)
		if err != nil || m.String() != tc.want {
			t.Errorf("ParseMap(%q)=%q, %v, want %q", tc.text, m, err, tc.want)
		}
	}
}

func TestParseMap_Errors(t *testing.T) {
	for _, tc := range []struct {
		text   string
		offset int
		reason string
	}{
		{"x", 0, "want a port number"},
		{"1", 1, "want '>'"},
		{"1>", 2, "want a port number"},
		{"1>33,", 5, "want a port number"},
		{"1>33 2>34", 5, "want ','"},
		{"1>33;2>34", 4, "want ','"},
		{"0>33", 0, "from 1 to 65535"},
		{"1>65536", 2, "from 1 to 65535"},
		{"1>99999999999999999999", 2, "from 1 to 65535"},
		{"1-4>33-35", 4, "3 egress ports for 4 ingress ports"},
		{"1-4>33", 4, "1 egress ports for 4"},
		{"1>33,1>34", 5, "ingress 1 is used twice, by 1>33 and 1>34"},
		{"1>33,2>33", 7, "egress 33 is used twice, by 1>33 and 2>33"},
		{"1>33,1>33", 5, "used twice"},
		{"-1>33", 0, "want a port number"},
		{"1->33", 2, "want a port number"},
		{"1>33\x00", 4, "want ','"},
	} {
		_, err := ocs.ParseMap(tc.text)
		var se *ocs.SyntaxError
		if !errors.As(err, &se) || se.Offset != tc.offset || !strings.Contains(se.Reason, tc.reason) {
			t.Errorf("ParseMap(%q): %v, want offset %d, %q", tc.text, err, tc.offset, tc.reason)
		}
		if twice := strings.Contains(tc.reason, "twice"); twice != errors.Is(err, ocs.ErrConflict) {
			t.Errorf("ParseMap(%q): errors.Is ErrConflict is %v", tc.text, !twice)
		}
		if strings.ContainsAny(err.Error(), "\n\x00") {
			t.Errorf("%q is not one printable sentence", err)
		}
	}
	if _, err := ocs.ParseMap("1>33," + strings.Repeat("x", 1<<20)); len(err.Error()) > 500 {
		t.Errorf("the error is %d bytes long", len(err.Error()))
	}
}

func TestMap_TextRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMap(t, 24, "m")
		text, _ := m.MarshalText()
		var back ocs.Map
		if err := back.UnmarshalText(text); err != nil || !back.Equal(m) {
			t.Fatalf("%s: %v (%v)", text, back, err)
		}
	})
	m := mustParse(t, "1>33")
	if err := m.UnmarshalText([]byte("1>")); err == nil || m.String() != "1>33" {
		t.Errorf("a bad text must leave the map alone: %v %v", m, err)
	}
}

func TestParsePorts(t *testing.T) {
	got, err := ocs.ParsePorts("1-3, 7,33")
	if want := []ocs.Port{1, 2, 3, 7, 33}; err != nil || !slices.Equal(got, want) {
		t.Errorf("ParsePorts=%v, %v, want %v", got, err, want)
	}
	if text := ocs.FormatPorts([]ocs.Port{33, 7, 3, 2, 1, 7}); text != "1-3,7,33" {
		t.Errorf("FormatPorts=%q", text)
	}
	if got, err := ocs.ParsePorts(" "); got != nil || err != nil {
		t.Errorf("ParsePorts of nothing=%v, %v", got, err)
	}
	for text, offset := range map[string]int{"x": 0, "1,": 2, "1>2": 1, "1,2-4,3": 6, "0": 0} {
		var se *ocs.SyntaxError
		if _, err := ocs.ParsePorts(text); !errors.As(err, &se) || se.Offset != offset {
			t.Errorf("ParsePorts(%q): %v, want offset %d", text, err, offset)
		}
	}
}

func FuzzParseMap(f *testing.F) {
	for _, s := range []string{"", "1>33", "1-4>33-36,7>40", "4-1>33-36", "1>33,1>34", "65535-1>1-65535", "1-65535>1-65535", ">", "１>2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ocs.ParseMap(s)
		if err != nil {
			var se *ocs.SyntaxError
			if !errors.As(err, &se) || se.Offset < 0 || se.Offset > len(s) {
				t.Fatalf("%q: %v", s, err)
			}
			return
		}
		again, err := ocs.ParseMap(m.String())
		if err != nil || !again.Equal(m) {
			t.Fatalf("%q: %v became %v (%v)", s, m, again, err)
		}
	})
}
