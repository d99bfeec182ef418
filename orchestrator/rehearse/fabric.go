package rehearse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// LinkPatience is how long ranks wait for each other and for circuits when operations are datagrams, unless the options
// say otherwise: others may wait for a link, which firmware has been seen to take ten seconds for, twice in a row.
const LinkPatience = 2 * time.Minute

// Packets say that operations on rails are datagrams between the NICs of the lab ([plane.Packets]), which must be emulated: as
// network devices, where the machine permits that. The zero value is usable.
type Packets struct {
	// Fabric is the lab's; nil starts it for the run, as Hosts say.
	Fabric *fabric.Fabric
	Hosts  lab.FabricOptions
	// Plane says how many datagrams are sent, and how often. What is not about that is filled in.
	Plane plane.PacketsOptions
	// Modelled are the first steps that are played in the model all the same, so that shims need not wait for firmware while they
	// learn. Circuits change in these steps as in any other.
	Modelled int
	// Log gets what became of each rank's part in an operation that was datagrams, one at a time. It must return soon.
	Log func(plane.Transfer, plane.Outcome)
}

// Datagrams count what [plane.Outcome] tells of them.
type Datagrams struct {
	Parts    int   // of ranks in operations that were datagrams
	Sent     int64 // repetitions included
	Repeated int64
	Dark     int64 // sent by a NIC that had no carrier
}

// Add adds what became of one rank's part.
func (d *Datagrams) Add(o plane.Outcome) {
	d.Parts++
	d.Sent += o.Sent
	d.Repeated += o.Repeated
	d.Dark += o.Dark
}

// NIC returns which NIC of a lab a duplex port of a job's rail is, for [plane.PacketsOptions].
func NIC(f *job.File, in *lab.File, rail string, port int) (host, name string, err error) {
	r, _ := f.Rail(rail)
	for _, nics := range r.Ranks {
		if port >= len(nics) {
			port -= len(nics)
			continue
		}
		if port < 0 {
			break
		}
		nic, err := in.NIC(nics[port])
		if err != nil {
			return "", "", err
		}
		return nic.Host, nic.Name, nil
	}
	return "", "", fmt.Errorf("job %s has no such port on rail %q", f.Name, rail)
}

// patient makes the options of a run fit for operations that wait for links. The shims take their patience from the controller.
func patient(opt *Options) {
	if opt.System.Controller.Barrier == 0 {
		opt.System.Controller.Barrier = LinkPatience
	}
	if opt.System.Controller.Drain == 0 {
		opt.System.Controller.Drain = LinkPatience
	}
}

// packetPlane carries operations on rails as datagrams, but those of the first steps.
type packetPlane struct {
	packets, model plane.Plane
	modelled       map[proto.OpRef]bool
	close          []func() error

	mu    sync.Mutex // guards what follows, and calls of log
	count Datagrams
	log   func(plane.Transfer, plane.Outcome)
}

// openPackets returns the plane of a run; model plays the first steps. Close it before the lab.
func openPackets(ctx context.Context, opt Options, assigned map[string]opus.Assignment, clock *plane.Clock,
	model plane.Plane,
) (*packetPlane, error) {
	o := opt.Packets
	p := &packetPlane{model: model, modelled: modelled(opt.Trace, o.Modelled), log: o.Log}
	po := o.Plane
	po.Fabric, po.Assignments, po.Clock = o.Fabric, assigned, clock
	po.NIC = func(rail string, port int) (string, string, error) { return NIC(opt.Job, opt.Lab.File, rail, port) }
	if po.Patience == 0 {
		po.Patience = LinkPatience
	}
	if po.Fabric == nil {
		f, err := opt.Lab.Fabric(ctx, o.Hosts)
		if err != nil {
			return nil, fmt.Errorf("datagrams need NICs: %w", err)
		}
		po.Fabric = f
		p.close = append(p.close, f.Close)
	}
	packets, err := plane.NewPackets(po)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	p.packets = packets
	p.close = append(p.close, packets.Close)
	return p, nil
}

// modelled returns the operations of the first steps that are on rails.
func modelled(t *trace.Trace, steps int) map[proto.OpRef]bool {
	all := map[proto.OpRef]bool{}
	for index := range steps {
		for rank, ops := range t.Steps[index%len(t.Steps)].Ranks {
			for i, ref := range t.Refs(rank, index) {
				if ops[i].Net != trace.FrontEnd {
					all[proto.OpRef{Group: ref.Group, Op: ref.Index, Way: ref.Way}] = true
				}
			}
		}
	}
	return all
}

// Do implements plane.Plane.
func (p *packetPlane) Do(ctx context.Context, t plane.Transfer) (plane.Outcome, error) {
	if t.Net != "" || p.modelled[t.Ref] {
		return p.model.Do(ctx, t)
	}
	out, err := p.packets.Do(ctx, t)
	if err != nil || len(t.Uses) == 0 {
		return out, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count.Add(out)
	if p.log != nil {
		p.log(t, out)
	}
	return out, nil
}

// counted returns what was sent.
func (p *packetPlane) counted() Datagrams {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.count
}

// Close ends operations under way, and the hosts if they were started for the run.
func (p *packetPlane) Close() error {
	var errs []error
	for _, c := range slices.Backward(p.close) {
		errs = append(errs, c())
	}
	return errors.Join(errs...)
}
