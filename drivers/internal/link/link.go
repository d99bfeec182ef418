// Package link has what the drivers share of keeping a session with a device:
// who may use it and until when, writing requests to it and reading what it says.
package link

import (
	"context"
	"fmt"
	"net"
	"time"
)

// Patience is how long a read or write of a request may block before it is
// looked whether anybody still waits for it.
const Patience = 20 * time.Millisecond

// ErrClosed is what calls of a switch that was closed return.
var ErrClosed = fmt.Errorf("the switch was closed: %w", net.ErrClosed)

// Life is the time until a switch is closed, as a context.
type Life struct {
	context.Context
	End context.CancelFunc
}

// NewLife returns one that has begun.
func NewLife() Life {
	ctx, cancel := context.WithCancel(context.Background())
	return Life{ctx, cancel}
}

// Gone returns why there is no point in going on with a call, if there is none:
// ErrClosed or the cause of ctx.
func (l Life) Gone(ctx context.Context) error {
	switch {
	case l.Err() != nil:
		return ErrClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return nil
}

// Turn is a lock that can be waited for together with other things. Who has put
// a token into it has it.
type Turn chan struct{}

// NewTurn returns one that nobody has.
func NewTurn() Turn { return make(Turn, 1) }

// Pass gives the turn back.
func (t Turn) Pass() { <-t }

// Take waits for a turn, or for a reason not to go on.
func (l Life) Take(ctx context.Context, t Turn) error {
	select {
	case t <- struct{}{}: // the usual case, and much cheaper alone
	default:
		select {
		case t <- struct{}{}:
		case <-ctx.Done():
			return l.Gone(ctx)
		case <-l.Done():
			return ErrClosed
		}
	}
	if err := l.Gone(ctx); err != nil {
		t.Pass()
		return err
	}
	return nil
}
