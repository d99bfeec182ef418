package firmwarenotes

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

type header struct {
	Title    string                   `yaml:"title,required"`
	Vendor   string                   `yaml:"vendor"`
	Model    string                   `yaml:"model"`
	Summary  string                   `yaml:"summary,required"`
	Profiles map[string]profileHeader `yaml:"profiles"`
}

type profileHeader struct {
	Debounce   spanHeader    `yaml:"debounce,required"`
	Detect     spanHeader    `yaml:"detect,required"`
	Train      spanHeader    `yaml:"train,required"`
	Carrier    spanHeader    `yaml:"carrier,required"`
	Burst      *burstHeader  `yaml:"burst"`
	Refresh    refreshHeader `yaml:"refresh,required"`
	Source     string        `yaml:"source"`
	Confidence Confidence    `yaml:"confidence"`
}

type spanHeader struct {
	Median     time.Duration `yaml:"median,required"`
	Spread     time.Duration `yaml:"spread"`
	Min        time.Duration `yaml:"min"`
	Max        time.Duration `yaml:"max"`
	Source     string        `yaml:"source"`
	Confidence Confidence    `yaml:"confidence"`
}

type burstHeader struct {
	Window     time.Duration `yaml:"window,required"`
	Free       int           `yaml:"free,required"`
	Step       time.Duration `yaml:"step,required"`
	Most       time.Duration `yaml:"most,required"`
	Source     string        `yaml:"source"`
	Confidence Confidence    `yaml:"confidence"`
}

type refreshHeader struct {
	Period     time.Duration `yaml:"period,required"`
	Source     string        `yaml:"source"`
	Confidence Confidence    `yaml:"confidence"`
}

// shorthands are the values that may be written as a duration alone, and the key that
// it then stands for.
var shorthands = map[string]string{
	"debounce": "median", "detect": "median", "train": "median", "carrier": "median",
	"refresh": "period",
}

// decode decodes a header. The strict decoder gives each place in a file one Go type,
// so what is written short is written out before, and every position that comes back
// is that in the file again.
func decode(file string, head []byte) (header, places, error) {
	var h header
	long, added := writeOut(head)
	p, err := strictyaml.DecodePositions(file, long, &h)
	at := places{p, added}
	if errs := (strictyaml.Errors)(nil); errors.As(err, &errs) {
		for _, e := range errs {
			e.Column = at.original(strictyaml.Pos{Line: e.Line, Column: e.Column}).Column
		}
	}
	return h, at, err
}

// insertion is text put in before a column of a line of the file.
type insertion struct {
	at   strictyaml.Pos
	text string
}

// writeOut makes "train: 3s" to "train: {median: 3s}". What it does not understand it
// leaves to the strict decoder to refuse.
func writeOut(head []byte) ([]byte, []insertion) {
	var doc yaml.Node
	if yaml.Unmarshal(head, &doc) != nil || len(doc.Content) == 0 {
		return head, nil
	}
	lines := strings.Split(string(head), "\n")
	var added []insertion
	for key, profiles := range entries(doc.Content[0]) {
		if key != "profiles" {
			continue
		}
		for _, profile := range entries(profiles) {
			for key, value := range entries(profile) {
				long, ok := shorthands[key]
				if !ok || value.Kind != yaml.ScalarNode || value.Tag == "!!null" {
					continue
				}
				if end, ok := endOf(value, lines); ok {
					added = append(added,
						insertion{strictyaml.Pos{Line: value.Line, Column: value.Column}, "{" + long + ": "},
						insertion{end, "}"})
				}
			}
		}
	}
	slices.SortFunc(added, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	for _, in := range slices.Backward(added) { // so that columns to the left still hold
		line := []rune(lines[in.at.Line-1])
		lines[in.at.Line-1] = string(line[:in.at.Column-1]) + in.text + string(line[in.at.Column-1:])
	}
	return []byte(strings.Join(lines, "\n")), added
}

// entries ranges over the keys and values of a mapping, and over nothing else.
func entries(n *yaml.Node) iter.Seq2[string, *yaml.Node] {
	return func(yield func(string, *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// endOf returns where a single value that stands on one line, as it is or in quotes,
// ends.
func endOf(n *yaml.Node, lines []string) (strictyaml.Pos, bool) {
	if n.Value == "" || n.Line > len(lines) {
		return strictyaml.Pos{}, false
	}
	line := []rune(lines[n.Line-1])
	if n.Column-1 > len(line) {
		return strictyaml.Pos{}, false
	}
	rest := string(line[n.Column-1:])
	for _, quote := range []string{"", `"`, "'"} {
		if written := quote + n.Value + quote; strings.HasPrefix(rest, written) {
			return strictyaml.Pos{Line: n.Line, Column: n.Column + utf8.RuneCountInString(written)}, true
		}
	}
	return strictyaml.Pos{}, false
}

// places says where each value of a header stands in its file.
type places struct {
	long  *strictyaml.Positions
	added []insertion // in order
}

func (p places) value(path string) strictyaml.Pos { return p.original(p.long.Value(path)) }

func (p places) key(path string) strictyaml.Pos { return p.original(p.long.Key(path)) }

// original returns where in the file a position of the text written out is. Nothing is
// ever found within what was put in but its first character.
func (p places) original(pos strictyaml.Pos) strictyaml.Pos {
	for _, in := range p.added {
		if in.at.Line == pos.Line && in.at.Column < pos.Column {
			pos.Column -= utf8.RuneCountInString(in.text)
		}
	}
	return pos
}
