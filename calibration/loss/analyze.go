package loss

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// Limits say what sticks out. The zero value is a good one.
type Limits struct {
	// Floor is what a port or a path must lose more than its peers to be flagged, however
	// little they scatter; 0 is DefaultFloor.
	Floor ocs.DB
}

// DefaultFloor is below what nobody cleans a connector.
const DefaultFloor ocs.DB = 1.0

// FlagKind is what is wrong.
type FlagKind string

const (
	DirtyIngress FlagKind = "dirty-ingress" // all its paths lose more than others
	DirtyEgress  FlagKind = "dirty-egress"
	DeadIngress  FlagKind = "dead-ingress" // all its paths are dark, though light enters
	DeadEgress   FlagKind = "dead-egress"
	BadPath      FlagKind = "bad-path"     // loses more than its ports explain
	DarkPath     FlagKind = "dark-path"    // and its ports have light elsewhere
	NoLight      FlagKind = "no-light"     // no light enters, so nothing is known
	SourceMoved  FlagKind = "source-moved" // the light that enters was not steady
	Leak         FlagKind = "leak"         // light at an egress without a circuit
	Monitor      FlagKind = "monitor"      // loses less than can be: the monitor reads wrong
	Unsteady     FlagKind = "unsteady"     // the light of a path did not come to rest
	CannotTell   FlagKind = "cannot-tell"  // so much is wrong that it cannot be said what
)

// Flag is one thing that is wrong, in numbers and for people.
type Flag struct {
	Kind FlagKind
	Port ocs.Port         // 0 if it is not about one port
	Side string           // of the port: "ingress" or "egress"
	Path ocs.CrossConnect // zero if it is not about one path
	// Excess is by how much the loss is above that of its peers, and U its expanded
	// uncertainty. Of what is dark it is a lower bound.
	Excess, U ocs.DB
	Text      string // "ingress 3 loses 3.1 dB more than its peers, ±0.2 dB"
	Do        string // "clean its connector and measure again"
}

// Model is losses as a level, a number for each port, and what is left for each path.
type Model struct {
	Level       ocs.DB
	Row, Column []ocs.DB // of ingress and egress ports; NaN where nothing was measured
	rest        []float64
	// Robust standard deviations.
	RowSpread, ColumnSpread, RestSpread ocs.DB
}

// Rest returns what is left of the loss of a path when level and ports are taken off; NaN where
// nothing was measured.
func (x *Model) Rest(row, column int) ocs.DB { return ocs.DB(x.rest[row*len(x.Column)+column]) }

// Model fits the model by median polish.
func (m *Map) Model() *Model {
	const (
		rounds = 50
		enough = 1e-4 // dB
	)
	rows, columns := len(m.Ingress), len(m.Egress)
	x := &Model{Row: make([]ocs.DB, rows), Column: make([]ocs.DB, columns), rest: make([]float64, rows*columns)}
	for i, c := range m.cells {
		x.rest[i] = math.NaN()
		if c.State == Measured {
			x.rest[i] = float64(c.Loss)
		}
	}
	line := make([]float64, 0, max(rows, columns))
	sweep := func(effects []ocs.DB, n int, at func(k, i int) int) (most float64) {
		for k := range effects {
			line = line[:0]
			for i := range n {
				if v := x.rest[at(k, i)]; !math.IsNaN(v) {
					line = append(line, v)
				}
			}
			if len(line) == 0 {
				effects[k] = ocs.DB(math.NaN())
				continue
			}
			mid := medianOf(line)
			effects[k] += ocs.DB(mid)
			for i := range n {
				x.rest[at(k, i)] -= mid
			}
			most = max(most, math.Abs(mid))
		}
		return most
	}
	byRow := func(k, i int) int { return k*columns + i }
	byColumn := func(k, i int) int { return i*columns + k }
	for range rounds {
		a := sweep(x.Row, columns, byRow)
		b := sweep(x.Column, rows, byColumn)
		if max(a, b) < enough {
			break
		}
	}
	for _, effects := range [][]ocs.DB{x.Row, x.Column} {
		if mid := ocs.DB(medianOf(finite(effects))); !math.IsNaN(float64(mid)) {
			x.Level += mid
			for i := range effects {
				effects[i] -= mid
			}
		}
	}
	x.RowSpread = spread(finite(x.Row))
	x.ColumnSpread = spread(finite(x.Column))
	var rest []float64
	for _, v := range x.rest {
		if !math.IsNaN(v) {
			rest = append(rest, v)
		}
	}
	x.RestSpread = restSpread(rest, len(finite(x.Row))+len(finite(x.Column))-1)
	return x
}

