package cost_test

import (
	"errors"
	"math"
	"testing"

	"github.com/ocslab/ocslab/topology/infinitehbd/cost"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: got %.6g, want %.6g ± %.2g", what, got, want, within)
	}
}

// TestTable is tables 6 and 8 of the paper, but for the power of NVL-36x2, which is what its parts come to.
func TestTable(t *testing.T) {
	for _, x := range []struct {
		name                            string
		dollars, watts, perGB, wattsPer float64
	}{
		{cost.TPUv4, 1567.20, 19.39, 5.22, .065},
		{cost.NVL36, 9563.20, 75.95, 10.63, .084},
		{cost.NVL72, 9563.20, 75.95, 10.63, .084},
		{cost.NVL362, 17924.00, 152.12, 19.92, .169},
		{cost.NVL576, 30417.60, 413.45, 33.80, .459},
		{cost.HPN, 1042.49, 90.75, 20.85, 1.815},
		{cost.K2, 2626.80, 48.10, 3.28, .060},
		{cost.K3, 3740.60, 72.05, 4.68, .090},
	} {
		b, err := cost.Find(x.name)
		if err != nil {
			t.Fatal(err)
		}
		near(t, x.name+" $", b.Dollars(), x.dollars, 0.006)
		near(t, x.name+" W", b.Watts(), x.watts, 0.006)
		near(t, x.name+" $/GBps", b.DollarsPerGBps(), x.perGB, 0.006)
		near(t, x.name+" W/GBps", b.WattsPerGBps(), x.wattsPer, 0.0006)
		near(t, x.name+" as printed", b.Dollars(), b.PaperDollars, 0.006)
		if x.name != cost.NVL362 {
			near(t, x.name+" as printed", b.Watts(), b.PaperWatts, 0.006)
		}
	}
}

// TestRatios are those that the paper's abstract gives: of NVL and TPUv4, for each GB/s.
func TestRatios(t *testing.T) {
	find := func(name string) cost.Bill {
		b, err := cost.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	k2, nvl, tpu := find(cost.K2).DollarsPerGBps(), find(cost.NVL72).DollarsPerGBps(), find(cost.TPUv4).DollarsPerGBps()
	near(t, "of NVL-72", k2/nvl, 0.3086, 0.0005)
	near(t, "of TPUv4", k2/tpu, 0.6284, 0.0005)
	near(t, "NVL-72", nvl/k2, 3.24, 0.005)
	near(t, "TPUv4", tpu/k2, 1.59, 0.005)
}

func TestBreakEven(t *testing.T) {
	e, err := cost.BreakEven(28_400, 8, 0.5)
	if err != nil || !e.Exists {
		t.Fatalf("%+v, %v", e, err)
	}
	near(t, "break even", e.Dead, 0.121, 0.0005)
	if e, err := cost.BreakEven(1, 8, 0.5); err != nil || e.Exists {
		t.Errorf("GPUs for nothing: %+v, %v", e, err)
	}
	for _, x := range []struct {
		price float64
		m     int
		most  float64
	}{{0, 8, .5}, {math.NaN(), 8, .5}, {math.Inf(1), 8, .5}, {1, 0, .5}, {1, 8, 0}, {1, 8, 2}} {
		if _, err := cost.BreakEven(x.price, x.m, x.most); !errors.Is(err, cost.ErrArgument) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	if _, err := cost.Find("NVL-1"); !errors.Is(err, cost.ErrArgument) {
		t.Error(err)
	}
}
