package ocstrx_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/conformance"
	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	emulated "github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
)

// emulatedModules returns modules that are ready, and their clock.
func emulatedModules(n int) ([]*emulated.Module, *emulated.VirtualClock) {
	clock := new(emulated.VirtualClock)
	var modules []*emulated.Module
	for i := range n {
		modules = append(modules, emulated.NewModule(emulated.DefaultParams(), emulated.Options{
			Name: fmt.Sprintf("module %d", i+1), Serial: fmt.Sprintf("SN%d", i+1), Seed: uint64(i + 1), Clock: clock,
		}))
	}
	clock.Advance(20 * time.Millisecond)
	return modules, clock
}

// busTime is what an access takes.
const busTime = 20 * time.Microsecond

// moduleFile is the memory of an emulated module as the file of the kernel's driver optoe3
// that knows two banks, 240 pages apart.
type moduleFile struct {
	*emulated.Module
	clock *emulated.VirtualClock
}

const fileBanks = 3

func (f moduleFile) address(off int64) (cmis.Address, error) {
	const pages = 256 + 240*(fileBanks-1)
	page := int(off)/128 - 1
	switch {
	case off < 128:
		return cmis.Address{Offset: uint8(off)}, nil
	case page >= pages:
		return cmis.Address{}, io.EOF
	case page >= 256:
		return cmis.Address{Bank: uint8(1 + (page-256)/240), Page: uint8(16 + (page-256)%240), Offset: uint8(128 + off%128)}, nil
	}
	return cmis.Address{Page: uint8(page), Offset: uint8(128 + off%128)}, nil
}

func (f moduleFile) ReadAt(p []byte, off int64) (int, error) {
	f.clock.Advance(busTime)
	a, err := f.address(off)
	if err == nil {
		err = f.Module.Read(context.Background(), a, p)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f moduleFile) WriteAt(p []byte, off int64) (int, error) {
	f.clock.Advance(busTime)
	a, err := f.address(off)
	if err == nil {
		err = f.Module.Write(context.Background(), a, p)
	}
	if err != nil {
		return 0, syscall.EIO
	}
	return len(p), nil
}

func (moduleFile) Close() error { return nil }

// i2cBus is emulated modules on an I2C bus from 50h on, which now and then do not answer.
// Bank and page are those of OIF-CMIS-05.2, section 8.2.13.
type i2cBus struct {
	modules []*emulated.Module
	clock   *emulated.VirtualClock

	mu       sync.Mutex // guards what follows
	selected [8][2]uint8
	n        int
}

func (b *i2cBus) transfer(addr uint16, w, r []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock.Advance(busTime)
	if b.n++; b.n%13 == 0 {
		return ocstrx.Nack(syscall.ENXIO)
	}
	m, selected := b.modules[addr-0x50], &b.selected[addr-0x50]
	a := cmis.Address{Offset: w[0]}
	if a.Offset >= 128 {
		a.Bank, a.Page = selected[0], selected[1]
	}
	switch {
	case a.Offset == 126 && len(w) == 3:
		*selected = [2]uint8(w[1:])
		return nil
	case a.Offset == 126:
		copy(r, selected[:])
		return nil
	case len(r) > 0:
		return m.Read(context.Background(), a, r)
	}
	if a.Offset == cmis.RegGlobalControl && w[1]&byte(cmis.SoftwareReset) != 0 {
		*selected = [2]uint8{}
	}
	return m.Write(context.Background(), a, w[1:])
}

// registerBuses are the ways to two emulated modules without a board.
func registerBuses(t *testing.T) map[string]struct {
	modules []*emulated.Module
	clock   *emulated.VirtualClock
	open    func() ocstrx.Bus
} {
	dir := t.TempDir()
	for name, text := range map[string]string{"bank_size": fmt.Sprint(fileBanks), "write_max": "128"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	buses := map[string]struct {
		modules []*emulated.Module
		clock   *emulated.VirtualClock
		open    func() ocstrx.Bus
	}{}
	for _, name := range []string{"files", "i2c"} {
		modules, clock := emulatedModules(2)
		bus := &i2cBus{modules: modules, clock: clock}
		open := func() ocstrx.Bus { return ocstrx.I2CBus(bus.transfer, 0x50, 0x51) }
		if name == "files" {
			open = func() ocstrx.Bus {
				return ocstrx.EEPROMBus(dir, moduleFile{modules[0], clock}, moduleFile{modules[1], clock})
			}
		}
		b := buses[name]
		b.modules, b.clock, b.open = modules, clock, open
		buses[name] = b
	}
	return buses
}

// TestRegisterConformance runs the suite of all drivers on two modules that are reached by
// their registers alone.
func TestRegisterConformance(t *testing.T) {
	t.Parallel()
	for name, bus := range registerBuses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := conformance.Run(t.Context(), conformance.Config{
				Open: func(ctx context.Context) (ocs.Switch, error) {
					return ocstrx.Open(ctx, ocstrx.Config{Bus: bus.open()})
				},
				Settle: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			passed := 0
			for _, c := range r.Checks {
				switch c.Result {
				case conformance.Fail:
					t.Errorf("%s: %s", c.Name, c.Reason)
				case conformance.Pass:
					passed++
				}
			}
			if passed < 20 {
				t.Errorf("only %d checks passed", passed)
			}
		})
	}
}

// TestRegisterSwitch: modules that are reached by their registers alone switch as a bundle,
// one after another, and again after one of them has lost its supply.
func TestRegisterSwitch(t *testing.T) {
	t.Parallel()
	for name, bus := range registerBuses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sw, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: bus.open()})
			if err != nil {
				t.Fatal(err)
			}
			defer sw.Close()
			holds := func(want string) {
				t.Helper()
				drivertest.Holds(t, sw, want)
				for i, m := range bus.modules {
					if m.Armed() {
						t.Errorf("module %d is left armed", i+1)
					}
				}
			}
			for _, c := range []struct {
				change, after string
				requests      int // arm and trigger of each path and module, and a loop that is staged
				parts         int
			}{
				{"+1>17 +9>41", "1>17,9>41", 4, 2},
				{"+2>34", "1>17,2>34,9>41", 1, 1},
				{"-1>17 +1>56 +10>42 +16>32", "1>56,2>34,9>41,10>42,16>32", 6, 2},
				{"-1>56 -2>34 -9>41 -10>42 -16>32", "", 4, 2},
			} {
				r, err := sw.Apply(t.Context(), change(t, c.change))
				if err != nil || r.Requests != c.requests || len(r.Parts) != c.parts {
					t.Errorf("%s: %d requests, parts %v, %v", c.change, r.Requests, r.Parts, err)
				}
				holds(c.after)
			}
			if logs, err := sw.Log(t.Context()); err != nil || len(logs[0]) != 4 || len(logs[1]) != 3 {
				t.Errorf("logs %v, %v", logs, err)
			}
			bus.modules[1].BrownOut()
			bus.clock.Advance(20 * time.Millisecond)
			if _, err := sw.Apply(t.Context(), change(t, "+1>17 +9>25")); err != nil {
				t.Error(err)
			}
			holds("1>17,9>25")
		})
	}
}

