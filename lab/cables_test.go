package lab_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/drivers/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

const cableLab = `name: ring
switches:
  - {name: n1-r, emulate: {model: ocstrx-8x112g, seed: 1}}
  - {name: n2-l, emulate: {model: ocstrx-8x112g, seed: 2}}
  - {name: n2-r, emulate: {model: ocstrx-8x112g, seed: 3}}
  - {name: n3-l, emulate: {model: ocstrx-8x112g, seed: 4}}
cables:
  - {a: n1-r/1, b: n2-l/1, loss_db: 1.5}
  - {a: n2-r/1, b: n3-l/1, loss_db: 3}
  - {a: n1-r/2, b: n3-l/2}
`

// The cables of a lab, and what is planted in them.
func TestCables(t *testing.T) {
	t.Parallel()
	planted := strings.NewReplacer("b: n2-l/1, loss_db: 1.5", "b: n2-l/1, loss_db: .inf, emulate: {a: n2-r/1, b: n3-l/1}",
		"loss_db: 3}", "emulate: {a: n1-r/1, b: n2-l/1, dead: true}}").Replace(cableLab)
	for _, text := range []string{cableLab, planted} {
		f, err := lab.Parse("ring.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := lab.Parse("ring.yaml", f.YAML())
		if err != nil {
			t.Fatalf("%v\n%s", err, f.YAML())
		}
		if d := cmp.Diff(f, again, cmpopts.IgnoreTypes(lab.Pos{}), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		if f.Cables[0].Pos.Line != 8 {
			t.Errorf("the first cable is on line %d", f.Cables[0].Pos.Line)
		}
	}
	f, err := lab.Parse("ring.yaml", []byte(cableLab))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		at, far string
		loss    ocs.DB
	}{{"n1-r/1", "n2-l/1", 1.5}, {"n3-l/1", "n2-r/1", 3}, {"n3-l/2", "n1-r/2", 0}, {"n2-l/2", "", 0}} {
		var at lab.FibreRef
		if err := at.UnmarshalText([]byte(c.at)); err != nil {
			t.Fatal(err)
		}
		if far, loss, ok := f.Far(at); far.String() != c.far || loss != c.loss || ok != (c.far != "") {
			t.Errorf("%s leads to %v, %v, %v; want %s, %v", c.at, far, loss, ok, c.far, c.loss)
		}
	}
}

// lightAt is the power in dBm that lane 1 of a board has from a fibre.
func lightAt(t testing.TB, sw ocs.Switch, fibre int) float64 {
	t.Helper()
	trx, ok := ocs.As[*ocstrx.Switch](sw)
	if !ok {
		t.Fatal("no transceivers")
	}
	tel, err := trx.Telemetry(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rx := tel[0].Lanes[0].Rx1
	if fibre == 2 {
		rx = tel[0].Lanes[0].Rx2
	}
	return 10 * math.Log10(rx.Microwatts()/1000)
}

const lit = -10.0 // dBm; what light there is here is above

// connect has all lanes of a board send into a fibre.
func connect(t testing.TB, ctx context.Context, sw ocs.Switch, fibre int) error {
	t.Helper()
	var ccs []ocs.CrossConnect
	for lane := range ocs.Port(ocst.Lanes) {
		ccs = append(ccs, ocs.CrossConnect{Ingress: lane + 1, Egress: lane + 1 + ocst.Lanes*ocs.Port(fibre)})
	}
	_, err := ocs.Reconcile(ctx, sw, ocs.MustMap(ccs...), ocs.Update)
	return err
}

// Boards of an emulated lab are joined as the cables say, whichever is opened first; both ends
// are switched together through all that the lab stacks on a switch; and a board that dies
// takes the light with it, and the link.
func TestLab_Cables(t *testing.T) {
	t.Parallel()
	f, err := lab.Parse("ring.yaml", []byte(cableLab))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, StateDir: t.TempDir()})
	defer l.Close()
	open := func(name string) *lab.Opened {
		sw, err := l.Switch(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return sw
	}
	ends := []*lab.Opened{open("n2-l"), open("n1-r")}
	meet := ocs.NewRendezvous(len(ends))
	var all sync.WaitGroup
	for _, sw := range ends {
		all.Go(func() {
			if err := meet.Do(t.Context(), func(ctx context.Context) error { return connect(t, ctx, sw, 1) }); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, sw := range ends {
		if one, two := lightAt(t, sw, 1), lightAt(t, sw, 2); one < lit || two > lit {
			t.Errorf("%s has %.1f dBm from fibre 1, %.1f dBm from fibre 2", sw.Name, one, two)
		}
	}
	if err := ends[0].Emulated.SetPower(false); err != nil {
		t.Fatal(err)
	}
	if p := lightAt(t, ends[1], 1); p > lit {
		t.Errorf("the far end is dead, and brings %.1f dBm", p)
	}
	if _, err := ends[0].CrossConnects(t.Context()); err == nil {
		t.Error("the dead board answers")
	}
	if err := ends[0].Emulated.SetPower(true); err != nil {
		t.Fatal(err)
	}
	// One that is closed has taken its cables with it.
	if err := connect(t, t.Context(), open("n3-l"), 2); err != nil {
		t.Fatal(err)
	}
	if err := connect(t, t.Context(), ends[1], 2); err != nil {
		t.Fatal(err)
	}
	if p := lightAt(t, open("n3-l"), 2); p < lit {
		t.Errorf("%.1f dBm by the third cable", p)
	}
	if err := ends[1].Emulated.Close(); err != nil {
		t.Fatal(err)
	}
	if p := lightAt(t, open("n3-l"), 2); p > lit {
		t.Errorf("%.1f dBm from a board that is gone", p)
	}
}

// What is planted in a cable is there in the emulation.
func TestLab_PlantedCables(t *testing.T) {
	t.Parallel()
	swapped := strings.NewReplacer("loss_db: 1.5}", "emulate: {b: n3-l/1}}", "b: n3-l/1, loss_db: 3}", "b: n3-l/1, emulate: {b: n2-l/1}}",
		"b: n3-l/2}", "b: n3-l/2, emulate: {dead: true}}").Replace(cableLab)
	f, err := lab.Parse("ring.yaml", []byte(swapped))
	if err != nil {
		t.Fatal(err)
	}
	cabling := f.Cabling()
	switches := map[string]ocs.Switch{}
	for _, s := range f.Switches {
		e, err := f.Emulation(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		e.Cabling = cabling
		r, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if switches[s.Name], err = drivers.Open(t.Context(), r.URL(), drivers.Options{}); err != nil {
			t.Fatal(err)
		}
		defer switches[s.Name].Close()
	}
	if err := connect(t, t.Context(), switches["n1-r"], 1); err != nil {
		t.Fatal(err)
	}
	if here, there := lightAt(t, switches["n2-l"], 1), lightAt(t, switches["n3-l"], 1); here > lit || there < lit {
		t.Errorf("swapped cables bring %.1f dBm to n2-l, %.1f dBm to n3-l", here, there)
	}
	if err := connect(t, t.Context(), switches["n1-r"], 2); err != nil {
		t.Fatal(err)
	}
	if p := lightAt(t, switches["n3-l"], 2); p > lit {
		t.Errorf("a dead cable brings %.1f dBm", p)
	}
}

// What only the emulation can know: how many modules a board of a file has.
func TestLab_CablesDiffer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "four.yaml"), []byte("model: four\nmodules: 4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(cableLab, "model: ocstrx-8x112g, seed: 2", "model: four.yaml", 1)
	f, err := lab.Parse(filepath.Join(dir, "ring.yaml"), []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true})
	defer l.Close()
	if _, err := l.Switch(t.Context(), "n1-r"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := l.Switch(t.Context(), "n2-l"); err == nil || !strings.Contains(err.Error(), "line 8: cable from n1-r to n2-l: one has 1 modules, the other 4") {
			t.Fatalf("got %v", err)
		}
	}
	matrix := &lab.Emulation{}
	*matrix, err = lab.EmulationOf("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	r, err := matrix.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.SetPower(false); !errors.Is(err, ocs.ErrNotSupported) {
		t.Errorf("taking power from a matrix: %v", err)
	}
}
