package hbd

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology/infinitehbd"
)

// lineOf returns a line of nodes 1 to n of 4 GPUs.
func lineOf(t testing.TB, n, hops int) infinitehbd.Line {
	t.Helper()
	layout, err := infinitehbd.NewLayout(4, hops)
	if err != nil {
		t.Fatal(err)
	}
	line := infinitehbd.Line{Layout: layout}
	for i := range n {
		line.Order = append(line.Order, infinitehbd.Node(i+1))
	}
	return line
}

// openLab opens an emulated lab of one-module boards for a line.
func openLab(t testing.TB, line infinitehbd.Line, edit func(string) string) *Domain {
	t.Helper()
	text, err := LabFile(line, LabOptions{Model: OneModule, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		text = []byte(edit(string(text)))
	}
	f, err := lab.Parse("hbd.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, Authority: labtest.Around(nil)})
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := New(l, line)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// authority is what the gate of an openLab asks.
func authority(d *Domain) *labtest.Authority { return d.lab.Gate().Authority().(*labtest.Authority) }

func build(t testing.TB, line infinitehbd.Line, dead []infinitehbd.Node, groups ...infinitehbd.Group) *infinitehbd.Plan {
	t.Helper()
	p, err := line.Build(groups, dead)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Ensure a lab file says the line it was made of, whatever the order, hops and end.
func TestLabFile_LineOf(t *testing.T) {
	for hops := 1; hops <= 4; hops++ {
		for _, closed := range []bool{false, true} {
			line := lineOf(t, 16, hops)
			line.Closed = closed
			var err error
			if line.Order, err = infinitehbd.Deploy(16, 4); err != nil {
				t.Fatal(err)
			}
			text, err := LabFile(line, LabOptions{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := lab.Parse("x.yaml", text)
			if err != nil {
				t.Fatalf("%d hops: %v\n%s", hops, err, text)
			}
			got, err := LineOf(f, line.Layout)
			if err != nil {
				t.Fatalf("%d hops, closed %v: %v", hops, closed, err)
			}
			if !slices.Equal(got.Order, line.Order) || got.Closed != closed {
				t.Errorf("%d hops: got %v, %v; want %v", hops, got.Order, got.Closed, line.Order)
			}
		}
	}
}

// Ensure what is no line is refused, and that the error names it.
func TestLineOf_Refuses(t *testing.T) {
	line := lineOf(t, 4, 2)
	text, err := LabFile(line, LabOptions{Model: OneModule})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, from, to, want string }{
		{"no cable", "  - {a: n01-r/1, b: n02-l/1}\n", "", "node"},
		{"no far cable", "  - {a: n01-r/2, b: n03-l/2}\n", "", "n01-r/2 - n03-l/2"},
		{"no bundle", "n04-r", "other", "node 4 has no switch for its bundle R"},
		{"another bundle", "n04-r", "n04-x", "n04-x"},
	} {
		f, err := lab.Parse("x.yaml", []byte(strings.ReplaceAll(string(text), tt.from, tt.to)))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if _, err := LineOf(f, line.Layout); !errors.Is(err, ErrLab) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want one with %q", tt.name, err, tt.want)
		}
	}
	for _, opt := range []LabOptions{{Model: "polatis-6000-32x32"}, {Model: "nothing"}} {
		if _, err := LabFile(line, opt); !errors.Is(err, ErrLab) {
			t.Errorf("%+v: %v", opt, err)
		}
	}
	if _, err := LabFile(lineOf(t, 3000, 2), LabOptions{}); !errors.Is(err, ErrLab) {
		t.Errorf("3000 nodes: %v", err)
	}
	if _, err := LabFile(infinitehbd.Line{}, LabOptions{}); err == nil {
		t.Error("no line: no error")
	}
}

// Ensure states and maps are each other's inverse, that a board can hold every map, and that no lane that strays goes
// unseen.
func TestMapOf_StateOf(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		modules := rapid.IntRange(1, 16).Draw(t, "modules")
		s := rapid.SampledFrom([]infinitehbd.State{infinitehbd.Loop, infinitehbd.Path1, infinitehbd.Path2,
			infinitehbd.Dark}).Draw(t, "state")
		m := MapOf(s, modules)
		if err := ocs.Transceivers(modules, lanes).Check(m); err != nil {
			t.Fatal(err)
		}
		if got, err := StateOf(m, modules); err != nil || got != s {
			t.Fatalf("%v, %v: want %v", got, err, s)
		}
		if s == infinitehbd.Dark {
			return
		}
		lost := rapid.IntRange(1, modules*lanes).Draw(t, "lane")
		out, _ := m.EgressOf(ocs.Port(lost))
		less := m.Minus(ocs.MustMap(ocs.CrossConnect{Ingress: ocs.Port(lost), Egress: out}))
		if got, err := StateOf(less, modules); !errors.Is(err, ErrMixed) || got != infinitehbd.Dark {
			t.Fatalf("without lane %d: %v, %v", lost, got, err)
		}
	})
	for _, tt := range []struct {
		s    infinitehbd.State
		want string
	}{
		{infinitehbd.Loop, "1-4>29-32,5-8>25-28"}, {infinitehbd.Path1, "1-8>9-16"}, {infinitehbd.Path2, "1-8>17-24"},
		{infinitehbd.Dark, ""},
	} {
		if got := MapOf(tt.s, 1).String(); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.s, got, tt.want)
		}
	}
	if MapOf(infinitehbd.Path1, 0).Len()+MapOf(infinitehbd.Path1, 1<<20).Len() > 0 {
		t.Error("no modules, or too many: a map that is not empty")
	}
	if _, err := StateOf(ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 26}), 1); !errors.Is(err, ErrMixed) {
		t.Errorf("a loop of another permutation: %v", err)
	}
}

