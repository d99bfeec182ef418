// Package planning repeats what papers found about planners of photonic fabrics, each with the planner of this
// project, and puts the two side by side.
//
//	f, err := report.FindFigure(planning.All(), "pccl-table")
//	s, err := f.Run(ctx, report.FigureOptions{})
//	err = s.HTML(w)
//
// Most of it is arithmetic, and says so; what is measured is measured on emulated switches.
package planning

import (
	"slices"

	"github.com/ocslab/ocslab/experiment/report"
)

// figures in the order in which they are listed.
var figures = []report.Figure{
	{Name: "pccl-table", Title: "PCCL, figures 7 to 10, 17 and 18: a fabric that is rewired beside five that are not",
		About: "What a reduce-scatter and an all-to-all take as planned, and by six algorithms on fixed topologies.", Takes: "5 seconds", Paper: pcclPaper, Make: pcclTable},
	{Name: "pccl-regimes", Title: "PCCL on three classes of switch: predicted and measured",
		About: "One schedule, three switching times, three plans: each carried out on emulated switches with metered transfers.", Takes: "30 seconds", Paper: pcclPaper, Make: pcclRegimes},
	{Name: "railx-cost", Title: "RailX, tables 3 and 6: what networks for up to 200 000 chips cost",
		About: "Parts, prices and the cost of bandwidth of eleven networks beside the paper's, and where its rows do not add up.", Takes: "a moment", Paper: railxPaper, Make: railxCost},
	{Name: "railx-alltoall", Title: "RailX, figures 14 to 16 and table 2: all-to-all, hops and all-reduce",
		About: "A fluid model on planned links, every route one by one, and the paper's equations.", Takes: "5 seconds", Paper: railxPaper, Make: railxAllToAll},
	{Name: "railx-availability", Title: "RailX, figure 17: how much of a grid is left around faulty nodes",
		About: "The largest grid without a fault, exactly, in 1000 samples for each size and number of faults.", Takes: "a moment", Paper: railxPaper, Make: railxAvailability},
	{Name: "infinitehbd-waste", Title: "InfiniteHBD, figures 9, 10 and 17, table 7: which GPUs faults leave without a ring",
		About: "A trace of faults replayed on seven architectures, and closed forms of the same.", Takes: "5 seconds", Paper: infinitehbdPaper, Replays: true, Make: infinitehbdWaste},
	{Name: "infinitehbd-crosstor", Title: "InfiniteHBD, figure 13: how much traffic crosses Top-of-Rack switches",
		About: "Jobs placed around dead nodes as the paper does, by a placement of ours, and at random.", Takes: "15 seconds", Paper: infinitehbdPaper, Make: infinitehbdCrossToR},
	{Name: "infinitehbd-cost", Title: "InfiniteHBD, tables 6 and 8, figure 13d: what high-bandwidth domains cost and draw",
		About: "Parts, prices and power of eight networks beside the paper's, and from which share of dead nodes a third bundle pays.",
		Takes: "a moment", Paper: infinitehbdPaper, Make: infinitehbdCost},
	{Name: "crosswiring-ltrr", Title: "Cross Wiring, figures 2 and 5: how much of a demand there are circuits for",
		About: "Consecutive random demands on Cross and on Uniform wiring, and small cases that can be checked by hand.",
		Takes: "20 seconds", Paper: crosswiringPaper, Make: crosswiringLTRR},
	{Name: "crosswiring-time", Title: "Cross Wiring, figures 2 and 6, table 1: how long planning takes, and what that costs jobs",
		About: "Plans from nothing and from running circuits for 2,048 to 131,072 GPUs, timed on this machine.", Takes: "20 seconds", Paper: crosswiringPaper, Make: crosswiringTime},
	{Name: "crosswiring-mrar", Title: "Cross Wiring, figure 7: how few circuits are rewired",
		About: "Which part of the circuits several planners keep as the demand changes, beside what any could.", Takes: "15 seconds", Paper: crosswiringPaper, Make: crosswiringMRAR},
}

// All returns the figures in the order in which they should be listed.
func All() []report.Figure { return slices.Clone(figures) }
