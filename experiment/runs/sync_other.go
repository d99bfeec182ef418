//go:build !linux

package runs

import "os"

func syncData(f *os.File) error { return f.Sync() }
