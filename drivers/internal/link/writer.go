package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Writer writes requests to a stream. It is not safe for concurrent use.
type Writer struct {
	Conn interface {
		io.Writer
		SetWriteDeadline(t time.Time) error
	}
	by time.Time // write deadline of Conn
}

// Write writes the whole request unless ctx ends, limit passes or the stream
// breaks, says when the last of it was written, and returns how much was. The
// stream is of no use any more when it is broken, or when a part of the request
// was written: the device would take the next one for the rest.
func (w *Writer) Write(ctx context.Context, p []byte, now time.Time, limit time.Duration, when *ocs.Receipt) (n int, broken bool, err error) {
	end := now.Add(limit)
	for {
		// Left alone while there is some time: setting it may wake a thread.
		if w.by.Sub(now) < Patience/2 {
			w.by = now.Add(Patience)
			_ = w.Conn.SetWriteDeadline(w.by) // if this fails, so does Write
			now = time.Now()
		}
		when.SendStart = now
		m, err := w.Conn.Write(p[n:])
		when.Sent = time.Now()
		if n += m; err == nil {
			return n, false, nil
		}
		now = when.Sent
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return n, true, fmt.Errorf("the session broke: %w", err)
		case ctx.Err() != nil:
			return n, n > 0, fmt.Errorf("not sent: %w", context.Cause(ctx))
		case now.After(end):
			return n, n > 0, fmt.Errorf("not sent within %v: %w", limit, context.DeadlineExceeded)
		}
	}
}
