// Package ci_test checks the form of the workflow of this folder. What it runs is run by
// the scripts of cmd/ocslab.
package ci_test

import (
	"os"
	"path/filepath"
	"regexp"
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
		if _, err := os.Stat(filepath.Join("../..", job.Env["EXPERIMENT"])); err != nil || job.Env["EXPERIMENT"] == "" {
			t.Errorf("job %s has no experiment: %v", name, err)
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
