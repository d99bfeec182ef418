package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// killsEnv asks for the long form of these tests, and says how often TestCommand_Killed kills each kind of command; the
// default is shortKills.
const (
	killsEnv   = "OCSLAB_TEST_KILLS"
	shortKills = 4
)

// benchLab is a lab of two switches, one with shutters and one without.
const benchLab = `name: bench
configurations:
  x: {maps: {a: "1>33,2>34"}}
  y: {maps: {a: "1>34,2>33"}}
switches:
  - {name: a, url: %q, emulate: {model: polatis-6000-32x32, switching: 5ms}}
  - {name: b, url: %q, emulate: {model: calient-s320, switching: 5ms}}
hosts:
  - name: g1
    nics:
      - {name: e0, tx: a/1, rx: a/33, firmware: quick}
      - {name: e1, tx: a/3, rx: a/35, firmware: quick}
      - {name: e2, tx: b/1, rx: b/321, firmware: quick}
  - name: g2
    nics:
      - {name: e0, tx: a/2, rx: a/34, firmware: quick}
      - {name: e1, tx: a/4, rx: a/36, firmware: quick}
      - {name: e2, tx: b/2, rx: b/322, firmware: quick}
`

const benchFiles = `== plan.yaml
mode: overwrite
switches: {a: "1>34,2>33,9>41", b: "1>322,2>321"}
== job.yaml
name: pair
pipeline: 2
rails:
  - {name: rail0, switch: a, ranks: [[g1/e0, g1/e1], [g2/e0, g2/e1]]}
`

// What the switches hold before a command.
var benchBefore = map[string]string{"a": "1>33,2>34,5>37", "b": "1>321,2>322"}

// bench is the lab of one test: emulated switches that outlive the commands, or the memory of those that a command
// emulates itself.
type bench struct {
	dir      string
	emulated bool
	devices  map[string]*emulator.Device // of switches that the test emulates
	urls     map[string]string           // of these
	scpi     string                      // the URL of a in SCPI
	file     string                      // "" for no lab file
}

func newBench(t *testing.T, emulated bool) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), emulated: emulated, devices: map[string]*emulator.Device{}}
	b.urls = map[string]string{"a": "tl1://192.0.2.1", "b": "tl1://192.0.2.2"}
	for name, model := range map[string]string{"a": "polatis-6000-32x32", "b": "calient-s320"} {
		if emulated {
			continue
		}
		e, err := lab.EmulationOf(model)
		if err != nil {
			t.Fatal(err)
		}
		e.Name = name
		e.Personality.Switching = emulator.Switching{Single: 5 * time.Millisecond, Bulk: 5 * time.Millisecond, Ack: emulator.AckAfter}
		if name == "a" {
			e.Listen = map[lab.Endpoint]string{lab.TL1: "", lab.SCPI: ""}
		}
		served, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { served.Close() })
		b.urls[name], b.devices[name] = served.URL(), served.Device
		if name == "a" {
			b.scpi = served.URLs()[lab.SCPI]
		}
	}
	b.file = filepath.Join(b.dir, "lab.yaml")
	b.write(t, "lab.yaml", fmt.Sprintf(benchLab, b.urls["a"], b.urls["b"]))
	for _, part := range strings.Split(benchFiles, "== ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		b.write(t, name, text)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(b.dir, "ocslab")); err != nil { // testscript.Main goes by the name
		t.Fatal(err)
	}
	return b
}

func (b *bench) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command is the real program on the lab, with a state directory of its own.
func (b *bench) command(state string, args ...string) *exec.Cmd {
	first := []string{"--state-dir", state}
	if b.file != "" {
		first = append(first, "--lab", b.file)
	}
	if b.emulated {
		first = append(first, "--emulated")
	}
	cmd := exec.Command(filepath.Join(b.dir, "ocslab"), append(first, args...)...)
	cmd.Dir = b.dir
	cmd.Env = append(os.Environ(), "OCSLAB_RECHECK=0s", "HOME="+b.dir, "XDG_CONFIG_HOME="+b.dir)
	return cmd
}

