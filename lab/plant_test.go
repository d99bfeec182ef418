package lab_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure that light enters where the fibres really are, and that the lab file's claims stay
// what everybody else is told.
func TestEmulation_Plant(t *testing.T) {
	f := load(t, "plant")
	e, err := f.Emulation("rail0")
	if err != nil {
		t.Fatal(err)
	}
	launch := ocs.DBm(e.Personality.Optics.Launch)
	dark := ocs.DBm(math.Inf(-1))
	for port, want := range map[ocs.Port]ocs.DBm{1: launch, 2: launch - 3, 3: dark, 4: launch, 5: dark} {
		got, lit := e.Light[port]
		if !lit {
			got = dark
		}
		if got != want {
			t.Errorf("%v enters at port %d, want %v", got, port, want)
		}
	}
	if o := e.Personality.Optics; o.PortLoss[7] != 3 || !math.IsInf(o.PortLoss[40], 1) || o.PathLoss[emulator.Path{Ingress: 12, Egress: 45}] != 4 {
		t.Errorf("losses %v, %v", o.PortLoss, o.PathLoss)
	}
	if got := f.Sender("rail0", 1) + " " + f.Receiver("rail0", 34); got != "gpu1/n0 gpu2/n0" {
		t.Errorf("the lab file says %s, want gpu1/n0 gpu2/n0", got)
	}
	link, err := f.Link("gpu1", "gpu2")
	if err != nil || link["rail0"].String() != "1>34,2>33" {
		t.Errorf("link: %v, %v", link, err)
	}
}

// Ensure that a swap moves light to the NIC that the fibre really leads to.
func TestFabric_Swap(t *testing.T) {
	const text = `
switches: [{name: rail0, emulate: {model: fast-mems-25ms, switching: 1ms}}]
hosts:
  - {name: gpu1, nics: [{name: n0, tx: rail0/1, rx: rail0/65}]}
  - {name: gpu2, nics: [{name: n0, tx: rail0/2, rx: rail0/66, emulate: {rx: rail0/67}}]}
  - {name: gpu3, nics: [{name: n0, tx: rail0/3, rx: rail0/67, emulate: {rx: rail0/66}}]}
  - {name: gpu4, nics: [{name: n0, tx: rail0/4, rx: rail0/68, emulate: {dead: [rx]}}]}
`
	f, err := lab.Parse("lab.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true})
	defer l.Close()
	fab, err := l.Fabric(t.Context(), lab.FabricOptions{Rung: fabric.Memory})
	if err != nil {
		t.Fatal(err)
	}
	defer fab.Close()
	o, err := l.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	// To gpu2 as the lab file says, and to gpu4.
	if _, err := o.Emulated.Device.Connect(parseMap(t, "1>66,2>68").Slice()); err != nil {
		t.Fatal(err)
	}
	carrier := func(host string) bool {
		_, _, on, err := fab.Counts(host, "n0")
		if err != nil {
			t.Fatal(err)
		}
		return on
	}
	for deadline := time.Now().Add(20 * time.Second); !carrier("gpu3"); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("gpu3, which the fibre leads to, gets no carrier")
		}
	}
	if carrier("gpu2") || carrier("gpu4") {
		t.Error("gpu2 or gpu4 has a carrier, and no light")
	}
}

