package mesh_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// verify checks a result against its requests with nothing of the package but Grid's numbering of nodes.
func verify(t rapid.TB, m *mesh.Mesh, requests []mesh.Request, opt mesh.Options, r *mesh.Result) {
	t.Helper()
	_, columns := m.Size()
	type way struct{ a, b, wavelength int }
	use, routed := map[way]int{}, 0
	for i, c := range r.Circuits {
		if c.Src != requests[i].Src || c.Dst != requests[i].Dst {
			t.Fatalf("circuit %d is %v, want %v", i, c.Request, requests[i])
		}
		if c.Nodes == nil {
			continue
		}
		routed++
		if c.Nodes[0] != c.Src || c.Nodes[len(c.Nodes)-1] != c.Dst || c.Wavelength < 1 || c.Wavelength > max(opt.Wavelengths, 1) ||
			requests[i].Wavelength > 0 && c.Wavelength != requests[i].Wavelength {
			t.Fatalf("circuit %v on wavelength %d goes %v", requests[i], c.Wavelength, c.Nodes)
		}
		for k := 1; k < len(c.Nodes); k++ {
			a, b := min(c.Nodes[k-1], c.Nodes[k]), max(c.Nodes[k-1], c.Nodes[k])
			if b-a != columns && (b-a != 1 || b%columns == 0) {
				t.Fatalf("circuit %v goes from node %d to %d", requests[i], c.Nodes[k-1], c.Nodes[k])
			}
			w := way{a, b, c.Wavelength}
			if use[w]++; use[w] > max(opt.Capacity, 1) {
				t.Fatalf("waveguide %d-%d has %d circuits of wavelength %d", a, b, use[w], c.Wavelength)
			}
		}
	}
	if r.Routed != routed || (r.Verdict == mesh.Routed) != (routed == len(requests)) {
		t.Fatalf("%s with %d of %d routed, and it says %d", r.Verdict, routed, len(requests), r.Routed)
	}
	if (r.Verdict == mesh.Impossible) != (r.Cut != nil || r.Exhausted) {
		t.Fatalf("%s with cut %+v, exhausted %v", r.Verdict, r.Cut, r.Exhausted)
	}
	if r.Cut != nil {
		verifyCut(t, m, requests, opt, r.Cut)
	}
}

func verifyCut(t rapid.TB, m *mesh.Mesh, requests []mesh.Request, opt mesh.Options, cut *mesh.Cut) {
	t.Helper()
	rows, columns := m.Size()
	in := func(n int) bool { return slices.Contains(cut.Nodes, n) }
	edges, crossing := 0, 0
	for n := range rows * columns {
		if n%columns < columns-1 && in(n) != in(n+1) {
			edges++
		}
		if n/columns < rows-1 && in(n) != in(n+columns) {
			edges++
		}
	}
	for _, r := range requests {
		if (cut.Wavelength == 0 || cut.Wavelength == r.Wavelength) && in(r.Src) != in(r.Dst) {
			crossing++
		}
	}
	room := edges * max(opt.Capacity, 1)
	if cut.Wavelength == 0 {
		room *= max(opt.Wavelengths, 1)
	}
	if cut.Edges != edges || cut.Room != room || len(cut.Crossing) != crossing || crossing <= room {
		t.Fatalf("cut %+v: it has %d waveguides with room for %d, and %d cross", cut, edges, room, crossing)
	}
}

// drawn is a problem on a small grid.
func drawn(t *rapid.T, side, most int) (m *mesh.Mesh, requests []mesh.Request) {
	rows, columns := rapid.IntRange(1, side).Draw(t, "rows"), rapid.IntRange(2, side).Draw(t, "columns")
	m, err := mesh.Grid(rows, columns)
	if err != nil {
		t.Fatal(err)
	}
	for range rapid.IntRange(0, most).Draw(t, "requests") {
		src := rapid.IntRange(0, rows*columns-1).Draw(t, "src")
		dst := rapid.IntRange(0, rows*columns-2).Draw(t, "dst")
		if dst >= src {
			dst++
		}
		requests = append(requests, mesh.Request{Src: src, Dst: dst})
	}
	return m, requests
}