// run runs the program to its end and returns its exit code and what it has written.
func (b *bench) run(t *testing.T, state string, args ...string) (int, string) {
	t.Helper()
	out, err := b.command(state, args...).CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, string(out)
	case errors.As(err, &exit) && exit.Exited():
		return exit.ExitCode(), string(out)
	}
	t.Fatalf("%v: %v\n%s", args, err, out)
	return -1, ""
}

// held is what one switch holds.
type held struct {
	circuits ocs.Map
	closed   string // shutters
	monitors map[ocs.Port]emulator.Monitor
}

// String is for comparing.
func (h held) String() string {
	same := map[string][]ocs.Port{}
	for p, m := range h.monitors {
		text := fmt.Sprintf("%+v", m)
		same[text] = append(same[text], p)
	}
	text := fmt.Sprintf("circuits %v; closed %s", h.circuits, h.closed)
	for _, m := range sorted(same) {
		text += fmt.Sprintf("; monitors %s: %s", ocs.FormatPorts(same[m]), m)
	}
	return text
}

// held is what the switches hold.
func (b *bench) held(t *testing.T, state string) map[string]held {
	t.Helper()
	all := map[string]held{}
	b.with(t, state, func(name string, d *emulator.Device) {
		h := held{circuits: d.CrossConnects(), monitors: map[ocs.Port]emulator.Monitor{}}
		var closed []ocs.Port
		for _, p := range d.Geometry().Ports() {
			if d.ShutterClosed(p) {
				closed = append(closed, p)
			}
			if d.HasMonitor(p) {
				h.monitors[p] = d.Monitor(emulator.Forward, p)
			}
		}
		h.closed = ocs.FormatPorts(closed)
		all[name] = h
	})
	return all
}

// with calls do with each device.
func (b *bench) with(t *testing.T, state string, do func(name string, d *emulator.Device)) {
	t.Helper()
	if !b.emulated {
		for _, name := range sorted(b.devices) {
			do(name, b.devices[name])
		}
		return
	}
	data, err := os.ReadFile(b.file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse(b.file, data)
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, StateDir: state})
	defer l.Close()
	for _, s := range f.Switches {
		sw, err := l.Switch(t.Context(), s.Name)
		if err != nil {
			t.Fatal(err)
		}
		do(s.Name, sw.Emulated.Device)
	}
}

