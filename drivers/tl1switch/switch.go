package tl1switch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/internal/notify"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/internal/secret"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/tl1"
)

// DefaultTimeout is how long a reply may take when nothing else is said.
const DefaultTimeout = 10 * time.Second

// Config is what a Switch is opened with. Only Dialer is required.
type Config struct {
	Dialer   transport.Dialer
	Device   string // name for messages; default the Dialer's address
	User     string // default "admin"
	Password secret.Secret

	// Dialect is what the device speaks; "" is [Polatis].
	Dialect Dialect
	// TwoStep says whether a new cross-connect has to be activated ([Calient] only);
	// by default the driver finds out.
	TwoStep TwoStep
	// Group is the group that cross-connects are made in ([Calient] only); default
	// User.
	Group string
	// Async makes the device acknowledge a change before the light has settled
	// ([Glimmerglass] only).
	Async bool

	// Timeout is how long one reply may take, 0 means DefaultTimeout. A
	// context that ends earlier counts, too.
	Timeout time.Duration
	// MaxPairs is the largest number of cross-connects in one request; 0 is
	// no limit. A larger change takes several requests and is no longer
	// one operation of the device.
	MaxPairs int
	// MaxReply is the longest reply in bytes, 0 means tl1.DefaultMaxMessage.
	MaxReply int
	// Trace, when set, is called with all that is sent and received, one piece
	// at a time, with secrets masked. It must not keep p nor call the Switch.
	Trace func(d Direction, p []byte)
}

// Direction is where traced bytes went.
type Direction bool

const (
	Sent     Direction = true
	Received Direction = false
)

// Switch is a TL1 switch. It implements [ocs.Switch], [ocs.PowerMeter],
// [ocs.Shutter], [ocs.Labeler], [ocs.Notifier] and [ocs.Restarter]; what the device has
// no command for returns an error that matches [ocs.ErrNotSupported].
type Switch struct {
	cfg     Config
	hide    hider
	events  notify.Hub
	tracing sync.Mutex // held while Trace is called

	turn link.Turn // who has it may use what follows
	s    *session  // nil when not connected
	id   *ocs.Identity
	d    dialect
	ctag int
	out  []byte

	life link.Life               // ends with Close
	open atomic.Pointer[session] // the newest, for Close
}

var (
	_ ocs.Switch     = (*Switch)(nil)
	_ ocs.PowerMeter = (*Switch)(nil)
	_ ocs.Shutter    = (*Switch)(nil)
	_ ocs.Labeler    = (*Switch)(nil)
	_ ocs.Notifier   = (*Switch)(nil)
	_ ocs.Restarter  = (*Switch)(nil)
)

