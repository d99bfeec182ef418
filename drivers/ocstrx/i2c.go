package ocstrx

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
)

// DefaultI2CAddress is that of all modules, seven bits (OIF-CMIS-05.2, section 5.2).
const DefaultI2CAddress = 0x50

// OpenI2C returns a bus of the modules at addrs, seven bits each, of an I2C adapter of this
// machine, "/dev/i2c-1"; none stands for [DefaultI2CAddress]. Linux only; elsewhere the
// error matches ocs.ErrNotSupported. There is no trigger line.
//
// Bank and page are selected when they change, and page 0 on Close. After an access to an
// upper page it is looked whether that still is selected: a module that was reset meanwhile
// is at page 0. A module that does not answer, as it may while it is busy, is asked again
// for up to 5 ms. A driver of the kernel that has the module makes OpenI2C fail; other
// programs are not kept away.
func OpenI2C(path string, addrs ...uint16) (Bus, error) {
	if len(addrs) == 0 {
		addrs = []uint16{DefaultI2CAddress}
	}
	fail := func(err error) (Bus, error) { return nil, &ocs.OpError{Op: "open", Device: path, Err: err} }
	for i, addr := range addrs {
		if addr < 0x08 || addr > 0x77 || slices.Contains(addrs[:i], addr) {
			return fail(fmt.Errorf("I2C address %02Xh: want different ones of 08h to 77h", addr))
		}
	}
	adapter, err := openAdapter(path)
	if err != nil {
		return fail(err)
	}
	modules := make([]module, len(addrs))
	for i, addr := range addrs {
		if err := adapter.claim(addr); err != nil {
			adapter.Close()
			return fail(fmt.Errorf("module %d: %w", i+1, err))
		}
		modules[i] = &i2cModule{adapter: adapter, addr: addr}
	}
	return newMemoryBus(path, adapter, modules), nil
}

// adapter is an I2C bus of this machine.
type adapter interface {
	// claim returns an error unless the device at addr can be used.
	claim(addr uint16) error
	// transfer writes w to the device at addr, and reads r, if that is not empty, after a
	// repeated start. An error that is worth another try is a nack.
	transfer(addr uint16, w, r []byte) error
	io.Closer
}

// nack is a device that did not answer.
type nack struct {
	error
	reached bool // perhaps: it may have done what it was told
}

func (e nack) Unwrap() error { return e.error }

const (
	nackTime  = 5 * time.Millisecond   // that a module may not answer
	nackTries = 4                      // that it is given in any case: a busy host may need all of nackTime for one
	nackPause = 200 * time.Microsecond // between two tries
	regSelect = 126                    // bank, then page
)

// i2cModule is a module on an I2C bus.
type i2cModule struct {
	adapter adapter
	addr    uint16
	used    bool     // an upper page was selected
	known   bool     // current is what the module has
	current [2]uint8 // bank, page
}

// Read implements [cmis.Memory].
func (m *i2cModule) Read(ctx context.Context, a cmis.Address, buf []byte) error {
	for try := 0; ; try++ {
		if err := m.selectPage(ctx, a); err != nil {
			return err
		}
		if err := m.transfer(ctx, true, []byte{a.Offset}, buf); err != nil {
			return err
		}
		if moved, err := m.moved(ctx, a); err != nil || !moved {
			return err
		}
		if try == 1 {
			return errMoved
		}
	}
}

// errMoved is a module that does not stay where it is told to.
var errMoved = errors.New("the module leaves the selected page: it is being reset, or another program uses it")

// Write implements [cmis.Memory].
func (m *i2cModule) Write(ctx context.Context, a cmis.Address, data []byte) error {
	if err := m.selectPage(ctx, a); err != nil {
		return err
	}
	if err := m.transfer(ctx, !once(a, len(data)), append([]byte{a.Offset}, data...), nil); err != nil {
		return err
	}
	if covers(a, len(data), 0, cmis.RegGlobalControl) {
		m.known = false // it may be reset
		return nil
	}
	moved, err := m.moved(ctx, a)
	if err == nil && moved {
		err = errMoved
	}
	if err != nil {
		return doubtful{err}
	}
	return nil
}

// selectPage selects bank and page of a, if it has any and they are not selected.
func (m *i2cModule) selectPage(ctx context.Context, a cmis.Address) error {
	want := [2]uint8{a.Bank, a.Page}
	if a.Offset < pageSize || m.known && m.current == want {
		return nil
	}
	m.used = true
	// Both in one write: a module looks at the bank when the page comes (OIF-CMIS-05.2,
	// section 8.2.13).
	if err := m.transfer(ctx, true, []byte{regSelect, a.Bank, a.Page}, nil); err != nil {
		return err
	}
	m.current, m.known = want, true
	return nil
}

// moved reports whether a is on a page that is not selected any more.
func (m *i2cModule) moved(ctx context.Context, a cmis.Address) (bool, error) {
	if a.Offset < pageSize {
		return false, nil
	}
	var got [2]uint8
	if err := m.transfer(ctx, true, []byte{regSelect}, got[:]); err != nil {
		return false, err
	}
	m.known = got == m.current
	return !m.known, nil
}

// transfer is that of the adapter, repeated while the module does not answer. What must not
// be done twice is repeated only when the module has not been reached.
func (m *i2cModule) transfer(ctx context.Context, repeat bool, w, r []byte) error {
	begun := time.Now()
	for try := 1; ; try++ {
		err := m.adapter.transfer(m.addr, w, r)
		if err == nil {
			return nil
		}
		m.known = false
		var n nack
		again := errors.As(err, &n)
		switch {
		case !again && len(r) > 0:
			return err
		case !again, n.reached && !repeat:
			return doubtful{err}
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case try >= nackTries && time.Since(begun) >= nackTime:
			return fmt.Errorf("the module at I2C address %02Xh does not answer: %w", m.addr, err)
		}
		time.Sleep(nackPause)
	}
}

// Close selects page 0, where other programs expect a module to be. One that is gone is not
// an error.
func (m *i2cModule) Close() error {
	if m.used && (!m.known || m.current != [2]uint8{}) {
		_ = m.transfer(context.Background(), true, []byte{regSelect, 0, 0}, nil)
	}
	return nil
}
