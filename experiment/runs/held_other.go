//go:build !unix || aix

package runs

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
)

// held reports whether a process holds the lock at path, by trying to take it.
func held(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false // no lock, no process
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	unlock, err := statedir.Lock(ctx, path)
	if err != nil {
		return errors.Is(err, context.DeadlineExceeded)
	}
	unlock()
	return false
}
