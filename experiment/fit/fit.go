package fit

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/experiment/runs"
	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/timeline/dist"
)

// DefaultFirmware is the profile that firmware values come from that runs cannot tell, when
// the lab does not name one.
const DefaultFirmware = "connectx-6-dx/autoneg-off"

// MinOfPath is how many durations a path, or a NIC, needs to be told from the others.
const MinOfPath = 30

// clearly is by how much Schwarz's criterion has to be better for a path or a NIC to have a
// mixture of its own: the likelihoods then differ by a factor of 150 beyond what the
// parameters cost.
const clearly = 10

// Sentinel errors; test with errors.Is.
var (
	// ErrMixed: runs are of different labs, devices or firmware.
	ErrMixed = errors.New("runs of different set-ups")
	// ErrNothing: runs have nothing to fit to.
	ErrNothing = errors.New("nothing to fit")
)

// Options of [Runs]. The zero value is ready to use.
type Options struct {
	Switch    string // fit only this switch, and the NICs; "" is all
	Condition int    // of the runs' plans, by number; 0 is all, which then have to be one set-up

	// BaseModel is the emulator's model, or the path of a personality, that a fitted one is
	// built on; "" is the one that the lab file names for the switch.
	BaseModel string
	// BaseFirmware is the profile for what runs cannot tell; "" is the one that the lab file
	// names for the NICs, or DefaultFirmware.
	BaseFirmware string

	Min int  // durations that a stage needs; below [dist.MinCount] is that
	Mix bool // take different devices, firmware and conditions for one

	// AsRecorded takes marks of light as they are. Without it, what a power monitor cannot
	// have shown if it averages evenly over its averaging time is taken away from them.
	AsRecorded bool

	Resamples int    // as of [dist.FitOptions]
	Seed      uint64 // same runs, options and seed: same fit
}

// Quantity is what a stage of a fit is about.
type Quantity string

// The quantities.
const (
	Single          Quantity = "switching"        // command to light, one cross-connect in the change
	Bulk            Quantity = "switching-bulk"   // the same, several cross-connects
	Debounce        Quantity = "debounce"         // dark to carrier-down
	LightToFirmware Quantity = "light-firmware"   // light to the firmware's report of a link
	Carrier         Quantity = "firmware-carrier" // from there to the kernel's carrier
	LightToCarrier  Quantity = "light-carrier"    // light to carrier: both of the above
)

// Stage is one quantity of one subject, and what was fitted to it.
type Stage struct {
	Subject  string // the switch, or the profile of NICs
	Quantity Quantity
	Path     string // of a switch whose path differs from the others: "1>33"
	Fitted   dist.Fitted
	Values   []timeline.Interval // that it was fitted to; nil if the fit was loaded

	Seen Seen // what a later run is held against
}

// Seen is what was seen of a stage, as a later run is held against it.
type Seen struct {
	// Lows and Highs are quantiles of the beginnings and of the ends of what came, equally
	// many, 400 at most, in order.
	Lows  []time.Duration `json:"lows_ns"`
	Highs []time.Duration `json:"highs_ns"`
	// Alike is how much larger the variance of the median and of the 95th percentile is than of
	// independent values: those of one change and of changes in a row have something in common,
	// as the pace of one poll, or a machine that was busy. At least 1.
	Alike [2]float64 `json:"alike"`
}

// KnownTo is how well one value is known: the median width of the intervals.
func (s *Stage) KnownTo() time.Duration { return s.Fitted.Resolution }

// Below reports whether nearly all values may as well be 0 by what the instruments leave
// open, and what 95 of 100 values are not above. Of such a stage a fit says nothing else.
func (s *Stage) Below() (atMost time.Duration, below bool) {
	lows, highs := s.Seen.Lows, s.Seen.Highs
	if len(lows) == 0 || s.Fitted.Resolution == 0 {
		return 0, false
	}
	above, _ := slices.BinarySearch(lows, 1)
	return highs[(len(highs)-1)*95/100], above >= len(lows)*95/100 && highs[len(highs)-1] > 0
}

// Name says in a few words what the stage is: "rail0 switching 1>33".
func (s *Stage) Name() string {
	return strings.TrimSpace(s.Subject + " " + string(s.Quantity) + " " + s.Path)
}

// Fit is what was fitted to runs.
type Fit struct {
	Lab      string
	Runs     []string // IDs
	From, To time.Time
	Emulated bool
	Options  Options
	Stages   []Stage
	Profiles []Profile
	Acks     map[string]Ack // by switch
	// Rises are the time constants with which light is taken to come, by switch: those of the
	// base. None with AsRecorded.
	Rises   map[string]time.Duration
	Remarks []string // what was left out, assumed or could not be told, in sentences

	measured *measured // nil if the fit was loaded
}

