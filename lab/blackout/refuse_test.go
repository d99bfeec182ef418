package blackout

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
)

// Ensure a switch counts as dark only when it has said so: one that hangs was asked, then it has
// failed, and the next panic that reaches it makes it dark for all.
func TestPanic_SaysWhatIsDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t)
		x.opt.Patience = time.Second
		x.opt.Last = func(name string) (Held, bool) {
			return Held{Map: circuits("1>34"), Shut: map[ocs.Port]bool{1: false, 2: false}}, name == "a"
		}
		x.opening["a"] = errHang
		done := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() {
			defer close(done)
			_, _ = New(x.opt).Panic(ctx, call)
		}()
		time.Sleep(2 * time.Second) // in the bubble
		synctest.Wait()
		what := func() string {
			calls, err := New(x.opt).InForce()
			if err != nil || len(calls) == 0 {
				t.Fatalf("%+v, %v", calls, err)
			}
			return calls[0].What()
		}
		if got, want := what(), "a: asked to close the shutters of 1,2, and has not confirmed that; its light may still be on; b: 1>34 removed"; got != want {
			t.Errorf("while a hangs: %q, want %q", got, want)
		}
		<-done
		if got := what(); !strings.HasPrefix(got, "a: not reached: ") || !strings.Contains(got, "; its light may still be on; b: 1>34 removed") {
			t.Errorf("after that: %q", got)
		}
		delete(x.opening, "a")
		if _, err := New(x.opt).Panic(t.Context(), call); err != nil {
			t.Error(err)
		}
		if got, want := what(), "a: shutters of 1,2 closed; b: 1>34 removed"; got != want {
			t.Errorf("called once more: %q, want %q", got, want)
		}
	})
}

// Ensure that a panic does not come back when a switch fails after it was lifted.
func TestPanic_LiftedWhileItHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newBench(t)
		x.opening["a"] = errHang
		done := make(chan struct{})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		go func() {
			defer close(done)
			_, _ = New(x.opt).Panic(ctx, call)
		}()
		time.Sleep(time.Second) // in the bubble
		synctest.Wait()
		if _, err := New(x.opt).Lift(t.Context()); err != nil {
			t.Error(err)
		}
		<-done
		if calls, err := New(x.opt).InForce(); err != nil || len(calls) > 0 {
			t.Errorf("%+v, %v", calls, err)
		}
	})
}

// Ensure that a switch that was never reached is lifted without it.
func TestLift_NeverReached(t *testing.T) {
	x := newBench(t)
	x.opening["a"] = errors.New("boom")
	if _, err := New(x.opt).Panic(t.Context(), call); err == nil {
		t.Error("a was reached")
	}
	if results, err := New(x.opt).Lift(t.Context()); err != nil {
		t.Errorf("%+v, %v", results, err)
	}
	if calls, err := New(x.opt).InForce(); err != nil || len(calls) > 0 {
		t.Errorf("%+v, %v", calls, err)
	}
}

// Ensure that a file of a version that wrote down only what was asked for can be read, and says
// no more than that.
func TestRead_WithoutStates(t *testing.T) {
	x := newBench(t)
	text := `{"v":1,"calls":[{"n":4,"at":"2026-01-02T03:04:05Z","who":"eve","reason":"smoke","dark":[{"switch":"a","device":"test:a","closed":[1,2]}]}]}`
	if err := os.WriteFile(filepath.Join(x.opt.StateDir, panics.FileName), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	calls, err := New(x.opt).InForce()
	if err != nil || len(calls) != 1 || calls[0].What() != "a: asked to close the shutters of 1,2, and has not confirmed that; its light may still be on" {
		t.Errorf("%+v, %v", calls, err)
	}
}

// light is what would get light.
type light struct {
	sw, device string
	add        ocs.Map
}

// refusedBy is what the gate of a lab says of it.
func refusedBy(f *lab.File, dir string, l light) error {
	sw := lab.New(f, lab.Options{StateDir: dir}).Adopt(l.sw, l.device, ocstest.New(64, ocs.Map{}))
	return sw.Gate().Permits(context.Background(), sw, ocs.Map{}, ocs.Change{Add: l.add})
}

// Ensure that while a panic is in force nothing brings light to where it keeps it dark, and all
// else passes.
func TestRefuse(t *testing.T) {
	x := newBench(t)
	refused := func(l light) error { return refusedBy(x.opt.File, x.opt.StateDir, l) }
	for _, l := range []light{{"b", "test:b", circuits("1>34")}} {
		if err := refused(l); err != nil {
			t.Errorf("without a panic: %v", err)
		}
	}
	if _, err := New(x.opt).Panic(t.Context(), call, "b"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		l    light
		port string // "" passes
	}{
		{"Back", light{"b", "test:b", circuits("1>34")}, "port 1"},
		{"Its far end", light{"b", "test:b", circuits("9>34")}, "port 34"},
		{"Another NIC of the lab", light{"b", "test:b", circuits("2>50")}, "port 2"},
		{"By its URL", light{"tl1://x", "test:b", circuits("1>50")}, "port 1"},
		{"Somebody else's", light{"b", "test:b", circuits("9>50")}, ""},
		{"Another switch", light{"a", "test:a", circuits("1>34")}, ""},
		{"Only away", light{"b", "test:b", ocs.Map{}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := refused(tt.l)
			if tt.port == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, panics.ErrInForce) {
				t.Fatalf("%v", err)
			}
			for _, part := range []string{tt.port, "alice@lab: fire", `"ocslab panic --lift --id 1"`} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q lacks %q", err, part)
				}
			}
		})
	}
	// Behind a shutter that has closed there is no light; behind one that has not, there is.
	behind := light{"a", "test:a", circuits("1>33")}
	for _, jam := range []bool{false, true} {
		x.a.jam = jam
		for p := range x.a.shut {
			x.a.shut[p] = false
		}
		_, err := New(x.opt).Panic(t.Context(), call, "a")
		if (err != nil) != jam {
			t.Fatal(err)
		}
		if err := refused(behind); errors.Is(err, panics.ErrInForce) != jam {
			t.Errorf("jam=%v: %v", jam, err)
		}
	}
	x.a.jam = false
	if _, err := New(x.opt).Lift(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := refused(light{"b", "test:b", circuits("1>34")}); err != nil {
		t.Errorf("lifted: %v", err)
	}
	if err := os.WriteFile(filepath.Join(x.opt.StateDir, panics.FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if refused(light{"b", "test:b", circuits("9>50")}) == nil {
		t.Error("passes though the panics cannot be read")
	}
}
