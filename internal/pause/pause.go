// Package pause waits, and stops waiting when nobody wants it any more.
package pause

import (
	"context"
	"time"
)

// For waits for d and returns nil, or until ctx ends, and returns why that did. When d is not
// above zero it does not wait, but tells of a context that has ended all the same.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
