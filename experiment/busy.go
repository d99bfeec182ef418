package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// TooLate is how late a timer or a goroutine may run before a reconfiguration counts as
// disturbed by a busy machine, if [SetTooLate] does not say otherwise; see [Move.Busy]. Lateness below it makes
// intervals wider and no interval wrong: a packet that is later counts as missing.
const TooLate = probe.DefaultSilence

var tooLate atomic.Int64 // as SetTooLate has it

func init() { tooLate.Store(int64(TooLate)) }

// SetTooLate sets for all benches of the program how late a timer or a goroutine may run. With 0 nothing is checked: then
// nobody says whether intervals that were measured on a busy machine can be trusted.
func SetTooLate(d time.Duration) { tooLate.Store(int64(d)) }

// pulseEvery is how often a bench looks whether its goroutines run.
const pulseEvery = 10 * time.Millisecond

// checkBusy starts to look for signs of a busy machine. The function that it returns stops that
// and fills in Busy.
func (b *Bench) checkBusy() func(*Move) {
	limit := time.Duration(tooLate.Load())
	if limit <= 0 {
		return func(*Move) {}
	}
	if b.Late != nil {
		b.Late() // what was before
	}
	end, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		pace := time.NewTicker(pulseEvery)
		defer pace.Stop()
		longest <- heldUp(pace.C, end)
	}()
	return func(mv *Move) {
		close(end)
		if held := <-longest; held >= limit {
			mv.busy("this program had no processor for %v", held.Round(time.Millisecond))
		}
		if b.Late != nil {
			if late := b.Late(); late.By >= limit {
				mv.busy("the emulation of %s was late by %v", late.What, late.By.Round(time.Millisecond))
			}
		}
		mv.busyNotes()
		mv.busyOrder()
	}
}

// heldUp returns for how long nothing came from pace at most, until end is closed.
func heldUp(pace <-chan time.Time, end <-chan struct{}) (longest time.Duration) {
	for last := time.Now(); ; {
		over := false
		select {
		case <-pace:
		case <-end:
			over = true
		}
		now := time.Now()
		longest, last = max(longest, now.Sub(last)), now
		if over {
			return longest
		}
	}
}

func (mv *Move) busy(format string, args ...any) {
	if why := fmt.Sprintf(format, args...); !slices.Contains(mv.Busy, why) {
		mv.Busy = append(mv.Busy, why)
	}
}

// busyNotes looks for what the sources say of their own lateness. A source that was only late
// widens intervals; packets that were late or dropped here are taken for missing.
func (mv *Move) busyNotes() {
	told := map[string]bool{} // flows, of which each packet would be told
	for _, n := range mv.Notes {
		switch {
		case n.Kind != watch.Gap || n.Event != watch.Late, n.Source == "counters" && n.Width() < time.Duration(tooLate.Load()):
		case n.Subject != "" && !told[n.Subject]:
			told[n.Subject] = true
			mv.busy("%s: %s", n.Subject, n.Text)
		case n.Subject != "":
		default:
			mv.busy("%s", n.Text)
		}
	}
}

// busyOrder looks for orders that cannot be.
func (mv *Move) busyOrder() {
	marks, conflicts := timeline.Merge(mv.Marks)
	for _, c := range conflicts {
		mv.busy("%v", c)
	}
	for _, v := range timeline.Check(marks) {
		mv.busy("%v", v)
	}
}

// BusyError is the error of a measurement in which more than 1 % of the reconfigurations
// were disturbed by a busy machine.
type BusyError struct{ Busy, Of int }

// ErrBusy: the machine was too busy to measure.
var ErrBusy = errors.New("the machine was too busy to measure")

func (e *BusyError) Error() string {
	return fmt.Sprintf("%v: %d of %d reconfigurations were disturbed, and are left out; measure on a machine with nothing else to do", ErrBusy, e.Busy, e.Of)
}

// Unwrap returns [ErrBusy].
func (e *BusyError) Unwrap() error { return ErrBusy }

// CheckBusy returns a [*BusyError] when more than 1 % of the reconfigurations were disturbed.
func CheckBusy(busy, of int) error {
	if 100*busy > of {
		return &BusyError{busy, of}
	}
	return nil
}

// DarkError is the error of circuits that were read back as asked and carry no light.
type DarkError struct{ Ports []string } // "rail0/37"

// ErrDark: a circuit carries no light.
var ErrDark = errors.New("no light")

func (e *DarkError) Error() string {
	return fmt.Sprintf("%v at %s, although the switch reads back as asked: the power monitors there stay dark; check fibres and connectors",
		ErrDark, strings.Join(e.Ports, ", "))
}

// Unwrap returns [ErrDark].
func (e *DarkError) Unwrap() error { return ErrDark }

// unlit returns those of the ports that a change should light whose circuit has light at its
// ingress or, without a monitor there, may have.
func (r *run) unlit(ctx context.Context, dark []ocs.Port) []ocs.Port {
	if len(dark) == 0 {
		return nil
	}
	from := map[ocs.Port]ocs.Port{}
	var ingress []ocs.Port
	for c := range r.report.Change.Add.All() {
		if slices.Contains(dark, c.Egress) {
			from[c.Egress] = c.Ingress
			ingress = append(ingress, c.Ingress)
		}
	}
	input, err := r.rig.Meter.Power(ctx, ingress...)
	if err != nil {
		return dark
	}
	return slices.DeleteFunc(dark, func(p ocs.Port) bool {
		power, measured := input.Ports[from[p]]
		return measured && power < ocs.NoLight
	})
}
