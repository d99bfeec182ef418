package mzi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// restore loads the table that the module had before the trial. Where that cannot be used,
// the trial table is made to expire.
func (c *calibration) restore(ctx context.Context) error {
	fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*endTimeout)
	defer cancel()
	back := c.old
	var note error
	if back == nil || back.Usable(c.report.Serial, c.opt.Now()) != nil {
		t := *c.table
		t.Expires = c.opt.Now().Add(2 * time.Second)
		back = &t
		note = errors.New("the module had no table that could be used before; the new one expires at once")
	}
	cfg := c.cfg
	cfg.AllowDark = true // what is lit was lit by us
	s, err := c.again(fresh, cfg)
	if errors.Is(err, ErrSession) {
		// It is ours, whose end the module has not heard.
		ours := &Session{cfg: cfg, serial: c.report.Serial, open: true}
		if err = ours.End(fresh); err == nil {
			s, err = c.again(fresh, cfg)
		}
	}
	if err == nil {
		err = errors.Join(s.load(fresh, back), s.End(fresh))
	}
	if err != nil {
		return fmt.Errorf("the old table could not be loaded again, the module uses %s: %w", c.inUse(fresh), err)
	}
	return note
}

// again begins a session with a module that may have to be revived before.
func (c *calibration) again(ctx context.Context, cfg Config) (*Session, error) {
	if err := c.revive(ctx); err != nil {
		return nil, err
	}
	return Begin(ctx, cfg)
}

// inUse names the table that the module has by now.
func (c *calibration) inUse(ctx context.Context) string {
	t, err := ReadTable(ctx, c.cfg.Memory)
	switch {
	case err != nil:
		return "one that could not be read"
	case c.old != nil && t.Version == c.old.Version:
		return "it all the same"
	}
	return fmt.Sprintf("version %d, which has passed and expires %s", t.Version, t.Expires.Format(time.RFC3339))
}

// revive has a module ready for a session: it starts none while it warms up, nor in state
// Fault, in which a switch may have left it; it is reset then.
func (c *calibration) revive(ctx context.Context) error {
	s := &Session{cfg: c.cfg, serial: c.report.Serial}
	lanes, err := s.laneStatus(ctx)
	if err != nil || lanes.State == ocst.StateCal {
		return err
	}
	if lanes.State == ocst.StateFault {
		control := cmis.Address{Offset: cmis.RegGlobalControl}
		var b [1]byte
		if err := s.read(ctx, control, b[:]); err != nil {
			return err
		}
		b[0] |= byte(cmis.SoftwareReset)
		if err := s.write(ctx, control, b[:]); err != nil {
			return err
		}
		if err := s.cfg.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
	return s.ready(ctx)
}
