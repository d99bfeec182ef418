package lab_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/examples"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

func testbed(t *testing.T) *lab.File {
	t.Helper()
	f, err := lab.Parse("opus-testbed.yaml", examples.OpusTestbed)
	if err != nil {
		t.Fatal(err)
	}
	fast := time.Millisecond
	f.Switches[0].Emulate.Switching = &fast
	return f
}

func TestLab_Emulated(t *testing.T) {
	l := lab.New(testbed(t), lab.Options{Emulated: true})
	defer l.Close()
	sw, err := l.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := l.Switch(t.Context(), "rail0"); again != sw || err != nil {
		t.Errorf("opened twice: %v", err)
	}
	if !strings.HasPrefix(sw.Device, "emulated:opus-testbed-") || !strings.HasSuffix(sw.Device, "/rail0") {
		t.Errorf("Device=%q", sw.Device)
	}
	maps, err := l.File.Config("dp")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, maps["rail0"], ocs.Safe); err != nil {
		t.Fatal(err)
	}
	// Light enters where a NIC sends, and nowhere else.
	pm, ok := ocs.As[ocs.PowerMeter](sw)
	if !ok {
		t.Fatal("no power meter")
	}
	r, err := pm.Power(t.Context(), 1, 2, 3, 4, 5)
	if err != nil {
		t.Fatal(err)
	}
	if r.Ports[1] < -5 || r.Ports[5] > ocs.NoLight {
		t.Errorf("power=%v, want light at 1 and none at 5", r.Ports)
	}
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: parseMap(t, "31>40")}); !errors.Is(err, ocs.ErrInterlock) {
		t.Errorf("err=%v, want ErrInterlock", err)
	}
	if _, err := l.Switch(t.Context(), "rail9"); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("err=%v, want ErrUnknown", err)
	}
	truth, _ := sw.Emulated.Device.Truth(0)
	lights := 0
	for _, m := range truth {
		if m.Stage == timeline.Light {
			lights++
		}
	}
	if lights != 4 {
		t.Errorf("%d ports lit, want 4", lights)
	}
}

// Ensure an emulated switch keeps its circuits from one program to the next,
// and that two programs do not emulate one switch.
func TestLab_EmulatedMemory(t *testing.T) {
	f, dir := testbed(t), t.TempDir()
	opt := lab.Options{Emulated: true, StateDir: dir}
	l := lab.New(f, opt)
	sw, err := l.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, parseMap(t, "1>33"), ocs.Safe); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := lab.New(f, opt).Switch(ctx, "rail0"); err == nil || !strings.Contains(err.Error(), "in use by another") {
		t.Errorf("err=%v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = lab.New(f, opt)
	defer l.Close()
	if sw, err = l.Switch(t.Context(), "rail0"); err != nil {
		t.Fatal(err)
	}
	if m, err := sw.CrossConnects(t.Context()); m.String() != "1>33" || err != nil {
		t.Errorf("remembers %v, %v", m, err)
	}
}

// Ensure a damaged memory is an error that says where, and is left alone.
func TestLab_EmulatedMemoryDamaged(t *testing.T) {
	f, dir := testbed(t), t.TempDir()
	opt := lab.Options{Emulated: true, StateDir: dir}
	l := lab.New(f, opt)
	sw, err := l.Switch(t.Context(), "rail0")
	if err == nil {
		_, err = ocs.Reconcile(t.Context(), sw, parseMap(t, "1>33"), ocs.Safe)
	}
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	files, _ := filepath.Glob(filepath.Join(dir, "emulated", "*", "rail0.json"))
	if len(files) != 1 {
		t.Fatalf("files=%v", files)
	}
	for _, bad := range []string{"{", `{"v":9}`, `{"v":1,"size":"4x4"}`, `{"v":1,"size":"32x32","map":"1>99"}`} {
		if err := os.WriteFile(files[0], []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		l := lab.New(f, opt)
		for range 2 { // the first does not keep out the second
			if _, err := l.Switch(t.Context(), "rail0"); err == nil || !strings.Contains(err.Error(), "memory") {
				t.Errorf("%s: err=%v", bad, err)
			}
		}
		l.Close()
		if left, _ := os.ReadFile(files[0]); string(left) != bad {
			t.Errorf("%s was changed to %s", bad, left)
		}
	}
}

func TestLab_Real(t *testing.T) {
	p, err := emulator.LoadPersonality("fast-mems-25ms")
	if err != nil {
		t.Fatal(err)
	}
	p.Control.Users = []emulator.User{{Name: "lab", Password: "pw-1", Group: emulator.Admin}}
	e, err := lab.Emulation{Name: "real", Personality: p}.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pw"), []byte("pw-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	yaml := "switches:\n  - name: real\n    url: tl1://lab@" + e.Endpoints[lab.TL1] + "\n    password: file:pw\n  - name: unreachable\n    url: tl1://127.0.0.1:1\n  - name: emulated-only\n    emulate: {model: fast-mems-25ms}\n"
	f, err := lab.Parse(filepath.Join(dir, "lab.yaml"), []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	var traced strings.Builder
	l := lab.New(f, lab.Options{Trace: func(name string, _ bool, p []byte) { traced.WriteString(name + " " + string(p)) }})
	defer l.Close()
	sw, err := l.Switch(t.Context(), "real")
	if err != nil {
		t.Fatal(err)
	}
	if sw.Device != "tl1://"+e.Endpoints["tl1"] || sw.Emulated != nil {
		t.Errorf("Device=%q", sw.Device)
	}
	if strings.Contains(traced.String(), "pw-1") || !strings.Contains(traced.String(), "real ACT-USER") {
		t.Errorf("trace=%q", traced.String())
	}
	if _, err := l.Switch(t.Context(), "unreachable"); err == nil || !strings.Contains(err.Error(), "unreachable") {
		t.Errorf("err=%v", err)
	}
	if _, err := l.Switch(t.Context(), "emulated-only"); err == nil || !strings.Contains(err.Error(), "--emulated") {
		t.Errorf("err=%v", err)
	}
}

func TestEmulation_Errors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := emulator.LoadPersonality("fast-mems-25ms")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (lab.Emulation{Personality: p, Listen: map[lab.Endpoint]string{lab.TL1: l.Addr().String()}}).Start(); err == nil || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("err=%v, want the address", err)
	}
	f := testbed(t)
	if _, err := f.Emulation("nosuch"); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("err=%v", err)
	}
	f.Switches[0].Emulate.Model = "nosuch"
	if _, err := f.Emulation("rail0"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("err=%v", err)
	}
	f.Switches[0].Emulate = nil
	if _, err := f.Emulation("rail0"); err == nil || !strings.Contains(err.Error(), "emulate:") {
		t.Errorf("err=%v", err)
	}
}

