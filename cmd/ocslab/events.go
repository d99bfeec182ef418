package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/drivers"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// eventLine is something that a switch reported, or circuits that somebody else
// has moved.
type eventLine struct {
	Kind       string   `json:"kind"` // "event", or "drift" for circuits
	Switch     string   `json:"switch"`
	ReceivedNS int64    `json:"received_ns"` // on the host's monotonic clock
	Severity   string   `json:"severity"`
	Port       ocs.Port `json:"port"` // 0 if it concerns none
	Text       string   `json:"text"`
	Removed    ocs.Map  `json:"removed"` // of a drift
	Added      ocs.Map  `json:"added"`
	Lost       int      `json:"lost"` // events dropped before this one
}

// countSwitches returns how many arguments name a switch: a URL, or a name of
// the lab.
func (a *app) countSwitches(args []string) int {
	n := 0
	f := a.labFile()
	for _, arg := range args {
		named := false
		if f != nil {
			_, named = f.Switch(arg)
		}
		if named || drivers.IsURL(arg) {
			n++
		}
	}
	return n
}

// watchSwitches follows what switches report, and who else moves their
// circuits, until ctx ends or the time is over.
func (a *app) watchSwitches(ctx context.Context, names []string, length time.Duration) error {
	var watched []*lab.Opened
	for _, name := range names {
		o, err := a.open(ctx, name)
		if err != nil {
			return err
		}
		watched = append(watched, o)
	}
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	}
	a.printf("watching %s; times since now; Ctrl-C ends\n", strings.Join(names, ", "))
	if a.set.JSON {
		a.json(watchingLine{"watching", "events, and the map read again and again"})
	}
	began := time.Now()
	axis := timeline.HostAxis()
	var printing sync.Mutex // held while a line is written
	show := func(name string, e ocs.Event) {
		printing.Lock()
		defer printing.Unlock()
		line := eventLine{"event", name, axis.NS(e.Received), e.Severity, e.Port, e.Text, e.Drift.Remove, e.Drift.Add, e.Lost}
		if !e.Drift.Empty() {
			line.Kind = "drift"
		}
		if a.set.JSON {
			a.json(line)
			return
		}
		if e.Lost > 0 {
			a.printf("%13s    %s: %d events were lost\n", "", name, e.Lost)
		}
		a.printf("%13.6f s  %-8s  %s: %s\n", e.Received.Sub(began).Seconds(), line.Kind, name, e.Text)
	}
	failed := make([]error, len(watched))
	var all sync.WaitGroup
	for i, o := range watched {
		n, _ := ocs.As[ocs.Notifier](o) // at least the watcher around it
		all.Go(func() {
			err := n.Notify(ctx, func(e ocs.Event) { show(o.Name, e) })
			if ctx.Err() == nil {
				failed[i] = fmt.Errorf("%s is watched no more: %w", o.Name, err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
