package planning

import (
	"fmt"
	"math"

	"github.com/ocslab/ocslab/experiment/report"
)

const infinitehbdPaper = "InfiniteHBD: Building Datacenter-Scale High-Bandwidth Domain for LLM with Optical Circuit Switching " +
	"Transceivers, arXiv 2502.03885"

// notDone is a row of what the paper has and nothing here can compute.
func notDone(quantity, paper, why string) report.PaperRow {
	return report.PaperRow{Quantity: quantity, Paper: paper, Ours: "-", Deviation: "not done", Note: why}
}

// points says how far a share is from the paper's, both in percent, of which the paper prints so many digits after the point.
func points(paper, ours float64, digits int) string {
	if math.Abs(ours-paper) <= 0.5001*math.Pow10(-digits) {
		return "exact"
	}
	return fmt.Sprintf("%+.*f points", max(digits, 1), ours-paper)
}

// percents writes a share to as many digits as make it three that count.
func percents(share float64) string {
	switch p := 100 * math.Abs(share); {
	case p == 0:
		return "0 %"
	case p < 0.001:
		return fmt.Sprintf("%.1e %%", 100*share)
	case p < 0.1:
		return fmt.Sprintf("%.3f %%", 100*share)
	case p < 10:
		return fmt.Sprintf("%.2f %%", 100*share)
	}
	return fmt.Sprintf("%.1f %%", 100*share)
}

// told is the deviation of a claim in words.
func told(so bool) string {
	if so {
		return "as told"
	}
	return "not so"
}
