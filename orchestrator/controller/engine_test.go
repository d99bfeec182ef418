package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

var (
	figure8 = opus.Job{Name: "figure-8", Stages: 3, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	hazard  = opus.Job{Name: "hazard", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}, {Name: "cp", Size: 2}}}
	labJob  = opus.Job{Name: "lab", Stages: 2, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
)

// A scene takes an engine through literal events.
type scene struct {
	*testing.T
	e     *engine
	req   uint64
	sends []proto.Apply
}

// newScene is a rail at id, whose ranks have all said hello and joined their groups.
func newScene(t *testing.T, j opus.Job, id string, opt Options) *scene {
	t.Helper()
	s := &scene{T: t, e: testEngine(t, j, opt)}
	digits, err := j.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	m, err := opus.Build(j, digits, s.e.policy)
	if err != nil {
		t.Fatal(err)
	}
	s.e.opened(proto.Opened{Epoch: 1, Generation: 10, Shape: proto.Digits, ID: id, Circuits: pairs(slices.Collect(m.Circuits()))})
	for x := range s.e.ranks {
		s.hello(x)
	}
	s.out()
	return s
}

func (s *scene) hello(x int, holds ...proto.OpRef) {
	s.Helper()
	if err := s.e.hello(x, fmt.Sprint("connection ", x), holds); err != nil {
		s.Fatal(err)
	}
	for _, u := range s.e.ranks[x].units {
		g := u.group
		if err := s.e.join(x, &proto.JoinGroup{Group: g.Name, Axis: g.axis, Members: g.Members, Index: slices.Index(g.Members, x)}); err != nil {
			s.Fatal(err)
		}
	}
}

// ask has ranks ask, and returns what the engine wants, in words.
func (s *scene) ask(mode proto.Mode, group string, op uint64, way int, ranks ...int) []string {
	for _, x := range ranks {
		s.req++
		s.e.write(x, &proto.TopoWrite{Req: s.req, Epoch: 1, OpRef: proto.OpRef{Group: group, Op: op, Way: way}, Mode: mode})
	}
	return s.out()
}

func (s *scene) release(group string, op uint64, way int, ranks ...int) []string {
	for _, x := range ranks {
		s.e.release(x, &proto.Release{Epoch: 1, OpRef: proto.OpRef{Group: group, Op: op, Way: way}})
	}
	return s.out()
}

// done carries out the i-th change.
func (s *scene) done(i int) []string {
	s.e.done(s.sends[i].Req, proto.Done{Generation: uint64(11 + i), Shape: proto.Digits, Result: proto.Applied, CommandNS: 5, SwitchAckNS: 6, VerifiedNS: 7, Removed: 1, Added: 2}, nil)
	return s.out()
}

// fail has the last request to the orchestrator fail.
func (s *scene) fail(code proto.Code) []string {
	s.e.done(s.e.req, proto.Done{}, &proto.Refusal{Code: code, Attempts: 3, Detail: "the switch is silent"})
	return s.out()
}

func (s *scene) succeed(shape proto.Shape) []string {
	s.e.done(s.e.req, proto.Done{Generation: 99, Shape: shape, Result: proto.Applied}, nil)
	return s.out()
}

func (s *scene) at(now int64) []string {
	s.e.now = now
	s.e.tick()
	return s.out()
}

func (s *scene) out() []string {
	var words []string
	for _, a := range s.e.out {
		switch {
		case a.ack != nil:
			words = append(words, fmt.Sprintf("ack %d %s", a.rank, a.ack.Result))
		case a.apply != nil:
			s.sends = append(s.sends, *a.apply)
			words = append(words, "apply "+a.apply.ID+strings.Trim(fmt.Sprint(a.apply.Join), "[]"))
		case a.giant != nil:
			words = append(words, "giant ring: "+a.giant.Reason)
		case a.mark != nil:
			words = append(words, fmt.Sprintf("mark %v: %s", a.mark.Dead, a.mark.Reason))
		case a.msg != nil:
			switch m := a.msg.(type) {
			case *proto.TopoNack:
				words = append(words, fmt.Sprintf("nack %d %s: %s", a.rank, m.Code, m.Detail))
			case *proto.Fallback:
				words = append(words, fmt.Sprintf("fallback %d %v", a.rank, m.Dead))
			case *proto.GroupOK:
			default:
				words = append(words, fmt.Sprintf("%s %d", proto.KindOf(m), a.rank))
			}
		}
	}
	s.e.out = nil
	return words
}

