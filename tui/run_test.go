package tui

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/exp/teatest"

	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

// terminal remembers what is written to it, and lets a test wait for something.
type terminal struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{}
}

func newTerminal() *terminal { return &terminal{more: make(chan struct{}, 1)} }

func (w *terminal) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.text.Write(p)
	select {
	case w.more <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (w *terminal) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// await waits until the terminal has been written a text.
func (w *terminal) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(20 * time.Second)
	for !strings.Contains(w.String(), text) {
		select {
		case <-w.more:
		case <-late:
			t.Fatalf("%q has not been written: %q", text, w.String())
		}
	}
}

const (
	enterAlternate = "\x1b[?1049h"
	leaveAlternate = "\x1b[?1049l"
	showCursor     = "\x1b[?25h"
	mouseOff       = "\x1b[?1002l"
)

// start runs the UI on a lab, and returns its terminal, its keyboard, and what Run
// returns.
func start(t *testing.T, ctx context.Context, l live.Lab) (*terminal, io.Writer, <-chan error) {
	t.Helper()
	in, keyboard := io.Pipe()
	out := newTerminal()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Options{Lab: l, In: in, Out: out, Environ: func(string) string { return "" }})
		in.Close()
	}()
	out.await(t, enterAlternate)
	t.Cleanup(func() { keyboard.Close() })
	return out, keyboard, ended
}

func restored(t *testing.T, out *terminal) {
	t.Helper()
	for _, s := range []string{leaveAlternate, showCursor, mouseOff} {
		if !strings.Contains(out.String(), s) {
			t.Errorf("%q has not been written at the end", s)
		}
	}
}

func TestRun_Quit(t *testing.T) {
	out, keyboard, ended := start(t, t.Context(), tuitest.NewLab(tuitest.Testbed()))
	if _, err := keyboard.Write([]byte("q")); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	restored(t, out)
}

func TestRun_Context(t *testing.T) {
	gone := errors.New("the lab is gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	out, _, ended := start(t, ctx, tuitest.NewLab(tuitest.Testbed()))
	cancel(gone)
	if err := <-ended; !errors.Is(err, gone) {
		t.Error(err)
	}
	restored(t, out)
}

func TestRun_Signals(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(s.String(), func(t *testing.T) {
			// bubbletea listens on a goroutine of its own, soon. Until then the signal must not end the tests, and is
			// sent again.
			ours := make(chan os.Signal, 1)
			signal.Notify(ours, s)
			defer signal.Stop(ours)
			out, _, ended := start(t, t.Context(), tuitest.NewLab(tuitest.Testbed()))
			p, err := os.FindProcess(os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			for again := true; again; {
				if err := p.Signal(s); err != nil {
					t.Fatal(err)
				}
				select {
				case err := <-ended:
					if err != nil {
						t.Error(err)
					}
					again = false
				case <-time.After(time.Second):
				}
			}
			restored(t, out)
		})
	}
}

// broken is a lab whose second State makes the UI panic.
type broken struct {
	*tuitest.Lab
	mu sync.Mutex
	n  int
}

func (b *broken) State() *live.State {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n++; b.n > 1 {
		panic("a test of what a panic leaves behind")
	}
	return b.Lab.State()
}

func TestRun_Panic(t *testing.T) {
	lab := &broken{Lab: tuitest.NewLab(tuitest.Testbed())}
	out, _, ended := start(t, t.Context(), lab)
	lab.Set(tuitest.Testbed())
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "had to give up") {
		t.Error(err)
	}
	restored(t, out)
}

func TestRun_Options(t *testing.T) {
	if err := Run(t.Context(), Options{Lab: tuitest.NewLab(tuitest.Testbed()), Theme: "pink"}); err == nil {
		t.Error("there is a pink theme")
	}
}

// TestQuiet: package quiet is initialized before bubbletea, and has put the environment back.
func TestQuiet(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, ci := range []string{"unset", "", "yes"} {
		c := exec.CommandContext(t.Context(), exe, "-test.run=TestQuietChild")
		c.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "CI=") }), "GODEBUG=inittrace=1", "OCSLAB_TUI_QUIET="+ci)
		if ci != "unset" {
			c.Env = append(c.Env, "CI="+ci)
		}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("CI %q: %v\n%s", ci, err, out)
		}
		quiet := bytes.Index(out, []byte("init github.com/ocslab/ocslab/tui/quiet "))
		bubbletea := bytes.Index(out, []byte("init github.com/charmbracelet/bubbletea "))
		if quiet < 0 || bubbletea < 0 || quiet > bubbletea {
			t.Errorf("initialized at %d and %d of:\n%s", quiet, bubbletea, out)
		}
	}
}

