package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/ocslab/ocslab/timeline"
)

var (
	loadLoops = flag.Int("load", 0, "busy loops beside TestMeasure_Load")
	loadRuns  = flag.Int("load-runs", 1, "how often TestMeasure_Load measures")
)

// TestMeasure_Load: beside busy loops every mark contains the truth or is of a reconfiguration
// that is marked; when more than 1 % are, the exit code is 5.
func TestMeasure_Load(t *testing.T) {
	for range *loadLoops {
		loop := exec.Command("sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			loop.Process.Kill()
			loop.Wait()
		}()
	}
	marks, inside, busy, moves, refused := 0, 0, 0, 0, 0
	for range *loadRuns {
		dir := t.TempDir()
		cmd := exec.Command("ocslab", "--emulated", "--json", "measure", "--from", "dp", "--to", "pp", "-n", "10", "--accuracy", "--firmware", "quick")
		cmd.Env = append(os.Environ(), "HOME="+dir, "OCSLAB_STATE_DIR="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			t.Fatal(err)
		}
		disturbed, summary := 0, 0
		for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
			var line struct {
				Kind             string         `json:"kind"`
				Stage            timeline.Stage `json:"stage"`
				Count            int            `json:"count"`
				Inside           int            `json:"inside"`
				Reconfigurations int            `json:"reconfigurations"`
				Busy             int            `json:"busy"`
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			switch line.Kind {
			case "busy":
				disturbed++
			case "accuracy":
				marks, inside = marks+line.Count, inside+line.Inside
				if line.Inside != line.Count {
					t.Errorf("%s: %d of %d marks contain the truth", line.Stage, line.Inside, line.Count)
				}
			case "summary":
				summary++
				if line.Busy != disturbed || line.Reconfigurations+line.Busy != 10 {
					t.Errorf("%d reconfigurations and %d busy, want 10 with %d", line.Reconfigurations, line.Busy, disturbed)
				}
			}
		}
		want := 0
		if disturbed > 0 {
			want = 5
			refused++
		}
		if code != want || summary != 1 {
			t.Fatalf("exit code %d with %d of 10 disturbed and %d summaries: %s", code, disturbed, summary, stderr.String())
		}
		busy, moves = busy+disturbed, moves+10
	}
	t.Logf("%d of %d marks contain the truth; %d of %d reconfigurations were marked, and %d of %d runs refused",
		inside, marks, busy, moves, refused, *loadRuns)
}
