//go:build unix && !aix

package runs

import (
	"golang.org/x/sys/unix"
)

// held reports whether a process holds the lock at path. It takes a share of it for a moment
// at most, and no share of one that is held.
func held(path string) bool {
	f, err := openFile(path)
	if err != nil {
		return false // no lock, no process
	}
	defer f.Close() // frees the share
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err {
		case nil:
			return false
		case unix.EINTR:
		default:
			return err == unix.EWOULDBLOCK
		}
	}
}
