package lab

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"

	"github.com/ocslab/ocslab/emulator"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/builtin"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

// plant is how a NIC is really plugged when it is emulated.
type plant struct {
	tx, rx         PortRef
	txLoss, rxLoss ocs.DB // infinity is a dead fibre
}

// plant returns how n is plugged when it is emulated.
func (n *NIC) plant() plant {
	p := plant{tx: n.Tx, rx: n.Rx}
	e := n.Emulate
	if e == nil {
		return p
	}
	if e.Tx != (PortRef{}) {
		p.tx = e.Tx
	}
	if e.Rx != (PortRef{}) {
		p.rx = e.Rx
	}
	p.txLoss, p.rxLoss = ocs.DB(e.TxLoss), ocs.DB(e.RxLoss)
	for _, side := range e.Dead {
		if side == "tx" {
			p.txLoss = ocs.DB(math.Inf(1))
		} else {
			p.rxLoss = ocs.DB(math.Inf(1))
		}
	}
	return p
}

// Firmware returns the profile of a NIC as [firmwarenotes.Find] takes it, "" if the lab
// file says none: a note of the user's is beside the lab file unless its path is absolute.
func (f *File) Firmware(n *NIC) string {
	if file, note := firmwarenotes.Path(n.Firmware); note {
		return f.beside(file) + n.Firmware[len(file):]
	}
	return n.Firmware
}

// Profile returns the firmware profile of a NIC, or [DefaultFirmware] if the lab file says
// none. The error for one that is not known matches [firmwarenotes.ErrUnknown].
func (f *File) Profile(n *NIC) (firmwarenotes.Profile, error) {
	return firmwarenotes.Find(cmp.Or(f.Firmware(n), DefaultFirmware))
}

// model returns the model of a switch as [EmulationOf] takes it: a file of the user's is
// beside the lab file unless its path is absolute.
func (f *File) model(e *Emulate) string {
	if builtin.IsFile(e.Model) {
		return f.beside(e.Model)
	}
	return e.Model
}

// beside returns where a file is that the lab file names. A lab that is no file has nothing
// beside it, so it is as the program sees it.
func (f *File) beside(path string) string {
	if f.Path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(f.Path), path)
}

// Anchored returns the lab with the absolute paths of the models and notes that it names,
// so that it can be written as another file. f is left as it was.
func (f *File) Anchored() *File {
	n := *f
	absolute := func(path string) string {
		if abs, err := filepath.Abs(path); err == nil {
			return abs
		}
		return path
	}
	n.Switches = slices.Clone(f.Switches)
	for i := range n.Switches {
		if e := n.Switches[i].Emulate; e != nil && builtin.IsFile(e.Model) {
			e := *e
			e.Model = absolute(f.model(&e))
			n.Switches[i].Emulate = &e
		}
	}
	n.Hosts = slices.Clone(f.Hosts)
	for i := range n.Hosts {
		n.Hosts[i].NICs = slices.Clone(n.Hosts[i].NICs)
		for j := range n.Hosts[i].NICs {
			nic := &n.Hosts[i].NICs[j]
			if _, note := firmwarenotes.Path(nic.Firmware); note {
				nic.Firmware = absolute(f.Firmware(nic))
			}
		}
	}
	return &n
}

