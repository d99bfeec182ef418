package statedir

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The wait between two tries to take a lock doubles from the first to the
// second. Neither flock nor LockFileEx can wait and be cancelled.
const (
	firstWait   = time.Millisecond
	longestWait = 25 * time.Millisecond
)

// Lock takes the exclusive lock at path and returns the function that gives
// it back, which may be called more than once. Between processes, and within
// one, at most one caller holds it. It is advisory: it keeps out those who ask
// for it. The file is created if need be and must never be removed, as a
// second file of the same name would be a second lock.
//
// While another holds the lock, Lock waits until ctx ends; the error then
// matches context.Cause(ctx) and names the holder's process. Whoever waits
// longest is not served first.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, false)
}

// RLock is Lock for reading: any number of callers have the lock at the same time, and nobody has that of Lock
// meanwhile. It writes nothing, so it works on read-only media. A file that does not exist is an error that matches
// [fs.ErrNotExist].
func RLock(ctx context.Context, path string) (unlock func(), err error) {
	return lock(ctx, path, true)
}

func lock(ctx context.Context, path string, shared bool) (unlock func(), err error) {
	if ctx.Err() != nil {
		return nil, fmt.Errorf("lock %s: %w", path, context.Cause(ctx))
	}
	f, err := openLock(path, shared)
	if err != nil {
		return nil, err
	}
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		taken, err := take(f, shared)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if taken {
			break
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			defer f.Close()
			return nil, fmt.Errorf("lock %s is held by %s: %w", path, holder(f), context.Cause(ctx))
		}
	}
	return held(f, shared), nil
}

// TryLock is Lock without waiting: free is false while another holds the lock.
func TryLock(path string) (unlock func(), free bool, err error) { return try(path, false) }

// TryRLock is RLock without waiting: free is false while another has the lock of Lock.
func TryRLock(path string) (unlock func(), free bool, err error) { return try(path, true) }

func try(path string, shared bool) (unlock func(), free bool, err error) {
	f, err := openLock(path, shared)
	if err != nil {
		return nil, false, err
	}
	taken, err := take(f, shared)
	if err != nil || !taken {
		f.Close()
		if err != nil {
			err = fmt.Errorf("lock %s: %w", path, err)
		}
		return nil, false, err
	}
	return held(f, shared), true, nil
}

func openLock(path string, shared bool) (*os.File, error) {
	flag := os.O_RDWR | os.O_CREATE
	if shared {
		flag = os.O_RDONLY
	}
	f, err := OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return f, nil
}

func take(f *os.File, shared bool) (taken bool, err error) {
	if err := failing("lock", f.Name()); err != nil {
		return false, err
	}
	return tryLock(f, shared)
}

// held writes down whose the lock on f is, and returns what gives it back.
func held(f *os.File, shared bool) (unlock func()) {
	if shared {
		return sync.OnceFunc(func() { f.Close() })
	}
	// The number is for people; a full disk must not spoil the lock.
	_ = f.Truncate(0)
	_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return sync.OnceFunc(func() {
		_ = f.Truncate(0)
		f.Close() // frees the lock
	})
}

// Holder says who holds the lock at path, as "process 4711", for people: it may have been
// given back since.
func Holder(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "another process"
	}
	defer f.Close()
	return holder(f)
}

// holder says who holds the lock on f. It is empty for a moment after the
// lock was taken.
func holder(f *os.File) string {
	text, _ := io.ReadAll(io.NewSectionReader(f, 0, 32))
	if pid := strings.TrimSpace(string(text)); pid != "" {
		return "process " + pid
	}
	return "another process"
}
