package baseline_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/experiment/baseline"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
)

var (
	noon    = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	session = runs.Session{Host: "bench", Kernel: "6.8"}
)

func setup() runs.Setup {
	return runs.Setup{Carrier: "counters", PollNS: 100_000, Devices: []runs.Device{{Name: "rail0", Model: "6000", Serial: "7", Firmware: "6.7"}}}
}

func testLab(t *testing.T) *lab.File {
	t.Helper()
	f, err := lab.Parse("lab.yaml", []byte(`name: bench
switches:
  - {name: rail0, url: "tl1://admin@192.0.2.10:3082"}
hosts:
  - {name: gpu1, agent: [ssh, gpu1, ocslab], nics: [{name: ens1f0, tx: rail0/1, rx: rail0/33}]}
  - {name: gpu2, nics: [{name: ens1f0, tx: rail0/2, rx: rail0/34}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// put keeps a timing calibration of rail0.
func put(t *testing.T, s *store.Store, change func(*store.Record)) {
	t.Helper()
	r := store.Record{
		Kind: store.Timing, Lab: "bench", Subject: "bench", Made: noon, Complete: true, Setup: baseline.Fingerprint(setup(), session),
		Data: json.RawMessage(`{"switches":[{"switch":"rail0"}],"floors":[{"stage":"light","floor_ns":5,"resolution_ns":5}]}`),
	}
	if change != nil {
		change(&r)
	}
	if _, err := s.Put(r); err != nil {
		t.Fatal(err)
	}
}

func find(t *testing.T, s *store.Store, set runs.Setup) []runs.Calibration {
	t.Helper()
	found, remarks := baseline.Find(s, testLab(t), false, set, session, noon.Add(time.Hour))
	if len(remarks) > 0 {
		t.Fatalf("remarks %v", remarks)
	}
	return found
}

func TestFindTakesTheNewestThatHolds(t *testing.T) {
	s := store.Open(t.TempDir())
	if got := find(t, s, setup()); len(got) > 0 {
		t.Fatalf("in an empty store: %v", got)
	}
	put(t, s, nil)
	put(t, s, nil)
	put(t, s, func(r *store.Record) { r.Setup["rail0 firmware"] = "6.8" }) // somebody has gone back to 6.7
	put(t, s, func(r *store.Record) { r.Emulated = true })
	put(t, s, func(r *store.Record) { r.Lab, r.Subject = "other", "other" })
	put(t, s, func(r *store.Record) { r.Data = json.RawMessage(`{"switches":[{"switch":"rail1"}]}`) })
	got := find(t, s, setup())
	if len(got) != 1 || got[0].Version != 2 || got[0].Remark() != "" || len(got[0].Floors) != 1 || got[0].Floors[0].Stage != timeline.Light {
		t.Errorf("found %+v, want version 2 with its floors", got)
	}
}

// When none holds, the newest is named with what has changed, and its floors are left out.
func TestFindSaysWhatHasChanged(t *testing.T) {
	s := store.Open(t.TempDir())
	put(t, s, nil)
	for name, c := range map[string]struct {
		change func(*runs.Setup)
		want   []string
	}{
		"firmware":   {func(x *runs.Setup) { x.Devices[0].Firmware = "6.8" }, []string{"rail0 firmware was 6.7, is 6.8"}},
		"serial":     {func(x *runs.Setup) { x.Devices[0].Serial = "8" }, []string{"rail0 serial was 7, is 8"}},
		"poll":       {func(x *runs.Setup) { x.PollNS = 1e6 }, []string{"watching of carriers was counters every 100µs, is counters every 1ms"}},
		"new switch": {func(x *runs.Setup) { x.Devices = append(x.Devices, runs.Device{Name: "rail9"}) }, []string{"rail9 was not in it"}},
	} {
		set := setup()
		c.change(&set)
		got := find(t, s, set)
		if len(got) != 1 || got[0].Floors != nil {
			t.Errorf("%s: found %+v, want one without floors", name, got)
			continue
		}
		if diff := cmp.Diff(c.want, got[0].Changed); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if remark := got[0].Remark(); !strings.Contains(remark, c.want[0]) || !strings.Contains(remark, "not used") {
			t.Errorf("%s: remark %q", name, remark)
		}
	}
	other := runs.Session{Host: "bench", Kernel: "6.9"}
	if got, _ := baseline.Find(s, testLab(t), false, setup(), other, noon); len(got) != 1 || !strings.Contains(got[0].Remark(), "bench kernel was 6.8, is 6.9") {
		t.Errorf("another kernel: %+v", got)
	}
}

func TestFindTellsOfAge(t *testing.T) {
	s := store.Open(t.TempDir())
	put(t, s, func(r *store.Record) { r.Made, r.Expires = noon.Add(-48*time.Hour), noon.Add(-23*time.Hour) })
	got := find(t, s, setup()) // an hour after noon
	if len(got) != 1 || got[0].Stale != "expired 24 hours ago" || len(got[0].Floors) != 1 {
		t.Errorf("found %+v, want one that expired 24 hours ago, with its floors", got)
	}
}

// Loss maps of the switches and clocks of the hosts that are elsewhere go along.
func TestFindOtherKinds(t *testing.T) {
	s := store.Open(t.TempDir())
	of := func(kind store.Kind, subject string) {
		put(t, s, func(r *store.Record) {
			r.Kind, r.Subject, r.Expires, r.Data = kind, subject, noon.Add(48*time.Hour), json.RawMessage(`{}`)
		})
	}
	of(store.Loss, "rail0")
	of(store.Loss, "rail1") // which is not used
	of(store.Clock, "gpu1")
	of(store.Clock, "gpu2") // which is this machine
	var names []string
	for _, c := range find(t, s, setup()) {
		names = append(names, c.String())
	}
	if diff := cmp.Diff([]string{"loss #1 of rail0", "clock #1 of gpu1"}, names); diff != "" {
		t.Error(diff)
	}
}

// A clock does not outlive the boot of either machine; a host that does not say in which it is cannot be
// compared.
func TestFindComparesBoots(t *testing.T) {
	s := store.Open(t.TempDir())
	put(t, s, func(r *store.Record) {
		r.Kind, r.Subject, r.Expires, r.Data = store.Clock, "gpu1", noon.Add(2*time.Hour), json.RawMessage(`{}`)
		r.Setup = map[string]string{"bench boot": "b1", "gpu1 boot": "g1"}
	})
	here := session
	for _, c := range []struct {
		ours, its string
		want      []string
	}{
		{"b1", "g1", nil},
		{"b1", "", nil},
		{"b1", "g2", []string{"gpu1 boot was g1, is g2"}},
		{"b2", "g2", []string{"bench boot was b1, is b2", "gpu1 boot was g1, is g2"}},
	} {
		set := setup()
		here.Boot, set.Boots = c.ours, map[string]string{"gpu1": c.its}
		found, remarks := baseline.Find(s, testLab(t), false, set, here, noon.Add(time.Hour))
		if len(found) != 1 || len(remarks) > 0 {
			t.Fatalf("found %v, remarks %v", found, remarks)
		}
		if diff := cmp.Diff(c.want, found[0].Changed); diff != "" {
			t.Errorf("boots %s and %s: %s", c.ours, c.its, diff)
		}
	}
}

// What is damaged is told, and what is whole is used.
func TestFindTellsOfDamage(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	put(t, s, nil)
	put(t, s, func(r *store.Record) { r.Data = json.RawMessage(`{"floors":[{"stage":"luck"}]}`) })
	torn := filepath.Join(dir, "calibrations", "timing", "bench", "bench", "0003.json")
	if err := os.WriteFile(torn, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, remarks := baseline.Find(s, testLab(t), false, setup(), session, noon)
	if len(found) != 1 || found[0].Version != 1 || len(remarks) != 2 {
		t.Errorf("found %v, remarks %v, want version 1 and two remarks", found, remarks)
	}
}
