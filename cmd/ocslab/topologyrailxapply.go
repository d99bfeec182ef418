package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment/grid"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/railx"
)

// applyRailX brings a grid about on the lab.
func (a *app) applyRailX(ctx context.Context, w *railxWish, opt grid.Options, leave bool) error {
	f, err := a.file()
	if err != nil {
		return err
	}
	if f == nil {
		return usagef("--apply needs --lab FILE: \"ocslab topology railx --nodes %dx%d --rails %d --write-lab FILE\" writes an emulated one",
			w.grid.Columns, w.grid.Rows, w.grid.Rails)
	}
	shape := w.to.Shape().String()
	if opt.Options, err = a.sequenceOptions(f, "railx", "RailX: "+shape); err != nil {
		return err
	}
	opt.Leave = leave
	cables, err := a.gridCables(ctx, f, opt.Lab, w.grid)
	if err != nil {
		return err
	}
	tell := a.progress()
	tell.set("%s: %s", shape, natural.Count(len(w.to.Switches()), "switch"))
	_, r, err := grid.Apply(ctx, f, cables, w.from, w.to, opt)
	tell.done()
	if r != nil && r.Run != "" {
		a.printGridApplied(r)
	}
	return err
}

// gridCables finds the ports of a grid in a lab.
func (a *app) gridCables(ctx context.Context, f *lab.File, opt lab.Options, g railx.Grid) (_ railx.Cables, err error) {
	l := lab.New(f, opt)
	defer func() { err = errors.Join(err, l.Close()) }()
	size, wait := sizes(l, f)
	defer wait()
	cables, err := grid.Cables(ctx, f, g, size)
	if errors.Is(err, railx.ErrCables) {
		err = usageError{err}
	}
	return cables, err
}

// sizes asks the switches of a lab how large they are: all at once, when the first is asked for. Wait returns when all have
// answered.
func sizes(l *lab.Lab, f *lab.File) (size func(context.Context, string) (ocs.Geometry, error), wait func()) {
	type answer struct {
		geometry ocs.Geometry
		err      error
	}
	var all sync.WaitGroup
	var first sync.Once
	answers := map[string]func() answer{}
	size = func(ctx context.Context, name string) (ocs.Geometry, error) {
		first.Do(func() {
			for _, s := range f.Switches {
				answers[s.Name] = sync.OnceValue(func() answer {
					sw, err := l.Switch(ctx, s.Name)
					if err != nil {
						return answer{err: err}
					}
					id, err := sw.Identify(ctx)
					return answer{id.Geometry, err}
				})
			}
			for _, ask := range answers {
				all.Go(func() { ask() })
			}
		})
		ask, there := answers[name]
		if !there {
			return ocs.Geometry{}, fmt.Errorf("the lab has no switch %s: %w", name, lab.ErrUnknown)
		}
		x := ask()
		return x.geometry, x.err
	}
	return size, all.Wait
}

// railxMove is a step of a grid that was moved.
type railxMove struct {
	Kind     string      `json:"kind"` // "railx-move"
	Step     string      `json:"step"`
	Switch   string      `json:"switch"` // of the grid
	Links    int         `json:"links"`  // removed and added
	AckNS    int64       `json:"ack_ns"` // from the command
	Light    *railxLight `json:"light,omitempty"`
	Duration int64       `json:"step_ns"` // of the whole step
}

// railxLight is when the light of a switch was back, from the command.
type railxLight struct {
	EarliestNS int64 `json:"earliest_ns"`
	LatestNS   int64 `json:"latest_ns"`
}

// railxDone is what a grid came to.
type railxDone struct {
	Kind    string `json:"kind"` // "railx-applied"
	Run     string `json:"run"`
	Order   string `json:"order"`
	Why     string `json:"why,omitempty"` // why not one rail at a time
	Changed int    `json:"changed_switches"`
	Same    int    `json:"untouched_switches"`
	Removed int    `json:"removed_links"`
	Added   int    `json:"added_links"`
	Rewired int    `json:"rewired_ports"`
	Rings   int    `json:"rings"` // that light was followed around; 0 if it was not
	Links   int    `json:"links"`
	Pairs   int    `json:"pairs"` // with links before and after, on links that moved
	Cut     int    `json:"cut_pairs"`
	DownNS  int64  `json:"longest_cut_ns"` // at most
	Unknown int    `json:"unknown_pairs"`  // of which no monitor says whether they were cut
	// State is "done", or how the run ended else. Restored: the lab is as it should be, see [grid.Report].
	State    string `json:"state"`
	Restored bool   `json:"restored"`
}

