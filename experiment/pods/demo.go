package pods

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/walk"
)

// DemoOptions of [Demo].
type DemoOptions struct {
	sequence.Options               // Store, History and the like
	Switching        time.Duration // of the emulated switches; 0 is 25 ms
	Topologies       int           // that the testbed goes through; 0 is 20, below 0 is none
	Events           int           // of half the links switched that are measured with NICs; 0 is 2, below 0 is none
	Firmware         string        // of these NICs; "" is connectx-6-dx/autoneg-off
	Large            bool          // also 32,768 ports on 256 switches: ten topologies are planned, and one emulated
	Seed             uint64
	// Tell is given each result as it is there. Nil prints nothing.
	Tell func(DemoStage)
}

// DemoStage is one thing that was shown.
type DemoStage struct {
	Name  string // "triangle"
	Title string
	Moved *Report // the last that was moved; nil if nothing was
	Lines []string
	Steps []DemoStep // of the stage "testbed"
	Table []StepRow  // of the stage "steps"
}

// DemoStep is one topology after another on the testbed.
type DemoStep struct {
	Plan time.Duration
	// Kept is which part of the circuits stays, by method; that of Best was moved.
	Kept  map[crosswiring.Method]float64
	Moved *Report
}

// demoMethods are what is compared.
var demoMethods = []crosswiring.Method{crosswiring.Best, crosswiring.Bisect, crosswiring.Euler}

// Demo shows Cross Wiring at work on emulated switches behind real sockets: three pods that Uniform wiring cannot join, the
// shape of the paper's testbed through random topologies, a dead switch, jobs that come and go, and what switching half the links costs a
// training step. Each change is a run in the store. The error is the first thing that is not as planned.
func Demo(ctx context.Context, opt DemoOptions) error {
	opt.Lab = opt.Lab.Forgetful() // without the memory of other demonstrations
	if opt.Switching == 0 {
		opt.Switching = 25 * time.Millisecond
	}
	if opt.Topologies == 0 {
		opt.Topologies = 20
	}
	if opt.Events == 0 {
		opt.Events = 2
	}
	if opt.Firmware == "" {
		opt.Firmware = "connectx-6-dx/autoneg-off"
	}
	if opt.Tell == nil {
		opt.Tell = func(DemoStage) {}
	}
	for _, stage := range []func(context.Context, DemoOptions) error{demoTriangle, demoTestbed, demoStaged, demoJobs, demoSteps, demoLarge} {
		if err := stage(ctx, opt); err != nil {
			return err
		}
	}
	return nil
}

// bed is an emulated lab and what is shown on it.
type bed struct {
	opt    DemoOptions
	file   *lab.File
	text   []byte
	cables *Cables
}

func newBed(f crosswiring.Fabric, opt DemoOptions) (*bed, error) {
	text, err := LabFile(f, LabOptions{Switching: opt.Switching, Seed: opt.Seed, Hosts: true, Firmware: opt.Firmware})
	if err != nil {
		return nil, err
	}
	b := &bed{opt: opt, text: text}
	if b.file, err = lab.Parse("crosswiring.yaml", text); err != nil {
		return nil, err
	}
	b.cables, err = FindCables(context.Background(), b.file, f, nil) // the lab has hosts: nobody is asked
	return b, err
}

// move brings the bed from one configuration to another; from may be nil.
func (b *bed) move(ctx context.Context, name string, from, to *crosswiring.Config, order Order, off ...crosswiring.Pair) (*Report, error) {
	o := b.opt.Options
	o.Name, o.LabText = "crosswiring-"+name, b.text
	return Apply(ctx, b.file, b.cables, from, to, Options{Options: o, Order: order, Off: off})
}

// Testbed is the shape of the paper's testbed: 128 NPUs in 4 pods, and 32 logical switches of 4 ports.
func Testbed() crosswiring.Fabric { return crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 4} }

