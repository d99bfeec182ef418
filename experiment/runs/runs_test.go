package runs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// tempDir returns a directory that is gone after the test: in memory, where there is such a
// place, since much is synced.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "runs")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// open opens a store in a directory of its own, on a disk that does not sync.
func open(t testing.TB, dir string) *runs.Store {
	t.Helper()
	s, err := runs.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	s.SetDisk(lazyDisk)
	s.SetRemote(func(string) string { return "" })
	return s
}

// lazy is a disk that does not sync, since what the kernel has a kill does not take away.
type lazy struct{ runs.Disk }

func (lazy) Sync() error { return nil }

func lazyDisk(path string) (runs.Disk, error) {
	d, err := runs.OpenDisk(path)
	return lazy{d}, err
}

// planned returns a plan of that many points, each of two reconfigurations, the last ones
// first.
func planned(points int) *plan.Plan {
	p := &plan.Plan{
		Name: "autoneg", Seed: 7, Order: plan.Random,
		Conditions: []plan.Condition{
			{Number: 1, Label: "firmware=quick", Sequence: []string{"dp", "pp"}, Parameters: map[string]string{"firmware": "quick"}},
			{Number: 2, Label: "firmware=slow", Sequence: []string{"dp", "pp"}, Parameters: map[string]string{"firmware": "slow"}},
		},
	}
	for id := points; id > 0; id-- {
		p.Points = append(p.Points, plan.Point{ID: id, Condition: 1 + id%2, Repeat: (id + 1) / 2, First: 2*id - 1})
	}
	return p
}

// create begins a run of that many points, with its first session.
func create(t testing.TB, s *runs.Store, points int) *runs.Writer {
	t.Helper()
	w, err := s.Create(t.Context(), runs.Creation{
		Meta:       runs.Meta{Name: "Opus, night 1", Lab: "opus", Version: "v1.2.3", Command: []string{"run", "night.yaml"}},
		Experiment: []byte("name: autoneg\n"), Lab: []byte("name: opus\n"), Plan: planned(points),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if _, err := w.Session(runs.Session{Host: "coordinator"}); err != nil {
		t.Fatal(err)
	}
	return w
}

// content is what belongs to points.
type content struct {
	Reconfigurations []runs.Reconfiguration
	Marks, Truth     []timeline.Mark
	Expected         []timeline.Expectation
	Notes            []watch.Note
	NoteOf           []int
	Samples          []runs.Sample
}

// texts are subjects and hosts, also such that JSON has to escape.
var texts = []string{"rail0", "rail0/33", "gpu1/ens1f0", "gpu1/ens1f0>gpu2/ens1f0", "netlink", "opm", "", "", "Gerät \"7\"\n", "<&>\\", "\u2028"}

// contentOf is what a point is filled with: always the same for the same point and seed.
func contentOf(p plan.Point, seed uint64) (c content) {
	rng := rand.New(rand.NewPCG(seed, uint64(p.ID)))
	text := func() string { return texts[rng.IntN(len(texts))] }
	span := func() timeline.Interval { return timeline.Between(rng.Int64N(1e12), rng.Int64N(1e12)) }
	mark := func(n int) timeline.Mark {
		return timeline.Mark{
			Stage: timeline.Stages()[rng.IntN(len(timeline.Stages()))], Subject: text(), Host: text(), Interval: span(),
			Source: "counters", Detail: text(), Reconfiguration: n,
		}
	}
	for n := p.First; n < p.First+2; n++ {
		c.Reconfigurations = append(c.Reconfigurations, runs.Reconfiguration{
			Number: n, Point: p.ID, Condition: p.Condition, Repeat: p.Repeat, Session: 1, From: "dp", To: "pp",
			Added: map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})},
			Wall:  time.Unix(rng.Int64N(1e9), rng.Int64N(1e9)).UTC(), MonoNS: rng.Int64(),
		})
		for range rng.IntN(5) {
			c.Expected = append(c.Expected, timeline.Expectation{Reconfiguration: n, Stage: timeline.Light, Subject: text()})
			c.Marks = append(c.Marks, mark(n))
			c.Truth = append(c.Truth, mark(n))
			i := span()
			s := runs.Sample{Reconfiguration: n, Subject: text(), EarliestNS: i.Earliest, LatestNS: i.Latest, Dark: rng.IntN(3) == 0}
			if !s.Dark {
				s.PowerDBm = rng.NormFloat64() * 10
			}
			c.Samples = append(c.Samples, s)
		}
		if rng.IntN(2) == 0 {
			c.Notes = append(c.Notes, watch.Note{Kind: watch.Gap, Subject: text(), Interval: span(), Source: "netlink", Text: text()})
			c.NoteOf = append(c.NoteOf, n)
		}
	}
	return c
}

