package phy

import (
	"encoding/binary"
	"errors"
	"testing"
)

func TestParseLink(t *testing.T) {
	u32 := func(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }
	for _, tt := range []struct {
		name  string
		attrs map[uint16][]byte
		want  Link
		text  string
	}{
		{"up", map[uint16][]byte{attrLink: {1}}, Link{Up: true}, "up"},
		{"down", map[uint16][]byte{attrLink: {0}}, Link{}, "down"},
		{"down with a reason", map[uint16][]byte{attrLink: {0}, attrExtState: {4}}, Link{State: "No cable"}, "down (No cable)"},
		{"down with two", map[uint16][]byte{attrLink: {0}, attrExtState: {0}, attrExtSubstate: {1}},
			Link{State: "Autoneg", Substate: "No partner detected"}, "down (Autoneg, No partner detected)"},
		{"module not ready", map[uint16][]byte{attrLink: {0}, attrExtState: {10}, attrExtSubstate: {1}},
			Link{State: "Module", Substate: "CMIS module is not in ModuleReady state"}, "down (Module, CMIS module is not in ModuleReady state)"},
		{"newer than we are", map[uint16][]byte{attrLink: {0}, attrExtState: {77}, attrExtSubstate: {9}},
			Link{State: "code 77", Substate: "code 9"}, "down (code 77, code 9)"},
		{"substate 0", map[uint16][]byte{attrLink: {0}, attrExtState: {5}, attrExtSubstate: {0}},
			Link{State: "Cable issue", Substate: "code 0"}, "down (Cable issue, code 0)"},
		{"reasons of a link that is up", map[uint16][]byte{attrLink: {1}, attrExtState: {4}}, Link{Up: true}, "up"},
		{"signal quality", map[uint16][]byte{attrLink: {1}, attrSQI: u32(5), attrSQIMax: u32(7)}, Link{Up: true, SQI: 5, SQIMax: 7}, "up"},
		{"signal quality without a scale", map[uint16][]byte{attrLink: {1}, attrSQI: u32(5)}, Link{Up: true}, "up"},
		{"count", map[uint16][]byte{attrLink: {0}, attrDownCount: u32(3)}, Link{Downs: 3, CountsDowns: true}, "down"},
	} {
		got, err := parseLink(tt.attrs)
		if err != nil || got != tt.want || got.String() != tt.text {
			t.Errorf("%s: %+v, %q, %v", tt.name, got, got.String(), err)
		}
	}
	if _, err := parseLink(nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("no link state: %v", err)
	}
}
