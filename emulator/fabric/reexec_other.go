//go:build !linux

package fabric

import (
	"errors"
	"fmt"
)

// Reexec fails with [errors.ErrUnsupported].
func Reexec(string) (exit int, done bool, err error) {
	return 0, false, fmt.Errorf("fabric: user namespaces are Linux only: %w", errors.ErrUnsupported)
}