// restSpread is the robust standard deviation of what is left when so many parameters were fitted. As many of
// the rests, the smallest ones, are left out, since medians fit as many paths nearly or quite
// exactly: in a small map most of them (the rule of thumb for fits of least absolute deviations).
func restSpread(rest []float64, parameters int) ocs.DB {
	if len(rest) == 0 {
		return 0
	}
	for i := range rest {
		rest[i] = math.Abs(rest[i])
	}
	slices.Sort(rest)
	return ocs.DB(1.4826 * medianOf(rest[min(max(parameters, 0), len(rest)-1):]))
}

// finite returns the numbers among effects.
func finite(effects []ocs.DB) []float64 {
	var out []float64
	for _, e := range effects {
		if !math.IsNaN(float64(e)) {
			out = append(out, float64(e))
		}
	}
	return out
}

// medianOf returns the median and sorts x; NaN for none.
func medianOf(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	slices.Sort(x)
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}

// spread returns a standard deviation that outliers do not bend: 1.4826 times the median absolute
// deviation from the median. It is 0 for none.
func spread(x []float64) ocs.DB {
	if len(x) == 0 {
		return 0
	}
	x = slices.Clone(x)
	mid := medianOf(x)
	for i := range x {
		x[i] = math.Abs(x[i] - mid)
	}
	return ocs.DB(1.4826 * medianOf(x))
}

// side is one side of a switch, for what is said of either in the same way.
type side struct {
	name        string // "ingress"
	ports       []ocs.Port
	effects     []ocs.DB
	spread      ocs.DB
	dirty, dead FlagKind
	dark        []int  // paths of each port
	lit         []int  // measured
	all         []bool // dark, and so dead
	many        []bool // dark on many paths
}

// fewPorts is how many ports of a side are too few to say which of them sticks out.
const fewPorts = 4

// manyPorts is how many must there be to fall into two groups by more than chance.
const manyPorts = 6

// Analyze says what is wrong, ports first, worst first of each kind. An empty list is a
// map without a fault that is worth naming.
func (m *Map) Analyze(l Limits) []Flag {
	if l.Floor == 0 {
		l.Floor = DefaultFloor
	}
	x := m.Model()
	in := &side{name: "ingress", ports: m.Ingress, effects: x.Row, spread: x.RowSpread, dirty: DirtyIngress, dead: DeadIngress}
	out := &side{name: "egress", ports: m.Egress, effects: x.Column, spread: x.ColumnSpread, dirty: DirtyEgress, dead: DeadEgress}
	flags := m.sources()
	flags = append(flags, m.darkness(in, out)...)
	if m.Count(Measured) > 0 {
		flags = append(flags, m.outlyingPorts(in, x, l)...)
		flags = append(flags, m.outlyingPorts(out, x, l)...)
		flags = append(flags, m.outlyingPaths(in, out, x, l)...)
		flags = append(flags, m.gains()...)
	}
	for _, c := range m.Unsteady {
		flags = append(flags, Flag{
			Kind: Unsteady, Path: c, Text: fmt.Sprintf("path %v: its light did not come to rest", c),
			Do: "measure again; if it stays so, look at mirror and fibres, or take other ports",
		})
	}
	return flags
}