// Profile is what was fitted to NICs of one firmware.
type Profile struct {
	Key      string   `json:"profile"` // in the note
	Firmware string   `json:"firmware"`
	NICs     []string `json:"nics"`

	Burst     *firmwarenotes.Burst `json:"burst,omitempty"`
	BurstText string               `json:"burst_source"` // why that is so
	// BurstFitted is whether Burst was fitted, and is not from the base.
	BurstFitted bool `json:"burst_fitted"`
}

// Ack is when a switch acknowledges.
type Ack struct {
	Mode     emulator.AckMode `json:"ack"` // "" could not be told
	Evidence string           `json:"evidence"`
}

// TooFewError is that stages have too few durations for a fit. It matches [dist.ErrTooFew].
type TooFewError struct{ Stages []Short }

// Short is a stage with too few durations.
type Short struct {
	Stage      string
	Have, Need int
}

// Error returns one sentence.
func (e *TooFewError) Error() string {
	var list []string
	for _, s := range e.Stages {
		list = append(list, fmt.Sprintf("%s has %d of %d", s.Stage, s.Have, s.Need))
	}
	return "too few durations to fit: " + strings.Join(list, "; ") + ". Measure more often, or fit several runs together"
}

// Is makes errors.Is(err, dist.ErrTooFew) true.
func (e *TooFewError) Is(target error) bool { return target == dist.ErrTooFew }

// Runs fits an emulator to runs of one lab. The error matches [dist.ErrTooFew], [ErrMixed],
// [ErrNothing] or [lab.ErrUnknown], or is of the base.
func Runs(list []*runs.Run, opt Options) (*Fit, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: no runs", ErrNothing)
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b *runs.Run) int { return a.Meta.Created.Compare(b.Meta.Created) })
	m, err := collect(list, opt, nil)
	if err != nil {
		return nil, err
	}
	if opt.Switch != "" && m.switches[opt.Switch] == nil {
		return nil, fmt.Errorf("switch %q %w: the runs have %s", opt.Switch, lab.ErrUnknown, strings.Join(slices.Sorted(maps.Keys(m.switches)), ", "))
	}
	f := &Fit{Lab: list[0].Meta.Lab, Emulated: list[0].Meta.Emulated, Options: opt, Acks: map[string]Ack{}, measured: m}
	if !opt.AsRecorded {
		f.Rises = map[string]time.Duration{}
		for name, sw := range m.switches {
			if p, _, err := f.baseModel(name); err == nil && sw.device.AveragingNS > 0 {
				if values := slices.Concat(sw.single, sw.bulk); len(values) > 0 {
					median, _ := middle(values)
					f.Rises[name] = min(p.Switching.Rise, time.Duration(median/10))
				}
			}
		}
		if m, err = collect(list, opt, f.Rises); err != nil {
			return nil, err
		}
		f.measured = m
	}
	for _, r := range list {
		f.Runs = append(f.Runs, r.Meta.ID)
	}
	if !opt.AsRecorded && slices.ContainsFunc(slices.Collect(maps.Values(m.switches)), func(s *switchValues) bool { return s.device.AveragingNS > 0 }) {
		f.remark("Power monitors are taken to average evenly over their averaging time, and light to rise as in the base; --as-recorded does without either.")
	}
	f.From, f.To = list[0].Meta.Created, list[len(list)-1].Meta.Created
	few := &TooFewError{}
	for _, name := range slices.Sorted(maps.Keys(m.switches)) {
		if opt.Switch == "" || opt.Switch == name {
			if err := f.fitSwitch(name, m.switches[name], few); err != nil {
				return nil, err
			}
		}
	}
	if err := f.fitNICs(few); err != nil {
		return nil, err
	}
	switch {
	case len(few.Stages) > 0:
		return nil, few
	case len(f.Stages) == 0:
		return nil, fmt.Errorf("%w: in %s no light was seen to come back and no link came up. %s",
			ErrNothing, natural.Count(len(list), "run"), strings.Join(f.Remarks, " "))
	}
	return f, nil
}

func (f *Fit) remark(format string, args ...any) {
	f.Remarks = append(f.Remarks, fmt.Sprintf(format, args...))
}

