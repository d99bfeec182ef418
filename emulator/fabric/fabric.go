package fabric

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// DefaultSensitivity is the weakest light that a NIC receives when nobody says
// otherwise.
const DefaultSensitivity ocs.DBm = -18

// Config says what a fabric joins.
type Config struct {
	Switches map[string]*emulator.Device // by the name that Port.Switch uses
	NICs     []NIC
	Seed     uint64 // same seed, NICs and light: same delays
	Rung     Rung   // 0: the best that is to be had here

	// Dir is the directory in which the fabric makes one of its own for the trees of
	// its hosts; "" is os.TempDir(). Close removes it or, when the program was
	// killed, the next Start of the same user with the same Dir.
	Dir string

	MTU         int     // of the NICs in bytes, MinMTU to MaxMTU; 0: DefaultMTU
	Sensitivity ocs.DBm // of the receivers; 0: DefaultSensitivity
}

// Port is a port of a switch.
type Port struct {
	Switch string
	Port   ocs.Port
}

// String returns "rail0/33".
func (p Port) String() string { return fmt.Sprintf("%s/%d", p.Switch, p.Port) }

// NIC is a network card with one fibre either way.
type NIC struct {
	Host, Name string // "gpu1", "ens1f0"; a name has at most 15 bytes
	Tx, Rx     Port   // sends into, receives from
	Profile    firmwarenotes.Profile

	// What the fibres lose on their way, 0 or more; infinity is a dead one. With a TxLoss the
	// fabric says what light enters the switch at Tx; with none it leaves that to the owner
	// of the switch. The module's transmitted power is what it launches, before TxLoss, and
	// the received one what is left after RxLoss.
	TxLoss, RxLoss ocs.DB
}

// Host is one computer.
type Host struct {
	Name string
	NS   *netns.NS // of the fabric, which closes it; nil in memory
	Root string    // the published tree
	NICs []Interface
}

// Interface is a NIC as its host sees it.
type Interface struct {
	Name     string           // "ens1f0"
	FullName string           // "gpu1/ens1f0", the Subject of its marks
	Index    int              // of the kernel; in memory a number that nobody else has
	Addr     netip.Prefix     // of 198.18.0.0/15, one network for all
	MAC      net.HardwareAddr // locally administered
	MTU      int              // bytes
	Refresh  time.Duration    // how old the values of its module may be
}

// Stats counts the frames that a NIC has sent.
type Stats struct {
	Forwarded uint64 // handed to the NIC at the other end
	Dark      uint64 // dropped: no circuit with light, or no carrier at either end
	Refused   uint64 // dropped: the host at the other end did not take it
}

// Fabric is light, firmware and wire between emulated switches and hosts. It is
// safe for concurrent use.
type Fabric struct {
	axis        timeline.Axis
	switches    map[string]*emulator.Device
	seed        uint64
	mtu         int
	sensitivity float64 // in mW
	rung        Rung
	ground      ground
	dir         *ownDir
	stops       []func() // end the watching of light
	log         truthLog

	change sync.Mutex // one Start, Add, Remove or Close at a time
	closed bool       // guarded by change
	failed error      // what went wrong while nobody was there to be told; guarded by mu

	mu         sync.Mutex // guards what follows; never held while waiting for the kernel
	hosts      []*host
	nics       map[string]*nic // by key
	byTx, byRx map[Port]*nic
	lights     map[Port]emulator.LightChange // the last of each port
	numbers    map[string]int                // by key: of a NIC, also after its removal

	lateness sync.Mutex // guards late
	late     Lateness
}

// Lateness is how much later than it should something was done, and by what: on a busy
// machine timers and goroutines run late.
type Lateness struct {
	What string // "gpu1/ens1f0"
	By   time.Duration
}

// Late returns the greatest lateness since the last call. What a fabric does late, it does:
// truth has it so, but it is not what the profiles of the NICs say.
func (f *Fabric) Late() Lateness {
	f.lateness.Lock()
	defer f.lateness.Unlock()
	late := f.late
	f.late = Lateness{}
	return late
}

// due notes that something is done now that was due at a time.
func (f *Fabric) due(what string, at int64) {
	by := time.Duration(f.axis.NS(time.Now()) - at)
	f.lateness.Lock()
	defer f.lateness.Unlock()
	if by > f.late.By {
		f.late = Lateness{what, by}
	}
}

type host struct {
	name string
	ns   *netns.NS
	root string
	nics []*nic // in order of rdma
}