func TestParseWish(t *testing.T) {
	f := testbed(t)
	w, err := lab.ParseWish("wish.yaml", []byte("mode: update\nswitches: {rail0: \"5>40\"}\nlinks: [[gpu1, gpu2]]\nconfiguration: dp\n"), f)
	if err != nil {
		t.Fatal(err)
	}
	maps, err := w.Maps(f)
	if err != nil || maps["rail0"].String() != "1>34,2>33,3>36,4>35,5>40" || w.Mode != ocs.Update {
		t.Errorf("maps=%v, mode=%v, err=%v", maps, w.Mode, err)
	}
	if _, err := lab.ParseWish("wish.yaml", []byte("switches:\n  tl1://127.0.0.1:1: 1>2\n"), nil); err != nil {
		t.Errorf("by URL, without a lab: %v", err)
	}
	for _, tc := range []struct {
		text, want string
		f          *lab.File
	}{
		{"{}", "nothing is wished for", f},
		{"mode: brutal\nswitches: {rail0: \"1>33\"}", "wish.yaml:1:7", f},
		{"switches:\n  rial0: 1>33\n", "wish.yaml:2:3", f},
		{"switches:\n  telnet://h: 1>33\n", "unknown protocol", f},
		{"switches:\n  rail0: 1>33\n", "--lab", nil},
		{"links: [[gpu1, gpu2]]\n", "--lab", nil},
		{"configuration: dp\n", "--lab", nil},
		{"configuration: xx\n", "configuration", f},
		{"links: [[gpu1]]\n", "two NICs", f},
		{"links: [[gpu1, gpu1]]\n", "itself", f},
		{"switches: {rail0: \"1>40\"}\nlinks: [[gpu1, gpu2]]\n", "ingress 1 is busy", f},
	} {
		if _, err := lab.ParseWish("wish.yaml", []byte(tc.text), tc.f); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: err=%v, want %q", tc.text, err, tc.want)
		}
	}
	if _, err := lab.LoadWish(filepath.Join(t.TempDir(), "none"), f); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("err=%v", err)
	}
}

// Ensure each session is traced under a name of its own.
func TestLab_TraceNames(t *testing.T) {
	var mu sync.Mutex // guards traced
	traced := map[string]bool{}
	l := lab.New(testbed(t), lab.Options{Emulated: true, Trace: func(name string, sent bool, _ []byte) {
		mu.Lock()
		defer mu.Unlock()
		traced[name] = traced[name] || sent
	}})
	defer l.Close()
	if _, err := l.Switch(t.Context(), "rail0"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		sw, err := l.Session(t.Context(), "rail0")
		if err != nil {
			t.Fatal(err)
		}
		defer sw.Close()
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]bool{"rail0": true, "rail0#2": true, "rail0#3": true}
	if !maps.Equal(traced, want) {
		t.Errorf("traced: %v, want %v", traced, want)
	}
}
