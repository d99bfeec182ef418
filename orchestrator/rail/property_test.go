package rail_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/orchestrator/rail"
	"github.com/ocslab/ocslab/topology/opus"
)

// card is a switch whose driver does as those of Polatis cards do: it removes whatever is at an ingress, takes its time
// for each request, and learns whether busy ports are denied.
type card struct {
	*ocstest.Switch
	denies  bool
	editing sync.Mutex
	// pause is asked before each request how long it takes.
	pause func(ctx context.Context)
	// fails is asked what goes wrong with a command; see TestRandom.
	fails func() int
}

func (d *card) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	f := d.fails()
	if f == 0 {
		d.pause(ctx)
		return ocs.Receipt{Requests: 1}, nil
	}
	if f == 1 {
		return ocs.Receipt{}, errors.New("dropped")
	}
	err := d.requests(ctx, c, f)
	if f == 3 && err == nil {
		return ocs.Receipt{}, context.DeadlineExceeded // done, and nobody says so
	}
	return ocs.Receipt{Requests: 1}, err
}

func (d *card) requests(ctx context.Context, c ocs.Change, f int) error {
	remove := c.Remove
	if !d.denies {
		remove = remove.Minus(replaced(c))
	}
	if remove.Len() > 0 {
		d.pause(ctx)
		d.edit(func(m ocs.Map) (ocs.Map, error) {
			for r := range remove.All() {
				if out, busy := m.EgressOf(r.Ingress); busy {
					m = m.Minus(ocs.MustMap(ocs.CrossConnect{Ingress: r.Ingress, Egress: out}))
				}
			}
			return m, nil
		})
	}
	if f == 2 {
		return errors.New("dropped half way")
	}
	if c.Add.Len() == 0 {
		return nil
	}
	d.pause(ctx)
	return d.edit(func(m ocs.Map) (ocs.Map, error) {
		if d.denies {
			for a := range c.Add.All() {
				if len(m.Rivals(a)) > 0 {
					return m, ocs.ErrConflict
				}
			}
		}
		return ocs.Change{Add: c.Add}.Over(m), nil
	})
}

func (d *card) edit(f func(ocs.Map) (ocs.Map, error)) error {
	d.editing.Lock()
	defer d.editing.Unlock()
	m, err := d.CrossConnects(context.Background())
	if err != nil {
		return err
	}
	m, err = f(m)
	d.Set(m)
	return err
}

// replaced is what of c.Remove goes by itself.
func replaced(c ocs.Change) ocs.Map {
	var all []ocs.CrossConnect
	for r := range c.Remove.All() {
		if len(c.Add.Rivals(r)) > 0 {
			all = append(all, r)
		}
	}
	return ocs.MustMap(all...)
}

