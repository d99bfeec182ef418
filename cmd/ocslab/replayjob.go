package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/orchestrator/check"
	"github.com/ocslab/ocslab/orchestrator/job"
	"github.com/ocslab/ocslab/orchestrator/plane"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/orchestrator/rehearse"
	"github.com/ocslab/ocslab/orchestrator/replay"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/orchestrator/trace"
)

// errUnsafe: operations ran on circuits that were being changed, or had no light.
var errUnsafe = errors.New("not all operations had their circuits")

// errRail: a rail is dead, or had circuits that were connected and dark.
var errRail = errors.New("a rail of the job has failed")

// railFailure is a rail that is dead, or that had circuits which were connected and dark.
type railFailure struct {
	Rail     string     `json:"rail"`
	Dead     bool       `json:"dead"`
	Why      string     `json:"why"`
	Dark     []darkPath `json:"dark_paths,omitempty"`
	Expected bool       `json:"expected,omitempty"` // by --expect-failure
}

// darkPath is a circuit without light.
type darkPath struct {
	Ingress  ocs.Port `json:"ingress"`
	Egress   ocs.Port `json:"egress"`
	InPower  *ocs.DBm `json:"in_power_dbm"`  // null where there is no monitor
	OutPower *ocs.DBm `json:"out_power_dbm"` // null when the monitor shows no power at all
}

func (f railFailure) String() string {
	if f.Dead {
		return fmt.Sprintf("rail %s is dead: %s", f.Rail, f.Why)
	}
	return fmt.Sprintf("rail %s had dark circuits: %s", f.Rail, f.Why)
}

// failuresOf returns the rails that have failed, as their orchestrators say or else the shims of their ranks.
func failuresOf(rails map[string]rail.Status, shims []replay.ShimStats) []railFailure {
	var all []railFailure
	for _, name := range sorted(rails) {
		r := rails[name]
		f := railFailure{Rail: name, Dead: r.Shape == proto.Dead, Why: r.Reason}
		for _, p := range r.Dark {
			dark := darkPath{Ingress: p.Ingress, Egress: p.Egress, InPower: p.In}
			if out := p.Out; !math.IsInf(float64(out), -1) {
				dark.OutPower = &out
			}
			f.Dark = append(f.Dark, dark)
		}
		if !f.Dead && len(r.Dark) > 0 {
			f.Why = r.Dark[0].String()
		}
		if f.Dead || len(f.Dark) > 0 {
			all = append(all, f)
		}
	}
	for _, x := range shims {
		known := slices.ContainsFunc(all, func(f railFailure) bool { return f.Rail == x.Rail })
		if x.Stats.Dead && !known {
			all = append(all, railFailure{Rail: x.Rail, Dead: true, Why: strings.TrimPrefix(x.Stats.Reason, "rail "+x.Rail+": ")})
		}
	}
	return all
}

