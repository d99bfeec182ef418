package mesh_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/mesh"
)

// Ensure that what cannot be is refused, with what would work, and before anything large is made.
func TestArguments(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	m := grid(t, 3, 3)
	ask := func(opt mesh.Options, r ...mesh.Request) func() error {
		return func() error {
			_, err := m.Route(ctx, r, opt)
			_, other := m.Greedy(ctx, r, opt)
			if (err == nil) != (other == nil) {
				t.Errorf("Route says %v, Greedy %v", err, other)
			}
			return err
		}
	}
	free, err := mesh.Graph(3, [][2]int{{0, 1}, {2, 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, want string
		is         error
		do         func() error
	}{
		{"no rows", "0x4", pccl.ErrSize, func() error { _, err := mesh.Grid(0, 4); return err }},
		{"too large", "1048576 nodes", pccl.ErrSize, func() error { _, err := mesh.Grid(1<<20, 2); return err }},
		{"overflow", "1048576 nodes", pccl.ErrSize, func() error { _, err := mesh.Grid(1<<62, 4); return err }},
		{"a loop", "edge 1-1", pccl.ErrArgument, func() error { _, err := mesh.Graph(2, [][2]int{{1, 1}}); return err }},
		{"an edge twice", "capacity", pccl.ErrArgument, func() error { _, err := mesh.Graph(2, [][2]int{{0, 1}, {1, 0}}); return err }},
		{"an edge to nowhere", "0 to 1", pccl.ErrArgument, func() error { _, err := mesh.Graph(2, [][2]int{{0, 2}}); return err }},
		{"a node too far", "0 to 8", pccl.ErrArgument, ask(mesh.Options{}, mesh.Request{Src: 0, Dst: 9})},
		{"a negative node", "0 to 8", pccl.ErrArgument, ask(mesh.Options{}, mesh.Request{Src: -1, Dst: 1})},
		{"to itself", "ends where it begins", pccl.ErrArgument, ask(mesh.Options{}, mesh.Request{Src: 4, Dst: 4})},
		{"a wavelength too many", "want 1 to 2", pccl.ErrArgument, ask(mesh.Options{Wavelengths: 2}, mesh.Request{Src: 0, Dst: 4, Wavelength: 3})},
		{"wavelengths", "1 to 64", pccl.ErrSize, ask(mesh.Options{Wavelengths: 65})},
		{"capacity", "capacity -1", pccl.ErrArgument, ask(mesh.Options{Capacity: -1})},
		{"rounds", "-1 rounds", pccl.ErrArgument, ask(mesh.Options{Rounds: -1})},
		{"many circuits", "16384", pccl.ErrSize, ask(mesh.Options{}, make([]mesh.Request, mesh.MostRequests+1)...)},
		{"strict with capacity", "capacity 1", pccl.ErrArgument, ask(mesh.Options{Strict: true, Capacity: 2})},
		{"strict without a grid", "leave strict out", pccl.ErrArgument, func() error { _, err := free.Route(ctx, nil, mesh.Options{Strict: true}); return err }},
		{"random pairs", "0 to 4", pccl.ErrSize, func() error { _, err := m.RandomPairs(5, 1); return err }},
		{"GPUs", "10 GPUs", pccl.ErrSize, func() error { _, err := m.Place(10); return err }},
		{"GPUs in a row", "no rectangle", pccl.ErrSize, func() error { _, err := m.Place(7); return err }},
		{"a transfer to nobody", "0 to 1", pccl.ErrArgument, func() error {
			_, err := mesh.Requests(pccl.Round{Transfers: []pccl.Transfer{{Src: 0, Dst: 2}}}, []int{3, 4})
			return err
		}},
		{"layout", "alternate, uniform or free", pccl.ErrArgument, func() error { _, err := mesh.ParseLayout("x"); return err }},
		{"size", "16x16", pccl.ErrArgument, func() error { _, err := mesh.ParseGrid("16"); return err }},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := test.do(); !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %v with %q", err, test.is, test.want)
			}
		})
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.Route(cancelled, []mesh.Request{{Src: 0, Dst: 1}}, mesh.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Ensure that meshes of other shapes are routed: a ring has two ways, and a part that nothing leads to none.
func TestGraph(t *testing.T) {
	t.Parallel()
	ring, err := mesh.Graph(5, [][2]int{{0, 1}, {1, 2}, {3, 2}, {0, 3}})
	if err != nil {
		t.Fatal(err)
	}
	r := route(t, ring, pairs([2]int{0, 1}, [2]int{0, 1}), mesh.Options{})
	got := ways(r)
	slices.SortFunc(got, func(a, b []int) int { return len(a) - len(b) })
	if diff := cmp.Diff([][]int{{0, 1}, {0, 3, 2, 1}}, got); diff != "" || r.Verdict != mesh.Routed || r.Setting != nil {
		t.Errorf("%s, setting %v:\n%s", r.Verdict, r.Setting, diff)
	}
	r = route(t, ring, pairs([2]int{0, 4}), mesh.Options{})
	if r.Verdict != mesh.Impossible || r.Cut == nil || r.Cut.Edges != 0 {
		t.Errorf("an island: %+v", r)
	}
}

// Ensure that GPUs are spread evenly, and rounds become circuits between them.
func TestPlace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		rows, columns, gpus int
		want                []int
	}{
		{16, 16, 4, []int{68, 76, 196, 204}},
		{4, 4, 16, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
		{2, 8, 4, []int{9, 11, 13, 15}},
		{3, 3, 1, []int{4}},
	} {
		got, err := grid(t, test.rows, test.columns).Place(test.gpus)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%d on %dx%d: %v\n%s", test.gpus, test.rows, test.columns, err, diff)
		}
	}
	got, err := mesh.Requests(pccl.Round{Transfers: []pccl.Transfer{{Src: 0, Dst: 1}, {Src: 1, Dst: 0}}}, []int{68, 76})
	if diff := cmp.Diff([]mesh.Request{{Src: 68, Dst: 76}, {Src: 76, Dst: 68}}, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Ensure that a picture shows ways and states.
func TestPicture(t *testing.T) {
	t.Parallel()
	m := grid(t, 3, 3)
	r := route(t, m, pairs([2]int{0, 2}, [2]int{0, 8}), mesh.Options{Layout: mesh.Free})
	want := strings.TrimPrefix(`
@aaa=aaa@
b
xbbb=bbbx
        b
.   .   @
`, "\n")
	if diff := cmp.Diff(want, m.Picture(r.Circuits, r.Setting)); diff != "" {
		t.Error(diff)
	}
}

func TestParseRequest(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]mesh.Request{"0-2": {Dst: 2}, "7-0@3": {Src: 7, Wavelength: 3}} {
		if got, err := mesh.ParseRequest(text); err != nil || got != want {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "0-", "-1-2", "0-2@", "0-2@0", "0-2@x", "0-99999999999", "0-2@1@1", "0-1-2", "+1-2"} {
		if got, err := mesh.ParseRequest(text); !errors.Is(err, pccl.ErrArgument) {
			t.Errorf("%q: %v, %v; want an error", text, got, err)
		}
	}
}

// FuzzParse ensures that whatever is read is written as it can be read again, and that sizes are bounded.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"0-2", "7-0@3", "16x16", "1x1048577", "-1x-1", "0-2@"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := mesh.ParseRequest(text); err == nil {
			if again, err := mesh.ParseRequest(r.String()); err != nil || again != r {
				t.Errorf("%q is %v, which is read as %v, %v", text, r, again, err)
			}
		}
		if len(text) > 7 {
			return // a mesh of a million nodes takes its time
		}
		if m, err := mesh.ParseGrid(text); err == nil && (m.Nodes() < 1 || m.Nodes() > mesh.MostNodes) {
			t.Errorf("%q has %d nodes", text, m.Nodes())
		}
	})
}
