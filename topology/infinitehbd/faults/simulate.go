package faults

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

// Cluster is what the trace happens to.
type Cluster struct {
	Nodes int
	GPUs  int // of a node; 0: 4
	// PerServer is how many nodes share a server, and so its faults; 0: 2. Nodes of a server follow each other in the
	// numbers.
	PerServer int
	// Order is the line of InfiniteHBD, such as [infinitehbd.Deploy] gives; nil: that of the numbers.
	Order []infinitehbd.Node
}

// Rule is how an architecture uses what is left.
type Rule uint8

// The rules. Waste is what is healthy and not in a full ring of the size asked for.
const (
	BigSwitch Rule = iota // any GPUs form a ring
	Bypass                // InfiniteHBD: Size is the reach K, at which a node may have both its neighbours
	Unit                  // any GPUs of a unit of Size GPUs form a ring (NVL-x); those behind the last whole unit do not
	Static                // fixed rings; one with a fault is lost (TPUv4 within its cubes of 64, SiP-Ring)
)

// Architecture is one of those compared.
type Architecture struct {
	Name string
	Rule Rule
	Size int
}

// Architectures returns those that the paper compares. TPUv4 and SiP-Ring are one: as the paper describes them
// they lose the same GPUs.
func Architectures() []Architecture {
	return []Architecture{
		{"Big-Switch", BigSwitch, 0},
		{"InfiniteHBD K=2", Bypass, 2},
		{"InfiniteHBD K=3", Bypass, 3},
		{"NVL-36", Unit, 36},
		{"NVL-72", Unit, 72},
		{"NVL-576", Unit, 576},
		{"TPUv4, SiP-Ring", Static, 0},
	}
}

// Options of [Simulate] and [Events].
type Options struct {
	// Step is the time between samples, days, from the start of the trace to before its end; they count alike. 0 looks at
	// every change, and weighs it by its duration. Events has no use for it.
	Step float64
	// Servers is how many servers the trace is of, with those that it does not name since they never fail; 0: as many as it
	// names. A larger cluster has copies of it. Which server of the cluster is which of the trace is drawn at random, since
	// a trace does not say where servers stand; Placed takes them in order.
	Servers int
	Placed  bool
	// Shift is by how much of the trace each copy is later than the one before, as a share; what is beyond the end comes
	// at the start. 0: all fail at the same times.
	Shift float64
	// Half is the probability that a node of a server is concerned by a fault of the server; 0: [model.PartRate] of the
	// paper's fault rate, which is 0.503 for half a server of 8 GPUs, and 1 for a whole one. 1: faults take whole servers.
	Half float64
	Seed uint64
}

// paperRate is the mean share of faulty servers in the paper's trace.
const paperRate = 0.0266

// Row is what one architecture came to with rings of one size. Shares are of all GPUs.
type Row struct {
	Architecture Architecture `json:"-"`
	Name         string       `json:"architecture"`
	TP           int          `json:"tp"`
	Mean         float64      `json:"mean"` // waste: healthy, and in no ring
	P50          float64      `json:"p50"`
	P99          float64      `json:"p99"`
	Max          float64      `json:"max"`
	Usable       float64      `json:"usable_gpus"` // GPUs in rings, mean
	UsableP1     int          `json:"usable_gpus_p1"`
	samples      []sample
}

type sample struct {
	usable, wasted int
	days           float64
}

// Result is what a simulation came to.
type Result struct {
	GPUs    int     `json:"gpus"`
	Dead    float64 `json:"dead"` // share of nodes, mean
	DeadMax float64 `json:"dead_max"`
	Samples int     `json:"samples"`
	Rows    []Row   `json:"rows"`
	// Times are when the samples were taken: days, as in the trace.
	Times []float64 `json:"times"`
}

// Row returns the row of an architecture and size, or nil.
func (r *Result) Row(name string, tp int) *Row {
	i := slices.IndexFunc(r.Rows, func(x Row) bool { return x.Name == name && x.TP == tp })
	if i < 0 {
		return nil
	}
	return &r.Rows[i]
}

// Waiting returns the share of the time for which fewer GPUs than that can be used.
func (r *Row) Waiting(gpus int) float64 {
	all, short := 0.0, 0.0
	for _, s := range r.samples {
		all += s.days
		if s.usable < gpus {
			short += s.days
		}
	}
	return short / all
}

// Wasted returns the share of GPUs that are wasted at each of [Result.Times].
func (r *Row) Wasted(gpus int) []float64 {
	all := make([]float64, len(r.samples))
	for i, s := range r.samples {
		all[i] = float64(s.wasted) / float64(gpus)
	}
	return all
}

