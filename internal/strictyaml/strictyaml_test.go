package strictyaml_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/internal/strictyaml"
)

// word is a text without the letter z.
type word string

type wordError struct{ offset int }

func (e wordError) Error() string   { return "the letter z is not allowed" }
func (e wordError) TextOffset() int { return e.offset }

func (w *word) UnmarshalText(b []byte) error {
	if i := strings.IndexByte(string(b), 'z'); i >= 0 {
		return fmt.Errorf("word: %w", wordError{i})
	}
	*w = word(b)
	return nil
}

// end refuses everything, at the end of the text.
type end string

func (*end) UnmarshalText(b []byte) error { return wordError{len(b)} }

// plainWord fails without an offset.
type plainWord string

func (*plainWord) UnmarshalText([]byte) error { return io.ErrUnexpectedEOF }

type inner struct {
	Model    string         `yaml:"model,required"`
	Count    *uint8         `yaml:"count"`
	Settling *time.Duration `yaml:"settling"`
	Pos      strictyaml.Pos `yaml:"-,pos"`
}

type outer struct {
	Name     string `yaml:"name,required"`
	Switches []inner
	Emulate  *inner
	Bool     bool
	Int      int
	Small    int8
	Uint     uint64
	Float    float64
	Float32  float32
	Wait     time.Duration
	Word     word
	End      end
	Plain    plainWord
	Words    []word
	Maps     map[string]word
	Tree     map[string]map[string]int
	Links    [][]string
	Ignored  int `yaml:"-"`
	_        int // left alone, as is all that is not exported
}

func ptr[T any](v T) *T { return &v }

func TestDecode(t *testing.T) {
	const file = "\ufeff# a lab\r\n" + `name: 010
switches:
  - {model: yes, count: 255, settling: 1.5s}
  - model: |
      two
      lines
emulate:
  model: 'it''s'
bool: true
int: -12
small: -128
uint: +18446744073709551615
float: .5e1
float32: 2
wait: "200ms"
word: 1_000
words: ["", 'a b']
maps: {Rail-0: 1, rail-0: null-ish, a.b: "x,y"}
tree:
  a: {b: 3}
links:
`
	var got outer
	if err := strictyaml.Decode("f.yaml", []byte(file), &got); err != nil {
		t.Fatal(err)
	}
	want := outer{
		Name: "010",
		Switches: []inner{
			{Model: "yes", Count: ptr(uint8(255)), Settling: ptr(1500 * time.Millisecond), Pos: strictyaml.Pos{Line: 4, Column: 5}},
			{Model: "two\nlines\n", Pos: strictyaml.Pos{Line: 5, Column: 5}},
		},
		Emulate: &inner{Model: "it's", Pos: strictyaml.Pos{Line: 9, Column: 3}},
		Bool:    true, Int: -12, Small: -128, Uint: math.MaxUint64, Float: 5, Float32: 2, Wait: 200 * time.Millisecond,
		Word: "1_000", Words: []word{"", "a b"},
		Maps: map[string]word{"Rail-0": "1", "rail-0": "null-ish", "a.b": "x,y"},
		Tree: map[string]map[string]int{"a": {"b": 3}},
	}
	if diff := cmp.Diff(got, want, cmp.AllowUnexported(outer{})); diff != "" {
		t.Errorf("got(-) want(+):\n%s", diff)
	}
}

