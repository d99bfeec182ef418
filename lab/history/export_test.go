package history

import (
	"os"
	"time"
)

// SetFsync replaces what makes writes durable.
func (l *Log) SetFsync(f func(*os.File) error) { l.fsync = f }

// SetPatience sets how long to wait for the lock.
func (l *Log) SetPatience(d time.Duration) { l.patience = d }