// sources are flags of the light that enters, and of that which should not leave.
func (m *Map) sources() (flags []Flag) {
	var dark, unknown []ocs.Port
	for i, s := range m.Sources {
		row := m.cells[i*len(m.Egress) : (i+1)*len(m.Egress)]
		if s.Moved {
			flags = append(flags, Flag{
				Kind: SourceMoved, Port: s.Port, Side: "ingress", Excess: s.Drift,
				Text: fmt.Sprintf("ingress %d: its source moved by %v meanwhile", s.Port, s.Drift),
				Do:   "let the source warm up, or take a steadier one, and measure again",
			})
		}
		if slices.ContainsFunc(row, func(c Cell) bool { return c.State == NoReference }) {
			if s.Watched {
				dark = append(dark, s.Port)
			} else {
				unknown = append(unknown, s.Port)
			}
		}
	}
	list := func(ports []ocs.Port, kind FlagKind, format, do string) {
		if len(ports) == 0 {
			return
		}
		f := Flag{Kind: kind, Do: do, Text: fmt.Sprintf(format, ocs.FormatPorts(ports))}
		if len(ports) == 1 {
			f.Port, f.Side = ports[0], "ingress"
			if kind == Leak {
				f.Side = "egress"
			}
		}
		flags = append(flags, f)
	}
	list(dark, NoLight, "ingress %s: no light enters, so nothing is known of the paths from there", "bring light there, or leave these ports out with --ports")
	list(unknown, NoLight, "ingress %s: no monitor and no reference, so nothing is known of the paths from there", "say what light enters with --reference or --launch-dbm")
	list(m.Leaks, Leak, "egress %s: light without a circuit", "see what else is on the port: its losses are not to be trusted")
	return flags
}

// darkness are flags of what is dark: whole ports, and paths of ports that have light elsewhere.
func (m *Map) darkness(in, out *side) (flags []Flag) {
	for _, s := range []*side{in, out} {
		s.dark, s.lit, s.all = make([]int, len(s.ports)), make([]int, len(s.ports)), make([]bool, len(s.ports))
	}
	least := map[ocs.Port]ocs.DB{}
	total := 0
	for i := range m.Ingress {
		for j := range m.Egress {
			switch c := m.At(i, j); c.State {
			case Dark:
				in.dark[i]++
				out.dark[j]++
				total++
				for _, p := range []ocs.Port{m.Ingress[i], m.Egress[j]} {
					if had, ok := least[p]; !ok || c.Loss < had {
						least[p] = c.Loss
					}
				}
			case Measured:
				in.lit[i]++
				out.lit[j]++
			}
		}
	}
	if total > 1 && m.Count(Measured) == 0 {
		return []Flag{{
			Kind: CannotTell, Text: fmt.Sprintf("all %s are dark, so it cannot be told which ports are at fault", natural.Count(total, "path")),
			Do: "see whether the switch moves its mirrors at all, and whether fibres are plugged where they are thought to be",
		}}
	}
	for _, s := range []*side{in, out} {
		for k, p := range s.ports {
			if s.lit[k] > 0 || s.dark[k] < 2 {
				continue
			}
			s.all[k] = true
			flags = append(flags, Flag{
				Kind: s.dead, Port: p, Side: s.name, Excess: least[p],
				Text: fmt.Sprintf("%s %d is dead: all %s are dark, their loss is above %.1f dB", s.name, p, natural.Count(s.dark[k], "path"), float64(least[p])),
				Do:   "clean and check its fibre, then try another port: its mirror or collimator may be gone",
			})
		}
	}
	// Ports that are dark on many paths, of those that are left.
	for _, s := range []*side{in, out} {
		s.many = make([]bool, len(s.ports))
	}
	left := func(s *side, k int) (dark int) {
		if s.all[k] {
			return 0
		}
		for x := range max(len(m.Ingress), len(m.Egress)) {
			i, j := k, x
			if s == out {
				i, j = x, k
			}
			if i < len(m.Ingress) && j < len(m.Egress) && m.At(i, j).State == Dark && !in.all[i] && !out.all[j] && !in.many[i] {
				dark++
			}
		}
		return dark
	}
	for _, s := range []*side{in, out} {
		for k, p := range s.ports {
			n := left(s, k)
			if n < 3 || 3*n < n+s.lit[k] {
				continue
			}
			flags = append(flags, Flag{
				Kind: DarkPath, Port: p, Side: s.name, Excess: least[p],
				Text: fmt.Sprintf("%s %d: %d of %s are dark, the others are not", s.name, p, n, natural.Count(n+s.lit[k], "path")),
				Do:   "measure again; if it stays, take another port and tell the maker: its mirror does not reach all others",
			})
			s.many[k] = true
		}
	}
	for i := range m.Ingress {
		for j := range m.Egress {
			c := m.At(i, j)
			if c.State != Dark || in.all[i] || out.all[j] || in.many[i] || out.many[j] {
				continue
			}
			flags = append(flags, Flag{
				Kind: DarkPath, Path: m.Path(i, j), Excess: c.Loss,
				Text: fmt.Sprintf("path %v is dark, its loss is above %.1f dB, and both ports have light on other paths", m.Path(i, j), float64(c.Loss)),
				Do:   "make it again; if it stays dark, take another pair of ports and tell the maker",
			})
		}
	}
	return flags
}

