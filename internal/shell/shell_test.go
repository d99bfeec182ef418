package shell_test

import (
	"os/exec"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/shell"
)

func TestLine(t *testing.T) {
	got := shell.Line("ocslab", "show", "rail 0", "", "it's", "$HOME", "a=b", "0000:3b:00.0", "~", "x\ny")
	want := `ocslab show 'rail 0' '' 'it'\''s' '$HOME' a=b 0000:3b:00.0 '~' 'x` + "\ny'"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Ensure that a real shell reads back what was written.
func TestQuote_Shell(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no POSIX shell here:", err)
	}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringOf(rapid.RuneFrom([]rune("az09 '\"\\$`!*?[](){}<>|&;~#=\n\té"))), 1, 4).Draw(t, "words")
		out, err := exec.Command(sh, "-c", "printf '%s\\037' "+shell.Line(words...)).Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(out), strings.Join(words, "\x1f")+"\x1f"; got != want {
			t.Fatalf("read %q, want %q", got, want)
		}
	})
}
