package linkmon_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/timeline"
)

// In virtual time the interval is known to the nanosecond.
func TestIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		l := f.add(2, "nic0", 0, 0)
		m := startFakes(t, f, linkmon.Options{Poll: time.Millisecond})
		began := time.Now()
		slack := timeline.HostAxis().Span(began, began).Width()
		for i := range 20 {
			time.Sleep(1700 * time.Microsecond)
			at := l.move(1)
			flush(t, m)
			events := of(queued(t, m), linkmon.Transition)
			if len(events) != 1 {
				t.Fatalf("%v", events)
			}
			e := events[0]
			if _, ok := e.Intersect(at); !ok {
				t.Errorf("%v does not hold %v", e, at)
			}
			if e.Width() > time.Millisecond+slack {
				t.Errorf("%v is %v wide", e, e.Width())
			}
			if e.Up != (i%2 == 0) || e.Number != i+1 || e.Shared != 1 || e.Source != "counters" || e.Index != 2 {
				t.Errorf("%+v", e)
			}
		}
		account(t, m, 20)
	})
}

// A read has been answered, the carrier moves, and only then the answer arrives.
func TestSlowAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		l := f.add(2, "nic0", 0, 0)
		m := startFakes(t, f, linkmon.Options{})
		var truth []timeline.Interval
		done := make(chan struct{})
		f.do(func() {
			l.after = func() {
				if len(truth) == 40 {
					f.do(func() { l.after = nil })
					close(done)
					return
				}
				time.Sleep(time.Millisecond)
				truth = append(truth, l.move(1))
				time.Sleep(time.Millisecond)
			}
		})
		for range 3 { // audits are reads, too
			flush(t, m)
		}
		<-done
		flush(t, m)
		events := of(queued(t, m), linkmon.Transition)
		if len(events) != len(truth) {
			t.Fatalf("%d events of %d", len(events), len(truth))
		}
		for i, e := range events {
			if _, ok := e.Intersect(truth[i]); !ok {
				t.Errorf("%v does not hold %v", e, truth[i])
			}
		}
		account(t, m, len(truth))
	})
}

// Counters begin anywhere, wrap, and several transitions may fall between two sweeps.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		near := rapid.OneOf(rapid.Uint32(), rapid.Just(uint32(math.MaxUint32)), rapid.Uint32Range(0, 3))
		f := &fakes{}
		l := f.add(2, "nic0", near.Draw(rt, "ups"), near.Draw(rt, "downs"))
		l.up = rapid.Bool().Draw(rt, "up")
		l.old = rapid.Bool().Draw(rt, "old kernel")
		state := l.up
		m := startFakes(t, f, linkmon.Options{Poll: time.Hour})
		defer m.Close()
		total := 0
		for _, k := range rapid.SliceOf(rapid.IntRange(0, 9)).Draw(rt, "moves") {
			l.move(k)
			flush(t, m)
			events := of(queued(t, m), linkmon.Transition)
			if len(events) != k {
				rt.Fatalf("%d events of %d transitions", len(events), k)
			}
			for _, e := range events {
				total++
				if state = !state; e.Up != state || e.Number != total || e.Shared != k {
					rt.Fatalf("transition %d to %v of %d: %+v", total, state, k, e)
				}
			}
		}
		account(t, m, total)
		if got := m.Links(); len(got) != 1 || got[0].Carrier != state || got[0].Transitions != total {
			rt.Fatalf("%+v", got)
		}
	})
}

