package link

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

var errEnough = errors.New("enough")

func TestTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, turn := NewLife(), NewTurn()
		if err := life.Take(t.Context(), turn); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan error)
		go func() { results <- life.Take(ctx, turn) }()
		synctest.Wait()
		cancel(errEnough)
		if err := <-results; !errors.Is(err, errEnough) {
			t.Errorf("waiting: got %v", err)
		}
		go func() { results <- life.Take(t.Context(), turn) }()
		synctest.Wait()
		turn.Pass()
		if err := <-results; err != nil {
			t.Errorf("passed on: got %v", err)
		}
		go func() { results <- life.Take(t.Context(), turn) }()
		synctest.Wait()
		life.End()
		if err := <-results; !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: got %v", err)
		}
		turn.Pass()
		if err := life.Take(ctx, turn); !errors.Is(err, ErrClosed) || len(turn) != 0 {
			t.Errorf("free, but closed: got %v", err)
		}
		if err := NewLife().Take(ctx, turn); !errors.Is(err, errEnough) || len(turn) != 0 {
			t.Errorf("free, but late: got %v", err)
		}
	})
}

func TestWriter(t *testing.T) {
	const limit = time.Second
	request := []byte("a request")
	for name, tc := range map[string]struct {
		far    func(ctx context.Context, cancel context.CancelCauseFunc, far net.Conn)
		n      int
		broken bool
		want   error
		took   time.Duration
	}{
		"at once": {func(_ context.Context, _ context.CancelCauseFunc, far net.Conn) {
			_, _ = io.ReadFull(far, make([]byte, 9))
		}, 9, false, nil, 0},
		"in pieces": {func(_ context.Context, _ context.CancelCauseFunc, far net.Conn) {
			for range 9 {
				time.Sleep(100 * time.Millisecond)
				_, _ = io.ReadFull(far, make([]byte, 1))
			}
		}, 9, false, nil, 900 * time.Millisecond},
		"never": {func(ctx context.Context, _ context.CancelCauseFunc, _ net.Conn) { <-ctx.Done() }, 0, false, context.DeadlineExceeded, limit + Patience},
		"in part": {func(ctx context.Context, _ context.CancelCauseFunc, far net.Conn) {
			_, _ = io.ReadFull(far, make([]byte, 4))
			<-ctx.Done()
		}, 4, true, context.DeadlineExceeded, limit + Patience},
		"given up": {func(_ context.Context, cancel context.CancelCauseFunc, _ net.Conn) {
			time.Sleep(30 * time.Millisecond)
			cancel(errEnough)
		}, 0, false, errEnough, 2 * Patience},
		"broken": {func(_ context.Context, _ context.CancelCauseFunc, far net.Conn) {
			_, _ = io.ReadFull(far, make([]byte, 4))
			far.Close()
		}, 4, true, io.ErrClosedPipe, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				ctx, cancel := context.WithCancelCause(t.Context())
				go tc.far(ctx, cancel, far)
				w, begun := Writer{Conn: near}, time.Now()
				var r ocs.Receipt
				n, broken, err := w.Write(ctx, request, begun, limit, &r)
				if n != tc.n || broken != tc.broken || !errors.Is(err, tc.want) || tc.want == nil && err != nil {
					t.Errorf("got %d, %t, %v", n, broken, err)
				}
				if took := time.Since(begun); took != tc.took || r.Sent.Sub(begun) != took {
					t.Errorf("took %v, want %v; receipt %+v", took, tc.took, r)
				}
				cancel(nil)
				near.Close()
				far.Close()
			})
		})
	}
}
