package collective_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/experiment/collective"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl"
)

// open returns a lab of hosts with two NICs each on a quick switch, and how to run plans there.
func open(t *testing.T, hosts int) (*lab.File, collective.Options) {
	t.Helper()
	dir := t.TempDir()
	text := "name: small\nswitches:\n  - {name: rail0, emulate: {model: fast-mems-25ms, switching: 2ms, jitter: 0ms}}\nhosts:\n"
	for i := range hosts {
		text += fmt.Sprintf("  - {name: gpu%d, nics: [{name: a, tx: rail0/%d, rx: rail0/%d}, {name: b, tx: rail0/%d, rx: rail0/%d}]}\n",
			i, 2*i+1, 2*i+65, 2*i+2, 2*i+66)
	}
	path := filepath.Join(dir, "lab.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := lab.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var opt collective.Options
	opt.Name, opt.Lab = "pccl", lab.Options{Emulated: true, StateDir: dir, Command: "topology pccl"}
	if opt.Store, err = runs.Open(dir); err != nil {
		t.Fatal(err)
	}
	return f, opt
}

// plan returns the best plan of a ReduceScatter by halving on a ring at a switching time in seconds.
func plan(t *testing.T, gpus int, bytes, switchTime float64) collective.Job {
	t.Helper()
	s, err := pccl.New(pccl.ReduceScatter, "rhd-halving", gpus, bytes)
	if err != nil {
		t.Fatal(err)
	}
	ring, err := pccl.Ring(gpus)
	if err != nil {
		t.Fatal(err)
	}
	job := collective.Job{Start: ring, Params: pccl.Params{Alpha: 1e-3, Beta: 1e-9}}
	if job.Plan, err = (pccl.Problem{Schedule: s, Start: ring, Params: job.Params}).Best(switchTime); err != nil {
		t.Fatal(err)
	}
	return job
}

// Ensure that a plan is wired as it says, that rounds begin when there is light and not before, that nothing is quicker
// than links allow, and that all is recorded and put back.
func TestRun(t *testing.T) {
	f, opt := open(t, 4)
	job := plan(t, 4, 10e6, 1e-6)
	if job.Plan.Changes != 2 {
		t.Fatalf("the plan has %d changes, want 2", job.Plan.Changes)
	}
	opt.Repeats = 2
	r, err := collective.Run(t.Context(), f, job, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Repeats) != 2 || len(r.Moves) != 6 || r.Summary.State != runs.Done || !r.Summary.Restored {
		t.Fatalf("%d repeats, %d moves, %+v", len(r.Repeats), len(r.Moves), r.Summary)
	}
	for _, repeat := range r.Repeats {
		var sum time.Duration
		for i, x := range repeat.Rounds {
			sum += x.Measured + x.Switching + x.Waited
			bytes := time.Duration(job.Plan.Schedule.Rounds[i].Bytes) // at 1 ns each
			if x.Number != i || !x.Changed || x.Measured < bytes+time.Millisecond-time.Microsecond {
				t.Errorf("round %d: %+v", i, x)
			}
			if !slices.IsSorted([]int64{x.Begin, x.Command, x.Light, x.Go, x.End}) || x.Light-x.Command < int64(2*time.Millisecond) {
				t.Errorf("round %d: times %+v", i, x)
			}
		}
		if sum != repeat.Total {
			t.Errorf("the total is %v, and its parts are %v", repeat.Total, sum)
		}
	}
	run, err := opt.Store.Load(t.Context(), r.ID)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range run.Events {
		kinds[e.Kind]++
	}
	if kinds["collective"] != 2 || kinds["round"] != 4 {
		t.Errorf("events %v", kinds)
	}
	entries, _, err := lab.Files(opt.Lab.StateDir).Entries()
	if err != nil || len(entries) == 0 || entries[0].Command != "topology pccl" {
		t.Errorf("history: %d entries, %v", len(entries), err)
	}
}

// Ensure that a plan without changes is run on what it begins with.
func TestRun_Static(t *testing.T) {
	f, opt := open(t, 4)
	r, err := collective.Run(t.Context(), f, plan(t, 4, 1e6, 10), opt)
	if err != nil {
		t.Fatal(err)
	}
	rounds := r.Repeats[0].Rounds
	if len(rounds) != 2 || rounds[0].Changed || rounds[0].Switching != 0 || len(r.Moves) != 1 {
		t.Errorf("%+v, %d moves", rounds, len(r.Moves))
	}
}

// Ensure that a link whose mirrors are stuck is noticed and named, however well the planner thinks of it, that nothing
// passes it, and that the lab is put back.
func TestRun_Stalls(t *testing.T) {
	f, opt := open(t, 4)
	opt.Patience = 300 * time.Millisecond
	opt.Opened = func(s *sequence.Session) error {
		sw, ok := s.Testbed.Bench.Rigs[0].Switch.(*lab.Opened)
		if !ok || sw.Emulated == nil {
			return errors.New("it is not emulated")
		}
		sw.Emulated.Device.Unlight(69) // to GPU 2
		return nil
	}
	r, err := collective.Run(t.Context(), f, plan(t, 4, 1e6, 1e-6), opt)
	if !errors.Is(err, collective.ErrStalled) || !strings.Contains(err.Error(), "has no light") || !strings.Contains(err.Error(), ">69") {
		t.Fatalf("error: %v", err)
	}
	if r == nil || len(r.Repeats) != 0 || r.Summary.State != runs.Failed || !r.Summary.Restored {
		t.Errorf("%+v", r)
	}
}

// Ensure that what a lab cannot hold is refused with what would do, and nothing begun.
func TestLay_Refused(t *testing.T) {
	f, opt := open(t, 4)
	good := plan(t, 4, 1e6, 1e-6)
	cube, err := pccl.NewTopology("full", 4, all(4))
	if err != nil {
		t.Fatal(err)
	}
	oneWay, err := pccl.NewTopology("one way", 4, []pccl.Transfer{{Src: 0, Dst: 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		job  func(*collective.Job)
		want error
		text string
	}{
		{"too many GPUs", func(j *collective.Job) { *j = plan(t, 8, 1e6, 1e-6) }, collective.ErrLab, "it is for 8 GPUs, and there are 4 hosts"},
		{"too few ports", func(j *collective.Job) { j.Start = cube }, collective.ErrLab, "3 circuits at a GPU, and a host has 2 NICs"},
		{"no such host", func(j *collective.Job) { j.GPUs = []string{"gpu0", "gpu1", "gpu2", "gpu9"} }, lab.ErrUnknown, `the host "gpu9" is not in the lab`},
		{"a host twice", func(j *collective.Job) { j.GPUs = []string{"gpu0", "gpu1", "gpu2", "gpu0"} }, collective.ErrLab, "gpu0 is named twice"},
		{"no plan", func(j *collective.Job) { j.Plan = pccl.Plan{} }, pccl.ErrArgument, "no rounds"},
		{"no start", func(j *collective.Job) { j.Start = nil }, pccl.ErrArgument, "no topology"},
		{"no path", func(j *collective.Job) { j.Start, j.Plan.Rounds = oneWay, static(j.Plan.Rounds) }, pccl.ErrDisconnected, "on one way"},
		{"too long", func(j *collective.Job) { j.Plan.Total = 1e5 }, collective.ErrLab, "fewer bytes"},
		{"for ever", func(j *collective.Job) { j.Plan.Total = math.Inf(1) }, collective.ErrLab, "fewer bytes"},
		{"no transmitter", func(j *collective.Job) { j.Params.Split, j.Params.Transmitters = true, 1 }, pccl.ErrTransmitters, "2 circuits"},
	} {
		t.Run(c.name, func(t *testing.T) {
			job := good
			c.job(&job)
			r, err := collective.Run(t.Context(), f, job, opt)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) || r != nil {
				t.Errorf("%v, %v: want %v with %q", r, err, c.want, c.text)
			}
		})
	}
}

func all(n int) (transfers []pccl.Transfer) {
	for a := range n {
		for b := range n {
			if a != b {
				transfers = append(transfers, pccl.Transfer{Src: a, Dst: b})
			}
		}
	}
	return transfers
}

func static(rounds []pccl.PlannedRound) []pccl.PlannedRound {
	rounds = slices.Clone(rounds)
	for i := range rounds {
		rounds[i].Changed = false
	}
	return rounds
}

// Ensure that steps are what the plan says: a ring of 16 cross-connects, pairs of 8, and hosts in the order given.
func TestLay(t *testing.T) {
	f, _ := open(t, 8)
	job := plan(t, 8, 100e6, 1e-6)
	l, err := collective.Lay(f, job)
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, s := range l.Steps {
		sizes = append(sizes, s.Maps["rail0"].Len())
	}
	if want := []int{16, 8, 8, 16}; !slices.Equal(sizes, want) {
		t.Errorf("cross-connects %v, want %v", sizes, want)
	}
	if !l.Steps[1].Maps["rail0"].Has(ocs.CrossConnect{Ingress: 1, Egress: 73}) {
		t.Errorf("GPU 0 to 4 is not 1>73 in %v", l.Steps[1].Maps["rail0"])
	}
	for i, c := range l.Changes() {
		if i > 0 && c["rail0"].Empty() {
			t.Errorf("step %d changes nothing", i)
		}
	}
	job.Bond = true
	if l, err = collective.Lay(f, job); err != nil || l.Steps[1].Maps["rail0"].Len() != 16 {
		t.Errorf("bonded: %v, %v", l, err)
	}
	job.GPUs = []string{"gpu7", "gpu6", "gpu5", "gpu4", "gpu3", "gpu2", "gpu1", "gpu0"}
	if l, err = collective.Lay(f, job); err != nil || l.NICs[0][0].Name != "gpu7/a" {
		t.Errorf("in another order: %v, %v", l, err)
	}
}

// Ensure that the demo has three classes with a plan for each regime, and one chosen. What they took is the
// machine's.
func TestDemo(t *testing.T) {
	if testing.Short() {
		t.Skip("takes six seconds")
	}
	r, err := collective.Demo(t.Context(), collective.DemoOptions{Repeats: 1, Toggles: 2})
	if err != nil {
		t.Fatal(err)
	}
	want := [][3]time.Duration{ // at 25, 100 and 200 ms with 3, 2 and 0 changes
		{278444444, 312 * time.Millisecond, 604333333},
		{503444444, 462 * time.Millisecond, 604333333},
		{803444444, 662 * time.Millisecond, 604333333},
	}
	for i, c := range r.Classes {
		for k, o := range c.Plans {
			if o.Nominal != want[i][k] || o.Plan.Changes != [3]int{3, 2, 0}[k] || o.Measured <= 0 || len(o.Rounds) != 3 {
				t.Errorf("%s, plan %d: %+v, want %v", c.Name, k, o, want[i][k])
			}
		}
		if !c.Chosen().Chosen || c.Measured < c.Nominal-5*time.Millisecond || c.Light > c.Measured {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
	if len(r.Classes) != 3 {
		t.Errorf("%d classes", len(r.Classes))
	}
}

// Ensure that the demo ends when it is to.
func TestDemo_Ended(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := collective.Demo(ctx, collective.DemoOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended: %v", err)
	}
	if _, err := collective.Demo(t.Context(), collective.DemoOptions{Toggles: 3}); !errors.Is(err, pccl.ErrArgument) {
		t.Errorf("odd toggles: %v", err)
	}
}
