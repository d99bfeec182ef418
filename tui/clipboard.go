package tui

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/internal/natural"
)

// mostCopied is how many bytes are copied at once: more than some terminals take, which
// then take nothing, and say nothing.
const mostCopied = 74000

// copiedMsg is what came of copying.
type copiedMsg struct {
	lines int
	err   error
}

// copy puts a text on the clipboard of the terminal, which also works from another
// machine.
func (m *model) copy(text string) tea.Cmd {
	switch {
	case text == "":
		m.say("there is nothing here to copy", false)
		return nil
	case len(text) > mostCopied:
		m.say(fmt.Sprintf("%d kB are more than terminals copy: ctrl+s saves it to a file", len(text)/1000), true)
		return nil
	}
	seq := osc52(text, m.env)
	lines := strings.Count(strings.TrimRight(text, "\n"), "\n") + 1
	return func() tea.Msg {
		_, err := io.WriteString(m.out, seq)
		return copiedMsg{lines, err}
	}
}

func (m *model) copied(msg copiedMsg) {
	if msg.err != nil {
		m.fail("nothing was copied", msg.err)
		return
	}
	m.say("copied "+natural.Count(msg.lines, "line")+", if the terminal allows that (OSC 52)", false)
}

// osc52 is the sequence that puts a text on the clipboard. Inside tmux it is wrapped so
// that tmux hands it on, which needs its option allow-passthrough; inside GNU screen
// likewise.
func osc52(text string, environ func(string) string) string {
	seq := "\x1b]52;c;" + base64.StdEncoding.EncodeToString([]byte(text)) + "\x07"
	switch {
	case environ("TMUX") != "":
		return "\x1bPtmux;" + strings.ReplaceAll(seq, "\x1b", "\x1b\x1b") + "\x1b\\"
	case strings.HasPrefix(environ("TERM"), "screen"):
		// GNU screen hands on 768 bytes at most at once.
		var b strings.Builder
		for len(seq) > 0 {
			n := min(len(seq), 700)
			b.WriteString("\x1bP" + seq[:n] + "\x1b\\")
			seq = seq[n:]
		}
		return b.String()
	}
	return seq
}
