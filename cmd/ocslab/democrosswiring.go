package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/pods"
	"github.com/ocslab/ocslab/experiment/sequence"
)

func (a *app) crossDemoCommand() *cobra.Command {
	var switching time.Duration
	var topologies, events int
	var large bool
	var seed uint64
	c := &cobra.Command{
		Use:   "crosswiring",
		Short: "Pods over pairs of emulated switches: any demand, paired commits, a dead switch",
		Long: `Join three pods, which Uniform wiring cannot and Cross wiring can; bring the 32 switches of a
testbed of four pods through 20 random topologies, each pair of switches together, with the
time that every link was down and the links that were not touched; lose a switch of a pair; let
jobs come and go; and, on hosts with interfaces, switch half of all links and compare what a training
step every 30, 60 and 90 s takes with the paper. --large also plans 10 topologies of 32,768 ports and
brings one of them about on 256 emulated switches, which takes half a minute or more, and 1 GB of memory.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if switching < 0 || switching > time.Hour || topologies < 1 || topologies > 900 || events > 100 {
				return usagef("--switching %v, --topologies %d, --events %d: want 0 to 1h, 1 to 900, and up to 100", switching, topologies, events)
			}
			with, err := a.executionOptions()
			if err != nil {
				return err
			}
			if events > 0 {
				if done, err := enter(); done || err != nil {
					return err
				}
				moreProcessors()
			} else {
				events = -1
			}
			return pods.Demo(cmd.Context(), pods.DemoOptions{
				Options:   sequence.Options{Options: with, About: "The Cross Wiring demonstration", Args: []string{"demo", "crosswiring"}},
				Switching: switching, Topologies: topologies, Events: events, Large: large, Seed: seed, Tell: a.tellPods,
			})
		},
	}
	s := c.Flags()
	s.DurationVar(&switching, "switching", 25*time.Millisecond, "how long the emulated switches take")
	s.IntVar(&topologies, "topologies", 20, "how many the testbed goes through")
	s.IntVar(&events, "events", 2, "how often half of the links are switched between hosts; 0 leaves that out")
	s.BoolVar(&large, "large", false, "also plan 10 topologies of 32,768 ports, and emulate one on 256 switches")
	s.Uint64Var(&seed, "seed", 1, "of all that is random")
	return c
}

// podsStage is a stage of the demonstration; what moved last precedes it as lines of their own.
type podsStage struct {
	Kind  string        `json:"kind"` // "crosswiring-stage"
	Stage string        `json:"stage"`
	Title string        `json:"title"`
	Table []podsStepRow `json:"table,omitempty"`
	Text  []string      `json:"text"`
}

// podsStepRow is what training steps take when half of the links are switched now and again.
type podsStepRow struct {
	EveryNS int64 `json:"every_ns"` // 0: never
	MeanNS  int64 `json:"mean_ns"`
	PaperNS int64 `json:"paper_ns"`
}

func (a *app) tellPods(s pods.DemoStage) {
	if a.set.JSON {
		if s.Moved != nil {
			a.printPods(s.Moved)
		}
		var table []podsStepRow
		for _, r := range s.Table {
			table = append(table, podsStepRow{r.Every.Nanoseconds(), r.Mean.Nanoseconds(), r.Paper.Nanoseconds()})
		}
		a.json(podsStage{"crosswiring-stage", s.Name, s.Title, table, append([]string{}, s.Lines...)})
		return
	}
	a.printf("== %s\n", s.Title)
	if s.Moved != nil {
		a.printPods(s.Moved)
	}
	for _, l := range s.Lines {
		a.printf("%s\n", l)
	}
	a.printf("\n")
}
