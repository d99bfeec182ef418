package lab_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure a lab reaches the switches that another emulates and offers, under the same device,
// and that hosts are not emulated a second time on them.
func TestLab_Join(t *testing.T) {
	f, dir := testbed(t), t.TempDir()
	first := lab.New(f, lab.Options{Emulated: true, StateDir: dir, Offer: true})
	defer first.Close()
	a, err := first.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	second := lab.New(f, lab.Options{Emulated: true, StateDir: dir, Join: true})
	defer second.Close()
	b, err := second.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if b.Device != a.Device || b.Emulated != nil {
		t.Errorf("device=%s, want %s; emulated=%v", b.Device, a.Device, b.Emulated)
	}
	if _, err := ocs.Reconcile(t.Context(), b, parseMap(t, "1>33"), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	more, err := second.Session(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	defer more.Close()
	for _, sw := range []ocs.Switch{a, more} {
		if m, err := sw.CrossConnects(t.Context()); m.String() != "1>33" || err != nil {
			t.Errorf("circuits=%v, %v", m, err)
		}
	}
	if _, err := b.Apply(t.Context(), ocs.Change{Add: parseMap(t, "31>40")}); !errors.Is(err, ocs.ErrInterlock) {
		t.Errorf("err=%v, want ErrInterlock", err)
	}
	var busy *lab.BusyError
	if hosts, err := second.Fabric(t.Context(), lab.FabricOptions{}); !errors.As(err, &busy) {
		t.Errorf("err=%v, want BusyError", err)
		if err == nil {
			hosts.Close()
		}
	}
	_, err = lab.New(f, lab.Options{Emulated: true, StateDir: dir}).Switch(t.Context(), "rail0")
	if !errors.As(err, &busy) || busy.URL != a.Emulated.URL() || busy.Since.IsZero() || !strings.Contains(err.Error(), "ocslab show '"+busy.URL+"'") {
		t.Errorf("err=%v", err)
	}
	if err := errors.Join(second.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "emulated", "*", "*.offer")); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// Ensure nobody takes up the offer of a process that holds the lock no more: one that was
// killed leaves it.
func TestLab_JoinStale(t *testing.T) {
	f, dir := testbed(t), t.TempDir()
	opt := lab.Options{Emulated: true, StateDir: dir, Offer: true, Join: true}
	first := lab.New(f, opt)
	if _, err := first.Switch(t.Context(), "rail0"); err != nil {
		t.Fatal(err)
	}
	offers, _ := filepath.Glob(filepath.Join(dir, "emulated", "*", "rail0.json.offer"))
	if len(offers) != 1 {
		t.Fatalf("offers=%q", offers)
	}
	text, err := os.ReadFile(offers[0])
	if err := errors.Join(err, first.Close(), os.WriteFile(offers[0], text, 0o600)); err != nil {
		t.Fatal(err)
	}
	second := lab.New(f, lab.Options{Emulated: true, StateDir: dir, Join: true})
	defer second.Close()
	if sw, err := second.Switch(t.Context(), "rail0"); err != nil || sw.Emulated == nil {
		t.Fatalf("emulated here: %v, %v", sw, err)
	}
	if _, err := os.Stat(offers[0]); err == nil {
		t.Error("the offer is still there")
	}
}
