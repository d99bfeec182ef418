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
	// DualLink has two links of each spine on every switch, so that a link is two circuits of one switch: the guarantees of
	// Cross, with half the pods on a switch, and also for switches that join ports both ways at once.
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

// Port is a port of a spine.
type Port struct{ Pod, Group, Index int }

// String returns "pod 3 spine 2 port 5".
func (p Port) String() string { return fmt.Sprintf("pod %d spine %d port %d", p.Pod, p.Group, p.Index) }

// Demand is how many links each two pods shall have in each group. Groups that nobody names have none.
type Demand struct {
	pods, groups int
	links        []int32 // by group, pod and pod
}

// Config is what all switches hold: for each input of a switch the output that it leads to, or Dark.
type Config struct {
	fabric Fabric
	out    []int32 // by group, switch and input
}
