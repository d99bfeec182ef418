package live

import (
	"flag"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/emulator/fabric"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
)

var (
	exactMoves    = flag.Int("exact", 2, "how many reconfigurations TestExact holds against the truth")
	exactRung     = flag.Int("exact-rung", int(fabric.Memory), "what NICs are in TestExact, as a fabric.Rung; 0 is the best there is")
	exactFirmware = flag.String("exact-firmware", "quick", "the firmware of NICs in TestExact")
)

// Ensure what a Move tells is what the emulation did: the interval of each mark of a carrier
// holds the truth, also while States are published and all that is in them is read as fast as
// they come, which the race detector allows only as long as nobody writes to one. With -exact 30 it
// prints how far marks are from the truth, as "ocslab measure --accuracy" does.
func TestExact(t *testing.T) {
	s := openTestbed(t, func(o *Options) {
		o.Fabric.Rung, o.Fabric.Firmware = fabric.Rung(*exactRung), *exactFirmware
		o.Traffic, o.Quicken = true, true
	})
	ready(t, s)
	reading := make(chan struct{})
	ended := make(chan struct{})
	go func() { // a UI that draws all there is
		defer close(ended)
		for {
			select {
			case <-s.Changed():
				readAll(reflect.ValueOf(s.State()))
			case <-reading:
				return
			}
		}
	}()
	defer func() {
		close(reading)
		<-ended
	}()
	truth := truths(t, s)
	var maps []string
	for _, name := range []string{"dp", "pp"} {
		c, err := s.file().Config(name)
		if err != nil {
			t.Fatal(err)
		}
		maps = append(maps, c["rail0"].String())
	}
	var marks, did []timeline.Mark
	for i := range *exactMoves + 1 {
		_, number, err := s.measure(t.Context(), connecting(t, s, maps[i%2]))
		if err != nil {
			t.Fatal(err)
		}
		x := until(t, s, "the Move is over", func(x *State) bool {
			return x.Moves != nil && x.Moves[0].Number == number && !x.Moves[0].Running
		})
		if x.Moves[0].Err != nil {
			t.Fatal(x.Moves[0].Err)
		}
		was := truth(number)
		if i == 0 {
			continue // from nothing: there are no links to go
		}
		did = append(did, was...)
		marks = append(marks, x.Moves[0].Marks...)
	}
	compared := timeline.Compare(marks, did)
	for _, stage := range []timeline.Stage{timeline.Light, timeline.CarrierDown, timeline.CarrierUp} {
		if !slices.ContainsFunc(compared, func(a timeline.Accuracy) bool { return a.Stage == stage && a.Count > 0 }) {
			t.Errorf("no mark of %s could be held against the truth", stage)
		}
	}
	for _, a := range compared {
		// What monitors and packets show depends on how busy the machine is that emulates them.
		counted := a.Stage == timeline.CarrierDown || a.Stage == timeline.CarrierUp
		if counted && a.Inside < a.Count {
			t.Errorf("%s: %d of %d marks do not hold the truth", a.Stage, a.Count-a.Inside, a.Count)
		}
		t.Logf("%-14s %d of %d hold it, %d unmatched, off by %v at the median and %v at most, %v wide", a.Stage, a.Inside, a.Count, a.Unmatched,
			time.Duration(a.ErrP50NS), time.Duration(a.ErrMaxNS), time.Duration(a.WidthP50NS))
	}
	if x := s.State(); len(x.Switches[0].Drift) > 0 {
		t.Errorf("our own changes are drift: %+v", x.Switches[0].Drift)
	}
}

// readAll reads all that a value leads to, of long lists the end.
func readAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[*lab.File]() {
			readAll(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			readAll(v.Field(i))
		}
	case reflect.Slice:
		for i := max(0, v.Len()-50); i < v.Len(); i++ {
			readAll(v.Index(i))
		}
	case reflect.Map:
		for i := v.MapRange(); i.Next(); {
			readAll(i.Value())
		}
	case reflect.String:
		_ = strings.Clone(v.String())
	case reflect.Int, reflect.Int64:
		_ = v.Int()
	case reflect.Uint64, reflect.Uint16:
		_ = v.Uint()
	case reflect.Float64:
		_ = v.Float()
	case reflect.Bool:
		_ = v.Bool()
	}
}

// truths returns a function that tells what the emulation did since it was called last.
func truths(t *testing.T, s *Session) func(number int) []timeline.Mark {
	t.Helper()
	o, err := s.open(t.Context(), "rail0")
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	b := s.bed
	s.mu.Unlock()
	b.mu.Lock()
	f := b.testbed.Fabric
	b.mu.Unlock()
	device, nics := 0, 0
	return func(number int) []timeline.Mark {
		var fromDevice, all []timeline.Mark
		fromDevice, device = o.Emulated.Device.Truth(device)
		all, nics = f.Truth(nics)
		all = slices.Concat(all, fromDevice)
		for i := range all {
			all[i].Reconfiguration = number
		}
		return all
	}
}
