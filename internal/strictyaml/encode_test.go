package strictyaml_test

import (
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

type part struct {
	Name  string        `yaml:"name,required"`
	Wait  time.Duration `yaml:"wait"`
	Tags  []string      `yaml:"tags"`
	Count *int          `yaml:"count"`
}

type whole struct {
	Title string             `yaml:"title,required"`
	On    bool               `yaml:"on"`
	Float float64            `yaml:"float,inf"`
	Ports map[uint16]float64 `yaml:"ports,inf"`
	Paths map[pair]float64   `yaml:"paths"`
	Part  part               `yaml:"part"`
	Parts []part             `yaml:"parts"`
	Words []string           `yaml:"words"`
	Limit *int               `yaml:"limit"`
}

func TestEncode(t *testing.T) {
	v := whole{
		Title: "null", Float: math.Inf(1), Ports: map[uint16]float64{10: 1, 2: math.Inf(1)}, Paths: map[pair]float64{{1, 2}: 0.5},
		Part:  part{Name: "it's \"x\"", Wait: 1500 * time.Millisecond},
		Parts: []part{{Name: "a"}, {Name: "b", Tags: []string{"c d", "e"}}},
	}
	const want = `title: "null"
float: .inf
ports: {2: .inf, 10: 1}
paths: {"1>2": 0.5}
part:
  name: "it's \"x\""
  wait: 1.5s
parts:
  - {name: a}
  - {name: b, tags: ["c d", e]}
`
	if got := string(strictyaml.Encode(&v, whole{})); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	// What is as in the base is left out, and what is zero in place of it is said.
	base := whole{On: true, Words: []string{"x"}, Part: part{Name: "p", Wait: time.Second}}
	v = whole{Title: "t", Words: []string{"x"}, Part: part{Name: "p"}}
	if got := string(strictyaml.Encode(v, &base)); got != "title: t\non: false\npart:\n  name: p\n  wait: 0s\n" {
		t.Errorf("got\n%s", got)
	}
}

// Ensure that what was written is read back equal, whatever the texts.
func TestEncode_Property(t *testing.T) {
	text := rapid.String().Filter(utf8.ValidString)
	number := rapid.OneOf(rapid.Float64Range(-1e300, 1e300), rapid.Just(math.Inf(1)))
	some := rapid.Custom(func(t *rapid.T) part {
		p := part{Name: text.Draw(t, "name"), Wait: time.Duration(rapid.Int64().Draw(t, "wait")), Tags: rapid.SliceOf(text).Draw(t, "tags")}
		if rapid.Bool().Draw(t, "counted") {
			n := rapid.IntMin(1).Draw(t, "count")
			p.Count = &n
		}
		return p
	})
	rapid.Check(t, func(t *rapid.T) {
		v := whole{
			Title: text.Draw(t, "title"), On: rapid.Bool().Draw(t, "on"), Float: number.Draw(t, "float"),
			Ports: rapid.MapOf(rapid.Uint16(), number).Draw(t, "ports"),
			Part:  some.Draw(t, "part"), Parts: rapid.SliceOf(some).Draw(t, "parts"), Words: rapid.SliceOf(text).Draw(t, "words"),
		}
		base := whole{Float: 0.3, On: true, Words: []string{"a"}}
		data := strictyaml.Encode(v, base)
		got := base
		if err := strictyaml.Decode("f", data, &got); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if d := cmp.Diff(v, got, cmpopts.EquateEmpty()); d != "" {
			t.Fatalf("(-want +got):\n%s\n%s", d, data)
		}
	})
}
