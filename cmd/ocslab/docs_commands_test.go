package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/experiment/plan"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/lab"
)

// A shellCommand is the words of an ocslab command line, without the program.
type shellCommand struct {
	args []string
	part bool // an ellipsis stands for some of it
}

// shellWord matches what a shell would read as one word, or an operator.
var shellWord = regexp.MustCompile(`[0-9]?[<>]+(?:&[0-9-])?|(?:'[^']*'|"(?:\\.|[^"\\])*"|\\.|[^\s'"\\;&|()<>#` + "`" + `$]|\$\{[^}]*\}|\$[\w@*#?-]|\$$|[^\s;&|()<>]#)+|\$\(|[;&|()` + "`" + `]+|#.*`)

// commandsIn returns the commands of ocslab in shell text. It knows as much of a shell as
// the pages use.
func commandsIn(text string) (commands []shellCommand) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.Lines(text) {
		var words []string
		flush := func() {
			if c, ok := ofProgram(words); ok {
				commands = append(commands, c)
			}
			words = nil
		}
		redirected := false
		for _, w := range shellWord.FindAllString(line, -1) {
			switch {
			case w[0] == '#':
			case strings.ContainsAny(w[:1], ";&|()`") || w == "$(":
				flush()
			case strings.Contains(w, ">") && strings.Trim(w, "0123456789<>&-") == "" || strings.Trim(w, "<") == "":
				redirected = !strings.Contains(w, "&")
			case redirected: // the file
				redirected = false
			default:
				words = append(words, w)
			}
		}
		flush()
	}
	return commands
}

var (
	shellQuoted   = regexp.MustCompile(`'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)`)
	shellVariable = regexp.MustCompile(`^\$\w+$`)
	assignment    = regexp.MustCompile(`^\w+=`)
	beforeCommand = []string{"if", "then", "else", "elif", "while", "until", "do", "!", "time", "exec", "sudo", "nohup", "{"}
)

// ofProgram returns the command of simple shell command words, if that is ocslab.
func ofProgram(words []string) (shellCommand, bool) {
	for len(words) > 0 && (assignment.MatchString(words[0]) || slices.Contains(beforeCommand, words[0])) {
		words = words[1:]
	}
	switch {
	case len(words) > 0 && (words[0] == "ocslab" || words[0] == "./ocslab"):
		words = words[1:]
	case len(words) > 2 && words[0] == "go" && words[1] == "run" && words[2] == "./cmd/ocslab":
		words = words[3:]
	default:
		return shellCommand{}, false
	}
	var c shellCommand
	for _, w := range words {
		if shellVariable.MatchString(w) { // without quotes: any number of words
			c.part = true
			continue
		}
		w = shellQuoted.ReplaceAllString(w, "$1$2$3")
		if strings.Contains(w, "…") || w == "..." {
			c.part = true
			if w == "…" || w == "..." {
				continue
			}
		}
		c.args = append(c.args, w)
	}
	return c, true
}

// commandTree returns the commands of ocslab as they are.
func commandTree() *cobra.Command {
	root := (&app{out: io.Discard, err: io.Discard}).command()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	return root
}

// check holds a command line against the program: subcommand, flags, their values, and how
// many arguments there are. Nothing is run.
func (c shellCommand) check() error {
	cmd, rest, err := commandTree().Find(c.args)
	if err != nil {
		return err
	}
	cmd.InitDefaultHelpFlag()
	if c.part {
		if words := slices.DeleteFunc(rest, func(w string) bool { return strings.HasPrefix(w, "-") }); !cmd.HasParent() && len(words) > 0 && len(c.args) == len(words) {
			return fmt.Errorf("there is no subcommand %q", words[0])
		}
		return flagsExist(cmd, c.args)
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	args := cmd.Flags().Args()
	if !cmd.HasParent() && len(args) > 0 {
		return fmt.Errorf("there is no subcommand %q", args[0])
	}
	if help, _ := cmd.Flags().GetBool("help"); help {
		return nil
	}
	if err := chosenValues(cmd); err != nil {
		return err
	}
	if cmd.HasSubCommands() && len(args) > 0 && cmd.HasParent() && !cmd.Runnable() {
		return fmt.Errorf("%s has no subcommand %q", cmd.CommandPath(), args[0])
	}
	if err := cmd.ValidateRequiredFlags(); err != nil {
		return err
	}
	return cmd.ValidateArgs(args)
}

// flagsExist reports flags that a command does not have.
func flagsExist(cmd *cobra.Command, words []string) (err error) {
	for _, w := range words {
		name, _, _ := strings.Cut(w, "=") // --plot=false
		long, isLong := strings.CutPrefix(name, "--")
		short, isShort := strings.CutPrefix(name, "-")
		if isLong && long != "" && cmd.Flag(long) == nil || isShort && !isLong && len(short) == 1 && cmd.Flags().ShorthandLookup(short) == nil {
			err = errors.Join(err, fmt.Errorf("%s has no flag %s", cmd.CommandPath(), name))
		}
	}
	return err
}

// chosenValues reports a flag whose value is none of those that its usage names: `a|b|c`.
func chosenValues(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		name, _ := pflag.UnquoteUsage(f)
		if choices := strings.Split(name, "|"); len(choices) > 1 && !slices.Contains(choices, f.Value.String()) {
			err = errors.Join(err, fmt.Errorf("--%s %s: want one of %s", f.Name, f.Value, name))
		}
	})
	return err
}