// Nobody says whether there is carrier; the counters do.
func TestUnknownState(t *testing.T) {
	for _, tc := range []struct {
		ups, downs uint32
		up         bool
		moves      int
		want       string
	}{
		{0, 0, false, 1, "u"},
		{0, 0, true, 1, "d"},
		{0, 0, false, 2, "ud"}, // a guess: dark unless known
		{0, 0, true, 3, "dud"},
		{5, 4, true, 2, "du"},
		{4, 5, false, 2, "ud"},
	} {
		f := &fakes{}
		l := f.add(2, "nic0", tc.ups, tc.downs)
		l.mute, l.up = true, tc.up
		m := startFakes(t, f, linkmon.Options{Poll: time.Hour})
		l.move(tc.moves)
		flush(t, m)
		got := ""
		for _, e := range of(queued(t, m), linkmon.Transition) {
			got += map[bool]string{true: "u", false: "d"}[e.Up]
		}
		if got != tc.want {
			t.Errorf("%+v: got %q", tc, got)
		}
	}
}

// A link that moves while it is looked at.
func TestRestless(t *testing.T) {
	f := &fakes{}
	l := f.add(2, "nic0", 0, 0)
	moves := 0
	l.onUpDown = func() { l.moveLocked(); moves++ }
	m := startFakes(t, f, linkmon.Options{})
	for range 5 {
		flush(t, m)
	}
	f.do(func() { l.onUpDown = nil })
	flush(t, m)
	transitions := of(queued(t, m), linkmon.Transition)
	for i, e := range transitions[1:] {
		if e.Up == transitions[i].Up {
			t.Fatalf("%v after %v", e, transitions[i])
		}
	}
	account(t, m, len(transitions))
	if len(transitions) == 0 || len(transitions) > moves {
		t.Errorf("%d of %d", len(transitions), moves)
	}
}

func TestJump(t *testing.T) {
	f := &fakes{}
	l := f.add(2, "nic0", 9, 4)
	m := startFakes(t, f, linkmon.Options{Poll: time.Hour})
	f.do(func() { l.ups, l.downs, l.up = 0, 0, true }) // a driver that begins anew
	flush(t, m)
	events := queued(t, m)
	gaps := of(events, linkmon.Gap)
	if len(gaps) != 1 || !strings.Contains(gaps[0].Text, "4294967283 transitions") {
		t.Errorf("gaps: %v", gaps)
	}
	a := account(t, m, 1<<16)
	if a.Merged != 1<<32-13-1<<16 || a.Gaps != 1 {
		t.Errorf("%+v", a)
	}
	// From then on all is as before.
	for _, want := range []bool{false, true, false} {
		l.move(1)
		flush(t, m)
		if got := of(queued(t, m), linkmon.Transition); len(got) != 1 || got[0].Up != want {
			t.Errorf("after the jump: %v", got)
		}
	}
}

func TestStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		a, b := f.add(2, "nic0", 0, 0), f.add(3, "nic1", 0, 0)
		m := startFakes(t, f, linkmon.Options{})
		time.Sleep(time.Second)
		f.do(func() { a.block = 50 * time.Millisecond })
		time.Sleep(20 * time.Millisecond)
		at := b.move(3)
		time.Sleep(time.Second)
		flush(t, m)
		events := queued(t, m)
		gaps := of(events, linkmon.Gap)
		if len(gaps) != 1 || gaps[0].Interface != "" || !strings.Contains(gaps[0].Text, "50ms") {
			t.Fatalf("gaps: %v", gaps)
		}
		moved := of(events, linkmon.Transition)
		if len(moved) != 3 || moved[0].Shared != 3 || moved[0].Interval != moved[2].Interval {
			t.Fatalf("transitions: %v", moved)
		}
		for _, i := range []timeline.Interval{gaps[0].Interval, moved[0].Interval} {
			if _, ok := i.Intersect(at); !ok {
				t.Errorf("%v does not hold %v", i, at)
			}
		}
		if acc := account(t, m, 3); acc.Sweeps.Late != 1 || acc.Sweeps.Longest < 50*time.Millisecond || acc.Sweeps.Count < 15000 {
			t.Errorf("%+v", acc.Sweeps)
		}
	})
}

func TestUnreadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		a, b := f.add(2, "nic0", 0, 0), f.add(3, "nic1", 0, 0)
		m := startFakes(t, f, linkmon.Options{})
		f.do(func() { a.err = errors.New("no answer") })
		time.Sleep(time.Second)
		a.move(2)
		b.move(1)
		flush(t, m)
		events := queued(t, m)
		if gaps := of(events, linkmon.Gap); len(gaps) != 1 || gaps[0].Interface != "nic0" || !strings.Contains(gaps[0].Text, "no answer") {
			t.Errorf("gaps: %v", gaps)
		}
		if got := of(events, linkmon.Transition); len(got) != 1 || got[0].Interface != "nic1" {
			t.Errorf("transitions: %v", got)
		}
		f.do(func() { a.err = nil })
		flush(t, m)
		got := of(queued(t, m), linkmon.Transition)
		if len(got) != 2 || got[0].Width() < time.Second {
			t.Errorf("after the gap: %v", got)
		}
		account(t, m, 3)

		f.do(func() { f.err = errors.New("nothing there") })
		time.Sleep(2 * time.Second)
		flush(t, m)
		if gaps := of(queued(t, m), linkmon.Gap); len(gaps) != 1 || !strings.Contains(gaps[0].Text, "nothing there") {
			t.Errorf("gaps: %v", gaps)
		}
	})
}

func TestComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakes{}
		f.add(1, "lo", 0, 0)
		stays := f.add(2, "nic0", 3, 3)
		m := startFakes(t, f, linkmon.Options{})
		time.Sleep(time.Second)

		began := timeline.HostAxis().NS(time.Now())
		fresh := f.add(3, "nic1", 0, 0)
		fresh.move(3)
		time.Sleep(300 * time.Millisecond) // seen without being asked
		events := queued(t, m)
		if got := of(events, linkmon.Added); len(got) != 1 || got[0].Interface != "nic1" || !got[0].Contains(began) {
			t.Errorf("added: %v", got)
		}
		if got := of(events, linkmon.Transition); len(got) != 3 || got[0].Shared != 3 || !got[0].Contains(began) || !got[2].Up || got[1].Up {
			t.Errorf("transitions of before: %v", got)
		}
		fresh.move(1)
		stays.move(1)
		f.do(func() { fresh.name = "nic9" })
		flush(t, m)
		events = queued(t, m)
		if got := of(events, linkmon.Renamed); len(got) != 1 || got[0].Interface != "nic9" || got[0].Text != "nic1" {
			t.Errorf("renamed: %v", got)
		}

		fresh.move(1)
		time.Sleep(time.Millisecond)
		f.remove(fresh)
		f.do(func() { fresh.err = linkmon.ErrGone })
		time.Sleep(time.Millisecond)
		stays.move(1)
		flush(t, m)
		if got := of(queued(t, m), linkmon.Removed); len(got) != 1 || got[0].Interface != "nic9" {
			t.Errorf("removed: %v", got)
		}
		if fresh.open != 0 {
			t.Error("still open")
		}
		// Off the list, and yet readable: what it did until then counts.
		stays.move(1)
		f.remove(stays)
		flush(t, m)
		a := account(t, m, 8)
		if len(a.PerLink) != 2 || !a.PerLink[0].Removed || a.PerLink[0].Reported != 3 || !a.PerLink[1].Removed || a.PerLink[1].Reported != 5 {
			t.Errorf("%+v", a.PerLink)
		}
		if got := m.Links(); len(got) != 0 {
			t.Errorf("links: %v", got)
		}
	})
}

