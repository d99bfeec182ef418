package strictyaml

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// SchemaOptions say what a schema cannot know from Go types.
type SchemaOptions struct {
	Title string
	// Text returns the schema of a type that is read from text, such as {"pattern": ...} or
	// {"enum": ...}, and nil to let any single value pass. It is also asked for string types.
	Text func(t reflect.Type) map[string]any
	// About describes keys, by the name of the Go type and the field: "File.Name".
	About map[string]string
	// Refine may change the schema of a struct when its properties are there.
	Refine func(t reflect.Type, schema map[string]any)
}

// Schema returns the JSON Schema (draft 2020-12) of what [Decode] accepts for the struct
// that v is or points to. It is as strict as JSON Schema can be: unknown keys, missing keys
// and wrong types do not pass. What only Decode refuses (duplicate keys, anchors, numbers
// with leading zeros) does, and so does what editors read as a number or a boolean where
// Decode reads text, since YAML does not tell these apart.
//
// It is generated here and not by a library for schemas of Go types, since these go by json
// tags, and know neither that a list without a value is empty nor that a name may be 010.
func Schema(v any, opt SchemaOptions) []byte {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	g := generator{opt: opt, defs: map[string]any{}}
	root := g.structure(t)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	if opt.Title != "" {
		root["title"] = opt.Title
	}
	if len(g.defs) > 0 {
		root["$defs"] = g.defs
	}
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(fmt.Sprintf("strictyaml: schema of %v: %v", t, err)) // what Text returns is no JSON
	}
	return append(text, '\n')
}

type generator struct {
	opt  SchemaOptions
	defs map[string]any // structs by name, once made
}

// durationPattern is what time.ParseDuration accepts, but for a bare 0.
const durationPattern = `^[-+]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$`

func (g *generator) value(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return g.value(t.Elem())
	}
	isText := reflect.PointerTo(t).Implements(typeUnmarshaler)
	switch k := t.Kind(); {
	case t == typeDuration:
		return map[string]any{"type": "string", "pattern": durationPattern}
	case isText || k == reflect.String:
		if g.opt.Text != nil {
			if s := g.opt.Text(t); s != nil {
				return s
			}
		}
		return map[string]any{"type": []string{"string", "number", "boolean"}}
	case k == reflect.Struct:
		if _, made := g.defs[t.Name()]; !made {
			g.defs[t.Name()] = nil // for types that hold themselves
			g.defs[t.Name()] = g.structure(t)
		}
		return map[string]any{"$ref": "#/$defs/" + t.Name()}
	case k == reflect.Slice:
		return map[string]any{"type": []string{"array", "null"}, "items": g.value(t.Elem())}
	case k == reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": g.value(t.Elem())}
	case k == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case k >= reflect.Int && k <= reflect.Int64:
		return map[string]any{"type": "integer"}
	case k >= reflect.Uint && k <= reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case k == reflect.Float32 || k == reflect.Float64:
		return map[string]any{"type": "number"}
	}
	panic(fmt.Sprintf("strictyaml: no schema for a %v", t))
}

func (g *generator) structure(t reflect.Type) map[string]any {
	fs, _ := fields(t)
	properties, required := map[string]any{}, []string{}
	for _, f := range fs {
		p := g.value(t.Field(f.index).Type)
		if about := g.opt.About[t.Name()+"."+t.Field(f.index).Name]; about != "" {
			p["description"] = about
		}
		properties[f.key] = p
		if f.required {
			required = append(required, f.key)
		}
	}
	s := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	if g.opt.Refine != nil {
		g.opt.Refine(t, s)
	}
	return s
}
