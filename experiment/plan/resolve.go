package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology"
)

// Options of [File.Resolve].
type Options struct {
	Emulated bool    // the lab will be emulated
	Seed     *uint64 // in place of that of the file
	Repeats  *int    // in place of those of the file
}

// Resolve holds the file against a lab and returns what is to be done. The error, if any,
// is [strictyaml.Errors] with all problems; those of the file have their position. No device
// is asked: what a real switch can hold is found out by the run.
func (f *File) Resolve(l *lab.File, opt Options) (*Plan, error) {
	if opt.Repeats != nil && (*opt.Repeats < 1 || *opt.Repeats > MostPoints) {
		return nil, fmt.Errorf("%d repeats: want 1 to %d", *opt.Repeats, MostPoints)
	}
	r := resolver{checker: checker{f: f}, lab: l, emulated: opt.Emulated, done: map[string]map[string]ocs.Map{}, devices: map[string]map[string]device{}}
	seed, repeats := f.seed(opt.Seed), f.repeats(opt.Repeats)
	r.fits()
	conditions := r.lay(seed, repeats, false)
	if len(conditions) == 0 {
		return nil, r.errs.Err()
	}
	p := &Plan{
		Name: f.Name, Seed: seed, Emulated: opt.Emulated, Order: f.order(),
		WarmUps: f.warmUps(), Window: int64(f.window()), Varied: f.varied(conditions), Conditions: conditions,
	}
	for i := range conditions {
		r.condition(&conditions[i])
	}
	p.Finally = r.finally()
	for _, name := range sorted(f.Configurations) { // also those that nobody needs yet
		if f.Configurations[name].Topology == nil {
			r.maps(name, strictyaml.Key("configurations", name), nil)
		}
	}
	if len(r.errs) == 0 {
		r.check(conditions, p.Finally)
	}
	if len(r.errs) == 0 {
		r.moves(conditions)
		r.predict(conditions)
	}
	if err := r.errs.Err(); err != nil {
		return nil, err
	}
	p.Points = points(conditions, repeats, p.Order, f.nulls(len(conditions)*repeats, len(conditions)), seed)
	return p, nil
}

// resolver holds a file against a lab.
type resolver struct {
	checker
	lab      *lab.File
	emulated bool
	done     map[string]map[string]ocs.Map // maps of configurations, by name and arguments; nil: wrong

	devices map[string]map[string]device // of emulated labs, by set-up and name
}

// fits checks what the file says of the lab itself.
func (r *resolver) fits() {
	f := r.f
	for _, p := range known {
		if _, fixed := f.Parameters[p.Name]; p.Emulated && !r.emulated && (fixed || f.all()[p.Name]) {
			r.key(f.pathOf(p.Name), "%s is a parameter of emulated labs, and this one is real: remove it, or run with --emulated", p.Name)
		}
	}
	for i, name := range f.Measure.Only {
		if _, err := r.lab.NIC(name); err != nil && !slices.ContainsFunc(r.lab.Hosts, func(h lab.Host) bool { return h.Name == name }) {
			r.value(strictyaml.Index("measure.only", i), "%w", err)
		}
	}
	if slices.ContainsFunc(r.lab.Hosts, func(h lab.Host) bool { return len(h.NICs) > 0 }) {
		return
	}
	const none = "the lab has no NICs"
	onNICs := func(s timeline.Stage) bool {
		switch s {
		case timeline.Firmware, timeline.CarrierDown, timeline.CarrierUp, timeline.TrafficLost, timeline.Traffic:
			return true
		}
		return false
	}
	for i, s := range f.Measure.Stages {
		if onNICs(s) {
			r.value(strictyaml.Index("measure.stages", i), "%s is not measured: %s", s, none)
		}
	}
	for i, l := range f.Limits {
		if s := l.Statistic.Stage; onNICs(s) {
			r.value(strictyaml.Index("limits", i), "the limit is on %s, which nobody measures: %s", s, none)
		}
	}
	if f.Stop != nil && onNICs(f.Stop.When.Stage) {
		r.value("stop.when", "it is about %s, which nobody measures: %s", f.Stop.When.Stage, none)
	}
	if w := f.Wait; w != nil && (w.Until == UntilCarrier || w.Until == UntilTraffic) {
		r.value("wait", "there is no %s to wait for: %s", w.Until, none)
	}
}

// pathOf returns where a parameter is.
func (f *File) pathOf(name string) string {
	if _, ok := f.Parameters[name]; ok {
		return strictyaml.Key("parameters", name)
	}
	for i := range f.Axes {
		if slices.Contains(f.names(i), name) {
			return strictyaml.Key(f.axisPath(i), name)
		}
	}
	return ""
}

