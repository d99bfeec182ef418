package rail_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

// verdict is what becomes of a command that has reached the switch.
type verdict string

const (
	obeys    verdict = "obeys"
	silent   verdict = "silent"    // no answer, and nothing was done
	late     verdict = "late"      // no answer, and it was done
	lies     verdict = "lies"      // acknowledges, and nothing was done
	halfway  verdict = "halfway"   // removes, adds the first half, and the session drops
	dropped  verdict = "dropped"   // the session had gone before it was sent
	refuses  verdict = "refuses"   // denied
	notThere verdict = "not there" // denied, since what is to be removed is not there
)

var verdicts = []verdict{obeys, silent, late, lies, halfway, dropped, refuses, notThere}

// command is one that a held switch has been given and has not answered.
type command struct {
	change  ocs.Change
	answers chan verdict
	ctx     context.Context
}

// answer has the switch go on, unless nobody waits for it any more.
func (c *command) answer(v verdict) {
	select {
	case c.answers <- v:
	case <-c.ctx.Done():
	}
}

// stage is that of figure8 whose circuits it makes, or else removes: the request for stage 1 may have to remove
// what stage 0 has sent there, too.
func (c *command) stage() int {
	of := c.change.Add.Slice()
	if len(of) == 0 {
		of = c.change.Remove.Slice()
	}
	return int(of[len(of)-1].Ingress-1) / 8
}

// held is a switch that carries a command out when it is told how, as TL1 devices do: what is added takes over busy
// ports, and what is removed is whatever begins at the ingress.
type held struct {
	*ocstest.Switch
	mu       sync.Mutex // of the map, between reading and setting it
	commands chan *command
	free     bool               // carries out all at once
	denies   bool               // does not take over
	slow     chan chan struct{} // what is read next is returned when what is in it is closed
}

func (d *held) CrossConnects(ctx context.Context) (ocs.Map, error) {
	m, err := d.Switch.CrossConnects(ctx)
	select {
	case until := <-d.slow:
		<-until
	default:
	}
	return m, err
}

func (d *held) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	v := obeys
	if !d.free {
		x := &command{change: c, answers: make(chan verdict), ctx: ctx}
		select {
		case d.commands <- x:
		case <-ctx.Done():
			return ocs.Receipt{}, context.Cause(ctx)
		}
		select {
		case v = <-x.answers:
		case <-ctx.Done():
			return ocs.Receipt{}, context.Cause(ctx)
		}
	}
	add := c.Add.Slice()
	switch v {
	case silent:
		return ocs.Receipt{}, context.DeadlineExceeded
	case lies:
		return ocs.Receipt{Requests: 1}, nil
	case dropped:
		return ocs.Receipt{}, &ocs.OpError{Op: "change circuits", Device: "ocs1", Err: errors.New("the session has ended")}
	case refuses:
		return ocs.Receipt{}, &ocs.OpError{Op: "change circuits", Device: "ocs1", Reply: "M 7 DENY\r\n   SROF\r\n", Err: ocs.ErrDenied}
	case notThere:
		return ocs.Receipt{}, &ocs.OpError{Op: "change circuits", Device: "ocs1", Reply: "M 7 DENY\r\n   SNCN\r\n", Err: ocs.ErrNotConnected}
	case halfway:
		add = add[:len(add)/2]
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	m, err := d.Switch.CrossConnects(context.Background())
	if err != nil {
		return ocs.Receipt{}, err
	}
	for r := range c.Remove.All() {
		if out, busy := m.EgressOf(r.Ingress); busy && len(c.Add.Rivals(r)) == 0 {
			m = m.Minus(ocs.MustMap(ocs.CrossConnect{Ingress: r.Ingress, Egress: out}))
		}
	}
	if d.denies {
		m = m.Minus(c.Remove)
		for _, x := range add {
			if len(m.Rivals(x)) > 0 {
				return ocs.Receipt{}, ocs.ErrConflict
			}
		}
	}
	d.Set(ocs.Change{Add: ocs.MustMap(add...)}.Over(m))
	switch v {
	case late:
		return ocs.Receipt{}, context.DeadlineExceeded
	case halfway:
		return ocs.Receipt{}, errors.New("the session has ended")
	}
	return ocs.Receipt{Requests: 1}, nil
}

