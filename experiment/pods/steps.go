package pods

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/ocslab/ocslab/experiment/sequence"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// PaperStep is how long a training step of the paper's testbed takes when nothing is switched (table 1).
const PaperStep = 1103 * time.Millisecond

// PaperOutage is how long a step would have to stall for each event that the paper's step of 1175.4 ms comes about when half the
// links are switched every 30 s. It is deduced (ours): with it, one event in 30 s makes 1103.0 ms 1175.4 ms. No constant fits the
// paper's steps for 60 and 90 s, too: see [StepRow.PaperStall].
const PaperOutage = 1850 * time.Millisecond

// ErrStepModel: a step model that makes no sense. Test with errors.Is.
var ErrStepModel = errors.New("the steps cannot be modelled")

// StepModel is training that stalls while half the links are switched. It is a model (ours): a step in which an event falls takes
// longer by its outage, whatever the step was at; events while it stalls lengthen it by their own. Nothing is trained.
type StepModel struct {
	Step    time.Duration   // without events; 0 is PaperStep
	Every   []time.Duration // between events; nil is as in table 1: 30, 60 and 90 s
	Outages []time.Duration // measured, taken in turn; nil is PaperOutage
	For     time.Duration   // virtual time; 0 is 24 h
}

// StepRow is what a time between events comes to.
type StepRow struct {
	Every  time.Duration // 0: never
	Events int
	Steps  int
	Mean   time.Duration
	Paper  time.Duration // as table 1 has it; 0 where it has none
}

// PaperStall returns for how long each event of a row would have to stall a step for the mean that the paper has (ours); 0 if it has
// none, or the row no events. A mean step is the step without events over 1 - stall/every.
func (r StepRow) PaperStall() time.Duration {
	if r.Every <= 0 || r.Paper <= 0 {
		return 0
	}
	return time.Duration((1 - float64(PaperStep)/float64(r.Paper)) * float64(r.Every))
}

// paperSteps is table 1 of the paper.
var paperSteps = map[time.Duration]time.Duration{
	0:                PaperStep,
	30 * time.Second: 1175400 * time.Microsecond,
	60 * time.Second: 1112800 * time.Microsecond,
	90 * time.Second: 1103200 * time.Microsecond,
}

// mostSteps bounds what one row takes to compute.
const mostSteps = 10_000_000

// StepTable returns the mean time of a step for each time between events, and last without any. Time is virtual. An error matches
// [ErrStepModel].
func StepTable(m StepModel) ([]StepRow, error) {
	if m.Step == 0 {
		m.Step = PaperStep
	}
	if m.For == 0 {
		m.For = 24 * time.Hour
	}
	if m.Every == nil {
		m.Every = []time.Duration{30 * time.Second, 60 * time.Second, 90 * time.Second}
	}
	if len(m.Outages) == 0 {
		m.Outages = []time.Duration{PaperOutage}
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	var rows []StepRow
	for _, every := range m.Every {
		rows = append(rows, m.row(every))
	}
	return append(rows, m.row(0)), nil
}

func (m StepModel) check() error {
	if m.Step < 0 || m.For < m.Step || m.For/m.Step > mostSteps {
		return fmt.Errorf("%w: steps of %v for %v: want a step above 0 and time for 1 to %d of them", ErrStepModel, m.Step, m.For, mostSteps)
	}
	longest := time.Duration(0)
	for _, o := range m.Outages {
		if o < 0 {
			return fmt.Errorf("%w: an outage of %v: want 0 or more", ErrStepModel, o)
		}
		longest = max(longest, o)
	}
	for _, e := range m.Every {
		if e <= longest {
			return fmt.Errorf("%w: an event every %v with outages of up to %v: no step would end: want more time between events", ErrStepModel, e, longest)
		}
	}
	return nil
}

// row goes through the steps one after another.
func (m StepModel) row(every time.Duration) StepRow {
	r := StepRow{Every: every, Paper: paperSteps[every]}
	next := time.Duration(math.MaxInt64)
	if every > 0 {
		next = every
	}
	now := time.Duration(0)
	for now < m.For {
		end := now + m.Step
		for next < end {
			end += m.Outages[r.Events%len(m.Outages)]
			r.Events++
			next += every
		}
		now = end
		r.Steps++
	}
	r.Mean = now / time.Duration(r.Steps)
	return r
}

// Event is switching half the links of a fabric once, as it was measured.
type Event struct {
	Run   string
	Moved int // links that came
	Links int // in all
	// Light is until the last link that came had light both ways, from when the first of its ports went dark, and Carrier until
	// both NICs had carrier.
	Light, Carrier timeline.Interval
}

// Outages returns how long each event stalls traffic: until its last link has carrier, at the latest.
func Outages(events []Event) []time.Duration {
	var all []time.Duration
	for _, e := range events {
		all = append(all, time.Duration(e.Carrier.Latest))
	}
	return all
}

// Measure switches half the links of a lab with hosts, again and again, and returns how long they were down: until the
// firmware of the NICs, real or emulated, had them up. Each event is a run. The error is the first of [Apply] or of planning, or
// matches [ErrLab] if no NIC says when it has carrier.
func Measure(ctx context.Context, f *lab.File, cables *Cables, events int, seed uint64, opt sequence.Options) ([]Event, error) {
	opt.Hosts, opt.Carrier = true, true
	demand, err := crosswiring.RandomFull(cables.fabric, seed)
	if err != nil {
		return nil, err
	}
	running, err := crosswiring.Plan(cables.fabric, demand)
	if err != nil {
		return nil, err
	}
	var all []Event
	for i := range events {
		if demand, err = crosswiring.Swapped(demand, 0.5, seed+uint64(i)+1); err != nil {
			return all, err
		}
		next, _, err := crosswiring.Rewire(running, demand, crosswiring.RewireOptions{Seed: seed})
		if err != nil {
			return all, err
		}
		r, err := Apply(ctx, f, cables, running, next, Options{Options: opt, Order: Paired})
		if err != nil {
			return all, err
		}
		e := Event{Run: r.Run, Moved: len(r.Links), Links: r.Followed}
		for _, l := range r.Links {
			if l.Carrier == (timeline.Interval{}) {
				return all, fmt.Errorf("%w: it is not known when %v had carrier again (run %s)", ErrLab, l.Link, r.Run)
			}
			e.Light, e.Carrier = timeline.Later(e.Light, l.For), timeline.Later(e.Carrier, l.Carrier)
		}
		all, running = append(all, e), next
	}
	return all, nil
}