// fit fits one stage. Without the values that are needed it returns nil, and enters that
// into few.
func (f *Fit) fit(few *TooFewError, s Stage, values []value) *Stage {
	for _, v := range values {
		s.Values = append(s.Values, v.Interval)
	}
	fitted, err := dist.Fit(s.Values, dist.FitOptions{Min: f.Options.Min, Resamples: f.Options.Resamples, Seed: f.Options.Seed})
	if short := (*dist.TooFewError)(nil); errors.As(err, &short) {
		if few != nil {
			few.Stages = append(few.Stages, Short{s.Name(), short.Have, short.Need})
		}
		return nil
	}
	s.Fitted, s.Seen = fitted, seenOf(values)
	if n := len(fitted.Outliers); n > 0 {
		f.remark("%s: %s left out, far from all others, the farthest %v.", s.Name(), natural.Count(n, "value"),
			time.Duration(fitted.Outliers[n-1].Mid()).Round(time.Microsecond))
	}
	if fitted.Never > 0 {
		f.remark("%s: %d of %d did not come at all, which no emulator of ours does by itself.", s.Name(), fitted.Never, len(s.Values))
	}
	if most, below := s.Below(); below {
		f.remark("%s is below resolution: at most %s. Nothing else can be told of it with instruments that know each value to %s.", s.Name(), short(most), short(fitted.Resolution))
		return &s
	}
	if slices.ContainsFunc(fitted.Errors, func(e dist.ModeError) bool { return e.AtMost > 0 }) {
		f.remark("%s: each value is known to %s only, so a spread cannot be told from none, and is given as at most so much.", s.Name(), short(fitted.Resolution))
	}
	if !plausible(fitted) {
		f.remark("%s: no mixture of up to %d normal distributions describes it well (p = %.2g): look at the Q-Q plot.", s.Name(), dist.MaxModes, fitted.P)
	}
	return &s
}

// plausible reports whether a fit describes its values. Where it is off by less than a
// quarter of what a value is known to, the way in which its instrument polls may be all
// that there is to see.
func plausible(f dist.Fitted) bool {
	return f.Resamples <= 0 || f.P >= 0.05 || f.Distance.WassersteinLow <= f.Resolution/4
}

// seenOf sums up what came.
func seenOf(values []value) Seen {
	var s Seen
	var came []value
	for _, v := range values {
		if v.Latest != timeline.Never {
			came = append(came, v)
			s.Lows, s.Highs = append(s.Lows, time.Duration(v.Earliest)), append(s.Highs, time.Duration(v.Latest))
		}
	}
	s.Lows, s.Highs = parted(s.Lows), parted(s.Highs)
	for k, q := range driftQuantiles {
		s.Alike[k] = max(1, alike(came, q, 1), alike(came, q, inRow))
	}
	return s
}

// parted returns quantiles of values, 400 at most.
func parted(values []time.Duration) []time.Duration {
	slices.Sort(values)
	n := min(len(values), 400)
	parts := make([]time.Duration, n)
	for k := range parts {
		parts[k] = values[(2*k+1)*len(values)/(2*n)]
	}
	return parts
}

// inRow is how many changes in a row are taken to have something in common, as a machine
// that was busy.
const inRow = 4

// alike is by how much the variance of a quantile is larger than of independent values when
// those of so many changes in a row are taken together: the design effect of a sample of
// clusters, of which values are above the quantile.
func alike(values []value, q float64, row int) float64 {
	mids := make([]time.Duration, len(values))
	for i, v := range values {
		mids[i] = time.Duration(v.Mid())
	}
	slices.Sort(mids)
	if len(mids) == 0 {
		return 1
	}
	at := quantileOf(mids, q)
	above := 0.0
	for _, x := range mids {
		if x > at {
			above++
		}
	}
	above /= float64(len(mids))
	sums := map[int]float64{}
	alone, together := 0.0, 0.0
	for i := range values {
		x := -above
		if time.Duration(values[i].Mid()) > at {
			x++
		}
		sums[values[i].move/row] += x
		alone += x * x
	}
	if alone == 0 {
		return 1
	}
	for _, move := range slices.Sorted(maps.Keys(sums)) {
		together += sums[move] * sums[move]
	}
	return together / alone
}

// fitSwitch fits how long a switch takes: all paths together, but for those that differ.
func (f *Fit) fitSwitch(name string, sw *switchValues, few *TooFewError) error {
	if len(sw.single)+len(sw.bulk) == 0 {
		f.remark("%s: no light was seen to come back, so nothing of it is fitted.", name)
		return nil
	}
	f.Acks[name] = sw.ack()
	short := &TooFewError{}
	found := false
	for _, kind := range []struct {
		quantity Quantity
		values   []value
	}{{Single, sw.single}, {Bulk, sw.bulk}} {
		if len(kind.values) == 0 {
			continue
		}
		pool, apart := f.differing(kind.values)
		s := f.fit(short, Stage{Subject: name, Quantity: kind.quantity}, pool)
		if s == nil {
			continue
		}
		found = true
		f.Stages = append(f.Stages, *s)
		for _, path := range slices.SortedFunc(maps.Keys(apart), natural.Compare) {
			if s := f.fit(short, Stage{Subject: name, Quantity: kind.quantity, Path: path}, apart[path]); s != nil {
				f.Stages = append(f.Stages, *s)
			}
		}
	}
	if !found {
		few.Stages = append(few.Stages, short.Stages...)
		return nil
	}
	for _, s := range short.Stages {
		f.remark("%s has %d of %d values that a fit needs, and is taken to be like the rest of the switch.", s.Stage, s.Have, s.Need)
	}
	return nil
}