func TestPatterns(t *testing.T) {
	f := &fakes{}
	f.add(1, "lo", 0, 0)
	f.add(2, "ens1", 0, 0)
	f.add(4, "ens2", 0, 0)
	other := f.add(3, "mgmt", 5, 5)
	m := startFakes(t, f, linkmon.Options{}, "ens*", "rail0", "data?")
	names := func() string {
		s := ""
		for _, l := range m.Links() {
			s += l.Interface + " "
		}
		return s
	}
	if got := names(); got != "ens1 ens2 " {
		t.Errorf("watches %s", got)
	}
	if s := m.Sources()[0]; !s.On || s.Name != "counters" || !strings.Contains(s.Why, "rail0") || strings.Contains(s.Why, "data") {
		t.Errorf("%+v", s)
	}
	// Renamed into the pattern: what it did before was never our business.
	f.do(func() { other.name = "rail0" })
	flush(t, m)
	if got := names(); got != "ens1 rail0 ens2 " {
		t.Errorf("watches %s", got)
	}
	if s := m.Sources()[0]; s.Why != "" {
		t.Errorf("%+v", s)
	}
	other.move(1)
	// Renamed out of it: the index stays.
	f.do(func() { other.name = "mgmt" })
	flush(t, m)
	account(t, m, 1)
	// One that cannot be opened is told once.
	bad := f.add(5, "data1", 0, 0)
	bad.openErr, bad.open = fs(t), -2
	flush(t, m)
	flush(t, m)
	f.remove(bad)
	flush(t, m)
	if gaps := of(queued(t, m), linkmon.Gap); len(gaps) != 1 || !strings.Contains(gaps[0].Text, "data1") {
		t.Errorf("gaps: %v", gaps)
	}
}

func fs(t *testing.T) error { return fmt.Errorf("%s: broken", t.Name()) }

