package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

// controlFlags are those of all that runs a control plane.
type controlFlags struct {
	granularity, verify            string
	attempts, sessions             int
	timeout, barrier, drain, again time.Duration
	health                         time.Duration
	threshold                      float64
	revive                         bool
}

func (f *controlFlags) add(s *pflag.FlagSet) {
	s.StringVar(&f.granularity, "granularity", string(controller.Stage), "what a request moves: `stage|circuit|published`; published is UNSAFE")
	s.StringVar(&f.verify, "verify", "", "how a change is verified: by the `table|light` (default light where the switch has power monitors)")
	s.Float64Var(&f.threshold, "threshold", float64(ocs.NoLight), "`DBM` at an egress that count as light")
	s.IntVar(&f.attempts, "attempts", rail.DefaultAttempts, "tries of a change before the rail falls back to its giant ring")
	s.IntVar(&f.sessions, "sessions", orchestrator.DefaultSessions, "sessions of a rail with its switch, one change at a time each")
	s.DurationVar(&f.timeout, "attempt-timeout", 0, "how long a try may take (default by the switch, 1s or more)")
	s.DurationVar(&f.barrier, "barrier", controller.DefaultBarrier, "how long a rank waits for the others of its group")
	s.DurationVar(&f.drain, "drain", controller.DefaultDrain, "how long a fallback waits for what runs; then the rail is dead")
	s.DurationVar(&f.again, "resume-after", 0, "try the plan again so long after a fallback (default never)")
	s.BoolVar(&f.revive, "revive", false, "bring rails back that are dead")
	s.DurationVar(&f.health, "health", rail.DefaultHealth, "period of looking for what others changed; negative is never")
}

// options fills in those of the control plane, and warns of what is unsafe.
func (a *app) controlOptions(f *controlFlags, o *orchestrator.Options) error {
	g := controller.Granularity(f.granularity)
	if !slices.Contains(controller.Granularities, g) {
		return usagef("--granularity %q: want stage, circuit or published", f.granularity)
	}
	v := rail.Verify(f.verify)
	switch v {
	case "", rail.Table, rail.Light:
	case "read-back": // its name in earlier versions
		v = rail.Table
	default:
		return usagef("--verify %q: want table or light", f.verify)
	}
	if f.attempts < 1 || f.sessions < 1 {
		return usagef("--attempts and --sessions: want 1 or more")
	}
	if g == controller.Published {
		fmt.Fprintf(a.err, "ocslab: --granularity published is UNSAFE: circuits are moved under operations that use them, and bytes are lost. It is there to show that\n"+
			"        the observer notices; never use it for a job that matters\n")
	}
	o.Sessions = f.sessions
	o.Rail.Attempts, o.Rail.Timeout, o.Rail.Verify, o.Rail.Threshold, o.Rail.Health = f.attempts, f.timeout, v, ocs.DBm(f.threshold), f.health
	o.Rail.Revive = f.revive
	o.Controller.Granularity, o.Controller.Barrier, o.Controller.Drain, o.Controller.ResumeAfter = g, f.barrier, f.drain, f.again
	return nil
}