// TestRestartClearsFault: a module that was too hot stays dark when it has cooled down, and
// carries light again after a restart; over the link and over registers.
func TestRestartClearsFault(t *testing.T) {
	t.Parallel()
	try := func(t *testing.T, sw *ocstrx.Switch, m *emulated.Module, clock *emulated.VirtualClock) {
		defer sw.Close()
		want := drivertest.Map(t, "1>17,9>41")
		if _, err := sw.Apply(t.Context(), ocs.Change{Add: want}); err != nil {
			t.Fatal(err)
		}
		again := change(t, "-9>41 +9>25")
		ambient := func(celsius float64) {
			m.SetAmbient(celsius)
			clock.Advance(10 * time.Minute)
		}
		ambient(90)
		if _, err := sw.Apply(t.Context(), again); !errors.Is(err, ocs.ErrDenied) || !strings.Contains(err.Error(), "module 2 is dark, in fault: over-temperature; restart") {
			t.Errorf("hot: got %v", err)
		}
		if err := sw.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "over-temperature") {
			t.Errorf("a restart of a module that is hot: got %v", err)
		}
		ambient(25)
		if _, err := sw.Apply(t.Context(), change(t, "+9>25")); !errors.Is(err, ocs.ErrDenied) {
			t.Errorf("cool: got %v", err)
		}
		if err := sw.Restart(t.Context()); err != nil {
			t.Errorf("restart: %v", err)
		}
		if have, err := sw.CrossConnects(t.Context()); err != nil || have.Len() != 0 {
			t.Errorf("after the restart it holds %v, %v", have, err)
		}
		if _, err := sw.Apply(t.Context(), ocs.Change{Add: want}); err != nil {
			t.Error(err)
		}
		if p, err := sw.Power(t.Context(), 17, 41); err != nil || p.Ports[17] < -10 || p.Ports[41] < -10 {
			t.Errorf("power %v, %v", p.Ports, err)
		}
	}
	for name, bus := range registerBuses(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := &around{Bus: bus.open(), after: func(ocstrx.Op) { bus.clock.Advance(time.Millisecond) }}
			sw, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: slow})
			if err != nil {
				t.Fatal(err)
			}
			try(t, sw, bus.modules[1], bus.clock)
		})
	}
	t.Run("link", func(t *testing.T) {
		t.Parallel()
		rig := newRig(t, eight, 2, time.Millisecond)
		try(t, rig.mustOpen(nil), rig.Modules()[1], rig.clock)
	})
}