// demoTriangle joins three pods with two switches (figure 1 of the paper).
func demoTriangle(ctx context.Context, opt DemoOptions) error {
	triangle, err := crosswiring.DemandOf([][]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}})
	if err != nil {
		return err
	}
	uniform := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1, Wiring: crosswiring.Uniform}
	best, err := crosswiring.FromCircuits(uniform, map[crosswiring.Switch][]crosswiring.Circuit{
		{Index: 0}: {{In: 0, Out: 1}, {In: 1, Out: 0}}, {Index: 1}: {{In: 1, Out: 2}, {In: 2, Out: 1}},
	})
	if err != nil {
		return err
	}
	ring, err := walk.Walk(uniform.Fibres(), map[crosswiring.Switch][]crosswiring.Circuit{
		{Index: 0}: {{In: 0, Out: 1}, {In: 1, Out: 2}, {In: 2, Out: 0}},
	})
	if err != nil {
		return err
	}
	if len(ring.Violations) == 0 {
		return fmt.Errorf("a ring of three pods on one switch passes as L2-compatible with uniform wiring")
	}
	cross := uniform
	cross.Wiring = crosswiring.Cross
	planned, err := crosswiring.Plan(cross, triangle)
	if err != nil {
		return err
	}
	for _, x := range []struct {
		c     *crosswiring.Config
		more  string
		links int
	}{{best, fmt.Sprintf("a ring on one switch has %d violations: %v", len(ring.Violations), ring.Violations[0]), 2}, {planned, "", 3}} {
		f := x.c.Fabric()
		b, err := newBed(f, opt)
		if err != nil {
			return err
		}
		r, err := b.move(ctx, f.Wiring.String(), nil, x.c, Paired)
		if err != nil {
			return err
		}
		if r.Followed != x.links {
			return fmt.Errorf("%v wiring has %s of a triangle: want %d", f.Wiring, natural.Count(r.Followed, "link"), x.links)
		}
		lines, err := realised(x.c, triangle)
		if err != nil {
			return err
		}
		for _, l := range x.c.Links() {
			lines = append(lines, fmt.Sprintf("%v", l))
		}
		if x.more != "" {
			lines = append(lines, x.more)
		}
		opt.Tell(DemoStage{Name: f.Wiring.String(), Moved: r, Lines: lines,
			Title: fmt.Sprintf("three pods, two switches, %v wiring: %d of 3 links", f.Wiring, r.Followed)})
	}
	return nil
}

// realised says how much of a demand there is.
func realised(c *crosswiring.Config, want *crosswiring.Demand) ([]string, error) {
	has := c.Demand()
	ltrr, err := crosswiring.LTRR(has, want)
	if err != nil {
		return nil, err
	}
	part, err := crosswiring.Realised(has, want)
	return []string{fmt.Sprintf("LTRR %.4f, realised %.4f", ltrr, part)}, err
}

// demoTestbed goes through random topologies on the shape of the testbed, and then loses a switch: with all ports in use, and with 6 of 8.
func demoTestbed(ctx context.Context, opt DemoOptions) error {
	f := Testbed()
	b, err := newBed(f, opt)
	if err != nil {
		return err
	}
	running, err := random(f, opt.Seed)
	if err != nil {
		return err
	}
	r, err := b.move(ctx, "cold", nil, running, Paired)
	if err != nil {
		return err
	}
	stage := DemoStage{Name: "testbed",
		Title: fmt.Sprintf("4 pods, 32 switches of 4 ports: random topologies one after another, %d of them", max(0, opt.Topologies))}
	var demand *crosswiring.Demand
	for i := range opt.Topologies {
		if demand, err = crosswiring.RandomFull(f, opt.Seed+uint64(i)+1); err != nil {
			return err
		}
		step, next, err := rewire(running, demand, opt.Seed)
		if err != nil {
			return err
		}
		if step.Moved, err = b.move(ctx, "topology", running, next, Paired); err != nil {
			return err
		}
		stage.Steps, running, r = append(stage.Steps, step), next, step.Moved
	}
	stage.Moved, stage.Lines = r, stepLines(stage.Steps)
	opt.Tell(stage)
	if err := b.deadSwitch(ctx, running, crosswiring.Switch{Group: 1, Index: 4}); err != nil {
		return err
	}
	less := f
	less.SpinePorts -= 2
	if demand, err = crosswiring.RandomFull(less, opt.Seed); err != nil {
		return err
	}
	if running, err = crosswiring.Plan(f, demand); err != nil {
		return err
	}
	return b.deadSwitch(ctx, running, crosswiring.Switch{Group: 1, Index: 4})
}

func random(f crosswiring.Fabric, seed uint64) (*crosswiring.Config, error) {
	d, err := crosswiring.RandomFull(f, seed)
	if err != nil {
		return nil, err
	}
	return crosswiring.Plan(f, d)
}