// shared is two requests of which the second has come past the first, at the ports of stage 1: 001 > 101 > 111. What
// was asked for behind them comes in any number.
type shared struct {
	t      *testing.T
	policy opus.Policy
	sw     *held
	o      *rail.Orchestrator
	a      *asker

	one, two chan answer
	first    *command // of each, blocked in the switch
	second   *command

	mu       sync.Mutex
	verified map[uint64]ocs.Map // what the switch held when a request was verified
}

// share has two requests blocked in the switch at the same time.
func share(t *testing.T, policy opus.Policy, opt func(*rail.Options)) *shared {
	t.Helper()
	s := learned(t, policy, opt)
	s.one = s.a.idLater("101")
	s.first = <-s.sw.commands
	s.two = s.a.idLater("111")
	s.second = <-s.sw.commands
	if s.first.stage() != 0 || s.second.stage() != 1 {
		t.Fatalf("want stage 0 and stage 1 in the switch at the same time, got %v and %v", s.first.change, s.second.change)
	}
	return s
}

// learned has a rail that is at 001, and knows that the device takes over.
func learned(t *testing.T, policy opus.Policy, opt func(*rail.Options)) *shared {
	t.Helper()
	s := &shared{t: t, policy: policy, verified: map[uint64]ocs.Map{}}
	s.sw = &held{Switch: ocstest.New(24, ocs.Map{}), commands: make(chan *command), slow: make(chan chan struct{}, 1), free: true}
	o := options(s.sw, s.sw)
	o.Policy, o.Timeout = policy, time.Minute
	o.Changed = func(e rail.Event) {
		if e.What != rail.Verified {
			return
		}
		m, _ := s.sw.CrossConnects(context.Background())
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, r := range e.Requests {
			s.verified[r] = m
		}
	}
	if opt != nil {
		opt(&o)
	}
	s.o = start(t, o)
	s.a = openJobWith(t, s.o, figure8, policy)
	for _, id := range []string{"001", "101", "001"} { // it learns that the device takes over
		if got := s.a.id(id); got.err != nil {
			t.Fatal(got.err)
		}
	}
	s.sw.free = false
	return s
}

func (s *shared) build(id string) ocs.Map {
	m, err := buildMapOf(s.policy, id)
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

// part is what of a configuration begins in a stage.
func (s *shared) part(id string, stage int) ocs.Map {
	var all []ocs.CrossConnect
	for c := range s.build(id).All() {
		if int(c.Ingress-1)/8 == stage {
			all = append(all, c)
		}
	}
	return ocs.MustMap(all...)
}

// play answers the command c of a request, and what is repeated until it is answered itself as then says. Commands of
// others are kept.
func (s *shared) play(c *command, got chan answer, v, then verdict, kept *[]*command) answer {
	c.answer(v)
	return s.resume(c.stage(), got, then, kept)
}

// rest carries out all that is still asked for, and waits for the answers.
func (s *shared) rest(kept []*command, asked ...chan answer) []answer {
	for _, c := range kept {
		c.answer(obeys)
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case c := <-s.sw.commands:
				c.answer(obeys)
			case <-ended:
				return
			}
		}
	}()
	var all []answer
	for _, got := range asked {
		all = append(all, <-got)
	}
	synctest.Wait()
	ended <- struct{}{}
	return all
}