// Ensure that models and notes are beside the lab file, wherever the program runs, also when
// the text of the lab was kept elsewhere, and that a file that has gone is named.
func TestFiles_BesideLab(t *testing.T) {
	dir := t.TempDir()
	model, err := emulator.LoadPersonality("fast-mems-25ms")
	if err != nil {
		t.Fatal(err)
	}
	model.Model, model.Firmware = "mine", "9.9"
	text, err := model.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	const lines = `
switches:
  - {name: rail0, emulate: {model: mine.yaml}}
  - {name: rail1, emulate: {model: fast-mems-25ms}}
hosts:
  - {name: gpu1, nics: [{name: n0, tx: rail0/1, rx: rail0/65, firmware: "notes/rig.md#slow"}]}
  - {name: gpu2, nics: [{name: n0, tx: rail0/2, rx: rail0/66, firmware: quick}]}
`
	path := filepath.Join(dir, "lab.yaml")
	f, err := lab.Parse(path, []byte(lines))
	if err != nil {
		t.Fatal(err)
	}
	check := func(f *lab.File) {
		t.Helper()
		e, err := f.Emulation("rail0")
		if err != nil || e.Personality.Firmware != "9.9" {
			t.Fatalf("%+v, %v", e.Personality, err)
		}
		if got, want := f.Firmware(&f.Hosts[0].NICs[0]), filepath.Join(dir, "notes", "rig.md")+"#slow"; got != want {
			t.Errorf("firmware %s, want %s", got, want)
		}
		if got := f.Firmware(&f.Hosts[1].NICs[0]); got != "quick" {
			t.Errorf("firmware %s, want quick", got)
		}
	}
	check(f)
	// Written elsewhere, it leads to the same files.
	moved, err := lab.Parse(filepath.Join(t.TempDir(), "lab.yaml"), f.Anchored().YAML())
	if err != nil {
		t.Fatal(err)
	}
	check(moved)
	if f.Switches[0].Emulate.Model != "mine.yaml" || f.Hosts[0].NICs[0].Firmware != "notes/rig.md#slow" {
		t.Errorf("the lab itself was changed: %s", f.YAML())
	}
	if _, err := f.Fabric(nil, lab.FabricOptions{}); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(dir, "notes")) {
		t.Errorf("a note that is not there: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "mine.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Emulation("rail0"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "rail0") || !strings.Contains(err.Error(), dir) {
		t.Errorf("a model that is not there: %v", err)
	}
}

// Ensure that a lab in the working directory can be written elsewhere, too, with all that is
// planted in its NICs.
func TestFile_AnchoredHere(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("rig.md", []byte("---\ntitle: t\nsummary: s\nprofiles:\n  slow: {debounce: 1s, detect: 1s, train: 1s, carrier: 1s, refresh: 1s, source: assumed, confidence: low}\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"lab.yaml", ""} {
		f, err := lab.Parse(path, []byte(`
switches: [{name: rail0, emulate: {model: fast-mems-25ms, port_loss_db: {1: 3, 2: .inf}}}]
hosts:
  - {name: gpu1, nics: [{name: n0, tx: rail0/1, rx: rail0/65, firmware: "rig.md#slow",
      emulate: {tx: rail0/3, rx: rail0/67, tx_loss_db: 1.5, rx_loss_db: .inf, dead: [tx]}}]}
`))
		if err != nil {
			t.Fatal(err)
		}
		moved, err := lab.Parse(filepath.Join(t.TempDir(), "lab.yaml"), f.Anchored().YAML())
		if err != nil {
			t.Fatal(err)
		}
		nic, was := &moved.Hosts[0].NICs[0], &f.Hosts[0].NICs[0]
		if p, err := moved.Profile(nic); err != nil || p.Key != "slow" {
			t.Errorf("%q: %+v, %v", path, p, err)
		}
		if d := cmp.Diff(was.Emulate, nic.Emulate); d != "" {
			t.Errorf("%q: planted (-want +got):\n%s", path, d)
		}
		if d := cmp.Diff(f.Switches[0].Emulate.PortLoss, moved.Switches[0].Emulate.PortLoss); d != "" {
			t.Errorf("%q: planted (-want +got):\n%s", path, d)
		}
	}
}

// Ensure that what a lab file says of the time of switching replaces all the model says of it.
func TestEmulation_SwitchingReplacesModes(t *testing.T) {
	dir := t.TempDir()
	const model = `
model: mine
vendor: v
product: p
firmware: f
size: 4x4
switching: {modes: [{share: 1, median: 30ms}, {share: 1, median: 90ms}], paths: [{path: 1>5, modes: [{share: 1, median: 1s}]}]}
optics: {loss_db: 1, loss_max_db: 2, port_loss_db: {1: 3, 2: 50}, path_loss_db: {1>5: 1}}
`
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(model), 0o600); err != nil {
		t.Fatal(err)
	}
	emulation := func(more string) (lab.Emulation, error) {
		f, err := lab.Parse(filepath.Join(dir, "lab.yaml"), []byte("switches: [{name: rail0, emulate: {model: mine.yaml"+more+"}}]\n"))
		if err != nil {
			t.Fatal(err)
		}
		return f.Emulation("rail0")
	}
	for more, modes := range map[string]bool{"": true, ", switching: 5ms": false, ", jitter: 1ms": false, ", ack: before": true} {
		e, err := emulation(more)
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Personality.Switching; (s.Modes != nil) != modes || (s.Paths != nil) != modes {
			t.Errorf("%q: %+v", more, s)
		}
	}
	e, err := emulation(", port_loss_db: {1: 4, 2: 50, 3: .inf}")
	if err != nil {
		t.Fatal(err)
	}
	if l := e.Personality.Optics.PortLoss; l[1] != 7 || l[2] != emulator.MaxExtraLoss || !math.IsInf(l[3], 1) || len(e.Personality.Optics.PathLoss) != 1 {
		t.Errorf("losses %v: want those of the model and of the lab file together", l)
	}
	if _, err := emulation(", port_loss_db: {9: 4}"); !errors.Is(err, ocs.ErrPort) || !strings.Contains(err.Error(), "rail0") {
		t.Errorf("port 9 of 8: %v", err)
	}
}
