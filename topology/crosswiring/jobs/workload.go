package jobs

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// ErrJobs: jobs that cannot be, or that have no place on the cluster. Test with errors.Is.
var ErrJobs = errors.New("no such jobs")

// Limits of a workload.
const (
	MostJobs = 10_000
	Longest  = 48 * time.Hour // mean run time, and time of a plan
	// LeastLevel and MostLevel bound the workload level.
	LeastLevel, MostLevel = .001, 10
)

// PaperLevel is the workload level of the paper's queue.
const PaperLevel = .801

// Job is a job as it comes.
type Job struct {
	Arrive time.Duration // since the start
	Blocks int           // of 2·G GPUs
	Run    time.Duration // with all links
}

// Size is how many of the jobs, by weight, want so many blocks.
type Size struct {
	Blocks int
	Weight float64
}

// Workload is how jobs are drawn: arrivals are a Poisson process, and run times are exponential, independently of the
// size. The zero value is the paper's number of jobs and level, with sizes and run times of ours.
type Workload struct {
	Jobs int // 0 is 1000
	// Level is the workload level of equation 17: the sum over sizes of GPUs, rate and mean run time, by all GPUs. The rate
	// of arrivals is found by it. 0 is PaperLevel.
	Level   float64
	Sizes   []Size        // nil is Sizes of the fabric
	MeanRun time.Duration // 0 is 4 h
	Seed    uint64
}

// Sizes returns sizes of jobs from a block to an eighth of the cluster (ours): powers of two, and from 8 blocks on one and a
// half of each, so that odd numbers of whole pods occur. The larger a size the fewer jobs have it, by its root.
func Sizes(f crosswiring.Fabric) []Size {
	largest := max(f.Pods*f.Pairs()/8, 1)
	var all []Size
	for n := 1; n <= largest; n *= 2 {
		all = append(all, Size{n, 1 / math.Sqrt(float64(n))})
		if half := n + n/2; n >= 8 && half <= largest {
			all = append(all, Size{half, .5 / math.Sqrt(float64(half))})
		}
	}
	return all
}

// Testbed returns the shape of the paper's testbed run of 48 hours: 50 jobs of 16 to 128 GPUs on 4 pods of 32. How they
// were drawn is not said; at PaperLevel the last comes after some two days.
func Testbed() (crosswiring.Fabric, Workload) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 8, Groups: 4}
	return f, Workload{Jobs: 50, MeanRun: 100 * time.Minute,
		Sizes: []Size{{2, 1}, {4, 1}, {6, 1}, {8, 1}, {12, 1}, {16, 1}}}
}

func (w Workload) defaults(f crosswiring.Fabric) Workload {
	if w.Jobs == 0 {
		w.Jobs = 1000
	}
	if w.Level == 0 {
		w.Level = PaperLevel
	}
	if w.Sizes == nil {
		w.Sizes = Sizes(f)
	}
	if w.MeanRun == 0 {
		w.MeanRun = 4 * time.Hour
	}
	return w
}

// check returns why there is no such workload on a fabric.
func (w Workload) check(f crosswiring.Fabric) error {
	if err := f.Check(); err != nil {
		return err
	}
	switch {
	case w.Jobs < 1 || w.Jobs > MostJobs:
		return fmt.Errorf("%w: %d jobs: want 1 to %d", ErrJobs, w.Jobs, MostJobs)
	case !(w.Level >= LeastLevel && w.Level <= MostLevel):
		return fmt.Errorf("%w: a workload level of %v: want %v to %v", ErrJobs, w.Level, LeastLevel, float64(MostLevel))
	case w.MeanRun <= 0 || w.MeanRun > Longest:
		return fmt.Errorf("%w: a mean run time of %v: want more than 0, and at most %v", ErrJobs, w.MeanRun, Longest)
	case len(w.Sizes) == 0:
		return fmt.Errorf("%w: there are no sizes: want at least one", ErrJobs)
	}
	sum := 0.
	for _, s := range w.Sizes {
		if s.Blocks < 1 || s.Blocks > f.Pods*f.Pairs() || !(s.Weight >= 0) {
			return fmt.Errorf("%w: size %d of weight %v: want 1 to %d blocks, and a weight of 0 or more",
				ErrJobs, s.Blocks, s.Weight, f.Pods*f.Pairs())
		}
		sum += s.Weight
	}
	if !(sum > 0) || math.IsInf(sum, 1) {
		return fmt.Errorf("%w: the weights of sizes add up to %v: want more than 0", ErrJobs, sum)
	}
	return nil
}

// Draw returns the jobs in order of arrival. The error matches ErrJobs, or crosswiring.ErrFabric.
func (w Workload) Draw(f crosswiring.Fabric) ([]Job, error) {
	w = w.defaults(f)
	if err := w.check(f); err != nil {
		return nil, err
	}
	sum, mean := 0., 0.
	for _, s := range w.Sizes {
		sum += s.Weight
		mean += s.Weight * float64(s.Blocks)
	}
	mean /= sum
	run := w.MeanRun.Seconds()
	interval := mean * run / (w.Level * float64(f.Pods*f.Pairs()))
	random := rand.New(rand.NewPCG(w.Seed, 4))
	all := make([]Job, w.Jobs)
	at := 0.
	for i := range all {
		at += interval * random.ExpFloat64()
		all[i] = Job{Arrive: seconds(at), Blocks: w.size(random.Float64() * sum), Run: seconds(run * random.ExpFloat64())}
	}
	return all, nil
}

// size returns the size at a place in the sum of the weights.
func (w Workload) size(at float64) int {
	for _, s := range w.Sizes {
		if at -= s.Weight; at < 0 {
			return s.Blocks
		}
	}
	return w.Sizes[len(w.Sizes)-1].Blocks
}

// Level returns the workload level of jobs until the last arrives: GPUs by run time, by all GPUs and that time. It is
// 0 of no jobs, or if all come at the start.
func Level(f crosswiring.Fabric, all []Job) float64 {
	work, end := 0., 0.
	for _, j := range all {
		work += float64(j.Blocks) * j.Run.Seconds()
		end = max(end, j.Arrive.Seconds())
	}
	if whole := end * float64(f.Pods*f.Pairs()); whole > 0 {
		return work / whole
	}
	return 0
}

// seconds makes a duration, the longest there is of what is longer.
func seconds(s float64) time.Duration {
	if ns := math.Round(s * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