// agrees compares what the rail says with what the switch holds.
func (s *shared) agrees() {
	s.t.Helper()
	st := s.o.Status()
	if st.Pending != 0 {
		s.t.Errorf("left behind: %+v", st)
	}
	m, _ := s.sw.CrossConnects(context.Background())
	said := ocs.Map{}
	for _, c := range st.Circuits {
		said, _ = said.Plus(circuit(c))
	}
	if missing := said.Minus(m); missing.Len() > 0 {
		s.t.Errorf("it says that %v is there, and the switch holds %v: %+v", missing, m, st)
	}
	for c := range m.Minus(said).All() {
		if !slices.Contains(st.Unsure, int(c.Ingress-1)) && !slices.Contains(st.Unsure, int(c.Egress-25)) {
			s.t.Errorf("the switch holds %v, which it does not say: %+v", c, st)
		}
	}
	name := st.ID
	if st.Shape == proto.Giant {
		name = "ring"
	}
	if name != "" && len(st.Unsure) == 0 && !m.Equal(s.build(name)) {
		s.t.Errorf("it is called %s, and the switch holds %v: %+v", name, m, st)
	}
	if name != "" && len(st.Unsure) > 0 {
		s.t.Errorf("it is called %s, and is unsure of %v", name, st.Unsure)
	}
}

// recovers has the rail go to other configurations, which it can from anything.
func (s *shared) recovers() {
	s.t.Helper()
	s.sw.free = true
	if s.o.Status().Shape == proto.Dead {
		if got := s.a.mark(false); got.err != nil {
			s.t.Errorf("no longer dead: %v", got.err)
		}
	}
	for _, id := range []string{"001", "121", "222"} {
		// What it says that it is sure of it need not try again.
		if got := s.a.id(id); got.err != nil || got.done.Attempts != 1 {
			s.t.Errorf("afterwards, %s: %+v", id, got)
		}
		if st := s.o.Status(); st.ID != id || len(st.Unsure) > 0 {
			s.t.Errorf("afterwards, want %s: %+v", id, st)
		}
		s.agrees()
	}
}

// TestShare has each thing go wrong with each of two requests that share ports, in either order, once or for good.
func TestShare(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		for _, v1 := range verdicts {
			for _, v2 := range verdicts {
				for _, forGood := range []string{"once", "first for good", "second for good", "both for good"} {
					for _, order := range []string{"first", "second", "first, repeated after second", "second, repeated after first"} {
						if v1 == obeys && (forGood == "first for good" || forGood == "both for good") || v2 == obeys && (forGood == "second for good" || forGood == "both for good") {
							continue
						}
						t.Run(fmt.Sprintf("%s/%s,%s/%s/%s", policy, v1, v2, forGood, order), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { shareCase(t, policy, v1, v2, forGood, order, "") })
						})
					}
				}
			}
		}
	}
}

// TestShare_Behind is TestShare with a third request behind the two.
func TestShare_Behind(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		for _, v1 := range []verdict{obeys, late, lies, refuses} {
			for _, v2 := range []verdict{obeys, silent, halfway} {
				for _, forGood := range []string{"once", "first for good", "second for good"} {
					for _, order := range []string{"first", "second", "first, repeated after second"} {
						if v1 == obeys && forGood == "first for good" || v2 == obeys && forGood == "second for good" {
							continue
						}
						for _, behind := range []string{"222", "001", "201", "ring", "dead", "cross", "own", "part"} {
							t.Run(fmt.Sprintf("%s/%s,%s/%s/%s/%s", policy, v1, v2, forGood, order, behind), func(t *testing.T) {
								synctest.Test(t, func(t *testing.T) { shareCase(t, policy, v1, v2, forGood, order, behind) })
							})
						}
					}
				}
			}
		}
	}
}

// behind asks for something at the ports that the two share, and says what of it must be there once it is done.
func (s *shared) behind(what string) (got chan answer, want ocs.Map) {
	switch what {
	case "ring":
		return s.a.later(func(done func(proto.Done, error)) {
			s.o.GiantRing(proto.GiantRing{Req: s.a.next(), Epoch: s.a.epoch, Reason: "a test"}, done)
		}), s.build("ring")
	case "dead":
		return s.a.later(func(done func(proto.Done, error)) {
			s.o.Mark(proto.Mark{Req: s.a.next(), Epoch: s.a.epoch, Dead: true, Reason: "a test"}, done)
		}), ocs.Map{}
	case "cross": // of a port of the first and one that is shared
		return s.a.joinLater([][2]int{{1, 8}}), circuit([2]int{1, 8})
	case "own": // of shared ports alone
		return s.a.joinLater([][2]int{{8, 14}, {10, 12}}), circuit([2]int{8, 14})
	case "part":
		return s.a.joinLater(nil, 8, 10, 12, 14), ocs.Map{}
	}
	return s.a.idLater(what), s.build(what)
}

