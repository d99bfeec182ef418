package ocstrx

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// Defaults of [LinkConfig].
const (
	DefaultReplyTimeout = 500 * time.Millisecond
	DefaultRetries      = 3
)

// LinkConfig is what a Link is opened with. Only Dialer is required.
type LinkConfig struct {
	Dialer transport.Dialer
	Device string // name for messages; default the Dialer's address
	// Timeout is how long a reply may take before the request is sent again, 0 means
	// DefaultReplyTimeout. A slow line wants more: eight replies take 1.2 s at 9600 baud.
	Timeout time.Duration
	// Retries is how often a request is sent again when no reply comes; 0 means
	// DefaultRetries, less than 0 never.
	Retries int
	// Trace, when set, is called with all that is sent and received, one piece at a time.
	// It must not keep p nor call the Link.
	Trace func(sent bool, p []byte)
}

// Link is a board with modules at the far end of a stream, such as a serial line. It is a
// [Bus].
//
// Noise and lost bytes cost time, and never make a wrong result: see package trxlink. A
// write takes effect once, however often it is sent, also if the board restarts in between,
// which fails the call when something may have been done. When the stream has broken, the next
// call opens another one; a call that was under way then fails, as what it changed may have
// been done or not.
type Link struct {
	cfg LinkConfig // with all defaults filled in

	turn  link.Turn // who has it may use what follows
	s     *session  // nil when not connected
	msgs  []message
	out   []byte
	seq   uint8
	sends int  // transmissions ever
	doubt bool // a reply was not waited for

	info atomic.Pointer[trxlink.Info]
	life link.Life               // ends with Close
	open atomic.Pointer[session] // the newest, for Close
}

var _ Bus = (*Link)(nil)

// dialTime is how long it may take to open the stream.
const dialTime = 5 * time.Second

