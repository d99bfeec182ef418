package jobs

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/topology/crosswiring"
	"github.com/ocslab/ocslab/topology/crosswiring/baseline"
)

// Architecture is a wiring with a planner.
type Architecture struct {
	Name string
	// PlanTime is how long a plan takes. Plans wait for each other. 0 is none at all.
	PlanTime time.Duration
	// Together is that a plan is for all jobs that wait for one when it begins; otherwise it is for one.
	Together bool
	// Planner finds which links there are, when a job with links starts and when one ends. nil is that there are all: Cross
	// wiring has them of every demand that fits the ports (Theorem 4.1), as has an ideal switch.
	Planner *baseline.Planner
}

// Planning times at 32,768 GPUs. Those of the paper are the longest it measured.
const (
	PaperILP   = 435070 * time.Millisecond // integer linear program
	PaperMDMCF = 19370 * time.Millisecond
	OursTime   = 100 * time.Millisecond // crosswiring.Rewire, a bound; see its benchmarks
)

// Architectures returns an ideal switch, which is the first, Cross wiring with our planning time and with those of the
// paper, and Uniform wiring with a greedy planner, and with Helios-like matchings, that take no time.
func Architectures() []Architecture {
	all := []Architecture{
		{Name: "ideal"},
		{Name: "cross, ours", PlanTime: OursTime},
		{Name: "cross, mdmcf 19.4 s", PlanTime: PaperMDMCF},
		{Name: "cross, ilp 435 s", PlanTime: PaperILP},
		{Name: "cross, ilp 435 s, together", PlanTime: PaperILP, Together: true},
	}
	for _, p := range baseline.UniformPlanners() {
		all = append(all, Architecture{Name: p.Name, Planner: &p})
	}
	return all
}

// Options say what jobs are like.
type Options struct {
	// Communication is the share of its time, from 0 to 1, that a job of several pods spends on links between them when it
	// has all. 0 is 0.3, assumed; below 0 is none.
	Communication float64
}

func (o Options) communication() (float64, error) {
	switch {
	case o.Communication == 0:
		return .3, nil
	case o.Communication < 0:
		return 0, nil
	case !(o.Communication <= 1):
		return 0, fmt.Errorf("%w: they spend %v of their time on links: want 0 to 1", ErrJobs, o.Communication)
	}
	return o.Communication, nil
}

// Done is what became of a job.
type Done struct {
	Job
	Pods    int           // 1 is that it needed no links
	Placed  time.Duration // when its GPUs were taken
	Planned time.Duration // when its plan began; Placed if it needed none
	Start   time.Duration
	Finish  time.Duration
}

// Wait returns JWT: from arrival to start, with the planning time.
func (d Done) Wait() time.Duration { return d.Start - d.Arrive }

// RunTime returns JRT: from start to finish.
func (d Done) RunTime() time.Duration { return d.Finish - d.Start }

// Completion returns JCT: from arrival to finish.
func (d Done) Completion() time.Duration { return d.Finish - d.Arrive }

// Simulate runs jobs, which are in order of arrival, to their end, and returns what became of each, in the same order. The error
// matches ErrJobs, crosswiring.ErrFabric, or is what the planner returns. The wiring of the fabric is that of the planner.
func Simulate(f crosswiring.Fabric, all []Job, a Architecture, o Options) ([]Done, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	communication, err := o.communication()
	if err != nil {
		return nil, err
	}
	if a.PlanTime < 0 || a.PlanTime > Longest {
		return nil, fmt.Errorf("%w: a plan of %s takes %v: want 0 to %v", ErrJobs, a.Name, a.PlanTime, Longest)
	}
	for i, j := range all {
		if j.Blocks < 1 || j.Blocks > f.Pods*f.Pairs() || j.Run < 0 || j.Arrive < 0 || i > 0 && j.Arrive < all[i-1].Arrive {
			return nil, fmt.Errorf("%w: job %d comes at %v, runs %v and wants %d blocks: want them in order, and 1 to %d blocks",
				ErrJobs, i, j.Arrive, j.Run, j.Blocks, f.Pods*f.Pairs())
		}
	}
	s := newSimulation(f, all, a, communication)
	if err := s.run(); err != nil {
		return nil, err
	}
	done := make([]Done, len(all))
	for i, j := range s.jobs {
		done[i] = j.Done
	}
	return done, nil
}

