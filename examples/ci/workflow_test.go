// Package ci_test holds the workflow of this folder against the program.
package ci_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is as much of the language of GitHub's workflows as the example uses. Other
// keys are refused, since GitHub says nothing of a misspelt one but in a run.
type workflow struct {
	Name string `yaml:"name"`
	On   struct {
		Push             any `yaml:"push"`
		PullRequest      any `yaml:"pull_request"`
		WorkflowDispatch any `yaml:"workflow_dispatch"`
	} `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Jobs        map[string]struct {
		RunsOn  string            `yaml:"runs-on"`
		Timeout int               `yaml:"timeout-minutes"`
		Env     map[string]string `yaml:"env"`
		Steps   []step            `yaml:"steps"`
	} `yaml:"jobs"`
}

type step struct {
	Name string            `yaml:"name"`
	If   string            `yaml:"if"`
	Uses string            `yaml:"uses"`
	With map[string]string `yaml:"with"`
	Run  string            `yaml:"run"`
}

func read(t *testing.T) workflow {
	t.Helper()
	f, err := os.Open("github-actions.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	var w workflow
	if err := d.Decode(&w); err != nil {
		t.Fatal(err)
	}
	return w
}

// Each step does one thing, with actions of a known version, and none hides that it
// failed.
func TestSteps(t *testing.T) {
	pinned := regexp.MustCompile(`^[\w-]+/[\w-]+@v[0-9]+$`)
	for name, job := range read(t).Jobs {
		if job.RunsOn == "" || job.Timeout == 0 || len(job.Steps) == 0 {
			t.Errorf("job %s: %+v", name, job)
		}
		gates := 0
		for _, s := range job.Steps {
			if (s.Uses == "") == (s.Run == "") {
				t.Errorf("step %q: want one of uses and run", s.Name)
			}
			if s.Uses != "" && !pinned.MatchString(s.Uses) {
				t.Errorf("%s is not pinned to a major version", s.Uses)
			}
			if strings.Contains(s.Run, "||") || strings.Contains(s.Run, "|") && strings.Contains(s.Run, "ocslab --emulated run") {
				t.Errorf("step %q loses an exit code: %s", s.Name, s.Run)
			}
			if strings.Contains(s.Run, " run ") && strings.Contains(s.Run, "--report") && s.If == "" {
				gates++
			}
		}
		if gates != 1 {
			t.Errorf("job %s: %d steps run an experiment, want one", name, gates)
		}
	}
}

// The commands that the workflow uses are commands of the program, and its files are there.
func TestCommandsExist(t *testing.T) {
	sources, err := filepath.Glob("../../cmd/ocslab/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of the program: %v", err)
	}
	var commands []string
	use := regexp.MustCompile(`\bUse:\s+"([a-z-]+)`)
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range use.FindAllStringSubmatch(string(text), -1) {
			commands = append(commands, m[1])
		}
	}
	found := 0
	for _, job := range read(t).Jobs {
		if path := job.Env["EXPERIMENT"]; path == "" {
			t.Error("no experiment")
		} else if _, err := os.Stat(filepath.Join("../..", path)); err != nil {
			t.Error(err)
		}
		for _, s := range job.Steps {
			for line := range strings.Lines(s.Run) {
				words := strings.Fields(line)
				if len(words) == 0 || words[0] != "ocslab" {
					continue
				}
				words = slices.DeleteFunc(words[1:], func(w string) bool { return strings.HasPrefix(w, "--") })
				want := words[:1]
				if words[0] == "runs" {
					want = words[:2]
				}
				for _, command := range want {
					found++
					if !slices.Contains(commands, command) {
						t.Errorf("%s: there is no command %s", strings.TrimSpace(line), command)
					}
				}
			}
		}
	}
	if found < 4 {
		t.Errorf("only %d commands were found", found)
	}
}
