package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/runs"
)

// Pause holds the run after the point that is under way, until Continue, Stop or Abort.
func (r *Runner) Pause() { r.control.ask(func(c *control) { c.pause = true }) }

// Continue ends a pause.
func (r *Runner) Continue() { r.control.ask(func(c *control) { c.pause = false }) }

// Toggle pauses, or ends a pause.
func (r *Runner) Toggle() { r.control.ask(func(c *control) { c.pause = !c.pause }) }

// Stop ends the run after the point that is under way.
func (r *Runner) Stop() { r.stop(ErrStop) }

// Abort ends the run at once: the point that is under way is abandoned.
func (r *Runner) Abort() { r.abort(ErrAbort) }

// State is what the run is doing.
func (r *Runner) State() State {
	c := &r.control
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.phase != working:
		return c.phase.state()
	case c.aborted != nil:
		return Aborting
	case c.stopped != nil:
		return Stopping
	case c.pause && c.held:
		return Paused
	case c.pause:
		return Pausing
	}
	return Running
}

// stop and abort are told why; the first reason counts.
func (r *Runner) stop(why error) {
	r.control.ask(func(c *control) {
		if c.stopped == nil {
			c.stopped = why
		}
	})
}

func (r *Runner) abort(why error) {
	r.control.ask(func(c *control) {
		if c.aborted == nil {
			c.aborted = why
		}
		if c.cancel != nil {
			c.cancel(c.aborted)
		}
	})
}

// phase is how far a run is.
type phase uint8

const (
	ready phase = iota
	working
	leaving // finally: what is asked has no effect any more
	ended
)

func (p phase) state() State { return [...]State{Ready, Running, Leaving, Ended}[p] }

// control is what was asked of a run. The zero control is of a run that is not begun.
type control struct {
	mu sync.Mutex // guards all that follows

	phase   phase
	pause   bool  // is wanted
	held    bool  // the run waits
	stopped error // not nil: the run shall end after the point, for this reason
	aborted error // not nil: the run shall end now
	cancel  context.CancelCauseFunc
	asked   chan struct{} // closed when something is asked; nil while nobody waits for that
}

// ask changes what is asked, unless it is too late.
func (c *control) ask(change func(*control)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase > working {
		return
	}
	change(c)
	if c.asked != nil {
		close(c.asked)
		c.asked = nil
	}
}

// begin lets cancel end the work when the run is aborted.
func (c *control) begin(cancel context.CancelCauseFunc) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.phase != ready {
		return errors.New("runner: a Runner runs once")
	}
	c.phase, c.cancel = working, cancel
	if c.aborted != nil {
		cancel(c.aborted)
	}
	return nil
}

// enter begins a later phase.
func (c *control) enter(p phase) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = p
}

// pass is asked between two points. It returns why the run shall end, if it shall. If it
// shall wait, it returns a channel that is closed when it is worth asking again.
func (c *control) pass() (wait <-chan struct{}, end error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end = c.aborted
	if end == nil {
		end = c.stopped
	}
	if c.held = c.pause && end == nil; !c.held {
		return nil, end
	}
	c.asked = make(chan struct{})
	return c.asked, nil
}

// pollControl is how often the store is asked whether another process wants something.
const pollControl = 100 * time.Millisecond

// listen lets the end of ctx and what others send through the store control the run, until
// the function that it returns is called, which returns when nothing listens any more.
func (r *Runner) listen(ctx context.Context) (unlisten func()) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		select {
		case <-stop:
		case <-ctx.Done():
			r.ended(context.Cause(ctx))
		}
	})
	all.Go(func() {
		tick := time.NewTicker(pollControl)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
			}
			if err := experiment.Guard(func() error { r.take(); return nil }); err != nil {
				r.abort(fmt.Errorf("ask the store for what others want: %w", err))
				return
			}
		}
	})
	return func() {
		close(stop)
		all.Wait()
	}
}

// ended does what the end of a context asks for.
func (r *Runner) ended(cause error) {
	switch {
	case errors.Is(cause, ErrAbort):
		r.abort(cause)
	case errors.Is(cause, ErrStop):
		r.stop(cause)
	default:
		r.abort(fmt.Errorf("%w: %w", ErrAbort, cause))
	}
}

// take does what somebody has sent through the store.
func (r *Runner) take() {
	c, ok := r.Writer.Control()
	if !ok {
		return
	}
	const from = "by another process (ocslab runs)"
	switch c {
	case runs.Pause:
		r.Pause()
	case runs.Continue:
		r.Continue()
	case runs.Stop:
		r.stop(fmt.Errorf("%w %s", ErrStop, from))
	case runs.Abort:
		r.abort(fmt.Errorf("%w %s", ErrAbort, from))
	}
}
