// Package job reads the job file: which ranks a training job has, and which NICs of the lab are
// theirs on which rail.
//
//	name: lab-job
//	pipeline: 2
//	axes:
//	  - {name: dp, size: 2}
//	policy: pair
//	rails:
//	  - name: rail0
//	    switch: rail0
//	    ranks:
//	      - [gpu1/ens1f0, gpu1/ens1f1]
//	      - [gpu2/ens1f0, gpu2/ens1f1]
//	      - [gpu3/ens1f0, gpu3/ens1f1]
//	      - [gpu4/ens1f0, gpu4/ens1f1]
//
// Ranks are in order, the pipeline stage outermost (package opus); each names a NIC for each of
// its duplex ports, the one towards the previous member of a ring first. Which ports of the
// switch these are is in the lab file and nowhere else. Files are read strictly, as lab files are.
package job

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/opus"
)

// File is a job file. One from [Parse] must not be changed.
type File struct {
	Path     string `yaml:"-"`
	Name     string `yaml:"name,required"`
	Pipeline int    `yaml:"pipeline"` // stages; 0 is 1
	Axes     []Axis `yaml:"axes"`
	Ports    int    `yaml:"ports"`  // duplex ports of a rank on its rail; 0 is 2
	Policy   string `yaml:"policy"` // of package opus; "" is pair
	Rails    []Rail `yaml:"rails,required"`
}

// Axis is a symmetrical axis.
type Axis struct {
	Name string `yaml:"name,required"`
	Size int    `yaml:"size,required"`
}

// Rail is a rail of the job: ranks on one switch.
type Rail struct {
	Name   string     `yaml:"name,required"`
	Switch string     `yaml:"switch"` // "" is Name
	Ranks  [][]string `yaml:"ranks,required"`
}

// SwitchName returns the switch that the rail is on.
func (r Rail) SwitchName() string {
	if r.Switch == "" {
		return r.Name
	}
	return r.Switch
}

// Load reads the job file at path; see [Parse].
func Load(path string, f *lab.File) (*File, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data, f)
}

// Parse reads a job file and checks it against the lab: that it has the switches and NICs, that
// each NIC is on the switch of its rail both ways, that none is used twice, and that none
// of its ports is protected. The error is strictyaml.Errors with all problems.
func Parse(name string, data []byte, f *lab.File) (*File, error) {
	j := &File{Path: name}
	at, err := strictyaml.DecodePositions(name, data, j)
	if err != nil {
		return nil, err
	}
	var errs strictyaml.Errors
	bad := func(path, format string, args ...any) {
		errs = append(errs, strictyaml.Errorf(name, at.Value(path), path, format, args...))
	}
	if err := j.Job().Check(); err != nil {
		bad("name", "%w", err)
		return nil, errs.Err()
	}
	if j.Policy != "" {
		if _, err := opus.ParsePolicy(j.Policy); err != nil {
			bad("policy", "%w", err)
		}
	}
	rails := map[string]bool{}
	used := map[string]string{}
	for i, r := range j.Rails {
		path := strictyaml.Index("rails", i)
		if rails[r.Name] {
			bad(path+".name", "there are two rails named %q", r.Name)
		}
		rails[r.Name] = true
		if _, ok := f.Switch(r.SwitchName()); !ok {
			bad(path, "the lab has no switch %q", r.SwitchName())
			continue
		}
		if n := j.Job().Ranks(); len(r.Ranks) != n {
			bad(path+".ranks", "rail %s has %d ranks, and the job %d: %d stages of %d", r.Name, len(r.Ranks), n, j.Job().Stages, j.Job().RanksPerStage())
		}
		protected := f.ProtectedPorts(r.SwitchName())
		for x, nics := range r.Ranks {
			path := strictyaml.Index(path+".ranks", x)
			if n := j.Job().PortsPerRank(); len(nics) != n {
				bad(path, "rank %d has %d NICs, and the job %d duplex ports for each rank", x, len(nics), n)
			}
			for p, nicName := range nics {
				path := strictyaml.Index(path, p)
				nic, err := f.NIC(nicName)
				if err != nil {
					bad(path, "%w", err)
					continue
				}
				who := fmt.Sprintf("port %d of rank %d of rail %s", p, x, r.Name)
				if other, twice := used[nic.FullName()]; twice {
					bad(path, "NIC %s is %s already", nic.FullName(), other)
				}
				used[nic.FullName()] = who
				for _, ref := range []lab.PortRef{nic.Tx, nic.Rx} {
					if ref.Switch != r.SwitchName() {
						bad(path, "NIC %s is at %v, and rail %s is on switch %s", nic.FullName(), ref, r.Name, r.SwitchName())
					} else if slices.Contains(protected, ref.Port) {
						bad(path, "NIC %s is at %v: %w, nobody may move it", nic.FullName(), ref, ocs.ErrInterlock)
					}
				}
			}
		}
	}
	if err := errs.Err(); err != nil {
		return nil, err
	}
	return j, nil
}

