package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// TestbedOptions say how a lab is measured.
type TestbedOptions struct {
	// Maps are the configurations that the testbed will move between, by switch: these
	// are opened, and the traffic of their circuits is probed.
	Maps []map[string]ocs.Map
	// Flows are traffic that is probed beside that of the circuits of Maps.
	Flows []probe.Flow

	// Only are the hosts and NICs to watch, by name; none: all of the lab.
	Only []string

	// Watch says how hosts are watched; Hosts and the endpoints and flows of Probe are
	// filled in. Of the probe's Pace, 0 is [probe.DefaultPace] or more, as the number of
	// flows demands, and below 0 sends no traffic.
	Watch watch.Options

	// Fabric is how hosts are emulated when the lab is.
	Fabric lab.FabricOptions
}

// Testbed is a lab made ready for measuring. Real labs and emulated ones differ only
// in where their switches and hosts come from. It is used by one goroutine at a time.
type Testbed struct {
	Lab     *lab.Lab
	Bench   Bench
	Watch   *watch.Watch
	Fabric  *fabric.Fabric           // nil: the hosts are real
	Maps    []map[string]ocs.Map     // of the configurations, by switch
	Sources []watch.Source           // what is not watched at all, and why
	Average map[string]time.Duration // of the power monitors, by switch that has them
	Pace    time.Duration            // of the probe; 0 when it sends nothing

	close   []func() error
	truthOf map[string]int // how much of each truth log has been read
}

// OpenTestbed opens the switches, emulates what is to be emulated, and begins to
// watch. The power monitors of the ports in question are set to their shortest
// averaging, and set back by Close.
func OpenTestbed(ctx context.Context, l *lab.Lab, opt TestbedOptions) (t *Testbed, err error) {
	t = &Testbed{Lab: l, Maps: opt.Maps, Average: map[string]time.Duration{}, truthOf: map[string]int{}}
	defer func() {
		if err != nil {
			err = once(err, t.Close())
			t = nil
		}
	}()
	host, err := os.Hostname()
	if err != nil {
		return t, err
	}
	t.Bench = Bench{Host: host, Wiring: l.File}
	egress := map[string][]ocs.Port{}
	for _, m := range opt.Maps {
		for sw, circuits := range m {
			for c := range circuits.All() {
				egress[sw] = append(egress[sw], c.Egress)
			}
		}
	}
	for _, s := range l.File.Switches {
		if ports := egress[s.Name]; len(ports) > 0 {
			slices.Sort(ports)
			if err := t.openSwitch(ctx, s.Name, slices.Compact(ports)); err != nil {
				return t, err
			}
		}
	}
	return t, t.watch(ctx, opt)
}

// openSwitch opens a switch twice: the second session is for the monitors of ports.
func (t *Testbed) openSwitch(ctx context.Context, name string, ports []ocs.Port) error {
	o, err := t.Lab.Switch(ctx, name)
	if err != nil {
		return err
	}
	rig := &Rig{Name: name, Switch: o}
	t.Bench.Rigs = append(t.Bench.Rigs, rig)
	if _, ok := ocs.As[ocs.PowerMeter](o); !ok {
		return nil
	}
	for _, m := range t.Maps { // before the settings of its monitors change
		if err := o.Gate().MayApply(ctx, lab.Intent{On: o, Want: m[name], Policy: ocs.Update}); err != nil {
			return err
		}
	}
	missing := func(source, format string, args ...any) {
		t.Sources = append(t.Sources, watch.Source{Subject: name, Name: source, Why: fmt.Sprintf(format, args...)})
	}
	second, err := t.Lab.Session(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		missing("power", "a second session for its monitors cannot be opened: %v", err) // a serial line has one
		return nil
	}
	t.close = append(t.close, second.Close)
	meter, _ := ocs.As[ocs.PowerMeter](second)
	averaging, restore, err := Quicken(ctx, meter, ports...)
	switch {
	case errors.Is(err, ErrNoMonitor):
		return nil
	case errors.Is(err, ocs.ErrNotSupported):
		r, err := meter.Power(ctx, ports...)
		if err != nil || len(r.Ports) == 0 {
			return err
		}
		averaging, restore = AssumedAveraging, func(context.Context) error { return nil }
		missing("monitor settings", "they cannot be read over this protocol; it is assumed that readings are averaged over %v, as monitors come", averaging)
	case err != nil:
		return err
	}
	t.close = append(t.close, func() error { return restore(ctx) })
	rig.Meter, rig.Rule = meter, timeline.SettleRule{Averaging: averaging}
	t.Average[name] = averaging
	return nil
}