// outlyingPorts are flags of ports whose paths all lose more than those of others, or less.
func (m *Map) outlyingPorts(s *side, x *Model, l Limits) (flags []Flag) {
	n := len(finite(s.effects))
	if n < fewPorts {
		return nil
	}
	if f, group := m.halves(s, l); group {
		return []Flag{f}
	}
	for k, p := range s.ports {
		limit := max(l.Floor, min(ocs.DB(portLimit(n))*s.spread, m.beyondMonitors(x, s.lit[k], l)))
		e := s.effects[k]
		u := m.portU(x, s.lit[k])
		if a := ocs.DB(math.Abs(float64(e))); math.IsNaN(float64(e)) || a < limit || a < u {
			continue
		}
		f := Flag{
			Kind: s.dirty, Port: p, Side: s.name, Excess: e, U: u,
			Text: fmt.Sprintf("%s %d loses %.1f dB more than its peers, ±%.1f dB", s.name, p, float64(e), float64(u)),
			Do:   "clean its connector and measure again; if it stays, try another port, and check its monitor against a power meter",
		}
		if e < 0 {
			f.Kind = Monitor
			f.Text = fmt.Sprintf("%s %d seems to lose %.1f dB less than its peers, ±%.1f dB", s.name, p, float64(-e), float64(u))
			f.Do = "its monitor may read wrong: check it against a power meter"
		}
		if s.lit[k] == 1 {
			f.Text += ", as far as one path can tell"
		}
		flags = append(flags, f)
	}
	slices.SortStableFunc(flags, func(a, b Flag) int { return cmp.Compare(b.Excess, a.Excess) })
	return flags
}

// portU is the expanded uncertainty of what sets a port apart from its peers: what its monitor
// may be wrong by, and how well so many paths tell.
func (m *Map) portU(x *Model, paths int) ocs.DB {
	const rectangular, efficiency = 1.7320508075688772, 1.2533 // √3; of a median, √(π/2)
	return ocs.DB(2 * math.Hypot(float64(m.Accuracy)/rectangular, efficiency*float64(x.RestSpread)/math.Sqrt(float64(max(paths, 1)))))
}

// beyondMonitors is how far from its peers a port can be neither by what monitors of the stated accuracy read
// wrong, both ways, nor by chance: then it sticks out, however much its peers scatter. Connectors scatter too, so
// it is no less than two floors.
func (m *Map) beyondMonitors(x *Model, paths int, l Limits) ocs.DB {
	const efficiency = 1.2533 // of a median, √(π/2)
	chance := pathLimit(paths, x.live()) * efficiency / math.Sqrt(float64(max(paths, 1)))
	return max(2*m.Accuracy+ocs.DB(chance)*x.RestSpread, 2*l.Floor)
}

// live is on how many ports of the side that has fewer something was measured.
func (x *Model) live() int { return min(len(finite(x.Row)), len(finite(x.Column))) }