func (a *app) orchestrateCommand() *cobra.Command {
	var control controlFlags
	var secure tlsFlags
	var listen, planeAt, truth string
	var rails, remote []string
	var only string
	var restore bool
	c := &cobra.Command{
		Use:   "orchestrate JOB",
		Short: "Serve the rails of a training job: the Opus control plane",
		Long: `Take over the ports of a training job and move its circuits as its ranks ask, until interrupted.

JOB is a job file: which ranks there are, and which NICs of the lab are theirs. A rail
begins with what its journal says, else with the giant ring through all ranks. Ranks
connect with "ocslab replay-job --connect", or with their own shim (package shim, or
anything that speaks the protocol of package proto). While it runs, the ports of the
job are leased: other commands are refused them. The circuits stay when it ends;
--restore puts back what the ports held before.

A rail that is dead, as after a panic, stays so, whoever starts it: --revive brings it
back to its last plan, or else to the giant ring.

--only rails serves rails to a controller elsewhere, and --only controller is that
controller, with --remote RAIL=ADDRESS for each rail. With --emulated, --plane serves
the data plane that ranks of other processes move their bytes through, and --truth
writes what the light really did, for "ocslab audit".

With --granularity published a digit changes when one group has asked, whoever uses
the circuits. That loses bytes, and shows that the observer notices.

Where the switch has power monitors, ranks may run when these show the light of their
circuits; a circuit that is connected and dark is a failure of the change, unless no
light comes in. --verify table compares the switch's table of circuits only. When it is
interrupted and a rail is dead, or has had dark circuits, the exit code is 5.`,
		Example: "  ocslab --lab examples/opus-rails.yaml --emulated orchestrate examples/lab-job.yaml\n  ocslab --lab lab.yaml orchestrate job.yaml --only rails --listen 127.0.0.1:7401",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			opt := orchestrator.Options{Rails: rails, Restore: restore}
			if err := a.controlOptions(&control, &opt); err != nil {
				return err
			}
			a.offer = true
			f, err := a.jobOf(&opt, args[0])
			if err != nil {
				return err
			}
			dialed, err := a.remoteRails(cmd.Context(), &opt, &secure, only, remote)
			defer func() {
				for _, c := range dialed {
					_ = c.Close() // what was under way has been told
				}
			}()
			if err != nil {
				return err
			}
			if opt.Takeover, err = a.mode(); err != nil {
				return err
			}
			if err := opt.Lab.Gate().RefuseInPanic(); err != nil && only != "controller" {
				return fmt.Errorf("no rail is taken over: %w", err)
			}
			return a.orchestrate(cmd.Context(), f, opt, &secure, listen, planeAt, truth)
		},
	}
	f := c.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7400", "`ADDRESS` for ranks and controllers")
	f.StringSliceVar(&rails, "rail", nil, "rails of the job to serve (default all)")
	f.StringVar(&only, "only", "", "`rails|controller`: one part of it")
	f.StringSliceVar(&remote, "remote", nil, "`RAIL=ADDRESS` of a rail that is served elsewhere")
	f.StringVar(&planeAt, "plane", "", "`ADDRESS` to serve the emulated data plane at")
	f.StringVar(&truth, "truth", "", "write what the light of emulated switches did to `FILE`")
	f.BoolVar(&restore, "restore", false, "put back at the end what the ports held before")
	a.addMode(c, string(ocs.Safe))
	secure.add(f)
	control.add(f)
	return c
}

// remoteRails connects to rails that are served elsewhere.
func (a *app) remoteRails(ctx context.Context, opt *orchestrator.Options, secure *tlsFlags, only string, remote []string) ([]*rail.Client, error) {
	switch only {
	case "", "controller":
	case "rails":
		opt.NoController = true
		if len(remote) > 0 {
			return nil, usagef("--remote is for a controller, and --only rails is none")
		}
	default:
		return nil, usagef("--only %q: want rails or controller", only)
	}
	for _, name := range opt.Rails {
		if err := railOf(opt.Job, name); err != nil {
			return nil, fmt.Errorf("--rail %s: %w", name, err)
		}
	}
	opt.Remote = map[string]controller.Rail{}
	var dialed []*rail.Client
	for _, r := range remote {
		name, address, ok := strings.Cut(r, "=")
		if !ok {
			return dialed, usagef("--remote %q: want RAIL=ADDRESS", r)
		}
		if err := railOf(opt.Job, name); err != nil {
			return dialed, fmt.Errorf("--remote %s: %w", r, err)
		}
		if slices.Contains(opt.Rails, name) || opt.Remote[name] != nil {
			return dialed, usagef("--remote %s: rail %s is named twice", r, name)
		}
		dial, err := secure.dialer(address)
		if err != nil {
			return dialed, err
		}
		c := rail.Dial(ctx, a.telling(name+" at "+address, dial), rail.ClientOptions{Rail: name})
		dialed = append(dialed, c)
		opt.Remote[name] = c
	}
	if only != "controller" {
		return dialed, nil
	}
	for _, r := range opt.Job.Rails {
		if opt.Remote[r.Name] == nil {
			return dialed, usagef("--only controller takes --remote RAIL=ADDRESS for each rail of the job: %s has none", r.Name)
		}
	}
	opt.Rails = []string{}
	return dialed, nil
}

// railOf returns an error if a job has no such rail.
func railOf(f *job.File, name string) error {
	var names []string
	for _, r := range f.Rails {
		if r.Name == name {
			return nil
		}
		names = append(names, r.Name)
	}
	return usagef("job %s has no such rail: it has %s", f.Name, strings.Join(names, ", "))
}

// telling is a dial that says once on stderr why what is tried again and again fails, and when it has worked. It is
// not for several goroutines.
func (a *app) telling(what string, dial func(context.Context) (net.Conn, error)) func(context.Context) (net.Conn, error) {
	var mu sync.Mutex
	var last string
	failed := func(ctx context.Context, err error) {
		mu.Lock()
		defer mu.Unlock()
		if said := err.Error(); said != last && ctx.Err() == nil {
			last = said
			fmt.Fprintf(a.err, "ocslab: %s: %v; trying again\n", what, err)
		}
	}
	return func(ctx context.Context) (net.Conn, error) {
		c, err := dial(ctx)
		if err != nil {
			failed(ctx, err)
			return nil, err
		}
		return &firstRead{Conn: c, done: func(err error) {
			mu.Lock()
			again := last != "" && err == nil
			mu.Unlock()
			if err != nil {
				failed(ctx, err) // with TLS 1.3 a certificate is refused after the handshake
			} else if again {
				fmt.Fprintf(a.err, "ocslab: %s: connected\n", what)
			}
		}}, nil
	}
}

