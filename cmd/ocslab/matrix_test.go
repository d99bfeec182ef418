package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
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

// startTapped serves an emulation on every protocol that a tap can read, and on NETCONF, of which it sees the bytes only.
func startTapped(t *testing.T, e lab.Emulation) *tapped {
	t.Helper()
	e.Listen = map[lab.Endpoint]string{lab.OCSTrx: ""}
	if e.Transceivers == nil {
		e.Listen = map[lab.Endpoint]string{}
		for _, at := range lab.Endpoints(e.Personality) {
			if at == lab.TL1 || at == lab.SCPI || at == lab.NETCONF {
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
	if e.at == lab.NETCONF {
		return len(p), nil
	}
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

// harmlessCommands are the commands that are in no row, and why none is needed.
var harmlessCommands = map[string]string{
	"":                            "prints the help",
	"advise":                      "computes",
	"audit":                       "reads files",
	"calibrate":                   "prints the help",
	"calibrate clock":             "exchanges packets with hosts, and has no switch",
	"calibrate list":              "reads the state directory",
	"calibrate rm":                "changes the state directory",
	"calibrate show":              "reads the state directory",
	"demo":                        "has an emulated lab of its own",
	"demo crosswiring":            "has an emulated lab of its own",
	"demo fibres":                 "has an emulated lab of its own",
	"demo infinitehbd":            "has an emulated lab of its own",
	"demo mesh":                   "has an emulated mesh of its own",
	"demo pccl":                   "has emulated switches of its own",
	"demo railx":                  "has an emulated lab of its own",
	"emulate":                     "is the device",
	"emulator":                    "prints the help",
	"emulator drift":              "reads runs",
	"emulator fit":                "reads runs, and writes a file",
	"history":                     "reads the history",
	"notes":                       "reads texts",
	"panic":                       "takes light away and gives back what it took; package blackout tests that",
	"plan":                        "reads the switches",
	"report":                      "reads runs",
	"runs":                        "prints the help",
	"runs abort":                  "tells the program of a run, which goes through the gate",
	"runs continue":               "tells the program of a run, which goes through the gate",
	"runs diff":                   "reads runs",
	"runs export":                 "reads runs",
	"runs list":                   "reads runs",
	"runs pause":                  "tells the program of a run, which goes through the gate",
	"runs reindex":                "changes the state directory",
	"runs rm":                     "changes the state directory",
	"runs show":                   "reads runs",
	"runs stop":                   "tells the program of a run, which goes through the gate",
	"show":                        "reads the switches",
	"snapshot":                    "reads the switches",
	"topology":                    "prints the help",
	"topology infinitehbd faults": "computes",
	"topology infinitehbd walk":   "reads the bundles",
	"topology pccl mesh":          "computes",
	"topology railx allocate":     "computes",
	"traces":                      "prints the help",
	"traces import":               "writes a file",
	"traces list":                 "reads texts",
	"traces show":                 "reads texts",
	"traces write":                "writes a file",
	"tui":                         "changes what package live does, which has a matrix of its own",
	"version":                     "prints the version",
	"watch":                       "reads",
}

// harmlessFlags are the switches on the command line that move no light by themselves, and why.
var harmlessFlags = map[string]string{
	"accuracy": "output", "per-nic": "output", "events": "output", "plot": "output", "patch": "output", "cables": "output", "states": "output",
	"circuits": "output", "fibres": "output", "cross-connects": "output", "csv": "output", "compare": "output", "log": "output", "list": "output",
	"unseen": "output", "schema": "output", "plan": "only prints", "status": "only reads", "sources": "only reads", "ports": "only reads",
	"all": "only reads", "as-recorded": "of stored runs", "mix": "of stored runs", "in-order": "of a file", "no-store": "of the state directory",
	"around": "of clocks", "force": "of a file", "hosts": "of a file that is written", "still": "moves nothing",
	"kmsg": "of watching", "netlink-only": "of watching", "no-probe": "of watching", "reasons": "of watching", "spin": "of watching", "sync": "of watching",
	"tight": "of watching", "agent": "of watching", "traffic": "of watching", "packets": "of the hosts",
	"fabric": "of emulated hosts", "tui": "of an emulated lab", "large": "of an emulated lab", "native": "of an emulated lab", "no-mouse": "of the screen", "read-only": "sends nothing",
	"quicken": "sets monitors by the gate", "lift": "gives back what a panic took", "fresh": "of the table that is loaded",
	"closed": "of the plan", "directed": "of the plan", "drain": "of the plan", "relabel": "of the plan", "bond": "of the plan", "envelope": "of the plan", "free": "of the plan",
	"split-bandwidth": "of the plan", "greedy": "of the plan", "strict": "of the plan", "cut": "of the plan", "leave": "of the end of what was applied",
}

// TestMatrixIsComplete wants each command in the matrix or among those that are harmless, and each switch on a command
// line in a row of its command or among those that are harmless.
func TestMatrixIsComplete(t *testing.T) {
	rows := map[string]string{}
	for _, m := range movers {
		rows[m.command] += " " + m.args + " "
	}
	unseen := maps.Clone(rows)
	maps.Copy(unseen, harmlessCommands)
	unused := maps.Clone(harmlessFlags)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		if !c.Runnable() {
			return
		}
		name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "ocslab"), " ")
		args, moves := rows[name]
		_, still := harmlessCommands[name]
		if moves == still {
			t.Errorf("ocslab %s: want it in movers, if it moves light or changes a setting, or in harmlessCommands with a reason", name)
		}
		delete(unseen, name)
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() != "bool" {
				return
			}
			delete(unused, f.Name)
			if _, still := harmlessFlags[f.Name]; !still && f.Name != "dry-run" && !strings.Contains(args, " --"+f.Name+" ") {
				t.Errorf("ocslab %s --%s: want it in a row of movers, or in harmlessFlags with a reason", name, f.Name)
			}
		})
	}
	walk((&app{}).command())
	for name := range unseen {
		t.Errorf("there is no command %q", name)
	}
	for name := range unused {
		t.Errorf("no command has a flag --%s", name)
	}
}

