package tui

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// chunks is a terminal: one read returns what was sent at once, or as much of it as there is room for.
type chunks struct {
	ch   chan string
	rest string
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.rest == "" {
		s, ok := <-c.ch
		if !ok {
			return 0, io.EOF
		}
		c.rest = s
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// typist turns what is read from a terminal into messages, as bubbletea does: it is a program of bubbletea's.
type typist struct {
	in    *chunks
	marks *marker
	msgs  chan tea.Msg
	now   func() time.Time
}

func (y *typist) Init() tea.Cmd { return nil }
func (y *typist) View() string  { return "" }

func (y *typist) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg.(type) {
	case tea.KeyMsg, tea.MouseMsg:
		y.msgs <- msg
	}
	return y, nil
}

func newTypist(t *testing.T) *typist {
	y := &typist{in: &chunks{ch: make(chan string)}, msgs: make(chan tea.Msg), now: func() time.Time { return tuitest.Now }}
	in, marks := newInput(y.in, func() time.Time { return y.now() })
	y.marks = marks
	p := tea.NewProgram(y, tea.WithInput(in), tea.WithOutput(io.Discard), tea.WithoutRenderer(), tea.WithoutSignalHandler())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = p.Run()
	}()
	t.Cleanup(func() {
		p.Kill()
		<-ended
		close(y.in.ch)
	})
	return y
}

// isLast reports whether a message is the release of the mouse that ends what is to be turned into messages.
func isLast(msg tea.Msg) bool {
	m, ok := msg.(tea.MouseMsg)
	return ok && m.X == 6 && m.Y == 6 && m.Action == tea.MouseActionRelease
}

// messages are those of reads.
func (y *typist) messages(reads ...string) []tea.Msg {
	go func() {
		for _, r := range append(slices.Clone(reads), "\x1b[<0;7;7m") {
			y.in.ch <- r
		}
	}()
	var msgs []tea.Msg
	for {
		if msg := <-y.msgs; isLast(msg) {
			return msgs[:len(msgs)-1] // without its mark
		} else {
			msgs = append(msgs, msg)
		}
	}
}

// reads gives a UI what is read from a terminal, a read at a time.
func (u *ui) reads(y *typist, reads ...string) {
	y.now = func() time.Time { return u.clock }
	msgs := y.messages(reads...)
	u.m.marks = y.marks
	for _, msg := range msgs {
		u.send(msg)
	}
	u.m.marks = nil
}

// Ensure each read has its mark, in its place among the messages, and that bubbletea makes the keys of the rest that
// it makes without marks.
func TestMarker(t *testing.T) {
	y := newTypist(t)
	long := strings.Repeat("x", 600)
	for _, tt := range []struct {
		reads []string
		want  string // messages; | is a mark, |1 that of a read of one key
	}{
		{[]string{"a"}, "|1 a"},
		{[]string{"a", "b"}, "|1 a |1 b"},
		{[]string{"ab", "c"}, "| ab |1 c"},
		{[]string{"!smoke\ry", "y"}, "| !smoke enter y |1 y"},
		{[]string{"漢", "é!"}, "|1 漢 | é!"},
		{[]string{"\x1b", "y"}, "|1 esc |1 y"},
		{[]string{"a\x1b", "y"}, "| a esc |1 y"},
		{[]string{"\x1b[A", "\x1bOA", "\x1by", "\x1b[1;5C", "\x1b[[A", "\x1b[3~", "\r", " ", "\x03"}, "|1 up |1 up |1 alt+y |1 ctrl+right |1 f1 |1 delete |1 enter |1   |1 ctrl+c"},
		{[]string{"\x1b[A\r", "y\x1b[A"}, "| up enter | y up"},
		{[]string{"\x1b[<0;5;3m", "y"}, "|1 mouse4,2 |1 y"},
		{[]string{"\x1b[200~y\x1b[201~", "y"}, "| [y] |1 y"},
		{[]string{"\x1b[200~y\x1b[201~y", "y"}, "| [y] y |1 y"},
		// A paste in pieces is one read, even of single letters, and wherever it is cut.
		{[]string{"\x1b[200~", "y", "\x1b", "[201", "~y", "y"}, "| [y] y |1 y"},
		{[]string{"a\x1b[200~b", "y", "c\x1b[20", "1~", "y"}, "| a [byc] |1 y"},
		{[]string{"\x1b[200~" + long + "\x1b[201~", "y"}, "| [" + long + "] |1 y"},
		// What bubbletea does not take for the beginning of a paste does not silence the marks.
		{[]string{"\x1b\x1b[200~", "y"}, "|1 alt+esc [200~ |1 y"},
	} {
		var got []string
		for _, msg := range y.messages(tt.reads...) {
			switch msg := msg.(type) {
			case tea.KeyMsg:
				got = append(got, msg.String())
			case tea.MouseMsg:
				_, alone, ok := y.marks.parse(msg)
				switch {
				case !ok:
					got = append(got, fmt.Sprintf("mouse%d,%d", msg.X, msg.Y))
				case alone:
					got = append(got, "|1")
				default:
					got = append(got, "|")
				}
			}
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: %s, want %s", tt.reads, s, tt.want)
		}
	}
	// Nothing of what is longer than a read counts as a read of its own.
	var n, marks int
	for _, msg := range y.messages(strings.Repeat("z", 2*256-markLen) + "y") {
		if k, ok := msg.(tea.KeyMsg); ok {
			n += len(k.Runes)
		} else {
			marks++
		}
	}
	if n != 2*256-markLen+1 || marks != 1 {
		t.Errorf("%d letters behind %d marks", n, marks)
	}
}

