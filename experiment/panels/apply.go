package panels

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// Report is what bringing a patch list about came to.
type Report struct {
	Run      string // its ID
	Panels   int    // that hold fibres of the list
	Fibres   []Patched
	Kept     int // fibres that were there before
	Removed  int // circuits between ports of servers that are in no list any more
	Left     int // such circuits that are left, as they are in no fibre's way
	Circuits int // that were followed from server to server
}

// Patched is a fibre of the list.
type Patched struct {
	Cable
	Held bool // it was read back
	// Light is from the command until there was light; the zero Interval where there was before, or no power monitor said.
	Light timeline.Interval
}

// Apply brings a patch list about on the switches of a lab, and records that as a run; see package sequence for what may go
// wrong. With Options.Mode Update, circuits between ports of servers that are not in the list go; otherwise they stay, and
// are refused if they are in the way. In the end all panels are read, and every circuit is followed from its source to its destination: an error that
// matches [ocs.ErrVerify] says where it is not as it should be.
func Apply(ctx context.Context, f *lab.File, r Room, p *fibre.Patch, opt sequence.Options) (*Report, error) {
	cables, err := Cables(f, r, p)
	if err != nil {
		return nil, err
	}
	a := &applying{file: f, patch: p, cables: cables, want: map[string]ocs.Map{}}
	if err := a.maps(); err != nil {
		return nil, err
	}
	l := lab.New(f, opt.Lab)
	a.before, err = read(ctx, l, f)
	if err = errors.Join(err, l.Close()); err != nil {
		return nil, err
	}
	steps := a.steps(opt.Mode)
	last := len(steps) - 1
	opt.Opened = func(s *sequence.Session) error { a.session = s; return nil }
	opt.After = func(ctx context.Context, step int, mv experiment.Move) error {
		if step < last {
			return nil
		}
		return a.verify(ctx, mv)
	}
	result, err := sequence.Play(ctx, f, steps, opt)
	if result != nil {
		a.report.Run = result.ID
	}
	return &a.report, err
}

// applying is a list that is being brought about.
type applying struct {
	file    *lab.File
	patch   *fibre.Patch
	cables  []Cable
	want    map[string]ocs.Map // of panels with fibres
	before  map[string]ocs.Map // what joined servers' ports, of all panels
	session *sequence.Session
	report  Report
}

// maps works out what panels hold.
func (a *applying) maps() error {
	circuits := map[string][]ocs.CrossConnect{}
	for _, c := range a.cables {
		circuits[c.Sender.Tx.Switch] = append(circuits[c.Sender.Tx.Switch], ocs.CrossConnect{Ingress: c.Sender.Tx.Port, Egress: c.Receiver.Rx.Port})
	}
	for name, ccs := range circuits {
		m, err := ocs.NewMap(ccs...)
		if err != nil {
			return fmt.Errorf("%w: on %s: %w", ErrRoom, name, err)
		}
		a.want[name] = m
	}
	a.report.Panels = len(a.want)
	return nil
}

// read returns the circuits between ports of servers, of all switches where such ports are.
func read(ctx context.Context, l *lab.Lab, f *lab.File) (map[string]ocs.Map, error) {
	names := map[string]bool{}
	for _, h := range f.Hosts {
		for _, n := range h.NICs {
			names[n.Tx.Switch], names[n.Rx.Switch] = true, true
		}
	}
	held, err := l.CrossConnects(ctx, slices.Sorted(maps.Keys(names))...)
	for name, m := range held {
		var own []ocs.CrossConnect
		for c := range m.All() {
			sends, _ := f.NICAt(lab.PortRef{Switch: name, Port: c.Ingress})
			_, receives := f.NICAt(lab.PortRef{Switch: name, Port: c.Egress})
			if sends != nil && receives != nil {
				own = append(own, c)
			}
		}
		held[name] = ocs.MustMap(own...) // a part of a map is a map
	}
	return held, err
}

// steps are what is moved: with Update what there is before, which takes nothing and has it go; then the list.
func (a *applying) steps(mode ocs.Policy) []sequence.Step {
	list := map[string]ocs.Map{}
	gone := map[string]ocs.Map{}
	for name, have := range a.before {
		rest := have.Minus(a.want[name])
		a.report.Kept += have.Len() - rest.Len()
		switch {
		case rest.Len() == 0:
		case mode == ocs.Update:
			a.report.Removed += rest.Len()
			gone[name], list[name] = have, ocs.Map{}
		default:
			a.report.Left += rest.Len() // or in the way, and then refused
		}
	}
	for name, m := range a.want {
		list[name] = m
	}
	steps := []sequence.Step{{Name: "patch", Maps: list}}
	if len(gone) > 0 {
		steps = append([]sequence.Step{{Name: "before", Maps: gone}}, steps...)
	}
	return steps
}

// verify reads the panels, looks for each fibre, and follows each circuit.
func (a *applying) verify(ctx context.Context, mv experiment.Move) error {
	held, err := read(ctx, a.session.Testbed.Lab, a.file)
	if err != nil {
		return err
	}
	command, light := map[string]timeline.Interval{}, map[string]timeline.Interval{}
	for _, m := range mv.Marks {
		switch m.Stage {
		case timeline.Command:
			command[m.Subject] = m.Interval
		case timeline.Light:
			light[m.Subject] = m.Interval
		}
	}
	missing := 0
	for _, c := range a.cables {
		x := Patched{Cable: c}
		egress, is := held[c.Sender.Tx.Switch].EgressOf(c.Sender.Tx.Port)
		x.Held = is && egress == c.Receiver.Rx.Port
		if !x.Held {
			missing++
		}
		at, lit := light[c.Receiver.Rx.String()]
		if sent, known := command[c.Receiver.Rx.Switch]; lit && known {
			x.Light = at.Sub(sent)
		}
		a.report.Fibres = append(a.report.Fibres, x)
	}
	if missing > 0 {
		return fmt.Errorf("%w: %d of %d fibres are not there", ocs.ErrVerify, missing, len(a.cables))
	}
	if err := a.follow(held); err != nil {
		return err
	}
	return a.session.Event("verified", fmt.Sprintf("%d circuits followed over %d fibres", a.report.Circuits, len(a.cables)))
}

// follow goes along each circuit: from the port that a server sends into, through what the panel holds, to the server whose
// port that is. It takes from the list only which port each server uses.
func (a *applying) follow(held map[string]ocs.Map) error {
	sends := map[[2]int]*lab.NIC{} // by circuit and hop
	for _, c := range a.cables {
		sends[[2]int{c.Circuit, c.Hop}] = c.Sender
	}
	for i, q := range a.patch.Result.Requests {
		at := fmt.Sprintf("s%d", q.Src)
		way := []string{at}
		for hop := 0; ; hop++ {
			nic := sends[[2]int{i, hop}]
			if nic == nil {
				break
			}
			egress, is := held[nic.Tx.Switch].EgressOf(nic.Tx.Port)
			_, receives := a.file.NICAt(lab.PortRef{Switch: nic.Tx.Switch, Port: egress})
			if nic.Host != at || !is || receives == nil {
				return fmt.Errorf("%w: circuit %d ends at %s on its way %s", ocs.ErrVerify, i, nic.FullName(), strings.Join(way, ", "))
			}
			at = receives.Host
			way = append(way, at)
		}
		if want := fmt.Sprintf("s%d", q.Dst); at != want {
			return fmt.Errorf("%w: circuit %d goes to %s and not to %s: its way is %s", ocs.ErrVerify, i, at, want, strings.Join(way, ", "))
		}
		a.report.Circuits++
	}
	return nil
}
