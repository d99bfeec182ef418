package ocstrx_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestRequests is, byte by byte, what is asked of modules for the usual changes. A look is
// two reads, which leave out the flags between them.
func TestRequests(t *testing.T) {
	t.Parallel()
	look := func(slots ...string) (list []string) {
		for _, s := range slots {
			list = append(list, s+" B0h:134+20", s+" B0h:156+20")
		}
		return list
	}
	lines := slices.Concat[[]string]
	for _, c := range []struct {
		name, holds, change string
		modules             int
		noTrigger           bool
		want                []string
		counted             int
		after               string
	}{
		{"one lane to fibre 1", "", "+3>11", 1, false, lines(look("1"), []string{"1 B0h:136 <- 01 04 01"}, look("1")), 1, "3>11"},
		{"all lanes to fibre 2", "1>9,2>10,3>11,4>12,5>13,6>14,7>15,8>16",
			"-1>9 -2>10 -3>11 -4>12 -5>13 -6>14 -7>15 -8>16 +1>17 +2>18 +3>19 +4>20 +5>21 +6>22 +7>23 +8>24", 1, false,
			lines(look("1"), []string{"1 B0h:136 <- 02 ff 01"}, look("1")), 1, "1>17,2>18,3>19,4>20,5>21,6>22,7>23,8>24"},
		{"a lane goes dark", "3>11,4>12", "-3>11", 1, false, lines(look("1"), []string{"1 B0h:136 <- 00 04 01"}, look("1")), 1, "4>12"},
		{"the loop as it is", "", "+1>29 +5>25", 1, false, lines(look("1"), []string{"1 B0h:136 <- 03 11 01"}, look("1")), 1, "1>29,5>25"},
		// Lane 2 stays where it goes, 1 gets what was 8's.
		{"the loop elsewhere", "2>30", "+1>28", 1, false,
			lines(look("1"), look("1"), []string{"1 B0h:164 <- 03 05 06 07 00 01 02 04", "1 B0h:136 <- 03 01 01"}, look("1")), 2, "1>28,2>30"},
		{"a lane on the loop moves on", "1>29", "-1>29 +1>25", 1, false,
			lines(look("1"), look("1"), []string{"1 B0h:164 <- 00 05 06 07 04 01 02 03", "1 B0h:136 <- 03 01 01"}, look("1")), 2, "1>25"},
		{"two paths in a module", "1>9", "-1>9 +2>18", 1, false,
			lines(look("1"), []string{"1 B0h:136 <- 00 01 02"}, look("1"), []string{"1 B0h:136 <- 02 02 02"}, look("1"), []string{"1 B0h:138 <- 03"}, look("1")), 3, "2>18"},
		{"a bundle of two", "", "+1>17 +9>41", 2, false,
			lines(look("1", "2"), []string{"1 B0h:136 <- 01 01 02"}, look("1"), []string{"2 B0h:136 <- 02 01 02"}, look("2"), []string{"trigger 0003"}, look("1", "2")), 3, "1>17,9>41"},
		{"a bundle of two, both on one path", "", "+1>17 +9>25", 2, false,
			lines(look("1", "2"), []string{"1 B0h:136 <- 01 01 02", "2 B0h:136 <- 01 01 02"}, look("1", "2"), []string{"trigger 0003"}, look("1", "2")), 3, "1>17,9>25"},
		{"a bundle without a trigger line", "", "+1>17 +9>25", 2, true,
			lines(look("1", "2"), []string{"1 B0h:136 <- 01 01 02", "2 B0h:136 <- 01 01 02"}, look("1", "2"), []string{"1 B0h:138 <- 03", "2 B0h:138 <- 03"}, look("1", "2")), 4, "1>17,9>25"},
		{"the second of two", "", "+9>25", 2, false, lines(look("2"), []string{"2 B0h:136 <- 01 01 01"}, look("2")), 1, "9>25"},
		{"what is there", "1>9", "+1>9", 1, false, look("1"), 0, "1>9"},
		{"there, and new", "1>9", "+1>9 +2>10", 1, false, lines(look("1"), []string{"1 B0h:136 <- 01 02 01"}, look("1")), 1, "1>9,2>10"},
		{"removed and added", "1>9", "-1>9 +1>9", 1, false, look("1"), 0, "1>9"},
		{"nothing", "1>9", "", 1, false, nil, 0, "1>9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newFake(c.modules)
			b.noTrigger = c.noTrigger
			b.modules[0].hold(t, c.holds)
			sw := openFake(t, b)
			r, err := sw.Apply(t.Context(), change(t, c.change))
			if err != nil || r.Requests != c.counted {
				t.Errorf("got %d requests, %v, want %d", r.Requests, err, c.counted)
			}
			if got := b.requests(); !slices.Equal(got, c.want) {
				t.Errorf("asked\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			drivertest.Holds(t, sw, c.after)
		})
	}
}

// TestForeignStaging: a commit takes what is staged for the loop, so what another host has
// left there is put right first, or lanes that nobody has named would move.
func TestForeignStaging(t *testing.T) {
	t.Parallel()
	b := newFake(1)
	b.modules[0].hold(t, "1>29")
	b.modules[0].lanes.Next = ocst.Permutation{0, 1, 2, 3, 4, 5, 6, 7}
	sw := openFake(t, b)
	if _, err := sw.Apply(t.Context(), change(t, "+2>10")); err != nil {
		t.Fatal(err)
	}
	drivertest.Holds(t, sw, "1>29,2>10")
}

// TestReceipt: the times are those of what was sent, and each module that took part has a
// part with its own duration.
func TestReceipt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFake(3)
		sw := openFake(t, b)
		at := map[string]time.Time{}
		b.before = func(q ocstrx.Request) error {
			time.Sleep(time.Millisecond)
			switch {
			case q.Op == ocstrx.OpTrigger:
				at["trigger"] = time.Now()
			case q.Op == ocstrx.OpWrite && at["arm"].IsZero():
				at["arm"] = time.Now()
			}
			return nil
		}
		for _, m := range b.modules {
			m.slow = 2
		}
		r, err := sw.Apply(t.Context(), change(t, "+1>25 +17>41"))
		if err != nil {
			t.Fatal(err)
		}
		want := []ocs.Part{{Name: "module 1", Took: 70 * time.Microsecond}, {Name: "module 3", Took: 70 * time.Microsecond}}
		if !slices.Equal(r.Parts, want) {
			t.Errorf("parts %v, want %v", r.Parts, want)
		}
		if !r.Begun.Before(at["trigger"]) || r.SendStart.After(at["trigger"]) || r.SendStart.Before(at["arm"]) || r.Sent.Before(r.SendStart) {
			t.Errorf("begun %v, sent %v to %v; armed %v, triggered %v", r.Begun, r.SendStart, r.Sent, at["arm"], at["trigger"])
		}
		// Two looks of four reads each show that they are busy, and a third that they are done.
		if took := r.Acked.Sub(at["trigger"]); took < 9*time.Millisecond {
			t.Errorf("acknowledged %v after the trigger, while modules were at work", took)
		}
	})
}

