package runs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/experiment/runs"
)

func read(t testing.TB, w *runs.Writer, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.Dir(), name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func replace(t testing.TB, w *runs.Writer, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.Dir(), name), data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// told returns the texts of the events of a kind.
func told(r *runs.Run, kind string) (texts []string) {
	for _, e := range r.Events {
		if e.Kind == kind {
			texts = append(texts, e.Text)
		}
	}
	return texts
}

func TestLoad_Damage(t *testing.T) {
	const done = `{"kind":"point-done","point":2,`
	for _, test := range []struct {
		name, file string
		damage     func(data []byte) []byte
		left       []int
		kind, text string
	}{
		{"a digit", "events.ndjson", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"point":2,"condition":1,"repeat":1,"session":1,"from"`), []byte(`"point":2,"condition":2,"repeat":1,"session":1,"from"`), 1)
		}, []int{1, 3}, "recovered", "lines"},
		{"the end of a block", "events.ndjson", func(b []byte) []byte { return bytes.Replace(b, []byte(done), []byte(`{"kind":"point`), 1) }, []int{1, 3}, "recovered", "lines"},
		{"its beginning", "events.ndjson", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`{"kind":"point-begun","point":2,`), []byte(`{"kind":"point-begun",`), 1)
		}, []int{1, 3}, "recovered", "lines"},
		{"two blocks in one", "events.ndjson", func(b []byte) []byte {
			from := bytes.Index(b, []byte(done))
			to := from + bytes.IndexByte(b[from:], '\n') + 1
			return slices.Delete(b, from, to)
		}, []int{1, 3}, "recovered", "lines"},
		{"a line between", "events.ndjson", func(b []byte) []byte { return append([]byte("oops\n"), b...) }, []int{1, 2, 3}, "recovered", "at line 1"},
		{"a kind of its own", "events.ndjson", func(b []byte) []byte { return append([]byte(`{"kind":"dream"}`+"\n"), b...) }, []int{1, 2, 3}, "skipped", `"dream", 1 in all`},
		{"recorded twice", "events.ndjson", func(b []byte) []byte {
			from := bytes.Index(b, []byte(`{"kind":"point-begun","point":2,`))
			return append(b, b[from:]...)
		}, []int{1, 2, 3}, "recovered", "Point 2 is recorded twice"},
		{"a torn end", "events.ndjson", func(b []byte) []byte { return append(b, `{"kind":"point-begun","po`...) }, []int{1, 2, 3}, "recovered", "last 25 bytes"},
		{"zeros at the end", "events.ndjson", func(b []byte) []byte { return append(b, make([]byte, 512)...) }, []int{1, 2, 3}, "recovered", "last 512 bytes"},
		{"a very long line", "events.ndjson", func(b []byte) []byte {
			return append(append(bytes.Repeat([]byte("x"), 17<<20), '\n'), b...)
		}, []int{1, 2, 3}, "recovered", "at line 1"},
		{"a sample", "samples.ndjson", func(b []byte) []byte {
			from := bytes.Index(b, []byte(`{"kind":"point-begun","point":2,`))
			return append(b[:from], bytes.Replace(b[from:], []byte(`"earliest_ns":`), []byte(`"earliest_ns":1`), 1)...)
		}, []int{1, 3}, "recovered", "readings of point 2"},
		{"how many samples", "events.ndjson", func(b []byte) []byte {
			from := bytes.Index(b, []byte(`{"kind":"point-done","point":2,`))
			return append(b[:from], bytes.Replace(b[from:], []byte(`"samples":`), []byte(`"sampes":`), 1)...)
		}, []int{1, 3}, "recovered", "readings of point 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, tempDir(t))
			w := create(t, s, 3)
			points(t, w, planned(3), 1, 3, 2)
			w.Close()
			was := read(t, w, test.file)
			replace(t, w, test.file, test.damage(slices.Clone(was)))
			if bytes.Equal(read(t, w, test.file), was) {
				t.Fatal("nothing is damaged, so nothing is tested")
			}
			// Not at the end, where it would be a torn one.
			if !strings.Contains(test.text, "bytes") {
				f, err := os.OpenFile(filepath.Join(w.Dir(), "events.ndjson"), os.O_APPEND|os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintln(f, `{"kind":"event","event":"hook","session":1,"wall":"2026-11-22T10:15:00Z","text":"after"}`)
				f.Close()
			}
			r := load(t, s, w.ID())
			check(t, r, test.left...)
			if got := told(r, test.kind); len(got) != 1 || !strings.Contains(got[0], test.text) {
				t.Errorf("events=%q, want one with %q", got, test.text)
			}
			w, r, err := s.Resume(t.Context(), w.ID())
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			check(t, r, test.left...)
			if !slices.Contains(test.left, 2) {
				points(t, w, planned(3), 2)
			}
			check(t, load(t, s, w.ID()), 1, 2, 3)
			// What was at the end of its file counts as torn.
			if torn, _ := filepath.Glob(filepath.Join(w.Dir(), "*.torn-1")); (len(torn) == 1) != (strings.Contains(test.text, "bytes") || test.file == "samples.ndjson") {
				t.Errorf("moved away: %v", torn)
			}
		})
	}
}

