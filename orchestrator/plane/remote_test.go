package plane_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/orchestrator/plane"
)

// serve lends a plane until the test ends.
func serve(t testing.TB, l net.Listener, p plane.Plane) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- plane.Serve(ctx, l, p) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func dial(t testing.TB, to func(context.Context) (net.Conn, error)) *plane.Remote {
	t.Helper()
	r, err := plane.Dial(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// Ensure ranks of two processes and of the one that has the plane meet in one operation.
func TestRemote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := exactly(t)
		e := emulated(t, d, plane.EmulatedOptions{})
		id(t, d, "11")
		l := listen()
		serve(t, l, e)
		a, b := dial(t, l.dial), dial(t, l.dial)
		go func() {
			time.Sleep(5 * time.Millisecond)
			if _, err := d.Disconnect(5); err != nil {
				t.Error(err)
			}
		}()
		got := make(chan []result)
		go func() { got <- do(t.Context(), a, dp(0, 0), dp(2, 0)) }()
		go func() { got <- do(t.Context(), b, dp(1, 0)) }()
		all := append(do(t.Context(), e, dp(3, 0)), <-got...)
		all = append(all, <-got...)
		lost := map[string]int64{}
		for _, r := range all {
			if r.err != nil || r.EndNS-r.BeginNS != 10e6 {
				t.Errorf("%+v", r)
			}
			lost[r.Uses.String()] += r.Lost
		}
		if diff := cmp.Diff(map[string]int64{"1>12,2>11,3>10,4>9": 0, "5>16,6>15,7>14,8>13": 10_000}, lost); diff != "" {
			t.Errorf("lost (-want +got):\n%s", diff)
		}
	})
}

// Ensure errors come over as they are, and that the end of a ctx ends the part in the other process.
func TestRemote_Errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := emulated(t, exactly(t), plane.EmulatedOptions{Patience: time.Second})
		l := listen()
		serve(t, l, e)
		r := dial(t, l.dial)
		check := func(ctx context.Context, p plane.Transfer, is error, text string) {
			t.Helper()
			if _, err := r.Do(ctx, p); !errors.Is(err, is) || !strings.Contains(err.Error(), text) {
				t.Errorf("got %v, want %s (%v)", err, text, is)
			}
		}
		check(t.Context(), dp(0, 0), plane.ErrMissing, "waited 1s for rank 1: ")
		bad := dp(0, 0)
		bad.Rail = "rail7"
		check(t.Context(), bad, plane.ErrTransfer, "no rail rail7")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		check(ctx, dp(0, 1), context.DeadlineExceeded, "waited 10ms for rank 1: context canceled")
		check(t.Context(), dp(0, 1), plane.ErrMissing, "waited 1s") // it has left the other process, too

		waits := make(chan error)
		go func() {
			_, err := r.Do(t.Context(), dp(0, 2))
			waits <- err
		}()
		synctest.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := <-waits; !errors.Is(err, plane.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		check(t.Context(), dp(0, 3), plane.ErrClosed, "rank 0 of dp/0 operation 3 on rail0")
		synctest.Wait()
		// The connection has ended, so the rank is no longer there.
		_, err := e.Do(t.Context(), dp(1, 2))
		if !errors.Is(err, plane.ErrMissing) || !strings.Contains(err.Error(), "for rank 0") {
			t.Errorf("after the connection: %v", err)
		}
	})
}

// Ensure it works over TCP, with many at once.
func TestRemote_TCP(t *testing.T) {
	e := plane.NewEmulated(plane.EmulatedOptions{})
	defer e.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, e)
	to := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", l.Addr().String())
	}
	a, b := dial(t, to), dial(t, to)
	const n = 100
	var left, right []plane.Transfer
	for op := range uint64(n) {
		for rank, list := range []*[]plane.Transfer{&left, &right} {
			p := dp(rank, op)
			p.Uses, p.Duration = nil, time.Microsecond
			*list = append(*list, p)
		}
	}
	got := make(chan []result)
	go func() { got <- do(t.Context(), a, left...) }()
	for _, r := range append(do(t.Context(), b, right...), <-got...) {
		if r.err != nil || r.EndNS-r.BeginNS != 1000 {
			t.Error(r)
		}
	}
}

// FuzzServe: whatever a client says, the server answers or hangs up.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"id":1,"do":{"rail":"rail0","rank":0,"members":[0],"duration_ns":0}}` + "\n"))
	f.Add([]byte(`{"id":1,"do":{"rail":"rail0","rank":0,"members":[0,1]}}` + "\n" + `{"id":1,"cancel":true}` + "\n"))
	f.Add([]byte(`{"id":1}` + "\n"))
	f.Add([]byte("\x00\n\n{}"))
	f.Fuzz(func(t *testing.T, said []byte) {
		e := plane.NewEmulated(plane.EmulatedOptions{})
		defer e.Close()
		l := listen()
		serve(t, l, e)
		conn, err := l.dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = io.Copy(io.Discard, conn)
		}()
		_, _ = conn.Write(said)
		conn.Close()
		<-ended
	})
}
