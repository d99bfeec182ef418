package servertest

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write what the servers say into the golden sessions")

// golden returns the files of testdata/golden whose names without ".txt" match.
func golden(t testing.TB, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "golden", pattern+".txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden sessions %s: %v", pattern, err)
	}
	return files
}

// Golden plays the sessions in testdata/golden, each in a bubble of its own:
// play returns the session with what the server has really said.
func Golden(t *testing.T, play func(t *testing.T, session string) string) {
	t.Helper()
	for _, file := range golden(t, "*") {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			synctest.Test(t, func(t *testing.T) { got = play(t, string(want)) })
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Sent returns what the client of each golden session sends whose name matches:
// sent is what it sends because of a line of the file. It begins a fuzz corpus.
func Sent(t testing.TB, pattern string, sent func(line string) string) (sessions []string) {
	t.Helper()
	for _, file := range golden(t, pattern) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var session strings.Builder
		for line := range strings.Lines(string(text)) {
			session.WriteString(sent(strings.TrimSuffix(line, "\n")))
		}
		sessions = append(sessions, session.String())
	}
	return sessions
}

// Script plays golden sessions with a device of personality P. A line is
//
//	# a comment
//	personality NAME   one of Variants, before anything else
//	C> TEXT            the client sends it; \\ is a backslash, \r \n \x00 as in Go
//	sleep DURATION
//	S> TEXT            all that comes back, in the same form: within a second, or while it sleeps
//
// or begins with one of Words.
type Script[P any] struct {
	Personality P
	Variants    map[string]func(*P)
	Begin       func(P) *Client                         // before the first line that is not a personality
	Words       map[string]func(c *Client, rest string) // what they do before the client listens
	Hasty       bool                                    // a sleep stands in place of the second that the line before it would take
}

// Play returns the session with what the server has really said; see [Golden].
func (s Script[P]) Play(t *testing.T, session string) string {
	t.Helper()
	var c *Client
	var out strings.Builder
	var lines []string
	for line := range strings.Lines(session) {
		if !strings.HasPrefix(line, "S> ") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	for i, line := range lines {
		fmt.Fprintln(&out, line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "", "#":
			continue
		case "personality":
			change := s.Variants[rest]
			if change == nil || c != nil {
				t.Fatalf("%s: not known or too late", line)
			}
			change(&s.Personality)
			continue
		}
		if c == nil {
			c = s.Begin(s.Personality)
		}
		switch act := s.Words[word]; {
		case act != nil:
			act(c, rest)
		case word == "C>":
			text, err := unquote(rest)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			c.Send(text)
			if !s.Hasty || i+1 == len(lines) || !strings.HasPrefix(lines[i+1], "sleep ") {
				time.Sleep(time.Second)
			}
		case word == "sleep":
			pause, err := time.ParseDuration(rest)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			time.Sleep(pause)
		default:
			t.Fatalf("line %q", line)
		}
		if reply := c.Hear(); reply != "" {
			fmt.Fprintf(&out, "S> %s\n", quote(reply))
		}
	}
	return out.String()
}

// SentLine is what a line of a [Script] sends, for [Sent].
func SentLine(line string) string {
	rest, ok := strings.CutPrefix(line, "C> ")
	if !ok {
		return ""
	}
	text, err := unquote(rest)
	if err != nil {
		return "" // Play says so
	}
	return text
}

// Quotation marks stay as they are in a session, since most lines have some.

func quote(text string) string {
	quoted := strconv.Quote(strings.ReplaceAll(text, `"`, "\u00a8"))
	return strings.ReplaceAll(quoted[1:len(quoted)-1], "\u00a8", `"`)
}

func unquote(text string) (string, error) {
	return strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\x22`) + `"`)
}
