package tuitest_test

import (
	"testing"

	"github.com/ocslab/ocslab/tui/live"
	"github.com/ocslab/ocslab/tui/tuitest"
)

var _ live.Lab = (*tuitest.Lab)(nil)

func TestStates(t *testing.T) {
	for name, s := range map[string]*live.State{
		"empty": tuitest.Empty(), "testbed": tuitest.Testbed(), "troubled": tuitest.Troubled(), "large": tuitest.Large(384, 64), "bundle": tuitest.Bundle(),
	} {
		for _, sw := range s.Switches {
			if err := sw.Identity.Geometry.Check(sw.Map); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.LastEvent == nil && len(s.Log) > 0 {
			t.Errorf("%s: has a log and no last event", name)
		}
	}
}