// Job returns what package opus has to know.
func (f *File) Job() opus.Job {
	j := opus.Job{Name: f.Name, Stages: max(f.Pipeline, 1), Ports: f.Ports}
	for _, a := range f.Axes {
		j.Axes = append(j.Axes, opus.Axis{Name: a.Name, Size: a.Size})
	}
	return j
}

// OpusPolicy returns the policy, pair unless the file says otherwise.
func (f *File) OpusPolicy() opus.Policy {
	if f.Policy == "" {
		return opus.Pair
	}
	return opus.Policy(f.Policy)
}

// Rail returns the rail of that name.
func (f *File) Rail(name string) (Rail, bool) {
	i := slices.IndexFunc(f.Rails, func(r Rail) bool { return r.Name == name })
	if i < 0 {
		return Rail{}, false
	}
	return f.Rails[i], true
}

// Assignment returns how the duplex ports of a rail's ranks are cabled, as the lab file has it.
func (f *File) Assignment(rail string, in *lab.File) (opus.Assignment, error) {
	r, ok := f.Rail(rail)
	if !ok {
		return nil, fmt.Errorf("job %s has no rail %q", f.Name, rail)
	}
	var all opus.Assignment
	for _, nics := range r.Ranks {
		for _, name := range nics {
			nic, err := in.NIC(name)
			if err != nil {
				return nil, err
			}
			all = append(all, opus.Fibre{In: nic.Tx.Port, Out: nic.Rx.Port})
		}
	}
	return all, nil
}

// Where says whose an ingress or egress of a rail is, for people: "port 1 of rank 3 (gpu4/ens1f1)"; "" if nobody's.
func (f *File) Where(rail string, in *lab.File, p ocs.Port) string {
	r, _ := f.Rail(rail)
	for x, nics := range r.Ranks {
		for u, name := range nics {
			if nic, err := in.NIC(name); err == nil && (nic.Tx.Port == p || nic.Rx.Port == p) {
				return fmt.Sprintf("port %d of rank %d (%s)", u, x, nic.FullName())
			}
		}
	}
	return ""
}

// Who says which rank it is, for people: "rank 3 of rail0 (gpu4)".
func (f *File) Who(rail string, rank int) string {
	r, _ := f.Rail(rail)
	if rank < 0 || rank >= len(r.Ranks) || len(r.Ranks[rank]) == 0 {
		return fmt.Sprintf("rank %d of %s", rank, rail)
	}
	return fmt.Sprintf("rank %d of %s (%s)", rank, rail, f.Host(rail, rank))
}

// Host returns the host of a rank; "" if the job has no such rank.
func (f *File) Host(rail string, rank int) string {
	r, _ := f.Rail(rail)
	if rank < 0 || rank >= len(r.Ranks) || len(r.Ranks[rank]) == 0 {
		return ""
	}
	host, _, _ := strings.Cut(r.Ranks[rank][0], "/")
	return host
}
