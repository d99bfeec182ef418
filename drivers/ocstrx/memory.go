package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// module is the memory of one module as this machine reaches it. Close leaves it on page 0.
type module interface {
	cmis.Memory
	io.Closer
}

// doubtful is a write of which nobody knows whether it was done.
type doubtful struct{ error }

func (e doubtful) Unwrap() error { return e.error }

// memoryBus is a [Bus] of modules whose registers are read and written without a controller
// in between. There is no trigger line. The way has no check sums, so what a module keeps as
// it was written is read back: see held.
type memoryBus struct {
	address string
	modules []module
	shared  io.Closer // closed after the modules; may be nil

	turn link.Turn
	life link.Life
	once sync.Once
	err  error // of closing
}

var _ Bus = (*memoryBus)(nil)

func newMemoryBus(address string, shared io.Closer, modules []module) *memoryBus {
	return &memoryBus{address: address, modules: modules, shared: shared, turn: link.NewTurn(), life: link.NewLife()}
}

func (b *memoryBus) Slots() int       { return len(b.modules) }
func (b *memoryBus) HasTrigger() bool { return false }
func (b *memoryBus) String() string   { return b.address }

// Close waits for the access that is under way, some milliseconds at most.
func (b *memoryBus) Close() error {
	b.life.End()
	b.once.Do(func() {
		b.turn <- struct{}{}
		defer b.turn.Pass()
		for _, m := range b.modules {
			b.err = errors.Join(b.err, m.Close())
		}
		if b.shared != nil {
			b.err = errors.Join(b.err, b.shared.Close())
		}
	})
	return b.err
}

// Do implements [Bus], one request after the other. An error that matches ocs.ErrVerify is a
// write that was done, and left something else in the module.
func (b *memoryBus) Do(ctx context.Context, requests ...Request) (r ocs.Receipt, err error) {
	if err := checkAll(b, b.address, requests); err != nil || len(requests) == 0 {
		return ocs.Receipt{}, err
	}
	fail := func(i int, asked string, err error) error {
		q := requests[i]
		return &RequestError{Index: i, Request: q, Unsure: errors.As(err, new(doubtful)),
			Err: &ocs.OpError{Op: q.String(), Device: b.address, Request: asked, Err: err}}
	}
	if err := b.life.Take(ctx, b.turn); err != nil {
		return ocs.Receipt{}, fail(0, "", err)
	}
	defer b.turn.Pass()
	for i, q := range requests {
		if err := b.life.Gone(ctx); err != nil {
			return r, fail(i, "", err)
		}
		m := b.modules[q.Slot]
		r.Requests++
		r.SendStart, r.FirstByte, r.Acked = time.Now(), time.Time{}, time.Time{}
		if i == 0 {
			r.Begun = r.SendStart
		}
		if q.Op == OpRead {
			err = m.Read(ctx, q.At, q.Data)
		} else {
			err = m.Write(ctx, q.At, q.Data)
		}
		if r.Sent = time.Now(); err == nil {
			r.FirstByte, r.Acked = r.Sent, r.Sent
			if q.Op == OpWrite {
				err = verify(ctx, m, q.At, q.Data)
			}
		}
		if err != nil {
			return r, fail(i, q.text(), err)
		}
	}
	return r, nil
}

// text is the request as it would be on a wire.
func (r Request) text() string {
	if r.Op == OpRead {
		return fmt.Sprintf("read %v, %d bytes", r.At, len(r.Data))
	}
	return fmt.Sprintf("write %v: % x", r.At, r.Data)
}

// held are the registers that read back as they were written, in those bits. The others
// are not read back: commands (commit, CDB, reset) are told by results of their own, flags
// would be cleared, passwords read as nothing, and page B7h reads as the table in use.
var held = []struct{ page, first, last, mask uint8 }{
	{0, cmis.RegModuleMasks, cmis.RegModuleMasks + 5, 0xff},
	{ocst.PageControl, ocst.RegStaged, ocst.RegMask, 0xff},
	{ocst.PageControl, ocst.RegTimeout, ocst.RegTimeout + 1, 0xff},
	{ocst.PageControl, ocst.RegFlagMask, ocst.RegFlagMask, 0xff},
	{ocst.PageControl, ocst.RegLoop, ocst.RegLoop + ocst.Lanes - 1, 0x0f},
	{ocst.PageControl, ocst.RegControl, ocst.RegControl, 0xff},
	{ocst.PageHeaters, ocst.RegCodes, ocst.RegLaser, 0xff},
	{ocst.PageTrim, 128, 128 + 2*ocst.Elements - 1, 0xff},
	{ocst.PageScope, 128, 128, 0xff},
}

// covers reports whether n bytes at a take in a register.
func covers(a cmis.Address, n int, page, register uint8) bool {
	return a.Page == page && a.Offset <= register && int(register) < int(a.Offset)+n
}

// once reports whether to write n bytes at a is a command, so that it must not be repeated
// when nobody knows whether it was done. RegGlobalControl resets modules.
func once(a cmis.Address, n int) bool {
	return covers(a, n, ocst.PageControl, ocst.RegCommit) || a.Page == cmis.CDBPage || covers(a, n, 0, cmis.RegGlobalControl)
}

// verify reads back what was written, as far as it is held.
func verify(ctx context.Context, m module, a cmis.Address, data []byte) error {
	if once(a, len(data)) {
		return nil
	}
	for _, h := range held {
		first, last := max(int(h.first), int(a.Offset)), min(int(h.last), int(a.Offset)+len(data)-1)
		if h.page != a.Page || first > last {
			continue
		}
		at := cmis.Address{Page: a.Page, Bank: a.Bank, Offset: uint8(first)}
		want, got := data[first-int(a.Offset):last+1-int(a.Offset)], make([]byte, last+1-first)
		if err := m.Read(ctx, at, got); err != nil {
			return doubtful{fmt.Errorf("cannot read back what was written: %w", err)}
		}
		for i := range got {
			if (got[i]^want[i])&h.mask != 0 {
				return fmt.Errorf("%v reads % x after % x was written: %w", at, got, want, ocs.ErrVerify)
			}
		}
	}
	return nil
}
