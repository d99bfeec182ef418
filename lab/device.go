package lab

import (
	"fmt"

	"github.com/ocslab/ocslab/drivers"
)

// Device returns what [Opened.Device] of a switch is, without opening it.
func (l *Lab) Device(name string) (string, error) {
	s, ok := l.File.Switch(name)
	if !ok {
		return "", l.File.unknownSwitch(name)
	}
	if l.opt.Emulated {
		return l.emulatedDevice(name), nil
	}
	if s.URL == "" {
		return "", fmt.Errorf("switch %s has no url in the lab file: add one, or use --emulated", name)
	}
	t, err := drivers.Parse(s.URL)
	if err != nil {
		return "", err
	}
	return t.String(), nil
}
