package plane

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// The protocol of a lent plane: each side sends JSON objects, one in a line. A client asks with request, once for each part
// in an operation, under numbers of its own; the server answers each with a reply when the operation is over, in any order.
type (
	request struct {
		ID     uint64    `json:"id"`
		Do     *Transfer `json:"do,omitempty"`     // begin
		Cancel bool      `json:"cancel,omitempty"` // of the request of that number
	}
	reply struct {
		ID      uint64   `json:"id"`
		Outcome *Outcome `json:"outcome,omitempty"`
		Code    string   `json:"code,omitempty"` // of the error: which sentinel it matches
		Error   string   `json:"error,omitempty"`
	}
)

// maxLine is how long a line of the protocol may be: that of an operation of as many members as a job can have.
const maxLine = 4 << 20

// codes are the sentinels that go over the wire.
var codes = map[string]error{"missing": ErrMissing, "transfer": ErrTransfer, "closed": ErrClosed, "cancelled": context.Canceled}

// remoteError is an error of a plane that was lent.
type remoteError struct {
	text string
	is   error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.is }

// Serve lends a plane to ranks in other processes until ctx ends; then it closes l and all connections and returns nil
// when nothing runs any more. When a connection ends, what was asked over it is cancelled. Bounds: a client can make
// the server hold as many operations as it asks for, so l is for the processes of one experiment and not for strangers.
func Serve(ctx context.Context, l net.Listener, p Plane) error {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			l.Close()
			return fmt.Errorf("the data plane takes no more connections: %w", err)
		}
		all.Go(func() { serve(ctx, conn, p) })
	}
}

// serve answers one connection until it or ctx ends.
func serve(ctx context.Context, conn net.Conn, p Plane) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()

	// Two locks, for who writes waits for the client, which may be waiting for us to read.
	var mu, writing sync.Mutex // mu guards running
	running := map[uint64]context.CancelFunc{}
	answer := func(r reply) {
		line, err := json.Marshal(r)
		if err != nil {
			return // a reply has nothing that cannot be written
		}
		writing.Lock()
		defer writing.Unlock()
		if _, err := conn.Write(append(line, '\n')); err != nil {
			conn.Close() // ends the reader, and with it all
		}
	}
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			answer(reply{ID: r.ID, Code: "transfer", Error: fmt.Sprintf("the data plane does not understand %.80q", lines.Bytes())})
			return
		}
		mu.Lock()
		end, known := running[r.ID]
		mu.Unlock()
		switch {
		case r.Cancel:
			if known {
				end()
			}
			continue
		case r.Do == nil || known:
			answer(reply{ID: r.ID, Code: "transfer", Error: fmt.Sprintf("request %d asks for nothing, or was asked before", r.ID)})
			return
		}
		opCtx, end := context.WithCancel(ctx)
		mu.Lock()
		running[r.ID] = end
		mu.Unlock()
		all.Go(func() {
			defer end()
			out, err := p.Do(opCtx, *r.Do)
			mu.Lock()
			delete(running, r.ID)
			mu.Unlock()
			if err != nil {
				answer(reply{ID: r.ID, Code: codeOf(err), Error: err.Error()})
				return
			}
			answer(reply{ID: r.ID, Outcome: &out})
		})
	}
}

func codeOf(err error) string {
	for code, is := range codes {
		if errors.Is(err, is) {
			return code
		}
	}
	return ""
}

// Remote is a plane of another process of this host. Make one with [Dial].
type Remote struct {
	conn  net.Conn
	ended chan struct{} // closed when no more answers come; err is set then
	err   error

	writing sync.Mutex // one request at a time; not mu, which who reads needs
	mu      sync.Mutex // guards what follows
	next    uint64
	waiting map[uint64]chan reply
}

// Dial connects to a plane that is served elsewhere. Close it.
func Dial(ctx context.Context, dial func(context.Context) (net.Conn, error)) (*Remote, error) {
	conn, err := dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("data plane: %w", err)
	}
	r := &Remote{conn: conn, ended: make(chan struct{}), waiting: map[uint64]chan reply{}}
	go r.read()
	return r, nil
}

// Close ends the connection; operations under way fail with ErrClosed.
func (r *Remote) Close() error {
	err := r.conn.Close()
	<-r.ended
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (r *Remote) read() {
	defer close(r.ended)
	defer r.conn.Close()
	lines := bufio.NewScanner(r.conn)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var a reply
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			r.err = fmt.Errorf("%w: it answers %.80q", ErrClosed, lines.Bytes())
			return
		}
		r.mu.Lock()
		to := r.waiting[a.ID]
		delete(r.waiting, a.ID)
		r.mu.Unlock()
		if to != nil {
			to <- a // has room for one
		}
	}
	switch err := lines.Err(); {
	case err == nil || errors.Is(err, net.ErrClosed) || errors.Is(err, io.ErrClosedPipe):
		r.err = ErrClosed
	default:
		r.err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
}

// Do implements [Plane].
func (r *Remote) Do(ctx context.Context, t Transfer) (Outcome, error) {
	answer := make(chan reply, 1)
	r.mu.Lock()
	r.next++
	id := r.next
	r.waiting[id] = answer
	r.mu.Unlock()
	err := r.send(request{ID: id, Do: &t})
	defer func() {
		r.mu.Lock()
		delete(r.waiting, id)
		r.mu.Unlock()
	}()
	if err != nil {
		return Outcome{}, fmt.Errorf("%v: %w: %w", t, ErrClosed, err)
	}
	var a reply
	select {
	case a = <-answer:
	case <-ctx.Done():
		_ = r.send(request{ID: id, Cancel: true}) // if it cannot be sent, the connection has ended
		// The answer says whom the operation waited for.
		select {
		case a = <-answer:
			if a.Outcome == nil {
				return Outcome{}, &remoteError{a.Error, context.Cause(ctx)}
			}
		case <-r.ended:
			return Outcome{}, fmt.Errorf("%v: %w", t, context.Cause(ctx))
		}
	case <-r.ended:
		select {
		case a = <-answer: // came before the end
		default:
			return Outcome{}, fmt.Errorf("%v: %w", t, r.err)
		}
	}
	if a.Outcome == nil {
		return Outcome{}, &remoteError{a.Error, codes[a.Code]}
	}
	return *a.Outcome, nil
}

func (r *Remote) send(q request) error {
	line, err := json.Marshal(q)
	if err != nil {
		return err
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	_, err = r.conn.Write(append(line, '\n'))
	return err
}
