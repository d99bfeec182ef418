package scpiserver_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// FuzzSession sends arbitrary bytes to a session. It must not panic or wedge,
// whatever it says must be whole lines, and a client that comes later must be
// told what the matrix holds.
func FuzzSession(f *testing.F) {
	files, err := filepath.Glob("testdata/golden/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		var session strings.Builder
		for _, line := range strings.Split(string(text), "\n") {
			if command, ok := strings.CutPrefix(line, "C> "); ok {
				if s, err := strconv.Unquote(`"` + strings.ReplaceAll(command, `"`, `\x22`) + `"`); err == nil {
					session.WriteString(s)
				}
			}
		}
		f.Add([]byte(session.String()))
	}
	p := personality()
	p.Switching = emulator.Switching{Ack: emulator.AckBefore}
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, p)
			if out := converse(t, s, data); len(out) > 0 && !strings.HasSuffix(out, "\r\n") {
				t.Fatalf("the output ends within a line: %q", out)
			}
			lists, err := scpi.ParseLists(converse(t, s, []byte(":OXC:SWIT:CONN:STAT?\n")))
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
			if rest := converse(t, s, []byte(":SYST:ERR?\n")); rest != "0, \"No error\"\r\n" {
				t.Fatalf("a new session has %q", rest)
			}
		})
	})
}

// converse returns what a session says to data.
func converse(t *testing.T, s emulator.FrontEnd, data []byte) string {
	ours, theirs := net.Pipe()
	go s.ServeSession(t.Context(), theirs, emulator.SessionInfo{})
	var out []byte
	read := make(chan struct{})
	go func() {
		defer close(read)
		out, _ = io.ReadAll(ours)
	}()
	if _, err := ours.Write(data); err != nil {
		t.Fatal(err)
	}
	synctest.Wait() // all that was complete is answered
	ours.Close()
	<-read
	return string(out)
}
