package mesh

import "github.com/ocslab/ocslab/ocs"

// Budget is what light loses on its way, and what the mesh measures.
type Budget struct {
	Stitch     ocs.DB  // where a waveguide crosses from a tile to the next
	Waveguide  ocs.DB  // of each centimetre
	Coupling   ocs.DB  // where a fibre meets the mesh
	MZI        ocs.DB  // of each MZI that is crossed; the paper counts none
	Couplings  int     // of a circuit
	Tile       int     // MZIs along the side of a tile, 1 or more
	Pitch      float64 // centimetres from MZI to MZI
	Launch     ocs.DBm // of the circuit that loses least
	NSperMetre float64 // how long light takes
}

// DefaultBudget returns the paper's losses: 0.25 dB a stitch (in another place it says 0.2 on average), 0.4 dB/cm
// and 0.5 dB a coupling, of which a circuit has two. It says nothing of MZIs a tile and of pitch: 16 and 1.6 mm
// make tiles of the size of a lithography field, 26 mm. Light takes 4.9 ns a metre, 0.49 µs for 100 m of glass;
// the paper's 0.3 is that of vacuum.
func DefaultBudget() Budget {
	return Budget{Stitch: 0.25, Waveguide: 0.4, Coupling: 0.5, Couplings: 2, Tile: 16, Pitch: 0.16, NSperMetre: 4.9}
}

// Loss is what a circuit loses, and how it is launched.
type Loss struct {
	Hops   int     // waveguides
	Tiles  int     // crossed from one to the next
	Length float64 // centimetres
	Loss   ocs.DB
	Launch ocs.DBm // so that all circuits have the same power at their far ends
	Delay  float64 // seconds
}

// Losses returns those of circuits of a grid, by circuit; that of one that is not routed is the zero Loss.
func (b Budget) Losses(m *Mesh, circuits []Circuit) []Loss {
	losses := make([]Loss, len(circuits))
	least, any := ocs.DB(0), false
	for i, c := range circuits {
		if len(c.Nodes) < 2 {
			continue
		}
		l := Loss{Hops: len(c.Nodes) - 1}
		for k := 1; k < len(c.Nodes); k++ {
			if m.tile(c.Nodes[k-1], b.Tile) != m.tile(c.Nodes[k], b.Tile) {
				l.Tiles++
			}
		}
		l.Length = float64(l.Hops) * b.Pitch
		l.Loss = b.Stitch*ocs.DB(l.Tiles) + b.Waveguide*ocs.DB(l.Length) + b.Coupling*ocs.DB(b.Couplings) + b.MZI*ocs.DB(l.Hops-1)
		l.Delay = l.Length / 100 * b.NSperMetre * 1e-9
		if !any || l.Loss < least {
			least, any = l.Loss, true
		}
		losses[i] = l
	}
	for i := range losses {
		if losses[i].Hops > 0 {
			losses[i].Launch = b.Launch + ocs.DBm(losses[i].Loss-least)
		}
	}
	return losses
}

// tile returns the row and column of the tile of a node. A graph that is no grid has one node a tile.
func (m *Mesh) tile(node, side int) [2]int {
	if m.columns == 0 {
		return [2]int{node, 0}
	}
	side = max(side, 1)
	return [2]int{node / m.columns / side, node % m.columns / side}
}
