package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ocslab/ocslab/experiment/pods"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// applyCrossWiring plans from what the switches of the lab hold, or from --running, and brings that about.
func (a *app) applyCrossWiring(cmd *cobra.Command, f *crossFlags) error {
	file, err := a.file()
	if err != nil {
		return err
	}
	if file == nil {
		return usagef("--apply needs --lab FILE: \"ocslab topology crosswiring --pods %d --spine-ports %d --groups %d --write-lab FILE\" writes an emulated one", f.pods, f.ports, f.groups)
	}
	fabric, err := f.fabric()
	if err != nil {
		return usageError{err}
	}
	if fabric.Wiring == crosswiring.Uniform {
		return usagef("--wiring uniform is for comparison: it takes no --apply")
	}
	opt := pods.Options{Order: pods.Order(f.order)}
	if opt.Options, err = a.sequenceOptions(file, "crosswiring", "Cross Wiring: "+fabricText(fabric)); err != nil {
		return err
	}
	opt.Leave = f.leave
	off, err := f.pairsOff()
	if err != nil {
		return usageError{err}
	}
	cables, held, err := podsLab(cmd.Context(), file, opt.Lab, fabric, off)
	if err != nil {
		return err
	}
	if f.running != "" {
		held = nil
	} else if err := held.Check(); err != nil {
		return usageError{fmt.Errorf("what the switches hold is no configuration to start from: %w; --running FILE, or removing it, starts from something else", err)}
	}
	w, err := f.wish(cmd.InOrStdin(), held)
	if err != nil {
		return usageError{err}
	}
	if err := f.write(&w); err != nil {
		return err
	}
	if err := a.printCrossWiring(f, &w); err != nil {
		return err
	}
	opt.Off = w.off
	tell := a.progress()
	tell.set("%s", fabricText(fabric))
	r, err := pods.Apply(cmd.Context(), file, cables, w.running, w.config, opt)
	tell.done()
	if r != nil && r.Run != "" {
		a.printPods(r)
	}
	return errors.Join(err, w.partial)
}

// podsLab finds the ports of a fabric in a lab, and reads what its switches hold but for those of pairs that are off, which
// may be dead.
func podsLab(ctx context.Context, file *lab.File, opt lab.Options, fabric crosswiring.Fabric, off []crosswiring.Pair) (
	_ *pods.Cables, held *crosswiring.Config, err error,
) {
	l := lab.New(file, opt)
	defer func() { err = errors.Join(err, l.Close()) }()
	size, wait := sizes(l, file)
	defer wait()
	asked := size
	if len(off) > 0 { // one that does not answer is taken to be as large as one that does
		size = func(ctx context.Context, name string) (ocs.Geometry, error) {
			g, err := asked(ctx, name)
			for i := 0; err != nil && i < len(file.Switches); i++ {
				if other, failed := asked(ctx, file.Switches[i].Name); failed == nil {
					return other, nil
				}
			}
			return g, err
		}
	}
	cables, err := pods.FindCables(ctx, file, fabric, size)
	if errors.Is(err, pods.ErrLab) {
		return nil, nil, usageError{err}
	} else if err != nil {
		return nil, nil, err
	}
	held, err = pods.Read(ctx, l, cables, off...)
	return cables, held, err
}

// Lines of --apply with --json.
type (
	podsMove struct {
		Kind    string      `json:"kind"`   // "crosswiring-move"
		Switch  string      `json:"switch"` // in the lab
		Removed int         `json:"removed"`
		Added   int         `json:"added"`
		Rewired int         `json:"rewired_ports"`
		AckNS   int64       `json:"ack_ns"` // from the first command
		Light   *railxLight `json:"light,omitempty"`
	}
	podsDone struct {
		Kind      string `json:"kind"` // "crosswiring-applied"
		Run       string `json:"run"`
		Order     string `json:"order"`
		Why       string `json:"why,omitempty"` // why not in rounds
		Rounds    int    `json:"rounds"`
		Changed   int    `json:"changed_switches"`
		Removed   int    `json:"removed"`
		Added     int    `json:"added"`
		Untouched int    `json:"untouched_links"`
		Links     int    `json:"links"`                // that the light was followed along
		LinkNS    int64  `json:"longest_link_down_ns"` // of links that came; at most
		Apart     int    `json:"pods_apart"`           // pairs of pods with links before and after, that had none for a while
		ApartNS   int64  `json:"longest_apart_ns"`
		Unknown   int    `json:"unknown_links"` // of which no monitor says how long they were down
		Lost      int    `json:"lost_pairs"`
		State     string `json:"state"`
		Restored  bool   `json:"restored"`
	}
)

