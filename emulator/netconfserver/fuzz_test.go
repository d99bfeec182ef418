package netconfserver_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/wire/netconf"
)

// FuzzSession sends arbitrary bytes after the hello. The server must not panic
// or wedge, what it says must be well-formed, and whatever it says must leave
// the device with a map that get shows.
func FuzzSession(f *testing.F) {
	files, _ := filepath.Glob("testdata/golden/*.txt")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var session strings.Builder
		for line := range strings.Lines(string(text)) {
			if sent, ok := strings.CutPrefix(line, "C> "); ok {
				session.WriteString(sent)
			} else if line == "C.\n" {
				session.WriteString(eom)
			}
		}
		_, requests, _ := strings.Cut(session.String(), eom)
		f.Add([]byte(requests))
	}
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, p)
			ours, theirs := net.Pipe()
			go s.ServeSession(t.Context(), theirs, emulator.SessionInfo{User: "admin"})
			var out []byte
			read := make(chan struct{})
			go func() {
				defer close(read)
				out, _ = io.ReadAll(ours)
			}()
			io.WriteString(ours, hello+eom)
			ours.Write(data) // fails when the session ends before
			synctest.Wait()
			ours.Close()
			<-read
			messages := strings.Split(string(out), eom)
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
