package live

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// emulatedLab is a lab of one emulated switch, sw0, that is spoken to over a scheme.
func emulatedLab(t *testing.T, model, scheme string) *lab.File {
	t.Helper()
	f, err := lab.Parse("lab.yaml", []byte("switches:\n  - {name: sw0, url: '"+scheme+"://192.0.2.1', emulate: {model: "+model+"}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	f.Path = ""
	return f
}

// Ensure a lab is read over each wire, what was sent is decoded, and a foreign change is
// seen: at once, and with a name, where the device reports.
func TestWires(t *testing.T) {
	for _, x := range []struct {
		scheme  lab.Endpoint
		reports bool
		command string
	}{
		{lab.TL1, true, "RTRV-PATCH"}, {lab.TL1SSH, true, "RTRV-PATCH"}, {lab.SCPI, false, ":OXC"}, {lab.NETCONF, true, "<rpc"},
	} {
		t.Run(string(x.scheme), func(t *testing.T) {
			s := openTestbed(t, func(o *Options) {
				o.File = emulatedLab(t, "polatis-6000-32x32", string(x.scheme))
				o.MapEvery = 300 * time.Millisecond
				if x.reports {
					o.MapEvery = time.Hour // so that only a report can have it read
				}
			})
			state := ready(t, s)
			if id := state.Switches[0].Identity; id.Model == "" || id.Geometry.Ingress != 32 {
				t.Errorf("identity: %+v", id)
			}
			until(t, s, "everything was read", func(x *State) bool {
				return !x.Switches[0].PowerAt.IsZero() && len(x.Switches[0].Facts) > 1
			})
			if x.reports {
				waitForListener(t, s)
			}
			other := dial(t, s, "sw0")
			add := mustMap(t, "1>33")
			if _, err := other.Apply(t.Context(), ocs.Change{Add: add}); err != nil {
				t.Fatal(err)
			}
			state = until(t, s, "drift is told", func(x *State) bool { return len(x.Switches[0].Drift) > 0 })
			d := state.Switches[0].Drift[0]
			if !d.Change.Add.Equal(add) || x.reports && d.Who != "admin" {
				t.Errorf("drift: %+v", d)
			}
			state = until(t, s, "it is in the log", func(s *State) bool {
				return slices.ContainsFunc(s.Log, func(e *Entry) bool { return e.Kind == Sent && strings.Contains(e.Raw, x.command) })
			})
			for _, e := range state.Log {
				if e.Switch != "sw0" || e.Text == "" {
					t.Errorf("entry %+v", e)
				}
			}
		})
	}
}

// waitForListener waits until the switch reports: it does not at once, and what happens
// before that is seen by looking only.
func waitForListener(t *testing.T, s *Session) {
	t.Helper()
	other := dial(t, s, "sw0")
	for range 100 {
		if _, err := other.Apply(t.Context(), ocs.Change{Add: mustMap(t, "20>60")}); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Apply(t.Context(), ocs.Change{Remove: mustMap(t, "20>60")}); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		r := s.bed.readers["sw0"]
		s.mu.Unlock()
		r.heard.mu.Lock()
		heard := len(r.heard.list) > 0
		r.heard.mu.Unlock()
		if heard {
			// What was done to listen may be told as drift, too; let it be over.
			s.touch("sw0")
			until(t, s, "the circuit for listening is gone", func(x *State) bool { return x.Switches[0].Map.Len() == 0 })
			s.update(func(p *parts) { p.edit("sw0", func(x *Switch) { x.Drift = nil }) })
			until(t, s, "there is no drift", func(x *State) bool { return len(x.Switches[0].Drift) == 0 })
			return
		}
	}
	t.Fatal("the switch reports nothing")
}

// Ensure a bundle of transceivers is a switch like others, and tells of its modules.
func TestBundle(t *testing.T) {
	s := openTestbed(t, func(o *Options) { o.File = emulatedLab(t, "ocstrx-8x112g-x8", "ocstrx") })
	x := until(t, s, "its modules are there", func(x *State) bool { return len(x.Switches[0].Modules) == 8 })
	if sw := x.Switches[0]; sw.Status != Up || len(sw.Modules[0].Tap) == 0 {
		t.Errorf("%+v", sw)
	}
}

// Ensure the drivers' way to reconnect and ours go together: a switch that restarts is lost, and
// back when it answers again.
func TestRestart(t *testing.T) {
	e, err := lab.EmulationOf("polatis-6000-32x32")
	if err != nil {
		t.Fatal(err)
	}
	first, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	url := first.URL()
	address := first.Endpoints[lab.TL1]
	f, err := lab.Parse("lab.yaml", []byte("switches:\n  - {name: sw0, url: '"+url+"'}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := openTestbed(t, func(o *Options) { o.File, o.Lab.Emulated = f, false })
	ready(t, s)
	if _, err := dial(t, s, "sw0").Apply(t.Context(), ocs.Change{Add: mustMap(t, "1>33")}); err != nil {
		t.Fatal(err)
	}
	until(t, s, "it has a circuit", func(x *State) bool { return x.Switches[0].Map.Len() == 1 })
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	x := until(t, s, "it is lost", func(x *State) bool { return x.Switches[0].Status == Lost })
	if sw := x.Switches[0]; sw.Map.Len() != 1 || !sw.MapStale(time.Now()) || sw.Err == nil {
		t.Errorf("%+v", sw)
	}
	e.Listen = map[lab.Endpoint]string{lab.TL1: address}
	second, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	x = until(t, s, "it is back", func(x *State) bool { return x.Switches[0].Status == Up })
	if sw := x.Switches[0]; sw.Map.Len() != 0 || len(sw.Drift) == 0 || !sw.Drift[0].Change.Remove.Equal(mustMap(t, "1>33")) {
		t.Errorf("%v, drift %+v", sw.Map, sw.Drift)
	}
	// Changes go through again, too.
	sw, err := s.open(t.Context(), "sw0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sw.Apply(t.Context(), ocs.Change{Add: mustMap(t, "2>34")}); err != nil {
		t.Error(err)
	}
}
