package drivers

import (
	"reflect"
	"testing"

	"github.com/ocslab/ocslab/wire/trxlink"
)

// Ensure that a trace of the controller link names frames however they come in pieces, each
// direction by itself, and tells of what was no frame.
func TestFrames(t *testing.T) {
	t.Parallel()
	var got []string
	trace := frames(func(sent bool, p []byte) {
		mark := "< "
		if sent {
			mark = "> "
		}
		got = append(got, mark+string(p))
	})
	request := trxlink.Frame{Kind: trxlink.Read, Slot: 2, Seq: 7, Payload: []byte{0, 0xb0, 0x86, 0x14}}.Append(nil)
	reply := trxlink.Frame{Kind: trxlink.Trigger | trxlink.Reply, Slot: trxlink.Board, Seq: 8, Payload: []byte{0}}.Append(nil)
	trace(true, request[:5])
	trace(false, append([]byte("noise"), reply[:3]...))
	trace(true, append(request[5:], request...))
	trace(false, reply[3:])
	want := []string{
		"> #7 read slot 2: 00 b0 86 14", "> #7 read slot 2: 00 b0 86 14",
		"< 5 bytes of no frame", "< #8 trigger reply board: 00",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if frames(nil) != nil {
		t.Error("nobody wants a trace, and there is one")
	}
}