// OpenLink opens the stream and greets the board. Errors are *[ocs.OpError]; one that matches
// ocs.ErrNotSupported is a board that speaks another version of the protocol.
func OpenLink(ctx context.Context, cfg LinkConfig) (*Link, error) {
	if cfg.Dialer == nil {
		return nil, errors.New("ocstrx: no Dialer")
	}
	if cfg.Device == "" {
		cfg.Device = cfg.Dialer.String()
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultReplyTimeout
	}
	if cfg.Retries == 0 {
		cfg.Retries = DefaultRetries
	}
	cfg.Retries = max(cfg.Retries, 0)
	l := &Link{cfg: cfg, turn: link.NewTurn(), life: link.NewLife(), seq: uint8(rand.Uint32())}
	l.turn <- struct{}{}
	defer l.turn.Pass()
	if err := l.ready(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// Info returns what the board said of itself.
func (l *Link) Info() trxlink.Info { return *l.info.Load() }

// Slots implements [Bus].
func (l *Link) Slots() int { return l.Info().Slots }

// HasTrigger implements [Bus].
func (l *Link) HasTrigger() bool { return l.Info().Features&trxlink.HasTrigger != 0 }

// String is the address of the board.
func (l *Link) String() string { return l.cfg.Dialer.String() }

// Close implements [Bus].
func (l *Link) Close() error {
	l.life.End()
	if s := l.open.Load(); s != nil {
		s.conn.Close()
	}
	return nil
}

// Do implements [Bus]. Requests for different modules, and reads, are sent without waiting
// for the replies of those before, up to [trxlink.Outstanding] of them. Errors hold a
// *[RequestError].
func (l *Link) Do(ctx context.Context, requests ...Request) (ocs.Receipt, error) {
	if err := checkAll(l, l.cfg.Device, requests); err != nil || len(requests) == 0 {
		return ocs.Receipt{}, err
	}
	fail := func(err error) error { return &RequestError{Request: requests[0], Err: err} }
	if err := l.life.Take(ctx, l.turn); err != nil {
		return ocs.Receipt{}, fail(&ocs.OpError{Op: requests[0].String(), Device: l.cfg.Device, Err: err})
	}
	defer l.turn.Pass()
	for len(l.msgs) < len(requests) {
		l.msgs = append(l.msgs, message{})
	}
	msgs := l.msgs[:len(requests)]
	r, f, err := l.talk(ctx, msgs, func() {
		for i, q := range requests {
			msgs[i].set(q, l.cfg)
		}
	})
	if err != nil {
		return ocs.Receipt{}, fail(err)
	}
	for i, q := range requests {
		if m := &msgs[i]; q.Op == OpRead && m.done && m.refused() == nil {
			copy(q.Data, m.reply.Payload[1:])
		}
	}
	if f == nil {
		return r, nil
	}
	q := requests[f.index]
	return r, &RequestError{Index: f.index, Request: q, Unsure: f.unsure, Err: l.opError(q.String(), &msgs[f.index], f.err)}
}

// talk has messages done that set makes. When the board has started since it was greeted,
// and so has done nothing of what it was sent, it is greeted and asked again.
func (l *Link) talk(ctx context.Context, msgs []message, set func()) (r ocs.Receipt, f *failure, err error) {
	for again := false; ; again = true {
		if err := l.ready(ctx); err != nil {
			return r, nil, err
		}
		set()
		if r, f = l.exchange(ctx, msgs); f == nil || again || !untouched(msgs) {
			return r, f, nil
		}
	}
}

// opError says what was asked and answered.
func (l *Link) opError(op string, m *message, err error) error {
	e := &ocs.OpError{Op: op, Device: l.cfg.Device, Err: err}
	if m.sends > 0 {
		e.Request = trxlink.Frame{Kind: m.kind, Slot: m.slot, Seq: m.seq, Payload: m.payload}.String()
	}
	if m.done {
		e.Reply = m.reply.String()
	}
	return e
}

// ready makes sure that there is a stream, and that no reply that is still to come can be
// taken for one to what is asked next: those to requests before a HELLO come before its own.
func (l *Link) ready(ctx context.Context) error {
	if l.s != nil && !l.s.dead && !l.doubt {
		return nil
	}
	if l.s == nil || l.s.dead {
		if err := l.dial(ctx); err != nil {
			return err
		}
	}
	return l.hello(ctx)
}

const opGreet = "connect"

func (l *Link) dial(ctx context.Context) error {
	l.s = nil
	dialing, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	conn, err := l.cfg.Dialer.Dial(dialing)
	if err != nil {
		if why := l.life.Gone(ctx); why != nil {
			err = fmt.Errorf("cannot connect: %w", why)
		}
		return &ocs.OpError{Op: opGreet, Device: l.cfg.Device, Err: err}
	}
	s := newSession(conn, l)
	l.open.Store(s)
	if l.life.Err() != nil { // Close may not have seen this one
		s.end()
		return &ocs.OpError{Op: opGreet, Device: l.cfg.Device, Err: link.ErrClosed}
	}
	l.s = s
	return nil
}

// hello greets the board, and keeps what it says of itself.
func (l *Link) hello(ctx context.Context) error {
	l.doubt = true
	var nonce trxlink.Nonce
	binary.BigEndian.PutUint32(nonce[:], rand.Uint32())
	m := []message{{kind: trxlink.Hello, slot: trxlink.Board, payload: nonce[:], length: -1}}
	// More often than other requests: a serial line may lose what comes just when it is
	// opened, and a board that was left in mid-frame needs a moment.
	m[0].timeout, m[0].tries = l.cfg.Timeout/4, 4*(l.cfg.Retries+1)
	if _, f := l.exchange(ctx, m); f != nil {
		return l.opError(opGreet, &m[0], f.err)
	}
	info, _, err := trxlink.ParseInfo(m[0].reply.Payload[1:])
	switch was := l.info.Load(); {
	case err != nil:
	case info.Version != trxlink.Version:
		err = fmt.Errorf("the board speaks version %d of the protocol, and this program only %d: %w", info.Version, trxlink.Version, ocs.ErrNotSupported)
	case was != nil && (was.Serial != info.Serial || was.Slots != info.Slots):
		err = fmt.Errorf("another board answers, %q with %d slots, and it was %q with %d; open it again", info.Serial, info.Slots, was.Serial, was.Slots)
	}
	if err != nil {
		return l.opError(opGreet, &m[0], err)
	}
	l.info.Store(&info)
	l.doubt = false
	return nil
}