// share is blocks of a pod.
type share struct{ pod, blocks int }

// job is a job on its way.
type job struct {
	Done
	ring []share // by pod
	left float64 // seconds to run with all links
	rate float64 // of that by second
}

// rest returns how many seconds it runs on, at the rate that it has: without end if that is 0.
func (j *job) rest() float64 {
	if j.left == 0 {
		return 0
	}
	return j.left / j.rate
}

// simulation is a queue.
type simulation struct {
	fabric        crosswiring.Fabric // of one group: what jobs want of all groups is the same
	arch          Architecture
	communication float64

	now      time.Duration
	jobs     []*job
	come     int    // jobs that have arrived
	waiting  []*job // for GPUs
	placed   []*job // for a plan
	planning []*job
	planned  time.Duration // when the plan is ready, if there is one
	active   []*job
	free     []int // blocks, by pod
	config   *crosswiring.Config
}

func newSimulation(f crosswiring.Fabric, all []Job, a Architecture, communication float64) *simulation {
	f.Groups, f.Wiring = 1, crosswiring.Cross
	if a.Planner != nil {
		f.Wiring = a.Planner.Wiring
	}
	s := &simulation{fabric: f, arch: a, communication: communication, free: make([]int, f.Pods)}
	for i := range s.free {
		s.free[i] = f.Pairs()
	}
	for _, j := range all {
		s.jobs = append(s.jobs, &job{Done: Done{Job: j}, left: j.Run.Seconds()})
	}
	return s
}

// run goes from event to event: jobs that end, plans that are ready, and jobs that come, in this order if at the same time.
func (s *simulation) run() error {
	for {
		next, ending := never, -1
		for i, j := range s.active {
			if at := s.after(j.rest()); at < next {
				next, ending = at, i
			}
		}
		ready := len(s.planning) > 0 && s.planned < next
		if ready {
			next = s.planned
		}
		comes := s.come < len(s.jobs) && s.jobs[s.come].Arrive < next
		if comes {
			next = s.jobs[s.come].Arrive
		}
		if next == never {
			break
		}
		s.advance(next)
		var err error
		switch {
		case comes:
			s.waiting = append(s.waiting, s.jobs[s.come])
			s.come++
		case ready:
			started := s.planning
			s.planning = nil
			err = s.start(started)
		default:
			err = s.end(ending)
		}
		if err == nil {
			err = s.dispatch()
		}
		if err != nil {
			return err
		}
	}
	if n := len(s.jobs) - s.come + len(s.active) + len(s.waiting) + len(s.placed) + len(s.planning); n > 0 {
		return fmt.Errorf("%w: %d of them do not end within %v, such as without any links by %s", ErrJobs, n, never, s.arch.Name)
	}
	return nil
}

// never is beyond the end of any simulation.
const never time.Duration = math.MaxInt64

// after returns the time so many seconds from now.
func (s *simulation) after(wait float64) time.Duration {
	if d := seconds(wait); d < never-s.now {
		return s.now + d
	}
	return never
}

// advance lets jobs run until a time.
func (s *simulation) advance(to time.Duration) {
	for _, j := range s.active {
		j.left = max(j.left-(to-s.now).Seconds()*j.rate, 0)
	}
	s.now = to
}

