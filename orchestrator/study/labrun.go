package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/controller"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/rehearse"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
	"github.com/ocslab/ocslab/timeline"
)

// learning is how many steps shims learn from: the fewest that they accept.
const learning = 3

// labRun is the lab job, run once on the two-rail testbed.
type labRun struct {
	labSetup
	name     string // for people
	firmware string // of all NICs; "" carries no packets: links are there as soon as the light is
	onRing   bool   // keeps the rails on the giant ring
	settle   int    // steps between those that are learnt from and those that are measured
	steps    int    // that are measured
}

// labResult is what became of a labRun.
type labResult struct {
	labRun
	file    *lab.File
	job     *job.File
	on      fabric.Rung
	out     *rehearse.Outcome
	missing []watch.Source // what could not be watched

	switchPorts int
	account     []watch.Account
	ends        []int64      // of each step, also of those that are not measured
	changes     []*labChange // in the order of their commands, after the steps that are learnt from
	ops         []check.Op
	parts       []labPart

	marks    []timeline.Mark // that belong to one of changes
	truth    []timeline.Mark // of the fabric
	expected []timeline.Expectation
}

// labChange is a reconfiguration of a rail: one request of the controller, or several in one command.
type labChange struct {
	number         int // from 1
	rail, sw       string
	id             string             // that the controller asked for
	removed, added []ocs.CrossConnect // by all its commands
	receipt        ocs.Receipt        // of all of them
	begun          int64              // the first one
	step           int                // in which that was
}

// labPart is a rank's part in an operation that was packets.
type labPart struct {
	op  plane.Transfer
	out plane.Outcome
}

// took is the time from its first command to its last acknowledgement.
func (c *labChange) took() time.Duration { return c.receipt.Acked.Sub(c.receipt.Begun) }

// recorder collects what happens on rails; it is safe for concurrent use.
type recorder struct {
	mu     sync.Mutex // guards all that follows
	events []rail.Event
	ids    map[string]string // by rail and request
	ops    []check.Op
	parts  []labPart
	marks  []timeline.Mark
}

func request(rail string, req uint64) string { return fmt.Sprintf("%s/%d", rail, req) }

func (r *recorder) changed(e rail.Event) {
	if e.What != rail.Connected && e.What != rail.Disconnected || len(e.Requests) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) asked(e controller.Event) {
	if e.Kind != controller.EventCommand || e.ID == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids[request(e.Rail, e.Req)] = e.ID
}

