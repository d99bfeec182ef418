package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/calibration/loss"
	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// errLoss: a path is dark, a port is bad, or losses are not what they were.
var errLoss = errors.New("the map of losses is not as it should be")

// lossFlags are what calibrate loss is told.
type lossFlags struct {
	keepFlags
	ports     string
	readings  int
	repeat    int
	seed      uint64
	accuracy  float64
	reference string
	launch    string
	drift     float64
	floor     float64
	factory   string
	alarm     float64
	out       string
	dry       bool
	averaging time.Duration
}

func (a *app) calibrateLossCommand() *cobra.Command {
	var f lossFlags
	c := &cobra.Command{
		Use:   "loss SWITCH",
		Short: "Measure the insertion loss of every path of a switch",
		Long: `Make every path of a switch once, in the fewest maps there can be, and measure
what it takes from the light with the power monitors of the switch. What sticks
out is named: dirty and dead ports, bad and dark paths, sources that are not
steady. The map is compared with the last one that was kept and, with --factory,
with a table of the maker, and kept.

Light has to enter at the ingress ports: those without are listed, and nothing
is said of their paths. Where ingress ports have no monitors, say how much it is
with --reference or --launch-dbm.

The switch is moved all the time. Circuits that are there are refused unless
--mode update allows to take them away meanwhile; all is put back as it was,
also after Ctrl-C. Ports that the lab protects, that somebody has leased, whose
shutters are closed, or whose attenuators are at work are left out. Monitors
average over the shortest time meanwhile, and are set back.`,
		Example: "  ocslab --lab lab.yaml calibrate loss rail0 --dry-run\n  ocslab --lab lab.yaml calibrate loss rail0 --out loss/ --factory rail0-factory.csv\n  ocslab --emulated calibrate loss rail0 --ports 1-8,33-40",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.calibrateLoss(cmd.Context(), args[0], &f)
		},
		ValidArgsFunction: a.completeSwitch,
	}
	fl := c.Flags()
	fl.StringVar(&f.ports, "ports", "", "ingress and egress `PORTS`, such as 1-8,33-40; of a side that is not named, all (default all)")
	fl.IntVar(&f.readings, "readings", loss.DefaultReadings, "readings of each path")
	fl.IntVar(&f.repeat, "repeat", loss.DefaultRepeat, "maps made once more at the end, to see how repeatable losses are")
	fl.Uint64Var(&f.seed, "seed", 1, "seed that chooses them")
	fl.Float64Var(&f.accuracy, "accuracy-db", float64(loss.DefaultAccuracy), "accuracy of a monitor, ± `DB`, as the data sheet has it")
	fl.StringVar(&f.reference, "reference", "", "CSV `FILE` port,dbm: the light at ingress ports without a monitor, ±0.3 dB")
	fl.StringVar(&f.launch, "launch-dbm", "", "the light at all ingress ports without a monitor, `DBM` or DBM±DB")
	fl.Float64Var(&f.drift, "drift-db", float64(loss.DefaultDrift), "how much a source may move meanwhile, `DB`")
	fl.Float64Var(&f.floor, "floor-db", float64(loss.DefaultFloor), "what a port or path may lose more than its peers at least, `DB`")
	fl.DurationVar(&f.averaging, "averaging", loss.DefaultAveraging, "what the monitors average over, if the switch does not say")
	fl.StringVar(&f.factory, "factory", "", "compare with the losses in a CSV `FILE` ingress,egress,loss_db")
	fl.Float64Var(&f.alarm, "alarm-db", 0.5, "by how many `DB` a loss may differ from before")
	fl.StringVar(&f.out, "out", "", "`DIR`ectory for the map as picture (SVG) and table (CSV)")
	f.keepFlags.add(c, store.Loss)
	fl.BoolVar(&f.dry, "dry-run", false, "say how many maps and how long, and move nothing")
	fl.String("mode", "safe", "what may happen to circuits that are there: `safe|update`; safe refuses, update takes them away meanwhile")
	return c
}

