package emulator_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

var inf = math.Inf(1)

// Ensure that what is planted is seen as insertion loss between the monitors, adds up, and
// concerns the paths it is planted in only.
func TestLosses(t *testing.T) {
	for name, test := range map[string]struct {
		ports map[ocs.Port]float64
		paths map[emulator.Path]float64
		want  float64
	}{
		"none":     {want: 0},
		"ingress":  {ports: map[ocs.Port]float64{1: 3}, want: 3},
		"egress":   {ports: map[ocs.Port]float64{5: 4}, want: 4},
		"path":     {paths: map[emulator.Path]float64{{Ingress: 1, Egress: 5}: 2}, want: 2},
		"all":      {map[ocs.Port]float64{1: 3, 5: 4}, map[emulator.Path]float64{{Ingress: 1, Egress: 5}: 2}, 9},
		"others":   {map[ocs.Port]float64{2: 3, 6: inf}, map[emulator.Path]float64{{Ingress: 2, Egress: 5}: inf}, 0},
		"dark":     {ports: map[ocs.Port]float64{5: inf}, want: inf},
		"darkpath": {paths: map[emulator.Path]float64{{Ingress: 1, Egress: 5}: inf}, want: inf},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := exact("4x4")
			p.Optics.LossSpread = 0
			p.Optics.PortLoss, p.Optics.PathLoss = test.ports, test.paths
			d := newDevice(t, p, emulator.Options{})
			connect(t, d, "1>5")
			time.Sleep(time.Second)
			in, out := d.Power(1), d.Power(5)
			if in != 0 {
				t.Errorf("%s: the ingress monitor reads %v: the fault is behind it", name, in)
			}
			want := ocs.DBm(-1.5 - test.want)
			if math.IsInf(test.want, 1) {
				want = -60
			}
			if math.Abs(float64(out-want)) > 1e-4 {
				t.Errorf("%s: %v leaves, want %v", name, out, want)
			}
		})
	}
}

// Ensure that circuits that are up lose their light when a fault is planted, get it back
// when it is taken away, and that the truth log tells both.
func TestSetLoss(t *testing.T) {
	one := ocs.CrossConnect{Ingress: 1, Egress: 5}
	for name, set := range map[string]func(d *emulator.Device, extra ocs.DB) error{
		"ingress": func(d *emulator.Device, extra ocs.DB) error { return d.SetPortLoss(1, extra) },
		"egress":  func(d *emulator.Device, extra ocs.DB) error { return d.SetPortLoss(5, extra) },
		"path":    func(d *emulator.Device, extra ocs.DB) error { return d.SetPathLoss(one, extra) },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := exact("4x4")
			p.Optics.LossSpread = 0
			d := newDevice(t, p, emulator.Options{Name: "rail0"})
			connect(t, d, "1>5,2>6")
			time.Sleep(time.Second)
			_, since := d.Truth(0)
			for _, extra := range []ocs.DB{3, ocs.DB(inf), ocs.DB(inf), 1, 0} {
				if err := set(d, extra); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if got, want := d.Power(5), max(-1.5-ocs.DBm(extra), -60); math.Abs(float64(got-want)) > 1e-4 {
					t.Errorf("%s: with %v more: %v, want %v", name, extra, got, want)
				}
				if d.Power(6) < -2 {
					t.Errorf("%s: another circuit has %v", name, d.Power(6))
				}
			}
			if d.CrossConnects().Len() != 2 {
				t.Errorf("%s: %v", name, d.CrossConnects())
			}
			marks, _ := d.Truth(since)
			var told []string
			for _, m := range marks {
				told = append(told, string(m.Stage)+" "+m.Subject)
			}
			if got := strings.Join(told, ", "); got != "dark rail0/5, light rail0/5" {
				t.Errorf("%s: the truth log has %s", name, got)
			}
		})
	}
}

