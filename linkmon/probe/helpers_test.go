package probe_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

var axis = timeline.HostAxis()

// running is a probe and the events that were read while looking for others.
type running struct {
	*probe.Probe
	kept []probe.Event
}

func start(tb testing.TB, opt probe.Options) *running {
	tb.Helper()
	p, err := probe.Start(context.Background(), opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { p.Close() })
	return &running{Probe: p}
}

// next waits for the first event that fits and was not returned before.
func next(tb testing.TB, p *running, what string, fits func(probe.Event) bool) probe.Event {
	tb.Helper()
	if i := slices.IndexFunc(p.kept, fits); i >= 0 {
		e := p.kept[i]
		p.kept = slices.Delete(p.kept, i, i+1)
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		e, err := p.Next(ctx)
		if err != nil {
			tb.Fatalf("%s: %v", what, err)
		}
		if fits(e) {
			return e
		}
		p.kept = append(p.kept, e)
	}
}

// nextOf waits for the next event of a flow that is not a Gap.
func nextOf(tb testing.TB, p *running, f probe.Flow) probe.Event {
	tb.Helper()
	return next(tb, p, f.String(), func(e probe.Event) bool { return e.Kind != probe.Gap && e.Flow == f })
}

// rest closes the probe and returns the events that are left.
func rest(tb testing.TB, p *running) []probe.Event {
	tb.Helper()
	if err := p.Close(); err != nil {
		tb.Error(err)
	}
	for {
		e, err := p.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return p.kept
		} else if err != nil {
			tb.Fatal(err)
		}
		p.kept = append(p.kept, e)
	}
}

// until waits for a condition.
func until(tb testing.TB, what string, cond func() bool) {
	tb.Helper()
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatalf("still not: %s", what)
		}
	}
}

// judged waits until all packets of flow i that were sent before at have a verdict.
func judged(tb testing.TB, p *running, i int, at int64) {
	tb.Helper()
	until(tb, "judged", func() bool { return p.Flows()[i].JudgedNS > at })
}

func overlaps(a, b timeline.Interval) bool {
	_, ok := a.Intersect(b)
	return ok
}
