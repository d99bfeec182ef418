package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
)

// hookGrace is how long a hook that shall end has between SIGTERM and SIGKILL, and how long
// its output is read after it has ended: something that it has left behind may hold it.
const hookGrace = 2 * time.Second

// hookOutput is how many bytes of the end of a hook's output are kept.
const hookOutput = 4 << 10

// command is a hook made ready to be run.
type command struct {
	words   []string
	dir     string
	env     []string // beside that of this process
	timeout time.Duration
	grace   time.Duration
}

// ran is what became of a command.
type ran struct {
	took   time.Duration
	code   int    // its exit code; -1 when it has none
	output string // the end of what it wrote, both streams
	left   bool   // it ended well, but something that it started still held its output
}

// run runs the command, without a shell and in a process group of its own, which is ended
// as a whole when ctx ends or the time is over. It returns soon after that, whatever the
// command does.
func (c command) run(ctx context.Context) (ran, error) {
	if len(c.words) == 0 || c.words[0] == "" {
		return ran{code: -1}, errors.New("no command is given")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("it took longer than its timeout of %v", c.timeout))
	defer cancel()
	name := c.words[0]
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		name = filepath.Join(c.dir, name)
	}
	var output tail
	x := exec.CommandContext(ctx, name, c.words[1:]...)
	x.Dir, x.Env = c.dir, append(os.Environ(), c.env...)
	x.Stdout, x.Stderr = &output, &output
	ownGroup(x)
	var harder *time.Timer
	x.Cancel = func() error {
		harder = time.AfterFunc(c.grace, func() { killGroup(x.Process) })
		return endGroup(x.Process)
	}
	x.WaitDelay = c.grace
	began := time.Now()
	err := x.Run()
	if harder != nil {
		harder.Stop()
		killGroup(x.Process) // those that have outlived the first of the group
	}
	r := ran{took: time.Since(began), code: x.ProcessState.ExitCode(), output: output.String()}
	switch {
	case err != nil && ctx.Err() != nil:
		return r, context.Cause(ctx)
	case x.Process == nil:
		return r, fmt.Errorf("it cannot be started: %w", err)
	case errors.Is(err, exec.ErrWaitDelay):
		r.left = true
		return r, nil
	}
	return r, err
}

// tail keeps the end of what is written. It is safe for concurrent use: a reader of a pipe
// may still write when the command is given up.
type tail struct {
	mu  sync.Mutex
	end []byte // guarded by mu
	cut bool   // there was more before; guarded by mu
}

// Write always succeeds.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	if len(p) > hookOutput {
		p, t.cut = p[len(p)-hookOutput:], true
	}
	t.end = append(t.end, p...)
	if over := len(t.end) - hookOutput; over > 0 {
		t.end, t.cut = append(t.end[:0], t.end[over:]...), true
	}
	return n, nil
}

// String returns the end as text, without the white space around it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.end), "\uFFFD"))
	if t.cut {
		text = "... " + text
	}
	return text
}

// hooks runs hooks one after the other, until one fails. Of the point p and the condition
// c either may be nil.
func (s *session) hooks(ctx context.Context, where string, list []plan.Hook, p *plan.Point, c *plan.Condition) error {
	for _, h := range list {
		if err := s.hook(ctx, where, h, p, c); err != nil {
			return err
		}
	}
	return nil
}

// hook runs one hook and records what became of it.
func (s *session) hook(ctx context.Context, where string, h plan.Hook, p *plan.Point, c *plan.Condition) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	parameters := s.File.Parameters
	if c != nil {
		parameters = c.Parameters
	}
	x := command{
		words: h.Words(parameters), dir: s.dir(), env: s.environment(p, c, parameters),
		timeout: cmp.Or(h.Timeout, plan.DefaultTimeout), grace: hookGrace,
	}
	s.tell(fmt.Sprintf("%s hook: %s", where, strings.Join(x.words, " ")))
	var done ran
	run := x.run
	if s.execute != nil {
		run = func(ctx context.Context) (ran, error) { return s.execute(ctx, x) }
	}
	err := experiment.Guard(func() (err error) { done, err = run(ctx); return err })
	text := fmt.Sprintf("hook of %s %q: %v, exit code %d", where, x.words, done.took.Round(time.Millisecond), done.code)
	if done.left {
		text += "; a process that it has left behind held its output, which is no longer read"
	}
	if err != nil {
		err = fmt.Errorf("hook of %s %q: %w", where, x.words, err)
		text = err.Error()
		if done.output != "" {
			err = fmt.Errorf("%w; it wrote: %s", err, done.output)
		}
	}
	if done.output != "" {
		text += "; it wrote: " + done.output
	}
	return and(err, s.event("hook", text))
}

// dir is where hooks are run.
func (s *session) dir() string {
	dir := s.Dir
	if dir == "" {
		dir = filepath.Dir(s.File.Path)
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return dir
}

// environment is what a hook is told of the run.
func (s *session) environment(p *plan.Point, c *plan.Condition, parameters map[string]string) []string {
	env := []string{"OCSLAB_RUN=" + s.Writer.ID(), "OCSLAB_RUN_DIR=" + s.Writer.Dir()}
	if p != nil {
		env = append(env, fmt.Sprint("OCSLAB_POINT=", p.ID))
	}
	if c != nil {
		env = append(env, fmt.Sprint("OCSLAB_CONDITION=", c.Number))
	}
	for name, value := range parameters {
		env = append(env, "OCSLAB_PARAM_"+variable(name)+"="+value)
	}
	return env
}

// variable is the name of a parameter in an environment.
func variable(name string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z':
			return c - 'a' + 'A'
		case c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
			return c
		}
		return '_'
	}, name)
}
