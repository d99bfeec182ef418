//go:build !windows && (!unix || aix)

package statedir

import (
	"errors"
	"os"
)

// tryLock fails: a lock that a killed process would leave behind, or none at
// all, is worse than no history.
func tryLock(*os.File, bool) (taken bool, err error) { return false, errors.ErrUnsupported }

// SyncDir does nothing here.
func SyncDir(string) error { return nil }
