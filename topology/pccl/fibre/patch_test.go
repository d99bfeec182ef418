package fibre_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/pccl"
	"github.com/ocslab/ocslab/topology/pccl/fibre"
)

func TestPatch_ByHand(t *testing.T) {
	// 0 - 1 - 2, with one fibre between 0 and 1 before.
	g, err := fibre.NewGraph(3, [][2]int{{0, 1}, {1, 2}})
	if err != nil {
		t.Fatal(err)
	}
	r := route(t, g, []fibre.Request{{Src: 2, Dst: 0}, {Src: 0, Dst: 1}}, fibre.Options{Existing: []int{1, 0}})
	p := r.Patch()
	want := []fibre.Fibre{
		{Circuit: 0, Hop: 1, From: 1, To: 0, Number: 1, FromPort: 1, ToPort: 1},
		{Circuit: 1, Hop: 0, From: 0, To: 1, Number: 2, FromPort: 2, ToPort: 2},
		{Circuit: 0, Hop: 0, From: 2, To: 1, Number: 0, FromPort: 0, ToPort: 3},
	}
	if d := cmp.Diff(want, p.Fibres); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]int{3, 4, 1}, p.Ports); d != "" {
		t.Error(d)
	}
	wiring := pccl.Wiring{{Src: 0, SrcPort: 2, Dst: 1, DstPort: 2}, {Src: 1, SrcPort: 1, Dst: 0, DstPort: 1}, {Src: 2, SrcPort: 0, Dst: 1, DstPort: 3}}
	if d := cmp.Diff(wiring, p.Wiring()); d != "" {
		t.Error(d)
	}
}

// Directed, the fibres forth and back share ports.
func TestPatch_DirectedSharesPorts(t *testing.T) {
	g, err := fibre.NewGraph(2, [][2]int{{0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	r := route(t, g, []fibre.Request{{Src: 0, Dst: 1}, {Src: 1, Dst: 0}, {Src: 0, Dst: 1}}, fibre.Options{Directed: true})
	if d := cmp.Diff([]int{2, 2}, r.Patch().Ports); d != "" {
		t.Error(d)
	}
}

func TestPatchCheck_Finds(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(p *fibre.Patch)
		says  string
	}{
		{"a fibre missing", func(p *fibre.Patch) { p.Fibres = p.Fibres[1:] }, "has no fibre"},
		{"a port twice", func(p *fibre.Patch) { p.Fibres[1].FromPort = p.Fibres[0].FromPort }, "share port"},
		{"a port too high", func(p *fibre.Patch) { p.Fibres[0].ToPort = 99 }, "no port 99"},
		{"another circuit", func(p *fibre.Patch) { p.Fibres[0].Circuit = 7 }, "circuit 7"},
		{"a hop twice", func(p *fibre.Patch) { p.Fibres = append(p.Fibres, p.Fibres[0]) }, "two fibres"},
		{"a hop too many", func(p *fibre.Patch) {
			p.Ports[0]++
			p.Fibres = append(p.Fibres, fibre.Fibre{Circuit: 0, Hop: 5, From: 0, To: 2, FromPort: 2, ToPort: 2})
			p.Ports[2] = 3
		}, "lead nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := route(t, grid(t, 2, 2), []fibre.Request{{Src: 0, Dst: 1}, {Src: 0, Dst: 1}}, fibre.Options{}).Patch()
			c.spoil(p)
			if err := p.Check(); !errors.Is(err, fibre.ErrRouting) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error = %v, want one with %q", err, c.says)
			}
		})
	}
}

// The patch list of 64 servers, brought about on a switch that all their ports hang on: what it then
// holds is followed from port to port.
func TestPatch_OnASwitch(t *testing.T) {
	r := route(t, grid(t, 8, 8), random(t, 64, 100, 1), fibre.Options{})
	p := r.Patch()
	total := 0
	for _, n := range p.Ports {
		total += n
	}
	var nics [][]topology.NIC
	ports := 0
	for _, n := range p.Ports {
		var of []topology.NIC
		for range n {
			ports++
			of = append(of, topology.NIC{Tx: topology.Port{Switch: "panel", Port: ocs.Port(ports)}, Rx: topology.Port{Switch: "panel", Port: ocs.Port(total + ports)}})
		}
		nics = append(nics, of)
	}
	maps, err := p.Wiring().Maps(nics)
	if err != nil {
		t.Fatal(err)
	}
	sw := ocstest.New(total, ocs.Map{})
	if _, err := ocs.Reconcile(context.Background(), sw, maps["panel"], ocs.Safe); err != nil {
		t.Fatal(err)
	}
	holds, err := sw.CrossConnects(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range p.Fibres {
		egress, ok := holds.EgressOf(nics[f.From][f.FromPort].Tx.Port)
		if want := nics[f.To][f.ToPort].Rx.Port; !ok || egress != want {
			t.Fatalf("hop %d of circuit %d goes to %v, want %v", f.Hop, f.Circuit, egress, want)
		}
	}
	if holds.Len() != len(p.Fibres) {
		t.Errorf("the switch holds %d cross-connects, want %d", holds.Len(), len(p.Fibres))
	}
}