// railError marks the failures that were expected, and returns an error that names the others and those that are
// missing.
func railError(failed []railFailure, expected []string) error {
	var wrong []string
	for i := range failed {
		f := &failed[i]
		if f.Expected = slices.Contains(expected, f.Rail); !f.Expected {
			wrong = append(wrong, f.String())
		}
	}
	for _, name := range expected {
		if !slices.ContainsFunc(failed, func(f railFailure) bool { return f.Rail == name }) {
			wrong = append(wrong, fmt.Sprintf("rail %s is well, and --expect-failure says that it fails", name))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errRail, strings.Join(wrong, "; "))
}

// replayFlags are those of replay-job.
type replayFlags struct {
	control                   controlFlags
	secure                    tlsFlags
	job, connect, plane, mode string
	rails                     []string
	ranks                     string
	steps, warmUp, profile    int
	compress                  float64
	switching                 time.Duration
	native, events, packets   bool
	firmware, rung            string
	ops, truth                string
	expect                    []string
}

func (a *app) replayJobCommand() *cobra.Command {
	var f replayFlags
	var list table
	for _, g := range trace.Generators() {
		about, _, _ := strings.Cut(g.About, ". ")
		list.about(g.Name, about)
	}
	c := &cobra.Command{
		Use:   "replay-job TRACE",
		Short: "Replay a training job's trace with simulated ranks on the Opus control plane",
		Long: `Play the ranks of a training job: each computes (it sleeps), asks for circuits,
moves bytes through the data plane, and goes on, step by step as TRACE says, which is
a file (see "ocslab traces") or one of

` + list.String() + `
Without --connect the whole control plane is in this process: on emulated switches
made for the trace, which take --switching for a change; or, with --job FILE and
--lab FILE, on those of the lab, real or --emulated. What the ports held is put back
at the end. An observer holds what the ranks did against what the light of emulated
switches did, and any operation on circuits that were being changed is an error (exit
code 5). So is a rail that is dead at the end, though the job goes on without it, and
one whose circuits were connected and dark: the error names the rail and why. Where
such a fault is planted, --expect-failure RAIL makes it the expected outcome, and its
absence the error.

With --connect ADDRESS the ranks, or those that --ranks and --rails name, join
"ocslab orchestrate"; --plane ADDRESS is the data plane that they share. How circuits
are moved is then a matter of that, and not of flags here.

What is measured is the control plane and the switching. Computation and operations
are modelled: they take what the trace says, divided by --compress.`,
		Example: "  ocslab replay-job lab-job --switching 200ms\n  ocslab --lab examples/opus-rails.yaml --emulated replay-job lab-job --job examples/lab-job.yaml\n" +
			"  ocslab replay-job config-1 --compress 10 --switching 5ms --ask demand\n  ocslab replay-job lab-job --connect 127.0.0.1:7400 --plane 127.0.0.1:7401 --ranks 0-1",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.replayJob(cmd, args[0], &f) },
	}
	s := c.Flags()
	s.StringVar(&f.job, "job", "", "job `FILE` for the lab of --lab; default: a lab made for the trace")
	s.StringVar(&f.connect, "connect", "", "`ADDRESS` of a controller; default: all in this process")
	s.StringVar(&f.plane, "plane", "", "`ADDRESS` of the data plane of orchestrate --plane")
	s.StringVar(&f.secure.name, "tls-name", "", "`NAME` in the certificate of the controller (default its host)")
	s.StringSliceVar(&f.rails, "rails", nil, "rails to play here (default all)")
	s.StringVar(&f.ranks, "ranks", "", "`RANKS` to play here, as in 0-3,7 (default all)")
	s.StringVar(&f.mode, "ask", string(shim.ModeProvision), "when ranks ask for circuits: `provision|demand|always`")
	s.IntVarP(&f.steps, "steps", "n", replay.DefaultSteps, "steps to measure")
	s.IntVar(&f.warmUp, "warm-up", replay.DefaultWarmUp, "steps before those")
	s.IntVar(&f.profile, "profile", 0, "steps that shims learn from (default 5)")
	s.Float64Var(&f.compress, "compress", 1, "make computation and operations so many times shorter")
	s.DurationVar(&f.switching, "switching", 0, "switching time of switches that are made for the trace")
	s.BoolVar(&f.packets, "packets", false, "with --job and --emulated: hosts with network interfaces, between which operations are datagrams, so that they wait for firmware and carrier")
	s.StringVar(&f.firmware, "firmware", "", "with --packets: `PROFILE` for all NICs, in place of those of the lab file")
	s.StringVar(&f.rung, "rung", "", "with --packets: what NICs are: `tap|veth|memory` (default the best there is here)")
	s.BoolVar(&f.native, "native", false, "no control plane, all circuits always there: the baseline")
	s.BoolVar(&f.events, "events", false, "show what the control plane does")
	s.StringSliceVar(&f.expect, "expect-failure", nil, "`RAIL`s that are to be dead or dark at the end: the error is then that one is not")
	s.StringVar(&f.ops, "ops", "", "write the operation log to `FILE`")
	s.StringVar(&f.truth, "truth", "", "write what the light did to `FILE`")
	a.addMode(c, string(ocs.Safe))
	f.secure.add(s)
	f.control.add(s)
	return c
}