// jobOf reads a job file, and fills in the lab, the state and the history.
func (a *app) jobOf(opt *orchestrator.Options, path string) (*job.File, error) {
	l, err := a.lab()
	if err != nil {
		return nil, err
	}
	if l == nil {
		return nil, usagef("a job runs on the NICs of a lab: give --lab FILE")
	}
	f, err := job.Load(path, l.File)
	if err != nil {
		return nil, usageError{err}
	}
	opt.Lab, opt.Job = l, f
	if opt.StateDir, err = a.stateDir(); err != nil {
		return nil, err
	}
	return f, nil
}

// orchestrateLine says that the control plane can be reached.
type orchestrateLine struct {
	Kind    string     `json:"kind"` // "ready"
	Job     string     `json:"job"`
	Address string     `json:"address"`
	Plane   string     `json:"plane,omitempty"`
	Rails   []railLine `json:"rails"`
}

type railLine struct {
	Rail       string `json:"rail"`
	Switch     string `json:"switch"`
	Shape      string `json:"shape"`
	ID         string `json:"topology_id,omitempty"`
	Generation uint64 `json:"generation"`
	Verify     string `json:"verify"`
	Reason     string `json:"reason,omitempty"` // of a dead rail
}

func (a *app) orchestrate(ctx context.Context, f *job.File, opt orchestrator.Options, secure *tlsFlags, listen, planeAt, truth string) (err error) {
	l, err := secure.listen(listen)
	if err != nil {
		return err
	}
	defer l.Close()
	opt.Controller.Log = a.controlLog()
	assigned := map[string]opus.Assignment{}
	devices := map[string]*emulator.Device{}
	for _, r := range f.Rails {
		if assigned[r.Name], err = f.Assignment(r.Name, opt.Lab.File); err != nil {
			return err
		}
		if !a.set.Emulated || opt.Rails != nil && !slices.Contains(opt.Rails, r.Name) {
			continue
		}
		o, err := opt.Lab.Switch(ctx, r.SwitchName())
		if err != nil {
			return err
		}
		if o.Emulated != nil && o.Emulated.Device != nil {
			devices[r.SwitchName()] = o.Emulated.Device
		}
	}
	if len(devices) == 0 && (planeAt != "" || truth != "") {
		return usagef("--plane and --truth are of emulated switches of this process: give --emulated")
	}
	if truth != "" {
		file, createErr := os.Create(truth) // it is written at the end; that it cannot be is said now
		if createErr != nil {
			return usageError{createErr}
		}
		stop := check.RecordAll(devices)
		defer func() {
			all, stopErr := stop()
			err = errors.Join(err, stopErr, check.WriteTruth(file, all), file.Close())
		}()
	}
	s, err := orchestrator.Open(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	ready := orchestrateLine{Kind: "ready", Job: f.Name, Address: l.Addr().String()}
	for _, name := range sorted(s.Rails) {
		st := s.Rails[name].Status()
		x := railLine{Rail: name, Switch: st.Switch, Shape: string(st.Shape), ID: st.ID, Generation: st.Generation, Verify: string(st.Verify)}
		if st.Shape == proto.Dead {
			x.Reason = st.Reason
		}
		ready.Rails = append(ready.Rails, x)
	}
	var serving sync.WaitGroup
	defer serving.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, 2)
	if planeAt != "" {
		pl, err := secure.listen(planeAt)
		if err != nil {
			return err
		}
		ready.Plane = pl.Addr().String()
		clock := plane.NewClock()
		defer clock.Close()
		p := plane.NewEmulated(plane.EmulatedOptions{Devices: devices, Assignments: assigned, Clock: clock})
		defer p.Close()
		serving.Go(func() { errs <- plane.Serve(ctx, pl, p) })
	}
	a.printControl(ready, opt.NoController)
	serving.Go(func() { errs <- s.Serve(ctx, l) })
	select {
	case err = <-errs:
	case <-ctx.Done():
	}
	cancel()
	states := map[string]rail.Status{}
	for name, o := range s.Rails {
		states[name] = o.Status()
	}
	if s.Controller != nil {
		for _, r := range s.Controller.Status().Rails {
			if opt.Remote[r.Rail] != nil {
				states[r.Rail] = rail.Status{Rail: r.Rail, Shape: r.Shape, Reason: r.Reason}
			}
		}
	}
	failed := failuresOf(states, nil)
	if a.set.JSON && len(failed) > 0 {
		a.json(endLine{"end", f.Name, failed})
	}
	if broken := railError(failed, nil); broken != nil {
		return errors.Join(err, ended{broken})
	}
	return err
}

