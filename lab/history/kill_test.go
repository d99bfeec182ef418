package history_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab/history"
)

// TestMain is also the process that writes until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("HISTORY_TEST_WRITER"); dir != "" {
		seed, _ := strconv.ParseUint(os.Getenv("HISTORY_TEST_SEED"), 10, 64)
		fmt.Fprintln(os.Stderr, writer(dir, rand.New(rand.NewPCG(seed, 1))))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// resealed returns the line for a JSON object.
func resealed(object string) string {
	return fmt.Sprintf("%s,\"crc\":\"%08x\"}\n", strings.TrimSuffix(object, "}"), crc32.ChecksumIEEE([]byte(object)))
}

// writer begins and ends changes for ever and says so on standard output, one
// line after each: "begin 3", "end 3". A few changes take more than a page.
// As a kill hardly ever hits a write, it sometimes stops half way in one, with
// the lock held, says "torn 0", and waits for its end.
func writer(dir string, rng *rand.Rand) error {
	l, err := history.Open(dir)
	if err != nil {
		return err
	}
	// What the kernel has, a kill does not take away; fsync is for the power.
	l.SetFsync(func(*os.File) error { return nil })
	for last := 0; ; {
		if rng.IntN(40) == 0 {
			if _, err := statedir.Lock(context.Background(), filepath.Join(dir, "history.lock")); err != nil {
				return err
			}
			f, err := os.OpenFile(filepath.Join(dir, "history.ndjson"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			if _, err := f.WriteString(`{"v":1,"kind":"begin","id":9999`); err != nil {
				return err
			}
			fmt.Println("torn 0")
			time.Sleep(time.Minute) // is killed
		}
		e := history.Entry{Device: device, Change: change("1>36/1>33"), Command: strings.Repeat("x", rng.IntN(100))}
		if rng.IntN(12) == 0 {
			e.Command = strings.Repeat("y", 5000)
		}
		if rng.IntN(4) == 0 {
			e.UndoOf = last
		}
		id, err := l.Begin(e)
		switch {
		case errors.Is(err, history.ErrUndone): // the same one drawn again
			continue
		case err != nil:
			return err
		}
		fmt.Println("begin", id)
		last = id
		if rng.IntN(8) == 0 {
			continue
		}
		if err := l.End(id, history.Done, history.Result{AckNS: int64(id)}); err != nil {
			return err
		}
		fmt.Println("end", id)
	}
}

// Ensure that a kill at any moment loses nothing that was acknowledged, with
// one writer or two.
func TestLog_Killed(t *testing.T) {
	rounds := 80 // and 20 of them with a second writer
	if testing.Short() {
		rounds = 16
	}
	const seed = 20251120
	rng := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	var mu sync.Mutex // guards begun, ended and tears
	begun, ended, tears := map[int]bool{}, map[int]bool{}, 0
	// run starts a writer, kills it after some lines, and takes down what it
	// said, up to its death.
	run := func(seed uint64, lines int) error {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), "HISTORY_TEST_WRITER="+dir, fmt.Sprint("HISTORY_TEST_SEED=", seed))
		var stderr strings.Builder
		child.Stderr = &stderr
		stdout, err := child.StdoutPipe()
		if err != nil {
			return err
		}
		if err := child.Start(); err != nil {
			return err
		}
		for in := bufio.NewScanner(stdout); ; lines-- {
			if lines == 0 {
				if err := child.Process.Kill(); err != nil {
					return err
				}
			}
			if !in.Scan() {
				break
			}
			var verb string
			var id int
			if n, _ := fmt.Sscan(in.Text(), &verb, &id); n != 2 {
				break // killed while it said so
			}
			mu.Lock()
			switch {
			case verb == "torn":
				tears++
				lines = 1 // kill it next
			case verb == "end":
				ended[id] = true
			case begun[id]:
				err = fmt.Errorf("ID %d was given out twice", id)
			default:
				begun[id] = true
			}
			mu.Unlock()
		}
		_, _ = io.Copy(io.Discard, stdout)
		_ = child.Wait() // it was killed
		if stderr.Len() > 0 {
			return errors.New(stderr.String())
		}
		return err
	}
	watcher := open(t, dir) // reads along and moves torn ends aside, too
	for round := range rounds {
		var wg sync.WaitGroup
		for range 1 + (round%4)/3 {
			seed, lines := rng.Uint64(), rng.IntN(16)
			wg.Go(func() {
				if err := run(seed, lines); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if round%8 == 0 {
			entries(t, watcher)
		}
	}
	es, ps := entries(t, open(t, dir))
	watched, torn := entries(t, watcher)
	if diff := cmp.Diff(es, watched); diff != "" {
		t.Errorf("read anew and read along (-anew +along):\n%s", diff)
	}
	for _, p := range append(ps, torn...) {
		if !strings.HasPrefix(p.Reason, "torn") {
			t.Errorf("problem: %v", p)
		}
	}
	last := 0
	for _, e := range es {
		if e.ID != last+1 {
			t.Errorf("entry %d comes after %d", e.ID, last)
		}
		last = e.ID
		if ended[e.ID] && (e.State != history.Done || e.AckNS != int64(e.ID)) {
			t.Errorf("entry %d was ended, is %s", e.ID, e.State)
		}
		delete(begun, e.ID)
	}
	for id := range begun {
		t.Errorf("entry %d was begun and is missing", id)
	}
	aside, err := filepath.Glob(filepath.Join(dir, "history.ndjson.torn-*"))
	if err != nil || tears > 0 && len(aside) == 0 {
		t.Errorf("%d writes were torn, %d kept, %v", tears, len(aside), err)
	}
	t.Logf("%d entries, %d writes torn, %d kept", len(es), tears, len(aside))
}
