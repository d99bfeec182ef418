package report

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/report/chart"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// mostCells is how many rows and columns a heat map has; of more ports, blocks are shown.
const mostCells = 96

// heatmaps are those of the first conditions.
func (b *book) heatmaps() chart.Chart {
	s := chart.Stack{Frame: chart.Frame{Title: "Which pairs are slow"}}
	for _, c := range b.a.Conditions {
		if len(s.Charts) == mostMaps {
			break
		}
		if h, ok := heatmap(c); ok {
			s.Charts = append(s.Charts, h)
		}
	}
	if len(s.Charts) == 0 {
		return nil
	}
	return s
}

// heatmap is that of the stage that most pairs of a condition reached last.
func heatmap(c analysis.Condition) (h chart.Heatmap, ok bool) {
	count := map[timeline.Stage]int{}
	for _, p := range c.Pairs {
		count[p.Stage]++
	}
	var stage timeline.Stage
	for _, s := range timeline.Stages() {
		if count[s] > 0 && count[s] >= count[stage] {
			stage = s
		}
	}
	if count[stage] == 0 {
		return h, false
	}
	from, to := map[string]bool{}, map[string]bool{}
	for _, p := range c.Pairs {
		if p.Stage == stage {
			from[p.From], to[p.To] = true, true
		}
	}
	rows, columns := blocks(from), blocks(to)
	h = chart.Heatmap{
		Frame: chart.Frame{Title: fmt.Sprintf("%s, median time to %s", name(c), stage)},
		Rows:  rows.labels, Columns: columns.labels,
		RowTitle: "from", ColTitle: "to",
		Cells: make([][]float64, len(rows.labels)),
	}
	for i := range h.Cells {
		h.Cells[i] = make([]float64, len(columns.labels))
		for k := range h.Cells[i] {
			h.Cells[i][k] = math.NaN()
		}
	}
	for _, p := range c.Pairs {
		if p.Stage != stage || p.Median.Latest >= timeline.Never {
			continue
		}
		cell := &h.Cells[rows.of[p.From]][columns.of[p.To]]
		if v := float64(p.Median.Mid()); !(*cell >= v) { // also of NaN
			*cell = v
		}
	}
	if rows.size > 1 || columns.size > 1 {
		h.Title += fmt.Sprintf(" (the slowest in each block of %d x %d)", rows.size, columns.size)
	}
	if left := len(c.Pairs) - count[stage]; left > 0 {
		h.Title += fmt.Sprintf("; %d pairs did not come so far", left)
	}
	return h, true
}

// blocked are names in natural order, joined to blocks if they are too many.
type blocked struct {
	labels []string
	of     map[string]int // the block of each name
	size   int
}

func blocks(names map[string]bool) blocked {
	all := slices.SortedFunc(maps.Keys(names), natural.Compare)
	b := blocked{of: make(map[string]int, len(all)), size: (len(all) + mostCells - 1) / mostCells}
	for i, n := range all {
		b.of[n] = i / b.size
		if i%b.size == 0 {
			b.labels = append(b.labels, n)
		} else if i%b.size == b.size-1 || i == len(all)-1 {
			b.labels[len(b.labels)-1] += " to " + n
		}
	}
	return b
}