// counts are what 001 > 101 and 101 > 111 remove.
var counts = map[opus.Policy][2]int{opus.Pair: {16, 0}, opus.Chain: {8, 0}}

func shareCase(t *testing.T, policy opus.Policy, v1, v2 verdict, forGood, order, behind string) {
	s := share(t, policy, nil)
	var third []chan answer
	var want3 ocs.Map
	if behind != "" {
		got, want := s.behind(behind)
		third, want3 = []chan answer{got}, want
	}
	then1, then2 := obeys, obeys
	if forGood == "first for good" || forGood == "both for good" {
		then1 = v1
	}
	if forGood == "second for good" || forGood == "both for good" {
		then2 = v2
	}
	var kept []*command
	var got1, got2 answer
	again := func(c *command, v, then verdict) verdict {
		c.answer(v)
		synctest.Wait()
		return then
	}
	switch order {
	case "first":
		got1 = s.play(s.first, s.one, v1, then1, &kept)
		got2 = s.play(s.second, s.two, v2, then2, &kept)
	case "second":
		got2 = s.play(s.second, s.two, v2, then2, &kept)
		got1 = s.play(s.first, s.one, v1, then1, &kept)
	case "first, repeated after second":
		v := again(s.first, v1, then1)
		got2 = s.play(s.second, s.two, v2, then2, &kept)
		got1 = s.resume(0, s.one, v, &kept)
	case "second, repeated after first":
		v := again(s.second, v2, then2)
		got1 = s.play(s.first, s.one, v1, then1, &kept)
		got2 = s.resume(1, s.two, v, &kept)
	}
	for _, got := range s.rest(kept, third...) {
		// One by an ID, or at ports of one that has failed, fails with it.
		ring := behind == "ring" || behind == "dead"
		if (ring || got1.err == nil && got2.err == nil) && got.err != nil {
			t.Errorf("the one behind: %v", got.err)
		}
		m, _ := s.sw.CrossConnects(t.Context())
		if missing := want3.Minus(m); got.err == nil && missing.Len() > 0 {
			t.Errorf("the one behind is done, and %v is not there: %v", missing, m)
		}
		if st := s.o.Status(); got.err == nil && (behind == "222" || behind == "001" || behind == "201") && (st.ID != behind || len(st.Unsure) > 0) {
			t.Errorf("the one behind is done: %+v", st)
		}
	}
	m, _ := s.sw.CrossConnects(t.Context())
	for i, x := range []struct {
		got     answer
		v, then verdict
	}{{got1, v1, then1}, {got2, v2, then2}} {
		want := s.part("111", i)
		if ok := x.v == obeys || x.then == obeys || x.v == late && x.got.err == nil; ok != (x.got.err == nil) {
			t.Errorf("request %d: %+v", i+1, x.got)
		}
		if x.got.err != nil {
			continue
		}
		if x.v == obeys {
			if d := x.got.done; d.Attempts != 1 || d.Removed != counts[policy][i] || d.Added != 8 {
				t.Errorf("request %d: want one attempt that removes %d and adds 8, got %+v", i+1, counts[policy][i], d)
			}
		}
		if missing := want.Minus(m); behind == "" && missing.Len() > 0 {
			t.Errorf("request %d is done, and %v is not there: %v", i+1, missing, m)
		}
		if missing := want.Minus(s.verified[x.got.done.Req]); missing.Len() > 0 {
			t.Errorf("when request %d was done %v was not there", i+1, missing)
		}
	}
	if st := s.o.Status(); behind == "" && got1.err == nil && got2.err == nil && (st.ID != "111" || len(st.Unsure) > 0) {
		t.Errorf("both are done: %+v", st)
	}
	s.agrees()
	s.recovers()
}