func TestCommandsIn(t *testing.T) {
	for text, want := range map[string][][]string{
		"ocslab show":                                      {{"show"}},
		"go build -o ocslab ./cmd/ocslab":                  nil,
		"./ocslab connect rail0 '1>33,2>34' # no":          {{"connect", "rail0", "1>33,2>34"}},
		"A=b ocslab --json runs list | head; ocslab undo":  {{"--json", "runs", "list"}, {"undo"}},
		"ocslab run \\\n  x.yaml >out 2>&1 && ocslab undo": {{"run", "x.yaml"}, {"undo"}},
		"if ! url=$(ocslab emulate --json); then":          {{"emulate", "--json"}},
		"go run ./cmd/ocslab demo &":                       {{"demo"}},
		"printf '%s' ocslab show":                          nil,
		`sh -c "ocslab show"`:                              nil,
		"ocslab --lab … watch":                             {{"--lab", "watch"}},
		"ocslab show 'tl1://a?b=c&d=e#f'":                  {{"show", "tl1://a?b=c&d=e#f"}},
	} {
		var got [][]string
		for _, c := range commandsIn(text) {
			got = append(got, c.args)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	for line, want := range map[string]string{
		"ocslab show rail0": "",
		"ocslab --lab x.yaml --emulated run y.yaml --rung memory": "",
		"ocslab nosuch":                              "nosuch",
		"ocslab show --nosuch":                       "nosuch",
		"ocslab measure --rung veht --from a --to b": "veht",
		"ocslab connect rail0":                       "arg",
		"ocslab runs nosuch":                         "nosuch",
		"ocslab measure --from":                      "argument",
		"ocslab help run; ocslab completion bash; ocslab show --help":  "",
		"ocslab calibrate mzi ocstrx+serial:///dev/ttyACM0 --scope mi": "",
	} {
		var err error
		for _, c := range commandsIn(line) {
			err = errors.Join(err, c.check())
		}
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: got %v, want %q", line, err, want)
		}
	}
}

// What pages tell to type is understood: subcommands, flags, and their values.
func TestPages_Commands(t *testing.T) {
	count := 0
	for _, p := range pages(t) {
		if p.name == "CHANGELOG.md" {
			continue // it tells of what there was
		}
		for _, b := range p.blocks {
			text := b.text
			switch b.lang {
			case "console":
				text = b.session().script()
			case "sh", "bash", "shell":
			default:
				continue
			}
			for _, c := range commandsIn(text) {
				count++
				if err := c.check(); err != nil {
					t.Errorf("%s:%d: ocslab %s: %v", p.name, b.line, strings.Join(c.args, " "), err)
				}
			}
		}
		for _, s := range p.spans {
			if strings.ContainsAny(s.text, "[") || strings.Contains(s.text, "COMMAND") {
				continue // a form, not a command
			}
			for _, c := range commandsIn(s.text) {
				c.part = true // what matters to the sentence
				if err := c.check(); err != nil {
					t.Errorf("%s:%d: `%s`: %v", p.name, s.line, s.text, err)
				}
			}
		}
	}
	if count < 50 {
		t.Errorf("only %d commands were found on all pages", count)
	}
}

// The table of commands names every command there is, and no flag that there is not.
func TestPages_CommandTable(t *testing.T) {
	listed := map[string]bool{}
	for _, r := range pageNamed(t, pages(t), "docs/cli.md").rows {
		if r.section != "Commands" {
			continue
		}
		for _, form := range r.spans[0] {
			words := strings.Fields(strings.NewReplacer("[", " ", "]", " ", "...", " ").Replace(form))
			if strings.HasPrefix(form, "-") {
				continue // flags of the commands before
			}
			cmd := commandTree()
			for _, alternative := range alternatives(words) {
				var err error
				if cmd, _, err = commandTree().Find(alternative); err != nil || !cmd.HasParent() {
					t.Errorf("docs/cli.md: `%s`: no such command", form)
				}
				for c := cmd; c.HasParent(); c = c.Parent() {
					listed[c.CommandPath()] = true
				}
			}
			if err := flagsExist(cmd, words); err != nil {
				t.Errorf("docs/cli.md: `%s`: %v", form, err)
			}
		}
	}
	var each func(c *cobra.Command)
	each = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "completion" && sub.Name() != "help" {
				if !listed[sub.CommandPath()] {
					t.Errorf("docs/cli.md: %s is not in the table of commands", sub.CommandPath())
				}
				each(sub)
			}
		}
	}
	each(commandTree())
}

