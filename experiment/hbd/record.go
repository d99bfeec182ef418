package hbd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// The run of a Bring is kept when that is over, and not played by package sequence: rings belong to a lab that stays
// open with its failures, the bundles of a group wait for each other and no group for another, dead boards are to be
// left alone in the end, and a disk has no place between a dead node and its bypass.

// keep writes the run.
func (b *bringing) keep(ctx context.Context, failed error) (err error) {
	if b.opt.Store == nil || len(b.jobs) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx) // what was done is kept, whoever has gone
	c, err := b.creation()
	if err != nil {
		return err
	}
	w, err := b.opt.Store.Create(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	b.report.Run = w.ID()
	host, _ := os.Hostname()
	session, err := w.Session(runs.Session{Begun: b.wall, MonoNS: b.ns, Host: host, Version: b.opt.Version,
		Revision: b.opt.Revision, Found: b.maps(false)})
	if err != nil {
		return err
	}
	setup := runs.Setup{Session: session, Conditions: []int{1}, Devices: b.devices(ctx), Carrier: "not watched",
		Missing: []string{"there are no NICs in the lab"}}
	if err := w.Setup(setup); err != nil {
		return err
	}
	if err := w.BeginPoint(c.Plan.Points[0]); err != nil {
		return err
	}
	b.record(w, host, session)
	for _, e := range b.events() {
		if err := w.Event(e); err != nil {
			return err
		}
	}
	if err := w.FinishPoint(); err != nil {
		return err
	}
	s := runs.Summary{State: runs.Done, Restored: true}
	if failed != nil {
		s = runs.Summary{State: runs.Failed, Reason: failed.Error(), Finally: "what was brought about was left so"}
	}
	if err := w.EndSession(string(s.State)); err != nil {
		return err
	}
	return w.Finish(s)
}

// maps are the circuits of the bundles that were to be switched, before or after.
func (b *bringing) maps(after bool) map[string]ocs.Map {
	all := map[string]ocs.Map{}
	for _, j := range b.jobs {
		all[b.d.Name(j.ref)] = j.report.Before
		if after {
			all[b.d.Name(j.ref)] = j.report.After
		}
	}
	return all
}

// creation is what the run begins with.
func (b *bringing) creation() (runs.Creation, error) {
	name := b.opt.Name
	if name == "" {
		name = "infinitehbd"
	}
	before, after := b.maps(false), b.maps(true)
	text := experimentText(name, b.opt.About, before, after)
	f, err := plan.Parse("", []byte(text))
	if err != nil {
		return runs.Creation{}, err
	}
	labText := b.opt.LabText
	if labText == nil {
		labText = b.d.lab.File.YAML()
	}
	emulated := b.d.lab.Emulated()
	return runs.Creation{
		Meta: runs.Meta{Name: name, About: b.opt.About, Created: b.wall, Version: b.opt.Version, Revision: b.opt.Revision,
			Command: b.opt.Args,
			Lab:     b.d.lab.File.Name, LabPath: b.d.lab.File.Path, Emulated: emulated, Mode: string(ocs.Update)},
		Experiment: f.Text, Lab: labText,
		Plan: &plan.Plan{Name: name, Seed: plan.DefaultSeed, Emulated: emulated, Order: plan.Fixed,
			Window: int64(plan.DefaultWindow), Exact: true,
			Conditions: []plan.Condition{{Number: 1, Parameters: map[string]string{}, Sequence: []string{"before", "after"}, Once: true,
				Maps: []map[string]ocs.Map{before, after}, Expected: DefaultPatience, Basis: "not known"}},
			Points: []plan.Point{{ID: 1, Condition: 1, Repeat: 1, First: 1}}, Finally: after},
	}, nil
}

