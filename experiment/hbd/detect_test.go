package hbd

import (
	"errors"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// painted returns what the bundles of a plan say, one module each, when all is well.
func painted(t *testing.T, d *Domain, p *infinitehbd.Plan) map[Ref]look {
	t.Helper()
	const bright = cmis.Power(10000) // 1 mW
	looks := map[Ref]look{}
	for _, r := range d.refs() {
		m := ocstrx.Telemetry{State: ocst.StateReady}
		for lane := range m.Lanes {
			m.Loop[lane] = uint8(lane ^ half)
			l := &m.Lanes[lane]
			l.Lock = ocst.Locked
			switch s := p.State(r.Node, r.Bundle); s {
			case infinitehbd.Loop:
				l.Path, l.Loop, l.RxLoop = ocst.LoopPath, bright, bright
			case infinitehbd.Path1:
				l.Path, l.Fibre1, l.Rx1 = ocst.Path1, bright, bright
			case infinitehbd.Path2:
				l.Path, l.Fibre2, l.Rx2 = ocst.Path2, bright, bright
			}
		}
		looks[r] = look{ref: r, modules: []ocstrx.Telemetry{m}}
	}
	return looks
}

// Ensure each failure is told from the others by what neighbours see.
func TestDomain_failures(t *testing.T) {
	line := lineOf(t, 4, 2)
	cables, err := line.Cables()
	if err != nil {
		t.Fatal(err)
	}
	d := &Domain{line: line, names: namesOf(line), cables: cables}
	plan := build(t, line, nil, infinitehbd.Group{1, 2, 3})
	l, r := 0, 1
	silent := func(looks map[Ref]look, refs ...Ref) {
		for _, ref := range refs {
			looks[ref] = look{ref: ref, err: errors.New("no answer")}
		}
	}
	deaf := func(looks map[Ref]look, lanes int, refs ...Ref) { // they hear nothing any more
		for _, ref := range refs {
			for i := range lanes {
				lane := &looks[ref].modules[0].Lanes[i]
				lane.Rx1, lane.Rx2, lane.RxLoop, lane.Lock = 0, 0, 0, ocst.NoLight
			}
		}
	}
	for _, tt := range []struct {
		name      string
		fail      func(looks map[Ref]look)
		want      []FailureKind
		witnesses int
	}{
		{"nothing", func(map[Ref]look) {}, nil, 0},
		{"node 2 dies", func(x map[Ref]look) { silent(x, Ref{2, l}, Ref{2, r}); deaf(x, 8, Ref{1, r}, Ref{3, l}) },
			[]FailureKind{NodeDead}, 2},
		{"node 1 dies, at an end", func(x map[Ref]look) { silent(x, Ref{1, l}, Ref{1, r}); deaf(x, 8, Ref{2, l}) },
			[]FailureKind{NodeDead}, 1},
		{"node 2 cannot be reached", func(x map[Ref]look) { silent(x, Ref{2, l}, Ref{2, r}) }, []FailureKind{NodeSilent}, 0},
		{"node 2 cannot be reached, and one cable breaks", func(x map[Ref]look) {
			silent(x, Ref{2, l}, Ref{2, r})
			deaf(x, 8, Ref{1, r})
		}, []FailureKind{NodeSilent}, 1},
		{"node 2 cannot be reached, and has lost some lanes", func(x map[Ref]look) {
			silent(x, Ref{2, l}, Ref{2, r})
			deaf(x, 3, Ref{1, r}, Ref{3, l})
		}, []FailureKind{NodeSilent}, 0},
		{"node 2 and its neighbour cannot be reached", func(x map[Ref]look) {
			silent(x, Ref{2, l}, Ref{2, r}, Ref{1, l}, Ref{1, r})
		}, []FailureKind{NodeSilent, NodeSilent}, 0},
		{"a bundle dies", func(x map[Ref]look) { silent(x, Ref{2, l}); deaf(x, 8, Ref{1, r}) }, []FailureKind{BundleDead}, 1},
		{"a bundle cannot be reached", func(x map[Ref]look) { silent(x, Ref{2, l}) }, []FailureKind{BundleSilent}, 0},
		{"a cable breaks", func(x map[Ref]look) { deaf(x, 8, Ref{1, r}, Ref{2, l}) }, []FailureKind{CableDead}, 2},
		{"one fibre breaks", func(x map[Ref]look) { deaf(x, 1, Ref{2, l}) }, []FailureKind{CableDead}, 1},
		{"a lane goes dark", func(x map[Ref]look) {
			lane := &x[Ref{2, l}].modules[0].Lanes[3]
			lane.Path, lane.Fibre1 = ocst.Dark, 0
		}, []FailureKind{BundleDead}, 0},
		{"a bundle switches", func(x map[Ref]look) {
			for i := range x[Ref{4, l}].modules[0].Lanes {
				lane := &x[Ref{4, l}].modules[0].Lanes[i]
				lane.Path, lane.Loop, lane.Fibre1 = ocst.Path1, 0, 10000
			}
		}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := painted(t, d, plan)
			tt.fail(now)
			var got []FailureKind
			witnesses := 0
			for _, f := range d.failures(painted(t, d, plan), now) {
				got = append(got, f.Kind)
				witnesses += len(f.Witnesses)
			}
			if !slices.Equal(got, tt.want) || witnesses != tt.witnesses {
				t.Errorf("%v with %d witnesses, want %v with %d", got, witnesses, tt.want, tt.witnesses)
			}
		})
	}
}