// brute reports whether all requests have ways that share no edge, by trying all. A turn is a pairing of the sides
// that light comes in and goes out by: straight, falling, rising.
func brute(rows, columns int, requests []mesh.Request, layout mesh.Layout) bool {
	used := map[[2]int]bool{}
	step := [4][2]int{{-1, 0}, {0, 1}, {1, 0}, {0, -1}} // north, east, south, west
	turn := func(row, column, from, to int) bool {      // directions of travel
		if layout == nil {
			return true
		}
		p := mesh.Straight
		switch (to - from + 4) % 4 {
		case 1, 3: // eastwards and then south is falling; so is any turn between these, and between west and north
			p = mesh.Rising
			if slices.Contains([][2]int{{1, 2}, {2, 1}, {3, 0}, {0, 3}}, [2]int{from, to}) {
				p = mesh.Falling
			}
		case 2:
			return false
		}
		e := layout(row, column)
		return slices.Contains(e[:], p)
	}
	var from func(k, node, heading int) bool
	from = func(k, node, heading int) bool {
		if k == len(requests) {
			return true
		}
		if node == requests[k].Dst {
			return k+1 == len(requests) || from(k+1, requests[k+1].Src, -1)
		}
		row, column := node/columns, node%columns
		for d, s := range step {
			r, c := row+s[0], column+s[1]
			to := r*columns + c
			edge := [2]int{min(node, to), max(node, to)}
			if r < 0 || r >= rows || c < 0 || c >= columns || used[edge] || heading >= 0 && !turn(row, column, heading, d) {
				continue
			}
			used[edge] = true
			ok := from(k, to, d)
			used[edge] = false
			if ok {
				return true
			}
		}
		return false
	}
	return len(requests) == 0 || from(0, requests[0].Src, -1)
}

// Ensure that the verdict is that of trying everything, with states and without, and never left open; and that
// what is routed by the states does come out.
func TestRoute_BruteForce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, requests := drawn(t, 3, 4)
		rows, columns := m.Size()
		// Few rounds leave work to the exact search.
		opt := mesh.Options{Rounds: rapid.SampledFrom([]int{1, 0}).Draw(t, "rounds"), Strict: rapid.Bool().Draw(t, "strict")}
		var layout mesh.Layout
		if opt.Strict {
			layout = rapid.SampledFrom([]mesh.Layout{mesh.Alternate, mesh.Uniform, mesh.Free}).Draw(t, "layout")
			opt.Layout = layout
		}
		r, err := m.Route(context.Background(), requests, opt)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, m, requests, opt, r)
		want := mesh.Impossible
		if brute(rows, columns, requests, layout) {
			want = mesh.Routed
		}
		if r.Verdict != want {
			t.Fatalf("%s, want %s", r.Verdict, want)
		}
		if opt.Strict && r.Verdict == mesh.Routed {
			if faults := m.Check(requests, r.Setting, opt.Layout); len(faults) > 0 || len(r.Conflicts) > 0 {
				t.Fatalf("faults %v, conflicts %v", faults, r.Conflicts)
			}
		}
	})
}

// Ensure that with several wavelengths, of which some are prescribed, states agree for all of them, and that what is
// routed, be it all or not, comes out.
func TestRoute_Wavelengths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, requests := drawn(t, 6, 12)
		opt := mesh.Options{Rounds: 20, States: 2_000}
		opt.Wavelengths, opt.Strict = rapid.IntRange(1, 3).Draw(t, "wavelengths"), rapid.Bool().Draw(t, "strict")
		if !opt.Strict {
			opt.Capacity = rapid.IntRange(1, 2).Draw(t, "capacity")
		}
		for i := range requests {
			requests[i].Wavelength = rapid.IntRange(0, opt.Wavelengths).Draw(t, "wavelength")
		}
		r, err := m.Route(context.Background(), requests, opt)
		if err != nil {
			t.Fatal(err)
		}
		verify(t, m, requests, opt, r)
		again, err := m.Route(context.Background(), requests, opt)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, again); diff != "" {
			t.Fatalf("another answer the second time:\n%s", diff)
		}
		if !opt.Strict {
			return
		}
		var routed []mesh.Request
		for i, c := range r.Circuits {
			if c.Nodes != nil {
				routed = append(routed, requests[i])
			}
		}
		if faults := m.Check(routed, r.Setting, nil); len(faults) > 0 || len(r.Conflicts) > 0 {
			t.Fatalf("faults %v, conflicts %v", faults, r.Conflicts)
		}
	})
}

// Ensure that the checker sees any single thing that is wrong: a node that circuits cross in another state, a tap
// that is off, one too many requests.
func TestCheck_Mutations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, requests := drawn(t, 5, 6)
		r, err := m.Route(context.Background(), requests, mesh.Options{Strict: true, Rounds: 60, States: 2_000})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict != mesh.Routed || len(requests) == 0 {
			return
		}
		var crossed []int
		for _, c := range r.Circuits {
			crossed = append(crossed, c.Nodes[1:len(c.Nodes)-1]...)
		}
		set := mesh.Setting{States: slices.Clone(r.Setting.States), Taps: slices.Clone(r.Setting.Taps)}
		tap := rapid.IntRange(0, len(set.Taps)-1).Draw(t, "tap")
		switch what := rapid.IntRange(0, 2).Draw(t, "what"); {
		case what == 0 && len(crossed) > 0:
			n := rapid.SampledFrom(crossed).Draw(t, "node")
			set.States[n] = mesh.Cross - set.States[n]
		case what == 1:
			set.Taps = slices.Delete(set.Taps, tap, tap+1)
		default:
			requests = append(requests, requests[0])
		}
		if faults := m.Check(requests, &set, nil); len(faults) == 0 {
			t.Fatalf("nothing is seen of it: %+v", set)
		}
	})
}

