package faults

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/topology/infinitehbd/model"
)

// Cluster is what the trace happens to.
type Cluster struct {
	Nodes int
	GPUs  int // of a node; 0: 4
	// PerServer is how many nodes share a server, and so a fault; 0: 2. Nodes of a server follow each other in the numbers.
	PerServer int
	// Order is the line of InfiniteHBD, such as [infinitehbd.Deploy] gives; nil: that of the numbers.
	Order []infinitehbd.Node
}

// Rule is how an architecture uses what is left.
type Rule uint8

// The rules. Waste is what is healthy and not in a full ring of the size asked for.
const (
	BigSwitch Rule = iota // any GPUs form a ring
	Bypass                // InfiniteHBD: Size is the reach K
	Unit                  // any GPUs of a unit of Size GPUs form a ring (NVL-x)
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

// Options of [Simulate].
type Options struct {
	// Step is the time between samples, days, from the start of the trace; 0 looks at every change, and weighs it by
	// its duration.
	Step float64
	// Servers is how many servers the trace is of, with those that it does not name since they never fail; 0: as many as it
	// names. A larger cluster has copies of it. Which server of the cluster is which of the trace is drawn at random, since
	// a trace does not say where servers stand; Placed takes them in order.
	Servers int
	Placed  bool
	// Shift is by how much of the trace each copy is later than the one before, as a share; what is beyond the end comes
	// at the start. 0: all fail at the same times.
	Shift float64
	// Half is the probability that a node of a server is concerned by a fault of the server; 0: [model.HalfRate] of the paper's
	// fault rate, 0.503. 1: faults take whole servers.
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
	Times   []float64
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

// Simulate replays a trace on a cluster. The error matches [ErrArgument] and says what does not fit.
func Simulate(t *Trace, c Cluster, archs []Architecture, tps []int, opt Options) (*Result, error) {
	c.GPUs, c.PerServer = cmp.Or(c.GPUs, 4), cmp.Or(c.PerServer, 2)
	opt.complete(t)
	if err := check(t, c, archs, tps, opt); err != nil {
		return nil, err
	}
	e := newEngine(c, archs, tps)
	e.replay(t, changes(t, c, opt), opt.Step)
	return e.result(), nil
}

// complete fills in what is not given.
func (o *Options) complete(t *Trace) {
	if o.Servers == 0 {
		o.Servers = len(t.Names)
	}
	if o.Half == 0 {
		o.Half = model.HalfRate(paperRate, 8)
	}
}

func check(t *Trace, c Cluster, archs []Architecture, tps []int, opt Options) error {
	const most = 1 << 22
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
	}
	switch {
	case c.Nodes < 1 || c.Nodes > most || c.GPUs < 1 || c.GPUs > 1024 || c.PerServer < 1 || c.Nodes%c.PerServer != 0:
		return bad("a cluster of %d nodes of %d GPUs, %d to a server: want whole servers, and up to %d nodes", c.Nodes, c.GPUs, c.PerServer, most)
	case opt.Servers < len(t.Names):
		return bad("the trace names %d servers, and %d are given", len(t.Names), opt.Servers)
	case len(t.Faults) == 0 && opt.Servers == 0:
		return bad("the trace has no server")
	case !(t.End > t.Start):
		return bad("the trace lasts from day %g to day %g", t.Start, t.End)
	case !(opt.Step >= 0) || opt.Step > 0 && (t.End-t.Start)/opt.Step > most:
		return bad("a step of %g days", opt.Step)
	case !(opt.Half > 0 && opt.Half <= 1):
		return bad("a probability of %g that a node is concerned", opt.Half)
	case !(opt.Shift >= 0 && opt.Shift < 1):
		return bad("a shift of %g: want at least 0 and less than 1", opt.Shift)
	case len(tps) == 0 || len(archs) == 0:
		return bad("nothing to compare")
	}
	for _, tp := range tps {
		if tp < 1 || tp%c.GPUs != 0 {
			return bad("TP-%d: want a multiple of the %d GPUs of a node", tp, c.GPUs)
		}
	}
	for _, a := range archs {
		if a.Rule > Static || a.Rule == Bypass && a.Size < 1 || a.Rule == Unit && (a.Size < c.GPUs || a.Size%c.GPUs != 0) {
			return bad("architecture %q with size %d", a.Name, a.Size)
		}
	}
	return checkOrder(c)
}

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
		shift := opt.Shift * float64(copied)
		shift -= float64(int(shift))
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

// engine has the state of all nodes.
type engine struct {
	c     Cluster
	order []int32 // of the line
	tps   []int
	down  []int16 // faults of each node
	dead  int     // nodes
	out   Result

	days, deadDays float64
}

func newEngine(c Cluster, archs []Architecture, tps []int) *engine {
	e := &engine{c: c, tps: tps, order: make([]int32, c.Nodes), down: make([]int16, c.Nodes), out: Result{GPUs: c.Nodes * c.GPUs}}
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
func (e *engine) replay(t *Trace, all []change, step float64) {
	next := 0
	apply := func(until float64) {
		for ; next < len(all) && all[next].at <= until; next++ {
			n := all[next].node
			was := e.down[n] > 0
			e.down[n] += int16(all[next].by)
			switch is := e.down[n] > 0; {
			case is && !was:
				e.dead++
			case was && !is:
				e.dead--
			}
		}
	}
	if step > 0 {
		for i := 0; t.Start+float64(i)*step <= t.End; i++ {
			at := t.Start + float64(i)*step
			apply(at)
			e.look(at, step)
		}
		return
	}
	for at := t.Start; at < t.End; {
		apply(at)
		until := t.End
		if next < len(all) {
			until = min(all[next].at, t.End)
		}
		e.look(at, until-at)
		at = until
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

// Events returns what a trace does to the nodes of a cluster, in the order of time; a node with several faults at once comes
// back when the last has ended, and one that is down for no time at all is left out. The error matches [ErrArgument].
func Events(t *Trace, c Cluster, opt Options) ([]Event, error) {
	c.GPUs, c.PerServer = cmp.Or(c.GPUs, 4), cmp.Or(c.PerServer, 2)
	opt.complete(t)
	if err := check(t, c, Architectures()[:1], []int{c.GPUs}, opt); err != nil {
		return nil, err
	}
	down := make([]int16, c.Nodes)
	var all []Event
	changes := changes(t, c, opt)
	for first := 0; first < len(changes); {
		at := changes[first].at
		was := map[int32]bool{}
		var nodes []int32
		for ; first < len(changes) && changes[first].at == at; first++ {
			x := changes[first]
			if _, seen := was[x.node]; !seen {
				was[x.node] = down[x.node] > 0
				nodes = append(nodes, x.node)
			}
			down[x.node] += int16(x.by)
		}
		for _, n := range nodes {
			if is := down[n] > 0; is != was[n] {
				all = append(all, Event{at - t.Start, infinitehbd.Node(n + 1), is})
			}
		}
	}
	return all, nil
}
