package live

import (
	"testing"
	"time"

	"github.com/ocslab/ocslab/tui/decode"
)

// What is cut off by the end of a session is told, and is not joined to what comes over
// the next one.
func TestLog_SessionEnds(t *testing.T) {
	framers, spoken := map[stream]*decode.Framer{}, map[string]string{"rail0": "tl1", "rail1": "tl1"}
	var entries []Entry
	for _, x := range []chunk{
		{name: "rail0#2", data: []byte("\r\n\n   rail0 26-11-22 09:45:14\r\nM  1 COMP")},
		{name: "rail1", data: []byte("\r\n\n   rail1 26-11-22 09:45:14\r\nM  1 CO")},
		{name: "rail0"}, // has ended
		{name: "rail0#2", data: []byte("\r\n\n   rail0 26-11-22 09:45:20\r\nM  2 COMPLD\r\n;")},
		{name: "rail1", data: []byte("MPLD\r\n;")},
	} {
		x.at = time.Unix(0, 0)
		entries = decoded(entries, framers, spoken, x)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Switch+": "+e.Text)
	}
	want := []string{"rail0: not complete: ", "rail0: completed", "rail1: completed"}
	if len(got) != len(want) || got[0][:len(want[0])] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%q, want %q", got, want)
	}
}
