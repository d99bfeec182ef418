package tui

import (
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// fuzzStates are the states of labs that a fuzzed UI goes through.
var fuzzStates = []*live.State{tuitest.Testbed(), tuitest.Troubled(), tuitest.Empty(), tuitest.Bundle(), tuitest.Large(16, 4), busy(), {File: &lab.File{}}}

// fuzzKeys are the keys that mean something, some that do not, and texts.
var fuzzKeys = append(allKeys(), "Z", "é", "漢", "alt+y", "delete", "backspace", "insert", "f5", "tab", "shift+tab",
	"connect rail0 1>36", "link gpu1 gpu2", "configure dp", "panic smoke", "theme light", "goto rail0/33", "yes", "gpu")

// FuzzUI does to the UI what the bytes say, in whatever order: keys, pastes, sizes, clicks,
// new states, time, and commands that come back late. The first byte is the mode: odd is
// read-only; then two of each kind.
func FuzzUI(f *testing.F) {
	for _, x := range [][]byte{
		{0}, {1},
		{0, 0, 30, 0, 31, 1, 5, 2, 9},
		script(0, ":", "connect rail0 1>36", "enter", "WAIT", "y"),
		script(1, ":", "connect rail0 1>36", "enter", "WAIT", "y"),
		script(0, "!", "WAIT", "y", "u", "WAIT", "y", "U", "WAIT", "y"),
		script(0, "HOLD", "u", "esc", "u", "HOLD", "WAIT", "y", "u", "y"),
		script(0, ":", "connect rail0 1>36", "enter", "y", "y", "WAIT", "y"),
		append(script(0, "HOLD", "u", "HOLD"), 0xc0, byte(slices.Index(fuzzKeys, "y")), 5, 200, 0xc0, byte(slices.Index(fuzzKeys, "y"))),
		append(script(0, ":", "connect rail0 1>36", "enter", "WAIT"), 0xc0, byte(slices.Index(fuzzKeys, "m")), 0xc5, 200, 0xc0, byte(slices.Index(fuzzKeys, "y"))),
		append(script(0), 0xc0, byte(slices.Index(fuzzKeys, "u")), 0xc5, 200, 0xc0, byte(slices.Index(fuzzKeys, "y"))),
		script(0, "u", "WAIT", "HOLD", "y", "u", "WAIT", "y", "U", "WAIT", "y", "!", "WAIT", "y", "u", "HOLD"),
		script(0, "R", "!", "WAIT", "y", "u", "WAIT", "y", "4", "r", "WAIT", "y", "p", "t", "X", "WAIT", "y"),
		script(0, "u", "WAIT", "HOLD", "y", "R", "HOLD", "u", "WAIT", "y", ":", "configure dp", "enter", "WAIT", "y"),
		script(0, "2", " ", "down", " ", "L", "m", "WAIT", "y", "q"),
		script(0, "R", "enter", "c", "d", "C", "enter", "ctrl+s", "enter", "e", ":", "configure dp", "enter"),
		script(0, "?", "/", "gpu", "enter", "G", "Y", "esc", "esc", "ctrl+p", "gpu", "enter", "f", "STATE", "f", "T", "M"),
		script(1, "4", "r", "p", "t", "X", "WAIT", "y", "o", "enter", "5", "6", "a", "s", "S", "v", "+", "_", "0"),
	} {
		f.Add(x)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) { rough(t, dir, data[:min(len(data), 400)]) })
}

