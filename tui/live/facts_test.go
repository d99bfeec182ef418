package live

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/ocs/ocstest"
	"github.com/ocslab/ocslab/wire/cmis"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// factsLab has a switch for each wire, and one for each dialect.
const factsLab = `name: facts
switches:
  - {name: tl1, url: "tl1://admin@192.0.2.1:3082", emulate: {model: polatis-6000-voa-16x16, seed: 1}}
  - {name: scpi, url: "scpi://192.0.2.2:5025", emulate: {model: polatis-6000-32x32, seed: 2}}
  - {name: netconf, url: "netconf://admin@192.0.2.3:830", emulate: {model: polatis-6000-voa-16x16, seed: 3}}
  - {name: calient, url: "tl1://admin@192.0.2.4:3083?dialect=calient", emulate: {model: calient-s320, seed: 4}}
  - {name: glimmerglass, url: "tl1://admin@192.0.2.5:10034?dialect=glimmerglass", emulate: {model: glimmerglass-48x48, seed: 5}}
  - {name: large, url: "tl1://admin@192.0.2.6:3082", emulate: {model: polatis-7000-192x192, seed: 6}}
  - {name: trx, url: "ocstrx://192.0.2.7:4001", emulate: {model: ocstrx-8x112g, seed: 7}}
`

func openFacts(t *testing.T) *lab.Lab {
	t.Helper()
	f, err := lab.Parse("facts.yaml", []byte(factsLab))
	if err != nil {
		t.Fatal(err)
	}
	l := lab.New(f, lab.Options{Emulated: true, StateDir: t.TempDir()})
	t.Cleanup(func() { _ = l.Close() }) // what is emulated is gone then
	return l
}

// spy counts what would change a device. Capabilities are those of the switch inside.
type spy struct {
	ocs.Switch
	changes int
}

func (s *spy) Unwrap() ocs.Switch { return s.Switch }

func (s *spy) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	s.changes++
	return s.Switch.Apply(ctx, c)
}