// Ensure a mark that comes from the terminal is none.
func TestMarker_Forged(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = possible
	y := newTypist(t)
	u.reads(y, "u")
	u.clock = u.clock.Add(time.Second)
	for _, secret := range []int{0, 1, 1 << 61, y.marks.secret - 1, y.marks.secret + 1} {
		u.reads(y, fmt.Sprintf(markFormat, secret+1, 2*int(time.Hour)+2)+"y")
	}
	u.mutations()
	u.clock = u.clock.Add(time.Second)
	u.reads(y, "y")
	u.mutations("apply undo")
}

// Ensure the panic key counts among others that arrive with it, wherever it is pressed, and that nothing behind it is
// acted on.
func TestBurst_Panic(t *testing.T) {
	y := newTypist(t)
	for _, open := range []struct {
		name string
		keys []string
	}{
		{"patch", nil}, {"links", []string{"2"}}, {"timeline", []string{"3"}}, {"experiment", []string{"4"}}, {"devices", []string{"5"}}, {"log", []string{"6"}},
		{"help", []string{"?"}}, {"palette", []string{"ctrl+p"}}, {"configurations", []string{"C"}}, {"preview", []string{"u"}}, {"question", []string{"4", "X"}},
		{"quitting", []string{"q"}},
	} {
		for _, burst := range []string{
			"!smoke\ry", "!y", "!\ry", "!y!y", "jj!\ry", "cd!y", "\r!\ry", "\x1b[A!\ry", "/x!\ry",
			":connect rail0 1>36\r!\ry", "!q", "!\x1b", "\x1b!y", "!\x03", "!\x1b[<0;5;20M",
			"\x1b[200~smoke!\ry\x1b[201~", "!\x1b[200~y\x1b[201~", strings.Repeat("j", 400) + "!\ry",
		} {
			u := newUI(t, busy(), 80, 24, Options{})
			u.lab.Answer = possible
			u.keys(open.keys...)
			u.clock = u.clock.Add(time.Second)
			u.reads(y, burst)
			if d := u.dialog(); d == nil || !d.isPanic() || len(u.m.layers) != 1 {
				t.Errorf("%s, %q: no panic is asked for, or not that alone:\n%s", open.name, burst, u.text())
			}
			u.mutations()
			u.reads(y, "y") // at once, and never mind what the switches say
			u.mutations(`apply panic --reason "no reason given"`)
			if u.quit {
				t.Errorf("%s, %q: has quit", open.name, burst)
			}
		}
	}
}

// Ensure the panic key is a letter in a prompt, and only there.
func TestBurst_PanicIsText(t *testing.T) {
	y := newTypist(t)
	u := newUI(t, tuitest.Testbed(), 80, 24, Options{})
	u.lab.Answer = possible
	for _, reads := range [][]string{{"/", "!dark"}, {"/", "!", "d", "ark"}, {"/", "\x1b[200~!dark\x1b[201~"}} {
		u.reads(y, reads...)
		if p, ok := u.m.top().(*prompt); !ok || p.edit.String() != "!dark" {
			t.Errorf("%q: %T\n%s", reads, u.m.top(), u.text())
		}
		u.keys("esc")
	}
	u.reads(y, ":", "undo!\r")
	u.wants(":undo!")
	u.keys("esc")
	for _, read := range []string{"dark\r!y", "\x1b!y"} { // the prompt is closed by then
		u.reads(y, "/", read)
		if d := u.dialog(); d == nil || !d.isPanic() {
			t.Errorf("%q: no panic is asked for:\n%s", read, u.text())
		}
		u.keys("esc")
	}
	u.mutations()
}