// TestUI_Rough does at random what FuzzUI does as it is led by coverage: long sequences,
// of which most are far from the seeds.
func TestUI_Rough(t *testing.T) {
	dir := t.TempDir()
	n := 150
	if testing.Short() {
		n = 20
	}
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		data := make([]byte, 601)
		for i := range data {
			data[i] = byte(r.UintN(256))
			if i%2 == 1 && r.UintN(3) > 0 {
				data[i] = 0 // more keys than all else
			}
		}
		data[0] = byte(seed)
		rough(t, dir, data)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// rough does to a UI what the bytes say, in an empty directory.
func rough(t *testing.T, dir string, data []byte) {
	if len(data) == 0 {
		return
	}
	t.Chdir(dir)
	readOnly := data[0]&1 == 1
	u := newUI(t, fuzzStates[0], 80, 24, Options{ReadOnly: readOnly})
	if data[0]&2 != 0 {
		u.lab.Answer = possible
	}
	u.watch = &watch{drawn: map[int]time.Time{}}
	for i := 1; i+1 < len(data); i += 2 {
		was, n := u.m.isReadOnly(), filesHere(u)
		u.undrawn = data[i] >= 0xc0 // what comes at once after it is not seen first
		u.step(data[i], data[i+1])
		if was && u.m.isReadOnly() && filesHere(u) > n {
			t.Fatal("a file was written in read-only")
		}
		if u.quit {
			break
		}
		pending := 0 // without panics, which wait for nothing but each other
		panics := 0
		for _, l := range u.m.layers {
			if d, ok := l.(*dialog); ok && d.wish.Verb == live.PanicNow {
				panics++
			} else if ok {
				pending++
			}
		}
		if u.m.sending != nil {
			pending++
		}
		if u.m.panicking != nil {
			panics++
		}
		if pending > 1 || panics > 1 {
			t.Fatalf("%d changes and %d panics at once", pending, panics)
		}
		if len(u.m.layers) > 12 {
			t.Fatalf("%d windows over each other", len(u.m.layers))
		}
	}
	u.release()
	files, _ := os.ReadDir(".")
	if readOnly {
		u.mutations()
		if len(files) > 0 {
			t.Errorf("%d files were written", len(files))
		}
	}
	if n := u.lab.MostPending(); n > 1 {
		t.Errorf("%d changes were sent at once", n)
	}
	for _, x := range files {
		if err := os.RemoveAll(x.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

// script is the bytes for keys: "WAIT" lets time pass, "STATE" brings another State, "HOLD"
// holds what is asked of the lab, or lets it go.
func script(mode byte, keys ...string) []byte {
	data := []byte{mode | 2}
	for _, k := range keys {
		switch k {
		case "WAIT":
			data = append(data, 5, 200)
		case "STATE":
			data = append(data, 4, 1)
		case "HOLD":
			data = append(data, 6, 0)
		default:
			data = append(data, 0, byte(slices.Index(fuzzKeys, k)))
		}
	}
	return data
}

// step does what two bytes say.
func (u *ui) step(what, which byte) {
	switch what % 8 {
	case 0, 1:
		k := fuzzKeys[int(which)%len(fuzzKeys)]
		if _, ok := named[k]; !ok && len(k) > 2 && !strings.Contains(k, "+") {
			u.write(k) // a text
			return
		}
		u.keys(k)
	case 2:
		msg := tea.MouseMsg{X: int(which) * 80 / 256, Y: int(what) >> 3, Action: tea.MouseActionPress, Button: tea.MouseButtonLeft}
		switch {
		case which%7 == 0:
			msg.Button = tea.MouseButtonWheelDown
		case which%11 == 0:
			msg.Button, msg.Shift = tea.MouseButtonWheelUp, true
		}
		u.send(msg)
	case 3:
		u.send(tea.WindowSizeMsg{Width: int(which), Height: int(what >> 2)})
	case 4:
		u.state(fuzzStates[int(which)%len(fuzzStates)])
	case 5:
		u.pass(time.Duration(which) * 10 * time.Millisecond)
	case 6:
		if u.hold {
			u.release()
		} else {
			u.hold = true
		}
	case 7:
		text := []rune(fuzzKeys[int(which)%len(fuzzKeys)])
		u.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: append(text, 'y', 'q'), Paste: which%2 == 0})
	}
}
