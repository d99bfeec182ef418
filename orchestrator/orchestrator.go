package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

// DefaultSessions is how many sessions each rail has with its switch: as many changes can be under way at a time.
const DefaultSessions = 3

// Options say what to run. Lab and Job are required.
type Options struct {
	Lab *lab.Lab
	Job *job.File
	// Rails are those to orchestrate here, by name; nil is all of the job.
	Rails []string
	// Remote are rails that are orchestrated elsewhere, by name; they stay the caller's, who closes them
	// after the System.
	Remote map[string]controller.Rail
	// NoController leaves the controller to another process.
	NoController bool

	Sessions int // with the switch, for each rail; 0 is DefaultSessions
	// StateDir holds journals and leases; "" keeps no journal and takes no lease.
	StateDir string
	// Takeover says what becomes of circuits from ports of the job to ports of others: see rail.Options.
	Takeover ocs.Policy
	// Restore puts back, in Close, what the ports held before.
	Restore bool

	// Rail are the options of all rails that are not about which it is: Attempts, Timeout, Verify, Threshold, Patience,
	// Health, Revive, Gate and Changed.
	Rail rail.Options
	// Controller are those of the controller: Granularity, Barrier, Drain, ResumeAfter, NoUnion, Name and Log.
	Controller controller.Options
}

// System is what Open has started. Its methods are safe for concurrent use.
type System struct {
	Rails      map[string]*rail.Orchestrator // those orchestrated here
	Controller *controller.Controller        // nil with NoController

	opt     Options
	places  []*place
	stop    context.CancelFunc
	running sync.WaitGroup
}

// place is a switch with rails of the job.
type place struct {
	name     string
	sw       *lab.Opened
	ports    map[ocs.Port]bool // of all those rails
	sessions []ocs.Switch
	release  func() error // ends the lease; nil if there is none
	taken    bool         // before is known, and nobody else may move the ports
	before   ocs.Map      // circuits that used one of ports
	recorded ocs.Map      // circuits that the entry in the history says are there instead
	id       int          // of the entry in the history; 0 is none
}

// Open takes the ports of the job over and starts its control plane: a rail begins with the configuration that its
// journal has, else with the giant ring. With an error nothing is left behind but what a switch could not be
// brought back from.
func Open(ctx context.Context, opt Options) (_ *System, err error) {
	s := &System{Rails: map[string]*rail.Orchestrator{}, opt: opt}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.WithoutCancel(ctx), true))
		}
	}()
	names := opt.Rails
	if names == nil {
		for _, r := range opt.Job.Rails {
			if opt.Remote[r.Name] == nil {
				names = append(names, r.Name)
			}
		}
	}
	assigned := map[string]opus.Assignment{}
	for _, name := range names {
		r, ok := opt.Job.Rail(name)
		if !ok {
			return nil, fmt.Errorf("job %s has no rail %q", opt.Job.Name, name)
		}
		if assigned[name], err = opt.Job.Assignment(name, opt.Lab.File); err != nil {
			return nil, err
		}
		if err := s.place(ctx, r.SwitchName(), assigned[name]); err != nil {
			return nil, err
		}
	}
	for _, p := range s.places {
		if err := s.take(ctx, p, assigned); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		if err := s.rail(ctx, name, assigned[name]); err != nil {
			return nil, err
		}
	}
	for _, p := range s.places {
		if p.id != 0 {
			if err := s.book().End(p.id, history.Done, history.Result{}); err != nil {
				return nil, err
			}
		}
	}
	if opt.NoController {
		return s, nil
	}
	return s, s.control(ctx)
}

// place finds the switch of a rail, and adds the rail's ports.
func (s *System) place(ctx context.Context, name string, a opus.Assignment) error {
	i := slices.IndexFunc(s.places, func(p *place) bool { return p.name == name })
	if i < 0 {
		sw, err := s.opt.Lab.Switch(ctx, name)
		if err != nil {
			return err
		}
		i = len(s.places)
		s.places = append(s.places, &place{name: name, sw: sw, ports: map[ocs.Port]bool{}})
	}
	for _, f := range a {
		s.places[i].ports[f.In], s.places[i].ports[f.Out] = true, true
	}
	return nil
}

// take leases the ports of a switch, and records what they hold before that is changed.
func (s *System) take(ctx context.Context, p *place, assigned map[string]opus.Assignment) error {
	var err error
	if p.release, err = p.sw.Gate().Lease(ctx, p.sw, slices.Collect(maps.Keys(p.ports)), "job "+s.opt.Job.Name); err != nil {
		return err
	}
	have, err := p.sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	p.taken, p.before = true, p.only(have)
	ring, err := opus.GiantRing(s.opt.Job.Job())
	if err != nil {
		return err
	}
	var want ocs.Map
	for name, a := range assigned {
		if r, _ := s.opt.Job.Rail(name); r.SwitchName() != p.name {
			continue
		}
		m, err := a.Map(ring)
		if err == nil {
			want, err = want.Plus(m)
		}
		if err != nil {
			return fmt.Errorf("rail %s: %w", name, err)
		}
	}
	p.recorded = want
	if c := ocs.Diff(p.before, want); !c.Empty() {
		p.id, err = s.begin(ctx, history.Entry{Switch: p.name, Device: p.sw.Device, Command: s.opt.Lab.Command(), Who: panics.Me(), Change: c})
	}
	return err
}

// book is where the history of the lab is kept.
func (s *System) book() lab.Authority { return s.opt.Lab.Gate().Authority() }

