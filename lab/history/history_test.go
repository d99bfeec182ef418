package history_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
)

const device = "tl1://192.0.2.10:3082"

func mustMap(text string) ocs.Map {
	m, err := ocs.ParseMap(text)
	if err != nil {
		panic(err)
	}
	return m
}

// change reads "REMOVE/ADD".
func change(text string) ocs.Change {
	remove, add, _ := strings.Cut(text, "/")
	return ocs.Change{Remove: mustMap(remove), Add: mustMap(add)}
}

func open(t testing.TB, dir string) *history.Log {
	t.Helper()
	l, err := history.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func begin(t testing.TB, l *history.Log, e history.Entry) int {
	t.Helper()
	if e.Device == "" {
		e.Device = device
	}
	if e.Change.Empty() && e.UndoOf == 0 {
		e.Change = change("1>36/1>33")
	}
	id, err := l.Begin(e)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func end(t testing.TB, l *history.Log, id int, s history.State) {
	t.Helper()
	if err := l.End(id, s, history.Result{}); err != nil {
		t.Fatal(err)
	}
}

func entries(t testing.TB, l *history.Log) ([]history.Entry, []history.Problem) {
	t.Helper()
	es, ps, err := l.Entries()
	if err != nil {
		t.Fatal(err)
	}
	return es, ps
}

func read(t testing.TB, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return string(data)
}

func write(t testing.TB, dir, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "history.ndjson"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// golden is the line form. The package comment shows its first and third
// line; the checksums are those of Python's zlib.crc32.
const golden = `{"v":1,"kind":"begin","id":1,"t_ns":1763654400123456789,"switch":"rail0","device":"tl1://192.0.2.10:3082","command":"connect rail0 1>33","remove":"1>36","add":"1>33","undo_of":0,"crc":"bd25c25b"}
{"v":1,"kind":"begin","id":2,"t_ns":1763654400223456789,"switch":"rail0","device":"tl1://192.0.2.10:3082","command":"","remove":"","add":"1-3>33-35","undo_of":1,"crc":"5d4c2540"}
{"v":1,"kind":"end","id":1,"t_ns":1763654400323456789,"state":"done","ack_ns":181000000,"error":"","crc":"1b464b25"}
{"v":1,"kind":"end","id":2,"t_ns":1763654400323456789,"state":"failed","ack_ns":0,"error":"a \"b\"\nc","crc":"519c613f"}
`

func TestLog_LineForm(t *testing.T) {
	dir := t.TempDir()
	start := time.Unix(0, 1763654400123456789)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(start))
		l := open(t, dir)
		begin(t, l, history.Entry{Switch: "rail0", Command: "connect rail0 1>33"})
		begin(t, l, history.Entry{Switch: "rail0", Change: change("/1-3>33-35"), UndoOf: 1, Began: start.Add(100 * time.Millisecond)})
		time.Sleep(200 * time.Millisecond)
		if err := l.End(1, history.Done, history.Result{AckNS: 181e6}); err != nil {
			t.Fatal(err)
		}
		if err := l.End(2, history.Failed, history.Result{AckNS: -1, Error: "a \"b\"\nc"}); err != nil {
			t.Fatal(err)
		}
	})
	if diff := cmp.Diff(golden, read(t, dir, "history.ndjson")); diff != "" {
		t.Fatalf("file (-want +got):\n%s", diff)
	}
	want := []history.Entry{
		{
			ID: 1, Began: start, Ended: start.Add(200 * time.Millisecond), Switch: "rail0", Device: device,
			Command: "connect rail0 1>33", Change: change("1>36/1>33"), State: history.Done, AckNS: 181e6,
		},
		{
			ID: 2, Began: start.Add(100 * time.Millisecond), Ended: start.Add(200 * time.Millisecond), Switch: "rail0", Device: device,
			Change: change("/1-3>33-35"), State: history.Failed, Error: "a \"b\"\nc", UndoOf: 1,
		},
	}
	got, problems := entries(t, open(t, dir))
	if diff := cmp.Diff(want, got); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, entries (-want +got):\n%s", problems, diff)
	}
}

