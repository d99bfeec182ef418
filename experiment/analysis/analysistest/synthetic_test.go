package analysistest_test

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ocslab/ocslab/experiment/analysis/analysistest"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
)

// What the run says of itself agrees: so tests that stand on it do not test nonsense.
func TestSynthetic(t *testing.T) {
	r := analysistest.Synthetic(80, 8, 1)
	f, err := lab.Parse("synthetic-lab.yaml", r.Lab)
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range r.File.Sequence {
		maps, err := f.Config(name)
		if err != nil {
			t.Fatal(err)
		}
		if want := r.Plan.Conditions[0].Maps[i]["rail0"]; !maps["rail0"].Equal(want) {
			t.Errorf("%s is %v in the lab and %v in the plan", name, maps["rail0"], want)
		}
	}
	written, err := plan.Parse("synthetic.yaml", r.File.Text)
	if err != nil {
		t.Fatal(err)
	}
	sameFile := cmp.Options{cmpopts.IgnoreUnexported(plan.File{}), cmpopts.IgnoreFields(plan.File{}, "Path", "Text")}
	if d := cmp.Diff(written, r.File, sameFile); d != "" {
		t.Errorf("the experiment is not what its text says (-text +run):\n%s", d)
	}
	numbers := map[int]bool{}
	for i, rec := range r.Reconfigurations {
		if i > 0 && rec.Number <= r.Reconfigurations[i-1].Number {
			t.Fatalf("reconfiguration %d comes after %d", rec.Number, r.Reconfigurations[i-1].Number)
		}
		numbers[rec.Number] = true
	}
	for _, p := range r.Plan.Points {
		if !numbers[p.First] || !r.Done[p.ID] {
			t.Errorf("point %d was not measured", p.ID)
		}
	}
	if got, want := len(r.Reconfigurations), 80+4; got != want {
		t.Errorf("%d reconfigurations, want %d", got, want)
	}
	if v := timeline.Check(r.Marks); len(v) > 0 {
		t.Errorf("violation: %v", v[0])
	}
	for _, m := range r.Marks {
		if !numbers[m.Reconfiguration] || !m.Stage.Valid() || m.Earliest > m.Latest {
			t.Fatalf("mark %+v", m)
		}
	}
	for _, a := range timeline.Compare(r.Marks, r.Truth) {
		if a.Count > 20 && float64(a.Inside) < 0.99*float64(a.Count) {
			t.Errorf("%s: %d of %d marks hold the truth", a.Stage, a.Inside, a.Count)
		}
	}
	if len(r.NoteOf) != len(r.Notes) || len(r.Samples) == 0 {
		t.Errorf("%d notes of %d reconfigurations, %d samples", len(r.Notes), len(r.NoteOf), len(r.Samples))
	}
	if !reflect.DeepEqual(r, analysistest.Synthetic(80, 8, 1)) {
		t.Error("the same arguments give another run")
	}
}
