package shim_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/shim"
	"github.com/ocslab/ocslab/topology/opus"
)

// A unit is a group, or in the pipeline one of its pairs of stages.
type unit struct {
	group string
	way   int
}

// A model is a controller that follows the rules of package proto and knows circuits only by who uses them: those of
// two units with a common member exclude each other.
type model struct {
	job opus.Job

	mu      sync.Mutex
	conns   []net.Conn
	joined  map[string]int
	queue   [][]*wish // by rank: what is not answered yet, in order
	holds   []map[proto.OpRef]bool
	tables  []*proto.PhaseTable // that are not answered
	granted int
}

// A wish is a topo-write of a rank.
type wish struct {
	proto.TopoWrite
	answer proto.Message
}

func newModel(job opus.Job) *model {
	m := &model{job: job, conns: make([]net.Conn, job.Ranks()), joined: map[string]int{}, queue: make([][]*wish, job.Ranks()),
		tables: make([]*proto.PhaseTable, job.Ranks())}
	for range job.Ranks() {
		m.holds = append(m.holds, map[proto.OpRef]bool{})
	}
	return m
}

func (m *model) dial(context.Context) (net.Conn, error) {
	a, b := net.Pipe()
	go m.serve(b)
	return a, nil
}

func (m *model) members(ref proto.OpRef) []int {
	g, _ := m.job.FindGroup(ref.Group)
	if g.Axis == opus.PP {
		return g.Members[ref.Way : ref.Way+2]
	}
	return g.Members
}

func (m *model) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	first, err := proto.Read(r)
	if err != nil {
		return
	}
	rank := first.(*proto.Hello).Rank
	m.mu.Lock()
	m.conns[rank] = conn
	m.send(rank, &proto.Welcome{Epoch: 1, TimeoutNS: int64(time.Hour)})
	m.mu.Unlock()
	for {
		msg, err := proto.Read(r)
		if err != nil {
			return
		}
		if _, bye := msg.(*proto.Bye); bye {
			return
		}
		m.mu.Lock()
		m.handle(rank, msg)
		m.mu.Unlock()
	}
}

func (m *model) send(rank int, msg proto.Message) {
	b, _ := proto.Append(nil, msg)
	_, _ = m.conns[rank].Write(b) // it may have gone
}

func (m *model) handle(rank int, msg proto.Message) {
	switch msg := msg.(type) {
	case *proto.JoinGroup:
		if m.joined[msg.Group]++; m.joined[msg.Group] == len(msg.Members) {
			for _, x := range msg.Members {
				m.send(x, &proto.GroupOK{Group: msg.Group, Domain: "rail"})
			}
		}
	case *proto.PhaseTable:
		m.tables[rank] = msg
		m.unite()
	case *proto.TopoWrite:
		if msg.Last != nil {
			clear(m.holds[rank])
		}
		m.queue[rank] = append(m.queue[rank], &wish{TopoWrite: *msg})
	case *proto.Withdraw:
		for _, w := range m.queue[rank] {
			if w.Req == msg.Req && w.answer == nil {
				w.answer = &proto.TopoNack{Req: w.Req, Code: proto.Withdrawn}
			}
		}
	case *proto.Release:
		clear(m.holds[rank])
	}
	m.settle()
}

// unite answers all tables when all ranks have sent theirs.
func (m *model) unite() {
	for _, t := range m.tables {
		if t == nil || t.Step != m.tables[0].Step {
			return
		}
	}
	for x := range m.tables {
		b := &proto.Boundaries{}
		for _, t := range m.tables {
			for _, r := range t.Starts {
				if slices.Contains(m.members(r), x) {
					b.Starts = append(b.Starts, r)
				}
			}
			for _, r := range t.Ends {
				if slices.Contains(m.members(r), x) {
					b.Ends = append(b.Ends, r)
				}
			}
		}
		m.send(x, b)
	}
	clear(m.tables)
}

// settle answers all that can be.
func (m *model) settle() {
	for changed := true; changed; {
		changed = false
		for rank := range m.queue {
			for _, w := range m.queue[rank] {
				if w.answer == nil && m.try(w) {
					changed = true
				}
			}
		}
	}
	for rank, q := range m.queue {
		for len(q) > 0 && q[0].answer != nil {
			m.send(rank, q[0].answer)
			q = q[1:]
		}
		m.queue[rank] = q
	}
}