func (a *app) printGridApplied(r *grid.Report) {
	done := railxDone{Kind: "railx-applied", Run: r.Run, Order: string(r.Order), Why: r.Why, Changed: len(r.Delta.Switches), Same: r.Delta.Untouched,
		Removed: r.Delta.Removed(), Added: r.Delta.Added(), Rewired: r.Delta.Ports(), Rings: r.Rings, Links: r.Links, Pairs: len(r.Down), State: string(r.State), Restored: r.Restored}
	for _, d := range r.Down {
		switch {
		case !d.Known:
			done.Unknown++
		case d.For.Latest > 0:
			done.Cut++
			done.DownNS = max(done.DownNS, d.For.Latest)
		}
	}
	if a.set.JSON {
		for _, s := range r.Steps {
			for _, x := range s.Switches {
				m := railxMove{Kind: "railx-move", Step: s.Name, Switch: x.Switch.String(), Links: x.Links, AckNS: x.Ack.Latest, Duration: s.Took.Nanoseconds()}
				if x.Light != (timeline.Interval{}) {
					m.Light = &railxLight{x.Light.Earliest, x.Light.Latest}
				}
				a.json(m)
			}
		}
		a.json(done)
		return
	}
	if r.State != runs.Done {
		a.printf("%s: %s\n", r.Run, undone(r))
		return
	}
	a.printf("%s: %s unchanged, %d rewired; %s went, %d came, %d ports\n", r.Run, natural.Count(done.Same, "switch"), done.Changed,
		natural.Count(done.Removed, "link"), done.Added, done.Rewired)
	if r.Why != "" {
		a.printf("all at once: %s\n", r.Why)
	}
	if len(r.Steps) > 0 {
		a.printGridSteps(r)
	}
	if r.Rings > 0 {
		a.printf("read back, and light followed around %s of %s: as planned\n", natural.Count(r.Rings, "ring"), natural.Count(r.Links, "link"))
	}
	a.printDown(r, done)
	a.printf("\"ocslab runs show %s\" has every mark, \"ocslab report %[1]s\" a page\n", r.Run)
}

// undone says what is left of a change that was not brought about.
func undone(r *grid.Report) string {
	if r.Restored {
		return fmt.Sprintf("not brought about (%s): the switches hold again what was found", r.State)
	}
	return fmt.Sprintf("not brought about (%s), and not all is put back as it was found: ocslab runs finish %s", r.State, r.Run)
}

// printGridSteps prints when light was back.
func (a *app) printGridSteps(r *grid.Report) {
	t := table{align: "<>>>>"}
	t.row("step", "switches", "ack p50 / p99 ms", "light p50 / p99 ms", "whole step")
	for _, s := range r.Steps {
		var acks, lights []timeline.Interval
		for _, x := range s.Switches {
			acks = append(acks, x.Ack)
			if x.Light != (timeline.Interval{}) {
				lights = append(lights, x.Light)
			}
		}
		t.row(s.Name, fmt.Sprint(len(s.Switches)), quantiles(acks), quantiles(lights), s.Took.Round(time.Millisecond).String())
	}
	t.write(a.out, "")
}

// quantiles is "25.1 / 26.0 ±1.2" of durations: their median and 99th percentile in ms.
func quantiles(xs []timeline.Interval) string {
	if len(xs) == 0 {
		return "-"
	}
	p50, p99 := timeline.Quantile(xs, 0.5), timeline.Quantile(xs, 0.99)
	known := max(p50.Width(), p99.Width()) / 2
	return fmt.Sprintf("%.1f / %.1f ±%.1f", inMS(p50.Mid()), inMS(p99.Mid()), math.Ceil(10*inMS(int64(known)))/10)
}

func inMS(ns int64) float64 { return float64(ns) / float64(time.Millisecond) }

func (a *app) printDown(r *grid.Report, done railxDone) {
	if len(r.Down) == 0 {
		return
	}
	if done.Unknown > 0 {
		a.printf("of %s with links before and after, %d depend on links that no monitor saw go and come: whether they had one throughout is not known\n",
			natural.Count(len(r.Down), "pair"), done.Unknown)
	}
	if done.Cut == 0 {
		if done.Unknown > 0 {
			return
		}
		a.printf("of %s with links before and after, every one had a link throughout\n", natural.Count(len(r.Down), "pair"))
		return
	}
	a.printf("of %s with links before and after, %d had none for a while; the longest:\n", natural.Count(len(r.Down), "pair"), done.Cut)
	t := table{align: "  >"}
	for i, d := range r.Down {
		if i == 5 || d.For.Latest == 0 {
			break
		}
		t.row(d.A.String(), d.B.String(), fmt.Sprintf("%.1f to %.1f ms", inMS(d.For.Earliest), inMS(d.For.Latest)))
	}
	t.write(a.out, "  ")
}
