package timing

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/timeline"
)

// MinToggles is how many toggles it takes to say how much equals differ: the halves of fewer
// have no median worth that name.
const MinToggles = 8

// MinExchanges is how many exchanges it takes for a 95th percentile that is not the largest
// seen.
const MinExchanges = 20

// HeldUp is how long a program has to be held up to be told of: as long as a testbed lets a packet take before
// that counts as lost.
const HeldUp = 100 * time.Millisecond

// Observations are what was seen of a set-up. What is not there is told as missing by [Of].
type Observations struct {
	From, To string // the configurations that were toggled between; "": nothing was moved
	Toggles  int    // that were measured

	Nulls  int           // times in which nothing was done
	Window time.Duration // that each of them was watched for

	// Held are the times that this program did not get to run during the nulls, as far as they were longer than
	// [HeldUp]: others had the processors.
	Held []time.Duration

	// Exchanges are how long readings of the circuits took, by switch: what asks a switch something
	// and moves no light.
	Exchanges map[string][]time.Duration
	// Readings are those of power monitors, in order of time, of one move and one port each, by
	// switch.
	Readings map[string][][]timeline.Sample
	// Averaging is that of the power monitors, by switch that has them.
	Averaging map[string]time.Duration

	// Seen are the marks of toggles as the sources gave them. Merged are the same as statistics
	// stand on them: one for each thing that happened.
	Seen, Merged []timeline.Mark
	// Idle are the marks of nulls, as the sources gave them.
	Idle     []timeline.Mark
	Expected []timeline.Expectation // of the toggles

	// Truth is what the emulation did during the toggles; nil of a real lab.
	Truth []timeline.Mark

	// Missing are reasons for which something was not observed, in words. NotWatched are sources
	// that the set-up does not have, which is no fault of the observations.
	Missing, NotWatched []string

	Seed uint64 // of what is random
}

// Baseline is what a set-up cannot resolve. Times in JSON are whole nanoseconds.
type Baseline struct {
	From     string `json:"from,omitempty"`
	To       string `json:"to,omitempty"`
	Toggles  int    `json:"toggles"`
	Nulls    int    `json:"nulls"`
	WindowNS int64  `json:"window_ns"` // of each null
	// Held is how often this program was held up for longer than [HeldUp] during the nulls, and HeldMaxNS how
	// long at most. Frames of emulated NICs pass through it, so outages in these moments are its own.
	Held      int   `json:"held,omitempty"`
	HeldMaxNS int64 `json:"held_max_ns,omitempty"`

	Switches []Switch   `json:"switches"`
	Sources  []Source   `json:"sources"` // in order of stages
	Floors   []Floor    `json:"floors"`  // likewise
	Accuracy []Accuracy `json:"accuracy,omitempty"`

	// Missing says what could not be found out, and why; empty when the baseline is complete.
	Missing []string `json:"missing"`
	// NotWatched says which sources the set-up does not have, and why.
	NotWatched []string `json:"not_watched,omitempty"`
}

// Spread are quantiles of times.
type Spread struct {
	Count int   `json:"count"`
	P50NS int64 `json:"p50_ns"`
	P95NS int64 `json:"p95_ns"`
	MaxNS int64 `json:"max_ns"`
}

// Switch is what was found of a switch.
type Switch struct {
	Name        string `json:"switch"`
	Exchange    Spread `json:"exchange"`     // how long reading the circuits takes
	Sampling    Spread `json:"sampling"`     // between two readings of one monitor; Count 0: there are none
	AveragingNS int64  `json:"averaging_ns"` // of its monitors
}

// Source is what one source gives of one stage.
type Source struct {
	Name  string         `json:"source"`
	Stage timeline.Stage `json:"stage"`
	Width Spread         `json:"width"` // of its intervals
	// Spurious is how many marks it gave while nothing was done; the rates are by minute, the higher one
	// at most, with a confidence of 97.5 %.
	Spurious      int     `json:"spurious"`
	PerMinute     float64 `json:"spurious_per_minute"`
	PerMinuteHigh float64 `json:"spurious_per_minute_high"`
}