// columns is how wide help and texts are at most.
const columns = 100

// about adds a row of a name and a text that may take several lines.
func (t *table) about(name, text string) {
	for line := range strings.SplitSeq(natural.Wrap(text, 75, ""), "\n") {
		t.row(name, line)
		name = ""
	}
}

// narrow wraps the flags in the help of a command and of all below it.
func narrow(c *cobra.Command) {
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), "Flags.FlagUsages ", "Flags.FlagUsagesWrapped 80 "))
}

// wire has the operations carried as datagrams. It is done when another process has done it all.
func (f *replayFlags) wire(opt *rehearse.Options, emulated bool) (done bool, err error) {
	if f.job == "" || !emulated || f.connect != "" || f.native {
		return false, usagef("--packets is for the emulated hosts of a lab file in this process: give --lab FILE --emulated and --job FILE")
	}
	rung, err := rungOf(f.rung)
	if err != nil {
		return false, err
	}
	if done, err := enter(); done || err != nil {
		return done, err
	}
	moreProcessors()
	modelled := f.profile // shims that learn from modelled operations need not wait for firmware so often
	if modelled == 0 {
		modelled = shim.DefaultProfileSteps
	}
	opt.Packets = &rehearse.Packets{Hosts: lab.FabricOptions{Firmware: f.firmware, Rung: rung}, Modelled: min(modelled, f.warmUp)}
	return false, nil
}

// loadTrace reads a trace, or generates it.
func loadTrace(name string) (*trace.Trace, error) {
	if g, err := trace.Find(name); err == nil {
		return g.Generate(trace.Options{})
	} else if _, stat := os.Stat(name); errors.Is(stat, os.ErrNotExist) {
		return nil, usagef("%s: there is no such file, and %w", name, err)
	}
	in, err := os.Open(name)
	if err != nil {
		return nil, usageError{err}
	}
	defer in.Close()
	t, err := trace.Read(in)
	if err != nil {
		// One prefix for all that is wrong is enough.
		return nil, usagef("%s: %s", name, strings.ReplaceAll(err.Error(), "\n"+trace.ErrTrace.Error()+": ", "\n"+name+": "))
	}
	return t, nil
}

// ranksOf reads "0-3,7"; nothing is nil.
func ranksOf(text string, n int) ([]int, error) {
	if text == "" {
		return nil, nil
	}
	var ranks []int
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.Atoi(from)
		last, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || first < 0 || last < first || last >= n {
			return nil, usagef("--ranks %q: %q: want ranks from 0 to %d, as in 0-3,7", text, part, n-1)
		}
		for r := first; r <= last; r++ {
			if !slices.Contains(ranks, r) {
				ranks = append(ranks, r)
			}
		}
	}
	return ranks, nil
}

