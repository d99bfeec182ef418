package main

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/interposer"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

func (a *app) meshDemoCommand() *cobra.Command {
	var opt interposer.DemoOptions
	var size, collective, algorithm string
	c := &cobra.Command{
		Use:   "mesh",
		Short: "A collective on an emulated MZI mesh: routed, set, read back, traced; MZIs get stuck",
		Long: `Emulate the mesh of Mach-Zehnder interferometers (MZIs) of a photonic interposer (PCCL,
section 4.2), and have it carry the rounds of a collective: each is routed as the states of
the MZIs allow, the heaters are set, and the states are read back. Light is followed from
every source through what was read back, by a checker that is not the router, and the
receivers have to see it. Then MZIs that carry light of one round get stuck one after
another: they are found, and the circuits go around them, until there is no way.

With --unseen they read back what they should, and only the light is wrong: receivers on
the way of the light find the MZI. The mesh is in memory, as no such device has a public
protocol; its physics is in the documentation of package emulator/mesh.`,
		Example: "  ocslab demo mesh\n  ocslab demo mesh --stuck 5 --unseen\n  ocslab demo mesh --size 6x6 --gpus 4 --stuck 36",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := mesh.ParseGrid(size)
			if err != nil {
				return usagef("--size: %w", err)
			}
			opt.Rows, opt.Columns = m.Size()
			if opt.Collective, err = pccl.ParseCollective(collective); err != nil {
				return usageError{err}
			}
			if opt.Algorithm, err = pccl.ParseAlgorithm(algorithm); err != nil {
				return usageError{err}
			}
			if opt.Settling < 0 || opt.Settling > time.Minute || opt.Wavelengths < 1 || opt.Wavelengths > mesh.MostWavelengths {
				return usagef("--settling %v, --wavelengths %d: want 0 to 1m, and 1 to %d", opt.Settling, opt.Wavelengths, mesh.MostWavelengths)
			}
			opt.Tell = func(s interposer.DemoStage) { a.tellMesh(s, opt.Wavelengths) }
			err = interposer.Demo(cmd.Context(), opt)
			for _, bad := range []error{interposer.ErrDemo, pccl.ErrSize, pccl.ErrArgument} {
				if errors.Is(err, bad) {
					return usageError{err}
				}
			}
			return err
		},
	}
	s := c.Flags()
	s.StringVar(&size, "size", "16x16", "rows and columns of MZIs, `RxC`, 65536 at most")
	s.IntVar(&opt.GPUs, "gpus", 16, "spread evenly over the mesh")
	s.StringVar(&collective, "collective", "all-reduce", "whose rounds are carried")
	s.StringVar(&algorithm, "algorithm", "rhd-halving", "of the collective")
	s.IntVar(&opt.Wavelengths, "wavelengths", 1, "of each waveguide")
	s.DurationVar(&opt.Settling, "settling", 3700*time.Nanosecond, "how long a heater takes")
	s.IntVar(&opt.Stuck, "stuck", 3, "how many MZIs get stuck, one after another")
	s.IntVar(&opt.Round, "round", interposer.Roomiest, "in which they do, `I` from 0 (-1: the one that crosses the fewest MZIs)")
	s.BoolVar(&opt.Unseen, "unseen", false, "an MZI that is stuck reads back what it should")
	s.Uint64Var(&opt.Seed, "seed", 1, "of which get stuck")
	return c
}

// Lines of JSON.
type (
	// meshAttempt is one time that the mesh was set.
	meshAttempt struct {
		Kind      string             `json:"kind"` // "mesh-attempt"
		Round     int                `json:"round"`
		Broken    int                `json:"broken"` // MZIs that are stuck
		Attempt   int                `json:"attempt"`
		Set       int                `json:"set"`  // heaters that were sent elsewhere
		Kept      int                `json:"kept"` // MZIs that are crossed and were right
		Taps      int                `json:"taps"`
		Settled   bool               `json:"settled"`
		Switching *timeline.Interval `json:"switching,omitempty"`
		Circuits  int                `json:"circuits"`
		Dark      []int              `json:"dark"`   // circuits whose light does not come
		Faults    []string           `json:"faults"` // of the light, followed through what was read back
		Weakest   *float64           `json:"weakest_dbm,omitempty"`
		Crosstalk *float64           `json:"crosstalk_db,omitempty"`
	}
	// meshStuck is an MZI that was found.
	meshStuck struct {
		Kind   string `json:"kind"` // "mesh-stuck"
		Node   int    `json:"node"`
		Wanted string `json:"wanted"`
		Read   string `json:"read"`
		Dark   bool   `json:"dark"` // it reads back right, and the light was gone
		Probes int    `json:"probes"`
	}
	// meshStage is a round.
	meshStage struct {
		Kind     string       `json:"kind"` // "mesh-round"
		Round    int          `json:"round"`
		Broken   []int        `json:"broken"`
		Verdict  mesh.Verdict `json:"verdict"`
		Attempts int          `json:"attempts"`
		Routing  int64        `json:"routing_ns"`
		Why      string       `json:"why,omitempty"`
	}
)