// Ensure a failure has to last, that a worse one in doubt holds up a lesser one, and that nodes that die together are told
// together.
func TestDomain_sure(t *testing.T) {
	line := lineOf(t, 4, 2)
	d := &Domain{line: line, names: namesOf(line)}
	bundle, cable := Failure{Kind: BundleDead, Node: 2, Text: "bundle"}, Failure{Kind: CableDead, Text: "cable"}
	one, two := Failure{Kind: NodeDead, Node: 1, Text: "1"}, Failure{Kind: NodeDead, Node: 3, Text: "3"}
	silent := Failure{Kind: NodeSilent, Node: 4, Text: "4"}
	for _, tt := range []struct {
		name   string
		rounds [][]Failure
		want   []string // of each round; "" is nothing
		also   int
	}{
		{"a bundle", [][]Failure{{bundle}, {bundle}}, []string{"", "bundle"}, 0},
		{"now and then", [][]Failure{{bundle}, {cable}, {bundle}, {cable}}, []string{"", "", "", ""}, 0},
		{"a cable, then its bundle", [][]Failure{{cable}, {cable, bundle}, {cable, bundle}}, []string{"", "", "bundle"}, 0},
		{"nodes", [][]Failure{{one, bundle, two}}, []string{"1"}, 1},
		{"no answer", [][]Failure{{silent}, {silent}, {silent}, {silent}, {silent}, {silent}}, []string{"", "", "", "", "", "4"}, 0},
	} {
		count, since := map[failureKey]int{}, map[failureKey]Failure{}
		for i, found := range tt.rounds {
			f := d.sure(found, count, since, nil, nil, DefaultRounds)
			text := ""
			if f != nil {
				text = f.Text
			}
			if text != tt.want[i] || f != nil && len(f.Also) != tt.also {
				t.Errorf("%s, round %d: %+v, want %q", tt.name, i+1, f, tt.want[i])
			}
		}
	}
}

// Ensure a walk takes nothing from a plan: each fault is where it is, and the ring it was in is a chain.
func TestDomain_walk(t *testing.T) {
	line := lineOf(t, 4, 2)
	cables, err := line.Cables()
	if err != nil {
		t.Fatal(err)
	}
	d := &Domain{line: line, names: namesOf(line), cables: cables}
	plan := build(t, line, nil, infinitehbd.Group{1, 2, 3})
	lane := func(x map[Ref]look, r Ref, i int) *ocstrx.LaneTelemetry { return &x[r].modules[0].Lanes[i] }
	for _, tt := range []struct {
		name                                         string
		fail                                         func(x map[Ref]look)
		rings, chains, open, dark, unlocked, s, lost int
	}{
		{"whole", func(map[Ref]look) {}, 2, 0, 0, 0, 0, 0, 0},
		{"a lane is not locked", func(x map[Ref]look) { lane(x, Ref{2, 0}, 3).Lock = ocst.Acquiring }, 2, 0, 0, 0, 1, 0, 0},
		{"a lane hears nothing", func(x map[Ref]look) { lane(x, Ref{2, 0}, 3).Rx1 = 499 }, 1, 1, 0, 1, 0, 0, 0},
		{"a lane is dark", func(x map[Ref]look) { lane(x, Ref{4, 0}, 3).Path = ocst.Dark }, 1, 1, 0, 0, 0, 0, 1},
		{"a loop goes elsewhere", func(x map[Ref]look) {
			x[Ref{4, 0}].modules[0].Loop[0], x[Ref{4, 0}].modules[0].Loop[1] = 5, 4
		}, 1, 1, 0, 0, 0, 0, 1},
		{"one end of a cable is looped", func(x map[Ref]look) {
			for i := range lanes {
				l := lane(x, Ref{2, 0}, i)
				*l = ocstrx.LaneTelemetry{Path: ocst.LoopPath, Lock: ocst.Locked, Loop: 10000, RxLoop: 10000}
				lane(x, Ref{1, 1}, i).Rx1 = 0
			}
		}, 2, 1, 1, 8, 0, 0, 0},
		{"a node is silent", func(x map[Ref]look) {
			for b := range 2 {
				x[Ref{2, b}] = look{ref: Ref{2, b}, err: errors.New("no answer")}
			}
		}, 1, 2, 2, 0, 0, 2, 0},
	} {
		looks := painted(t, d, plan)
		tt.fail(looks)
		w := d.walk(looks)
		got := []int{len(w.Rings), len(w.Chains), len(w.HalfOpen), len(w.NoLight), len(w.Unlocked), len(w.Silent), len(w.Mixed)}
		want := []int{tt.rings, tt.chains, tt.open, tt.dark, tt.unlocked, tt.s, tt.lost}
		if !slices.Equal(got, want) {
			t.Errorf("%s: rings, chains, half open, no light, unlocked, silent, mixed %v, want %v; chains %v", tt.name, got, want,
				w.Chains)
		}
		if err := d.Check(w, plan); (err == nil) != (tt.name == "whole") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
