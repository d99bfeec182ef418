package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/trxlink"
)

// tapped is an emulated device whose clients pass a tap, which keeps what they send, where that can be read.
type tapped struct {
	name string
	*lab.Emulated

	mu      sync.Mutex // guards what follows
	bytes   int        // that clients have sent
	changes []string   // requests that change something
	events  []emulator.Event
}

// startTapped serves an emulation on every protocol that a tap can read.
func startTapped(t *testing.T, e lab.Emulation) *tapped {
	t.Helper()
	e.Listen = map[lab.Endpoint]string{lab.OCSTrx: ""}
	if e.Transceivers == nil {
		e.Listen = map[lab.Endpoint]string{}
		for _, at := range lab.Endpoints(e.Personality) {
			if at == lab.TL1 || at == lab.SCPI {
				e.Listen[at] = ""
			}
		}
	}
	em, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	d := &tapped{name: e.Name, Emulated: em}
	t.Cleanup(func() { em.Close() })
	for at, address := range em.Endpoints {
		em.Endpoints[at] = d.tap(t, at, address) // URLs lead to the tap
	}
	if em.Device != nil {
		em.Device.Observe(func(e emulator.Event) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.events = append(d.events, e)
		})
	}
	return d
}

// tap listens in place of an endpoint.
func (d *tapped) tap(t *testing.T, at lab.Endpoint, address string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); l.Close(); all.Wait() })
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer client.Close()
				device, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				defer device.Close()
				stop := context.AfterFunc(ctx, func() { client.Close(); device.Close() })
				defer stop()
				go func() {
					_, _ = io.Copy(client, device)
					client.Close()
				}()
				_, _ = io.Copy(io.MultiWriter(&ear{d: d, at: at}, device), client) // kept before the device has it
			})
		}
	})
	return l.Addr().String()
}

// ear takes the requests of one client apart.
type ear struct {
	d    *tapped
	at   lab.Endpoint
	text string
	dec  trxlink.Decoder
}

func (e *ear) Write(p []byte) (int, error) {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	e.d.bytes += len(p)
	if e.at == lab.OCSTrx {
		e.dec.Feed(p)
		for f, ok := e.dec.Next(); ok; f, ok = e.dec.Next() {
			if f.Kind != trxlink.Hello && f.Kind != trxlink.Read {
				e.d.changes = append(e.d.changes, f.String())
			}
		}
		return len(p), nil
	}
	ends := ";"
	if e.at == lab.SCPI {
		ends = "\n"
	}
	e.text += string(p)
	for {
		request, rest, whole := strings.Cut(e.text, ends)
		if !whole {
			return len(p), nil
		}
		e.text = rest
		if request = strings.TrimSpace(request); !reads(e.at, request) {
			e.d.changes = append(e.d.changes, request)
		}
	}
}

// reads reports whether a request changes nothing but the session.
func reads(at lab.Endpoint, request string) bool {
	if at == lab.SCPI {
		for _, part := range strings.Split(request, ";") {
			if part != "" && !strings.Contains(part, "?") {
				return false
			}
		}
		return true
	}
	verb, _, _ := strings.Cut(request, ":")
	switch verb {
	case "", "ACT-USER", "CANC-USER", "OPR-ARC-EQPT": // the last: whether this session gets reports
		return true
	}
	return strings.HasPrefix(verb, "RTRV-")
}

// sent returns what was sent since the last call: how many bytes, those of requests that change something, and what the
// device says that has changed.
func (d *tapped) sent() (bytes int, changes []string, events []emulator.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	bytes, changes = d.bytes, d.changes
	for _, e := range d.events {
		if e.Kind != emulator.ActivityEvent || e.Condition == "OPM" {
			events = append(events, e)
		}
	}
	d.bytes, d.changes, d.events = 0, nil, nil
	return bytes, changes, events
}

// condition is what forbids a change.
type condition string

const (
	free      condition = "free" // nothing does: the change takes place, so that a refusal means something
	panicked  condition = "panic"
	protected condition = "protected"
	leased    condition = "leased"
)

