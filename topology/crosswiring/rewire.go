package crosswiring

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
)

// ErrPartial: the pairs of switches that are left cannot carry every link of the demand. What can be had is returned with
// it. Test with errors.Is.
var ErrPartial = errors.New("not every link has a place")

// ErrMethod: a way to plan that there is not. Test with errors.Is.
var ErrMethod = errors.New("there is no method")

// Method is a way to find circuits close to the running ones.
type Method string

// The methods. All but Best are single ones, for comparison.
const (
	// Best takes the best of OrientSeq, in several orders, Kempe and, for small groups, OrientBisect, and improves it for
	// Rounds. It is ours.
	Best Method = "best"
	// OrientSeq orients the links as they run, as far as it can, and then finds one pair of switches after another the
	// matching that keeps most. It is ours.
	OrientSeq Method = "orient+seq"
	// OrientBisect is Bisect with the orientation of OrientSeq. It is ours.
	OrientBisect Method = "orient+bisect"
	// Kempe takes the links that are not wanted off and inserts the others one by one, each by the cheapest alternating
	// path. It is ours.
	Kempe Method = "kempe"
	// Bisect halves the switches again and again and gives each half its links by a minimum cost flow. It is like
	// the MDMCF of the paper as far as we can read it: the text of the algorithm is not in the public version.
	Bisect Method = "bisect"
	// Euler plans from nothing, as Plan does.
	Euler Method = "euler"
)

// Methods returns all methods, Best first.
func Methods() []Method { return []Method{Best, OrientSeq, OrientBisect, Kempe, Bisect, Euler} }

// ParseMethod returns the method of a name; "" is Best. The error matches ErrMethod.
func ParseMethod(name string) (Method, error) {
	if name == "" {
		return Best, nil
	}
	if m := Method(name); slices.Contains(Methods(), m) {
		return m, nil
	}
	return "", fmt.Errorf("%w %.40q: want one of %q", ErrMethod, name, Methods())
}

// How many rounds a group gets when RewireOptions do not say: as many as it takes to look at so many links, so that a
// group of any size takes about as long, but not fewer than a few.
const (
	roundLinks   = 8192
	fewestRounds = 4
)

// RewireOptions say how Rewire plans. The zero value is the best method on all pairs.
type RewireOptions struct {
	Method Method // Best if empty
	Seed   uint64 // of the orders that are tried: the same seed gives the same circuits
	// Rounds is how often Best rearranges a few pairs of a group to keep more circuits. 0 is 8 for a group of 128 pods and
	// 16 ports, more for smaller ones, and below 0 is none. More keep more, and take longer.
	Rounds int
	// Deadline ends the rounds early, if it is not zero. What is found then depends on how fast the machine is.
	Deadline time.Time
	Without  []Pair // pairs of switches that are off, as when one of the two failed: they get no circuits
	Workers  int    // how many groups are planned at a time; 0 is GOMAXPROCS. It does not change the result.
}

// Rewire returns circuits that satisfy a demand, every link of it and no others, with few circuits other than the running
// ones: if the demand is as before none. The demand has groups; see Demand.Fit. The same arguments give the same
// circuits, unless there is a deadline.
//
// The paper gives a minimum cost flow (MDMCF) for it; what Best does is ours. It gives the links of a group their
// directions such that most keep theirs, gives the pairs of switches their matchings one after another, and then
// rearranges a few pairs at a time.
//
// The error matches ErrFabric for Uniform wiring or a pair that there is not, ErrDemand as of Demand.Check, ErrMethod,
// ErrConfig as of Config.Check, where pairs that are off are not looked at, or ErrPartial if with pairs off not every
// link has a place. Only with ErrPartial there are circuits and a report, too: of the links that have a place in what was
// found. At most as many as there are pods are lost for each pair that is off.
func Rewire(running *Config, d *Demand, opt RewireOptions) (*Config, *RewireReport, error) {
	start := time.Now()
	r, err := newRewirer(running, d, opt)
	if err != nil {
		return nil, nil, err
	}
	r.run(opt.Workers)
	r.report.Time.Total = time.Since(start)
	return r.next, r.report, r.report.partial()
}

// RewireReport says what a plan of Rewire changes. It counts circuits of pairs that are on, two for each link.
type RewireReport struct {
	Groups []GroupReport
	Lost   []LinkCount // links of the demand that have no place, by group and pods
	// Displaced are the links that ran on pairs that are off. Rerouted are those of them that run on other pairs now.
	Displaced, Rerouted int
	Time                RewireTimes // summed over the groups, also those planned at the same time; but Total
	Late                bool        // the deadline ended the rounds
}

// GroupReport is what a plan changes in a group.
type GroupReport struct {
	Group    int
	Method   Method        // whose circuits were taken, and maybe improved
	Running  int           // circuits before
	Planned  int           // circuits after
	Kept     int           // circuits that are in both
	AtMost   int           // no plan keeps more: links that may keep their direction
	Improved int           // circuits that the rounds kept in addition
	Rounds   int           // that were done
	Methods  []MethodCount // what each method that was tried kept, before the rounds
}

// MethodCount is how many circuits a method keeps.
type MethodCount struct {
	Method Method
	Kept   int
}

// LinkCount is a number of links between two pods in a group.
type LinkCount struct {
	Link
	Links int
}

// RewireTimes are how long the phases of a plan took.
type RewireTimes struct {
	Orient  time.Duration // the direction of each link
	Methods time.Duration // the matchings of each pair, by all methods tried
	Improve time.Duration // the rounds
	Total   time.Duration // from begin to end, all groups
}

// sum adds up a number of all groups.
func (r *RewireReport) sum(of func(*GroupReport) int) (n int) {
	for i := range r.Groups {
		n += of(&r.Groups[i])
	}
	return n
}

// Running returns how many circuits there were.
func (r *RewireReport) Running() int { return r.sum(func(g *GroupReport) int { return g.Running }) }

// Planned returns how many circuits there are then.
func (r *RewireReport) Planned() int { return r.sum(func(g *GroupReport) int { return g.Planned }) }

// Kept returns how many circuits stay as they are.
func (r *RewireReport) Kept() int { return r.sum(func(g *GroupReport) int { return g.Kept }) }

// AtMost returns how many circuits any plan could keep at most.
func (r *RewireReport) AtMost() int { return r.sum(func(g *GroupReport) int { return g.AtMost }) }

// Removed returns how many circuits end.
func (r *RewireReport) Removed() int { return r.Running() - r.Kept() }

// Added returns how many circuits begin.
func (r *RewireReport) Added() int { return r.Planned() - r.Kept() }

// RemovedAtLeast returns how many circuits end with any plan.
func (r *RewireReport) RemovedAtLeast() int { return r.Running() - r.AtMost() }

// Share returns the rewired share: of the circuits before, those that end. It is 0 if there were none.
func (r *RewireReport) Share() float64 {
	if r.Running() == 0 {
		return 0
	}
	return float64(r.Removed()) / float64(r.Running())
}

// LostLinks returns how many links of the demand have no place.
func (r *RewireReport) LostLinks() (n int) {
	for _, l := range r.Lost {
		n += l.Links
	}
	return n
}

// partial returns an error that matches ErrPartial if links are lost, and names the first.
func (r *RewireReport) partial() error {
	var shown []string
	for _, l := range r.Lost[:min(named, len(r.Lost))] {
		shown = append(shown, fmt.Sprintf("%d of %v", l.Links, l.Link))
	}
	if len(shown) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the pairs that are on cannot carry %s: %s", ErrPartial,
		natural.Count(r.LostLinks(), "link"), list(shown, len(r.Lost)))
}