// options returns how to measure, and the table to compare with, if any.
func (f *lossFlags) options() (opt loss.Options, factory loss.Table, err error) {
	within := func(name string, x, low, high float64) {
		if err == nil && !(x >= low && x <= high) { // NaN is neither
			err = usagef("--%s %g: want %g to %g", name, x, low, high)
		}
	}
	within("readings", float64(f.readings), 2, 1000)
	within("repeat", float64(f.repeat), 0, 1000)
	within("accuracy-db", f.accuracy, 0.001, 10)
	within("drift-db", f.drift, 0.001, 100)
	within("floor-db", f.floor, 0.001, 100)
	within("alarm-db", f.alarm, 0.001, 100)
	if err == nil && (f.averaging < time.Millisecond || f.averaging > 10*time.Second) {
		err = usagef("--averaging %v: want 1ms to 10s", f.averaging)
	}
	if err == nil {
		err = f.check()
	}
	if err == nil && f.reference != "" && f.launch != "" {
		err = usagef("--reference and --launch-dbm both say what light enters: give one")
	}
	if err != nil {
		return opt, nil, err
	}
	opt = loss.Options{Readings: f.readings, Repeat: f.repeat, Seed: f.seed, Accuracy: ocs.DB(f.accuracy), Drift: ocs.DB(f.drift), Averaging: f.averaging}
	if f.repeat == 0 {
		opt.Repeat = -1 // none
	}
	read := func(path string, read func(*os.File) error) error {
		file, err := os.Open(path)
		if err != nil {
			return usageError{err}
		}
		defer file.Close()
		if err := read(file); err != nil {
			return usageError{err}
		}
		return nil
	}
	if f.reference != "" {
		if err := read(f.reference, func(r *os.File) (err error) {
			opt.Reference, err = loss.ReadReference(f.reference, r)
			return err
		}); err != nil {
			return opt, nil, err
		}
	}
	if f.launch != "" {
		r, err := loss.ParseReference(f.launch)
		if err != nil {
			return opt, nil, usagef("--launch-dbm %w", err)
		}
		opt.Launch = &r
	}
	if f.factory != "" {
		if err := read(f.factory, func(r *os.File) (err error) {
			factory, err = loss.ReadTable(f.factory, r)
			return err
		}); err != nil {
			return opt, nil, err
		}
	}
	return opt, factory, nil
}

// lossRun is one call of calibrate loss.
type lossRun struct {
	app   *app
	sw    *lab.Opened
	id    ocs.Identity
	meter ocs.PowerMeter
	mover *experiment.Mover
	flags *lossFlags
	mode  ocs.Policy

	ingress, egress []ocs.Port
	found           ocs.Map           // when it began
	busy            ocs.Map           // of these, those that use our ports
	own             map[ocs.Port]bool // ports that are measured
}

// calibrateLoss measures the losses of a switch.
func (a *app) calibrateLoss(ctx context.Context, name string, f *lossFlags) (err error) {
	opt, factory, err := f.options()
	if err != nil {
		return err
	}
	mode, err := a.moveMode()
	if err != nil {
		return err
	}
	sw, err := a.open(ctx, name)
	if err != nil {
		return err
	}
	r := &lossRun{app: a, sw: sw, flags: f, mode: mode}
	if err := r.prepare(ctx); err != nil {
		return aboutSwitch(sw.Name, err)
	}
	if f.dry {
		return aboutSwitch(sw.Name, r.dryRun(ctx, opt))
	}
	r.mover = experiment.NewMover(mode, []map[string]ocs.Map{{sw.Name: r.busy}})
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return err
		}
	}
	m, err := r.measure(ctx, opt)
	if err != nil {
		if m != nil && m.Maps > 0 {
			err = fmt.Errorf("%w; nothing was kept of the %d maps that had been measured", err, m.Maps)
		}
		return aboutSwitch(sw.Name, err)
	}
	return r.conclude(m, factory)
}

