package scpiswitch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/drivers/transport"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/scpi"
)

// Defaults of [Config].
const (
	DefaultTimeout  = 10 * time.Second
	DefaultMaxPorts = 256
)

// Config is what a Switch is opened with. Only Dialer is required.
type Config struct {
	Dialer transport.Dialer
	Device string // name for messages; default the Dialer's address

	// Timeout is how long the device may neither take nor say anything while a
	// request is under way, 0 means DefaultTimeout. What passes slowly, as over
	// a serial line, is not late, but a reply has no more than Timeout and 100 ms
	// for each byte that comes. A context that ends earlier counts, too.
	Timeout time.Duration
	// Gap is the least pause between two lines, and between a reply and the next
	// line. Firmware for 16x16 units is known to lose commands that come sooner
	// than 100 ms. Where the way to the device delays one line more than the
	// next, Gap must be longer by that.
	Gap time.Duration
	// MaxPairs is the largest number of cross-connects in one command; 0 is no
	// limit. A larger change takes several commands and is no longer one
	// operation of the device.
	MaxPairs int
	// MaxPorts is the largest number of ports in one power query, 0 means
	// DefaultMaxPorts.
	MaxPorts int
	// MaxReply is the longest reply in bytes, 0 means scpi.DefaultMaxReply.
	MaxReply int
	// Trace, when set, is called with all that is sent and received, one piece
	// at a time. It must not keep p nor call the Switch.
	Trace func(sent bool, p []byte)
}

// Switch is a SCPI switch. It implements [ocs.Switch], [ocs.PowerMeter] without
// the settings of monitors, [ocs.Shutter] and [ocs.Restarter].
type Switch struct {
	cfg Config

	turn link.Turn // who has it may use what follows
	s    *session  // nil when not connected
	id   *ocs.Identity
	// refusesTakeover is learned: the device denies a busy port.
	refusesTakeover bool
	unmonitored     map[ocs.Port]bool // learned: ports without a monitor
	sidesKnown      bool              // learned: which sides have none at all
	out             []byte
	said            time.Time // when the last command had been sent

	life link.Life               // ends with Close
	open atomic.Pointer[session] // the newest, for Close
}

var (
	_ ocs.Switch     = (*Switch)(nil)
	_ ocs.PowerMeter = (*Switch)(nil)
	_ ocs.Shutter    = (*Switch)(nil)
	_ ocs.Restarter  = (*Switch)(nil)
)

// Open connects and empties the error queue, which shows that the device speaks
// SCPI. Errors are *[ocs.OpError].
func Open(ctx context.Context, cfg Config) (*Switch, error) {
	if cfg.Dialer == nil {
		return nil, errors.New("scpiswitch: no Dialer")
	}
	if cfg.Device == "" {
		cfg.Device = cfg.Dialer.String()
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.MaxPorts <= 0 {
		cfg.MaxPorts = DefaultMaxPorts
	}
	if cfg.MaxReply <= 0 {
		cfg.MaxReply = scpi.DefaultMaxReply
	}
	sw := &Switch{cfg: cfg, turn: link.NewTurn(), life: link.NewLife(), unmonitored: map[ocs.Port]bool{}}
	sw.turn <- struct{}{}
	defer sw.turn.Pass()
	if err := sw.connect(ctx); err != nil {
		sw.life.End()
		return nil, err
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

// connect opens a session and empties the error queue. Called with the turn.
func (sw *Switch) connect(ctx context.Context) error {
	const op = "connect"
	if sw.s != nil {
		sw.s.end()
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
		return sw.fail(op, "", "", err)
	}
	s := newSession(conn, sw)
	sw.open.Store(s)
	if sw.life.Err() != nil { // Close may not have seen this session
		s.end()
		return sw.fail(op, "", "", link.ErrClosed)
	}
	if _, err := s.drain(ctx, request{op: op, begin: true}); err != nil {
		s.end()
		return err
	}
	sw.s = s
	return nil
}

// do carries out a request, on a new session when that is needed and safe.
func (sw *Switch) do(ctx context.Context, r request) (answer, error) {
	if err := sw.take(ctx, r.op); err != nil {
		return answer{}, err
	}
	defer sw.turn.Pass()
	return sw.perform(ctx, r)
}

// perform is do for who has the turn.
func (sw *Switch) perform(ctx context.Context, r request) (answer, error) {
	fresh, err := sw.ready(ctx, r)
	if err != nil {
		return answer{}, err
	}
	a, err := sw.s.exchange(ctx, r)
	switch {
	case err == nil || a.begun && r.changes(): // it may have taken effect
		return a, err
	case !sw.s.dead && a.doubtful():
	case fresh || !sw.again(ctx, err):
		return a, err
	default:
		if again := sw.connect(ctx); again != nil {
			return a, fmt.Errorf("%w; then %w", err, again)
		}
	}
	return sw.s.exchange(ctx, r)
}

// quiet is for how long the error queue is taken to stay as it was seen, empty,
// and the session to be alive.
const quiet = 100 * time.Millisecond

// ready makes sure that there is a session, and that the errors after a change
// will be those of the change. It reports whether the session is a new one.
func (sw *Switch) ready(ctx context.Context, r request) (fresh bool, err error) {
	if sw.s == nil {
		return true, sw.connect(ctx)
	}
	sw.s.forget()
	if !sw.s.dead && r.changes() && time.Since(sw.s.empty) > quiet {
		if _, err := sw.s.drain(ctx, request{op: r.op}); !sw.again(ctx, err) {
			return false, err
		}
	}
	if !sw.s.dead {
		return false, nil
	}
	return true, sw.connect(ctx)
}

// again reports whether a read that gave err, perhaps nil, can be tried on a new
// session.
func (sw *Switch) again(ctx context.Context, err error) bool {
	return sw.s.dead && sw.life.Gone(ctx) == nil && !errors.Is(err, context.DeadlineExceeded)
}

// Close ends the session. Calls under way return an error that matches
// [net.ErrClosed].
func (sw *Switch) Close() error {
	sw.life.End()
	if s := sw.open.Load(); s != nil {
		s.conn.Close()
	}
	return nil
}