func TestQuietChild(t *testing.T) {
	want, ok := os.LookupEnv("OCSLAB_TUI_QUIET")
	if !ok {
		return // it is started by TestQuiet
	}
	got, ok := os.LookupEnv("CI")
	if !ok {
		got = "unset"
	}
	if got != want {
		t.Errorf("CI is %q, and was %q", got, want)
	}
}

// TestAwait: a change that is being sent is waited for, though the terminal is gone.
func TestAwait(t *testing.T) {
	m := &model{}
	m.await(time.Hour)
	done := make(chan struct{})
	m.sending = &sending{done: done}
	go close(done)
	m.await(time.Hour)
	m.sending = &sending{done: make(chan struct{})}
	m.await(time.Millisecond)
}

// TestProgram shows each screen in a program of bubbletea, by its key.
func TestProgram(t *testing.T) {
	for _, x := range []struct{ key, want string }{
		{"1", "Patch"}, {"2", "gpu4/ens1f0"}, {"3", "Timeline"}, {"4", "Experiment"}, {"5", "rail0"}, {"6", "Log"},
	} {
		t.Run(x.want, func(t *testing.T) {
			m, err := newModel(t.Context(), Options{Lab: tuitest.NewLab(tuitest.Testbed()), Environ: func(string) string { return "" }}, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			m.now = func() time.Time { return tuitest.Now }
			tm := teatest.NewTestModel(t, m, teatest.WithInitialTermSize(120, 40))
			if x.key != "1" {
				tm.Type(x.key)
			}
			teatest.WaitFor(t, tm.Output(), func(b []byte) bool {
				return bytes.Contains(b, []byte(x.want))
			}, teatest.WithDuration(20*time.Second), teatest.WithCheckInterval(5*time.Millisecond))
			tm.Type("q")
			final, ok := tm.FinalModel(t, teatest.WithFinalTimeout(20*time.Second)).(*model)
			if !ok || string(final.screen().Name()) != strings.ToLower(x.want) && x.key != "2" && x.key != "5" {
				t.Errorf("screen %s at the end", final.screen().Name())
			}
		})
	}
}

// TestProgram_Change makes a change as people do, in a program of bubbletea.
func TestProgram_Change(t *testing.T) {
	lab := tuitest.NewLab(tuitest.Testbed())
	lab.Answer = possible
	m, err := newModel(t.Context(), Options{Lab: lab, Environ: func(string) string { return "" }}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	clock := tuitest.Now
	m.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		clock = clock.Add(look) // each look at the clock is one later
		return clock
	}
	tm := teatest.NewTestModel(t, m, teatest.WithInitialTermSize(100, 30))
	has := func(text string) {
		t.Helper()
		teatest.WaitFor(t, tm.Output(), func(b []byte) bool { return bytes.Contains(b, []byte(text)) },
			teatest.WithDuration(20*time.Second), teatest.WithCheckInterval(5*time.Millisecond))
	}
	tm.Send(tea.KeyMsg{Type: tea.KeyEnter})
	has("do it")
	tm.Type("y")
	has("done")
	tm.Type("q")
	tm.WaitFinished(t, teatest.WithFinalTimeout(20*time.Second))
	if got := lab.Mutations(); len(got) != 1 {
		t.Errorf("the lab was asked for %q", got)
	}
}

// Ensure that in the program as it runs keys are told apart by the read that they came with: a panic key among others
// opens the question and nothing else, and a y in a later read answers it.
func TestRun_Burst(t *testing.T) {
	lab := tuitest.NewLab(tuitest.Testbed())
	lab.Answer = possible
	applied := make(chan live.Preview, 9)
	lab.Become = func(p live.Preview) live.Outcome {
		applied <- p
		return live.Outcome{Title: p.Title}
	}
	_, keyboard, ended := start(t, t.Context(), lab)
	for _, read := range []string{"!smoke\ry", "\x1b", "\x1b[200~y!\ry\x1b[201~", "y"} { // a read each: it is a pipe
		if _, err := io.WriteString(keyboard, read); err != nil {
			t.Fatal(err)
		}
	}
	if p := <-applied; p.Wish.Verb != live.PanicNow {
		t.Errorf("y did %q", p.Title)
	}
	if _, err := io.WriteString(keyboard, "q"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if got := lab.Mutations(); !slices.Equal(got, []string{`apply panic --reason "no reason given"`}) {
		t.Errorf("the keys did %q", got)
	}
}