// prepare finds out what can be measured, and refuses what must not be.
func (r *lossRun) prepare(ctx context.Context) (err error) {
	if r.id, err = r.sw.Identify(ctx); err != nil {
		return err
	}
	var ok bool
	if r.meter, ok = ocs.As[ocs.PowerMeter](r.sw); !ok {
		return fmt.Errorf("it has no power monitors, so losses cannot be measured: %w", ocs.ErrNotSupported)
	}
	if r.found, err = r.sw.CrossConnects(ctx); err != nil {
		return err
	}
	if err := r.choose(ctx); err != nil {
		return err
	}
	// What can be made at all is asked before anything is touched.
	maps, err := loss.Order(r.id.Geometry, r.ingress, r.egress)
	if err != nil {
		return err
	}
	if len(maps) == 0 {
		return usagef("there is no path to measure: want an ingress and an egress port")
	}
	r.own = map[ocs.Port]bool{}
	for _, p := range slices.Concat(r.ingress, r.egress) {
		r.own[p] = true
	}
	var busy []ocs.CrossConnect
	for c := range r.found.All() {
		if r.own[c.Ingress] || r.own[c.Egress] {
			busy = append(busy, c)
		}
	}
	r.busy = ocs.MustMap(busy...)
	if r.busy.Len() > 0 && r.mode == ocs.Safe && !r.flags.dry {
		return fmt.Errorf("%v is there, and would be away meanwhile: allow it with --mode update, which puts it back, or choose other --ports: %w", r.busy, ocs.ErrConflict)
	}
	_, err = r.sw.Gate().Preview(ctx, lab.Intent{On: r.sw, Want: maps[0], Policy: ocs.Update})
	return err
}

// choose chooses the ports, and leaves out those that must not be moved.
func (r *lossRun) choose(ctx context.Context) error {
	a, g := r.app, r.id.Geometry
	wanted, err := ocs.ParsePorts(r.flags.ports)
	if err != nil {
		return usagef("--ports: %w", err)
	}
	for _, p := range wanted {
		if g.Known() && !g.Has(p) {
			return &ocs.PortError{Port: p, Geometry: g, Reason: "is not a port"}
		}
		if g.IsIngress(p) {
			r.ingress = append(r.ingress, p)
		}
		if g.IsEgress(p) {
			r.egress = append(r.egress, p)
		}
	}
	if len(r.ingress) == 0 {
		r.ingress = g.IngressPorts()
	}
	if len(r.egress) == 0 {
		r.egress = g.EgressPorts()
	}
	kept := map[ocs.Port]string{}
	if f := a.labFile(); f != nil {
		for _, p := range f.ProtectedPorts(r.sw.Name) {
			kept[p] = "protected by the lab file"
		}
	}
	leases, err := a.leases(r.sw.Device)
	if err != nil {
		return err
	}
	for _, l := range leases {
		for _, p := range l.Ports {
			kept[p] = "leased by " + l.Holder
		}
	}
	if shutter, ok := ocs.As[ocs.Shutter](r.sw); ok {
		closed, err := shutter.Shutters(ctx)
		if err != nil && !errors.Is(err, ocs.ErrNotSupported) {
			return err
		}
		for p, is := range closed {
			if is && kept[p] == "" {
				kept[p] = "its shutter is closed"
			}
		}
	}
	if err := r.attenuated(ctx, kept); err != nil {
		return err
	}
	for c := range r.found.All() { // whose other end must not be moved
		for _, ends := range [][2]ocs.Port{{c.Ingress, c.Egress}, {c.Egress, c.Ingress}} {
			if why := kept[ends[0]]; why != "" && kept[ends[1]] == "" {
				kept[ends[1]] = fmt.Sprintf("joined to port %d, %s", ends[0], why)
			}
		}
	}
	reasons := map[string][]ocs.Port{}
	without := func(ports []ocs.Port) []ocs.Port {
		return slices.DeleteFunc(slices.Clone(ports), func(p ocs.Port) bool {
			why := kept[p]
			if why != "" && !slices.Contains(reasons[why], p) {
				reasons[why] = append(reasons[why], p)
			}
			return why != ""
		})
	}
	in, out := without(r.ingress), without(r.egress)
	for _, why := range sorted(reasons) {
		fmt.Fprintf(a.err, "ocslab: left out: port %s: %s\n", ocs.FormatPorts(reasons[why]), why)
	}
	if len(reasons) > 0 && (len(in) == 0 || len(out) == 0) {
		return fmt.Errorf("no path is left to measure: %w", ocs.ErrInterlock)
	}
	r.ingress, r.egress = in, out
	return nil
}