func (s *scene) want(got []string, want ...string) {
	s.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("want -, got +:\n%s", diff)
	}
}

func (s *scene) idle() {
	s.Helper()
	if p := s.e.status().Pending; len(p) != 0 {
		s.Errorf("still pending: %+v", p)
	}
}

func TestScenarioA_Barrier(t *testing.T) {
	j := opus.Job{Name: "a", Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	s := newScene(t, j, "0", Options{})
	s.want(s.ask(proto.Demand, "dp/0", 7, 0, 0))
	s.want(s.ask(proto.Demand, "dp/0", 7, 0, 1), "apply 1")
	s.want(s.done(0), "ack 0 applied", "ack 1 applied")
	s.idle()
}

func TestScenarioB_NoOp(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	for op := range uint64(3) {
		s.want(s.ask(proto.Demand, "pp/0", op, 0, 0, 2), "ack 0 noop", "ack 2 noop")
		s.release("pp/0", op, 0, 0, 2)
	}
	if n := s.e.counters.Changes; n != 0 {
		t.Errorf("%d changes", n)
	}
	// From the giant ring, a program of the pipeline alone takes one change.
	s = &scene{T: t, e: testEngine(t, labJob, Options{})}
	s.e.opened(proto.Opened{Epoch: 1, Shape: proto.Giant, Reason: "first start"})
	for x := range 4 {
		s.want(s.ask(proto.Demand, "pp/0", 0, 0), []string(nil)...)
		s.hello(x)
	}
	s.out()
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 0, 2), "apply 00")
	s.want(s.done(0), "ack 0 applied", "ack 2 applied")
	s.want(s.ask(proto.Demand, "pp/1", 0, 0, 1, 3), "ack 1 noop", "ack 3 noop")
}

func TestScenarioC_TransferOfTwo(t *testing.T) {
	s := newScene(t, figure8, "000", Options{})
	s.want(s.ask(proto.Demand, "pp/0", 0, 1, 4, 8), "ack 4 noop", "ack 8 noop") // of three members
	// When a digit changes, all pairs of the two stages have to have asked.
	s = newScene(t, figure8, "001", Options{})
	s.want(s.ask(proto.Demand, "pp/0", 0, 1, 4, 8))
	s.want(s.ask(proto.Demand, "pp/1", 0, 1, 5, 9))
	s.want(s.ask(proto.Demand, "pp/2", 0, 1, 6, 10))
	s.want(s.ask(proto.Demand, "pp/3", 0, 1, 7, 11), "apply 000")
	s.want(s.done(0), "ack 4 applied", "ack 8 applied", "ack 5 applied", "ack 9 applied", "ack 6 applied", "ack 10 applied", "ack 7 applied", "ack 11 applied")
	s.idle()
}

func TestScenarioD_TwoStagesAtOnce(t *testing.T) {
	s := newScene(t, figure8, "111", Options{})
	s.ask(proto.Demand, "cp/0", 0, 0, 0, 1)
	s.want(s.ask(proto.Demand, "cp/1", 0, 0, 2, 3), "apply 211")
	s.ask(proto.Demand, "cp/4", 0, 0, 8, 9)
	s.want(s.ask(proto.Demand, "cp/5", 0, 0, 10, 11), "apply 212") // before the first is done
	s.want(s.done(1), "ack 8 applied", "ack 9 applied", "ack 10 applied", "ack 11 applied")
	s.want(s.done(0), "ack 0 applied", "ack 1 applied", "ack 2 applied", "ack 3 applied")
}

