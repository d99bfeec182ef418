package fabric

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Remove pulls a NIC out of its host, as if by hand: its interface and its part of
// the tree are gone, and its light no longer enters the switch. What the NIC was
// is forgotten, but for its address.
func (f *Fabric) Remove(host, name string) error {
	f.change.Lock()
	defer f.change.Unlock()
	n, err := f.find(host, name)
	if err != nil {
		return err
	}
	err = f.switches[n.Tx.Switch].SetInput(n.Tx.Port, ocs.DBm(math.Inf(-1)))
	return errors.Join(err, f.remove(n))
}

func (f *Fabric) remove(n *nic) error {
	f.mu.Lock()
	delete(f.nics, n.key)
	delete(f.byTx, n.Tx)
	delete(f.byRx, n.Rx)
	for _, h := range f.hosts {
		h.nics = slices.DeleteFunc(h.nics, func(o *nic) bool { return o == n })
	}
	f.mu.Unlock()
	return n.end()
}

// Add plugs in a NIC; its host is made if need be. It sends light at the power that
// the personality of its switch calls usual, of which TxLoss is lost on the way.
func (f *Fabric) Add(cfg NIC) error {
	f.change.Lock()
	defer f.change.Unlock()
	if f.closed {
		return fmt.Errorf("fabric: %s/%s cannot be added: the fabric is closed", cfg.Host, cfg.Name)
	}
	f.mu.Lock()
	err := f.checkLocked(cfg)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	n, err := f.make(cfg)
	if err != nil {
		return err
	}
	if err := f.meet(n); err != nil {
		return errors.Join(err, f.remove(n))
	}
	n.begin()
	f.mu.Lock()
	if c, ok := f.lights[n.Rx]; ok && c.Lit() {
		c.AtNS = f.axis.NS(time.Now())
		n.lightLocked(c)
	}
	f.mu.Unlock()
	return f.shine(cfg)
}

// meet introduces a new NIC and all others to each other.
func (f *Fabric) meet(n *nic) error {
	for _, h := range f.hosts {
		for _, o := range h.nics {
			to := []link{n.link}
			if o == n {
				to = f.others(n)
			}
			if err := f.ground.introduce(h, o.dev, to); err != nil {
				return fmt.Errorf("fabric: %s: %w", o.key, err)
			}
		}
	}
	return nil
}
