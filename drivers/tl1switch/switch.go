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

	// Timeout is how long one reply may take, 0 means DefaultTimeout. A
	// context that ends earlier counts, too.
	Timeout time.Duration
	// MaxPairs is the largest number of cross-connects in one ENT-PATCH; 0 is
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
// [ocs.Shutter], [ocs.Labeler], [ocs.Notifier] and [ocs.Restarter].
type Switch struct {
	cfg     Config
	hide    hider
	events  notify.Hub
	tracing sync.Mutex // held while Trace is called

	turn chan struct{} // holds one token; who has it may use what follows
	s    *session      // nil when not connected
	id   *ocs.Identity
	// refusesTakeover is learned: the device denies a busy port.
	refusesTakeover bool
	ctag            int
	out             []byte

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
	sw := &Switch{cfg: cfg, hide: newHider(cfg.Password.Reveal()), turn: make(chan struct{}, 1)}
	sw.life, sw.end = context.WithCancel(context.Background())
	sw.turn <- struct{}{}
	defer sw.pass()
	if err := sw.connect(ctx); err != nil {
		sw.end()
		return nil, err
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
	if errors.As(err, &refused) {
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
	_, err := s.exchange(ctx, r)
	if err == nil {
		s.told = want
	}
	return err
}

// do sends a request, with a new session or login when that is needed and safe.
func (sw *Switch) do(ctx context.Context, r request) (answer, error) {
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
// told its size, then no more. Not every device knows every question, but one
// that refuses all of them is an error.
func (sw *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	const op = "identify"
	if err := sw.take(ctx, op); err != nil {
		return ocs.Identity{}, err
	}
	defer sw.pass()
	if sw.id != nil {
		return *sw.id, nil
	}
	var said [3]string
	var refusals []error
	for i, r := range [...]request{
		{code: "RTRV-NETYPE"},
		{code: "RTRV-INV", aid: "OCS"},
		{code: "RTRV-EQPT", aid: "SYSTEM", blocks: []string{"", "PARAMETER=SIZE"}},
	} {
		r.op, r.again, r.read = op, true, true
		a, err := sw.perform(ctx, r)
		var refused *tl1.Error
		switch {
		case errors.As(err, &refused):
			refusals = append(refusals, err)
		case err != nil:
			return ocs.Identity{}, err
		}
		said[i] = strings.Join(a.msg.Text, "\n")
	}
	if len(refusals) == len(said) {
		return ocs.Identity{}, refusals[0]
	}
	var id ocs.Identity
	if f := strings.Split(said[0], ","); len(f) == 4 {
		id.Vendor, id.Model, id.Firmware = f[0], f[1], f[3]
	}
	id.Serial = keyword(said[1], "SN=")
	var err error
	if id.Geometry, err = ocs.ParseGeometry(keyword(said[2], "SYSTEM:SIZE=")); err != nil {
		id.Geometry = geometryOf(id.Model)
	}
	if id.Geometry.Known() {
		sw.id = &id
	}
	return id, nil
}

// keyword returns the word that follows key in text.
func keyword(text, key string) string {
	_, rest, _ := strings.Cut(text, key)
	if i := strings.IndexAny(rest, ", \"\r\n"); i >= 0 {
		rest = rest[:i]
	}
	return rest
}

// geometryOf reads the size out of a product code such as
// N-VST-192x192-LU1-DMHNV-801.
func geometryOf(product string) ocs.Geometry {
	for part := range strings.SplitSeq(product, "-") {
		if g, err := ocs.ParseGeometry(part); err == nil {
			return g
		}
	}
	return ocs.Geometry{}
}

// CrossConnects returns what the device holds.
func (sw *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	const op = "read cross-connects"
	a, err := sw.do(ctx, request{op: op, code: "RTRV-PATCH", again: true, read: true})
	if err != nil {
		return ocs.Map{}, err
	}
	ccs := make([]ocs.CrossConnect, 0, len(a.msg.Text))
	for _, line := range a.msg.Text {
		in, out, two := strings.Cut(line, ",")
		if out = strings.TrimSpace(out); two && (out == "" || out == "0") {
			continue // how a port without a cross-connect may be shown
		}
		i, err1 := parsePort(in)
		o, err2 := parsePort(out)
		if err1 != nil || err2 != nil {
			return ocs.Map{}, sw.garbled(op, a, line)
		}
		ccs = append(ccs, ocs.CrossConnect{Ingress: i, Egress: o})
	}
	m, err := ocs.NewMap(ccs...)
	if err != nil {
		// Not wrapped: nobody asked for anything that could be a conflict.
		return m, sw.fail(op, "", string(a.msg.Raw), fmt.Errorf("the device contradicts itself: %v", err))
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

// Apply sends at most one DLT-PATCH, for what is removed and not replaced, and
// then one ENT-PATCH (more with Config.MaxPairs). See [ocs.Switch].
func (sw *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	const op = "change circuits"
	var total ocs.Receipt
	if c.Empty() {
		return total, nil
	}
	if err := sw.take(ctx, op); err != nil {
		return total, err
	}
	defer sw.pass()
	send := func(code, aid string) error {
		a, err := sw.perform(ctx, request{op: op, code: code, aid: aid, again: true})
		if n := a.receipt.Requests; n > 0 {
			a.receipt.Requests += total.Requests
			total = a.receipt
		}
		return err
	}
	gone := c.Remove
	if !sw.refusesTakeover {
		gone = unreplaced(c)
	}
	if gone.Len() > 0 {
		if err := send("DLT-PATCH", ingresses(gone)); err != nil {
			return total, err
		}
	}
	add := c.Add.Slice()
	size := len(add)
	if sw.cfg.MaxPairs > 0 {
		size = sw.cfg.MaxPairs
	}
	for len(add) > 0 {
		pairs := add[:min(size, len(add))]
		err := send("ENT-PATCH", pairList(pairs))
		if errors.Is(err, ocs.ErrConflict) && gone.Len() < c.Remove.Len() {
			if err := send("DLT-PATCH", ingresses(c.Remove.Minus(gone))); err != nil {
				return total, err
			}
			gone = c.Remove
			if err = send("ENT-PATCH", pairList(pairs)); err == nil {
				sw.refusesTakeover = true
			}
		}
		if err != nil {
			return total, err
		}
		add = add[len(pairs):]
	}
	return total, nil
}

// unreplaced returns what of c.Remove does not go by itself when c.Add takes
// over its ports. On single-sided devices a port may take the other role.
func unreplaced(c ocs.Change) ocs.Map {
	var top ocs.Port
	for a := range c.Add.All() {
		top = max(top, a.Ingress, a.Egress)
	}
	taken := make([]bool, top+1)
	for a := range c.Add.All() {
		taken[a.Ingress], taken[a.Egress] = true, true
	}
	goes := func(p ocs.Port) bool { return p <= top && taken[p] }
	var ccs []ocs.CrossConnect
	for r := range c.Remove.All() {
		if !goes(r.Ingress) && !goes(r.Egress) {
			ccs = append(ccs, r)
		}
	}
	return ocs.MustMap(ccs...) // a part of a Map
}

// ingresses is the AID of DLT-PATCH.
func ingresses(m ocs.Map) string {
	var aid []byte
	for i, c := range m.Slice() {
		aid = appendPort(aid, i, c.Ingress)
	}
	return string(aid)
}

// pairList is the AID of ENT-PATCH: two lists, paired by position.
func pairList(ccs []ocs.CrossConnect) string {
	aid := make([]byte, 0, 12*len(ccs)) // two ports of five digits
	for i, c := range ccs {
		aid = appendPort(aid, i, c.Ingress)
	}
	aid = append(aid, ',')
	for i, c := range ccs {
		aid = appendPort(aid, i, c.Egress)
	}
	return string(aid)
}

func appendPort(aid []byte, i int, p ocs.Port) []byte {
	if i > 0 {
		aid = append(aid, '&')
	}
	return strconv.AppendUint(aid, uint64(p), 10)
}
