package collective

import (
	"fmt"
	"maps"
	"slices"

	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/pccl"
)

// Job is a plan and where its GPUs are.
type Job struct {
	Plan   pccl.Plan
	Start  *pccl.Topology // that the plan begins with
	Params pccl.Params    // that it was made with
	// GPUs are the hosts of the lab that stand for the GPUs, in order; none: all hosts with NICs, in the order of
	// the lab file, as many as are needed.
	GPUs []string
	// Bond lays each circuit on as many ports as both of its GPUs have for each of theirs; transfers are then no quicker, as
	// the plan says what a circuit carries. Otherwise ports that are not needed stay free.
	Bond bool
}

// Layout is a plan laid on the ports of a lab.
type Layout struct {
	Job
	NICs [][]topology.NIC // of each GPU
	// Steps are what is brought about: the start, and what is wired before each round that is rewired for.
	Steps []sequence.Step

	links   []map[pccl.Transfer][]at // by step
	rounds  [][]int                  // that are run in each step
	paths   [][][]int                // by round and transfer
	perByte []float64                // nanoseconds, by round
}

// Lay lays a plan on the ports of a lab. Consecutive topologies share circuits where they can, so that these are not
// moved. The error matches [ErrLab] when the lab has too few hosts or ports, and says how many would do;
// [lab.ErrUnknown] when it has no such host; or is one of package pccl.
func Lay(f *lab.File, job Job) (*Layout, error) {
	l := &Layout{Job: job}
	if job.Start == nil || len(job.Plan.Rounds) == 0 || len(job.Plan.Rounds) != len(job.Plan.Schedule.Rounds) {
		return nil, fmt.Errorf("%w: the plan has no rounds, or no topology to begin with", pccl.ErrArgument)
	}
	if t := seconds(job.Plan.Total); t > MostTime {
		return nil, fmt.Errorf("%w: it would take %v there: want %v at most, with fewer bytes or quicker links", ErrLab, t, MostTime)
	}
	if err := l.gpus(f); err != nil {
		return nil, err
	}
	var before pccl.Wiring
	current := job.Start
	add := func(name string) (err error) {
		before, err = l.step(name, current, before)
		return err
	}
	if err := add("start: " + current.Name()); err != nil {
		return nil, err
	}
	for i, r := range job.Plan.Rounds {
		if r.Changed {
			current = r.Topology
			if err := add(current.Name()); err != nil {
				return nil, err
			}
		}
		l.rounds[len(l.rounds)-1] = append(l.rounds[len(l.rounds)-1], i)
		paths, err := routes(current, job.Plan.Schedule.Rounds[i].Transfers, job.Params.Ties)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", i, err)
		}
		l.paths = append(l.paths, paths)
		perByte, err := l.slowness(current)
		if err != nil {
			return nil, err
		}
		l.perByte = append(l.perByte, perByte)
	}
	return l, nil
}

// slowness is how many nanoseconds a byte takes on a circuit of t.
func (l *Layout) slowness(t *pccl.Topology) (float64, error) {
	ns := l.Params.Beta * 1e9
	if !l.Params.Split {
		return ns, nil
	}
	out, in := t.Degree()
	degree, has := max(out, in), min(l.Params.Transmitters, l.Params.Receivers)
	if l.Params.Receivers == 0 {
		has = l.Params.Transmitters
	}
	if degree == 0 || has/degree == 0 {
		return 0, fmt.Errorf("%s: %w: %d circuits at a GPU, and %d transmitters", t.Name(), pccl.ErrTransmitters, degree, has)
	}
	return ns * float64(has) / float64(has/degree), nil
}

// gpus finds the NICs of the GPUs.
func (l *Layout) gpus(f *lab.File) error {
	need := l.Plan.Schedule.GPUs
	var hosts []lab.Host
	if len(l.GPUs) == 0 {
		for _, h := range f.Hosts {
			if len(h.NICs) > 0 && len(hosts) < need {
				hosts = append(hosts, h)
			}
		}
	}
	for i, name := range l.GPUs {
		at := slices.IndexFunc(f.Hosts, func(h lab.Host) bool { return h.Name == name })
		switch {
		case at < 0:
			return fmt.Errorf("GPU %d: the host %q %w", i, name, lab.ErrUnknown)
		case slices.Contains(l.GPUs[:i], name):
			return fmt.Errorf("%w: host %s is named twice: want each GPU on a host of its own", ErrLab, name)
		}
		hosts = append(hosts, f.Hosts[at])
	}
	if len(hosts) != need {
		return fmt.Errorf("%w: it is for %d GPUs, and there are %s with NICs: want as many hosts, or --gpus %d",
			ErrLab, need, natural.Count(len(hosts), "host"), len(hosts))
	}
	for _, h := range hosts {
		var nics []topology.NIC
		for _, n := range h.NICs {
			nics = append(nics, topology.NIC{Name: n.FullName(), Tx: topology.Port(n.Tx), Rx: topology.Port(n.Rx)})
		}
		l.NICs = append(l.NICs, nics)
	}
	return nil
}

// step lays one topology.
func (l *Layout) step(name string, t *pccl.Topology, before pccl.Wiring) (pccl.Wiring, error) {
	ports := slices.MinFunc(l.NICs, func(a, b []topology.NIC) int { return len(a) - len(b) })
	if out, in := t.Degree(); max(out, in) > len(ports) {
		return nil, fmt.Errorf("%w: %s has %s at a GPU, and %s: want as many for each host that stands for one", ErrLab, t.Name(),
			natural.Count(max(out, in), "circuit"), fmt.Sprintf("a host has %s", natural.Count(len(ports), "NIC")))
	}
	w, err := pccl.WireOptions{Ports: len(ports), Keep: before, NICs: l.NICs, Bond: l.Bond}.Wire(t)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLab, err)
	}
	wired, err := w.Maps(l.NICs)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLab, err)
	}
	if len(l.Steps) > 0 { // switches that this topology does not need lose what they had of the others
		for sw := range l.Steps[0].Maps {
			if _, ok := wired[sw]; !ok {
				wired[sw] = ocs.Map{}
			}
		}
		for _, s := range l.Steps { // and the other way around
			for sw := range wired {
				if _, ok := s.Maps[sw]; !ok {
					s.Maps[sw] = ocs.Map{}
				}
			}
		}
	}
	links := map[pccl.Transfer][]at{}
	for _, c := range w {
		tx, rx := l.NICs[c.Src][c.SrcPort].Tx, l.NICs[c.Dst][c.DstPort].Rx
		key := pccl.Transfer{Src: c.Src, Dst: c.Dst}
		links[key] = append(links[key], at{tx.Switch, ocs.CrossConnect{Ingress: tx.Port, Egress: rx.Port}})
	}
	l.Steps = append(l.Steps, sequence.Step{Name: name, Maps: wired})
	l.links, l.rounds = append(l.links, links), append(l.rounds, nil)
	return w, nil
}

// Changes returns what each step changes, by switch, if it begins where the one before has ended; the first begins with
// nothing. Switches where nothing changes are left out.
func (l *Layout) Changes() []map[string]ocs.Change {
	all := make([]map[string]ocs.Change, 0, len(l.Steps))
	have := map[string]ocs.Map{}
	for _, s := range l.Steps {
		changes := map[string]ocs.Change{}
		for _, name := range slices.Sorted(maps.Keys(s.Maps)) {
			if c := ocs.Diff(have[name], s.Maps[name]); !c.Empty() {
				changes[name] = c
			}
			have[name] = s.Maps[name]
		}
		all = append(all, changes)
	}
	return all
}
