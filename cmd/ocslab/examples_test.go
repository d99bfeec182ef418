package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// exampleAt finds files of the examples in scripts, such as $EXAMPLES/desk.sh or
// "$EXAMPLES"/experiments/*.yaml.
var exampleAt = regexp.MustCompile(`\$EXAMPLES"?/([\w./*-]+)`)

// Every file of examples/ is run by a test: scripts named examples-*.txtar run labs,
// experiments, scripts; programs in Go have tests beside them; pages and what they show
// are checked by TestPages. A file that nothing runs would soon be wrong.
func TestExamples_AllRun(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var run []string
	for _, s := range scripts {
		text, err := os.ReadFile(s)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(strings.TrimSpace(line), "#") {
				continue
			}
			for _, m := range exampleAt.FindAllStringSubmatch(line, -1) {
				run = append(run, m[1])
			}
		}
	}
	for _, name := range examplesIn(t) {
		if !coveredBy(t, name, run) {
			t.Errorf("examples/%s: no test runs it: add it to testdata/script/examples-users.txtar", name)
		}
	}
	for _, pattern := range run { // and what is run is there
		found, err := filepath.Glob(filepath.Join(examplesDir, pattern))
		if err != nil || len(found) == 0 {
			t.Errorf("a script names $EXAMPLES/%s, which is not there", pattern)
		}
	}
}

const examplesDir = "../../examples"

// examplesIn returns all files of the examples.
func examplesIn(t *testing.T) (names []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(examplesDir), ".", func(name string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "__pycache__" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			names = append(names, name)
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("%d examples: %v", len(names), err)
	}
	return names
}

// coveredBy reports whether a test runs an example.
func coveredBy(t *testing.T, name string, run []string) bool {
	t.Helper()
	if ext := path.Ext(name); ext == ".md" || strings.HasSuffix(name, "_test.go") {
		return true // TestPages reads all pages; go test runs the other
	} else if ext == ".go" || path.Dir(name) == "ci" {
		tests, err := filepath.Glob(filepath.Join(examplesDir, path.Dir(name), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		return len(tests) > 0
	}
	for _, pattern := range run {
		if ok, err := path.Match(pattern, name); err == nil && ok {
			return true
		}
	}
	return false
}

// Shell scripts are read by the shell they ask for, up to the end.
func TestExamples_Syntax(t *testing.T) {
	for _, name := range examplesIn(t) {
		if path.Ext(name) != ".sh" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(examplesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "#!/bin/sh\n") || !strings.Contains(string(text), "\nset -eu") {
			t.Errorf("%s: want #!/bin/sh, and set -eu, by which an error ends it", name)
		}
		for _, shell := range []string{"sh", "bash"} {
			if _, err := exec.LookPath(shell); err != nil {
				continue
			}
			if out, err := exec.Command(shell, "-n", filepath.Join(examplesDir, name)).CombinedOutput(); err != nil {
				t.Errorf("%s -n %s: %v: %s", shell, name, err, out)
			}
		}
	}
}

// What the comment at the head of an example tells to run has subcommands and flags that
// there are, and names files that are there.
func TestExamples_Comments(t *testing.T) {
	for _, name := range examplesIn(t) {
		switch path.Ext(name) {
		case ".yaml", ".yml", ".sh":
		default:
			continue
		}
		text, err := os.ReadFile(filepath.Join(examplesDir, name))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			command, found := strings.CutPrefix(line, "#   ")
			if !found {
				continue
			}
			for _, c := range commandsIn(command) {
				if err := c.check(); err != nil {
					t.Errorf("examples/%s: %s: %v", name, strings.TrimSpace(command), err)
				}
			}
			for word := range strings.FieldsSeq(command) {
				if strings.HasPrefix(word, "examples/") {
					if _, err := os.Stat(filepath.Join("../..", word)); err != nil {
						t.Errorf("examples/%s: %s: %v", name, strings.TrimSpace(command), err)
					}
				}
			}
		}
	}
}

// exitof runs a program as exec does, and wants an exit code, or one of several.
func exitof(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitof N PROGRAM [ARG...]")
	}
	want := exitCodes(ts, args[0])
	err := ts.Exec(args[1], args[2:]...)
	got := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if !slices.Contains(want, got) {
		ts.Fatalf("exit code %d, want %s", got, args[0])
	}
}