// TestRefusals are refused before anything is sent that changes something, as errors of
// the device.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, holds, change string
		set                 func(*fakeBus)
		want                error
		text                string
	}{
		{"no such egress", "", "+1>999", nil, ocs.ErrPort, "999"},
		{"no such ingress", "", "+50>51", nil, ocs.ErrPort, "50"},
		{"an egress as ingress", "", "+20>36", nil, ocs.ErrPort, "20"},
		{"another lane's fibre", "", "+1>18", nil, ocs.ErrPort, "cannot be reached"},
		{"another module's loop", "", "+1>57", nil, ocs.ErrPort, "cannot be reached"},
		{"one good, one not", "", "+2>18 +1>19", nil, ocs.ErrPort, "cannot be reached"},
		{"remove what cannot be", "", "-1>18", nil, ocs.ErrPort, "cannot be reached"},
		{"remove what is not there", "", "-1>17", nil, ocs.ErrNotConnected, "1>17"},
		{"remove what has moved", "1>9", "-1>33", nil, ocs.ErrNotConnected, "1>33"},
		{"remove a loop that goes elsewhere", "1>29", "-1>50", nil, ocs.ErrNotConnected, "1>50"},
		{"remove what is not there, behind a conflict", "1>9", "+1>33 -9>25", nil, ocs.ErrNotConnected, "9>25"},
		{"busy ingress", "1>9", "+1>33", nil, ocs.ErrConflict, "ingress 1 is busy with 1>17"},
		{"busy receiver", "1>29", "+2>53", nil, ocs.ErrConflict, "egress 53 is busy with 1>53"},
		{"loop to a lane on its fibre", "5>13", "+1>53", nil, ocs.ErrConflict, "1>53 excludes 5>21"},
		{"fibre of a lane that is looped to", "1>29", "+5>21", nil, ocs.ErrConflict, "5>21 excludes 1>53"},
		{"both at once", "", "+1>53 +5>21", nil, ocs.ErrConflict, "excludes"},
		{"in fault", "", "+1>17", func(b *fakeBus) { b.modules[0].fail(ocst.FaultOpen, 3) }, ocs.ErrDenied, "module 1 is dark, in fault: heater open at S1 of lane 4; restart"},
		{"without a table", "", "+9>25", func(b *fakeBus) {
			b.modules[1].state(ocst.StateCal)
			b.modules[1].lanes.Fault = ocst.FaultTable
		}, ocs.ErrDenied, "module 2 is dark, waiting for calibration"},
		{"being calibrated", "", "+9>25", func(b *fakeBus) { b.modules[1].state(ocst.StateCal) }, ocs.ErrDenied, "module 2 is dark: it is being calibrated"},
		{"in low power", "", "+9>25", func(b *fakeBus) { b.modules[1].state(ocst.StateLowPower) }, ocs.ErrDenied, "low-power"},
		{"still starting", "", "+9>25", func(b *fakeBus) { b.modules[1].state(ocst.StateWarmUp) }, ocs.ErrDenied, "still starting"},
		{"in a switch without end", "", "+9>25", func(b *fakeBus) { b.modules[1].state(ocst.StateSettle) }, ocs.ErrDenied, "does not end"},
		{"armed by somebody", "", "+9>25", func(b *fakeBus) { b.modules[1].state(ocst.StateArmed) }, ocs.ErrDenied, "module 2 stays armed"},
		{"good and bad module", "", "+1>17 +9>25", func(b *fakeBus) { b.modules[1].fail(ocst.FaultHot, 0xff) }, ocs.ErrDenied, "module 2 is dark, in fault: over-temperature;"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake(2)
				b.modules[0].hold(t, c.holds)
				sw := openFake(t, b)
				if c.set != nil {
					c.set(b)
				}
				r, err := sw.Apply(t.Context(), change(t, c.change))
				var op *ocs.OpError
				if !errors.Is(err, c.want) || !errors.As(err, &op) || op.Device != "trx0" || !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %v, want %v with %q", err, c.want, c.text)
				}
				if w := b.writes(); len(w) > 0 || r.Requests != 0 {
					t.Errorf("sent %q, %d requests", w, r.Requests)
				}
			})
		})
	}
}

