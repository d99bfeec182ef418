package watch_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// TestMain is the agent when the environment says so.
func TestMain(m *testing.M) {
	if mode := os.Getenv("WATCH_TEST_AGENT"); mode != "" {
		agent(mode)
		return
	}
	os.Exit(m.Run())
}

// nics are counters of interfaces that a test sets.
type nics struct {
	mu    sync.Mutex // guards list
	list  map[string]*[2]uint32
	order []string
}

func newNICs(names ...string) *nics {
	n := &nics{list: map[string]*[2]uint32{}, order: names}
	for _, name := range names {
		n.list[name] = &[2]uint32{1, 0} // up
	}
	return n
}

func (n *nics) Interfaces() (list []linkmon.Interface, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, name := range n.order {
		if n.list[name] != nil {
			list = append(list, linkmon.Interface{Index: i + 1, Name: name})
		}
	}
	return list, nil
}

func (n *nics) Open(i linkmon.Interface) (linkmon.Counter, error) { return counter{n, i.Name}, nil }

// toggle takes the carrier or gives it, and returns between when.
func (n *nics) toggle(name string) timeline.Interval {
	axis := timeline.HostAxis()
	from := time.Now()
	n.mu.Lock()
	c := n.list[name]
	if c[0] > c[1] {
		c[1]++
	} else {
		c[0]++
	}
	n.mu.Unlock()
	return axis.Span(from, time.Now())
}

func (n *nics) remove(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.list, name)
}

type counter struct {
	n    *nics
	name string
}

func (c counter) UpDown() (up, down uint32, err error) {
	c.n.mu.Lock()
	defer c.n.mu.Unlock()
	if x := c.n.list[c.name]; x != nil {
		return x[0], x[1], nil
	}
	return 0, 0, linkmon.ErrGone
}

func (c counter) Changes() (uint32, error) {
	up, down, err := c.UpDown()
	return up + down, err
}

func (c counter) Carrier() (bool, error) {
	up, down, err := c.UpDown()
	return up > down, err
}

func (counter) Close() error { return nil }

func start(t *testing.T, opt watch.Options) *watch.Watch {
	t.Helper()
	w, err := watch.Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w
}

// until reads records until one satisfies done.
func until(t *testing.T, w *watch.Watch, done func(watch.Record) bool) (all []watch.Record) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		records, err := w.Next(ctx)
		all = append(all, records...)
		if slices.ContainsFunc(records, done) {
			return all
		}
		if err != nil {
			t.Fatalf("%v; seen: %s", err, asJSON(all))
		}
	}
}

func asJSON(records []watch.Record) string {
	var b strings.Builder
	for _, r := range records {
		line, _ := json.Marshal(r)
		b.Write(append(line, '\n'))
	}
	return b.String()
}

func stage(s timeline.Stage, subject string) func(watch.Record) bool {
	return func(r watch.Record) bool { return r.Mark != nil && r.Mark.Stage == s && r.Mark.Subject == subject }
}

// tree publishes the state of a NIC as an emulated host does.
type tree struct {
	dir         string
	phys, image *os.File
}

