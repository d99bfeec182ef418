package ocstrx

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TableState is what a module has of a calibration table when it is made.
type TableState string

const (
	TableFactory TableState = "factory" // as a good factory makes it; also ""
	TableNone    TableState = "none"    // it waits for one, in State Cal
	TableDamaged TableState = "damaged" // one bit of it has flipped
)

// Options are what is particular to one module or board.
type Options struct {
	Name   string // in messages; "" is the model or "module"
	Serial string // 1 to 16 characters of printable ASCII; "": made from the seed
	Seed   uint64 // of everything random: the same seed is the same device
	Clock  Clock  // nil: RealClock
	Table  TableState
	// Ambient is the temperature around it, °C; nil: 25 °C.
	Ambient *float64
	// Wall is the time of day, by which tables expire; nil: time.Now.
	Wall func() time.Time
}

// filled returns the options with all defaults filled in.
func (o Options) filled(name string) Options {
	if o.Name == "" {
		o.Name = name
	}
	if o.Serial == "" {
		o.Serial = serialOf(o.Seed)
	}
	if o.Clock == nil {
		o.Clock = RealClock()
	}
	if o.Ambient == nil {
		usual := float64(startAmbient)
		o.Ambient = &usual
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	return o
}

// Module is one emulated transceiver. It is a [cmis.Memory], and safe for concurrent use:
// requests are done one after another.
type Module struct {
	name  string
	clock Clock
	wall  func() time.Time
	p     Params
	feeds [2]atomic.Pointer[ray] // what the cables bring, by fibre; changed while joining is held

	mu sync.Mutex // guards all that follows

	chip  *chip
	store *cmis.Store
	rng   *rand.Rand    // how long receivers take to lock
	now   time.Duration // up to which everything has happened, see hearing

	// What a module keeps without power.
	serial   string
	stored   [][]byte // the table's pages, as they are
	log      []ocst.LogEntry
	switches uint32

	// What it does.
	state   ocst.State // never Armed nor Locking, see stateNow
	until   time.Duration
	started time.Duration // of the last reset: the log's zero
	fault   ocst.Fault
	faultAt uint8

	// Its settings.
	table *ocst.Table // in use; nil: none
	trim  [ocst.Elements]float64
	// states are those that the elements are in or on their way to, true is cross.
	states   [ocst.Elements]bool
	drives   [ocst.Elements]ocst.Drive
	solver   solver
	solvedAt float64       // °C that the drives are for
	trackAt  time.Duration // when to look at the temperature next
	trackIn  time.Duration
	tracked  float64

	// Its lanes.
	path  [ocst.Lanes]ocst.Path
	loop  ocst.Permutation
	lit   uint8 // lanes that the modulators pass, before what the host has disabled
	laser bool
	out   [2]*ray // cables at the fibres, nil where there is none

	// What its receivers are told, and what they do.
	round   uint32 // counts what begins or ends a switch
	relit   uint8  // lanes that the last switch has lit, if nothing came after it
	looped  uint8  // receivers that had light from the loop network at the last look
	hearing hearing

	// What it was told to do.
	armed      uint8 // lanes
	armedPath  [ocst.Lanes]ocst.Path
	armedLoop  ocst.Permutation
	armedUntil time.Duration
	run        *run // the switch under way, nil if none
	runMemory  run  // what it points to

	dead      bool // it has no power
	brokenOff bool // which it lost in the middle of a switch

	result   ocst.Fault
	sequence uint32
	duration time.Duration
	capture  capture

	password bool
	session  bool // of calibration
	calUntil time.Duration
	staged   map[uint8]*[pageSize]byte // pages of a table to be loaded
	cdb      cdb

	plate *plate
}

// NewModule returns a module that was given power at this moment: it is ready after about
// 11 ms. Nothing of p is checked that [LoadPersonality] has checked already.
func NewModule(p Params, opt Options) *Module {
	opt = opt.filled("module")
	m := &Module{
		name: opt.Name, clock: opt.Clock, wall: opt.Wall, p: p, serial: opt.Serial,
		chip:  newChip(p, opt.Seed),
		store: newStore(),
		rng:   rand.New(rand.NewPCG(opt.Seed, lockStream)),
	}
	m.now = m.clock.Now()
	m.hearing.until = m.now
	m.chip.setAmbient(m.now, *opt.Ambient)
	m.makeTable(opt.Table)
	m.writeIdentity()
	m.reset()
	return m
}

// lockStream keeps the lock times apart from what the chip draws with the same seed.
const lockStream = 0x6c6f636b

func serialOf(seed uint64) string { return fmt.Sprintf("OT%010d", seed%1e10) }

// makeTable fills the memory that keeps the table.
func (m *Module) makeTable(state TableState) {
	if state == TableNone {
		return
	}
	pages, err := m.chip.factoryTable(m.serial, m.wall().UTC().Truncate(24*time.Hour)).Pages()
	if err != nil {
		return // a serial number that no table can have: there is none then
	}
	if state == TableDamaged {
		pages[len(pages)/2][17] ^= 0x20
	}
	m.stored = pages
}

// Read implements [cmis.Memory]: it looks at the module at this moment. It returns an error
// for addresses that do not pass their Check, and matches [cmis.ErrNoPage] for pages that
// the module does not have; without power it is [ErrNoPower].
func (m *Module) Read(_ context.Context, a cmis.Address, buf []byte) error {
	m.lockNow()
	defer m.mu.Unlock()
	if m.dead {
		return ErrNoPower
	}
	return m.read(a, buf)
}

// Write implements [cmis.Memory]. What it does begins when it is called. Errors are those of
// Read; a command that is refused is none, it says so in its result.
func (m *Module) Write(_ context.Context, a cmis.Address, data []byte) error {
	m.lockNow()
	defer m.mu.Unlock()
	if m.dead {
		return ErrNoPower
	}
	return m.write(a, data)
}

// Armed reports whether the module would switch at a trigger.
func (m *Module) Armed() bool {
	m.lockNow()
	defer m.mu.Unlock()
	return m.armed != 0
}

// Trigger pulls the trigger line: an armed module switches, another one notes
// [ocst.FaultNotArmed].
func (m *Module) Trigger() {
	m.lockNow()
	defer m.mu.Unlock()
	if !m.dead {
		m.trigger()
	}
}

// BrownOut lets the supply break down and come back: the module starts anew. A switch under
// way is in the log with [ocst.FaultBrownOut].
func (m *Module) BrownOut() {
	m.lockNow()
	defer m.mu.Unlock()
	if !m.dead {
		m.brownOut()
	}
}

// Inject breaks something in the module.
func (m *Module) Inject(f DeviceFault) {
	m.lockNow()
	defer m.mu.Unlock()
	m.chip.fault(m.now, f)
	m.trackSoon()
	m.send(false)
}

// SetAmbient changes the temperature around the module at once; its case follows.
func (m *Module) SetAmbient(celsius float64) {
	m.lockNow()
	defer m.mu.Unlock()
	m.plate = nil
	m.setAmbient(celsius)
}

// setAmbient changes the temperature around the module as of now.
func (m *Module) setAmbient(celsius float64) {
	m.chip.setAmbient(m.now, celsius)
	m.trackSoon()
}

// SetInput says how much light comes from fibre 0 or 1 to a lane, from 0. What is out of
// range is ignored; -Inf is none. A fibre that has a cable brings what [Join] says.
func (m *Module) SetInput(fibre, lane int, power ocs.DBm) {
	if fibre < 0 || fibre > 1 || lane < 0 || lane >= ocst.Lanes {
		return
	}
	m.lockNow()
	defer m.mu.Unlock()
	if m.feeds[fibre].Load() != nil {
		return
	}
	m.chip.setInput(fibre, lane, power.Milliwatts())
	m.listen()
}

// Truth returns what the device is really like, which nothing outside of tests and figures
// may know.
func (m *Module) Truth() Truth {
	m.lockNow()
	defer m.mu.Unlock()
	return m.chip.truth()
}

// Name returns what the module is called in messages.
func (m *Module) Name() string { return m.name }

// Serial returns its serial number.
func (m *Module) Serial() string { return m.serial }
