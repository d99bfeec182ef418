package emulator_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
)

const minimal = `model: m
vendor: v
product: p
firmware: f
size: 4x4
switching: {single: 50ms}
optics: {loss_db: 1, loss_max_db: 2}
`

func TestModels(t *testing.T) {
	if n := len(emulator.Models()); n < 5 {
		t.Fatalf("%d models", n)
	}
	for _, name := range emulator.Models() {
		p, err := emulator.LoadPersonality(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if p.Model != name {
			t.Errorf("model=%s, want %s as the file is called", p.Model, name)
		}
		if g := newDevice(t, p, emulator.Options{}).Geometry().String(); !strings.HasSuffix(name, g) && !slices.Contains([]string{"fast-mems-25ms", "calient-s162", "calient-s320"}, name) {
			t.Errorf("%s: geometry %s", name, g)
		}
	}
}

func TestLoadPersonality(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte(minimal), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := emulator.LoadPersonality(path)
	if err != nil {
		t.Fatal(err)
	}
	if p.Switching.Bulk != 50*time.Millisecond || p.Switching.Rise != 500*time.Microsecond || p.Switching.Ack != emulator.AckAfter ||
		p.Control.Busy != emulator.Takeover || p.Control.Boot != ocs.BootRestore || p.Control.Reboot != 65*time.Second ||
		p.Monitors.Sides != emulator.MonitorsBoth || p.Monitors.Default != 4 || p.Control.Users[0].Name != "admin" {
		t.Errorf("defaults: %+v", p)
	}
	for _, name := range []string{path + ".yaml", "no-such-model"} {
		if _, err := emulator.LoadPersonality(name); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("LoadPersonality(%s): error %v", name, err)
		}
	}
}

func TestParsePersonality_Errors(t *testing.T) {
	for _, test := range []struct{ add, want string }{
		{"speed: 3\n", "speed"},
		{"control: {busy: maybe}\n", "takeover"},
		{"control: {boot: maybe}\n", "boot"},
		{"control: {reboot: 2h}\n", "control.reboot"},
		{"control: {failed_ports: [9]}\n", "port 9"},
		{"control: {max_pairs: -1}\n", "max_pairs"},
		{"control: {users: [{name: a, group: user}]}\n", "administrator"},
		{"control: {users: [{name: a, group: root}]}\n", "ADMIN"},
		{"control: {users: [{name: a, group: admin}, {name: a, group: view}]}\n", "two accounts"},
		{"control: {users: [{name: a b, group: admin}]}\n", "a b"},
		{"monitors: {averaging: 9}\n", "averaging"},
		{"monitors: {noise_db: -1}\n", "negative"},
		{"monitors: {sides: left}\n", "egress"},
		{"tl1: {sid: this-is-much-too-long-a-name}\n", "sid"},
		{"tl1: {idle: -1s}\n", "tl1.idle"},
		{"tl1: {max_sessions: -1}\n", "max_sessions"},
	} {
		_, err := emulator.ParsePersonality("file.yaml", []byte(minimal+test.add))
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "file.yaml") {
			t.Errorf("%s: error %v, want one with %q", test.add, err, test.want)
		}
	}
	for _, test := range []struct{ old, new string }{
		{"4x4", "4by4"}, {"loss_max_db: 2", "loss_max_db: 0.5"}, {"loss_db: 1", "loss_db: 1, loss_spread_db: -1"},
		{"single: 50ms", "single: 50ms, ack: never"}, {"vendor: v", "vendor: v,w"}, {"single: 50ms", "single: -1s"},
	} {
		if _, err := emulator.ParsePersonality("f", []byte(strings.Replace(minimal, test.old, test.new, 1))); err == nil {
			t.Errorf("%s is accepted", test.new)
		}
	}
}

// Ensure that a personality made by hand is checked, too.
func TestNew_ChecksPersonality(t *testing.T) {
	for name, spoil := range map[string]func(*emulator.Personality){
		"Ack":    func(p *emulator.Personality) { p.Switching.Ack = "never" },
		"Busy":   func(p *emulator.Personality) { p.Control.Busy = "" },
		"Failed": func(p *emulator.Personality) { p.Control.Failed = []uint32{99} },
		"Group":  func(p *emulator.Personality) { p.Control.Users = append(p.Control.Users, emulator.User{Name: "x"}) },
	} {
		p := exact("4x4")
		spoil(&p)
		if _, err := emulator.New(p, emulator.Options{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// FuzzParsePersonality checks that whatever is accepted makes a device.
func FuzzParsePersonality(f *testing.F) {
	f.Add([]byte(minimal))
	for _, name := range emulator.Models() {
		data, err := os.ReadFile(filepath.Join("personalities", name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(minimal + "control: {users: [{name: a, group: admin}], failed_ports: [1], max_pairs: 3}\ntl1: {sid: x, idle: 1m}\n"))
	f.Add([]byte(strings.NewReplacer("single: 50ms", "modes: [{share: 1, median: 5ms}], paths: [{path: 1>5, modes: [{share: 2, median: 1ms, spread: 9ms}]}]",
		"loss_max_db: 2", "loss_max_db: 2, port_loss_db: {1: 3, 5: .inf}, path_loss_db: {1>6: 4}").Replace(minimal)))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := emulator.ParsePersonality("fuzz.yaml", data)
		if err != nil {
			return
		}
		text, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := emulator.ParsePersonality("again.yaml", text); err != nil || !cmp.Equal(p, again, cmpopts.EquateEmpty()) {
			t.Fatalf("read again: %v\n%s\n%s", err, cmp.Diff(p, again), text)
		}
		d := newDevice(t, p, emulator.Options{})
		in, out := d.Geometry().IngressPorts()[0], d.Geometry().EgressPorts()
		if _, err := d.Connect([]ocs.CrossConnect{{Ingress: in, Egress: out[len(out)-1]}}); err == nil && d.CrossConnects().Len() != 1 {
			t.Errorf("map %v", d.CrossConnects())
		}
		for _, n := range []ocs.Port{in, out[0]} {
			if x := d.Power(n); x != x {
				t.Errorf("power of port %d is not a number", n)
			}
		}
	})
}