// rewire plans by all methods that are compared.
func rewire(running *crosswiring.Config, d *crosswiring.Demand, seed uint64) (DemoStep, *crosswiring.Config, error) {
	step := DemoStep{Kept: map[crosswiring.Method]float64{}}
	var best *crosswiring.Config
	for _, m := range demoMethods {
		began := time.Now()
		next, _, err := crosswiring.Rewire(running, d, crosswiring.RewireOptions{Method: m, Seed: seed})
		if err != nil {
			return step, nil, err
		}
		if m == crosswiring.Best {
			best, step.Plan = next, time.Since(began)
		}
		if step.Kept[m], err = crosswiring.Kept(running, next); err != nil {
			return step, nil, err
		}
	}
	return step, best, nil
}

// stepLines is a table of topologies.
func stepLines(steps []DemoStep) []string {
	lines := []string{
		"kept is the part of the circuits that stays as planned, and by two methods it is compared with; commit is from the first",
		"command until all is read back; a link is down from when the first of its ports goes dark until there is light both ways",
		"topology  plan ms  kept/bisect/euler  removed  per switch  rewired ports  untouched links  commit ms  link down ms: median / most",
	}
	for i, s := range steps {
		r := s.Moved
		most := 0
		for _, x := range r.Switches {
			most = max(most, x.Removed)
		}
		lines = append(lines, fmt.Sprintf("%8d  %7.2f  %4.2f/%4.2f/%4.2f     %7d  %10s  %13d  %15d  %9.0f  %s", i+1, inMS(s.Plan),
			s.Kept[crosswiring.Best], s.Kept[crosswiring.Bisect], s.Kept[crosswiring.Euler], r.Change.Removed, fmt.Sprintf("0 to %d", most),
			r.Change.Rewired, r.Change.Links, inMS(longest(r.Rounds)), downText(r.Links)))
	}
	return lines
}

func inMS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func longest(rounds []Round) (d time.Duration) {
	for _, r := range rounds {
		d = max(d, r.Took)
	}
	return d
}

// downText is "51 / 80 ±6 (2 of 40 not seen)" of how long links were down.
func downText(links []LinkDown) string {
	var known []timeline.Interval
	for _, l := range links {
		if l.Known {
			known = append(known, l.For)
		}
	}
	text := "-"
	if len(known) > 0 {
		median, most := timeline.Quantile(known, 0.5), timeline.Quantile(known, 1)
		text = fmt.Sprintf("%.0f / %.0f ±%.0f", inMS(time.Duration(median.Mid())), inMS(time.Duration(most.Mid())),
			math.Ceil(inMS(max(median.Width(), most.Width())/2)))
	}
	if n := len(links) - len(known); n > 0 {
		text += fmt.Sprintf(" (%d of %d not seen)", n, len(links))
	}
	return text
}

// demoStaged moves two pairs of four pods at once, which cuts some off from each other, and then in rounds.
func demoStaged(ctx context.Context, opt DemoOptions) error {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	from, to, err := cutting(f, opt.Seed)
	if err != nil {
		return err
	}
	b, err := newBed(f, opt)
	if err != nil {
		return err
	}
	for _, order := range []Order{Paired, Staged} {
		r, err := b.move(ctx, string(order), from, to, order)
		if err != nil {
			return err
		}
		opt.Tell(DemoStage{Name: string(order), Title: fmt.Sprintf("four pods and two pairs of switches, %s", natural.Count(len(r.Rounds), "round")),
			Moved: r, Lines: []string{apartText(r)}})
	}
	return nil
}

// cutting returns random topologies between which pods are cut off from each other unless rounds are made.
func cutting(f crosswiring.Fabric, seed uint64) (from, to *crosswiring.Config, err error) {
	for range 1000 {
		if from, err = random(f, seed); err != nil {
			return nil, nil, err
		}
		if to, err = random(f, seed+1); err != nil {
			return nil, nil, err
		}
		if rounds, err := crosswiring.Stages(from, to); err == nil && len(rounds) > 1 {
			return from, to, nil
		}
		seed += 2
	}
	return nil, nil, fmt.Errorf("no two topologies of 1000 need rounds")
}

// apartText says how many pairs of pods were apart.
func apartText(r *Report) string {
	apart, unknown := 0, 0
	for _, p := range r.Pods {
		switch {
		case !p.Known:
			unknown++
		case p.For.Latest > 0:
			apart++
		}
	}
	text := fmt.Sprintf("%d of %s of pods had no link for a while", apart, natural.Count(len(r.Pods), "pair"))
	if unknown > 0 {
		text += fmt.Sprintf(" (not known of %d)", unknown)
	}
	return text
}

