package mzi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// trialExpiry is for how long a module would use the table by which its switching times are
// measured, should nobody come back to replace it.
const trialExpiry = 10 * time.Minute

// Calibrate calibrates a module through its registers, and has it use the table that comes
// out. It returns what it has found so far with an error as well.
//
// In one calibration session all elements are swept and fitted, the couplings between them
// measured, phases put right at the operating point, and losses and isolations of all paths
// verified with the heaters driven by the new table. Switching times need the module's own
// controller, which takes no table that has not passed: so the table is loaded then, good
// for ten minutes only, the module makes all changes of path with no traffic on it, and a
// second session loads the table with all figures and its proper expiry. So a table is
// never in use that has failed, and if the host vanishes between both, one that works and
// expires. If a change fails, the old table is loaded again.
//
// A figure beyond the limits is an error that matches [ErrVerification] and names it. After
// any error, and when the context has ended, the module is dark and has the table that it
// had. A module that cannot be reached any more leaves its session by itself after
// [ocst.CalTimeout], dark; one that is lost between two changes of path keeps the path that
// it is on, without traffic, and the trial table: modules look at the expiry of a table when
// they load it and when they start.
func Calibrate(ctx context.Context, cfg Config, opt Options) (*Report, error) {
	c, err := newCalibration(cfg, opt)
	if err != nil {
		return &Report{}, fmt.Errorf("calibrate: %w", err)
	}
	begun := c.opt.Now()
	if c.opt.Scope == TrimOnly {
		var trim TrimReport
		trim, err = Trim(ctx, c.cfg, c.opt.Trim)
		c.report.Serial, c.report.Celsius, c.report.Trim = trim.Serial, trim.Celsius, &trim
	} else {
		err = c.run(ctx)
	}
	c.report.TookSeconds = c.opt.Now().Sub(begun).Seconds()
	if err != nil {
		return c.report, fmt.Errorf("calibrate: %w", err)
	}
	return c.report, nil
}

// calibration is one under way.
type calibration struct {
	cfg    Config
	opt    Options
	report *Report

	old      *ocst.Table // nil: the module has none that can be read
	dark     [ocst.Photodiodes][ocst.Lanes]uint16
	fits     [ocst.Elements]ocst.Fit
	usable   [ocst.Elements]bool // elements of which there is a fit
	coupling ocst.Coupling
	bias     [ocst.Elements][ocst.Elements]float64 // that is in fits; of those from a table none
	table    *ocst.Table
}

func newCalibration(cfg Config, opt Options) (*calibration, error) {
	if cfg.Memory == nil {
		return nil, errors.New("no module is given")
	}
	if opt.Scope > TrimOnly {
		return nil, fmt.Errorf("%v is not known", opt.Scope)
	}
	if opt.Expires < 0 {
		return nil, fmt.Errorf("a table that expires after %v is of no use", opt.Expires)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.Expires == 0 {
		opt.Expires = DefaultExpiry
	}
	if opt.Lanes == 0 {
		opt.Lanes = 0xff
	}
	opt.Limits = opt.Limits.filled()
	c := &calibration{cfg: cfg, opt: opt}
	c.report = &Report{Scope: opt.Scope.String(), Made: opt.Now().UTC().Truncate(time.Second)}
	wait := cfg.Sleep
	if wait == nil {
		wait = pause.For
	}
	c.cfg.Sleep = func(ctx context.Context, d time.Duration) error {
		err := wait(ctx, d)
		if err == nil {
			c.report.WaitSeconds += d.Seconds()
		}
		return err
	}
	return c, nil
}

// session does something in a calibration session of its own, and leaves the module dark
// whatever comes of it.
func (c *calibration) session(ctx context.Context, do func(s *Session) error) (err error) {
	s, err := Begin(ctx, c.cfg)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, s.end(ctx))
		reads, writes := s.Transactions()
		c.report.Readings += reads
		c.report.Writes += writes
	}()
	c.report.Serial = s.Serial()
	if err = do(s); err != nil && s.lost(ctx) {
		c.report.Fits = nil
		return fmt.Errorf("session of module %s: %w: what was measured since means nothing", s.Serial(), ErrLost)
	}
	return err
}