// resume is play for a request whose first command was answered already.
func (s *shared) resume(stage int, got chan answer, v verdict, kept *[]*command) answer {
	for {
		var c *command
		if i := slices.IndexFunc(*kept, func(k *command) bool { return k.stage() == stage }); i >= 0 {
			c = (*kept)[i]
			*kept = slices.Delete(*kept, i, i+1)
		} else {
			select {
			case a := <-got:
				return a
			case c = <-s.sw.commands:
			}
		}
		if c.stage() != stage {
			*kept = append(*kept, c)
			continue
		}
		c.answer(v)
	}
}

// idle fails the test if the switch has been given anything.
func (s *shared) idle() {
	s.t.Helper()
	synctest.Wait()
	select {
	case c := <-s.sw.commands:
		s.t.Errorf("the switch has been given %v", c.change)
		c.answer(obeys)
	default:
	}
}

// TestShare_Not: nobody comes past where it is not known what the ports hold, or that the device takes over.
func TestShare_Not(t *testing.T) {
	for _, x := range []struct {
		name  string
		begin func(s *shared)
	}{
		{"the device denies", func(s *shared) {
			s.sw.free, s.sw.denies = true, true
			for _, id := range []string{"101", "001", "101", "001"} { // it learns that, too
				s.a.id(id)
			}
			s.sw.free = false
		}},
		{"unsure", func(s *shared) {
			got := s.a.joinLater([][2]int{{0, 1}})
			for range rail.DefaultAttempts {
				(<-s.sw.commands).answer(silent)
			}
			if got := <-got; got.err == nil {
				s.t.Error("it cannot have been done")
			}
		}},
	} {
		for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
			t.Run(x.name+"/"+string(policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := learned(t, policy, nil)
					x.begin(s)
					s.one = s.a.idLater("101")
					s.first = <-s.sw.commands
					s.two = s.a.idLater("111")
					s.idle()
					for _, got := range s.rest([]*command{s.first}, s.one, s.two) {
						if got.err != nil {
							t.Error(got.err)
						}
					}
					if st := s.o.Status(); st.ID != "111" {
						t.Errorf("got %+v", st)
					}
					s.agrees()
				})
			})
		}
	}
	t.Run("unknown device", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := learned(t, opus.Pair, func(o *rail.Options) { o.Dir = t.TempDir() })
			s.o.Close()
			o := options(s.sw, s.sw)
			o.Policy, o.Timeout = opus.Pair, time.Minute
			s.sw.free = true
			s.o = start(t, o)
			s.a = openJobWith(t, s.o, figure8, opus.Pair)
			if got := s.a.id("111"); got.err != nil {
				t.Fatal(got.err)
			}
			s.sw.free = false
			// Of the giant ring and this nothing has displaced anything, and now the same device denies.
			s.sw.denies = true
			s.one = s.a.idLater("001")
			if c := <-s.sw.commands; true {
				c.answer(obeys)
			}
			for _, got := range s.rest(nil, s.one) {
				if got.err != nil {
					t.Error(got.err)
				}
			}
			s.one = s.a.idLater("101")
			s.first = <-s.sw.commands
			s.two = s.a.idLater("111")
			s.idle()
			for _, got := range s.rest([]*command{s.first}, s.one, s.two) {
				if got.err != nil {
					t.Error(got.err)
				}
			}
			s.agrees()
		})
	})
}

// TestShare_Dark: what only goes dark does not come past, nor does a barrier.
func TestShare_Dark(t *testing.T) {
	for _, behind := range []string{"part", "ring", "dead"} {
		t.Run(behind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := learned(t, opus.Pair, nil)
				s.one = s.a.idLater("101")
				s.first = <-s.sw.commands
				got, want := s.behind(behind)
				s.idle()
				select {
				case a := <-got:
					t.Errorf("it has come past: %+v", a)
				default:
				}
				for _, a := range s.rest([]*command{s.first}, s.one, got) {
					if a.err != nil {
						t.Error(a.err)
					}
				}
				m, _ := s.sw.CrossConnects(t.Context())
				if missing := want.Minus(m); missing.Len() > 0 {
					t.Errorf("%v is not there", missing)
				}
				s.agrees()
				s.recovers()
			})
		})
	}
}

