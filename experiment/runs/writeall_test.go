package runs

import (
	"context"
	"errors"
)

// WriteAll writes a run that is in memory through a [Writer], as if it went on again, and
// returns its ID, which is a new one. What [Store.Load] then returns differs from r in what
// names the run and its place, and where r has what cannot be recorded.
func WriteAll(ctx context.Context, s *Store, r *Run) (id string, err error) {
	c := Creation{Meta: r.Meta, Lab: r.Lab, Plan: r.Plan}
	if r.File != nil {
		c.Experiment = r.File.Text
	}
	w, err := s.Create(ctx, c)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, n := range r.Sessions {
		if _, err := w.Session(n); err != nil {
			return w.ID(), err
		}
		if n.Ended != "" {
			if err := w.EndSession(n.Ended); err != nil {
				return w.ID(), err
			}
		}
	}
	for _, u := range r.Setups {
		if err := w.Setup(u); err != nil {
			return w.ID(), err
		}
	}
	notes := make(map[int][]int) // by reconfiguration
	for i, n := range r.NoteOf {
		notes[n] = append(notes[n], i)
	}
	of := make(map[int][]*Reconfiguration) // by point
	for i := range r.Reconfigurations {
		n := &r.Reconfigurations[i]
		of[n.Point] = append(of[n.Point], n)
	}
	for _, p := range r.Plan.Points {
		if ctx.Err() != nil {
			return w.ID(), context.Cause(ctx)
		}
		if r.Dropped[p.ID] {
			if err := w.DropPoint(p.ID, "copied"); err != nil {
				return w.ID(), err
			}
		}
		if !r.Done[p.ID] {
			continue
		}
		if err := w.BeginPoint(p); err != nil {
			return w.ID(), err
		}
		for _, n := range of[p.ID] {
			w.Reconfiguration(*n)
			for _, e := range r.ExpectedOf(n.Number) {
				w.Expected(e)
			}
			for _, m := range r.MarksOf(n.Number) {
				w.Mark(m)
			}
			for _, m := range r.TruthOf(n.Number) {
				w.Truth(m)
			}
			for _, m := range r.SamplesOf(n.Number) {
				w.Sample(m)
			}
			for _, i := range notes[n.Number] {
				w.Note(n.Number, r.Notes[i])
			}
		}
		if err := w.FinishPoint(); err != nil {
			return w.ID(), err
		}
	}
	for _, e := range r.Events {
		if err := w.Event(e); err != nil {
			return w.ID(), err
		}
	}
	if r.Summary != nil {
		if err := w.Finish(*r.Summary); err != nil {
			return w.ID(), err
		}
	}
	return w.ID(), nil
}
