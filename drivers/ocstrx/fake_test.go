package ocstrx_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// fakeBus is modules that do what a test wants, also what no module does. It writes down
// all that is asked of them.
type fakeBus struct {
	modules   []*fakeModule // nil is an empty slot
	noTrigger bool
	serial    string // of the board

	// before is called with each request; its error fails the request.
	before func(ocstrx.Request) error
	leaves bool // a request is not done when before has ended its context

	mu     sync.Mutex // guards log and the modules
	log    []string
	closed bool
}

func (b *fakeBus) Slots() int         { return len(b.modules) }
func (b *fakeBus) HasTrigger() bool   { return !b.noTrigger }
func (b *fakeBus) String() string     { return "fake" }
func (b *fakeBus) Info() trxlink.Info { return trxlink.Info{Serial: b.serial} }
func (b *fakeBus) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	return nil
}

func (b *fakeBus) Do(ctx context.Context, requests ...ocstrx.Request) (r ocs.Receipt, err error) {
	for i, q := range requests {
		now := time.Now()
		if i == 0 {
			r.Begun = now
		}
		if err = context.Cause(ctx); err == nil && b.before != nil {
			if err = b.before(q); err == nil && b.leaves {
				err = context.Cause(ctx)
			}
		}
		if err == nil {
			err = b.one(q)
		}
		if err != nil {
			return r, &ocstrx.RequestError{Index: i, Request: q, Err: &ocs.OpError{Op: q.String(), Device: "fake", Err: err}}
		}
		r.Requests, r.SendStart, r.Sent, r.FirstByte, r.Acked = r.Requests+1, now, now, now, time.Now()
	}
	return r, nil
}

func (b *fakeBus) one(q ocstrx.Request) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return net.ErrClosed
	}
	if q.Op == ocstrx.OpTrigger {
		b.log = append(b.log, fmt.Sprintf("trigger %04x", q.Mask))
		for slot, m := range b.modules {
			if q.Mask>>slot&1 != 0 && m.lanes.State != ocst.StateArmed {
				return &ocstrx.NotArmedError{Slot: slot}
			}
		}
		for slot, m := range b.modules {
			if q.Mask>>slot&1 != 0 {
				m.commit(ocst.CommitTrigger)
			}
		}
		return nil
	}
	m := b.modules[q.Slot]
	if q.Op == ocstrx.OpWrite {
		b.log = append(b.log, fmt.Sprintf("%d %v <- % x", q.Slot+1, q.At, q.Data))
	} else {
		b.log = append(b.log, fmt.Sprintf("%d %v+%d", q.Slot+1, q.At, len(q.Data)))
	}
	switch {
	case m == nil:
		return cmis.ErrNoModule
	case q.Op == ocstrx.OpRead:
		copy(q.Data, m.memory(q.At)[q.At.Offset:])
		if q.At == ocst.At(ocst.RegFlags) {
			m.flags = 0
		}
	default:
		m.write(q.At, q.Data)
	}
	return nil
}

// requests returns what was asked since the last call; writes only what changes something.
func (b *fakeBus) requests() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	log := b.log
	b.log = nil
	return log
}

func (b *fakeBus) writes() (list []string) {
	for _, s := range b.requests() {
		if strings.Contains(s, "<-") || strings.HasPrefix(s, "trigger") {
			list = append(list, s)
		}
	}
	return list
}

// fakeModule is one module: real register bytes, and no physics.
type fakeModule struct {
	magic         string
	version       byte
	serial        string
	status        ocst.Status
	lanes         ocst.LaneStatus
	flags         ocst.Flags
	out1, others  [ocst.Lanes]cmis.Power // others: all other photodiodes
	log           []ocst.LogEntry
	resets, looks int

	armed [ocst.Lanes]ocst.Path
	mask  uint8
	next  ocst.Permutation // latched at arm

	slow  int               // looks that a switch takes
	after func(*fakeModule) // what happens when it is over
	end   func(*fakeModule) // replaces the good end of a switch
	deny  ocst.Fault        // the result of the next commands, which are not done
}

