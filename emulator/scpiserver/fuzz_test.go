package scpiserver_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/emulator/scpiserver"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// FuzzSession sends arbitrary bytes to a session. It must not panic or wedge,
// whatever it says must be whole lines, and a client that comes later must be
// told what the matrix holds.
func FuzzSession(f *testing.F) {
	for _, session := range servertest.Sent(f, "*", servertest.SentLine) {
		f.Add([]byte(session))
	}
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, p)
			if out := converse(t, s, string(data)); len(out) > 0 && !strings.HasSuffix(out, "\r\n") {
				t.Fatalf("the output ends within a line: %q", out)
			}
			lists, err := scpi.ParseLists(converse(t, s, ":OXC:SWIT:CONN:STAT?\n"))
			if err != nil || len(lists) != 2 || len(lists[0]) != len(lists[1]) {
				t.Fatalf("%v, %v", lists, err)
			}
			var ccs []ocs.CrossConnect
			for i := range lists[0] {
				ccs = append(ccs, ocs.CrossConnect{Ingress: ocs.Port(lists[0][i]), Egress: ocs.Port(lists[1][i])})
			}
			if m, err := ocs.NewMap(ccs...); err != nil || !m.Equal(s.Device.CrossConnects()) {
				t.Fatalf("the matrix holds %v, a client is told %v, %v", s.Device.CrossConnects(), m, err)
			}
			if rest := converse(t, s, ":SYST:ERR?\n"); rest != "0, \"No error\"\r\n" {
				t.Fatalf("a new session has %q", rest)
			}
		})
	})
}

// converse returns what a session says to text.
func converse(t *testing.T, s *scpiserver.Server, text string) string {
	t.Helper()
	said, err := servertest.Converse(t, session(s), text)
	if err != nil {
		t.Fatal(err)
	}
	return said
}
