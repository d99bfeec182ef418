package runner_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Maps of the tests, by switch.
var (
	asFound = map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 9, Egress: 41})}
	dp      = map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})}
	pp      = map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 34})}
)

// name names maps.
func name(m map[string]ocs.Map) string {
	for text, known := range map[string]map[string]ocs.Map{"found": asFound, "dp": dp, "pp": pp} {
		if maps.EqualFunc(m, known, ocs.Map.Equal) {
			return text
		}
	}
	return fmt.Sprint(m)
}

// newPlan returns a plan of conditions with a set-up for each two of them, whose repeats
// are done round by round, and with a null toggle of each at the end.
func newPlan(conditions, repeats int) *plan.Plan {
	p := &plan.Plan{Name: "test", Seed: 1, Order: plan.Interleaved, WarmUps: 1, Window: int64(50 * time.Millisecond), Varied: []string{"n"}}
	for n := 1; n <= conditions; n++ {
		p.Conditions = append(p.Conditions, plan.Condition{
			Number: n, Label: fmt.Sprint("n=", n), Parameters: map[string]string{"n": fmt.Sprint(n)},
			Settings: plan.Settings{Dwell: 20 * time.Millisecond},
			Sequence: []string{"dp", "pp"}, Maps: []map[string]ocs.Map{dp, pp},
			Setup: fmt.Sprint("set-up ", (n-1)/2), Expected: 30 * time.Millisecond,
		})
	}
	next := 1
	add := func(point plan.Point) {
		point.ID, point.First = len(p.Points)+1, next
		next += point.Reconfigurations(&p.Conditions[point.Condition-1])
		p.Points = append(p.Points, point)
	}
	for repeat := 1; repeat <= repeats; repeat++ {
		for n := 1; n <= conditions; n++ {
			add(plan.Point{Condition: n, Repeat: repeat})
		}
	}
	for n := 1; n <= conditions; n++ {
		add(plan.Point{Condition: n, Repeat: 1, Null: true})
	}
	return p
}

// world is all that a Runner meets, of which every call can be made to go wrong. Its
// light and its records outlive sessions.
type world struct {
	mu sync.Mutex // guards all that follows

	calls []string // all, in order
	at    int      // the call that goes wrong, from 1
	fault func(ctx context.Context) error
	every func(call string) error // is asked at each call; nil: nothing is wrong

	light   map[string]ocs.Map
	benches int  // that are open
	most    int  // that were open at once
	inUse   bool // a bench or the light is being used
	misuse  []string

	// What is recorded.
	open      *plan.Point
	inPoint   []int // reconfigurations of the open point
	done      map[int][]int
	dropped   map[int]string
	events    []runs.Event
	setups    []runs.Setup
	sessions  []string // how each has ended
	summaries []runs.Summary
	closed    int // recorders
	marks     []timeline.Mark
	samples   []runs.Sample
	recorded  []runs.Reconfiguration
	sent      []runs.Control
}

func newWorld() *world {
	return &world{light: asFound, done: map[int][]int{}, dropped: map[int]string{}}
}

// hit is called at each call. The error is only for those that can return one.
func (w *world) hit(ctx context.Context, call string, args ...any) error {
	w.mu.Lock()
	w.calls = append(w.calls, strings.TrimSpace(call+" "+fmt.Sprint(args...)))
	wrong, now := len(w.calls) == w.at, w.calls[len(w.calls)-1]
	w.mu.Unlock()
	if w.every != nil {
		return w.every(now)
	}
	if wrong && w.fault != nil {
		return w.fault(ctx)
	}
	return nil
}

// count is how often calls of that name were made.
func (w *world) count(call string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c == call || strings.HasPrefix(c, call+" ") {
			n++
		}
	}
	return n
}

// wrong notes what should never happen.
func (w *world) wrong(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.misuse = append(w.misuse, fmt.Sprintf(format, args...))
}