func newFakeModule(serial string) *fakeModule {
	m := &fakeModule{magic: ocst.Magic, version: ocst.MapVersion, serial: serial}
	m.status.SettleTimeout = 200 * time.Microsecond
	m.lanes.FaultAt = 0xff
	m.lanes.Loop, m.lanes.Next = ocst.DefaultPermutation(), ocst.DefaultPermutation()
	m.state(ocst.StateReady)
	return m
}

func (m *fakeModule) state(s ocst.State) { m.status.State, m.lanes.State = s, s }

// fail darkens the module.
func (m *fakeModule) fail(f ocst.Fault, at uint8) {
	m.state(ocst.StateFault)
	m.lanes.Fault, m.lanes.FaultAt, m.status.Result = f, at, f
	m.lanes.Path = [ocst.Lanes]ocst.Path{}
}

func (m *fakeModule) memory(a cmis.Address) []byte {
	p := make([]byte, 256)
	switch {
	case a.Page == 0:
		p[0], p[cmis.RegFirmware], p[cmis.RegFirmware+1] = 0x18, 1, 4
		copy(p[cmis.RegTemperature:], cmis.EncodeTemperature(41.5))
		p[cmis.RegVcc], p[cmis.RegVcc+1] = 0x80, 0xe8                     // 3.3 V
		p[cmis.RegCustomMonitor], p[cmis.RegCustomMonitor+1] = 0x25, 0x1c // 9.5 W
		p[cmis.RegModuleFlags] = 0xff                                     // which nobody may read
		copy(p[129:], fmt.Sprintf("%-16s", "Example"))
		copy(p[148:], fmt.Sprintf("%-16s", "OCSTRX-8"))
		copy(p[166:], fmt.Sprintf("%-16s", m.serial))
	case a.Page == ocst.PageControl:
		copy(p[ocst.RegMagic:], m.magic)
		p[ocst.RegVersion] = m.version
		if a.Offset == ocst.RegState {
			m.look()
		}
		copy(p[ocst.RegState:], m.status.Encode())
		p[ocst.RegFlags] = byte(m.flags)
		copy(p[ocst.RegLanes:], m.lanes.Encode())
		for lane, w := range m.out1 {
			p[ocst.RegOut1+2*lane], p[ocst.RegOut1+2*lane+1] = byte(w>>8), byte(w)
		}
	case a.Page == ocst.PageMonitors:
		for array, at := range []int{ocst.RegOut2, ocst.RegLoopTap, ocst.RegRx1, ocst.RegRx2, ocst.RegRxLoop, ocst.RegLaunched} {
			for lane, w := range m.others {
				if w > 0 {
					w += cmis.Power(1000 * array)
				}
				p[at+2*lane], p[at+2*lane+1] = byte(w>>8), byte(w)
			}
		}
	case a.Page == ocst.PageLog && a.Bank < 2:
		copy(p[128:], ocst.EncodeLog(m.log)[a.Bank])
	}
	return p
}

// look lets time pass: a switch takes some looks.
func (m *fakeModule) look() {
	if m.looks--; m.looks == 0 && m.after != nil {
		f := m.after
		m.after = nil
		f(m)
	}
}

func (m *fakeModule) write(a cmis.Address, data []byte) {
	for i, v := range data {
		switch reg := int(a.Offset) + i; {
		case a.Page == 0 && reg == cmis.RegGlobalControl && v&byte(cmis.SoftwareReset) != 0:
			m.reset()
		case a.Page != ocst.PageControl:
		case reg == ocst.RegStaged:
			m.status.Staged = ocst.Path(v)
		case reg == ocst.RegMask:
			m.status.Mask = v
		case reg == ocst.RegCommit:
			m.commit(ocst.Commit(v))
		case reg == ocst.RegTimeout:
			m.status.SettleTimeout = m.status.SettleTimeout%(256*time.Microsecond) + time.Duration(v)*256*time.Microsecond
		case reg == ocst.RegTimeout+1:
			m.status.SettleTimeout += time.Duration(v)*time.Microsecond - m.status.SettleTimeout%(256*time.Microsecond)
		case reg == ocst.RegControl:
			m.lanes.Control = v
		case reg >= ocst.RegLoop && reg < ocst.RegLoop+ocst.Lanes:
			m.lanes.Next[reg-ocst.RegLoop] = v & 0xf
		}
	}
}