func (m *model) try(w *wish) bool {
	var all []*wish // one of each member
	members := m.members(w.OpRef)
	for _, x := range members {
		i := slices.IndexFunc(m.queue[x], func(o *wish) bool {
			return o.OpRef == w.OpRef && o.answer == nil && (w.Mode == proto.Provision || o.Mode == proto.Demand)
		})
		if i < 0 {
			return false
		}
		all = append(all, m.queue[x][i])
	}
	if w.Mode == proto.Provision {
		for _, o := range all {
			if o.Mode == proto.Provision {
				o.answer = &proto.TopoAck{Req: o.Req, Result: proto.Applied}
			}
		}
		return true
	}
	for x, holds := range m.holds {
		for ref := range holds {
			if (unit{ref.Group, ref.Way} != unit{w.Group, w.Way}) && slices.ContainsFunc(m.members(ref), func(y int) bool { return slices.Contains(members, y) }) {
				return false // G2
			}
			if slices.Contains(members, x) && ref == w.OpRef {
				panic("granted twice")
			}
		}
	}
	m.granted++
	for _, x := range members {
		m.holds[x][w.OpRef] = true
		for _, o := range m.queue[x] {
			if o.OpRef == w.OpRef && o.answer == nil { // a prediction that the others never made is answered with it
				o.answer = &proto.TopoAck{Req: o.Req, Result: proto.Applied, Generation: uint64(m.granted)}
			}
		}
	}
	return true
}

// holding reports whether a rank has leave for an operation, or for an earlier one of the same unit.
func (m *model) holding(rank int, ref proto.OpRef) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for h := range m.holds[rank] {
		if h.Group == ref.Group && h.Way == ref.Way && h.Op <= ref.Op {
			return true
		}
	}
	return false
}

// An event is an operation of a unit, in the order in which all ranks together go through a step. Such a program cannot
// come to a standstill by itself.
type event struct {
	unit
	axis  int
	think time.Duration // before it is issued
}

// A world runs programs on ranks. An operation ends when all of its members have come.
type world struct {
	m  *model
	mu sync.Mutex
	at map[proto.OpRef]*meeting
}

type meeting struct {
	missing int
	all     chan struct{}
}

func (w *world) run(ctx context.Context, rank int, s *shim.Shim, steps [][]event) (stats []shim.Stats, err error) {
	next := map[unit]uint64{}
	for _, step := range steps {
		for _, e := range step {
			ref := proto.OpRef{Group: e.group, Op: next[e.unit], Way: e.way}
			members := w.m.members(ref)
			if !slices.Contains(members, rank) {
				continue
			}
			next[e.unit]++
			op := shim.Op{OpRef: ref, Axis: e.axis, Bytes: 1}
			time.Sleep(e.think * time.Duration(1+rank%3))
			if _, err := s.PreOp(ctx, op); err != nil {
				return stats, err
			}
			if !w.m.holding(rank, ref) {
				return stats, fmt.Errorf("rank %d runs %v without leave", rank, ref)
			}
			w.mu.Lock()
			t := w.at[ref]
			if t == nil {
				t = &meeting{len(members), make(chan struct{})}
				w.at[ref] = t
			}
			if t.missing--; t.missing == 0 {
				close(t.all)
			}
			w.mu.Unlock()
			select {
			case <-t.all:
			case <-time.After(2 * time.Hour):
				return stats, fmt.Errorf("rank %d waits for %d others in %v", rank, t.missing, ref)
			}
			if !w.m.holding(rank, ref) {
				return stats, fmt.Errorf("rank %d lost its circuits in %v", rank, ref)
			}
			if err := s.PostOp(op); err != nil {
				return stats, err
			}
		}
		if err := s.Step(ctx); err != nil {
			return stats, err
		}
		stats = append(stats, s.Stats())
	}
	return stats, nil
}

// play runs steps on all ranks of a job and returns what the shims count, by rank after each step.
func play(t *testing.T, rt *rapid.T, job opus.Job, mode shim.Mode, steps [][]event) [][]shim.Stats {
	var stats [][]shim.Stats
	var err error
	synctest.Test(t, func(t *testing.T) { stats, err = playIn(t.Context(), job, mode, steps) })
	if err != nil {
		rt.Fatal(err)
	}
	return stats
}

func playIn(ctx context.Context, job opus.Job, mode shim.Mode, steps [][]event) ([][]shim.Stats, error) {
	w := &world{m: newModel(job), at: map[proto.OpRef]*meeting{}}
	stats := make([][]shim.Stats, job.Ranks())
	errs := make(chan error, job.Ranks())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for rank := range job.Ranks() {
		go func() {
			s, err := shim.Dial(ctx, shim.Options{Dial: w.m.dial, Job: job, Rail: "rail0", Rank: rank, Mode: mode, ProfileSteps: 3, NoReconnect: true})
			if err == nil {
				stats[rank], err = w.run(ctx, rank, s, steps)
				s.Close()
			}
			if err != nil {
				cancel()
			}
			errs <- err
		}()
	}
	var first error
	for range job.Ranks() {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	synctest.Wait()
	return stats, first
}

func drawJob(t *rapid.T) opus.Job {
	j := opus.Job{Name: "random", Stages: rapid.IntRange(1, 3).Draw(t, "stages")}
	j.Axes = []opus.Axis{{Name: "dp", Size: rapid.IntRange(2, 3).Draw(t, "size")}}
	if rapid.Bool().Draw(t, "second axis") {
		j.Axes = append(j.Axes, opus.Axis{Name: "cp", Size: 2})
	}
	return j
}

func drawThink(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 3).Draw(t, "think")) * time.Millisecond
}

