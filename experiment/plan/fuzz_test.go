package plan_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/strictyaml"
)

// Ensure no file makes the program panic: what is read resolves to a plan that survives
// being written, or is told of with positions.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(experiments, "*.yaml"))
	if err != nil || len(files) == 0 {
		f.Fatalf("%d examples, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, name := range []string{"parse", "resolve"} {
		a, err := txtar.ParseFile(filepath.Join("testdata", "errors", name+".txtar"))
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range a.Files {
			f.Add(x.Data)
		}
	}
	l := testbed(f)
	repeats := 2
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := plan.Parse("x.yaml", text)
		told(t, err)
		if err != nil {
			return
		}
		if n := e.Nulls; n != nil {
			n.Count = min(n.Count, 100) // more of them only take time
		}
		for _, emulated := range []bool{false, true} {
			p, err := e.Resolve(l, plan.Options{Emulated: emulated, Repeats: &repeats})
			told(t, err)
			if err != nil {
				continue
			}
			if len(p.Points)*len(e.Sequence) > 10_000 {
				continue // the same again and again
			}
			for s := range p.Steps(e, nil) {
				if s.At < 0 || s.Takes < 0 {
					t.Fatalf("a step takes negative time: %+v", s)
				}
				s.Changes()
			}
			data, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			var q plan.Plan
			if err := json.Unmarshal(data, &q); err != nil {
				t.Fatal(err)
			}
			if again, err := json.Marshal(q); err != nil || string(again) != string(data) {
				t.Fatalf("read back the plan differs: %v", err)
			}
		}
	})
}

func told(t *testing.T, err error) {
	t.Helper()
	var all strictyaml.Errors
	if err != nil && (!errors.As(err, &all) || len(all) == 0) {
		t.Fatalf("%v tells no positions", err)
	}
}