// runner returns a Runner for what is left of a plan.
func (w *world) runner(p *plan.Plan) *runner.Runner {
	r := &runner.Runner{
		Plan: p, Writer: recorder{w}, Done: map[int]bool{}, Dropped: map[int]bool{}, Marks: slices.Clone(w.marks),
		File: &plan.File{
			Parameters: map[string]string{"n": "0"},
			Hooks: plan.Hooks{
				BeforeRun: hook("before-run"), Setup: hook("setup"), BeforePoint: hook("before-point"),
				AfterPoint: hook("after-point"), AfterRun: hook("after-run"),
			},
			Finally: &plan.Finally{Light: plan.Restore, Hooks: append(hook("finally-one"), hook("finally-two")...)},
		},
		Open: func(ctx context.Context, conditions []plan.Condition) (runner.Bench, error) {
			if err := w.hit(ctx, "open", conditions[0].Setup); err != nil {
				return nil, err
			}
			w.mu.Lock()
			w.benches++
			w.most = max(w.most, w.benches)
			w.mu.Unlock()
			return &bench{world: w}, nil
		},
		Light: func(ctx context.Context, want map[string]ocs.Map) error {
			defer w.use("light")()
			if want == nil {
				want = asFound
			}
			if err := w.hit(ctx, "light", name(want)); err != nil {
				return err
			}
			w.mu.Lock()
			w.light = want
			w.mu.Unlock()
			return nil
		},
		Progress: func(runner.Progress) { _ = w.hit(context.Background(), "progress") },
		Verdict:  func() (string, error) { return "pass", w.hit(context.Background(), "verdict") },
	}
	r.SetHooks(func(ctx context.Context, words []string) error { return w.hit(ctx, "hook", strings.Join(words, " ")) })
	for id := range w.done {
		r.Done[id] = true
	}
	for id := range w.dropped {
		r.Dropped[id] = true
	}
	return r
}

func hook(name string) []plan.Hook { return []plan.Hook{{Run: []string{name}}} }

// use notes that the light is moved, which only one may at a time.
func (w *world) use(who string) (done func()) {
	w.mu.Lock()
	busy := w.inUse
	w.inUse = true
	w.mu.Unlock()
	if busy {
		w.wrong("%s while something else moves the light", who)
	}
	return func() {
		w.mu.Lock()
		w.inUse = false
		w.mu.Unlock()
	}
}

// bench moves the light of the world.
type bench struct {
	*world
	closed bool
}

func (b *bench) Move(ctx context.Context, number int, to map[string]ocs.Map, _ plan.Wait) (experiment.Move, error) {
	defer b.use("move")()
	if b.closed {
		b.wrong("a closed bench is moved")
	}
	if err := b.hit(ctx, "move", number, " ", name(to)); err != nil {
		return experiment.Move{}, err
	}
	if err := sleep(ctx, 10*time.Millisecond); err != nil {
		return experiment.Move{}, err
	}
	b.mu.Lock()
	b.light = to
	b.mu.Unlock()
	return seen(number), nil
}

// seen is a move with something of everything.
func seen(number int) experiment.Move {
	at := func(stage timeline.Stage, subject, source string, from, to int64) timeline.Mark {
		return timeline.Mark{Stage: stage, Subject: subject, Host: "here", Interval: timeline.Between(from, to), Source: source, Reconfiguration: number}
	}
	return experiment.Move{
		Reports: map[string]ocs.Report{"rail0": {Change: ocs.Change{Remove: dp["rail0"], Add: pp["rail0"]}}, "rail1": {}},
		Marks: []timeline.Mark{
			at(timeline.Command, "rail0", "driver", 100, 200), at(timeline.Ack, "rail0", "driver", 300, 400),
			at(timeline.CarrierUp, "a/b", "counters", 1000, 3000), at(timeline.CarrierUp, "a/b", "netlink", 2000, 5000),
		},
		Notes:    []watch.Note{{Kind: watch.Gap, Source: "netlink", Text: "one message was lost"}},
		Expected: []timeline.Expectation{{Reconfiguration: number, Stage: timeline.CarrierUp, Subject: "a/b"}},
		Samples:  map[string][]timeline.Sample{"rail0/33": {{Interval: timeline.Point(7), PowerDBm: -3}}},
		Held:     []string{"a/c"}, Unresolved: []string{"a/d: no monitor"}, Readings: 1,
	}
}

