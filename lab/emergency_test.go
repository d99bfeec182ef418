package lab_test

import (
	"errors"
	"testing"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure a session for emergencies is past the guard of the lab, and is one of its own.
func TestLab_Emergency(t *testing.T) {
	f, err := lab.Parse("one.yaml", []byte(`switches:
  - {name: a, emulate: {model: polatis-6000-32x32, switching: 1ms}}
protect: [a/1]
`))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true})
	defer l.Close()
	o, err := l.Switch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	lit := ocs.MustMap(ocs.CrossConnect{Ingress: 1, Egress: 33})
	if _, err := o.Emulated.Device.Connect(lit.Slice()); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Apply(t.Context(), ocs.Change{Remove: lit}); !errors.Is(err, ocs.ErrInterlock) {
		t.Errorf("past the guard: %v", err)
	}
	sw, device, err := l.Emergency(t.Context(), "a")
	if err != nil || device != o.Device {
		t.Fatalf("%q, %v", device, err)
	}
	if _, err := sw.Apply(t.Context(), ocs.Change{Remove: lit}); err != nil {
		t.Error(err)
	}
	if err := sw.Close(); err != nil {
		t.Error(err)
	}
	if m, err := o.CrossConnects(t.Context()); err != nil || m.Len() > 0 {
		t.Errorf("by the first session: %v, %v", m, err)
	}
	if _, _, err := l.Emergency(t.Context(), "b"); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("unknown: %v", err)
	}
}

// Ensure the ports of the lab on a switch are those of its NICs, and of a board of transceivers with a cable of the lab
// all, without those that are protected.
func TestFile_OwnPorts(t *testing.T) {
	f, err := lab.Parse("hbd.yaml", []byte(`switches:
  - {name: a, emulate: {model: ocstrx-8x112g}}
  - {name: b, emulate: {model: ocstrx-8x112g}}
  - {name: c, emulate: {model: ocstrx-8x112g}}
  - {name: d, emulate: {model: polatis-6000-32x32}}
cables:
  - {a: a/1, b: b/2}
hosts:
  - {name: g1, nics: [{name: e0, tx: d/2, rx: d/33}, {name: e1, tx: d/1, rx: d/34}]}
protect: [b/3, d/1]
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"a": "1-128", "b": "1,2,4-128", "c": "", "d": "2,33,34"} {
		if got := ocs.FormatPorts(f.OwnPorts(name)); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