// Floor is what cannot be resolved of one stage.
type Floor struct {
	Stage        timeline.Stage `json:"stage"`
	NS           int64          `json:"floor_ns"`      // the larger of the next two
	ResolutionNS int64          `json:"resolution_ns"` // does not shrink with repeats
	EqualsNS     int64          `json:"equals_ns"`     // of Toggles repeats
	Toggles      int            `json:"toggles"`       // that have this stage
	Of           []Part         `json:"of"`            // what it is made of, the largest first
}

// Part is one of the things that a floor is made of.
type Part struct {
	What string `json:"what"` // "intervals of opm", "readings of rail0, averaged"
	NS   int64  `json:"ns"`
}

// Accuracy is how far the marks were from what the emulation did, and how that compares with
// what is claimed.
type Accuracy struct {
	Stage timeline.Stage `json:"stage"`
	Marks int            `json:"marks"` // that have a truth
	// Hold is how many of them hold the truth, and Within how many have it no farther from
	// their middle than the floor's ResolutionNS.
	Hold     int   `json:"hold"`
	Within   int   `json:"within"`
	ErrP50NS int64 `json:"err_p50_ns"`
	ErrP95NS int64 `json:"err_p95_ns"`
	ErrMaxNS int64 `json:"err_max_ns"`
	// Unmatched are marks without a truth, and truths without a mark.
	Unmatched int `json:"unmatched"`
}

// At is the floor for a run with a number of reconfigurations. It is the resolution where these are
// [MinToggles] or more: how much equals differ, such a run shows itself, of the firmware that it
// has, which need not be that of the calibration. Fewer do not show it, and what equals differed by when it was
// calibrated counts, too, grown with the root of how many fewer they are.
func (f Floor) At(reconfigurations int) time.Duration {
	if reconfigurations >= MinToggles {
		return time.Duration(f.ResolutionNS)
	}
	equals := float64(f.EqualsNS) * math.Sqrt(float64(f.Toggles)/float64(max(reconfigurations, 1)))
	return time.Duration(max(f.ResolutionNS, int64(math.Ceil(min(equals, math.MaxInt64/2)))))
}

// Of computes a baseline. It does not fail: what cannot be told for want of observations is not
// in it, and told as missing.
func Of(o Observations) Baseline {
	b := Baseline{
		From: o.From, To: o.To, Toggles: o.Toggles, Nulls: o.Nulls, WindowNS: int64(o.Window),
		Switches: []Switch{}, Floors: []Floor{}, Missing: slices.Concat([]string{}, o.Missing), NotWatched: o.NotWatched,
	}
	if b.Held = len(o.Held); b.Held > 0 {
		b.HeldMaxNS = int64(slices.Max(o.Held))
	}
	miss := func(format string, args ...any) { b.Missing = append(b.Missing, fmt.Sprintf(format, args...)) }
	for _, name := range slices.Sorted(maps.Keys(o.Exchanges)) {
		s := Switch{Name: name, Exchange: spread(o.Exchanges[name]), Sampling: spread(distances(o.Readings[name])), AveragingNS: int64(o.Averaging[name])}
		if s.Exchange.Count < MinExchanges {
			miss("%s: %d exchanges are too few for a 95th percentile: want %d", name, s.Exchange.Count, MinExchanges)
		}
		if s.Sampling.Count == 0 {
			miss("%s: none of its power monitors was read: it has none, or no light came through", name)
		}
		b.Switches = append(b.Switches, s)
	}
	b.Sources = sources(o)
	if o.Nulls == 0 || o.Window <= 0 {
		miss("nothing was watched while nothing was done, so spurious events are not known")
	}
	switch {
	case o.Toggles == 0:
		miss("nothing was moved, so no stage has a floor: name two configurations to toggle between")
	case o.Toggles < MinToggles:
		miss("%d toggles are too few to say how much equals differ: want %d", o.Toggles, MinToggles)
	}
	b.floors(o, miss)
	b.accuracy(o)
	return b
}