// TestWaitsForArmed: what another host has armed comes to an end, and then it is our turn.
func TestWaitsForArmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFake(1)
		sw := openFake(t, b)
		b.modules[0].state(ocst.StateArmed)
		begun := time.Now()
		b.before = func(ocstrx.Request) error {
			if time.Since(begun) > ocst.ArmTimeout && b.modules[0].lanes.State == ocst.StateArmed {
				b.modules[0].state(ocst.StateReady)
				b.modules[0].status.Result = ocst.FaultHalfOpen
			}
			return nil
		}
		if _, err := sw.Apply(t.Context(), change(t, "+1>9")); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < ocst.ArmTimeout {
			t.Errorf("done after %v, while the module was armed", took)
		}
	})
}

// TestWaitsForSwitch: so does a switch that another host has begun.
func TestWaitsForSwitch(t *testing.T) {
	t.Parallel()
	b := newFake(1)
	sw := openFake(t, b)
	m := b.modules[0]
	m.slow = 2
	m.write(ocst.At(ocst.RegStaged), []byte{byte(ocst.Path1), 1 << 6, byte(ocst.CommitNow)})
	if _, err := sw.Apply(t.Context(), change(t, "+1>9 -7>15")); err != nil {
		t.Error(err)
	}
	drivertest.Holds(t, sw, "1>9")
}