// condition is what forbids a change.
type condition string

const (
	free      condition = "free" // nothing does: the change takes place, so that a refusal means something
	panicked  condition = "panic"
	protected condition = "protected"
	leased    condition = "leased"
	// unconfirmed is a panic that could not close its shutters; behind is one that has, so that circuits may move in the dark.
	unconfirmed condition = "unconfirmed"
	behind      condition = "behind"
)

var conditions = []condition{free, panicked, protected, leased, unconfirmed, behind}

// becomes is what becomes of a command under a condition.
type becomes int

const (
	refused  becomes = iota // exit code 3, and nothing was sent that changes anything
	unsaid                  // refused before a change is planned: the history has nothing to say
	allowed                 // it is done
	apart                   // it does without the ports that are kept, or says that it cannot
	silent                  // it is done, and sends nothing that changes anything
	dark                    // it is done, and no light comes of it
	untested                // with a reason in the table
)

// mover is a command that moves light, or changes a setting of a device.
type mover struct {
	command   string // its path, and the flag that makes it move light
	lab       string // which of matrixLabs
	args      string // the command line; SWITCH is each of the ways to name the switch, DIR the directory with the files
	files     map[string]string
	before    []string // commands that are run before the condition holds; "kill TEXT: …" is killed once TEXT was answered
	lit       []string // before a panic, which is none without light
	shutters  bool     // also on a switch with shutters, where it is refused in other rows on one without
	elsewhere bool     // also by another lab file, and by NETCONF
	port      string   // that is protected or leased: "rail0/1"
	as        map[condition]becomes
	model     map[condition]string // of all switches of the lab, if another
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
	if strings.HasPrefix(text, "topology ") { // it writes a lab
		code, out := w.run("", text)
		if code != exitDone {
			t.Fatalf("%s: exit code %d: %s", text, code, out)
		}
		text = out
	}
	model := "polatis-6000-32x32"
	if other := m.model[c]; other != "" {
		model = other
	}
	text = strings.ReplaceAll(text, "MODEL", model)
	f, err := lab.Load(write("emulated.yaml", text))
	if err != nil {
		t.Fatal(err)
	}
	cabling, other := f.Cabling(), text // of the same devices, spelled otherwise
	for _, s := range f.Switches {
		e, err := f.Emulation(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		e.Cabling = cabling
		if c == unconfirmed {
			e.Faults = append(e.Faults, emulator.Fault{Kind: "deny", Verb: "OPR-PORT-SHUTTER"})
		}
		d := startTapped(t, e)
		w.devices = append(w.devices, d)
		urls := d.URLs()
		list := slices.Collect(maps.Values(urls))
		slices.Sort(list)
		slices.Reverse(list) // TL1, SCPI, NETCONF
		spelled := func(urls []string) string {
			text, _ := json.Marshal(urls[1:]) // YAML, too
			return fmt.Sprintf("url: %q, also: %s, ", urls[0], text)
		}
		named := "{name: " + s.Name + ", "
		if !strings.Contains(text, named) {
			t.Fatalf("the lab %s has no %q", m.lab, named)
		}
		text = strings.Replace(text, named, named+spelled(list), 1)
		for i := range list {
			list[i] = strings.Replace(list[i], "127.0.0.1", "localhost", 1)
		}
		slices.Reverse(list)
		other = strings.Replace(other, named, named+spelled(list), 1)
	}
	w.sw = w.devices[0]
	path := write("lab.yaml", text)
	write("other.yaml", other)
	for name, text := range m.files {
		write(name, text)
	}
	before := m.before
	if c == panicked || c == unconfirmed || c == behind {
		before = slices.Concat(m.lit, before)
	}
	for _, line := range before {
		if what, line, kill := strings.Cut(line, ": "); kill {
			w.kill(strings.TrimPrefix(what, "kill "), line)
			continue
		}
		if code, out := w.run(w.sw.name, line); code != exitDone {
			t.Fatalf("%s: exit code %d: %s", line, code, out)
		}
	}
	switch c {
	case panicked, behind:
		if code, out := w.run(w.sw.name, "--lab DIR/lab.yaml panic --reason matrix"); code != exitDone {
			t.Fatalf("panic: exit code %d: %s", code, out)
		}
	case unconfirmed:
		if code, out := w.run(w.sw.name, "--lab DIR/lab.yaml panic --reason matrix"); code != exitDevice {
			t.Fatalf("panic: exit code %d: %s", code, out)
		}
	case protected:
		write("lab.yaml", text+"\nprotect: ["+m.port+"]\n")
		write("other.yaml", other+"\nprotect: ["+m.port+"]\n")
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
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	cmd := w.command(ctx, way, line)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(text)
}

func (w *world) command(ctx context.Context, way, line string) *exec.Cmd {
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
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		w.t.Fatal(err)
	}
	args := strings.Fields(line)
	for i := range args {
		args[i] = strings.NewReplacer("SWITCH", way, "DIR", w.dir, "EXAMPLES", examples).Replace(args[i])
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = w.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir, "XDG_CONFIG_HOME=" + w.dir, "OCSLAB_STATE_DIR=" + w.state(), "OCSLAB_RECHECK=0s"}
	return cmd
}

// kill runs a command line that traces what is on the wire, and kills it once a request with a text has had a reply.
func (w *world) kill(text, line string) {
	w.t.Helper()
	cmd := w.command(w.t.Context(), w.sw.name, "--trace "+line)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.t.Fatal(err)
	}
	in, asked := bufio.NewScanner(out), false
	for in.Scan() {
		asked = asked || strings.Contains(in.Text(), text)
		if asked && strings.Contains(in.Text(), " < ") {
			break
		}
	}
	_ = cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err == nil || !asked {
		w.t.Fatalf("%s: it was not killed: %v", line, err)
	}
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

// otherLab is the way by another lab file, which has other URLs of the same device.
const otherLab = "another lab file"

// ways are the names of the first switch: by name and, where a command takes a switch, by URLs that lead to it.
func (w *world) ways(m mover) []string {
	ways := []string{w.sw.name}
	files := ""
	for _, text := range m.files {
		files += text
	}
	if m.elsewhere {
		ways = append(ways, otherLab)
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
	if netconf := urls[lab.NETCONF]; netconf != "" && m.elsewhere {
		ways = append(ways, netconf)
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
				if m.as[c] == untested || (c == unconfirmed || c == behind) && !m.shutters {
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
	if c == behind {
		as, ways = dark, ways[:1] // each time the gate waits for light that does not come
	}
	if c == free {
		ways = ways[:1]
		if as == refused {
			as = allowed
		}
	}
	since := 0
	if c == behind {
		_, since = w.sw.Device.Truth(0)
	}
	for n, way := range ways {
		entries := len(w.recorded(0))
		code, out := 0, ""
		if way == otherLab {
			code, out = w.run(w.sw.name, "--lab DIR/other.yaml "+m.args)
		} else {
			code, out = w.run(way, "--lab DIR/lab.yaml "+m.args)
		}
		fail := func(format string, args ...any) {
			t.Helper()
			t.Errorf("%s, %s, %s: %s\n%s", m.args, c, way, fmt.Sprintf(format, args...), out[max(0, len(out)-500):])
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
		case allowed, silent, dark:
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
			// A machine that is too busy to measure is exit code 5: the change took place all the same.
			if n == 0 && code != exitDone && (c != free || code != exitVerify) {
				fail("exit code %d, want 0", code)
			}
			if n == 0 && len(changes) == 0 { // what is taken away is gone the second time
				fail("nothing was sent")
			}
		case dark:
			if n == 0 && code != exitDone { // an undo has nothing left to do the second time
				fail("exit code %d, want 0", code)
			}
			marks, _ := w.sw.Device.Truth(since)
			for _, m := range marks {
				if m.Stage == timeline.Light {
					fail("light came at %s", m.Subject)
				}
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
	"grid": "topology railx --nodes 2x1 --rails 1 --write-lab - --hosts --switching 1ms",
	"pods": "topology crosswiring --pods 4 --spine-ports 4 --write-lab - --hosts --switching 1ms",
	"line": "topology infinitehbd --nodes 2 --tp 8 --write-lab - --model ocstrx-8x112g",
	"room": "topology pccl fibres --servers 1x2 --circuits 2 --write-lab - --switching 1ms",
	"bundle": `name: bundle
switches:
  - {name: trx0, emulate: {model: ocstrx-8x112g}}
hosts:
  - {name: gpu1, nics: [{name: e0, tx: trx0/1, rx: trx0/9}]}
`,
	"pairs": `name: pairs
switches:
  - {name: rail0, emulate: {model: MODEL, switching: 0ms, seed: 1}}
hosts:
  - {name: gpu0, nics: [{name: a, tx: rail0/1, rx: rail0/33}, {name: b, tx: rail0/2, rx: rail0/34}]}
  - {name: gpu1, nics: [{name: a, tx: rail0/3, rx: rail0/35}, {name: b, tx: rail0/4, rx: rail0/36}]}
  - {name: gpu2, nics: [{name: a, tx: rail0/5, rx: rail0/37}, {name: b, tx: rail0/6, rx: rail0/38}]}
  - {name: gpu3, nics: [{name: a, tx: rail0/7, rx: rail0/39}, {name: b, tx: rail0/8, rx: rail0/40}]}
`,
	"rails": `name: rails
switches:
  - {name: ocs1, emulate: {model: MODEL, switching: 0ms, seed: 1}}
hosts:
  - {name: gpu1, nics: [{name: ens1f0, tx: ocs1/1, rx: ocs1/33}, {name: ens1f1, tx: ocs1/2, rx: ocs1/34}, {name: ens2f0, tx: ocs1/9, rx: ocs1/41}, {name: ens2f1, tx: ocs1/10, rx: ocs1/42}]}
  - {name: gpu2, nics: [{name: ens1f0, tx: ocs1/3, rx: ocs1/35}, {name: ens1f1, tx: ocs1/4, rx: ocs1/36}, {name: ens2f0, tx: ocs1/11, rx: ocs1/43}, {name: ens2f1, tx: ocs1/12, rx: ocs1/44}]}
  - {name: gpu3, nics: [{name: ens1f0, tx: ocs1/5, rx: ocs1/37}, {name: ens1f1, tx: ocs1/6, rx: ocs1/38}, {name: ens2f0, tx: ocs1/13, rx: ocs1/45}, {name: ens2f1, tx: ocs1/14, rx: ocs1/46}]}
  - {name: gpu4, nics: [{name: ens1f0, tx: ocs1/7, rx: ocs1/39}, {name: ens1f1, tx: ocs1/8, rx: ocs1/40}, {name: ens2f0, tx: ocs1/15, rx: ocs1/47}, {name: ens2f1, tx: ocs1/16, rx: ocs1/48}]}
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
	{command: "connect", lab: "desk", elsewhere: true, args: "connect SWITCH 1>34", port: "rail0/1", model: shutterless, shutters: true,
		before: []string{"--lab DIR/lab.yaml connect rail0 2>33"}},
	{command: "connect", lab: "desk", args: "connect SWITCH 2>33 --mode update", before: []string{lab33}, port: "rail0/1", model: shutterless, shutters: true},
	{command: "connect", lab: "desk", args: "connect SWITCH 2>34 --mode overwrite", before: []string{lab33}, port: "rail0/1", model: shutterless},
	{command: "disconnect", lab: "desk", args: "disconnect SWITCH 1", before: []string{lab33},
		port: "rail0/1", as: map[condition]becomes{panicked: allowed}},
	{command: "link", lab: "desk", elsewhere: true, args: "link gpu1/e0 gpu2/e0", before: []string{"--lab DIR/lab.yaml connect rail0 2>33"}, port: "rail0/1", model: shutterless, shutters: true},
	{command: "unlink", lab: "desk", args: "unlink gpu1/e0", before: []string{lab33}, port: "rail0/33", as: map[condition]becomes{panicked: allowed}},
	{command: "apply", lab: "desk", args: "apply DIR/plan.yaml", files: map[string]string{"plan.yaml.in": "mode: update\nswitches:\n  \"SWITCH\": 1>34\n"},
		before: []string{"--lab DIR/lab.yaml connect rail0 2>33"}, port: "rail0/1", model: shutterless, shutters: true},
	{command: "restore", lab: "desk", args: "restore DIR/plan.yaml", files: map[string]string{"plan.yaml.in": "mode: overwrite\nswitches:\n  \"SWITCH\": 2>34\n"},
		before: []string{lab33}, port: "rail0/1", model: shutterless},
	{command: "undo", lab: "desk", args: "undo --switch SWITCH", before: []string{lab33, "--lab DIR/lab.yaml disconnect rail0 1"},
		port: "rail0/1", model: shutterless, shutters: true},
	{command: "undo", lab: "desk", args: "undo 1", before: []string{lab33}, port: "rail0/1", as: map[condition]becomes{panicked: allowed}},
	{command: "undo", lab: "desk", args: "undo --switch SWITCH", before: []string{lab33, "--lab DIR/lab.yaml shutters rail0 close 1"},
		port: "rail0/1"},
	{command: "shutters", lab: "desk", elsewhere: true, args: "shutters SWITCH open 1", before: []string{lab33, "--lab DIR/lab.yaml shutters rail0 close 1"},
		port: "rail0/1"},
	{command: "shutters", lab: "desk", args: "shutters SWITCH close 1", before: []string{lab33}, port: "rail0/1", as: map[condition]becomes{panicked: allowed}},
	{command: "restart", lab: "desk", elsewhere: true, args: "restart SWITCH --dark", before: []string{lab33}, port: "rail0/1"},
	{command: "conform", lab: "desk", args: "conform SWITCH --max-pairs 1 --check-timeout 300ms", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: apart, leased: apart, free: apart}},
	{command: "conform", lab: "desk", args: "conform SWITCH --all-ports --max-pairs 1 --check-timeout 300ms", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: unsaid, leased: unsaid, free: apart}},
	{command: "conform", lab: "desk", args: "conform SWITCH --dry-run", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: silent, leased: silent, free: silent}},
	{command: "measure", lab: "desk", elsewhere: true, args: "measure --from x --to y -n 1 --warm-ups 0", before: []string{onlyY}, port: "rail0/1", as: whole},
	{command: "run", lab: "desk", args: "run DIR/x.yaml", files: map[string]string{"x.yaml": matrixExperiment},
		before: []string{onlyY}, port: "rail0/1", as: map[condition]becomes{panicked: unsaid, protected: unsaid}},
	{command: "calibrate timing", lab: "desk", args: "calibrate timing --from x --to y -n 8", before: []string{onlyY}, port: "rail0/1", as: whole},
	{command: "calibrate loss", lab: "desk", args: "calibrate loss SWITCH --ports 1-2,33-34 --mode update --repeat 0", before: []string{lab33}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: apart, leased: apart}},
	{command: "wiring", lab: "tiny", args: "wiring --mode update --carrier-wait 100ms", before: []string{"--lab DIR/lab.yaml connect rail0 1>5,2>6"}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: apart, leased: apart, free: apart}},
	{command: "runs resume", lab: "desk", args: "runs resume last", files: map[string]string{"x.yaml": matrixExperiment},
		before: []string{onlyY, "kill ENT-PATCH: --lab DIR/lab.yaml run DIR/x.yaml",
			"--lab DIR/lab.yaml connect rail0 9>41"}, port: "rail0/1", as: whole},
	{command: "runs finish", lab: "desk", args: "runs finish last", files: map[string]string{"x.yaml": matrixExperiment},
		before: []string{onlyY, "kill ENT-PATCH: --lab DIR/lab.yaml run DIR/x.yaml",
			"--lab DIR/lab.yaml connect rail0 9>41"}, port: "rail0/1", as: whole},
	{command: "figure", lab: "desk", args: "figure autoneg -n 1 --sequence x,y --out DIR/f.html", before: []string{onlyY}, port: "rail0/1",
		as: map[condition]becomes{panicked: unsaid, protected: unsaid, free: untested}},
	{command: "topology opus", lab: "rails", args: "topology opus EXAMPLES/lab-job.yaml 11 --apply --mode update",
		before: []string{"--lab DIR/lab.yaml connect ocs1 1>33"}, port: "ocs1/36", model: shutterless, shutters: true, as: map[condition]becomes{protected: unsaid}},
	{command: "replay-job", lab: "rails", args: "replay-job lab-job --job EXAMPLES/lab-job.yaml --compress 50 --warm-up 0 -n 1 --mode update --revive",
		before: []string{"--lab DIR/lab.yaml connect ocs1 1>33"}, port: "ocs1/36", as: atOnce},
	{command: "orchestrate", lab: "rails", args: "orchestrate EXAMPLES/lab-job.yaml --listen 127.0.0.1:0 --mode update --revive --restore",
		before: []string{"--lab DIR/lab.yaml connect ocs1 1>33"}, port: "ocs1/36",
		as: map[condition]becomes{panicked: unsaid, protected: unsaid, leased: unsaid, free: untested}},
	{command: "topology pccl", lab: "pairs", args: "topology pccl --collective reduce-scatter --algorithm rhd-halving --gpus 4 --bytes 1MB --alpha 1ms --beta 1GBps --switch-time 1us --apply --mode update",
		lit: []string{lab33}, port: "rail0/1", as: ofSequence},
	{command: "topology railx", lab: "grid", args: "topology railx --nodes 2x1 --rails 1 --apply", lit: []string{"--lab DIR/lab.yaml connect x0-0 1>33"}, port: "x0-0/1", as: ofSequence},
	{command: "topology crosswiring", lab: "pods", args: "topology crosswiring --pods 4 --spine-ports 4 --demand EXAMPLES/crosswiring-demand.csv --apply",
		lit: []string{"--lab DIR/lab.yaml connect g0-k0 1>33"}, port: "g0-k0/1", as: ofSequence},
	{command: "topology infinitehbd", lab: "line", args: "topology infinitehbd --nodes 2 --tp 8 --apply",
		lit: []string{"--lab DIR/lab.yaml topology infinitehbd --nodes 2 --tp 8 --apply"}, port: "n01-r/1", as: whole},
	{command: "topology infinitehbd check-cables", lab: "line", args: "topology infinitehbd check-cables --darken",
		lit: []string{"--lab DIR/lab.yaml topology infinitehbd --nodes 2 --tp 8 --apply"}, port: "n01-r/1", as: atOnce},
	{command: "topology infinitehbd bypass", lab: "line", args: "topology infinitehbd bypass --tp 8 -n 1",
		lit: []string{"--lab DIR/lab.yaml topology infinitehbd --nodes 2 --tp 8 --apply"}, port: "n01-r/1",
		// It waits for a node to die, and switches as "topology infinitehbd --apply" does.
		as: map[condition]becomes{panicked: unsaid, protected: untested, leased: untested, free: untested}},
	{command: "topology pccl fibres", lab: "room", args: "topology pccl fibres --servers 1x2 --circuits 2 --apply",
		lit: []string{"--lab DIR/lab.yaml connect h0-0 1>33"}, port: "h0-0/3", as: ofSequence},
	{command: "calibrate mzi", lab: "bundle", args: "calibrate mzi SWITCH --scope sweep --lanes 1 --modules 1 --dry-run --dark --plot=false", lit: []string{"--lab DIR/lab.yaml connect trx0 1>9"}, port: "trx0/1",
		as: map[condition]becomes{panicked: unsaid, protected: unsaid, leased: unsaid}},
}

const onlyY = "--lab DIR/lab.yaml connect rail0 1>33"

// ofSequence refuses a sequence of steps before it begins when a panic is in force, or a step moves a protected port;
// atOnce also for a lease.
var (
	ofSequence = map[condition]becomes{panicked: unsaid, protected: unsaid}
	atOnce     = map[condition]becomes{panicked: unsaid, protected: unsaid, leased: unsaid}
)

// whole refuses a run before it begins when a panic is in force.
var whole = map[condition]becomes{panicked: unsaid}

const matrixExperiment = `name: x
sequence: [x, y]
repeats: 1
warm_ups: 0
nulls: {count: 0}
finally: {light: restore}
`
