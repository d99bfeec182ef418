package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/netns"
	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// watchFlags say how hosts are watched.
type watchFlags struct {
	poll, optics time.Duration
	tight, sync  bool
	netlinkOnly  bool
	reasons      bool
	kmsg         bool
}

func (w *watchFlags) add(f *pflag.FlagSet) {
	f.DurationVar(&w.poll, "poll", linkmon.DefaultPoll, "time between sweeps of the carrier counters")
	f.BoolVar(&w.tight, "tight", false, "sweep without pause: one core for a few microseconds of resolution")
	f.BoolVar(&w.sync, "sync", false, "make the kernel announce every change at once (Linux 6.8); changes when it lets traffic pass")
	f.DurationVar(&w.optics, "optics", 0, "time between readings of the modules' received power; 0 is never for real modules, since that disturbs link events")
	f.BoolVar(&w.reasons, "reasons", false, "ask drivers through ethtool why a link is down, each time carrier has gone; disturbs link events")
	f.BoolVar(&w.kmsg, "kmsg", false, "read what drivers log of this machine's links")
	f.BoolVar(&w.netlinkOnly, "netlink-only", false, "listen to rtnetlink only, as ordinary monitors do, to see what that misses")
}

func (w *watchFlags) options() (watch.Options, error) {
	if w.poll <= 0 {
		return watch.Options{}, usagef("--poll %v: want a time above zero; --tight does not pause at all", w.poll)
	}
	return watch.Options{Poll: w.poll, Tight: w.tight, Sync: w.sync, NoCounters: w.netlinkOnly, Optics: w.optics, Reasons: w.reasons, Kmsg: w.kmsg}, nil
}

// mode tells in words how the carriers are watched.
func (w *watchFlags) mode() string {
	switch {
	case w.netlinkOnly:
		return "rtnetlink only"
	case w.tight && w.sync:
		return "counters without pause, kernel made to announce (sync)"
	case w.tight:
		return "counters without pause"
	case w.sync:
		return fmt.Sprintf("counters every %v, kernel made to announce (sync)", w.poll)
	}
	return fmt.Sprintf("counters every %v", w.poll)
}

func (a *app) watchCommand() *cobra.Command {
	var flags watchFlags
	var netnss []string
	var name, timers string
	var sources, agent bool
	var length time.Duration
	c := &cobra.Command{
		Use:   "watch [HOST|NIC...|SWITCH...]",
		Short: "Follow the links of hosts: every transition of carrier, with the interval it lies in; or switches",
		Long: `Follow network interfaces until interrupted: each time carrier comes or goes, when
that was, from the kernel's carrier counters, and how late the kernel announced it.
Also what firmware and modules report, where they can be asked (--sources).

With a lab file: the hosts of the lab, or those named. Without: the interfaces of
this machine, or those whose names match (patterns such as "ens*"), here or in the
network namespaces given.

At the end the marks are held against the counters. If transitions are missing, that
is said, and the exit code is 5.

Where switches are named, by URL or as in the lab file, they are followed instead: what
they report, and circuits that somebody else has moved.`,
		Example: "  ocslab watch\n  ocslab watch tl1://admin@192.0.2.10\n  ocslab watch --netns gpu1 --netns gpu2 'ens*'\n  ocslab --lab lab.yaml watch gpu1 --json\n  ocslab watch --sources",
		RunE: func(cmd *cobra.Command, args []string) error {
			if timers != "" {
				return a.printTimers(timers)
			}
			opt, err := flags.options()
			if err != nil {
				return err
			}
			a.offer = true // what is watched is moved from elsewhere
			l, err := a.lab()
			if err != nil {
				return err
			}
			switch n := a.countSwitches(args); {
			case n > 0 && n == len(args):
				return a.watchSwitches(cmd.Context(), args, length)
			case n > 0:
				return usagef("watch hosts or switches, not both at once")
			}
			moreProcessors()
			v := viewer{a: a, flags: &flags, length: length, sources: sources, agent: agent, in: cmd.InOrStdin()}
			if agent && !a.set.JSON {
				return usagef("--agent goes with --json")
			}
			switch {
			case l != nil && len(netnss) > 0:
				return usagef("--netns is for watching without a lab file: the lab file has netns: of its hosts")
			case l != nil:
				if a.set.Emulated {
					if done, err := enter(); done {
						return err
					}
				}
				return v.lab(cmd.Context(), opt, args)
			}
			hosts, err := localHosts(netnss, name, args)
			defer func() {
				for _, h := range hosts {
					if h.NS != nil {
						h.NS.Close()
					}
				}
			}()
			if err != nil {
				return err
			}
			opt.Hosts = hosts
			return v.run(cmd.Context(), opt, nil)
		},
	}
	f := c.Flags()
	flags.add(f)
	f.StringArrayVar(&netnss, "netns", nil, "network `NAMESPACE` to look into, may be repeated: a name of `ip netns`, a path, or pid:N")
	f.StringVar(&name, "host", "", "`NAME` of this host in marks (default its hostname)")
	f.DurationVar(&length, "for", 0, "end after this time; 0 is never")
	f.BoolVar(&sources, "sources", false, "list what can be watched here, and what not and why, and end")
	f.StringVar(&timers, "timers", "", "print the firmware's timers of the last link-up from saved output of mstlink, mlxlink or mstreg (`FILE`), and end")
	f.BoolVar(&agent, "agent", false, "answer questions of another ocslab on standard input, and end when that ends")
	return c
}