func TestScenarioE_Union(t *testing.T) {
	j := opus.Job{Name: "e", Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	at := func(ops ...uint64) (refs []proto.OpRef) {
		for _, op := range ops {
			refs = append(refs, proto.OpRef{Group: "dp/0", Op: op})
		}
		return refs
	}
	s := newScene(t, j, "1", Options{})
	for x, table := range []*proto.PhaseTable{
		{Period: map[string]uint64{"dp/0": 8}, Starts: at(0, 4), Ends: at(3, 7)},
		{Period: map[string]uint64{"dp/0": 8}, Starts: at(0), Ends: at(7)},
	} {
		if x == 1 && len(s.e.out) > 0 {
			t.Error("rank 0 got its boundaries before rank 1 had sent any")
		}
		if err := s.e.phaseTable(x, table); err != nil {
			t.Fatal(err)
		}
	}
	for x, a := range s.e.out {
		if diff := cmp.Diff(&proto.Boundaries{Starts: at(0, 4), Ends: at(3, 7)}, a.msg); diff != "" || a.rank != x {
			t.Errorf("rank %d: %s", a.rank, diff)
		}
	}
	s.out()

	// Who does not agree how long a step is, is sent away.
	s = newScene(t, j, "1", Options{})
	if err := s.e.phaseTable(0, &proto.PhaseTable{Period: map[string]uint64{"dp/0": 8}}); err != nil {
		t.Fatal(err)
	}
	err := s.e.phaseTable(1, &proto.PhaseTable{Period: map[string]uint64{"dp/0": 9}})
	if want := "rank 1 of rail0 has 9 operations of dp/0 in a step, and rank 0 of rail0 has 8: their schedules do not agree (bad)"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	// Without the union, the watchdog names who is missing.
	s = newScene(t, j, "0", Options{NoUnion: true, Barrier: 100})
	s.ask(proto.Demand, "dp/0", 4, 0, 0)
	s.want(s.at(100), "nack 0 timeout: operation 4 of dp/0 on rail rail0 waited for rank 1 of rail0")
	s.idle()
}

// Ensure tables of the same step go together: a rank that is ahead waits, and takes nothing from those behind it.
func TestPhaseTable_Steps(t *testing.T) {
	j := opus.Job{Name: "e", Stages: 1, Axes: []opus.Axis{{Name: "dp", Size: 2}}}
	table := func(step uint64, ops ...uint64) *proto.PhaseTable {
		p := &proto.PhaseTable{Step: step, Period: map[string]uint64{"dp/0": 8}}
		for _, op := range ops {
			p.Starts = append(p.Starts, proto.OpRef{Group: "dp/0", Op: op})
		}
		return p
	}
	s := newScene(t, j, "1", Options{})
	for i, x := range []struct {
		rank    int
		table   *proto.PhaseTable
		answers int
	}{{0, table(5, 0), 0}, {1, table(5, 4), 2}, {0, table(10, 1), 0}, {0, table(10, 1), 0}, {1, table(10, 2), 2}} {
		if err := s.e.phaseTable(x.rank, x.table); err != nil {
			t.Fatal(err)
		}
		if len(s.e.out) != x.answers {
			t.Fatalf("table %d: %d answers, want %d", i, len(s.e.out), x.answers)
		}
		for _, a := range s.e.out {
			if b := a.msg.(*proto.Boundaries); len(b.Starts) != 2 || (x.table.Step == 10) != (b.Starts[0].Op == 1) {
				t.Errorf("table %d: rank %d was told %v", i, a.rank, b.Starts)
			}
		}
		s.out()
	}
}

// TestScenarioF_Hazard is the case in which the published rules move circuits under a running transfer.
func TestScenarioF_Hazard(t *testing.T) {
	transfer := func(s *scene) { // of the ranks with c=1
		s.want(s.ask(proto.Demand, "pp/1", 0, 0, 1, 5), "ack 1 noop", "ack 5 noop")
		s.want(s.ask(proto.Demand, "pp/3", 0, 0, 3, 7), "ack 3 noop", "ack 7 noop")
	}
	touched := func(s *scene) (ingress []int) { // of held ports, counted from 1
		for _, ch := range s.e.changes {
			for _, q := range ch.ports {
				if s.e.held[q] > 0 {
					ingress = append(ingress, q+1)
				}
			}
		}
		return ingress
	}
	t.Run("stage", func(t *testing.T) {
		s := newScene(t, hazard, "00", Options{})
		transfer(s)
		s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0, 2))
		s.want(s.release("pp/1", 0, 0, 1, 5))
		s.want(s.release("pp/3", 0, 0, 3, 7)) // nothing is held, and half of the stage has not asked
		s.want(s.ask(proto.Demand, "dp/1", 0, 0, 1, 3), "apply 10")
	})
	t.Run("stage, with holders", func(t *testing.T) {
		s := newScene(t, hazard, "00", Options{})
		transfer(s)
		s.ask(proto.Demand, "dp/0", 0, 0, 0, 2)
		s.e.released(1, s.e.groups["pp/1"].units[0], 0)
		s.e.released(3, s.e.groups["pp/3"].units[0], 0)
		s.want(s.ask(proto.Demand, "dp/1", 0, 0, 1, 3)) // their peers have not completed it yet
		s.want(s.release("pp/1", 0, 0, 5))
		s.want(s.release("pp/3", 0, 0, 7), "apply 10")
	})
	t.Run("circuit", func(t *testing.T) {
		s := newScene(t, hazard, "00", Options{Granularity: Circuit})
		transfer(s)
		s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0, 2), "apply 0 5] [1 4")
		if got := touched(s); got != nil {
			t.Errorf("it changes ingress %v, which are held", got)
		}
		for _, ch := range s.e.changes {
			if want := []int{0, 1, 4, 5, 8, 9, 12, 13}; !slices.Equal(ch.ports, want) {
				t.Errorf("it changes ports %v, want %v", ch.ports, want)
			}
		}
	})
	t.Run("published", func(t *testing.T) {
		s := newScene(t, hazard, "00", Options{Granularity: Published})
		transfer(s)
		s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0, 2), "apply 10")
		if got, want := touched(s), []int{3, 4, 7, 8, 11, 12, 15, 16}; !slices.Equal(got, want) {
			t.Errorf("it changes ingress %v under the transfers, want %v", got, want)
		}
	})
}