// TestHalfArmed: when one module of a bundle cannot be armed the others are disarmed, what
// was staged for them is taken back, and nothing switches.
func TestHalfArmed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(b *fakeBus)
		want error
		text string
	}{
		{"refuses", func(b *fakeBus) { b.modules[1].deny = ocst.FaultStage }, ocs.ErrDenied, "module 2 did not switch: staged settings make no sense"},
		{"ignores", func(b *fakeBus) { b.before = loseArm(1) }, ocs.ErrDenied, "module 2 did not switch: nothing armed"},
		{"breaks", func(b *fakeBus) {
			b.before = func(q ocstrx.Request) error {
				if q.Op == ocstrx.OpWrite && q.Slot == 1 {
					b.modules[1].fail(ocst.FaultHot, 0xff)
				}
				return nil
			}
		}, ocs.ErrDenied, "module 2 did not switch: over-temperature; it is dark"},
		{"link breaks", func(b *fakeBus) {
			b.before = func(q ocstrx.Request) error {
				if q.Op == ocstrx.OpRead && b.modules[2].lanes.State == ocst.StateArmed && q.Slot == 2 {
					b.before = nil
					return errors.New("the link broke")
				}
				return nil
			}
		}, nil, "read B0h:134 of module 3: the link broke"},
		{"not armed at the trigger", func(b *fakeBus) {
			b.before = func(q ocstrx.Request) error {
				if q.Op == ocstrx.OpTrigger {
					b.modules[1].state(ocst.StateReady)
				}
				return nil
			}
		}, ocs.ErrDenied, "module 2 is not armed, so none was triggered"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFake(3)
			b.modules[2].hold(t, "2>30")
			sw := openFake(t, b)
			c.set(b)
			_, err := sw.Apply(t.Context(), change(t, "+1>25 +9>33 +17>91"))
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.text)
			}
			for i, m := range b.modules {
				if m.lanes.State == ocst.StateArmed || m.status.Sequence != 0 || m.lanes.Path[0] != ocst.Dark || m.lanes.Next != m.lanes.Loop {
					t.Errorf("module %d is left %v, with %d switches, lane 1 on %v, loop %v next %v",
						i+1, m.lanes.State, m.status.Sequence, m.lanes.Path[0], m.lanes.Loop, m.lanes.Next)
				}
			}
		})
	}
}

// loseArm has a module not get the command to arm, though it takes the write.
func loseArm(slot int) func(ocstrx.Request) error {
	return func(q ocstrx.Request) error {
		if q.Op == ocstrx.OpWrite && q.Slot == slot && len(q.Data) == 3 && q.Data[2] == byte(ocst.CommitArm) {
			q.Data[2] = 0
		}
		return nil
	}
}

