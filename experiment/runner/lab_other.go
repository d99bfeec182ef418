//go:build !linux

package runner

import "runtime"

// driver is not known here.
func driver(string, string) (name, firmware string) { return "", "" }

// machine returns the system in place of its version. The axis of marks begins with the
// process here, so no two sessions share one.
func machine() (kernel, boot string) { return runtime.GOOS, "" }
