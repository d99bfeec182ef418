package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

var kills = flag.Int("kills", 12, "how often TestRun_Killed kills the program")

// crashExperiment is short and has everything: conditions that need setting up anew, hooks,
// null toggles, and light that was there before.
const crashExperiment = `
name: crash
sequence: [dp, pp]
parameters: {firmware: quick}
axes: [{grid: {switching: [10ms, 20ms]}}]
repeats: 12
warm_ups: 0
nulls: {count: 4, window: 20ms}
order: interleaved
wait: carrier
hooks: {before_point: [{run: [sh, -c, 'test -n "$OCSLAB_POINT"']}]}
finally: {light: restore}
`

// Ensure that a run that is killed with SIGKILL at random moments, and resumed as often,
// comes to exactly the points of its plan, each once, and leaves the light as it was found.
func TestRun_Killed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes about half a second for each of -kills")
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "crash.yaml")
	if err := os.WriteFile(file, []byte(crashExperiment), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "ocslab")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, program); err != nil { // testscript.Main goes by the name
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(program, append([]string{"--emulated", "--json", "--state-dir", filepath.Join(dir, "state")}, args...)...)
		cmd.Dir = dir
		return cmd
	}
	must := func(args ...string) []map[string]any {
		t.Helper()
		cmd := command(args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.String())
		}
		return objects(t, out)
	}
	must("connect", "rail0", "1>40,9>41")

	random := rand.New(rand.NewPCG(1, 2))
	first := []string{"run", file, "--rung", "memory", "--mode", "update"} // 1>40 is in the way
	args := first
	killed, resumed := 0, 0
	for done := false; !done; {
		cmd := command(args...)
		var out, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		moment := time.Hour
		if killed < *kills {
			moment = 20*time.Millisecond + time.Duration(random.Int64N(int64(700*time.Millisecond)))
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("after %d kills: %v\n%s%s", killed, err, out.String(), stderr.String())
			}
			done = true
		case <-time.After(moment):
			cmd.Process.Kill()
			var exit *exec.ExitError
			if err := <-ended; errors.As(err, &exit) && !exit.Exited() {
				killed++
			}
		}
		if list := must("runs", "list"); len(list) == 1 {
			args = []string{"runs", "resume", list[0]["run"].(string)}
			resumed++
		} else if len(list) > 1 {
			t.Fatalf("%d runs, want one", len(list))
		}
		if done && killed < *kills { // there is time for more: from the beginning
			must("runs", "rm", "last")
			args, done = first, false
		}
	}

	var points, moves []int
	for _, p := range must("runs", "export", "last", "--table", "points", "--format", "ndjson") {
		points = append(points, int(p["point"].(float64)))
		if p["state"] != "done" {
			t.Errorf("point %v is not done", p["point"])
		}
	}
	for _, m := range must("runs", "export", "last", "--table", "reconfigurations", "--format", "ndjson") {
		moves = append(moves, int(m["reconfiguration"].(float64)))
	}
	for what, x := range map[string]struct {
		got  []int
		want int
	}{"points": {points, 28}, "reconfigurations": {moves, 52}} {
		slices.Sort(x.got)
		for i, n := range x.got {
			if n != i+1 {
				t.Errorf("%s: %v, want each of 1 to %d once", what, x.got, x.want)
				break
			}
		}
		if len(x.got) != x.want {
			t.Errorf("%d %s, want %d", len(x.got), what, x.want)
		}
	}
	var left []string
	for _, c := range must("show", "rail0") {
		if c["kind"] == "cross-connect" {
			left = append(left, number(int(c["ingress"].(float64)))+">"+number(int(c["egress"].(float64))))
		}
	}
	if want := []string{"1>40", "9>41"}; !slices.Equal(left, want) {
		t.Errorf("the light is left at %v, want %v", left, want)
	}
	t.Logf("%d kills, %d resumes", killed, resumed)
}

// objects reads JSON lines.
func objects(t *testing.T, lines []byte) (list []map[string]any) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var o map[string]any
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, o)
	}
	return list
}