// ack says when the switch acknowledges, and why that is believed.
func (s *switchValues) ack() Ack {
	n := s.ackBefore + s.ackAfter + s.ackOpen
	switch {
	case n == 0:
		return Ack{Evidence: "no acknowledgement was seen together with the light"}
	case s.ackBefore > n/2:
		return Ack{emulator.AckBefore, fmt.Sprintf("in %d of %s it was surely before the light", s.ackBefore, natural.Count(n, "change"))}
	case s.ackBefore <= n/5: // a busy machine reads an acknowledgement and the light out of order now and then
		return Ack{emulator.AckAfter, fmt.Sprintf("in %d of %s it was surely before the light, and in %d surely after", s.ackBefore, natural.Count(n, "change"), s.ackAfter)}
	}
	return Ack{Evidence: fmt.Sprintf("in %d of %s it was surely before the light, in %d surely after, which is neither the one nor the other",
		s.ackBefore, natural.Count(n, "change"), s.ackAfter)}
}

// differing takes out what differs from the others, by path or NIC, one after the other,
// the most different first, and returns the rest.
func (f *Fit) differing(values []value) (pool []value, apart map[string][]value) {
	of := map[string][]value{}
	for _, v := range values {
		of[v.of] = append(of[v.of], v)
	}
	pool, apart = values, map[string][]value{}
	quick := dist.FitOptions{Resamples: -1}
	own := map[string]dist.Fitted{}
	for name, list := range of {
		if len(list) >= MinOfPath && len(of) > 1 {
			if fitted, err := dist.Fit(intervals(list), quick); err == nil {
				own[name] = fitted
			}
		}
	}
	for len(own) > 0 {
		most, excess := "", float64(clearly)
		for _, name := range slices.Sorted(maps.Keys(own)) {
			rest := without(pool, name)
			others, err := dist.Fit(intervals(rest), quick)
			if err != nil {
				continue
			}
			k := 3*len(own[name].Mixture) - 1
			mine := kept(of[name], own[name])
			gain := 2*(own[name].Mixture.LogLikelihood(mine)-others.Mixture.LogLikelihood(mine)) - float64(k)*math.Log(float64(len(mine)))
			if gain > excess {
				most, excess = name, gain
			}
		}
		if most == "" {
			break
		}
		pool, apart[most] = without(pool, most), of[most]
		delete(own, most)
	}
	return pool, apart
}

// kept are the values that a fit did not leave out, so that one stray value does not make a
// path differ.
func kept(values []value, fitted dist.Fitted) []timeline.Interval {
	out := slices.Clone(fitted.Outliers)
	var list []timeline.Interval
	for _, v := range values {
		if i := slices.Index(out, v.Interval); i >= 0 {
			out = slices.Delete(out, i, i+1)
		} else if v.Latest != timeline.Never {
			list = append(list, v.Interval)
		}
	}
	return list
}

func intervals(values []value) []timeline.Interval {
	list := make([]timeline.Interval, len(values))
	for i, v := range values {
		list[i] = v.Interval
	}
	return list
}

func without(values []value, of string) []value {
	return slices.DeleteFunc(slices.Clone(values), func(v value) bool { return v.of == of })
}

// stage returns the fit of a quantity, or nil.
func (f *Fit) stage(subject string, q Quantity, path string) *Stage {
	for i := range f.Stages {
		if s := &f.Stages[i]; s.Subject == subject && s.Quantity == q && s.Path == path {
			return s
		}
	}
	return nil
}

// baseFirmware returns the name of the profile that a profile is built on.
func (f *Fit) baseFirmware(p *Profile) string {
	if f.Options.BaseFirmware != "" {
		return f.Options.BaseFirmware
	}
	for _, name := range p.NICs {
		if n := f.nic(name); n != nil && f.measured.lab.Firmware(n) != "" {
			return f.measured.lab.Firmware(n)
		}
	}
	return DefaultFirmware
}

func (f *Fit) nic(name string) *lab.NIC {
	if f.measured == nil || f.measured.lab == nil {
		return nil
	}
	n, err := f.measured.lab.NIC(name)
	if err != nil {
		return nil
	}
	return n
}
