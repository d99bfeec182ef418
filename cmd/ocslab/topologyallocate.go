package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/topology/railx"
	"github.com/ocslab/ocslab/topology/railx/alloc"
)

// topologyAllocateCommand finds the largest grid around faults.
func (a *app) topologyAllocateCommand() *cobra.Command {
	var nodes, file, want string
	var faults, jobs []string
	var rate float64
	var samples int
	var seed uint64
	c := &cobra.Command{
		Use:   "allocate",
		Short: "The largest grid that avoids dead nodes, and how large that is on average",
		Long: `Find which rows and columns to give up so that no dead node is left and the most nodes
are: exact, see RailX, appendix A.5. Dead nodes are named with --dead or in a file of
lines COLUMN,ROW, or drawn: with --rate each node is dead with that probability, and
the mean of samples is printed, as in the paper's figure 17. Nodes that are healthy but in a
row or column that is given up are not lost: they make further, smaller grids,
which --job places jobs on. More dead nodes than rows are no error: there is a grid as long
as one node works.`,
		Example: "  ocslab topology railx allocate --nodes 8 --dead 0,0 --dead 0,1 --dead 1,0\n  ocslab topology railx allocate --nodes 64 --rate 0.001",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			columns, rows, err := parseGrid(nodes)
			if err != nil {
				return usageError{err}
			}
			if cmd.Flags().Changed("rate") || cmd.Flags().Changed("samples") {
				switch {
				case len(faults) > 0 || file != "":
					return usagef("--rate draws dead nodes, --dead and --faults name them: one or the other")
				case len(jobs) > 0:
					return usagef("--job goes with --dead or --faults: with --rate the mean of the largest is printed")
				case want != "":
					return usagef("--want goes with --dead or --faults: with --rate the mean of the largest is printed")
				}
				return a.sampleFaults(alloc.Sampling{Columns: columns, Rows: rows, Rate: rate, Samples: samples, Seed: seed})
			}
			dead, err := readFaults(cmd.InOrStdin(), faults, file)
			if err != nil {
				return usageError{err}
			}
			return a.allocate(columns, rows, dead, want, jobs)
		},
	}
	s := c.Flags()
	s.StringVar(&nodes, "nodes", "", "nodes in each row and column: `N`, or columns x rows, such as 64x32")
	s.StringArrayVar(&faults, "dead", nil, "`COLUMN,ROW` of a dead node")
	s.StringVar(&file, "faults", "", "`FILE` of dead nodes, a line each; - is stdin")
	s.StringVar(&want, "want", "", "a grid of at least `CxR` nodes, with the fewest rows given up")
	s.StringArrayVar(&jobs, "job", nil, "a job of `CxR` nodes: place it, and those before it, on grids that share no node")
	s.Float64Var(&rate, "rate", 0, "draw dead nodes: the `PROBABILITY` of each, such as 0.001")
	s.IntVar(&samples, "samples", 100, "how often to draw")
	s.Uint64Var(&seed, "seed", 1, "of the draws")
	return c
}

// readFaults reads nodes from flags and from a file of lines, of which empty ones and comments after # are left out.
func readFaults(stdin io.Reader, texts []string, file string) (dead []railx.Node, err error) {
	for _, text := range texts {
		n, err := parseNode("dead", text)
		if err != nil {
			return nil, err
		}
		dead = append(dead, n)
	}
	if file == "" {
		return dead, nil
	}
	data, err := readInput(stdin, file)
	if err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	for i, line := range strings.Split(string(data), "\n") {
		text, _, _ := strings.Cut(line, "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		x, err := parseNode("faults", text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, i+1, err)
		}
		dead = append(dead, x)
	}
	return dead, nil
}

// readInput reads a file that people write; - is stdin.
func readInput(stdin io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return strictyaml.Read(stdin, "stdin")
	}
	return strictyaml.ReadFile(file)
}

// allocationLine is the largest grid around faults.
type allocationLine struct {
	Kind    string  `json:"kind"` // "railx-allocation"
	Columns int     `json:"columns"`
	Rows    int     `json:"rows"`
	Nodes   int     `json:"nodes"`
	Portion float64 `json:"portion"` // of all nodes
	// WithoutColumns and WithoutRows are given up.
	WithoutColumns []int `json:"without_columns"`
	WithoutRows    []int `json:"without_rows"`
	Exact          bool  `json:"exact"` // no other has more nodes
	Bound          int   `json:"bound"` // no other has more than this
	Faults         int   `json:"faults"`
	// Rectangles are grids that together use every healthy node.
	Rectangles []rectangleLine `json:"rectangles"`
	// Jobs are where those of --job are, in order, and Free is what they leave.
	Jobs   []rectangleLine `json:"jobs,omitempty"`
	Free   []rectangleLine `json:"free,omitempty"`
	TookNS int64           `json:"took_ns"`
}

type rectangleLine struct {
	Columns []int `json:"columns"`
	Rows    []int `json:"rows"`
}

func rectangleLines(rectangles []railx.Rectangle) (lines []rectangleLine) {
	for _, r := range rectangles {
		lines = append(lines, rectangleLine(r))
	}
	return lines
}

