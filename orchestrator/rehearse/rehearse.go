// Package rehearse runs a whole training job on the Opus control plane in one process: rails and
// controller on the switches of a lab, ranks that replay a trace and reach them over TCP, the data plane, and the
// observer that checks them.
//
//	out, err := rehearse.Run(ctx, rehearse.Options{Trace: t})
//	fmt.Println(out.Result.Mean().Wall, out.Verdict)
//
// Without a lab, switches are emulated that are large enough. See package replay for what is measured of this, and what modelled.
package rehearse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/topology/opus"
)

// Options say what is run, and on what. Trace is required.
type Options struct {
	Trace *trace.Trace

	// Lab and Job go together: the switches and the ranks' NICs on them. With neither, both are made for the
	// trace, with emulated switches that take Switching for a change.
	Lab       *lab.Lab
	Job       *job.File
	Policy    opus.Policy // of a job that is made here; "" is pair
	Switching time.Duration

	// System are the options of the control plane; Lab and Job are filled in.
	System orchestrator.Options
	// Replay are those of the ranks; Trace, Job, Rails, Switches, Dial, Host, Plane and Clock are filled in where they are
	// not set.
	Replay replay.Options

	// Packets, if set, carries operations as datagrams between the NICs of Lab, which must be emulated; with Replay.Plane, that is
	// the model of it.
	Packets *Packets

	// OpLog and TruthLog, if set, get the logs that [check.Check] reads.
	OpLog, TruthLog io.Writer
	// Opened, if set, is called when the control plane is open and before the ranks begin.
	Opened func(*orchestrator.System)
}

// Outcome is what became of it.
type Outcome struct {
	Result *replay.Result
	// Verdict is the observer's; nil if no switch is emulated here, so that nobody knows the truth.
	Verdict *check.Verdict
	Truth   check.Truth
	// Controller and Rails are as they were after the last step.
	Controller controller.Status
	Rails      map[string]rail.Status
	Datagrams  Datagrams // with Options.Packets
}

// Run runs it. With an error the outcome has what there is, and may be nil; everything that Run has started has
// ended when it returns, and the circuits are as System.Restore says.
func Run(ctx context.Context, opt Options) (out *Outcome, err error) {
	if opt.Replay.Native {
		return native(ctx, opt)
	}
	made := opt.Lab == nil
	if made {
		policy := opt.Policy
		if policy == "" {
			policy = opus.Pair
		}
		in, f, err := job.Emulated(opt.Trace.Job, max(opt.Trace.Rails, 1), policy, opt.Switching)
		if err != nil {
			return nil, err
		}
		opt.Job = f
		opt.Lab = lab.New(in, lab.Options{Emulated: true})
		defer func() { err = errors.Join(err, opt.Lab.Close()) }()
	}
	if err := fits(opt.Trace, opt.Job); err != nil {
		return nil, err
	}
	if opt.Packets != nil {
		patient(&opt)
	}
	system := opt.System
	system.Lab, system.Job = opt.Lab, opt.Job
	out = &Outcome{Rails: map[string]rail.Status{}}

	devices, err := emulations(ctx, opt.Lab, opt.Job)
	if err != nil {
		return out, err
	}
	if made {
		if err := fastSampling(devices); err != nil {
			return out, err
		}
	}
	record := check.RecordAll(devices)
	stop := func() (err error) {
		out.Truth, err = record()
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	s, err := orchestrator.Open(ctx, system)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, s.Close(context.WithoutCancel(ctx))) }()
	if opt.Opened != nil {
		opt.Opened(s)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return out, err
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan error, 1)
	go func() { served <- s.Serve(serving, l) }()
	defer func() { cancel(); err = errors.Join(err, <-served) }()

	ranks := opt.Replay
	ranks.Trace, ranks.Job = opt.Trace, opt.Job.Job()
	if ranks.Rails == nil {
		for _, r := range opt.Job.Rails {
			ranks.Rails = append(ranks.Rails, r.Name)
		}
	}
	ranks.AllRails = len(opt.Job.Rails)
	ranks.Switches = map[string]string{}
	assigned := map[string]opus.Assignment{}
	for _, r := range opt.Job.Rails {
		ranks.Switches[r.Name] = r.SwitchName()
		if assigned[r.Name], err = opt.Job.Assignment(r.Name, opt.Lab.File); err != nil {
			return out, err
		}
	}
	if ranks.Host == nil {
		ranks.Host = opt.Job.Host
	}
	ranks.Dial = func(string, int) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
		}
	}
	if ranks.Clock == nil {
		clock := plane.NewClock()
		defer clock.Close()
		ranks.Clock = clock
	}
	if ranks.Plane == nil {
		p := plane.NewEmulated(plane.EmulatedOptions{Devices: devices, Assignments: assigned, Clock: ranks.Clock})
		defer func() { err = errors.Join(err, p.Close()) }()
		ranks.Plane = p
	}
	if opt.Packets != nil {
		p, err := openPackets(ctx, opt, assigned, ranks.Clock, ranks.Plane)
		if err != nil {
			return out, err
		}
		defer func() {
			out.Datagrams = p.counted()
			err = errors.Join(err, p.Close())
		}()
		ranks.Plane = p
	}
	var mu sync.Mutex
	var ops []check.Op
	also := ranks.Log
	ranks.Log = func(op check.Op) {
		mu.Lock()
		ops = append(ops, op)
		mu.Unlock()
		if also != nil {
			also(op)
		}
	}
	out.Result, err = replay.Run(ctx, ranks)
	if s.Controller != nil {
		out.Controller = s.Controller.Status()
	}
	for name, o := range s.Rails {
		out.Rails[name] = o.Status()
	}
	if err := stop(); err != nil { // before the circuits are put back
		return out, err
	}
	if len(devices) > 0 && !ranks.Native {
		out.Verdict = check.Check(ops, out.Truth)
	}
	var logs error
	if opt.OpLog != nil {
		logs = check.WriteOps(opt.OpLog, ops)
	}
	if opt.TruthLog != nil {
		logs = errors.Join(logs, check.WriteTruth(opt.TruthLog, out.Truth))
	}
	return out, errors.Join(err, logs)
}

