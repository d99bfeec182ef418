package mesh

import "math"

// Of each MZI.
const (
	leak     = 1e-3 // the least share that goes the wrong way: 30 dB
	faintest = 1e-9 // mW: light that is less is not followed
)

// passes is the share of the power that an MZI does not lose: 0.1 dB.
var passes = math.Pow(10, -0.01)

// Ray is the light that a tap gets of a source.
type Ray struct {
	Source, Sink int     // taps, by index in what was set
	Power        float64 // mW; a source launches 1
}

// Light returns what taps get now, in order of the sources, then of the sinks. What is below a nanowatt in all is left out.
func (d *Device) Light() []Ray {
	d.mu.Lock()
	phases, taps := d.phases(false), d.taps // nobody changes those: Set replaces them
	d.mu.Unlock()
	across := make([]float64, len(phases)) // the share that crosses
	for n, p := range phases {
		s := math.Sin(p / 2)
		across[n] = min(max(s*s, leak), 1-leak)
	}
	var all []Ray
	for i, t := range taps {
		if !t.Adds {
			continue
		}
		for sink, power := range d.spread(i, taps, across) {
			if power >= faintest {
				all = append(all, Ray{Source: i, Sink: sink, Power: power})
			}
		}
	}
	return all
}

// spread follows the light of a source, one waveguide further at a time, until it has been taken, has left the mesh or is lost.
// It returns what each tap gets. That it ends is due to the loss of the MZIs.
func (d *Device) spread(source int, taps []Tap, across []float64) []float64 {
	got := make([]float64, len(taps))
	takes := map[int]int{} // sinks, by waveguide on which light comes
	for i, t := range taps {
		if !t.Adds && t.Wavelength == taps[source].Wavelength {
			takes[4*t.Node+int(t.Side)] = i
		}
	}
	// Power that leaves nodes, by node and side; busy are those places where there is some.
	now, next := make([]float64, 4*len(across)), make([]float64, 4*len(across))
	start := 4*taps[source].Node + int(taps[source].Side)
	now[start] = 1
	for busy := []int{start}; len(busy) > 0; {
		var then []int
		add := func(node int, s Side, power float64) {
			if power < faintest {
				return
			}
			k := 4*node + int(s)
			if next[k] == 0 {
				then = append(then, k)
			}
			next[k] += power
		}
		for _, k := range busy {
			power := now[k]
			now[k] = 0
			node, in, inside := d.beyond(k/4, Side(k%4))
			if !inside {
				continue
			}
			if sink, taken := takes[4*node+int(in)]; taken {
				got[sink] += power
				continue
			}
			power *= passes
			add(node, (in+2)%sides, power*(1-across[node]))
			add(node, d.corner(node, in), power*across[node])
		}
		now, next, busy = next, now, then
	}
	return got
}

// beyond returns the node to which a waveguide leads and the side on which light comes there; false if it leaves the mesh.
func (d *Device) beyond(node int, out Side) (to int, in Side, inside bool) {
	row, column := node/d.columns, node%d.columns
	switch out {
	case North:
		row--
	case East:
		column++
	case South:
		row++
	default:
		column--
	}
	return row*d.columns + column, (out + 2) % sides, row >= 0 && row < d.rows && column >= 0 && column < d.columns
}

// corner returns where light leaves a node in cross.
func (d *Device) corner(node int, in Side) Side {
	if (node/d.columns+node%d.columns)%2 == 0 { // west with south, north with east
		return in ^ 1
	}
	return in ^ 3 // west with north, south with east
}