// stateName is what is said of a state that was read back.
func stateName(s mesh.State) string {
	if s == mesh.Third {
		return "between"
	}
	return s.String()
}

// inDB returns a level as JSON can have it; nil if there is none.
func inDB(x float64) *float64 {
	if math.IsInf(x, 0) {
		return nil
	}
	x = thousandths(x)
	return &x
}

// tellMesh prints a round of the demonstration.
func (a *app) tellMesh(s interposer.DemoStage, wavelengths int) {
	if a.set.JSON {
		a.jsonMeshRound(s)
		return
	}
	r := s.Report
	rows, columns := s.Mesh.Size()
	head := fmt.Sprintf("round %d", s.Round)
	if n := len(s.Broken); n > 0 {
		head = fmt.Sprintf("round %d again: the MZI of node %d gets stuck", s.Round, s.Broken[n-1])
	} else if s.Round == 0 {
		a.printf("mesh of %d x %d MZIs, %s; a round has up to %s\n", rows, columns, natural.Count(wavelengths, "wavelength"),
			natural.Count(len(r.Requests), "circuit"))
	}
	a.printf("== %s (routed in %s)\n", head, round(r.Routing))
	for _, x := range r.Attempts {
		a.printMeshAttempt(x, len(r.Requests))
	}
	if s.Err != nil {
		text := fmt.Sprintf("%d of %s routed; whether all can be is not known", r.Result.Routed, natural.Count(len(r.Requests), "circuit"))
		if r.Result.Verdict == mesh.Impossible {
			text = "impossible: " + impossibleText(s.Mesh, r.Result)
		}
		a.printf("%s\n", text)
	}
}

func (a *app) printMeshAttempt(x interposer.Attempt, circuits int) {
	took := "and not all settled"
	switch {
	case x.Settled && x.Set == 0:
		took = "nothing had to move"
	case x.Settled:
		took = fmt.Sprintf("settled after %s to %s", round(time.Duration(x.Switching.Earliest)), round(time.Duration(x.Switching.Latest)))
	}
	a.printf("%s set, %d were right, %s: %s\n", natural.Count(x.Set, "MZI"), x.Kept, natural.Count(x.Taps, "tap"), took)
	if x.Right() {
		text := ""
		if c := inDB(float64(x.Crosstalk)); c != nil {
			text = fmt.Sprintf(", others' light %.1f dB below", -*c)
		}
		a.printf("read back and traced: light of %d of %[1]d comes out where it should; seen: weakest %.1f dBm%s\n", circuits, float64(x.Weakest), text)
		return
	}
	for i, f := range x.Faults {
		if i == 3 {
			a.printf("  and %d more\n", len(x.Faults)-i)
			break
		}
		a.printf("  traced: %s\n", f.Text)
	}
	a.printf("  seen: %s dark\n", natural.Count(len(x.Dark), "circuit"))
	for _, s := range x.Stuck {
		if s.Dark {
			a.printf("  found: node %d says %v, and light is gone behind it (%s on its way)\n", s.Node, s.Read, natural.Count(s.Probes, "receiver"))
		} else {
			a.printf("  found: node %d was to be %v and reads back %s\n", s.Node, s.Wanted, stateName(s.Read))
		}
	}
}

func (a *app) jsonMeshRound(s interposer.DemoStage) {
	r := s.Report
	for i, x := range r.Attempts {
		l := meshAttempt{Kind: "mesh-attempt", Round: s.Round, Broken: len(s.Broken), Attempt: i + 1, Set: x.Set, Kept: x.Kept, Taps: x.Taps,
			Settled: x.Settled, Circuits: len(r.Requests), Dark: append([]int{}, x.Dark...), Faults: []string{},
			Weakest: inDB(float64(x.Weakest)), Crosstalk: inDB(float64(x.Crosstalk))}
		if x.Settled && x.Set > 0 {
			l.Switching = &x.Switching
		}
		for _, f := range x.Faults {
			l.Faults = append(l.Faults, f.Text)
		}
		a.json(l)
		for _, f := range x.Stuck {
			a.json(meshStuck{"mesh-stuck", f.Node, f.Wanted.String(), stateName(f.Read), f.Dark, f.Probes})
		}
	}
	l := meshStage{Kind: "mesh-round", Round: s.Round, Broken: append([]int{}, s.Broken...), Verdict: r.Result.Verdict, Attempts: len(r.Attempts),
		Routing: r.Routing.Nanoseconds()}
	if s.Err != nil {
		l.Why = s.Err.Error()
		if r.Result.Verdict == mesh.Impossible {
			l.Why = impossibleText(s.Mesh, r.Result)
		}
	}
	a.json(l)
}
