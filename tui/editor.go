package tui

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/tui/canvas"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// editedMsg says that the editor has ended.
type editedMsg struct {
	request screen.EditFile
	before  os.FileInfo
	err     error
}

// reloadedMsg is what came of reading the lab file anew.
type reloadedMsg struct {
	path string
	err  error
}

// edit opens a file in the user's editor, which gets the terminal meanwhile.
func (m *model) edit(r screen.EditFile) tea.Cmd {
	info, err := os.Stat(r.Path)
	switch {
	case r.Path == "" || errors.Is(err, os.ErrNotExist) && r.Path == m.newest.File.Path:
		m.say("this lab is built in and has no file: ocslab lab --help says how to write one", true)
		return nil
	case err != nil:
		m.fail("nothing to edit", err)
		return nil
	}
	words := editorOf(m.env)
	c := exec.Command(words[0], append(words[1:], editorArgs(words[0], r)...)...)
	return tea.ExecProcess(c, func(err error) tea.Msg { return editedMsg{r, info, err} })
}

// editorOf is the user's editor with its arguments.
func editorOf(environ func(string) string) []string {
	for _, name := range []string{"VISUAL", "EDITOR"} {
		if words := strings.Fields(environ(name)); len(words) > 0 {
			return words
		}
	}
	return []string{"vi"}
}

// editorArgs are the file, and the line where the editor is known to take one.
func editorArgs(program string, r screen.EditFile) []string {
	if r.Line <= 0 {
		return []string{r.Path}
	}
	switch strings.TrimSuffix(filepath.Base(program), ".exe") {
	case "vi", "vim", "nvim", "view", "nano", "emacs", "emacsclient", "kak", "micro", "ed", "joe", "mg":
		return []string{"+" + strconv.Itoa(r.Line), r.Path}
	case "hx", "helix", "subl":
		return []string{r.Path + ":" + strconv.Itoa(r.Line)}
	case "code", "codium":
		return []string{"--goto", r.Path + ":" + strconv.Itoa(r.Line)}
	}
	return []string{r.Path}
}

// edited reads a lab file anew, and does what the screen wanted done after.
func (m *model) edited(msg editedMsg) tea.Cmd {
	cmds := []tea.Cmd{m.mouseAgain(), tea.ClearScreen}
	if msg.err != nil {
		m.fail(fmt.Sprintf("the editor (%s)", editorOf(m.env)[0]), msg.err)
		return tea.Batch(cmds...)
	}
	after, err := os.Stat(msg.request.Path)
	changed := err != nil || msg.before == nil || !after.ModTime().Equal(msg.before.ModTime()) || after.Size() != msg.before.Size()
	if path := msg.request.Path; path == m.newest.File.Path {
		if !changed {
			m.say(path+" was not changed", false)
		} else {
			m.say("reading "+path+"…", false)
			cmds = append(cmds, func() tea.Msg { return reloadedMsg{path, m.lab.Reload(m.ctx)} })
		}
	}
	return tea.Batch(append(cmds, m.requests(msg.request.Then))...)
}

// reloaded says what is wrong with a lab file, each with its line.
func (m *model) reloaded(msg reloadedMsg) {
	m.take()
	if msg.err == nil {
		m.say(msg.path+" is in force", false)
		return
	}
	var problems lab.Errors
	switch {
	case errors.Is(msg.err, live.ErrNothing):
		m.fail(msg.path, msg.err)
		return
	case !errors.As(msg.err, &problems):
		m.fail(msg.path+" was not taken", msg.err)
		return
	}
	rows := []row{line(seg{"The lab is as it was. e edits the file again.", canvas.S(canvas.Text)}), {}}
	for _, p := range problems {
		rows = append(rows, line(seg{p.Error(), canvas.S(canvas.Bad)}))
	}
	m.say(msg.path+" was not taken: it has errors", true)
	m.push(newWindow("Errors in "+filepath.Base(msg.path), rows))
}
