package tui

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/keymap"
	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/screen"
)

// gate is what everything goes through that is asked for, whether by key, command,
// palette, mouse or a screen's request: x is a keymap.Action or a screen.Request. In
// read-only mode it lets nothing pass that could change a device, a run or a file.
//
// Behind it is a guard around the lab, and behind that the lab refuses itself.
func (m *model) gate(x any) error {
	if !m.isReadOnly() {
		return nil
	}
	mutates := true
	what := ""
	switch x := x.(type) {
	case keymap.Action:
		mutates, what = keymap.Mutates(x), string(x)
	case screen.Request:
		mutates, what = requestMutates(x)
	}
	if !mutates {
		return nil
	}
	return fmt.Errorf("%s: %w", what, live.ErrReadOnly)
}

// requestMutates reports whether carrying out a request can change something, and what
// it is called. A request that is not known does, to be on the safe side.
func requestMutates(r screen.Request) (bool, string) {
	switch r := r.(type) {
	case screen.Propose:
		return true, string(r.Wish.Verb)
	case screen.SaveAs:
		return true, "save"
	case screen.EditFile:
		return true, "edit"
	case screen.Call:
		return r.Mutates, r.Doing
	case screen.Goto, screen.Say, screen.Ask, screen.Confirm, screen.Show:
		return false, ""
	}
	return true, fmt.Sprintf("%T", r)
}

// guard is the lab as screens and commands get to call it: while closed it refuses what
// changes something, also from a call that does not say that it does. It is safe for
// concurrent use.
type guard struct {
	live.Lab
	closed *atomic.Bool
}

func newFlag(v bool) *atomic.Bool {
	b := new(atomic.Bool)
	b.Store(v)
	return b
}

func (g guard) refuse() error {
	if s := g.State(); g.closed.Load() || s != nil && s.ReadOnly {
		return live.ErrReadOnly
	}
	return nil
}

// Apply refuses, or does what the lab's does.
func (g guard) Apply(ctx context.Context, p live.Preview) live.Outcome {
	if err := g.refuse(); err != nil {
		return live.Outcome{Title: p.Title, Text: p.Title + ": " + err.Error(), Err: err}
	}
	return g.Lab.Apply(ctx, p)
}

// StartRun refuses, or does what the lab's does.
func (g guard) StartRun(ctx context.Context, policy ocs.Policy) error {
	if err := g.refuse(); err != nil {
		return err
	}
	return g.Lab.StartRun(ctx, policy)
}

// Resume refuses, or does what the lab's does.
func (g guard) Resume(ctx context.Context, id string) error {
	if err := g.refuse(); err != nil {
		return err
	}
	return g.Lab.Resume(ctx, id)
}

// PauseRun refuses, or does what the lab's does.
func (g guard) PauseRun() error {
	if err := g.refuse(); err != nil {
		return err
	}
	return g.Lab.PauseRun()
}

// StopRun refuses, or does what the lab's does.
func (g guard) StopRun() error {
	if err := g.refuse(); err != nil {
		return err
	}
	return g.Lab.StopRun()
}

// AbortRun refuses, or does what the lab's does.
func (g guard) AbortRun() error {
	if err := g.refuse(); err != nil {
		return err
	}
	return g.Lab.AbortRun()
}

// SetReadOnly begins or ends read-only. The guard closes first and opens last, so that
// nothing passes in between, and stays closed when the lab refuses.
func (g guard) SetReadOnly(on bool) error {
	if on {
		g.closed.Store(true)
	}
	if err := g.Lab.SetReadOnly(on); err != nil {
		return err
	}
	g.closed.Store(on)
	return nil
}