// Ensure a panic needs neither an answer of the switches nor room on the screen.
func TestPanic_Now(t *testing.T) {
	u := newPages(t, tuitest.Testbed(), Options{})
	u.hold = true
	u.keys("!")
	looking := u.held
	u.hold = false
	u.held = nil
	u.wants("asking the switches", "y do it")
	u.keys("y")
	u.mutations(`apply panic --reason "no reason given"`)
	for _, c := range looking { // too late
		u.do(c)
	}
	if u.dialog() != nil {
		t.Error("a preview opened after the panic")
	}

	u.lab.Answer = func(w live.Wish) live.Preview {
		return live.Preview{Wish: w, Err: fmt.Errorf("the history is damaged")}
	}
	u.keys("!", "y")
	u.lab.Answer = possible
	u.send(tea.WindowSizeMsg{Width: 30, Height: 8})
	u.keys("!")
	u.wants("panic: no reason given? y")
	u.keys("y")
	u.mutations(slices.Repeat([]string{`apply panic --reason "no reason given"`}, 3)...)
}

// Ensure whatever has to be confirmed is confirmed by y alone, and that what is typed does not get into a list that
// it is picked from.
func TestConfirm(t *testing.T) {
	y := newTypist(t)
	under := busy
	ended := func() *live.State {
		s := busy()
		s.Run.Ended = true
		return s
	}
	for _, tt := range []struct {
		name  string
		state func() *live.State
		open  func(u *ui)
		want  string // what the lab is called for
	}{
		{"disconnect", ended, func(u *ui) { u.command("disconnect rail0 1") }, "apply disconnect rail0 1"},
		{"undo", ended, func(u *ui) { u.keys("u") }, "apply undo"},
		{"lift", ended, func(u *ui) { u.command("lift") }, "apply lift"},
		{"configure", ended, func(u *ui) { u.keys("C", "enter") }, "apply configure dp"},
		{"panic", under, func(u *ui) { u.keys("!") }, `apply panic --reason "no reason given"`},
		{"abort", under, func(u *ui) { u.keys("4", "X") }, "abort"},
		{"resume", ended, func(u *ui) { u.command("resume 20261122T150405-x-1a2b") }, "resume 20261122T150405-x-1a2b"},
		{"quit", under, func(u *ui) { u.keys("q") }, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			open := func() *ui {
				u := newUI(t, tt.state(), 80, 24, Options{})
				u.lab.Answer = possible
				tt.open(u)
				if u.dialog() == nil {
					t.Fatalf("nothing is asked:\n%s", u.text())
				}
				u.clock = u.clock.Add(time.Second)
				return u
			}
			for _, text := range []string{"resume\r", "es\r", "\r", " ", "x", "\x1b[200~y\x1b[201~"} {
				u := open()
				before := u.dialog()
				for _, r := range strings.Split(text, "") {
					if strings.HasPrefix(text, "\x1b") {
						r = text
					}
					u.clock = u.clock.Add(time.Second)
					u.reads(y, r)
					if r == text {
						break
					}
				}
				u.reads(y, "yy", "ky", "y\r", "\ry", "\x1b[Ay", "\x1bOy")
				if u.mutations(); u.dialog() != before || u.quit {
					t.Errorf("%q: the question is closed", text)
				}
			}
			for _, k := range []string{"esc", "n", "q", "ctrl+c"} {
				u := open()
				u.keys(k)
				u.clock = u.clock.Add(time.Second)
				u.keys("y")
				if u.mutations(); u.dialog() != nil || u.quit {
					t.Errorf("%s does not close it, or does it", k)
				}
			}
			u := open()
			u.reads(y, "y")
			if tt.want != "" {
				u.mutations(tt.want)
			} else if !u.quit {
				t.Error("y does not quit")
			}
		})
	}
}