func TestLog_Refuses(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	if got, err := l.Begin(history.Entry{Change: change("/1>2")}); err == nil {
		t.Errorf("no device: ID %d", got)
	}
	if got, err := l.Begin(history.Entry{Device: device}); err == nil {
		t.Errorf("empty change: ID %d", got)
	}
	if _, err := l.Begin(history.Entry{Device: device, UndoOf: 1}); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("undo of nothing: %v, want ErrUnknownID", err)
	}
	if err := l.End(1, history.Done, history.Result{}); !errors.Is(err, history.ErrUnknownID) {
		t.Errorf("end of nothing: %v, want ErrUnknownID", err)
	}
	begin(t, l, history.Entry{})
	if err := l.End(1, "finished", history.Result{}); err == nil || !strings.Contains(err.Error(), "finished") {
		t.Errorf("unknown state: %v", err)
	}
	if _, err := l.Begin(history.Entry{Device: "emulated:other/rail0", UndoOf: 1}); err == nil || !strings.Contains(err.Error(), "rail0") {
		t.Errorf("undo on another device: %v", err)
	}
	// An undo that finds nothing to do has an empty change.
	if got, want := begin(t, l, history.Entry{UndoOf: 1}), 2; got != want {
		t.Errorf("ID=%d, want %d", got, want)
	}
	end(t, l, 2, history.Done)
	if _, err := l.Begin(history.Entry{Device: device, UndoOf: 1}); !errors.Is(err, history.ErrUndone) || !strings.Contains(err.Error(), "by 2") {
		t.Errorf("undo of what is undone: %v, want ErrUndone by 2", err)
	}
	if got, want := strings.Count(read(t, dir, "history.ndjson"), "\n"), 3; got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
}

// Ensure that the last outcome counts and a time once known stays known.
func TestLog_EndAgain(t *testing.T) {
	l := open(t, t.TempDir())
	id := begin(t, l, history.Entry{})
	if es, _ := entries(t, l); es[0].State != history.Pending || !es[0].Ended.IsZero() {
		t.Errorf("begun: %+v", es[0])
	}
	for _, tt := range []struct {
		state history.State
		in    history.Result
		want  history.Result
	}{
		{history.Pending, history.Result{Error: "outcome unknown"}, history.Result{Error: "outcome unknown"}},
		{history.Done, history.Result{AckNS: 7}, history.Result{AckNS: 7}},
		{history.Unverified, history.Result{Error: "dark"}, history.Result{AckNS: 7, Error: "dark"}},
	} {
		if err := l.End(id, tt.state, tt.in); err != nil {
			t.Fatal(err)
		}
		es, _ := entries(t, l)
		if got := (history.Result{AckNS: es[0].AckNS, Error: es[0].Error}); es[0].State != tt.state || got != tt.want || es[0].Ended.IsZero() {
			t.Errorf("after %s: %+v, want %+v", tt.state, es[0], tt.want)
		}
	}
}

// Ensure what undo and redo find. Each step records an entry; "1" is a change,
// "u2" an undo of entry 2, followed by its state; then what Last finds and
// UndoneBy of all.
func TestLog_UndoRedo(t *testing.T) {
	done := history.Done
	type step struct {
		undoOf int
		state  history.State
		last   int
		undone string
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"TwiceGoesBackTwo", []step{{0, done, 1, "0"}, {0, done, 2, "0 0"}, {2, done, 1, "0 3 0"}, {1, done, 0, "4 3 0 0"}}},
		{"Redo", []step{{0, done, 1, "0"}, {0, done, 2, "0 0"}, {2, done, 1, "0 3 0"}, {3, done, 2, "0 0 4 0"}, {2, done, 1, "0 5 4 0 0"}}},
		{"RedoOfRedo", []step{{0, done, 1, "0"}, {1, done, 0, "2 0"}, {2, done, 1, "0 3 0"}, {3, done, 0, "2 0 4 0"}, {4, done, 1, "0 3 0 5 0"}}},
		{"NamedUndo", []step{{0, done, 1, "0"}, {0, done, 2, "0 0"}, {1, done, 2, "3 0 0"}, {2, done, 0, "3 4 0 0"}}},
		{"FailedChangeIsPassedOver", []step{{0, done, 1, "0"}, {0, history.Failed, 1, "0 0"}}},
		{"PendingChangeIsFound", []step{{0, done, 1, "0"}, {0, history.Pending, 2, "0 0"}}},
		{"UnverifiedChangeIsFound", []step{{0, done, 1, "0"}, {0, history.Unverified, 2, "0 0"}}},
		{"UndoThatDidNotWork", []step{{0, done, 1, "0"}, {1, history.Failed, 1, "0 0"}, {1, history.Pending, 1, "0 0 0"}, {1, history.Unverified, 1, "0 0 0 0"}, {1, done, 0, "5 0 0 0 0"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			l := open(t, dir)
			other := begin(t, l, history.Entry{Device: "emulated:other/rail0"})
			for i, s := range tt.steps {
				e := history.Entry{UndoOf: s.undoOf}
				if e.UndoOf > 0 {
					e.UndoOf += other
				}
				end(t, l, begin(t, l, e), s.state)
				last, ok, err := l.Last(device)
				if ok {
					last.ID -= other
				}
				if err != nil || ok != (s.last > 0) || last.ID != s.last {
					t.Errorf("after step %d: Last=%d, %t, %v, want %d", i+1, last.ID, ok, err, s.last)
				}
				es, _ := entries(t, l)
				var undone []string
				for _, e := range es[1:] {
					undone = append(undone, fmt.Sprint(max(0, e.UndoneBy-other)))
				}
				if got := strings.Join(undone, " "); got != s.undone {
					t.Errorf("after step %d: UndoneBy=%s, want %s", i+1, got, s.undone)
				}
			}
		})
	}
}

