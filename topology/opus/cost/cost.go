// Package cost says what the rails of a cluster cost and draw: as a network of packet switches, and as
// optical circuit switches with the Opus control plane.
//
//	eps, opus, err := cost.Compare(cost.System{Servers: 64, Kind: cost.H200})
//	fmt.Printf("%.2f times the price\n", eps.Dollars()/opus.Dollars())
//
// # Source
//
// "Photonic Rails in ML Datacenters with Opus", arXiv 2602.12521, figure "cost and power", gives ratios
// only. Formulas and prices were read in the authors' archive and derived anew; they give the paper's
// ratios exactly: 4.27 and 23.86 for H200, 3.17 and 15.44 for GB200. Prices are those the authors put in,
// not offers, and are for hardware only.
//
// The packet network is rail-optimised: each rail a fat tree of two tiers, whose switches have a radix k
// chosen for the size, k = round(√(4·servers)). A rail has 2·⌊servers/⌊k/2⌋⌋ leaves, and all rails together
// ⌊GPUs/k⌋ spines. Neither is rounded up, so at sizes that k does not divide the tree comes out a little
// too small; that is kept, since it is what the paper counts, and so is that a switch port costs the same
// at each radix.
//
// # What the paper leaves out
//
// Its architecture needs two duplex ports on each GPU's rail, since a ring has a next and a previous
// member, while its cost model buys one transceiver and two simplex switch ports (one duplex one) for each
// GPU. With the two that are needed, the optical rails cost twice as much, and the advantage of 512 H200
// GPUs is 2.13 and not 4.27. System.Ports says which is meant, and [Report] prints both.
//
// Everything is pure arithmetic and safe for concurrent use.
package cost

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/topology/opus"
)

// ErrSystem: there is no such system, or no price for it. Test with errors.Is.
var ErrSystem = errors.New("not a possible system")

// Kind is a generation of GPU servers, with the network that is priced for it.
type Kind string

const (
	// H200 has 8 GPUs in a server and 400 Gb/s to each; packet switches have pluggable transceivers, so a
	// link has one at both ends.
	H200 Kind = "H200"
	// GB200 is priced with 32 GPUs in a scale-up domain and 800 Gb/s to each; packet switches have their
	// optics in the package, so only GPUs have transceivers.
	GB200 Kind = "GB200"
)

// Kinds are all there are.
var Kinds = []Kind{H200, GB200}

// prices are what the authors put in; dollars and watts of a switch are for all of its ports.
type prices struct {
	gpus        int     // of a server, unless said otherwise
	switchPorts float64 // of the priced packet switch
	dollars     float64 // of that switch
	watts       float64 // of that switch
	pluggable   bool    // its ports need transceivers
	txDollars   float64 // of a transceiver
	txWatts     float64
}

var table = map[Kind]prices{
	H200:  {gpus: 8, switchPorts: 64, dollars: 37299, watts: 2524, pluggable: true, txDollars: 879, txWatts: 10},
	GB200: {gpus: 32, switchPorts: 144, dollars: 149939, watts: 7000, txDollars: 879, txWatts: 16},
}

// A simplex port of an optical switch, an ingress or an egress: 75 W are for 192 of them.
const (
	ocsPortDollars = 520
	ocsWatts       = 75
	ocsWattsPorts  = 192
)

// MaxServers is the most servers that [Compare] knows how to count.
const MaxServers = 1 << 20

// System is the cluster.
type System struct {
	Servers int  // scale-up domains, from 1 to MaxServers
	Kind    Kind // "" is H200
	GPUs    int  // of each server, up to 1024; 0 is what the paper has: 8 of H200, 32 of GB200
	// Ports is how many duplex ports, each with a transceiver, a GPU has on its optical rail, up to 8. 0 is
	// 1: what the paper buys. A ring needs 2; see the package comment. The packet network always has one.
	Ports int
}

// Item is a line of a bill.
type Item struct {
	What    string  `json:"what"`
	Count   int     `json:"count"`
	Dollars float64 `json:"dollars"` // of all Count
	Watts   float64 `json:"watts"`   // of all Count
}

// Bill is what a network consists of.
type Bill struct {
	Name  string `json:"name"`
	Items []Item `json:"items"`
}

// Dollars returns the sum, US dollars.
func (b Bill) Dollars() float64 {
	sum := 0.0
	for _, i := range b.Items {
		sum += i.Dollars
	}
	return sum
}

// Watts returns the sum.
func (b Bill) Watts() float64 {
	sum := 0.0
	for _, i := range b.Items {
		sum += i.Watts
	}
	return sum
}

