package controller

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// TestChaos: whatever ranks and rail send, in whatever order, nothing that is held is changed, what is held adds up, requests are
// answered in their order, each once, and only those that are connected are written to.
func TestChaos(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		j := drawJob(rt)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		gran := rapid.SampledFrom([]Granularity{Stage, Circuit}).Draw(rt, "granularity")
		e := testEngine(rt, j, Options{Granularity: gran, Barrier: 2000, Drain: 1000, ResumeAfter: 500, Policy: opus.Policies[rng.IntN(3)]})
		c := &chaos{t: rt, e: e, rng: rng, conn: make([]int, j.Ranks()), asked: make([][]uint64, j.Ranks())}
		c.event(func() {
			e.opened(proto.Opened{Epoch: 1, Shape: []proto.Shape{proto.Giant, proto.Digits, proto.Circuits, ""}[rng.IntN(4)], ID: "0", Circuits: ringPairs(e)})
		})
		for x := range j.Ranks() {
			c.hello(x)
		}
		for range 400 {
			e.now += rng.Int64N(20)
			c.event(func() { c.step() })
			if at, ok := e.nextDue(); ok && at <= e.now {
				c.event(e.tick)
			}
			c.adds()
		}
	})
}

type chaos struct {
	t     fataler
	e     *engine
	rng   *rand.Rand
	conn  []int // of each rank; 0 is none
	last  int
	req   uint64
	asked [][]uint64 // and not answered, by rank
	todo  []uint64   // of the rail
}

func (c *chaos) hello(x int) {
	c.last++
	var holds []proto.OpRef
	for _, h := range c.e.ranks[x].holds {
		if c.rng.IntN(2) == 0 {
			holds = append(holds, h.unit.ref(h.op))
		}
	}
	c.asked[x] = nil
	c.event(func() {
		if err := c.e.hello(x, c.last, holds); err != nil {
			c.t.Fatalf("%v", err)
		}
		c.conn[x] = c.last
		for _, u := range c.e.ranks[x].units {
			for i, m := range u.group.Members {
				if m == x {
					_ = c.e.join(x, &proto.JoinGroup{Group: u.group.Name, Axis: u.group.axis, Members: u.group.Members, Index: i})
				}
			}
		}
	})
}

// ref is an operation of the rank, near the last ones, or rarely nonsense.
func (c *chaos) ref(x int) proto.OpRef {
	units := c.e.ranks[x].units
	if len(units) == 0 || c.rng.IntN(50) == 0 {
		return proto.OpRef{Group: "dp/99", Op: c.rng.Uint64(), Way: c.rng.IntN(9) - 4}
	}
	u := units[c.rng.IntN(len(units))]
	return u.ref(uint64(max(0, u.passed+int64(c.rng.IntN(4))-1)))
}

func (c *chaos) step() {
	x := c.rng.IntN(len(c.conn))
	switch n := c.rng.IntN(100); {
	case c.conn[x] == 0:
		c.hello(x)
	case n < 60:
		c.req++
		w := &proto.TopoWrite{Req: c.req, Epoch: 1, OpRef: c.ref(x), Mode: proto.Demand}
		if c.rng.IntN(3) == 0 {
			w.Mode = proto.Provision
		}
		if c.rng.IntN(2) == 0 {
			w.Last = &proto.OpRef{}
		}
		c.asked[x] = append(c.asked[x], w.Req)
		c.e.write(x, w)
	case n < 75:
		c.e.release(x, &proto.Release{Epoch: 1, OpRef: c.ref(x)})
	case n < 79 && len(c.asked[x]) > 0:
		c.e.withdraw(x, c.asked[x][c.rng.IntN(len(c.asked[x]))])
	case n < 80:
		c.e.alarmed(proto.Alarm{Detail: "something"})
	case n < 82:
		c.e.lost(x, c.conn[x], c.rng.IntN(2) == 0)
		c.conn[x], c.asked[x] = 0, nil
	case n < 83:
		c.e.lost(x, 99999, false) // an old connection
	case n < 84:
		c.hello(x)
	case len(c.todo) > 0:
		i := c.rng.IntN(len(c.todo))
		req := c.todo[i]
		c.todo = append(c.todo[:i], c.todo[i+1:]...)
		var err error
		if c.rng.IntN(15) == 0 {
			err = &proto.Refusal{Code: proto.Timeout, Detail: "silent"}
		}
		shape := proto.Digits
		if ch := c.e.changes[req]; ch != nil && ch.kind == "giant-ring" {
			shape = proto.Giant
		}
		c.e.done(req, proto.Done{Shape: shape, Result: proto.Applied}, err)
	}
}

func (c *chaos) event(f func()) {
	f()
	for len(c.e.out) > 0 {
		out := c.e.out
		c.e.out = nil
		for _, a := range out {
			req, answer := a.req, a.ack != nil
			if nack, ok := a.msg.(*proto.TopoNack); ok {
				req, answer = nack.Req, true
			}
			if answer {
				if c.conn[a.rank] == 0 || len(c.asked[a.rank]) == 0 || c.asked[a.rank][0] != req {
					c.t.Fatalf("rank %d is answered %d, and waits for %v", a.rank, req, c.asked[a.rank])
				}
				c.asked[a.rank] = c.asked[a.rank][1:]
			}
			switch {
			case a.apply != nil:
				c.todo = append(c.todo, a.apply.Req)
				// Those that are granted by the same event hold after it was sent, and do not touch it.
				for _, q := range c.e.changes[a.apply.Req].ports {
					if c.e.held[q] > 0 {
						c.t.Fatalf("duplex port %d is changed and held", q)
					}
				}
			case a.giant != nil:
				c.todo = append(c.todo, a.giant.Req)
				if c.e.holds > 0 {
					c.t.Fatalf("the giant ring is asked for while %d operations hold circuits", c.e.holds)
				}
			case a.mark != nil:
				c.todo = append(c.todo, a.mark.Req)
			}
		}
	}
}

// adds checks that all counters are what they count.
func (c *chaos) adds() {
	e := c.e
	held := make([]uint16, len(e.held))
	holds := 0
	for x, r := range e.ranks {
		for _, h := range r.holds {
			holds++
			for p := range e.per {
				if h.ports>>p&1 != 0 {
					held[x*e.per+p]++
				}
			}
		}
	}
	if holds != e.holds {
		c.t.Fatalf("%d holds are counted, and there are %d", e.holds, holds)
	}
	kept := make([]uint16, len(e.held))
	for _, t := range e.queue {
		for _, q := range t.kept {
			kept[q]++
		}
	}
	for q := range held {
		if held[q] != e.held[q] || kept[q] != e.kept[q] {
			c.t.Fatalf("port %d: %d held and %d kept are counted, and there are %d and %d", q, e.held[q], e.kept[q], held[q], kept[q])
		}
		if e.flight[q] > 0 && e.held[q] > 0 && e.mode == normal {
			c.t.Fatalf("port %d is held while it is being changed", q)
		}
	}
	for _, cl := range e.classes {
		for _, u := range cl.units {
			for op, b := range u.bars {
				asked, demanded := 0, 0
				for _, a := range b.asks {
					if a.prov != nil || a.dem != nil {
						asked++
					}
					if a.dem != nil {
						demanded++
					}
				}
				if asked != b.asked || demanded != b.demanded || b.over || asked == 0 && !b.partial {
					c.t.Fatalf("operation %d of %s: %d asked and %d demanded are counted, and there are %d and %d; over %v", op, u.name(), b.asked, b.demanded, asked, demanded, b.over)
				}
			}
		}
	}
}
