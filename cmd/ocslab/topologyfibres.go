package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

// fibresLine is how many fibres circuits between servers need.
type fibresLine struct {
	Kind           string `json:"kind"` // "fibres"
	Servers        string `json:"servers"`
	Links          int    `json:"links"`
	Circuits       int    `json:"circuits"`
	Directed       bool   `json:"directed"`
	Seed           uint64 `json:"seed"`
	Fibres         int    `json:"fibres"`       // of the fullest link
	TotalFibres    int    `json:"total_fibres"` // of all links
	Bound          int    `json:"bound"`
	BoundBy        string `json:"bound_by,omitempty"`
	BoundDistance  int    `json:"bound_distance"`
	BoundLength    int    `json:"bound_length"`
	Optimal        bool   `json:"optimal"`
	Rounds         int    `json:"rounds"`
	DurationNS     int64  `json:"duration_ns"`
	PaperFibres    int    `json:"paper_fibres,omitempty"`
	PortsOfFullest int    `json:"ports_of_fullest"` // the most ports that a server needs
}

// fibreLinkLine is what lies between two neighbours.
type fibreLinkLine struct {
	Kind   string `json:"kind"` // "fibre-link"
	From   int    `json:"from"`
	To     int    `json:"to"`
	Fibres int    `json:"fibres"`
}

// fibreCircuitLine is the way of a circuit.
type fibreCircuitLine struct {
	Kind    string `json:"kind"` // "fibre-circuit"
	Circuit int    `json:"circuit"`
	fibre.Request
	Path []int `json:"path"`
}

// fibrePatchLine is a line of the patch list.
type fibrePatchLine struct {
	Kind     string `json:"kind"` // "fibre-patch"
	From     int    `json:"from"`
	FromPort int    `json:"from_port"`
	To       int    `json:"to"`
	ToPort   int    `json:"to_port"`
	Number   int    `json:"number"`
	Circuit  int    `json:"circuit"`
	Hop      int    `json:"hop"`
}

// fibresFlags are those of the command.
type fibresFlags struct {
	servers, requests string
	circuits, rounds  int
	seed              uint64
	directed, patch   bool
	demo, list        bool // of the demonstration
	panels            panelFlags
}