// TestRandom has several callers ask for random things of a switch that fails at random, and compares what it is told
// with what the switch holds.
func TestRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := []string{"111", "222", "000", "001", "201", "211", "121", "102", "ring"}
		type step struct {
			id   string
			join [2]int
			wait bool
		}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
			s := step{wait: rapid.Bool().Draw(t, "wait")}
			if s.id = rapid.SampledFrom(append(ids, "")).Draw(t, "id"); s.id == "" {
				q := rapid.IntRange(0, 23).Draw(t, "port")
				s.join = [2]int{q, (q + rapid.IntRange(1, 23).Draw(t, "distance")) % 24}
			}
			return s
		}), 1, 12).Draw(rt, "steps")
		if rapid.Bool().Draw(rt, "apart") {
			// Stages leave the pipeline one by one, each while the one before is still about it.
			apart := []step{{id: "000", wait: true}}
			for _, id := range rapid.SampledFrom([][]string{{"100", "110", "111"}, {"001", "011"}, {"010", "011", "211"}, {"002", "102", "112"}}).Draw(rt, "order") {
				apart = append(apart, step{id: id})
			}
			at := rapid.IntRange(0, len(steps)).Draw(rt, "at")
			steps = slices.Insert(steps, at, apart...)
		}
		faults := rapid.SliceOfN(rapid.IntRange(0, rapid.SampledFrom([]int{9, 30}).Draw(rt, "rarely")), 40, 40).Draw(rt, "faults")
		pauses := rapid.SliceOfN(rapid.IntRange(0, 9), 60, 60).Draw(rt, "pauses")
		sessions := rapid.IntRange(1, 3).Draw(rt, "sessions")
		denies := rapid.Bool().Draw(rt, "denies")
		attempts := rapid.IntRange(1, 3).Draw(rt, "attempts")
		var failure error
		synctest.Test(t, func(t *testing.T) {
			failure = func() error {
				sw := &card{Switch: ocstest.New(24, ocs.Map{}), denies: denies, pause: func(context.Context) {}, fails: func() int { return 9 }}
				all := make([]ocs.Switch, sessions)
				for i := range all {
					all[i] = sw
				}
				opt := options(all...)
				opt.Attempts = attempts
				// What the switch holds when a request is done, before any other one can begin at its ports.
				verified := map[uint64]ocs.Map{}
				var mu sync.Mutex
				opt.Changed = func(e rail.Event) {
					if e.What != rail.Verified {
						return
					}
					m, _ := sw.CrossConnects(context.Background())
					mu.Lock()
					defer mu.Unlock()
					for _, r := range e.Requests {
						verified[r] = m
					}
				}
				o, err := rail.New(t.Context(), opt)
				if err != nil {
					return err
				}
				defer o.Close()
				a, _ := opened(t, o)
				a.id("111") // so that it knows the device
				a.id("001")
				// Tokens, since several sessions ask.
				fault := make(chan int, len(faults))
				for _, f := range faults {
					fault <- f
				}
				takes := make(chan int, len(pauses))
				for _, f := range pauses {
					takes <- f
				}
				sw.fails = func() int {
					select {
					case f := <-fault:
						return f
					default:
						return 9
					}
				}
				sw.pause = func(context.Context) {
					select {
					case f := <-takes:
						time.Sleep(time.Duration(f) * time.Millisecond)
					default:
						time.Sleep(time.Millisecond)
					}
				}
				var asked []chan answer
				joins := map[int]ocs.Map{}
				for _, s := range steps {
					var got chan answer
					switch s.id {
					case "":
						joins[len(asked)] = circuit(s.join)
						got = a.joinLater([][2]int{s.join})
					case "ring":
						got = a.later(func(done func(proto.Done, error)) {
							o.GiantRing(proto.GiantRing{Req: a.next(), Epoch: a.epoch}, done)
						})
					default:
						got = a.idLater(s.id)
					}
					asked = append(asked, got)
					if !s.wait {
						continue
					}
					answer := <-got
					got <- answer
					if err := check(o, sw, s.id, answer.err, o.Status().Pending == 0); err != nil {
						return fmt.Errorf("%+v: %w", s, err)
					}
				}
				for i, got := range asked {
					answer := <-got
					mu.Lock()
					m, seen := verified[answer.done.Req]
					mu.Unlock()
					if answer.err != nil || !seen || answer.done.Result != proto.Applied {
						continue
					}
					if missing := joins[i].Minus(m); missing.Len() > 0 {
						return fmt.Errorf("request %d is done, and %v is not there: %v", i, missing, m)
					}
				}
				if s := o.Status(); s.Pending != 0 {
					return fmt.Errorf("left behind: %+v", s)
				}
				if err := check(o, sw, "", nil, true); err != nil {
					return err
				}
				// Without faults it gets to any configuration, whatever was before.
				sw.fails = func() int { return 9 }
				for _, id := range []string{"121", "222"} {
					if got := a.id(id); got.err != nil {
						return got.err
					}
					if err := check(o, sw, id, nil, true); err != nil {
						return err
					}
				}
				return nil
			}()
		})
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

func circuit(c [2]int) ocs.Map {
	both := opus.Regular(24, 1, 25).CrossConnects(opus.Circuit{A: c[0], B: c[1]})
	return ocs.MustMap(both[:]...)
}

// check compares what the rail says with what the switch holds.
func check(o *rail.Orchestrator, sw ocs.Switch, asked string, failed error, quiet bool) error {
	if !quiet {
		return nil
	}
	s := o.Status()
	m, err := sw.CrossConnects(context.Background())
	if err != nil {
		return err
	}
	cabled := opus.Regular(24, 1, 25)
	for _, c := range s.Circuits {
		for _, x := range cabled.CrossConnects(opus.Circuit{A: c[0], B: c[1]}) {
			if !m.Has(x) {
				return fmt.Errorf("it says that %v is there, and the switch holds %v: %+v", x, m, s)
			}
		}
	}
	if s.Unsure == nil && m.Len() != 2*len(s.Circuits) {
		return fmt.Errorf("the switch holds %v, and it says %+v", m, s)
	}
	name := s.ID
	if s.Shape == proto.Giant {
		name = "ring"
	}
	if name != "" {
		want, err := buildMap(name)
		if err != nil {
			return err
		}
		if !m.Equal(want) {
			return fmt.Errorf("it is called %s, and the switch holds %v: %+v", name, m, s)
		}
	}
	// Of two that were under way at the same time the other one may have failed.
	if asked != "" && failed == nil && asked != name && s.Counters.Failures == 0 {
		return fmt.Errorf("done is %s, and it is called %q: %+v", asked, name, s)
	}
	return nil
}