func (a *app) replayJob(cmd *cobra.Command, name string, f *replayFlags) (err error) {
	ctx := cmd.Context()
	mode := shim.Mode(f.mode)
	if !slices.Contains([]shim.Mode{shim.ModeProvision, shim.ModeDemand, shim.ModeAlways}, mode) {
		return usagef("--ask %q: want provision, demand or always", f.mode)
	}
	t, err := loadTrace(name)
	if err != nil {
		return err
	}
	opt := rehearse.Options{Trace: t, Switching: f.switching}
	r := &opt.Replay
	r.Mode, r.Steps, r.Profile, r.Compress, r.Native = mode, f.steps, f.profile, f.compress, f.native
	if r.WarmUp = f.warmUp; f.warmUp == 0 {
		r.WarmUp = -1
	}
	if f.steps < 1 || f.compress <= 0 {
		return usagef("--steps and --compress: want more than 0")
	}
	if r.Ranks, err = ranksOf(f.ranks, t.Job.Ranks()); err != nil {
		return err
	}
	if f.connect != "" {
		for _, name := range []string{"granularity", "verify", "threshold", "attempts", "sessions", "attempt-timeout", "barrier", "drain", "resume-after", "health", "revive", "switching", "mode", "truth"} {
			if cmd.Flags().Changed(name) {
				return usagef("--%s is nothing that ranks decide: with --connect it is a matter of ocslab orchestrate", name)
			}
		}
		if r.Ranks != nil && len(r.Ranks) < t.Job.Ranks() && f.plane == "" {
			return usagef("ranks of several processes meet in one data plane: give --plane ADDRESS, of orchestrate --emulated --plane")
		}
	} else if len(f.rails) > 0 || r.Ranks != nil || f.plane != "" {
		return usagef("--rails, --ranks and --plane are for ranks that join a controller elsewhere: give --connect ADDRESS")
	}
	if _, err := f.secure.config(); err != nil {
		return err
	}
	if err := a.controlOptions(&f.control, &opt.System); err != nil {
		return err
	}
	if opt.System.Takeover, err = a.mode(); err != nil {
		return err
	}
	if f.events {
		opt.System.Controller.Log = a.controlLog()
	}
	if f.job != "" {
		if opt.Job, err = a.jobOf(&opt.System, f.job); err != nil {
			return err
		}
		opt.Lab, opt.System.Restore = opt.System.Lab, true
		if err := opt.Lab.Gate().RefuseInPanic(); err != nil && f.connect == "" {
			return fmt.Errorf("no rail is taken over: %w", err)
		}
	} else if a.set.Lab != "" && f.connect == "" {
		return usagef("which ranks are on which NICs of the lab? Give --job FILE")
	}
	if f.packets {
		if done, err := f.wire(&opt, a.set.Emulated); done || err != nil {
			return err
		}
	}
	steps := stepTable{app: a, compress: f.compress, joined: f.connect != "", expected: f.expect}
	r.Progress = steps.show
	var mu sync.Mutex
	var ops []check.Op
	if f.ops != "" {
		r.Log = func(op check.Op) { mu.Lock(); defer mu.Unlock(); ops = append(ops, op) }
		defer func() {
			err = errors.Join(err, writeLog(f.ops, func(w io.Writer) error { return check.WriteOps(w, ops) }))
		}()
	}
	names := railNames(f, t, opt.Job)
	rails := len(names)
	for _, name := range f.expect {
		if !slices.Contains(names, name) {
			return usagef("--expect-failure %s: the rails of the job are %s", name, strings.Join(names, ", "))
		}
	}
	a.printf("%s: %s of %s on %s; %s\n", t.Name, natural.Count(t.Job.Ranks(), "rank"), shapeOf(t), natural.Count(rails, "rail"), where(f, opt.Job))
	var out *rehearse.Outcome
	if f.connect != "" {
		if out, err = a.joinJob(ctx, f, opt); err != nil {
			return steps.end(out, err)
		}
	} else {
		out, err = rehearse.Run(ctx, opt)
	}
	if f.truth != "" && out != nil {
		err = errors.Join(err, writeLog(f.truth, func(w io.Writer) error { return check.WriteTruth(w, out.Truth) }))
	}
	return steps.end(out, err)
}

// railNames are the rails of the job.
func railNames(f *replayFlags, t *trace.Trace, j *job.File) []string {
	var names []string
	switch {
	case j != nil:
		for _, r := range j.Rails {
			names = append(names, r.Name)
		}
	case len(f.rails) > 0:
		names = f.rails
	default:
		for i := range max(t.Rails, 1) {
			names = append(names, fmt.Sprintf("rail%d", i))
		}
	}
	return names
}

