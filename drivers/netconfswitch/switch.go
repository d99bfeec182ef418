package netconfswitch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/internal/notify"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
)

// DefaultTimeout is how long a reply may take when nothing else is said.
const DefaultTimeout = 10 * time.Second

// DefaultMaxMessage is the longest message in bytes when nothing else is said.
const DefaultMaxMessage = 16 << 20

// Config is what a Switch is opened with. Only Dialer is required. Who the user
// is has been settled when the Dialer returns: by SSH, or by TLS.
type Config struct {
	Dialer transport.Dialer // opens an SSH subsystem "netconf", or TLS
	Device string           // name for messages; default the Dialer's address

	// Timeout is how long one reply may take, and the opening of a session; 0
	// means DefaultTimeout. A context that ends earlier counts, too.
	Timeout time.Duration
	// MaxMessage is the longest message in bytes that is taken from the device,
	// 0 means DefaultMaxMessage.
	MaxMessage int
	// Trace, when set, is called with all that is sent and received, one piece
	// at a time, with secrets masked: what is sent with its framing, what is
	// received as whole messages without it, and at the end of a session what
	// it had of a message. It must not keep p nor call the Switch.
	Trace func(sent bool, p []byte)
}

// Switch is a NETCONF switch. It implements [ocs.Switch], [ocs.PowerMeter],
// [ocs.Shutter], [ocs.Labeler], [ocs.Attenuator], [ocs.Notifier] and
// [ocs.Restarter]. Calls overlap on the wire.
type Switch struct {
	cfg     Config
	events  notify.Hub
	tracing sync.Mutex // held while Trace is called

	current atomic.Pointer[session]
	id      atomic.Pointer[ocs.Identity]
	// refusesTakeover is learned: the device denies a busy port.
	refusesTakeover atomic.Bool

	dialing   link.Turn // to dial, and to store current
	listening link.Turn // to subscribe; who has it may use the next field
	ear       *session

	life link.Life  // ends with Close
	mu   sync.Mutex // guards what follows
	open map[*session]struct{}
}

var (
	_ ocs.Switch     = (*Switch)(nil)
	_ ocs.PowerMeter = (*Switch)(nil)
	_ ocs.Shutter    = (*Switch)(nil)
	_ ocs.Labeler    = (*Switch)(nil)
	_ ocs.Attenuator = (*Switch)(nil)
	_ ocs.Notifier   = (*Switch)(nil)
	_ ocs.Restarter  = (*Switch)(nil)
)

// Open connects and exchanges hellos. Errors are *[ocs.OpError]; a device that
// does not announce the YANG module optical-switch matches
// [ocs.ErrNotSupported].
func Open(ctx context.Context, cfg Config) (*Switch, error) {
	if cfg.Dialer == nil {
		return nil, errors.New("netconfswitch: no Dialer")
	}
	if cfg.Device == "" {
		cfg.Device = cfg.Dialer.String()
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxMessage <= 0 {
		cfg.MaxMessage = DefaultMaxMessage
	}
	sw := &Switch{cfg: cfg, dialing: link.NewTurn(), listening: link.NewTurn(), life: link.NewLife(), open: map[*session]struct{}{}}
	if _, _, err := sw.session(ctx); err != nil {
		sw.life.End()
		return nil, err
	}
	return sw, nil
}

// session returns the session that requests go to, and whether it was opened
// for this call.
func (sw *Switch) session(ctx context.Context) (s *session, fresh bool, err error) {
	if s := sw.current.Load(); s != nil && s.usable() {
		return s, false, nil
	}
	if err := sw.life.Take(ctx, sw.dialing); err != nil {
		return nil, false, sw.fail("connect", "", "", err)
	}
	defer sw.dialing.Pass()
	s = sw.current.Load()
	if s != nil && s.usable() { // somebody else has opened it meanwhile
		return s, false, nil
	}
	if s != nil {
		s.retire()
	}
	if s, err = sw.connect(ctx); err != nil {
		return nil, false, err
	}
	sw.current.Store(s)
	return s, true, nil
}

// connect opens a session. Called with the turn to dial.
func (sw *Switch) connect(ctx context.Context) (*session, error) {
	const op = "connect"
	ctx, cancel := context.WithTimeoutCause(ctx, sw.cfg.Timeout, errSlow)
	defer cancel()
	defer context.AfterFunc(sw.life, cancel)()
	conn, err := sw.cfg.Dialer.Dial(ctx)
	if err != nil {
		if why := sw.life.Gone(ctx); why != nil {
			err = fmt.Errorf("cannot connect: %w", why)
		}
		return nil, sw.fail(op, "", "", err)
	}
	s, said, err := newSession(ctx, conn, sw)
	if err != nil {
		conn.Close()
		return nil, sw.fail(op, "", said, err)
	}
	sw.mu.Lock()
	sw.open[s] = struct{}{}
	sw.mu.Unlock()
	go s.watch()
	if sw.life.Err() != nil { // Close may not have seen this session
		s.close(link.ErrClosed)
		return nil, sw.fail(op, "", "", link.ErrClosed)
	}
	return s, nil
}

// forget takes a session that has ended off the list.
func (sw *Switch) forget(s *session) {
	sw.mu.Lock()
	defer sw.mu.Unlock()
	delete(sw.open, s)
}

// do sends a request, on a new session when that is needed and safe.
func (sw *Switch) do(ctx context.Context, r request) (answer, error) {
	if err := sw.life.Gone(ctx); err != nil {
		return answer{}, sw.fail(r.op, "", "", err)
	}
	s, fresh, err := sw.session(ctx)
	if err != nil {
		return answer{}, err
	}
	a, err := s.exchange(ctx, r)
	switch {
	case err == nil, sw.life.Gone(ctx) != nil, a.givenUp, s.alive(), fresh:
		return a, err
	case a.receipt.Requests > 0 && !r.read:
		return a, err // it may have taken effect
	}
	s, _, again := sw.session(ctx)
	if again != nil {
		return a, fmt.Errorf("%w; then %w", err, again)
	}
	sent := a.receipt.Requests
	a, err = s.exchange(ctx, r)
	a.receipt.Requests += sent
	return a, err
}

// Close ends the sessions by closing their streams, without <close-session>.
// Calls under way return an error that matches [net.ErrClosed].
func (sw *Switch) Close() error {
	sw.life.End()
	sw.mu.Lock()
	open := slices.Collect(maps.Keys(sw.open))
	sw.mu.Unlock()
	for _, s := range open {
		s.close(link.ErrClosed)
	}
	return nil
}

var errSlow = fmt.Errorf("it took too long: %w", context.DeadlineExceeded)
