package runs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// disk is a file that grows; tests have one that fills up.
type disk interface {
	WriteAt(b []byte, at int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

func openDisk(path string) (disk, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return diskFile{f}, nil
}

type diskFile struct{ *os.File }

// Sync makes the content durable, and of what is known of the file only its size.
func (f diskFile) Sync() error { return syncData(f.File) }

// tail is the place in a file where it grows.
type tail struct {
	disk
	good  int64 // all before it is on disk and stays
	dirty bool  // there may be something behind it
}

// add makes b a part of the file, durably, or leaves the file as it was. When even that
// fails, the next add tries again, before anything else is written.
func (t *tail) add(b []byte) error {
	if t.dirty {
		if err := t.cut(); err != nil {
			return err
		}
	}
	_, err := t.WriteAt(b, t.good)
	if err == nil {
		err = t.Sync()
	}
	if err != nil {
		t.dirty = true
		_ = t.cut() // the caller is told of the first failure
		return err
	}
	t.good += int64(len(b))
	return nil
}

// takeBack undoes the last add, of n bytes.
func (t *tail) takeBack(n int) {
	t.good -= int64(n)
	t.dirty = true
	_ = t.cut() // tried again before the next add
}

func (t *tail) cut() error {
	if err := t.Truncate(t.good); err != nil {
		return err
	}
	t.dirty = false
	return nil
}

// why says in words for people what a failed write means.
func why(err error) string {
	for _, known := range []struct {
		errno syscall.Errno
		text  string
	}{
		{syscall.ENOSPC, "the disk is full"},
		{syscall.EDQUOT, "the disk quota is used up"},
		{syscall.EROFS, "the file system is read-only"},
		{syscall.EFBIG, "the file is larger than this process may write"},
		{syscall.EIO, "the disk fails"},
	} {
		if errors.Is(err, known.errno) {
			return known.text
		}
	}
	return "the disk does not take it"
}

// hostClock reads the wall clock, and the axis of the marks at the same moment.
func hostClock() (time.Time, int64) {
	now := time.Now()
	return now.UTC().Round(0), timeline.HostAxis().NS(now)
}

// unkept is the error of a point that could not be written.
func (w *Writer) unkept(what string, err error) error {
	return fmt.Errorf("runs: %s: %s could not be kept, as %s: %w; the %d finished points of the run are kept: see to %s, then \"ocslab runs resume %s\"",
		w.id, what, why(err), err, len(w.finished), w.dir, w.id)
}