// Ensure that an edit anywhere costs only the points that it touches, and that these can be
// measured again.
func TestLoad_AnyDamage(t *testing.T) {
	const number = 8
	s := open(t, tempDir(t))
	w := create(t, s, number)
	all := []int{1, 2, 3, 4, 5, 6, 7, 8}
	points(t, w, planned(number), all...)
	w.Close()
	whole := map[string][]byte{"events.ndjson": read(t, w, "events.ndjson"), "samples.ndjson": read(t, w, "samples.ndjson")}
	rapid.Check(t, func(rt *rapid.T) {
		name := rapid.SampledFrom([]string{"events.ndjson", "samples.ndjson"}).Draw(rt, "file")
		data := slices.Clone(whole[name])
		at := rapid.IntRange(0, len(data)-1).Draw(rt, "at")
		to := min(at+rapid.IntRange(0, 300).Draw(rt, "length"), len(data))
		with := rapid.SliceOfN(rapid.OneOf(rapid.Byte(), rapid.SampledFrom([]byte("\n{}\"1"))), 0, 20).Draw(rt, "with")
		touched := map[int]bool{}
		for _, id := range all {
			from := bytes.Index(data, fmt.Appendf(nil, `{"kind":"point-begun","point":%d,`, id))
			if from < 0 {
				continue // it has no samples
			}
			done := fmt.Appendf(nil, `{"kind":"point-done","point":%d,`, id)
			end := bytes.Index(data, done)
			end += bytes.IndexByte(data[end:], '\n') + 1
			touched[id] = at <= end && to >= from // also what comes just before or after
		}
		data = slices.Replace(data, at, to, with...)
		for n, was := range whole {
			replace(t, w, n, was)
		}
		replace(t, w, name, data)
		r := load(t, s, w.ID())
		var left []int
		for _, id := range all {
			if r.Done[id] {
				left = append(left, id)
			} else if !touched[id] {
				rt.Errorf("point %d was not touched and is lost: %v", id, told(r, "recovered"))
			}
		}
		check(rt, r, left...)
		if len(left) < number && len(told(r, "recovered")) == 0 {
			rt.Errorf("points %v are left, and nobody was told", left)
		}
	})
}

// FuzzLoad reads any two files.
func FuzzLoad(f *testing.F) {
	s := open(f, tempDir(f))
	w := create(f, s, 3)
	points(f, w, planned(3), 1, 2)
	if err := w.DropPoint(3, "known"); err != nil {
		f.Fatal(err)
	}
	w.Close()
	events, samples := read(f, w, "events.ndjson"), read(f, w, "samples.ndjson")
	f.Add(events, samples)
	f.Add(events[:len(events)/2], samples)
	f.Add(events, samples[:len(samples)/2])
	f.Add([]byte("{\"kind\":\"point-begun\",\"point\":1}\n{\"kind\":\"mark\",\"stage\":1}\n{\"kind\":\"point-done\",\"point\":1,\"lines\":1,\"crc\":\"9e64a5f1\"}\n"), []byte("\n\n{}"))
	f.Fuzz(func(t *testing.T, events, samples []byte) {
		replace(t, w, "events.ndjson", events)
		replace(t, w, "samples.ndjson", samples)
		r := load(t, s, w.ID())
		for _, m := range r.Marks {
			if _, err := m.MarshalJSON(); err != nil {
				t.Errorf("read a mark that cannot be: %v", err)
			}
		}
	})
}
