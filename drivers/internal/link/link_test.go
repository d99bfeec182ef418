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

func TestReader(t *testing.T) {
	const limit = time.Second
	type read struct {
		said   string
		broken bool
		want   error
		took   time.Duration
	}
	say := func(far net.Conn, s string) { _, _ = io.WriteString(far, s) }
	for name, tc := range map[string]struct {
		far  func(cancel context.CancelCauseFunc, far net.Conn)
		want []read
	}{
		"at once": {func(_ context.CancelCauseFunc, far net.Conn) { say(far, "a reply") },
			[]read{{said: "a reply"}, {want: ErrSilent, took: limit}}},
		"in pieces": {func(_ context.CancelCauseFunc, far net.Conn) {
			say(far, "a")
			time.Sleep(3 * Patience)
			say(far, "b")
		}, []read{{said: "a"}, {said: "b", took: 3 * Patience}, {want: ErrSilent, took: limit}}},
		"given up": {func(cancel context.CancelCauseFunc, _ net.Conn) {
			time.Sleep(3 * Patience)
			cancel(errEnough)
		}, []read{{want: errEnough, took: 3 * Patience}, {want: errEnough, took: Patience}}},
		"broken at once": {func(_ context.CancelCauseFunc, far net.Conn) { far.Close() },
			[]read{{broken: true, want: io.EOF}}},
		"broken later": {func(_ context.CancelCauseFunc, far net.Conn) {
			say(far, "a")
			time.Sleep(3 * Patience)
			far.Close()
		}, []read{{said: "a"}, {broken: true, want: io.EOF, took: 3 * Patience}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				go tc.far(cancel, far)
				r, p := Reader{Conn: near}, make([]byte, 16)
				for i, want := range tc.want {
					begun := time.Now()
					n, broken, err := r.Read(ctx, p, begun, begun.Add(limit))
					if string(p[:n]) != want.said || broken != want.broken || !errors.Is(err, want.want) || want.want == nil && err != nil {
						t.Errorf("read %d: got %q, %t, %v", i, p[:n], broken, err)
					}
					if took := time.Since(begun); took != want.took {
						t.Errorf("read %d took %v, want %v", i, took, want.took)
					}
				}
			})
		})
	}
}

// TestReaderDeadline: a read ends in time also where that is less than Patience away, and
// less than what an earlier one has left as the deadline of the stream.
func TestReaderDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		r, p := Reader{Conn: near}, make([]byte, 16)
		go func() { _, _ = io.WriteString(far, "a") }()
		begun := time.Now()
		if n, _, err := r.Read(t.Context(), p, begun, begun.Add(time.Second)); n != 1 || err != nil {
			t.Fatalf("got %d bytes, %v", n, err)
		}
		if _, broken, err := r.Read(t.Context(), p, begun, begun.Add(time.Millisecond)); broken || !errors.Is(err, ErrSilent) || time.Since(begun) != time.Millisecond {
			t.Errorf("limit: got %t, %v after %v", broken, err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		begun = time.Now()
		if _, broken, err := r.Read(ctx, p, begun, begun.Add(time.Second)); broken || !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Millisecond {
			t.Errorf("context: got %t, %v after %v", broken, err, time.Since(begun))
		}
	})
}

// hesitant is a stream whose first read ends with nothing.
type hesitant struct {
	net.Conn
	reads int
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.reads++; h.reads == 1 {
		return 0, nil
	}
	return h.Conn.Read(p)
}

// TestReaderEmpty: a read of nothing is no end, and the next read looks whether anybody
// still waits as soon as ever.
func TestReaderEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer near.Close()
		defer far.Close()
		r, p := Reader{Conn: &hesitant{Conn: near}}, make([]byte, 16)
		go func() { _, _ = io.WriteString(far, "a") }()
		begun := time.Now()
		if n, broken, err := r.Read(t.Context(), p, begun, begun.Add(time.Second)); n != 1 || broken || err != nil {
			t.Errorf("got %d bytes, %t, %v", n, broken, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*Patience)
		defer cancel()
		if _, _, err := r.Read(ctx, p, begun, begun.Add(time.Second)); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != 3*Patience {
			t.Errorf("given up: got %v after %v", err, time.Since(begun))
		}
	})
}

// lastWords is a stream that says something and ends in one read, as some do.
type lastWords struct{ net.Conn }

func (lastWords) Read(p []byte) (int, error) { return copy(p, "bye"), io.EOF }

// TestReaderLastWords: what comes together with the end of the stream is not lost, nor is
// the end.
func TestReaderLastWords(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	r, p := Reader{Conn: lastWords{near}}, make([]byte, 16)
	now := time.Now()
	limit := now.Add(time.Minute)
	if n, broken, err := r.Read(t.Context(), p, now, limit); string(p[:n]) != "bye" || broken || err != nil || !r.Ended() {
		t.Errorf("got %q, %t, %v, ended %t", p[:n], broken, err, r.Ended())
	}
	if n, broken, err := r.Read(t.Context(), p, now, limit); n != 0 || !broken || !errors.Is(err, io.EOF) {
		t.Errorf("then got %d bytes, %t, %v", n, broken, err)
	}
}