// reset gives the switches what they hold before a command.
func (b *bench) reset(t *testing.T, state string) {
	t.Helper()
	b.with(t, state, func(name string, d *emulator.Device) {
		g := d.Geometry()
		var held []ocs.Port
		for c := range d.CrossConnects().All() {
			held = append(held, c.Ingress)
		}
		if len(held) > 0 {
			if _, err := d.Disconnect(held...); err != nil {
				t.Fatal(err)
			}
		}
		m, err := ocs.ParseMap(benchBefore[name])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := d.Connect(m.Slice()); err != nil {
			t.Fatal(err)
		}
		if d.Personality().Model == "polatis-6000-32x32" {
			if err := d.SetShutters(false, g.Ports()...); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// record is the history in a state directory.
func record(t *testing.T, state string) []history.Entry {
	t.Helper()
	log, err := history.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	entries, problems, err := log.Entries()
	for _, p := range problems {
		if !strings.Contains(p.Reason, "torn") { // the line that was being written: nothing was sent for it
			t.Errorf("history: %v", p)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// killedCommand is a kind of command that moves light or changes settings.
type killedCommand struct {
	name     string
	emulated bool
	before   []string // run first, to its end
	args     []string
	window   time.Duration // in which it is killed; 0 is as long as it takes
}

var killedCommands = []killedCommand{
	{name: "connect", args: []string{"connect", "a", "6>38,7>39"}},
	{name: "connect update", args: []string{"connect", "a", "1>34,2>33", "--mode", "update"}},
	{name: "disconnect", args: []string{"disconnect", "a", "1,2"}},
	{name: "apply of two", args: []string{"apply", "plan.yaml"}},
	{name: "undo", before: []string{"apply", "plan.yaml"}, args: []string{"undo"}},
	{name: "restore", args: []string{"restore", "plan.yaml"}},
	{name: "measure", emulated: true, args: []string{"measure", "--from", "x", "--to", "y", "-n", "3", "--rung", "memory", "--no-probe"}, window: 2 * time.Second},
	{name: "conform", args: []string{"conform", "a", "--max-pairs", "2"}, window: time.Second},
	{name: "topology opus", args: []string{"topology", "opus", "job.yaml", "00", "--apply", "--mode", "update"}},
	{name: "shutters", args: []string{"shutters", "a", "close", "1-8"}},
	{name: "panic", args: []string{"panic", "--reason", "test"}},
	{name: "panic --lift", before: []string{"panic", "--reason", "test"}, args: []string{"panic", "--lift"}},
	{name: "orchestrate", args: []string{"orchestrate", "job.yaml", "--only", "rails", "--listen", "127.0.0.1:0"}, window: 300 * time.Millisecond},
	{name: "wiring", emulated: true, args: []string{"wiring", "--rung", "memory", "--nics", "g1/e0,g2/e0", "--mode", "update"}, window: 2 * time.Second},
	{name: "calibrate loss", args: []string{"calibrate", "loss", "a", "--ports", "1-3,33-35", "--mode", "update", "--no-store"}},
}

// Ensure that a command that is killed with SIGKILL at a random moment leaves nothing half recorded: whatever it has
// changed is in the history or is a panic, undo or "panic --lift" brings all of it back, the next change restores the
// settings of monitors, and no lock stays behind.
func TestCommand_Killed(t *testing.T) {
	kills := shortKills
	if text := os.Getenv(killsEnv); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		kills = n
	} else if testing.Short() {
		kills = 2
	}
	for _, kind := range killedCommands {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			seed := fnv.New64()
			seed.Write([]byte(kind.name))
			random := rand.New(rand.NewPCG(uint64(kills), seed.Sum64()))
			b := newBench(t, kind.emulated)
			window := kind.window
			if window == 0 { // how long it takes, the faster of two: the first may be slow
				window = min(b.kill(t, kind, "whole-1", time.Hour).took, b.kill(t, kind, "whole-2", time.Hour).took)
			}
			var killed, changed, undos int
			for n := range kills {
				r := b.kill(t, kind, "state-"+strconv.Itoa(n), time.Duration(random.Int64N(int64(window))))
				if r.killed {
					killed++
				}
				if r.changed {
					changed++
				}
				undos += r.undos
			}
			t.Logf("%d of %d killed within %v; %d left something changed; %d undos", killed, kills, window.Round(time.Millisecond), changed, undos)
		})
	}
}

// afterKill is what became of a command.
type afterKill struct {
	killed  bool // before it had ended
	changed bool // it left something changed
	took    time.Duration
	undos   int // to bring it back
}

// kill runs a command, kills it at a moment, checks what it has left, and brings that back.
func (b *bench) kill(t *testing.T, kind killedCommand, state string, moment time.Duration) (r afterKill) {
	t.Helper()
	state = filepath.Join(b.dir, state)
	b.reset(t, state)
	before := b.held(t, state)
	if kind.before != nil {
		if code, out := b.run(t, state, kind.before...); code != 0 {
			t.Fatalf("%v: exit code %d\n%s", kind.before, code, out)
		}
	}
	began, last := b.held(t, state), len(record(t, state))
	cmd := b.command(state, kind.args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(moment, func() { _ = cmd.Process.Kill() }) // it may have ended
	err := cmd.Wait()
	timer.Stop()
	r.took = time.Since(start)
	switch code := cmd.ProcessState.ExitCode(); code {
	case -1:
		r.killed = true
	case 0, exitVerify: // light may be missing: the lab has little of it
	default:
		t.Fatalf("%v: %v\n%s", kind.args, err, out.String())
	}
	r.changed = b.check(t, state, last, began)
	r.undos = b.recover(t, state, before)
	if t.Failed() {
		t.Fatalf("%v, killed: %v, after %v:\n%s", kind.args, r.killed, moment, out.String())
	}
	return r
}

// check checks that what a command has changed is recorded, circuit by circuit, and reports whether it has changed
// anything. last is the ID of the last change before the command.
func (b *bench) check(t *testing.T, state string, last int, began map[string]held) (changed bool) {
	t.Helper()
	entries := record(t, state)[last:]
	calls, err := panics.Read(state)
	if err != nil {
		t.Errorf("panics: %v", err)
	}
	for name, now := range b.held(t, state) {
		was := began[name]
		if now.String() == was.String() {
			continue
		}
		changed = true
		circuits, set := map[ocs.CrossConnect]bool{}, map[string]bool{} // that are on record
		for _, e := range entries {
			if e.Switch != name || e.State == history.Failed {
				continue
			}
			for _, m := range []ocs.Map{e.Change.Add, e.Change.Remove} {
				for c := range m.All() {
					circuits[c] = true
				}
			}
			for _, s := range e.Set {
				set[s.Kind] = true
			}
		}
		for _, c := range calls {
			if d := slices.IndexFunc(c.Dark, func(d panics.Dark) bool { return d.Switch == name }); d >= 0 {
				for x := range c.Dark[d].Removed.All() {
					circuits[x] = true
				}
				set["shutter"] = set["shutter"] || len(c.Dark[d].Closed) > 0
			}
		}
		for _, m := range []ocs.Map{now.circuits.Minus(was.circuits), was.circuits.Minus(now.circuits)} {
			for c := range m.All() {
				if !circuits[c] {
					t.Errorf("%s: %v was changed, and that is not recorded", name, c)
				}
			}
		}
		if now.closed != was.closed && !set["shutter"] {
			t.Errorf("%s: shutters were changed, and that is not recorded", name)
		}
		if !maps.Equal(now.monitors, was.monitors) && !set["monitor"] {
			t.Errorf("%s: monitors were set, and that is not recorded", name)
		}
	}
	return changed
}

// recover brings back what the switches held, as the documentation says: panics are lifted, and what the history has is
// taken back, the newest first.
func (b *bench) recover(t *testing.T, state string, before map[string]held) (undos int) {
	t.Helper()
	calls, err := panics.Read(state)
	if err != nil {
		t.Errorf("panics: %v", err)
	}
	if slices.ContainsFunc(calls, func(c panics.Call) bool { return c.Lifted.IsZero() }) {
		if code, out := b.run(t, state, "panic", "--lift"); code != 0 {
			t.Errorf("panic --lift: exit code %d\n%s", code, out)
		}
	}
	for left := 60; ; left-- {
		id := 0
		for _, e := range record(t, state) {
			mine := slices.ContainsFunc(calls, func(c panics.Call) bool { return slices.Contains(c.Changes, e.ID) })
			if e.UndoOf == 0 && e.UndoneBy == 0 && e.State != history.Failed && e.Until == "" && !mine {
				id = e.ID
			}
		}
		if id == 0 {
			break
		}
		if left == 0 {
			t.Fatal("there is always one more change to undo")
		}
		if code, out := b.run(t, state, "undo", strconv.Itoa(id)); code != 0 && code != exitVerify { // 5: what comes back was dark
			t.Fatalf("undo %d: exit code %d\n%s", id, code, out)
		}
		undos++
	}
	// Any change restores settings that were to hold only meanwhile, and finds every lock free.
	for _, args := range [][]string{{"connect", "a", "20>60"}, {"disconnect", "a", "20"}} {
		if code, out := b.run(t, state, append(args, "--verify", "table")...); code != 0 {
			t.Errorf("%v: exit code %d\n%s", args, code, out)
		}
	}
	for name, now := range b.held(t, state) {
		if now.String() != before[name].String() {
			t.Errorf("%s is left at\n%v, before\n%v", name, now, before[name])
		}
	}
	for _, e := range record(t, state) {
		if leases, err := lease.InForce(state, e.Device); len(leases) > 0 || err != nil {
			t.Errorf("leases of a program that was killed: %v, %v", leases, err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(state, "alive", "*")); len(files) > 0 {
		t.Errorf("left behind: %v", files)
	}
	return undos
}