func (c *content) add(o content) {
	c.Reconfigurations = append(c.Reconfigurations, o.Reconfigurations...)
	c.Marks = append(c.Marks, o.Marks...)
	c.Truth = append(c.Truth, o.Truth...)
	c.Expected = append(c.Expected, o.Expected...)
	c.Notes = append(c.Notes, o.Notes...)
	c.NoteOf = append(c.NoteOf, o.NoteOf...)
	c.Samples = append(c.Samples, o.Samples...)
}

// record records content in the open point.
func (c content) record(w *runs.Writer) {
	for _, r := range c.Reconfigurations {
		w.Reconfiguration(r)
	}
	for _, e := range c.Expected {
		w.Expected(e)
	}
	for _, m := range c.Marks {
		w.Mark(m)
	}
	for _, m := range c.Truth {
		w.Truth(m)
	}
	for _, s := range c.Samples {
		w.Sample(s)
	}
	for i, n := range c.Notes {
		w.Note(c.NoteOf[i], n)
	}
}

// write writes one point.
func write(w *runs.Writer, p plan.Point, seed uint64) error {
	if err := w.BeginPoint(p); err != nil {
		return err
	}
	contentOf(p, seed).record(w)
	return w.FinishPoint()
}

// points writes those points of the plan.
func points(t testing.TB, w *runs.Writer, p *plan.Plan, ids ...int) {
	t.Helper()
	for _, id := range ids {
		i := slices.IndexFunc(p.Points, func(p plan.Point) bool { return p.ID == id })
		if err := write(w, p.Points[i], p.Seed); err != nil {
			t.Fatal(err)
		}
	}
}