// sources says what each source gave.
func sources(o Observations) []Source {
	type key struct{ name, stage string }
	widths := map[key][]time.Duration{}
	idle := map[key]int{}
	for _, m := range o.Seen {
		k := key{m.Source, string(m.Stage)}
		widths[k] = append(widths[k], m.Width())
	}
	for _, m := range o.Idle {
		if m.Stage != timeline.Command && m.Stage != timeline.Ack { // these are of the null itself
			idle[key{m.Source, string(m.Stage)}]++
		}
	}
	all := maps.Clone(idle)
	for k := range widths {
		all[k] = idle[k]
	}
	minutes := float64(o.Nulls) * o.Window.Minutes()
	list := []Source{}
	for k, n := range all {
		s := Source{Name: k.name, Stage: timeline.Stage(k.stage), Width: spread(widths[k]), Spurious: n}
		if minutes > 0 {
			s.PerMinute = float64(n) / minutes
			// Exact bounds of a Poisson rate (Garwood 1936).
			s.PerMinuteHigh = distuv.Gamma{Alpha: float64(n) + 1, Beta: 1}.Quantile(1-(1-confidence)/2) / minutes
		}
		list = append(list, s)
	}
	slices.SortFunc(list, func(x, y Source) int {
		return cmp.Or(place(x.Stage)-place(y.Stage), strings.Compare(x.Name, y.Name))
	})
	return list
}

func place(s timeline.Stage) int { return slices.Index(timeline.Stages(), s) }

// floors finds those of all stages that were seen or should have been.
func (b *Baseline) floors(o Observations, miss func(string, ...any)) {
	durations := map[timeline.Stage][]timeline.Duration{}
	for _, d := range timeline.Durations(o.Merged) {
		durations[d.Stage] = append(durations[d.Stage], d)
	}
	report := timeline.Summarize(o.Merged, timeline.Options{Seed: o.Seed, Expected: orEmpty(o.Expected), Resamples: 1})
	lost := map[timeline.Stage]int{}
	for _, e := range report.Missed {
		lost[e.Stage]++
	}
	for _, stage := range timeline.Stages() {
		list := durations[stage]
		if n := lost[stage]; n > 0 {
			miss("%s was expected %s more often than it came", stage, natural.Count(n, "time"))
		}
		if len(list) > 0 {
			b.Floors = append(b.Floors, b.floor(o, stage, list))
		}
	}
}

func orEmpty(list []timeline.Expectation) []timeline.Expectation {
	if list == nil {
		return []timeline.Expectation{}
	}
	return list
}

// floor finds that of one stage.
func (b *Baseline) floor(o Observations, stage timeline.Stage, list []timeline.Duration) Floor {
	pool := timeline.NewPool(list, 0.5)
	f := Floor{Stage: stage, Toggles: len(pool.Reconfigurations)}
	part := func(ns int64, format string, args ...any) {
		if ns > 0 {
			f.Of = append(f.Of, Part{fmt.Sprintf(format, args...), ns})
			f.ResolutionNS = max(f.ResolutionNS, ns)
		}
	}
	widths := make([]time.Duration, len(list))
	for i, d := range list {
		widths[i] = d.Width()
	}
	part(spread(widths).P95NS, "intervals of %s", strings.Join(sourcesOf(o.Merged, stage), ", "))
	for _, s := range b.Switches {
		part(s.Exchange.P95NS-s.Exchange.P50NS, "exchanges with %s vary", s.Name)
		if (stage == timeline.Dark || stage == timeline.Light) && s.Sampling.Count > 0 {
			part(s.Sampling.P95NS+s.AveragingNS, "readings of %s, averaged", s.Name)
		}
	}
	if f.Toggles >= MinToggles {
		f.EqualsNS = int64(Equals(pool, rand.New(rand.NewPCG(o.Seed, uint64(place(stage)+1)))))
		f.Of = append(f.Of, Part{fmt.Sprintf("halves of %d equals", f.Toggles), f.EqualsNS})
	}
	slices.SortStableFunc(f.Of, func(x, y Part) int { return cmp.Compare(y.NS, x.NS) })
	f.NS = max(f.ResolutionNS, f.EqualsNS)
	return f
}

