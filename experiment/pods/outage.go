package pods

import (
	"cmp"
	"slices"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology"
	"github.com/ocslab/ocslab/topology/crosswiring"
)

// event is a link between two pods that went, or came.
type event struct {
	timeline.LinkEvent
	pods [2]int // the smaller number first
}

type markKey struct {
	stage   timeline.Stage
	subject string
}

type marks map[markKey]timeline.Interval

func marksOf(mv experiment.Move) marks {
	all := marks{}
	for _, m := range mv.Marks {
		all[markKey{m.Stage, m.Subject}] = m.Interval
	}
	return all
}

// record notes what a round came to.
func (a *applying) record(m move, mv experiment.Move) {
	round := Round{Pairs: len(m.pairs)}
	var began, ended time.Time
	for _, c := range m.commits {
		if began.IsZero() || c.began.Before(began) {
			began = c.began
		}
		if c.ended.After(ended) {
			ended = c.ended
		}
	}
	round.Took = ended.Sub(began)
	a.report.Rounds = append(a.report.Rounds, round)

	at := marksOf(mv)
	for _, s := range a.report.Change.Switches {
		if slices.Contains(m.pairs, a.to.Fabric().PairOf(s.Switch)) {
			a.report.Switches = append(a.report.Switches, a.timed(s, mv.Reports[a.cables.names[s.Switch]], at))
		}
	}
	a.links(m, at)
}

// timed returns when a switch was done.
func (a *applying) timed(s crosswiring.SwitchChange, did ocs.Report, at marks) SwitchReport {
	r := SwitchReport{Switch: s.Switch, Name: a.cables.names[s.Switch], Removed: len(s.Removed), Added: len(s.Added), Rewired: s.RewiredPorts()}
	command, sent := at[markKey{timeline.Command, r.Name}]
	if !sent {
		return r
	}
	first := timeline.Point(command.Earliest)
	if ack, known := at[markKey{timeline.Ack, r.Name}]; known {
		r.Ack = ack.Sub(first)
	}
	var last timeline.Interval
	for _, x := range s.Added {
		lit, known := at[markKey{timeline.Light, topology.Port{Switch: r.Name, Port: a.cables.egress[end{s.Switch, x.Out}]}.String()}]
		if !known {
			return r
		}
		last = timeline.Later(last, lit)
	}
	if len(s.Added) > 0 {
		r.Light = last.Sub(first)
	}
	return r
}

// links notes when the links of a round went and came.
func (a *applying) links(m move, at marks) {
	gone := map[crosswiring.Port]event{} // by both ports
	old, now := linksOn(a.have, m.pairs), linksOn(a.to, m.pairs)
	for _, l := range old {
		if slices.Contains(now, l) {
			continue
		}
		e := a.event(l, at, timeline.Dark, timeline.Earlier)
		gone[l.A], gone[l.B] = e, e
		a.events = append(a.events, e)
	}
	for _, l := range now {
		if slices.Contains(old, l) {
			continue
		}
		e := a.event(l, at, timeline.Light, timeline.Later)
		e.Came = true
		a.events = append(a.events, e)
		a.report.Links = append(a.report.Links, a.down(l, e, gone, m, at))
	}
}

// linksOn returns the links of a configuration on some pairs.
func linksOn(c *crosswiring.Config, pairs []crosswiring.Pair) []crosswiring.PortLink {
	return slices.DeleteFunc(c.Links(), func(l crosswiring.PortLink) bool {
		s, _ := c.Fabric().Tx(l.A)
		return !slices.Contains(pairs, c.Fabric().PairOf(s))
	})
}

// event is a link that went, when the first of its two ports was dark, or came, when the last had light.
func (a *applying) event(l crosswiring.PortLink, at marks, stage timeline.Stage, of func(a, b timeline.Interval) timeline.Interval) event {
	one, known := at[markKey{stage, a.cables.nics[l.A].Rx.String()}]
	other, also := at[markKey{stage, a.cables.nics[l.B].Rx.String()}]
	return event{
		timeline.LinkEvent{At: of(one, other), Known: known && also},
		[2]int{min(l.A.Pod, l.B.Pod), max(l.A.Pod, l.B.Pod)},
	}
}

// down returns for how long the ports of a link that came were out of work.
func (a *applying) down(l crosswiring.PortLink, came event, gone map[crosswiring.Port]event, m move, at marks) LinkDown {
	d := LinkDown{Link: l, Known: came.Known}
	var since timeline.Interval
	found := false
	for _, p := range []crosswiring.Port{l.A, l.B} {
		e, was := gone[p]
		switch {
		case !was:
		case !found:
			since, found, d.Known = e.At, true, d.Known && e.Known
		default:
			since, d.Known = timeline.Earlier(since, e.At), d.Known && e.Known
		}
	}
	if !found {
		c := m.commits[a.cables.nics[l.A].Tx.Switch]
		since = timeline.HostAxis().Span(c.began, c.began)
	}
	if !d.Known {
		return d
	}
	d.For = came.At.Sub(since)
	d.For = timeline.Between(max(0, d.For.Earliest), max(0, d.For.Latest))
	one, known := at[markKey{timeline.CarrierUp, a.cables.nics[l.A].Name}]
	other, also := at[markKey{timeline.CarrierUp, a.cables.nics[l.B].Name}]
	if known && also {
		d.Carrier = timeline.Later(one, other).Sub(since)
	}
	return d
}

// apart works out how long pods had no link.
func (a *applying) apart() []PodsDown {
	byPods := map[[2]int][]timeline.LinkEvent{}
	for _, e := range a.events {
		byPods[e.pods] = append(byPods[e.pods], e.LinkEvent)
	}
	if len(byPods) == 0 {
		return nil
	}
	before, after := a.have.Demand(), a.to.Demand()
	var all []PodsDown
	for pods, events := range byPods {
		had, has := 0, 0
		for h := range a.to.Fabric().Groups {
			had, has = had+before.At(h, pods[0], pods[1]), has+after.At(h, pods[0], pods[1])
		}
		if had > 0 && has > 0 {
			d := PodsDown{A: pods[0], B: pods[1]}
			d.For, d.Known = timeline.Outage(had, events)
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b PodsDown) int {
		return cmp.Or(cmp.Compare(b.For.Latest, a.For.Latest), cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B))
	})
	return all
}
