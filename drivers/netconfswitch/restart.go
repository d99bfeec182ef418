package netconfswitch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/link"
	"github.com/ocslab/ocslab/ocs"
)

// startup returns what the device has announced if it has a startup-mode.
func (sw *Switch) startup(ctx context.Context, op string) (*announced, error) {
	dev, err := sw.device(ctx)
	if err == nil && !dev.polatis {
		err = sw.fail(op, "", "", fmt.Errorf("the device does not announce the YANG module polatis-switch, which has the startup-mode: %w", ocs.ErrNotSupported))
	}
	return dev, err
}

// BootMode reads the startup-mode. Device and user must allow it: to hide what
// somebody may not read is the way of NETCONF, so an answer without the mode is
// an error that matches [ocs.ErrDenied].
func (sw *Switch) BootMode(ctx context.Context) (ocs.BootMode, error) {
	const op = "read boot mode"
	if _, err := sw.startup(ctx, op); err != nil {
		return "", err
	}
	a, err := sw.do(ctx, get(op, "system-config", `<startup-mode xmlns="`+polatisNS+`"/>`))
	if err != nil {
		return "", err
	}
	leaf := a.reply.Data.Child("", "system-config").Child("", "startup-mode")
	if leaf == nil {
		return "", sw.fail(op, "", string(a.raw), fmt.Errorf("the device does not say its startup-mode, as if this user may not read it: %w", ocs.ErrDenied))
	}
	switch strings.TrimSpace(leaf.Text) {
	case "MODE_VOLATILE":
		return ocs.BootDark, nil
	case "MODE_PRESERVE":
		return ocs.BootRestore, nil
	}
	return "", sw.garbled(op, a, leaf)
}

// SetBootMode changes it. The device has dark and restore; it always saves each
// change as it is made, so autosave is not offered apart.
func (sw *Switch) SetBootMode(ctx context.Context, m ocs.BootMode) error {
	const op = "set boot mode"
	modes := map[ocs.BootMode]string{ocs.BootDark: "MODE_VOLATILE", ocs.BootRestore: "MODE_PRESERVE"}
	mode, known := modes[m]
	if !known {
		return sw.fail(op, "", "", fmt.Errorf("boot mode %.40q: want dark or restore", string(m)))
	}
	dev, err := sw.startup(ctx, op)
	if err != nil {
		return err
	}
	_, err = sw.do(ctx, dev.edit(op, opticalNS, "system-config", `<startup-mode xmlns="`+polatisNS+`">`+mode+`</startup-mode>`))
	return err
}

// Restart sends system-restart, which restarts the network card and ends every
// session with the device; boot mode dark then drops the cross-connects. It asks
// for a second of delay, since the device answers only then, and returns when
// the session has ended, so that the next call finds the device restarting or
// back. Until it is back calls fail, as the device cannot be reached.
func (sw *Switch) Restart(ctx context.Context) error {
	const op = "restart"
	s, _, err := sw.session(ctx)
	if err != nil {
		return err
	}
	a, err := s.exchange(ctx, request{op: op, body: `<system-restart xmlns="` + opticalNS + `"><seconds>1</seconds></system-restart>`})
	if err != nil {
		return err
	}
	s.relieve() // reads until the end is there
	limit := time.NewTimer(time.Second + sw.cfg.Timeout)
	defer limit.Stop()
	select {
	case <-s.ended:
		if sw.life.Err() != nil {
			return sw.fail(op, "", "", link.ErrClosed)
		}
		return nil
	case <-ctx.Done():
		err = fmt.Errorf("acknowledged, but not awaited: %w", context.Cause(ctx))
	case <-limit.C:
		err = fmt.Errorf("acknowledged, but the session has not ended %v later: %w", time.Second+sw.cfg.Timeout, context.DeadlineExceeded)
	}
	return sw.fail(op, "", string(a.raw), err)
}