// Ensure that what a personality plants can be taken away, and that devices do not share it.
func TestSetLoss_OfPersonality(t *testing.T) {
	p := exact("4x4")
	p.Optics.PortLoss = map[ocs.Port]float64{1: inf}
	synctest.Test(t, func(t *testing.T) {
		a, b := newDevice(t, p, emulator.Options{}), newDevice(t, p, emulator.Options{})
		if err := a.SetPortLoss(1, 0); err != nil {
			t.Fatal(err)
		}
		connect(t, a, "1>5")
		connect(t, b, "1>5")
		time.Sleep(time.Second)
		if a.Power(5) < -3 || b.Power(5) > -50 {
			t.Errorf("%v, %v: want light of the first only", a.Power(5), b.Power(5))
		}
	})
}

func TestSetLoss_Refused(t *testing.T) {
	d := newDevice(t, exact("4x4"), emulator.Options{})
	for _, extra := range []ocs.DB{-1, ocs.DB(math.NaN()), ocs.DB(math.Inf(-1))} {
		if d.SetPortLoss(1, extra) == nil || d.SetPathLoss(ocs.CrossConnect{Ingress: 1, Egress: 5}, extra) == nil {
			t.Errorf("%v is accepted", extra)
		}
	}
	if err := d.SetPortLoss(9, 1); !errors.Is(err, ocs.ErrPort) {
		t.Errorf("port 9: %v", err)
	}
	for _, c := range []ocs.CrossConnect{{Ingress: 1, Egress: 2}, {Ingress: 5, Egress: 1}, {Ingress: 0, Egress: 5}, {Ingress: 1, Egress: 9}} {
		if err := d.SetPathLoss(c, 1); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}

func TestParsePersonality_Losses(t *testing.T) {
	with := func(optics string) ([]byte, string) {
		return []byte(strings.Replace(minimal, "loss_max_db: 2", "loss_max_db: 2, "+optics, 1)), optics
	}
	text, _ := with("port_loss_db: {1: 3, 8: .inf}, path_loss_db: {1>5: 4.5, '2>6': .inf}")
	p, err := emulator.ParsePersonality("f", text)
	if err != nil {
		t.Fatal(err)
	}
	if o := p.Optics; o.PortLoss[1] != 3 || o.PortLoss[8] != inf || o.PathLoss[emulator.Path{Ingress: 1, Egress: 5}] != 4.5 || o.PathLoss[emulator.Path{Ingress: 2, Egress: 6}] != inf {
		t.Errorf("%+v", o)
	}
	for optics, want := range map[string]string{
		"port_loss_db: {9: 3}":              "port 9 is not a port",
		"port_loss_db: {0: 3}":              "port 0 is not a port",
		"port_loss_db: {one: 3}":            `want a whole number, found "one"`,
		"port_loss_db: {1: 3, '1': 4}":      "twice",
		"port_loss_db: {1: -3}":             "0 to 60",
		"port_loss_db: {1: 61}":             "0 to 60",
		"path_loss_db: {1>5: 61}":           "optics.path_loss_db: 1>5: 61 dB: want 0 to 60",
		"port_loss_db: {1: .nan}":           "want a number",
		"port_loss_db: {1: -.inf}":          "want a number",
		"port_loss_db: {1: '.inf'}":         "remove the quotes",
		"path_loss_db: {5>1: 3}":            "not an ingress port",
		"path_loss_db: {1: 3}":              "want INGRESS>EGRESS",
		"path_loss_db: {'1>5,2>6': 3}":      "want INGRESS>EGRESS",
		"path_loss_db: {1>5: 3, 01>5: 3}":   "01>5",
		"path_loss_db: {1>5: 3, '1>5 ': 3}": "there twice",
		"launch_dbm: 1e308":                 "not within -200 to 200",
		"loss_spread_db: 201":               "not within -200 to 200",
		"launch_dbm: .inf":                  "want a number",
	} {
		text, _ := with(optics)
		if _, err := emulator.ParsePersonality("f", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", optics, err, want)
		}
	}
}