func load(t testing.TB, s *runs.Store, id string) *runs.Run {
	t.Helper()
	r, err := s.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check checks that a run has just those points, exactly as they were written.
func check(t interface {
	Helper()
	Errorf(string, ...any)
}, r *runs.Run, ids ...int) {
	t.Helper()
	var want content
	done := make(map[int]bool)
	for _, p := range slices.Backward(r.Plan.Points) { // ascending
		if slices.Contains(ids, p.ID) {
			want.add(contentOf(p, r.Plan.Seed))
			done[p.ID] = true
		}
	}
	if diff := cmp.Diff(done, r.Done); diff != "" {
		t.Errorf("points done (-want +got):\n%s", diff)
		return
	}
	got := content{slices.Clone(r.Reconfigurations), r.Marks, r.Truth, r.Expected, r.Notes, r.NoteOf, r.Samples}
	for i := range got.Reconfigurations {
		got.Reconfigurations[i].Session = 1
	}
	if !reflect.DeepEqual(want, got) { // which is faster than a look at the differences
		diff := cmp.Diff(want, got)
		t.Errorf("content (-want +got):\n%s", diff)
	}
}

func TestWriter_RoundTrip(t *testing.T) {
	s := open(t, tempDir(t))
	w := create(t, s, 4)
	p := planned(4)
	setup := runs.Setup{Conditions: []int{1, 2}, Devices: []runs.Device{{Name: "rail0", Size: "32x32"}}, NICs: []runs.NIC{{Name: "gpu1/ens1f0"}}, Carrier: "counters", Missing: []string{"no <traffic>"}}
	if err := w.Setup(setup); err != nil {
		t.Fatal(err)
	}
	points(t, w, p, 3, 1)
	if err := w.Event(runs.Event{Kind: "hook", Point: 1, Text: "The hook said \"x>y\"."}); err != nil {
		t.Fatal(err)
	}
	if err := w.DropPoint(2, "known well enough"); err != nil {
		t.Fatal(err)
	}
	if err := w.EndSession("stopped"); err != nil {
		t.Fatal(err)
	}
	r := load(t, s, w.ID())
	check(t, r, 1, 3)
	if r.State != runs.Running {
		t.Errorf("state=%s while it is written, want running", r.State)
	}
	if err := w.Finish(runs.Summary{State: runs.Stopped, Reason: "somebody stopped it", Verdict: "pass", Restored: true}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r = load(t, s, w.ID())
	check(t, r, 1, 3)
	setup.Session = 1
	if diff := cmp.Diff([]runs.Setup{setup}, r.Setups); diff != "" {
		t.Errorf("set-ups (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p, r.Plan); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if r.State != runs.Stopped || r.Summary == nil || r.Summary.Points != 2 || r.Summary.Planned != 4 || r.Summary.Run != w.ID() || r.Summary.Ended.IsZero() {
		t.Errorf("state=%s summary=%+v", r.State, r.Summary)
	}
	if len(r.Sessions) != 1 || r.Sessions[0].Number != 1 || r.Sessions[0].Ended != "stopped" || r.Sessions[0].Begun.IsZero() || r.Sessions[0].MonoNS == 0 {
		t.Errorf("sessions=%+v", r.Sessions)
	}
	if len(r.Events) != 1 || r.Events[0].Text != "The hook said \"x>y\"." || r.Events[0].Session != 1 || !r.Dropped[2] || len(r.Dropped) != 1 {
		t.Errorf("events=%+v dropped=%v", r.Events, r.Dropped)
	}
	if string(r.Lab) != "name: opus\n" || r.File == nil || r.Meta.Name != "Opus, night 1" || r.Meta.Format != runs.Format {
		t.Errorf("lab=%q file=%v meta=%+v", r.Lab, r.File, r.Meta)
	}
	if !strings.Contains(w.ID(), "-opus-night-1-") {
		t.Errorf("ID=%s, want the name in it", w.ID())
	}
	info, err := os.Stat(filepath.Dir(w.Dir()))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory of runs: %v, %v, want mode 0700", info.Mode(), err)
	}

	copied, err := runs.WriteAll(t.Context(), s, r)
	if err != nil {
		t.Fatal(err)
	}
	again := load(t, s, copied)
	again.Dir, again.Meta, again.File, again.Summary.Run = r.Dir, r.Meta, r.File, r.Summary.Run
	if diff := cmp.Diff(r, again, cmpopts.IgnoreTypes(&plan.File{})); diff != "" {
		t.Errorf("copy (-run +copy):\n%s", diff)
	}
}

func TestRun_Lookup(t *testing.T) {
	s := open(t, tempDir(t))
	w := create(t, s, 4)
	points(t, w, planned(4), 4, 2)
	r := load(t, s, w.ID())
	want := contentOf(planned(4).Points[0], 7)
	for n := range 10 {
		var marks []timeline.Mark
		for _, m := range r.Marks {
			if m.Reconfiguration == n {
				marks = append(marks, m)
			}
		}
		if got := r.MarksOf(n); !slices.Equal(got, marks) || cap(got) != len(got) {
			t.Errorf("MarksOf(%d): %v, want %v", n, got, marks)
		}
	}
	if got := r.SamplesOf(7); len(got)+len(r.SamplesOf(8)) != len(want.Samples) {
		t.Errorf("SamplesOf: %v", got)
	}
	if got := len(r.TruthOf(7)) + len(r.TruthOf(8)); got != len(want.Truth) || len(r.ExpectedOf(7))+len(r.ExpectedOf(8)) != len(want.Expected) {
		t.Errorf("TruthOf, ExpectedOf: %d", got)
	}
	if n := r.Reconfiguration(8); n == nil || n.Number != 8 || n.Point != 4 {
		t.Errorf("Reconfiguration(8)=%+v", n)
	}
	if n := r.Reconfiguration(5); n != nil {
		t.Errorf("of a point that is not done: %v", n)
	}
}

// Ensure that what happens while a point is open writes nothing before it is over, and then
// comes after it.
func TestWriter_Late(t *testing.T) {
	s := open(t, tempDir(t))
	w := create(t, s, 3)
	size := func() int64 {
		info, err := os.Stat(filepath.Join(w.Dir(), "events.ndjson"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	p := planned(3).Points
	if err := w.BeginPoint(p[0]); err != nil {
		t.Fatal(err)
	}
	contentOf(p[0], 7).record(w)
	if err := w.Event(runs.Event{Kind: "paused", Text: "Paused."}); err != nil {
		t.Fatal(err)
	}
	w.Mark(timeline.Mark{Stage: "dawn", Subject: "rail0"})
	w.Mark(timeline.Mark{Stage: timeline.Light, Interval: timeline.Interval{Earliest: 2, Latest: 1}})
	if got := size(); got != before {
		t.Errorf("the file grew by %d while the point was open", got-before)
	}
	if err := w.BeginPoint(p[1]); err == nil {
		t.Error("a second point began while the first was open")
	}
	if err := w.FinishPoint(); err != nil {
		t.Fatal(err)
	}
	if err := w.BeginPoint(p[0]); err == nil {
		t.Error("a point that is done began again")
	}
	if err := w.FinishPoint(); err == nil {
		t.Error("a point was finished that had not begun")
	}
	if err := w.BeginPoint(p[1]); err != nil {
		t.Fatal(err)
	}
	contentOf(p[1], 7).record(w)
	if err := w.AbandonPoint("a switch was lost"); err != nil {
		t.Fatal(err)
	}
	points(t, w, planned(3), 1)
	r := load(t, s, w.ID())
	check(t, r, 1, 3)
	var got []string
	for _, e := range r.Events {
		got = append(got, fmt.Sprintf("%s %d %s", e.Kind, e.Point, e.Text))
	}
	want := []string{
		"paused 0 Paused.",
		"skipped 0 What cannot be recorded was left out 2 times, the first was a mark: dawn of rail0 at 0 ns ().",
		"abandoned 2 a switch was lost",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// Ensure that steps of the wall clock are told, each once.
func TestWriter_ClockStep(t *testing.T) {
	s := open(t, tempDir(t))
	wall, mono := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC), int64(5e9)
	s.SetClock(func() (time.Time, int64) { return wall, mono })
	w := create(t, s, 5)
	pass := func(wallBy, monoBy time.Duration) { wall, mono = wall.Add(wallBy), mono+int64(monoBy) }
	p := planned(5)
	pass(time.Hour, time.Hour+90*time.Millisecond)
	points(t, w, p, 1)
	pass(time.Hour, time.Hour+20*time.Millisecond) // 110 ms in all
	points(t, w, p, 2)
	points(t, w, p, 3)
	pass(3*time.Hour, time.Minute)
	points(t, w, p, 4, 5)
	r := load(t, s, w.ID())
	check(t, r, 1, 2, 3, 4, 5)
	var got []string
	for _, e := range r.Events {
		got = append(got, fmt.Sprint(e.Kind, " ", e.Point, " ", strings.Split(e.Text, " against")[0]))
	}
	want := []string{"clock-step 2 The wall clock went back by 110ms", "clock-step 4 The wall clock went forward by 2h59m0s"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
