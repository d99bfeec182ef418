package measured

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/calibration/store"
	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// most is how many runs are read at most, the newest: a store may hold years of them.
const most = 50

// how says what makes a run that can be used.
const how = `"ocslab run FILE", "ocslab figure opus-9d" and "ocslab topology pccl --apply -n 3" keep what they measure; "ocslab measure" only prints it`

// Switching returns what the stored runs say of how long a change takes on the switch of that name. The error matches
// [ErrNone], [ErrFew] or [ErrMixed] and says what would work. Runs that cannot be read are left out.
func Switching(ctx context.Context, from *runs.Store, subject string, opt Options) (Times, error) {
	opt.Stage = cmp.Or(opt.Stage, timeline.Light)
	if !opt.Stage.Valid() || slices.Contains([]timeline.Stage{timeline.Command, timeline.Dark, timeline.CarrierDown, timeline.TrafficLost}, opt.Stage) {
		return Times{}, fmt.Errorf("no change is over at the stage %q: want %s", opt.Stage, strings.Join(Stages(), ", "))
	}
	opt.Within, opt.Least = cmp.Or(opt.Within, DefaultWithin), cmp.Or(opt.Least, DefaultLeast)
	if opt.Now.IsZero() {
		opt.Now = time.Now()
	}
	list, err := from.List(ctx, runs.Filter{Lab: opt.Lab})
	if err != nil {
		return Times{}, err
	}
	real := slices.DeleteFunc(slices.Clone(list), func(e runs.Entry) bool { return e.Emulated })
	emulated := slices.DeleteFunc(list, func(e runs.Entry) bool { return !e.Emulated })
	kinds := [][]runs.Entry{real, emulated}
	if opt.Emulated {
		kinds = kinds[1:]
	}
	var left []LeftOut
	for _, entries := range kinds {
		found, out, err := collect(ctx, from, entries, subject, opt)
		if err != nil {
			return Times{}, err
		}
		if left = append(left, out...); len(found) > 0 {
			return pool(found, left, subject, opt)
		}
	}
	return Times{Switch: subject, Stage: opt.Stage, LeftOut: left}, none(subject, left, opt)
}

// Stages are the names of those at which a change may be over.
func Stages() []string {
	return []string{string(timeline.Ack), string(timeline.Light), string(timeline.Firmware), string(timeline.CarrierUp), string(timeline.Traffic)}
}

func none(subject string, left []LeftOut, opt Options) error {
	why := ""
	if len(left) > 0 {
		why = fmt.Sprintf(" (%s was left out: %s)", left[0].Run, left[0].Why)
		if len(left) > 1 {
			why = fmt.Sprintf(" (%d were left out; the newest, %s: %s)", len(left), left[0].Run, left[0].Why)
		}
	}
	of := ""
	if opt.Lab != "" {
		of = " of the lab " + opt.Lab
	}
	if opt.Emulated {
		of += ", emulated,"
	}
	return fmt.Errorf("%w how long %s%s takes until %s%s: %s", ErrNone, subject, of, opt.Stage, why, how)
}

// found is what one run says.
type found struct {
	run     *runs.Run
	is      identity
	changes []change
}

// identity is what runs must have in common to be put together.
type identity struct {
	device   runs.Device // without what may differ
	emulated bool
	as       string // how it was emulated
}

// change is one reconfiguration of the switch.
type change struct {
	took  timeline.Interval // since its command
	never bool              // it was not over when the waiting ended
}

// collect reads runs, the newest first, and returns those that say something of the switch.
func collect(ctx context.Context, from *runs.Store, entries []runs.Entry, subject string, opt Options) ([]found, []LeftOut, error) {
	var all []found
	var left []LeftOut
	for i, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if i == most {
			break
		}
		r, err := from.Load(ctx, e.ID)
		if err != nil {
			if ctx.Err() != nil {
				return nil, nil, err
			}
			left = append(left, LeftOut{e.ID, err.Error()})
			continue
		}
		if !knows(r, subject) {
			continue // of something else: nobody would miss it
		}
		if age := opt.Now.Sub(e.Created); age > opt.Within {
			left = append(left, LeftOut{e.ID, "it is " + store.Age(age) + " old"})
			continue
		}
		f, notes := of(r, subject, opt.Stage)
		for _, why := range notes {
			left = append(left, LeftOut{e.ID, why})
		}
		if len(f.changes) > 0 {
			all = append(all, f)
		}
	}
	return all, left, nil
}

// knows reports whether a run had that switch.
func knows(r *runs.Run, subject string) bool {
	return slices.ContainsFunc(r.Setups, func(s runs.Setup) bool { return device(s, subject) != nil })
}

func device(s runs.Setup, name string) *runs.Device {
	if i := slices.IndexFunc(s.Devices, func(d runs.Device) bool { return d.Name == name }); i >= 0 {
		return &s.Devices[i]
	}
	return nil
}

// pool puts runs together that are of the same thing as the newest.
func pool(all []found, left []LeftOut, subject string, opt Options) (Times, error) {
	newest := all[0]
	t := Times{Switch: subject, Lab: newest.run.Meta.Lab, Device: newest.is.device, Emulated: newest.is.emulated, Stage: opt.Stage, LeftOut: left}
	var changes []change
	for _, f := range all {
		if f.run.Meta.Lab != t.Lab {
			return t, fmt.Errorf("%w: the labs %s and %s both have a switch %s: say which with --lab", ErrMixed, t.Lab, f.run.Meta.Lab, subject)
		}
		if why := f.is.differs(newest.is); why != "" {
			t.LeftOut = append(t.LeftOut, LeftOut{f.run.Meta.ID, why})
			continue
		}
		t.Runs = append(t.Runs, f.run.Meta.ID)
		changes = append(changes, f.changes...)
	}
	slices.Reverse(t.Runs)
	slices.SortStableFunc(t.LeftOut, func(a, b LeftOut) int { return cmp.Compare(b.Run, a.Run) })
	t.summarize(changes)
	if t.Count+t.Missing < opt.Least {
		return t, fmt.Errorf("%w of %s: %s in %s, want %d or more: %s", ErrFew, subject,
			natural.Count(t.Count+t.Missing, "change"), natural.Count(len(t.Runs), "run"), opt.Least, how)
	}
	return t, nil
}

// summarize enters the statistics.
func (t *Times) summarize(changes []change) {
	var marks []timeline.Mark
	for i, c := range changes {
		if c.never {
			t.Missing++
			continue
		}
		if t.Count++; t.Count == 1 {
			t.Least, t.Most = c.took, c.took
		}
		t.Least, t.Most = timeline.Earlier(t.Least, c.took), timeline.Later(t.Most, c.took)
		for stage, at := range map[timeline.Stage]timeline.Interval{timeline.Command: {}, t.Stage: c.took} {
			marks = append(marks, timeline.Mark{Stage: stage, Subject: t.Switch, Interval: at, Reconfiguration: i + 1})
		}
	}
	for _, s := range timeline.Summarize(marks, timeline.Options{Seed: 1}).Stages {
		t.Median, t.P99 = s.Median, s.P99
	}
	never := timeline.Estimate{NS: timeline.Never, LowNS: timeline.Never, HighNS: timeline.Never}
	if all := t.Count + t.Missing; 100*t.Missing > all {
		t.P99 = never
		if 2*t.Missing > all {
			t.Median = never
		}
	}
}