// localHosts returns what is to be watched without a lab file.
func localHosts(netnss []string, name string, interfaces []string) ([]watch.Host, error) {
	for _, p := range interfaces {
		if strings.Contains(p, "/") {
			return nil, usagef("%q: HOST/NIC needs --lab FILE; without, name interfaces", p)
		}
	}
	if len(netnss) == 0 {
		h := watch.Host{Host: linkmon.Host{Name: name, Interfaces: interfaces}}
		if name == "" {
			var err error
			if h.Name, err = os.Hostname(); err != nil {
				return nil, err
			}
		}
		return []watch.Host{h}, nil
	}
	if name != "" {
		return nil, usagef("--host names this machine; hosts of --netns are called as their namespaces")
	}
	var hosts []watch.Host
	for _, ref := range netnss {
		ns, err := netns.Open(ref)
		if err != nil {
			return hosts, usageError{err}
		}
		hosts = append(hosts, watch.Host{Host: linkmon.Host{Name: ref, NS: ns, Interfaces: interfaces}})
	}
	return hosts, nil
}

// watchingLine is the first line of a watch that is no agent's: what comes to pass
// from here on is seen.
type watchingLine struct {
	Kind string `json:"kind"` // "watching"
	How  string `json:"how"`
}

// viewer is one run of the watch command.
type viewer struct {
	a              *app
	flags          *watchFlags
	length         time.Duration
	sources, agent bool
	in             io.Reader
	began          int64
}

// lab watches the hosts of the lab, or those named.
func (v *viewer) lab(ctx context.Context, opt watch.Options, names []string) (err error) {
	t, err := experiment.OpenTestbed(ctx, v.a.bench, experiment.TestbedOptions{Watch: opt, Only: names})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if t.Fabric != nil {
		v.a.printf("%s\n", fabricLine(t.Fabric))
		for _, s := range v.a.bench.File.Switches {
			if o, err := v.a.bench.Switch(ctx, s.Name); err == nil && o.Emulated != nil {
				v.a.printf("%s is at %s: move its light from another terminal, for example\n  ocslab connect '%s' '1>34' --mode update\n", s.Name, o.Emulated.URL(), o.Emulated.URL())
			}
		}
	}
	if t.Watch == nil {
		var why []error
		for _, s := range t.Sources {
			why = append(why, errors.New(s.Why))
		}
		return usagef("nothing can be watched from here: %w", errors.Join(why...))
	}
	return v.follow(ctx, t.Watch, t.Sources)
}

// run starts to watch and follows.
func (v *viewer) run(ctx context.Context, opt watch.Options, not []watch.Source) (err error) {
	w, err := watch.Start(ctx, opt)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	return v.follow(ctx, w, not)
}

// follow prints records until ctx or the time given ends.
func (v *viewer) follow(ctx context.Context, w *watch.Watch, not []watch.Source) error {
	if v.sources || v.agent {
		v.a.printSources(append(w.Sources(), not...))
	}
	if v.sources {
		v.a.printf("The firmware's own timers of a link-up are read from saved output of mstreg, mstlink or mlxlink: --timers FILE.\n")
		return nil
	}
	if !v.agent {
		for _, s := range not {
			fmt.Fprintf(v.a.err, "ocslab: not watched: %s\n", s.Why)
		}
	}
	v.a.printf("watching (%s); times since now; Ctrl-C ends\n", v.flags.mode())
	if v.a.set.JSON && !v.agent {
		v.a.json(watchingLine{"watching", v.flags.mode()})
	}
	v.began = timeline.HostAxis().NS(time.Now())
	var printing sync.Mutex // held while a line is written
	if v.length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, v.length)
		defer cancel()
	}
	if v.agent {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			defer cancel()
			v.answer(ctx, w, &printing)
		}()
	}
	for {
		records, err := w.Next(ctx)
		printing.Lock()
		for _, r := range records {
			v.print(r)
		}
		printing.Unlock()
		switch {
		case err != nil && ctx.Err() != nil:
			return v.end(w)
		case err != nil:
			return err
		}
	}
}

// end prints what is left and the account.
func (v *viewer) end(w *watch.Watch) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err := w.Flush(ctx)
	for _, r := range w.Drain() {
		v.print(r)
	}
	accounts := w.Accounts()
	v.a.printAccounts(accounts, w.Announcements())
	return errors.Join(err, watch.Incomplete(accounts))
}