// Ensure rings are made and walked by light, as the vectors of three nodes and of a group of six have them, and a plan to
// another takes what differs.
func TestDomain_Bring(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := openLab(t, line, nil)
	one := build(t, line, nil, infinitehbd.Group{1, 2, 3})
	r, err := d.Bring(t.Context(), nil, one, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Bundles != 8 || r.Lanes != 64 || len(r.Modules) != 8 || len(r.Groups) != 1 {
		t.Errorf("%d bundles, %d lanes, %d modules, %d groups", r.Bundles, r.Lanes, len(r.Modules), len(r.Groups))
	}
	if got, want := fmt.Sprint(r.Walk.Rings), "[[1.1 1.2 1.3 2.2 2.3 3.2 3.3 3.4 3.1 2.4 2.1 1.4] [4.1 4.2 4.3 4.4]]"; got != want {
		t.Errorf("walked %s\n  want %s", got, want)
	}
	for _, m := range r.Modules {
		if m.Busy.Earliest < m.Command.Earliest || m.Settled.Earliest < m.Busy.Earliest || m.Locked.Latest < m.Settled.Earliest ||
			m.Took <= 0 {
			t.Errorf("times of %s: %+v", d.Name(m.Ref), m)
		}
	}
	two := build(t, line, nil, infinitehbd.Group{1, 3})
	if r, err = d.Bring(t.Context(), one, two, Options{}); err != nil {
		t.Fatal(err)
	}
	if r.Bundles != 4 || !slices.Equal(r.Groups[0].Group, infinitehbd.Group{1, 3}) {
		t.Errorf("%d bundles, groups %+v", r.Bundles, r.Groups)
	}
	if got, want := fmt.Sprint(r.Walk.Rings[0]), "[1.1 1.2 1.3 3.2 3.3 3.4 3.1 1.4]"; got != want {
		t.Errorf("walked %s, want %s", got, want)
	}
	if len(r.HalfOpen) != 3 {
		t.Errorf("half open: %+v: want 2 cables that went and 1 that came", r.HalfOpen)
	}
	have, err := d.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := infinitehbd.Diff(two, have); len(diff) > 0 {
		t.Errorf("read back: %v", diff)
	}
	if r, err = d.Bring(t.Context(), nil, two, Options{}); err != nil || r.Bundles != 0 {
		t.Errorf("the same again: %+v, %v", r, err)
	}
}

// Ensure a trace is replayed on modules that count what was planned, that waste is what the placements leave, and that
// the planner that switches the fewest bundles wears modules less than cutting anew.
func TestReplay(t *testing.T) {
	line := lineOf(t, 16, 2)
	day := 24 * time.Hour
	events := []Event{{10 * day, 6, true}, {12 * day, 6, false}, {20 * day, 3, true}, {20 * day, 4, true},
		{30 * day, 3, false}, {30 * day, 4, false}}
	var bundles [2]uint64
	for i, plan := range []Planner{nil, Cut(2)} {
		r, err := Replay(t.Context(), events, ReplayOptions{Line: line, Size: 2, For: 100 * day, Plan: plan})
		if err != nil {
			t.Fatal(err)
		}
		bundles[i] = r.Bundles
		// Node 6 leaves one of 15 for 2 days; 3 and 4 leave 2 and 12, which is nobody.
		if want := 2.0 / 100 / 16; math.Abs(r.Waste-want) > 1e-9 {
			t.Errorf("waste %v, want %v", r.Waste, want)
		}
		if len(r.Wear) != 32 || len(r.Points) != 5 || r.Wear[0].Switches < r.Wear[31].Switches || r.Wear[31].Switches < 1 {
			t.Errorf("%d modules, %d points, wear %v to %v", len(r.Wear), len(r.Points), r.Wear[0], r.Wear[31])
		}
	}
	if bundles[0] >= bundles[1] {
		t.Errorf("%d bundles with the fewest switched, %d cut anew", bundles[0], bundles[1])
	}
	for _, tt := range [][]Event{
		{{0, 17, true}}, {{-1, 1, true}}, {{1, 1, false}}, {{1, 1, true}, {2, 1, true}}, {{200 * day, 1, true}},
	} {
		if _, err := Replay(t.Context(), tt, ReplayOptions{Line: line, Size: 2, For: 100 * day}); !errors.Is(err, ErrTrace) {
			t.Errorf("%v: %v", tt, err)
		}
	}
	// All of a short line die, and come back.
	var all []Event
	for n := range infinitehbd.Node(4) {
		all = append(all, Event{time.Duration(n) * day, n + 1, true}, Event{time.Duration(10+n) * day, n + 1, false})
	}
	r, err := Replay(t.Context(), all, ReplayOptions{Line: lineOf(t, 4, 2), Size: 2, For: 20 * day})
	if err != nil || r.Points[4].Groups != 0 || r.Points[4].Dead != 4 || r.Points[8].Groups != 2 {
		t.Errorf("all die and come back: %+v, %v", r, err)
	}
	if _, err := Replay(t.Context(), nil, ReplayOptions{Line: line, Size: 0}); err == nil {
		t.Error("groups of no nodes: no error")
	}
	if _, err := Replay(t.Context(), nil, ReplayOptions{Line: line, Size: 2, Emulate: []Ref{{1, 2}}}); !errors.Is(err,
		infinitehbd.ErrNode) {
		t.Errorf("a bundle that is not there: %v", err)
	}
}

// Ensure a node that dies is found, bypassed, and its ring back, and that bundles and cables that fail alone are not
// taken for it.
func TestDomain_Bypass(t *testing.T) {
	line := lineOf(t, 6, 2)
	d := openLab(t, line, nil)
	plan := build(t, line, nil, infinitehbd.Group{1, 2}, infinitehbd.Group{3, 4})
	if _, err := d.Bring(t.Context(), nil, plan, Options{}); err != nil {
		t.Fatal(err)
	}
	b, err := d.Bypass(t.Context(), plan, BypassOptions{Fail: func(ctx context.Context) error { return d.SetPower(ctx, 2, false) }})
	if err != nil {
		t.Fatal(err)
	}
	if b.Failure.Kind != NodeDead || b.Failure.Node != 2 || len(b.Failure.Witnesses) != 1 {
		t.Errorf("found %+v", b.Failure)
	}
	if len(b.Plan.Groups()) != 2 || len(b.Lost) != 1 || b.DeadGPUs != 4 || b.IdleGPUs != 4 {
		t.Errorf("groups %v, lost %v, %d GPUs dead, %d idle", b.Plan.Groups(), b.Lost, b.DeadGPUs, b.IdleGPUs)
	}
	killed, _ := b.At("killed")
	dark, _ := b.At("dark")
	if _, same := killed.Intersect(dark); !same && dark.Latest < killed.Earliest {
		t.Errorf("killed %v, dark %v", killed, dark)
	}
	for i := 1; i < len(b.Moments); i++ {
		if b.Moments[i].At.Before(b.Moments[i-1].At) {
			t.Errorf("%+v is before %+v", b.Moments[i], b.Moments[i-1])
		}
	}
	if err := d.SetPower(t.Context(), 2, true); err != nil {
		t.Fatal(err)
	}
	if r, err := d.Bring(t.Context(), nil, plan, Options{Mode: ocs.Update}); err != nil {
		t.Fatal(err, r)
	}
}

// Ensure a bundle or a cable that fails is not taken for a node, and that a bypass leaves it alone.
func TestDomain_Detect(t *testing.T) {
	line := lineOf(t, 4, 2)
	for _, tt := range []struct {
		name string
		want FailureKind
		fail func(d *Domain) error
	}{
		{"a board without power", BundleDead, func(d *Domain) error {
			sw, err := d.lab.Switch(t.Context(), "n02-l")
			if err != nil {
				return err
			}
			return sw.Emulated.SetPower(false)
		}},
		{"a bundle that goes dark", BundleDead, func(d *Domain) error {
			return d.light(t.Context(), Ref{2, 0}, infinitehbd.Path1, func(Lane) bool { return false })
		}},
		{"an idle node", NodeSilent, func(d *Domain) error { return d.SetPower(t.Context(), 4, false) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := openLab(t, line, nil)
			plan := build(t, line, nil, infinitehbd.Group{1, 2})
			if _, err := d.Bring(t.Context(), nil, plan, Options{}); err != nil {
				t.Fatal(err)
			}
			b, err := d.Bypass(t.Context(), plan, BypassOptions{Fail: func(context.Context) error { return tt.fail(d) }})
			if !errors.Is(err, ErrNoBypass) || b.Failure.Kind != tt.want || b.Report != nil {
				t.Fatalf("%+v, %v; want %s", b.Failure, err, tt.want)
			}
			t.Log(b.Failure.Text)
		})
	}
}

// Ensure cables that are swapped are found by light, and both are named, and that those that are right are told so.
func TestDomain_CheckCables(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := openLab(t, line, nil)
	c, err := d.CheckCables(t.Context())
	if err != nil || len(c.Wrong) > 0 || c.Fibres != 2*5*lanes { // both ends of 3 + 2 cables
		t.Fatalf("%+v, %v", c, err)
	}
	swapped := openLab(t, line, func(text string) string {
		text = strings.Replace(text, "b: n02-l/1}\n", "b: n02-l/1, emulate: {b: n03-l/1}}\n", 1)
		text = strings.Replace(text, "b: n03-l/1}\n", "b: n03-l/1, emulate: {b: n02-l/1}}\n", 1)
		return strings.Replace(text, "b: n04-l/2}", "b: n04-l/2, emulate: {dead: true}}", 1)
	})
	if c, err = swapped.CheckCables(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"the cables n01-r/1 - n02-l/1 and n02-r/1 - n03-l/1 are swapped at one end, on 8 lanes: n01-r/1 is joined to n03-l/1",
		"no light comes to n02-r/2, and that of n04-l/2 should, on 8 lanes",
		"no light comes to n04-l/2, and that of n02-r/2 should, on 8 lanes",
	}
	if !slices.Equal(c.Text, want) || len(c.Wrong) != 6*lanes || c.Fibres != 4*lanes {
		t.Errorf("%d wrong, %d right:\n%s", len(c.Wrong), c.Fibres, strings.Join(c.Text, "\n"))
	}
	if _, err := swapped.Bring(t.Context(), nil, build(t, line, nil, infinitehbd.Group{1, 2}),
		Options{Patience: time.Millisecond}); !errors.Is(err, ocs.ErrVerify) {
		t.Errorf("rings on swapped cables: %v", err)
	}
	if _, err := swapped.CheckCables(t.Context()); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("a check of cables that carry light: %v", err)
	}
}