func newTree(t *testing.T, iface string) *tree {
	t.Helper()
	tr := &tree{dir: t.TempDir()}
	port := filepath.Join(tr.dir, "class/infiniband/ocs0/ports/1")
	module := filepath.Join(tr.dir, "module", iface, "eeprom")
	for name, text := range map[string]string{
		filepath.Join(port, "state"):             "4: ACTIVE",
		filepath.Join(port, "phys_state"):        "5: LinkUp ",
		filepath.Join(port, "gid_attrs/ndevs/0"): iface,
		module:                                   "",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tr.image = open(t, module)
	image := make([]byte, 2432)
	image[0] = 0x11 // QSFP28
	write(t, tr.image, 0, image)
	tr.light(t, 3000)
	tr.phys = open(t, filepath.Join(port, "phys_state"))
	return tr
}

func open(t *testing.T, name string) *os.File {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func write(t *testing.T, f *os.File, at int64, b []byte) timeline.Interval {
	t.Helper()
	from := time.Now()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	return timeline.HostAxis().Span(from, time.Now())
}

// light sets the power of the four lanes, in 0.1 µW.
func (tr *tree) light(t *testing.T, power uint16) timeline.Interval {
	b := []byte{byte(power >> 8), byte(power)}
	return write(t, tr.image, 34, slices.Concat(b, b, b, b))
}

func (tr *tree) linkUp(t *testing.T, up bool) timeline.Interval {
	text := "2: Polling\n"
	if up {
		text = "5: LinkUp \n"
	}
	return write(t, tr.phys, 0, []byte(text))
}

// Ensure each source of a host makes its marks, and that the intervals hold what
// happened.
func TestWatch_AllSources(t *testing.T) {
	n, tr := newNICs("nic0"), newTree(t, "nic0")
	w := start(t, watch.Options{Hosts: []watch.Host{{
		Host: linkmon.Host{Name: "gpu1", Counters: n}, Tree: tr.dir, Lag: time.Millisecond,
	}}})
	for _, s := range []timeline.Stage{timeline.CarrierUp, timeline.Firmware, timeline.Light} {
		if !w.Covers(s, "gpu1/nic0") {
			t.Errorf("%s of gpu1/nic0 is not covered; sources: %+v", s, w.Sources())
		}
		if w.Covers(s, "gpu2/nic0") {
			t.Errorf("%s of gpu2/nic0 is covered, and there is no such host", s)
		}
	}
	if w.Covers(timeline.Traffic, "gpu1/nic0>gpu2/nic0") {
		t.Error("traffic is covered without a probe")
	}

	holds := func(s timeline.Stage, truth timeline.Interval) {
		t.Helper()
		all := until(t, w, stage(s, "gpu1/nic0"))
		m := all[slices.IndexFunc(all, stage(s, "gpu1/nic0"))].Mark
		if _, ok := m.Intersect(truth); !ok {
			t.Errorf("mark %v does not hold %+v", m, truth)
		}
	}
	// The samplers must have read once before they can see a change: go to and fro
	// until they do.
	for seen := false; !seen; {
		tr.light(t, 3000)
		tr.light(t, 0)
		for _, r := range w.Drain() {
			seen = seen || stage(timeline.Dark, "gpu1/nic0")(r)
		}
	}
	holds(timeline.Light, tr.light(t, 3000))
	holds(timeline.CarrierDown, n.toggle("nic0"))
	tr.linkUp(t, false)
	until(t, w, func() func(watch.Record) bool { // several readings later it has been seen
		n.toggle("nic0")
		return stage(timeline.CarrierUp, "gpu1/nic0")
	}())
	for seen := false; !seen; {
		tr.linkUp(t, false)
		tr.linkUp(t, true)
		for _, r := range w.Drain() {
			seen = seen || stage(timeline.Firmware, "gpu1/nic0")(r)
		}
	}

	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []watch.Account{{Host: "gpu1", Counted: 2, Reported: 2}}
	if d := cmp.Diff(want, w.Accounts()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}

	n.remove("nic0")
	until(t, w, func(r watch.Record) bool { return r.Note != nil && r.Note.Event == "removed" })
	for _, s := range []timeline.Stage{timeline.Firmware, timeline.Light, timeline.CarrierUp} {
		if w.Covers(s, "gpu1/nic0") {
			t.Errorf("%s of an interface that is gone is covered", s)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := w.Next(t.Context()); err != nil {
			if !errors.Is(err, io.EOF) {
				t.Errorf("after Close: %v", err)
			}
			break
		}
	}
}

// Ensure what is not watched says why.
func TestWatch_Sources(t *testing.T) {
	w := start(t, watch.Options{Hosts: []watch.Host{{Host: linkmon.Host{Name: "gpu1", Counters: newNICs("nic0")}, Tree: t.TempDir()}}})
	for _, s := range w.Sources() {
		if !s.On && (s.Why == "" || strings.Contains(s.Why, "\n")) {
			t.Errorf("%s of %s%s: %q is not a sentence", s.Name, s.Host, s.Subject, s.Why)
		}
		if s.On && s.Name != "counters" {
			t.Errorf("%s is on in an empty tree", s.Name)
		}
	}
}

func TestRecord_JSON(t *testing.T) {
	mark := timeline.Mark{Stage: timeline.CarrierUp, Subject: "gpu1/nic0", Host: "gpu1", Interval: timeline.Between(1, 2), Source: "counters"}
	note := watch.Note{Kind: watch.Link, Event: "renamed", Subject: "gpu1/nic1", Host: "gpu1", Interval: timeline.Point(3), Source: "netlink", Text: "nic0"}
	for _, tc := range []struct {
		r    watch.Record
		want string
	}{
		{watch.Record{Mark: &mark}, `{"kind":"mark","stage":"carrier-up","subject":"gpu1/nic0","host":"gpu1","earliest_ns":1,"latest_ns":2,"source":"counters","reconfiguration":0}`},
		{watch.Record{Note: &note}, `{"kind":"link","event":"renamed","subject":"gpu1/nic1","host":"gpu1","earliest_ns":3,"latest_ns":3,"source":"netlink","text":"nic0"}`},
	} {
		got, err := json.Marshal(tc.r)
		if err != nil || string(got) != tc.want {
			t.Errorf("got %s, %v\nwant %s", got, err, tc.want)
		}
		var back watch.Record
		if err := json.Unmarshal(got, &back); err != nil || cmp.Diff(tc.r, back) != "" {
			t.Errorf("read back: %v\n%s", err, cmp.Diff(tc.r, back))
		}
	}
	for _, bad := range []string{"", "{", "{}", `{"kind":"gossip"}`, `{"kind":"mark"}`, `{"kind":"gap","earliest_ns":2,"latest_ns":1}`, `{"kind":7}`} {
		if err := json.Unmarshal([]byte(bad), new(watch.Record)); err == nil {
			t.Errorf("%q is taken for a record", bad)
		}
	}
}

// agent is a stand-in for ocslab on another machine: its clock is an hour ahead.
func agent(mode string) {
	its := func() int64 { return timeline.HostAxis().NS(time.Now()) + int64(time.Hour) }
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	switch mode {
	case "mute":
		io.Copy(io.Discard, os.Stdin)
		return
	case "fails":
		fmt.Fprintln(os.Stderr, "ocslab: cannot be had here")
		os.Exit(3)
	}
	if file, ok := strings.CutPrefix(mode, "once "); ok { // fails until the file is there
		if _, err := os.Stat(file); err != nil {
			fmt.Fprintln(os.Stderr, "ocslab: not yet")
			os.Exit(3)
		}
	}
	say(`{"kind":"source","host":"gpu9","source":"counters","on":true}`)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var q struct {
			Kind string
			ID   int
		}
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			os.Exit(9)
		}
		switch q.Kind {
		case "clock":
			say(`{"kind":"clock","id":%d,"at_ns":%d}`, q.ID, its())
		case "machine":
			if mode == "old" {
				say(`{"kind":"machine","id":%d,"error":"unknown question \"machine\""}`, q.ID)
				continue
			}
			say(`{"kind":"machine","id":%d,"machine":{"boot":"a","asleep_ns":5,"axis_ns":7}}`, q.ID)
		case "nics":
			say(`{"kind":"nics","id":%d,"nics":[{"nic":"gpu9/nic0","addr":"192.0.2.9","mac":"02:00:00:00:00:09"}]}`, q.ID)
		case "flush":
			at := its()
			say(`{"kind":"mark","stage":"carrier-up","subject":"gpu9/nic0","host":"gpu9","earliest_ns":%d,"latest_ns":%d,"source":"counters","reconfiguration":0}`, at, at)
			say("noise")
			say(`{"kind":"account","host":"gpu9","counted":1,"reported":1}`)
			say(`{"kind":"flush","id":%d}`, q.ID)
			if mode == "dies" || strings.HasPrefix(mode, "once ") {
				os.Exit(1)
			}
		}
	}
}

func agentHost(t *testing.T, mode string) watch.Host {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return watch.Host{Host: linkmon.Host{Name: "gpu9"}, Agent: []string{"env", "WATCH_TEST_AGENT=" + mode, self}}
}

// Ensure marks of another machine come over to our clock, with what is not known of
// the offset in their width, and that its account counts.
func TestWatch_Agent(t *testing.T) {
	w := start(t, watch.Options{Hosts: []watch.Host{agentHost(t, "good")}})
	axis := timeline.HostAxis()
	from := time.Now()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	truth := axis.Span(from, time.Now())
	all := until(t, w, stage(timeline.CarrierUp, "gpu9/nic0"))
	m := all[slices.IndexFunc(all, stage(timeline.CarrierUp, "gpu9/nic0"))].Mark
	if _, ok := m.Intersect(truth); !ok || m.Width() == 0 || m.Width() > time.Minute {
		t.Errorf("mark %v (width %v) against %+v", m, m.Width(), truth)
	}
	if !w.Covers(timeline.CarrierUp, "gpu9/nic0") {
		t.Error("what the agent covers is not covered")
	}
	if d := cmp.Diff([]watch.Account{{Host: "gpu9", Counted: 1, Reported: 1}}, w.Accounts()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if said := asJSON(append(all, w.Drain()...)); !strings.Contains(said, "which is no JSON line") {
		t.Errorf("noise of the agent went unsaid:\n%s", said)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure the clock of another machine can be read, once each time, and what there is to know of
// the machine be asked; an agent too old to know says nothing that could be taken for it.
func TestWatch_ReadClock(t *testing.T) {
	w := start(t, watch.Options{Hosts: []watch.Host{agentHost(t, "good")}})
	for range 3 {
		sent, its, received, err := w.ReadClock(t.Context(), "gpu9")
		its -= int64(time.Hour)
		// The stand-in's axis and ours may be off by what it took to find them, which on a busy
		// machine is anything but an hour.
		if slack := int64(time.Second); err != nil || its < sent-slack || its > received+slack {
			t.Errorf("ReadClock = %d, %d, %d, %v", sent, its, received, err)
		}
	}
	got, err := w.Machine(t.Context(), "gpu9")
	if want := (watch.Machine{Boot: "a", AsleepNS: 5, AxisNS: 7}); err != nil || got != want {
		t.Errorf("Machine = %+v, %v, want %+v", got, err, want)
	}
	if got, want := w.Agents(), []string{"gpu9"}; !slices.Equal(got, want) {
		t.Errorf("Agents = %q, want %q", got, want)
	}
	if _, _, _, err := w.ReadClock(t.Context(), "gpu1"); err == nil {
		t.Error("read the clock of a host without an agent")
	}
	if _, err := w.Machine(t.Context(), "gpu1"); err == nil {
		t.Error("asked a host without an agent")
	}

	old := start(t, watch.Options{Hosts: []watch.Host{agentHost(t, "old")}})
	if got, err := old.Machine(t.Context(), "gpu9"); err != nil || got != (watch.Machine{Own: true}) {
		t.Errorf("of an old agent: %+v, %v", got, err)
	}
}

// Ensure questions that make no sense are answered with what is wrong.
func TestWatch_Answer(t *testing.T) {
	w := start(t, watch.Options{Hosts: []watch.Host{{Host: linkmon.Host{Name: "gpu1", Counters: newNICs("nic0")}}}})
	for line, want := range map[string]string{
		`{"kind":"traffic","id":3}`:                                                             "no traffic is asked for",
		`{"kind":"traffic","id":3,"traffic":{"reflect":["gpu2/nic0"]}}`:                         "gpu2/nic0 is not here",
		`{"kind":"traffic","id":3,"traffic":{"flows":[{"from":"gpu2/nic0","to":"gpu3/nic0"}]}}`: "gpu2/nic0 is not here",
		`{"kind":"traffic","id":3,"traffic":{"reflect":["gpu1/nic0"]}}`:                         "nic0",
	} {
		var q watch.Question
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		a, known := w.Answer(t.Context(), q)
		if !known || a.ID != 3 || a.Kind != "traffic" || !strings.Contains(a.Error, want) {
			t.Errorf("%s: %+v, %v, want %q", line, a, known, want)
		}
	}
	if a, known := w.Answer(t.Context(), watch.Question{Kind: "flows", ID: 4}); !known || a.ID != 4 || len(a.Flows) != 0 {
		t.Errorf("flows: %+v, %v", a, known)
	}
	if a, known := w.Answer(t.Context(), watch.Question{Kind: "nics", ID: 5}); !known || len(a.NICs) != 0 {
		t.Errorf("nics: %+v, %v", a, known)
	}
	if a, known := w.Answer(t.Context(), watch.Question{Kind: "machine", ID: 6}); !known || a.Machine == nil || a.Machine.Boot != watch.ThisMachine().Boot {
		t.Errorf("machine: %+v, %v", a, known)
	}
	if _, known := w.Answer(t.Context(), watch.Question{Kind: "gossip"}); known {
		t.Error("gossip is a known question")
	}
}

// Ensure traffic that cannot be had is a source that is off, and says why.
func TestWatch_PairsNotHad(t *testing.T) {
	pair := probe.Flow{From: "gpu9/nic0", To: "gpu8/nic0"}
	w := start(t, watch.Options{Hosts: []watch.Host{agentHost(t, "good")}, Pairs: []probe.Flow{pair}})
	i := slices.IndexFunc(w.Sources(), func(s watch.Source) bool { return s.Subject == pair.String() })
	if i < 0 {
		t.Fatalf("the pair is no source: %+v", w.Sources())
	}
	if s := w.Sources()[i]; s.On || s.Why == "" {
		t.Errorf("source=%+v", s)
	}
	if w.Covers(timeline.Traffic, pair.String()) {
		t.Error("a pair that cannot be had is covered")
	}
}

func TestWatch_AgentFails(t *testing.T) {
	_, err := watch.Start(t.Context(), watch.Options{Hosts: []watch.Host{agentHost(t, "fails")}})
	if err == nil || !strings.Contains(err.Error(), "cannot be had here") {
		t.Errorf("err=%v, want what the agent said", err)
	}
	_, err = watch.Start(t.Context(), watch.Options{Hosts: []watch.Host{{Host: linkmon.Host{Name: "gpu9"}, Agent: []string{"/no/such/program"}}}})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err=%v, want os.ErrNotExist", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = watch.Start(ctx, watch.Options{Hosts: []watch.Host{agentHost(t, "mute")}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("err=%v, want the deadline", err)
	}

	w := start(t, watch.Options{Hosts: []watch.Host{agentHost(t, "dies")}})
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, w, func(r watch.Record) bool { return r.Note != nil && strings.Contains(r.Note.Text, "ended") })
	if w.Covers(timeline.CarrierUp, "gpu9/nic0") {
		t.Error("a host whose agent ended is covered")
	}
	if err := w.Flush(t.Context()); err == nil {
		t.Error("flushed an agent that ended")
	}
}

// Ensure who is lenient watches the other hosts while one is out of reach, says why, and has
// it when it can be reached, again and again.
func TestWatch_Lenient(t *testing.T) {
	file := filepath.Join(t.TempDir(), "reachable")
	counters := newNICs("nic0")
	w := start(t, watch.Options{Lenient: true, Hosts: []watch.Host{
		agentHost(t, "once "+file), {Host: linkmon.Host{Name: "gpu1", Counters: counters}},
	}})
	until(t, w, func(r watch.Record) bool {
		return r.Note != nil && r.Note.Kind == watch.Gap && r.Note.Host == "gpu9" && strings.Contains(r.Note.Text, "not yet")
	})
	if w.Covers(timeline.CarrierUp, "gpu9/nic0") || !w.Covers(timeline.CarrierUp, "gpu1/nic0") {
		t.Errorf("covered: %+v", w.Sources())
	}
	if i := slices.IndexFunc(w.Sources(), func(s watch.Source) bool { return s.Host == "gpu9" && !s.On && s.Why != "" }); i < 0 {
		t.Errorf("sources: %+v", w.Sources())
	}
	if err := w.Flush(t.Context()); err != nil {
		t.Errorf("what is within reach cannot be flushed: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // it ends with each flush
		until(t, w, func(r watch.Record) bool { return r.Note != nil && r.Note.Event == watch.Reached })
		if !w.Covers(timeline.CarrierUp, "gpu9/nic0") {
			t.Errorf("sources: %+v", w.Sources())
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := until(t, w, func(r watch.Record) bool { return r.Note != nil && strings.Contains(r.Note.Text, "ended") })
		if !slices.ContainsFunc(all, stage(timeline.CarrierUp, "gpu9/nic0")) {
			t.Errorf("what the agent saw is missing:\n%s", asJSON(all))
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure the tap sees each record once, in the order of the queue, also those that nobody
// reads, and none after Close.
func TestWatch_Tap(t *testing.T) {
	n := newNICs("nic0")
	var mu sync.Mutex // guards tapped
	var tapped []watch.Record
	w := start(t, watch.Options{
		Hosts: []watch.Host{{Host: linkmon.Host{Name: "gpu1", Counters: n}}}, Firmware: -1,
		Tap: func(r watch.Record) {
			mu.Lock()
			defer mu.Unlock()
			tapped = append(tapped, r)
		},
	})
	var read []watch.Record
	for range 5 {
		n.toggle("nic0")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	read = w.Drain()
	mu.Lock()
	got := slices.Clone(tapped)
	mu.Unlock()
	if len(read) < 5 || asJSON(got) != asJSON(read) {
		t.Errorf("tapped:\n%s\nread:\n%s", asJSON(got), asJSON(read))
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	before := len(tapped)
	mu.Unlock()
	n.toggle("nic0")
	mu.Lock()
	defer mu.Unlock()
	if len(tapped) != before {
		t.Error("tapped after Close")
	}
}

// Ensure a watch that rests misses nothing, and neither does one that begins or ends to rest.
func TestWatch_Rest(t *testing.T) {
	n := newNICs("nic0")
	w := start(t, watch.Options{Hosts: []watch.Host{{Host: linkmon.Host{Name: "gpu1", Counters: n}}}, Firmware: -1})
	w.Rest(true)
	for i := range 20 {
		if i == 10 {
			w.Rest(false)
		}
		n.toggle("nic0")
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	marks := 0
	for _, r := range w.Drain() {
		if r.Mark != nil {
			marks++
		}
	}
	a := w.Accounts()
	if len(a) != 1 || a[0].Counted != 20 || a[0].Missing != 0 || a[0].Reported+a[0].Merged != 20 || marks != a[0].Reported {
		t.Errorf("%d marks, %+v", marks, a)
	}
}
