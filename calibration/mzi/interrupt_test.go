package mzi_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ocslab/ocslab/calibration/mzi"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// interrupted is a module to which something happens at one transaction.
type interrupted struct {
	*ocstrx.Module
	left int
	now  func() error // once; an error is that of the transaction
}

func (v *interrupted) next() error {
	v.left--
	if v.left == 0 {
		return v.now()
	}
	return nil
}

func (v *interrupted) Read(ctx context.Context, a cmis.Address, buf []byte) error {
	if err := v.next(); err != nil {
		return err
	}
	return v.Module.Read(ctx, a, buf)
}

func (v *interrupted) Write(ctx context.Context, a cmis.Address, data []byte) error {
	if err := v.next(); err != nil {
		return err
	}
	return v.Module.Write(ctx, a, data)
}

// Ensure that a module whose power fails, of which one answer is lost, or whose calibration is
// called off, at whatever transaction of a whole calibration, is dark afterwards and uses the
// table that it had, or one that has passed; and that it can be calibrated again.
func TestCalibrate_interrupted(t *testing.T) {
	t.Parallel()
	calibrate := func(ctx context.Context, b *device, mem cmis.Memory, scope mzi.Scope) (*mzi.Report, error) {
		cfg := b.config()
		cfg.Memory = mem
		return mzi.Calibrate(ctx, cfg, mzi.Options{Now: b.now, Soak: -1, Scope: scope})
	}
	whole := &interrupted{left: 1 << 40}
	{
		b := newDevice(11, "factory")
		whole.Module = b.Module
		if _, err := calibrate(t.Context(), b, whole, mzi.Coupling); err != nil {
			t.Fatal(err)
		}
	}
	total := 1<<40 - whole.left
	// All over it, and close together where the table is loaded and the module switches.
	var at []int
	at = append(at, 13, total/2)
	for n := total - 10; n > total-400; n -= 130 {
		at = append(at, n)
	}
	if testing.Short() {
		at = at[:4]
	}
	for _, kind := range []string{"brown-out", "error", "cancel"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			reloaded := 0
			for _, n := range at {
				b := newDevice(11, "factory")
				old, err := mzi.ReadTable(t.Context(), b.Module)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				mem := &interrupted{Module: b.Module, left: n}
				mem.now = func() error {
					switch kind {
					case "brown-out":
						b.BrownOut()
					case "error":
						return errLost
					case "cancel":
						cancel()
					}
					return nil
				}
				r, err := calibrate(ctx, b, mem, mzi.Coupling)
				cancel()
				what := fmt.Sprintf("%s at transaction %d of %d: loaded %v, error %.900v", kind, n, total, r.Loaded, err)
				switch {
				case kind == "error" && !errors.Is(err, errLost) && err != nil && !errors.Is(err, mzi.ErrVerification):
					t.Errorf("%s: it does not say what was lost", what)
				case kind == "cancel" && err != nil && !errors.Is(err, context.Canceled):
					t.Errorf("%s: it does not say that it was called off", what)
				case (err == nil) != r.Loaded:
					t.Error(what)
				}
				b.clock.Advance(time.Minute)
				status := b.lanes(t)
				for lane, path := range status.Path {
					if path != ocst.Dark {
						t.Errorf("%s: lane %d is on %v", what, lane+1, path)
					}
				}
				now, readErr := mzi.ReadTable(t.Context(), b.Module)
				switch {
				case readErr != nil:
					t.Errorf("%s: the module has no table: %v", what, readErr)
				case now.Version == old.Version:
				case !now.Verified.Pass:
					t.Errorf("%s: the module has a table that has not passed", what)
				case err != nil && now.Expires.After(b.now().Add(11*time.Minute)):
					t.Errorf("%s: the module has the new table for good", what)
				default:
					reloaded++
				}
				if n == total/2 {
					if _, err := calibrate(t.Context(), b, b.Module, mzi.Verify); err != nil {
						t.Errorf("%s: and again: %.300v", what, err)
					}
				}
			}
			t.Logf("%d times interrupted, %d times it has the new table", len(at), reloaded)
		})
	}
}

func (b *device) lanes(t *testing.T) ocst.LaneStatus {
	t.Helper()
	buf := make([]byte, ocst.LanesSpan.Length)
	if err := b.Read(t.Context(), ocst.LanesSpan.Address, buf); err != nil {
		t.Fatal(err)
	}
	lanes, err := ocst.DecodeLanes(buf)
	if err != nil {
		t.Fatal(err)
	}
	return lanes
}
