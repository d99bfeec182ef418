package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

func (a *app) calibrateCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "calibrate",
		Short: "Calibrate devices and set-ups",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.calibrateMZICommand(), a.calibrateLossCommand())
	c.AddCommand(a.calibrateTimingCommand(), a.calibrateListCommand(), a.calibrateShowCommand(), a.calibrateRemoveCommand())
	c.AddCommand(a.calibrateClockCommand())
	return c
}

// mziFlags are what calibrate mzi is told.
type mziFlags struct {
	scope          string
	modules, lanes string
	out            string
	temperatures   []float64
	expires        time.Duration
	dark, dry      bool
	fresh          bool
	load           string
	every          time.Duration
	plot           bool
}

func (a *app) calibrateMZICommand() *cobra.Command {
	var f mziFlags
	c := &cobra.Command{
		Use:   "mzi SWITCH",
		Short: "Calibrate the switch elements of transceivers",
		Long: `Find out at which heater voltages the Mach-Zehnder elements of a transceiver are in
either state, and give the module the table. Nothing is known of the module but what its
registers tell. Each element is swept and fitted, how heat of one reaches the others is
measured, and every path and every change between them is verified with the new
table. A table that fails is refused, and the module keeps the old one.

The module is dark meanwhile. One that carries light is refused unless --dark allows it;
what it carried is brought back afterwards.

Scopes: all; sweep (fit, and load nothing); coupling (as all, with the phases that the table in the module has);
verify (against the table that is in the module); trim (while it carries light: follow the
drift of its elements by dithering them).

With --temperatures the plate under the modules is set to each in turn, and the table holds
all of them. Without, the table of now is joined to what the module has of other
temperatures.

With --scope trim --every, modules are trimmed again and again until interrupted, and
sooner when the case of one has moved by 5 K. --load gives a module a table that --out has kept.`,
		Example: "  ocslab calibrate mzi ocstrx+serial:///dev/ttyACM0 --out calibration/\n  ocslab calibrate mzi trx0 --modules 3 --scope verify\n  ocslab calibrate mzi trx0 --temperatures 20,40,60",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.calibrateMZI(cmd.Context(), args[0], f) },
	}
	fl := c.Flags()
	fl.StringVar(&f.scope, "scope", "all", "what to do: all, sweep, coupling, verify, trim")
	fl.StringVar(&f.modules, "modules", "", "`MODULES` of a bundle, such as 1-4,7 (default all)")
	fl.StringVar(&f.lanes, "lanes", "", "sweep the elements of these `LANES` only, of 1-8; the rest stays as the table has it (default all)")
	fl.StringVar(&f.out, "out", "", "`DIR`ectory for a figure of each element (SVG), of all of them, and the table")
	fl.Float64SliceVar(&f.temperatures, "temperatures", nil, "temperatures of the plate, `CELSIUS`, 1 to 3")
	fl.Lookup("temperatures").DefValue = "" // not "[]"
	fl.DurationVar(&f.expires, "expires", mzi.DefaultExpiry, "how long the table may be used")
	fl.BoolVar(&f.dark, "dark", false, "allow to darken a module that carries light")
	fl.BoolVar(&f.dry, "dry-run", false, "make the table, and do not load it")
	fl.BoolVar(&f.fresh, "fresh", false, "keep nothing of the table that the module has")
	fl.StringVar(&f.load, "load", "", "load the table in `FILE` into one module, and do nothing else")
	fl.DurationVar(&f.every, "every", 0, "with --scope trim: trim again after this time, until interrupted")
	fl.BoolVar(&f.plot, "plot", true, "draw each fit in the terminal")
	return c
}

