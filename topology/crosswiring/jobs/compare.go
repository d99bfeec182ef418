package jobs

import (
	"slices"
	"time"

	"github.com/ocslab/ocslab/topology/crosswiring"
)

// Row is what became of the jobs on an architecture. Means are over all jobs.
type Row struct {
	Architecture string
	JRT, JWT     time.Duration // mean run time, and mean wait
	JCT          time.Duration // mean completion time
	JWTMax       time.Duration

	// Run times by those with all links, less 1: the mean, and the worst job; and which share of the jobs took longer at all.
	Slower, SlowerMax, Hit float64
	// JWTMore and JCTMore are how much longer than on the first architecture: the wait, and the completion as a share.
	JWTMore time.Duration
	JCTMore float64

	Plans int // jobs that needed a plan, since they span pods
	// PlanWait is how long those waited for their plan to begin, on average, and Kingman what the formula says, with the
	// planning time and the intervals that were; it is for one plan a job. Stable is that plans take less time than the intervals.
	PlanWait, Kingman time.Duration
	Stable            bool
}

// Compare draws the jobs of a workload, runs them on every architecture, and returns a row for each, in the same order.
// The error is as of Draw and Simulate.
func Compare(f crosswiring.Fabric, w Workload, architectures []Architecture, o Options) ([]Row, error) {
	all, err := w.Draw(f)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, a := range architectures {
		done, err := Simulate(f, all, a, o)
		if err != nil {
			return nil, err
		}
		r := summary(a, done)
		if len(rows) > 0 {
			r.JWTMore = r.JWT - rows[0].JWT
			r.JCTMore = r.JCT.Seconds()/rows[0].JCT.Seconds() - 1
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// rounding is what run times may differ by as they add up from event to event, as a share.
const rounding = 1e-6

// summary makes a row.
func summary(a Architecture, done []Done) Row {
	r := Row{Architecture: a.Name}
	n := float64(len(done))
	var jrt, jwt, planWait float64
	var requests []float64
	for _, d := range done {
		jrt += d.RunTime().Seconds() / n
		jwt += d.Wait().Seconds() / n
		r.JWTMax = max(r.JWTMax, d.Wait())
		if more := d.RunTime().Seconds()/d.Run.Seconds() - 1; more > rounding { // not of a job of no time
			r.Slower += more / n
			r.SlowerMax = max(r.SlowerMax, more)
			r.Hit += 1 / n
		}
		if d.Pods > 1 {
			r.Plans++
			planWait += (d.Planned - d.Placed).Seconds()
			requests = append(requests, d.Placed.Seconds())
		}
	}
	r.JRT, r.JWT, r.JCT = seconds(jrt), seconds(jwt), seconds(jrt+jwt)
	if r.Plans > 0 {
		r.PlanWait = seconds(planWait / float64(r.Plans))
	}
	interval, variation := intervals(requests)
	r.Kingman, r.Stable = crosswiring.KingmanWait(seconds(interval), a.PlanTime, variation, 0)
	return r
}

// intervals returns the mean of the intervals between times, and their squared coefficient of variation; 0 of fewer than three.
func intervals(at []float64) (mean, variation float64) {
	if len(at) < 3 {
		return 0, 0
	}
	slices.Sort(at)
	n := float64(len(at) - 1)
	mean = (at[len(at)-1] - at[0]) / n
	if mean == 0 {
		return 0, 0
	}
	for i, t := range at[1:] {
		d := t - at[i] - mean
		variation += d * d / n
	}
	return mean, variation / (mean * mean)
}