var conditions = []condition{free, panicked, protected, leased}

// becomes is what becomes of a command under a condition.
type becomes int

const (
	refused  becomes = iota // exit code 3, and nothing was sent that changes anything
	unsaid                  // refused before a change is planned: the history has nothing to say
	allowed                 // it is done
	apart                   // it does without the ports that are kept, or says that it cannot
	silent                  // it is done, and sends nothing that changes anything
	untested                // with a reason in the table
)

// mover is a command that moves light, or changes a setting of a device.
type mover struct {
	command string // its path, and the flag that makes it move light
	lab     string // which of matrixLabs
	args    string // the command line; SWITCH is each of the ways to name the switch, DIR the directory with the files
	files   map[string]string
	before  []string // commands that are run before the condition holds
	port    string   // that is protected or leased: "rail0/1"
	as      map[condition]becomes
	model   map[condition]string // of all switches of the lab, if another
}

// world is a lab with its devices, and a state directory, under a condition.
type world struct {
	t       *testing.T
	dir     string
	devices []*tapped
	sw      *tapped // the first
}

// newWorld starts the devices of a lab and writes its file.
func newWorld(t *testing.T, m mover, c condition) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	write := func(name, text string) string {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("shutterless.yaml", shutterlessModel)
	write("tiny.yaml", tinyModel)
	text := matrixLabs[m.lab]
	model := "polatis-6000-32x32"
	if other := m.model[c]; other != "" {
		model = other
	}
	text = strings.ReplaceAll(text, "MODEL", model)
	f, err := lab.Load(write("emulated.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range f.Switches {
		e, err := f.Emulation(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		e.Cabling = f.Cabling()
		d := startTapped(t, e)
		w.devices = append(w.devices, d)
		urls := d.URLs()
		first, also := urls[lab.TL1], ""
		if scpi := urls[lab.SCPI]; scpi != "" {
			also = fmt.Sprintf(", also: [%q]", scpi)
		}
		if e.Transceivers != nil {
			first = urls[lab.OCSTrx]
		}
		named := "{name: " + s.Name + ", "
		if !strings.Contains(text, named) {
			t.Fatalf("the lab %s has no %q", m.lab, named)
		}
		text = strings.Replace(text, named, fmt.Sprintf("%surl: %q%s, ", named, first, also), 1)
	}
	w.sw = w.devices[0]
	path := write("lab.yaml", text)
	for name, text := range m.files {
		write(name, text)
	}
	for _, line := range m.before {
		if code, out := w.run(w.sw.name, line); code != exitDone {
			t.Fatalf("%s: exit code %d: %s", line, code, out)
		}
	}
	switch c {
	case panicked:
		if code, out := w.run(w.sw.name, "--lab DIR/lab.yaml panic --reason matrix"); code != exitDone {
			t.Fatalf("panic: exit code %d: %s", code, out)
		}
	case protected:
		write("lab.yaml", text+"\nprotect: ["+m.port+"]\n")
	case leased:
		f, err := lab.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		name, port, _ := strings.Cut(m.port, "/")
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		device, err := lab.New(f, lab.Options{}).Device(name)
		if err != nil {
			t.Fatal(err)
		}
		held, err := lease.Take(t.Context(), w.state(), lease.Lease{Device: device, Switch: name, Ports: []ocs.Port{ocs.Port(n)}, Holder: "another program"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = held.Release() })
	}
	w.sentAll()
	return w
}

func (w *world) state() string { return filepath.Join(w.dir, "state") }

// run runs a command line, in which SWITCH stands for a way to name the switch.
func (w *world) run(way, line string) (code int, out string) {
	w.t.Helper()
	path, err := exec.LookPath("ocslab")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range mustReadDir(w.t, w.dir) { // files name the switch, too
		if text, err := os.ReadFile(filepath.Join(w.dir, e)); err == nil && strings.HasSuffix(e, ".in") {
			if err := os.WriteFile(filepath.Join(w.dir, strings.TrimSuffix(e, ".in")), []byte(strings.ReplaceAll(string(text), "SWITCH", way)), 0o600); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.NewReplacer("SWITCH", way, "DIR", w.dir).Replace(args[i])
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "XDG_CONFIG_HOME=" + w.dir, "OCSLAB_STATE_DIR=" + w.state(), "OCSLAB_RECHECK=0s"}
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func mustReadDir(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// sentAll is [tapped.sent] of all devices.
func (w *world) sentAll() (bytes int, changes []string, events []emulator.Event) {
	for _, d := range w.devices {
		b, c, e := d.sent()
		bytes, changes, events = bytes+b, append(changes, c...), append(events, e...)
	}
	return bytes, changes, events
}

// recorded are the entries of the history from number from on.
func (w *world) recorded(from int) []history.Entry {
	w.t.Helper()
	log, err := history.Open(w.state())
	if err != nil {
		w.t.Fatal(err)
	}
	entries, _, err := log.Entries()
	if err != nil {
		w.t.Fatal(err)
	}
	return entries[min(from, len(entries)):]
}

// ways are the names of the first switch: by name and, where a command takes a switch, by URLs that lead to it.
func (w *world) ways(m mover) []string {
	ways := []string{w.sw.name}
	files := ""
	for _, text := range m.files {
		files += text
	}
	if !strings.Contains(m.args+files, "SWITCH") {
		return ways
	}
	urls := w.sw.URLs()
	first := urls[lab.TL1]
	if first == "" {
		first = urls[lab.OCSTrx]
	}
	ways = append(ways, first, strings.Replace(first, "127.0.0.1", "localhost", 1), strings.Replace(first, "127.0.0.1", "[::ffff:127.0.0.1]", 1))
	if scpi := urls[lab.SCPI]; scpi != "" {
		ways = append(ways, scpi)
	}
	return ways
}

// tally counts what the matrix came to.
type tally struct {
	mu                                     sync.Mutex
	cells, refused, unsaid, allowed, apart int
	bytes, changing                        int // sent by commands that were refused
}

// TestMatrix crosses every command that moves light, or changes a setting of a device, with what forbids that, and with
// the ways to name the switch. A command that is refused has the exit code 3, the devices have received nothing that
// changes anything, and the history says who was refused.
func TestMatrix(t *testing.T) {
	var sum tally
	commands := map[string]bool{}
	for _, m := range movers {
		commands[m.command] = true
	}
	t.Run("cells", func(t *testing.T) {
		for _, m := range movers {
			for _, c := range conditions {
				if m.as[c] == untested {
					continue
				}
				t.Run(strings.ReplaceAll(m.command, " ", "-")+"/"+string(c), func(t *testing.T) {
					t.Parallel()
					testCells(t, m, c, &sum)
				})
			}
		}
	})
	t.Logf("%d commands in %d rows: %d cells, of them %d refused and recorded, %d refused as a whole run, %d allowed, %d that leave the port alone; "+
		"those refused have sent %d bytes, %d of requests that change anything",
		len(commands), len(movers), sum.cells, sum.refused, sum.unsaid, sum.allowed, sum.apart, sum.bytes, sum.changing)
}

func testCells(t *testing.T, m mover, c condition, sum *tally) {
	w := newWorld(t, m, c)
	ways := w.ways(m)
	as := m.as[c]
	if c == free {
		ways = ways[:1]
		if as == refused {
			as = allowed
		}
	}
	for n, way := range ways {
		entries := len(w.recorded(0))
		code, out := w.run(way, "--lab DIR/lab.yaml "+m.args)
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%s, %s, %s: %s\n%s", m.args, c, way, fmt.Sprintf(format, args...), out)
		}
		bytes, changes, events := w.sentAll()
		recorded := w.recorded(entries)
		sum.mu.Lock()
		sum.cells++
		switch as {
		case refused, unsaid:
			sum.bytes += bytes
			if as == refused {
				sum.refused++
			} else {
				sum.unsaid++
			}
			for _, x := range changes {
				sum.changing += len(x)
			}
		case allowed, silent:
			sum.allowed++
		case apart:
			sum.apart++
		}
		sum.mu.Unlock()
		switch as {
		case refused, unsaid:
			if code != exitRefused {
				fail("exit code %d, want 3", code)
			}
			if len(changes) > 0 || len(events) > 0 {
				fail("sent %q, and the device says %v", changes, events)
			}
			if as == refused && len(recorded) == 0 {
				fail("the history does not say who was refused")
			}
			for _, e := range recorded {
				if e.State != history.Failed || e.Who != panics.Me() || e.Error == "" {
					fail("recorded as %s by %q: %q", e.State, e.Who, e.Error)
				}
			}
		case allowed:
			if code != exitDone && n == 0 {
				fail("exit code %d, want 0", code)
			}
			if n == 0 && len(changes) == 0 { // what is taken away is gone the second time
				fail("nothing was sent")
			}
		case silent:
			if code != exitDone || len(changes)+len(events) > 0 {
				fail("exit code %d, sent %q", code, changes)
			}
		case apart:
			if code != exitDone && code != exitRefused && code != exitVerify {
				fail("exit code %d, want 0, 3 or 5", code)
			}
			_, port, _ := strings.Cut(m.port, "/")
			n, _ := strconv.Atoi(port)
			for _, e := range events {
				if c == free {
					break
				}
				if e.Port == ocs.Port(n) || slices.Contains(e.Change.Ports(), ocs.Port(n)) {
					fail("the device says: %s %v", e.Text, e.Change)
				}
			}
		}
	}
}

// shutterlessModel is a switch on which a panic removes circuits.
const shutterlessModel = `model: shutterless
vendor: Calient
product: S32
firmware: 6.0-3
size: 32x32
switching: {single: 1ms, bulk: 1ms, ack: after}
optics: {loss_db: 2.0, loss_max_db: 3.5, launch_dbm: 0}
monitors: {sides: both, error_db: 0.5, noise_db: 0.02}
control: {busy: deny}
speaks: [tl1]
tl1: {dialect: calient, prompt: "\r\nagent>", quiet: true}
`

// tinyModel is a switch with few ports to light in turn.
const tinyModel = `model: tiny
vendor: Polatis
product: N-VST-4x4-LA1-DMHNV-801
firmware: 6.7.3.9
size: 4x4
switching: {single: 1ms}
optics: {loss_db: 1.5, loss_max_db: 2.7, launch_dbm: -1}
monitors: {sides: both, error_db: 0.2, noise_db: 0.01}
`

// matrixLabs are the labs; their switches get URLs.
var matrixLabs = map[string]string{
	"tiny": `name: tiny
switches:
  - {name: rail0, emulate: {model: tiny.yaml}}
hosts:
  - {name: gpu1, nics: [{name: e0, tx: rail0/1, rx: rail0/5}]}
  - {name: gpu2, nics: [{name: e0, tx: rail0/2, rx: rail0/6}]}
`,
	"desk": `name: desk
switches:
  - {name: rail0, emulate: {model: MODEL, switching: 0ms, seed: 1}}
hosts:
  - {name: gpu1, nics: [{name: e0, tx: rail0/1, rx: rail0/33}]}
  - {name: gpu2, nics: [{name: e0, tx: rail0/2, rx: rail0/34}]}
configurations:
  x: {maps: {rail0: "1>34"}}
  y: {maps: {rail0: "1>33"}}
`,
}

var shutterless = map[condition]string{panicked: "shutterless.yaml"}

const lab33 = "--lab DIR/lab.yaml connect rail0 1>33,2>34"

// movers is the table of what moves light or changes settings. The test of the tree of commands wants each there.
var movers = []mover{
	{command: "connect", lab: "desk", args: "connect SWITCH 1>34", port: "rail0/1", model: shutterless,
		before: []string{"--lab DIR/lab.yaml connect rail0 2>33"}},
	{command: "connect", lab: "desk", args: "connect SWITCH 2>33 --mode update", before: []string{lab33}, port: "rail0/1", model: shutterless},
	{command: "connect", lab: "desk", args: "connect SWITCH 2>34 --mode overwrite", before: []string{lab33}, port: "rail0/1", model: shutterless},
	{command: "disconnect", lab: "desk", args: "disconnect SWITCH 1", before: []string{lab33},
		port: "rail0/1", as: map[condition]becomes{panicked: allowed}},
	{command: "link", lab: "desk", args: "link gpu1/e0 gpu2/e0", before: []string{"--lab DIR/lab.yaml connect rail0 2>33"}, port: "rail0/1", model: shutterless},
	{command: "unlink", lab: "desk", args: "unlink gpu1/e0", before: []string{lab33}, port: "rail0/33", as: map[condition]becomes{panicked: allowed}},
	{command: "apply", lab: "desk", args: "apply DIR/plan.yaml", files: map[string]string{"plan.yaml.in": "mode: update\nswitches:\n  \"SWITCH\": 1>34\n"},
		before: []string{"--lab DIR/lab.yaml connect rail0 2>33"}, port: "rail0/1", model: shutterless},
	{command: "restore", lab: "desk", args: "restore DIR/plan.yaml", files: map[string]string{"plan.yaml.in": "mode: overwrite\nswitches:\n  \"SWITCH\": 2>34\n"},
		before: []string{lab33}, port: "rail0/1", model: shutterless},
	{command: "undo", lab: "desk", args: "undo --switch SWITCH", before: []string{lab33, "--lab DIR/lab.yaml disconnect rail0 1"},
		port: "rail0/1", model: shutterless},
	{command: "undo", lab: "desk", args: "undo 1", before: []string{lab33}, port: "rail0/1", as: map[condition]becomes{panicked: allowed}},
	{command: "undo", lab: "desk", args: "undo --switch SWITCH", before: []string{lab33, "--lab DIR/lab.yaml shutters rail0 close 1"},
		port: "rail0/1"},
	{command: "shutters", lab: "desk", args: "shutters SWITCH open 1", before: []string{lab33, "--lab DIR/lab.yaml shutters rail0 close 1"},
		port: "rail0/1"},
	{command: "shutters", lab: "desk", args: "shutters SWITCH close 1", before: []string{lab33}, port: "rail0/1", as: map[condition]becomes{panicked: allowed}},
	{command: "restart", lab: "desk", args: "restart SWITCH --dark", before: []string{lab33}, port: "rail0/1"},
	{command: "conform", lab: "desk", args: "conform SWITCH --max-pairs 1 --check-timeout 300ms", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: apart, leased: apart, free: apart}},
	{command: "conform", lab: "desk", args: "conform SWITCH --all-ports --max-pairs 1 --check-timeout 300ms", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: unsaid, leased: unsaid, free: apart}},
	{command: "conform", lab: "desk", args: "conform SWITCH --dry-run", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: silent, leased: silent, free: silent}},
	{command: "measure", lab: "desk", args: "measure --from x --to y -n 1 --warm-ups 0", before: []string{onlyY}, port: "rail0/1", as: whole},
	{command: "run", lab: "desk", args: "run DIR/x.yaml", files: map[string]string{"x.yaml": matrixExperiment},
		before: []string{onlyY}, port: "rail0/1", as: map[condition]becomes{panicked: unsaid, protected: unsaid}},
	{command: "calibrate timing", lab: "desk", args: "calibrate timing --from x --to y -n 8", before: []string{onlyY}, port: "rail0/1", as: whole},
	{command: "calibrate loss", lab: "desk", args: "calibrate loss SWITCH --ports 1-2,33-34 --mode update --repeat 0", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: apart, leased: apart}},
	{command: "wiring", lab: "tiny", args: "wiring --mode update --carrier-wait 100ms", before: []string{"--lab DIR/lab.yaml connect rail0 1>5,2>6"}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: apart, leased: apart, free: apart}},
}

const onlyY = "--lab DIR/lab.yaml connect rail0 1>33"

// whole refuses a run before it begins when a panic is in force.
var whole = map[condition]becomes{panicked: unsaid}

const matrixExperiment = `name: x
sequence: [x, y]
repeats: 1
warm_ups: 0
nulls: {count: 0}
finally: {light: restore}
`