// deadSwitch loses a switch: its partner is of no use, and the links of the pair go to others as far as these have room.
func (b *bed) deadSwitch(ctx context.Context, running *crosswiring.Config, dead crosswiring.Switch) error {
	f := running.Fabric()
	pair := f.PairOf(dead)
	began := time.Now()
	rest, plan, err := crosswiring.Rewire(running, running.Demand(),
		crosswiring.RewireOptions{Seed: b.opt.Seed, Without: []crosswiring.Pair{pair}})
	if err != nil && !errors.Is(err, crosswiring.ErrPartial) {
		return err
	}
	took := time.Since(began)
	if lost := plan.LostLinks(); lost > f.Pods {
		return fmt.Errorf("without %v %s are lost: a pair carries %d", pair, natural.Count(lost, "link"), f.Pods)
	}
	broken, _ := b.file.Switch(b.cables.Name(dead))
	was := *broken
	defer func() { *broken = was }()
	broken.Emulate, broken.URL = nil, "tl1://admin@127.0.0.1:1" // nobody answers there
	r, err := b.move(ctx, "dead-switch", running, rest, Paired, pair)
	if err != nil {
		return err
	}
	used := running.Demand().Degree(dead.Group, 0)
	b.opt.Tell(DemoStage{Name: "dead-switch", Moved: r,
		Title: fmt.Sprintf("switch %v (%s) dies with %d of %d ports in use: %v is of no use", dead, b.cables.Name(dead), used, f.SpinePorts, pair),
		Lines: []string{fmt.Sprintf("planned in %.2f ms: of %s on the pair %d found another, %s of the demand are lost (at most %d)", inMS(took),
			natural.Count(plan.Displaced, "link"), plan.Rerouted, natural.Count(plan.LostLinks(), "link"), f.Pods)}})
	return nil
}

