package transport

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// deaf is a stream without deadlines.
type deaf struct{ io.ReadWriteCloser }

// pipe is a stream and what is at its other end.
func pipe(piece int) (near *stream, far net.Conn) {
	a, b := net.Pipe()
	return newStream(deaf{a}, piece), b
}

// TestStreamProperty: whatever the sizes and deadlines on both sides, what
// comes is what was sent.
func TestStreamProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		sent := rapid.SliceOfN(rapid.Byte(), 0, 3*bufferSize).Draw(rt, "data")
		sizes := rapid.SliceOfN(rapid.IntRange(0, bufferSize+10), 1, 20)
		waits := rapid.SliceOfN(rapid.Int64Range(-1, 3), 1, 20)
		writes, reads := sizes.Draw(rt, "writes"), sizes.Draw(rt, "reads")
		writeBy, readBy := waits.Draw(rt, "write deadlines"), waits.Draw(rt, "read deadlines")
		lags := waits.Draw(rt, "lags of the other side")
		piece := rapid.IntRange(1, bufferSize).Draw(rt, "piece")
		outward := rapid.Bool().Draw(rt, "outward")

		synctest.Test(t, func(*testing.T) {
			near, far := pipe(piece)
			defer near.Close()
			defer far.Close()
			limit := func(set func(time.Time) error, waits []int64, i int) {
				by := time.Time{}
				if wait := waits[i%len(waits)]; wait >= 0 {
					by = time.Now().Add(time.Duration(wait) * time.Millisecond)
				}
				if err := set(by); err != nil {
					rt.Error(err)
				}
			}
			done := make(chan struct{})
			write := func(w io.Writer, deadline func(int)) {
				defer close(done)
				for i, rest := 0, sent; ; i++ {
					deadline(i)
					p := rest[:min(writes[i%len(writes)], len(rest))]
					if len(p) == 0 && w != near { // on a net.Pipe that waits for somebody to read it
						p = rest[:min(1, len(rest))]
					}
					if len(rest) == 0 && w != near {
						return
					}
					n, err := w.Write(p)
					if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
						rt.Errorf("write: %v", err)
						return
					}
					if n < len(p) && err == nil {
						rt.Errorf("wrote %d of %d without an error", n, len(p))
						return
					}
					if rest = rest[n:]; len(rest) == 0 && err == nil {
						return
					}
					if i > 1000 { // only of tiny pieces and deadlines in the past
						deadline, writes = func(int) {}, []int{bufferSize}
						_ = near.SetWriteDeadline(time.Time{})
					}
				}
			}
			read := func(r io.Reader, deadline func(int)) {
				var got []byte
				for i := 0; len(got) < len(sent); i++ {
					deadline(i)
					p := make([]byte, reads[i%len(reads)])
					n, err := r.Read(p)
					if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || n > 0 && err != nil {
						rt.Errorf("read: %d, %v", n, err)
						return
					}
					got = append(got, p[:n]...)
					if i > 1000 {
						deadline, reads = func(int) {}, []int{bufferSize}
						_ = near.SetReadDeadline(time.Time{})
					}
				}
				if !bytes.Equal(got, sent) {
					rt.Errorf("something else has come")
				}
			}
			lag := func(i int) { time.Sleep(time.Duration(lags[i%len(lags)]) * time.Millisecond) }
			if outward {
				go write(near, func(i int) { limit(near.SetWriteDeadline, writeBy, i) })
				read(far, lag)
			} else {
				go write(far, lag)
				read(near, func(i int) { limit(near.SetReadDeadline, readBy, i) })
			}
			<-done
		})
	})
}

// TestStreamDeadlines: Read and Write end when their deadlines come, also when
// those are moved meanwhile, and can be called again.
func TestStreamDeadlines(t *testing.T) {
	for _, plain := range []bool{false, true} { // a net.Pipe does the same
		synctest.Test(t, func(t *testing.T) {
			var near Conn
			near, far := pipe(bufferSize)
			if plain {
				near.Close()
				near, far = net.Pipe()
			}
			defer far.Close()
			defer near.Close()
			begun := time.Now()
			after := func(d time.Duration) time.Time { return begun.Add(d) }
			at := func(what string, want time.Duration, f func() (int, error)) {
				t.Helper()
				n, err := f()
				if got := time.Since(begun); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || got != want {
					t.Errorf("%s: got %d, %v after %v, want %v", what, n, err, got, want)
				}
			}
			read := func() (int, error) { return near.Read(make([]byte, 10)) }
			near.SetReadDeadline(after(20 * time.Millisecond))
			at("ahead", 20*time.Millisecond, read)
			at("past", 20*time.Millisecond, read)
			near.SetReadDeadline(after(time.Hour))
			time.AfterFunc(10*time.Millisecond, func() { near.SetReadDeadline(after(40 * time.Millisecond)) })
			at("moved ahead", 40*time.Millisecond, read)
			near.SetReadDeadline(after(50 * time.Millisecond))
			time.AfterFunc(5*time.Millisecond, func() { near.SetReadDeadline(after(time.Second)) })
			at("moved back", time.Second, read)
			near.SetReadDeadline(after(2 * time.Second))
			time.AfterFunc(10*time.Millisecond, func() { near.SetReadDeadline(after(0)) })
			at("moved into the past", 1010*time.Millisecond, read)
			near.SetReadDeadline(time.Time{})
			time.AfterFunc(time.Minute, func() { _, _ = far.Write([]byte("x")) })
			if n, err := read(); n != 1 || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
			near.SetReadDeadline(after(0)) // what is there does not count
			go func() { _, _ = far.Write([]byte("y")) }()
			synctest.Wait()
			if n, err := read(); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %d, %v", n, err)
			}
			near.SetReadDeadline(time.Time{})
			if n, err := read(); n != 1 || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
		})
	}
}