// collect takes the records of a watch until it is closed.
func (r *recorder) collect(w *watch.Watch) error {
	for {
		records, err := w.Next(context.Background())
		r.mu.Lock()
		for _, x := range records {
			if x.Mark != nil {
				r.marks = append(r.marks, *x.Mark)
			}
		}
		r.mu.Unlock()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// run runs it. All that it has started has ended when it returns.
func (p labRun) run(ctx context.Context, t *trace.Trace, progress func(string)) (res *labResult, err error) {
	res = &labResult{labRun: p}
	if res.file, err = lab.Parse("opus-rails.yaml", p.labFile); err != nil {
		return nil, err
	}
	if res.job, err = job.Parse("lab-job.yaml", p.jobFile, res.file); err != nil {
		return nil, err
	}
	l := lab.New(res.file, lab.Options{Emulated: true})
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, sw := range res.file.Switches {
		o, err := l.Switch(ctx, sw.Name)
		if err != nil {
			return nil, err
		}
		res.switchPorts += len(o.Emulated.Device.Geometry().Ports())
	}
	rec := &recorder{ids: map[string]string{}}
	opt := rehearse.Options{Trace: t, Lab: l, Job: res.job}
	opt.System.Rail.Verify = rail.Table // the paper's control plane does not look at the light
	if p.onRing {
		stay(&opt)
	}
	opt.System.Rail.Changed, opt.System.Controller.Log = rec.changed, rec.asked
	opt.Replay.Mode, opt.Replay.Profile = shim.ModeProvision, learning
	opt.Replay.WarmUp, opt.Replay.Steps = learning+p.settle, p.steps
	opt.Replay.Log = func(op check.Op) { rec.ops = append(rec.ops, op) }
	opt.Replay.Progress = func(s replay.Step) {
		res.ends = append(res.ends, nowNS())
		progress(fmt.Sprintf("%s: step %d of %d took %v", p.name, s.Index+1, learning+p.settle+p.steps, s.Wall.Round(time.Millisecond)))
	}
	progress(p.name)
	if p.firmware == "" {
		res.out, err = rehearse.Run(ctx, opt)
	} else {
		err = res.onLinks(ctx, opt, rec)
	}
	if err == nil && res.out.Verdict != nil && !res.out.Verdict.OK() {
		err = fmt.Errorf("%s: the observer does not agree: %v", p.name, res.out.Verdict)
	}
	res.tell(rec)
	return res, err
}

// stay makes the rails of a run stay on the giant ring that they begin with: they fall back to it when their first change
// is refused, and nobody tries again.
func stay(opt *rehearse.Options) {
	var stays atomic.Bool
	opt.System.Rail.Gate = func() error {
		if stays.Load() {
			return errors.New("the rail is kept on its giant ring")
		}
		return nil
	}
	opt.Opened = func(*orchestrator.System) { stays.Store(true) }
}

// onLinks runs it with packets between NICs whose links are watched.
func (r *labResult) onLinks(ctx context.Context, opt rehearse.Options, rec *recorder) error {
	tb, err := experiment.OpenTestbed(ctx, opt.Lab, experiment.TestbedOptions{
		Watch:  watch.Options{Optics: -1, Probe: probe.Options{Pace: experiment.Quiet}},
		Fabric: lab.FabricOptions{Firmware: r.firmware, Seed: 1, Rung: r.rung},
	})
	if err != nil {
		return err
	}
	collected := make(chan error, 1)
	go func() { collected <- rec.collect(tb.Watch) }()
	r.on = tb.Fabric.Rung()
	for _, s := range append(tb.Sources, tb.Watch.Sources()...) {
		if !s.On && !slices.Contains([]string{"sync", "ethtool", "module"}, s.Name) { // these are not wanted
			r.missing = append(r.missing, s)
		}
	}
	opt.Packets = &rehearse.Packets{
		Fabric: tb.Fabric, Modelled: learning,
		Plane: plane.PacketsOptions{Datagrams: 4, Repeat: 10 * time.Millisecond},
		Log:   func(t plane.Transfer, o plane.Outcome) { rec.parts = append(rec.parts, labPart{t, o}) },
	}
	r.out, err = rehearse.Run(ctx, opt)
	err = errors.Join(err, tb.Watch.Flush(ctx))
	r.account = tb.Watch.Accounts()
	r.truth = tb.Truth(0)
	return errors.Join(err, tb.Close(), <-collected)
}

func nowNS() int64 { return timeline.HostAxis().NS(time.Now()) }

// tell puts together what was recorded.
func (r *labResult) tell(rec *recorder) {
	if len(r.ends) <= learning {
		return
	}
	r.parts, r.ops = rec.parts, rec.ops
	by := map[string]*labChange{}
	axis := timeline.HostAxis()
	for _, e := range rec.events {
		if axis.NS(e.Receipt.Begun) < r.over(e.Rail, learning-1) {
			continue
		}
		key := request(e.Rail, e.Requests[0])
		c := by[key]
		if c == nil {
			c = &labChange{rail: e.Rail, sw: e.Switch, begun: axis.NS(e.Receipt.Begun), receipt: e.Receipt}
			by[key] = c
			r.changes = append(r.changes, c)
		} else {
			c.receipt = c.receipt.Then(e.Receipt)
		}
		for _, req := range e.Requests {
			c.id = cmp.Or(rec.ids[request(e.Rail, req)], c.id)
		}
		c.removed = append(c.removed, e.Change.Remove.Slice()...)
		c.added = append(c.added, e.Change.Add.Slice()...)
	}
	slices.SortStableFunc(r.changes, func(a, b *labChange) int { return cmp.Compare(a.begun, b.begun) })
	for i, c := range r.changes {
		c.number = i + 1
		for step := range r.ends {
			if over := r.over(c.rail, step); over > 0 && c.begun >= over {
				c.step = step + 1
			}
		}
		r.marks = append(r.marks, experiment.CommandMarks(c.receipt, c.sw, "", c.number)...)
		r.expect(c)
	}
	lit := map[string][]int64{} // when light came, by NIC
	for _, m := range r.truth {
		switch m.Stage {
		case timeline.Light:
			lit[m.Subject] = append(lit[m.Subject], m.Latest)
			fallthrough
		case timeline.Dark:
			m.Source = "truth"
			r.attribute(m, m.Latest)
		}
	}
	seen, _ := timeline.Merge(rec.marks) // several sources saw the same carrier
	for _, m := range seen {
		at := m.Latest
		if m.Stage == timeline.Firmware || m.Stage == timeline.CarrierUp {
			// Of the light that it follows, since a link may come up when that light has just gone.
			for _, ns := range lit[m.Subject] {
				if ns <= m.Latest {
					at = ns
				}
			}
		}
		r.attribute(m, at)
	}
}

// over is when the last operation of a step on a rail was complete. What the rail does next is for the next step.
func (r *labResult) over(rail string, step int) (ns int64) {
	for _, op := range r.ops {
		if op.Rail == rail && op.Step == step {
			ns = max(ns, op.EndNS)
		}
	}
	return ns
}

// attribute keeps a mark of a NIC, as one of the last change of its light before an instant.
func (r *labResult) attribute(m timeline.Mark, at int64) {
	for _, c := range slices.Backward(r.changes) {
		if c.begun <= at && r.touches(c, m.Subject) {
			m.Reconfiguration = c.number
			r.marks = append(r.marks, m)
			return
		}
	}
}

// touches reports whether a change concerns the light that a NIC receives.
func (r *labResult) touches(c *labChange, nic string) bool {
	hits := func(x ocs.CrossConnect) bool { return r.file.Receiver(c.sw, x.Egress) == nic }
	return slices.ContainsFunc(c.removed, hits) || slices.ContainsFunc(c.added, hits)
}

// expect finds the first operation that was complete on each new circuit of a change: the circuit's traffic. What is on the
// way to that is expected; circuits that no operation used before they went need not have come up.
func (r *labResult) expect(c *labChange) {
	for _, x := range c.added {
		until := int64(math.MaxInt64)
		for _, next := range r.changes {
			if next.begun > c.begun && slices.Contains(next.removed, x) {
				until = min(until, next.begun)
			}
		}
		end := until
		var first labPart
		for _, p := range r.parts {
			if p.op.Rail == c.rail && p.out.BeginNS >= c.begun && p.out.EndNS < end && p.out.Uses.Has(x) {
				end, first = p.out.EndNS, p
			}
		}
		if end == until {
			continue
		}
		nic := r.file.Receiver(c.sw, x.Egress)
		flow := r.file.Sender(c.sw, x.Ingress) + ">" + nic
		host, _, _ := strings.Cut(nic, "/")
		r.marks = append(r.marks, timeline.Mark{Stage: timeline.Traffic, Subject: flow, Host: host, Interval: timeline.Point(end),
			Source: "operation", Detail: fmt.Sprintf("%s operation %d was complete", first.op.Ref.Group, first.op.Ref.Op), Reconfiguration: c.number})
		for _, e := range []timeline.Expectation{{Stage: timeline.Light, Subject: nic}, {Stage: timeline.Firmware, Subject: nic},
			{Stage: timeline.CarrierUp, Subject: nic}, {Stage: timeline.Traffic, Subject: flow}} {
			e.Reconfiguration = c.number
			r.expected = append(r.expected, e)
		}
	}
}

// in returns the changes of a step, of a rail or, with "", of all.
func (r *labResult) in(step int, rail string) (all []*labChange) {
	for _, c := range r.changes {
		if c.step == step && (rail == "" || c.rail == rail) {
			all = append(all, c)
		}
	}
	return all
}

// of returns the marks of a stage that belong to a change, earliest first.
func (r *labResult) of(c *labChange, stage timeline.Stage) (all []timeline.Mark) {
	for _, m := range r.marks {
		if m.Reconfiguration == c.number && m.Stage == stage {
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b timeline.Mark) int { return cmp.Compare(a.Latest, b.Latest) })
	return all
}

// measured are the numbers of the steps that count.
func (r *labResult) measured() (from, to int) { return learning + r.settle, len(r.ends) }
