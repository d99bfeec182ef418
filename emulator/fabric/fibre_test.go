package fabric_test

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/linkmon/optics"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline/dist"
)

// total is the light of all lanes of a fibre.
func total(lanes []ocs.DBm) ocs.DBm {
	mw := 0.0
	for _, p := range lanes {
		mw += p.Milliwatts()
	}
	return ocs.Milliwatts(mw)
}

// module returns what the module of a host launches and receives, as a tool reads it.
func module(t *testing.T, f *fabric.Fabric, host string) (tx, rx ocs.DBm) {
	t.Helper()
	for _, h := range f.Hosts() {
		if h.Name != host {
			continue
		}
		r, err := optics.OpenFile(filepath.Join(h.Root, "module", "ens1f0", "eeprom"))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		s := optics.Sampler{Reader: r}
		lanes, err := s.Transmit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sample, err := s.Sample(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return total(lanes), total(sample.Lanes)
	}
	t.Fatalf("there is no host %s", host)
	return 0, 0
}

func near(a, b ocs.DBm) bool { return math.Abs(float64(a-b)) < 0.1 }

// Ensure that what fibres lose shows where it is lost: before the switch at its monitors,
// behind it at the receiver, and never in what the module launches.
func TestFibres(t *testing.T) {
	d, cfg := pairOfHosts(t, 3)
	cfg.Rung = fabric.Memory
	cfg.NICs[0].TxLoss = 3 // gpu1
	cfg.NICs[1].RxLoss = 4 // gpu2
	cfg.NICs[2].TxLoss = ocs.DB(math.Inf(1))
	f := start(t, cfg)
	connect(t, d, "1>5,2>6,3>4") // gpu1 to gpu2 to gpu3 to gpu1
	waitCarrier(t, f, true, "gpu2", "gpu3")
	received := func(host string, want ocs.DBm) {
		t.Helper()
		wait(t, host+" receives "+want.String(), func() bool {
			_, rx := module(t, f, host)
			return near(rx, want) || math.IsInf(float64(want), -1) && rx == want
		})
	}
	loss := d.Power(3 + 3).Sub(d.Power(2)) // of 2>6, negative
	received("gpu3", ocs.DBm(loss))
	received("gpu2", d.Power(5).Add(-4))
	received("gpu1", ocs.DBm(math.Inf(-1)))
	for port, want := range map[ocs.Port]ocs.DBm{1: -3, 2: 0, 3: -60} {
		if got := d.Power(port); !near(got, want) {
			t.Errorf("%v enters at port %d, want %v", got, port, want)
		}
	}
	for _, host := range []string{"gpu1", "gpu2", "gpu3"} {
		if tx, _ := module(t, f, host); !near(tx, 0) {
			t.Errorf("%s launches %v, want 0 dBm whatever its fibre loses", host, tx)
		}
	}
	if hasCarrier(t, f, "gpu1") {
		t.Error("gpu1 has a carrier of a dead fibre")
	}

	// A fault that comes while the circuits are up takes the link, and its end brings it back.
	if err := d.SetPortLoss(1, 20); err != nil {
		t.Fatal(err)
	}
	waitCarrier(t, f, false, "gpu2")
	if err := d.SetPortLoss(1, 0); err != nil {
		t.Fatal(err)
	}
	waitCarrier(t, f, true, "gpu2")
}

// Ensure that a receiver that gets less light than it needs has no link, whichever fibre
// loses it.
func TestFibres_BelowSensitivity(t *testing.T) {
	for name, losses := range map[string][2]ocs.DB{"tx": {17, 0}, "rx": {0, 17}, "both": {9, 9}, "dead": {0, ocs.DB(math.Inf(1))}} {
		d, cfg := pairOfHosts(t, 2)
		cfg.Rung = fabric.Memory
		cfg.NICs[0].TxLoss, cfg.NICs[1].RxLoss = losses[0], losses[1]
		f := start(t, cfg)
		connect(t, d, "1>4,2>3")
		waitCarrier(t, f, true, "gpu1") // the other way is fine
		if hasCarrier(t, f, "gpu2") {
			t.Errorf("%s: gpu2 has a carrier", name)
		}
	}
}

// Ensure that the fibre of a NIC that is plugged in loses light, too.
func TestFibres_Hotplug(t *testing.T) {
	d, cfg := pairOfHosts(t, 2)
	cfg.Rung = fabric.Memory
	f := start(t, cfg)
	if err := f.Remove("gpu1", "ens1f0"); err != nil {
		t.Fatal(err)
	}
	n := cfg.NICs[0]
	n.TxLoss = 5
	if err := f.Add(n); err != nil {
		t.Fatal(err)
	}
	wait(t, "-5 dBm at port 1", func() bool { return near(d.Power(1), -5) })
}

func TestFibres_Refused(t *testing.T) {
	for _, loss := range []float64{-1, math.NaN(), math.Inf(-1)} {
		_, cfg := pairOfHosts(t, 2)
		cfg.Rung = fabric.Memory
		cfg.NICs[0].RxLoss = ocs.DB(loss)
		if f, err := fabric.Start(cfg); err == nil || !strings.Contains(err.Error(), "want 0 or more") {
			t.Errorf("%v: %v", loss, err)
			f.Close()
		}
	}
}

// Ensure that firmware whose times have several modes shows them.
func TestFirmware_Modes(t *testing.T) {
	d, cfg := pairOfHosts(t, 2)
	cfg.Rung = fabric.Memory
	p := quick
	p.Train.Median = 0
	p.Train.Modes = dist.Mixture{{Share: 1, Median: 2 * ms}, {Share: 1, Median: 60 * ms}}
	for i := range cfg.NICs {
		cfg.NICs[i].Profile = p
	}
	f := start(t, cfg)
	fast, slow := 0, 0
	for i := 0; i < 40 && (fast == 0 || slow == 0); i++ {
		connect(t, d, "1>4")
		waitCarrier(t, f, true, "gpu2")
		disconnect(t, d, 1)
		waitCarrier(t, f, false, "gpu2")
		var light int64
		for _, m := range marksOf(f, "gpu2/ens1f0") {
			switch m.Stage {
			case "light":
				light = m.Latest
			case "firmware":
				if m.Latest-light < int64(2*ms+60*ms) { // detect, and the slower mode
					fast++
				} else {
					slow++
				}
			}
		}
	}
	if fast == 0 || slow == 0 {
		t.Errorf("%d fast and %d slow link-ups", fast, slow)
	}
}
