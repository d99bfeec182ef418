package report

import (
	"context"
	"fmt"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Figure is a [Study] that can be asked for by name. It computes, or measures on emulated labs of its own.
type Figure struct {
	Name    string // "pccl-table"
	Title   string
	About   string // one sentence
	Takes   string // about how long, for people: "4 minutes"
	Paper   string // what to cite
	Hosts   bool   // it makes hosts with network interfaces, for which an ordinary user needs a namespace of users
	Replays bool   // it replays faults, of FigureOptions.Trace
	Plays   bool   // it plays a training job, which FigureOptions.Compress makes shorter
	Make    func(context.Context, FigureOptions) (*Study, error)
}

// FigureOptions say how a figure is made.
type FigureOptions struct {
	Repeats  int          // of what is measured or drawn; 0 is the figure's own
	Trace    string       // of a figure that replays faults: the file of them; "" draws them
	Compress float64      // makes computation and operations so many times shorter; 0 is the figure's own
	Version  string       // of the program
	Progress func(string) // is told what is being done, in a few words; may be nil
}

// FindFigure returns the one of that name. The error names the one that was meant, or all.
func FindFigure(all []Figure, name string) (Figure, error) {
	var names []string
	for _, f := range all {
		if f.Name == name {
			return f, nil
		}
		names = append(names, f.Name)
	}
	return Figure{}, UnknownFigure(name, names)
}

// UnknownFigure is the error for a name that is none of these.
func UnknownFigure(name string, names []string) error {
	return fmt.Errorf("there is no figure %q%s: want %s", name, strictyaml.DidYouMean(name, names), strings.Join(names, ", "))
}

// Run makes the figure. It takes about as long as Takes says.
func (f Figure) Run(ctx context.Context, opt FigureOptions) (*Study, error) {
	if opt.Progress == nil {
		opt.Progress = func(string) {}
	}
	s, err := f.Make(ctx, opt)
	if s != nil {
		s.Name, s.Title, s.About, s.Version, s.Paper.Source = f.Name, f.Title, f.About, opt.Version, f.Paper
	}
	return s, err
}
