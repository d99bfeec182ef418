package report

import (
	"slices"

	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/timeline"
)

// Bounds of a report.
const (
	mostConditions = 48  // with tables and figures of their own
	mostCurves     = 12  // conditions compared in one drawing
	mostRows       = 200 // of a table
	mostOpen       = 16  // rows of a table that is not folded away
	mostWaterfalls = 12  // of single reconfigurations
	mostMaps       = 6   // heat maps
	mostPorts      = 4   // whose optical power is drawn
	mostBins       = 200 // of a series
)

// book is a run, with what more than one figure needs.
type book struct {
	r *runs.Run
	a *analysis.Analysis

	places    map[int]int // in r.Reconfigurations, by number
	shown     []analysis.Condition
	stageList []timeline.Stage // that were seen, in order of the first condition that has them
}

func newBook(r *runs.Run, a *analysis.Analysis) *book {
	b := &book{r: r, a: a, places: make(map[int]int, len(r.Reconfigurations))}
	for i, rec := range r.Reconfigurations {
		b.places[rec.Number] = i
	}
	b.shown = a.Conditions[:min(len(a.Conditions), mostConditions)]
	for _, c := range a.Conditions {
		for _, s := range c.Stages {
			if !slices.Contains(b.stageList, s.Stage) {
				b.stageList = append(b.stageList, s.Stage)
			}
		}
	}
	return b
}

// marksOf returns those of a reconfiguration that the statistics stand on, and what was expected.
func (b *book) marksOf(number int) ([]timeline.Mark, []timeline.Expectation) {
	return analysis.OneKind(b.r.MarksOf(number), b.r.ExpectedOf(number))
}

// reconfiguration returns that of a number, nil if there is none.
func (b *book) reconfiguration(number int) *runs.Reconfiguration {
	i, ok := b.places[number]
	if !ok {
		return nil
	}
	return &b.r.Reconfigurations[i]
}

// name is what a condition is called.
func name(c analysis.Condition) string {
	if c.Label == "" {
		return "all reconfigurations"
	}
	return c.Label
}

// conditionName is that of a number.
func (b *book) conditionName(number int) string {
	for _, c := range b.a.Conditions {
		if c.Number == number {
			return name(c)
		}
	}
	return ""
}

// stageOf returns what a condition has of a stage.
func stageOf(c analysis.Condition, stage timeline.Stage) (analysis.Stage, bool) {
	for _, s := range c.Stages {
		if s.Stage == stage {
			return s, true
		}
	}
	return analysis.Stage{}, false
}
