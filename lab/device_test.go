package lab_test

import (
	"errors"
	"testing"

	"github.com/ocslab/ocslab/lab"
)

// Ensure a switch is called the same before it is opened as when it is open.
func TestLab_Device(t *testing.T) {
	emulated := lab.New(testbed(t), lab.Options{Emulated: true})
	defer emulated.Close()
	sw, err := emulated.Switch(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := emulated.Device("rail0"); got != sw.Device || err != nil {
		t.Errorf("Device=%q, %v, want %q", got, err, sw.Device)
	}
	f, err := lab.Parse("lab.yaml", []byte("switches:\n  - {name: real, url: '"+sw.Emulated.URL()+"'}\n  - {name: model, emulate: {model: fast-mems-25ms}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	real := lab.New(f, lab.Options{})
	defer real.Close()
	if sw, err = real.Switch(t.Context(), "real"); err != nil {
		t.Fatal(err)
	}
	if got, err := real.Device("real"); got != sw.Device || err != nil {
		t.Errorf("Device=%q, %v, want %q", got, err, sw.Device)
	}
	if got, err := real.Device("model"); err == nil {
		t.Errorf("Device=%q of a switch without a url", got)
	}
	if _, err := real.Device("nosuch"); !errors.Is(err, lab.ErrUnknown) {
		t.Errorf("%v", err)
	}
}