// sourcesOf are those that marks of a stage are of.
func sourcesOf(marks []timeline.Mark, stage timeline.Stage) []string {
	seen := map[string]bool{}
	for _, m := range marks {
		if m.Stage == stage {
			for _, name := range strings.Split(m.Source, "+") { // as timeline.Merge joins them
				seen[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// accuracy holds the marks against the truth.
func (b *Baseline) accuracy(o Observations) {
	if len(o.Truth) == 0 {
		return
	}
	claimed := map[timeline.Stage]int64{}
	for _, f := range b.Floors {
		claimed[f.Stage] = f.ResolutionNS
	}
	widened := slices.Clone(o.Merged)
	for i := range widened {
		mid := widened[i].Mid()
		widened[i].Interval = timeline.Between(mid-claimed[widened[i].Stage], mid+claimed[widened[i].Stage])
	}
	within := map[timeline.Stage]int{}
	truth := o.comparable()
	for _, x := range timeline.Compare(widened, truth) {
		within[x.Stage] = x.Inside
	}
	for _, x := range timeline.Compare(o.Merged, truth) {
		if x.Stage == timeline.Command {
			continue // it is what all else counts from
		}
		b.Accuracy = append(b.Accuracy, Accuracy{
			Stage: x.Stage, Marks: x.Count, Hold: x.Inside, Within: within[x.Stage],
			ErrP50NS: x.ErrP50NS, ErrP95NS: x.ErrP95NS, ErrMaxNS: x.ErrMaxNS, Unmatched: x.Unmatched,
		})
	}
}

// comparable is the truth without that of subjects of which marks were seen, and none was merged: there
// is another kind of mark that statistics stand on, as of light.
func (o Observations) comparable() []timeline.Mark {
	type key struct {
		stage   timeline.Stage
		subject string
	}
	left := map[key]bool{}
	for _, m := range o.Seen {
		left[key{m.Stage, m.Subject}] = true
	}
	for _, m := range o.Merged {
		delete(left, key{m.Stage, m.Subject})
	}
	return slices.DeleteFunc(slices.Clone(o.Truth), func(m timeline.Mark) bool { return left[key{m.Stage, m.Subject}] })
}

// distances are the times between the middles of neighbouring readings.
func distances(rows [][]timeline.Sample) []time.Duration {
	var list []time.Duration
	for _, row := range rows {
		for i := 1; i < len(row); i++ {
			list = append(list, time.Duration(row[i].Mid()-row[i-1].Mid()))
		}
	}
	return list
}

// spread returns the quantiles of times, in any order.
func spread(times []time.Duration) Spread {
	if len(times) == 0 {
		return Spread{}
	}
	sorted := make([]int64, len(times))
	for i, d := range times {
		sorted[i] = int64(d)
	}
	slices.Sort(sorted)
	return Spread{len(sorted), quantile(sorted, 0.5), quantile(sorted, 0.95), sorted[len(sorted)-1]}
}

// ErrData is what the error of [Parse] matches.
var ErrData = errors.New("not the data of a timing calibration")

// Parse reads a baseline from its JSON form. Keys that it does not know are left out; what cannot be, as
// a floor below 0 or of no stage, is an error.
func Parse(data json.RawMessage) (Baseline, error) {
	var b Baseline
	if err := json.Unmarshal(data, &b); err != nil {
		return Baseline{}, fmt.Errorf("%w: %w", ErrData, err)
	}
	seen := map[timeline.Stage]bool{}
	for _, f := range b.Floors {
		switch {
		case !f.Stage.Valid() || seen[f.Stage]:
			return Baseline{}, fmt.Errorf("%w: a floor of the stage %.40q, or two of them", ErrData, f.Stage)
		case f.NS < 0 || f.ResolutionNS < 0 || f.EqualsNS < 0 || f.Toggles < 0:
			return Baseline{}, fmt.Errorf("%w: a floor of %s below 0", ErrData, f.Stage)
		}
		seen[f.Stage] = true
	}
	for _, s := range b.Switches {
		if s.AveragingNS < 0 || s.Exchange.Count < 0 || s.Sampling.Count < 0 {
			return Baseline{}, fmt.Errorf("%w: a count or a time of %.40q below 0", ErrData, s.Name)
		}
	}
	return b, nil
}

// Complete reports whether nothing is missing.
func (b Baseline) Complete() bool { return len(b.Missing) == 0 }
