package ocstrx

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The models that come with ocslab are the defaults, on boards of one and of eight.
func TestModels(t *testing.T) {
	t.Parallel()
	want := map[string]int{"ocstrx-8x112g": 1, "ocstrx-8x112g-x8": 8}
	if len(Models()) != len(want) {
		t.Errorf("the models are %v, want %v", Models(), want)
	}
	for _, name := range Models() {
		p, err := LoadPersonality(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Model != name || p.Modules != want[name] || !p.Trigger || !p.Plate || p.Description == "" {
			t.Errorf("%s is %+v", name, p)
		}
		if p.Params != DefaultParams() {
			t.Errorf("%s does not have the default parameters", name)
		}
	}
}

func TestLoadPersonalityFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(path, []byte("model: mine\nmodules: 3\ndevice:\n  tau: 20us\n  launch_mw: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := LoadPersonality(path)
	if err != nil {
		t.Fatal(err)
	}
	if p.Modules != 3 || p.Trigger || p.Tau.Microseconds() != 20 || p.Launch != 1 || p.PowerPi != 22 {
		t.Errorf("it is %+v", p)
	}
	if _, err := LoadPersonality(path + ".missing.yaml"); err == nil {
		t.Error("a file that is not there is no error")
	}
}

func TestBadPersonalities(t *testing.T) {
	t.Parallel()
	if _, err := LoadPersonality("ocstrx"); err == nil || !strings.Contains(err.Error(), "ocstrx-8x112g-x8") {
		t.Errorf("an unknown model: the error is %v, want one that lists the models", err)
	}
	if _, err := LoadPersonality("../params"); err == nil {
		t.Error("a model outside of the folder is found")
	}
	for text, want := range map[string]string{
		"":                                   "",
		"model: x":                           "modules",
		"model: x\nmodules: 0":               "modules: 0 is outside 1 to 16",
		"model: x\nmodules: 17":              "modules: 17",
		"model: ''\nmodules: 1":              "model",
		"model: x\nmodules: 1\ncolour: blue": "f.yaml:3:1",
		"model: x\nmodules: 1\ndevice: {tau: 15}":           "f.yaml:3:",
		"model: x\nmodules: 1\ndevice: {noise: -1}":         "device.noise: -1 is outside",
		"model: x\nmodules: 1\ndevice: {tau: 1h}":           "device.tau: 1h0m0s is outside",
		"model: x\nmodules: 1\ndevice: {tau: 1ms}":          "device.tau_slow: 1ms is outside 2ms",
		"model: x\nmodules: 1\ndevice: {coupling_min: 0.1}": "device.coupling_max: 0.05 is outside 0.1",
	} {
		if _, err := ParsePersonality("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", text, err, want)
		}
	}
}

// A personality that is taken makes a chip that works, or is refused: never a panic.
func FuzzPersonality(f *testing.F) {
	f.Add([]byte("model: x\nmodules: 1\ndevice: {tau: 20us}"))
	f.Add([]byte("model: x\nmodules: 1\ndevice: {tau_slow: 31us, slow_weight: 0.5, thermal_spread: 0.2}"))
	f.Add([]byte("model: x\nmodules: 1\ndevice: {coupler_spread: 0.15, launch_mw: 0, tap: 0.5}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePersonality("f.yaml", data)
		if err != nil {
			return
		}
		c := newChip(p.Params, 1)
		c.light(0, 0xff)
		c.set(0, 3, 0, 3)
		c.read(1000)
		if err := c.factoryTable("S", time.Unix(1e9, 0)).Check(); err != nil {
			t.Error(err)
		}
	})
}
