package history_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/lab/history"
)

// modelLine is what the model knows of one line of the file.
type modelLine struct {
	end   int64 // offset behind its newline
	id    int
	entry *history.Entry // of a line that begins
	state history.State  // of a line that ends
	ack   int64
	text  string
}

// model is the file as it should be: lines, and nothing else. It derives what
// should be read from them in the plainest way.
type model struct {
	lines []modelLine
	kept  string // cut off so far
}

func (m *model) entries() []history.Entry {
	var es []history.Entry
	for _, ln := range m.lines {
		if ln.entry != nil {
			es = append(es, *ln.entry)
			continue
		}
		for i := range es {
			if es[i].ID == ln.id {
				es[i].State, es[i].Error = ln.state, ln.text
				if ln.ack > 0 {
					es[i].AckNS = ln.ack
				}
			}
		}
	}
	// by returns the entry that took id back and has not been taken back.
	var by func(id int) int
	by = func(id int) int {
		last := 0
		for _, e := range es {
			if e.UndoOf == id && e.State == history.Done && by(e.ID) == 0 {
				last = e.ID
			}
		}
		return last
	}
	for i := range es {
		es[i].UndoneBy = by(es[i].ID)
	}
	return es
}

// Ensure that whatever is done, by two users at once, with crashes that leave
// any part of the file: every whole line is there, IDs ascend and are not
// given out twice, and the log goes on.
func TestLog_Model(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "history")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path := filepath.Join(dir, "history.ndjson")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var logs [2]*history.Log
		reopen := func() {
			for i := range logs {
				if logs[i], err = history.Open(dir); err != nil {
					t.Fatal(err)
				}
				logs[i].SetFsync(func(*os.File) error { return nil })
			}
		}
		reopen()
		log := func(t *rapid.T) *history.Log { return logs[rapid.IntRange(0, 1).Draw(t, "user")] }
		size := func() int64 {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		var m model
		changes := rapid.SampledFrom([]string{"/1>33", "1>33/", "1>36/1>33", "1-4>33-36/2>40,3>41"})
		devices := rapid.SampledFrom([]string{device, "emulated:other/rail0"})
		states := rapid.SampledFrom([]history.State{history.Pending, history.Done, history.Done, history.Done, history.Failed, history.Unverified})

		doBegin := func(t *rapid.T, l *history.Log, e history.Entry) {
			es := m.entries()
			want := 1
			if n := len(es); n > 0 {
				want = es[n-1].ID + 1
			}
			id, err := l.Begin(e)
			if e.UndoOf > 0 {
				if undone := es[e.UndoOf-1].UndoneBy != 0; undone != errors.Is(err, history.ErrUndone) {
					t.Fatalf("undo of %d: %v, want ErrUndone %t", e.UndoOf, err, undone)
				} else if undone {
					return
				}
			}
			if err != nil || id != want {
				t.Fatalf("Begin=%d, %v, want %d", id, err, want)
			}
			e.ID, e.State = id, history.Pending
			m.lines = append(m.lines, modelLine{end: size(), id: id, entry: &e})
		}
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				doBegin(t, log(t), history.Entry{
					Device:  devices.Draw(t, "device"),
					Change:  change(changes.Draw(t, "change")),
					Command: rapid.StringN(0, 10, 30).Draw(t, "command"),
				})
			},
			"undo": func(t *rapid.T) {
				es := m.entries()
				if len(es) == 0 {
					t.Skip("nothing to undo")
				}
				e := es[rapid.IntRange(0, len(es)-1).Draw(t, "undo")]
				doBegin(t, log(t), history.Entry{Device: e.Device, Change: e.Change.Inverse(), UndoOf: e.ID})
			},
			"end": func(t *rapid.T) {
				es := m.entries()
				if len(es) == 0 {
					t.Skip("nothing to end")
				}
				ln := modelLine{
					id:    es[rapid.IntRange(0, len(es)-1).Draw(t, "end")].ID,
					state: states.Draw(t, "state"),
					ack:   rapid.Int64Range(0, 9).Draw(t, "ack"),
					text:  rapid.StringN(0, 10, 30).Draw(t, "error"),
				}
				if err := log(t).End(ln.id, ln.state, history.Result{AckNS: ln.ack, Error: ln.text}); err != nil {
					t.Fatal(err)
				}
				ln.end = size()
				m.lines = append(m.lines, ln)
			},
			// All are killed, and of the file any part is left.
			"crash": func(t *rapid.T) {
				at := rapid.Int64Range(0, size()).Draw(t, "at")
				if err := os.Truncate(path, at); err != nil {
					t.Fatal(err)
				}
				whole := int64(0)
				for i, ln := range m.lines {
					if ln.end > at {
						m.lines = m.lines[:i]
						break
					}
					whole = ln.end
				}
				m.kept += tail(t, path, whole)
				reopen()
			},
			// Another one is killed while it writes; the two live.
			"torn": func(t *rapid.T) {
				torn := []string{"{", `{"v":1,"kind":"begin","id":9`, "\x00\x00", "x\n"}[rapid.IntRange(0, 3).Draw(t, "torn")]
				f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				if _, err := f.WriteString(torn); err != nil {
					t.Fatal(err)
				}
				m.kept += torn
				if _, _, err := log(t).Entries(); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				want := m.entries()
				for _, l := range logs {
					got, problems, err := l.Entries()
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(history.Entry{}, "Began", "Ended"), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("entries (-want +got):\n%s", diff)
					}
					for _, p := range problems {
						if !strings.HasPrefix(p.Reason, "torn") {
							t.Fatalf("problem: %v", p)
						}
					}
				}
				var kept strings.Builder
				for n := 1; ; n++ {
					part, err := os.ReadFile(fmt.Sprintf("%s.torn-%d", path, n))
					if err != nil {
						break
					}
					kept.Write(part)
				}
				if kept.String() != m.kept {
					t.Fatalf("kept aside %q, want %q", kept.String(), m.kept)
				}
			},
		})
	})
}

