package panics_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// panicAt is a panic that has closed the shutter of a port.
func panicAt(second int, who string, closed ...ocs.Port) *panics.Call {
	return &panics.Call{
		At: time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC), Who: who, Reason: "fire", Rev: 1,
		Dark: []panics.Dark{{Switch: "a", Device: "test:a", Closed: closed, State: panics.IsDark}},
	}
}

// save saves a panic where nothing keeps it from that.
func save(t *testing.T, dir string, c *panics.Call) {
	t.Helper()
	if spilled, err := panics.Save(t.Context(), dir, c); err != nil || spilled != nil {
		t.Fatalf("%v, %v", spilled, err)
	}
}

// hold takes the lock of the record, as a process does that was stopped.
func hold(t *testing.T, dir string) (unlock func()) {
	t.Helper()
	unlock, err := statedir.Lock(t.Context(), filepath.Join(dir, "panic.lock"))
	if err != nil {
		t.Fatal(err)
	}
	return unlock
}

// text is what is remembered: "1 alice 1,2; 2 bob 3 lifted".
func text(calls []panics.Call) string {
	var all []string
	for _, c := range calls {
		s := string(rune('0'+c.N)) + " " + c.Who
		for _, d := range c.Dark {
			s += " " + ocs.FormatPorts(d.Closed)
			if d.Lifted {
				s += " lifted"
			}
		}
		all = append(all, s)
	}
	return strings.Join(all, "; ")
}

// remembered reads what is remembered, all of which can be read.
func remembered(t *testing.T, dir string) string {
	t.Helper()
	calls, err := panics.Read(dir)
	if err != nil {
		t.Error(err)
	}
	return text(calls)
}

// files are the names in dir that belong to the record, but for the lock.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "panic*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		names = append(names, filepath.Base(path))
	}
	return names
}

// lift says in the record that all is lifted.
func lift(ctx context.Context, dir string) error {
	return panics.Edit(ctx, dir, func(c *panics.Content) error {
		for i := range c.Calls {
			for j := range c.Calls[i].Dark {
				c.Calls[i].Dark[j].Lifted = true
			}
			c.Calls[i].Lifted = time.Now()
		}
		return nil
	})
}

// Ensure a panic that cannot be written to the record has a file of its own, that both are read as one, and that the
// next change takes it in.
func TestSave_Spilled(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, panicAt(1, "alice", 1))
	unlock := hold(t, dir)
	mine := panicAt(2, "bob", 2)
	for range 2 { // the second time in the same file
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		spilled, err := panics.Save(ctx, dir, mine)
		cancel()
		if spilled == nil || !strings.Contains(spilled.Error(), "panic.lock") || err != nil || mine.N != 2 {
			t.Errorf("%v, %v; number %d", spilled, err, mine.N)
		}
		if got := files(t, dir); len(got) != 2 {
			t.Errorf("files: %v", got)
		}
		if got, want := remembered(t, dir), "1 alice 1; 2 bob "+ocs.FormatPorts(mine.Dark[0].Closed); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		mine.Dark[0].Closed, mine.Rev = []ocs.Port{2, 3}, mine.Rev+1
	}
	unlock()
	save(t, dir, panicAt(3, "carol", 4))
	if got, want := remembered(t, dir), "1 alice 1; 2 bob 2,3; 3 carol 4"; got != want || len(files(t, dir)) != 1 {
		t.Errorf("%q, want %q; files %v", got, want, files(t, dir))
	}
	// What comes of it after it was lifted does not put it in force again; more that it darkens does.
	if err := lift(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	mine.Dark[0].Closed, mine.Rev = []ocs.Port{2}, mine.Rev+1
	save(t, dir, mine)
	if got, want := remembered(t, dir), "1 alice 1 lifted; 2 bob 2,3 lifted; 3 carol 4 lifted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	mine.Dark[0].Closed, mine.Rev = []ocs.Port{2, 5}, mine.Rev+1
	save(t, dir, mine)
	if got, want := remembered(t, dir), "1 alice 1 lifted; 2 bob 2,3 lifted 2,5; 3 carol 4 lifted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Ensure two panics that took one number, as neither could see the other, keep apart.
func TestRead_SameNumber(t *testing.T) {
	dir := t.TempDir()
	mine := panicAt(2, "bob", 2)
	if err := panics.Spill(dir, mine); err != nil || mine.N != 1 {
		t.Fatalf("%d, %v", mine.N, err)
	}
	other := panicAt(1, "alice", 1)
	other.N = 1
	if err := statedir.WriteFile(filepath.Join(dir, panics.FileName), sealed(t, other)); err != nil {
		t.Fatal(err)
	}
	if got, want := remembered(t, dir), "1 alice 1; 2 bob 2"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// sealed is the file of a panic.
func sealed(t *testing.T, c *panics.Call) []byte {
	t.Helper()
	data, err := statedir.Seal(panics.Content{V: 2, Calls: []panics.Call{*c}})
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

// Ensure no character of the record can be changed unnoticed, that what is damaged or newer stays as it is, and that
// panics go on beside it and can be lifted.
func TestRead_Damaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, panics.FileName)
	whole := string(sealed(t, panicAt(1, "alice", 1, 33)))
	for i := range len(whole) - 1 {
		if err := os.WriteFile(path, []byte(whole[:i]+string(whole[i]^1)+whole[i+1:]), 0o600); err != nil {
			t.Fatal(err)
		}
		if calls, err := panics.Read(dir); err == nil || len(calls) > 0 {
			t.Fatalf("character %d: %+v, %v", i, calls, err)
		}
	}
	for _, tt := range []struct {
		name, content string
		want          error
	}{
		{"Digit", strings.Replace(whole, `"closed":[1,33]`, `"closed":[9,33]`, 1), panics.ErrDamaged},
		{"Half", whole[:len(whole)/2], panics.ErrDamaged},
		{"Empty", "", panics.ErrDamaged},
		{"Unsealed", `{"v":2,"calls":[]}`, panics.ErrDamaged},
		{"SaidToBeOld", strings.Replace(whole, `"v":2`, `"v":1`, 1), panics.ErrDamaged},
		{"Newer", `{"v":3,"calls":{}}`, panics.ErrNewer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, panics.FileName)
			if err := os.WriteFile(path, []byte(tt.content), 0o600); err != nil {
				t.Fatal(err)
			}
			if calls, err := panics.Read(dir); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), path) || len(calls) > 0 {
				t.Fatalf("%+v, %v", calls, err)
			}
			mine := panicAt(2, "bob", 2)
			save(t, dir, mine)
			mine.Dark[0].Closed, mine.Rev = []ocs.Port{2, 3}, 2
			save(t, dir, mine)
			if calls, err := panics.Read(dir); !errors.Is(err, tt.want) || text(calls) != "1 bob 2,3" {
				t.Errorf("%q, %v", text(calls), err)
			}
			if err := lift(t.Context(), dir); err != nil {
				t.Error(err)
			}
			if calls, err := panics.Read(dir); !errors.Is(err, tt.want) || text(calls) != "1 bob 2,3 lifted" {
				t.Errorf("lifted: %q, %v", text(calls), err)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != tt.content {
				t.Errorf("overwritten: %q, %v", data, err)
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			save(t, dir, panicAt(3, "carol", 4))
			if got, want := remembered(t, dir), "1 bob 2,3 lifted; 2 carol 4"; got != want || len(files(t, dir)) != 1 {
				t.Errorf("%q, want %q; files %v", got, want, files(t, dir))
			}
		})
	}
}