// endLine says which rails have failed when the control plane ends. There is none when no rail has.
type endLine struct {
	Kind   string        `json:"kind"` // "end"
	Job    string        `json:"job"`
	Failed []railFailure `json:"failed_rails"`
}

func (a *app) printControl(r orchestrateLine, noController bool) {
	if a.set.JSON {
		a.json(r)
		return
	}
	for _, x := range r.Rails {
		why := ""
		if x.Reason != "" {
			why = ": " + x.Reason
		}
		a.printf("%s on %s: %s, generation %d%s\n", x.Rail, x.Switch, shapeWords(x.Shape, x.ID), x.Generation, why)
	}
	if noController {
		a.printf("job %s at %s; its controller is: ocslab orchestrate JOB --only controller", r.Job, r.Address)
		for _, x := range r.Rails {
			a.printf(" --remote %s=%s", x.Rail, r.Address)
		}
		a.printf("\n")
	} else {
		a.printf("job %s at %s; ranks join with: ocslab replay-job TRACE --connect %s\n", r.Job, r.Address, r.Address)
	}
	if r.Plane != "" {
		a.printf("data plane at %s; ranks share it with --plane %s\n", r.Plane, r.Plane)
	}
	a.printf("until interrupted\n")
}

// shapeWords says what a rail holds: "topology 11", "giant ring".
func shapeWords(shape, id string) string {
	if id != "" {
		return "topology " + id
	}
	return strings.ReplaceAll(shape, "-", " ")
}

// controlLine is something that the control plane did, or that was done to it.
type controlLine struct {
	Kind       string `json:"kind"` // "control"
	AtNS       int64  `json:"at_ns"`
	Event      string `json:"event"`
	Rail       string `json:"rail"`
	Rank       *int   `json:"rank,omitempty"`
	Group      string `json:"group,omitempty"`
	ID         string `json:"topology_id,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Removed    *int   `json:"removed,omitempty"`
	Added      *int   `json:"added,omitempty"`
	DurationNS int64  `json:"duration_ns,omitempty"` // from the command until it was read back
	Code       string `json:"code,omitempty"`
	Detail     string `json:"detail,omitempty"`
}

// toldOfControl are the events of a controller that people want to see.
var toldOfControl = []controller.EventKind{
	controller.EventOpened, controller.EventHello, controller.EventLost, controller.EventBye, controller.EventRefused, controller.EventDone, controller.EventFailed,
	controller.EventNack, controller.EventFallback, controller.EventDead, controller.EventResume, controller.EventAlarm,
}

// controlLog prints events of a controller. It is called from several goroutines.
func (a *app) controlLog() func(controller.Event) {
	var mu sync.Mutex
	return func(e controller.Event) {
		if !slices.Contains(toldOfControl, e.Kind) || e.Kind == controller.EventNack && e.Mode == proto.Provision {
			return // a prediction that is refused stops nobody
		}
		mu.Lock()
		defer mu.Unlock()
		line := controlLine{Kind: "control", AtNS: e.AtNS, Event: string(e.Kind), Rail: e.Rail, Group: e.Ref.Group, ID: e.ID,
			Generation: e.Generation, Code: string(e.Code), Detail: e.Detail}
		if e.Rank >= 0 {
			line.Rank = &e.Rank
		}
		if d := e.Done; d != nil {
			line.Removed, line.Added, line.Generation = &d.Removed, &d.Added, d.Generation
			if d.CommandNS != 0 { // it took a command
				line.DurationNS = d.VerifiedNS - d.CommandNS
			}
		}
		if a.set.JSON {
			a.json(line)
			return
		}
		text := fmt.Sprintf("%s %s", time.Now().Format("15:04:05.000"), e.Rail)
		if e.Rank >= 0 {
			text += fmt.Sprintf(" rank %d", e.Rank)
		}
		text += " " + string(e.Kind)
		if e.ID != "" {
			text += " " + e.ID
		}
		if e.Done != nil {
			text += fmt.Sprintf(" -%d +%d in %v, generation %d", e.Done.Removed, e.Done.Added, time.Duration(line.DurationNS).Round(time.Microsecond), line.Generation)
		}
		if e.Ref.Group != "" {
			text += fmt.Sprintf(" for %s operation %d", e.Ref.Group, e.Ref.Op)
		}
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		a.printf("%s\n", text)
	}
}
