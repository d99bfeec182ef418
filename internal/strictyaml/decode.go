package strictyaml

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v3"
)

// Offsetter is an error about a text that knows at which byte of it.
type Offsetter interface{ TextOffset() int }

// Decode reads the YAML document data into the struct that into points to.
// The name of the file is used in errors only, which are [Errors] with all
// problems; what into holds is then not specified. Whether a key that is not
// required was there can be told from a pointer only.
func Decode(name string, data []byte, into any) error {
	_, err := DecodePositions(name, data, into)
	return err
}

// DecodePositions decodes as [Decode] does and returns where each value stands. When the
// file is YAML but not what into wants, positions come with the errors, and into holds
// what could be decoded: enough to look for more that is wrong.
func DecodePositions(name string, data []byte, into any) (*Positions, error) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		panic(fmt.Sprintf("strictyaml: into a %T, want a pointer to a struct", into))
	}
	d := decoder{file: name, src: newSource(data), at: &Positions{map[string]Pos{}, map[string]Pos{}}}
	root, err := d.src.parse(name)
	if err != nil {
		return nil, err
	}
	d.indirections(root, "")
	d.value(root, v.Elem(), "")
	return d.at, d.errs.Err()
}

type decoder struct {
	file string
	src  source
	at   *Positions
	errs Errors

	infinite bool // numbers may be .inf where we are
}

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, Errorf(d.file, position(n), path, format, args...))
}

func position(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }

func null(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func merge(n *yaml.Node) bool { return n.Tag == "!!merge" }

// indirections reports anchors, aliases, merge keys and tags.
func (d *decoder) indirections(n *yaml.Node, path string) {
	const anchors = "anchors and aliases are not supported: write the value out"
	switch {
	case n.Anchor != "" || n.Kind == yaml.AliasNode:
		d.fail(n, path, anchors)
	case n.Style&yaml.TaggedStyle != 0:
		d.fail(n, path, "tags are not supported: remove %s", quote(n.Tag))
	}
	switch n.Kind {
	case yaml.SequenceNode:
		for i, c := range n.Content {
			d.indirections(c, Index(path, i))
		}
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			k, v := n.Content[i], n.Content[i+1]
			if merge(k) {
				d.fail(k, path, "merge keys (<<) are not supported: write the keys out")
				continue
			}
			d.indirections(k, path)
			d.indirections(v, Key(path, k.Value))
		}
	}
}

var (
	typePos         = reflect.TypeFor[Pos]()
	typeDuration    = reflect.TypeFor[time.Duration]()
	typeUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// value decodes n into v, which can be set.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.at.values[path] = position(n)
	if n.Kind == yaml.AliasNode {
		return // reported by indirections
	}
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		v.Set(reflect.New(t.Elem()))
		d.value(n, v.Elem(), path)
		return
	}
	text := t == typeDuration || reflect.PointerTo(t).Implements(typeUnmarshaler)
	switch {
	case text:
	case t.Kind() == reflect.Struct:
		d.structure(n, v, path)
		return
	case t.Kind() == reflect.Slice:
		d.list(n, v, path)
		return
	case t.Kind() == reflect.Map:
		d.mapping(n, v, path)
		return
	}
	switch {
	case n.Kind != yaml.ScalarNode:
		d.fail(n, path, "want %s, found %s", wanted(t), found(n))
	case null(n):
		d.noValue(n, path)
	case text && t != typeDuration:
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Value)); err != nil {
			at := position(n)
			if o := Offsetter(nil); errors.As(err, &o) {
				at = d.src.inside(n, o.TextOffset())
			}
			d.errs = append(d.errs, Errorf(d.file, at, path, "%w", err))
		}
	case d.infinite && v.CanFloat() && n.Style == 0 && n.Value == ".inf":
		v.SetFloat(math.Inf(1))
	default:
		switch err := scalar(n, v); {
		case err == nil:
		case d.infinite && v.CanFloat() && strings.Contains(strings.ToLower(n.Value), "inf"):
			d.fail(n, path, "%w: infinity is written .inf", err)
		default:
			d.fail(n, path, "%w", err)
		}
	}
}

func (d *decoder) noValue(n *yaml.Node, path string) {
	msg := "has no value: write one, or remove the key"
	switch {
	case n.Value != "":
		msg = fmt.Sprintf("has no value, as %s means none: write one, or put it in quotes if it is text", n.Value)
	case strings.HasSuffix(path, "]") && !strings.HasSuffix(path, `"]`):
		msg = "the list entry has no value: write one, or remove it"
	}
	d.fail(n, path, "%s", msg)
}

// field is a struct field by its key.
type field struct {
	index    int
	key      string
	required bool
	infinite bool // its numbers may be .inf
}