// calibrateMZI calibrates the modules of a switch, one after another.
func (a *app) calibrateMZI(ctx context.Context, name string, f mziFlags) (err error) {
	scope, err := mzi.ParseScope(f.scope)
	if err != nil {
		return usageError{err}
	}
	lanes, err := laneMask(f.lanes)
	if err != nil {
		return err
	}
	if len(f.temperatures) > ocst.MaxPoints {
		return usagef("--temperatures: %d of them, and a table holds %d", len(f.temperatures), ocst.MaxPoints)
	}
	for _, celsius := range f.temperatures {
		if !(celsius >= -40 && celsius <= 125) { // NaN is neither
			return usagef("--temperatures %g: want -40 to 125 °C", celsius)
		}
	}
	if f.expires < 0 {
		return usagef("--expires %v: a table is good for some time", f.expires)
	}
	if f.every < 0 || f.every > 0 && scope != mzi.TrimOnly {
		return usagef("--every is a time between trims: it goes with --scope trim")
	}
	var table *ocst.Table
	if f.load != "" {
		if table, err = readTable(f.load); err != nil {
			return err
		}
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return err
		}
	}
	sw, err := a.open(ctx, name)
	if err != nil {
		return err
	}
	trx, ok := ocs.As[*ocstrx.Switch](sw)
	if !ok {
		return fmt.Errorf("%s is no transceiver: %w", sw.Name, ocs.ErrNotSupported)
	}
	id, err := sw.Identify(ctx)
	if err != nil {
		return err
	}
	modules, err := moduleList(f.modules, id.Geometry)
	if err != nil {
		return err
	}
	release, err := claimModules(ctx, sw, id.Geometry, modules, scope != mzi.TrimOnly || table != nil)
	if err != nil {
		return aboutSwitch(sw.Name, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	m := &mziRun{app: a, sw: sw, trx: trx, g: id.Geometry, flags: f}
	if table != nil {
		if len(modules) != 1 {
			return usagef("--load is for one module: name it with --modules")
		}
		return m.load(ctx, modules[0], table)
	}
	plate, _ := trx.Bus().(*ocstrx.Link)
	temperatures := f.temperatures
	if len(temperatures) == 0 {
		temperatures = []float64{0} // as it is
	} else if plate == nil {
		return fmt.Errorf("%s: --temperatures needs a board with a plate under the modules: %w", sw.Name, ocs.ErrNotSupported)
	}
	if f.every > 0 {
		return m.again(ctx, modules)
	}
	for _, slot := range modules {
		for i, celsius := range temperatures {
			if len(f.temperatures) > 0 {
				if err := a.heatPlate(ctx, plate, celsius); err != nil {
					return err
				}
			}
			opt := mzi.Options{
				Scope: scope, Lanes: lanes, Expires: f.expires, DryRun: f.dry,
				Merge: !f.fresh || i > 0,
			}
			if err := m.each(ctx, []int{slot}, opt); err != nil {
				return err
			}
		}
	}
	return nil
}

// circuitsOf returns the circuits of one module.
func circuitsOf(m ocs.Map, g ocs.Geometry, slot int) ocs.Map {
	var own []ocs.CrossConnect
	for c := range m.All() {
		if (int(c.Ingress)-1)/g.Lanes == slot {
			own = append(own, c)
		}
	}
	return ocs.MustMap(own...)
}

// moduleList reads a list of modules, from 1; all of them when it is empty. What is
// returned counts from 0.
func moduleList(text string, g ocs.Geometry) ([]int, error) {
	n := g.Ingress / max(g.Lanes, 1)
	ports, err := ocs.ParsePorts(text) // the same form: numbers and ranges
	if err != nil {
		return nil, usagef("--modules %q: want numbers and ranges, such as 1-4,7", text)
	}
	var list []int
	for _, p := range ports {
		if int(p) > n {
			return nil, usagef("--modules %s: there are %d", text, n)
		}
		list = append(list, int(p)-1)
	}
	if len(list) == 0 {
		for slot := range n {
			list = append(list, slot)
		}
	}
	slices.Sort(list)
	return list, nil
}

// laneMask reads a list of lanes; 0 is all.
func laneMask(text string) (mask uint8, err error) {
	ports, err := ocs.ParsePorts(text)
	if err != nil {
		return 0, usagef("--lanes %q: want numbers and ranges, such as 1-4", text)
	}
	for _, p := range ports {
		if p > ocst.Lanes {
			return 0, usagef("--lanes %s: there are %d", text, ocst.Lanes)
		}
		mask |= 1 << (p - 1)
	}
	return mask, nil
}

// claimModules leases the ports of modules for a calibration. It is refused in a panic, where another program has a
// lease and, if the modules go dark, where the lab file protects a port.
func claimModules(ctx context.Context, sw *lab.Opened, g ocs.Geometry, modules []int, darkens bool) (release func() error, err error) {
	gate := sw.Gate()
	if err := gate.InPanic(ctx, sw); err != nil {
		return nil, err
	}
	kept, err := gate.Kept(ctx, sw)
	if err != nil {
		return nil, err
	}
	var ports []ocs.Port
	for _, p := range g.Ports() {
		if !slices.Contains(modules, (int(p)-1)%max(g.Ingress, 1)/max(g.Lanes, 1)) {
			continue
		}
		if why := kept[p]; why != nil && (darkens || !errors.Is(why, ocs.ErrInterlock) || errors.Is(why, lease.ErrLeased)) {
			return nil, fmt.Errorf("port %d (%s), whose module would be calibrated: %w", p, g.PortName(p), why)
		}
		ports = append(ports, p)
	}
	return gate.Lease(ctx, sw, ports, "ocslab calibrate mzi")
}

// heatPlate brings the plate to a temperature and waits until it stays there.
func (a *app) heatPlate(ctx context.Context, link *ocstrx.Link, celsius float64) error {
	const (
		near   = 0.3             // K
		calm   = 5 * time.Second // that it is near
		within = 10 * time.Minute
	)
	show := a.progress()
	defer show.done()
	began := time.Now()
	since := time.Time{}
	set := &celsius
	for {
		_, now, err := link.Plate(ctx, set)
		set = nil
		if err != nil {
			return err
		}
		show.set("plate: %.2f °C, to be %.2f", now, celsius)
		switch off := now - celsius; {
		case off > near || off < -near:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= calm:
			return nil
		}
		if time.Since(began) > within {
			return fmt.Errorf("the plate is at %.2f °C after %v, and was to be at %.2f", now, within, celsius)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// saveCalibration writes a figure of each element, one of all, and the table.
func saveCalibration(dir string, r *mzi.Report) (err error) {
	write := func(name string, f func(*os.File) error) {
		if err != nil {
			return
		}
		var file *os.File
		if file, err = os.Create(filepath.Join(dir, name)); err != nil {
			return
		}
		err = errors.Join(f(file), file.Close())
	}
	for _, fit := range r.Fits {
		name := strings.NewReplacer(" ", "-", ".", "-").Replace(fit.Element.String())
		write(fmt.Sprintf("%s-%s.svg", r.Serial, name), func(w *os.File) error { return mzi.FitSVG(w, "module "+r.Serial, fit) })
	}
	if len(r.Fits) > 0 {
		write(r.Serial+"-elements.svg", func(w *os.File) error { return mzi.SheetSVG(w, "Module "+r.Serial, r.Fits) })
	}
	if r.Table != nil {
		pages, pagesErr := r.Table.Pages()
		err = errors.Join(err, pagesErr)
		write(r.Serial+".table", func(w *os.File) error {
			for _, p := range pages {
				if _, err := w.Write(p); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return err
}
