package fabric

import (
	"fmt"
	"os"
	"path/filepath"
)

// prefix begins the names of the directories of fabrics.
const prefix = "ocslab-fabric-"

// ownDir is the directory of one fabric. It is locked as long as its owner lives.
type ownDir struct {
	path string
	lock *os.File
}

// newOwnDir makes a directory in base, and removes those whose owners have died.
func newOwnDir(base string) (*ownDir, error) {
	if base == "" {
		base = os.TempDir()
	}
	base, err := filepath.Abs(base)
	if err == nil {
		err = os.MkdirAll(base, 0o755)
	}
	if err != nil {
		return nil, fmt.Errorf("fabric: directory for the published trees: %w", err)
	}
	sweep(base)
	// Until it is locked somebody else's sweep may take a new directory for an
	// orphan; then there is one more try.
	for {
		d, err := lockNew(base)
		if err != nil {
			return nil, fmt.Errorf("fabric: directory for the published trees: %w", err)
		}
		if d != nil {
			return d, nil
		}
	}
}

// lockNew returns nil if somebody has removed the directory before it was
// locked.
func lockNew(base string) (*ownDir, error) {
	path, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return nil, err
	}
	lock, err := lockDir(path, true)
	if err != nil || lock == nil {
		return nil, err
	}
	// MkdirTemp made it for us alone, but nothing in it is secret, and the hosts'
	// users may be others.
	if err := os.Chmod(path, 0o755); err != nil {
		lock.Close()
		return nil, err
	}
	return &ownDir{path, lock}, nil
}

// sweep removes what fabrics that were killed have left in base. It does what it
// can: a failure is no reason not to start.
func sweep(base string) {
	orphans, err := filepath.Glob(filepath.Join(base, prefix+"*")) // base may hold a pattern; then it matches less
	if err != nil {
		return
	}
	for _, path := range orphans {
		if lock, err := lockDir(path, false); err == nil && lock != nil {
			_ = os.RemoveAll(path)
			lock.Close()
		}
	}
}

// remove removes the directory.
func (d *ownDir) remove() error {
	err := os.RemoveAll(d.path)
	d.lock.Close()
	return err
}