// joinJob plays ranks against a controller elsewhere.
func (a *app) joinJob(ctx context.Context, f *replayFlags, opt rehearse.Options) (out *rehearse.Outcome, err error) {
	r := opt.Replay
	dial, err := f.secure.dialer(f.connect)
	if err != nil {
		return nil, err
	}
	r.Trace, r.Rails, r.AllRails = opt.Trace, f.rails, max(opt.Trace.Rails, 1)
	r.Dial = func(string, int) func(context.Context) (net.Conn, error) { return dial }
	if r.Rails == nil {
		for i := range r.AllRails {
			r.Rails = append(r.Rails, fmt.Sprintf("rail%d", i))
		}
	}
	if opt.Job != nil {
		r.Switches, r.Host, r.AllRails = map[string]string{}, opt.Job.Host, len(opt.Job.Rails)
		r.Job = opt.Job.Job()
		for _, x := range opt.Job.Rails {
			r.Switches[x.Name] = x.SwitchName()
		}
	}
	r.Clock = plane.NewClock()
	defer r.Clock.Close()
	if f.plane == "" {
		p := plane.NewEmulated(plane.EmulatedOptions{Clock: r.Clock})
		defer p.Close()
		r.Plane = p
	} else {
		dialPlane, err := f.secure.dialer(f.plane)
		if err != nil {
			return nil, err
		}
		p, err := plane.Dial(ctx, dialPlane)
		if err != nil {
			return nil, fmt.Errorf("data plane at %s: %w: %w", f.plane, errWire, err)
		}
		defer p.Close()
		r.Plane = p
	}
	result, err := replay.Run(ctx, r)
	switch {
	case f.plane != "" && errors.Is(err, plane.ErrClosed):
		err = fmt.Errorf("%w: what serves it at %s has ended", err, f.plane)
	case errors.Is(err, shim.ErrRefused) && opt.Job == nil && (result == nil || len(result.Steps) == 0):
		err = fmt.Errorf("%w; --job FILE says of which job the ranks are", err)
	case errors.Is(err, shim.ErrLost) && !f.secure.given() && strings.HasSuffix(err.Error(), "it hung up"):
		err = fmt.Errorf("%w; if it wants TLS, give --tls-ca, --tls-cert and --tls-key", err)
	}
	return &rehearse.Outcome{Result: result}, err
}

// where says on what the job runs.
func where(f *replayFlags, j *job.File) string {
	switch {
	case f.native:
		return "native: no control plane"
	case f.connect != "":
		return "controller at " + f.connect
	case j != nil:
		return "job file " + j.Path
	}
	return fmt.Sprintf("emulated switches of %v", f.switching)
}

// shapeOf says how the ranks of a trace are arranged.
func shapeOf(t *trace.Trace) string {
	s := fmt.Sprintf("PP%d", t.Job.Stages)
	for _, x := range t.Job.Axes {
		s += fmt.Sprintf(" %s%d", strings.ToUpper(x.Name), x.Size)
	}
	return s
}

// jobStepLine is a step of all ranks that were played.
type jobStepLine struct {
	Kind             string `json:"kind"` // "job-step"
	Step             int    `json:"step"`
	WarmUp           bool   `json:"warm_up"`
	WallNS           int64  `json:"wall_ns"`
	ScaledNS         int64  `json:"scaled_ns"`
	Operations       int    `json:"operations"`
	Asked            int    `json:"asked"`
	Reconfigurations int    `json:"reconfigurations"` // -1: not known
	WaitedNS         int64  `json:"waited_ns"`        // of all ranks
	LongestWaitNS    int64  `json:"longest_wait_ns"`  // of one rank
	LateNS           int64  `json:"late_ns"`
	LostBytes        int64  `json:"lost_bytes"`
	OnRing           int    `json:"on_ring"`
	Detours          int    `json:"detours"`
}

// jobLine is the whole replay.
type jobLine struct {
	Kind           string        `json:"kind"` // "job-summary"
	Steps          int           `json:"steps"`
	MeanWallNS     int64         `json:"mean_wall_ns"`
	MeanScaledNS   int64         `json:"mean_scaled_ns"`
	Operations     int           `json:"operations"`
	LostBytes      int64         `json:"lost_bytes"`
	Hits           int           `json:"hits"`
	Mispredictions int           `json:"mispredictions"`
	Checked        bool          `json:"checked"`
	Violations     int           `json:"violations"`
	Ingress        []ocs.Port    `json:"violated_ingress,omitempty"`
	Rails          []railSum     `json:"rails,omitempty"`
	Failed         []railFailure `json:"failed_rails,omitempty"`
}