func (c *calibration) run(ctx context.Context) error {
	var v *verifier
	err := c.session(ctx, func(s *Session) (err error) {
		if err := c.begin(ctx, s); err != nil {
			return err
		}
		if err := c.measure(ctx, s); err != nil || c.opt.Scope == Sweep {
			return err
		}
		v = &verifier{Session: s, table: c.table, limits: c.opt.Limits, lanes: c.opt.Lanes}
		err = v.static(ctx)
		c.report.Paths, c.report.Loop = v.paths, v.loop
		if err = errors.Join(err, v.err()); err != nil {
			c.report.Failures = v.failed
			return err
		}
		c.table.Verified = summary(v.paths, nil, true)
		if c.opt.Scope == Verify || c.opt.DryRun {
			return nil
		}
		trial := *c.table
		trial.Expires = c.opt.Now().Add(trialExpiry)
		return s.load(ctx, &trial)
	})
	if err != nil || c.opt.Scope == Sweep || c.opt.DryRun {
		return err
	}
	err = c.changes(ctx, v)
	if c.opt.Scope == Verify {
		c.table.Verified = summary(v.paths, c.report.Changes, err == nil)
		return err
	}
	if err == nil {
		c.table.Verified = summary(v.paths, c.report.Changes, true)
		err = c.session(ctx, func(s *Session) error { return s.load(ctx, c.table) })
	}
	if err != nil {
		return errors.Join(err, c.restore(ctx))
	}
	c.report.Loaded = true
	return nil
}

// begin reads what the module has.
func (c *calibration) begin(ctx context.Context, s *Session) error {
	old, err := ReadTable(ctx, c.cfg.Memory)
	switch {
	case err == nil && old.Serial == s.Serial():
		c.old = old
	case err != nil && !errors.Is(err, ocst.ErrTable):
		return err
	}
	if c.old == nil && (c.opt.Scope == Coupling || c.opt.Scope == Verify) {
		return fmt.Errorf("scope %v wants the table that the module has, and it has none of its own: calibrate all", c.opt.Scope)
	}
	if c.old == nil && c.opt.Lanes != 0xff && c.opt.Scope != Sweep {
		return errors.New("only some lanes are to be calibrated, and the module has no table of its own that has the others: calibrate all")
	}
	return nil
}

// measure makes the table that is to be verified: a new one, or with scope Verify that of
// the module.
func (c *calibration) measure(ctx context.Context, s *Session) error {
	if c.opt.Scope == Verify {
		if err := s.HeatAll(ctx, middling); err != nil {
			return err
		}
		if err := s.soak(ctx, c.opt.Soak, still); err != nil {
			return err
		}
		if _, err := s.DarkReadings(ctx); err != nil {
			return err
		}
		celsius, err := s.Temperature(ctx)
		c.describe(c.old, celsius)
		return err
	}
	if err := c.sweep(ctx, s); err != nil || c.opt.Scope == Sweep {
		return err
	}
	figures, err := s.Couple(ctx, &c.fits, &c.usable, &c.coupling, &c.bias)
	c.report.Coupling = figures
	if err != nil {
		return err
	}
	points, celsius, err := s.Operate(ctx, &c.fits, &c.usable, &c.coupling, c.opt.Soak)
	if err != nil {
		return err
	}
	c.report.Operating = points
	point := ocst.Point{Celsius: celsius, Elements: c.fits}
	for e := range point.Elements {
		f := &point.Elements[e]
		f.Bar, _ = DriveFor(*f, 0, false)
		f.Cross, _ = DriveFor(*f, 0, true)
	}
	t := &ocst.Table{Serial: s.Serial(), Version: 1, Made: c.report.Made,
		Expires: c.opt.Now().UTC().Add(c.opt.Expires).Truncate(time.Second),
		Dark:    c.dark, Points: []ocst.Point{point}, Coupling: c.coupling}
	if c.old != nil {
		t.Version = c.old.Version + 1
		if c.opt.Merge {
			t.Points = Merge(c.old.Points, point)
		}
	}
	if err := t.Check(); err != nil {
		return err
	}
	c.describe(t, celsius)
	return nil
}