// TestFaultInSwitch: a module that fails goes dark, and is named with its fault. Those
// beside it have switched. It is no refusal, as others have switched or light was lost.
func TestFaultInSwitch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		end     func(*fakeModule)
		text    string
		refused bool // if it is alone
	}{
		{"heater", func(m *fakeModule) { m.fail(ocst.FaultShort, uint8(ocst.Loop(2, 1))) }, "module 2 failed to switch: heater short at loop element 3.2; it is dark, and a restart", false},
		{"settle timeout", func(m *fakeModule) { m.fail(ocst.FaultTimeout, 4) }, "module 2 failed to switch: settle timeout at lane 5; it is dark", false},
		{"brown-out, seen starting", func(m *fakeModule) { m.reset() }, "module 2 failed to switch: brown-out; it is dark (warm-up)", false},
		{"brown-out, seen later", func(m *fakeModule) {
			m.reset()
			m.state(ocst.StateReady)
			m.after, m.status.Result = nil, ocst.FaultBrownOut
		}, "module 2 failed to switch: brown-out", false},
		{"restart, seen later and not told", func(m *fakeModule) { m.reset(); m.state(ocst.StateReady); m.after = nil }, "module 2 failed to switch: brown-out", false},
		{"rejected", func(m *fakeModule) { m.state(ocst.StateReady); m.status.Result = ocst.FaultBusy }, "module 2 did not switch: busy", true},
		{"says ok, another lane", func(m *fakeModule) { m.lanes.Path[5] = ocst.Path1; m.status.Sequence++ }, "lane 1 is on dark, not on path1", false},
		{"says ok, does nothing", func(m *fakeModule) { m.state(ocst.StateReady) }, "its count of switches is still 7", false},
		{"never ends", func(m *fakeModule) { m.state(ocst.StateSettle) }, "has not switched within 1s: it is settle", false},
	} {
		for _, bundle := range []bool{false, true} {
			name, text := c.name, "+9>33"
			if bundle {
				name, text = name+", in a bundle", "+1>25 +9>33 +17>41"
			}
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := newFake(3)
					b.modules[1].slow = 1
					b.modules[1].end = c.end
					b.modules[1].status.Sequence = 7
					sw := openFake(t, b)
					r, err := sw.Apply(t.Context(), change(t, text))
					want := c.text
					if bundle {
						want = strings.Replace(want, "did not switch", "failed to switch", 1)
					}
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Fatalf("got %v, want %q", err, want)
					}
					if errors.Is(err, ocs.ErrDenied) != (c.refused && !bundle) {
						t.Errorf("refused: %v", err)
					}
					if r.Requests == 0 {
						t.Error("the receipt says that nothing was sent")
					}
					if bundle {
						if !strings.Contains(err.Error(), "modules 1 and 3 switched") || len(r.Parts) != 2 {
							t.Errorf("got %v, parts %v", err, r.Parts)
						}
						if m, err := sw.CrossConnects(t.Context()); err != nil || !m.Has(ocs.CrossConnect{Ingress: 1, Egress: 25}) || !m.Has(ocs.CrossConnect{Ingress: 17, Egress: 41}) {
							t.Errorf("the others hold %v, %v", m, err)
						}
					} else if len(r.Parts) != 0 {
						t.Errorf("parts %v", r.Parts)
					}
				})
			})
		}
	}
}

// TestCancelArmed: who gives up between arming and trigger leaves nothing armed.
func TestCancelArmed(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	b := newFake(2)
	sw := openFake(t, b)
	ctx, cancel := context.WithCancelCause(t.Context())
	b.before = func(q ocstrx.Request) error {
		if q.Op == ocstrx.OpTrigger {
			cancel(enough)
			return enough // as a bus that gives up without having sent
		}
		return nil
	}
	if _, err := sw.Apply(ctx, change(t, "+1>17 +9>25")); !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	for i, m := range b.modules {
		if m.lanes.State != ocst.StateReady || m.status.Sequence != 0 {
			t.Errorf("module %d is %v after %d switches", i+1, m.lanes.State, m.status.Sequence)
		}
	}
	b.before = nil
	if _, err := sw.Apply(t.Context(), change(t, "+1>17 +9>25")); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestTwoHosts: another host changes the module between our look and our commit, and no
// circuit of either is lost for it.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, holds, ours, theirs string
		after                     string
		err                       error
	}{
		{"loops of both", "", "+8>32", "+7>31", "7>31,8>32", nil},
		{"ours moves, theirs comes", "1>29", "-1>29 +1>25", "+2>27", "1>25,2>27", nil},
		{"theirs goes", "2>30", "+1>28", "-2>30", "1>28", nil},
		{"loop and fibre", "", "+8>32", "+1>9", "1>9,8>32", nil},
		{"in two steps", "1>9", "-1>9 +8>32", "+7>31", "7>31,8>32", nil},
		{"in two steps, taken", "1>9", "-1>9 +8>32", "+8>16", "1>9,8>16", ocs.ErrConflict},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newFake(1)
			b.modules[0].hold(t, c.holds)
			ours, theirs := openFake(t, b), openFake(t, b)
			looks, done := 0, false
			b.before = func(q ocstrx.Request) error {
				// After the first look, and before that which comes with staging.
				if q.Op == ocstrx.OpRead && q.At.Offset == ocst.RegState {
					looks++
				}
				if (looks == 2 || q.Op == ocstrx.OpWrite) && !done {
					done = true
					before := b.before
					b.before = nil
					if _, err := theirs.Apply(t.Context(), change(t, c.theirs)); err != nil {
						t.Error(err)
					}
					b.before = before
				}
				return nil
			}
			if _, err := ours.Apply(t.Context(), change(t, c.ours)); !drivertest.Is(err, c.err) {
				t.Errorf("got %v, want %v", err, c.err)
			}
			drivertest.Holds(t, ours, c.after)
			if m := b.modules[0]; m.lanes.State == ocst.StateArmed {
				t.Error("left armed")
			}
		})
	}
}

