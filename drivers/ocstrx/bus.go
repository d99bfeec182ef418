package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"math/bits"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Op is what a [Request] asks for.
type Op uint8

const (
	OpRead    Op = iota // fill Data from At
	OpWrite             // write Data at At, in one transaction of the module
	OpTrigger           // pull the trigger line of all slots of Mask at once
)

// Request is one thing to do on a [Bus].
type Request struct {
	Op   Op
	Slot int          // from 0; not of OpTrigger
	At   cmis.Address // with the length of Data it passes [cmis.Address.Check]
	Data []byte       // OpRead: filled; OpWrite: written. Only used until Do returns.
	Mask uint16       // OpTrigger: bit 0 is slot 0
}

// String is the request for messages: "read B0h:134 of module 3".
func (r Request) String() string {
	switch r.Op {
	case OpRead:
		return fmt.Sprintf("read %v of module %d", r.At, r.Slot+1)
	case OpWrite:
		return fmt.Sprintf("write %v of module %d", r.At, r.Slot+1)
	case OpTrigger:
		return fmt.Sprintf("trigger %d modules", bits.OnesCount16(r.Mask))
	}
	return fmt.Sprintf("request of kind %d", r.Op)
}

// Bus is what modules are plugged into. It is safe for concurrent use; calls are served
// one after another.
type Bus interface {
	// Do does requests in order and stops at the first that fails, with an error that
	// holds a *[RequestError]. A request sees what those before it did to the same module;
	// those for different modules may be under way at once, so when one has failed, some
	// that are behind it and for other modules may have been done. A trigger waits for all
	// before it.
	//
	// The Receipt counts requests of all kinds that were sent. Begun is when the first
	// began to be sent, SendStart and Sent are of the last. When that had to be sent
	// again, the first and the last time are included, as either may have been the one
	// that took effect. FirstByte and Acked are of the reply to the last.
	Do(ctx context.Context, requests ...Request) (ocs.Receipt, error)
	// Slots returns the number of modules that can be there.
	Slots() int
	// HasTrigger reports whether OpTrigger can be done.
	HasTrigger() bool
	// String is the address for messages.
	String() string
	// Close ends Do with an error that matches net.ErrClosed, and may be called more than
	// once.
	Close() error
}

// RequestError is a request that failed.
type RequestError struct {
	Index   int // in what Do was given
	Request Request
	// Unsure is that something that changes a module was sent, this request or one behind
	// it, and that nobody knows whether it was done.
	Unsure bool
	Err    error // an *[ocs.OpError]
}

// Error is that of Err, and whether something may have been done.
func (e *RequestError) Error() string {
	if e.Unsure {
		return e.Err.Error() + "; what was sent may have been done or not"
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *RequestError) Unwrap() error { return e.Err }

// NotArmedError is a trigger that was not pulled as a module was not armed. It matches
// [ocs.ErrDenied].
type NotArmedError struct {
	Slot int // from 0
}

// Error returns one sentence; people count modules from 1.
func (e *NotArmedError) Error() string {
	return fmt.Sprintf("module %d is not armed, so none was triggered", e.Slot+1)
}

// Is reports whether target is ocs.ErrDenied.
func (e *NotArmedError) Is(target error) bool { return target == ocs.ErrDenied }

// MemoryOf returns one module of a bus, slot from 0, as calibration wants it. It is a
// [cmis.BatchReader].
func MemoryOf(b Bus, slot int) cmis.Memory { return memoryOf{b, slot} }

type memoryOf struct {
	bus  Bus
	slot int
}

// Read implements [cmis.Memory].
func (m memoryOf) Read(ctx context.Context, a cmis.Address, buf []byte) error {
	_, err := m.bus.Do(ctx, Request{Op: OpRead, Slot: m.slot, At: a, Data: buf})
	return err
}

// Write implements [cmis.Memory].
func (m memoryOf) Write(ctx context.Context, a cmis.Address, data []byte) error {
	_, err := m.bus.Do(ctx, Request{Op: OpWrite, Slot: m.slot, At: a, Data: data})
	return err
}

// ReadEach implements [cmis.BatchReader].
func (m memoryOf) ReadEach(ctx context.Context, reads []cmis.ReadRequest) error {
	requests := make([]Request, len(reads))
	for i, r := range reads {
		requests[i] = Request{Op: OpRead, Slot: m.slot, At: r.At, Data: r.Data}
	}
	_, err := m.bus.Do(ctx, requests...)
	return err
}

// errNoTrigger is OpTrigger where there is no trigger line.
var errNoTrigger = fmt.Errorf("there is no trigger line, so send commit %02Xh to each module: %w", byte(ocst.CommitTrigger), ocs.ErrNotSupported)

// check returns why a request makes no sense on b.
func (r Request) check(b Bus) error {
	slots := b.Slots()
	switch r.Op {
	case OpRead, OpWrite:
		if r.Slot < 0 || r.Slot >= slots {
			return fmt.Errorf("there is no module %d, only 1 to %d: %w", r.Slot+1, slots, ocs.ErrDenied)
		}
		return r.At.Check(len(r.Data))
	case OpTrigger:
		if !b.HasTrigger() {
			return errNoTrigger
		}
		if r.Mask == 0 || bits.Len16(r.Mask) > slots {
			return fmt.Errorf("trigger of mask %04Xh: modules are 1 to %d, and one at least must be named: %w", r.Mask, slots, ocs.ErrDenied)
		}
		return nil
	}
	return errors.New("a request is neither a read, a write nor a trigger")
}

// checkAll returns the error of the first request that makes no sense. Nothing is sent then.
func checkAll(b Bus, device string, requests []Request) error {
	for i, r := range requests {
		if err := r.check(b); err != nil {
			return &RequestError{Index: i, Request: r, Err: &ocs.OpError{Op: r.String(), Device: device, Err: err}}
		}
	}
	return nil
}

// writes reports whether the request changes something.
func (r Request) writes() bool { return r.Op != OpRead }