func TestMedianAck(t *testing.T) {
	mk := func(device string, acks ...int64) (es []history.Entry) {
		for _, a := range acks {
			es = append(es, history.Entry{Device: device, AckNS: a})
		}
		return es
	}
	for _, tt := range []struct {
		name    string
		entries []history.Entry
		want    time.Duration
		n       int
	}{
		{"None", nil, 0, 0},
		{"Unknown", mk("a", 0, 0), 0, 0},
		{"OtherDevice", mk("b", 5), 0, 0},
		{"Odd", append(mk("a", 30, 0, 10, 20), mk("b", 1)...), 20, 3},
		{"Even", mk("a", 40, 10, 30, 20), 25, 4},
	} {
		if got, n := history.MedianAck(tt.entries, "a"); got != tt.want || n != tt.n {
			t.Errorf("%s: MedianAck=%v, %d, want %v, %d", tt.name, got, n, tt.want, tt.n)
		}
	}
}

// sample returns the lines of a history of two changes.
func sample(t testing.TB) []string {
	dir := t.TempDir()
	l := open(t, dir)
	end(t, l, begin(t, l, history.Entry{Command: "one"}), history.Done)
	end(t, l, begin(t, l, history.Entry{Command: "two"}), history.Done)
	return slices.Collect(strings.Lines(read(t, dir, "history.ndjson")))
}

