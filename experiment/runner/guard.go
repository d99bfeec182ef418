package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment"
)

// stuckError is a call that did not return though its context had ended.
type stuckError struct {
	what  string
	after time.Duration
	cause error
}

func (e *stuckError) Error() string {
	return fmt.Sprintf("%s has not returned %v after it was told to end (%v)", e.what, e.after, e.cause)
}

func (e *stuckError) Unwrap() error { return e.cause }

// within calls fn, and returns when that returns or, with a stuckError, when ctx has ended
// and grace is over. What fn returns after that is handed to late. Panics of fn are errors.
func within[T any](ctx context.Context, grace time.Duration, what string, late func(T, error), fn func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	returned, left := make(chan result), make(chan struct{})
	go func() {
		var r result
		r.err = experiment.Guard(func() (err error) { r.value, err = fn(); return err })
		select {
		case returned <- r:
		case <-left:
			_ = experiment.Guard(func() error { late(r.value, r.err); return nil }) // nobody is left to tell
		}
	}()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case r := <-returned:
		return r.value, r.err
	case <-patience.C:
		close(left)
		var none T
		return none, &stuckError{what, grace, context.Cause(ctx)}
	}
}

// and joins errors, of which either may be nil, in one sentence.
func and(err, other error) error {
	switch {
	case err == nil:
		return other
	case other == nil:
		return err
	}
	return fmt.Errorf("%w; %w", err, other)
}
