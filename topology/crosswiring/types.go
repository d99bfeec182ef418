package crosswiring

import (
	"errors"
	"fmt"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrFabric: a fabric that cannot be.
	ErrFabric = errors.New("there is no such fabric")
	// ErrDemand: a demand that no wiring can satisfy: not symmetric, within a pod, or more than the ports.
	ErrDemand = errors.New("the demand cannot be satisfied")
	// ErrConfig: circuits that are none of the fabric, or that no port can use.
	ErrConfig = errors.New("the circuits do not fit the fabric")
)

// Wiring is where the fibres of spine ports go.
type Wiring uint8

// The wirings.
const (
	// Cross exchanges the Rx fibres of the two switches of a pair (section 4.1 of the paper).
	Cross Wiring = iota
	// Uniform takes both fibres of a port to the same switch.
	Uniform
	// DualLink has both ports of a pair on one switch of twice the ports, so that a link is two circuits of one switch: the
	// guarantees of Cross, with half the pods on a switch, and also for switches that join ports both ways at once.
	DualLink
)

var wiringNames = []string{"cross", "uniform", "dual-link"}

// String returns "cross", "uniform" or "dual-link".
func (w Wiring) String() string {
	if int(w) < len(wiringNames) {
		return wiringNames[w]
	}
	return fmt.Sprintf("wiring %d", w)
}

// Dark is the output of an input that has no circuit.
const Dark = -1

// Fabric is how large a cluster is.
type Fabric struct {
	Pods       int // P
	SpinePorts int // S, even: ports of a spine to optical switches
	Groups     int // G: spines of a pod
	Wiring     Wiring
}

// Switch is an optical switch: number Index of a group.
type Switch struct{ Group, Index int }

// String returns "2/5": switch 5 of group 2.
func (s Switch) String() string { return fmt.Sprintf("%d/%d", s.Group, s.Index) }

// Pair is what carries links of its own: switches 2·Index and 2·Index+1 of a group with Cross wiring, switch Index with
// DualLink. Either holds the spine ports 2·Index and 2·Index+1 of every pod.
type Pair struct{ Group, Index int }

// String returns "pair 2/5": pair 5 of group 2.
func (p Pair) String() string { return fmt.Sprintf("pair %d/%d", p.Group, p.Index) }

// Circuit is light through a switch, from an input to an output.
type Circuit struct{ In, Out int }

// String returns "3>5".
func (c Circuit) String() string { return fmt.Sprintf("%d>%d", c.In, c.Out) }

// Port is a port of a spine.
type Port struct{ Pod, Group, Index int }

// String returns "pod 3 spine 2 port 5".
func (p Port) String() string { return fmt.Sprintf("pod %d spine %d port %d", p.Pod, p.Group, p.Index) }

// Link is a link between two pods in a group, whichever ports carry it.
type Link struct{ Group, A, B int }

// String returns "pods 1 and 3 in group 0".
func (l Link) String() string { return fmt.Sprintf("pods %d and %d in group %d", l.A, l.B, l.Group) }

// PortLink is a link between two spine ports: each sends to the other and hears from it.
type PortLink struct{ A, B Port }

// String returns "pod 0 spine 0 port 0 and pod 1 spine 0 port 1".
func (l PortLink) String() string { return fmt.Sprintf("%v and %v", l.A, l.B) }

// Demand is how many links each two pods shall have in each group. Groups that nobody names have none.
type Demand struct {
	pods, groups int
	podLevel     bool    // of one group that stands for all; see Fit
	links        []int32 // by group, pod and pod
}

// Config is what all switches hold: for each input of a switch the output that it leads to, or Dark.
type Config struct {
	fabric Fabric
	out    []int32 // by group, switch and input; a pair has 2·Pods of them, those of its even port first
}