// Ensure that what is at the end and not whole is moved aside, that what is
// damaged before is reported and left, and that a log opened before heeds both.
func TestOpen_Damaged(t *testing.T) {
	lines := sample(t)
	join := func(ls ...string) string { return strings.Join(ls, "") }
	flipped := strings.Replace(lines[1], `"done"`, `"fine"`, 1)
	for _, tt := range []struct {
		name, content, torn string
		ids                 string
		problems            []string
	}{
		{"Empty", "", "", "", nil},
		{"Whole", join(lines...), "", "1 done,2 done", nil},
		{"NoNewline", strings.TrimSuffix(join(lines...), "\n"), strings.TrimSuffix(lines[3], "\n"), "1 done,2 pending", []string{"line 4: torn"}},
		{"HalfALine", join(lines[0], lines[1], lines[2][:40]), lines[2][:40], "1 done", []string{"line 3: torn"}},
		{"LastLineFlipped", join(lines[0], flipped), flipped, "1 pending", []string{"line 2: torn"}},
		{"Zeros", join(lines[0], "\x00\x00\x00"), "\x00\x00\x00", "1 pending", []string{"line 2: torn"}},
		{"Garbage", "hello\nworld", "hello\nworld", "", []string{"line 1: torn"}},
		{"SeveralAtTheEnd", join(lines[0], flipped, "x\n", "y"), flipped + "x\ny", "1 pending", []string{"line 2: torn"}},
		{"MiddleFlipped", join(lines[0], flipped, lines[2], lines[3]), "", "1 pending,2 done", []string{"line 2: damaged"}},
		{"MiddleAndEnd", join(lines[0], "\n", lines[2], "{"), "{", "1 pending,2 pending", []string{"line 2: damaged", "line 4: torn"}},
		{"BeginLost", join(lines[1], lines[2]), "", "2 pending", []string{"line 1: outcome of change 1, which has no beginning"}},
		{"Twice", join(lines[0], lines[0], lines[1]), "", "1 done", []string{"line 2: ID 1 comes after ID 1"}},
		{"BackInTime", join(lines[2], lines[0]), "", "2 pending", []string{"line 2: ID 1 comes after ID 2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			before := open(t, dir)
			write(t, dir, tt.content)
			check := func(l *history.Log, problems []string) {
				t.Helper()
				es, ps := entries(t, l)
				var ids []string
				for _, e := range es {
					ids = append(ids, fmt.Sprint(e.ID, " ", e.State))
				}
				if got := strings.Join(ids, ","); got != tt.ids {
					t.Errorf("entries=%q, want %q", got, tt.ids)
				}
				if len(ps) != len(problems) {
					t.Fatalf("problems=%q, want %q", ps, problems)
				}
				for i, p := range ps {
					if !strings.HasPrefix(p.String(), problems[i]) {
						t.Errorf("problem %q, want %q", p, problems[i])
					}
				}
			}
			check(open(t, dir), tt.problems)
			check(before, slices.DeleteFunc(slices.Clone(tt.problems), func(p string) bool { return strings.Contains(p, "torn") }))
			if got := read(t, dir, "history.ndjson.torn-1"); got != tt.torn {
				t.Errorf("kept aside %q, want %q", got, tt.torn)
			}
			if got, want := read(t, dir, "history.ndjson")+tt.torn, tt.content; got != want {
				t.Errorf("left and kept aside: %q, want %q", got, want)
			}
			es, _ := entries(t, before)
			id := begin(t, before, history.Entry{})
			if len(es) > 0 && id <= es[len(es)-1].ID {
				t.Errorf("ID %d given out again", id)
			}
		})
	}
}

// Ensure that each torn end is kept, whoever finds it.
func TestLog_TornMeanwhile(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	end(t, l, begin(t, l, history.Entry{}), history.Done)
	whole := read(t, dir, "history.ndjson")
	for n := 1; n <= 3; n++ {
		torn := fmt.Sprintf(`{"v":1,"kind":"%d`, n)
		write(t, dir, whole+torn)
		if _, ps := entries(t, l); len(ps) != n {
			t.Fatalf("problems=%q, want %d", ps, n)
		}
		if got := read(t, dir, fmt.Sprintf("history.ndjson.torn-%d", n)); got != torn {
			t.Errorf("kept aside %q, want %q", got, torn)
		}
	}
	if got := read(t, dir, "history.ndjson"); got != whole {
		t.Errorf("file=%q, want %q", got, whole)
	}
}

// Ensure that a history of a newer version is not touched, even if a newer
// ocslab writes it while this one runs.
func TestLog_Newer(t *testing.T) {
	lines := sample(t)
	for _, tail := range []string{`{"v":3}` + "\n", `{"v":3,"kind":{"new":1}}` + "\ntorn", `{"v":2.5}`} {
		dir := t.TempDir()
		content := lines[0] + tail
		l := open(t, dir)
		write(t, dir, content)
		_, errOpen := history.Open(dir)
		_, errBegin := l.Begin(history.Entry{Device: device, Change: change("/1>2")})
		_, _, errLast := l.Last(device)
		for _, err := range []error{errOpen, errBegin, errLast, l.End(1, history.Done, history.Result{})} {
			if !errors.Is(err, history.ErrNewer) || !strings.Contains(err.Error(), "line 2") {
				t.Errorf("%q: %v, want ErrNewer in line 2", tail, err)
			}
		}
		if got := read(t, dir, "history.ndjson"); got != content {
			t.Errorf("file=%q, want %q", got, content)
		}
	}
}

