package fabric

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// nic is a NIC that is there. One goroutine, run, is its firmware: it alone sets the
// carrier and writes the tree.
type nic struct {
	NIC
	fabric *Fabric
	key    string // "gpu1/ens1f0"
	rdma   int    // number of its RDMA device in the host
	link   link
	dev    device
	tree   *tree

	out   atomic.Pointer[path] // where frames that it sends go; nil: nowhere
	stats struct{ forwarded, dark, refused atomic.Uint64 }

	// Guarded by the fabric's mu.
	lit        bool
	from       Port // where its light enters
	source     *nic // whose frames come here
	carrier    bool
	ups, downs uint32

	firmware *firmware
	bed      sleeper
	ended    chan struct{} // run has; nil when it has not begun

	mu          sync.Mutex // guards what follows
	module      *module
	unpublished bool      // the module's memory has changed and the tree has not
	lights      []lightAt // for run
	over        bool      // run is to end
	unplugged   bool
}

// lightAt is a change of light on its way to the firmware.
type lightAt struct {
	lit bool
	at  int64
	op  int
}

// make makes a NIC and, if need be, its host. What it made so far it takes back
// when it fails, except for the host.
func (f *Fabric) make(cfg NIC) (*nic, error) {
	n := &nic{NIC: cfg, fabric: f, key: cfg.Host + "/" + cfg.Name}
	h, err := f.host(cfg.Host)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	nth := f.numbers[n.key]
	if nth == 0 {
		nth = len(f.numbers) + 1
		f.numbers[n.key] = nth
	}
	for slices.ContainsFunc(h.nics, func(o *nic) bool { return o.rdma == n.rdma }) {
		n.rdma++
	}
	f.mu.Unlock()
	addr := address(nth)
	n.link = link{
		name: n.Name, nth: nth, addr: addr, mac: hardwareAddr(addr.Addr()), mtu: f.mtu, sends: n.forward,
	}
	r := f.draw(n.key)
	phase := int64(0)
	if refresh := int64(n.Profile.Refresh); refresh > 0 {
		phase = r.Int64N(refresh)
	}
	n.module = newModule(int64(n.Profile.Refresh), phase, fmt.Sprintf("OCSLAB%06d", nth), f.launch(cfg).Milliwatts())
	n.firmware = newFirmware(n.Profile, r)
	if n.bed, err = f.ground.sleeper(); err != nil {
		return nil, fmt.Errorf("fabric: %s: %w", n.key, err)
	}
	if n.tree, err = newTree(h.root, n); err != nil {
		n.bed.close()
		return nil, fmt.Errorf("fabric: %s: %w", n.key, err)
	}
	if n.dev, err = f.ground.device(h, n.link); err != nil {
		n.bed.close()
		return nil, errors.Join(fmt.Errorf("fabric: %s: %w", n.key, err), n.tree.remove())
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h.nics = append(h.nics, n)
	slices.SortStableFunc(h.nics, func(a, b *nic) int { return a.rdma - b.rdma })
	f.nics[n.key], f.byTx[n.Tx], f.byRx[n.Rx] = n, n, n
	return n, nil
}

// host returns the host of that name and makes it if need be.
func (f *Fabric) host(name string) (*host, error) {
	for _, h := range f.hosts { // changed only by us
		if h.name == name {
			return h, nil
		}
	}
	h := &host{name: name, root: filepath.Join(f.dir.path, name)}
	if err := newRoot(h.root); err != nil {
		return nil, fmt.Errorf("fabric: host %s: %w", name, err)
	}
	var err error
	if h.ns, err = f.ground.host(name); err != nil {
		return nil, fmt.Errorf("fabric: host %s: %w", name, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts = append(f.hosts, h)
	return h, nil
}

// draw returns the random numbers of a NIC.
func (f *Fabric) draw(key string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(key))
	return rand.New(rand.NewPCG(f.seed, h.Sum64()))
}

// launch is what the module of a NIC sends into its fibre: what its switch calls usual.
func (f *Fabric) launch(n NIC) ocs.DBm {
	return ocs.DBm(f.switches[n.Tx.Switch].Personality().Optics.Launch)
}

// shine lets the light of a NIC enter its switch.
func (f *Fabric) shine(n NIC) error {
	return f.switches[n.Tx.Switch].SetInput(n.Tx.Port, f.launch(n).Add(-n.TxLoss))
}

// others returns the links of all NICs but n.
func (f *Fabric) others(n *nic) []link {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []link
	for _, h := range f.hosts {
		for _, o := range h.nics {
			if o != n {
				all = append(all, o.link)
			}
		}
	}
	return all
}

// begin starts the firmware.
func (n *nic) begin() {
	n.ended = make(chan struct{})
	go n.run()
}

// end stops the firmware and removes the device and its part of the tree. The NIC is
// not in the fabric's tables any more.
func (n *nic) end() error {
	if n.ended != nil {
		n.mu.Lock()
		n.over = true
		n.mu.Unlock()
		n.bed.wake()
		<-n.ended
	}
	n.mu.Lock()
	n.unplugged = true
	n.mu.Unlock()
	f := n.fabric
	f.mu.Lock()
	n.lit, n.carrier = false, false
	op := 0
	if c, ok := f.lights[n.Rx]; ok {
		op = c.Operation
	}
	n.routeLocked(op)
	if p := n.out.Load(); p != nil {
		p.to.source = nil
		f.closePath(n, op)
	}
	f.mu.Unlock()
	n.bed.close()
	err := errors.Join(n.dev.close(), n.tree.remove())
	if err != nil {
		err = fmt.Errorf("fabric: %s: %w", n.key, err)
	}
	return err
}

// lightLocked takes in a change of light at the receiver. What it means for frames is
// done at once; the rest is for the firmware.
func (n *nic) lightLocked(c emulator.LightChange) {
	f := n.fabric
	received := c.Power.Add(-n.RxLoss)
	power := received.Milliwatts()
	lit := power >= f.sensitivity
	if lit != n.lit {
		stage := timeline.Dark
		if lit {
			stage = timeline.Light
		}
		f.log.add(timeline.Mark{
			Stage: stage, Subject: n.key, Host: n.Host, Interval: timeline.Point(c.AtNS),
			Reconfiguration: c.Operation, Detail: fmt.Sprintf("%v at %v", received, n.Rx),
		})
	}
	n.lit, n.from = lit, Port{n.Rx.Switch, c.From}
	n.routeLocked(c.Operation)

	n.mu.Lock()
	n.unpublished = n.module.light(power, lit, c.AtNS) || n.unpublished
	n.lights = append(n.lights, lightAt{lit, c.AtNS, c.Operation})
	n.mu.Unlock()
	n.bed.wake()
}

// run is the firmware, and keeps what the module shows published.
func (n *nic) run() {
	defer close(n.ended)
	for {
		n.mu.Lock()
		lights, over := n.lights, n.over
		n.lights = nil
		n.mu.Unlock()
		if over {
			return
		}
		for _, l := range lights {
			n.act(n.firmware.light(l.lit, l.at, l.op))
		}
		n.act(n.firmware.advance(n.fabric.axis.NS(time.Now())))
		memory, changed, due := n.refresh()
		if changed {
			n.check(n.tree.setModule(memory[:]))
		}
		n.bed.sleep(min(n.firmware.due(), due))
	}
}

// refresh brings the module up to date. It returns what it shows, whether that is to be
// published, and when the next refresh is due.
func (n *nic) refresh() (memory [moduleSize]byte, changed bool, due int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	changed = n.module.advance(n.fabric.axis.NS(time.Now())) || n.unpublished
	n.unpublished = false
	return n.module.memory, changed, n.module.due
}

// act does what the firmware decided.
func (n *nic) act(actions []action) {
	for _, a := range actions {
		n.fabric.due(n.key, a.at)
		switch a.step {
		case firmwareUp:
			n.timed(timeline.Firmware, a.op, func() error { return n.tree.setLink(true) })
		case carrierUp:
			n.timed(timeline.CarrierUp, a.op, func() error { return n.dev.carrier(true) })
			n.setCarrier(true, a.op)
			n.check(n.tree.setActive(true))
		case loseLink:
			// No frame passes a link that the firmware has given up, so the path closes
			// first. Firmware that had a link may not have told the kernel yet.
			if n.setCarrier(false, a.op) {
				n.timed(timeline.CarrierDown, a.op, func() error { return n.dev.carrier(false) })
				n.check(n.tree.setActive(false))
			}
			n.check(n.tree.setLink(false))
		}
	}
}

// timed does something and logs when.
func (n *nic) timed(stage timeline.Stage, op int, do func() error) {
	before := time.Now()
	err := do()
	if err != nil {
		n.check(err)
		return
	}
	n.fabric.log.add(timeline.Mark{
		Stage: stage, Subject: n.key, Host: n.Host,
		Interval: n.fabric.axis.Span(before, time.Now()), Reconfiguration: op,
	})
}

// setCarrier notes that the NIC has a carrier or not, opens or closes its paths,
// and reports whether that is new.
func (n *nic) setCarrier(on bool, op int) bool {
	n.fabric.mu.Lock()
	defer n.fabric.mu.Unlock()
	if n.carrier == on {
		return false
	}
	n.carrier = on
	if on {
		n.ups++
	} else {
		n.downs++
	}
	n.routesLocked(op)
	return true
}

// check keeps an error for Close. The first one tells most.
func (n *nic) check(err error) {
	if err == nil {
		return
	}
	f := n.fabric
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failed == nil {
		f.failed = fmt.Errorf("fabric: %s: %w", n.key, err)
	}
}