func TestScenarioG_Fallback(t *testing.T) {
	s := newScene(t, labJob, "00", Options{ResumeAfter: 1000, Drain: 500})
	s.ask(proto.Demand, "pp/0", 0, 0, 0, 2) // runs
	s.ask(proto.Demand, "dp/1", 0, 0, 2, 3)
	s.e.released(2, s.e.groups["pp/0"].units[0], 0)
	s.ask(proto.Provision, "dp/0", 0, 0, 0, 1)
	if len(s.sends) != 2 {
		t.Fatalf("%v", s.sends)
	}
	s.done(0)
	s.want(s.fail(proto.Timeout)) // the ranks 2 and 3 hold circuits
	s.want(s.ask(proto.Demand, "pp/1", 0, 0, 1), "nack 1 withdrawn: rank 1 of rail0 has taken its prediction of operation 0 of dp/0 back")
	s.want(s.release("dp/1", 0, 0, 2, 3), "giant ring: the switch is silent")
	s.want(s.succeed(proto.Giant), "fallback 0 false", "fallback 1 false", "fallback 2 false", "fallback 3 false")
	s.want(s.ask(proto.Demand, "pp/1", 0, 0, 3), "ack 1 fallback", "ack 3 fallback")
	// When it is time the next that asks waits for what runs on the ring, and takes the rail back.
	s.at(1000)
	s.want(s.ask(proto.Demand, "dp/1", 1, 0, 2, 3))
	s.want(s.release("pp/1", 0, 0, 1, 3), "apply 11")
	s.want(s.done(2), "resume 0", "resume 1", "resume 2", "resume 3", "ack 2 applied", "ack 3 applied")
	if got := s.e.status(); got.ID != "11" || got.Counters.Fallbacks != 1 || got.Counters.Resumes != 1 {
		t.Errorf("%+v", got)
	}
}

