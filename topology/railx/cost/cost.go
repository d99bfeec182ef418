// Package cost says what networks for a cluster cost, by the price list of the RailX paper: fat trees, HammingMesh,
// the torus of TPUv4, and RailX.
//
//	b, err := cost.RailX(128, 4)
//	fmt.Printf("%.1f M$\n", b.Dollars()/1e6) // 751.1
//
// # Source
//
// "RailX: A Flexible, Scalable, and Low-Cost Network Architecture for Hyper-Scale LLM Training Systems", arXiv
// 2507.18889, tables 3 and 6. Each chip has 36 ports of 400 Gb/s. The paper prints totals; formulas were derived from
// those and the sizes, and give them to 0.1 M$. A price is what the authors put in, not an offer.
//
// # What does not add up
//
// The paper has 288 switches and 185.7 M$ for TPUv4. 288 of its optical switches are as many as 64 cubes of 64 chips
// need, and then the sum is 54.6 M$; 185.7 M$ is what it would be with 4032 switches. See [TPUv4]. Without any
// switches, as the static torus, the parts come to 44.5 M$, where it has 45.0. For the tapered fat tree its cost for
// each injection is not that of its own total: see [Row] and [Table].
//
// Everything is pure arithmetic and safe for concurrent use.
package cost

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/internal/natural"
)

// ErrNetwork: there is no such network. Test with errors.Is.
var ErrNetwork = errors.New("not a possible network")

// Prices of the paper, US dollars. A packet switch of 64 ports costs what an optical one of 128 does.
const (
	CopperDollars = 250    // a copper cable
	EndDollars    = 1_000  // an end of an optical cable: a transceiver, with half of the fibre
	SwitchDollars = 35_000 // a packet switch of 64 ports, or an optical circuit switch of 128
)

const (
	ports       = 36 // of a chip
	perEdge     = 9  // of a chip in a mesh, at each of its four sides
	switchPorts = 64
	// MostChips is the most chips that a network may have here.
	MostChips = 1 << 30
)

// Bill is what a network consists of.
type Bill struct {
	Name     string `json:"name"`
	Chips    int    `json:"chips"`
	Switches int    `json:"switches"`
	Ends     int    `json:"ends"`   // of optical cables
	Copper   int    `json:"copper"` // cables
	// Portion is the all-to-all bandwidth of a chip, or that through a bisection, as part of its injection
	// bandwidth; 0 is not said.
	Portion float64 `json:"portion"`
}

// Dollars returns the sum, US dollars.
func (b Bill) Dollars() float64 {
	return float64(b.Switches)*SwitchDollars + float64(b.Ends)*EndDollars + float64(b.Copper)*CopperDollars
}

// PerInjection returns what a chip costs, in units of what it does in the fat tree of two tiers. All chips inject
// the same, so this is cost for injection, and for all-reduce, bandwidth.
func (b Bill) PerInjection() float64 {
	return b.Dollars() / float64(b.Chips) / (FatTreeUnit.Dollars() / float64(FatTreeUnit.Chips))
}

// PerGlobal returns what a unit of all-to-all bandwidth costs, in units of what it does in the fat tree of two tiers; 0
// if Portion is not said.
func (b Bill) PerGlobal() float64 {
	if b.Portion == 0 {
		return 0
	}
	return b.PerInjection() / b.Portion
}

// String returns one line: "RailX, 128 ports, m = 4: 65536 chips, 4608 switches, 589824 ends, 751.1 M$".
func (b Bill) String() string {
	text := fmt.Sprintf("%s: %s, %s, %s", b.Name, natural.Count(b.Chips, "chip"), natural.Count(b.Switches, "switch"),
		natural.Count(b.Ends, "end"))
	if b.Copper > 0 {
		text += ", " + natural.Count(b.Copper, "copper cable")
	}
	return fmt.Sprintf("%s, %.1f M$", text, b.Dollars()/1e6)
}

// FatTreeUnit is what others are compared with: 2048 chips on two tiers.
var FatTreeUnit = fatTree(2, 2048)

// RailX returns the bill of the whole grid: (radix/2)² nodes of mesh² chips, on radix·9·mesh switches (equation 1).
// Every rail has two optical ports, with a transceiver each. Radix is even, 2 or more; the price is that of 128 ports.
func RailX(radix, mesh int) (Bill, error) {
	if radix < 2 || radix%2 != 0 || mesh < 1 || radix > 1<<15 || mesh > 1<<8 ||
		radix/2*mesh > 1<<15 {
		return Bill{}, fmt.Errorf("%w: RailX with switches of %d ports and nodes of %d x %d chips: want an even number of ports, "+
			"meshes of 1 to 256, and at most %d chips", ErrNetwork, radix, mesh, mesh, MostChips)
	}
	side, rails := radix/2, perEdge*mesh
	return Bill{Name: fmt.Sprintf("RailX, %d ports, m = %d", radix, mesh), Chips: side * side * mesh * mesh,
		Switches: rails * radix, Ends: side * side * 4 * rails, Portion: 1 / float64(2*mesh)}, nil
}

