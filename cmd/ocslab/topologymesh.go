package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// errLight is that light does not come out where it should.
var errLight = fmt.Errorf("%w: the light does not come out as requested", ocs.ErrVerify)

// mostPicture is up to how many rows and columns a mesh is drawn.
const mostPicture = 16

// meshFlags are those of topology pccl mesh.
type meshFlags struct {
	size, layout          string
	pairs                 []string
	random                int
	seed                  uint64
	round, gpus           int
	collective, algorithm string
	opt                   mesh.Options
	budget                mesh.Budget
	stitch, waveguide     float64
	coupling, mzi, launch float64
	greedy                bool
}

func (a *app) topologyMeshCommand() *cobra.Command {
	var f meshFlags
	c := &cobra.Command{
		Use:   "mesh",
		Short: "Route circuits through a mesh of MZIs, set its states, and trace the light",
		Long: `Route circuits of light through the mesh of Mach-Zehnder interferometers (MZIs) of a
photonic interposer, no two of one wavelength on a waveguide: circuits that are given
(--pairs), random ones (--random), or those of a round of a collective (--round), whose
GPUs are spread evenly over the mesh. Nodes count from 0, row by row.

The answer is one of routed; impossible, with the nodes around which there are too few
waveguides, or since all routings were tried; and not found, with what was tried. The
paper's router looks at waveguides only. With --strict circuits turn only where the state
of an MZI lets them; without, it is said where the states cannot carry them.`,
		Example: "  ocslab topology pccl mesh --size 16x16 --pairs 0-2,0-8 --strict\n" +
			"  ocslab topology pccl mesh --size 256x256 --random 256 --seed 1\n" +
			"  ocslab topology pccl mesh --size 16x16 --round 0 --collective all-reduce --gpus 16 --algorithm rhd-halving --wavelengths 4",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.routeMesh(cmd, &f)
		},
	}
	f.add(c)
	return c
}

func (f *meshFlags) add(c *cobra.Command) {
	s := c.Flags()
	f.budget = mesh.DefaultBudget()
	s.StringVar(&f.size, "size", "16x16", "rows and columns of MZIs, `RxC`")
	s.StringSliceVar(&f.pairs, "pairs", nil, "circuits, each from a node to another: `0-2,0-8@3`; @3 has it on wavelength 3")
	s.IntVar(&f.random, "random", 0, "route `N` circuits between nodes drawn at random, none twice")
	s.Uint64Var(&f.seed, "seed", 1, "of --random")
	s.IntVar(&f.round, "round", 0, "route the circuits of round `I` of a collective, from 0")
	s.StringVar(&f.collective, "collective", "all-reduce", "of --round")
	s.StringVar(&f.algorithm, "algorithm", "rhd-halving", "of --round")
	s.IntVar(&f.gpus, "gpus", 0, "of --round: how many, spread evenly over the mesh")
	s.IntVar(&f.opt.Wavelengths, "wavelengths", 1, "of each waveguide")
	s.IntVar(&f.opt.Capacity, "capacity", 1, "circuits of one wavelength between two MZIs, each on a waveguide of its own")
	s.BoolVar(&f.opt.Strict, "strict", false, "use only what the states of the MZIs can do")
	s.StringVar(&f.layout, "layout", mesh.Layouts[0], "what the MZIs can do: `"+strings.Join(mesh.Layouts, "|")+"`")
	s.BoolVar(&f.greedy, "greedy", false, "route as the paper's algorithm 3 does, for comparison")
	s.Float64Var(&f.stitch, "stitch-db", float64(f.budget.Stitch), "loss where a waveguide crosses from a tile to the next")
	s.Float64Var(&f.waveguide, "waveguide-db", float64(f.budget.Waveguide), "loss of a centimetre")
	s.Float64Var(&f.coupling, "coupling-db", float64(f.budget.Coupling), "loss where light enters and where it leaves")
	s.Float64Var(&f.mzi, "mzi-db", float64(f.budget.MZI), "loss of an MZI that is crossed; the paper counts none")
	s.Float64Var(&f.launch, "launch-dbm", 0, "power at which the circuit that loses least is launched")
	s.IntVar(&f.budget.Tile, "tile", f.budget.Tile, "MZIs along the side of a tile")
	s.Float64Var(&f.budget.Pitch, "pitch-cm", f.budget.Pitch, "from MZI to MZI")
}