// TestCrossing: commands of another host that come just then are refused, or have ours
// refused, and neither is taken for a failure of what was done.
func TestCrossing(t *testing.T) {
	t.Parallel()
	// The other host switches lane 7 to fibre 1, with bare registers.
	theirs := func(m *fakeModule, c ocst.Commit) {
		m.write(ocst.At(ocst.RegStaged), []byte{byte(ocst.Path1), 1 << 6, byte(c)})
	}
	for _, c := range []struct {
		name, ours string
		when       func(q ocstrx.Request) bool
		do         func(*fakeModule)
		after      string
		err        error
	}{
		{"is at work when we commit", "+1>9", committing, func(m *fakeModule) { theirs(m, ocst.CommitNow) }, "1>9,7>15", nil},
		{"is at work when we commit a loop", "+1>28", committing, func(m *fakeModule) { theirs(m, ocst.CommitNow) }, "1>28,7>15", nil},
		{"is at work when we arm", "+1>9 +2>18", committing, func(m *fakeModule) { theirs(m, ocst.CommitNow) }, "1>9,2>18,7>15", nil},
		{"has armed when we commit", "+1>9", committing, func(m *fakeModule) { theirs(m, ocst.CommitArm); m.looks, m.after = 4, disarmed }, "1>9", nil},
		{"is refused while we switch", "+1>9", looking, func(m *fakeModule) { theirs(m, ocst.CommitNow) }, "1>9", nil},
		{"takes our lane", "+7>31", committing, func(m *fakeModule) { theirs(m, ocst.CommitNow) }, "7>15", ocs.ErrConflict},
		{"never lets go", "+1>9", func(q ocstrx.Request) bool { return q.Op == ocstrx.OpWrite }, func(m *fakeModule) { m.deny = ocst.FaultBusy }, "", ocs.ErrDenied},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newFake(1)
				m := b.modules[0]
				m.slow = 2
				sw := openFake(t, b)
				done := false
				b.before = func(q ocstrx.Request) error {
					if !done && c.when(q) {
						if q.Op == ocstrx.OpRead && !m.lanes.State.Busy() {
							return nil
						}
						done = true
						staged := m.status
						c.do(m)
						m.status.Staged, m.status.Mask = staged.Staged, staged.Mask
					}
					return nil
				}
				r, err := sw.Apply(t.Context(), change(t, c.ours))
				if !drivertest.Is(err, c.err) || err == nil && len(r.Parts) != 1 {
					t.Errorf("got %v, parts %v, want %v", err, r.Parts, c.err)
				}
				drivertest.Holds(t, sw, c.after)
				if !done {
					t.Error("the other host did nothing")
				}
			})
		})
	}
}

func committing(q ocstrx.Request) bool {
	return q.Op == ocstrx.OpWrite && q.At == ocst.At(ocst.RegStaged)
}

func looking(q ocstrx.Request) bool { return q.Op == ocstrx.OpRead && q.At == ocst.At(ocst.RegState) }

// disarmed is what becomes of an armed module that nobody triggers.
func disarmed(m *fakeModule) {
	m.mask = 0
	m.state(ocst.StateReady)
	m.status.Result = ocst.FaultHalfOpen
}