// FatTree returns the bill of a tree of that many tiers that does not block. Switches are not rounded up for each
// port of a chip, only over all.
func FatTree(tiers, chips int) (Bill, error) {
	if tiers < 1 || tiers > 6 || chips < 1 || chips > MostChips {
		return Bill{}, fmt.Errorf("%w: a fat tree of %d tiers for %d chips: want 1 to 6 tiers and 1 to %d chips", ErrNetwork, tiers, chips, MostChips)
	}
	if most := reach(tiers); chips > most {
		return Bill{}, fmt.Errorf("%w: a fat tree of %s of switches of %d ports joins at most %d chips: %d need another tier",
			ErrNetwork, natural.Count(tiers, "tier"), switchPorts, most, chips)
	}
	return fatTree(tiers, chips), nil
}

// reach is how many chips a tree of full switches has: all ports at one tier, half of them at all tiers below the top.
func reach(tiers int) int {
	chips := switchPorts
	for range tiers - 1 {
		chips *= switchPorts / 2
	}
	return min(chips, MostChips)
}

func fatTree(tiers, chips int) Bill {
	return Bill{Name: fmt.Sprintf("fat tree, %s", natural.Count(tiers, "tier")), Chips: chips,
		Switches: ceil(ports*chips*(2*tiers-1), switchPorts), Ends: ports * chips * 2 * tiers, Portion: 1}
}

// TaperedTree returns the bill of a full fat tree in which a switch of each tier but the top has taper ports down for
// each port up. Taper plus 1 must divide 64.
func TaperedTree(tiers, taper int) (Bill, error) {
	if tiers < 2 || tiers > 4 || taper < 1 || switchPorts%(taper+1) != 0 {
		return Bill{}, fmt.Errorf("%w: a fat tree of %d tiers tapered %d:1: want 2 to 4 tiers, tapered 1, 3, 7, 15, 31 or 63 to 1",
			ErrNetwork, tiers, taper)
	}
	down := switchPorts * taper / (taper + 1)
	chips := switchPorts
	for range tiers - 1 {
		chips *= down
	}
	b := Bill{Name: fmt.Sprintf("fat tree, %s, tapered %d:1", natural.Count(tiers, "tier"), taper), Chips: chips, Portion: 1}
	links := ports * chips // upwards, into the tier
	for tier := range tiers {
		b.Ends += 2 * links
		if tier == tiers-1 {
			b.Switches += links / switchPorts
			break
		}
		b.Switches += links / down
		links /= taper
		b.Portion /= float64(taper)
	}
	return b, nil
}

// HammingMesh returns the bill of boards of board x board chips, 32 x 32 of them with one tier of switches between
// the boards of a row or column, or 64 x 64 with two. Board 1 with one tier is the two-dimensional fat tree, which has
// 64 x 64 chips.
func HammingMesh(board, tiers int) (Bill, error) {
	if board < 1 || board > 64 || tiers < 1 || tiers > 2 {
		return Bill{}, fmt.Errorf("%w: a HammingMesh of boards of %d x %d chips with %s: want boards of 1 to 64 and 1 or 2 tiers",
			ErrNetwork, board, board, natural.Count(tiers, "tier"))
	}
	side := 32 * tiers
	if board == 1 && tiers == 1 {
		// A switch has both ends of a row: with one chip to a board, 64 ports are 64 chips.
		return Bill{Name: "fat trees in two dimensions", Chips: 64 * 64, Switches: ports * 64 * 64 / switchPorts,
			Ends: 2 * ports * 64 * 64, Portion: 1}, nil
	}
	links := side * side * 4 * board * perEdge
	b := Bill{Name: fmt.Sprintf("HammingMesh, %d x %d boards, %s", board, board, natural.Count(tiers, "tier")),
		Chips: side * side * board * board, Ends: 2 * tiers * links, Switches: links * (2*tiers - 1) / switchPorts,
		Portion: 1 / float64(board)}
	return b, nil
}

// TPUv4 returns the bill of 4096 chips in 64 cubes of 4 x 4 x 4, six ports in each direction: 96 links of each cube
// leave it through optical switches, and of the 144 within, 80 are copper cables between boards of 2 x 2 chips.
// Switches is how many are counted: 288 is what the paper says and the links need, 4032 what its sum needs, and 0 the
// static torus.
func TPUv4(switches int) (Bill, error) {
	if switches < 0 || switches > MostChips {
		return Bill{}, fmt.Errorf("%w: a TPUv4 pod with %d switches: want 288, or 0 for a static torus", ErrNetwork, switches)
	}
	const cubes, lanes = 64, 6
	name := "TPUv4"
	if switches == 0 {
		name = "torus in three dimensions"
	}
	return Bill{Name: name, Chips: cubes * 64, Switches: switches, Ends: cubes * 96 * lanes, Copper: cubes * 80 * lanes}, nil
}

func ceil(a, b int) int { return (a + b - 1) / b }
