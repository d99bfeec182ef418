package firmwarenotes

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v3"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/timeline/dist"
)

type header struct {
	Title    string                   `yaml:"title,required"`
	Summary  string                   `yaml:"summary,required"`
	Kind     Kind                     `yaml:"kind"`
	Vendor   string                   `yaml:"vendor"`
	Model    string                   `yaml:"model"`
	Module   string                   `yaml:"module"`
	Speed    Quantity                 `yaml:"speed"`
	Firmware firmwareHeader           `yaml:"firmware"`
	Sources  map[string]sourceHeader  `yaml:"sources"`
	Profiles map[string]profileHeader `yaml:"profiles"`
	Facts    map[string]factHeader    `yaml:"facts"`
	Settings map[string]settingHeader `yaml:"settings"`
	RDMA     *rdmaHeader              `yaml:"rdma"`
	Checks   map[string]checkHeader   `yaml:"checks"`
	Unknown  []string                 `yaml:"unknown"`
}

type firmwareHeader struct {
	Known string `yaml:"known,required"`
	Range string `yaml:"range"`
}

type sourceHeader struct {
	Title string `yaml:"title,required"`
	Where string `yaml:"where"`
	URL   string `yaml:"url"`
}

type factHeader struct {
	What       string      `yaml:"what,required"`
	Value      Quantity    `yaml:"value"`
	Range      rangeHeader `yaml:"range"`
	Source     string      `yaml:"source"`
	Confidence Confidence  `yaml:"confidence"`
	AppliesTo  string      `yaml:"applies-to"`
	Check      string      `yaml:"check"`
}

type rangeHeader struct {
	Low  Quantity `yaml:"low"`
	High Quantity `yaml:"high"`
}

type settingHeader struct {
	Tool       string     `yaml:"tool,required"`
	Values     []string   `yaml:"values"`
	Default    string     `yaml:"default"`
	Effect     string     `yaml:"effect,required"`
	Source     string     `yaml:"source"`
	Confidence Confidence `yaml:"confidence"`
	Show       commands   `yaml:"show"`
	Apply      commands   `yaml:"apply"`
	Effective  commands   `yaml:"effective"`
	Verify     commands   `yaml:"verify"`
	Undo       commands   `yaml:"undo"`
	After      string     `yaml:"after"`
	BothEnds   bool       `yaml:"both-ends"`
}

type checkHeader struct {
	What   string   `yaml:"what,required"`
	Run    commands `yaml:"run"`
	Expect string   `yaml:"expect"`
}

type rdmaHeader struct {
	MeasuredOn string                   `yaml:"measured-on,required"`
	Firmware   string                   `yaml:"firmware,required"`
	Adaptive   []time.Duration          `yaml:"adaptive,required"`
	Interval   intervalHeader           `yaml:"interval,required"`
	Retry      int                      `yaml:"retry,required"`
	Errors     map[string]time.Duration `yaml:"errors,required"`
	Source     string                   `yaml:"source"`
	Confidence Confidence               `yaml:"confidence"`
}

type intervalHeader struct {
	Factor     int           `yaml:"factor,required"`
	Least      int           `yaml:"least-timeout,required"`
	EarlyLeast time.Duration `yaml:"early-at-least,required"`
	Early      time.Duration `yaml:"early-above,required"`
}

// commands are lines of text, each of which is one.
type commands []string

// UnmarshalText takes lines apart.
func (c *commands) UnmarshalText(text []byte) error {
	*c = nil
	for line := range strings.SplitSeq(strings.TrimRight(string(text), "\n"), "\n") {
		if strings.TrimSpace(line) == "" || strings.TrimSpace(line) != line {
			return fmt.Errorf("want one command a line, without blanks around it")
		}
		// People copy what they see: nothing may be there that a terminal does not show.
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			r, _ := utf8.DecodeRuneInString(line[i:])
			return fmt.Errorf("a command cannot hold the character %U, which is not seen", r)
		}
		for _, p := range placeholder.FindAllString(line, -1) {
			if !slices.Contains(placeholders, p) {
				return fmt.Errorf("unknown placeholder %s: want %s", p, strings.Join(placeholders, ", "))
			}
		}
		*c = append(*c, line)
	}
	return nil
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
	Median     *time.Duration `yaml:"median"`
	Spread     time.Duration  `yaml:"spread"`
	Modes      dist.Mixture   `yaml:"modes"`
	Min        time.Duration  `yaml:"min"`
	Max        time.Duration  `yaml:"max"`
	Source     string         `yaml:"source"`
	Confidence Confidence     `yaml:"confidence"`
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
// is that in the file again. With errors, what could be decoded comes, too, and where it
// stands.
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

	long  int // the column of at when all is put in
	moved int // by how many columns what follows on the line is moved then
}

