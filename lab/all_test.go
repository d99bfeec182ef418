package lab_test

import (
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure the models that programs choose from are there, with as many ports as is said, and that switches are read all at
// once, those that can be.
func TestLab_CrossConnects(t *testing.T) {
	text := "name: all\nswitches:\n"
	for i, m := range lab.SquareModels {
		text += fmt.Sprintf("  - {name: s%d, emulate: {model: %s}}\n", i, m.Name)
	}
	f, err := lab.Parse("all.yaml", []byte(text+"  - {name: real, url: 'tl1://admin@127.0.0.1:1'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true})
	defer func() { _ = l.Close() }()
	want := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})
	sw, err := l.Switch(t.Context(), "s0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, want, ocs.Safe); err != nil {
		t.Fatal(err)
	}
	held, err := l.CrossConnects(t.Context(), "s0", "s1", "s2", "s3", "real")
	if _, dead := held["real"]; err == nil || dead || len(held) != 4 || !held["s0"].Equal(want) || held["s1"].Len() != 0 {
		t.Errorf("%v, %v", held, err)
	}
	for i, m := range lab.SquareModels {
		sw, err := l.Switch(t.Context(), fmt.Sprintf("s%d", i))
		if err != nil {
			t.Fatal(err)
		}
		id, err := sw.Identify(t.Context())
		if g := id.Geometry; err != nil || len(g.IngressPorts()) != m.Ports || len(g.EgressPorts()) != m.Ports {
			t.Errorf("%s is %v, %v", m.Name, g, err)
		}
	}
}
