package plan_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"

	"github.com/ocslab/ocslab/experiment/plan"
)

const experiments = "../../examples/experiments"

func schema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(plan.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("experiment.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("experiment.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate is what an editor does with a schema.
func validate(t testing.TB, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

func TestSchema_Current(t *testing.T) {
	path := filepath.Join(experiments, "experiment.schema.json")
	if *update {
		if err := os.WriteFile(path, plan.Schema(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(file), string(plan.Schema())); d != "" {
		t.Errorf("%s is not current, write it with -update; -file +now\n%s", path, d)
	}
}

// Ensure every key is described.
func TestSchema_Described(t *testing.T) {
	var s struct {
		Properties map[string]map[string]any
	}
	if err := json.Unmarshal(plan.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	for key, p := range s.Properties {
		if p["description"] == nil {
			t.Errorf("%s has no description", key)
		}
	}
}

// Ensure the examples are read, and pass the schema.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(experiments, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	s := schema(t)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := plan.Parse(filepath.Base(file), text); err != nil {
			t.Error(err)
		}
	}
}

// Ensure typos and wrong types do not pass the schema, and that nothing that is understood
// is refused by it.
func TestSchema_Typos(t *testing.T) {
	s := schema(t)
	const good = "name: x\nsequence: [dp, pp]\nfinally: {light: restore}\n"
	for _, text := range []string{
		"", "about: 010\n", "lab: yes\n", "repeats: 3\nwarm_ups: 0\n", "wait: 2s\n", "wait: 1m30.5s\n", "order: fixed\n",
		"axes:\n", "axes: []\n", "parameters:\n", "parameters: {dwell: 0s, mine: 1, yours: true}\nhooks: {after_point: [{run: [1, true, a]}]}\n",
		"axes: [{grid: {dwell: [1s, 2s]}}, {random: {points: 3, values: {pace: [1ms..2ms]}}}]\n",
		"limits: [carrier_p99 < 4s, 'light_share>=10%', missing == 0, carrier_median <= 1s]\n",
		"stop: {when: carrier_p50, within: 5%}\n", "stop: {when: light_p95, within: 1.5ms, after: 12}\n",
		"configurations: {a: {maps: {rail0: '1-4>33-36, 7>40'}}, b: {links: [[gpu1, gpu2]]}, c: {topology: {planner: ring, with: {step: 1}}}}\n",
		"measure: {stages: [light, carrier-up], only: [gpu1], tight: true, patience: 1m}\n", "nulls: {count: 0}\n", "seed: 18446744073709551615\n",
	} {
		if _, err := plan.Parse("x.yaml", []byte(good+text)); err != nil {
			t.Errorf("%q is no example of what is understood: %v", text, err)
		}
		if err := validate(t, s, []byte(good+text)); err != nil {
			t.Errorf("%q is understood, and does not pass: %v", text, err)
		}
	}
	for _, text := range []string{
		"abuot: x\n", "repeats: many\n", "repeats: 0\n", "repeats: 1.5\n", "wait: setled\n", "wait: 2\n", "order: Fixed\n", "seed: -1\n",
		"axes: {grid: {dwell: [1s]}}\n", "axes: [{}]\n", "axes: [{grid: {dwell: [1s]}, zip: {pace: [1ms]}}]\n", "axes: [{gird: {dwell: [1s]}}]\n",
		"axes: [{random: {values: {pace: [1ms]}}}]\n", "limits: [carrier < 4s]\n", "limits: [carier_p99 < 4s]\n", "limits: [carrier_p99 = 4s]\n",
		"stop: {when: carrier_p50}\n", "stop: {when: carrier_p50, within: tight}\n",
		"configurations: {a: {topology: {planer: ring}}}\n", "configurations: {a: {topology: {planner: rinng}}}\n", "configurations: {a: {maps: {rail0: 1-2}}, b: {maps: {rail0: x}}}\n",
		"measure: {stages: [carier-up]}\n", "measure: {tight: maybe}\n", "measure: {patience: 30}\n", "measure: {traffik: false}\n",
		"hooks: {setup: [{run: echo}]}\n", "hooks: {setup: [{run: []}]}\n", "hooks: {setup: [{run: [echo], timeout: soon}]}\n", "hooks: {set_up: []}\n",
		"nulls: {window: 1s}\n",
	} {
		if err := validate(t, s, []byte(good+text)); err == nil {
			t.Errorf("%q passes", text)
		}
		if _, err := plan.Parse("x.yaml", []byte(good+text)); err == nil {
			t.Errorf("%q is understood", text)
		}
	}
	for _, text := range []string{"name: x\nsequence: [dp, pp]\n", "name: x\nfinally: {light: restore}\n", "sequence: [dp, pp]\nfinally: {light: restore}\n", "name: x\nsequence: [dp]\nfinally: {light: restore}\n", "name: x\nsequence: [dp, pp]\nfinally: {}\n"} {
		if err := validate(t, s, []byte(text)); err == nil {
			t.Errorf("%q passes", text)
		}
	}
}

// Ensure the tables of bad files hold what is not understood, and the schema refuses that
// of them which is wrong in form.
func TestSchema_BadFiles(t *testing.T) {
	s := schema(t)
	a, err := txtar.ParseFile(filepath.Join("testdata", "errors", "parse.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range a.Files {
		switch strings.TrimSuffix(f.Name, ".yaml") {
		case "typo", "no-finally", "sequence", "order", "wait", "wait-negative", "limits-text", "configurations-2", "name":
			if err := validate(t, s, f.Data); err == nil {
				t.Errorf("%s passes the schema", f.Name)
			}
		}
	}
}