// placeJobs puts one job after another in the first rectangle that is large enough, and returns where they are and
// what is left.
func placeJobs(free []railx.Rectangle, texts []string) (placed, left []railx.Rectangle, err error) {
	for _, text := range texts {
		c, r, err := parseGrid(text)
		if err != nil {
			return nil, nil, usagef("--job %.40q: want columns and rows, such as 4x2", text)
		}
		job, rest, ok := railx.Fit(free, c, r)
		if !ok {
			if len(free) == 0 {
				return nil, nil, fmt.Errorf("--job %s: no node is free", text)
			}
			most := slices.MaxFunc(free, func(p, q railx.Rectangle) int { return p.Nodes() - q.Nodes() })
			return nil, nil, fmt.Errorf("--job %s: no grid that is free has so many columns and rows: the largest is %dx%d", text,
				len(most.Columns), len(most.Rows))
		}
		placed, free = append(placed, job), rest
	}
	return placed, free, nil
}

func (a *app) allocate(columns, rows int, dead []railx.Node, want string, jobs []string) error {
	began := time.Now()
	var x alloc.Allocation
	var err error
	if want != "" {
		c, r, err := parseGrid(want)
		if err != nil {
			return usagef("--want %.40q: want columns and rows, such as 60x62", want)
		}
		if x, err = alloc.Fit(columns, rows, dead, c, r); err != nil {
			return err
		}
	} else if x, err = alloc.Largest(columns, rows, dead); err != nil {
		return usageError{err}
	}
	took := time.Since(began)
	rectangles, err := railx.Rectangles(railx.Grid{Columns: columns, Rows: rows, Rails: 1}, dead...)
	if err != nil {
		return usageError{err}
	}
	placed, free, err := placeJobs(rectangles, jobs)
	if err != nil {
		return err
	}
	if len(jobs) == 0 {
		free = nil
	}
	if a.set.JSON {
		c, r := x.Size()
		l := allocationLine{Kind: "railx-allocation", Columns: c, Rows: r, Nodes: x.Nodes(), Portion: x.Portion(),
			WithoutColumns: listed(x.Columns), WithoutRows: listed(x.Rows), Exact: x.Exact, Bound: x.Bound, Faults: len(dead), TookNS: took.Nanoseconds()}
		l.Rectangles, l.Jobs, l.Free = rectangleLines(rectangles), rectangleLines(placed), rectangleLines(free)
		a.json(l)
		return nil
	}
	a.printf("%v\n", x)
	if x.Exact {
		a.printf("no choice of rows and columns leaves more (found in %v)\n", took.Round(time.Microsecond))
	} else {
		a.printf("found in %v\n", took.Round(time.Microsecond))
	}
	total := 0
	for _, q := range rectangles {
		total += q.Nodes()
	}
	a.printf("all %d healthy nodes are used by %s:\n", total, natural.Count(len(rectangles), "grid"))
	for i, q := range rectangles {
		if i == 10 {
			a.printf("  and %d more (--json has all)\n", len(rectangles)-i)
			break
		}
		a.printf("  %3d x %-3d  columns %s, rows %s\n", len(q.Columns), len(q.Rows), ranges(q.Columns), ranges(q.Rows))
	}
	if len(jobs) == 0 {
		return nil
	}
	left := 0
	for _, q := range free {
		left += q.Nodes()
	}
	a.printf("jobs, which leave %s:\n", natural.Count(left, "node"))
	for _, q := range placed {
		a.printf("  %3d x %-3d  columns %s, rows %s\n", len(q.Columns), len(q.Rows), ranges(q.Columns), ranges(q.Rows))
	}
	return nil
}

// listed is never nil, for JSON.
func listed(xs []int) []int { return append([]int{}, xs...) }

// ranges is "0-3,5" of numbers in rising order.
func ranges(xs []int) string {
	var b strings.Builder
	for i := 0; i < len(xs); {
		n := 1
		for i+n < len(xs) && xs[i+n] == xs[i]+n {
			n++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, xs[i])
		if n > 1 {
			fmt.Fprintf(&b, "-%d", xs[i+n-1])
		}
		i += n
	}
	return b.String()
}

// availabilityLine is what samples came to.
type availabilityLine struct {
	Kind    string  `json:"kind"` // "railx-availability"
	Columns int     `json:"columns"`
	Rows    int     `json:"rows"`
	Rate    float64 `json:"rate"`
	Samples int     `json:"samples"`
	Seed    uint64  `json:"seed"`
	Faults  float64 `json:"mean_faults"`
	Mean    float64 `json:"mean"` // portion of all nodes
	Least   float64 `json:"least"`
	Most    float64 `json:"most"`
	Inexact int     `json:"inexact"` // samples not known to be the best
}

func (a *app) sampleFaults(s alloc.Sampling) error {
	v, err := s.Run()
	if err != nil {
		return usageError{err}
	}
	if a.set.JSON {
		a.json(availabilityLine{"railx-availability", s.Columns, s.Rows, s.Rate, v.Samples, s.Seed, v.Faults, v.Mean, v.Least, v.Most, v.Inexact})
		return nil
	}
	a.printf("%d x %d nodes, each dead with probability %g: %.1f dead on average\n", s.Columns, s.Rows, s.Rate, v.Faults)
	a.printf("the largest grid has %.1f %% of all nodes on average (%.1f to %.1f %% in %s, seed %d)\n",
		100*v.Mean, 100*v.Least, 100*v.Most, natural.Count(v.Samples, "sample"), s.Seed)
	if v.Inexact > 0 {
		a.printf("in %d of them a larger one is not ruled out\n", v.Inexact)
	}
	return nil
}