// TestConcurrent has several goroutines change ports of their own at the same time.
func TestConcurrent(t *testing.T) {
	sw := newDevice()
	o := start(t, options(sw, sw, sw))
	a, _ := opened(t, o)
	a.id("111")
	var callers sync.WaitGroup
	for k := range 6 {
		callers.Go(func() {
			q := 4 * k
			for i := range 40 {
				join := [][2]int{{q, q + 1}, {q + 2, q + 3}}
				if i%2 == 1 {
					join = [][2]int{{q, q + 2}, {q + 1, q + 3}}
				}
				if got := <-a.joinLater(join); got.err != nil {
					t.Errorf("%v: %v", join, got.err)
				}
			}
		})
	}
	callers.Wait()
	if err := check(o, sw, "", nil, true); err != nil {
		t.Error(err)
	}
	if s := o.Status(); len(s.Circuits) != 12 || s.Counters.Failures != 0 || s.Pending != 0 {
		t.Errorf("got %+v", s)
	}
}

// TestRandomKill stops the process at a random call of the switch, whatever is under way on however many sessions, and
// begins again with the journal as it was then.
func TestRandomKill(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		ids := rapid.SliceOfN(rapid.SampledFrom([]string{"111", "222", "000", "001", "201", "211", "121", "102", "ring", ""}), 1, 8).Draw(rt, "ids")
		at := rapid.IntRange(1, 12).Draw(rt, "call")
		half := rapid.Bool().Draw(rt, "half")
		sessions := rapid.IntRange(1, 3).Draw(rt, "sessions")
		before, after := tempDirs(t, rt)
		var failure error
		synctest.Test(t, func(t *testing.T) {
			failure = func() error {
				sw := newDevice()
				all := make([]ocs.Switch, sessions)
				for i := range all {
					all[i] = sw
				}
				opt := options(all...)
				opt.Dir = before
				o, err := rail.New(t.Context(), opt)
				if err != nil {
					return err
				}
				a, _ := opened(t, o)
				var mu sync.Mutex
				calls := 0
				dead := func() bool {
					mu.Lock()
					defer mu.Unlock()
					if calls++; calls == at {
						copyJournal(t, before, after)
					}
					return calls >= at
				}
				sw.apply = func(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
					if dead() {
						mu.Lock()
						defer mu.Unlock()
						if half && calls == at {
							_, _ = sw.Switch.Apply(ctx, ocs.Change{Remove: c.Remove})
						}
						return ocs.Receipt{}, errors.New("killed")
					}
					time.Sleep(time.Millisecond)
					return sw.Switch.Apply(ctx, c)
				}
				sw.read = func(ctx context.Context) (ocs.Map, error) {
					if dead() {
						return ocs.Map{}, errors.New("killed")
					}
					return sw.Switch.CrossConnects(ctx)
				}
				var asked []chan answer
				for i, id := range ids {
					switch id {
					case "":
						asked = append(asked, a.joinLater([][2]int{{2 * i, 2*i + 5}}, 20))
					case "ring":
						asked = append(asked, a.later(func(done func(proto.Done, error)) {
							o.GiantRing(proto.GiantRing{Req: a.next(), Epoch: a.epoch}, done)
						}))
					default:
						asked = append(asked, a.idLater(id))
					}
				}
				for _, got := range asked {
					<-got
				}
				o.Close()
				if calls < at {
					return nil
				}
				sw.apply, sw.read = nil, nil
				opt.Dir = after
				if o, err = rail.New(t.Context(), opt); err != nil {
					return err
				}
				defer o.Close()
				if s := o.Status(); s.Unsure != nil || s.Shape == proto.Dead {
					return fmt.Errorf("got %+v", s)
				}
				return check(o, sw, "", nil, true)
			}()
		})
		if failure != nil {
			rt.Fatal(failure)
		}
	})
}

// tempDirs returns two directories of one check, which are gone when the test has ended.
func tempDirs(t *testing.T, rt *rapid.T) (one, two string) {
	var dirs [2]string
	for i := range dirs {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		dirs[i] = dir
	}
	return dirs[0], dirs[1]
}