func TestOptions_Bad(t *testing.T) {
	f := &fakes{}
	host := func(name string, interfaces ...string) linkmon.Host {
		return linkmon.Host{Name: name, Counters: f, Interfaces: interfaces}
	}
	for _, tc := range []struct {
		opt  linkmon.Options
		want string
		is   error
	}{
		{linkmon.Options{Poll: -1}, "-1ns", nil},
		{linkmon.Options{NoCounters: true, NoNetlink: true}, "nothing to look at", nil},
		{linkmon.Options{Hosts: []linkmon.Host{host("a"), host("a")}}, `"a"`, nil},
		{linkmon.Options{Hosts: []linkmon.Host{host("a", "[")}}, `"["`, path.ErrBadPattern},
		{linkmon.Options{Hosts: []linkmon.Host{host("a")}, NoCounters: true}, "contradict", nil},
		{linkmon.Options{Hosts: []linkmon.Host{{Name: "b", Counters: &fakes{err: io.ErrNoProgress}}}}, "host b", io.ErrNoProgress},
	} {
		m, err := linkmon.Start(t.Context(), tc.opt)
		if err == nil {
			m.Close()
			t.Errorf("%+v: no error", tc.opt)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%+v: %v", tc.opt, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := linkmon.Start(ctx, linkmon.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("context done: %v", err)
	}
}

func TestNext(t *testing.T) {
	f := &fakes{}
	l := f.add(2, "nic0", 0, 0)
	m := startFakes(t, f, linkmon.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := m.Next(ctx); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	if err := m.Flush(ctx); !errors.Is(err, why) {
		t.Errorf("flush: %v", err)
	}

	// Several readers share the events and all see the end.
	const moves, readers = 500, 4
	counts := make(chan int, readers)
	var wg sync.WaitGroup
	for range readers {
		wg.Go(func() {
			n := 0
			for {
				_, err := m.Next(context.Background())
				if err != nil {
					if !errors.Is(err, io.EOF) {
						t.Error(err)
					}
					counts <- n
					return
				}
				n++
			}
		})
	}
	for range moves / 2 {
		l.move(2)
	}
	flush(t, m)
	m.Close()
	wg.Wait()
	n := 0
	for range readers {
		n += <-counts
	}
	if gaps := m.Account().Gaps; n-gaps != moves {
		t.Errorf("%d of %d", n-gaps, moves)
	}
	account(t, m, moves)
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if err := m.Flush(context.Background()); err == nil {
		t.Error("Flush after Close succeeded")
	}
}

// All who wait see the end.
func TestNext_End(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := startFakes(t, &fakes{}, linkmon.Options{Poll: time.Second})
		for range 3 {
			go func() {
				if _, err := m.Next(context.Background()); !errors.Is(err, io.EOF) {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		m.Close()
	})
}

func TestStart_Context(t *testing.T) {
	f := &fakes{}
	l := f.add(2, "nic0", 0, 0)
	ctx, cancel := context.WithCancel(t.Context())
	m, err := linkmon.Start(ctx, linkmon.Options{Tight: true, Hosts: []linkmon.Host{{Counters: f}}})
	if err != nil {
		t.Fatal(err)
	}
	l.move(1)
	cancel()
	for {
		e, err := m.Next(context.Background())
		if errors.Is(err, io.EOF) {
			break
		}
		if e.Host == "" {
			t.Errorf("no name: %v", e)
		}
	}
	account(t, m, 1)
}

func TestEvent(t *testing.T) {
	e := linkmon.Event{
		Kind: linkmon.Transition, Host: "gpu1", Interface: "ens1", Up: true, Number: 4, Shared: 2,
		Interval: timeline.Between(100, 200), Source: "counters",
	}
	mark, ok := e.Mark()
	want := timeline.Mark{
		Stage: timeline.CarrierUp, Subject: "gpu1/ens1", Host: "gpu1", Interval: e.Interval,
		Source: "counters", Detail: "one of 2 transitions in this interval",
	}
	if !ok || mark != want {
		t.Errorf("got %+v", mark)
	}
	told := e
	told.Kind, told.Source, told.Shared, told.Interval = linkmon.Announcement, "netlink+bpf", 1, timeline.Between(100, 150)
	second, ok := told.Mark()
	if !ok || second.Source != "netlink" || second.Detail != "" {
		t.Errorf("got %+v", second)
	}
	if merged, conflicts := timeline.Merge([]timeline.Mark{mark, second}); len(merged) != 1 || len(conflicts) != 0 || merged[0].Source != "counters+netlink" {
		t.Errorf("got %v, %v", merged, conflicts)
	}
	e.Kind, e.Up, e.Source = linkmon.Transition, false, "netlink+bpf"
	if m, _ := e.Mark(); m.Stage != timeline.CarrierDown || m.Source != "netlink" {
		t.Errorf("got %+v", m)
	}
	if got := e.String(); got != "gpu1/ens1 transition 4: down at 150 ns ±50" {
		t.Errorf("String = %q", got)
	}
	gap := linkmon.Event{Kind: linkmon.Gap, Host: "gpu1", Text: "lost"}
	if _, ok := gap.Mark(); ok || gap.String() != "gpu1 gap: lost at 0 ns" {
		t.Errorf("%v", gap)
	}
	for k, want := range map[linkmon.EventKind]string{
		linkmon.Transition: "transition", linkmon.Announcement: "announcement", linkmon.Added: "added", linkmon.Removed: "removed",
		linkmon.Renamed: "renamed", linkmon.OperState: "operstate", 77: "EventKind(77)",
	} {
		if got := k.String(); got != want {
			t.Errorf("%d is %q", k, got)
		}
	}
}

func TestAccount_Err(t *testing.T) {
	a := linkmon.Account{Counted: 45, Reported: 40, Merged: 2, PerLink: []linkmon.LinkAccount{
		{Host: "gpu1", Interface: "ens1", Counted: 20, Reported: 20},
		{Host: "gpu1", Interface: "ens2", Counted: 20, Reported: 15, Merged: 2},
		{Host: "gpu2", Interface: "ens1", Counted: 5, Reported: 5},
	}}
	if got, want := fmt.Sprint(a.Err()), "of 45 carrier transitions counted 40 were reported and 2 merged, which is off by 3; most on gpu1/ens2: 20 counted, 15 reported, 2 merged"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
