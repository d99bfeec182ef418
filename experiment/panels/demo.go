package panels

import (
	"context"
	"time"

	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// DemoOptions of [Demo].
type DemoOptions struct {
	sequence.Options               // Store, History and the like
	Rows, Columns    int           // of servers
	Circuits         int           // that are drawn
	Directed         bool          // count the fibres of each direction on their own
	Switching        time.Duration // of the emulated panels; 0 is the model's own
	Seed             uint64        // of the circuits
	// Routed is told of the routing before anything moves. Nil is not.
	Routed func(r *fibre.Result, p *fibre.Patch, took time.Duration)
}

// Demo draws circuits between servers, routes them over as few fibres as it can, and brings the patch list about on emulated panels
// behind real sockets. The error is that of package fibre, of [LabFile] or of [Apply].
func Demo(ctx context.Context, opt DemoOptions) (*Report, error) {
	g, err := fibre.Grid(opt.Rows, opt.Columns)
	if err != nil {
		return nil, err
	}
	requests, err := fibre.Random(g.Servers(), opt.Circuits, opt.Seed)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	r, err := fibre.Route(ctx, g, requests, fibre.Options{Directed: opt.Directed, Seed: opt.Seed})
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	p := r.Patch()
	if opt.Routed != nil {
		opt.Routed(r, p, took)
	}
	room := Room{Rows: opt.Rows, Columns: opt.Columns, Fibres: max(1, r.Fibres)}
	text, err := LabFile(room, LabOptions{Switching: opt.Switching, Seed: opt.Seed})
	if err != nil {
		return nil, err
	}
	f, err := lab.Parse("fibres.yaml", text)
	if err != nil {
		return nil, err
	}
	opt.Lab = opt.Lab.Forgetful() // without the memory of other demonstrations
	opt.Name, opt.LabText = "fibres", text
	return Apply(ctx, f, room, p, opt.Options)
}
