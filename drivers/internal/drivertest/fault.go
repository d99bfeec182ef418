package drivertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Errors for Matches: ErrAny is any error, ErrTooLong one of the type that the
// codec has for a reply that is too long. ErrEnough is why a test gives up a call.
var (
	ErrAny     = errors.New("any")
	ErrTooLong = errors.New("too long")
	ErrEnough  = errors.New("somebody pressed the key")
)

// Matches reports whether err is what is wanted; T is the type that ErrTooLong
// stands for.
func Matches[T error](err, want error) bool {
	var long T
	switch {
	case Is(want, ErrAny):
		return err != nil
	case Is(want, ErrTooLong):
		return errors.As(err, &long)
	}
	return Is(err, want)
}

// Checked returns err or, when a call without one has a wrong result, that.
func Checked(err error, ok bool, got any) error {
	if err == nil && !ok {
		return fmt.Errorf("wrong result %v", got)
	}
	return err
}

// Always is the error of a fault which it has with every method.
func Always[M any](err error) func(M) error { return func(M) error { return err } }

// Outcome is what a call under a fault comes to, and what comes after it.
type Outcome struct {
	Matches func(error) bool
	Want    error         // is what Matches wants, for people
	Reply   string        // the reply that the error keeps holds this
	Takes   time.Duration // no longer than this
	Lasts   bool          // a call that succeeds takes its own time
	Closed  bool          // the Switch is closed afterwards
	Refused bool          // the next connection is refused to the next call
}

// Check calls a method of the device "rail0" in a bubble, and once more when heal
// has put right what was wrong: that call works. During, unless it is nil, runs
// beside the first call. The error of that is returned.
func (o Outcome) Check(t *testing.T, call func(context.Context) error, during func(context.CancelCauseFunc), heal func()) error {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	if during != nil {
		go during(cancel)
		synctest.Wait() // it waits for its time, or has ended
	}
	begun := time.Now()
	err := call(ctx)
	took := time.Since(begun)

	if !o.Matches(err) {
		t.Errorf("got error %v, want one that matches %v", err, o.Want)
	}
	if took > o.Takes && (err != nil || !o.Lasts) {
		t.Errorf("took %v, want at most %v", took, o.Takes)
	}
	if err != nil {
		text := err.Error()
		if !strings.HasPrefix(text, "rail0: ") || strings.ContainsAny(text, "\r\n") || len(text) > 1000 {
			t.Errorf("not one sentence that begins with the device: %q", text)
		}
		var op *ocs.OpError
		if !errors.As(err, &op) || op.Device != "rail0" {
			t.Errorf("%T is not an *ocs.OpError", err)
		} else if !strings.Contains(op.Reply, o.Reply) {
			t.Errorf("got reply %q, want %q", op.Reply, o.Reply)
		}
	}

	heal()
	again := call(t.Context())
	switch {
	case o.Closed:
		if !errors.Is(again, net.ErrClosed) {
			t.Errorf("after Close: got %v", again)
		}
	case o.Refused:
		if !errors.Is(again, syscall.ECONNREFUSED) {
			t.Errorf("while refused: got %v", again)
		}
		if err := call(t.Context()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	case again != nil:
		t.Errorf("afterwards: %v", again)
	}
	return err
}