// problems are files that differ from a good one, and what is said of them.
var problems = []struct{ file, want string }{
	// The whole file.
	{"", "1:1: the file is empty"},
	{"# nothing\n", "1:1: the file is empty"},
	{"---\n", "1:1: the file is empty"},
	{"name: a\n---\n", "2:1: a second document begins here: a file holds one"},
	{"name: a\n---\nname: b\n", "2:1: a second document begins here: a file holds one"},
	{"- a\n", "1:1: want a mapping with the keys name, switches, emulate, bool, int, small, uint, float, float32, wait, word, end, plain, words, maps, tree, links, found a list\n"},
	{"name: caf\xe9\n", "1:10: the file is not UTF-8 text here"},
	{"name: \xff\xfe\n", "1:7: the file is not UTF-8 text here"},
	{"name: a\x00\n", `1:8: there is an invisible character here, '\x00': remove it`},
	{"name: a\rint: 3\n", `1:8: there is an invisible character here, '\r': remove it`},
	{"name: a\nint: 3 # \u2028\n", `2:10: there is an invisible character here, '\u2028': remove it`},

	// Syntax.
	{"name: a: b\n", "1:8: a colon is not allowed here: put quotes around text that holds one, or mend the indentation"},
	{"name: a\nwords:\n  - b: c: d\nint: 3\nuint: 4\n", "3:9: a colon is not allowed here: put quotes around text that holds one, or mend the indentation"},
	{"name: a\n\tint: 3\n", "2:2: a tab cannot indent: use blanks"},
	{"name: a\nemulate:\n\tmodel: b\n", "3:1: a tab cannot indent: use blanks"},
	{"name: @a\n", "1:7: text that begins with '@' needs quotes"},
	{"name: a\nword: é\nend: `b\nint: 1\n", "3:6: text that begins with '`' needs quotes"},
	{"name: a\nwords: [a, b\nint: 3\nuint: 4\n", "2:8: a list that was opened with [ is not closed, or text within it needs quotes"},
	{"name: a\nwords: [a, b\n", "2:8: a list that was opened with [ is not closed, or text within it needs quotes"},
	{"name: a\nmaps: {a: b\nint: 3\n", "2:7: a mapping that was opened with { is not closed, or text within it needs quotes"},
	{"name: a\nmaps: {a: tl1://b?c=d}\nint: 3\n", "2:7: a mapping that was opened with { is not closed, or text within it needs quotes"},
	{"{name: a\nint: 3\nmaps: [\n}\n", "1:1: a mapping that was opened with { is not closed, or text within it needs quotes"},
	{"name: a\nmaps: {a: b}\nwords: 'a' [b}\n", "3:1: this line does not fit in with those before it: is it indented right, or is something before it not closed?"},
	{"name: [a\nint: 3\n", "1:7: a list that was opened with [ is not closed, or text within it needs quotes"},
	{"name: a\nword: \"\\xg0\"\n", "2:8: did not find expected hexdecimal number"},
	{"name: [\n", "1:1: a value is missing here, or a bracket that was opened is not closed"},
	{"name: a\nwords: [\nint: 3\n", "2:8: a list that was opened with [ is not closed, or text within it needs quotes"},
	{"name: a\nword: 'a' b\n\n\n\nint: 1\n", "2:1: this line does not fit in with those before it: is it indented right, or is something before it not closed?"},
	{"name: a\nword: \"b\nint: 3\n", "2:1: found unexpected end of stream"},
	{"switches:\n  - model: a\n   count: b\n", "3:4: this line does not fit in with those before it: is it indented right, or is something before it not closed?"},
	{"name: a\nemulate:\n  model: a\n count: 3\nint: 1\n", "4:2: this line does not fit in with those before it: is it indented right, or is something before it not closed?"},
	{"name: 'a' b\nint: 1\n", "1:1: this line does not fit in with those before it: is it indented right, or is something before it not closed?"},
	{"name: a\nword: 'a' b\nint: 1\n", "2:1: this line does not fit in with those before it: is it indented right, or is something before it not closed?"},
	{"name: a\nint\nuint: 3\n", "2:1: could not find expected ':'"},
	{"name: a\nword: \"\\q\"\n", "2:8: found unknown escape character"},
	{"name: a\nword: *b\nint: 3\n", "2:7: anchors and aliases are not supported: write the value out"},

	// Keys.
	{"int: 3\n", `1:1: the key "name" is missing`},
	{"name: a\nswitches: [{}]\n", `2:12: switches[0]: the key "model" is missing`},
	{"nmae: a\nname: b\n", `1:1: unknown key "nmae" (did you mean "name"?)`},
	{"name: b\nemulate: {model: a, colour: b}\n", `2:21: emulate: unknown key "colour": the keys here are model, count, settling`},
	{"name: b\nName: c\n", `2:1: unknown key "Name" (did you mean "name"?)`},
	{"name: b\nignored: 3\nunexported: 3\n", `2:1: unknown key "ignored": the keys here are name, switches, emulate, bool, int, small, uint, float, float32, wait, word, end, plain, words, maps, tree, links` + "\n" +
		`f.yaml:3:1: unknown key "unexported": the keys here are name, switches, emulate, bool, int, small, uint, float, float32, wait, word, end, plain, words, maps, tree, links`},
	{"name: b\n" + strings.Repeat("x", 100) + ": c\n", `2:1: unknown key "` + strings.Repeat("x", 60) + `...": the keys here are name, switches, emulate, bool, int, small, uint, float, float32, wait, word, end, plain, words, maps, tree, links`},
	{"name: a\nname: b\n", `2:1: the key "name" is there twice, first on line 1`},
	{"name: a\nmaps:\n  x: a\n  'x': b\n", `4:3: maps: the key "x" is there twice, first on line 3`},
	{"name: a\n? [b]\n: c\n", `2:3: a key must be text, found a list`},
	{"name: a\nmaps: {? : b}\n", `2:10: maps: a key is missing: put it in quotes if "" is meant`},
	{"name: a\nmaps: {null: b}\n", `2:8: maps: a key is missing: put it in quotes if "null" is meant`},

	// Indirections.
	{"name: &n a\nword: *n\n", "1:7: name: anchors and aliases are not supported: write the value out\n" +
		"f.yaml:2:7: word: anchors and aliases are not supported: write the value out"},
	{"name: a\nmaps: {*n : b}\n", "2:8: anchors and aliases are not supported: write the value out"},
	{"name: &n a\nmaps: {*n : b}\n", "1:7: name: anchors and aliases are not supported: write the value out\n" +
		"f.yaml:2:8: maps: anchors and aliases are not supported: write the value out"},
	{"name: a\n<<: {int: 3}\n", "2:1: merge keys (<<) are not supported: write the keys out"},
	{"name: a\nint: !!int 3\n", `2:6: int: tags are not supported: remove "!!int"`},
	{"name: a\nwords: [!x b]\n", `2:9: words[0]: tags are not supported: remove "!x"`},

	// Kinds.
	{"name: [a]\n", "1:7: name: want text, found a list"},
	{"name: {a: b}\n", "1:7: name: want text, found a mapping"},
	{"name: a\nint: {a: b}\n", "2:6: int: want a whole number, found a mapping"},
	{"name: a\nbool: []\n", "2:7: bool: want true or false, found a list"},
	{"name: a\nfloat: []\n", "2:8: float: want a number, found a list"},
	{"name: a\nwait: []\n", "2:7: wait: want a duration such as 200ms, found a list"},
	{"name: a\nword: []\n", "2:7: word: want text, found a list"},
	{"name: a\nwords: b\n", "2:8: words: want a list, found a single value: put it in [ ]"},
	{"name: a\nwords: {a: b}\n", "2:8: words: want a list, found a mapping: begin each entry with a dash"},
	{"name: a\nlinks: [[a, b], c]\n", "2:17: links[1]: want a list, found a single value: put it in [ ]"},
	{"name: a\nmaps: b\n", "2:7: maps: want a mapping of names to values, found a single value"},
	{"name: a\nemulate: b\n", "2:10: emulate: want a mapping with the keys model, count, settling, found a single value"},

	// No value.
	{"name:\n", "1:6: name: has no value: write one, or remove the key"},
	{"name: ~\n", "1:7: name: has no value, as ~ means none: write one, or put it in quotes if it is text"},
	{"name: null\n", "1:7: name: has no value, as null means none: write one, or put it in quotes if it is text"},
	{"name: a\nemulate:\n", "2:9: emulate: has no value: write one, or remove the key"},
	{"name: a\nwait:\n", "2:6: wait: has no value: write one, or remove the key"},
	{"name: a\nword:\n", "2:6: word: has no value: write one, or remove the key"},
	{"name: a\nwords:\n- a\n-\n", "4:2: words[1]: the list entry has no value: write one, or remove it"},
	{"name: a\nmaps: {rail0: 1>33,2>34}\n", `2:20: maps["2>34"]: has no value: within { } a comma begins the next key; put quotes around text that holds one`},
	{"name: a\nemulate: {model: a,b}\n", `2:20: emulate: unknown key "b": within { } a comma begins the next key; put quotes around text that holds one`},

	// Values.
	{"name: a\nbool: yes\n", `2:7: bool: want true or false, found "yes"`},
	{"name: a\nbool: True\n", `2:7: bool: want true or false, found "True"`},
	{"name: a\nbool: 'true'\n", `2:7: bool: want true or false, found text: remove the quotes`},
	{"name: a\nint: 010\n", `2:6: int: "010" may be meant as octal: write 10, or 8`},
	{"name: a\nint: -010\n", `2:6: int: "-010" may be meant as octal: write -10, or -8`},
	{"name: a\nint: 007\n", `2:6: int: want a number without leading zeros, found "007": write 7`},
	{"name: a\nint: 00\n", `2:6: int: want a number without leading zeros, found "00": write 0`},
	{"name: a\nint: 089\n", `2:6: int: want a number without leading zeros, found "089": write 89`},
	{"name: a\nint: 1_000\n", `2:6: int: want a whole number, found "1_000": write 1000`},
	{"name: a\nint: 0x1f\n", `2:6: int: want a whole number in decimal digits, found "0x1f": write 31`},
	{"name: a\nint: 0xg\n", `2:6: int: want a whole number, found "0xg"`},
	{"name: a\nint: 1e3\n", `2:6: int: want a whole number, found "1e3"`},
	{"name: a\nint: '3'\n", `2:6: int: want a whole number, found text: remove the quotes`},
	{"name: a\nint: true\n", `2:6: int: want a whole number, found "true"`},
	{"name: a\nsmall: 128\n", `2:8: small: "128" is out of range: want -128 to 127`},
	{"name: a\nint: 9223372036854775808\n", `2:6: int: "9223372036854775808" is out of range: want -9223372036854775808 to 9223372036854775807`},
	{"name: a\nuint: -1\n", `2:7: uint: "-1" is out of range: want 0 to 18446744073709551615`},
	{"name: a\nemulate: {model: a, count: 256}\n", `2:28: emulate.count: "256" is out of range: want 0 to 255`},
	{"name: a\nfloat: .inf\n", `2:8: float: want a number, found ".inf"`},
	{"name: a\nfloat: 1_0.5\n", `2:8: float: want a number, found "1_0.5"`},
	{"name: a\nfloat: 1e999\n", `2:8: float: "1e999" is out of range`},
	{"name: a\nfloat32: 1e39\n", `2:10: float32: "1e39" is out of range`},
	{"name: a\nfloat: 010\n", `2:8: float: "010" may be meant as octal: write 10, or 8`},
	{"name: a\nfloat: -\n", "2:8: a list cannot begin here: put it on lines of its own"},
	{"name: a\nfloat: +\n", `2:8: float: want a number, found "+"`},
	{"name: a\nfloat: e5\n", `2:8: float: want a number, found "e5"`},
	{"name: a\nwait: 200\n", `2:7: wait: "200" has no unit: write 200ms, 200s or 200m`},
	{"name: a\nwait: '1.5'\n", `2:7: wait: "1.5" has no unit: write 1.5ms, 1.5s or 1.5m`},
	{"name: a\nwait: 0\n", `2:7: wait: "0" has no unit: write 0ms, 0s or 0m`},
	{"name: a\nwait: 5 parsecs\n", `2:7: wait: want a duration such as 200ms, 1.5s or 2m30s, found "5 parsecs"`},
	{"name: a\nwait: 3 s\n", `2:7: wait: want a duration such as 200ms, 1.5s or 2m30s, found "3 s": write 3s`},
	{"name: a\nwait: 3sec\n", `2:7: wait: want a duration such as 200ms, 1.5s or 2m30s, found "3sec": write 3s`},
	{"name: a\nwait: -1.5 minutes\n", `2:7: wait: want a duration such as 200ms, 1.5s or 2m30s, found "-1.5 minutes": write -1.5m`},
	{"name: a\nwait: 99999999999999h\n", `2:7: wait: want a duration such as 200ms, 1.5s or 2m30s, found "99999999999999h"`},
	{"name: a\nemulate: {model: a, settling: 3}\n", `2:31: emulate.settling: "3" has no unit: write 3ms, 3s or 3m`},

	// Offsets into text.
	{"name: a\nword: abz\n", "2:9: word: word: the letter z is not allowed"},
	{"name: a\nword: z\n", "2:7: word: word: the letter z is not allowed"},
	{"name: a\nword: 'é''z'\n", "2:11: word: word: the letter z is not allowed"},
	{"name: a\nword: \"\\x41\\u00e9\\U0001F600\\N\\_\\L\\P\\t\\\"z\"\n", "2:40: word: word: the letter z is not allowed"},
	{"é: b\nname: a\nwords: [\"é\", éz]\n", `1:1: unknown key "é": the keys here are name, switches, emulate, bool, int, small, uint, float, float32, wait, word, end, plain, words, maps, tree, links` + "\n" +
		"f.yaml:3:15: words[1]: word: the letter z is not allowed"},
	{"name: a\nword: a\n  z\n", "2:7: word: word: the letter z is not allowed"},
	{"name: a\nword: \"a\n  z\"\n", "2:7: word: word: the letter z is not allowed"},
	{"name: a\nword: |\n  z\n", "2:7: word: word: the letter z is not allowed"},
	{"name: a\nend: abc\n", "2:9: end: the letter z is not allowed"},
	{"name: a\nend: \"\"\n", "2:7: end: the letter z is not allowed"},
	{"name: a\nmaps: {a.b: z}\n", `2:13: maps["a.b"]: word: the letter z is not allowed`},
	{"name: a\nplain: x\n", `2:8: plain: unexpected EOF`},

	// Several, in order of position.
	{"switches:\n  - {count: -1}\nint: x\n", `1:1: the key "name" is missing` + "\n" +
		`f.yaml:2:5: switches[0]: the key "model" is missing` + "\n" +
		`f.yaml:2:13: switches[0].count: "-1" is out of range: want 0 to 255` + "\n" +
		`f.yaml:3:6: int: want a whole number, found "x"`},
}

