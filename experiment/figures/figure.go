package figures

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/analysis"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/report"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
)

// Figure is a preset.
type Figure struct {
	Name  string // "opus-9c"
	Title string // "Opus, figure 9c: one reconfiguration, layer by layer"
	About string // one sentence: what is measured and compared
	Paper string // what to cite

	// hardware is the experiment file for a lab of the user's. That for the emulated Opus
	// testbed has the name of the figure; both are in examples/experiments.
	hardware string
	compare  func(f *findings, p *report.Paper)
}

const (
	opus        = "Photonic Rails in ML Datacenters with Opus, arXiv 2602.12521"
	crossWiring = "Cross Wiring (earlier versions on arXiv are titled LumosCore, interleaved wiring), table 1"
)

var figures = []Figure{
	{
		Name:     "opus-9c",
		Title:    "Opus, figure 9c: one reconfiguration, layer by layer",
		About:    "When optical power, link and traffic come back, with auto-negotiation.",
		Paper:    opus + ", section 5.1, figure 9c",
		hardware: "toggle-hardware.yaml",
		compare:  opus9c,
	},
	{
		Name:     "opus-9d",
		Title:    "Opus, figure 9d: which layer the time goes to",
		About:    "Stages and their shares, with auto-negotiation and without.",
		Paper:    opus + ", section 5.1, figure 9d",
		hardware: "autoneg-hardware.yaml",
		compare:  opus9d,
	},
	{
		Name:     "autoneg",
		Title:    "Opus, section 5.1: 6 s against 3 s, and rapid repeats",
		About:    "From light to link with auto-negotiation and without, rested and in rapid succession.",
		Paper:    opus + ", section 5.1",
		hardware: "autoneg-hardware.yaml",
		compare:  autoneg,
	},
	{
		Name:     "delay-sweep",
		Title:    "Opus, figure 10: step time against switching time",
		About:    "Measured delays of switching times from 0 to 1000 ms, and the training step modelled from them.",
		Paper:    opus + ", figure 10, and the averages in the authors' archive (github.com/opusfabric/Opus)",
		hardware: "toggle-hardware.yaml",
		compare:  delaySweep,
	},
	{
		Name:     "crosswiring-table1",
		Title:    "Cross Wiring, table 1: step time against the period of reconfigurations",
		About:    "The measured outage when half of the circuits move, and the training step modelled from it.",
		Paper:    crossWiring,
		hardware: "halves-hardware.yaml",
		compare:  crossWiringTable1,
	},
}

// All returns the presets in the order in which they should be listed.
func All() []Figure { return slices.Clone(figures) }

// Find returns the preset of that name. The error names the one that was meant, or all.
func Find(name string) (Figure, error) {
	var known []string
	for _, f := range figures {
		if f.Name == name {
			return f, nil
		}
		known = append(known, f.Name)
	}
	return Figure{}, fmt.Errorf("there is no figure %.60q%s: known are %s",
		name, strictyaml.DidYouMean(name, known), strings.Join(known, ", "))
}

// Options of [Figure.File].
type Options struct {
	// Lab is the lab that will be measured; nil for the testbed that the program comes with.
	Lab *lab.File
	// Emulated is whether it is emulated.
	Emulated bool
	// Sequence are the configurations to go through, two or more, in place of those of the
	// preset.
	Sequence []string
}

// File returns the experiment of the preset, ready to be resolved against the lab; its Text
// is what belongs into the run's directory.
//
// A lab that does not have the configurations of the preset is measured between its own, if
// there are two. Otherwise the error says which there are to choose from.
func (f Figure) File(opt Options) (*plan.File, error) {
	name := f.Name + ".yaml"
	if !opt.Emulated {
		name = f.hardware
	}
	text, err := examples.Experiments.ReadFile("experiments/" + name)
	if err != nil {
		return nil, err
	}
	file, err := plan.Parse(name, text)
	if err != nil {
		return nil, err
	}
	sequence := opt.Sequence
	if len(sequence) == 0 && opt.Lab != nil {
		if sequence, err = configurations(file, opt.Lab); err != nil {
			return nil, fmt.Errorf("figure %s: %w", f.Name, err)
		}
	}
	if len(sequence) == 0 {
		return file, nil
	}
	if text, err = withSequence(text, sequence); err != nil {
		return nil, fmt.Errorf("figure %s: %w", f.Name, err)
	}
	return plan.Parse(name, text)
}

// configurations returns those of the lab that stand in for the sequence of the file; none
// if they need not.
func configurations(file *plan.File, l *lab.File) ([]string, error) {
	for _, name := range file.Sequence {
		_, own := file.Configurations[name]
		_, labs := l.Configurations[name]
		if own || labs {
			continue
		}
		have := l.ConfigNames()
		switch len(have) {
		case 0, 1:
			return nil, fmt.Errorf("the lab has no configuration %q, and not two others to move between: write two into the lab file", name)
		case 2:
			return have, nil
		}
		return nil, fmt.Errorf("the lab has no configuration %q: say which two to move between; it has %s", name, strings.Join(have, ", "))
	}
	return nil, nil
}

var (
	sequenceLine = regexp.MustCompile(`(?m)^sequence: .*$`)
	nameText     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`) // of a configuration
)

// withSequence returns the text of an experiment file with another sequence. Presets have
// theirs on one line.
func withSequence(text []byte, sequence []string) ([]byte, error) {
	if len(sequence) < 2 {
		return nil, errors.New("one configuration is not enough: a light path moves from one to another")
	}
	for _, name := range sequence {
		if !nameText.MatchString(name) {
			return nil, fmt.Errorf("%.60q is not the name of a configuration", name)
		}
	}
	line := `sequence: ["` + strings.Join(sequence, `", "`) + `"]`
	return sequenceLine.ReplaceAllLiteral(text, []byte(line)), nil
}

// Compare puts what was found beside what the paper says. a is the analysis of r. The run
// may be unfinished, and of any experiment: what it does not have is said to be missing.
func (f Figure) Compare(r *runs.Run, a *analysis.Analysis) *report.Paper {
	p := &report.Paper{Title: f.Title, Source: f.Paper}
	f.compare(newFindings(r, a), p)
	return p
}
