package runner

import (
	"fmt"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/experiment/plan"
)

// State is what a run is doing.
type State string

// The states of a run.
const (
	Ready    State = "ready"    // not begun
	Running  State = "running"  // setting up, warming up, or measuring
	Pausing  State = "pausing"  // pauses after the point that is under way
	Paused   State = "paused"   // waits for Continue
	Stopping State = "stopping" // ends after the point that is under way
	Aborting State = "aborting" // ends as soon as the bench returns
	Leaving  State = "leaving"  // finally: puts the light back
	Ended    State = "ended"
)

// Progress is how far a run is.
type Progress struct {
	State State
	// Done and Total count points; Total is without those that were dropped.
	Done, Total int
	// Left is about how long the rest takes: as the points that were measured suggest,
	// where there are three of a condition, and as the plan expects where not.
	Left time.Duration
	// Point is the ID of the one under way, 0 between them, Condition its number and
	// Label what varies.
	Point, Condition int
	Label            string
	// Step is what is done, in words: "warming up, lap 2 of 3", "dp to pp".
	Step string
}

// tell tells what is done now. When that panics, nothing more is told and the run ends
// after the point.
func (s *session) tell(step string) {
	if s.Progress == nil || s.untold != nil {
		return
	}
	p := Progress{
		State: s.State(), Done: len(s.done), Total: len(s.Plan.Points) - len(s.dropped),
		Left: s.left(), Step: step,
	}
	if s.point != nil {
		c := s.Plan.Condition(s.point.Condition)
		p.Point, p.Condition, p.Label = s.point.ID, c.Number, c.Label
	}
	if err := experiment.Guard(func() error { s.Progress(p); return nil }); err != nil {
		s.untold = fmt.Errorf("tell the progress: %w", err)
	}
}

// left is about how long the rest takes.
func (s *session) left() time.Duration {
	left := s.forecast.total + s.setUps
	if s.point != nil && !s.begun.IsZero() {
		left -= min(time.Since(s.begun), s.forecast.each(kindOf(*s.point)))
	}
	return max(left, 0)
}

// expectSetUps expects the set-ups that the points from the i-th on will need.
func (s *session) expectSetUps(i int) {
	s.setUps = 0
	on := s.on
	for _, p := range s.Plan.Points[i:] {
		c := s.Plan.Condition(p.Condition)
		if s.done[p.ID] || s.dropped[p.ID] || !plan.NeedsSetup(on, c) {
			continue
		}
		s.setUps += plan.SetupTime + time.Duration(s.Plan.WarmUps*len(c.Sequence))*c.Expected
		on = c
	}
}