func (a *app) topologyFibresCommand() *cobra.Command {
	var f fibresFlags
	c := &cobra.Command{
		Use:   "fibres",
		Short: "How many fibres have to lie between neighbouring servers, and which circuit is on which",
		Long: `Route circuits between servers that stand in a grid, over servers in between, so that the
two neighbours with the most fibres have as few as possible (PCCL, Algorithm 4); and
prove a bound below which no routing can get. The circuits are drawn at random, or read
from a file: a line "0 13" for each, source and destination, servers counted from 0 row by
row; or a document {"requests": [{"src": 0, "dst": 13}]}. --patch prints the patch list:
for each fibre the ports of the servers at its ends, and the circuit on it. Light goes from
FROM to TO.

Nothing is moved, unless --apply brings the patch list about on a lab whose switches are
patch panels: its hosts are the servers s0, s1 ..., whose NICs e0, w0, n0, s0 ... are the
fibres toward the neighbour in the east, west, north and south. All are read back, every
circuit is followed from server to server, and a run is recorded. With --mode update, what
else joins ports of servers is removed. --write-lab makes an emulated lab.`,
		Example: "  ocslab topology pccl fibres --servers 8x8 --circuits 512 --seed 1\n  ocslab topology pccl fibres --servers 2x3 --requests circuits.txt --patch\n" +
			"  ocslab topology pccl fibres --servers 4x4 --circuits 40 --write-lab room.yaml\n" +
			"  ocslab --lab room.yaml --emulated topology pccl fibres --servers 4x4 --circuits 40 --patch --apply",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.topologyFibres(cmd, f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.servers, "servers", "8x8", "`ROWSxCOLUMNS` of the grid")
	fl.IntVar(&f.circuits, "circuits", 512, "how many are drawn at random")
	fl.StringVar(&f.requests, "requests", "", "read the circuits from `FILE`; - is stdin")
	fl.Uint64Var(&f.seed, "seed", 1, "of the random circuits, and of the order in which they are tried")
	fl.IntVar(&f.rounds, "rounds", 0, "how often circuits are routed again, at most, while the bound is not met (default 4000, fewer for many circuits)")
	fl.BoolVar(&f.directed, "directed", false, "count the fibres of each direction on their own")
	fl.BoolVar(&f.patch, "patch", false, "print the patch list")
	f.panels.add(a, c)
	return c
}

func (a *app) topologyFibres(cmd *cobra.Command, f fibresFlags) error {
	g, err := fibre.ParseGrid(f.servers)
	if err != nil {
		return usagef("--servers: %w", err)
	}
	if err := f.panels.check(cmd); err != nil {
		return err
	}
	if f.requests != "" && cmd.Flags().Changed("circuits") {
		return usagef("--circuits draws circuits and --requests reads them: give one of the two")
	}
	var requests []fibre.Request
	if f.requests == "" {
		if requests, err = fibre.Random(g.Servers(), f.circuits, f.seed); err != nil {
			return usageError{err}
		}
	} else {
		text, err := readInput(cmd.InOrStdin(), f.requests)
		if err != nil {
			return usagef("--requests: %w", err)
		}
		if requests, err = fibre.ParseRequests(f.requests, text, g.Servers()); err != nil {
			return usageError{err}
		}
	}
	began := time.Now()
	r, err := fibre.Route(cmd.Context(), g, requests, fibre.Options{Directed: f.directed, Seed: f.seed, Rounds: f.rounds})
	took := time.Since(began)
	if err != nil {
		if cmd.Context().Err() == nil {
			err = usageError{err}
		}
		return err
	}
	patch := r.Patch()
	for _, check := range []func() error{r.Check, patch.Check} {
		if err := check(); err != nil {
			return fmt.Errorf("%w: %w", ocs.ErrVerify, err)
		}
	}
	if f.panels.writeLab != "" {
		return a.writePanels(f, r)
	}
	if a.set.JSON {
		a.jsonFibres(r, patch, f, took)
	} else {
		a.printFibres(r, patch, f, took)
	}
	if f.panels.apply {
		return a.applyFibres(cmd.Context(), f, patch)
	}
	return nil
}

// fibresLinks returns what lies between neighbours; if Directed, each direction.
func fibresLinks(r *fibre.Result) []fibreLinkLine {
	var all []fibreLinkLine
	loads := r.Loads()
	for k, l := range r.Graph.Links() {
		if !r.Options.Directed {
			all = append(all, fibreLinkLine{"fibre-link", l[0], l[1], loads[k]})
			continue
		}
		all = append(all, fibreLinkLine{"fibre-link", l[0], l[1], loads[2*k]}, fibreLinkLine{"fibre-link", l[1], l[0], loads[2*k+1]})
	}
	return all
}

func (a *app) jsonFibres(r *fibre.Result, patch *fibre.Patch, f fibresFlags, took time.Duration) {
	line := fibresLine{
		Kind: "fibres", Servers: f.servers, Links: len(r.Graph.Links()), Circuits: len(r.Requests), Directed: f.directed, Seed: f.seed,
		Fibres: r.Fibres, TotalFibres: len(patch.Fibres), Bound: r.Bound.Fibres, BoundBy: r.Bound.Name,
		BoundDistance: r.Bound.Distance, BoundLength: r.Bound.Length, Optimal: r.Optimal(), Rounds: r.Rounds, DurationNS: int64(took),
	}
	for _, n := range patch.Ports {
		line.PortsOfFullest = max(line.PortsOfFullest, n)
	}
	if f.requests == "" {
		line.PaperFibres, _ = fibre.Paper(r.Graph, len(r.Requests))
	}
	a.json(line)
	for _, l := range fibresLinks(r) {
		a.json(l)
	}
	for i, q := range r.Requests {
		a.json(fibreCircuitLine{"fibre-circuit", i, q, r.Paths[i]})
	}
	if !f.patch {
		return
	}
	for _, x := range patch.Fibres {
		a.json(fibrePatchLine{"fibre-patch", x.From, x.FromPort, x.To, x.ToPort, x.Number, x.Circuit, x.Hop})
	}
}

func (a *app) printFibres(r *fibre.Result, patch *fibre.Patch, f fibresFlags, took time.Duration) {
	per := "neighbours"
	if f.directed {
		per = "neighbours, each way"
	}
	a.printf("%s between %s (%s)\n", natural.Count(len(r.Requests), "circuit"), natural.Count(r.Graph.Servers(), "server"), r.Graph.Name())
	a.printf("fibres between the fullest %s: %d\n", per, r.Fibres)
	switch {
	case r.Optimal():
		a.printf("bound: %d, so no routing needs fewer\n", r.Bound.Fibres)
	default:
		a.printf("bound: %d; whether fewer than %d are enough is not known: try another --seed, or more --rounds\n", r.Bound.Fibres, r.Fibres)
	}
	if r.Bound.Lengths != nil {
		a.printf("  by %v\n", r.Bound)
	}
	if paper, known := fibre.Paper(r.Graph, len(r.Requests)); known && f.requests == "" && !f.directed {
		a.printf("the paper (section 4.2): %d for circuits that it drew, in less than 10 s\n", paper)
	}
	most := 0
	for _, n := range patch.Ports {
		most = max(most, n)
	}
	a.printf("fibres in all: %d on %s; at most %s at a server\n", len(patch.Fibres), natural.Count(len(r.Graph.Links()), "link"), natural.Count(most, "port"))
	a.printf("found in %s, %s\n", round(took), natural.Count(r.Rounds, "round"))
	if picture := fibresPicture(r, f.servers); picture != "" {
		fuller := ""
		if f.directed {
			fuller = ", in its fuller direction"
		}
		a.printf("\nfibres of each link%s:\n\n%s", fuller, picture)
	}
	if f.demo {
		return
	}
	if !f.patch {
		a.printf("\nwhich circuit is on which fibre, port by port: --patch; all of it for programs: --json\n")
		return
	}
	t := table{align: ">>>>>>>>"}
	t.row("FROM", "PORT", "TO", "PORT", "LINK", "FIBRE", "CIRCUIT", "HOP")
	for _, x := range patch.Fibres {
		low, high := min(x.From, x.To), max(x.From, x.To)
		t.row(strconv.Itoa(x.From), strconv.Itoa(x.FromPort), strconv.Itoa(x.To), strconv.Itoa(x.ToPort),
			fmt.Sprintf("%d-%d", low, high), strconv.Itoa(x.Number), strconv.Itoa(x.Circuit), strconv.Itoa(x.Hop))
	}
	a.printf("\n")
	t.write(a.out, "")
}

// fibresPicture draws the grid with the fibres of each link, if it is narrow enough for a terminal;
// if Directed, the fuller direction of each.
func fibresPicture(r *fibre.Result, size string) string {
	text, columnsText, _ := strings.Cut(size, "x")
	rows, _ := strconv.Atoi(text)
	columns, _ := strconv.Atoi(columnsText)
	width := len(strconv.Itoa(r.Fibres))
	if columns*(width+4) > 96 || rows > 40 {
		return ""
	}
	most := map[[2]int]int{}
	for _, l := range fibresLinks(r) {
		pair := [2]int{min(l.From, l.To), max(l.From, l.To)}
		most[pair] = max(most[pair], l.Fibres)
	}
	var b strings.Builder
	for y := range rows {
		line := "  "
		for x := range columns {
			s := y*columns + x
			line += "o"
			if x < columns-1 {
				line += fmt.Sprintf(" %*d ", width+1, most[[2]int{s, s + 1}])
			}
		}
		b.WriteString(line + "\n")
		if y == rows-1 {
			break
		}
		line = ""
		for x := range columns {
			s := y*columns + x
			line += fmt.Sprintf("%*d ", width+3, most[[2]int{s, s + columns}])
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
