package main

import (
	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// streaming is a Writer of a run that also prints what it records, with --json: a point
// at a time, once it is kept.
type streaming struct {
	*runs.Writer
	app   *app
	point plan.Point
	lines []any
}

func (s *streaming) keep(v any) {
	if s.app.set.JSON {
		s.lines = append(s.lines, v)
	}
}

func (s *streaming) BeginPoint(p plan.Point) error {
	s.point, s.lines = p, s.lines[:0]
	return s.Writer.BeginPoint(p)
}

func (s *streaming) Reconfiguration(r runs.Reconfiguration) {
	s.keep(struct {
		Kind string `json:"kind"` // "reconfiguration"
		runs.Reconfiguration
	}{"reconfiguration", r})
	s.Writer.Reconfiguration(r)
}

func (s *streaming) Mark(m timeline.Mark) {
	s.keep(m)
	s.Writer.Mark(m)
}

func (s *streaming) Truth(m timeline.Mark) {
	s.keep(truthLine{"truth", m.Stage, m.Subject, m.Interval, m.Detail, m.Reconfiguration})
	s.Writer.Truth(m)
}

func (s *streaming) Note(reconfiguration int, n watch.Note) {
	s.keep(n)
	s.Writer.Note(reconfiguration, n)
}

func (s *streaming) Event(e runs.Event) error {
	if s.app.set.JSON {
		s.app.json(struct {
			Kind string `json:"kind"` // "run-event"
			runs.Event
		}{"run-event", e})
	}
	return s.Writer.Event(e)
}

func (s *streaming) FinishPoint() error {
	if err := s.Writer.FinishPoint(); err != nil {
		return err
	}
	for _, l := range s.lines {
		s.app.json(l)
	}
	s.lines = s.lines[:0]
	if s.app.set.JSON {
		s.app.json(struct {
			Kind string `json:"kind"` // "point"
			plan.Point
		}{"point", s.point})
	}
	return nil
}
