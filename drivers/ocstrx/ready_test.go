package ocstrx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	emulated "github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Somebody who asks is asked once, when all modules are armed and nothing has switched, also
// of one module and one path; who refuses has nothing switched, and nothing armed.
func TestReady(t *testing.T) {
	t.Parallel()
	refused := errors.New("not now")
	for _, c := range []struct {
		change  string
		modules int
	}{{"+1>9", 1}, {"+1>32", 1}, {"+1>9,2>18", 1}, {"+1>25,9>33,17>65", 3}} {
		for _, noTrigger := range []bool{false, true} {
			for _, answer := range []error{nil, refused} {
				t.Run(fmt.Sprintf("%s, no trigger line %v, %v", c.change, noTrigger, answer), func(t *testing.T) {
					b := newFake(c.modules)
					b.noTrigger = noTrigger
					sw := openFake(t, b)
					asked := 0
					ctx := ocs.WithReady(t.Context(), func(context.Context) error {
						asked++
						for i, m := range b.modules {
							if m.lanes.State != ocst.StateArmed {
								t.Errorf("module %d is %v", i+1, m.lanes.State)
							}
						}
						return answer
					})
					_, err := sw.Apply(ctx, change(t, c.change))
					have, rerr := sw.CrossConnects(t.Context())
					want := ocs.Map{}
					if answer == nil {
						want = drivertest.Map(t, strings.TrimPrefix(c.change, "+"))
					}
					if !errors.Is(err, answer) || asked != 1 || rerr != nil || !have.Equal(want) {
						t.Errorf("%v, asked %d times, holds %v (%v), want %v", err, asked, have, rerr, want)
					}
					for _, m := range b.modules {
						if m.lanes.State == ocst.StateArmed || m.lanes.Next != m.lanes.Loop {
							t.Errorf("left %v, loop %v next %v", m.lanes.State, m.lanes.Loop, m.lanes.Next)
						}
					}
				})
			}
		}
	}
	sw := openFake(t, newFake(1))
	ctx := ocs.WithReady(t.Context(), func(context.Context) error { t.Error("asked for nothing"); return nil })
	if _, err := sw.Apply(ctx, change(t, "")); err != nil {
		t.Error(err)
	}
}

// Modules stay armed for a time only, and so does who waits for others; Close ends it, too.
func TestReadyEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		during func(*ocstrx.Switch)
		want   error
	}{
		"late":   {func(*ocstrx.Switch) {}, context.DeadlineExceeded},
		"closed": {func(sw *ocstrx.Switch) { sw.Close() }, drivertest.ErrAny},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sw := openFake(t, newFake(2))
				begun := time.Now()
				_, err := sw.Apply(ocs.WithReady(t.Context(), func(ctx context.Context) error {
					c.during(sw)
					<-ctx.Done()
					return context.Cause(ctx)
				}), change(t, "+1>17,9>25"))
				if err == nil || !errors.Is(c.want, drivertest.ErrAny) && !errors.Is(err, c.want) {
					t.Errorf("got %v", err)
				}
				if d := time.Since(begun); d >= ocst.ArmTimeout {
					t.Errorf("waited %v, and modules stay armed for %v", d, ocst.ArmTimeout)
				}
			})
		})
	}
}