func TestProblems(t *testing.T) {
	for _, tt := range problems {
		var into outer
		err := strictyaml.Decode("f.yaml", []byte(tt.file), &into)
		if err == nil {
			t.Errorf("%q: no error, want %s", tt.file, tt.want)
			continue
		}
		if got, want := err.Error(), "f.yaml:"+strings.TrimSuffix(tt.want, "\n"); got != want {
			t.Errorf("%q:\n got %s\nwant %s", tt.file, got, want)
		}
	}
}

func TestErrorsAreCountedAndFound(t *testing.T) {
	var into outer
	err := strictyaml.Decode("f.yaml", []byte("name: a\nwords: ["+strings.Repeat("z, ", 12)+"z]\n"), &into)
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 11 || lines[10] != "and 3 more problems" {
		t.Errorf("got %d lines: %v", len(lines), err)
	}
	var list strictyaml.Errors
	if !errors.As(err, &list) || len(list) != 13 {
		t.Errorf("got %d problems, want 13", len(list))
	}
	if got, want := list[:11].Error()[strings.LastIndex(list[:11].Error(), "\n")+1:], "and 1 more problem"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var one *strictyaml.Error
	if !errors.As(err, &one) || one.Line != 2 || one.Column != 9 || one.Path != "words[0]" || one.File != "f.yaml" {
		t.Errorf("got %+v", one)
	}
	if w := (wordError{}); !errors.As(err, &w) {
		t.Error("the error of UnmarshalText is not found")
	}
	if err := strictyaml.Decode("", []byte("name: a\nplain: x\n"), &into); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v does not match io.ErrUnexpectedEOF", err)
	}
	if err := strictyaml.Errors(nil).Err(); err != nil {
		t.Errorf("no problems: %v", err)
	}
}