// condition fills in maps and set-up of a condition.
func (r *resolver) condition(c *Condition) {
	for i, name := range c.Sequence {
		c.Maps = append(c.Maps, r.maps(name, strictyaml.Index("sequence", i), c.Parameters))
	}
	var words []string
	for _, name := range sorted(c.Parameters) {
		if r.f.opensAnew(name) {
			value := c.Parameters[name]
			if strings.ContainsAny(value, ` "`) {
				value = strconv.Quote(value) // or two set-ups could read the same
			}
			words = append(words, name+"="+value)
		}
	}
	c.Setup = strings.Join(words, " ")
}

// opensAnew reports whether the testbed is set up anew when a parameter changes.
func (f *File) opensAnew(name string) bool {
	p, ok := parameter(name)
	switch {
	case ok && p.setUp:
		return true
	case len(f.Hooks.Setup) == 0:
		return false
	case !ok:
		return true // set-up hooks find it in their environment
	}
	for _, h := range f.Hooks.Setup {
		for _, word := range h.Run {
			if names, _ := references(word); slices.Contains(names, name) {
				return true
			}
		}
	}
	return false
}

// maps returns the maps of the configuration that is named at path.
func (r *resolver) maps(name, path string, params map[string]string) map[string]ocs.Map {
	conf, own := r.f.Configurations[name]
	key := name
	with := map[string]string{}
	if own && conf.Topology != nil {
		for arg, text := range conf.Topology.With {
			with[arg] = substitute(text, params)
		}
		key = fmt.Sprintf("%s %q", name, with)
	}
	if m, ok := r.done[key]; ok {
		return m
	}
	r.done[key] = nil
	errs := len(r.errs)
	var m map[string]ocs.Map
	switch {
	case own && conf.Topology != nil:
		m = r.topology(strictyaml.Key("configurations", name)+".topology", conf.Topology, with)
	case own:
		m = r.lab.Expand(lab.Configuration{Maps: conf.Maps, Links: conf.Links}, func(where string, key bool, err error) {
			where = strictyaml.Key("configurations", name) + "." + where
			if key {
				r.key(where, "%w", err)
			} else {
				r.value(where, "%w", err)
			}
		})
	default:
		var err error
		if m, err = r.lab.Config(name); errors.Is(err, lab.ErrUnknown) {
			all := slices.Concat(sorted(r.f.Configurations), r.lab.ConfigNames())
			if path == "finally.light" {
				all = append(all, Restore)
			}
			r.value(path, "neither the experiment nor the lab has the configuration %.60q%s", name, orElse(strictyaml.DidYouMean(name, all), ": there are ", all))
		} else if err != nil {
			r.value(path, "%w", err)
		}
	}
	circuits := 0
	for _, circuit := range m {
		circuits += circuit.Len()
	}
	if circuits == 0 && len(r.errs) == errs {
		r.value(path, "the configuration %s connects nothing", name)
	}
	if len(r.errs) > errs {
		return nil
	}
	r.done[key] = m
	return m
}

// topology asks a planner.
func (r *resolver) topology(path string, t *Topology, with map[string]string) map[string]ocs.Map {
	var nics []topology.NIC
	add := func(n *lab.NIC) {
		nics = append(nics, topology.NIC{Name: n.FullName(), Tx: topology.Port(n.Tx), Rx: topology.Port(n.Rx)})
	}
	errs := len(r.errs)
	for i, name := range t.NICs {
		n, err := r.lab.NIC(name)
		if err != nil {
			r.value(strictyaml.Index(path+".nics", i), "%w", err)
			continue
		}
		add(n)
		if slices.ContainsFunc(nics[:len(nics)-1], func(o topology.NIC) bool { return o.Name == n.FullName() }) {
			r.value(strictyaml.Index(path+".nics", i), "%s is there twice", n.FullName())
		}
	}
	if len(t.NICs) == 0 {
		for i := range r.lab.Hosts {
			for j := range r.lab.Hosts[i].NICs {
				add(&r.lab.Hosts[i].NICs[j])
			}
		}
	}
	if len(r.errs) > errs {
		return nil
	}
	m, err := topology.Plan(t.Planner, topology.Request{NICs: nics, With: with})
	switch {
	case errors.Is(err, topology.ErrArgument) && len(t.With) > 0:
		r.value(path+".with", "%w", err)
	case err != nil:
		r.value(path, "%w", err)
	}
	return m
}

