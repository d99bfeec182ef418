package examples_test

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"testing"

	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/lab"
)

// Each experiment is called as its file, so that "ocslab runs list" leads to it.
func TestExperiments_Names(t *testing.T) {
	files, err := fs.Glob(examples.Experiments, "experiments/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d experiments: %v", len(files), err)
	}
	for _, name := range files {
		data, err := examples.Experiments.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := plan.Parse(name, data)
		if err != nil {
			t.Error(err)
			continue
		}
		if f.Name+".yaml" != path.Base(name) || f.About == "" {
			t.Errorf("%s: name %q, about %q: want the name of the file, and what it is about", name, f.Name, f.About)
		}
	}
}

// Whoever has a lab file of the examples has an experiment for it: each is for some user.
func TestLabs(t *testing.T) {
	for _, x := range []struct{ lab, experiment string }{
		{"desk.yaml", "desk.yaml"}, {"opus-testbed.yaml", "opus-toggle.yaml"}, {"bundle.yaml", "bundle.yaml"}, {"ci.yaml", "ci.yaml"},
	} {
		l, err := lab.Load(x.lab)
		if err != nil {
			t.Error(err)
			continue
		}
		e, err := plan.Load(path.Join("experiments", x.experiment))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := e.Resolve(l, plan.Options{Emulated: true}); err != nil {
			t.Errorf("%s on %s: %v", x.experiment, x.lab, err)
		}
		for _, s := range l.Switches {
			if s.Emulate == nil {
				t.Errorf("%s: %s cannot be emulated, so nobody can try it", x.lab, s.Name)
			}
		}
	}
}

// What the program has built in is what is in the folder.
func TestEmbedded(t *testing.T) {
	for name, got := range map[string][]byte{
		"opus-testbed.yaml": examples.OpusTestbed, "opus-rails.yaml": examples.OpusRails, "lab-job.yaml": examples.LabJob,
	} {
		if want, err := os.ReadFile(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %d bytes are embedded, %d in the file (%v)", name, len(got), len(want), err)
		}
	}
}