// requests returns the mesh and what shall be routed.
func (f *meshFlags) requests(cmd *cobra.Command) (*mesh.Mesh, []mesh.Request, error) {
	for _, loss := range []float64{f.stitch, f.waveguide, f.coupling, f.mzi, f.budget.Pitch} {
		if !(loss >= 0 && loss <= 1000) { // NaN is neither
			return nil, nil, usagef("losses and pitch are 0 to 1000, not %g", loss)
		}
	}
	if f.budget.Tile < 1 || !(math.Abs(f.launch) <= 1000) {
		return nil, nil, usagef("--tile is 1 or more, --launch-dbm -1000 to 1000")
	}
	f.budget.Stitch, f.budget.Waveguide, f.budget.Coupling = ocs.DB(f.stitch), ocs.DB(f.waveguide), ocs.DB(f.coupling)
	f.budget.MZI, f.budget.Launch = ocs.DB(f.mzi), ocs.DBm(f.launch)
	if f.opt.Wavelengths < 1 || f.opt.Capacity < 1 {
		return nil, nil, usagef("--wavelengths and --capacity are 1 or more")
	}
	given := 0
	for _, name := range []string{"pairs", "random", "round"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	if given != 1 {
		return nil, nil, usagef("say which circuits: one of --pairs, --random and --round")
	}
	m, err := mesh.ParseGrid(f.size)
	if err != nil {
		return nil, nil, usageError{err}
	}
	if f.opt.Layout, err = mesh.ParseLayout(f.layout); err != nil {
		return nil, nil, usageError{err}
	}
	var requests []mesh.Request
	switch {
	case cmd.Flags().Changed("round"):
		requests, err = f.ofRound(m)
	case cmd.Flags().Changed("random"):
		requests, err = m.RandomPairs(f.random, f.seed)
	default:
		for _, text := range f.pairs {
			r, one := mesh.ParseRequest(text)
			if one != nil {
				return nil, nil, usagef("--pairs: %w", one)
			}
			requests = append(requests, r)
		}
	}
	switch {
	case err != nil:
		return nil, nil, usageError{err}
	case len(requests) == 0:
		return nil, nil, usagef("no circuits to route: want one or more")
	}
	return m, requests, nil
}

// ofRound returns the circuits of a round of a collective. Its size does not matter: circuits are the same for any.
func (f *meshFlags) ofRound(m *mesh.Mesh) ([]mesh.Request, error) {
	collective, err := pccl.ParseCollective(f.collective)
	if err != nil {
		return nil, err
	}
	algorithm, err := pccl.ParseAlgorithm(f.algorithm)
	if err != nil {
		return nil, err
	}
	schedule, err := pccl.New(collective, algorithm, f.gpus, 1e6)
	if err != nil {
		return nil, err
	}
	if f.round < 0 || f.round >= len(schedule.Rounds) {
		return nil, fmt.Errorf("round %d: there are rounds 0 to %d of %s with %s", f.round, len(schedule.Rounds)-1, f.collective, f.algorithm)
	}
	place, err := m.Place(f.gpus)
	if err != nil {
		return nil, err
	}
	return mesh.Requests(schedule.Rounds[f.round], place)
}

// routeMesh is the command.
func (a *app) routeMesh(cmd *cobra.Command, f *meshFlags) error {
	m, requests, err := f.requests(cmd)
	if err != nil {
		return err
	}
	router := m.Route
	if f.greedy {
		if f.opt.Strict {
			return usagef("--greedy knows nothing of states: leave --strict out")
		}
		router = m.Greedy
	}
	r, err := router(cmd.Context(), requests, f.opt)
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case err != nil:
		return usageError{err}
	}
	var faults []mesh.Fault
	if r.Setting != nil {
		faults = m.Check(routedOf(r, requests), r.Setting, f.opt.Layout)
	}
	if a.set.JSON {
		a.meshJSON(m, f, r, faults)
	} else {
		a.printMesh(m, f, r, faults)
	}
	switch {
	case r.Verdict == mesh.Impossible:
		return fmt.Errorf("impossible: %s", impossibleText(m, r))
	case r.Verdict == mesh.NotFound:
		return fmt.Errorf("%d of %s routed; whether all can be is not known", r.Routed, natural.Count(len(requests), "circuit"))
	case f.opt.Strict && len(faults) > 0:
		return fmt.Errorf("%w: %s", errLight, faults[0])
	}
	return nil
}

