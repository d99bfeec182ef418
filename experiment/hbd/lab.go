package hbd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// Errors of this package. Test with errors.Is.
var (
	// ErrLab: a lab that is none of the line, or a line of which no lab can be made.
	ErrLab = errors.New("the lab is not that of the line")
	// ErrMixed: a bundle whose lanes are not all in one state.
	ErrMixed = errors.New("the lanes of a bundle differ")
)

// Models of boards that a lab file may have.
const (
	EightModules = "ocstrx-8x112g-x8" // a bundle of eight modules, the default
	OneModule    = "ocstrx-8x112g"    // for small labs
)

// maxBundles is how many bundles a lab file may get: each is a server when it is emulated.
const maxBundles = 4096

// LabOptions of [LabFile].
type LabOptions struct {
	Name  string // of the lab; "" is "infinitehbd"
	Model string // of the boards; "" is EightModules
	Seed  uint64
}

// Name returns the name of the switch that is a bundle: "n06-r". A bundle has the same name in lines of up to 99 nodes.
func Name(line infinitehbd.Line, n infinitehbd.Node, bundle int) string {
	highest := infinitehbd.Node(0)
	for _, n := range line.Order {
		highest = max(highest, n)
	}
	return nameIn(highest, n, line.Layout.Bundles[bundle])
}

func nameIn(highest, n infinitehbd.Node, b infinitehbd.Bundle) string {
	return fmt.Sprintf("n%0*d-%s", max(2, len(fmt.Sprint(int(highest)))), int(n), strings.ToLower(b.Name))
}

// LabFile returns a lab file with an emulated board for each bundle of a line, and its cables. The error is that of
// [infinitehbd.Line.Check], or matches ErrLab for a model that is no board or more than 4096 bundles.
func LabFile(line infinitehbd.Line, opt LabOptions) ([]byte, error) {
	if err := line.Check(); err != nil {
		return nil, err
	}
	if opt.Model == "" {
		opt.Model = EightModules
	}
	if opt.Name == "" {
		opt.Name = "infinitehbd"
	}
	if n := len(line.Order) * len(line.Layout.Bundles); n > maxBundles {
		return nil, fmt.Errorf("%w: the line has %d bundles: a lab file for %d or fewer can be written", ErrLab, n, maxBundles)
	}
	e, err := lab.EmulationOf(opt.Model)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLab, err)
	}
	if e.Transceivers == nil {
		return nil, fmt.Errorf("%w: model %.60q is no board of transceivers: want %s or %s", ErrLab, opt.Model, EightModules, OneModule)
	}
	cables, err := line.Cables()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# InfiniteHBD: %d nodes of %d GPUs in a line. Switch n06-r is bundle R of node 6. Give the switches a url to\n"+
		"# drive real ones.\nname: %s\n\nswitches:\n", len(line.Order), line.Layout.GPUs, opt.Name)
	names := namesOf(line)
	for _, n := range line.Order {
		for i := range line.Layout.Bundles {
			fmt.Fprintf(&b, "  - {name: %s, emulate: {model: %s, seed: %d}}\n", names[n][i], opt.Model,
				opt.Seed*maxBundles+uint64(n)*uint64(len(line.Layout.Bundles))+uint64(i))
		}
	}
	b.WriteString("\ncables:\n")
	for _, c := range cables {
		fmt.Fprintf(&b, "  - {a: %s/%d, b: %s/%d}\n", names[c.A.Node][c.A.Bundle], fibre(c.A), names[c.B.Node][c.B.Bundle], fibre(c.B))
	}
	return []byte(b.String()), nil
}

// fibre is the number of the fibre at an end of a cable, 1 or 2.
func fibre(e infinitehbd.End) int { return int(e.Path-infinitehbd.Path1) + 1 }

// namesOf returns the names of all bundles, by node and bundle.
func namesOf(line infinitehbd.Line) map[infinitehbd.Node][]string {
	highest := infinitehbd.Node(0)
	for _, n := range line.Order {
		highest = max(highest, n)
	}
	names := map[infinitehbd.Node][]string{}
	for _, n := range line.Order {
		for _, b := range line.Layout.Bundles {
			names[n] = append(names[n], nameIn(highest, n, b))
		}
	}
	return names
}

// Domain is a line of nodes in an open lab. It is safe for concurrent use but for Bring and CheckCables, which change
// what they look at.
type Domain struct {
	lab    *lab.Lab
	line   infinitehbd.Line
	names  map[infinitehbd.Node][]string
	cables []infinitehbd.Cable
	checks *lab.Operation // the changes of checks of cables, of which there are many
}

// New returns the domain of a line in a lab. The error is that of [infinitehbd.Line.Check], or matches ErrLab and names
// the bundle that the lab does not have.
func New(l *lab.Lab, line infinitehbd.Line) (*Domain, error) {
	cables, err := line.Cables()
	if err != nil {
		return nil, err
	}
	d := &Domain{lab: l, line: line, names: namesOf(line), cables: cables, checks: l.Gate().Operation()}
	for _, n := range line.Order {
		for i, name := range d.names[n] {
			if _, there := l.File.Switch(name); !there {
				return nil, fmt.Errorf("%w: lab %s has no switch %s for bundle %s of node %d", ErrLab, l.File.Name, name,
					line.Layout.Bundles[i].Name, n)
			}
		}
	}
	return d, nil
}

// Line returns the line of the domain.
func (d *Domain) Line() infinitehbd.Line { return d.line }

// Ref is a bundle of a node.
type Ref struct {
	Node   infinitehbd.Node
	Bundle int // index in the layout
}

// Name returns the name of the switch that a bundle is.
func (d *Domain) Name(r Ref) string { return d.names[r.Node][r.Bundle] }

// Open opens the switches of all bundles but those of some nodes, all at the same time. What is open stays so. The error
// names those that do not open.
func (d *Domain) Open(ctx context.Context, without ...infinitehbd.Node) error {
	return d.each(d.refs(without...), func(r Ref) error {
		_, err := d.lab.Switch(ctx, d.Name(r))
		return err
	})
}

// refs returns all bundles in the order of the line, but those of some nodes.
func (d *Domain) refs(without ...infinitehbd.Node) []Ref {
	skip := map[infinitehbd.Node]bool{}
	for _, n := range without {
		skip[n] = true
	}
	var all []Ref
	for _, n := range d.line.Order {
		for i := range d.line.Layout.Bundles {
			if !skip[n] {
				all = append(all, Ref{n, i})
			}
		}
	}
	return all
}

// each does something with several bundles at the same time, and returns all errors in order.
func (d *Domain) each(refs []Ref, do func(Ref) error) error {
	errs := make([]error, len(refs))
	var all sync.WaitGroup
	for i, r := range refs {
		all.Go(func() { errs[i] = experiment.Guard(func() error { return do(r) }) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// modules returns how many modules a bundle has.
func modules(ctx context.Context, sw ocs.Switch) (int, error) {
	id, err := sw.Identify(ctx)
	if err != nil {
		return 0, err
	}
	if id.Geometry.Lanes != lanes {
		return 0, fmt.Errorf("%w: %s is %v and no bundle of OCSTrx", ErrLab, id.Model, id.Geometry)
	}
	return id.Geometry.Ingress / lanes, nil
}