// watch begins to watch the hosts.
func (t *Testbed) watch(ctx context.Context, opt TestbedOptions) error {
	w := opt.Watch
	var err error
	switch {
	case !slices.ContainsFunc(t.Lab.File.Hosts, func(h lab.Host) bool { return len(h.NICs) > 0 }):
		return nil // a lab of switches alone is measured by what they tell
	case t.Lab.Emulated():
		if t.Fabric, err = t.Lab.Fabric(ctx, opt.Fabric); err != nil {
			return err
		}
		t.close = append(t.close, t.Fabric.Close)
		t.Bench.Late = t.Fabric.Late
		w.Hosts = FabricHosts(t.Fabric)
	default:
		var closers []func() error
		var sources []watch.Source
		w.Hosts, sources, closers, err = Hosts(t.Lab.File)
		t.Sources = append(t.Sources, sources...)
		t.close = append(t.close, closers...)
		if err != nil {
			return err
		}
	}
	if w.Hosts, err = only(t.Lab.File, w.Hosts, opt.Only); err != nil || len(w.Hosts) == 0 {
		return err
	}
	if w.Probe.Pace >= 0 {
		t.flows(&w, opt.Flows)
	}
	if t.Watch, err = watch.Start(ctx, w); err != nil {
		return err
	}
	if len(w.Probe.Flows)+len(w.Pairs) > 0 {
		t.Pace = w.Probe.Pace
	}
	t.close = append(t.close, t.Watch.Close)
	t.Bench.Watch = t.Watch
	return nil
}

// only returns the hosts and interfaces that are named.
func only(f *lab.File, hosts []watch.Host, names []string) ([]watch.Host, error) {
	if len(names) == 0 {
		return hosts, nil
	}
	wanted := map[string][]string{} // interfaces by host
	for _, name := range names {
		i := slices.IndexFunc(f.Hosts, func(h lab.Host) bool { return h.Name == name })
		if i >= 0 {
			for _, n := range f.Hosts[i].NICs {
				wanted[name] = append(wanted[name], n.Name)
			}
			continue
		}
		n, err := f.NIC(name)
		if err != nil {
			return nil, err
		}
		wanted[n.Host] = append(wanted[n.Host], n.Name)
	}
	var kept []watch.Host
	for _, h := range hosts {
		if h.Interfaces = wanted[h.Name]; len(h.Interfaces) > 0 {
			kept = append(kept, h)
		}
	}
	return kept, nil
}

// Quiet is how a [TestbedOptions] sends no traffic.
const Quiet = -1 * time.Nanosecond

// flows sets up the traffic of the configurations, a flow for every circuit that joins two
// NICs, and more beside it.
func (t *Testbed) flows(w *watch.Options, more []probe.Flow) {
	seen := map[probe.Flow]bool{}
	used := map[string]bool{}
	w.Probe.Host = t.Bench.Host
	add := func(f probe.Flow) {
		seen[f] = true
		used[f.From], used[f.To] = true, true
	}
	for _, m := range t.Maps {
		for sw, circuits := range m {
			for c := range circuits.All() {
				if f, ok := t.Bench.flow(sw, c); ok {
					add(f)
				}
			}
		}
	}
	for _, f := range more {
		add(f)
	}
	ends := map[string]bool{}
	for i := range w.Hosts {
		h := &w.Hosts[i]
		for _, name := range slices.Sorted(maps.Keys(used)) {
			host, iface, _ := strings.Cut(name, "/")
			if host != h.Name || len(h.Agent) > 0 {
				continue
			}
			e, err := t.endpoint(h, name, iface)
			if err != nil {
				t.Sources = append(t.Sources, watch.Source{Host: host, Subject: name, Name: "probe", Why: err.Error()})
				continue
			}
			ends[name] = true
			w.Probe.Endpoints = append(w.Probe.Endpoints, e)
		}
	}
	far := map[string]bool{}
	for _, h := range w.Hosts {
		far[h.Name] = len(h.Agent) > 0
	}
	for _, f := range slices.SortedFunc(maps.Keys(seen), func(a, b probe.Flow) int { return strings.Compare(a.String(), b.String()) }) {
		from, _, _ := strings.Cut(f.From, "/")
		to, _, _ := strings.Cut(f.To, "/")
		switch {
		case ends[f.From] && ends[f.To]:
			w.Probe.Flows = append(w.Probe.Flows, f)
		case far[from] || far[to]:
			w.Pairs = append(w.Pairs, f)
		}
	}
	if w.Probe.Pace == 0 {
		w.Probe.Pace = pace(max(len(w.Probe.Flows), len(w.Pairs)))
	}
}

// pace is the time between two packets of each of n flows when nobody says: one thread
// sends all of them, at some 10 µs each, and others need processors, too.
func pace(n int) time.Duration {
	return max(probe.DefaultPace, (time.Duration(n) * 50 * time.Microsecond).Round(100*time.Microsecond))
}

// endpoint returns where the traffic of a NIC begins and ends.
func (t *Testbed) endpoint(h *watch.Host, name, iface string) (probe.Endpoint, error) {
	e := probe.Endpoint{Name: name, NS: h.NS, Interface: iface}
	if t.Fabric != nil {
		for _, fh := range t.Fabric.Hosts() {
			for _, n := range fh.NICs {
				if n.FullName == name {
					e.Addr = n.Addr.Addr() // the fabric has made its NICs known to each other
				}
			}
		}
		var err error
		if h.NS == nil {
			e.Conn, err = t.Fabric.Wire(h.Name, iface)
		}
		return e, err
	}
	return h.Endpoint(iface)
}

