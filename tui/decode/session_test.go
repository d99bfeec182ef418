package decode

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write golden files instead of comparing with them")

// said is a piece of a recorded session.
type said struct {
	sent bool
	text string
}

// session reads a golden session of the emulator's tests: lines "C> " and "S> ", of which
// those of TL1 and SCPI are Go strings without their quotes, and those of NETCONF are text, a
// message of the client up to "C.".
func session(t testing.TB, scheme, path string) []said {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list []said
	var client strings.Builder
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		sent := strings.HasPrefix(line, "C")
		text, isClient := strings.CutPrefix(line, "C> ")
		if !isClient {
			var isServer bool
			if text, isServer = strings.CutPrefix(line, "S> "); !isServer && line != "C." {
				continue
			}
		}
		if scheme != "netconf" {
			if text, err = strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`); err != nil {
				t.Fatalf("%s: %v: %s", path, err, line)
			}
			list = append(list, said{sent, text})
			continue
		}
		switch {
		case line == "C.":
			list = append(list, said{true, client.String() + endOfMessage})
			client.Reset()
		case isClient:
			client.WriteString(text + "\n")
		default:
			list = append(list, said{false, text + "\n"})
		}
	}
	if len(list) == 0 {
		t.Fatalf("%s: nothing was said", path)
	}
	return list
}

// sessions are all golden sessions by their scheme.
func sessions(t testing.TB) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for scheme, server := range map[string]string{"tl1": "tl1server", "scpi": "scpiserver", "netconf": "netconfserver"} {
		paths, err := filepath.Glob("../../emulator/" + server + "/testdata/golden/*.txt")
		if err != nil || len(paths) == 0 {
			t.Fatalf("no golden sessions of %s: %v", server, err)
		}
		all[scheme] = paths
	}
	return all
}

// TestSessions decodes what the emulator's golden sessions have, byte by byte.
func TestSessions(t *testing.T) {
	for scheme, paths := range sessions(t) {
		for _, path := range paths {
			name := scheme + "-" + filepath.Base(path)
			t.Run(name, func(t *testing.T) {
				both := map[bool]*Framer{true: New(scheme, true), false: New(scheme, false)}
				var out strings.Builder
				for _, s := range session(t, scheme, path) {
					arrow := "<"
					if s.sent {
						arrow = ">"
					}
					for _, m := range both[s.sent].Add([]byte(s.text)) {
						fmt.Fprintf(&out, "%s %s\n", arrow, Text(scheme, s.sent, m))
					}
				}
				compare(t, name, out.String())
			})
		}
	}
}

func compare(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// TestPieces: whatever the pieces are in which a session comes, the messages are the same and
// no byte is lost.
func TestPieces(t *testing.T) {
	type stream struct {
		scheme, path string
		sent         bool
		whole        string
	}
	var streams []stream
	for scheme, paths := range sessions(t) {
		for _, path := range paths {
			list := session(t, scheme, path)
			for _, sent := range []bool{false, true} {
				s := stream{scheme: scheme, path: path, sent: sent}
				for _, x := range list {
					if x.sent == sent && len(s.whole) < 6000 {
						s.whole += x.text
					}
				}
				streams = append(streams, s)
			}
		}
	}
	slices.SortFunc(streams, func(a, b stream) int { return strings.Compare(a.path, b.path) })
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom(streams).Draw(t, "stream")
		one := New(s.scheme, s.sent)
		want := one.Add([]byte(s.whole))
		want = append(want, one.Rest())
		if got := strings.Join(want, ""); got != s.whole {
			t.Fatalf("%s: the messages are not what was fed", s.path)
		}
		f := New(s.scheme, s.sent)
		var got []string
		for rest := s.whole; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 400)).Draw(t, "piece")
			got = append(got, f.Add([]byte(rest[:n]))...)
			rest = rest[n:]
		}
		got = append(got, f.Rest())
		if diff := cmp.Diff(trim(want), trim(got)); diff != "" {
			t.Fatalf("%s (-at once +in pieces):\n%s", s.path, diff)
		}
	})
}

// trim takes blanks, line ends and framing from around messages: a line end, or the delimiter
// of a message, may come with it or with the next one.
func trim(list []string) []string {
	var out []string
	for _, m := range list {
		m = strings.TrimSpace(m)
		m = strings.TrimSpace(strings.TrimPrefix(m, endOfMessage))
		m = strings.TrimSpace(strings.TrimSuffix(m, endOfMessage))
		if m != "" {
			out = append(out, m)
		}
	}
	return out
}
