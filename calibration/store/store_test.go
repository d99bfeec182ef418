package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/ocs"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// record is a good one.
func record(kind store.Kind, lab, subject string) store.Record {
	return store.Record{Kind: kind, Lab: lab, Subject: subject, Made: noon, Program: "ocslab", Complete: true, Data: json.RawMessage(`{"n":1}`)}
}

func put(t *testing.T, s *store.Store, r store.Record) store.Record {
	t.Helper()
	r, err := s.Put(r)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compact is how JSON compares.
var compact = cmp.Transformer("compact", func(r json.RawMessage) string {
	var v any
	if err := json.Unmarshal(r, &v); err != nil {
		return string(r)
	}
	text, _ := json.Marshal(v)
	return string(text)
})

func TestPutLatestGet(t *testing.T) {
	s := store.Open(t.TempDir())
	if _, err := s.Latest(store.Loss, "lab", "rail0"); !errors.Is(err, store.ErrNone) {
		t.Fatalf("Latest of an empty store = %v, want ErrNone", err)
	}
	first := put(t, s, record(store.Loss, "lab", "rail0"))
	r := record(store.Loss, "lab", "rail0")
	r.Device, r.Setup, r.Data = "Polatis 6000", map[string]string{"rail0 firmware": "6.7.3.9"}, json.RawMessage(`{"loss_db":[1.25,2]}`)
	second := put(t, s, r)
	other := put(t, s, record(store.Loss, "lab", "rail1"))
	if first.Version != 1 || second.Version != 2 || other.Version != 1 {
		t.Fatalf("versions %d, %d and of another switch %d, want 1, 2 and 1", first.Version, second.Version, other.Version)
	}
	if got, want := first.Expires, noon.Add(store.DefaultExpiry(store.Loss)); !got.Equal(want) {
		t.Errorf("expires %v, want %v", got, want)
	}
	got, err := s.Latest(store.Loss, "lab", "rail0")
	if diff := cmp.Diff(second, got, compact); err != nil || diff != "" {
		t.Errorf("Latest: %v\n%s", err, diff)
	}
	got, err = s.Get(store.Loss, "lab", "rail0", 1)
	if diff := cmp.Diff(first, got, compact); err != nil || diff != "" {
		t.Errorf("Get(1): %v\n%s", err, diff)
	}
	if _, err := s.Get(store.Loss, "lab", "rail0", 3); !errors.Is(err, store.ErrNone) {
		t.Errorf("Get(3) = %v, want ErrNone", err)
	}
}

func TestPutRefusesWhatSaysNothing(t *testing.T) {
	for name, spoil := range map[string]func(*store.Record){
		"kind":           func(r *store.Record) { r.Kind = "luck" },
		"path":           func(r *store.Record) { r.Kind = "../loss" },
		"subject":        func(r *store.Record) { r.Subject = "" },
		"data":           func(r *store.Record) { r.Data = nil },
		"no object":      func(r *store.Record) { r.Data = json.RawMessage(`[1]`) },
		"broken data":    func(r *store.Record) { r.Data = json.RawMessage(`{"a":NaN}`) },
		"expired before": func(r *store.Record) { r.Expires = noon },
	} {
		dir := t.TempDir()
		r := record(store.Loss, "lab", "rail0")
		spoil(&r)
		if _, err := store.Open(dir).Put(r); err == nil {
			t.Errorf("%s: Put kept it", name)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %v was left behind", name, left)
		}
	}
}

// An emulated lab goes by the name of the real one.
func TestLatestOfKeepsEmulatedApart(t *testing.T) {
	s := store.Open(t.TempDir())
	put(t, s, record(store.Timing, "lab", "lab"))
	r := record(store.Timing, "lab", "lab")
	r.Emulated = true
	put(t, s, r)
	for emulated, want := range map[bool]int{false: 1, true: 2} {
		if got, err := s.LatestOf(store.Timing, "lab", "lab", emulated); err != nil || got.Version != want {
			t.Errorf("emulated %v: version %d, %v, want %d", emulated, got.Version, err, want)
		}
	}
	if got, err := s.Latest(store.Timing, "lab", "lab"); err != nil || got.Version != 2 {
		t.Errorf("Latest = %d, %v, want 2", got.Version, err)
	}
}

func TestVersionsAreNotGivenTwice(t *testing.T) {
	s := store.Open(t.TempDir())
	for range 2 {
		put(t, s, record(store.Loss, "lab", "rail0"))
	}
	if err := s.Remove(store.Loss, "lab", "rail0", 2); err != nil {
		t.Fatal(err)
	}
	if got := put(t, s, record(store.Loss, "lab", "rail0")).Version; got != 3 {
		t.Errorf("after 2 was removed the next is %d, want 3", got)
	}
	if err := s.Remove(store.Loss, "lab", "rail0", 2); !errors.Is(err, store.ErrNone) {
		t.Errorf("Remove again = %v, want ErrNone", err)
	}
}

func TestPutAtOnce(t *testing.T) {
	dir := t.TempDir()
	const n = 20
	var all sync.WaitGroup
	var mu sync.Mutex // guards versions
	var versions []int
	for range n {
		all.Go(func() {
			r, err := store.Open(dir).Put(record(store.Clock, "lab", "gpu1"))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			versions = append(versions, r.Version)
			mu.Unlock()
		})
	}
	all.Wait()
	slices.Sort(versions)
	for i, v := range versions {
		if v != i+1 {
			t.Fatalf("versions %v, want 1 to %d", versions, n)
		}
	}
}

// Several processes number without races, too.
func TestPutFromProcesses(t *testing.T) {
	if dir := os.Getenv("STORE_TEST_DIR"); dir != "" {
		for range 5 {
			put(t, store.Open(dir), record(store.Clock, "lab", "gpu1"))
		}
		return
	}
	dir := t.TempDir()
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			c := exec.Command(os.Args[0], "-test.run=^TestPutFromProcesses$")
			c.Env = append(os.Environ(), "STORE_TEST_DIR="+dir)
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	all.Wait()
	list, problems, err := store.Open(dir).List(store.Clock)
	if err != nil || len(problems) > 0 || len(list) != 15 {
		t.Fatalf("%d records, %v, %v, want 15", len(list), problems, err)
	}
}

func TestList(t *testing.T) {
	dir := t.TempDir()
	s := store.Open(dir)
	if list, problems, err := s.List(""); err != nil || len(list)+len(problems) > 0 {
		t.Fatalf("of nothing: %v, %v, %v", list, problems, err)
	}
	for i, kind := range []store.Kind{store.Loss, store.Timing, store.Clock, store.Loss} {
		r := record(kind, "lab", "x")
		r.Made = noon.Add(time.Duration(i) * time.Hour)
		put(t, s, r)
	}
	list, problems, err := s.List("")
	var got []string
	for _, r := range list {
		got = append(got, fmt.Sprintf("%s %d", r.Kind, r.Version))
	}
	want := []string{"loss 2", "clock 1", "timing 1", "loss 1"} // newest first
	if diff := cmp.Diff(want, got); err != nil || len(problems) > 0 || diff != "" {
		t.Errorf("%v, %v\n%s", problems, err, diff)
	}
	if list, _, err := s.List(store.Loss); err != nil || len(list) != 2 {
		t.Errorf("of loss: %d, %v, want 2", len(list), err)
	}
	if _, _, err := s.List("luck"); err == nil {
		t.Error("List of a kind that is none is no error")
	}
}

// fileOf is where a version of loss of rail0 in lab is.
func fileOf(dir string, version int) string {
	return filepath.Join(dir, "calibrations", "loss", "lab", "rail0", fmt.Sprintf("%04d.json", version))
}

// What is damaged is told of, the rest is there, and nothing older is put in its place.
func TestDamage(t *testing.T) {
	whole := func(dir string, version int) string {
		text, err := os.ReadFile(fileOf(dir, version))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, c := range map[string]struct {
		with func(text string) string
		want error
	}{
		"torn":           {func(s string) string { return s[:len(s)/2] }, store.ErrDamaged},
		"empty":          {func(string) string { return "" }, store.ErrDamaged},
		"no record":      {func(string) string { return `{"format":1}` }, store.ErrDamaged},
		"no format":      {func(s string) string { return strings.Replace(s, `"format": 1,`, ``, 1) }, store.ErrDamaged},
		"newer":          {func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 99`, 1) }, store.ErrNewer},
		"another switch": {func(s string) string { return strings.Replace(s, `"rail0"`, `"rail1"`, 1) }, store.ErrDamaged},
		"another number": {func(s string) string { return strings.Replace(s, `"version": 2`, `"version": 1`, 1) }, store.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := store.Open(dir)
			for range 2 {
				put(t, s, record(store.Loss, "lab", "rail0"))
			}
			text := whole(dir, 2)
			if bad := c.with(text); bad == text {
				t.Fatal("the test spoils nothing")
			} else if err := os.WriteFile(fileOf(dir, 2), []byte(bad), 0o600); err != nil {
				t.Fatal(err)
			}
			if r, err := s.Latest(store.Loss, "lab", "rail0"); !errors.Is(err, c.want) {
				t.Errorf("Latest = version %d, %v, want %v", r.Version, err, c.want)
			}
			list, problems, err := s.List("")
			if err != nil || len(list) != 1 || list[0].Version != 1 {
				t.Errorf("List = %v, %v, want version 1", list, err)
			}
			if len(problems) != 1 || !errors.Is(problems[0], c.want) || !strings.Contains(problems[0].Error(), "0002.json") {
				t.Errorf("problems %v, want one that names the file", problems)
			}
			if got := put(t, s, record(store.Loss, "lab", "rail0")).Version; got != 3 {
				t.Errorf("the next version is %d, want 3", got)
			}
			if err := s.Remove(store.Loss, "lab", "rail0", 2); err != nil {
				t.Errorf("a damaged one cannot be removed: %v", err)
			}
		})
	}
}

func TestOnlyTheUserMayRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes")
	}
	dir := t.TempDir()
	put(t, store.Open(dir), record(store.Loss, "lab", "rail0"))
	for path, want := range map[string]os.FileMode{fileOf(dir, 1): 0o600, filepath.Dir(fileOf(dir, 1)): 0o700} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

// Whatever a lab and a switch are called, a record is found under these names only, and is in the store.
func TestNames(t *testing.T) {
	for _, name := range []string{"..", ".", "a/b", "/", "a\\b", "", "%", "%2E", "*", "[x]", "é", "a b", "-", "con.", "\x00", "a\nb"} {
		dir := t.TempDir()
		s := store.Open(filepath.Join(dir, "state"))
		subject := name
		if name == "" {
			subject = "x" // which has to be something
		}
		put(t, s, record(store.Loss, name, subject))
		if got, err := s.Latest(store.Loss, name, subject); err != nil || got.Lab != name || got.Subject != subject {
			t.Errorf("%q: got %q, %q, %v", name, got.Lab, got.Subject, err)
		}
		if list, problems, err := s.List(""); err != nil || len(problems) > 0 || len(list) != 1 {
			t.Errorf("%q: List = %v, %v, %v", name, list, problems, err)
		}
		if all, _ := os.ReadDir(dir); len(all) != 1 {
			t.Errorf("%q: it left the store: %v", name, all)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		if a == b || len(a) > 60 || len(b) > 60 {
			t.Skip("the same, or longer than names are")
		}
		dir, err := os.MkdirTemp("", "store")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		s := store.Open(dir)
		if _, err := s.Put(record(store.Loss, a, "x")); err != nil {
			t.Skip("text that JSON cannot hold")
		}
		if _, err := s.Latest(store.Loss, b, "x"); !errors.Is(err, store.ErrNone) {
			t.Fatalf("what is of %q was found under %q: %v", a, b, err)
		}
	})
}

func TestStale(t *testing.T) {
	r := record(store.Loss, "lab", "rail0")
	r.Expires = noon.Add(time.Hour)
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{0, ""}, {59 * time.Minute, ""},
		{time.Hour, "expired less than a second ago"},
		{4 * 24 * time.Hour, "expired 3 days ago"},
		{-30 * time.Second, ""}, // another machine's clock
		{-2 * time.Hour, "was made 2 hours from now: one of the clocks is wrong"},
	} {
		why, stale := r.Stale(noon.Add(c.at))
		if why != c.want || stale != (c.want != "") {
			t.Errorf("after %v: %q, %v, want %q", c.at, why, stale, c.want)
		}
	}
}

func TestChanged(t *testing.T) {
	r := record(store.Loss, "lab", "rail0")
	r.Setup = store.OfSwitch("rail0", ocs.Identity{Model: "6000", Serial: "7", Firmware: "6.7.3.9"})
	if got := r.Changed(r.Setup); len(got) > 0 {
		t.Errorf("nothing has changed, got %q", got)
	}
	now := store.OfSwitch("rail0", ocs.Identity{Serial: "8", Firmware: "6.8.0.1"}) // and it no longer says its model
	now["gpu1 kernel"] = "6.8"
	want := []string{"rail0 firmware was 6.7.3.9, is 6.8.0.1", "rail0 serial was 7, is 8"}
	if diff := cmp.Diff(want, r.Changed(now)); diff != "" {
		t.Error(diff)
	}
}

func FuzzRead(f *testing.F) {
	dir := f.TempDir()
	s := store.Open(dir)
	if _, err := s.Put(record(store.Loss, "lab", "rail0")); err != nil {
		f.Fatal(err)
	}
	path := fileOf(dir, 1)
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"format":1,"calibration":"loss","subject":"rail0","version":1,"lab":"lab","made":"2026-01-01T00:00:00Z","expires":"2026-01-01T00:00:00Z","data":{}}`))
	f.Add([]byte(`{"format":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := s.Get(store.Loss, "lab", "rail0", 1)
		if err != nil {
			if !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNewer) {
				t.Fatalf("an error of no kind: %v", err)
			}
			return
		}
		if !json.Valid(r.Data) || !r.Expires.After(r.Made) {
			t.Fatalf("was read: %+v", r)
		}
		again, err := s.Put(r) // what was read can be kept
		if err != nil {
			t.Fatal(err)
		}
		r.Version = again.Version
		if diff := cmp.Diff(r, again, compact); diff != "" {
			t.Fatal(diff)
		}
		if err := s.Remove(store.Loss, "lab", "rail0", again.Version); err != nil {
			t.Fatal(err)
		}
	})
}
