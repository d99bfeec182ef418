package main

import (
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/grid"
	"github.com/ocslab/ocslab/experiment/sequence"
)

func (a *app) railxDemoCommand() *cobra.Command {
	var switching time.Duration
	var toggles int
	var seed uint64
	c := &cobra.Command{
		Use:   "railx",
		Short: "A RailX grid of emulated switches: rewired, with dead nodes and switches",
		Long: `Emulate the switches of RailX grids, each behind a real socket, and bring them from a
torus to a HyperX, all at once and one rail at a time; bypass a dead node; lose a switch;
wire a Dragonfly of 104 switches; use a row for one thing and another in turns, against
the gap of 6 ms that the paper measured; and wire what random faults leave of 64 x 64
nodes. All is read back and the light followed around every ring, and each stage is a run.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if switching < 0 || switching > time.Hour || toggles < 1 || toggles > 900 {
				return usagef("--switching %v, --toggles %d: want 0 to 1h, and 1 to 900", switching, toggles)
			}
			with, err := a.executionOptions()
			if err != nil {
				return err
			}
			return grid.Demo(cmd.Context(), grid.DemoOptions{
				Options:   sequence.Options{Options: with, About: "The RailX demonstration", Args: []string{"ocslab", "demo", "railx"}},
				Switching: switching, Toggles: toggles, Seed: seed, Tell: a.tellGrid,
			})
		},
	}
	c.Flags().DurationVar(&switching, "switching", 25*time.Millisecond, "how long the emulated switches take")
	c.Flags().IntVar(&toggles, "toggles", 50, "how often the row goes to and fro")
	c.Flags().Uint64Var(&seed, "seed", 1, "of all that is random")
	return c
}

// railxStage is a stage of the demonstration; what moved precedes it as lines of their own.
type railxStage struct {
	Kind   string   `json:"kind"` // "railx-stage"
	Stage  string   `json:"stage"`
	Title  string   `json:"title"`
	PlanNS int64    `json:"plan_ns"`
	Text   []string `json:"text"`
}

func (a *app) tellGrid(s grid.DemoStage) {
	if a.set.JSON {
		if s.Moved != nil {
			a.printGridApplied(s.Moved)
		}
		a.json(railxStage{"railx-stage", s.Name, s.Title, s.Plan.Nanoseconds(), append([]string{}, s.Lines...)})
		return
	}
	a.printf("== %s (planned in %.1f ms)\n", s.Title, math.Max(0.1, inMS(s.Plan.Nanoseconds())))
	if s.Moved != nil {
		a.printGridApplied(s.Moved)
	}
	for _, l := range s.Lines {
		a.printf("%s\n", l)
	}
	a.printf("\n")
}