// TestShare_SecondUnsent: the one that came past is refused before it is sent, so the first still has all of its ports to
// itself and knows what they hold.
func TestShare_SecondUnsent(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		for _, v1 := range verdicts {
			for _, order := range []string{"first", "second"} {
				t.Run(fmt.Sprintf("%s/%s/%s", policy, v1, order), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						gate := make(chan error)
						var shut bool
						s := learned(t, policy, func(o *rail.Options) {
							o.Gate = func() error {
								if shut {
									return <-gate
								}
								return nil
							}
						})
						s.one = s.a.idLater("101")
						s.first = <-s.sw.commands
						shut = true
						s.two = s.a.idLater("111")
						synctest.Wait()
						shut = false
						var got1 answer
						if order == "first" {
							s.first.answer(v1)
							got1 = s.rest(nil, s.one)[0]
						}
						gate <- errors.New("shut")
						got2 := <-s.two
						if order == "second" {
							s.first.answer(v1)
							got1 = s.rest(nil, s.one)[0]
						}
						if got1.err != nil || got2.err == nil {
							t.Errorf("got %+v and %+v", got1, got2)
						}
						if st := s.o.Status(); order == "second" && v1 == obeys && (len(st.Unsure) > 0 || st.ID != "101") {
							t.Errorf("got %+v", st)
						}
						s.agrees()
						s.sw.free = true
						if got := s.a.id("001"); got.err != nil || len(s.o.Status().Unsure) == 0 && got.done.Attempts != 1 {
							t.Errorf("back to the beginning: %+v", got)
						}
						s.agrees()
						s.recovers()
					})
				})
			}
		}
	}
}

// TestShare_Waiting: one that has not begun itself shares nothing.
func TestShare_Waiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learned(t, opus.Pair, nil)
		before := s.a.joinLater(nil, 0) // port 0, and its peer of stage 1
		c := <-s.sw.commands
		s.one = s.a.idLater("101")
		s.two = s.a.joinLater([][2]int{{10, 11}})
		s.idle()
		for _, got := range s.rest([]*command{c}, before, s.one, s.two) {
			if got.err != nil {
				t.Error(got.err)
			}
		}
		m, _ := s.sw.CrossConnects(t.Context())
		if missing := circuit([2]int{10, 11}).Minus(m); missing.Len() > 0 {
			t.Errorf("%v is not there", missing)
		}
		s.agrees()
		s.recovers()
	})
}

// TestShare_Looks: one that has to look first shares nothing, since what its ports hold is not known.
func TestShare_Looks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learned(t, opus.Pair, nil)
		failing := s.a.joinLater([][2]int{{0, 1}})
		for range rail.DefaultAttempts {
			(<-s.sw.commands).answer(silent)
		}
		if got := <-failing; got.err == nil {
			t.Error("it cannot have been done")
		}
		s.one = s.a.idLater("101")
		s.first = <-s.sw.commands
		s.two = s.a.joinLater([][2]int{{10, 11}})
		s.idle()
		for _, got := range s.rest([]*command{s.first}, s.one, s.two) {
			if got.err != nil {
				t.Error(got.err)
			}
		}
		s.agrees()
		s.recovers()
	})
}

// TestShare_Intruder: the second finds circuits into its ports that the first has left when it failed. Nobody else may have
// the ports at which they begin while they are removed by name.
func TestShare_Intruder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, opus.Pair, nil)
		var kept []*command
		if got := s.play(s.first, s.one, refuses, refuses, &kept); got.err == nil {
			t.Error("it cannot be done")
		}
		s.second.answer(refuses)
		again := <-s.sw.commands
		if _, removes := again.change.Remove.EgressOf(1); !removes {
			t.Fatalf("want a command that removes what begins at port 1, got %v", again.change)
		}
		third := s.a.joinLater([][2]int{{0, 1}})
		s.idle()
		for _, got := range s.rest([]*command{again}, s.two, third) {
			if got.err != nil {
				t.Error(got.err)
			}
		}
		m, _ := s.sw.CrossConnects(t.Context())
		want, _ := circuit([2]int{0, 1}).Plus(s.part("111", 1))
		if missing := want.Minus(m); missing.Len() > 0 {
			t.Errorf("%v is not there", missing)
		}
		s.agrees()
		s.recovers()
	})
}

