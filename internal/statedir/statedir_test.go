package statedir_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
)

// TestMain is also the process that holds a lock until it is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("STATEDIR_TEST_HOLD"); path != "" {
		if _, err := statedir.Lock(context.Background(), path); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		io.Copy(io.Discard, os.Stdin) // until killed, or the test ends
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestPath(t *testing.T) {
	root := t.TempDir()
	t.Chdir(root)
	home := filepath.Join(root, "home")
	for _, tt := range []struct {
		name, override, xdg, want string
	}{
		{"Override", filepath.Join(root, "o", "p"), filepath.Join(root, "xdg"), filepath.Join(root, "o", "p")},
		{"RelativeOverride", "rel", "", filepath.Join(root, "rel")},
		{"XDG", "", filepath.Join(root, "xdg"), filepath.Join(root, "xdg", "ocslab")},
		{"RelativeXDG", "", "xdg", filepath.Join(home, ".local", "state", "ocslab")},
		{"Home", "", "", filepath.Join(home, ".local", "state", "ocslab")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("HOME", home)
			t.Setenv("USERPROFILE", home)
			t.Setenv("XDG_STATE_HOME", tt.xdg)
			got, err := statedir.Path(tt.override)
			if err != nil || got != tt.want {
				t.Fatalf("Path(%q)=%q, %v, want %q", tt.override, got, err, tt.want)
			}
			if _, err := os.Stat(got); err == nil && tt.name != "Home" { // which is that of the one before
				t.Fatal("naming the directory has made it")
			}
			if err := statedir.Make(got); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(got)
			if err != nil || !info.IsDir() {
				t.Fatalf("Make did not make it: %v, %v", info, err)
			}
			if got, want := info.Mode().Perm(), fs.FileMode(0o700); got != want && runtime.GOOS != "windows" {
				t.Errorf("mode=%o, want %o", got, want)
			}
		})
	}
	t.Run("NoHome", func(t *testing.T) {
		for _, name := range []string{"HOME", "USERPROFILE", "XDG_STATE_HOME", "home"} {
			t.Setenv(name, "")
		}
		if got, err := statedir.Path(""); err == nil {
			t.Fatalf("Path=%q, want an error", got)
		}
	})
	t.Run("FileInTheWay", func(t *testing.T) {
		path := filepath.Join(root, "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{path, filepath.Join(path, "below")} {
			if err := statedir.Make(dir); err == nil || !strings.Contains(err.Error(), "directory") {
				t.Errorf("Make(%q): %v, want an error about a directory", dir, err)
			}
		}
	})
}

func TestWriteFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	for _, want := range []string{"one", "", "three, which is longer"} {
		if err := statedir.WriteFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Fatalf("content=%q, %v, want %q", got, err, want)
		}
	}
	t.Chdir(dir)
	if err := statedir.WriteFile("plain", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), "plain state.json"; got != want {
		t.Errorf("files=%q, want %q", got, want)
	}
}

// Ensure that a failure leaves the old content and nothing else.
func TestWriteFile_Fails(t *testing.T) {
	if err := statedir.WriteFile(filepath.Join(t.TempDir(), "absent", "f"), nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent directory: %v, want fs.ErrNotExist", err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "name", "full"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := statedir.WriteFile(filepath.Join(dir, "name"), []byte("x")); err == nil {
		t.Error("a directory was replaced by a file")
	}
	if got, want := names(t, dir), "name"; got != want {
		t.Errorf("files=%q, want %q", got, want)
	}
}