// answer answers the questions of another ocslab; see package watch.
func (v *viewer) answer(ctx context.Context, w *watch.Watch, printing *sync.Mutex) {
	lines := bufio.NewScanner(v.in)
	for lines.Scan() {
		var q watch.Question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			fmt.Fprintf(v.a.err, "ocslab: agent: %.60q is no question: %v\n", lines.Text(), err)
			return
		}
		switch q.Kind {
		case "clock":
			printing.Lock()
			q.AtNS = timeline.HostAxis().NS(time.Now())
			v.a.json(q)
			printing.Unlock()
		case "flush":
			err := w.Flush(ctx)
			printing.Lock()
			for _, r := range w.Drain() {
				v.print(r)
			}
			v.a.printAccounts(w.Accounts(), nil)
			if err == nil {
				v.a.json(q)
			}
			printing.Unlock()
		default:
			reply, known := w.Answer(ctx, q)
			if !known {
				reply.Error = fmt.Sprintf("unknown question %.60q", q.Kind)
			}
			printing.Lock()
			v.a.json(reply)
			printing.Unlock()
		}
	}
}

// print prints a record.
func (v *viewer) print(r watch.Record) {
	if v.a.set.JSON {
		v.a.json(r)
		return
	}
	if n := r.Note; n != nil {
		what := string(n.Kind)
		if n.Event != "" {
			what = n.Event
		}
		subject := n.Subject
		if subject == "" {
			subject = n.Host
		}
		v.a.printf("%s  %-12s  %-16s  %s\n", v.at(n.Latest, 0), what, subject, strings.TrimSpace(n.Text+" ("+n.Source+")"))
		return
	}
	m := r.Mark
	text := m.Source
	if m.Detail != "" {
		text += ", " + m.Detail
	}
	v.a.printf("%s  %-12s  %-16s  %s\n", v.at(m.Mid(), m.Width()), m.Stage, m.Subject, text)
}

// at writes a time since the beginning with what it is known to; of 0, only that it
// was by then.
func (v *viewer) at(ns int64, width time.Duration) string {
	half := ""
	switch h := (width + 1) / 2; {
	case h >= time.Second:
		half = fmt.Sprintf("±%.3g s", h.Seconds())
	case h >= time.Millisecond:
		half = fmt.Sprintf("±%.3g ms", float64(h)/1e6)
	case h > 0:
		half = fmt.Sprintf("±%.0f µs", math.Ceil(float64(h)/1e3))
	}
	return fmt.Sprintf("%13.6f s %-8s", float64(ns-v.began)/1e9, half)
}

type sourceLine struct {
	Kind string `json:"kind"` // "source"
	watch.Source
}

// printSources lists what is watched.
func (a *app) printSources(list []watch.Source) {
	slices.SortStableFunc(list, func(x, y watch.Source) int {
		return strings.Compare(x.Host+"\x00"+x.Subject, y.Host+"\x00"+y.Subject)
	})
	t := table{}
	t.row("HOST", "INTERFACE", "SOURCE", "ON", "WHY")
	for _, s := range list {
		if a.set.JSON {
			a.json(sourceLine{"source", s})
			continue
		}
		on := "no"
		if s.On {
			on = "yes"
		}
		subject := strings.TrimPrefix(s.Subject, s.Host+"/")
		if subject == "" {
			subject = "all"
		}
		t.row(s.Host, subject, s.Name, on, s.Why)
	}
	if !a.set.JSON {
		t.write(a.out, "")
	}
}

type accountLine struct {
	Kind string `json:"kind"` // "account"
	watch.Account
}

// printAccounts prints whether the marks are complete, and how the kernel told of
// the same transitions.
func (a *app) printAccounts(accounts []watch.Account, heard []watch.Announcement) {
	var all watch.Account
	for _, x := range accounts {
		if a.set.JSON {
			a.json(accountLine{"account", x})
		}
		all.Counted += x.Counted
		all.Reported += x.Reported
		all.Merged += x.Merged
		all.Announced += x.Announced
		all.Missing += x.Missing
	}
	a.printf("carrier: %d transitions counted by the kernel, %d reported here", all.Counted, all.Reported)
	if all.Merged > 0 {
		a.printf(", %d told of as merged", all.Merged)
	}
	if all.Missing > 0 {
		a.printf(", %d MISSING", all.Missing)
	}
	if all.Announced > 0 && len(heard) > 0 {
		late := make([]timeline.Interval, len(heard))
		for i, h := range heard {
			late[i] = h.Late
		}
		a.printf("; rtnetlink announced %d, median %s late, at most %s",
			all.Announced, short(timeline.Quantile(late, 0.5)), short(timeline.Quantile(late, 1)))
	} else if all.Announced > 0 { // to agents, which keep to themselves how late
		a.printf("; rtnetlink announced %d", all.Announced)
	}
	a.printf("\n")
}

// short writes the middle of a duration with three digits.
func short(d timeline.Interval) string {
	ns := float64(d.Mid())
	switch {
	case ns < 1e3:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	case ns < 1e9:
		return fmt.Sprintf("%.3g ms", ns/1e6)
	}
	return fmt.Sprintf("%.3g s", ns/1e9)
}
