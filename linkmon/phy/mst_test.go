package phy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func ms(v uint32) Timer { return Timer{v, true} }

func TestParseMST(t *testing.T) {
	for _, tt := range []struct {
		file string
		want MST
	}{
		{"mlxlink.txt", MST{
			State: "Active", PhysicalState: "LinkUp", Speed: "100G", FEC: "Standard RS-FEC - RS(528,514)",
			Other: []MSTField{
				{"Width", "4x"}, {"Loopback Mode", "No Loopback"}, {"Auto Negotiation", "ON"},
				{"Enabled Link Speed (Ext.)", "0x000007f2 (100G_2X,100G_4X,50G_1X)"},
				{"Status Opcode", "0"}, {"Recommendation", "No issue was observed"},
			},
		}},
		{"pddr-link-up.txt", MST{
			LinkUp: ms(2903), DisableToSignal: ms(412), DisableToProtocol: ms(0), SignalToPhysical: ms(2491), PhysicalToActive: ms(31),
			Other: []MSTField{
				{"Field Name", "Data"}, {"up_reason_mng", "0x00000000"}, {"up_reason_drv", "0x00000001"}, {"up_reason_pwr", "0x00000000"},
				{"fast_link_up_status", "0x00000000"},
			},
		}},
		{"mstlink.json", MST{
			State: "Active", PhysicalState: "LinkUp", Speed: "100G", LinkUp: ms(2903), ModuleConfigured: ms(800),
			Other: []MSTField{
				{"Width", "4x"}, {"Raw Physical Errors Per Lane", "0"}, {"Raw Physical Errors Per Lane", "12"}, {"code", "0"}, {"message", "success"},
			},
		}},
	} {
		b, err := os.ReadFile(filepath.Join("testdata", tt.file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseMST(b)
		if err != nil {
			t.Errorf("%s: %v", tt.file, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.file, diff)
		}
	}
}

func TestParseMST_Layout(t *testing.T) {
	for _, tt := range []struct {
		text string
		want MST
	}{
		{"", MST{}},
		{"\n-------\nOperational Info\n", MST{}},
		{"Time to link up : 2903 ms", MST{LinkUp: ms(2903)}},
		{"TIME_TO_LINK_UP_MSEC:2903msec\r\n", MST{LinkUp: ms(2903)}},
		{"time_to_link_up | 0x00000B57", MST{LinkUp: ms(2903)}},
		{"time_to_link_up : N/A", MST{}},
		{"time_to_link_up : 5\ntime_to_link_up : 0x5", MST{LinkUp: ms(5)}},
		{"\x1b[1;32mState\x1b[0m   :\x1b[31m Active \x1b[0m", MST{State: "Active"}},
		{"State : N/A", MST{}},
		{" : value without a key", MST{}},
		{"Time : 12:30", MST{Other: []MSTField{{"Time", "12:30"}}}},
		{`{"a":{"State":"Active","n":null,"b":true}}`, MST{State: "Active", Other: []MSTField{{"b", "true"}}}},
		{`{"time_to_link_up":2903}`, MST{LinkUp: ms(2903)}},
	} {
		got, err := ParseMST([]byte(tt.text))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%q: %v, -want +got\n%s", tt.text, err, diff)
		}
	}
}

func TestParseMST_Errors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"\n\ntime_to_link_up : soon", `line 3: time_to_link_up: "soon" is not a number of milliseconds`},
		{"time_to_link_up : -1", "not a number"},
		{"time_to_link_up : 2.9", "not a number"},
		{"time_to_link_up : 3 s", "not a number"},
		{"time_to_link_up : 5 ec", "not a number"},
		{"time_to_link_up : 0x", "not a number"},
		{"time_to_link_up : 4294967296", "not a number"},
		{"time_to_link_up :", "not a number"},
		{"time_to_link_up : 5\ntime_to_link_up : 6", "line 2: time_to_link_up is 6 here and was 5 before"},
		{"State : Active\nState : Polling", `was "Active" before`},
		{`{"time_to_link_up":2.5}`, "JSON: time_to_link_up"},
		{`{"a":`, "JSON: unexpected EOF"},
		{`{"a":1} {"a":2}`, "more follows"},
		{`{"a" 1}`, "JSON: "},
		{`{"a":[}`, "JSON: "},
		{`{1:2}`, "JSON: "},
		{strings.Repeat(`{"a":`, 40), "nested too deep"},
		{strings.Repeat("x", maxMST+1), "too much"},
	} {
		got, err := ParseMST([]byte(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || got.State != "" || got.LinkUp.Present {
			t.Errorf("%.60q: %+v, %v, want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestTimer(t *testing.T) {
	for _, tt := range []struct {
		timer Timer
		want  time.Duration
		ran   bool
	}{{ms(2903), 2903 * time.Millisecond, true}, {ms(0), 0, false}, {Timer{}, 0, false}} {
		if got, ran := tt.timer.Duration(); got != tt.want || ran != tt.ran {
			t.Errorf("%+v: %v, %v", tt.timer, got, ran)
		}
	}
}

// Any text is read or refused, and a timer that is there stands in it.
func FuzzParseMST(f *testing.F) {
	for _, file := range []string{"mlxlink.txt", "pddr-link-up.txt", "mstlink.json"} {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMST(b)
		if err != nil {
			return
		}
		digits := strings.ContainsAny(string(b), "0123456789")
		if m.LinkUp.Present && !digits {
			t.Errorf("a timer of %d ms from a text without digits", m.LinkUp.Milliseconds)
		}
	})
}