func TestDead(t *testing.T) {
	s := newScene(t, labJob, "00", Options{Drain: 500})
	s.ask(proto.Demand, "dp/0", 0, 0, 0, 1)
	s.want(s.fail(proto.Verify), "giant ring: the switch is silent")
	s.want(s.fail(proto.Verify), "mark true: the switch is silent")
	s.want(s.fail(proto.Timeout), "fallback 0 true", "fallback 1 true", "fallback 2 true", "fallback 3 true",
		"nack 0 rail-dead: rail rail0 is dead, and no other rail lives: the switch is silent", "nack 1 rail-dead: rail rail0 is dead, and no other rail lives: the switch is silent")
	s.e.otherRails(true)
	s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0, 1), "ack 0 detour", "ack 1 detour")
	s.idle()

	// Nobody moves circuits under a rank that does not release them.
	s = newScene(t, labJob, "00", Options{Drain: 500})
	s.ask(proto.Demand, "pp/0", 0, 0, 0, 2)
	s.ask(proto.Demand, "dp/0", 0, 0, 0)
	s.e.alarmed(proto.Alarm{Detail: "light has gone"})
	s.want(s.out(), "mark false: light has gone")
	s.want(s.fail(proto.Verify))
	s.want(s.at(500), "mark true: the switch is silent; and rank 0 of rail0, rank 2 of rail0 may still be using circuits")
}

func TestStaleEpoch(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.e.write(0, &proto.TopoWrite{Req: 1, Epoch: 7, OpRef: proto.OpRef{Group: "dp/0"}, Mode: proto.Demand})
	s.want(s.out(), "nack 0 stale: rank 0 of rail0 asks in epoch 7, and it is 1")
	s.ask(proto.Demand, "dp/0", 0, 0, 0, 1)
	got := s.fail(proto.Stale)
	if len(got) != 6 || !strings.HasPrefix(got[0], "nack 0 stale") || got[5] != "bye 3" {
		t.Errorf("%q", got)
	}
	s.want(s.ask(proto.Demand, "dp/1", 0, 0, 2), "nack 2 stale: another controller has taken over: the switch is silent")
}

func TestRefusals(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.want(s.ask(proto.Demand, "tp/0", 0, 0, 0), `nack 0 unknown-group: rank 0 of rail0 names group "tp/0", which job lab does not have`)
	s.want(s.ask(proto.Demand, "dp/1", 0, 0, 0), `nack 0 unknown-group: rank 0 of rail0 is not in group dp/1, whose members are [2 3]`)
	s.want(s.ask(proto.Demand, "pp/0", 0, 1, 0), `nack 0 bad: rank 0 of rail0 names way 1 of group pp/0, which it has no part in`)
	s.want(s.ask("want", "dp/0", 0, 0, 0), `nack 0 bad: rank 0 of rail0 asks with mode "want": want demand or provision`)
	err := s.e.join(1, &proto.JoinGroup{Group: "dp/0", Axis: "dp", Members: []int{0, 2}, Index: 1})
	if want := "rank 1 of rail0 takes group dp/0 for members [0 2] of axis dp with itself at 1, and it is [0 1] of dp with it at 1 (bad)"; err == nil || strings.ReplaceAll(err.Error(), `"`, "") != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestNotBeforeAllAreThere: after a restart of the controller ranks may hold circuits that it does not know of.
func TestNotBeforeAllAreThere(t *testing.T) {
	s := &scene{T: t, e: testEngine(t, labJob, Options{Barrier: 100})}
	s.e.opened(proto.Opened{Epoch: 1, Shape: proto.Digits, ID: "00"})
	for x := range 3 {
		s.hello(x)
	}
	s.out()
	s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0, 1))
	s.hello(3, proto.OpRef{Group: "pp/1", Op: 4})
	s.want(s.out()) // it holds a circuit of stage 0
	s.want(s.release("pp/1", 4, 0, 3), "apply 10")
}

func TestRepetitions(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.ask(proto.Demand, "pp/0", 0, 0, 0)
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 0)) // again, with another number
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 2), "ack 0 noop", "ack 0 noop", "ack 2 noop")
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 0), "ack 0 noop")
	if n := len(s.e.ranks[0].holds); n != 1 {
		t.Errorf("rank 0 holds %d times", n)
	}
	// It connects again, and has not got the acknowledgement: it may join as long as the other holds the circuits.
	s.hello(0)
	s.out()
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 0), "ack 0 noop")
	if n := len(s.e.ranks[0].holds); n != 1 {
		t.Errorf("rank 0 holds %d times", n)
	}
	s.hello(0)
	s.release("pp/0", 0, 0, 2)
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 0), "nack 0 bad: rank 0 of rail0 asks for operation 0 of pp/0 between the stages 0 and 1, which is over: the last that was granted is 0")
}

