package analysis

import (
	"slices"

	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/timeline"
)

// monitors is the source of marks that the power monitors of switches give.
const monitors = "opm"

// OneKind leaves out what modules say of light where the monitors of switches say it
// better: the statistics of a stage should stand on one kind of reading. Where no monitor
// was read it returns its arguments, else copies.
func OneKind(marks []timeline.Mark, expected []timeline.Expectation) ([]timeline.Mark, []timeline.Expectation) {
	opm, module := false, false
	for i := range marks {
		opm = opm || marks[i].Source == monitors
		module = module || marks[i].Source == optics.Source
	}
	if !opm || !module {
		return marks, expected
	}
	modules := map[string]bool{}
	kept := slices.DeleteFunc(slices.Clone(marks), func(m timeline.Mark) bool {
		if m.Source == optics.Source {
			modules[m.Subject] = true
		}
		return m.Source == optics.Source
	})
	return kept, slices.DeleteFunc(slices.Clone(expected), func(e timeline.Expectation) bool {
		return (e.Stage == timeline.Dark || e.Stage == timeline.Light) && modules[e.Subject]
	})
}
