// Package cost says what the networks of high-bandwidth domains cost and draw, by the price list of the InfiniteHBD
// paper: TPUv4, NVL-36 to NVL-576, a packet network of Alibaba (HPN), and InfiniteHBD with two and three bundles.
//
//	for _, b := range cost.Table() {
//		fmt.Printf("%s %.2f $ %.2f W\n", b.Name, b.Dollars(), b.Watts())
//	}
//
// # Source
//
// Tables 6 and 8 of the InfiniteHBD paper (see package infinitehbd). A price is what the authors put in, not an offer.
//
// # What does not add up
//
// The paper prints 150.33 W a GPU for NVL-36x2; its own parts come to 152.12 W. All else is to the cent.
//
// Everything is pure arithmetic and safe for concurrent use.
package cost

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

// ErrArgument: no network, or no price, like that. Test with errors.Is.
var ErrArgument = errors.New("there is no such price")

// Part is what a network consists of, with its price and power a piece.
type Part struct {
	Name    string  `json:"name"`
	Count   int     `json:"count"`
	Dollars float64 `json:"dollars"`
	Watts   float64 `json:"watts"`
}

// Bill is what a network consists of.
type Bill struct {
	Name  string `json:"name"`
	GPUs  int    `json:"gpus"`
	GBps  int    `json:"gbps_per_gpu"` // bandwidth of a GPU, gigabytes a second
	Parts []Part `json:"parts"`
	// PaperDollars and PaperWatts are what the paper prints for a GPU.
	PaperDollars float64 `json:"paper_dollars"`
	PaperWatts   float64 `json:"paper_watts"`
}

// Dollars returns what the network costs for each GPU, US dollars.
func (b Bill) Dollars() float64 {
	return b.sum(func(p Part) float64 { return p.Dollars })
}

// Watts returns what the network draws for each GPU, W.
func (b Bill) Watts() float64 {
	return b.sum(func(p Part) float64 { return p.Watts })
}

// DollarsPerGBps returns what the network costs for each GB/s of a GPU, US dollars.
func (b Bill) DollarsPerGBps() float64 { return b.Dollars() / float64(b.GBps) }

// WattsPerGBps returns what the network draws for each GB/s of a GPU, W.
func (b Bill) WattsPerGBps() float64 { return b.Watts() / float64(b.GBps) }

func (b Bill) sum(of func(Part) float64) (s float64) {
	for _, p := range b.Parts {
		s += float64(p.Count) * of(p)
	}
	return s / float64(b.GPUs)
}

// Prices of the paper.
const (
	fibreDollars    = 6.8
	ModuleDollars   = 600.0 // an OCSTrx
	ModuleWatts     = 12.0
	nvSwitchDollars = 28_000.0
)

// Names of the networks.
const (
	TPUv4  = "TPUv4"
	NVL36  = "NVL-36"
	NVL72  = "NVL-72"
	NVL362 = "NVL-36x2"
	NVL576 = "NVL-576"
	HPN    = "Alibaba HPN"
	K2     = "InfiniteHBD K=2"
	K3     = "InfiniteHBD K=3"
)

func fibre(n int) Part    { return Part{"fibre", n, fibreDollars, 0} }
func nvSwitch(n int) Part { return Part{"NVLink switch", n, nvSwitchDollars, 275} }
func nvCopper(n int) Part { return Part{"copper cable", n, 35.6, 0.1} }
func optics(n int) Part   { return Part{"optical module", n, 360, 12} }

// Table returns all networks in the order of the paper.
func Table() []Bill {
	return []Bill{
		{TPUv4, 4096, 300, []Part{{"optical switch", 48, 80_000, 108}, {"copper cable", 5120, 63.6, 0.1}, optics(6144), fibre(6144)},
			1567.20, 19.39},
		{NVL36, 36, 900, []Part{nvSwitch(9), nvCopper(2592)}, 9563.20, 75.95},
		{NVL72, 72, 900, []Part{nvSwitch(18), nvCopper(5184)}, 9563.20, 75.95},
		{NVL362, 72, 900, []Part{nvSwitch(36), nvCopper(6480), {"active copper cable", 162, 320, 2.5}}, 17924.00, 150.33},
		{NVL576, 576, 900, []Part{nvSwitch(432), nvCopper(41472), {"optical module", 4608, 850, 25}, fibre(4608)}, 30417.60, 413.45},
		{HPN, 16320, 50, []Part{{"packet switch", 360, 14_960, 3145}, nvCopper(32640), optics(28800), fibre(14400)}, 1042.49, 90.75},
		infinite(K2, 4, 16, 2626.80, 48.10),
		infinite(K3, 2, 24, 3740.60, 72.05),
	}
}

// infinite is a node of 4 GPUs.
func infinite(name string, copper, modules int, dollars, watts float64) Bill {
	parts := []Part{{"copper cable", copper, 199.6, 0.1}, {"OCSTrx", modules, ModuleDollars, ModuleWatts}, fibre(modules)}
	return Bill{name, 4, 800, parts, dollars, watts}
}

// Find returns the network of a name. The error matches [ErrArgument].
func Find(name string) (Bill, error) {
	all := Table()
	i := slices.IndexFunc(all, func(b Bill) bool { return b.Name == name })
	if i < 0 {
		return Bill{}, fmt.Errorf("%w: there is no network %.40q in the table", ErrArgument, name)
	}
	return all[i], nil
}

// Aggregate returns what a network costs for each GPU there is, US dollars, together with the GPUs that cannot be used
// (figure 13d): lost is the share of GPUs that are dead, or healthy and in no ring.
func Aggregate(b Bill, gpuDollars, lost float64) float64 { return gpuDollars*lost + b.Dollars() }

// Even is where two reaches cost the same.
type Even struct {
	Dead   float64 // share of nodes
	Exists bool    // there is such a share below most
}

// BreakEven returns the share of dead nodes from which InfiniteHBD with three bundles is cheaper than with two, in
// rings of m nodes of 4 GPUs each at a price of a GPU, by the exact waste ([model.Waste]) and up to a share of most, in
// steps of a thousandth of it. The paper prints 12.1 %, without the price of a GPU that it is for; with the exact waste it
// is 28.4 k$. The error matches [ErrArgument].
func BreakEven(gpuDollars float64, m int, most float64) (Even, error) {
	if !(gpuDollars > 0) || math.IsInf(gpuDollars, 1) || m < 1 || !(most > 0 && most <= 1) {
		return Even{}, fmt.Errorf("%w: a GPU of %g $, rings of %d nodes, up to %g dead: want positive numbers, and at most 1",
			ErrArgument, gpuDollars, m, most)
	}
	two, err := Find(K2)
	if err != nil {
		return Even{}, err
	}
	three, err := Find(K3)
	if err != nil {
		return Even{}, err
	}
	over := func(dead float64) float64 { // how much more two bundles cost than three
		w2, _ := model.Waste(m, dead, 2)
		w3, _ := model.Waste(m, dead, 3)
		return Aggregate(two, gpuDollars, dead+w2) - Aggregate(three, gpuDollars, dead+w3)
	}
	const steps = 1000
	for i := 1; i <= steps; i++ {
		if hi := most * float64(i) / steps; over(hi) >= 0 {
			lo := most * float64(i-1) / steps
			for range 60 {
				if mid := (lo + hi) / 2; over(mid) >= 0 {
					hi = mid
				} else {
					lo = mid
				}
			}
			return Even{hi, true}, nil
		}
	}
	return Even{}, nil
}
