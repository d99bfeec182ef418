package opus

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrJob: the job, or something said of it, is not possible. Test with errors.Is.
var ErrJob = errors.New("not a possible job")

const (
	// MaxAxes is how many symmetrical axes a job may have: a digit has ten values, and 0 is
	// that of the pipeline (paper, section 7).
	MaxAxes = 9
	// MaxRanks is how many ranks a rail may have.
	MaxRanks = 1 << 16
	// DefaultPorts is how many duplex ports a rank has on its rail unless the job says
	// otherwise: enough for a ring.
	DefaultPorts = 2
	// PP is the axis of the pipeline, and its digit.
	PP = 0
)

// Axis is a symmetrical dimension of parallelism: DP, CP, EP.
type Axis struct {
	Name string `json:"name"` // "dp"
	Size int    `json:"size"` // from 1
}

// Job is the part of a training job that communicates on one rail.
//
// Ranks count from 0 in mixed radix, the stage outermost and the last axis innermost:
// x = ((s*n1 + a1)*n2 + a2)*... . A rank's duplex ports count from 0: with two of them,
// port 0 leads to the previous member of a group ("left") and port 1 to the next ("right").
// Duplex port q of the job is port q%Ports of rank q/Ports.
type Job struct {
	Name   string `json:"name"`
	Stages int    `json:"stages"`         // of the pipeline, from 1
	Axes   []Axis `json:"axes,omitempty"` // axis j of the paper is Axes[j-1]
	Ports  int    `json:"ports,omitempty"`
}

// Check returns why the job is not possible; such an error matches [ErrJob].
func (j Job) Check() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("job %q: %w: %s", j.Name, ErrJob, fmt.Sprintf(format, args...))
	}
	if j.Stages < 1 {
		return bad("it has %d stages: want 1 or more", j.Stages)
	}
	if j.Ports != 0 && (j.Ports < 2 || j.Ports > 8) {
		return bad("a rank has %d duplex ports: want 2 to 8, as a ring takes two", j.Ports)
	}
	if len(j.Axes) > MaxAxes {
		return bad("it has %d axes: want %d at most, since a digit of a topology ID has ten values", len(j.Axes), MaxAxes)
	}
	seen := map[string]bool{"pp": true}
	n := j.Stages
	if n > MaxRanks {
		return bad("it has more than %d ranks", MaxRanks)
	}
	for i, a := range j.Axes {
		switch {
		case a.Name == "":
			return bad("axis %d has no name", i+1)
		case strings.EqualFold(a.Name, "pp"):
			return bad("axis %d is named %q, which is the pipeline: that is Stages", i+1, a.Name)
		case seen[strings.ToLower(a.Name)]:
			return bad("two axes are named %q", a.Name)
		case a.Size < 1:
			return bad("axis %s has %d members: want 1 or more", a.Name, a.Size)
		case a.Size > MaxRanks/n:
			return bad("it has more than %d ranks", MaxRanks)
		}
		seen[strings.ToLower(a.Name)] = true
		n *= a.Size
	}
	return nil
}

// PortsPerRank returns Ports, or its default.
func (j Job) PortsPerRank() int {
	if j.Ports == 0 {
		return DefaultPorts
	}
	return j.Ports
}

// RanksPerStage returns how many ranks a stage has.
func (j Job) RanksPerStage() int {
	n := 1
	for _, a := range j.Axes {
		n *= a.Size
	}
	return n
}

// Ranks returns how many ranks the job has on one rail.
func (j Job) Ranks() int { return j.Stages * j.RanksPerStage() }

// DuplexPorts returns how many duplex ports its ranks have.
func (j Job) DuplexPorts() int { return j.Ranks() * j.PortsPerRank() }

// Stage returns the stage of a rank.
func (j Job) Stage(rank int) int { return rank / j.RanksPerStage() }

// size returns how many members a group of an axis has.
func (j Job) size(axis int) int {
	if axis == PP {
		return j.Stages
	}
	return j.Axes[axis-1].Size
}

// stride returns by how much the ranks of neighbours along an axis differ.
func (j Job) stride(axis int) int {
	n := 1
	for i := len(j.Axes); i > axis; i-- {
		n *= j.Axes[i-1].Size
	}
	return n
}

// Coordinate returns the place of a rank along an axis, from 0; along PP that is its stage.
func (j Job) Coordinate(rank, axis int) int { return rank / j.stride(axis) % j.size(axis) }

// AxisNames returns "pp" and the names of the axes; the index is the axis.
func (j Job) AxisNames() []string {
	names := []string{"pp"}
	for _, a := range j.Axes {
		names = append(names, a.Name)
	}
	return names
}

// AxisOf returns the axis of that name, "pp" being [PP].
func (j Job) AxisOf(name string) (axis int, ok bool) {
	for i, n := range j.AxisNames() {
		if n == name {
			return i, true
		}
	}
	return 0, false
}

// Group is the ranks that differ in their place along one axis only, in order of that.
type Group struct {
	Axis    int   // PP, or that of Job.Axes[Axis-1]
	Index   int   // among the groups of the axis, from 0, in order of the first member
	Members []int // ranks, ascending
	Name    string
}

// String returns the name of the group, which is unique in its job: "dp/3".
func (g Group) String() string { return g.Name }

// GroupOf returns the group of an axis that a rank belongs to.
func (j Job) GroupOf(rank, axis int) Group {
	stride, size := j.stride(axis), j.size(axis)
	first := rank - j.Coordinate(rank, axis)*stride
	g := Group{Axis: axis, Index: first/(stride*size)*stride + first%stride, Members: make([]int, size)}
	for i := range g.Members {
		g.Members[i] = first + i*stride
	}
	g.Name = j.AxisNames()[axis] + "/" + strconv.Itoa(g.Index)
	return g
}

// Groups returns the groups of an axis in order of their first member.
func (j Job) Groups(axis int) []Group {
	groups := make([]Group, 0, j.Ranks()/j.size(axis))
	for x := range j.Ranks() {
		if j.Coordinate(x, axis) == 0 {
			groups = append(groups, j.GroupOf(x, axis))
		}
	}
	return groups
}

// GroupCount returns how many groups the job has: for each axis and PP, the product of the
// sizes of all others.
func (j Job) GroupCount() int {
	n := 0
	for axis := range j.AxisNames() {
		n += j.Ranks() / j.size(axis)
	}
	return n
}

// FindGroup returns the group of that name, such as "dp/3".
func (j Job) FindGroup(name string) (Group, bool) {
	axisName, number, ok := strings.Cut(name, "/")
	axis, known := j.AxisOf(axisName)
	i, err := strconv.Atoi(number)
	if !ok || !known || err != nil || i < 0 || i >= j.Ranks()/j.size(axis) || number != strconv.Itoa(i) {
		return Group{}, false
	}
	stride := j.stride(axis)
	return j.GroupOf(i/stride*stride*j.size(axis)+i%stride, axis), true
}
