package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ocslab/ocslab/calibration/clock"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
)

// clocked is a Bench with hosts that have clocks of their own, on other machines.
type clocked interface {
	// Clocks asks each of them for its clock, back to back, and returns the exchanges by
	// host.
	Clocks(ctx context.Context) map[string][]clock.Exchange
}

// clockTime is how long asking for clocks may take. Light that is to be put back does not wait for it when the run
// was aborted or has failed; after a run that has come to its end, or was told to stop there, it waits so long at most.
const clockTime = 3 * time.Second

// Clocks asks the agents of the testbed.
func (b *labBench) Clocks(ctx context.Context) map[string][]clock.Exchange {
	if b.bed == nil || b.bed.Watch == nil {
		return nil
	}
	answers := map[string][]clock.Exchange{}
	for _, host := range b.bed.Watch.Agents() {
		answers[host] = experiment.AskClock(ctx, b.bed.Watch, host, clock.DefaultExchanges)
	}
	return answers
}

// askClocks asks the hosts of the bench for their clocks when that has been opened, and again
// before it is closed: then an event tells where each clock was meanwhile, or why that cannot be
// said. When the light is urgent nobody is asked at the end, and the event is of what was known before.
func (s *session) askClocks(ctx context.Context, closing bool) error {
	b, ok := s.bench.(clocked)
	if !ok {
		return nil
	}
	return experiment.Guard(func() error {
		ctx, cancel := context.WithTimeout(ctx, clockTime)
		defer cancel()
		unasked := ""
		if closing && s.urgent {
			unasked = "; it was not asked at the end, since the light had to be put back"
		} else {
			for host, answers := range b.Clocks(ctx) {
				if s.clocks == nil {
					s.clocks = map[string][]clock.Batch{}
				}
				s.clocks[host] = append(s.clocks[host], clock.Batch{When: clock.During, Exchanges: answers})
				s.clocks[host][0].When = clock.Before
			}
		}
		if !closing {
			return nil
		}
		for _, host := range slices.SortedFunc(maps.Keys(s.clocks), natural.Compare) {
			list := s.clocks[host]
			// Where it was at the end. The stamps are those of the programs that marks come from: there is nothing between
			// them and the clocks that count.
			text := ""
			if r, err := clock.Fit(host, list, clock.Options{}); err == nil {
				text = fmt.Sprintf("host %s: its clock was %s, by %s", host, r.Line(), natural.Count(len(list), "batch"))
			} else {
				text = err.Error()
			}
			if err := s.event("clock", text+unasked); err != nil {
				return err
			}
		}
		return nil
	})
}
