package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ocslab/ocslab/experiment/runner"
	"github.com/ocslab/ocslab/ocs"
)

// Ensure that light that is to stay dark is asked for once, that the run says that it was not put
// back, and that the hooks of the end are run nevertheless.
func TestRun_LeavesDark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		r := w.runner(faultPlan())
		asked := 0
		r.Light = func(context.Context, map[string]ocs.Map) error {
			asked++
			return fmt.Errorf("%w: a panic was called", runner.ErrDark)
		}
		sum, err := r.Run(t.Context())
		if asked != 1 {
			t.Errorf("the light was asked for %d times, want once", asked)
		}
		if sum.Restored || err == nil || !strings.Contains(err.Error(), "a panic was called") {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}