// middling has all elements at arm A about as warm as they are on the mean in operation.
var middling = func() (drives [ocst.Elements]ocst.Drive) {
	for e := range drives {
		drives[e] = ocst.DriveOf(math.Sqrt(biasVolts2), false)
	}
	return drives
}()

// describe puts a table into the report.
func (c *calibration) describe(t *ocst.Table, celsius float64) {
	kept := *t
	c.table = &kept
	c.report.Table, c.report.Version, c.report.Celsius = c.table, t.Version, celsius
	if !t.Expires.IsZero() {
		c.report.Expires = &kept.Expires
	}
}

// inScope reports whether an element is to be calibrated.
func (c *calibration) inScope(e ocst.Element) bool {
	if e >= 2*ocst.Lanes {
		return c.opt.Lanes == 0xff
	}
	return c.opt.Lanes>>(int(e)%ocst.Lanes)&1 != 0
}

// sweep finds the fits of all elements: by sweeps, or with scope Coupling those of the
// module's table. Of elements that are not in the scope it takes the latter as well.
func (c *calibration) sweep(ctx context.Context, s *Session) error {
	if c.old != nil {
		celsius, err := s.Temperature(ctx)
		if err != nil {
			return err
		}
		fits, err := At(c.old, celsius)
		if err != nil {
			return err
		}
		c.fits, c.coupling = fits, c.old.Coupling
		for e := range c.usable {
			c.usable[e] = true
		}
	}
	if c.opt.Scope == Coupling {
		if err := s.HeatAll(ctx, middling); err != nil {
			return err
		}
		if err := s.soak(ctx, c.opt.Soak, still); err != nil {
			return err
		}
		var err error
		c.dark, err = s.DarkReadings(ctx)
		return err
	}
	swept, err := s.Sweep(ctx, SweepScope{Lanes: c.opt.Lanes, NoLoop: c.opt.Lanes != 0xff, Soak: c.opt.Soak})
	if err != nil {
		return err
	}
	c.dark, c.report.Celsius = swept.Dark, swept.Celsius
	for e, f := range swept.Fits {
		if !c.inScope(ocst.Element(e)) {
			continue
		}
		c.report.Fits = append(c.report.Fits, f)
		c.fits[e], c.usable[e], c.bias[e] = f.Fit, f.Problem == "", swept.Bias[e]
		for j, heat := range swept.Bias[e] { // what the old table knows of it
			c.fits[e].Phase0 -= c.coupling[e][j] * heat
		}
	}
	if err := swept.Err(); err != nil {
		return err
	}
	return nil
}

// changes has the module switch, with the table that it has now.
func (c *calibration) changes(ctx context.Context, v *verifier) error {
	isolation := map[[2]int]float64{}
	for _, f := range v.paths {
		for p := ocst.Path1; p <= ocst.LoopPath; p++ {
			if f.Path == p.String() {
				isolation[[2]int{f.Lane - 1, int(p)}] = f.Isolation
			}
		}
	}
	// The session of the verifier has ended; a fresh one only for its registers.
	v.Session = &Session{cfg: c.cfg, serial: c.report.Serial}
	list, err := v.changes(ctx, isolation)
	c.report.Changes = list
	c.report.Readings += v.reads
	c.report.Writes += v.writes
	c.report.Failures = v.failed
	return errors.Join(err, v.err())
}