// dispatch gives GPUs to jobs that wait, in order, and begins a plan if there is none.
func (s *simulation) dispatch() error {
	var alone, rest []*job
	for _, j := range s.waiting {
		if j.ring = s.place(j.Blocks); j.ring == nil {
			rest = append(rest, j)
			continue
		}
		for _, p := range j.ring {
			s.free[p.pod] -= p.blocks
		}
		j.Pods = len(j.ring)
		j.Placed = s.now
		if len(j.ring) == 1 || s.arch.PlanTime == 0 {
			j.Planned = j.Placed
			alone = append(alone, j)
		} else {
			s.placed = append(s.placed, j)
		}
	}
	s.waiting = rest
	if len(s.planning) == 0 && len(s.placed) > 0 {
		n := 1
		if s.arch.Together {
			n = len(s.placed)
		}
		s.planning, s.placed = s.placed[:n:n], s.placed[n:]
		s.planned = s.after(s.arch.PlanTime.Seconds())
		for _, j := range s.planning {
			j.Planned = s.now
		}
	}
	if len(alone) == 0 {
		return nil
	}
	return s.start(alone)
}

// place returns where a job of so many blocks goes, or nil: into the pod with least room for it, or else into few pods of
// which each has room for an equal share, again those with least room.
func (s *simulation) place(blocks int) []share {
	for pods := (blocks + s.fabric.Pairs() - 1) / s.fabric.Pairs(); pods <= min(blocks, s.fabric.Pods); pods++ {
		most := (blocks + pods - 1) / pods
		var fit []int
		for p, free := range s.free {
			if free >= most {
				fit = append(fit, p)
			}
		}
		if len(fit) < pods {
			continue
		}
		slices.SortStableFunc(fit, func(a, b int) int { return cmp.Compare(s.free[a], s.free[b]) })
		fit = fit[:pods]
		slices.Sort(fit)
		ring := make([]share, pods)
		full := blocks - pods*(most-1) // pods that have one block more than the others
		for i, p := range fit {
			ring[i] = share{p, most}
			if i >= full {
				ring[i].blocks--
			}
		}
		return ring
	}
	return nil
}

// start starts jobs.
func (s *simulation) start(all []*job) error {
	links := false
	for _, j := range all {
		j.Start, j.rate = s.now, 1
		links = links || j.Pods > 1
	}
	s.active = append(s.active, all...)
	if links {
		return s.plan()
	}
	return nil
}

// end ends a job.
func (s *simulation) end(i int) error {
	j := s.active[i]
	j.Finish = s.now
	for _, p := range j.ring {
		s.free[p.pod] += p.blocks
	}
	s.active = slices.Delete(s.active, i, i+1)
	if j.Pods > 1 && s.arch.Planner != nil {
		return s.plan()
	}
	return nil
}

// bundles yields the two pods of each bundle of a job's ring, and its links.
func (j *job) bundles(each func(a, b, links int)) {
	n := len(j.ring)
	switch {
	case n == 2:
		each(j.ring[0].pod, j.ring[1].pod, 2*min(j.ring[0].blocks, j.ring[1].blocks))
	case n > 2:
		for i, p := range j.ring {
			q := j.ring[(i+1)%n]
			each(p.pod, q.pod, min(p.blocks, q.blocks))
		}
	}
}

// plan finds the links of all jobs that run, and how fast these are with them.
func (s *simulation) plan() error {
	n := s.fabric.Pods
	matrix := make([][]int, n)
	for i := range matrix {
		matrix[i] = make([]int, n)
	}
	for _, j := range s.active {
		j.bundles(func(a, b, links int) {
			matrix[a][b] += links
			matrix[b][a] += links
		})
	}
	wanted, err := crosswiring.DemandOf(matrix)
	if err != nil {
		return err
	}
	if err := wanted.Check(s.fabric); err != nil {
		return err
	}
	if s.arch.Planner == nil {
		return nil
	}
	if s.config, err = s.arch.Planner.Next(s.fabric, s.config, wanted); err != nil {
		return err
	}
	have := s.config.Demand()
	for _, j := range s.active {
		var parts []float64
		j.bundles(func(a, b, _ int) {
			parts = append(parts, min(float64(have.At(0, a, b))/float64(matrix[a][b]), 1))
		})
		j.rate = 1 / slowdown(throughput(parts), s.communication)
	}
	return nil
}