// TestStreamWriteDeadline: what a Write has taken is on its way, and a Write of
// nothing waits for it.
func TestStreamWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pipe(1000)
		defer near.Close()
		near.SetWriteDeadline(time.Now().Add(20 * time.Millisecond))
		n, err := near.Write(make([]byte, 10*bufferSize))
		if n != bufferSize || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %d, %v", n, err)
		}
		if n, err := near.Write(nil); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %d, %v", n, err)
		}
		near.SetWriteDeadline(time.Time{})
		done := make(chan error)
		go func() {
			_, err := near.Write(nil)
			done <- err
		}()
		for rest := n; rest > 0; {
			p := make([]byte, bufferSize)
			n, err := far.Read(p)
			if n > 1000 || err != nil {
				t.Fatalf("got a piece of %d, %v", n, err)
			}
			if rest -= n; rest == 0 {
				break
			}
			time.Sleep(time.Millisecond)
			select {
			case err := <-done:
				t.Fatalf("done with %d to go, %v", rest, err)
			default:
			}
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestStreamWriteTurns: of two that write at once one waits for the other, but
// not beyond the deadline.
func TestStreamWriteTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pipe(1000)
		first := make(chan error, 1)
		go func() { _, err := near.Write(bytes.Repeat([]byte("a"), 2*bufferSize)); first <- err }()
		synctest.Wait()
		begun := time.Now()
		near.SetWriteDeadline(begun.Add(20 * time.Millisecond))
		if n, err := near.Write([]byte("b")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(begun) != 20*time.Millisecond {
			t.Errorf("got %d, %v after %v", n, err, time.Since(begun))
		}
		if err := <-first; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		near.SetWriteDeadline(time.Time{})
		got := make(chan []byte)
		go func() { all, _ := io.ReadAll(far); got <- all }()
		second := make(chan error, 1)
		go func() { _, err := near.Write(bytes.Repeat([]byte("c"), 2*bufferSize)); second <- err }()
		if _, err := near.Write(bytes.Repeat([]byte("d"), 2*bufferSize)); err != nil {
			t.Error(err)
		}
		if err := <-second; err != nil {
			t.Error(err)
		}
		near.Close()
		all := string(<-got)
		c, d := strings.Repeat("c", 2*bufferSize), strings.Repeat("d", 2*bufferSize)
		if !strings.HasSuffix(all, c+d) && !strings.HasSuffix(all, d+c) || strings.Contains(all, "b") {
			t.Error("what two have written is mixed up")
		}
	})
}

// TestStreamClose: Close unblocks everything, and leaves no goroutine behind:
// synctest would wait for it.
func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, _ := pipe(bufferSize)
		errs := make(chan error, 3)
		for range 2 {
			go func() { _, err := near.Read(make([]byte, 1)); errs <- err }()
		}
		go func() { _, err := near.Write(make([]byte, 5*bufferSize)); errs <- err }()
		time.Sleep(time.Second)
		if err := near.Close(); err != nil {
			t.Error(err)
		}
		for range cap(errs) {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("got %v", err)
			}
		}
		if err := near.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStreamCloseFull: the same when nobody has taken what came.
func TestStreamCloseFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := pipe(bufferSize)
		go func() { _, _ = far.Write(make([]byte, 5*bufferSize)) }()
		synctest.Wait()
		if _, err := near.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		near.Close()
		far.Close()
	})
}

// TestStreamEnds: what came before the end is read first, and the end again and
// again.
func TestStreamEnds(t *testing.T) {
	broken := errors.New("broken")
	for _, end := range []error{io.EOF, broken} {
		from := struct {
			io.Reader
			io.Writer
			io.Closer
		}{io.MultiReader(bytes.NewReader([]byte("hello")), iotest.ErrReader(end)), failing{broken}, io.NopCloser(nil)}
		s := newStream(from, bufferSize)
		got := make([]byte, 5)
		if _, err := io.ReadFull(s, got); err != nil || string(got) != "hello" {
			t.Errorf("got %q, %v", got, err)
		}
		for range 2 {
			if n, err := s.Read(got); n != 0 || !errors.Is(err, end) {
				t.Errorf("got %d, %v", n, err)
			}
			if _, err := s.Write(got); !errors.Is(err, broken) {
				t.Errorf("got %v", err)
			}
		}
		s.Close()
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