func TestErrorf(t *testing.T) {
	for _, tt := range []struct {
		err  *strictyaml.Error
		want string
	}{
		{strictyaml.Errorf("f", strictyaml.Pos{Line: 2, Column: 3}, "a.b", "is %d", 4), "f:2:3: a.b: is 4"},
		{strictyaml.Errorf("f", strictyaml.Pos{}, "", "is %w", io.EOF), "f: is EOF"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestPositions(t *testing.T) {
	var into outer
	at, err := strictyaml.DecodePositions("f.yaml", []byte("name: a\nemulate:\n  model: b\nmaps:\n  r.0: b\nlinks: [[a, b]]\n"), &into)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path       string
		value, key string
	}{
		{"", "1:1", "1:1"},
		{"name", "1:7", "1:1"},
		{"emulate", "3:3", "2:1"},
		{"emulate.model", "3:10", "3:3"},
		{"emulate.count", "3:3", "3:3"}, // not there
		{"elsewhere", "1:1", "1:1"},
		{strictyaml.Key("maps", "r.0"), "5:8", "5:3"},
		{strictyaml.Key("maps", "r.1"), "5:3", "5:3"},
		{strictyaml.Index(strictyaml.Index("links", 0), 1), "6:13", "6:13"},
	} {
		for _, p := range []struct {
			got  strictyaml.Pos
			want string
		}{{at.Value(tt.path), tt.value}, {at.Key(tt.path), tt.key}} {
			if got := fmt.Sprintf("%d:%d", p.got.Line, p.got.Column); got != p.want {
				t.Errorf("%q: got %s, want %s", tt.path, got, p.want)
			}
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"url", "password", "emulate"}
	for _, tt := range []struct{ word, want string }{
		{"emualte", ` (did you mean "emulate"?)`},
		{"Passwort", ` (did you mean "password"?)`},
		{"urls", ` (did you mean "url"?)`},
		{"uri", ` (did you mean "url"?)`},
		{"uxy", ""},
		{"host", ""},
		{strings.Repeat("u", 100), ""},
	} {
		if got := strictyaml.DidYouMean(tt.word, known); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.word, got, tt.want)
		}
	}
}

func TestMistakesOfTheProgrammerPanic(t *testing.T) {
	for name, into := range map[string]any{
		"no pointer": outer{},
		"nil":        (*outer)(nil),
		"no struct":  new(int),
		"type":       &struct{ Name chan int }{},
		"tag": &struct {
			Name string `yaml:"name,omitempty"`
		}{},
		"no position": &struct {
			Name string `yaml:"-,pos"`
		}{},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = strictyaml.Decode("f.yaml", []byte("name: a\n"), into)
		})
	}
}