// drawStep draws a step in which any group may have operations at any time, or, if alike, all groups of an axis
// in a stage, and all transfers between two stages, have theirs at the same time.
func drawStep(t *rapid.T, j opus.Job, alike bool) []event {
	var step []event
	for range rapid.IntRange(1, 6).Draw(t, "events") {
		axis := rapid.IntRange(0, len(j.Axes)).Draw(t, "axis")
		if axis == opus.PP && j.Stages == 1 {
			axis = 1
		}
		think := drawThink(t)
		one := func(g opus.Group, way int) {
			for range rapid.IntRange(1, 2).Draw(t, "repeat") {
				step = append(step, event{unit{g.Name, way}, axis, think})
			}
		}
		stage, way := rapid.IntRange(0, j.Stages-1).Draw(t, "stage"), 0
		if axis == opus.PP {
			way = rapid.IntRange(0, j.Stages-2).Draw(t, "way")
		}
		groups := slices.DeleteFunc(j.Groups(axis), func(g opus.Group) bool { return axis != opus.PP && j.Stage(g.Members[0]) != stage })
		if !alike {
			one(groups[rapid.IntRange(0, len(groups)-1).Draw(t, "group")], way)
			continue
		}
		n := rapid.IntRange(1, 3).Draw(t, "repeat")
		for range n {
			for _, g := range groups {
				step = append(step, event{unit{g.Name, way}, axis, think})
			}
		}
	}
	return step
}

// asks returns how often a rank has to ask in a step, once it is known: at the boundaries of all members, and in the
// pipeline always.
func asks(j opus.Job, step []event) []int {
	m := &model{job: j}
	type place struct {
		unit
		n int
	}
	starts := map[place]bool{}
	for rank := range j.Ranks() {
		axis, count := -1, map[unit]int{}
		for _, e := range step {
			if slices.Contains(m.members(proto.OpRef{Group: e.group, Way: e.way}), rank) {
				if e.axis != axis || e.axis == opus.PP {
					starts[place{e.unit, count[e.unit]}] = true
				}
				axis = e.axis
				count[e.unit]++
			}
		}
	}
	n := make([]int, j.Ranks())
	for p := range starts {
		for _, rank := range m.members(proto.OpRef{Group: p.group, Way: p.way}) {
			n[rank]++
		}
	}
	return n
}

// Ensure ranks of any program that repeats ask exactly at the union of their boundaries once they have learnt it,
// predict every phase, and never come to a standstill.
func TestPeriodic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		job := drawJob(rt)
		step := drawStep(rt, job, false)
		mode := rapid.SampledFrom([]shim.Mode{shim.ModeProvision, shim.ModeDemand}).Draw(rt, "mode")
		const learnt = 5
		steps := slices.Repeat([][]event{step}, 3+learnt)
		stats := play(t, rt, job, mode, steps)
		want := asks(job, step)
		for rank, of := range stats {
			s := of[len(of)-1]
			profiled := s.Operations / len(steps) * 3
			if s.Asked != profiled+learnt*want[rank] || s.Mispredictions != 0 || s.Withdrawn != 0 {
				rt.Errorf("rank %d of %+v: got %+v, want %d + %d * %d demands", rank, job, s, profiled, learnt, want[rank])
			}
			if mode == shim.ModeProvision && want[rank] > 0 && (s.Provisioned != learnt*want[rank] || s.Hits != s.Provisioned-1) {
				rt.Errorf("rank %d: got %+v, want %d predictions, and all but the last to be right", rank, s, learnt*want[rank])
			}
		}
	})
}

// Ensure a schedule that changes leads to no standstill, and is learnt again.
func TestScheduleChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		job := drawJob(rt)
		one, other := drawStep(rt, job, true), drawStep(rt, job, true)
		mode := rapid.SampledFrom([]shim.Mode{shim.ModeProvision, shim.ModeDemand, shim.ModeAlways}).Draw(rt, "mode")
		steps := slices.Concat(
			slices.Repeat([][]event{one}, rapid.IntRange(0, 9).Draw(rt, "before")),
			slices.Repeat([][]event{other}, 11))
		stats := play(t, rt, job, mode, steps)
		want := asks(job, other)
		for rank, of := range stats {
			before, after := of[len(steps)-3], of[len(steps)-1]
			ops := (after.Operations - before.Operations) / 2
			if mode == shim.ModeAlways {
				want[rank] = ops
			}
			if got := after.Asked - before.Asked; got != 2*want[rank] {
				rt.Errorf("rank %d: got %d demands in two steps long after the change, want %d", rank, got, 2*want[rank])
			}
			if got := after.Mispredictions - before.Mispredictions; got != 0 {
				rt.Errorf("rank %d: got %d mispredictions in two steps long after the change", rank, got)
			}
		}
	})
}
