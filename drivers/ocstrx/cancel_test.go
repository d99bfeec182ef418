package ocstrx_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/drivers/internal/drivertest"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// TestCancelAnywhere: whoever gives up a change at whichever request leaves all of it done
// or nothing, no module armed, and nothing staged that the next commit would take along.
func TestCancelAnywhere(t *testing.T) {
	t.Parallel()
	enough := errors.New("enough")
	for _, c := range []struct {
		name, holds, change, after string
		modules                    int
	}{
		{"one module, one path", "1>9", "-1>9 +1>17", "1>17", 1},
		{"one module, loop", "1>9", "-1>9 +1>32", "1>32", 1},
		{"one module, all paths", "1>9,2>10,3>31", "-1>9 -2>10 -3>31 +1>31 +3>11", "1>31,3>11", 1},
		{"bundle", "1>25,2>74", "-1>25 -2>74 +1>49 +3>74 +9>88 +17>41", "1>49,3>74,9>88,17>41", 3},
	} {
		for _, noTrigger := range []bool{false, true} {
			for _, done := range []bool{false, true} { // the request is done when it strikes
				t.Run(fmt.Sprintf("%s, no trigger line %v, done %v", c.name, noTrigger, done), func(t *testing.T) {
					whole := 0
					for n := 0; ; n++ {
						b := newFake(c.modules)
						b.noTrigger, b.leaves = noTrigger, !done
						sw := openFake(t, b)
						if _, err := sw.Apply(t.Context(), ocs.Change{Add: drivertest.Map(t, c.holds)}); err != nil {
							t.Fatal(err)
						}
						ctx, cancel := context.WithCancelCause(t.Context())
						asked := 0
						b.before = func(ocstrx.Request) error {
							if asked++; asked == n+1 {
								cancel(enough)
							}
							return nil
						}
						_, err := sw.Apply(ctx, change(t, c.change))
						b.before = nil
						if err != nil && !errors.Is(err, enough) {
							t.Fatalf("at request %d: %v", n+1, err)
						}
						have, rerr := sw.CrossConnects(t.Context())
						if rerr != nil {
							t.Fatal(rerr)
						}
						after := have.Equal(drivertest.Map(t, c.after))
						if after {
							whole++
						}
						if !after && (err == nil || !have.Equal(drivertest.Map(t, c.holds))) {
							t.Errorf("at request %d: %v, and it holds %v", n+1, err, have)
						}
						for i, m := range b.modules {
							if m.lanes.State == ocst.StateArmed || m.lanes.Next != m.lanes.Loop || m.mask != 0 {
								t.Errorf("at request %d: module %d is left %v, loop %v next %v", n+1, i+1, m.lanes.State, m.lanes.Loop, m.lanes.Next)
							}
						}
						cancel(nil)
						if asked <= n {
							break // it was over before
						}
					}
					if whole == 0 {
						t.Error("never done")
					}
				})
			}
		}
	}
}

// TestTriggersOneByOne: without a trigger line a module that does not take its trigger does
// not keep those behind it from switching, and is not left armed.
func TestTriggersOneByOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		taken bool // the write was done, and the reply was lost
		slots []int
		text  string // of the error; "" is none
		after string
	}{
		{"second", false, []int{1}, "module 2: no answer; modules 1 and 3 switched", "1>25,17>41"},
		{"first and last", false, []int{0, 2}, "; module 2 switched", ""},
		{"second, and nobody waits", false, []int{1}, "enough", "1>25,17>41"},
		{"none", false, []int{0, 1, 2}, "module 1: no answer", ""},
		{"taken", true, []int{1}, "", "1>25,9>33,17>41"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			b := newFake(3)
			b.noTrigger = true
			sw := openFake(t, b)
			b.before = func(q ocstrx.Request) error {
				for _, slot := range c.slots {
					if strings.Contains(c.name, "nobody waits") && q.Op == ocstrx.OpWrite && q.At == ocst.At(ocst.RegCommit) {
						cancel(errors.New("enough"))
					}
					if q.Op == ocstrx.OpWrite && q.Slot == slot && q.At == ocst.At(ocst.RegCommit) && q.Data[0] == byte(ocst.CommitTrigger) {
						if c.taken {
							b.modules[slot].commit(ocst.CommitTrigger)
						}
						return errors.New("no answer")
					}
				}
				return nil
			}
			r, err := sw.Apply(ctx, change(t, "+1>25 +9>33 +17>41"))
			if (err == nil) != (c.text == "") || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
			if want := len(drivertest.Map(t, c.after).Slice()); c.after != "" && ctx.Err() == nil && len(r.Parts) != want {
				t.Errorf("parts %v", r.Parts)
			}
			if m, err := sw.CrossConnects(t.Context()); err != nil || c.after != "" && !m.Equal(drivertest.Map(t, c.after)) {
				t.Errorf("holds %v, %v", m, err)
			}
			for i, m := range b.modules {
				if m.lanes.State == ocst.StateArmed {
					t.Errorf("module %d is left armed", i+1)
				}
			}
		})
	}
}

// TestTriggerIgnored: a module that says it is armed, and does not switch when the line is
// pulled, is not left armed, whatever time its own limit has.
func TestTriggerIgnored(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newFake(3)
		sw, err := ocstrx.Open(t.Context(), ocstrx.Config{Bus: b, Timeout: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		defer sw.Close()
		m := b.modules[1]
		b.before = func(q ocstrx.Request) error {
			if q.Op == ocstrx.OpTrigger {
				armed, mask := m.armed, m.mask
				m.after = func(m *fakeModule) {
					m.state(ocst.StateArmed)
					m.armed, m.mask = armed, mask
				}
				m.end = func(m *fakeModule) { m.state(ocst.StateArmed) }
			}
			return nil
		}
		_, err = sw.Apply(t.Context(), change(t, "+1>25 +9>33 +17>41"))
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "module 2 has not switched") || !strings.Contains(err.Error(), "modules 1 and 3 switched") {
			t.Errorf("got %v", err)
		}
		if m.lanes.State == ocst.StateArmed {
			t.Error("module 2 is left armed")
		}
	})
}
