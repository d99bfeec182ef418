package topology

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

// Errors of [Plan]. Test with errors.Is.
var (
	ErrPlanner  = errors.New("there is no such planner")
	ErrArgument = errors.New("the argument is not right")
)

// Port is a port of a switch.
type Port struct {
	Switch string
	Port   ocs.Port
}

// String returns "rail0/33".
func (p Port) String() string { return p.Switch + "/" + p.Port.String() }

// NIC is a network interface: it sends into Tx and receives from Rx.
type NIC struct {
	Name   string
	Tx, Rx Port
}

// Request is what a planner is asked.
type Request struct {
	NICs []NIC             // in order, each once
	With map[string]string // arguments by name; what is not there has its default
}

// Planner is a way to compute maps.
type Planner struct {
	Name      string
	About     string // one line
	Arguments []Argument

	// targets returns for each of n NICs to which it sends; itself stands for none.
	targets func(n int, args map[string]int) ([]int, error)
}

// Argument is a whole number that a planner takes.
type Argument struct {
	Name    string
	About   string // one line
	Default int
}

// planners are all there are, by name.
var planners = []Planner{
	{
		Name: "pairs", About: "each NIC and the one at a distance from it, both ways",
		Arguments: []Argument{{"distance", "from one NIC of a pair to the other", 1}},
		targets:   pairs,
	},
	{
		Name: "ring", About: "each NIC sends to the one a step further, in one ring through all of them",
		Arguments: []Argument{{"step", "from one NIC to the next; it has no divisor in common with the number of NICs", 1}},
		targets:   ring,
	},
	{
		Name: "round-robin", About: "pairs, both ways, that differ in each round: n NICs have all met after n-1 rounds, or n if that is odd",
		Arguments: []Argument{{"round", "from 1", 1}},
		targets:   roundRobin,
	},
	{
		Name: "shift", About: "each NIC sends to the one that many further, in one ring or several",
		Arguments: []Argument{{"by", "how many", 1}},
		targets:   shift,
	},
}

// Planners returns all planners, by name.
func Planners() []Planner { return slices.Clone(planners) }

// Find returns the planner of that name. The error for any other name lists those there
// are, and matches [ErrPlanner].
func Find(name string) (Planner, error) {
	var names []string
	for _, p := range planners {
		if p.Name == name {
			return p, nil
		}
		names = append(names, p.Name)
	}
	return Planner{}, fmt.Errorf("%w: %.60q%s: want %s", ErrPlanner, name, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
}

// Plan asks a planner, and returns its maps by switch. The error for an unknown planner
// matches [ErrPlanner], and for one that does not understand its arguments [ErrArgument].
func Plan(planner string, r Request) (map[string]ocs.Map, error) {
	p, err := Find(planner)
	if err != nil {
		return nil, err
	}
	n := len(r.NICs)
	if n < 2 {
		return nil, fmt.Errorf("%s: joins NICs, and there are %d of them: want 2 or more", p.Name, n)
	}
	args, err := p.read(r.With)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	targets, err := p.targets(n, args)
	if err != nil {
		return nil, fmt.Errorf("%s of %d NICs: %w", p.Name, n, err)
	}
	circuits := map[string][]ocs.CrossConnect{}
	for i, to := range targets {
		tx, rx := r.NICs[i].Tx, r.NICs[to].Rx
		if i == to {
			continue
		}
		if tx.Switch != rx.Switch {
			return nil, fmt.Errorf("%s: no switch joins %s to %s: one sends into %v, the other receives from %v",
				p.Name, r.NICs[i].Name, r.NICs[to].Name, tx, rx)
		}
		circuits[tx.Switch] = append(circuits[tx.Switch], ocs.CrossConnect{Ingress: tx.Port, Egress: rx.Port})
	}
	all := map[string]ocs.Map{}
	for _, name := range slices.Sorted(maps.Keys(circuits)) {
		if all[name], err = ocs.NewMap(circuits[name]...); err != nil {
			return nil, fmt.Errorf("%s: switch %s: %w", p.Name, name, err)
		}
	}
	return all, nil
}

// read reads the arguments of p.
func (p Planner) read(with map[string]string) (map[string]int, error) {
	args := map[string]int{}
	var names []string
	for _, a := range p.Arguments {
		args[a.Name] = a.Default
		names = append(names, a.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(with)) {
		if _, known := args[name]; !known {
			return nil, fmt.Errorf("%w: %.60q is unknown%s: it takes %s",
				ErrArgument, name, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
		}
		v, err := strconv.ParseInt(with[name], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: %s is %.60q: want a whole number", ErrArgument, name, with[name])
		}
		args[name] = int(v)
	}
	return args, nil
}

func badArgument(name string, value int, want string, args ...any) error {
	return fmt.Errorf("%w: %s is %d: want %s", ErrArgument, name, value, fmt.Sprintf(want, args...))
}
