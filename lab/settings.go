package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// set makes a setting in its turn at the device, permitted and recorded. It returns the ID in the history, 0 if nothing
// was recorded. Errors of the device are an [*ocs.OpError], those of the authority are not.
func (g *Gate) set(ctx context.Context, in *guard, s setting) (int, error) {
	unlock, err := g.lock(ctx, in.at)
	if err != nil {
		return 0, named(in.at.name, err)
	}
	defer unlock()
	g.restoreAbandoned(ctx, in)
	return g.setLocked(ctx, in, s)
}

func (g *Gate) setLocked(ctx context.Context, in *guard, s setting) (int, error) {
	values, err := s.values(ctx)
	if err != nil {
		return 0, about(in.at.name, s.op, err)
	}
	if len(values) == 0 {
		return 0, about(in.at.name, s.op, s.send(ctx)) // the device says why
	}
	ids, err := in.book.BeginAll(ctx, []history.Entry{{Switch: in.at.name, Device: in.at.device, Command: g.command, Who: panics.Me(),
		Set: values, Until: s.until, UndoOf: s.undoOf}})
	if err != nil {
		return 0, named(in.at.name, fmt.Errorf("%w: %w", history.ErrUnrecorded, err))
	}
	id := ids[0]
	end := func(state history.State, text string, err error) error {
		if recorded := g.auth.End(id, state, history.Result{Error: text}); recorded != nil {
			err = ocs.Join(err, fmt.Errorf("the outcome of change %d could not be recorded: %w", id, recorded))
		}
		return named(in.at.name, err)
	}
	if !s.restores {
		if err := in.permit(ctx, s); err != nil {
			return 0, end(history.Failed, err.Error(), about(in.at.name, s.op, err))
		}
	}
	err = about(in.at.name, s.op, s.send(ctx))
	switch {
	case err == nil:
		return id, end(history.Done, "", nil)
	case errors.Is(err, ocs.ErrDenied) && len(values) == 1:
		return id, end(history.Failed, err.Error(), err)
	}
	return id, end(history.Pending, "outcome unknown: "+err.Error(), err)
}

// restoreTime limits how long settings may take to be restored.
const restoreTime = 5 * time.Second

// restoreSettings takes a recorded setting back.
func (g *Gate) restoreSettings(ctx context.Context, in *guard, id int) error {
	ctx, cancel := context.WithTimeout(ctx, restoreTime)
	defer cancel()
	unlock, err := g.lock(ctx, in.at)
	if err != nil {
		return err
	}
	defer unlock()
	entries, _, err := g.auth.Entries()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(entries, func(e history.Entry) bool { return e.ID == id })
	if i < 0 {
		return fmt.Errorf("change %d: %w", id, history.ErrUnknownID)
	}
	return g.restoreLocked(ctx, in, entries[i])
}

// restoreLocked sets what an entry says back to what it was before, whatever protection, leases and panics say.
func (g *Gate) restoreLocked(ctx context.Context, in *guard, e history.Entry) error {
	s := in.reversal(e)
	s.op, s.restores = "restore settings", true
	_, err := g.setLocked(ctx, in, s)
	return err
}

// reversal is the setting that takes back what an entry says.
func (g *guard) reversal(e history.Entry) setting {
	s := setting{undoOf: e.ID, darkens: true}
	back := make([]history.Setting, 0, len(e.Set))
	for _, x := range slices.Backward(e.Set) {
		back = append(back, history.Setting{Kind: x.Kind, Port: x.Port, From: x.To, To: x.From})
		s.ports = append(s.ports, x.Port)
		s.whole = s.whole || x.Port == 0
		s.darkens = s.darkens && x.Kind == "shutter" && x.From == "closed"
	}
	s.values = func(context.Context) ([]history.Setting, error) { return back, nil }
	s.send = func(ctx context.Context) error {
		var errs []error
		for _, x := range back {
			errs = append(errs, g.restoreOne(ctx, x))
		}
		return distinct(errs)
	}
	return s
}

// distinct joins errors; those that say the same, as of a device that is lost, are there once.
func distinct(errs []error) error {
	var kept []error
	for _, err := range errs {
		if err != nil && !slices.ContainsFunc(kept, func(had error) bool { return had.Error() == err.Error() }) {
			kept = append(kept, err)
		}
	}
	return errors.Join(kept...)
}

// restoreOne sets one thing to what s.To says, on the session inside.
func (g *guard) restoreOne(ctx context.Context, s history.Setting) error {
	lacks := fmt.Errorf("%s of port %d: %w", s.Kind, s.Port, ocs.ErrNotSupported)
	switch s.Kind {
	case "monitor":
		m, err := parseMonitor(s.Port, s.To)
		if err != nil || s.To == "" {
			return err
		}
		if meter, ok := ocs.As[ocs.PowerMeter](g.Switch); ok {
			return meter.SetMonitor(ctx, m)
		}
	case "shutter":
		if x, ok := ocs.As[ocs.Shutter](g.Switch); ok {
			return x.SetShutters(ctx, s.To == "closed", s.Port)
		}
	case "label":
		if x, ok := ocs.As[ocs.Labeler](g.Switch); ok {
			return x.SetLabel(ctx, s.Port, s.To)
		}
	case "attenuation":
		loss, err := strconv.ParseFloat(s.To, 64)
		if err != nil {
			return fmt.Errorf("the attenuation of port %d before the change is not known", s.Port)
		}
		if x, ok := ocs.As[ocs.Attenuator](g.Switch); ok {
			return x.SetAttenuation(ctx, s.Port, ocs.DB(loss))
		}
	case "boot mode":
		if x, ok := ocs.As[ocs.Restarter](g.Switch); ok {
			return x.SetBootMode(ctx, ocs.BootMode(s.To))
		}
	case "restart":
		return errors.New("a restart cannot be taken back")
	}
	return lacks
}

// UndoSettings takes back the settings that an entry of the history has changed; see [history.Entry.Set]. What
// protection, a lease or a panic forbids is refused.
func (g *Gate) UndoSettings(ctx context.Context, o *Opened, e history.Entry) error {
	in, ok := ocs.As[*guard](o)
	if !ok {
		return fmt.Errorf("%s: %w", o.Name, ocs.ErrNotSupported)
	}
	unlock, err := g.lock(ctx, in.at)
	if err != nil {
		return named(o.Name, err)
	}
	defer unlock()
	s := in.reversal(e)
	s.op = "undo settings"
	_, err = g.setLocked(ctx, in, s)
	return about(o.Name, s.op, err)
}

// restoreAbandoned restores settings that a program was to hold only while it ran, and that has died. It is called
// under the lock of the device, once for each device; what fails is logged and tried again by the next program.
func (g *Gate) restoreAbandoned(ctx context.Context, in *guard) {
	g.mu.Lock()
	done := g.restored[in.at.device]
	g.restored[in.at.device] = true
	g.mu.Unlock()
	if done {
		return
	}
	entries, _, err := g.auth.Entries()
	if err != nil {
		return // the change that comes next says so
	}
	for _, e := range slices.Backward(entries) {
		if e.Until == "" || e.UndoneBy != 0 || e.UndoOf != 0 || e.State == history.Failed || !in.at.is(ctx, e.Device) {
			continue
		}
		if held, err := g.auth.Held(e.Until); held || err != nil {
			continue
		}
		if err := g.restoreLocked(ctx, in, e); err != nil {
			slog.Warn("settings of a program that was killed could not be restored", "switch", in.at.name, "change", e.ID, "error", err)
			continue
		}
		slog.Info("settings of a program that was killed were restored", "switch", in.at.name, "change", e.ID)
	}
}