// TestShare_StaleIntruder: by the time the second has read such circuits somebody else has changed them.
func TestShare_StaleIntruder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := share(t, opus.Pair, nil)
		var kept []*command
		if got := s.play(s.first, s.one, refuses, refuses, &kept); got.err == nil {
			t.Error("it cannot be done")
		}
		slow := make(chan struct{})
		s.sw.slow <- slow
		s.second.answer(refuses)
		time.Sleep(time.Minute) // it reads, to try again
		third := s.a.joinLater([][2]int{{0, 1}})
		for _, got := range s.rest(nil, third) {
			if got.err != nil {
				t.Error(got.err)
			}
		}
		close(slow)
		if got := s.rest(nil, s.two)[0]; got.err != nil {
			t.Error(got.err)
		}
		m, _ := s.sw.CrossConnects(t.Context())
		want, _ := circuit([2]int{0, 1}).Plus(s.part("111", 1))
		if missing := want.Minus(m); missing.Len() > 0 {
			t.Errorf("%v is not there", missing)
		}
		s.agrees()
		s.recovers()
	})
}

// TestShare_StaleDoubt: by the time the second has read such circuits the first has done what it was to do, and knows what its
// ports hold.
func TestShare_StaleDoubt(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		t.Run(string(policy), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := share(t, policy, nil)
				s.second.answer(refuses)
				time.Sleep(time.Second) // so that the second is the first to try again
				s.first.answer(lies)
				synctest.Wait()
				slow := make(chan struct{})
				s.sw.slow <- slow
				var kept []*command
				if got := s.resume(0, s.one, obeys, &kept); got.err != nil {
					t.Error(got.err)
				}
				close(slow)
				if got := s.rest(kept, s.two)[0]; got.err != nil {
					t.Error(got.err)
				}
				if st := s.o.Status(); st.ID != "111" || len(st.Unsure) > 0 {
					t.Errorf("both are done: %+v", st)
				}
				s.agrees()
				s.recovers()
			})
		})
	}
}

// TestIntruder_Doubted: somebody joins a port to one of a request, behind which another request has left it. What it holds is
// not certain then.
func TestIntruder_Doubted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := learned(t, opus.Pair, nil)
		before := s.a.joinLater([][2]int{{16, 17}})
		c := <-s.sw.commands
		s.one = s.a.joinLater([][2]int{{0, 1}})
		s.first = <-s.sw.commands
		c.answer(obeys)
		if got := <-before; got.err != nil {
			t.Fatal(got.err)
		}
		m, _ := s.sw.CrossConnects(t.Context())
		s.sw.Set(ocs.Change{Add: ocs.MustMap(ocs.CrossConnect{Ingress: 17, Egress: 25})}.Over(m))
		s.first.answer(refuses)
		if got := s.rest(nil, s.one)[0]; got.err != nil {
			t.Error(got.err)
		}
		if st := s.o.Status(); !slices.Equal(st.Unsure, []int{16}) {
			t.Errorf("want port 16 unsure, got %+v", st)
		}
		s.agrees()
		s.recovers()
	})
}