// attenuated notes the egress ports whose attenuators are at work: what these keep is the loss of the whole
// path, mirrors included, so that nothing is left to be subtracted from.
func (r *lossRun) attenuated(ctx context.Context, kept map[ocs.Port]string) error {
	attenuator, ok := ocs.As[ocs.Attenuator](r.sw)
	if !ok || len(r.egress) == 0 {
		return nil
	}
	without := func(p ocs.Port) (bool, error) {
		if kept[p] != "" {
			return false, nil
		}
		loss, err := attenuator.Attenuation(ctx, p)
		switch {
		case errors.Is(err, ocs.ErrUntold):
			kept[p] = "its attenuator is at work, and the switch does not say how much it takes"
		case errors.Is(err, ocs.ErrNotSupported):
			return true, nil
		case err != nil:
			return false, err
		case loss > 0:
			kept[p] = fmt.Sprintf("its attenuator keeps the loss at %v", loss)
		}
		return false, nil
	}
	// Most switches have none: where neither end of the side has one, the others are not asked for.
	first, last := r.egress[0], r.egress[len(r.egress)-1]
	none, err := without(first)
	if err == nil && none {
		none, err = without(last)
	}
	if err != nil || none {
		return err
	}
	for _, p := range r.egress {
		if _, err := without(p); err != nil {
			return err
		}
	}
	return nil
}

// quicken lets the monitors average over the shortest time, if that is of use, and returns what sets them back. A
// switch whose monitors cannot be set is measured as it is.
func (r *lossRun) quicken(ctx context.Context, ports []ocs.Port, opt loss.Options) (back func(context.Context) error, err error) {
	const together = 32 // so that each part is set back within the time that there is for it
	back = func(context.Context) error { return nil }
	settings, err := r.meter.Monitors(ctx, ports...)
	if errors.Is(err, ocs.ErrNotSupported) {
		return back, nil
	}
	if err != nil {
		return back, err
	}
	var slow []ocs.Port
	for _, m := range settings {
		if m.Averaging > opt.Spacing() {
			slow = append(slow, m.Port)
		}
	}
	var parts []func(context.Context) error
	back = func(ctx context.Context) error {
		var errs []error
		for _, part := range parts {
			errs = append(errs, part(ctx))
		}
		return errors.Join(errs...)
	}
	for some := range slices.Chunk(slow, together) {
		_, part, err := experiment.Quicken(ctx, r.meter, some...)
		switch {
		case errors.Is(err, ocs.ErrNotSupported), errors.Is(err, ocs.ErrDenied):
			return back, nil
		case err != nil:
			return back, err
		}
		parts = append(parts, part)
	}
	return back, nil
}

// measure makes all maps, and puts the circuits back however it ends.
func (r *lossRun) measure(ctx context.Context, opt loss.Options) (m *loss.Map, err error) {
	a := r.app
	ports := slices.Sorted(maps.Keys(r.own))
	release, err := r.sw.Gate().Lease(ctx, r.sw, ports, "ocslab calibrate loss")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	show := a.progress()
	defer show.done()
	began := time.Now()
	opt.Progress = func(p loss.Progress) {
		left := ""
		if p.Done > 1 {
			left = fmt.Sprintf(", %v left", (time.Since(began) / time.Duration(p.Done) * time.Duration(p.Total-p.Done)).Round(time.Second))
		}
		switch p.Step {
		case "reference":
			show.set("%s: reading the light that enters", r.sw.Name)
		default:
			show.set("%s: map %d of %d%s", r.sw.Name, min(p.Done+1, p.Total), p.Total, left)
		}
	}
	slow, err := r.quicken(ctx, ports, opt)
	defer func() {
		if back := slow(context.WithoutCancel(ctx)); back != nil {
			err = errors.Join(err, fmt.Errorf("set the monitors back: %w", back))
		}
	}()
	if err != nil {
		return nil, err
	}
	b := loss.Bench{Geometry: r.id.Geometry, Meter: r.meter, Apply: r.apply}
	err = experiment.Guard(func() (err error) {
		m, err = loss.Measure(ctx, b, r.ingress, r.egress, opt)
		return err
	})
	// With a context of its own: whoever interrupts wants the light back all the more.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), max(a.set.Timeout, 10*time.Second))
	defer cancel()
	if back := r.putBack(end); back != nil {
		err = errors.Join(err, fmt.Errorf("put the circuits back: %w", back))
	}
	return m, err
}

// apply brings about that the ports hold exactly the circuits of m.
func (r *lossRun) apply(ctx context.Context, m ocs.Map) error {
	r.mover.Own(r.sw.Name, m)
	_, err := r.mover.Hold(ctx, r.sw, r.own, m)
	return err
}

