package statedir

import (
	"os"

	"golang.org/x/sys/windows"
)

// tryLock locks f if nobody else holds it; closing the file, or the death of
// the process, frees it. Locks are mandatory here, so the byte that is locked
// lies far behind the holder's number, which others want to read.
func tryLock(f *os.File, shared bool) (taken bool, err error) {
	flags := uint32(windows.LOCKFILE_FAIL_IMMEDIATELY)
	if !shared {
		flags |= windows.LOCKFILE_EXCLUSIVE_LOCK
	}
	at := &windows.Overlapped{OffsetHigh: 1 << 30}
	switch err := windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, at); err {
	case nil:
		return true, nil
	case windows.ERROR_LOCK_VIOLATION, windows.ERROR_IO_PENDING:
		return false, nil
	default:
		return false, os.NewSyscallError("LockFileEx", err)
	}
}

// SyncDir does nothing: directories cannot be flushed on Windows.
func SyncDir(string) error { return nil }