type railSum struct {
	Rail     string     `json:"rail"`
	Shape    string     `json:"shape"`
	ID       string     `json:"topology_id,omitempty"`
	Changes  uint64     `json:"changes"`
	NoOps    uint64     `json:"noops"`
	Commands uint64     `json:"commands"`
	Removed  uint64     `json:"removed"`
	Added    uint64     `json:"added"`
	Retries  uint64     `json:"retries"`
	Failures uint64     `json:"failures"`
	Verify   string     `json:"verify"`
	NoInput  []ocs.Port `json:"no_input_light,omitempty"` // ingress ports of circuits that could not be verified
	Reason   string     `json:"reason,omitempty"`         // of a giant ring, or of death
}

// stepTable shows steps as they end.
type stepTable struct {
	app      *app
	compress float64
	joined   bool     // a controller elsewhere
	expected []string // rails that are to fail
	head     bool
}

func (s *stepTable) show(x replay.Step) {
	if s.app.set.JSON {
		s.app.json(jobStepLine{"job-step", x.Index, x.WarmUp, int64(x.Wall), int64(x.Scaled), x.Ops, x.Asked, x.Reconfigurations, int64(x.Waited),
			int64(x.LongestWait), int64(x.Late), x.Lost, x.OnRing, x.Detours})
		return
	}
	if !s.head {
		s.head = true
		s.app.printf("  step        time  waited by the slowest  asked  changes  lost bytes\n")
	}
	what := ""
	switch {
	case x.WarmUp:
		what = "  warm-up"
	case x.OnRing > 0:
		what = fmt.Sprintf("  %s on the giant ring", natural.Count(x.OnRing, "operation"))
	case x.Detours > 0:
		what = fmt.Sprintf("  %s on other rails", natural.Count(x.Detours, "operation"))
	}
	changes := strconv.Itoa(x.Reconfigurations)
	if x.Reconfigurations < 0 {
		changes = "?"
	}
	s.app.printf("%6d%12s%23s%7d%9s%12d%s\n", x.Index+1, x.Scaled.Round(10*time.Microsecond), x.LongestWait.Round(time.Microsecond), x.Asked, changes, x.Lost, what)
}

