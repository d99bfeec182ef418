package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/experiment/execution"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// options are those of runs in a directory of the test.
func options(t *testing.T, name string, text []byte) sequence.Options {
	t.Helper()
	store, err := runs.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return sequence.Options{Name: name, LabText: text, Options: execution.Options{
		Store: store, Lab: lab.Options{Emulated: true, Authority: labtest.Around(lab.Files(t.TempDir())), Command: "test"},
	}}
}

// authority is what the gate of labs with such options asks.
func authority(opt sequence.Options) *labtest.Authority {
	return opt.Lab.Authority.(*labtest.Authority)
}

// emulate returns an emulated lab with hosts for a fabric, and where its ports are.
func emulate(t *testing.T, f crosswiring.Fabric, switching time.Duration) (*lab.File, []byte, *Cables) {
	t.Helper()
	b, err := newBed(f, DemoOptions{Switching: switching, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return b.file, b.text, b.cables
}

// planned returns the plan of a random full demand.
func planned(t *testing.T, f crosswiring.Fabric, seed uint64) *crosswiring.Config {
	t.Helper()
	c, err := random(f, seed)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func always(size ocs.Geometry) func(context.Context, string) (ocs.Geometry, error) {
	return func(context.Context, string) (ocs.Geometry, error) { return size, nil }
}

var wirings = []crosswiring.Wiring{crosswiring.Cross, crosswiring.Uniform, crosswiring.DualLink}

// Ensure a lab that was written for a fabric is read back, and that its hosts and its names say the same of where the
// ports are, with every wiring.
func TestFindCables(t *testing.T) {
	for _, w := range wirings {
		f := crosswiring.Fabric{Pods: 3, SpinePorts: 4, Groups: 2, Wiring: w}
		var found []map[crosswiring.Port]topology.NIC
		for _, hosts := range []bool{false, true} {
			text, err := LabFile(f, LabOptions{Hosts: hosts, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			l, err := lab.Parse("pods.yaml", text)
			if err != nil {
				t.Fatalf("%v, hosts %v: %v", w, hosts, err)
			}
			c, err := FindCables(t.Context(), l, f, always(ocs.TwoSided(32, 32)))
			if err != nil {
				t.Fatalf("%v, hosts %v: %v", w, hosts, err)
			}
			found = append(found, c.nics)
		}
		if diff := cmp.Diff(found[0], found[1]); diff != "" {
			t.Errorf("%v: names (-) and hosts (+) differ:\n%s", w, diff)
		}
		p := crosswiring.Port{Pod: 2, Group: 1, Index: 3}
		want := map[crosswiring.Wiring]string{
			crosswiring.Cross:    "g1-k3/3 g1-k2/35", // crosswise
			crosswiring.Uniform:  "g1-k3/3 g1-k3/35",
			crosswiring.DualLink: "g1-k1/6 g1-k1/38",
		}[w]
		if got := fmt.Sprintf("%v %v", found[0][p].Tx, found[0][p].Rx); got != want {
			t.Errorf("%v: %v is at %s, want %s", w, p, got, want)
		}
	}
}

// Ensure what a lab lacks is said, and by what it could be had.
func TestFindCables_Lacking(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	hosts, err := LabFile(f, LabOptions{Hosts: true})
	if err != nil {
		t.Fatal(err)
	}
	names, err := LabFile(f, LabOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// The Rx fibres of a pod are not exchanged.
	crossed := strings.NewReplacer("g0-k0/1, rx: g0-k1/33", "g0-k0/1, rx: g0-k0/33", "g0-k1/1, rx: g0-k0/33", "g0-k1/1, rx: g0-k1/33")
	for _, tt := range []struct {
		name     string
		text     string
		geometry ocs.Geometry
		want     string
	}{
		{"switch", strings.Replace(string(names), "g0-k1,", "g9-k1,", 1), ocs.TwoSided(32, 32), "--write-lab"},
		{"ports", string(names), ocs.TwoSided(2, 2), "takes 3 of each"},
		{"sides", string(names), ocs.SingleSided(48), "have no sides"},
		{"NIC", strings.Replace(string(hosts), "name: h0k1", "name: z0k1", 1), ocs.Geometry{}, "no NIC p0/h0k1"},
		{"crossed", crossed.Replace(string(hosts)), ocs.Geometry{}, "wired for cross"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := lab.Parse("pods.yaml", []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err = FindCables(t.Context(), l, f, always(tt.geometry)); !errors.Is(err, ErrLab) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// Ensure a lab is refused for what no model has ports for, and for what is too large.
func TestLabFile_Refused(t *testing.T) {
	for _, tt := range []struct {
		f    crosswiring.Fabric
		opt  LabOptions
		want string
	}{
		{crosswiring.Fabric{}, LabOptions{}, "pods"},
		{crosswiring.Fabric{Pods: 400, SpinePorts: 2, Groups: 1}, LabOptions{}, "no model has more than 384"},
		{crosswiring.Fabric{Pods: 20, SpinePorts: 2, Groups: 1, Wiring: crosswiring.DualLink}, LabOptions{Model: "polatis-6000-32x32"}, "want fast-mems-25ms"},
		{crosswiring.Fabric{Pods: 4, SpinePorts: 2, Groups: 1}, LabOptions{Model: "foo"}, "want polatis-6000-32x32"},
		{crosswiring.Fabric{Pods: 4, SpinePorts: 64, Groups: 65}, LabOptions{}, "4160 switches"},
		{crosswiring.Fabric{Pods: 32, SpinePorts: 16, Groups: 16}, LabOptions{Hosts: true}, "8192 spine ports"},
	} {
		if _, err := LabFile(tt.f, tt.opt); !errors.Is(err, crosswiring.ErrFabric) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want one with %q", tt.f, err, tt.want)
		}
	}
}

// Ensure circuits are found in what switches hold, as they were written there, and those with one end elsewhere named.
func TestCables_Circuits(t *testing.T) {
	for _, w := range []crosswiring.Wiring{crosswiring.Cross, crosswiring.DualLink} {
		f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 2, Wiring: w}
		_, _, cables := emulate(t, f, 0)
		want := planned(t, f, 3)
		held, err := cables.Maps(want)
		if err != nil {
			t.Fatal(err)
		}
		circuits, err := cables.Circuits(held)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := crosswiring.FromCircuits(f, circuits); err != nil || !got.Equal(want) {
			t.Errorf("%v: %+v, error %v", w, got, err)
		}
	}
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	_, _, cables := emulate(t, f, 0)
	if _, err := cables.Circuits(map[string]ocs.Map{"g0-k1": ocs.MustMap(ocs.CrossConnect{Ingress: 2, Egress: 60})}); !errors.Is(err, ErrLab) ||
		!strings.Contains(err.Error(), "2>60 of g0-k1") {
		t.Errorf("error %v", err)
	}
	if _, err := cables.Circuits(map[string]ocs.Map{"g0-k1": ocs.MustMap(ocs.CrossConnect{Ingress: 20, Egress: 60})}); err != nil {
		t.Errorf("circuits of others: %v", err)
	}
	other := f
	other.Pods = 4
	if _, err := cables.Maps(planned(t, other, 1)); !errors.Is(err, ErrLab) {
		t.Errorf("of another fabric: error %v", err)
	}
}

// sent is a change of a switch.
type sent struct {
	name   string
	change ocs.Change
}

// recorded has opt note every change of circuits before it is sent.
func recorded(opt *Options) *[]sent {
	var mu sync.Mutex
	all := &[]sent{}
	authority(opt.Options).Begun = func(entries []history.Entry) error {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range entries {
			if len(e.Set) == 0 {
				*all = append(*all, sent{e.Switch, e.Change})
			}
		}
		return nil
	}
	return all
}

// Ensure a fabric is brought from one configuration to another, verified and recorded, with what changed and how long links
// were down; and that pairs which do not differ are not touched.
func TestApply(t *testing.T) {
	const switching = 20 * time.Millisecond
	for _, w := range []crosswiring.Wiring{crosswiring.Cross, crosswiring.DualLink} {
		t.Run(w.String(), func(t *testing.T) {
			f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 2, Wiring: w}
			l, text, cables := emulate(t, f, switching)
			from, err := crosswiring.Plan(f, mustRandom(t, f, 1))
			if err != nil {
				t.Fatal(err)
			}
			to, _, err := crosswiring.Rewire(from, mustRandom(t, f, 2), crosswiring.RewireOptions{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			change, err := crosswiring.Diff(from, to)
			if err != nil {
				t.Fatal(err)
			}
			opt := Options{Options: options(t, "pods", text), Order: Paired}
			changes := recorded(&opt)
			r, err := Apply(t.Context(), l, cables, from, to, opt)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(change, r.Change); diff != "" {
				t.Errorf("change:\n%s", diff)
			}
			if r.State != runs.Done || !r.Restored || len(r.Rounds) != 1 || len(r.Switches) != len(change.Switches) ||
				len(r.Links) != len(to.Links())-change.Links || r.Followed != len(to.Links()) {
				t.Errorf("%+v", r)
			}
			for i, s := range r.Switches {
				if s.Switch != change.Switches[i].Switch || s.Removed != len(change.Switches[i].Removed) || s.Ack.Latest < switching.Nanoseconds()/2 {
					t.Errorf("switch %+v, change %+v", s, change.Switches[i])
				}
			}
			for _, d := range r.Links {
				if d.Known && d.For.Latest < switching.Nanoseconds()/2 {
					t.Errorf("%v was down for %v, and a switch takes %v", d.Link, d.For, switching)
				}
			}
			touched := map[string]bool{}
			for _, s := range change.Switches {
				touched[cables.Name(s.Switch)] = true
			}
			for _, x := range (*changes)[f.Groups*f.GroupSwitches():] { // after from was brought about
				if !touched[x.name] && x.change.Add.Len() > 0 {
					t.Errorf("%s was sent %v, and nothing changes there", x.name, x.change)
				}
			}
			run, err := opt.Store.Load(t.Context(), r.Run)
			if err != nil || run.Summary == nil || run.Summary.State != runs.Done {
				t.Errorf("run %+v: %v", run, err)
			}
		})
	}
}

func mustRandom(t *testing.T, f crosswiring.Fabric, seed uint64) *crosswiring.Demand {
	t.Helper()
	d, err := crosswiring.RandomFull(f, seed)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Ensure a pair disconnects on the even and on the odd switch before it connects on the even and on the odd one, so that at no time
// a port hears a pod other than the one that it sends to.
func TestApply_Paired(t *testing.T) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 2, Groups: 2}
	l, text, cables := emulate(t, f, time.Millisecond)
	from, to := planned(t, f, 1), planned(t, f, 4)
	opt := Options{Options: options(t, "paired", text), Order: Paired}
	changes := recorded(&opt)
	var mu sync.Mutex
	var told []string
	tell := func(what string) func(context.Context, crosswiring.Pair) error {
		return func(_ context.Context, p crosswiring.Pair) error {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%s %v", what, p))
			return nil
		}
	}
	opt.Drain, opt.Undrain = tell("drain"), tell("undrain")
	if _, err := Apply(t.Context(), l, cables, from, to, opt); err != nil {
		t.Fatal(err)
	}
	held, err := cables.Maps(from)
	if err != nil {
		t.Fatal(err)
	}
	byGroup := map[string][]string{}
	for _, x := range (*changes)[4:12] { // from was brought about before, and what was found after
		if held[x.name], err = x.change.ApplyTo(held[x.name]); err != nil {
			t.Fatal(err)
		}
		what := "connect "
		if x.change.Remove.Len() > 0 {
			what = "disconnect "
		}
		group, k, _ := strings.Cut(x.name, "-")
		byGroup[group] = append(byGroup[group], what+k)
		circuits, err := cables.Circuits(held)
		if err != nil {
			t.Fatal(err)
		}
		if one, other, differ := misled(t, f, circuits); differ {
			t.Errorf("after %v: %v hears %v and sends to another", x, one, other)
		}
	}
	want := []string{"disconnect k0", "disconnect k1", "connect k0", "connect k1"}
	if len(byGroup) != 2 {
		t.Errorf("changes %v", *changes)
	}
	for group, did := range byGroup {
		if !slices.Equal(did, want) {
			t.Errorf("%s did %v, want %v", group, did, want)
		}
	}
	slices.Sort(told)
	if diff := cmp.Diff([]string{"drain pair 0/0", "drain pair 1/0", "undrain pair 0/0", "undrain pair 1/0"}, told); diff != "" {
		t.Error(diff)
	}
}

// misled returns a port that hears another than it sends to.
func misled(t *testing.T, f crosswiring.Fabric, circuits map[crosswiring.Switch][]crosswiring.Circuit) (one, other crosswiring.Port, differ bool) {
	t.Helper()
	c, err := crosswiring.FromCircuits(f, circuits)
	if err != nil {
		t.Fatal(err)
	}
	hears := map[crosswiring.Port]crosswiring.Port{}
	for p := range ports(f) {
		if q, any := c.Peer(p); any {
			hears[q] = p
		}
	}
	for p, from := range hears {
		if to, any := c.Peer(p); any && to != from {
			return p, from, true
		}
	}
	return one, other, false
}

// Ensure pods that would be cut off from each other when all pairs move at once keep a link in rounds.
func TestApply_Staged(t *testing.T) {
	t.Parallel()
	const switching = 20 * time.Millisecond
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	from, to, err := cutting(f, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, text, cables := emulate(t, f, switching)
	for _, order := range []Order{Paired, Auto} {
		r, err := Apply(t.Context(), l, cables, from, to, Options{Options: options(t, "staged", text), Order: order})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[Order]Order{Paired: Paired, Auto: Staged}[order]; r.Order != want || len(r.Rounds) > 1 != (want == Staged) || r.Why != "" {
			t.Errorf("%s: order %s in %d rounds because of %q", order, r.Order, len(r.Rounds), r.Why)
		}
		for _, d := range r.Pods {
			if order == Auto && d.Known && d.For.Latest > 0 {
				t.Errorf("pods %d and %d had no link for %v in spite of rounds", d.A, d.B, d.For)
			}
		}
	}
}

// Ensure that when a switch of a pair fails its partner goes no further, all is put back, and the pair is named.
func TestApply_Lost(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	from, to := planned(t, f, 1), planned(t, f, 4)
	refused := errors.New("it is stuck")
	for _, tt := range []struct {
		name  string
		spoil func(*Options)
		lost  string
		want  error
	}{
		{"odd", func(o *Options) {
			auth := authority(o.Options)
			auth.Begun = func(entries []history.Entry) error {
				if e := entries[0]; e.Switch == "g0-k3" && e.Change.Remove.Len() > 0 && e.Change.Add.Len() == 0 {
					auth.Lease(e.Device, e.Change.Ports()[0])
				}
				return nil
			}
		}, "g0-k3", lease.ErrLeased},
		{"drain", func(o *Options) {
			o.Drain = func(_ context.Context, p crosswiring.Pair) error {
				if p.Index == 1 {
					return refused
				}
				return nil
			}
		}, "g0-k2", refused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			opt := Options{Options: options(t, "lost", text), Order: Paired}
			opt.Leave = true
			tt.spoil(&opt)
			r, err := Apply(t.Context(), l, cables, from, to, opt)
			if !errors.Is(err, tt.want) || r == nil || len(r.Lost) != 1 {
				t.Fatalf("error %v, report %+v", err, r)
			}
			x := r.Lost[0]
			if x.Pair != (crosswiring.Pair{Index: 1}) || x.Failed != tt.lost || !errors.Is(x.Err, tt.want) || r.State == runs.Done || r.Followed != 0 {
				t.Errorf("lost %+v, state %s", x, r.State)
			}
			if tt.name == "drain" && !x.Back {
				t.Errorf("not put back: %+v", x)
			}
		})
	}
}

// Ensure the circuits that are found are the running ones, and that those of nobody's are refused or go.
func TestApply_Found(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	ring := planned(t, f, 1)
	dir := t.TempDir()
	opt := Options{Options: options(t, "found", text)}
	opt.Lab.StateDir, opt.Leave = dir, true
	if _, err := Apply(t.Context(), l, cables, nil, ring, opt); err != nil {
		t.Fatal(err)
	}
	r, err := Apply(t.Context(), l, cables, nil, ring, opt)
	if err != nil || r.Change.Removed+r.Change.Added != 0 || r.Followed != 3 {
		t.Errorf("the same again: %+v, error %v", r, err)
	}
	d, err := crosswiring.DemandOf([][]int{{0, 1, 0}, {1, 0, 0}, {0, 0, 0}})
	if err != nil {
		t.Fatal(err)
	}
	one, err := crosswiring.Plan(f, d)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Apply(t.Context(), l, cables, nil, one, opt); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("error %v", err)
	}
	opt.Mode = ocs.Update
	if r, err = Apply(t.Context(), l, cables, nil, one, opt); err != nil || r.Followed != 1 || r.Found != "" {
		t.Errorf("%+v, error %v", r, err)
	}
	// Somebody breaks the pair.
	connect(t, l, opt.Lab, "g0-k0", ocs.CrossConnect{Ingress: 3, Egress: 35})
	opt.Mode = ocs.Safe
	if _, err := Apply(t.Context(), l, cables, nil, ring, opt); !errors.Is(err, crosswiring.ErrConfig) {
		t.Errorf("error %v", err)
	}
	opt.Mode = ocs.Update
	if r, err = Apply(t.Context(), l, cables, nil, ring, opt); err != nil || r.Followed != 3 || r.Found == "" {
		t.Errorf("%+v, error %v", r, err)
	}
}

// Ensure that circuits of one switch alone go, although its partner has never had any.
func TestApply_Half(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 4, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	ring, err := crosswiring.FromCircuits(f, planned(t, crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}, 1).AllCircuits())
	if err != nil {
		t.Fatal(err)
	}
	opt := Options{Options: options(t, "half", text)}
	opt.Lab.StateDir, opt.Mode = t.TempDir(), ocs.Update
	connect(t, l, opt.Lab, "g0-k2", ocs.CrossConnect{Ingress: 1, Egress: 34})
	r, err := Apply(t.Context(), l, cables, nil, ring, opt)
	if err != nil || r.Followed != 3 || r.Change.Removed != 1 || r.Found == "" {
		t.Errorf("%+v, error %v", r, err)
	}
}

// connect connects a circuit, of nobody's.
func connect(t *testing.T, l *lab.File, opt lab.Options, name string, c ocs.CrossConnect) {
	t.Helper()
	open := lab.New(l, opt)
	sw, err := open.Switch(t.Context(), name)
	if err == nil {
		_, err = ocs.Reconcile(t.Context(), sw, ocs.MustMap(c), ocs.Update)
	}
	if err := errors.Join(err, open.Close()); err != nil {
		t.Fatal(err)
	}
}

// Ensure that where several switches of the fabric are parts of one of the lab's, only what differs moves.
func TestApply_Shared(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	text := "name: one\nswitches: [{name: big, emulate: {model: polatis-6000-32x32, switching: 1ms}}]\nhosts:\n"
	for pod := range f.Pods {
		text += fmt.Sprintf("  - name: %s\n    nics:\n", hostName(pod))
		for k := range f.SpinePorts {
			text += fmt.Sprintf("      - {name: h0k%d, tx: big/%d, rx: big/%d}\n", k, 1+4*k+pod, 33+4*(k^1)+pod)
		}
	}
	l, err := lab.Parse("one.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cables, err := FindCables(t.Context(), l, f, nil)
	if err != nil {
		t.Fatal(err)
	}
	from, to, err := cutting(f, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range []Order{Paired, Staged} {
		r, err := Apply(t.Context(), l, cables, from, to, Options{Options: options(t, "shared", []byte(text)), Order: order})
		if err != nil || r.Order != order || r.Followed != 8 || len(r.Switches) != len(r.Change.Switches) {
			t.Errorf("%s: %+v, error %v", order, r, err)
		}
	}
}

// Ensure a pair of which a switch is dead is left alone, and a plan with circuits there refused.
func TestApply_Off(t *testing.T) {
	t.Parallel()
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	from := planned(t, f, 1)
	off := crosswiring.Pair{Index: 1}
	rest, _, err := crosswiring.Rewire(from, from.Demand(), crosswiring.RewireOptions{Without: []crosswiring.Pair{off}})
	if !errors.Is(err, crosswiring.ErrPartial) {
		t.Fatal(err)
	}
	for i := range l.Switches {
		if l.Switches[i].Name == "g0-k3" {
			l.Switches[i].Emulate, l.Switches[i].URL = nil, "tl1://admin@127.0.0.1:1"
		}
	}
	opt := Options{Options: options(t, "off", text), Off: []crosswiring.Pair{off}}
	for _, running := range []*crosswiring.Config{from, nil} {
		if r, err := Apply(t.Context(), l, cables, running, rest, opt); err != nil || r.Followed != 4 {
			t.Errorf("%+v, error %v", r, err)
		}
	}
	if _, err := Apply(t.Context(), l, cables, nil, from, opt); !errors.Is(err, crosswiring.ErrConfig) || !strings.Contains(err.Error(), "pair 0/1 is off") {
		t.Errorf("error %v", err)
	}
}

// Ensure what makes no sense is refused before a switch is asked.
func TestApply_Refused(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	l, text, cables := emulate(t, f, time.Millisecond)
	good := planned(t, f, 1)
	half, err := crosswiring.FromCircuits(f, map[crosswiring.Switch][]crosswiring.Circuit{{}: {{In: 0, Out: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	other := f
	other.Pods = 4
	for _, tt := range []struct {
		name     string
		from, to *crosswiring.Config
		order    Order
		want     error
	}{
		{"nothing", nil, nil, "", crosswiring.ErrConfig},
		{"half", nil, half, "", crosswiring.ErrConfig},
		{"running half", half, good, "", crosswiring.ErrConfig},
		{"another fabric", nil, planned(t, other, 1), "", crosswiring.ErrConfig},
		{"order", good, good, "foo", ErrOrder},
	} {
		r, err := Apply(t.Context(), l, cables, tt.from, tt.to, Options{Options: options(t, "refused", text), Order: tt.order})
		if !errors.Is(err, tt.want) || r != nil && r.Run != "" {
			t.Errorf("%s: %+v, error %v", tt.name, r, err)
		}
	}
}

// Ensure that light which does not come back is found, and that the ports are named, whatever the plan says.
func TestApply_Verify(t *testing.T) {
	f := crosswiring.Fabric{Pods: 3, SpinePorts: 2, Groups: 1}
	_, _, cables := emulate(t, f, 0)
	a := &applying{cables: cables, to: planned(t, f, 1)}
	held, err := cables.Maps(a.to)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.opposite(held, []crosswiring.Pair{{}}); err != nil {
		t.Error(err)
	}
	held["g0-k1"] = held["g0-k0"] // the same on both is a ring one way
	if err := a.opposite(held, []crosswiring.Pair{{}}); !errors.Is(err, ocs.ErrVerify) || !strings.Contains(err.Error(), "pod 0 spine 0 port 0") {
		t.Errorf("error %v", err)
	}
	links := a.to.Links()
	if err := a.compare(links); err != nil {
		t.Error(err)
	}
	if err := a.compare(links[1:]); !errors.Is(err, ocs.ErrVerify) || !strings.Contains(err.Error(), links[0].String()) {
		t.Errorf("error %v", err)
	}
	if err := a.compare(append(slices.Clone(links), crosswiring.PortLink{})); !errors.Is(err, ocs.ErrVerify) {
		t.Errorf("error %v", err)
	}
}

// Ensure switching half the links is measured until the NICs have carrier.
func TestMeasure(t *testing.T) {
	f := crosswiring.Fabric{Pods: 4, SpinePorts: 4, Groups: 1}
	b, err := newBed(f, DemoOptions{Switching: 20 * time.Millisecond, Seed: 1, Firmware: "quick"})
	if err != nil {
		t.Fatal(err)
	}
	opt := options(t, "measure", b.text)
	opt.Rung = "memory"
	events, err := Measure(t.Context(), b.file, b.cables, 2, 1, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		// The quick firmware trains for 30 ms at least, from about when light is seen to have settled.
		if e.Moved == 0 || e.Links != 8 || e.Carrier.Latest < e.Light.Earliest+(20*time.Millisecond).Nanoseconds() {
			t.Errorf("%+v", e)
		}
	}
	if n := len(Outages(events)); n != 2 {
		t.Errorf("%d outages", n)
	}
}

// Ensure all stages of the demonstration are shown, and are as planned.
func TestDemo(t *testing.T) {
	t.Parallel()
	told := map[string]DemoStage{}
	opt := options(t, "demo", nil)
	opt.Rung = "memory"
	err := Demo(t.Context(), DemoOptions{Options: opt, Topologies: 1, Events: 1, Firmware: "quick", Tell: func(s DemoStage) { told[s.Name] = s }})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cross", "dead-switch", "jobs", "paired", "staged", "steps", "testbed", "uniform"}
	if got := slices.Sorted(maps.Keys(told)); !slices.Equal(got, want) {
		t.Errorf("stages %v, want %v", got, want)
	}
	for _, s := range told["testbed"].Steps {
		if s.Kept[crosswiring.Best] < s.Kept[crosswiring.Bisect] || s.Moved.Followed != 64 {
			t.Errorf("%+v", s)
		}
	}
	if len(authority(opt).Recorded(t)) == 0 {
		t.Error("nothing of it is in the history")
	}
	if len(told["steps"].Table) != 4 {
		t.Errorf("%+v", told["steps"])
	}
}