// Ensure that lines with a good checksum that mean nothing are reported, not
// cut off, wherever they are. resealed is how a script would write one.
func TestOpen_Nonsense(t *testing.T) {
	for _, tt := range []struct{ object, want string }{
		{`{"v":1,"kind":"begin","id":0}`, "ID 0 is outside"},
		{`{"v":1,"kind":"begin","id":2147483648}`, "ID 2147483648 is outside"},
		{`{"v":1,"kind":"begin","id":2,"undo_of":2}`, "change 2 is said to undo 2"},
		{`{"v":1,"kind":"begin","id":2,"add":"1>>2"}`, "port map"},
		{`{"v":1,"kind":"note","id":2}`, `unknown kind "note"`},
		{`{"v":1,"kind":"end","id":1,"state":"odd"}`, `unknown state "odd"`},
		{`{"v":0,"kind":"end","id":1,"state":"done"}`, "unknown format 0"},
		{`{}`, "invalid character"},
	} {
		dir := t.TempDir()
		content := sample(t)[0] + resealed(tt.object)
		write(t, dir, content)
		es, ps := entries(t, open(t, dir))
		if len(es) != 1 || es[0].State != history.Pending || len(ps) != 1 || ps[0].Line != 2 || !strings.Contains(ps[0].Reason, tt.want) {
			t.Errorf("%s: entries=%v, problems=%q, want %q", tt.object, es, ps, tt.want)
		}
		if got := read(t, dir, "history.ndjson"); got != content {
			t.Errorf("%s: file=%q", tt.object, got)
		}
	}
	t.Run("LastID", func(t *testing.T) {
		dir := t.TempDir()
		write(t, dir, resealed(`{"v":1,"kind":"begin","id":2147483647}`))
		if id, err := open(t, dir).Begin(history.Entry{Device: device, Change: change("/1>2")}); err == nil {
			t.Errorf("ID=%d after the last", id)
		}
	})
}

// Ensure that a file moved away is begun anew.
func TestLog_MovedAway(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	for want := 1; want <= 2; want++ {
		if got := begin(t, l, history.Entry{}); got != want {
			t.Fatalf("ID=%d, want %d", got, want)
		}
	}
	old := filepath.Join(dir, "history.ndjson")
	if err := os.Rename(old, old+".old"); err != nil {
		t.Fatal(err)
	}
	if got, want := begin(t, l, history.Entry{}), 1; got != want {
		t.Errorf("ID=%d, want %d", got, want)
	}
}

func TestOpen_Fails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := history.Open(file); err == nil {
		t.Error("a file was opened as a directory")
	}
	if _, err := history.Open(""); err == nil {
		t.Error("no directory was opened")
	}
	for _, name := range []string{"history.ndjson", "history.lock"} {
		dir := filepath.Join(dir, name+".dir")
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := history.Open(dir)
		if err == nil { // what is no lock does not keep anybody from reading
			_, err = l.Begin(history.Entry{Device: device, Change: change("/1>2")})
		}
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is a directory: %v", name, err)
		}
	}
}

// Ensure that a history can be read where nothing can be written or created, and is empty where there is none.
func TestLog_ReadOnly(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	end(t, l, begin(t, l, history.Entry{}), history.Done)
	readOnly := errors.New("read-only file system")
	for _, torn := range []string{"", "torn"} {
		write(t, dir, strings.TrimSuffix(read(t, dir, "history.ndjson"), "torn")+torn)
		restore := statedir.Inject(func(op, path string) error {
			switch op {
			case "read", "lock":
				return nil
			case "open":
				if !strings.HasSuffix(path, "history.lock") && !strings.HasSuffix(path, "history.ndjson") {
					return readOnly
				}
				return nil
			}
			return readOnly
		})
		fresh, err := history.Open(dir)
		if err != nil {
			restore()
			t.Fatal(err)
		}
		es, ps := entries(t, fresh)
		restore()
		if len(es) != 1 || len(ps) != len(torn)/4 || torn != "" && !strings.Contains(ps[0].Reason, "the last 4 bytes of the file are no whole line") {
			t.Errorf("with %q at the end: %v, %v", torn, es, ps)
		}
	}
	absent := filepath.Join(dir, "absent")
	if es, ps := entries(t, open(t, absent)); len(es)+len(ps) > 0 {
		t.Errorf("%v, %v", es, ps)
	}
	if _, err := os.Stat(absent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading has created the directory: %v", err)
	}
}