// experimentText is the experiment file.
func experimentText(name, about string, before, after map[string]ocs.Map) string {
	var b strings.Builder
	fmt.Fprintf(&b,
		"# Written by ocslab: bundles of OCSTrx that were brought to a plan.\nname: %q\nabout: %q\nconfigurations:\n", name, about)
	for _, c := range []struct {
		name string
		maps map[string]ocs.Map
	}{{"before", before}, {"after", after}} {
		fmt.Fprintf(&b, "  %s:\n    maps:\n", c.name)
		for _, sw := range slices.Sorted(maps.Keys(c.maps)) {
			fmt.Fprintf(&b, "      %q: %q\n", sw, c.maps[sw])
		}
		if len(c.maps) == 0 {
			b.WriteString("      {}\n")
		}
	}
	b.WriteString("sequence: [before, after]\nrepeats: 1\nwarm_ups: 0\norder: fixed\nnulls: {count: 0}\n" +
		"wait: settled\nmeasure: {traffic: false}\nfinally: {light: after}\n")
	return b.String()
}

// devices are the switches that were to be switched, as they present themselves.
func (b *bringing) devices(ctx context.Context) (all []runs.Device) {
	for _, j := range b.jobs {
		sw, _, err := b.d.switchOf(ctx, j.ref)
		if err != nil {
			continue // the reason of the run says so
		}
		id, err := sw.Identify(ctx)
		if err != nil {
			continue
		}
		all = append(all, runs.Device{Name: sw.Name, URL: sw.Device, Vendor: id.Vendor, Model: id.Model, Serial: id.Serial,
			Firmware: id.Firmware,
			Size:     id.Geometry.String(), Emulated: b.d.lab.Emulated()})
	}
	return all
}

// record writes down the reconfiguration and its marks.
func (b *bringing) record(w *runs.Writer, host string, session int) {
	rc := runs.Reconfiguration{Number: 1, Point: 1, Condition: 1, Repeat: 1, Session: session, From: "before", To: "after",
		Removed: map[string]ocs.Map{}, Added: map[string]ocs.Map{}, Wall: b.wall, MonoNS: b.ns, PatienceNS: int64(b.opt.Patience)}
	for _, j := range b.jobs {
		name, c := b.d.Name(j.ref), j.report.Change
		rc.Removed[name], rc.Added[name] = c.Remove, c.Add
		for _, m := range experiment.CommandMarks(j.report.Receipt, name, host, 1) {
			w.Mark(m)
		}
		module := map[int]ModuleTime{}
		for _, t := range j.modules {
			module[t.Module] = t
		}
		mark := func(stage timeline.Stage, c ocs.CrossConnect, at func(ModuleTime) timeline.Interval) {
			if t, known := module[int(c.Ingress-1)/lanes+1]; known {
				w.Mark(timeline.Mark{Stage: stage, Subject: fmt.Sprintf("%s/%d", name, c.Egress), Host: host, Interval: at(t),
					Source: "module", Reconfiguration: 1})
			}
		}
		for cc := range c.Remove.All() {
			mark(timeline.Dark, cc, func(t ModuleTime) timeline.Interval { return t.Busy })
		}
		for cc := range c.Add.All() {
			w.Expected(timeline.Expectation{Reconfiguration: 1, Stage: timeline.Light, Subject: fmt.Sprintf("%s/%d", name, cc.Egress)})
			mark(timeline.Light, cc, func(t ModuleTime) timeline.Interval { return t.Settled })
		}
	}
	w.Reconfiguration(rc)
}

// events are what a reader of the run should know.
func (b *bringing) events() []runs.Event {
	var all []runs.Event
	add := func(kind, format string, args ...any) {
		all = append(all, runs.Event{Kind: kind, Session: 1, Point: 1, Wall: time.Now().UTC(), Text: fmt.Sprintf(format, args...)})
	}
	for _, g := range b.report.Groups {
		add("ring", "the ring of nodes %s was away for %v, %s switched", strings.Trim(fmt.Sprint(g.Group), "[]"), g.Down,
			natural.Count(g.Bundles, "bundle"))
	}
	for _, h := range b.report.Alarms {
		add("half-open", "%s was half open for %v", b.d.cableText(h.Cable), h.For)
	}
	if w := b.report.Walk; w != nil {
		add("walked", "light closes %s, and %s send and receive it", natural.Count(len(w.Rings), "ring"), natural.Count(w.Lit, "lane"))
	}
	return all
}
