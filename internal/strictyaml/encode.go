package strictyaml

import (
	"bytes"
	"encoding"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
)

// Encode returns the text of a file that [Decode] reads as the struct that v is or points
// to, if that is read into a copy of base, a struct of the same type or a pointer to one.
// Fields that are as in base are left out, unless they are required. Strings must be
// UTF-8, and a pointer that base has set must be set in v.
func Encode(v, base any) []byte {
	of := func(x any) reflect.Value { return reflect.Indirect(reflect.ValueOf(x)) }
	e := encoder{}
	e.structure(of(v), of(base), "")
	return e.b.Bytes()
}

type encoder struct{ b bytes.Buffer }

// structure writes the fields of v that differ from base, each on a line that begins with
// indent.
func (e *encoder) structure(v, base reflect.Value, indent string) {
	fs, _ := fields(v.Type())
	for _, f := range fs {
		x, was := v.Field(f.index), base.Field(f.index)
		switch same := reflect.DeepEqual(x.Interface(), was.Interface()); {
		case same && !f.required, x.Kind() == reflect.Pointer && x.IsNil():
		case plainStruct(x.Type()):
			fmt.Fprintf(&e.b, "%s%s:", indent, f.key)
			at := e.b.Len()
			e.b.WriteByte('\n')
			within := e.b.Len()
			e.structure(x, was, indent+"  ")
			if e.b.Len() == within {
				e.b.Truncate(at)
				e.b.WriteString(" {}\n")
			}
		case x.Kind() == reflect.Slice && x.Len() > 0 && !scalarType(x.Type().Elem()):
			fmt.Fprintf(&e.b, "%s%s:\n", indent, f.key)
			for i := range x.Len() {
				fmt.Fprintf(&e.b, "%s  - %s\n", indent, flow(x.Index(i)))
			}
		default:
			fmt.Fprintf(&e.b, "%s%s: %s\n", indent, f.key, flow(x))
		}
	}
}

var typeMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

func plainStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !t.Implements(typeMarshaler)
}

func scalarType(t reflect.Type) bool {
	return t.Implements(typeMarshaler) || t.Kind() != reflect.Struct && t.Kind() != reflect.Slice && t.Kind() != reflect.Map
}

// flow writes a value on one line.
func flow(v reflect.Value) string {
	t := v.Type()
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return flow(v.Elem())
	case t == typeDuration:
		return time.Duration(v.Int()).String()
	case t.Implements(typeMarshaler):
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			panic(fmt.Sprintf("strictyaml: cannot write a %v: %v", t, err))
		}
		return word(string(text))
	case k == reflect.Struct:
		fs, _ := fields(t)
		var list []string
		for _, f := range fs {
			if x := v.Field(f.index); f.required || !x.IsZero() {
				list = append(list, f.key+": "+flow(x))
			}
		}
		return "{" + strings.Join(list, ", ") + "}"
	case k == reflect.Slice:
		list := make([]string, v.Len())
		for i := range list {
			list[i] = flow(v.Index(i))
		}
		return "[" + strings.Join(list, ", ") + "]"
	case k == reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, byText)
		list := make([]string, len(keys))
		for i, key := range keys {
			list[i] = flow(key) + ": " + flow(v.MapIndex(key))
		}
		return "{" + strings.Join(list, ", ") + "}"
	case k == reflect.String:
		return word(v.String())
	case k == reflect.Float32 || k == reflect.Float64:
		if math.IsInf(v.Float(), 1) {
			return ".inf"
		}
		return strconv.FormatFloat(v.Float(), 'g', -1, t.Bits())
	}
	return fmt.Sprint(v.Interface())
}

// byText orders keys as people do: 2 before 10, "2>40" before "10>33".
func byText(a, b reflect.Value) int {
	return natural.Compare(flow(a), flow(b))
}

// What needs no quotes, wherever it stands, and whoever reads it.
var (
	plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`)
	notWord   = regexp.MustCompile(`^(?i:null|true|false|yes|no|on|off|y|n)$`)
)

func word(s string) string {
	if plainWord.MatchString(s) && !notWord.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
