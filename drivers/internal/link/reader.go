package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// ErrSilent is a read to which nothing came.
var ErrSilent = errors.New("nothing came")

// GivenUp returns the error of a call for which nobody waits any more. It wraps the
// cause of ctx, which has ended.
func GivenUp(ctx context.Context) error { return fmt.Errorf("given up: %w", context.Cause(ctx)) }

// Reader reads what a device says, in the goroutine of who waits for it: waking
// another one costs more than all else. It is not safe for concurrent use.
type Reader struct {
	Conn interface {
		io.Reader
		SetReadDeadline(t time.Time) error
	}
	by   time.Time // read deadline of Conn
	late error     // came with the last bytes, and is told when they are used
}

// Ended reports whether the stream has ended behind what was read last, which the
// next Read tells.
func (r *Reader) Ended() bool { return r.late != nil }

// Read reads once into p. When nothing has come until limit the error is
// ErrSilent, and when ctx ends that of GivenUp; any other one means that the
// stream is broken.
func (r *Reader) Read(ctx context.Context, p []byte, now, limit time.Time) (n int, broken bool, err error) {
	if r.late != nil {
		return 0, true, r.late
	}
	soon, hurry := now.Add(Patience), false
	if limit.Before(soon) {
		soon, hurry = limit, true
	}
	if d, ok := ctx.Deadline(); ok && d.Before(soon) {
		soon, hurry = d, true
	}
	// Left alone while there is some time, as in Writer.Write.
	if hurry || r.by.Sub(now) < Patience/2 {
		r.by = soon
		_ = r.Conn.SetReadDeadline(soon) // if this fails, so does Read
	}
	n, err = r.Conn.Read(p)
	broken = n == 0
	if nothing(n, err) {
		n, broken, err = r.linger(ctx, p, limit)
		r.by = time.Time{}
	}
	if n > 0 {
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			r.late = err
		}
		err = nil
	}
	return n, broken, err
}

// linger reads when nothing has come at once. The end of ctx ends the read.
func (r *Reader) linger(ctx context.Context, p []byte, limit time.Time) (n int, broken bool, err error) {
	stop := context.AfterFunc(ctx, func() { _ = r.Conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop() // if it comes too late, the next read is interrupted once for nothing
	for {
		_ = r.Conn.SetReadDeadline(limit)
		if ctx.Err() == nil { // not even before the line above
			n, err = r.Conn.Read(p)
		}
		switch {
		case !nothing(n, err):
			return n, n == 0, err
		case ctx.Err() != nil:
			return 0, false, GivenUp(ctx)
		case !time.Now().Before(limit):
			return 0, false, ErrSilent
		}
	}
}

// nothing reports whether a read ended without bytes and without the end of the
// stream.
func nothing(n int, err error) bool {
	return n == 0 && (err == nil || errors.Is(err, os.ErrDeadlineExceeded))
}
