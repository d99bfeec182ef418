package baseline

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/calibration/timing"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// Fingerprint is what a timing calibration depends on, for [store.Record]: the switches and the averaging of
// their monitors, the machine that measures, how carriers are watched, what emulated NICs are, and drivers and
// firmware of real ones. How fast traffic is paced is not among it: it follows from the
// number of circuits, and a run shows what it does in its own resolution.
func Fingerprint(set runs.Setup, session runs.Session) map[string]string {
	of := store.OfHost(session.Host, session.Kernel, "")
	for _, d := range set.Devices {
		maps.Copy(of, store.OfSwitch(d.Name, ocs.Identity{Model: d.Model, Serial: d.Serial, Firmware: d.Firmware}))
		if d.AveragingNS > 0 {
			of[d.Name+" averaging"] = time.Duration(d.AveragingNS).String()
		}
	}
	if set.Carrier != "" {
		of["watching of carriers"] = set.Carrier
		if set.PollNS > 0 {
			of["watching of carriers"] += " every " + time.Duration(set.PollNS).String()
		}
	}
	if set.Rung != "" {
		of["kind of emulated NICs"] = set.Rung
		return of // their firmware is what experiments vary
	}
	for _, n := range set.NICs {
		of[n.Name+" driver"], of[n.Name+" firmware"] = n.Driver, n.Firmware
	}
	return of
}

// Find returns the calibrations that bear on a set-up of a lab, as a run records them: the newest timing
// calibration that holds for it, or, when there are only others, the newest of those; and the newest loss map
// of each switch and clock of each host that is watched by an agent. Those of an emulated lab are
// only for one. What cannot be read is a remark, and no reason not to go on.
func Find(s *store.Store, f *lab.File, emulated bool, set runs.Setup, session runs.Session, now time.Time) (found []runs.Calibration, remarks []error) {
	now = now.UTC()
	print := Fingerprint(set, session)
	list, problems, err := s.List(store.Timing)
	if err != nil {
		problems = append(problems, err)
	}
	remarks = problems
	var other *runs.Calibration // the newest that does not hold
	for _, r := range list {
		if r.Lab != f.Name || r.Subject != f.Name || r.Emulated != emulated {
			continue
		}
		c := calibration(r, print, now)
		b, err := timing.Parse(r.Data)
		if err != nil {
			remarks = append(remarks, fmt.Errorf("%v: %w", c, err))
			continue
		}
		c.Floors = b.Floors
		known := map[string]bool{}
		for _, sw := range b.Switches {
			known[sw.Name] = true
		}
		for _, d := range set.Devices {
			if !known[d.Name] {
				c.Changed = append(c.Changed, d.Name+" was not in it")
			}
		}
		if len(c.Changed) == 0 {
			found, other = append(found, c), nil
			break
		}
		if other == nil {
			other = &c
		}
	}
	if other != nil {
		other.Floors = nil // they hold for something else
		found = append(found, *other)
	}
	add := func(kind store.Kind, subject string) {
		r, err := s.LatestOf(kind, f.Name, subject, emulated)
		switch {
		case errors.Is(err, store.ErrNone):
		case err != nil:
			remarks = append(remarks, err)
		default:
			found = append(found, calibration(r, print, now))
		}
	}
	for _, d := range set.Devices {
		add(store.Loss, d.Name)
	}
	maps.Copy(print, store.OfHost(session.Host, "", session.Boot)) // a clock outlives no boot of either machine
	for host, boot := range set.Boots {
		maps.Copy(print, store.OfHost(host, "", boot))
	}
	for _, h := range f.Hosts {
		if len(h.Agent) > 0 {
			add(store.Clock, h.Name)
		}
	}
	return found, remarks
}

// calibration is a record as a run keeps it.
func calibration(r store.Record, print map[string]string, now time.Time) runs.Calibration {
	c := runs.Calibration{
		Kind: r.Kind, Subject: r.Subject, Version: r.Version, Made: r.Made, Expires: r.Expires, Complete: r.Complete,
		Changed: r.Changed(print),
	}
	c.Stale, _ = r.Stale(now)
	return c
}
