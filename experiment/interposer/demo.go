package interposer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	emulated "github.com/ocslab/ocslab/emulator/mesh"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// ErrDemo: the options of a demonstration are not right.
var ErrDemo = errors.New("the demonstration cannot be given")

// Roomiest is the round whose circuits cross the fewest MZIs, which leaves most ways around.
const Roomiest = -1

// DemoOptions of [Demo].
type DemoOptions struct {
	Rows, Columns int // of the mesh
	GPUs          int
	Collective    pccl.Collective
	Algorithm     pccl.Algorithm
	Wavelengths   int           // 0: 1
	Settling      time.Duration // of a heater; 0 is that of the emulator
	Stuck         int           // MZIs that get stuck one after the other, each crossed by a circuit of Round
	Round         int           // in which they do, from 0; Roomiest is the one that crosses the fewest MZIs
	Unseen        bool          // they read back what they should: only the light shows it
	Seed          uint64        // of which get stuck
	// Tell is given each stage when it is over. Nil tells nobody.
	Tell func(DemoStage)
}

// DemoStage is a round that was brought about.
type DemoStage struct {
	Round  int
	Broken []int // MZIs that got stuck before it, all so far
	Mesh   *mesh.Mesh
	Report *Report
	// Err is why it could not be: it matches [ErrNoWay].
	Err error
}

// Demo has an emulated mesh carry all rounds of a collective, one after another, and then one round again while MZIs that
// its circuits cross get stuck one by one. That ends early when the circuits have no way any more, which is no error if an MZI is
// stuck: the last stage says it. Other errors are those of the options, matching [ErrDemo] or that of package pccl
// or mesh, and of [Bench.Bring].
func Demo(ctx context.Context, opt DemoOptions) error {
	if opt.Stuck < 0 || opt.Stuck > opt.Rows*opt.Columns {
		return fmt.Errorf("%w: %d MZIs get stuck: want 0 to %d, as many as there are", ErrDemo, opt.Stuck, opt.Rows*opt.Columns)
	}
	if opt.Tell == nil {
		opt.Tell = func(DemoStage) {}
	}
	device, err := emulated.New(emulated.Options{Rows: opt.Rows, Columns: opt.Columns, Settling: opt.Settling})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDemo, err)
	}
	b, err := New(Emulated{device}, Options{Wavelengths: opt.Wavelengths, Patience: 20*time.Millisecond + 2*opt.Settling})
	if err != nil {
		return err
	}
	rounds, err := demoRounds(b.Mesh(), opt)
	if err != nil {
		return err
	}
	if opt.Round < Roomiest || opt.Round >= len(rounds) {
		return fmt.Errorf("%w: MZIs get stuck in round %d: want 0 to %d", ErrDemo, opt.Round, len(rounds)-1)
	}
	var last *Report
	at, fewest := opt.Round, math.MaxInt
	for i, requests := range rounds {
		r, err := b.Bring(ctx, requests)
		if err == nil || errors.Is(err, ErrNoWay) {
			opt.Tell(DemoStage{Round: i, Mesh: b.Mesh(), Report: r, Err: err})
		}
		if err != nil {
			return err
		}
		n := len(crossed(r.Result))
		if i == opt.Round || opt.Round == Roomiest && n < fewest {
			at, last, fewest = i, r, n
		}
	}
	random := rand.New(rand.NewPCG(opt.Seed, 0))
	var broken []int
	for range opt.Stuck {
		candidates := b.healthy(last.Result)
		if len(candidates) == 0 {
			return nil // all that is crossed is stuck already, and serves
		}
		node := candidates[random.IntN(len(candidates))]
		wrong := math.Pi - phaseOf(last.Result.Setting.States[node])
		if err := device.Stick(node, emulated.Fault{Phase: wrong, Unseen: opt.Unseen}); err != nil {
			return err
		}
		broken = append(broken, node)
		r, err := b.Bring(ctx, rounds[at])
		if err == nil || errors.Is(err, ErrNoWay) {
			opt.Tell(DemoStage{Round: at, Broken: broken[:len(broken):len(broken)], Mesh: b.Mesh(), Report: r, Err: err})
		}
		if errors.Is(err, ErrNoWay) {
			return nil
		}
		if err != nil {
			return err
		}
		last = r
	}
	return nil
}

// demoRounds returns the circuits of the rounds.
func demoRounds(m *mesh.Mesh, opt DemoOptions) ([][]mesh.Request, error) {
	schedule, err := pccl.New(opt.Collective, opt.Algorithm, opt.GPUs, 1e6) // circuits are the same for any size
	if err != nil {
		return nil, err
	}
	place, err := m.Place(opt.GPUs)
	if err != nil {
		return nil, err
	}
	rounds := make([][]mesh.Request, len(schedule.Rounds))
	for i, r := range schedule.Rounds {
		if rounds[i], err = mesh.Requests(r, place); err != nil {
			return nil, err
		}
	}
	if len(rounds) == 0 {
		return nil, fmt.Errorf("%w: the collective has no rounds", ErrDemo)
	}
	return rounds, nil
}

// healthy returns the nodes that circuits cross and that are not known to be stuck, in rising order.
func (b *Bench) healthy(r *mesh.Result) (nodes []int) {
	for _, n := range crossed(r) {
		if _, is := b.stuck[n]; !is {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