// halves reports whether the ports of a side fall into two groups of which neither is small: then
// nobody can say which of them is as it should be.
func (m *Map) halves(s *side, l Limits) (Flag, bool) {
	type one struct {
		port   ocs.Port
		effect float64
	}
	var list []one
	for k, e := range s.effects {
		if !math.IsNaN(float64(e)) {
			list = append(list, one{s.ports[k], float64(e)})
		}
	}
	slices.SortFunc(list, func(a, b one) int { return cmp.Compare(a.effect, b.effect) })
	n := len(list)
	if n < manyPorts {
		return Flag{}, false
	}
	third := max((n+2)/3, 2)
	at, gap := 0, 0.0
	for k := third; k <= n-third; k++ {
		if g := list[k].effect - list[k-1].effect; g > gap {
			at, gap = k, g
		}
	}
	// Monitors of the stated accuracy may be off by that much in two groups at most.
	if at == 0 || gap < float64(max(l.Floor, 2*m.Accuracy)) {
		return Flag{}, false
	}
	effects := func(of []one) (x []float64, ports []ocs.Port) {
		for _, o := range of {
			x, ports = append(x, o.effect), append(ports, o.port)
		}
		return x, ports
	}
	good, _ := effects(list[:at])
	bad, ports := effects(list[at:])
	if gap < 3*float64(max(spread(good), spread(bad))) {
		return Flag{}, false
	}
	apart := medianOf(bad) - medianOf(good)
	return Flag{
		Kind: CannotTell, Excess: ocs.DB(apart),
		Text: fmt.Sprintf("%s ports %s lose %.1f dB more than the other %d: with so many, it cannot be told whether these are bad or the monitors of the others read wrong",
			s.name, ocs.FormatPorts(ports), apart, len(good)),
		Do: "clean some of them and measure again, or compare with a table of before (--factory)",
	}, true
}

// pathNoise is how far out a rest of the map may be by chance.
func (m *Map) pathNoise(x *Model, in, out *side) ocs.DB {
	told := func(s *side) (n int) {
		for _, paths := range s.lit {
			if paths >= fewPaths {
				n++
			}
		}
		return n
	}
	return ocs.DB(pathLimit(told(in), told(out))) * x.RestSpread
}

// fewPaths of a port must there be for one of them to stick out: with two, a median is in
// the middle of both.
const fewPaths = 3

// outlyingPaths are flags of paths that lose more than their ports explain.
func (m *Map) outlyingPaths(in, out *side, x *Model, l Limits) (flags []Flag) {
	limit := max(l.Floor, m.pathNoise(x, in, out))
	for i := range m.Ingress {
		for j := range m.Egress {
			e := x.Rest(i, j)
			if math.IsNaN(float64(e)) || e < limit || in.lit[i] < fewPaths || out.lit[j] < fewPaths {
				continue
			}
			few := 1/float64(in.lit[i]) + 1/float64(out.lit[j])
			u := ocs.DB(math.Hypot(float64(m.RelativeU()), 2*1.2533*float64(x.RestSpread)*math.Sqrt(few)))
			if e < u {
				continue
			}
			flags = append(flags, Flag{
				Kind: BadPath, Path: m.Path(i, j), Excess: e, U: u,
				Text: fmt.Sprintf("path %v loses %.1f dB more than its ports explain, ±%.1f dB", m.Path(i, j), float64(e), float64(u)),
				Do:   "make it again; if it stays, take another pair of ports: a mirror points beside the fibre there",
			})
		}
	}
	slices.SortStableFunc(flags, func(a, b Flag) int { return cmp.Compare(b.Excess, a.Excess) })
	return flags
}

// gains is a flag of paths that seem to give light, more than the uncertainty allows.
func (m *Map) gains() (flags []Flag) {
	var first ocs.CrossConnect
	n, most := 0, ocs.DB(0)
	for i := range m.Ingress {
		for j := range m.Egress {
			c := m.At(i, j)
			if c.State != Measured || c.Loss >= -m.U() {
				continue
			}
			if n++; c.Loss < most {
				first, most = m.Path(i, j), c.Loss
			}
		}
	}
	if n == 0 {
		return nil
	}
	return []Flag{{
		Kind: Monitor, Path: first, Excess: most, U: m.U(),
		Text: fmt.Sprintf("%s seem to give light, path %v most, %.1f dB: that cannot be", natural.Count(n, "path"), first, float64(-most)),
		Do:   "the monitors or the reference are wrong: see their offsets and wavelengths, or say how accurate they are with --accuracy-db",
	}}
}
