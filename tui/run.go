package tui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/quiet"
	"github.com/ocslab/ocslab/tui/styles"
)

func init() { quiet.Restore() }

// Options are what the UI is run with.
type Options struct {
	Lab live.Lab
	// ReadOnly lets nothing through that changes a device, a run or a file, and cannot be
	// ended from within.
	ReadOnly bool
	Theme    string // a name of styles.Themes; "" is the first
	Screen   string // the action that shows the first screen, such as "links"; "" is the patch field
	NoMouse  bool   // leave the mouse to the terminal until it is asked for

	In  io.Reader // nil is the standard input
	Out io.Writer // nil is the standard output
	// Environ looks up a variable of the environment; nil is os.Getenv.
	Environ func(string) string

	Experiment string   // a file to load at the start, without running it
	Intro      []string // lines for the head of the help, such as how to reach an emulated switch
}

// grace is how long the end of the program waits for a change that is being sent when
// the terminal is gone: it may hang, and nobody is left to be told.
const grace = 15 * time.Second

// Run shows the lab until the user quits, the context ends, or the terminal hangs up. A
// change that is being sent then is still waited for, up to 15 s. The terminal is as it
// was when Run returns, also after a panic. The lab is not closed.
//
// The error is that of the context if it has ended, and otherwise says in one sentence
// what does not work: a theme or screen that there is not, a terminal that cannot be
// opened.
func Run(ctx context.Context, opt Options) error {
	if opt.In == nil {
		opt.In = os.Stdin
	}
	if opt.Out == nil {
		opt.Out = os.Stdout
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	out := newOutput(opt.Out)
	m, err := newModel(work, opt, out)
	if err != nil {
		return err
	}
	var in io.Reader
	in, m.marks = newInput(opt.In, time.Now)
	program := tea.NewProgram(m, m.options(ctx, in, out)...)

	// SIGTERM and SIGINT are bubbletea's; a terminal that is closed says SIGHUP.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	ended := make(chan struct{})
	defer func() {
		signal.Stop(hangup)
		close(ended)
	}()
	go func() {
		select {
		case <-hangup:
			program.Kill()
		case <-ended:
		}
	}()

	_, err = program.Run()
	m.await(grace)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, tea.ErrProgramPanic):
		return errors.New("the terminal UI had to give up; what it was doing is above")
	case errors.Is(err, tea.ErrInterrupted), errors.Is(err, tea.ErrProgramKilled):
		return nil
	case err != nil:
		return fmt.Errorf("the terminal: %w", err)
	}
	return nil
}

// options are those of bubbletea.
func (m *model) options(ctx context.Context, in io.Reader, out io.Writer) []tea.ProgramOption {
	opts := []tea.ProgramOption{
		tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out), tea.WithAltScreen(), tea.WithFPS(60),
	}
	if m.mouseOn {
		opts = append(opts, tea.WithMouseCellMotion())
	}
	return opts
}

// await waits until the changes that are being sent have been, for d at most.
func (m *model) await(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for _, s := range []*sending{m.sending, m.panicking} {
		if s == nil {
			continue
		}
		select {
		case <-s.done:
		case <-t.C:
			return
		}
	}
}

// check returns what of the options does not exist, and where to begin.
func check(opt Options) (theme styles.Theme, first keymap.Action, err error) {
	theme = styles.Themes()[0]
	if opt.Theme != "" {
		var ok bool
		if theme, ok = styles.ByName(opt.Theme); !ok {
			return theme, "", fmt.Errorf("there is no theme %q; there are %s", opt.Theme, and(themeNames()))
		}
	}
	first = keymap.Screen1
	if opt.Screen != "" {
		first = keymap.Action(opt.Screen)
	}
	return theme, first, nil
}

func themeNames() []string {
	var names []string
	for _, t := range styles.Themes() {
		names = append(names, t.Name)
	}
	return names
}

// and lists words: "a, b and c".
func and(words []string) string {
	switch n := len(words); n {
	case 0:
		return "none"
	case 1:
		return words[0]
	default:
		return strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
}

// output is the terminal that is written to. Whatever is one Write stays in one piece,
// so that a sequence of ours does not end up within a frame of bubbletea's.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p)
}

// fileOutput is an output that is a file, which bubbletea asks for the size.
type fileOutput struct {
	*os.File
	out output
}

func (f *fileOutput) Write(p []byte) (int, error) { return f.out.Write(p) }

// WriteString is here since that of os.File would pass the lock by.
func (f *fileOutput) WriteString(s string) (int, error) { return f.out.Write([]byte(s)) }

func newOutput(w io.Writer) io.Writer {
	if f, ok := w.(*os.File); ok {
		return &fileOutput{File: f, out: output{w: f}}
	}
	return &output{w: w}
}