// Two boards that change together both do or neither does, whichever request of whichever of
// them somebody gives up at, or fails.
func TestRendezvousAnywhere(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, noTrigger := range []bool{false, true} {
		for _, cancels := range []bool{false, true} {
			t.Run(fmt.Sprintf("no trigger line %v, cancelled %v", noTrigger, cancels), func(t *testing.T) {
				both, none := 0, 0
				for n := range 30 {
					var boards [2]*fakeBus
					var switches [2]*ocstrx.Switch
					for i := range boards {
						boards[i] = newFake(2)
						boards[i].noTrigger = noTrigger
						switches[i] = openFake(t, boards[i])
					}
					ctx, cancel := context.WithCancelCause(t.Context())
					asked := 0
					triggers := func(q ocstrx.Request) bool {
						return q.Op == ocstrx.OpTrigger || q.At == ocst.At(ocst.RegCommit)
					}
					boards[0].before = func(q ocstrx.Request) error {
						if asked++; asked != n+1 {
							return nil
						}
						if cancels {
							cancel(broken)
						} else if !triggers(q) { // a trigger that is lost leaves one end: that is an error
							return broken
						}
						return nil
					}
					meet := ocs.NewRendezvous(2)
					var errs [2]error
					var all sync.WaitGroup
					for i, sw := range switches {
						all.Go(func() {
							errs[i] = meet.Do(ctx, func(ctx context.Context) error {
								_, err := sw.Apply(ctx, change(t, "+1>17,9>25"))
								return err
							})
						})
					}
					all.Wait()
					boards[0].before = nil
					cancel(nil)
					var held []bool
					for i, sw := range switches {
						m, err := sw.CrossConnects(t.Context())
						if err != nil {
							t.Fatal(err)
						}
						held = append(held, m.Len() > 0)
						if m.Len() == 0 && errs[i] == nil || m.Len() == 1 {
							t.Errorf("at request %d: board %d holds %v after %v", n+1, i+1, m, errs[i])
						}
						for _, f := range boards[i].modules {
							if f.lanes.State == ocst.StateArmed {
								t.Errorf("at request %d: board %d is left armed", n+1, i+1)
							}
						}
					}
					if held[0] != held[1] {
						t.Errorf("at request %d: one board has switched: %v, errors %v", n+1, held, errs)
					}
					if held[0] {
						both++
					} else {
						none++
					}
				}
				if both == 0 || none == 0 {
					t.Errorf("%d times both, %d times none", both, none)
				}
			})
		}
	}
}

// A partner that another host keeps from switching is no reason to begin again here.
func TestPartnerCrossed(t *testing.T) {
	t.Parallel()
	here, there := newFake(1), newFake(1)
	there.before = func(q ocstrx.Request) error {
		there.modules[0].deny = ocst.FaultBusy
		return nil
	}
	meet := ocs.NewRendezvous(2)
	var all sync.WaitGroup
	for _, b := range []*fakeBus{here, there} {
		sw := openFake(t, b)
		all.Go(func() {
			err := meet.Do(t.Context(), func(ctx context.Context) error {
				_, err := sw.Apply(ctx, change(t, "+1>9"))
				return err
			})
			var module *ocstrx.ModuleError
			if !errors.As(err, &module) || errors.Is(err, ocs.ErrPartner) != (b == here) {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
	arms := 0
	for _, w := range here.writes() {
		if strings.HasSuffix(w, fmt.Sprintf("<- %02x 01 %02x", byte(ocst.Path1), byte(ocst.CommitArm))) {
			arms++
		}
	}
	if arms != 1 {
		t.Errorf("it was armed %d times", arms)
	}
}

// Both ends of a cable of emulated boards switch together: what their modules say of the
// moment is a few microseconds apart, and there is light at both.
func TestRendezvousCable(t *testing.T) {
	t.Parallel()
	left, right := newRig(t, eight, 0, 0), newRig(t, eight, 0, 0)
	if _, err := emulated.JoinBoards(left.Board, 0, right.Board, 1, 1.5); err != nil {
		t.Fatal(err)
	}
	meet := ocs.NewRendezvous(2)
	var all sync.WaitGroup
	switches := []*ocstrx.Switch{left.mustOpen(nil), right.mustOpen(nil)}
	for i, sw := range switches {
		all.Go(func() {
			var ccs []ocs.CrossConnect
			for lane := range ocs.Port(64) {
				ccs = append(ccs, ocs.CrossConnect{Ingress: lane + 1, Egress: lane + 1 + 64*ocs.Port(i+1)})
			}
			if err := meet.Do(t.Context(), func(ctx context.Context) error {
				_, err := ocs.Reconcile(ctx, sw, ocs.MustMap(ccs...), ocs.Update)
				return err
			}); err != nil {
				t.Errorf("end %d: %v", i, err)
			}
		})
	}
	all.Wait()
	for i, sw := range switches {
		tel, err := sw.Telemetry(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range tel {
			for lane, l := range m.Lanes {
				if l.Lock == ocst.NoLight {
					t.Errorf("end %d: no light at lane %d of %s", i, lane+1, m.Name)
				}
			}
		}
	}
}