// demoLarge plans topologies of 32,768 ports, and brings the first two about.
func demoLarge(ctx context.Context, opt DemoOptions) error {
	if !opt.Large {
		return nil
	}
	f := crosswiring.Fabric{Pods: 128, SpinePorts: 16, Groups: 16}
	d, err := crosswiring.RandomFull(f, opt.Seed)
	if err != nil {
		return err
	}
	began := time.Now()
	running, err := crosswiring.Plan(f, d)
	if err != nil {
		return err
	}
	lines := []string{fmt.Sprintf("from nothing: %.1f ms for %d circuits", inMS(time.Since(began)), running.Count()),
		"method        plan ms p50 / p99  kept"}
	const topologies = 10
	demands := make([]*crosswiring.Demand, topologies)
	for i := range demands {
		if d, err = crosswiring.Swapped(d, 0.1, opt.Seed+uint64(i)); err != nil {
			return err
		}
		demands[i] = d
	}
	for _, m := range demoMethods {
		line, err := consecutive(ctx, running, demands, m, opt.Seed)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	opt.Tell(DemoStage{Name: "large", Lines: lines,
		Title: fmt.Sprintf("128 pods, 256 switches of 128 ports: %d topologies that each move a tenth of the links, planned", topologies)})
	next, _, err := crosswiring.Rewire(running, demands[0], crosswiring.RewireOptions{Seed: opt.Seed})
	if err != nil {
		return err
	}
	return lightLarge(ctx, opt, running, next)
}

// lightLarge brings the first of two configurations of a large fabric about on emulated switches, without hosts, and then the second.
func lightLarge(ctx context.Context, opt DemoOptions, running, next *crosswiring.Config) error {
	f := running.Fabric()
	o := LabOptions{Switching: opt.Switching, Seed: opt.Seed}
	size, err := o.fit(f)
	if err != nil {
		return err
	}
	opt.Lab.Timeout = max(opt.Lab.Timeout, time.Minute) // 256 servers on a few processors
	b := &bed{opt: opt}
	if b.text, err = LabFile(f, o); err != nil {
		return err
	}
	if b.file, err = lab.Parse("crosswiring.yaml", b.text); err != nil {
		return err
	}
	b.cables, err = FindCables(ctx, b.file, f, func(context.Context, string) (ocs.Geometry, error) { return ocs.TwoSided(size, size), nil })
	if err != nil {
		return err
	}
	r, err := b.move(ctx, "large", running, next, Paired)
	if err != nil {
		return err
	}
	opt.Tell(DemoStage{Name: "large-light", Moved: r, Title: fmt.Sprintf("the first of them on %d emulated switches", len(f.Switches())),
		Lines: []string{fmt.Sprintf("from nothing to %d circuits: %.1f s from the first command to the last reply; then to the first topology: "+
			"%.1f s until all was read back", running.Count(), r.Cold.Seconds(), longest(r.Rounds).Seconds())}})
	return nil
}

// consecutive plans topologies one after another by a method.
func consecutive(
	ctx context.Context, running *crosswiring.Config, demands []*crosswiring.Demand, m crosswiring.Method, seed uint64,
) (string, error) {
	var took []timeline.Interval
	sum := 0.0
	for _, d := range demands {
		if err := context.Cause(ctx); err != nil {
			return "", err
		}
		began := time.Now()
		next, _, err := crosswiring.Rewire(running, d, crosswiring.RewireOptions{Method: m, Seed: seed})
		if err != nil {
			return "", err
		}
		took = append(took, timeline.Point(time.Since(began).Nanoseconds()))
		kept, err := crosswiring.Kept(running, next)
		if err != nil {
			return "", err
		}
		sum += kept
		running = next
	}
	return fmt.Sprintf("%-12s  %8.1f / %6.1f  %.3f", m, inMS(time.Duration(timeline.Quantile(took, 0.5).Mid())),
		inMS(time.Duration(timeline.Quantile(took, 0.99).Mid())), sum/float64(len(demands))), nil
}

// demoJobs has jobs come and go, each a ring of pods in one group, at most at half of the ports of a spine and then at four
// fifths of all. The last arrival is moved.
func demoJobs(ctx context.Context, opt DemoOptions) error {
	f := crosswiring.Fabric{Pods: 8, SpinePorts: 8, Groups: 1}
	stage := DemoStage{Name: "jobs",
		Title: fmt.Sprintf("%d jobs come and go among %d pods of %d ports; the last arrives on the light", arrivals, f.Pods, f.SpinePorts)}
	half, err := newQueue(f, f.SpinePorts/2, 0.4, opt.Seed)
	if err != nil {
		return err
	}
	if err := half.run(); err != nil {
		return err
	}
	if half.moved[0] != arrivals {
		return fmt.Errorf("running links moved for %d arrivals, with half of the ports in use or fewer", arrivals-half.moved[0])
	}
	full, err := newQueue(f, f.SpinePorts, 0.8, opt.Seed)
	if err != nil {
		return err
	}
	if err := full.run(); err != nil {
		return err
	}
	b, err := newBed(f, opt)
	if err != nil {
		return err
	}
	if stage.Moved, err = b.move(ctx, "arrival", full.before, full.circuits.Config(), Auto); err != nil {
		return err
	}
	stage.Lines = []string{"with at most half of the ports of a spine in use: " + half.text(), "at 80 % of the ports: " + full.text()}
	opt.Tell(stage)
	return nil
}

// arrivals is how many jobs come.
const arrivals = 200

// queue is the jobs that run.
type queue struct {
	fabric   crosswiring.Fabric
	most     int     // links of a spine
	target   float64 // part of the ports that is in use before a job comes, at most
	circuits *crosswiring.Incremental
	rng      *rand.Rand
	jobs     [][]crosswiring.Link
	degree   []int // links by pod

	before *crosswiring.Config // the last arrival
	moved  map[int]int         // arrivals by running links that moved for them
}

func newQueue(f crosswiring.Fabric, most int, target float64, seed uint64) (*queue, error) {
	c, err := crosswiring.NewConfig(f)
	if err != nil {
		return nil, err
	}
	q := &queue{fabric: f, most: most, target: target, rng: rand.New(rand.NewPCG(seed, 1)), degree: make([]int, f.Pods), moved: map[int]int{}}
	q.circuits, err = crosswiring.NewIncremental(c)
	return q, err
}

func (q *queue) run() error {
	for range arrivals {
		for q.load() > q.target {
			if err := q.leave(); err != nil {
				return err
			}
		}
		q.before = q.circuits.Config()
		n, err := q.arrive()
		if err != nil {
			return err
		}
		q.moved[n]++
	}
	return nil
}

// text says how many links moved.
func (q *queue) text() string {
	links, most := 0, 0
	for n, times := range q.moved {
		links, most = links+n*times, max(most, n)
	}
	if most == 0 {
		return fmt.Sprintf("none of %d arrivals moved a running link", arrivals)
	}
	return fmt.Sprintf("%d of %d arrivals moved no running link, the others %.1f in the mean and %d at most", q.moved[0], arrivals,
		float64(links)/float64(arrivals-q.moved[0]), most)
}

// load is which part of the ports is in use.
func (q *queue) load() float64 {
	used := 0
	for _, n := range q.degree {
		used += n
	}
	return float64(used) / float64(q.fabric.Ports())
}

// arrive has a job come: a ring of 3 or more pods, or a link between two, of pods that have ports left.
func (q *queue) arrive() (moved int, err error) {
	var free []int
	for p, n := range q.degree {
		if n+2 <= q.most {
			free = append(free, p)
		}
	}
	if len(free) < 2 {
		return 0, nil
	}
	q.rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	ring := free[:2+q.rng.IntN(min(4, len(free)-1))]
	var links []crosswiring.Link
	for i, p := range ring {
		if next := ring[(i+1)%len(ring)]; len(ring) > 2 || i == 0 {
			links = append(links, crosswiring.Link{A: p, B: next})
		}
	}
	for _, l := range links {
		n, err := q.circuits.Insert(l)
		if err != nil {
			return moved, err
		}
		moved += n
		q.degree[l.A]++
		q.degree[l.B]++
	}
	q.jobs = append(q.jobs, links)
	return moved, nil
}

// leave has a job go.
func (q *queue) leave() error {
	i := q.rng.IntN(len(q.jobs))
	for _, l := range q.jobs[i] {
		if err := q.circuits.Remove(l); err != nil {
			return err
		}
		q.degree[l.A]--
		q.degree[l.B]--
	}
	q.jobs = slices.Delete(q.jobs, i, i+1)
	return nil
}

// demoSteps measures what switching half the links costs, and models training steps by it.
func demoSteps(ctx context.Context, opt DemoOptions) error {
	if opt.Events < 0 {
		return nil
	}
	f := Testbed()
	f.Groups = 1 // of which the groups are alike: what counts is the last link of an event
	b, err := newBed(f, opt)
	if err != nil {
		return err
	}
	o := opt.Options
	o.Name, o.LabText = "crosswiring-half", b.text
	events, err := Measure(ctx, b.file, b.cables, opt.Events, opt.Seed, o)
	if err != nil {
		return err
	}
	var lines []string
	for _, e := range events {
		lines = append(lines, fmt.Sprintf("measured on one group: %d of %d links switched, light back after %v, links up after %v (run %s)",
			e.Moved, e.Links, e.Light, e.Carrier, e.Run))
	}
	table, err := StepTable(StepModel{Outages: Outages(events)})
	if err != nil {
		return err
	}
	deduced, err := StepTable(StepModel{})
	if err != nil {
		return err
	}
	lines = append(lines, tableLines(table, deduced)...)
	opt.Tell(DemoStage{Name: "steps", Lines: lines, Table: table,
		Title: "half the links switched every 30, 60, 90 s, and training steps modelled by it (table 1)"})
	return nil
}

// tableLines are table 1 of the paper beside two models of it: with outages that were measured, and with the one that is deduced.
func tableLines(measured, deduced []StepRow) []string {
	lines := []string{fmt.Sprintf("modelled, not trained: steps of %v that stall for the outage of each event in them, as measured until links are up,", PaperStep),
		fmt.Sprintf("or for the %v deduced from the paper's 30 s; beside them by how much they differ from the paper", PaperOutage),
		"every   paper       measured outage    deduced outage     stall that gives the paper's"}
	var fits []string
	for i, r := range measured {
		every, stall := "never", "-"
		if r.Every > 0 {
			every, stall = fmt.Sprintf("%.0f s", r.Every.Seconds()), fmt.Sprintf("%.2f s", r.PaperStall().Seconds())
			fits = append(fits, stall)
		}
		lines = append(lines, fmt.Sprintf("%-6s  %6.1f ms  %s  %s  %s", every, inMS(r.Paper), besidePaper(r), besidePaper(deduced[i]), stall))
	}
	return append(lines, fmt.Sprintf("no constant stall fits the paper's three: they ask for %s", strings.Join(fits, ", ")))
}

// besidePaper is "1242.2 ms (+5.7 %)".
func besidePaper(r StepRow) string {
	return fmt.Sprintf("%6.1f ms (%+.1f %%)", inMS(r.Mean), 100*(float64(r.Mean)/float64(r.Paper)-1))
}