// Ensure a y that was read before its question could be, or close behind another key, does not count, however late it
// is acted on.
func TestConfirm_Arrival(t *testing.T) {
	y := newTypist(t)
	u := newPages(t, tuitest.Testbed(), Options{})
	u.lab.Answer = possible
	y.now = func() time.Time { return u.clock }
	early := y.messages("u", "y")
	u.m.marks = y.marks
	for _, msg := range early { // a machine that is busy comes to it a minute later
		u.clock = u.clock.Add(time.Minute)
		u.send(msg)
	}
	u.m.marks = nil
	if u.mutations(); u.dialog() == nil {
		t.Fatal("the question is gone")
	}
	u.clock = u.clock.Add(time.Second)
	u.reads(y, "j")
	u.clock = u.clock.Add(look / 2)
	u.reads(y, "y")
	u.mutations()
	u.clock = u.clock.Add(look)
	u.reads(y, "y")
	u.mutations("apply undo")
}

// tokens are what a terminal can send: keys, and texts of which something might happen.
var tokens = []string{
	"y", "y", "n", "\r", "\r", "\x1b", "\x1b[A", "\x1b[B", "\x1b[C", " ", "\t", "\x03", "\x10", "\x15", "c", "d", "L", "K", "C", "u", "U", "r", "p", "t", "X", "m", "j",
	"1", "2", "3", "4", "5", "6", "?", "/", ":", "'", "f", "R", "q", "o", "v", "Y", "\x1b[<0;5;20M", "\x1b[<0;30;6M\x1b[<0;30;6m",
	":connect rail0 1>36\r", ":disconnect rail0 1\r", ":undo\r", ":abort\r", ":stop\r", ":pause\r", ":resume 20261122T150405-x-1a2b\r", ":panic smoke\r", ":write\r",
	"\x1b[200~y\x1b[201~", "\x1b[200~!y\ry\x1b[201~", "smoke", "resume\r", "yes\ry\r",
}

// Ensure that whatever arrives at once moves no light, wherever it arrives; and that where the panic key is in it, a
// panic is asked for, and is all that the next y does.
func TestBurst_NeverActs(t *testing.T) {
	t.Chdir(t.TempDir())
	y := newTypist(t)
	states := []*live.State{tuitest.Testbed(), busy()}
	rapid.Check(t, func(r *rapid.T) {
		u := newUI(t, rapid.SampledFrom(states).Draw(r, "state"), 80, 24, Options{})
		u.lab.Answer = possible
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(tokens), 0, 3).Draw(r, "before") {
			u.clock = u.clock.Add(time.Second)
			u.reads(y, k)
		}
		u.clock = u.clock.Add(time.Second)
		before := u.lab.Mutations()
		u.quit = false
		_, prompted := u.m.top().(*prompt)
		burst := rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 6).Draw(r, "burst")
		panics := rapid.Bool().Draw(r, "panics")
		if panics {
			burst = slices.Insert(burst, rapid.IntRange(0, len(burst)).Draw(r, "at"), "!")
		} else {
			burst = append(burst, "j")
		}
		text := strings.Join(burst, "")
		u.reads(y, text)
		if got := u.lab.Mutations(); !slices.Equal(got, before) {
			r.Fatalf("%q did %q", text, got[len(before):])
		}
		if !panics || prompted || u.m.isReadOnly() || u.m.panicking != nil {
			return
		}
		if d := u.dialog(); d == nil || !d.isPanic() || len(u.m.layers) != 1 {
			r.Fatalf("%q: no panic is asked for, or not that alone:\n%s", text, u.text())
		}
		u.reads(y, "y")
		if got := u.lab.Mutations()[len(before):]; len(got) != 1 || !strings.HasPrefix(got[0], "apply panic") {
			r.Fatalf("y after %q did %q", text, got)
		}
	})
}

// Ensure that a text that arrives letter by letter, as a paste does over a serial line, moves no light, unless it
// calls for a panic.
func TestTypedAhead(t *testing.T) {
	t.Chdir(t.TempDir())
	y := newTypist(t)
	rapid.Check(t, func(r *rapid.T) {
		u := newUI(t, tuitest.Testbed(), 80, 24, Options{})
		u.lab.Answer = possible
		for _, k := range rapid.SliceOfN(rapid.SampledFrom(tokens), 1, 40).Draw(r, "keys") {
			if strings.HasPrefix(k, "\x1b[200~") || strings.Contains(k, "panic") || strings.HasPrefix(k, "\x1b[<") {
				continue
			}
			keys := strings.Split(k, "")
			if strings.HasPrefix(k, "\x1b") {
				keys = []string{k}
			}
			for _, one := range keys {
				u.clock = u.clock.Add(time.Duration(rapid.IntRange(1, 150).Draw(r, "ms")) * time.Millisecond)
				u.reads(y, one)
			}
		}
		if got := u.lab.Mutations(); len(got) > 0 {
			r.Fatalf("did %q", got)
		}
	})
}
