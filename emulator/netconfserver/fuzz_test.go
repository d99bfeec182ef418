package netconfserver_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/internal/servertest"
	"github.com/ocslab/ocslab/wire/netconf"
)

// FuzzSession sends arbitrary bytes after the hello. The server must not panic
// or wedge, what it says must be well-formed, and whatever it says must leave
// the device with a map that get shows.
func FuzzSession(f *testing.F) {
	for _, session := range servertest.Sent(f, "*", sentLine) {
		_, requests, _ := strings.Cut(session, eom)
		f.Add([]byte(requests))
	}
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, p)
			// It fails when the session ends before.
			out, _ := servertest.Converse(t, session(s, "admin"), hello+eom, string(data))
			messages := strings.Split(out, eom)
			if messages[len(messages)-1] != "" {
				t.Fatalf("the output ends within a message: %q", out)
			}
			for _, msg := range messages[:len(messages)-1] {
				if err := wellFormed([]byte(msg)); err != nil {
					t.Fatalf("%v in %q", err, msg)
				}
			}
			if s.Device.Rebooting() {
				return
			}
			again := login(t, s, "admin")
			n, err := netconf.Parse([]byte(again.do(`<get><filter><cross-connects ` + opsw + `/></filter></get>`)))
			if err != nil {
				t.Fatal(err)
			}
			shown := map[string]string{}
			for _, c := range n.Child("", "cross-connects").Children {
				shown[c.Value("ingress")] = c.Value("egress")
			}
			held := s.Device.CrossConnects()
			for c := range held.All() {
				if shown[c.Ingress.String()] != c.Egress.String() {
					t.Fatalf("get shows %v, the matrix holds %v", shown, held)
				}
			}
			if len(shown) != held.Len() {
				t.Fatalf("get shows %v, the matrix holds %v", shown, held)
			}
		})
	})
}

// sentLine is what a line of a golden session sends.
func sentLine(line string) string {
	if line == "C." {
		return eom
	}
	if sent, ok := strings.CutPrefix(line, "C> "); ok {
		return sent + "\n"
	}
	return ""
}