func (a *app) printPods(r *pods.Report) {
	d := podsDone{Kind: "crosswiring-applied", Run: r.Run, Order: string(r.Order), Why: r.Why, Rounds: len(r.Rounds), Links: r.Followed, Lost: len(r.Lost),
		State: string(r.State), Restored: r.Restored}
	if c := r.Change; c != nil {
		d.Changed, d.Removed, d.Added, d.Untouched = len(c.Switches), c.Removed, c.Added, c.Links
	}
	for _, l := range r.Links {
		if !l.Known {
			d.Unknown++
		}
		d.LinkNS = max(d.LinkNS, l.For.Latest)
	}
	for _, p := range r.Pods {
		if p.Known && p.For.Latest > 0 {
			d.Apart++
			d.ApartNS = max(d.ApartNS, p.For.Latest)
		}
	}
	if a.set.JSON {
		for _, s := range r.Switches {
			m := podsMove{Kind: "crosswiring-move", Switch: s.Name, Removed: s.Removed, Added: s.Added, Rewired: s.Rewired, AckNS: s.Ack.Latest}
			if s.Light != (timeline.Interval{}) {
				m.Light = &railxLight{s.Light.Earliest, s.Light.Latest}
			}
			a.json(m)
		}
		a.json(d)
		return
	}
	for _, l := range r.Lost {
		a.printf("%v could not be changed: %s: %v\n", l.Pair, l.Failed, l.Err)
	}
	if r.State != runs.Done {
		if r.Restored {
			a.printf("%s: not brought about (%s): the switches hold again what was found\n", r.Run, r.State)
		} else {
			a.printf("%s: not brought about (%s), and not all is put back as it was found: ocslab runs finish %s\n", r.Run, r.State, r.Run)
		}
		return
	}
	a.printPodsMoved(r, &d)
}

func (a *app) printPodsMoved(r *pods.Report, d *podsDone) {
	a.printf("%s: %s on %s, %d circuits go and %d come, the light of %s is not touched\n", d.Run, natural.Count(d.Rounds, "round"),
		natural.Count(d.Changed, "switch"), d.Removed, d.Added, natural.Count(d.Untouched, "link"))
	if d.Why != "" {
		a.printf("all pairs at once: %s\n", d.Why)
	}
	if len(r.Switches) > 0 {
		var acks, lights []timeline.Interval
		for _, s := range r.Switches {
			acks = append(acks, s.Ack)
			if s.Light != (timeline.Interval{}) {
				lights = append(lights, s.Light)
			}
		}
		a.printf("from a switch's first command, p50 / p99 ms: acknowledged %s, light %s\n", quantiles(acks), quantiles(lights))
	}
	var downs []timeline.Interval
	for _, l := range r.Links {
		if l.Known {
			downs = append(downs, l.For)
		}
	}
	if len(r.Links) > 0 {
		unseen := ""
		if d.Unknown > 0 {
			unseen = fmt.Sprintf(" (%d of them not seen by the power monitors)", d.Unknown)
		}
		a.printf("%s came, which were down for %s ms%s\n", natural.Count(len(r.Links), "link"), quantiles(downs), unseen)
	}
	if d.Apart > 0 {
		a.printf("%s had no link for a while, the longest %.1f ms\n", natural.Count(d.Apart, "pair")+" of pods", inMS(d.ApartNS))
	}
	if d.Links > 0 {
		a.printf("read back, and light followed along %s: as planned\n", natural.Count(d.Links, "link"))
	}
	a.printf("\"ocslab runs show %s\" has every mark, \"ocslab report %[1]s\" a page\n", r.Run)
}