func (b *bench) Null(ctx context.Context, number int, window time.Duration) (experiment.Move, error) {
	defer b.use("null")()
	if err := b.hit(ctx, "null", number); err != nil {
		return experiment.Move{}, err
	}
	return seen(number), sleep(ctx, window)
}

func (b *bench) Truth(number int) []timeline.Mark {
	_ = b.hit(context.Background(), "truth", number)
	return nil
}

func (b *bench) Setup() runs.Setup {
	_ = b.hit(context.Background(), "bench-setup")
	return runs.Setup{Carrier: "counters"}
}

func (b *bench) Close() error {
	b.mu.Lock()
	again := b.closed
	b.closed = true
	b.benches--
	b.mu.Unlock()
	if again {
		b.wrong("a bench is closed twice")
	}
	return b.hit(context.Background(), "bench-close")
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// recorder records in the world.
type recorder struct{ *world }

func (r recorder) ID() string  { return "20261122T101500-test-3f2a" }
func (r recorder) Dir() string { return "/run" }

func (r recorder) Session(s runs.Session) (int, error) {
	if err := r.hit(context.Background(), "session"); err != nil {
		return 0, err
	}
	return len(r.sessions) + 1, nil
}

func (r recorder) Setup(s runs.Setup) error {
	if err := r.hit(context.Background(), "record-setup"); err != nil {
		return err
	}
	r.setups = append(r.setups, s)
	return nil
}

func (r recorder) EndSession(reason string) error {
	r.sessions = append(r.sessions, reason)
	return r.hit(context.Background(), "end-session")
}

func (r recorder) BeginPoint(p plan.Point) error {
	if err := r.hit(context.Background(), "begin", p.ID); err != nil {
		return err
	}
	if r.open != nil || r.done[p.ID] != nil {
		r.wrong("point %d begins while another is open, or again", p.ID)
	}
	r.open, r.inPoint = &p, nil
	return nil
}

func (r recorder) Reconfiguration(x runs.Reconfiguration) {
	_ = r.hit(context.Background(), "reconfiguration", x.Number)
	r.inPoint = append(r.inPoint, x.Number)
	r.recorded = append(r.recorded, x)
}

func (r recorder) Mark(m timeline.Mark) {
	_ = r.hit(context.Background(), "mark")
	r.marks = append(r.marks, m)
}
func (r recorder) Truth(timeline.Mark)           { _ = r.hit(context.Background(), "record-truth") }
func (r recorder) Expected(timeline.Expectation) { _ = r.hit(context.Background(), "expected") }
func (r recorder) Note(int, watch.Note)          { _ = r.hit(context.Background(), "note") }
func (r recorder) Sample(s runs.Sample) {
	_ = r.hit(context.Background(), "sample")
	r.samples = append(r.samples, s)
}

func (r recorder) FinishPoint() error {
	if r.open == nil {
		return errors.New("no point is open")
	}
	if err := r.hit(context.Background(), "finish-point", r.open.ID); err != nil {
		return err
	}
	r.done[r.open.ID] = slices.Clone(r.inPoint)
	r.open = nil
	return nil
}

func (r recorder) AbandonPoint(why string) error {
	r.open = nil
	return r.hit(context.Background(), "abandon")
}

func (r recorder) DropPoint(id int, why string) error {
	if err := r.hit(context.Background(), "drop", id); err != nil {
		return err
	}
	r.dropped[id] = why
	return nil
}

func (r recorder) Event(e runs.Event) error {
	if err := r.hit(context.Background(), "event", e.Kind); err != nil {
		return err
	}
	r.events = append(r.events, e)
	return nil
}

func (r recorder) Control() (runs.Control, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sent) == 0 {
		return "", false
	}
	c := r.sent[0]
	r.sent = r.sent[1:]
	return c, true
}

func (r recorder) Finish(s runs.Summary) error {
	if err := r.hit(context.Background(), "summary"); err != nil {
		return err
	}
	r.summaries = append(r.summaries, s)
	return nil
}

func (r recorder) Close() error {
	r.closed++
	return r.hit(context.Background(), "close")
}

// event returns the texts of the events of a kind.
func (w *world) event(kind string) (texts []string) {
	for _, e := range w.events {
		if e.Kind == kind {
			texts = append(texts, e.Text)
		}
	}
	return texts
}
