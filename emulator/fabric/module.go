package fabric

import (
	"context"
	"math"

	"github.com/ocslab/ocslab/wire/cmis"
)

// moduleSize is the memory of a module that is published: the lower 128 bytes and
// the upper pages 00h to 11h.
const moduleSize = 128 + 18*128

// module is the optical module of a NIC, a QSFP28 with the memory map of SFF-8636.
// As real ones it brings its readings up to date only from time to time, and like
// [firmware] it has no clock.
type module struct {
	memory  [moduleSize]byte
	refresh int64 // how often, in nanoseconds
	phase   int64 // when, modulo refresh
	due     int64 // when a refresh will change something; never if none would

	power float64 // received, in mW
	lit   bool    // enough of it
	lost  bool    // it was not, some time since the last refresh
}

// Places in the memory, of SFF-8636 Rev 2.10a, tables 6-1 and 6-15.
const (
	losByte     = 3  // bits 0-3: Rx LOS of lanes 1-4
	rxPowerByte = 34 // 4 x uint16 of 0.1 uW
	txBiasByte  = 42 // 4 x uint16 of 2 uA
	txPowerByte = 50 // 4 x uint16 of 0.1 uW
	lanes       = 4
)

// newModule returns a module in the dark that sends tx mW.
func newModule(refresh, phase int64, serial string, tx float64) *module {
	m := &module{refresh: refresh, phase: phase, due: never, lost: true}
	b := m.memory[:]
	const qsfp28 = 0x11
	b[0] = qsfp28
	b[1] = 0x08 // SFF-8636 Rev 2.8 or later
	b[2] = 1 << 2
	b[22] = 35                // degrees C
	b[26], b[27] = 0x80, 0xe8 // 3.3 V in 100 uV
	for lane := range lanes { // 40 mA each
		put16(b[txBiasByte+2*lane:], 20000)
		put16(b[txPowerByte+2*lane:], laneUnits(tx))
	}
	up := b[128:256]
	up[0] = qsfp28
	up[2] = 0x07   // LC
	up[3] = 1 << 7 // see byte 192
	up[12] = 0xff  // more than 25.4 Gbit/s: see byte 222
	up[14] = 10    // km of single-mode fibre
	text(up[20:36], "ocslab")
	text(up[40:56], "EMULATED-LR4")
	text(up[56:58], "1")
	up[64] = 0x03 // 100GBASE-LR4
	text(up[68:84], serial)
	text(up[84:92], "260101")
	up[92] = 1<<3 | 1<<2 // Rx power is an average; Tx power is measured
	up[94] = 103         // x 250 Mbit/s per lane
	up[63] = sum(up[0:63])
	up[95] = sum(up[64:95])
	m.update()
	return m
}

// light says that power mW are received from at on, and does before what had become
// due, as advance does.
func (m *module) light(power float64, lit bool, at int64) bool {
	refreshed := m.advance(at - 1)
	m.power, m.lit = power, lit
	m.lost = m.lost || !lit
	m.due = min(m.due, m.next(at))
	return refreshed
}

// next returns the first refresh at or after at.
func (m *module) next(at int64) int64 {
	if m.refresh <= 0 {
		return at
	}
	late := (at - m.phase) % m.refresh
	if late < 0 {
		late += m.refresh
	}
	if late == 0 {
		return at
	}
	return add(at, m.refresh-late)
}

// advance brings the memory up to date if that is due by now, and reports whether
// it did.
func (m *module) advance(now int64) bool {
	if m.due == never || m.due > now {
		return false
	}
	at := m.due
	m.due = never
	if m.lost && m.lit { // shown once more; gone at the refresh after
		m.due = m.next(add(at, 1))
	}
	m.update()
	m.lost = false
	return true
}

// ModuleReader reads the memory of a module as it is at the time of the read, while the
// published tree may be late on a busy machine.
type ModuleReader struct{ n *nic }

// Module returns a reader of the module of a NIC.
func (f *Fabric) Module(host, name string) (*ModuleReader, error) {
	n, err := f.find(host, name)
	if err != nil {
		return nil, err
	}
	return &ModuleReader{n}, nil
}

// ReadPage reads from the memory. After the NIC was removed it gives [cmis.ErrNoModule].
func (r *ModuleReader) ReadPage(ctx context.Context, a cmis.Address, buf []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := r.n
	at := n.fabric.switches[n.Rx.Switch].DeliverLight()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.unplugged {
		return cmis.ErrNoModule
	}
	n.unpublished = n.module.advance(at) || n.unpublished
	return cmis.Image(n.module.memory[:]).Read(a, buf)
}

// Close does nothing.
func (r *ModuleReader) Close() error { return nil }

func (m *module) update() {
	m.memory[losByte] = 0
	if m.lost || !m.lit {
		m.memory[losByte] = 1<<lanes - 1
	}
	for lane := range lanes {
		put16(m.memory[rxPowerByte+2*lane:], laneUnits(m.power))
	}
}

// laneUnits returns an equal share of mw for one lane, in units of 0.1 uW.
func laneUnits(mw float64) uint16 {
	return uint16(min(math.Round(mw/lanes*10000), math.MaxUint16))
}

func put16(b []byte, v uint16) { b[0], b[1] = byte(v>>8), byte(v) }

// text fills b with s and spaces.
func text(b []byte, s string) {
	for i := copy(b, s); i < len(b); i++ {
		b[i] = ' '
	}
}

// sum is the check code of SFF-8636: the low byte of the sum.
func sum(b []byte) (s byte) {
	for _, x := range b {
		s += x
	}
	return s
}