// begin records one change.
func (s *System) begin(ctx context.Context, e history.Entry) (int, error) {
	ids, err := s.book().BeginAll(ctx, []history.Entry{e})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// only returns the cross-connects of m that use a port of p.
func (p *place) only(m ocs.Map) ocs.Map {
	var ours []ocs.CrossConnect
	for c := range m.All() {
		if p.ports[c.Ingress] || p.ports[c.Egress] {
			ours = append(ours, c)
		}
	}
	return ocs.MustMap(ours...)
}

// rail starts the orchestrator of a rail.
func (s *System) rail(ctx context.Context, name string, a opus.Assignment) error {
	r, _ := s.opt.Job.Rail(name)
	p := s.places[slices.IndexFunc(s.places, func(p *place) bool { return p.name == r.SwitchName() })]
	n := s.opt.Sessions
	if n <= 0 {
		n = DefaultSessions
	}
	opt := s.opt.Rail
	opt.Rail, opt.Switch, opt.Job, opt.Policy, opt.Assignment = name, p.name, s.opt.Job.Job(), s.opt.Job.OpusPolicy(), a
	opt.Protected, opt.Takeover = s.opt.Lab.File.ProtectedPorts(p.name), s.opt.Takeover
	opt.Where = func(port ocs.Port) string { return s.opt.Job.Where(name, s.opt.Lab.File, port) }
	if s.opt.StateDir != "" {
		opt.Dir = filepath.Join(s.opt.StateDir, "orchestrator", fileName(p.sw.Device))
		opt.Dark = s.opt.Lab.Gate().RefuseInPanic
	}
	for range n {
		sw, err := s.opt.Lab.Session(ctx, p.name)
		if err != nil {
			return err
		}
		p.sessions = append(p.sessions, sw)
		opt.Sessions = append(opt.Sessions, sw)
	}
	o, err := rail.New(ctx, opt)
	if err != nil {
		return err
	}
	s.Rails[name] = o
	return nil
}

// fileName is a device as a name of a file.
func fileName(device string) string {
	b := []byte(device)
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' {
			b[i] = '_'
		}
	}
	return string(b)
}

// control starts the controller.
func (s *System) control(ctx context.Context) error {
	opt := s.opt.Controller
	opt.Job, opt.Policy, opt.Rails = s.opt.Job.Job(), s.opt.Job.OpusPolicy(), map[string]controller.Rail{}
	for name, o := range s.Rails {
		opt.Rails[name] = o
	}
	for name, r := range s.opt.Remote {
		opt.Rails[name] = r
	}
	if opt.Who == nil {
		opt.Who = s.opt.Job.Who
	}
	c, err := controller.New(opt)
	if err != nil {
		return err
	}
	s.Controller = c
	ctx, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	s.running.Go(func() { _ = c.Run(ctx) }) // it ends with ctx only; what fails on a rail is in its status and log
	return nil
}

// Close stops the control plane. The circuits stay as they are or, with Options.Restore, what the ports held before
// comes back.
func (s *System) Close(ctx context.Context) error { return s.close(ctx, s.opt.Restore) }

func (s *System) close(ctx context.Context, restore bool) error {
	if s.stop != nil {
		s.stop()
		s.running.Wait()
	}
	var errs []error
	all := func(c io.Closer) { errs = append(errs, c.Close()) }
	for _, o := range s.Rails {
		all(o)
	}
	for _, p := range s.places {
		for _, sw := range p.sessions {
			all(sw)
		}
		if restore && p.taken {
			errs = append(errs, s.restore(ctx, p))
		} else if p.taken {
			errs = append(errs, s.record(ctx, p))
		}
		if p.release != nil {
			errs = append(errs, p.release())
		}
	}
	s.Rails, s.places, s.stop = nil, nil, nil
	return errors.Join(errs...)
}

// restore puts back what the ports of a switch held before. What others have put in its place stays.
func (s *System) restore(ctx context.Context, p *place) error {
	back := func(have ocs.Map) (ocs.Change, error) { return ocs.Diff(p.only(have), p.before), nil }
	have, err := p.sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	if c, _ := back(have); c.Empty() {
		return nil
	}
	_, err = p.sw.Gate().Apply(ctx, lab.Intent{On: p.sw, Plan: back, Command: s.opt.Lab.Command() + " (put back)", UndoOf: p.id, Restore: true, Verify: lab.VerifyTable})
	return err
}

// record brings the history up to date with what a switch holds at the end, so that one undo takes all of it back: the
// entry of the beginning has only what the rails began with. That counts as taken back, and an entry from what the
// ports held before to what they hold now takes its place.
func (s *System) record(ctx context.Context, p *place) error {
	have, err := p.sw.CrossConnects(ctx)
	if err != nil {
		return err // the entry of the beginning stays, and takes back what is left of that
	}
	now := p.only(have)
	if now.Equal(p.recorded) && (p.id != 0 || now.Equal(p.before)) {
		return nil
	}
	entry := history.Entry{Switch: p.name, Device: p.sw.Device, Command: s.opt.Lab.Command() + " (as it ended)", Who: panics.Me()}
	var all []history.Entry
	if c := ocs.Diff(p.before, now); !c.Empty() {
		e := entry
		e.Change = c
		all = append(all, e)
	}
	if p.id != 0 {
		e := entry
		e.UndoOf, e.Change = p.id, ocs.Diff(p.recorded, p.before)
		all = append(all, e)
	}
	for _, e := range all {
		id, err := s.begin(ctx, e)
		if err != nil {
			return err
		}
		if err := s.book().End(id, history.Done, history.Result{}); err != nil {
			return err
		}
	}
	return nil
}
