//go:build unix

package fabric

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockDir locks the directory at path, which belongs to this user, and returns what
// holds the lock until it is closed. It returns nil when the directory is another
// user's, when there is none (any more), and, unless it is to wait, when another
// holds the lock.
func lockDir(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_DIRECTORY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	locked, err := lockFile(f, path, how)
	if err != nil || !locked {
		f.Close()
		return nil, err
	}
	return f, nil
}

func lockFile(f *os.File, path string, how int) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	if st, ok := mine.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return false, nil
	}
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err == nil {
			break
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false, nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return false, os.NewSyscallError("flock", err)
		}
	}
	now, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, now), err
}
