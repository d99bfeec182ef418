package lab_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/emulator/ocstrx"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

const bundleLab = `name: bundle
switches:
  - name: trx
    url: ocstrx+serial:///dev/ttyACM0
    emulate: {model: ocstrx-8x112g-x8, seed: 7}
protect: [trx/3]
`

// Ensure that a board of transceivers in a lab file is emulated behind its driver, with the
// interlock of the lab around it, and stays dark when it is opened again: it was without
// power meanwhile.
func TestLab_Transceivers(t *testing.T) {
	t.Parallel()
	f, err := lab.Parse("bundle.yaml", []byte(bundleLab))
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	for range 2 {
		l := lab.New(f, lab.Options{Emulated: true, StateDir: state})
		sw, err := l.Switch(t.Context(), "trx")
		if err != nil {
			t.Fatal(err)
		}
		id, err := sw.Identify(t.Context())
		if err != nil || id.Geometry != ocs.Transceivers(8, 8) {
			t.Errorf("it is %+v, %v", id, err)
		}
		if m, err := sw.CrossConnects(t.Context()); err != nil || m.Len() != 0 {
			t.Errorf("it holds %v, %v", m, err)
		}
		if r, err := ocs.Reconcile(t.Context(), sw, ocs.MustMap(ocs.CrossConnect{Ingress: 64, Egress: 192}), ocs.Safe); err != nil || len(r.Receipt.Parts) != 1 || r.Receipt.Parts[0].Name != "module 8" {
			t.Errorf("64>192: %+v, %v", r.Receipt, err)
		}
		if _, err := ocs.Reconcile(t.Context(), sw, ocs.MustMap(ocs.CrossConnect{Ingress: 3, Egress: 67}), ocs.Safe); !errors.Is(err, ocs.ErrInterlock) {
			t.Errorf("a protected lane was moved: %v", err)
		}
		if e := sw.Emulated; e == nil || e.Board == nil || e.Device != nil || e.Name() != "trx" || e.Model() != "ocstrx-8x112g-x8" {
			t.Errorf("the emulation is %+v", e)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that the board is served over TCP and on a serial line at once, and that what makes
// no sense for it is refused with the reason.
func TestEmulation_Transceivers(t *testing.T) {
	t.Parallel()
	p, err := ocstrx.LoadPersonality("ocstrx-8x112g")
	if err != nil {
		t.Fatal(err)
	}
	e := lab.Emulation{Transceivers: &lab.Transceivers{Personality: p}, Listen: map[lab.Endpoint]string{lab.OCSTrx: ""}}
	if runtime.GOOS == "linux" {
		e.Listen[lab.Serial] = filepath.Join(t.TempDir(), "tty")
	}
	r, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for at, url := range r.URLs() {
		sw, err := drivers.Open(t.Context(), url, drivers.Options{})
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		if _, err := sw.CrossConnects(context.Background()); err != nil {
			t.Errorf("%s: %v", at, err)
		}
		if err := sw.Close(); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	e.Listen = map[lab.Endpoint]string{lab.TL1: ""}
	if _, err := e.Start(); err == nil || !strings.Contains(err.Error(), "cannot serve tl1") {
		t.Errorf("TL1 of a transceiver: %v", err)
	}
	own := filepath.Join(t.TempDir(), "own.yaml")
	if err := os.WriteFile(own, []byte("model: own\nmodules: 3\ntrigger: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := lab.Parse("bundle.yaml", []byte(strings.Replace(bundleLab, "ocstrx-8x112g-x8", own, 1)))
	if err != nil {
		t.Fatal(err)
	}
	if e, err := f.Emulation("trx"); err != nil || e.Transceivers == nil || e.Transceivers.Personality.Modules != 3 || e.Seed != 7 {
		t.Errorf("a file of three modules: %+v, %v", e, err)
	}
	for text, want := range map[string]string{
		strings.Replace(bundleLab, "seed: 7", "switching: 1ms", 1):                       "follows from its physics",
		strings.Replace(bundleLab, "ocstrx+serial:///dev/ttyACM0", "tl1://192.0.2.1", 1): "its url is tl1",
	} {
		f, err := lab.Parse("bundle.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Emulation("trx"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
