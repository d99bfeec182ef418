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
	err := c.revive(fresh)
	var s *Session
	if err == nil {
		s, err = Begin(fresh, cfg)
	}
	if err == nil {
		err = errors.Join(s.load(fresh, back), s.End(fresh))
	}
	if err != nil {
		return fmt.Errorf("the old table could not be loaded again, the module uses one that expires in %v: %w", trialExpiry, err)
	}
	return note
}

// revive resets a module that a switch has left in state Fault: it starts no session there.
func (c *calibration) revive(ctx context.Context) error {
	s := &Session{cfg: c.cfg, serial: c.report.Serial}
	lanes, err := s.laneStatus(ctx)
	if err != nil || lanes.State != ocst.StateFault {
		return err
	}
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
	return s.ready(ctx)
}