// fields returns the fields of t in order, and the index of its position
// field or -1.
func fields(t reflect.Type) (fs []field, pos int) {
	pos = -1
	for i := range t.NumField() {
		f := t.Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case !f.IsExported():
			continue
		case key == "-" && option == "pos" && f.Type == typePos:
			pos = i
			continue
		case key == "-" && option == "":
			continue
		case key == "-" || option != "" && option != "required" && option != "inf":
			panic(fmt.Sprintf("strictyaml: field %s of %v: tag %q is not understood", f.Name, t, f.Tag))
		case key == "":
			key = strings.ToLower(f.Name)
		}
		fs = append(fs, field{i, key, option == "required", option == "inf"})
	}
	return fs, pos
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	fs, pos := fields(v.Type())
	known := make([]string, len(fs))
	for i, f := range fs {
		known[i] = f.key
	}
	keys := strings.Join(known, ", ")
	switch {
	case null(n):
		d.noValue(n, path)
		return
	case n.Kind != yaml.MappingNode:
		d.fail(n, path, "want a mapping with the keys %s, found %s", keys, found(n))
		return
	}
	if pos >= 0 {
		v.Field(pos).Set(reflect.ValueOf(position(n)))
	}
	seen := map[string]bool{}
	d.entries(n, path, func(k, val *yaml.Node) {
		seen[k.Value] = true
		i := slices.Index(known, k.Value)
		if i >= 0 {
			within := d.infinite
			d.infinite = fs[i].infinite
			d.value(val, v.Field(fs[i].index), Key(path, k.Value))
			d.infinite = within
			return
		}
		msg := "unknown key " + quote(k.Value)
		if null(val) && val.Value == "" && n.Style&yaml.FlowStyle != 0 {
			msg += flowHint
		} else if hint := DidYouMean(k.Value, known); hint != "" {
			msg += hint
		} else {
			msg += ": the keys here are " + keys
		}
		d.fail(k, path, "%s", msg)
	})
	for _, f := range fs {
		if f.required && !seen[f.key] {
			d.fail(n, path, "the key %q is missing", f.key)
		}
	}
}

// flowHint explains what becomes of {rail0: 1>33,2>34}.
const flowHint = ": within { } a comma begins the next key; put quotes around text that holds one"

// entries calls f for each entry of a mapping whose key can be used.
func (d *decoder) entries(n *yaml.Node, path string, f func(key, value *yaml.Node)) {
	first := map[string]int{}
	for i := 0; i < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		line, dup := first[k.Value]
		switch {
		case merge(k), k.Kind == yaml.AliasNode: // reported by indirections
		case k.Kind != yaml.ScalarNode:
			d.fail(k, path, "a key must be text, found %s", found(k))
		case null(k):
			d.fail(k, path, "a key is missing: put it in quotes if %q is meant", k.Value)
		case dup:
			d.fail(k, path, "the key %s is there twice, first on line %d", quote(k.Value), line)
		default:
			first[k.Value] = k.Line
			d.at.keys[Key(path, k.Value)] = position(k)
			f(k, val)
		}
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	t := v.Type()
	switch {
	case null(n):
		return
	case n.Kind != yaml.MappingNode:
		d.fail(n, path, "want a mapping of names to values, found %s", found(n))
		return
	}
	v.Set(reflect.MakeMapWithSize(t, len(n.Content)/2))
	d.entries(n, path, func(k, val *yaml.Node) {
		if null(val) && val.Value == "" && n.Style&yaml.FlowStyle != 0 {
			d.fail(k, Key(path, k.Value), "has no value%s", flowHint)
			return
		}
		key := reflect.New(t.Key()).Elem()
		if !d.mapKey(k, key, Key(path, k.Value)) {
			return
		}
		if v.MapIndex(key).IsValid() { // entries compares how keys are written
			d.fail(k, path, "the key %s is there twice, in other words", quote(k.Value))
			return
		}
		elem := reflect.New(t.Elem()).Elem()
		d.value(val, elem, Key(path, k.Value))
		v.SetMapIndex(key, elem)
	})
}

// mapKey decodes the key of an entry and reports whether it could.
func (d *decoder) mapKey(k *yaml.Node, key reflect.Value, path string) bool {
	var err error
	switch t := key.Type(); {
	case reflect.PointerTo(t).Implements(typeUnmarshaler):
		err = key.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(k.Value))
	case t.Kind() == reflect.String:
		key.SetString(k.Value)
	case key.CanInt() || key.CanUint():
		err = integer(k.Value, key)
	default:
		panic(fmt.Sprintf("strictyaml: cannot decode keys into a %v", t))
	}
	if err == nil {
		return true
	}
	at := position(k)
	if o := Offsetter(nil); errors.As(err, &o) {
		at = d.src.inside(k, o.TextOffset())
	}
	d.errs = append(d.errs, Errorf(d.file, at, path, "%w", err))
	return false
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	switch {
	case null(n):
		return
	case n.Kind == yaml.ScalarNode:
		d.fail(n, path, "want a list, found %s: put it in [ ]", found(n))
		return
	case n.Kind != yaml.SequenceNode:
		d.fail(n, path, "want a list, found %s: begin each entry with a dash", found(n))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, c := range n.Content {
		d.value(c, v.Index(i), Index(path, i))
	}
}

func found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	}
	return "a single value"
}