// FabricHosts returns the hosts of a fabric, to be watched.
func FabricHosts(f *fabric.Fabric) []watch.Host {
	var list []watch.Host
	for _, h := range f.Hosts() {
		w := watch.Host{Tree: h.Root}
		w.Name, w.NS = h.Name, h.NS
		w.Module = func(iface string) (optics.Reader, error) { return f.Module(h.Name, iface) }
		if h.NS == nil {
			w.Counters = fabricCounters{f, h.Name}
		}
		for _, n := range h.NICs {
			w.Interfaces = append(w.Interfaces, n.Name)
			w.Lag = max(w.Lag, n.Refresh)
		}
		list = append(list, w)
	}
	return list
}

// fabricCounters are the counters of a host whose NICs are in memory only.
type fabricCounters struct {
	f    *fabric.Fabric
	host string
}

// Interfaces lists the NICs.
func (c fabricCounters) Interfaces() ([]linkmon.Interface, error) {
	var list []linkmon.Interface
	for _, h := range c.f.Hosts() {
		if h.Name != c.host {
			continue
		}
		for _, n := range h.NICs {
			list = append(list, linkmon.Interface{Index: n.Index, Name: n.Name})
		}
	}
	return list, nil
}

// Open returns the counters of a NIC.
func (c fabricCounters) Open(i linkmon.Interface) (linkmon.Counter, error) {
	return fabricCounter{c.f, c.host, i.Name}, nil
}

type fabricCounter struct {
	f          *fabric.Fabric
	host, name string
}

func (c fabricCounter) Changes() (uint32, error) {
	up, down, err := c.UpDown()
	return up + down, err
}

func (c fabricCounter) UpDown() (up, down uint32, err error) {
	up, down, _, err = c.f.Counts(c.host, c.name)
	return up, down, gone(err)
}

func (c fabricCounter) Carrier() (bool, error) {
	_, _, carrier, err := c.f.Counts(c.host, c.name)
	return carrier, gone(err)
}

// gone is what it means when a fabric does not know a NIC any more.
func gone(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", linkmon.ErrGone, err)
	}
	return nil
}

func (fabricCounter) Close() error { return nil }

// Hosts returns the hosts of a lab that can be watched from here, those that
// cannot with the reason, and what to close when they are no longer watched.
func Hosts(f *lab.File) (hosts []watch.Host, not []watch.Source, closers []func() error, err error) {
	here, err := os.Hostname()
	if err != nil {
		return nil, nil, nil, err
	}
	short, _, _ := strings.Cut(here, ".")
	for _, h := range f.Hosts {
		if len(h.NICs) == 0 {
			continue
		}
		w := watch.Host{Tree: h.Tree, Agent: h.Agent}
		w.Name = h.Name
		for _, n := range h.NICs {
			w.Interfaces = append(w.Interfaces, n.Name)
		}
		switch {
		case len(h.Agent) > 0:
		case h.NetNS != "":
			if w.NS, err = netns.Open(h.NetNS); err != nil {
				return hosts, not, closers, fmt.Errorf("host %s: %w", h.Name, err)
			}
			closers = append(closers, w.NS.Close)
		case h.Name != here && h.Name != short:
			not = append(not, watch.Source{Host: h.Name, Name: "counters", Why: fmt.Sprintf(
				"%s is not this machine (%s): say in the lab file how to get there, agent: [ssh, %s, ocslab] or netns: NAME", h.Name, here, h.Name)})
			continue
		}
		if h.Tree != "" && !filepath.IsAbs(h.Tree) {
			w.Tree = filepath.Join(filepath.Dir(f.Path), h.Tree)
		}
		hosts = append(hosts, w)
	}
	return hosts, not, closers, nil
}

// Truth returns what the emulation did since the last call, as marks of the given
// reconfiguration. A real lab has none.
func (t *Testbed) Truth(number int) []timeline.Mark {
	var truth []timeline.Mark
	take := func(name string, from func(int) ([]timeline.Mark, int)) {
		marks, next := from(t.truthOf[name])
		t.truthOf[name] = next
		for _, m := range marks {
			m.Reconfiguration = number
			truth = append(truth, m)
		}
	}
	for _, r := range t.Bench.Rigs {
		if o, ok := r.Switch.(*lab.Opened); ok && o.Emulated != nil && o.Emulated.Device != nil {
			take(r.Name, o.Emulated.Device.Truth)
		}
	}
	if t.Fabric != nil {
		take("", t.Fabric.Truth)
	}
	return truth
}

// Close ends the watch and the emulation of hosts, and puts the power monitors
// back. The lab stays open.
func (t *Testbed) Close() error {
	var errs []error
	for _, c := range slices.Backward(t.close) {
		errs = append(errs, c())
	}
	t.close = nil
	return once(errs...)
}