// writeOut makes "train: 3s" to "train: {median: 3s}". What it does not understand it
// leaves to the strict decoder to refuse.
func writeOut(head []byte) ([]byte, []insertion) {
	var doc yaml.Node
	if yaml.Unmarshal(head, &doc) != nil || len(doc.Content) == 0 {
		return head, nil
	}
	var lines [][]rune
	for line := range strings.SplitSeq(string(head), "\n") {
		lines = append(lines, []rune(line))
	}
	var added []insertion
	write := func(value *yaml.Node, long string) {
		if value.Kind != yaml.ScalarNode || value.Tag == "!!null" || value.Style == 0 && strings.ContainsAny(value.Value, ",[]{}") {
			return
		}
		if end, ok := endOf(value, lines); ok {
			added = append(added,
				insertion{at: strictyaml.Pos{Line: value.Line, Column: value.Column}, text: "{" + long + ": "},
				insertion{at: end, text: "}"})
		}
	}
	for key, value := range entries(doc.Content[0]) {
		switch key {
		case "firmware":
			write(value, "known")
		case "profiles":
			for _, profile := range entries(value) {
				for key, value := range entries(profile) {
					if long, ok := shorthands[key]; ok {
						write(value, long)
					}
				}
			}
		}
	}
	slices.SortFunc(added, func(a, b insertion) int {
		return cmp.Or(cmp.Compare(a.at.Line, b.at.Line), cmp.Compare(a.at.Column, b.at.Column))
	})
	return insert(lines, added), added
}

// insert puts insertions, in their order, into lines, and notes where they are then.
func insert(lines [][]rune, added []insertion) []byte {
	var b bytes.Buffer
	for i, line := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		from, moved := 0, 0
		for len(added) > 0 && added[0].at.Line == i+1 {
			in := &added[0]
			added = added[1:]
			b.WriteString(string(line[from : in.at.Column-1]))
			b.WriteString(in.text)
			from, in.long = in.at.Column-1, in.at.Column+moved
			moved += utf8.RuneCountInString(in.text)
			in.moved = moved
		}
		b.WriteString(string(line[from:]))
	}
	return b.Bytes()
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
func endOf(n *yaml.Node, lines [][]rune) (strictyaml.Pos, bool) {
	if n.Value == "" || n.Line > len(lines) || n.Column-1 > len(lines[n.Line-1]) {
		return strictyaml.Pos{}, false
	}
	rest := lines[n.Line-1][n.Column-1:]
	for _, quote := range []string{"", `"`, "'"} {
		written := []rune(quote + n.Value + quote)
		if len(written) <= len(rest) && slices.Equal(written, rest[:len(written)]) {
			return strictyaml.Pos{Line: n.Line, Column: n.Column + len(written)}, true
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

// has reports whether there is a value at path.
func (p places) has(path string) bool { return p.long.Has(path) }

func (p places) key(path string) strictyaml.Pos { return p.original(p.long.Key(path)) }

// original returns where in the file a position of the text written out is. Nothing is
// ever found within what was put in but its first character.
func (p places) original(pos strictyaml.Pos) strictyaml.Pos {
	i, _ := slices.BinarySearchFunc(p.added, pos, func(in insertion, pos strictyaml.Pos) int {
		return cmp.Or(cmp.Compare(in.at.Line, pos.Line), cmp.Compare(in.long, pos.Column))
	})
	if i > 0 && p.added[i-1].at.Line == pos.Line {
		pos.Column -= p.added[i-1].moved
	}
	return pos
}