// end prints what it came to.
func (s *stepTable) end(out *rehearse.Outcome, err error) error {
	if out == nil || out.Result == nil {
		return err
	}
	mean := out.Result.Mean()
	line := jobLine{Kind: "job-summary", Steps: len(out.Result.Steps), MeanWallNS: int64(mean.Wall), MeanScaledNS: int64(mean.Scaled),
		Operations: out.Result.Ops, LostBytes: out.Result.Lost}
	for _, x := range out.Result.Shims {
		line.Hits += x.Stats.Hits
		line.Mispredictions += x.Stats.Mispredictions
	}
	for _, name := range sorted(out.Rails) {
		r := out.Rails[name]
		line.Rails = append(line.Rails, railSum{name, string(r.Shape), r.ID, r.Counters.Changes, r.Counters.NoOps, r.Counters.Commands, r.Counters.Removed, r.Counters.Added, r.Counters.Retries, r.Counters.Failures,
			string(r.Verify), r.NoInput, r.Reason})
	}
	line.Failed = failuresOf(out.Rails, out.Result.Shims)
	broken := railError(line.Failed, s.expected)
	if v := out.Verdict; v != nil {
		line.Checked, line.Violations, line.Ingress = true, v.Total(), v.Ingress()
		if err == nil && !v.OK() && v.Ops > 0 {
			err = errUnsafe
		}
	}
	if err == nil && line.LostBytes > 0 {
		err = fmt.Errorf("%w: %d bytes were lost, since circuits had no light", errUnsafe, line.LostBytes)
	}
	switch {
	case broken == nil:
	case err == nil:
		err = broken
	case errors.Is(err, shim.ErrRailDead): // the job has ended since no rail lives
		err = fmt.Errorf("%w: %w", errRail, err)
	}
	if s.app.set.JSON {
		s.app.json(line)
		return err
	}
	if line.Steps > 0 {
		compressed := ""
		if s.compress != 1 {
			compressed = fmt.Sprintf(" (%v as played, %g times shorter)", mean.Wall.Round(10*time.Microsecond), s.compress)
		}
		s.app.printf("mean of %s: %v%s\n", natural.Count(line.Steps, "step"), mean.Scaled.Round(10*time.Microsecond), compressed)
	}
	for _, r := range line.Rails {
		s.app.printf("%s: %s in %s, %d cross-connects removed and %d made; now %s\n", r.Rail, natural.Count(int(r.Changes), "change"),
			natural.Count(int(r.Commands), "command"), r.Removed, r.Added, shapeWords(r.Shape, r.ID))
		if len(r.NoInput) > 0 {
			s.app.printf("%s: no input light at %s, whose circuits could not be verified\n", r.Rail, ocs.FormatPorts(r.NoInput))
		}
	}
	for _, f := range line.Failed {
		expected := ""
		if f.Expected {
			expected = " (expected)"
		}
		s.app.printf("%v%s\n", f, expected)
	}
	if line.Hits+line.Mispredictions > 0 {
		s.app.printf("predictions: %d right, %d wrong\n", line.Hits, line.Mispredictions)
	}
	if d := out.Datagrams; d.Parts > 0 {
		s.app.printf("datagrams: %d sent, %d of them again, %d while the NIC had no carrier\n", d.Sent, d.Repeated, d.Dark)
	}
	if out.Verdict != nil {
		s.app.printf("observer: %v\n", out.Verdict)
	} else if s.joined && line.Steps > 0 {
		s.app.printf("observer: none here; orchestrate --emulated --truth FILE, replay-job --ops FILE and \"ocslab audit\" have one\n")
	} else if !s.joined && s.app.set.Lab != "" && !s.app.set.Emulated {
		s.app.printf("observer: none, since only emulated switches say what the light really did\n")
	}
	return err
}

func writeLog(path string, write func(io.Writer) error) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return write(f)
}

func (a *app) auditCommand() *cobra.Command {
	var most int
	c := &cobra.Command{
		Use:   "audit OPS TRUTH",
		Short: "Check what ranks did against what the light did: no operation on circuits that are being changed",
		Long: `Read an operation log (replay-job --ops) and a truth log of emulated switches
(replay-job --truth, orchestrate --truth), and say of each operation whether its
circuits had settled light during all of it, and of each change whether it touched a
port in use. Violations are exit code 5.
Several files of one kind, from several processes, are joined with commas.`,
		Example: "  ocslab replay-job lab-job --ops ops.jsonl --truth truth.jsonl\n  ocslab audit ops.jsonl truth.jsonl",
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			var ops []check.Op
			var truth check.Truth
			for path := range strings.SplitSeq(args[0], ",") {
				if err := readLog(path, func(r io.Reader) error { some, err := check.ReadOps(r); ops = append(ops, some...); return err }); err != nil {
					return err
				}
			}
			for path := range strings.SplitSeq(args[1], ",") {
				if err := readLog(path, func(r io.Reader) error { some, err := check.ReadTruth(r); truth = truth.Join(some); return err }); err != nil {
					return err
				}
			}
			v := check.Check(ops, truth)
			if a.set.JSON {
				a.json(struct {
					Kind string `json:"kind"` // "audit"
					*check.Verdict
				}{"audit", v})
			} else {
				a.printf("%v\n", v)
				for i := 10; i < min(most, len(v.Violations)); i++ {
					a.printf("%v\n", v.Violations[i])
				}
			}
			if !v.OK() {
				return errUnsafe
			}
			return nil
		},
	}
	c.Flags().IntVar(&most, "violations", 10, "how many violations to print")
	return c
}

func readLog(path string, read func(io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return usageError{err}
	}
	defer f.Close()
	if err := read(f); err != nil {
		return usagef("%s: %w", path, err)
	}
	return nil
}