// TestReadFacts asks emulated devices over each wire and in each dialect.
func TestReadFacts(t *testing.T) {
	t.Parallel()
	l := openFacts(t)
	for _, x := range []struct {
		name      string
		prepare   func(t *testing.T, sw ocs.Switch)
		labels    map[ocs.Port]string // nil: the wire has none
		shut      []ocs.Port
		shutters  bool
		monitored bool
		facts     []Fact
	}{
		{"tl1", dress, map[ocs.Port]string{1: "laser A"}, []ocs.Port{2, 17}, true, true, []Fact{
			{"monitors", "averaging 100 ms on 32 ports, 1550 nm"}, {"shutters", "2 of 32 closed"}, {"labels", "1 port"},
			{"attenuators", "1 of 16 in use, up to 3.00 dB: 20"}, {"boot mode", "restore: a restart brings its circuits back"},
		}},
		{"scpi", nil, nil, nil, true, true, []Fact{
			{"monitors", "on 64 ports; how they are set is not told"}, {"shutters", "64, all open"}, {"boot mode", "restore: a restart brings its circuits back"},
		}},
		{"netconf", dress, map[ocs.Port]string{1: "laser A"}, []ocs.Port{2, 17}, true, true, []Fact{
			{"monitors", "averaging 100 ms on 32 ports, 1550 nm"}, {"shutters", "2 of 32 closed"}, {"labels", "1 port"},
			{"attenuators", "1 of 16 in use, up to 3.00 dB: 20"}, {"boot mode", "restore: a restart brings its circuits back"},
		}},
		{"calient", nil, map[ocs.Port]string{}, nil, false, true, []Fact{{"monitors", "on 640 ports; how they are set is not told"}, {"labels", "0 ports"}}},
		{"glimmerglass", nil, map[ocs.Port]string{}, nil, false, true, nil},
		{"large", nil, map[ocs.Port]string{}, nil, true, true, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			sw, err := l.Session(t.Context(), x.name)
			if err != nil {
				t.Fatal(err)
			}
			defer sw.Close()
			if x.prepare != nil {
				x.prepare(t, sw)
			}
			before, err := sw.CrossConnects(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			s := &spy{Switch: sw}
			f, err := readFacts(t.Context(), s)
			if err != nil {
				t.Errorf("facts: %v", err)
			}
			if diff := cmp.Diff(x.labels, f.Labels); diff != "" && x.labels != nil && len(x.labels) > 0 {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if (x.labels == nil) != (f.Labels == nil) {
				t.Errorf("labels are %v", f.Labels)
			}
			var shut []ocs.Port
			for p := range f.Shut {
				shut = append(shut, p)
			}
			slices.Sort(shut)
			if !slices.Equal(shut, x.shut) || f.Shutters != x.shutters || f.Monitored != x.monitored {
				t.Errorf("closed shutters %v, has them %v, monitored %v; want %v, %v, %v", shut, f.Shutters, f.Monitored, x.shut, x.shutters, x.monitored)
			}
			if diff := cmp.Diff(x.facts, f.Facts); x.facts != nil && diff != "" {
				t.Errorf("facts (-want +got):\n%s", diff)
			}
			if len(f.Facts) == 0 || len(f.Modules) != 0 {
				t.Errorf("facts %v, modules %v", f.Facts, f.Modules)
			}
			after, err := sw.CrossConnects(t.Context())
			if err != nil || !before.Equal(after) || s.changes != 0 {
				t.Errorf("reading has changed %v to %v (%d changes), %v", before, after, s.changes, err)
			}
		})
	}
}

// dress gives a switch a label, closed shutters, and an attenuator in use.
func dress(t *testing.T, sw ocs.Switch) {
	t.Helper()
	if l, ok := ocs.As[ocs.Labeler](sw); !ok || l.SetLabel(t.Context(), 1, "laser A") != nil {
		t.Fatal("no label could be set")
	}
	if s, ok := ocs.As[ocs.Shutter](sw); !ok || s.SetShutters(t.Context(), true, 2, 17) != nil {
		t.Fatal("no shutter could be closed")
	}
	if a, ok := ocs.As[ocs.Attenuator](sw); !ok || a.SetAttenuation(t.Context(), 20, 3) != nil {
		t.Fatal("no attenuator could be set")
	}
}

// TestReadFacts_Transceiver asks an emulated module for its heaters, taps and calibration.
func TestReadFacts_Transceiver(t *testing.T) {
	t.Parallel()
	sw, err := openFacts(t).Switch(t.Context(), "trx")
	if err != nil {
		t.Fatal(err)
	}
	want, err := ocs.ParseMap("1-4>9-12,5-8>21-24")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ocs.Reconcile(t.Context(), sw, want, ocs.Safe); err != nil {
		t.Fatal(err)
	}
	f, err := readFacts(t.Context(), sw)
	if err != nil || len(f.Modules) != 1 {
		t.Fatalf("%d modules, %v", len(f.Modules), err)
	}
	m := f.Modules[0]
	if m.Name != "module 1" || m.Status != "ready, mixed" && m.Status != "locking, mixed" {
		t.Errorf("%s is %q", m.Name, m.Status)
	}
	text := ""
	for _, x := range m.Facts {
		text += x.Name + ": " + x.Value + "\n"
	}
	for _, part := range []string{"serial: ", "firmware: ", "case: ", " °C\n", "supply: ", "switches: ", "calibration: table 1, less than a day old, does not expire\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if !m.Expires.IsZero() {
		t.Errorf("its calibration, that of the factory, expires at %v", m.Expires)
	}
	if len(m.Heater) != ocst.Elements {
		t.Fatalf("%d heaters", len(m.Heater))
	}
	on := 0
	for _, h := range m.Heater {
		if h.Text != "off" {
			on++
			if h.Part <= 0 || h.Part > 1 || !strings.HasSuffix(h.Text, " mA") {
				t.Errorf("heater %+v", h)
			}
		}
	}
	if on < ocst.Lanes {
		t.Errorf("%d heaters are on, with light on %d lanes: %+v", on, ocst.Lanes, m.Heater)
	}
	taps := map[string]Reading{}
	for _, r := range m.Tap {
		taps[r.Name] = r
	}
	for _, name := range []string{"1 to fibre 1", "1 from fibre 1", "8 to fibre 2"} {
		if _, ok := taps[name]; !ok {
			t.Errorf("no tap %q in %v", name, m.Tap)
		}
	}
	if r := taps["1 to fibre 1"]; r.Part < 0.5 || !strings.HasSuffix(r.Text, " dBm") {
		t.Errorf("tap of a lane with light: %+v", r)
	}
}

// TestHeaters: the current of the arm that is heated, as a share of what the full voltage gives.
func TestHeaters(t *testing.T) {
	var amps [2][ocst.Elements]float64
	var settings [ocst.Elements]ocst.Setting
	for e := range settings { // bar heats arm A, cross arm B
		settings[e] = ocst.Setting{Bar: ocst.DriveOf(2, false), Cross: ocst.DriveOf(1, true)}
	}
	amps[0][0] = 2.0 / 400 // 400 ohms
	amps[1][1] = 1.0 / 400
	amps[0][2] = 1.0 / 400                                                                 // half of what is set: others heat it
	settings[3] = ocst.Setting{Bar: ocst.DriveOf(3, false), Cross: ocst.DriveOf(1, false)} // which of them is not known
	amps[0][3] = 3.0 / 400
	amps[1][4] = 0.05e-3 // noise
	amps[0][5] = 40e-3   // short
	settings[5] = ocst.Setting{}
	got := heaters(amps, settings)
	const full = ocst.DACFull / 400 // A
	for i, want := range []Reading{
		{"S1 of lane 1 A", "5.00 mA", 5e-3 / full}, {"S1 of lane 2 B", "2.50 mA", 2.5e-3 / full}, {"S1 of lane 3 A", "2.50 mA", 2.5e-3 / full},
		{"S1 of lane 4 A", "7.50 mA", 7.5e-3 / full}, {"S1 of lane 5", "off", 0}, {"S1 of lane 6 A", "40.00 mA", 1},
	} {
		if got[i].Name != want.Name || got[i].Text != want.Text || math.Abs(got[i].Part-want.Part) > 0.002 {
			t.Errorf("heater %d is %+v, want %+v", i, got[i], want)
		}
	}
	// Without any setting the bars are of the greatest current.
	if got := heaters(amps, [ocst.Elements]ocst.Setting{}); got[5].Part != 1 || math.Abs(got[0].Part-0.125) > 1e-9 {
		t.Errorf("without settings: %+v, %+v", got[0], got[5])
	}
	if got := heaters([2][ocst.Elements]float64{}, settings); got[0].Text != "off" || got[0].Part != 0 {
		t.Errorf("all off: %+v", got[0])
	}
}

// pageOf is the memory of a module that has one page only.
type pageOf []byte

func (p pageOf) Read(_ context.Context, a cmis.Address, b []byte) error {
	if a.Page != ocst.PageTable || a.Bank != 0 {
		return cmis.ErrNoPage
	}
	copy(b, p[a.Offset-128:])
	return nil
}

func (p pageOf) Write(context.Context, cmis.Address, []byte) error {
	return errors.New("facts are read only")
}

// TestReadTable: what is read of the first page is what the codec has written there.
func TestReadTable(t *testing.T) {
	now := time.Date(2026, 11, 22, 15, 4, 5, 0, time.UTC)
	made := now.Add(-12 * 24 * time.Hour)
	for _, x := range []struct {
		name    string
		edit    func(*ocst.Table)
		want    string
		expires time.Time
	}{
		{"good", func(*ocst.Table) {}, "table 3, 12 days old, good until 2027-11-22", time.Date(2027, 11, 22, 0, 0, 0, 0, time.UTC)},
		{"expired", func(x *ocst.Table) { x.Expires = now.Add(-time.Hour) }, "table 3, 12 days old, expired 2026-11-22", now.Add(-time.Hour)},
		{"for ever", func(x *ocst.Table) { x.Expires = time.Time{} }, "table 3, 12 days old, does not expire", time.Time{}},
	} {
		point := ocst.Point{Celsius: 40}
		for e := range point.Elements {
			arm := ocst.Arm{Slope: 0.4}
			point.Elements[e] = ocst.Fit{A: arm, B: arm, Bar: ocst.DriveOf(2.8, false)}
		}
		table := &ocst.Table{Serial: "OT1", Version: 3, Made: made, Expires: time.Date(2027, 11, 22, 0, 0, 0, 0, time.UTC), Points: []ocst.Point{point}}
		x.edit(table)
		pages, err := table.Pages()
		if err != nil {
			t.Fatal(err)
		}
		text, expires, err := readTable(t.Context(), pageOf(pages[0]), now)
		if err != nil || text != x.want || !expires.Equal(x.expires) {
			t.Errorf("%s: %q, %v, %v; want %q, %v", x.name, text, expires, err, x.want, x.expires)
		}
		binary.BigEndian.PutUint16(pages[0][ocst.PageData:], 0x1234)
		if text, _, err := readTable(t.Context(), pageOf(pages[0]), now); err != nil || text != "none that can be used" {
			t.Errorf("%s: a damaged page gives %q, %v", x.name, text, err)
		}
	}
}

// broken is a switch whose labels cannot be read.
type broken struct{ ocs.Switch }

var errBroken = errors.New("the labels are unreadable")

func (broken) Labels(context.Context, ...ocs.Port) (map[ocs.Port]string, error) {
	return nil, errBroken
}
func (broken) SetLabel(context.Context, ocs.Port, string) error { return errBroken }
func (broken) BootMode(context.Context) (ocs.BootMode, error)   { return ocs.BootDark, nil }
func (broken) SetBootMode(context.Context, ocs.BootMode) error  { return errBroken }
func (broken) Restart(context.Context) error                    { return errBroken }

// TestReadFacts_Failure: what fails does not lose the others, and the end of the context ends
// it.
func TestReadFacts_Failure(t *testing.T) {
	sw := broken{ocstest.New(4, ocs.Map{})}
	f, err := readFacts(t.Context(), sw)
	if !errors.Is(err, errBroken) || f.Labels != nil {
		t.Errorf("labels %v, %v", f.Labels, err)
	}
	if want := []Fact{{"boot mode", "dark: a restart leaves it without circuits"}}; !slices.Equal(f.Facts, want) {
		t.Errorf("facts are %v, want %v", f.Facts, want)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errBroken)
	if f, err := readFacts(ctx, sw); !errors.Is(err, errBroken) || len(f.Facts) > 0 {
		t.Errorf("after the end: %v, %v", f.Facts, err)
	}
}
