package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ocslab/ocslab/experiment/hbd"
)

// Ensure bundles whose lanes differ, and cables that were left half open, are told by the exit code as what the light of
// rings is that do not close.
func TestExitCode_InfiniteHBD(t *testing.T) {
	for _, err := range []error{hbd.ErrMixed, hbd.ErrHalfOpen} {
		joined := errors.Join(fmt.Errorf("n01-r: %w", err), errors.New("n02-l: another"))
		if got := exitCode(joined); got != exitVerify {
			t.Errorf("%v: exit code %d, want %d", err, got, exitVerify)
		}
	}
}
