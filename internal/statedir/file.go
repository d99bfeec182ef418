package statedir

import (
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
)

// fail is what Inject has set; nil outside tests.
var fail atomic.Pointer[func(op, path string) error]

// Inject makes file operations fail, for tests: from then on f is called before each operation of this package with
// what it is about to do (open, create, lock, read, write, sync, truncate, rename, remove, mkdir) and the path, and
// the operation is not done when f returns an error. restore ends that.
func Inject(f func(op, path string) error) (restore func()) {
	before := fail.Swap(&f)
	return func() { fail.Store(before) }
}

// failing returns the error with which an operation is to fail, nil outside tests.
func failing(op, path string) error {
	f := fail.Load()
	if f == nil {
		return nil
	}
	if err := (*f)(op, path); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// OpenFile is [os.OpenFile].
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	if err := failing("open", path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, flag, perm)
}

// ReadFile is [os.ReadFile].
func ReadFile(path string) ([]byte, error) {
	if err := failing("read", path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// Write writes all of data to f.
func Write(f *os.File, data []byte) error {
	if err := failing("write", f.Name()); err != nil {
		return err
	}
	_, err := f.Write(data)
	return err
}

// Sync makes what was written to f durable.
func Sync(f *os.File) error {
	if err := failing("sync", f.Name()); err != nil {
		return err
	}
	return f.Sync()
}

// Truncate is [os.Truncate].
func Truncate(path string, size int64) error {
	if err := failing("truncate", path); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// Rename is [os.Rename].
func Rename(from, to string) error {
	if err := failing("rename", to); err != nil {
		return err
	}
	return os.Rename(from, to)
}

// Remove is [os.Remove].
func Remove(path string) error {
	if err := failing("remove", path); err != nil {
		return err
	}
	return os.Remove(path)
}

// Create writes data to a new file at path, with mode 0600, and makes it durable. The error matches [fs.ErrExist] when
// there is one already. After another error there is none.
func Create(path string, data []byte) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = Write(f, data)
	if err == nil {
		err = Sync(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = SyncDir(dirOf(path))
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return err
}