// Ensure that a change is recorded with its outcome, or not at all, whichever operation fails.
func TestLog_Record(t *testing.T) {
	made := history.Entry{Device: device, Change: change("1>33/"), State: history.Done}
	for n := 1; ; n++ {
		dir := t.TempDir()
		l := open(t, dir)
		end(t, l, begin(t, l, history.Entry{}), history.Done)
		calls := 0
		restore := statedir.Inject(func(op, path string) error {
			if calls++; calls == n {
				return errors.New("input/output error")
			}
			return nil
		})
		id, err := l.Record(t.Context(), made)
		restore()
		es, ps := entries(t, open(t, dir))
		if err == nil && (id != 2 || len(es) != 2 || es[1].State != history.Done) || err != nil && (id != 0 || len(es) != 1) || len(ps) > 0 {
			t.Errorf("operation %d: %d, %v; %+v, %v", n, id, err, es, ps)
		}
		if calls < n {
			if err != nil || n < 4 {
				t.Errorf("%d operations, %v", calls, err)
			}
			return
		}
	}
}

// Ensure that a lock that is not given back is an error that says by whom, and keeps nobody from reading.
func TestLog_Locked(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	l.SetPatience(20 * time.Millisecond)
	unlock, err := statedir.Lock(t.Context(), filepath.Join(dir, "history.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	if _, err := l.Begin(history.Entry{Device: device, Change: change("/1>2")}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("locked: %v, want a deadline and the number of this process", err)
	}
	l.SetPatience(time.Minute)
	if es, ps := entries(t, l); len(es)+len(ps) > 0 {
		t.Errorf("%v, %v", es, ps)
	}
}

// Ensure that a change that could not be made durable leaves no trace and no
// ID, and that the next one works.
func TestLog_SyncFails(t *testing.T) {
	dir := t.TempDir()
	l := open(t, dir)
	end(t, l, begin(t, l, history.Entry{}), history.Done)
	whole := read(t, dir, "history.ndjson")
	broken := errors.New("input/output error")
	l.SetFsync(func(*os.File) error { return broken })
	if id, err := l.Begin(history.Entry{Device: device, Change: change("/1>2")}); !errors.Is(err, broken) || id != 0 {
		t.Errorf("Begin=%d, %v, want %v", id, err, broken)
	}
	if err := l.End(1, history.Unverified, history.Result{}); !errors.Is(err, broken) {
		t.Errorf("End: %v, want %v", err, broken)
	}
	if got := read(t, dir, "history.ndjson"); got != whole {
		t.Errorf("file=%q, want %q", got, whole)
	}
	write(t, dir, whole+"torn")
	if es, ps := entries(t, l); len(es) != 1 || len(ps) != 1 {
		t.Errorf("entries=%v, problems=%v", es, ps)
	}
	l.SetFsync((*os.File).Sync)
	if got, want := begin(t, l, history.Entry{}), 2; got != want {
		t.Errorf("ID=%d, want %d", got, want)
	}
	if es, _ := entries(t, open(t, dir)); len(es) != 2 || es[0].State != history.Done {
		t.Errorf("entries=%v", es)
	}
}

// Ensure that users in one process and of several Logs never share an ID.
func TestLog_Concurrent(t *testing.T) {
	const users, changes = 6, 12
	dir := t.TempDir()
	logs := []*history.Log{open(t, dir), open(t, dir)}
	var wg sync.WaitGroup
	ids := make([][]int, users)
	for u := range users {
		wg.Go(func() {
			l := logs[u%len(logs)]
			for i := range changes {
				id, err := l.Begin(history.Entry{Device: device, Change: change("/1>2"), Command: fmt.Sprint(u, i)})
				if err == nil {
					ids[u] = append(ids[u], id)
					err = l.End(id, history.Done, history.Result{AckNS: int64(id)})
				}
				if err == nil {
					_, _, err = l.Last(device)
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, l := range append(logs, open(t, dir)) {
		es, ps := entries(t, l)
		if len(es) != users*changes || len(ps) > 0 {
			t.Fatalf("%d entries, problems %v, want %d", len(es), ps, users*changes)
		}
		for i, e := range es {
			if e.ID != i+1 || e.State != history.Done || e.AckNS != int64(e.ID) {
				t.Errorf("entry %d: %+v", i, e)
			}
		}
	}
	all := slices.Sorted(slices.Values(slices.Concat(ids...)))
	if len(slices.Compact(all)) != users*changes {
		t.Errorf("IDs=%v", all)
	}
}