// putBack removes what we have made, and brings back what was there, where nobody else has
// connected anything meanwhile.
func (r *lossRun) putBack(ctx context.Context) error {
	if err := r.mover.LeaveSwitch(ctx, r.sw, r.found); err != nil {
		return err
	}
	have, err := r.sw.CrossConnects(ctx)
	if lost := r.busy.Minus(have); err == nil && lost.Len() > 0 {
		err = fmt.Errorf("not %s, whose ports somebody else has taken meanwhile", somePaths(lost.Slice()))
	}
	return err
}

// conclude says what was found, keeps it, and compares.
func (r *lossRun) conclude(m *loss.Map, factory loss.Table) error {
	a, f := r.app, r.flags
	m.Floor = ocs.DB(f.floor)
	flags := m.Analyze(loss.Limits{Floor: m.Floor})
	var with []lossComparison
	kept, err := a.calibrations()
	if err != nil {
		return err
	}
	labName := ""
	if l := a.labFile(); l != nil {
		labName = l.Name
	}
	last, err := kept.LatestOf(store.Loss, labName, r.sw.Name, a.set.Emulated)
	switch {
	case errors.Is(err, store.ErrNone):
	case err != nil:
		fmt.Fprintf(a.err, "ocslab: nothing of before to compare with: %v\n", err)
	default:
		var before loss.Map
		if err := json.Unmarshal(last.Data, &before); err != nil {
			fmt.Fprintf(a.err, "ocslab: version %d cannot be compared with: %v\n", last.Version, err)
			break
		}
		u := ocs.DB(math.Hypot(float64(m.RelativeU()), float64(before.RelativeU())))
		c := m.Against(before.Table(), ocs.DB(f.alarm), u)
		name := fmt.Sprintf("version %d of %s", last.Version, last.Made.Local().Format("2006-01-02 15:04"))
		with = append(with, lossComparison{name: name, version: last.Version, Comparison: c, changed: last.Changed(store.OfSwitch(r.sw.Name, r.id))})
	}
	if factory != nil {
		with = append(with, lossComparison{name: f.factory, Comparison: m.Against(factory, ocs.DB(f.alarm), m.U())})
	}
	number := 0
	if !f.noStore {
		data, err := json.Marshal(m)
		if err != nil {
			return err
		}
		now := time.Now().UTC()
		rec, err := kept.Put(store.Record{
			Kind: store.Loss, Subject: r.sw.Name, Made: now, Expires: now.Add(f.expires), Lab: labName,
			Device: fmt.Sprintf("%s %s, serial %s", r.id.Vendor, r.id.Model, r.id.Serial), Program: programName(),
			Emulated: a.set.Emulated, Complete: m.Complete(), Setup: store.OfSwitch(r.sw.Name, r.id), Data: data,
		})
		if err != nil {
			return err
		}
		number = rec.Version
	}
	if f.out != "" {
		if err := r.save(m, flags); err != nil {
			return err
		}
	}
	r.tell(m, flags, with, number)
	return verdict(m, flags, with)
}

// verdict is an error if something is not as it should be.
func verdict(m *loss.Map, flags []loss.Flag, with []lossComparison) error {
	var what []string
	if n := m.Count(loss.Dark); n > 0 {
		what = append(what, natural.Count(n, "dark path"))
	}
	if n := m.Count(loss.NoReference) + m.Count(loss.Unmeasured); n > 0 {
		what = append(what, natural.Count(n, "path")+" without a number")
	}
	if len(flags) > 0 {
		what = append(what, natural.Count(len(flags), "finding"))
	}
	for _, c := range with {
		if len(c.Over) > 0 {
			what = append(what, fmt.Sprintf("%s more than %.2f dB from %s", natural.Count(len(c.Over), "path"), float64(c.Alarm), c.name))
		}
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errLoss, strings.Join(what, "; "))
}

// save writes picture and table.
func (r *lossRun) save(m *loss.Map, flags []loss.Flag) error {
	title := fmt.Sprintf("Insertion loss of %s, %s %s, %s", r.sw.Name, r.id.Vendor, r.id.Model, m.Began.Format("2006-01-02 15:04 MST"))
	return errors.Join(
		r.app.writeFile(r.base()+".csv", m.CSV),
		r.app.writeFile(r.base()+".svg", func(w io.Writer) error { return m.SVG(w, title, flags) }),
	)
}

// base is the path of the files that are written, without the end of their names.
func (r *lossRun) base() string {
	return filepath.Join(r.flags.out, strings.Map(harmless, r.sw.Name)+"-loss")
}