// alternatives returns "runs pause|stop RUN" as "runs pause RUN" and "runs stop RUN".
func alternatives(words []string) (all [][]string) {
	i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "|") || strings.HasPrefix(w, "-") })
	if i < 0 || words[i][0] == '-' {
		return [][]string{words}
	}
	for w := range strings.SplitSeq(words[i], "|") {
		all = append(all, slices.Concat(words[:i], []string{w}, words[i+1:]))
	}
	return all
}

// The exit codes of the page are those of the program, on all pages.
func TestPages_ExitCodes(t *testing.T) {
	want := []string{}
	for _, c := range []int{exitDone, exitFailed, exitUsage, exitRefused, exitDevice, exitVerify, exitInterrupted} {
		want = append(want, strconv.Itoa(c))
	}
	all := pages(t)
	var got []string
	for _, r := range pageNamed(t, all, "docs/cli.md").rows {
		if r.section == "Exit codes" && r.cells[0] != "code" {
			got = append(got, r.cells[0])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("docs/cli.md has the exit codes %v, want %v", got, want)
	}
	mention := regexp.MustCompile(`[Ee]xit code ([0-9]+)`)
	for _, p := range all {
		for _, m := range mention.FindAllSubmatch(p.source, -1) {
			if !slices.Contains(want, string(m[1])) {
				t.Errorf("%s: there is no exit code %s", p.name, m[1])
			}
		}
	}
}

// Each kind of line that --json prints is on the page, and each on the page is printed.
func TestPages_Kinds(t *testing.T) {
	code, words := kindsOfProgram(t)
	page, keys := map[string]bool{}, map[string]bool{}
	for _, r := range pageNamed(t, pages(t), "docs/cli.md").rows {
		if (r.section == "JSON" || r.section == "Runs") && r.cells[0] != "kind" && len(r.spans) > 2 {
			for _, kind := range r.spans[0] {
				page[kind] = true
			}
			for _, list := range r.spans[2] {
				if words[list] {
					continue // one value of several words: "as claimed"
				}
				for _, key := range strings.Fields(strings.NewReplacer("(", "", ")", "", "…", "").Replace(list)) {
					if jsonKey.MatchString(key) {
						keys[key] = true
					}
				}
			}
		}
	}
	if len(page) < 50 {
		t.Fatalf("only %d kinds are on the page", len(page))
	}
	for kind, at := range code {
		if !page[kind] {
			t.Errorf("docs/cli.md does not have the kind %q, which %s prints", kind, at)
		}
	}
	for kind := range page {
		if !words[kind] {
			t.Errorf("docs/cli.md has the kind %q, which nothing prints", kind)
		}
	}
	for key := range keys {
		if !words[key] {
			t.Errorf("docs/cli.md has the key %q, which nothing prints", key)
		}
	}
}

// kindsOfProgram returns the kinds of lines that cmd/ocslab makes, with where, and all
// words that are keys or values of lines anywhere in the module: texts and tags.
func kindsOfProgram(t *testing.T) (kinds map[string]string, words map[string]bool) {
	t.Helper()
	kinds, words = map[string]string{}, map[string]bool{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(repositoryRoot, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != repositoryRoot && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ofProgram := filepath.Dir(name) == filepath.Join(repositoryRoot, "cmd/ocslab")
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
					words[s] = true
				}
			case *ast.Field:
				if n.Tag == nil {
					break
				}
				tag, _ := strconv.Unquote(n.Tag.Value)
				key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
				words[key] = true
				// By convention the comment beside the key says what the kind is.
				if key == "kind" && ofProgram && n.Comment != nil {
					for _, m := range quotedWord.FindAllStringSubmatch(n.Comment.Text(), -1) {
						kinds[m[1]] = fset.Position(n.Pos()).String()
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Kind" && ofProgram {
					if v, ok := n.Value.(*ast.BasicLit); ok && v.Kind == token.STRING {
						kind, _ := strconv.Unquote(v.Value)
						kinds[kind] = fset.Position(n.Pos()).String()
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return kinds, words
}

var jsonKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

var quotedWord = regexp.MustCompile(`"([a-z-]+)"`)

// Files that pages show can be read: whole ones by the package whose files they are. Those
// called wrong... cannot.
func TestPages_Files(t *testing.T) {
	whole := 0
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			ok, err := b.readable()
			if strings.HasPrefix(b.name, "wrong") { // to show what is said of it
				if err == nil {
					t.Errorf("%s:%d: nothing is wrong with %s", p.name, b.line, b.name)
				}
			} else if err != nil {
				t.Errorf("%s:%d: %v", p.name, b.line, err)
			}
			if ok {
				whole++
			}
			if b.name == "" || b.lang == "console" {
				continue
			}
			data, err := os.ReadFile(filepath.Join(repositoryRoot, b.name))
			switch {
			case err != nil && strings.Contains(b.name, "/"):
				t.Errorf("%s:%d: shows %s: %v", p.name, b.line, b.name, err)
			case err != nil: // of the page alone: see sessions
			case b.lang == "go":
				for _, part := range strings.Split(b.text, "\n…\n") {
					if !strings.Contains(string(data), strings.Trim(part, "\n")) {
						t.Errorf("%s:%d: %s does not have\n%s", p.name, b.line, b.name, part)
					}
				}
			case string(data) != b.text:
				t.Errorf("%s:%d: is not what is in %s", p.name, b.line, b.name)
			}
		}
	}
	if whole < 5 {
		t.Errorf("only %d whole files were found on all pages", whole)
	}
}

// readable parses what a block shows, and reports whether that is a whole file that some
// package reads. A block with "…" is a part.
func (b pageBlock) readable() (whole bool, err error) {
	part := strings.Contains(b.text, "…")
	switch b.lang {
	case "json":
		for line := range strings.Lines(b.text) {
			if !part && !json.Valid([]byte(line)) {
				if json.Valid([]byte(b.text)) {
					return true, nil // one object on several lines
				}
				return false, fmt.Errorf("no JSON: %s", line)
			}
		}
		return !part, nil
	case "markdown", "md":
		if !part && strings.HasPrefix(b.text, "---\n") {
			_, err := firmwarenotes.Parse("note.md", []byte(b.text))
			return true, err
		}
		return false, nil
	case "yaml", "yml":
	default:
		return false, nil
	}
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(b.text), &keys); err != nil {
		var list []any
		if yaml.Unmarshal([]byte(b.text), &list) == nil {
			return false, nil
		}
		return false, err
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { _, ok := keys[n]; return !ok })
	}
	data := []byte(b.text)
	switch {
	case part:
		return false, nil
	case has("name", "switches"):
		_, err = lab.Parse("lab.yaml", data)
	case has("name", "sequence"):
		_, err = plan.Parse("experiment.yaml", data)
	case has("model", "switching", "size"):
		_, err = emulator.ParsePersonality("personality.yaml", data)
	default:
		return false, nil
	}
	return true, err
}

// The page about personalities has every key there is, and no other.
func TestPages_PersonalityKeys(t *testing.T) {
	want := map[string]bool{}
	var each func(reflect.Type)
	each = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Slice:
			each(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				key, _, _ := strings.Cut(typ.Field(i).Tag.Get("yaml"), ",")
				if key == "" || key == "-" {
					continue
				}
				want[key] = true
				each(typ.Field(i).Type)
			}
		}
	}
	each(reflect.TypeFor[emulator.Personality]())
	if len(want) < 30 {
		t.Fatalf("only %d keys: %v", len(want), want)
	}
	page := pageNamed(t, pages(t), "docs/write-a-personality.md")
	got := map[string]bool{}
	for _, r := range page.rows {
		if r.section == "All keys" {
			for _, list := range slices.Concat(r.spans...) {
				for _, key := range strings.Fields(list) {
					got[strings.TrimSuffix(key, ":")] = true
				}
			}
		}
	}
	text := string(page.source)
	for key := range want {
		// Those of lists are in an example of the page, or of the page about notes.
		if !got[key] && !strings.Contains(text, key+":") {
			t.Errorf("docs/write-a-personality.md does not have the key %s", key)
		}
	}
}