// TestTextOffsetIsExact writes a word in every style and looks whether the
// reported column is that of its z.
func TestTextOffsetIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.StringMatching(`[a-yé☃ '"\\,#>-]{0,8}`).Draw(t, "before")
		quoted, prefix := "", ""
		switch rapid.SampledFrom([]string{"single", "double"}).Draw(t, "style") {
		case "single":
			esc := strings.NewReplacer("'", "''")
			quoted, prefix = "'"+esc.Replace(before)+"z'", "'"+esc.Replace(before)
		case "double":
			esc := strings.NewReplacer(`"`, `\"`, `\`, `\\`, "é", `\u00e9`)
			quoted, prefix = `"`+esc.Replace(before)+`z"`, `"`+esc.Replace(before)
		}
		var into struct{ Word word }
		var got *strictyaml.Error
		err := strictyaml.Decode("f", []byte("# \u00e9\nword:   "+quoted+"\n"), &into)
		if !errors.As(err, &got) {
			t.Fatalf("%s: %v", quoted, err)
		}
		if want := len("word:   ") + utf8.RuneCountInString(prefix) + 1; got.Column != want || got.Line != 2 {
			t.Errorf("%s: got %v, want column %d", quoted, got, want)
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, tt := range problems {
		f.Add([]byte(tt.file))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		hang := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("hangs on %q", data)) })
		defer hang.Stop()
		var into outer
		err := strictyaml.Decode("f.yaml", data, &into)
		if err == nil {
			if !strings.Contains(string(data), "name") && !strings.Contains(string(data), `\`) {
				t.Errorf("accepted without a name")
			}
			return
		}
		var list strictyaml.Errors
		if !errors.As(err, &list) || len(list) == 0 {
			t.Fatalf("%T is not Errors", err)
		}
		for _, e := range list {
			lines := strings.Split(string(data), "\n")
			if e.Line < 1 || e.Line > len(lines) || e.Column < 1 || e.Column > utf8.RuneCountInString(lines[e.Line-1])+2 {
				t.Errorf("%q: position outside of the file", e)
			}
			if strings.ContainsAny(e.Msg, "\n\r") {
				t.Errorf("%q: more than one line", e.Msg)
			}
		}
	})
}

// pair is a key that is read from text.
type pair struct{ a, b int }

func (p *pair) UnmarshalText(text []byte) error {
	if n, err := fmt.Sscanf(string(text), "%d>%d", &p.a, &p.b); n != 2 {
		return fmt.Errorf("want A>B: %w", err)
	}
	return nil
}

func (p pair) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%d>%d", p.a, p.b), nil }

type keyed struct {
	Ports  map[uint16]float64 `yaml:"ports,inf"`
	Paths  map[pair]float64   `yaml:"paths,inf"`
	Loss   float64            `yaml:"loss,inf"`
	Finite float64            `yaml:"finite"`
	Signs  map[int8]string    `yaml:"signs"`
	Deep   struct {
		Finite float64 `yaml:"finite"`
	} `yaml:"deep,inf"`
}

func TestKeysAndInfinity(t *testing.T) {
	var got keyed
	if err := strictyaml.Decode("f", []byte("ports: {7: 3, 8: .inf}\npaths: {1>33: 2.5, '2>34': .inf}\nloss: .inf\nsigns: {-1: minus}\n"), &got); err != nil {
		t.Fatal(err)
	}
	inf := math.Inf(1)
	want := keyed{
		Ports: map[uint16]float64{7: 3, 8: inf}, Paths: map[pair]float64{{1, 33}: 2.5, {2, 34}: inf},
		Loss: inf, Signs: map[int8]string{-1: "minus"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(pair{})); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for text, want := range map[string]string{
		"ports: {one: 1}":          `f:1:9: ports.one: want a whole number, found "one"`,
		"ports: {07: 1}":           `f:1:9: ports.07: want a number without leading zeros`,
		"ports: {70000: 1}":        "out of range",
		"ports: {+7: 1, 7: 2}":     `f:1:16: ports: the key "7" is there twice, in other words`,
		"paths: {1>2: 1, 1>02: 2}": "twice",
		"paths: {1: 2}":            "f:1:9: paths.1: want A>B",
		"loss: inf":                "infinity is written .inf",
		"loss: -.inf":              "infinity is written .inf",
		"loss: '.inf'":             "remove the quotes",
		"loss: .nan":               "want a number",
		"finite: .inf":             "want a number",
		"loss: 1\nfinite: .inf":    "f:2:9: finite: want a number",
		"deep: {finite: .inf}":     "want a number",
	} {
		if err := strictyaml.Decode("f", []byte(text), new(keyed)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestPositions_Has(t *testing.T) {
	var got keyed
	at, err := strictyaml.DecodePositions("f", []byte("ports: {7: 3}\nloss: 0\n"), &got)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{"ports": true, "ports.7": true, "ports.8": false, "loss": true, "finite": false} {
		if at.Has(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if (*strictyaml.Positions)(nil).Has("loss") {
		t.Error("a file that was not read has a value")
	}
}