// change is a node that goes down or comes up.
type change struct {
	at   float64
	node int32
	by   int8
}

// Simulate replays a trace on a cluster: a node is down from the start of a fault on until before its end. The error
// matches [ErrArgument] and says what does not fit, or what is more than fits in memory.
func Simulate(t *Trace, c Cluster, archs []Architecture, tps []int, opt Options) (*Result, error) {
	if err := complete(t, &c, &opt); err != nil {
		return nil, err
	}
	if err := checkRows(c, archs, tps); err != nil {
		return nil, err
	}
	all := changes(t, c, opt)
	samples := float64(len(all) + 1)
	if opt.Step > 0 {
		samples = (t.End-t.Start)/opt.Step + 1
	}
	if most := float64(mostSamples / len(archs) / len(tps)); !(samples <= most) {
		return nil, fmt.Errorf("%w: %.3g samples of %d architectures and %d sizes: want at most %.0f, with a longer step",
			ErrArgument, samples, len(archs), len(tps), most)
	}
	e := newEngine(c, all, archs, tps)
	e.replay(t, opt.Step)
	return e.result(), nil
}

// What is held in memory at most: some hundred megabytes of each.
const (
	mostNodes   = 1 << 22
	mostChanges = 1 << 24
	mostSamples = 1 << 24
)

// complete fills in what is not given, and returns why a trace cannot be replayed on a cluster.
func complete(t *Trace, c *Cluster, o *Options) error {
	c.GPUs, c.PerServer = cmp.Or(c.GPUs, 4), cmp.Or(c.PerServer, 2)
	o.Servers = cmp.Or(o.Servers, len(t.Names))
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Nodes < 1 || c.Nodes > mostNodes:
		return bad("a cluster of %d nodes: want 1 to %d", c.Nodes, mostNodes)
	case c.GPUs < 1 || c.GPUs > 1024:
		return bad("nodes of %d GPUs: want 1 to 1024", c.GPUs)
	case c.PerServer < 1 || c.Nodes%c.PerServer != 0:
		return bad("%d nodes, %d to a server: want whole servers", c.Nodes, c.PerServer)
	case o.Servers < max(1, len(t.Names)) || o.Servers > mostNodes:
		return bad("a trace of %d servers that names %d: want as many or more, 1 to %d", o.Servers, len(t.Names), mostNodes)
	case !(o.Step >= 0) || math.IsInf(o.Step, 1):
		return bad("a step of %g days: want more than 0, or 0 for every change", o.Step)
	case !(o.Half >= 0 && o.Half <= 1):
		return bad("a probability of %g that a node is concerned: want up to 1, or 0 for that of the paper", o.Half)
	case !(o.Shift >= 0 && o.Shift < 1):
		return bad("a shift of %g: want at least 0 and less than 1", o.Shift)
	}
	o.Half = cmp.Or(o.Half, model.PartRate(paperRate, c.GPUs*c.PerServer, c.GPUs))
	copies := (c.Nodes/c.PerServer-1)/o.Servers + 1
	if n := 2 * float64(len(t.Faults)) * float64(c.PerServer) * float64(copies); n > mostChanges {
		return bad("%d copies of %d faults of %d nodes: want at most %d starts and ends",
			copies, len(t.Faults), c.PerServer, mostChanges)
	}
	if err := t.check(); err != nil {
		return err
	}
	return checkOrder(*c)
}

// checkRows returns why architectures and sizes of rings cannot be compared.
func checkRows(c Cluster, archs []Architecture, tps []int) error {
	if len(tps) == 0 || len(archs) == 0 {
		return fmt.Errorf("%w: %d architectures and %d sizes of rings: want one of each or more", ErrArgument, len(archs), len(tps))
	}
	for _, tp := range tps {
		if tp < 1 || tp%c.GPUs != 0 {
			return fmt.Errorf("%w: TP-%d: want a multiple of the %d GPUs of a node", ErrArgument, tp, c.GPUs)
		}
	}
	for _, a := range archs {
		switch {
		case a.Rule > Static:
			return fmt.Errorf("%w: architecture %q has rule %d: want 0 to %d", ErrArgument, a.Name, a.Rule, Static)
		case a.Rule == Bypass && a.Size < 1:
			return fmt.Errorf("%w: architecture %q has a reach of %d nodes: want 1 or more", ErrArgument, a.Name, a.Size)
		case a.Rule == Unit && (a.Size < 1 || a.Size%c.GPUs != 0):
			return fmt.Errorf("%w: architecture %q has units of %d GPUs: want a multiple of the %d of a node",
				ErrArgument, a.Name, a.Size, c.GPUs)
		}
	}
	return nil
}