// native plays the ranks without control plane and circuits.
func native(ctx context.Context, opt Options) (*Outcome, error) {
	ranks := opt.Replay
	ranks.Trace = opt.Trace
	for r := range max(opt.Trace.Rails, 1) {
		ranks.Rails = append(ranks.Rails, fmt.Sprintf("rail%d", r))
	}
	ranks.Clock = plane.NewClock()
	defer ranks.Clock.Close()
	p := plane.NewEmulated(plane.EmulatedOptions{Clock: ranks.Clock})
	defer p.Close()
	ranks.Plane = p
	result, err := replay.Run(ctx, ranks)
	return &Outcome{Result: result}, err
}

// fits returns why the ranks of a trace are not those of a job.
func fits(t *trace.Trace, f *job.File) error {
	have, want := f.Job(), t.Job
	have.Name = want.Name
	if have.Stages != want.Stages || have.PortsPerRank() != want.PortsPerRank() || !slices.Equal(have.Axes, want.Axes) {
		return fmt.Errorf("%w: job %s has %s, and the trace %s was made for %s", replay.ErrOptions, f.Name, shape(have), t.Name, shape(want))
	}
	return nil
}

// shape says what a job has.
func shape(j opus.Job) string {
	s := fmt.Sprintf("%d stages", j.Stages)
	for _, a := range j.Axes {
		s += fmt.Sprintf(" x %s %d", a.Name, a.Size)
	}
	return s + fmt.Sprintf(" with %d duplex ports a rank", j.PortsPerRank())
}

// fastSampling sets the monitors of switches that were made for a trace to their shortest averaging time. A rail waits
// that long for the light of a change that is faster.
func fastSampling(devices map[string]*emulator.Device) error {
	for _, dev := range devices {
		set := map[ocs.Port]emulator.Monitor{}
		for _, p := range dev.Geometry().Ports() {
			if dev.HasMonitor(p) {
				m := dev.Monitor(emulator.Forward, p)
				m.Averaging = 1
				set[p] = m
			}
		}
		if err := dev.SetMonitors(nil, emulator.Forward, set); err != nil {
			return err
		}
	}
	return nil
}

// emulations returns the emulated switches of a job that are in this process, by name.
func emulations(ctx context.Context, l *lab.Lab, f *job.File) (map[string]*emulator.Device, error) {
	devices := map[string]*emulator.Device{}
	for _, r := range f.Rails {
		o, err := l.Switch(ctx, r.SwitchName())
		if err != nil {
			return nil, err
		}
		if o.Emulated != nil && o.Emulated.Device != nil {
			devices[r.SwitchName()] = o.Emulated.Device
		}
	}
	return devices, nil
}