// Start makes the hosts and begins to watch the light. With an error nothing is
// left behind. Light that is there already counts as having come at that moment.
func Start(cfg Config) (*Fabric, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	f := &Fabric{
		axis: timeline.HostAxis(), switches: maps.Clone(cfg.Switches), seed: cfg.Seed, mtu: cfg.MTU,
		sensitivity: cfg.Sensitivity.Milliwatts(),
		nics:        map[string]*nic{}, byTx: map[Port]*nic{}, byRx: map[Port]*nic{},
		lights: map[Port]emulator.LightChange{}, numbers: map[string]int{},
	}
	if f.mtu == 0 {
		f.mtu = DefaultMTU
	}
	if cfg.Sensitivity == 0 {
		f.sensitivity = DefaultSensitivity.Milliwatts()
	}
	if err := f.start(&cfg); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (f *Fabric) start(cfg *Config) error {
	// All that can be known to be wrong is said before anything is made.
	for _, n := range cfg.NICs {
		if err := f.checkLocked(n); err != nil {
			return err
		}
		x := &nic{NIC: n, key: n.Host + "/" + n.Name}
		f.nics[x.key], f.byTx[n.Tx], f.byRx[n.Rx] = x, x, x
	}
	clear(f.nics)
	clear(f.byTx)
	clear(f.byRx)

	var err error
	if f.rung, err = pick(cfg.Rung); err != nil {
		return err
	}
	if f.dir, err = newOwnDir(cfg.Dir); err != nil {
		return err
	}
	if f.ground, err = newGround(f.rung); err != nil {
		return err
	}
	made := make([]*nic, 0, len(cfg.NICs))
	for _, n := range cfg.NICs {
		x, err := f.make(n)
		if err != nil {
			return err
		}
		made = append(made, x)
	}
	for _, h := range f.hosts {
		for _, n := range h.nics {
			if err := f.ground.introduce(h, n.dev, f.others(n)); err != nil {
				return fmt.Errorf("fabric: %s: %w", n.key, err)
			}
		}
	}
	for _, n := range made {
		if n.TxLoss != 0 {
			if err := f.shine(n.NIC); err != nil {
				return fmt.Errorf("fabric: %s: %w", n.key, err)
			}
		}
		n.begin()
	}
	for name, d := range f.switches {
		f.stops = append(f.stops, d.WatchLight(func(c emulator.LightChange) { f.light(name, c) }))
	}
	return nil
}

// light is told by a switch of each change.
func (f *Fabric) light(sw string, c emulator.LightChange) {
	p := Port{sw, c.Port}
	f.due(p.String(), c.AtNS)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lights[p] = c
	if n := f.byRx[p]; n != nil {
		n.lightLocked(c)
	}
}

// Rung returns what the fabric stands on.
func (f *Fabric) Rung() Rung { return f.rung }

// Hosts returns the hosts in the order in which they were first named.
func (f *Fabric) Hosts() []Host {
	f.mu.Lock()
	defer f.mu.Unlock()
	hosts := make([]Host, len(f.hosts))
	for i, h := range f.hosts {
		hosts[i] = Host{Name: h.name, NS: h.ns, Root: h.root}
		for _, n := range h.nics {
			hosts[i].NICs = append(hosts[i].NICs, Interface{
				Name: n.Name, FullName: n.key, Index: n.dev.index(),
				Addr: n.link.addr, MAC: slices.Clone(n.link.mac), MTU: f.mtu, Refresh: n.Profile.Refresh,
			})
		}
	}
	return hosts
}

// find returns a NIC that is there.
func (f *Fabric) find(host, name string) (*nic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.nics[host+"/"+name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("fabric: there is no NIC %s/%s (there are %.200s)", host, name,
		strings.Join(slices.Sorted(maps.Keys(f.nics)), ", "))
}

// Counts returns how often the fabric gave the NIC a carrier and took it, since
// Start or Add, and whether it has it now. (The kernel counts one more down: that
// before the device was up.)
func (f *Fabric) Counts(host, name string) (up, down uint32, carrier bool, err error) {
	n, err := f.find(host, name)
	if err != nil {
		return 0, 0, false, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return n.ups, n.downs, n.carrier, nil
}

// Stats returns what became of the frames that the NIC has sent.
func (f *Fabric) Stats(host, name string) (Stats, error) {
	n, err := f.find(host, name)
	if err != nil {
		return Stats{}, err
	}
	return Stats{
		Forwarded: n.stats.forwarded.Load(),
		Dark:      n.stats.dark.Load(),
		Refused:   n.stats.refused.Load(),
	}, nil
}

// Close removes the hosts, their NICs and their trees. It returns what went wrong
// meanwhile, if anything did. The switches stay as they are. Closing again does
// nothing.
func (f *Fabric) Close() error {
	f.change.Lock()
	defer f.change.Unlock()
	if f.closed {
		return nil
	}
	f.closed = true
	for _, stop := range f.stops {
		stop()
	}
	f.mu.Lock()
	errs := []error{f.failed}
	hosts := f.hosts
	f.hosts = nil
	clear(f.nics)
	clear(f.byTx)
	clear(f.byRx)
	f.mu.Unlock()
	errs = append(errs, endAll(hosts))
	if f.ground != nil {
		errs = append(errs, f.ground.close())
	}
	for _, h := range hosts {
		if h.ns != nil {
			errs = append(errs, h.ns.Close())
		}
	}
	if f.dir != nil {
		errs = append(errs, f.dir.remove())
	}
	return errors.Join(errs...)
}

// endAll ends all NICs. The kernel waits long for each interface that is removed, but
// for many at once no longer than for one.
func endAll(hosts []*host) error {
	var (
		all   sync.WaitGroup
		mu    sync.Mutex // guards errs
		errs  []error
		slots = make(chan struct{}, 32)
	)
	for _, h := range hosts {
		for _, n := range h.nics {
			slots <- struct{}{}
			all.Go(func() {
				err := n.end()
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
				<-slots
			})
		}
	}
	all.Wait()
	return errors.Join(errs...)
}