// checkOrder returns why the line is not one of all nodes.
func checkOrder(c Cluster) error {
	if c.Order == nil {
		return nil
	}
	seen := make([]bool, c.Nodes)
	for _, n := range c.Order {
		if n < 1 || int(n) > c.Nodes || seen[n-1] {
			return fmt.Errorf("%w: node %d in the order of the line: want each of 1 to %d once", ErrArgument, n, c.Nodes)
		}
		seen[n-1] = true
	}
	if len(c.Order) != c.Nodes {
		return fmt.Errorf("%w: the line has %d nodes, and the cluster %d", ErrArgument, len(c.Order), c.Nodes)
	}
	return nil
}

// changes returns what happens to the nodes of a cluster, in the order of time.
func changes(t *Trace, c Cluster, opt Options) []change {
	rng := rand.New(rand.NewPCG(opt.Seed, 0xfa017))
	servers := c.Nodes / c.PerServer
	length := t.End - t.Start
	var all []change
	for first, copied := 0, 0; first < servers; first, copied = first+opt.Servers, copied+1 {
		shift := math.Mod(opt.Shift*float64(copied), 1)
		place := rng.Perm(opt.Servers)
		if opt.Placed {
			slices.Sort(place)
		}
		for _, f := range t.Faults {
			server := first + place[f.Server]
			if server >= servers {
				continue
			}
			for k := range c.PerServer {
				if rng.Float64() >= opt.Half {
					continue
				}
				node := int32(server*c.PerServer + k)
				for _, x := range shifted(f, t, shift*length) {
					all = append(all, change{x[0], node, 1}, change{x[1], node, -1})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	return all
}

// shifted returns when a fault is that comes later, in two pieces if it passes the end of the trace.
func shifted(f Fault, t *Trace, by float64) [][2]float64 {
	start, end := f.Start+by, f.End+by
	length := t.End - t.Start
	if start > t.End {
		start, end = start-length, end-length
	}
	if end > t.End {
		return [][2]float64{{start, t.End}, {t.Start, end - length}}
	}
	return [][2]float64{{start, end}}
}

// nodes are those of a cluster as time goes on.
type nodes struct {
	all  []change
	next int     // the first change that has not been
	down []int32 // faults of each node
	dead int     // nodes that have one or more
}

// to makes the changes up to a time, and those at it.
func (n *nodes) to(at float64) {
	for ; n.next < len(n.all) && n.all[n.next].at <= at; n.next++ {
		x := n.all[n.next]
		was := n.down[x.node]
		n.down[x.node] += int32(x.by)
		switch {
		case was == 0:
			n.dead++
		case n.down[x.node] == 0:
			n.dead--
		}
	}
}

// engine counts what architectures can use.
type engine struct {
	nodes
	c     Cluster
	order []int32 // of the line
	tps   []int
	out   Result

	days, deadDays float64
}

func newEngine(c Cluster, all []change, archs []Architecture, tps []int) *engine {
	e := &engine{nodes: nodes{all: all, down: make([]int32, c.Nodes)}, c: c, tps: tps, order: make([]int32, c.Nodes),
		out: Result{GPUs: c.Nodes * c.GPUs}}
	for i := range e.order {
		e.order[i] = int32(i)
		if c.Order != nil {
			e.order[i] = int32(c.Order[i] - 1)
		}
	}
	for _, a := range archs {
		for _, tp := range tps {
			e.out.Rows = append(e.out.Rows, Row{Architecture: a, Name: a.Name, TP: tp})
		}
	}
	return e
}

// replay goes through the changes, and looks at every step, or at every change.
func (e *engine) replay(t *Trace, step float64) {
	if step > 0 {
		for at := range days(t, step) {
			e.to(at)
			e.look(at, step)
		}
		return
	}
	for at := t.Start; at < t.End; {
		e.to(at)
		until := t.End
		if e.next < len(e.all) {
			until = min(e.all[e.next].at, t.End)
		}
		e.look(at, until-at)
		at = until
	}
}

// days yields when samples are taken.
func days(t *Trace, step float64) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for i := 0; ; i++ {
			if at := t.Start + float64(i)*step; at >= t.End || !yield(at) {
				return
			}
		}
	}
}

// look counts what can be used now, for a time of days.
func (e *engine) look(at, days float64) {
	e.out.Samples++
	e.out.Times = append(e.out.Times, at)
	share := float64(e.dead) / float64(e.c.Nodes)
	e.out.DeadMax = max(e.out.DeadMax, share)
	e.days += days
	e.deadDays += days * share
	healthy := (e.c.Nodes - e.dead) * e.c.GPUs
	for i := 0; i < len(e.out.Rows); i += len(e.tps) {
		rows := e.out.Rows[i : i+len(e.tps)]
		e.use(rows, days, healthy)
	}
}

// use adds a sample to the rows of an architecture.
func (e *engine) use(rows []Row, days float64, healthy int) {
	for j := range rows {
		rows[j].samples = append(rows[j].samples, sample{days: days})
	}
	add := func(gpus int) { // that can be used together
		for j := range rows {
			rows[j].samples[len(rows[j].samples)-1].usable += gpus / rows[j].TP * rows[j].TP
		}
	}
	switch a := rows[0].Architecture; a.Rule {
	case BigSwitch:
		add(healthy)
	case Bypass:
		e.pieces(a.Size, add)
	case Unit:
		e.units(a.Size/e.c.GPUs, add)
	case Static:
		for j := range rows {
			s := &rows[j].samples[len(rows[j].samples)-1]
			e.units(rows[j].TP/e.c.GPUs, func(gpus int) { s.usable += gpus / rows[j].TP * rows[j].TP })
		}
	}
	for j := range rows {
		s := &rows[j].samples[len(rows[j].samples)-1]
		s.wasted = healthy - s.usable
	}
}

// pieces calls add with the healthy GPUs of each piece of the line.
func (e *engine) pieces(hops int, add func(gpus int)) {
	piece, gap := 0, 0
	for _, n := range e.order {
		if e.down[n] == 0 {
			piece, gap = piece+1, 0
			continue
		}
		if gap++; gap == hops && piece > 0 {
			add(piece * e.c.GPUs)
			piece = 0
		}
	}
	add(piece * e.c.GPUs)
}

// units calls add with the healthy GPUs of each whole unit of so many nodes.
func (e *engine) units(nodes int, add func(gpus int)) {
	for first := 0; first+nodes <= e.c.Nodes; first += nodes {
		healthy := 0
		for _, d := range e.down[first : first+nodes] {
			if d == 0 {
				healthy++
			}
		}
		add(healthy * e.c.GPUs)
	}
}

func (e *engine) result() *Result {
	e.out.Dead = e.deadDays / e.days
	for i := range e.out.Rows {
		r := &e.out.Rows[i]
		wasted := make([]weighted, len(r.samples))
		usable := make([]weighted, len(r.samples))
		for k, s := range r.samples {
			wasted[k] = weighted{float64(s.wasted) / float64(e.out.GPUs), s.days}
			usable[k] = weighted{float64(s.usable), s.days}
			r.Mean += wasted[k].x * s.days / e.days
			r.Usable += usable[k].x * s.days / e.days
		}
		r.P50, r.P99, r.Max = at(wasted, 0.5), at(wasted, 0.99), at(wasted, 1)
		r.UsableP1 = int(at(usable, 0.01))
	}
	return &e.out
}

type weighted struct{ x, days float64 }

// at returns the smallest value that a share of q of the time is at most; xs is put in order.
func at(xs []weighted, q float64) float64 {
	slices.SortFunc(xs, func(a, b weighted) int { return cmp.Compare(a.x, b.x) })
	all := 0.0
	for _, x := range xs {
		all += x.days
	}
	sum := 0.0
	for _, x := range xs {
		if sum += x.days; sum >= q*all*(1-1e-12) {
			return x.x
		}
	}
	return xs[len(xs)-1].x
}

// Event is a node that goes down, or comes back.
type Event struct {
	At   float64 // days since the start of the trace
	Node infinitehbd.Node
	Down bool
}

// Events returns what a trace does to the nodes of a cluster, in the order of time; a node with several faults at once
// comes back when the last has ended, and one that is down for no time at all is left out. What is down at any time is
// what [Simulate] counts then, for the same options. The error matches [ErrArgument].
func Events(t *Trace, c Cluster, opt Options) ([]Event, error) {
	if err := complete(t, &c, &opt); err != nil {
		return nil, err
	}
	var list []Event
	n := nodes{all: changes(t, c, opt), down: make([]int32, c.Nodes)}
	was := map[int32]bool{} // of the nodes that change
	var order []int32       // in which they do
	for n.next < len(n.all) {
		clear(was)
		order = order[:0]
		at := n.all[n.next].at
		for _, x := range n.all[n.next:] {
			if x.at != at {
				break
			}
			if _, seen := was[x.node]; !seen {
				was[x.node] = n.down[x.node] > 0
				order = append(order, x.node)
			}
		}
		n.to(at)
		for _, x := range order {
			if is := n.down[x] > 0; is != was[x] {
				list = append(list, Event{at - t.Start, infinitehbd.Node(x + 1), is})
			}
		}
	}
	return list, nil
}
