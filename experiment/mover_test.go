package experiment_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

const oneSwitch = `name: one
switches:
  - {name: rail0, emulate: {model: polatis-6000-32x32, switching: 1ms}}
`

// mover returns a mover between two configurations, what was there before, the switch,
// which holds the second, and what the gate of the lab asks.
func mover(t *testing.T) (*experiment.Mover, map[string]ocs.Map, *lab.Lab, *lab.Opened, *labtest.Authority) {
	t.Helper()
	auth := labtest.Around(lab.Files(t.TempDir()))
	f, err := lab.Parse("one.yaml", []byte(oneSwitch))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, Authority: auth, Command: "run x"})
	t.Cleanup(func() { l.Close() })
	sw, err := l.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	ours := []map[string]ocs.Map{rail0(t, "1>33,2>34"), rail0(t, "1>34,2>33")}
	if _, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "1>34,2>33,20>60"), ocs.Update); err != nil {
		t.Fatal(err)
	}
	return experiment.NewMover(ocs.Safe, ours), rail0(t, "1>40,9>41"), l, sw, auth
}

// Ensure that what was found is put back where the configurations have displaced it, and that
// circuits of others stay.
func TestMover_Leave(t *testing.T) {
	m, found, l, sw, auth := mover(t)
	for range 2 { // a second time changes nothing
		if err := m.Leave(t.Context(), l, found); err != nil {
			t.Fatal(err)
		}
		// 9>41 was taken away by somebody else: no configuration touches it.
		if got, err := sw.CrossConnects(t.Context()); err != nil || got.String() != "1>40,20>60" {
			t.Errorf("left at %v, %v", got, err)
		}
	}
	if entries := auth.Recorded(t); len(entries) != 1 || entries[0].State != history.Done || entries[0].Command != "run x" {
		t.Errorf("history: %+v, want one change", entries)
	}
}

// Ensure that light is put back also when nothing can be written any more, and is not moved
// for any other purpose then.
func TestMover_Leave_Unrecorded(t *testing.T) {
	m, found, l, sw, auth := mover(t)
	auth.Begun = func([]history.Entry) error { return errors.New("no space left on device") }
	bed := &experiment.Testbed{Lab: l}
	bed.Bench.Rigs = []*experiment.Rig{{Name: "rail0", Switch: sw}}
	if _, err := m.TakeOver(t.Context(), bed); err != nil {
		t.Fatal(err)
	}
	if _, err := bed.Bench.Move(t.Context(), 1, rail0(t, "1>33,2>34"), ocs.Update); !errors.Is(err, history.ErrUnrecorded) {
		t.Errorf("a move that cannot be recorded: %v, want %v", err, history.ErrUnrecorded)
	}
	if got, err := sw.CrossConnects(t.Context()); err != nil || got.String() != "1>34,2>33,20>60" {
		t.Errorf("the move that was refused has led to %v, %v", got, err)
	}
	if err := m.Leave(t.Context(), l, found); err != nil {
		t.Error(err)
	}
	if got, err := sw.CrossConnects(t.Context()); err != nil || got.String() != "1>40,20>60" {
		t.Errorf("left at %v, %v", got, err)
	}
}

// flaky fails the second time its circuits are read, before a change is sent.
type flaky struct {
	ocs.Switch
	reads, changes int
}

var errFlaky = errors.New("no answer")

func (f *flaky) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if f.reads++; f.reads == 2 {
		return ocs.Map{}, errFlaky
	}
	return f.Switch.CrossConnects(ctx)
}

func (f *flaky) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	f.changes++
	return f.Switch.Apply(ctx, c)
}

// Ensure that nothing is done unrecorded for a reason other than that it cannot be recorded.
func TestMover_Leave_Fails(t *testing.T) {
	m, found, l, sw, auth := mover(t)
	f := &flaky{Switch: sw.Switch}
	sw.Switch = f
	if err := m.Leave(t.Context(), l, found); !errors.Is(err, errFlaky) || f.changes != 0 {
		t.Errorf("error %v after %d changes, want %v and none", err, f.changes, errFlaky)
	}
	if err := m.Leave(t.Context(), l, found); err != nil || f.changes != 1 {
		t.Errorf("the next time: error %v after %d changes", err, f.changes)
	}
	if entries := auth.Recorded(t); len(entries) != 1 {
		t.Errorf("history: %+v, want one change", entries)
	}
}

// Ensure that ports hold what was asked for, that circuits at other ports stay, and that
// somebody who connects one of the ports meanwhile is not overruled.
func TestMover_Hold(t *testing.T) {
	m, _, l, sw, _ := mover(t)
	m.Policy = ocs.Update
	ports := map[ocs.Port]bool{1: true, 2: true, 33: true, 34: true}
	for _, c := range []struct {
		want    string
		changed bool
	}{{"1>33", true}, {"1>33", false}, {"", true}, {"1>34,2>33", true}} {
		want := mustParse(t, c.want)
		m.Own("rail0", want)
		if changed, err := m.Hold(t.Context(), sw, ports, want); err != nil || changed != c.changed {
			t.Fatalf("hold %q: changed %v, %v", c.want, changed, err)
		}
		if got, err := sw.CrossConnects(t.Context()); err != nil || !got.Equal(mustParse(t, strings.TrimPrefix(c.want+",20>60", ","))) {
			t.Fatalf("hold %q: %v, %v", c.want, got, err)
		}
	}
	if _, err := ocs.Reconcile(t.Context(), sw, mustParse(t, "1>50"), ocs.Update); err != nil { // somebody else
		t.Fatal(err)
	}
	if _, err := m.Hold(t.Context(), sw, ports, mustParse(t, "1>33")); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("over the circuit of another: %v, want %v", err, ocs.ErrConflict)
	}
	if err := m.Leave(t.Context(), l, nil); err != nil {
		t.Fatal(err)
	}
	if got, err := sw.CrossConnects(t.Context()); err != nil || !got.Has(ocs.CrossConnect{Ingress: 1, Egress: 50}) {
		t.Errorf("the circuit of another is gone: %v, %v", got, err)
	}
}

// Ensure that a panic, and a lease of others, keep light from coming, also in the end, and never from going.
func TestMover_Refused(t *testing.T) {
	for name, tt := range map[string]struct {
		begin func(*labtest.Authority, *lab.Opened)
		want  error
	}{
		"panic": {func(a *labtest.Authority, sw *lab.Opened) { a.Panic(sw.Device, 1) }, panics.ErrInForce},
		"lease": {func(a *labtest.Authority, sw *lab.Opened) { a.Lease(sw.Device, 40) }, lease.ErrLeased},
	} {
		t.Run(name, func(t *testing.T) {
			m, found, l, sw, auth := mover(t)
			tt.begin(auth, sw)
			ports := map[ocs.Port]bool{1: true, 33: true, 34: true}
			if _, err := m.Hold(t.Context(), sw, ports, mustParse(t, "1>40")); !errors.Is(err, tt.want) {
				t.Errorf("hold: %v, want %v", err, tt.want)
			}
			if err := m.Leave(t.Context(), l, found); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "1>40 was not restored") {
				t.Errorf("leave: %v", err)
			}
			if got, err := sw.CrossConnects(t.Context()); err != nil || got.String() != "20>60" {
				t.Errorf("left at %v, %v", got, err)
			}
		})
	}
}
