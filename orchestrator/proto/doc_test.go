package proto_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/orchestrator/proto"
	"github.com/ocslab/ocslab/topology/opus"
)

// page is the description of the protocol for those who write the other side in another language.
const page = "../../docs/opus-protocol.md"

func readPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sections returns what follows each heading of the third level that begins with a name in backquotes, by name.
func sections(text string) map[string]string {
	all := map[string]string{}
	for _, s := range strings.Split(text, "\n### `")[1:] {
		name, rest, _ := strings.Cut(s, "`")
		rest, _, _ = strings.Cut(rest, "\n## ")
		all[name] = rest
	}
	return all
}

// row is a line of a table that describes a key: | `key` | type | meaning |. Tables of values have two columns.
var row = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| ([^|\n]+) \\|[^|\n]*\\|$")

func keysOf(section string) map[string]string {
	keys := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(section, -1) {
		keys[m[1]] = strings.TrimSpace(m[2])
	}
	return keys
}

// structure returns the keys of a message or of what is in one, with their types in the words of the page.
func structure(t reflect.Type) map[string]string {
	keys := map[string]string{}
	for f := range t.Fields() {
		if f.Anonymous {
			for k, v := range structure(f.Type) {
				keys[k] = v
			}
			continue
		}
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys[name] = words(f.Type)
		if strings.Contains(options, "omitempty") {
			keys[name] += ", or missing"
		}
	}
	return keys
}

func words(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[proto.OpRef](), reflect.TypeFor[*proto.OpRef]():
		return "operation"
	case reflect.TypeFor[[]proto.OpRef]():
		return "list of operations"
	case reflect.TypeFor[opus.Job]():
		return "job"
	case reflect.TypeFor[[]opus.Axis]():
		return "list of axes"
	case reflect.TypeFor[[][2]int]():
		return "list of pairs of ports"
	}
	switch t.Kind() {
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return "integer"
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "list of " + words(t.Elem()) + "s"
	case reflect.Map:
		return "object of " + words(t.Elem()) + "s"
	}
	return t.String()
}

// Every message, every key and every word of the protocol is on the page, and nothing else.
func TestPage_Complete(t *testing.T) {
	text := readPage(t)
	described := sections(text)
	want := map[string]reflect.Type{"operation": reflect.TypeFor[proto.OpRef](), "job": reflect.TypeFor[opus.Job](), "axis": reflect.TypeFor[opus.Axis]()}
	for _, k := range proto.Kinds() {
		m, err := proto.Parse([]byte(`{"kind":"` + string(k) + `"}`))
		if err != nil {
			t.Fatal(err)
		}
		want[string(k)] = reflect.TypeOf(m).Elem()
	}
	for name, typ := range want {
		section, ok := described[name]
		if !ok {
			t.Errorf("%s does not describe %s", page, name)
			continue
		}
		if diff := cmp.Diff(structure(typ), keysOf(section)); diff != "" {
			t.Errorf("%s of %s (- the message, + the page):\n%s", name, page, diff)
		}
	}
	for name := range described {
		if want[name] == nil {
			t.Errorf("%s describes %s, which there is not", page, name)
		}
	}
	for typ, values := range constants(t) {
		for _, v := range values {
			if !strings.Contains(text, "| `"+v+"` |") {
				t.Errorf("%s has no row for the %s %q", page, typ, v)
			}
		}
	}
}

// constants returns the values of the string types of the protocol, as messages.go has them.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "messages.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if typ, ok := v.Type.(*ast.Ident); ok {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				all[typ.Name] = append(all[typ.Name], text)
			}
		}
	}
	if len(all["Code"]) == 0 || len(all["Mode"]) == 0 || len(all["Result"]) == 0 || len(all["Shape"]) == 0 {
		t.Fatalf("messages.go has the constants %v: want some of Code, Mode, Result and Shape", all)
	}
	return all
}

// A frame of a session, as the page has it: "> 0000001b {...}".
type shown struct {
	comments []string // lines before it
	out      bool     // of the side that connects
	length   string
	body     string
}

func (s shown) String() string {
	return fmt.Sprintf("%s %s %s", map[bool]string{true: ">", false: "<"}[s.out], s.length, s.body)
}

// session returns the frames of a session on the page, what is behind the last of them, and where the block begins and ends.
func session(t *testing.T, text, name string) (frames []shown, rest []string, begin, end int) {
	t.Helper()
	mark := "<!-- session " + name + " -->\n```text\n"
	begin = strings.Index(text, mark)
	if begin < 0 {
		t.Fatalf("%s has no session %s", page, name)
	}
	begin += len(mark)
	end = begin + strings.Index(text[begin:], "```")
	var comments []string
	for line := range strings.Lines(text[begin:end]) {
		line = strings.TrimSuffix(line, "\n")
		way, frame, _ := strings.Cut(line, " ")
		length, body, _ := strings.Cut(frame, " ")
		if way != ">" && way != "<" {
			comments = append(comments, line)
			continue
		}
		frames = append(frames, shown{comments, way == ">", length, body})
		comments = nil
	}
	return frames, comments, begin, end
}

// The frames on the page are what a program would send, byte for byte.
func TestPage_Frames(t *testing.T) {
	text := readPage(t)
	seen := map[proto.Kind]bool{}
	for _, name := range []string{"shim", "rail"} {
		frames, _, _, _ := session(t, text, name)
		for _, f := range frames {
			head, err := hex.DecodeString(f.length)
			if err != nil || len(head) != 4 {
				t.Fatalf("%s: %q is no length of four bytes", f, f.length)
			}
			if n := binary.BigEndian.Uint32(head); int(n) != len(f.body) {
				t.Errorf("%s: the length is %08x", f, len(f.body))
			}
			m, err := proto.Parse([]byte(f.body))
			if err != nil {
				t.Fatal(err)
			}
			seen[proto.KindOf(m)] = true
			if got, err := proto.Append(nil, m); err != nil || string(got) != string(head)+f.body {
				t.Errorf("%s is written as %08x %s, %v", f, len(got)-4, got[4:], err)
			}
		}
	}
	if len(seen) < 15 {
		t.Errorf("the sessions show %v only", seen)
	}
}

// A golden file has a frame of every kind of message, as hex of what goes over the wire.
func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/frames.golden")
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for _, m := range samples {
		frame, err := proto.Append(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&got, "%08x %s\n", frame[:4], frame[4:])
	}
	if *update {
		if err := os.WriteFile("testdata/frames.golden", got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(string(text), got.String()); diff != "" {
		t.Errorf("frames have changed, which other implementations will not understand (- golden, + now):\n%s", diff)
	}
	var kinds []proto.Kind
	for _, m := range samples {
		kinds = append(kinds, proto.KindOf(m))
	}
	slices.Sort(kinds)
	if diff := cmp.Diff(proto.Kinds(), slices.Compact(kinds)); diff != "" {
		t.Errorf("not all kinds have a sample: %s", diff)
	}
}
