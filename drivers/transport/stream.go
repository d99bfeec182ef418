package transport

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// bufferSize is how much of either direction is held for who has not asked for
// it yet, in bytes.
const bufferSize = 32 << 10

// stream gives deadlines to what has none: one goroutine reads ahead, one
// writes, and those who wait for them can stop waiting. It behaves as a
// net.Conn, except that a Write that hits its deadline has taken what is still
// being written.
type stream struct {
	*reader
	*writer
	rwc  io.ReadWriteCloser
	once sync.Once
	err  error // of closing rwc
}

// newStream takes over rwc, of which Close must unblock Read and Write. Piece is
// the most that is written at once.
func newStream(rwc io.ReadWriteCloser, piece int) *stream {
	return &stream{reader: newReader(rwc), writer: newWriter(rwc, piece), rwc: rwc}
}

// Close ends it and waits for both goroutines.
func (s *stream) Close() error {
	s.once.Do(func() {
		s.reader.stop()
		s.writer.stop()
		s.err = s.rwc.Close()
		<-s.reader.ended
		<-s.writer.ended
	})
	return s.err
}

// alarm wakes those who wait on a condition when a time has come. It is set for
// each request of a driver, so its timer is moved only when it would be late:
// one that is early looks again. All is guarded by the lock of cond.
type alarm struct {
	cond  *sync.Cond
	at    time.Time // zero is never
	timer *time.Timer
	rings time.Time // when timer does; zero when it does not
}

func (a *alarm) set(t time.Time) {
	a.cond.L.Lock()
	defer a.cond.L.Unlock()
	a.at = t
	if a.dueLocked() {
		a.cond.Broadcast()
	} else {
		a.armLocked()
	}
}

func (a *alarm) armLocked() {
	if a.at.IsZero() || !a.rings.IsZero() && !a.rings.After(a.at) {
		return
	}
	a.rings = a.at
	if d := time.Until(a.at); a.timer == nil {
		a.timer = time.AfterFunc(d, a.ring)
	} else {
		a.timer.Reset(d)
	}
}

func (a *alarm) ring() {
	a.cond.L.Lock()
	defer a.cond.L.Unlock()
	a.rings = time.Time{}
	if a.dueLocked() {
		a.cond.Broadcast()
	} else {
		a.armLocked()
	}
}

func (a *alarm) dueLocked() bool { return !a.at.IsZero() && !time.Now().Before(a.at) }

func (a *alarm) stopLocked() {
	a.at = time.Time{}
	if a.timer != nil {
		a.timer.Stop()
	}
}

// reader is the half that reads.
type reader struct {
	mu     sync.Mutex // guards what follows
	change sync.Cond  // of anything below
	by     alarm
	got    []byte // read, and not taken yet
	err    error  // what comes after that
	closed bool

	ended chan struct{} // closed when nothing is read any more
}

func newReader(from io.Reader) *reader {
	r := &reader{ended: make(chan struct{})}
	r.change.L = &r.mu
	r.by.cond = &r.change
	go r.run(from)
	return r
}

// run reads one piece ahead of who takes them.
func (r *reader) run(from io.Reader) {
	defer close(r.ended)
	var bufs [2][]byte
	for i := 0; ; i++ {
		if bufs[i%2] == nil {
			bufs[i%2] = make([]byte, bufferSize)
		}
		n, err := from.Read(bufs[i%2])
		r.mu.Lock()
		for len(r.got) > 0 && !r.closed {
			r.change.Wait()
		}
		r.got, r.err = bufs[i%2][:n], err
		r.change.Broadcast()
		over := err != nil || r.closed
		r.mu.Unlock()
		if over {
			return
		}
	}
}

// Read implements [Conn].
func (r *reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.closed:
			return 0, net.ErrClosed
		case r.by.dueLocked():
			return 0, os.ErrDeadlineExceeded
		case len(r.got) > 0, len(p) == 0:
			n := copy(p, r.got)
			if r.got = r.got[n:]; len(r.got) == 0 {
				r.change.Broadcast()
			}
			return n, nil
		case r.err != nil:
			return 0, r.err
		}
		r.change.Wait()
	}
}

// SetReadDeadline implements [Conn].
func (r *reader) SetReadDeadline(t time.Time) error {
	r.by.set(t)
	return nil
}

func (r *reader) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.by.stopLocked()
	r.change.Broadcast()
}

// writer is the half that writes.
type writer struct {
	mu     sync.Mutex // guards what follows
	change sync.Cond  // of anything below
	by     alarm
	turn   bool   // a Write is under way
	taken  []byte // to be written
	busy   bool   // some that was in taken is being written
	err    error
	closed bool

	ended chan struct{} // closed when nothing is written any more
}

func newWriter(to io.Writer, piece int) *writer {
	w := &writer{ended: make(chan struct{})}
	w.change.L = &w.mu
	w.by.cond = &w.change
	go w.run(to, piece)
	return w
}

func (w *writer) run(to io.Writer, piece int) {
	defer close(w.ended)
	var buf []byte
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		for len(w.taken) == 0 && !w.closed {
			w.change.Wait()
		}
		if w.closed {
			return
		}
		buf, w.taken, w.busy = w.taken, buf[:0], true
		for rest := buf; len(rest) > 0 && w.err == nil && !w.closed; {
			w.mu.Unlock()
			n, err := to.Write(rest[:min(piece, len(rest))])
			w.mu.Lock()
			w.err, rest = err, rest[n:]
		}
		w.busy = false
		w.change.Broadcast()
		if w.err != nil {
			return
		}
	}
}

// Write implements [Conn].
func (w *writer) Write(p []byte) (n int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for mine := false; ; {
		switch {
		case w.closed:
			return n, net.ErrClosed
		case w.err != nil:
			return n, w.err
		case w.by.dueLocked():
			return n, os.ErrDeadlineExceeded
		case !mine && w.turn:
			w.change.Wait()
			continue
		case !mine:
			mine, w.turn = true, true
			defer w.endTurnLocked()
		}
		if n == len(p) && len(w.taken) == 0 && !w.busy {
			return n, nil
		}
		if room := bufferSize - len(w.taken); n < len(p) && room > 0 {
			more := p[n:min(len(p), n+room)]
			w.taken = append(w.taken, more...)
			n += len(more)
			w.change.Broadcast()
		}
		w.change.Wait()
	}
}

func (w *writer) endTurnLocked() {
	w.turn = false
	w.change.Broadcast()
}

// SetWriteDeadline implements [Conn].
func (w *writer) SetWriteDeadline(t time.Time) error {
	w.by.set(t)
	return nil
}

func (w *writer) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.by.stopLocked()
	w.change.Broadcast()
}
