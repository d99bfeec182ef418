//go:build unix && !aix

package statedir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks f if nobody else holds it, shared with other readers or for the caller alone. The lock belongs to the open file,
// so it also keeps two callers in one process apart, and closing the file, or
// the death of the process, frees it.
func tryLock(f *os.File, shared bool) (taken bool, err error) {
	how := unix.LOCK_EX
	if shared {
		how = unix.LOCK_SH
	}
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err {
		case nil:
			return true, nil
		case unix.EWOULDBLOCK:
			return false, nil
		case unix.EINTR:
		default:
			return false, os.NewSyscallError("flock", err)
		}
	}
}

// SyncDir makes the names in dir durable: what was created, renamed or
// removed in it before is so after a power loss. A file system that cannot do
// that for directories is taken to have no need of it.
func SyncDir(dir string) error {
	if err := failing("sync", dir); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
