package job

import (
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology/opus"
)

// models are emulated switches by the number of their ingress ports.
var models = []struct {
	ports int
	name  string
}{{32, "polatis-6000-32x32"}, {192, "polatis-7000-192x192"}, {384, "polatis-7000-384x384"}}

// Emulated returns a lab for a job, and its job file: a switch for each rail, rail0 and on, that takes exactly switching for a
// change, and on it the ranks' NICs in order, as on paper. Host gpu1 has rank 0 of every rail. A job with more ports
// than the largest switch has is an error.
func Emulated(j opus.Job, rails int, policy opus.Policy, switching time.Duration) (*lab.File, *File, error) {
	if err := j.Check(); err != nil {
		return nil, nil, err
	}
	n := j.DuplexPorts()
	var model string
	for _, m := range models {
		if model == "" && n <= m.ports {
			model = m.name
		}
	}
	switch {
	case model == "":
		return nil, nil, fmt.Errorf("job %s has %d duplex ports on each rail, and the largest emulated switch %d: write a lab file and a job file of your own",
			j.Name, n, models[len(models)-1].ports)
	case rails < 1:
		return nil, nil, fmt.Errorf("job %s has %d rails: want 1 or more", j.Name, rails)
	}
	p := j.PortsPerRank()
	var size int
	for _, m := range models {
		if m.name == model {
			size = m.ports
		}
	}
	var text, hosts, jobRails strings.Builder
	fmt.Fprintf(&text, "name: %s\nswitches:\n", name(j.Name))
	for r := range rails {
		fmt.Fprintf(&text, "  - {name: rail%d, emulate: {model: %s, switching: %v, jitter: 0s, seed: %d}}\n", r, model, switching, r+1)
		fmt.Fprintf(&jobRails, "  - name: rail%d\n    ranks:\n", r)
	}
	text.WriteString("hosts:\n")
	for x := range j.Ranks() {
		fmt.Fprintf(&hosts, "  - name: gpu%d\n    nics:\n", x+1)
		for r := range rails {
			for u := range p {
				q := x*p + u + 1
				fmt.Fprintf(&hosts, "      - {name: r%dp%d, tx: rail%d/%d, rx: rail%d/%d}\n", r, u, r, q, r, size+q)
			}
		}
	}
	in, err := lab.Parse("emulated lab of "+j.Name, []byte(text.String()+hosts.String()))
	if err != nil {
		return nil, nil, err
	}
	in.Path = "" // it is no file
	f := &File{Name: j.Name, Pipeline: j.Stages, Ports: j.Ports, Policy: string(policy)}
	for _, a := range j.Axes {
		f.Axes = append(f.Axes, Axis(a))
	}
	for r := range rails {
		rail := Rail{Name: fmt.Sprintf("rail%d", r)}
		for x := range j.Ranks() {
			var nics []string
			for u := range p {
				nics = append(nics, fmt.Sprintf("gpu%d/r%dp%d", x+1, r, u))
			}
			rail.Ranks = append(rail.Ranks, nics)
		}
		f.Rails = append(f.Rails, rail)
	}
	return in, f, nil
}

// name makes a name for a lab of any text.
func name(s string) string {
	b := []byte("job-" + s)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	return string(b)
}
