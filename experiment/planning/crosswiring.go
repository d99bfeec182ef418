package planning

import (
	"context"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/topology/crosswiring"
	compare "github.com/ocslab/ocslab/topology/crosswiring/baseline"
)

const (
	crosswiringPaper = "A Highly Scalable LLM Clusters with Optical Interconnect, arXiv 2411.01503"
	crosswiringSeed  = 1
)

// podsOf is a cluster of 256 ports a pod, as the paper's; it does not say how many of them are of one spine.
func podsOf(pods, spinePorts int) crosswiring.Fabric {
	return crosswiring.Fabric{Pods: pods, SpinePorts: spinePorts, Groups: 256 / spinePorts}
}

// sizeOf names a cluster by its GPUs.
func sizeOf(f crosswiring.Fabric) string { return thousands(f.Ports()) }

// thousands writes a whole number as people do.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}

// plannerNames are what planners are called here.
var plannerNames = map[string]string{
	string(crosswiring.Best): "best (ours)", string(crosswiring.OrientSeq): "orient+seq " +
		"(ours)", string(crosswiring.OrientBisect): "orient+bisect (ours)",
	string(crosswiring.Kempe): "kempe (ours)", string(crosswiring.Bisect): "bisect, " +
		"MDMCF-like", string(crosswiring.Euler): "euler, from nothing",
	"uniform greedy": "Uniform, greedy", "uniform helios": "Uniform, Helios-like", "uniform exact": "Uniform, " +
		"exact", compare.NameExact: "exact",
}

// readings says what the baselines are.
const readings = "The public text of the paper lacks its algorithm, so bisect is our reading of MDMCF, and the greedy and " +
	"Helios-like planners are our readings of what it compares with."

// follow compares planners over a sequence, and can be interrupted before.
func follow(ctx context.Context, f crosswiring.Fabric, s compare.Sequence, planners []compare.Planner) (*compare.Comparison,
	error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return compare.Compare(f, s, planners)
}

// planner returns the row of a planner.
func planner(c *compare.Comparison, name string) compare.Row {
	for _, r := range c.Rows {
		if r.Planner == name {
			return r
		}
	}
	return compare.Row{}
}

// matchings lists the circuits of the first switches of a group as text.
func matchings(c *crosswiring.Config, switches []int) string {
	var lines []string
	for _, k := range switches {
		var circuits []string
		for _, x := range c.Circuits(crosswiring.Switch{Index: k}) {
			circuits = append(circuits, fmt.Sprintf("%d>%d", x.In, x.Out))
		}
		lines = append(lines, fmt.Sprintf("  switch %d  %s", k, strings.Join(circuits, " ")))
	}
	return strings.Join(lines, "\n")
}

// longer says how many times as long the paper's time is, or the other way round.
func longer(paper, ours float64) string {
	if ours <= paper {
		return fmt.Sprintf("%.0fx as fast", paper/ours)
	}
	return fmt.Sprintf("%.1fx as long", ours/paper)
}

// noCounterpart is a row of ours that the paper has nothing for.
func noCounterpart(quantity, ours, note string) report.PaperRow {
	return report.PaperRow{Quantity: quantity, Paper: "-", Ours: ours, Deviation: "no counterpart", Note: note}
}
