package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// DefaultTimeout is that of [Config].
const DefaultTimeout = time.Second

// Config is what a Switch is opened with. Only Bus is required.
type Config struct {
	Bus    Bus
	Device string // name for messages; default that of the Bus

	// Timeout is how long a switch, or the start of a module, may take as seen from here,
	// 0 means DefaultTimeout. How long the Bus waits for replies is its own business.
	Timeout time.Duration
	// Settle is how long a module waits for its taps to settle before it gives up a
	// switch, 1 µs to 65535 µs; 0 leaves what the module has.
	Settle time.Duration
	// PreEmphasis switches the overdrive of heaters on or off; nil leaves what the module
	// has.
	PreEmphasis *bool
}

// Switch is a bundle of transceivers as one switch. It implements [ocs.Switch],
// [ocs.PowerMeter] without the settings of monitors, and [ocs.Restarter]. The settings of
// Config are written when it is opened, and again to a module that has lost them.
type Switch struct {
	cfg Config
	geo ocs.Geometry
	id  ocs.Identity
	in  []plugged // by slot

	turn link.Turn // who has it may change something
	life link.Life // ends with Close
}

var (
	_ ocs.Switch     = (*Switch)(nil)
	_ ocs.PowerMeter = (*Switch)(nil)
	_ ocs.Restarter  = (*Switch)(nil)
)

// Open finds out what is plugged in, and waits up to Config.Timeout for modules that are
// starting. Modules in fault or without calibration do not fail it, nor do empty slots:
// they are dark, and their circuits are refused with the reason. A module that is no
// OCSTrx, or of a register map that is not known, does. The Bus belongs to Open from then
// on, which closes it when it fails. Errors are *[ocs.OpError].
func Open(ctx context.Context, cfg Config) (*Switch, error) {
	if cfg.Bus == nil {
		return nil, errors.New("ocstrx: no Bus")
	}
	if cfg.Device == "" {
		cfg.Device = cfg.Bus.String()
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	sw := &Switch{
		cfg: cfg, geo: ocs.Transceivers(cfg.Bus.Slots(), ocst.Lanes),
		turn: link.NewTurn(), life: link.NewLife(),
	}
	if err := sw.begin(ctx); err != nil {
		sw.Close()
		return nil, err
	}
	return sw, nil
}

const opConnect = "connect"

func (sw *Switch) begin(ctx context.Context) error {
	if s := sw.cfg.Settle; s != 0 && (s < time.Microsecond || s > maxSettle) {
		return sw.fail(opConnect, fmt.Errorf("a settle timeout of %v: want 1µs to %v", s, maxSettle))
	}
	if err := sw.discover(ctx); err != nil {
		return err
	}
	now, _, err := sw.settled(ctx, opConnect, sw.present())
	if err != nil {
		return err
	}
	return sw.configure(ctx, opConnect, now)
}

// maxSettle is the most that the register holds.
const maxSettle = (1<<16 - 1) * time.Microsecond

// Bus returns what the modules are plugged into. It stays with the Switch.
func (sw *Switch) Bus() Bus { return sw.cfg.Bus }

// Identify returns what was read when the Switch was opened.
func (sw *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	if err := sw.life.Gone(ctx); err != nil {
		return ocs.Identity{}, sw.fail("identify", err)
	}
	return sw.id, nil
}

// Close closes the Bus. Calls under way return an error that matches [net.ErrClosed].
// Modules that are armed just then disarm themselves after [ocst.ArmTimeout].
func (sw *Switch) Close() error {
	sw.life.End()
	return sw.cfg.Bus.Close()
}

// take waits for the turn to change something.
func (sw *Switch) take(ctx context.Context, op string) error {
	if err := sw.life.Take(ctx, sw.turn); err != nil {
		return sw.fail(op, err)
	}
	return nil
}

// do has the bus do requests.
func (sw *Switch) do(ctx context.Context, op string, requests ...Request) (ocs.Receipt, error) {
	r, err := sw.cfg.Bus.Do(ctx, requests...)
	if err != nil {
		if of := (*RequestError)(nil); errors.As(err, &of) {
			err = &failed{of}
		}
		err = sw.fail(op, err)
	}
	return r, err
}

// fail makes the error for an operation. Of an error of the bus it keeps what was sent
// and what came back.
func (sw *Switch) fail(op string, err error) error {
	e := &ocs.OpError{Op: op, Device: sw.cfg.Device, Err: err}
	if of := (*ocs.OpError)(nil); errors.As(err, &of) {
		e.Request, e.Reply = of.Request, of.Reply
	}
	if sw.life.Err() != nil && !errors.Is(err, link.ErrClosed) {
		e.Err = link.ErrClosed
	}
	return e
}

// failed is a request that failed, in words that do not name the device twice.
type failed struct{ *RequestError }

func (e *failed) Error() string {
	s := fmt.Sprintf("%v: %v", e.Request, cause(e.Err))
	if e.Unsure {
		s += "; what was sent may have been done or not"
	}
	return s
}

func (e *failed) Unwrap() error { return e.RequestError }

// pause waits a moment between two looks at a module.
func (sw *Switch) pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-sw.life.Done():
	}
	return sw.life.Gone(ctx)
}

// moduleName is how people call the module of a slot.
func moduleName(slot int) string { return fmt.Sprintf("module %d", slot+1) }

// moduleNames is that of several: "modules 1, 2 and 5".
func moduleNames(slots []int) string {
	if len(slots) == 1 {
		return moduleName(slots[0])
	}
	var names []string
	for _, slot := range slots {
		names = append(names, fmt.Sprint(slot+1))
	}
	last := len(names) - 1
	return "modules " + strings.Join(names[:last], ", ") + " and " + names[last]
}