func TestLost(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.ask(proto.Demand, "pp/0", 0, 0, 0, 2)
	s.ask(proto.Demand, "dp/1", 0, 0, 3)
	s.e.lost(2, "connection 2", false)
	s.want(s.out(), "nack 3 rank-lost: rank 2 of rail0 is gone, and dp/1 waits for it")
	if got := s.e.status(); len(got.Holders) != 2 || !got.Holders[1].Lost {
		t.Errorf("holders %+v", got.Holders)
	}
	// When its peer has completed the operation, nobody uses the circuit any more.
	s.release("pp/0", 0, 0, 0)
	if got := s.e.status(); len(got.Holders) != 0 {
		t.Errorf("holders %+v", got.Holders)
	}
	s.hello(2)
	s.out()
	s.want(s.ask(proto.Demand, "dp/1", 0, 0, 2, 3), "apply 01")
}

func TestWithdraw(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.ask(proto.Provision, "dp/0", 0, 0, 0)
	s.e.withdraw(0, s.req)
	s.want(s.out(), "nack 0 withdrawn: rank 0 of rail0 has taken its prediction of operation 0 of dp/0 back")
	s.idle()
	// Who asks for something else has thought better of it, and its acknowledgement does not wait behind the old one.
	s.ask(proto.Provision, "dp/0", 0, 0, 0)
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 2, 0), "nack 0 withdrawn: rank 0 of rail0 has taken its prediction of operation 0 of dp/0 back", "ack 0 noop", "ack 2 noop")
	s.idle()
}

// TestProvision: circuits move when all have predicted it, and the leave is a round trip then.
func TestProvision(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.want(s.ask(proto.Provision, "dp/0", 0, 0, 0, 1), "apply 10")
	s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0)) // its prediction is not answered yet
	s.want(s.done(0), "ack 0 applied", "ack 1 applied")
	s.want(s.ask(proto.Demand, "dp/0", 0, 0, 1), "ack 0 noop", "ack 1 noop")
	s.idle()
}

// TestJoinPhase: a rank that has lost its place asks for an operation in the middle of a phase of the others.
func TestJoinPhase(t *testing.T) {
	s := newScene(t, labJob, "10", Options{})
	s.want(s.ask(proto.Demand, "dp/0", 0, 0, 0, 1), "ack 0 noop", "ack 1 noop")
	s.release("dp/0", 0, 0, 0)
	s.want(s.ask(proto.Demand, "dp/0", 1, 0, 0))
	s.want(s.at(joinGrace), "ack 0 noop")
	// If the other was only late, it asks after all.
	s.release("dp/0", 0, 0, 1)
	s.want(s.ask(proto.Demand, "dp/0", 1, 0, 1), "ack 1 noop")
	s.idle()
}

// TestJoinPhase_Transfer: a rank that asks for the next transfer while the other is late to end the last waits, since the other
// may do something else first.
func TestJoinPhase_Transfer(t *testing.T) {
	s := newScene(t, labJob, "00", Options{})
	s.want(s.ask(proto.Demand, "pp/0", 0, 0, 0, 2), "ack 0 noop", "ack 2 noop")
	s.release("pp/0", 0, 0, 0)
	s.want(s.ask(proto.Demand, "pp/0", 1, 0, 0))
	s.want(s.at(10 * joinGrace))
	s.release("pp/0", 0, 0, 2)
	s.want(s.ask(proto.Demand, "dp/1", 0, 0, 2, 3), "apply 01")
	s.want(s.done(0), "ack 2 applied", "ack 3 applied")
	s.release("dp/1", 0, 0, 2, 3)
	s.ask(proto.Demand, "pp/0", 1, 0, 2)
	s.want(s.ask(proto.Demand, "pp/1", 0, 0, 1, 3), "apply 00")
	s.want(s.done(1), "ack 0 applied", "ack 2 applied", "ack 1 applied", "ack 3 applied")
	s.idle()
}
