package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Memory is what a device writes its configuration to so that it survives the
// end of the program. A failure to save is not reported to the clients of the
// device, as it would not be by a real one: Save has to say so itself.
type Memory interface {
	Load() ([]byte, error) // nil when there is nothing yet
	Save([]byte)
}

// image is the content of a Memory.
type image struct {
	Version   int                  `json:"v"`
	Size      string               `json:"size"`
	Map       ocs.Map              `json:"map"`
	Closed    []ocs.Port           `json:"closed,omitempty"`
	Labels    map[ocs.Port]string  `json:"labels,omitempty"`
	Monitors  map[ocs.Port]Monitor `json:"monitors,omitempty"`
	Reverse   map[ocs.Port]Monitor `json:"reverse_monitors,omitempty"`
	Peers     map[ocs.Port]string  `json:"peers,omitempty"`
	VOAs      map[ocs.Port]voa     `json:"voas,omitempty"`
	Notes     string               `json:"notes,omitempty"`
	Users     []User               `json:"users"`
	SID       string               `json:"sid"`
	Boot      ocs.BootMode         `json:"boot"`
	AdminIdle time.Duration        `json:"admin_idle_ns"`
	UserIdle  time.Duration        `json:"user_idle_ns"`
}

func (d *Device) saveLocked() {
	if d.mem == nil {
		return
	}
	im := image{
		Version: 1, Size: d.p.Size, Map: d.mapLocked(), Labels: d.labels, Peers: d.peers, Notes: d.notes, Users: d.users,
		Monitors: d.monitors[Forward], Reverse: d.monitors[Reverse],
		VOAs: d.voas, SID: d.sid, Boot: d.boot, AdminIdle: d.timeouts[Admin], UserIdle: d.timeouts[Operator],
	}
	for i := range d.ports {
		if d.ports[i].closed {
			im.Closed = append(im.Closed, ocs.Port(i))
		}
	}
	data, err := json.Marshal(im)
	if err != nil {
		panic(err) // an image holds nothing that JSON cannot
	}
	d.mem.Save(append(data, '\n'))
}

// load brings back what the memory holds, with the light settled long ago. In
// boot mode dark the cross-connects and shutters are not brought back. Alarm
// thresholds and shutter programmes are not kept at all.
func (d *Device) load() error {
	data, err := d.mem.Load()
	if err != nil || data == nil {
		return err
	}
	var im image
	if err := json.Unmarshal(data, &im); err != nil {
		return fmt.Errorf("its memory cannot be read: %w", err)
	}
	switch {
	case im.Version != 1:
		return fmt.Errorf("its memory has version %d, this program knows 1", im.Version)
	case im.Size != d.p.Size:
		return fmt.Errorf("its memory is of a %s switch, not %s: remove it or use another name", im.Size, d.p.Size)
	}
	if err := d.check(&im); err != nil {
		return fmt.Errorf("its memory cannot be used: %w", err)
	}
	d.sid, d.boot, d.users = im.SID, im.Boot, im.Users
	d.timeouts[Admin], d.timeouts[Operator] = im.AdminIdle, im.UserIdle
	maps.Copy(d.labels, im.Labels)
	maps.Copy(d.peers, im.Peers)
	d.notes = im.Notes
	maps.Copy(d.monitors[Forward], im.Monitors)
	maps.Copy(d.monitors[Reverse], im.Reverse)
	maps.Copy(d.voas, im.VOAs)
	if d.boot == ocs.BootDark {
		return nil
	}
	for _, n := range im.Closed {
		d.ports[n].closed = true
	}
	for c := range im.Map.All() {
		if d.ports[c.Ingress].failed || d.ports[c.Egress].failed {
			continue
		}
		out := d.seatLocked(c)
		out.out = trace{{always, out.path, d.levelLocked(c)}}
	}
	return nil
}

// check reports what the device cannot hold.
func (d *Device) check(im *image) error {
	if err := d.g.Check(im.Map); err != nil {
		return err
	}
	for _, texts := range []map[ocs.Port]string{im.Labels, im.Peers} {
		for n, text := range texts {
			if err := d.checkLabel(n, text); err != nil {
				return err
			}
		}
	}
	for n, v := range im.VOAs {
		if err := d.checkVOA(n, v.VOA); err != nil {
			return err
		}
		if v.Held != d.need(v.Held) {
			return fmt.Errorf("an attenuator at %g dB", v.Held)
		}
	}
	for _, settings := range []map[ocs.Port]Monitor{im.Monitors, im.Reverse} {
		for n, m := range settings {
			if err := errors.Join(d.checkPorts([]ocs.Port{n}), m.check()); err != nil {
				return err
			}
		}
	}
	for _, idle := range []time.Duration{im.AdminIdle, im.UserIdle} {
		if idle < 0 || idle > time.Hour {
			return fmt.Errorf("an inactivity time-out of %v", idle)
		}
	}
	if !validBoot(im.Boot) {
		return fmt.Errorf("boot mode %q", im.Boot)
	}
	return errors.Join(d.checkPorts(im.Closed), checkUsers(im.Users))
}
