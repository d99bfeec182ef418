package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// mziRun is one call of calibrate mzi.
type mziRun struct {
	app   *app
	sw    *lab.Opened
	trx   *ocstrx.Switch
	g     ocs.Geometry
	flags mziFlags
}

// each calibrates modules one after another.
func (m *mziRun) each(ctx context.Context, modules []int, opt mzi.Options) error {
	for _, slot := range modules {
		calibrate := func() error { return m.calibrate(ctx, slot, opt) }
		var err error
		if opt.Scope == mzi.TrimOnly {
			err = calibrate()
		} else {
			err = m.inTheDark(ctx, slot, calibrate)
		}
		if err != nil {
			return fmt.Errorf("module %d: %w", slot+1, err)
		}
	}
	return nil
}

// calibrate calibrates one module, and tells of it.
func (m *mziRun) calibrate(ctx context.Context, slot int, opt mzi.Options) error {
	a := m.app
	show := a.progress()
	cfg := m.config(slot)
	cfg.Progress = func(p mzi.Progress) {
		show.set("module %d: %s %d of %d %s", slot+1, p.Step, p.Done, p.Total, p.Detail)
		if p.Fit != nil && m.flags.plot && !a.set.JSON {
			show.done()
			a.printf("%s\n", p.Fit.Text(72, 12))
		}
	}
	report, err := mzi.Calibrate(ctx, cfg, opt)
	show.done()
	if report != nil {
		a.tellCalibration(m.sw.Name, slot, report)
		if m.flags.out != "" {
			err = errors.Join(err, saveCalibration(m.flags.out, report))
		}
	}
	return err
}

func (m *mziRun) config(slot int) mzi.Config {
	return mzi.Config{Memory: ocstrx.MemoryOf(m.trx.Bus(), slot), AllowDark: m.flags.dark}
}

// inTheDark does what darkens a module, if that is allowed, and brings its light back.
func (m *mziRun) inTheDark(ctx context.Context, slot int, do func() error) error {
	before, err := m.sw.CrossConnects(ctx)
	if err != nil {
		return err
	}
	carries := circuitsOf(before, m.g, slot)
	if carries.Len() == 0 {
		return do()
	}
	if !m.flags.dark {
		return fmt.Errorf("it carries %v, which would go dark: allow it with --dark, or disconnect first: %w", carries, ocs.ErrConflict)
	}
	err = do()
	// With a context of its own: whoever interrupts wants the light back all the more.
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.app.set.Timeout)
	defer cancel()
	if _, backErr := m.sw.Gate().Apply(back, lab.Intent{On: m.sw, Want: carries, Policy: ocs.Safe, Restore: true}); backErr != nil {
		return errors.Join(err, fmt.Errorf("it carried %v, which could not be brought back: %w", carries, backErr))
	}
	m.app.printf("module %d carries %v again\n", slot+1, carries)
	return err
}

// load gives a module a table.
func (m *mziRun) load(ctx context.Context, slot int, t *ocst.Table) error {
	err := m.inTheDark(ctx, slot, func() error { return mzi.LoadTable(ctx, m.config(slot), t) })
	if err != nil {
		return fmt.Errorf("module %d: %w", slot+1, err)
	}
	m.app.tellLoaded(m.sw.Name, slot, t)
	return nil
}

// readTable reads a table that --out has kept.
func readTable(path string) (*ocst.Table, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{err}
	}
	t, err := ocst.ParsePages(slices.Collect(slices.Chunk(data, ocst.PageData+2)))
	if err != nil {
		return nil, usageError{fmt.Errorf("%s: %w", path, err)}
	}
	return t, nil
}

// again trims until ctx ends, which is how it ends: after every pause, or sooner when the
// case of a module has moved so far that its phases are no longer right.
func (m *mziRun) again(ctx context.Context, modules []int) error {
	const look = 10 * time.Second
	for {
		if err := m.each(ctx, modules, mzi.Options{Scope: mzi.TrimOnly}); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		then, err := m.temperatures(ctx)
		for due := time.Now().Add(m.flags.every); err == nil && time.Now().Before(due); {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(min(look, time.Until(due))):
			}
			var now map[int]float64
			now, err = m.temperatures(ctx)
			if slices.ContainsFunc(modules, func(slot int) bool { return mzi.TrimDue(then[slot], now[slot]) }) {
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// temperatures returns those of the modules' cases, by slot.
func (m *mziRun) temperatures(ctx context.Context) (map[int]float64, error) {
	list, err := m.trx.Telemetry(ctx)
	celsius := map[int]float64{}
	for _, t := range list {
		celsius[t.Slot] = t.Celsius
	}
	return celsius, err
}
