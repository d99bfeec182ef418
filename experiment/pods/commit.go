package pods

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// commit is the paired commit of switches of the lab that hold the two members of a pair, or of several pairs that have
// switches of the lab in common. Its switches take turns: each disconnects, then each connects.
type commit struct {
	pairs []crosswiring.Pair
	names []string           // of switches of the lab, even before odd
	keep  map[string]ocs.Map // what stays there throughout
	turns []chan struct{}    // closed when a turn is over, also when it was not taken

	drain, undrain func(context.Context, crosswiring.Pair) error
	check          func(held map[string]ocs.Map, pairs []crosswiring.Pair) error

	mu    sync.Mutex         // guards what follows
	lost  string             // the first switch that failed
	err   error              // how
	held  map[string]ocs.Map // read back
	began time.Time          // before the first command
	ended time.Time          // when all had been read back
}

// commits returns the commits of a round, by switch of the lab: of those that are used, with what stays on them.
func (a *applying) commits(round []crosswiring.Pair, used map[string]bool, keep map[string]ocs.Map) map[string]*commit {
	byName := map[string]*commit{}
	for _, p := range round {
		c := &commit{
			pairs: []crosswiring.Pair{p}, keep: keep, held: map[string]ocs.Map{},
			drain: a.opt.Drain, undrain: a.opt.Undrain, check: a.opposite,
		}
		for _, s := range a.cables.fabric.Members(p) {
			name := a.cables.names[s]
			if !used[name] {
				continue
			}
			if other := byName[name]; other != nil && other != c { // a switch of both: they are one
				c.pairs, c.names = slices.Concat(other.pairs, c.pairs), slices.Concat(other.names, c.names)
			} else if !slices.Contains(c.names, name) {
				c.names = append(c.names, name)
			}
			for _, name := range c.names {
				byName[name] = c
			}
		}
	}
	for _, c := range byName {
		for len(c.turns) < 2*len(c.names) {
			c.turns = append(c.turns, make(chan struct{}))
		}
	}
	return byName
}

// move takes the turns of one switch, and returns the report of both.
func (c *commit) move(ctx context.Context, name string, want ocs.Map, do sequence.Do) (ocs.Report, error) {
	i, n := slices.Index(c.names, name), len(c.names)
	var off, on ocs.Report
	err := c.turn(ctx, i, name, func() (err error) {
		if i == 0 {
			if err := c.begin(ctx); err != nil {
				return err
			}
		}
		off, err = do(ctx, c.keep[name])
		return err
	})
	err2 := c.turn(ctx, n+i, name, func() (err error) {
		if on, err = do(ctx, want); err != nil {
			return err
		}
		c.mu.Lock()
		c.held[name] = on.After
		c.mu.Unlock()
		if i == n-1 {
			return c.end(ctx)
		}
		return nil
	})
	if err == nil {
		err = err2
	}
	return both(off, on), err
}

// turn waits for the turn before, and takes its own unless a switch has failed until then.
func (c *commit) turn(ctx context.Context, number int, name string, take func() error) (err error) {
	defer close(c.turns[number])
	if number > 0 {
		select {
		case <-c.turns[number-1]:
		case <-ctx.Done():
			return c.fail(name, context.Cause(ctx))
		}
	}
	c.mu.Lock()
	lost := c.lost
	c.mu.Unlock()
	switch lost {
	case "":
		return c.fail(name, experiment.Guard(take))
	case name:
		return nil // it has said so
	default:
		return fmt.Errorf("%s goes no further, because its partner %s could not be changed", name, lost)
	}
}

// fail notes the first switch that failed, if err is an error, and returns err.
func (c *commit) fail(name string, err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.lost == "" {
		c.lost, c.err = name, err
	}
	return err
}

// begin drains the pairs.
func (c *commit) begin(ctx context.Context) error {
	for _, p := range c.pairs {
		if c.drain == nil {
			break
		}
		if err := c.drain(ctx, p); err != nil {
			return fmt.Errorf("drain %v: %w", p, err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = time.Now()
	return nil
}

// end compares the switches of each pair and takes the pairs into use.
func (c *commit) end(ctx context.Context) error {
	c.mu.Lock()
	c.ended = time.Now()
	held := c.held
	c.mu.Unlock()
	if err := c.check(held, c.pairs); err != nil {
		return err
	}
	for _, p := range c.pairs {
		if c.undrain == nil {
			break
		}
		if err := c.undrain(ctx, p); err != nil {
			return fmt.Errorf("undrain %v: %w", p, err)
		}
	}
	return nil
}

// both returns the report of two changes, one after the other. The second may not have been made.
func both(off, on ocs.Report) ocs.Report {
	if !on.ReadBack && on.Receipt.Requests == 0 {
		on.After, on.ReadBack = off.After, off.ReadBack
	}
	var outcomes []ocs.Outcome
	for _, o := range off.Outcomes {
		if o.State == ocs.Removed || o.State == ocs.Stuck {
			outcomes = append(outcomes, o)
		}
	}
	on.Before = off.Before
	on.Receipt = off.Receipt.Then(on.Receipt)
	on.Change.Remove = joined(off.Change.Remove, on.Change.Remove)
	on.Outcomes = append(outcomes, on.Outcomes...)
	return on
}

// joined returns the circuits of two maps that were removed from one switch, one after the other.
func joined(a, b ocs.Map) ocs.Map {
	all, err := a.Plus(b)
	if err != nil {
		return a
	}
	return all
}