// Compare returns the bills of both networks. The ratio of their sums is what the paper reports. An error
// matches [ErrSystem].
func Compare(sys System) (eps, rails Bill, err error) {
	sys, p, err := sys.filled()
	if err != nil {
		return Bill{}, Bill{}, err
	}
	gpus := sys.Servers * sys.GPUs
	k := int(math.Round(math.Sqrt(float64(4 * sys.Servers))))
	leaves := 2 * (sys.Servers / (k / 2)) // of a rail
	spines := gpus / k
	ports := k * (sys.GPUs*leaves + spines)

	transceivers := gpus
	if p.pluggable {
		transceivers += ports
	}
	eps = Bill{Name: "packet switches", Items: []Item{
		{"packet switch ports", ports, float64(ports) * p.dollars / p.switchPorts, float64(ports) * p.watts / p.switchPorts},
		p.transceivers(transceivers),
	}}
	simplex := 2 * gpus * sys.Ports
	rails = Bill{Name: "optical rails", Items: []Item{
		{"OCS ports, simplex", simplex, float64(simplex) * ocsPortDollars, float64(simplex) * ocsWatts / ocsWattsPorts},
		p.transceivers(gpus * sys.Ports),
	}}
	return eps, rails, nil
}

func (p prices) transceivers(n int) Item {
	return Item{"transceivers", n, float64(n) * p.txDollars, float64(n) * p.txWatts}
}

// filled returns the system with its defaults in place.
func (sys System) filled() (System, prices, error) {
	bad := func(format string, args ...any) (System, prices, error) {
		return System{}, prices{}, fmt.Errorf("%w: %s", ErrSystem, fmt.Sprintf(format, args...))
	}
	if sys.Kind == "" {
		sys.Kind = H200
	}
	p, ok := table[sys.Kind]
	if !ok {
		return bad("there are no prices for %.40q: want H200 or GB200", string(sys.Kind))
	}
	if sys.GPUs == 0 {
		sys.GPUs = p.gpus
	}
	if sys.Ports == 0 {
		sys.Ports = 1
	}
	switch {
	case sys.Servers < 1 || sys.Servers > MaxServers:
		return bad("it has %d servers: want 1 to %d", sys.Servers, MaxServers)
	case sys.GPUs < 1 || sys.GPUs > 1024:
		return bad("a server has %d GPUs: want 1 to 1024", sys.GPUs)
	case sys.Ports < 1 || sys.Ports > 8:
		return bad("a GPU has %d duplex ports on its rail: want 1 to 8", sys.Ports)
	}
	return sys, p, nil
}

// Report returns both bills as a text for people: the optical rails as the paper buys them, with one duplex
// port a GPU, and as its architecture needs them, with as many as sys.Ports says, but two at least. Lines
// have at most 100 columns. An error matches [ErrSystem].
func Report(sys System) (string, error) {
	sys, _, err := sys.filled()
	if err != nil {
		return "", err
	}
	bought, needed := sys, sys
	bought.Ports, needed.Ports = 1, max(sys.Ports, opus.DefaultPorts)
	eps, paper, err := Compare(bought)
	if err != nil {
		return "", err
	}
	_, rails, err := Compare(needed)
	if err != nil {
		return "", err
	}
	paper.Name += ", " + natural.Count(1, "duplex port") + " a GPU (the paper's count)"
	rails.Name += ", " + natural.Count(needed.Ports, "duplex port") + " a GPU (rings need 2)"

	var b strings.Builder
	fmt.Fprintf(&b, "%d GPUs: %s of %d %s\n",
		sys.Servers*sys.GPUs, natural.Count(sys.Servers, "server"), sys.GPUs, sys.Kind)
	for i, bill := range []Bill{eps, paper, rails} {
		fmt.Fprintf(&b, "\n%s\n", bill.Name)
		for _, it := range append(bill.Items, Item{"sum", 0, bill.Dollars(), bill.Watts()}) {
			count := ""
			if it.Count > 0 {
				count = fmt.Sprint(it.Count)
			}
			fmt.Fprintf(&b, "  %-22s %9s  $%13.2f  %12.2f W\n", it.What, count, it.Dollars, it.Watts)
		}
		if i > 0 {
			fmt.Fprintf(&b, "  packet switches cost %.2f times that and draw %.2f times the power\n",
				eps.Dollars()/bill.Dollars(), eps.Watts()/bill.Watts())
		}
	}
	return b.String(), nil
}

// Reach returns how many GPUs one optical switch per rail can serve: a switch of that many duplex ports (an
// ingress and an egress each), a number of duplex ports for each GPU, and scale-up domains of that many
// GPUs, each of which is on a rail of its own. It is the whole pod: a rail has a GPU of each domain. All
// are 1 or more; otherwise the error matches [ErrSystem].
//
// The paper (section 7) tells of a liquid-crystal switch of 512 ports that it is enough for 18K GPUs on a
// rail. That number is 512/2·72 = 18 432, with 72 GPUs in a domain and two ports for each. It is the pod of
// 72 rails; a rail has 256 of these GPUs. The paper does not say whether the 512 are duplex ports, two for
// each GPU, or simplex ones, of which one duplex port for each GPU takes two.
func Reach(switchPorts, portsPerGPU, domain int) (perRail, pod int, err error) {
	if switchPorts < 1 || portsPerGPU < 1 || domain < 1 || switchPorts > math.MaxInt32 || domain > math.MaxInt32 {
		return 0, 0, fmt.Errorf("%w: a switch of %d ports, %d for each GPU, and domains of %d GPUs",
			ErrSystem, switchPorts, portsPerGPU, domain)
	}
	perRail = switchPorts / portsPerGPU
	return perRail, perRail * domain, nil
}