// Ensure that readers never see anything but one of the whole contents.
func TestWriteFile_Atomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	contents := []string{strings.Repeat("a", 100_000), strings.Repeat("b", 50_000)}
	if err := statedir.WriteFile(path, []byte(contents[0])); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, c := range contents {
		wg.Go(func() {
			for range 20 {
				if err := statedir.WriteFile(path, []byte(c)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		got, err := os.ReadFile(path)
		if err != nil || string(got) != contents[0] && string(got) != contents[1] {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
	}
	wg.Wait()
}

func TestLock_Busy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := statedir.Lock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, why)
	defer cancel()
	_, err = statedir.Lock(ctx, path)
	if !errors.Is(err, why) || !strings.Contains(err.Error(), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("busy lock: %v, want %v and the number of this process", err, why)
	}
	// The holder may not have got round to writing its number.
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err = statedir.Lock(ctx, path); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process") {
		t.Errorf("busy lock: %v, want a deadline exceeded and another process", err)
	}

	unlock()
	unlock() // does nothing
	again, err := statedir.Lock(t.Context(), path)
	if err != nil {
		t.Fatalf("free lock: %v", err)
	}
	unlock() // still does nothing
	if got, err := os.ReadFile(path); err != nil || string(got) != fmt.Sprintln(os.Getpid()) {
		t.Errorf("lock file=%q, %v, want the number of this process", got, err)
	}
	again()
}

func TestLock_Errors(t *testing.T) {
	if _, err := statedir.Lock(t.Context(), filepath.Join(t.TempDir(), "absent", "lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent directory: %v, want fs.ErrNotExist", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := statedir.Lock(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
}

func TestLock_Exclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var inside atomic.Int32
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				unlock, err := statedir.Lock(t.Context(), path)
				if err != nil {
					t.Error(err)
					return
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d holders at once", n)
				}
				runtime.Gosched()
				inside.Add(-1)
				unlock()
			}
		})
	}
	wg.Wait()
}

// Ensure that another process is kept out, and that its death frees the lock.
func TestLock_Killed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "STATEDIR_TEST_HOLD="+path)
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "held\n" {
		t.Fatalf("child: %q, %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := statedir.Lock(ctx, path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process %d", child.Process.Pid)) {
		t.Errorf("busy lock: %v, want the number of process %d", err, child.Process.Pid)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // killed
	unlock, err := statedir.Lock(t.Context(), path)
	if err != nil {
		t.Fatalf("after the death of the holder: %v", err)
	}
	unlock()
}

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// Ensure readers share a lock, keep writers out, and write nothing.
func TestRLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := statedir.RLock(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("absent: %v, want fs.ErrNotExist", err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o400); err != nil {
		t.Fatal(err)
	}
	one, err := statedir.RLock(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	two, free, err := statedir.TryRLock(path)
	if err != nil || !free {
		t.Fatalf("a second reader: free=%v, %v", free, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "x" {
		t.Errorf("readers have written %q", data)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	for i, unlock := range []func(){one, two} {
		if _, free, err := statedir.TryLock(path); err != nil || free {
			t.Errorf("beside %d readers: free=%v, %v", 2-i, free, err)
		}
		unlock()
	}
	unlock, free, err := statedir.TryLock(path)
	if err != nil || !free {
		t.Fatalf("after the readers: free=%v, %v", free, err)
	}
	defer unlock()
	if _, free, err := statedir.TryRLock(path); err != nil || free {
		t.Errorf("beside a writer: free=%v, %v", free, err)
	}
}

// Ensure a new file is there in whole or not at all, whichever operation fails, and replaces none.
func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for n := 1; ; n++ {
		calls, broken := 0, errors.New("input/output error")
		restore := statedir.Inject(func(string, string) error {
			if calls++; calls == n {
				return broken
			}
			return nil
		})
		err := statedir.Create(path, []byte("one"))
		restore()
		if calls < n {
			if err != nil || n < 4 {
				t.Errorf("%d operations, %v", calls, err)
			}
			break
		}
		if !errors.Is(err, broken) || names(t, dir) != "" {
			t.Errorf("operation %d: %v; files=%q", n, err, names(t, dir))
		}
	}
	if err := statedir.Create(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("there already: %v, want fs.ErrExist", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "one" {
		t.Errorf("content=%q, %v", got, err)
	}
}

// Ensure no byte of a sealed object can be changed unnoticed.
func TestSeal(t *testing.T) {
	line, err := statedir.Seal(map[string]string{"circuits": "1>33"})
	if err != nil || !statedir.Sealed(line) || !strings.Contains(string(line), `"circuits":"1>33","crc":"`) {
		t.Fatalf("%s, %v", line, err)
	}
	for i := range line {
		other := []byte(string(line))
		other[i] ^= 1
		if statedir.Sealed(other) {
			t.Errorf("%s passes", other)
		}
	}
	if statedir.Sealed(nil) || statedir.Sealed([]byte("{}")) {
		t.Error("an object without a seal passes")
	}
}
