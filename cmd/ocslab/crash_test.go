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

	"github.com/ocslab/ocslab/experiment"
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
	command, must := program(t, dir)
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
			if err != nil && !onlyBusy(stderr.Bytes()) {
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
	if left, want := shown(must("show", "rail0")), []string{"1>40", "9>41"}; !slices.Equal(left, want) {
		t.Errorf("the light is left at %v, want %v", left, want)
	}
	t.Logf("%d kills, %d resumes", killed, resumed)
}

// fatalExperiment kills the program after a point, as long as there is a file named kill.
const fatalExperiment = `
name: fatal
sequence: [dp, pp]
parameters: {switching: 10ms, firmware: quick}
repeats: 2
warm_ups: 0
nulls: {count: 0}
wait: settled
hooks: {after_point: [{run: [sh, -c, 'test ! -e kill || kill -9 $PPID']}]}
finally: {light: restore}
`

// Ensure that a run that is killed before its first session is recorded, and again after it
// was resumed and has moved the light, still knows how the light was found.
func TestRun_KilledBeforeSession(t *testing.T) {
	dir := t.TempDir()
	command, must := program(t, dir)
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "fatal.yaml")
	write(file, fatalExperiment)
	must("connect", "rail0", "1>40,9>41")
	must("run", file, "--rung", "memory", "--mode", "update") // 1>40 is in the way

	// Nothing but the plan is left of it, and the light is as it was.
	run := filepath.Join(dir, "state", "runs", must("runs", "list")[0]["run"].(string))
	write(filepath.Join(run, "events.ndjson"), "")
	write(filepath.Join(run, "samples.ndjson"), "")
	if err := os.Remove(filepath.Join(run, "summary.json")); err != nil {
		t.Fatal(err)
	}

	kill := filepath.Join(dir, "kill")
	write(kill, "")
	for range 2 {
		if out, err := command("runs", "resume", "last").CombinedOutput(); err == nil {
			t.Fatalf("it was not killed:\n%s", out)
		}
		if left := shown(must("show", "rail0")); slices.Contains(left, "1>40") {
			t.Fatalf("it was killed before it had moved the light: %v", left)
		}
	}
	if err := os.Remove(kill); err != nil {
		t.Fatal(err)
	}
	must("runs", "finish", "last")
	if left, want := shown(must("show", "rail0")), []string{"1>40", "9>41"}; !slices.Equal(left, want) {
		t.Errorf("the light is left at %v, want %v", left, want)
	}
}

// program returns how the program is run in a directory, with its state there: as a command,
// and so that it must do well, with what it has written.
func program(t *testing.T, dir string) (command func(args ...string) *exec.Cmd, must func(args ...string) []map[string]any) {
	t.Helper()
	path := filepath.Join(dir, "ocslab")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, path); err != nil { // testscript.Main goes by the name
		t.Fatal(err)
	}
	command = func(args ...string) *exec.Cmd {
		cmd := exec.Command(path, append([]string{"--emulated", "--json", "--state-dir", filepath.Join(dir, "state")}, args...)...)
		cmd.Dir = dir
		return cmd
	}
	must = func(args ...string) []map[string]any {
		t.Helper()
		cmd := command(args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil && !onlyBusy(stderr.Bytes()) {
			t.Fatalf("%v: %v\n%s%s", args, err, out, stderr.String())
		}
		return objects(t, out)
	}
	return command, must
}

// onlyBusy reports whether a run is done, but was measured on a machine that was too busy.
func onlyBusy(stderr []byte) bool { return bytes.Contains(stderr, []byte(experiment.ErrBusy.Error())) }

// shown are the circuits that "show" has written.
func shown(lines []map[string]any) (list []string) {
	for _, c := range lines {
		if c["kind"] == "cross-connect" {
			list = append(list, number(int(c["ingress"].(float64)))+">"+number(int(c["egress"].(float64))))
		}
	}
	return list
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