// tail returns what the file holds from offset on.
func tail(t *rapid.T, path string, offset int64) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data[offset:])
}

// Ensure that no content of the file makes Open panic or lose a byte, and that
// the log goes on after it.
func FuzzOpen(f *testing.F) {
	lines := sample(f)
	all := strings.Join(lines, "")
	f.Add("")
	f.Add("\n\n")
	f.Add(all)
	f.Add(all[:len(all)-1])
	f.Add(all + "torn")
	f.Add(lines[0] + "damaged\n" + lines[2])
	f.Add(all + lines[0])
	f.Add(lines[0] + `{"v":2}` + "\n")
	f.Add(resealed(`{"v":1,"kind":"begin","id":2147483647,"add":"1>2"}`))
	f.Add(resealed(`{"v":1,"kind":"begin","id":7,"undo_of":3}`) + resealed(`{"v":1,"kind":"end","id":7,"state":"done"}`))
	f.Fuzz(func(t *testing.T, content string) {
		dir := t.TempDir()
		write(t, dir, content)
		l, err := history.Open(dir)
		if err != nil {
			if got := read(t, dir, "history.ndjson"); !errors.Is(err, history.ErrNewer) || got != content {
				t.Fatalf("Open: %v, file=%q, want ErrNewer and %q", err, got, content)
			}
			return
		}
		if got := read(t, dir, "history.ndjson") + read(t, dir, "history.ndjson.torn-1"); got != content {
			t.Fatalf("left and kept aside: %q, want %q", got, content)
		}
		before, _ := entries(t, l)
		id, err := l.Begin(history.Entry{Device: device, Change: change("/1>33")})
		if err != nil {
			if !strings.Contains(err.Error(), "no ID is left") {
				t.Fatal(err)
			}
			return
		}
		after, _ := entries(t, open(t, dir))
		if len(after) != len(before)+1 || after[len(after)-1].ID != id {
			t.Fatalf("%d entries and then %d, of which the last is to be %d", len(before), len(after), id)
		}
		last := 0
		for _, e := range after {
			if e.ID <= last {
				t.Fatalf("ID %d comes after %d", e.ID, last)
			}
			last = e.ID
		}
	})
}
