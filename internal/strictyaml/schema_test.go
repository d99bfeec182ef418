package strictyaml_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v3"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

type colour string

func (c *colour) UnmarshalText(text []byte) error { *c = colour(text); return nil }

type node struct {
	Name     string            `yaml:"name,required"`
	Pause    time.Duration     `yaml:"pause"`
	Colour   colour            `yaml:"colour"`
	Count    int               `yaml:"count"`
	Size     *uint8            `yaml:"size"`
	Ratio    float64           `yaml:"ratio"`
	On       bool              `yaml:"on"`
	Tags     []string          `yaml:"tags"`
	With     map[string]string `yaml:"with"`
	Children []node            `yaml:"children"`
	Skipped  int               `yaml:"-"`
	Pos      strictyaml.Pos    `yaml:"-,pos"`
}

// Ensure the schema lets pass what the decoder reads, and refuses what it refuses.
func TestSchema(t *testing.T) {
	text := strictyaml.Schema(&node{}, strictyaml.SchemaOptions{
		Title: "A node",
		About: map[string]string{"node.Name": "What it is called."},
		Text: func(t reflect.Type) map[string]any {
			if t == reflect.TypeFor[colour]() {
				return map[string]any{"enum": []string{"red", "green"}}
			}
			return nil
		},
		Refine: func(_ reflect.Type, s map[string]any) { s["minProperties"] = 1 },
	})
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("node.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("node.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"What it is called.", "A node", "draft/2020-12"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the schema does not have %q", want)
		}
	}
	for yamlText, want := range map[string]bool{
		"name: x":                               true,
		"name: 3":                               true, // a name may look like a number
		"name: true":                            true,
		"name: x\npause: 1.5s":                  true,
		"name: x\npause: 2m30s":                 true,
		"name: x\ncolour: red":                  true,
		"name: x\ncount: -3\nsize: 7\nratio: 2": true,
		"name: x\nratio: 0.5\non: true":         true,
		"name: x\ntags:\nwith:":                 true, // all entries may be commented out
		"name: x\ntags: [a, 1]\nwith: {a: 1}":   true,
		"name: x\nchildren: [{name: y, children: [{name: z}]}]": true,

		"count: 1":                      false,
		"name:":                         false,
		"name: [x]":                     false,
		"name: x\nnmae: y":              false,
		"name: x\nSkipped: 1":           false,
		"name: x\npause: 2":             false,
		"name: x\npause: soon":          false,
		"name: x\ncount: many":          false,
		"name: x\ncount: 1.5":           false,
		"name: x\nsize: -1":             false,
		"name: x\non: maybe":            false,
		"name: x\nratio: half":          false,
		"name: x\ntags: a":              false,
		"name: x\nwith: [a]":            false,
		"name: x\nwith: {a: [b]}":       false,
		"name: x\nchildren: [{}]":       false,
		"name: x\nchildren: [{nme: y}]": false,
		"name: x\npause:":               false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(yamlText), &v); err != nil {
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
		if err := s.Validate(doc); (err == nil) != want {
			t.Errorf("%q: passes the schema: %v, want %v (%v)", yamlText, err == nil, want, err)
		}
		if err := strictyaml.Decode("x.yaml", []byte(yamlText), new(node)); (err == nil) != want {
			t.Errorf("%q: is decoded: %v, want %v (%v)", yamlText, err == nil, want, err)
		}
	}
}

func TestSchema_Programmer(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a channel has a schema")
		}
	}()
	strictyaml.Schema(struct{ C chan int }{}, strictyaml.SchemaOptions{})
}