// routedOf returns the requests that are routed.
func routedOf(r *mesh.Result, requests []mesh.Request) (routed []mesh.Request) {
	for i, c := range r.Circuits {
		if c.Nodes != nil {
			routed = append(routed, requests[i])
		}
	}
	return routed
}

// impossibleText says why.
func impossibleText(m *mesh.Mesh, r *mesh.Result) string {
	if r.Cut == nil {
		return fmt.Sprintf("all routings were tried (%d states), and none has room for all", r.Tried.States)
	}
	which := ""
	if r.Cut.Wavelength > 0 {
		which = fmt.Sprintf(" of wavelength %d", r.Cut.Wavelength)
	}
	return fmt.Sprintf("%s%s must cross the border of %s, whose %s %s only %d", natural.Count(len(r.Cut.Crossing), "circuit"), which,
		nodesText(m, r.Cut.Nodes), natural.Count(r.Cut.Edges, "waveguide"), verb(r.Cut.Edges, "carries", "carry"), r.Cut.Room)
}

func verb(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

// nodesText names a set of nodes: a rectangle by its corners.
func nodesText(m *mesh.Mesh, nodes []int) string {
	_, columns := m.Size()
	if len(nodes) == 1 {
		return fmt.Sprintf("node %d", nodes[0])
	}
	first, last := nodes[0], nodes[len(nodes)-1]
	if height, width := last/columns-first/columns+1, last%columns-first%columns+1; width > 0 && height*width == len(nodes) {
		return fmt.Sprintf("nodes %d to %d, a rectangle of %dx%d", first, last, height, width)
	}
	if len(nodes) > 20 {
		return fmt.Sprintf("%d nodes around %d", len(nodes), first)
	}
	return "nodes " + strings.Trim(fmt.Sprint(nodes), "[]")
}

// printMesh is the answer for people.
func (a *app) printMesh(m *mesh.Mesh, f *meshFlags, r *mesh.Result, faults []mesh.Fault) {
	rows, columns := m.Size()
	drawn := rows <= mostPicture && columns <= mostPicture
	losses := f.budget.Losses(m, r.Circuits)
	t := table{align: "<<>>>>>>"}
	t.row("", "CIRCUIT", "WAVELENGTH", "HOPS", "TILES", "LOSS dB", "LAUNCH dBm", "DELAY ps", "WAY")
	for i, c := range r.Circuits {
		name, l := "", losses[i]
		if drawn {
			name = mesh.Name(i)
		}
		ends := fmt.Sprintf("%d-%d", c.Src, c.Dst)
		if c.Nodes == nil {
			t.row(name, ends, "", "", "", "", "", "", "not routed")
			continue
		}
		t.row(name, ends, fmt.Sprint(c.Wavelength), fmt.Sprint(l.Hops), fmt.Sprint(l.Tiles), fmt.Sprintf("%.2f", float64(l.Loss)),
			fmt.Sprintf("%+.2f", float64(l.Launch)), fmt.Sprintf("%.1f", l.Delay*1e12), wayText(c.Nodes))
	}
	a.printf("%d of %s routed on %dx%d MZIs (%s)\n\n", r.Routed, natural.Count(len(r.Circuits), "circuit"), rows, columns, triedText(r))
	t.write(a.out, "")
	if drawn {
		a.printf("\n%s", m.Picture(r.Circuits, r.Setting))
		a.printf("\n@ an end, = bar, x cross, * third state, . not crossed; # waveguides of several circuits\n")
	}
	a.printStates(m, r, faults)
	if f.opt.Strict && r.Verdict != mesh.Routed && r.Cut == nil {
		a.printf("The states are in the way, perhaps: try --layout free, or more --wavelengths.\n")
	}
}

// printStates says what the MZIs have to be, and where the light goes then.
func (a *app) printStates(m *mesh.Mesh, r *mesh.Result, faults []mesh.Fault) {
	if r.Setting == nil {
		a.printf("\nNo states: with several waveguides between two of them a node is more than one MZI.\n")
		return
	}
	of := map[mesh.State][]string{}
	seen := map[int]bool{}
	for _, c := range r.Circuits {
		for i := 1; i < len(c.Nodes)-1; i++ {
			if n := c.Nodes[i]; !seen[n] {
				seen[n] = true
				of[r.Setting.States[n]] = append(of[r.Setting.States[n]], fmt.Sprint(n))
			}
		}
	}
	a.printf("\nStates: %d MZIs in bar, %d in cross, %d in a third; the other %d do not matter.\n",
		len(of[mesh.Bar]), len(of[mesh.Cross]), len(of[mesh.Third]), m.Nodes()-len(seen))
	if n := len(of[mesh.Cross]); 0 < n && n <= 40 {
		a.printf("%s", natural.Wrap("in cross: "+strings.Join(of[mesh.Cross], " "), 96, "  "))
		a.printf("\n")
	}
	if len(faults) == 0 {
		a.printf("Traced: the light of all %d comes out where it should.\n", r.Routed)
		return
	}
	concerned := map[int]bool{}
	for _, fault := range faults {
		for _, q := range fault.Circuits {
			concerned[q] = true
		}
	}
	a.printf("Traced: the light of only %d of %d comes out where it should. With --strict circuits are routed\nas the states let them.\n",
		r.Routed-len(concerned), r.Routed)
	const most = 10
	for i, c := range r.Conflicts {
		if i == most {
			a.printf("  and at %d nodes more\n", len(r.Conflicts)-most)
			break
		}
		wants, of := make([]string, len(c.Wants)), make([]string, len(c.Circuits))
		for k, w := range c.Wants {
			wants[k] = w.String()
		}
		for k, q := range c.Circuits {
			of[k] = fmt.Sprintf("%d-%d", r.Circuits[q].Src, r.Circuits[q].Dst)
		}
		a.printf("  node %d cannot be %s, as %s %s\n", c.Node, strings.Join(wants, " and "), strings.Join(of, ", "),
			verb(len(of), "wants", "want"))
	}
}

// wayText is the nodes of a path, the middle of a long one left out.
func wayText(nodes []int) string {
	text := make([]string, len(nodes))
	for i, n := range nodes {
		text[i] = fmt.Sprint(n)
	}
	const most = 8
	if len(text) > most {
		text = append(append(text[:most/2:most/2], "…"), text[len(text)-most/2+1:]...)
	}
	return strings.Join(text, "-")
}

func triedText(r *mesh.Result) string {
	text := natural.Count(r.Tried.Rounds, "round")
	if r.Tried.Restarts > 0 {
		text += ", " + natural.Count(r.Tried.Restarts, "restart")
	}
	if r.Tried.Cuts > 0 {
		text += ", " + natural.Count(r.Tried.Cuts, "cut") + " looked at"
	}
	if r.Tried.States > 0 {
		text += ", " + natural.Count(r.Tried.States, "state") + " of the exact search"
	}
	return text
}

// Lines of JSON.
type (
	meshLine struct {
		Kind      string       `json:"kind"` // "mesh"
		Rows      int          `json:"rows"`
		Columns   int          `json:"columns"`
		Verdict   mesh.Verdict `json:"verdict"`
		Requests  int          `json:"requests"`
		Routed    int          `json:"routed"`
		Exhausted bool         `json:"exhausted"`
		Cut       *meshCut     `json:"cut,omitempty"`
		Tried     meshTried    `json:"tried"`
		Conflicts int          `json:"conflicts"`
		Traced    bool         `json:"traced"` // there are states, whose light was followed
		Faults    []string     `json:"faults"`
	}
	meshCut struct {
		Nodes      []int `json:"nodes"`
		Wavelength int   `json:"wavelength,omitempty"`
		Crossing   []int `json:"crossing"`
		Waveguides int   `json:"waveguides"`
		Room       int   `json:"room"`
	}
	meshTried struct {
		Searches int `json:"searches"`
		Rounds   int `json:"rounds"`
		Restarts int `json:"restarts"`
		States   int `json:"states"`
		Cuts     int `json:"cuts"`
	}
	meshCircuitLine struct {
		Kind       string  `json:"kind"` // "mesh-circuit"
		Circuit    int     `json:"circuit"`
		Src        int     `json:"src"`
		Dst        int     `json:"dst"`
		Routed     bool    `json:"routed"`
		Wavelength int     `json:"wavelength,omitempty"`
		Nodes      []int   `json:"nodes"`
		Tiles      int     `json:"tiles"`
		LengthCM   float64 `json:"length_cm"`
		LossDB     float64 `json:"loss_db"`
		LaunchDBm  float64 `json:"launch_dbm"`
		DelayPS    float64 `json:"delay_ps"`
	}
	meshStateLine struct {
		Kind    string `json:"kind"` // "mesh-state"
		Node    int    `json:"node"`
		State   string `json:"state"`
		Pairing string `json:"pairing"`
	}
	meshConflictLine struct {
		Kind     string   `json:"kind"` // "mesh-conflict"
		Node     int      `json:"node"`
		Circuits []int    `json:"circuits"`
		Wants    []string `json:"wants"`
	}
)

// thousandths leaves out what is only rounding.
func thousandths(x float64) float64 { return math.Round(x*1000) / 1000 }

// meshJSON is the answer for scripts.
func (a *app) meshJSON(m *mesh.Mesh, f *meshFlags, r *mesh.Result, faults []mesh.Fault) {
	rows, columns := m.Size()
	line := meshLine{Kind: "mesh", Rows: rows, Columns: columns, Verdict: r.Verdict,
		Requests: len(r.Circuits), Routed: r.Routed, Exhausted: r.Exhausted, Tried: meshTried(r.Tried),
		Conflicts: len(r.Conflicts), Traced: r.Setting != nil, Faults: []string{}}
	if r.Cut != nil {
		c := r.Cut
		line.Cut = &meshCut{Nodes: c.Nodes, Wavelength: c.Wavelength, Crossing: c.Crossing, Waveguides: c.Edges, Room: c.Room}
	}
	for _, fault := range faults {
		line.Faults = append(line.Faults, fault.Text)
	}
	a.json(line)
	losses := f.budget.Losses(m, r.Circuits)
	for i, c := range r.Circuits {
		l := meshCircuitLine{Kind: "mesh-circuit", Circuit: i, Src: c.Src, Dst: c.Dst, Routed: c.Nodes != nil, Nodes: append([]int{}, c.Nodes...)}
		if l.Routed {
			l.Wavelength, l.Tiles, l.LengthCM = c.Wavelength, losses[i].Tiles, thousandths(losses[i].Length)
			l.LossDB, l.LaunchDBm = thousandths(float64(losses[i].Loss)), thousandths(float64(losses[i].Launch))
			l.DelayPS = thousandths(losses[i].Delay * 1e12)
		}
		a.json(l)
	}
	for _, c := range r.Conflicts {
		l := meshConflictLine{Kind: "mesh-conflict", Node: c.Node, Circuits: c.Circuits}
		for _, w := range c.Wants {
			l.Wants = append(l.Wants, w.String())
		}
		a.json(l)
	}
	if r.Setting == nil {
		return
	}
	crossed := map[int]bool{}
	for _, c := range r.Circuits {
		for i := 1; i < len(c.Nodes)-1; i++ {
			crossed[c.Nodes[i]] = true
		}
	}
	for n, s := range r.Setting.States {
		if crossed[n] {
			a.json(meshStateLine{Kind: "mesh-state", Node: n, State: s.String(), Pairing: f.opt.Layout(n/columns, n%columns)[s].String()})
		}
	}
}
