package tl1switch

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

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

	turn chan struct{} // holds one token; who has it may use what follows
	s    *session      // nil when not connected
	id   *ocs.Identity
	d    dialect
	ctag int
	out  []byte

	life context.Context // ends with Close
	end  context.CancelFunc
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
	sw := &Switch{cfg: cfg, hide: newHider(cfg.Password.Reveal()), turn: make(chan struct{}, 1)}
	var err error
	if sw.d, err = newDialect(sw); err != nil {
		return nil, err
	}
	sw.life, sw.end = context.WithCancel(context.Background())
	sw.turn <- struct{}{}
	defer sw.pass()
	if err := sw.connect(ctx); err != nil {
		sw.end()
		return nil, err
	}
	if idle := sw.d.keepAlive(); idle > 0 {
		go sw.keepAlive(idle)
	}
	return sw, nil
}

// take waits for the turn to use the session.
func (sw *Switch) take(ctx context.Context, op string) error {
	select {
	case sw.turn <- struct{}{}: // the usual case, and much cheaper alone
	default:
		select {
		case sw.turn <- struct{}{}:
		case <-ctx.Done():
			return sw.fail(op, "", "", sw.gone(ctx))
		case <-sw.life.Done():
			return sw.fail(op, "", "", errClosed)
		}
	}
	if err := sw.gone(ctx); err != nil {
		sw.pass()
		return sw.fail(op, "", "", err)
	}
	return nil
}

// pass ends the turn.
func (sw *Switch) pass() { <-sw.turn }

// gone returns why there is no point in going on, if there is none.
func (sw *Switch) gone(ctx context.Context) error {
	switch {
	case sw.life.Err() != nil:
		return errClosed
	case ctx.Err() != nil:
		return context.Cause(ctx)
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
		if why := sw.gone(ctx); why != nil {
			err = fmt.Errorf("cannot connect: %w", why)
		}
		return sw.fail("connect", "", "", err)
	}
	s := newSession(conn, sw)
	sw.open.Store(s)
	if sw.life.Err() != nil { // Close may not have seen this session
		s.close(errClosed)
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
	defer sw.pass()
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
	case err == nil || sw.gone(ctx) != nil:
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
	sw.end()
	if s := sw.open.Load(); s != nil {
		s.close(errClosed)
	}
	return nil
}

// Identify returns what the device says of itself. It is asked until it has
// told its size, then no more.
func (sw *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	if err := sw.take(ctx, opIdentify); err != nil {
		return ocs.Identity{}, err
	}
	defer sw.pass()
	return sw.identify(ctx)
}

func (sw *Switch) identify(ctx context.Context) (ocs.Identity, error) {
	if sw.id != nil {
		return *sw.id, nil
	}
	id, err := sw.d.identify(ctx)
	if err == nil && id.Geometry.Known() {
		sw.id = &id
	}
	return id, err
}

// CrossConnects returns what the device holds. Circuits that it lists as failed
// are not among them: they carry no light.
func (sw *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if err := sw.take(ctx, opRead); err != nil {
		return ocs.Map{}, err
	}
	defer sw.pass()
	return sw.d.crossConnects(ctx)
}

// Apply carries out a change; see [ocs.Switch]. How many requests that takes
// depends on the dialect, see the package documentation.
func (sw *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if c.Empty() {
		return ocs.Receipt{}, nil
	}
	if err := sw.take(ctx, opChange); err != nil {
		return ocs.Receipt{}, err
	}
	defer sw.pass()
	w := work{sw: sw}
	err := sw.d.apply(ctx, &w, c)
	return w.total, err
}

// What is done, for messages.
const (
	opIdentify = "identify"
	opRead     = "read cross-connects"
	opChange   = "change circuits"
	opPower    = "read power"
	opLabels   = "read labels"
)

// mapOf makes a map of what a reply listed.
func (sw *Switch) mapOf(a answer, m ocs.Map, err error) (ocs.Map, error) {
	if err != nil {
		// Not wrapped: nobody asked for anything that could be a conflict.
		return m, sw.fail(opRead, "", string(a.msg.Raw), fmt.Errorf("the device contradicts itself: %v", err))
	}
	return m, nil
}

func parsePort(s string) (ocs.Port, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err == nil && n == 0 {
		err = strconv.ErrRange
	}
	return ocs.Port(n), err
}

// garbled is the error for a line of a reply that cannot be understood.
func (sw *Switch) garbled(op string, a answer, line string) error {
	return sw.fail(op, "", string(a.msg.Raw), fmt.Errorf("cannot understand %.60q in the reply", sw.hide.text(line)))
}