// finally returns what the run leaves behind, nil for what it found.
func (r *resolver) finally() map[string]ocs.Map {
	if r.f.Finally == nil || r.f.Finally.Light == Restore {
		return nil
	}
	return r.maps(r.f.Finally.Light, "finally.light", r.f.Parameters)
}

// check checks what switches can hold, and what nobody may touch.
func (r *resolver) check(conditions []Condition, finally map[string]ocs.Map) {
	told := map[string]bool{} // each problem once, not for each condition
	fail := func(path string, err error) {
		if key := path + "\x00" + err.Error(); !told[key] {
			told[key] = true
			r.value(path, "%w", err)
		}
	}
	if r.emulated {
		needed := map[string]bool{}
		for _, m := range r.done {
			for name := range m {
				needed[name] = true
			}
		}
		for i := range conditions {
			c := &conditions[i]
			if r.devices[c.Setup] != nil {
				continue
			}
			l := c.Settings.Apply(r.lab)
			if err := firmware(l, c.Settings); err != nil {
				fail(cmp.Or(r.f.pathOf("firmware"), "parameters"), err)
			}
			var err error
			if r.devices[c.Setup], err = emulation(l, needed); err != nil {
				if path := cmp.Or(r.f.pathOf("model"), r.f.pathOf("switching"), r.f.pathOf("ack")); path != "" {
					fail(path, err)
				} else {
					r.ofLab(err)
					return
				}
			}
		}
	}
	seen := map[string]bool{} // maps on switches of one set-up are checked once
	for i := range conditions {
		c := &conditions[i]
		uses := make([]use, 0, len(c.Sequence)+1)
		for j, name := range c.Sequence {
			uses = append(uses, use{name, r.site(name, strictyaml.Index("sequence", j)), c.Maps[j]})
		}
		if finally != nil {
			uses = append(uses, use{r.f.Finally.Light, r.site(r.f.Finally.Light, "finally.light"), finally})
		}
		for _, u := range uses {
			for _, name := range sorted(u.maps) {
				m := u.maps[name]
				if key := fmt.Sprintf("%q %q %q %v", c.Setup, u.name, name, m); seen[key] {
					continue
				} else {
					seen[key] = true
				}
				path := u.path
				if _, drawn := r.f.Configurations[u.name].Maps[name]; drawn {
					path += strictyaml.Key(".maps", name)
				}
				if err := r.protected(name, m); err != nil {
					fail(path, fmt.Errorf("the configuration %s %w", u.name, err))
				}
				d := r.devices[c.Setup][name]
				if err := d.geometry.Check(m); err != nil {
					fail(path, fmt.Errorf("the configuration %s does not fit %s, %s of %v: %w", u.name, name, d.model, d.geometry, err))
				}
			}
		}
	}
}

// ofLab reports a problem of the lab file.
func (r *resolver) ofLab(err error) {
	r.errs = append(r.errs, strictyaml.Errorf(r.lab.Path, strictyaml.Pos{}, "", "%w", err))
}

// use is a configuration and where it is written.
type use struct {
	name, path string
	maps       map[string]ocs.Map
}

// site is the path of a configuration: where it is written, or else where it is named.
func (r *resolver) site(name, path string) string {
	if _, own := r.f.Configurations[name]; own {
		return strictyaml.Key("configurations", name)
	}
	return path
}

// protectedError matches [ocs.ErrInterlock].
type protectedError struct{ text string }

func (e *protectedError) Error() string { return e.text }
func (e *protectedError) Unwrap() error { return ocs.ErrInterlock }

// protected reports circuits at ports that nobody may move.
func (r *resolver) protected(name string, m ocs.Map) error {
	for _, p := range r.lab.ProtectedPorts(name) {
		if at := m.At(p); len(at) > 0 {
			return &protectedError{fmt.Sprintf("has %v on %s, and the lab protects port %d", at[0], name, p)}
		}
	}
	return nil
}

// moves reports moves of a sequence that change nothing, since all that the configuration
// asks for is there already.
func (r *resolver) moves(conditions []Condition) {
	told := map[string]bool{}
	for i := range conditions {
		c := &conditions[i]
		at := after(nil, c.Maps[0])
		for lap := range 2 { // the first comes from somewhere
			for j := range c.Sequence {
				next := (j + 1) % len(c.Sequence)
				from, to := c.Sequence[j], c.Sequence[next]
				if lap > 0 && len(changes(at, c.Maps[next])) == 0 && !told[from+"\x00"+to] {
					told[from+"\x00"+to] = true
					r.value(strictyaml.Index("sequence", next), "moving from %s to %s changes nothing, as all circuits of %s are there already", from, to, to)
				}
				at = after(at, c.Maps[next])
			}
		}
	}
}