// Open connects and logs in. Errors are *[ocs.OpError]; a login that the device
// refuses matches [ocs.ErrDenied].
func Open(ctx context.Context, cfg Config) (*Switch, error) {
	if cfg.Dialer == nil {
		return nil, errors.New("tl1switch: no Dialer")
	}
	if cfg.Device == "" {
		cfg.Device = cfg.Dialer.String()
	}
	if cfg.User == "" {
		cfg.User = "admin"
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Group == "" {
		cfg.Group = cfg.User
	}
	sw := &Switch{cfg: cfg, hide: newHider(cfg.Password.Reveal()), turn: link.NewTurn(), life: link.NewLife()}
	var err error
	if sw.d, err = newDialect(sw); err != nil {
		return nil, err
	}
	sw.turn <- struct{}{}
	defer sw.turn.Pass()
	if err := sw.connect(ctx); err != nil {
		sw.life.End()
		return nil, err
	}
	if idle := sw.d.keepAlive(); idle > 0 {
		go sw.keepAlive(idle)
	}
	return sw, nil
}

// take waits for the turn to use the session.
func (sw *Switch) take(ctx context.Context, op string) error {
	if err := sw.life.Take(ctx, sw.turn); err != nil {
		return sw.fail(op, "", "", err)
	}
	return nil
}

// connect opens a session and logs in. Called with the turn.
func (sw *Switch) connect(ctx context.Context) error {
	if sw.s != nil {
		sw.s.close(errors.New("the session was given up"))
		sw.s = nil
	}
	dialing, cancel := context.WithTimeout(ctx, sw.cfg.Timeout)
	defer cancel()
	defer context.AfterFunc(sw.life, cancel)()
	conn, err := sw.cfg.Dialer.Dial(dialing)
	if err != nil {
		if why := sw.life.Gone(ctx); why != nil {
			err = fmt.Errorf("cannot connect: %w", why)
		}
		return sw.fail("connect", "", "", err)
	}
	s := newSession(conn, sw)
	sw.open.Store(s)
	if sw.life.Err() != nil { // Close may not have seen this session
		s.close(link.ErrClosed)
	}
	if err := sw.login(ctx, s); err != nil {
		s.close(errors.New("the login failed"))
		return err
	}
	sw.s = s
	return nil
}

// login logs in and says whether autonomous messages are wanted. Called with
// the turn.
func (sw *Switch) login(ctx context.Context, s *session) error {
	r := request{op: "log in", code: "ACT-USER", aid: tl1.Quote(sw.cfg.User), blocks: []string{""}}
	if p := sw.cfg.Password.Reveal(); p != "" {
		r.blocks, r.shown = []string{tl1.Quote(p)}, []string{"***"}
	}
	_, err := s.exchange(ctx, r)
	var refused *tl1.Error
	if errors.As(err, &refused) && refused.AlreadyLoggedIn() {
		err = nil
	}
	if err != nil {
		return err
	}
	s.told = nothing
	err = sw.inhibit(ctx, s)
	if errors.As(err, &refused) || errors.Is(err, ocs.ErrNotSupported) {
		// A device that does not know how is left alone: autonomous messages
		// are routed apart in any case.
		return nil
	}
	return err
}

// inhibit tells the device whether anybody listens to autonomous messages,
// unless it has been told. Called with the turn.
func (sw *Switch) inhibit(ctx context.Context, s *session) error {
	r, want := request{op: "allow notifications", code: "RLS-ARC-EQPT", aid: "REPMGR"}, allowed
	if !sw.events.Wanted() {
		r, want = request{op: "inhibit notifications", code: "OPR-ARC-EQPT", aid: "REPMGR", blocks: []string{"IND"}}, inhibited
	}
	if s.told == want {
		return nil
	}
	if !sw.d.has(r.code) {
		if want == allowed {
			return sw.lacks(r.op)
		}
		return nil
	}
	_, err := s.exchange(ctx, r)
	if err == nil {
		s.told = want
	}
	return err
}

// do sends a request, with a new session or login when that is needed and safe.
func (sw *Switch) do(ctx context.Context, r request) (answer, error) {
	if !sw.d.has(r.code) {
		return answer{}, sw.lacks(r.op)
	}
	if err := sw.take(ctx, r.op); err != nil {
		return answer{}, err
	}
	defer sw.turn.Pass()
	return sw.perform(ctx, r)
}

// perform is do for who has the turn.
func (sw *Switch) perform(ctx context.Context, r request) (answer, error) {
	fresh := false
	if sw.s == nil || !sw.s.usable() {
		if err := sw.connect(ctx); err != nil {
			return answer{}, err
		}
		fresh = true
	}
	a, err := sw.s.exchange(ctx, r)
	switch {
	case err == nil || sw.life.Gone(ctx) != nil:
		return a, err
	case notLoggedIn(err):
		if err := sw.login(ctx, sw.s); err != nil {
			return a, err
		}
		if !r.again {
			return a, fmt.Errorf("%w; logged in again, but this command is not repeated by itself", err)
		}
	case sw.s.alive() || fresh:
		return a, err
	case a.receipt.Requests > 0 && !r.read:
		return a, err // it may have taken effect
	default:
		if again := sw.connect(ctx); again != nil {
			return a, fmt.Errorf("%w; then %w", err, again)
		}
	}
	sent := a.receipt.Requests
	a, err = sw.s.exchange(ctx, r)
	a.receipt.Requests += sent
	return a, err
}

// Close ends the session without logging out, as clients of these devices do.
// Calls under way return an error that matches [net.ErrClosed].
func (sw *Switch) Close() error {
	sw.life.End()
	if s := sw.open.Load(); s != nil {
		s.close(link.ErrClosed)
	}
	return nil
}