// reset is a restart, which takes a look or two.
func (m *fakeModule) reset() {
	serial, resets, end := m.serial, m.resets, m.end
	*m = *newFakeModule(serial)
	m.resets, m.end = resets+1, end
	m.state(ocst.StateWarmUp)
	m.looks = 3
	m.after = func(m *fakeModule) { m.state(ocst.StateReady) }
}

func (m *fakeModule) commit(c ocst.Commit) {
	if m.deny != ocst.NoFault {
		m.status.Result = m.deny
		return
	}
	switch state := m.lanes.State; {
	case state.Busy():
		m.status.Result = ocst.FaultBusy
		return
	case state == ocst.StateFault, state == ocst.StateArmed && c == ocst.CommitNow:
		m.status.Result = ocst.FaultNotAllowed
		return
	}
	m.status.Result = ocst.NoFault
	stage := func() {
		for lane := range m.armed {
			if m.status.Mask>>lane&1 != 0 {
				m.armed[lane] = m.status.Staged
			}
		}
		m.mask |= m.status.Mask
		m.next = m.lanes.Next
	}
	switch {
	case c == ocst.CommitArm:
		stage()
		m.state(ocst.StateArmed)
	case c == ocst.CommitDisarm:
		m.mask = 0
		m.state(ocst.StateReady)
	case c == ocst.CommitNow:
		stage()
		m.run()
	case c == ocst.CommitTrigger && m.lanes.State != ocst.StateArmed:
		m.status.Result = ocst.FaultNotArmed
	case c == ocst.CommitTrigger:
		m.run()
	}
}

// run switches.
func (m *fakeModule) run() {
	paths, mask, loop := m.armed, m.mask, m.next
	m.mask = 0
	m.after = func(m *fakeModule) {
		m.state(ocst.StateLocking)
		if m.end != nil {
			m.end(m)
			return
		}
		for lane, p := range paths {
			if mask>>lane&1 != 0 {
				m.lanes.Path[lane] = p
			}
		}
		m.lanes.Loop = loop
		m.status.Sequence++
		m.status.Switches++
		m.status.Duration = 70 * time.Microsecond
	}
	m.state(ocst.StateSettle)
	m.looks = m.slow + 1
	if m.slow == 0 {
		m.looks = 1
		m.look()
	}
}

// hold has a module of a bus hold circuits of its own, "1>9", as a single module has them.
func (m *fakeModule) hold(t testing.TB, circuits string) {
	for c := range drivertest.Map(t, circuits).All() {
		lane, place := int(c.Ingress-1), int(c.Egress-1)/ocst.Lanes
		m.lanes.Path[lane] = []ocst.Path{ocst.Path1, ocst.Path2, ocst.LoopPath}[place-1]
		if place == 3 {
			want := [ocst.Lanes]int{-1, -1, -1, -1, -1, -1, -1, -1}
			for i, p := range m.lanes.Path {
				if p == ocst.LoopPath && i != lane {
					want[i] = int(m.lanes.Loop[i])
				}
			}
			want[lane] = int(c.Egress-1) % ocst.Lanes
			var err error
			if m.lanes.Loop, err = m.lanes.Loop.Complete(want); err != nil {
				t.Fatal(err)
			}
			m.lanes.Next = m.lanes.Loop
		}
	}
}

// newFake returns a bus with so many modules.
func newFake(modules int) *fakeBus {
	b := &fakeBus{}
	for i := range modules {
		b.modules = append(b.modules, newFakeModule(fmt.Sprintf("SN%d", i+1)))
	}
	return b
}

// openFake opens a Switch on a fake bus, whose log begins after that.
func openFake(t testing.TB, b *fakeBus) *ocstrx.Switch {
	t.Helper()
	sw, err := ocstrx.Open(context.Background(), ocstrx.Config{Bus: b, Device: "trx0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sw.Close() })
	b.requests()
	return sw
}

// change is "-1>9 +1>17": what to remove and what to add.
func change(t testing.TB, s string) ocs.Change {
	t.Helper()
	var c [2][]string
	for _, f := range strings.Fields(s) {
		i := strings.Index("-+", f[:1])
		c[i] = append(c[i], f[1:])
	}
	return ocs.Change{Remove: drivertest.Map(t, strings.Join(c[0], ",")), Add: drivertest.Map(t, strings.Join(c[1], ","))}
}