// Ensure a module that fails while it switches has its partner put back, that it leaves an alarm where that does not
// work, and that one that cannot be prepared leaves all of its group as it was.
func TestDomain_Bring_Fails(t *testing.T) {
	line := lineOf(t, 4, 2)
	idle, pair := build(t, line, nil), build(t, line, nil, infinitehbd.Group{1, 2}, infinitehbd.Group{3, 4})
	fail := func(d *Domain) (*Report, error) {
		t.Helper()
		if _, err := d.Bring(t.Context(), nil, idle, Options{}); err != nil {
			t.Fatal(err)
		}
		breakHeaters(t, d, "n02-l", 9, 16) // which choose the fibre
		return d.Bring(t.Context(), idle, pair, Options{})
	}
	back := openLab(t, line, nil)
	r, err := fail(back)
	if !errors.Is(err, ocs.ErrDenied) || !errors.Is(err, lab.ErrTogether) || errors.Is(err, ErrHalfOpen) || errors.Is(err, ocs.ErrPartner) ||
		!strings.Contains(err.Error(), "n01-r was put back") {
		t.Errorf("a module that fails: %v", err)
	}
	if len(r.Walk.HalfOpen) != 0 || r.Bundles != 2 || len(r.Walk.Rings) != 2 { // node 1 alone, and nodes 3 and 4
		t.Errorf("%d bundles were switched, half open %v, rings %v", r.Bundles, r.Walk.HalfOpen, r.Walk.Rings)
	}

	d := openLab(t, line, nil)
	changes := 0
	tripAt(t, d, "n01-r", func(ocs.Change) error {
		if changes++; changes == 3 { // idle, pair, and back
			return errors.New("it is stuck")
		}
		return nil
	})
	if r, err = fail(d); !errors.Is(err, ErrHalfOpen) || !strings.Contains(err.Error(), "n01-r could not be put back") {
		t.Errorf("a module that fails, and its partner stays: %v", err)
	}
	if len(r.Walk.HalfOpen) != 1 || r.Bundles != 3 || len(r.Walk.Rings) < 1 {
		t.Errorf("%d bundles were switched, half open %v, rings %v", r.Bundles, r.Walk.HalfOpen, r.Walk.Rings)
	}

	before, err := d.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err = d.Bring(t.Context(), nil, build(t, line, nil, infinitehbd.Group{1, 2, 3}), Options{Mode: ocs.Update})
	if !errors.Is(err, ocs.ErrDenied) || errors.Is(err, ocs.ErrPartner) || r.Bundles != 0 {
		t.Errorf("a module that cannot be prepared: %d bundles were switched, %v", r.Bundles, err)
	}
	after, err := d.States(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := infinitehbd.Diff(before, after); len(diff) > 0 {
		t.Errorf("switched: %+v", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.Bring(ctx, nil, idle, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %v", err)
	}
}

// breakHeaters opens the heaters of some elements of an emulated bundle.
func breakHeaters(t *testing.T, d *Domain, name string, first, last int) {
	t.Helper()
	sw, err := d.lab.Switch(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for e := first; e <= last; e++ {
		fault, err := ocstrx.ParseDeviceFault(fmt.Sprintf("heater-open:%d", e))
		if err != nil {
			t.Fatal(err)
		}
		sw.Emulated.Board.Modules()[0].Inject(fault)
	}
}

// Ensure a plan that would leave a cable half open is refused, as are bundles that are not in the lab.
func TestDomain_Refuses(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := openLab(t, line, nil)
	states := map[infinitehbd.Node][]infinitehbd.State{}
	for _, n := range line.Order {
		states[n] = []infinitehbd.State{infinitehbd.Loop, infinitehbd.Loop}
	}
	states[1][1] = infinitehbd.Path1
	half, err := infinitehbd.NewPlan(line, states)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Bring(t.Context(), nil, half, Options{}); !errors.Is(err, infinitehbd.ErrGroup) ||
		!strings.Contains(err.Error(), "n01-r/1") {
		t.Errorf("a plan with a half-open cable: %v", err)
	}
	if _, err := New(d.lab, lineOf(t, 5, 2)); !errors.Is(err, ErrLab) || !strings.Contains(err.Error(), "n05-l") {
		t.Errorf("a line that is longer than the lab: %v", err)
	}
	long := build(t, lineOf(t, 5, 2), nil, infinitehbd.Group{1, 2})
	if _, err := d.Bring(t.Context(), nil, long, Options{}); !errors.Is(err, infinitehbd.ErrNode) {
		t.Errorf("a plan for another line: %v", err)
	}
}
