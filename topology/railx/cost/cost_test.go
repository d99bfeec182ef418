package cost_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/topology/railx/cost"
)

// The totals of tables 3 and 6, million dollars, and the counts they consist of.
func TestTable(t *testing.T) {
	want := []struct {
		name                          string
		chips, switches, ends, copper int
		millions, perInjection        float64
	}{
		{"fat tree, 2 tiers", 2048, 3456, 294912, 0, 415.872, 1},
		{"fat tree, 4 tiers", 196608, 774144, 56623104, 0, 83718.144, 2.0970},
		{"fat tree, 3 tiers, tapered 7:1", 200704, 149760, 16809984, 0, 22051.584, 0.5411},
		{"fat trees in two dimensions", 4096, 2304, 294912, 0, 375.552, 0.4515},
		{"HammingMesh, 4 x 4 boards, 1 tier", 16384, 2304, 294912, 0, 375.552, 0.1129},
		{"HammingMesh, 7 x 7 boards, 1 tier", 50176, 4032, 516096, 0, 657.216, 0.0645},
		{"HammingMesh, 7 x 7 boards, 2 tiers", 200704, 48384, 4128768, 0, 5822.208, 0.1429},
		{"torus in three dimensions", 4096, 0, 36864, 30720, 44.544, 0.0536},
		{"TPUv4", 4096, 288, 36864, 30720, 54.624, 0.0657},
		{"RailX, 128 ports, m = 4", 65536, 4608, 589824, 0, 751.104, 0.0564},
		{"RailX, 128 ports, m = 7", 200704, 8064, 1032192, 0, 1314.432, 0.0323},
	}
	rows := cost.Table()
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, w := range want {
		r := rows[i]
		if r.Name != w.name || r.Chips != w.chips || r.Switches != w.switches || r.Ends != w.ends || r.Copper != w.copper {
			t.Errorf("row %d: got %v, want %+v", i, r.Bill, w)
		}
		if got := r.Dollars() / 1e6; math.Abs(got-w.millions) > 0.0005 {
			t.Errorf("%s: got %.4f M$, want %.3f", r.Name, got, w.millions)
		}
		if got := r.PerInjection(); math.Abs(got-w.perInjection) > 0.00005 {
			t.Errorf("%s: got %.5f for an injection, want %.4f", r.Name, got, w.perInjection)
		}
		off := math.Abs(r.Dollars()/r.PaperDollars - 1)
		if explained := r.Note != "" && (w.switches == 288 || w.switches == 0); off > 0.001 && !explained {
			t.Errorf("%s: got %.1f M$, the paper has %.1f, and nothing says why", r.Name, r.Dollars()/1e6, r.PaperDollars/1e6)
		}
	}
}

// The ratios that the paper prints of RailX.
func TestRailX_Ratios(t *testing.T) {
	for _, w := range []struct {
		mesh                       int
		injection, global, portion float64
	}{{4, 0.0564, 0.4515, 0.125}, {7, 0.0323, 0.4515, 1. / 14}} {
		b, err := cost.RailX(128, w.mesh)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(b.PerInjection()-w.injection) > 5e-5 || math.Abs(b.PerGlobal()-w.global) > 5e-5 || math.Abs(b.Portion-w.portion) > 1e-9 {
			t.Errorf("m = %d: got %.4f, %.4f, %.4f, want %+v", w.mesh, b.PerInjection(), b.PerGlobal(), b.Portion, w)
		}
	}
}

// The paper's row of TPUv4 adds up with 4032 switches, and not with the 288 it names.
func TestTPUv4(t *testing.T) {
	for switches, want := range map[int]float64{0: 44.5, 288: 54.6, 4032: 185.7} {
		b, err := cost.TPUv4(switches)
		if err != nil {
			t.Fatal(err)
		}
		if got := b.Dollars() / 1e6; math.Abs(got-want) > 0.05 {
			t.Errorf("%d switches: got %.2f M$, want %.1f", switches, got, want)
		}
		if b.PerGlobal() != 0 {
			t.Errorf("%d switches: its bandwidth is not said, but costs %v", switches, b.PerGlobal())
		}
	}
}

func TestTaperedTree(t *testing.T) {
	full, err := cost.FatTree(3, 64*32*32)
	if err != nil {
		t.Fatal(err)
	}
	same, err := cost.TaperedTree(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	same.Name = full.Name
	if same != full {
		t.Errorf("tapered 1:1 got %v, want %v", same, full)
	}
	two, err := cost.TaperedTree(2, 3)
	if err != nil {
		t.Fatal(err)
	}
	if got := two.PerInjection(); two.Chips != 3072 || math.Abs(got-0.634) > 0.0005 || two.Portion != 1./3 {
		t.Errorf("3:1 got %v, %.4f, %.4f, want 3072 chips, 0.634, 0.333", two, got, two.Portion)
	}
}

func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		err  func() error
		text string
	}{
		"odd radix":   {func() error { _, err := cost.RailX(127, 4); return err }, "even"},
		"no mesh":     {func() error { _, err := cost.RailX(128, 0); return err }, "1 to 256"},
		"huge RailX":  {func() error { _, err := cost.RailX(1<<15, 1<<8); return err }, "at most"},
		"overflow":    {func() error { _, err := cost.RailX(math.MaxInt-1, 3); return err }, "at most"},
		"small tree":  {func() error { _, err := cost.FatTree(2, 2049); return err }, "another tier"},
		"no tiers":    {func() error { _, err := cost.FatTree(0, 8); return err }, "1 to 6 tiers"},
		"no chips":    {func() error { _, err := cost.FatTree(2, 0); return err }, "chips"},
		"taper":       {func() error { _, err := cost.TaperedTree(3, 4); return err }, "1, 3, 7"},
		"board":       {func() error { _, err := cost.HammingMesh(0, 1); return err }, "1 to 64"},
		"three tiers": {func() error { _, err := cost.HammingMesh(4, 3); return err }, "1 or 2 tiers"},
		"switches":    {func() error { _, err := cost.TPUv4(-1); return err }, "288"},
	} {
		if err := c.err(); !errors.Is(err, cost.ErrNetwork) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want ErrNetwork with %q", name, err, c.text)
		}
	}
}