// TestShare_Unsent: the first is refused before anything of it is sent, while another one has come past, or has done so.
func TestShare_Unsent(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		for _, v2 := range verdicts {
			for _, order := range []string{"first", "second"} {
				t.Run(fmt.Sprintf("%s/%s/%s", policy, v2, order), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						gate := make(chan error)
						var shut bool
						s := learned(t, policy, func(o *rail.Options) {
							o.Gate = func() error {
								if shut {
									return <-gate
								}
								return nil
							}
						})
						shut = true
						s.one = s.a.idLater("101")
						synctest.Wait()
						shut = false
						s.two = s.a.idLater("111")
						s.second = <-s.sw.commands
						var kept []*command
						var got1, got2 answer
						var third chan answer
						if order == "second" {
							got2 = s.play(s.second, s.two, v2, obeys, &kept)
						} else {
							third = s.a.joinLater([][2]int{{16, 17}, {8, 13}}) // relies on the second alone
						}
						gate <- errors.New("shut")
						got1 = <-s.one
						if order == "first" {
							got2 = s.play(s.second, s.two, v2, obeys, &kept)
						}
						if third == nil {
							s.rest(kept)
						} else if got := s.rest(kept, third)[0]; got.err != nil {
							t.Errorf("the one behind: %v", got.err)
						}
						if got1.err == nil || got2.err != nil || got2.done.Shape != proto.Circuits && order == "first" {
							t.Errorf("got %+v and %+v", got1, got2)
						}
						m, _ := s.sw.CrossConnects(t.Context())
						if missing := s.part("111", 1).Minus(m); missing.Len() > 0 {
							t.Errorf("the second is done, and %v is not there", missing)
						}
						s.agrees()
						s.recovers()
					})
				})
			}
		}
	}
}

// TestShare_Batch: both are sent with one command, since the only session was busy.
func TestShare_Batch(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		for _, v := range verdicts {
			for _, forGood := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/%v", policy, v, forGood), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := learned(t, policy, func(o *rail.Options) { o.Sessions = o.Sessions[:1] })
						busy := s.a.idLater("002")
						before := <-s.sw.commands
						s.one, s.two = s.a.idLater("102"), s.a.idLater("112")
						synctest.Wait()
						before.answer(obeys)
						if got := <-busy; got.err != nil {
							t.Fatal(got.err)
						}
						then := obeys
						if forGood {
							then = v
						}
						both := <-s.sw.commands
						if want := s.part("112", 0).Len() + s.part("112", 1).Len(); both.change.Add.Len() != want {
							t.Errorf("want one command that adds %d, got %v", want, both.change)
						}
						both.answer(v)
						ended := make(chan struct{})
						go func() {
							for {
								select {
								case c := <-s.sw.commands:
									c.answer(then)
								case <-ended:
									return
								}
							}
						}()
						for i, got := range []answer{<-s.one, <-s.two} {
							if d := got.done; v == obeys && (d.Removed != counts[policy][i] || d.Added != 8) {
								t.Errorf("want %d removed and 8 added, got %+v", counts[policy][i], d)
							}
							if got.err == nil {
								m, _ := s.sw.CrossConnects(t.Context())
								if missing := s.part("112", i).Minus(m); missing.Len() > 0 {
									t.Errorf("request %d is done, and %v is not there", i+1, missing)
								}
							}
							if fails := forGood && v != obeys && v != late && v != halfway; (got.err != nil) != fails && v != halfway {
								t.Errorf("request %d: %+v", i+1, got)
							}
						}
						synctest.Wait()
						ended <- struct{}{}
						s.agrees()
						s.recovers()
					})
				})
			}
		}
	}
}

// TestShare_Close: what is under way is interrupted wherever it is, and the next start brings the rail to what was asked for.
func TestShare_Close(t *testing.T) {
	for _, policy := range []opus.Policy{opus.Pair, opus.Chain} {
		for _, v1 := range append(verdicts, "") {
			for _, v2 := range append(verdicts, "") {
				t.Run(fmt.Sprintf("%s/%s,%s", policy, v1, v2), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						dir := t.TempDir()
						s := share(t, policy, func(o *rail.Options) { o.Dir = dir })
						if v2 != "" {
							s.second.answer(v2)
						}
						if v1 != "" {
							s.first.answer(v1)
						}
						synctest.Wait()
						s.o.Close()
						s.sw.free = true
						o := options(s.sw, s.sw)
						o.Policy, o.Dir = policy, dir
						s.o = start(t, o)
						if st := s.o.Status(); st.ID != "111" || len(st.Unsure) > 0 {
							t.Errorf("got %+v", st)
						}
						s.agrees()
						s.a = openJobWith(t, s.o, figure8, policy)
						s.recovers()
					})
				})
			}
		}
	}
}