// Ensure a file of version 1, which had no checksum, is read, and gets one.
func TestRead_Version1(t *testing.T) {
	dir := t.TempDir()
	text := `{"v":1,"calls":[{"n":4,"at":"2026-01-02T03:04:05Z","who":"eve","reason":"smoke","dark":[{"switch":"a","device":"test:a","closed":[1,2]}]}]}`
	path := filepath.Join(dir, panics.FileName)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	save(t, dir, panicAt(59, "bob", 3))
	if got, want := remembered(t, dir), "4 eve 1,2; 5 bob 3"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	data, err := os.ReadFile(path)
	if err != nil || !statedir.Sealed(data[:len(data)-1]) {
		t.Errorf("%s, %v", data, err)
	}
}

// Ensure that whichever operation fails, a panic is on record or that is an error; that a panic before it stays so; and
// that nothing is half recorded.
func TestSave_Fails(t *testing.T) {
	for _, broken := range []error{errors.New("input/output error"), syscall.ENOSPC} {
		for n := 1; ; n++ {
			dir := t.TempDir()
			save(t, dir, panicAt(1, "alice", 1))
			calls := 0
			restore := statedir.Inject(func(string, string) error {
				if calls++; calls == n {
					return broken
				}
				return nil
			})
			spilled, err := panics.Save(t.Context(), dir, panicAt(2, "bob", 2))
			restore()
			want := "1 alice 1; 2 bob 2"
			if got := remembered(t, dir); err != nil || got != want {
				t.Errorf("operation %d: %v, %v; %q, want %q", n, spilled, err, got, want)
			}
			save(t, dir, panicAt(3, "carol", 3))
			if got, want := remembered(t, dir), want+"; 3 carol 3"; got != want || len(files(t, dir)) != 1 {
				t.Errorf("operation %d: afterwards %q, want %q; files %v", n, got, want, files(t, dir))
			}
			if calls < n {
				if n < 8 || spilled != nil {
					t.Errorf("%d operations, %v", calls, spilled)
				}
				break
			}
		}
		// Every one.
		dir := t.TempDir()
		restore := statedir.Inject(func(string, string) error { return broken })
		_, err := panics.Save(t.Context(), dir, panicAt(2, "bob", 2))
		restore()
		if !errors.Is(err, broken) || remembered(t, dir) != "" || len(files(t, dir)) > 0 {
			t.Errorf("%v; %q, files %v", err, remembered(t, dir), files(t, dir))
		}
	}
}

// Ensure that without a directory nothing is remembered, which is no error for those who read, and that reading creates
// nothing.
func TestRead_NoDirectory(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	for _, dir := range []string{"", absent} {
		if calls, err := panics.Read(dir); err != nil || len(calls) > 0 {
			t.Errorf("%q: %+v, %v", dir, calls, err)
		}
	}
	if _, err := os.Stat(absent); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading has created it: %v", err)
	}
	if _, err := panics.Save(t.Context(), "", panicAt(1, "bob", 1)); !errors.Is(err, panics.ErrNoDirectory) {
		t.Errorf("saved nowhere: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if calls, err := panics.Read(file); err == nil || len(calls) > 0 {
		t.Errorf("a file in its place: %+v, %v", calls, err)
	}
	if _, err := panics.Save(t.Context(), file, panicAt(1, "bob", 1)); err == nil {
		t.Error("saved in a file")
	}
}