// plants checks what is planted in the NICs.
func (c *checker) plants() {
	type end struct {
		nic   *NIC
		path  string // of what says so
		moved bool   // it is not where the lab file claims
	}
	tx, rx := map[PortRef]end{}, map[PortRef]end{}
	for i := range c.f.Hosts {
		for j := range c.f.Hosts[i].NICs {
			n, path := &c.f.Hosts[i].NICs[j], strictyaml.Index(strictyaml.Index("hosts", i)+".nics", j)
			if n.Emulate != nil {
				c.plant(path+".emulate", n)
			}
			p := n.plant()
			for _, side := range []struct {
				key, does   string
				claimed, at PortRef
				seen        map[PortRef]end
			}{
				{"tx", "sends into", n.Tx, p.tx, tx}, {"rx", "receives from", n.Rx, p.rx, rx},
			} {
				this := end{n, path + ".emulate." + side.key, side.at != side.claimed}
				other, taken := side.seen[side.at]
				if !taken {
					side.seen[side.at] = this
					continue
				}
				if !this.moved {
					this, other = other, this
				}
				if this.moved { // else it is reported where both claim it
					c.value(this.path, "%s really %s %v, and so does %s: a port has one fibre, so say where the other one is, too",
						this.nic.FullName(), side.does, side.at, other.nic.FullName())
				}
			}
			if p.tx == p.rx && n.Tx != n.Rx {
				c.value(path+".emulate", "rx is the same port as tx, %v: a NIC has two fibres", p.rx)
			}
		}
	}
}

// plant checks what is planted in one NIC.
func (c *checker) plant(path string, n *NIC) {
	e := n.Emulate
	if e.Tx != (PortRef{}) {
		c.port(path+".tx", e.Tx)
	}
	if e.Rx != (PortRef{}) {
		c.port(path+".rx", e.Rx)
	}
	c.loss(path+".tx_loss_db", e.TxLoss)
	c.loss(path+".rx_loss_db", e.RxLoss)
	for i, side := range e.Dead {
		c.choice(strictyaml.Index(path+".dead", i), side, "tx", "rx")
		if side == "" {
			c.value(strictyaml.Index(path+".dead", i), "want tx or rx")
		}
		if slices.Contains(e.Dead[:i], side) {
			c.value(strictyaml.Index(path+".dead", i), "%s is there twice", side)
		}
	}
}

func (c *checker) loss(path string, db float64) {
	if err := emulator.CheckExtraLoss(db); err != nil {
		c.value(path, "%w", err)
	}
}

// losses checks what is planted in a switch. Which ports there are is known of models that
// come with the program; those of a file are checked when it is emulated.
func (c *checker) losses(path string, e *Emulate) {
	if len(e.PortLoss)+len(e.PathLoss) == 0 {
		return
	}
	var g ocs.Geometry
	if slices.Contains(emulator.Models(), e.Model) {
		if p, err := emulator.LoadPersonality(e.Model); err == nil {
			g, _ = ocs.ParseGeometry(p.Size)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(e.PortLoss)) {
		at := strictyaml.Key(path+".port_loss_db", p.String())
		if !p.Valid() || g.Known() && !g.Has(p) {
			c.key(at, "%w", &ocs.PortError{Port: p, Geometry: g, Reason: "is not a port"})
		}
		c.loss(at, e.PortLoss[p])
	}
	for _, p := range emulator.SortedPaths(e.PathLoss) {
		at := strictyaml.Key(path+".path_loss_db", p.String())
		if err := g.Check(ocs.MustMap(ocs.CrossConnect(p))); err != nil {
			c.key(at, "%w", err)
		}
		c.loss(at, e.PathLoss[p])
	}
}

// planted adds the planted losses to those of a model.
func (s *Emulate) planted(o emulator.Optics) emulator.Optics {
	if len(s.PortLoss) > 0 {
		o.PortLoss = add(o.PortLoss, s.PortLoss)
	}
	if len(s.PathLoss) > 0 {
		o.PathLoss = add(o.PathLoss, s.PathLoss)
	}
	return o
}

// add returns a + b by key, and leaves both as they are. No sum is more than what can be
// planted, unless it is infinite.
func add[K comparable](a, b map[K]float64) map[K]float64 {
	sum := maps.Clone(a)
	if sum == nil {
		sum = map[K]float64{}
	}
	for k, db := range b {
		sum[k] += db
		if !math.IsInf(sum[k], 1) {
			sum[k] = min(sum[k], emulator.MaxExtraLoss)
		}
	}
	return sum
}

// lossText writes a loss as a lab file does.
func lossText(db float64) string {
	if math.IsInf(db, 1) {
		return ".inf"
	}
	return fmt.Sprint(db)
}
