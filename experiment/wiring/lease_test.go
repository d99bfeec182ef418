package wiring_test

import (
	"errors"
	"testing"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/experiment/wiring"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/lab/labtest"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/ocs"
)

// All ports that are lit are leased from the first change to the end, and ports that others have
// leased are left out; when somebody takes one in between, nothing is moved.
func TestTestbed_Leases(t *testing.T) {
	const text = "switches: [{name: rail0, emulate: {model: polatis-6000-voa-16x16, switching: 1ms}}]\n" +
		"hosts: [{name: gpu1, nics: [{name: ens1f0, tx: rail0/1, rx: rail0/17}]}]\n"
	f, err := lab.Parse("lab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ctx, dir := t.Context(), t.TempDir()
	auth := labtest.Around(lab.Files(dir))
	l := lab.New(f, lab.Options{Emulated: true, Authority: auth})
	t.Cleanup(func() { l.Close() })
	sw, err := l.Switch(ctx, "rail0")
	if err != nil {
		t.Fatal(err)
	}
	take := func(p ocs.Port) (*lease.Held, error) { // as another program does
		return lease.Take(ctx, dir, lease.Lease{Device: sw.Device, Switch: "rail0", Ports: []ocs.Port{p}, Holder: "job other"})
	}
	auth.Lease(sw.Device, 5, 20)
	bed, err := wiring.OpenTestbed(ctx, l, wiring.TestbedOptions{Fabric: lab.FabricOptions{Rung: fabric.Memory, Seed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer bed.Close()
	if got := bed.Options().LeftOut; len(got) != 2 || got[0].Port.Port != 5 || got[1].Port.Port != 20 {
		t.Errorf("left out: %+v, want ports 5 and 20", got)
	}
	want := map[string]ocs.Map{"rail0": ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 17})}
	release := auth.Lease(sw.Device, 32)
	if err := bed.Set(ctx, want); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("Set while port 32 is leased: %v, want ErrLeased", err)
	}
	if have, err := sw.CrossConnects(ctx); err != nil || have.Len() > 0 {
		t.Errorf("circuits %v, %v; want none", have, err)
	}
	release()
	if err := bed.Set(ctx, want); err != nil {
		t.Fatal(err)
	}
	if _, err := take(32); !errors.Is(err, lease.ErrLeased) {
		t.Errorf("a lease on a port in question: %v, want ErrLeased", err)
	}
	// What somebody else connects is not taken away.
	other := ocs.CrossConnect{Ingress: 3, Egress: 30}
	if _, err := sw.Apply(ctx, ocs.Change{Add: ocs.MustMap(other)}); err != nil {
		t.Fatal(err)
	}
	if err := bed.Set(ctx, nil); !errors.Is(err, ocs.ErrConflict) {
		t.Errorf("Set with a circuit of somebody else's: %v, want ErrConflict", err)
	}
	if err := bed.Close(); err != nil {
		t.Error(err)
	}
	if have, err := sw.CrossConnects(ctx); err != nil || have.Len() != 1 || !have.Has(other) {
		t.Errorf("circuits %v, %v; want %v", have, err, other)
	}
	after, err := take(32)
	if err != nil {
		t.Fatalf("a lease after the end: %v", err)
	}
	_ = after.Release()
}