// Ensure that the checker names the node and the circuits: light that turns where it cannot, and two wavelengths that
// want different states of an MZI.
func TestProgram_Conflicts(t *testing.T) {
	t.Parallel()
	m := grid(t, 3, 3)
	// From 1 down to 7 and from 3 over to 5 cross straight; from 3 to 1 by way of 4 turns, on another wavelength.
	circuits := []mesh.Circuit{
		{Request: mesh.Request{Src: 1, Dst: 7, Wavelength: 1}, Nodes: []int{1, 4, 7}},
		{Request: mesh.Request{Src: 3, Dst: 5, Wavelength: 1}, Nodes: []int{3, 4, 5}},
		{Request: mesh.Request{Src: 3, Dst: 1, Wavelength: 2}, Nodes: []int{3, 4, 1}},
		{Request: mesh.Request{Src: 0, Dst: 4, Wavelength: 2}, Nodes: []int{0, 1, 4}},
	}
	set, conflicts := m.Program(circuits, nil)
	want := []mesh.Conflict{
		{Node: 1, Circuits: []int{3}, Wants: []mesh.Pairing{mesh.Falling}},
		{Node: 4, Circuits: []int{0, 1, 2}, Wants: []mesh.Pairing{mesh.Straight, mesh.Rising}},
	}
	if diff := cmp.Diff(want, conflicts); diff != "" {
		t.Errorf("conflicts:\n%s", diff)
	}
	var texts []string
	for _, f := range m.Check([]mesh.Request{{Src: 1, Dst: 7}, {Src: 3, Dst: 5}, {Src: 3, Dst: 1}, {Src: 0, Dst: 4}}, set, nil) {
		texts = append(texts, f.Text)
	}
	// What passes node 1 straight meets nobody who takes it: it leaves the mesh to the right of node 2.
	if diff := cmp.Diff([]string{
		"light of wavelength 2 from node 3 is lost: it leaves the mesh at node 5, east",
		"light of wavelength 2 from node 0 is lost: it leaves the mesh at node 2, east",
		"circuit 3-1: no light of its own comes out at node 1",
		"circuit 0-4: no light of its own comes out at node 4",
	}, texts); diff != "" {
		t.Errorf("faults:\n%s", diff)
	}
}

// Ensure that losses are the sum of what the paper lists, that all circuits arrive with the same power, and that
// light takes 0.49 µs for 100 m.
func TestBudget_Losses(t *testing.T) {
	t.Parallel()
	m := grid(t, 16, 64)
	circuits := []mesh.Circuit{{}, {}, {}}
	for n := range 34 { // over two borders of tiles
		circuits[0].Nodes = append(circuits[0].Nodes, n)
	}
	circuits[2].Nodes = []int{1023, 1022}
	got := mesh.DefaultBudget().Losses(m, circuits)
	for i, want := range []mesh.Loss{
		{Hops: 33, Tiles: 2, Length: 5.28, Loss: 0.25*2 + 0.4*5.28 + 0.5*2, Launch: 0.25*2 + 0.4*32*0.16, Delay: 5.28 * 49e-12},
		{},
		{Hops: 1, Length: 0.16, Loss: 0.4*0.16 + 0.5*2, Delay: 0.16 * 49e-12},
	} {
		g := got[i]
		for _, pair := range [][2]float64{
			{float64(g.Loss), float64(want.Loss)}, {float64(g.Launch), float64(want.Launch)}, {g.Length, want.Length}, {g.Delay * 1e12, want.Delay * 1e12},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-9 {
				t.Errorf("circuit %d: %+v, want %+v", i, g, want)
			}
		}
		if g.Hops != want.Hops || g.Tiles != want.Tiles {
			t.Errorf("circuit %d: %+v, want %+v", i, g, want)
		}
	}
	arrive := func(l mesh.Loss) float64 { return float64(l.Launch) - float64(l.Loss) }
	if d := arrive(got[0]) - arrive(got[2]); math.Abs(d) > 1e-9 {
		t.Errorf("the powers at the far ends differ by %g dB", d)
	}
	far := mesh.Budget{Pitch: 1e4, NSperMetre: mesh.DefaultBudget().NSperMetre}.Losses(m, circuits[2:])[0].Delay
	if math.Abs(far-0.49e-6) > 1e-12 {
		t.Errorf("100 m take %g s, want 0.49 µs", far)
	}
}
