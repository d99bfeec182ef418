package hbd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// FailureKind is what has failed.
type FailureKind string

// The kinds of failures, the worst first.
const (
	// NodeDead: no bundle of the node answers, and its light is gone at all neighbours that had it.
	NodeDead FailureKind = "node-dead"
	// BundleDead: one bundle of a node does not send any more, and others of the node answer.
	BundleDead FailureKind = "bundle-dead"
	// CableDead: both ends send, and what one sends does not arrive.
	CableDead FailureKind = "cable-dead"
	// NodeSilent: no bundle of the node answers, and neighbours have its light or never had any. It may be alive: its
	// rings are to be left alone.
	NodeSilent FailureKind = "node-silent"
	// BundleSilent: one bundle does not answer, and its light is there or never was.
	BundleSilent FailureKind = "bundle-silent"
)

var worst = map[FailureKind]int{NodeDead: 0, BundleDead: 1, CableDead: 2, NodeSilent: 3, BundleSilent: 4}

// Failure is something that has failed, as the detector knows it.
type Failure struct {
	Kind   FailureKind
	Node   infinitehbd.Node  // not of CableDead
	Bundle int               // of BundleDead and BundleSilent
	Cable  infinitehbd.Cable // of CableDead
	Text   string            // one sentence
	// Witnesses are the ends of cables at which its light went, as far as those answer.
	Witnesses []infinitehbd.End
	// Dark is when its light went, Silent when it ceased to answer, Seen when the detector had no doubt left. What did not
	// happen is the zero Interval.
	Dark, Silent, Seen timeline.Interval
	// Also are other nodes that were found dead at the same time, each NodeDead.
	Also []Failure
}

// Defaults of [DetectOptions].
const (
	DefaultPoll   = time.Millisecond
	DefaultAnswer = 100 * time.Millisecond
	DefaultRounds = 2
)

// DetectOptions of [Domain.Detect].
type DetectOptions struct {
	Without []infinitehbd.Node // that are dead already
	Poll    time.Duration      // between two rounds of questions; 0 is DefaultPoll
	Answer  time.Duration      // in which a bundle answers if it does; 0 is DefaultAnswer
	// Rounds is in how many rounds in a row a bundle or a cable has to be failed; 0 is DefaultRounds. What is silent and
	// not dark has to be so in three times as many: a management network has gaps. A node that is both is dead at once, as
	// two networks say so.
	Rounds int
	// Began is called when all bundles have been asked once: only what fails later is seen. Nil is not.
	Began func()
}

// Detect asks all bundles again and again until something fails that had light, or had answered, when it began, and says
// what. All neighbours are witnesses: a bundle that fails alone is not taken for its node, nor a cable for a bundle, nor a
// management network for light. The error is that of ctx, or of a bundle that does not answer at the beginning.
func (d *Domain) Detect(ctx context.Context, opt DetectOptions) (*Failure, error) {
	opt.Poll, opt.Answer = cmp.Or(opt.Poll, DefaultPoll), cmp.Or(opt.Answer, DefaultAnswer)
	opt.Rounds = cmp.Or(opt.Rounds, DefaultRounds)
	refs := d.refs(opt.Without...)
	base, err := d.lookAll(ctx, refs, 0)
	if err != nil {
		return nil, err
	}
	for _, r := range refs {
		if l := base[r]; l.err != nil {
			return nil, fmt.Errorf("%s does not answer when the watch begins: %w", d.Name(r), l.err)
		}
	}
	_, good := d.glanceAll(ctx, refs, base, opt.Answer) // the last round in which nothing was wrong
	if opt.Began != nil {
		opt.Began()
	}
	count, since := map[failureKey]int{}, map[failureKey]Failure{}
	for round := 1; ; round++ {
		if err := pause.For(ctx, opt.Poll); err != nil {
			return nil, err
		}
		changed, glances := d.glanceAll(ctx, refs, base, opt.Answer)
		if !changed && len(count) == 0 && round%fullRound != 0 {
			good = glances
			continue
		}
		now, err := d.lookAll(ctx, refs, opt.Answer)
		if err != nil {
			return nil, err
		}
		found := d.failures(base, now)
		if len(found) == 0 {
			good = glances
			clear(count)
			continue
		}
		if len(count) == 0 {
			d.sooner(base, now, glances)
		}
		if f := d.sure(found, count, since, good, now, opt.Rounds); f != nil {
			return f, nil
		}
	}
}

// fullRound: every so many rounds bundles are asked for all they have to say, also when a glance at the lanes shows
// nothing. A lane that sends less, and whose receivers nobody needs, is seen then only.
const fullRound = 32

// glanceAll asks bundles for their lanes, all at the same time, and reports whether any of them does not answer, has a
// lane on another path than in base, or has lost light. The looks hold when that was, and the lanes of those that have
// changed.
func (d *Domain) glanceAll(ctx context.Context, refs []Ref, base map[Ref]look, within time.Duration) (bool, map[Ref]look) {
	all, other := make([]look, len(refs)), make([]bool, len(refs))
	var wait sync.WaitGroup
	for i, r := range refs {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			from := time.Now()
			all[i], other[i] = look{ref: r}, true
			all[i].err = experiment.Guard(func() error {
				_, t, err := d.switchOf(ctx, r)
				if err != nil {
					return err
				}
				lanes, _, err := t.Lanes(ctx)
				if err == nil {
					was := base[r]
					other[i] = was.changed(lanes)
				}
				return err
			})
			all[i].at = timeline.HostAxis().Span(from, time.Now())
		})
	}
	wait.Wait()
	byRef, changed := map[Ref]look{}, false
	for i, l := range all {
		if other[i] && l.err == nil {
			l.err = errChanged
		}
		byRef[l.ref], changed = l, changed || other[i]
	}
	return changed, byRef
}

// errChanged is in the look of a bundle that a glance has found changed.
var errChanged = errors.New("its lanes have changed")

// changed reports whether lanes of the modules of a look are on other paths, or have lost the light of their receivers.
func (l *look) changed(now []ocst.LaneStatus) bool {
	if len(now) != len(l.modules) {
		return true
	}
	for m, s := range now {
		was := &l.modules[m]
		for lane := range was.Lanes {
			t := &was.Lanes[lane]
			if s.Path[lane] != t.Path || s.Loop[lane] != was.Loop[lane] || s.Lock[lane] == ocst.NoLight && t.Lock != ocst.NoLight {
				return true
			}
		}
	}
	return false
}

// sooner has looks end when a glance at the same bundle, just before, had shown the same: it does not answer, or receivers
// have lost light that they still lack.
func (d *Domain) sooner(base, now, glances map[Ref]look) {
	for r, g := range glances {
		l, was := now[r], base[r]
		lost := l.err == nil && errors.Is(g.err, errChanged) && l.lost(&was)
		silent := l.err != nil && g.err != nil && !errors.Is(g.err, errChanged)
		if lost || silent {
			l.at = g.at
			now[r] = l
		}
	}
}

// lost reports whether a receiver has no light that had some.
func (l *look) lost(was *look) bool {
	for m := range min(len(l.modules), len(was.modules)) {
		for lane := range lanes {
			if l.modules[m].Lanes[lane].Lock == ocst.NoLight && was.modules[m].Lanes[lane].Lock != ocst.NoLight {
				return true
			}
		}
	}
	return false
}

// failureKey tells failures apart.
type failureKey struct {
	kind  FailureKind
	ref   Ref
	cable infinitehbd.Cable
}

func (f *Failure) key() failureKey {
	return failureKey{kind: f.Kind, ref: Ref{f.Node, f.Bundle}, cable: f.Cable}
}

// sure counts failures, and returns the worst of which there is no doubt any more. Nothing worse may be in doubt then:
// a node that is found out bundle by bundle is not a bundle.
func (d *Domain) sure(found []Failure, count map[failureKey]int, since map[failureKey]Failure, good, now map[Ref]look,
	rounds int) *Failure {
	here := map[failureKey]bool{}
	var best *Failure
	for i := range found {
		f := &found[i]
		k := f.key()
		here[k] = true
		if count[k]++; count[k] == 1 {
			d.date(f, good, now)
			since[k] = *f
		}
		need := rounds
		switch f.Kind {
		case NodeDead:
			need = 1
		case NodeSilent, BundleSilent:
			need = 3 * rounds
		}
		if best == nil || worst[f.Kind] < worst[best.Kind] {
			best = nil
			if count[k] >= need {
				dated := since[k]
				best = &dated
			} else {
				best = &Failure{Kind: f.Kind} // in doubt
			}
		}
	}
	for k := range count {
		if !here[k] {
			delete(count, k)
		}
	}
	if best == nil || best.Text == "" {
		return nil
	}
	best.Seen = timeline.Point(timeline.HostAxis().NS(time.Now()))
	for i := range found {
		if k := found[i].key(); found[i].Kind == NodeDead && k != best.key() {
			also := since[k]
			also.Seen = best.Seen
			best.Also = append(best.Also, also)
		}
	}
	return best
}

// date says when a failure that is seen for the first time happened: between the last round without and this one.
func (d *Domain) date(f *Failure, good, now map[Ref]look) {
	between := func(r Ref) timeline.Interval {
		return timeline.Between(good[r].at.Earliest, now[r].at.Latest)
	}
	for i, w := range f.Witnesses {
		f.Dark = earlier(i == 0, f.Dark, between(Ref{w.Node, w.Bundle}))
	}
	first := true
	for b := range d.line.Layout.Bundles {
		r := Ref{f.Node, b}
		single := f.Kind == BundleDead || f.Kind == BundleSilent
		if l, asked := now[r]; asked && l.err != nil && (!single || b == f.Bundle) {
			f.Silent, first = earlier(first, f.Silent, between(r)), false
		}
	}
}

// failures returns what has failed since base.
func (d *Domain) failures(base, now map[Ref]look) (found []Failure) {
	for _, n := range d.line.Order {
		if _, asked := now[Ref{n, 0}]; asked {
			found = append(found, d.nodeFailures(n, base, now)...)
		}
	}
	for _, c := range d.cables {
		ra, rb := Ref{c.A.Node, c.A.Bundle}, Ref{c.B.Node, c.B.Bundle}
		a, b := now[ra], now[rb]
		if len(a.modules) == 0 || len(b.modules) == 0 || !d.joined(c, base) {
			continue
		}
		if sendsInto(&a, c.A) && sendsInto(&b, c.B) && !(hears(&a, c.A) && hears(&b, c.B)) {
			f := Failure{Kind: CableDead, Cable: c, Text: fmt.Sprintf("light gets lost in %s: both ends send", d.cableText(c))}
			for _, e := range []infinitehbd.End{c.A, c.B} {
				if l := now[Ref{e.Node, e.Bundle}]; !hears(&l, e) {
					f.Witnesses = append(f.Witnesses, e)
				}
			}
			found = append(found, f)
		}
	}
	return found
}

// nodeFailures returns what has failed of one node.
func (d *Domain) nodeFailures(n infinitehbd.Node, base, now map[Ref]look) (found []Failure) {
	var silent []int
	for b := range d.line.Layout.Bundles {
		if l := now[Ref{n, b}]; l.err != nil {
			silent = append(silent, b)
		}
	}
	gone, there := d.witnesses(n, base, now)
	if len(silent) == len(d.line.Layout.Bundles) {
		var all []infinitehbd.End
		lit := 0
		for b := range d.line.Layout.Bundles {
			all, lit = append(all, gone[b]...), lit+there[b]
		}
		f := Failure{Kind: NodeSilent, Node: n, Witnesses: all}
		switch {
		case lit > 0:
			f.Text = fmt.Sprintf("node %d does not answer, and its light is there at %d of %s", n, lit,
				natural.Count(lit+len(all), "neighbour"))
		case len(all) == 0:
			f.Text = fmt.Sprintf("node %d does not answer, and no neighbour had its light", n)
		default:
			f.Kind = NodeDead
			f.Text = fmt.Sprintf("node %d is dead: none of its bundles answers, and its light is gone at %s that had it", n,
				natural.Count(len(all), "neighbour"))
		}
		return []Failure{f}
	}
	for b := range d.line.Layout.Bundles {
		l, was := now[Ref{n, b}], base[Ref{n, b}]
		f := Failure{Node: n, Bundle: b, Witnesses: gone[b]}
		name := d.Name(Ref{n, b})
		switch {
		case l.err != nil && len(gone[b]) > 0 && there[b] == 0:
			f.Kind, f.Text = BundleDead, fmt.Sprintf("%s is dead: it does not answer, its light is gone, and node %d lives", name, n)
		case l.err != nil:
			f.Kind, f.Text = BundleSilent, fmt.Sprintf("%s does not answer, and others of node %d do", name, n)
		case sendsLess(&was, &l):
			f.Kind, f.Text = BundleDead, fmt.Sprintf("%s answers, and sends no light any more on some lane that had it", name)
		default:
			continue
		}
		found = append(found, f)
	}
	return found
}

// witnesses returns, by bundle of a node, the far ends at which its light has gone, and at how many it is there. Far
// ends that do not answer or had no light in base say nothing.
func (d *Domain) witnesses(n infinitehbd.Node, base, now map[Ref]look) (gone [][]infinitehbd.End, there []int) {
	gone, there = make([][]infinitehbd.End, len(d.line.Layout.Bundles)), make([]int, len(d.line.Layout.Bundles))
	for _, c := range d.cables {
		for _, e := range [][2]infinitehbd.End{{c.A, c.B}, {c.B, c.A}} {
			if e[0].Node != n {
				continue
			}
			far := Ref{e[1].Node, e[1].Bundle}
			was, is := base[far], now[far]
			switch {
			case len(is.modules) == 0 || !hears(&was, e[1]):
			case hearsAny(&is, e[1]):
				there[e[0].Bundle]++
			default:
				gone[e[0].Bundle] = append(gone[e[0].Bundle], e[1])
			}
		}
	}
	return gone, there
}

// joined reports whether a cable had light both ways.
func (d *Domain) joined(c infinitehbd.Cable, base map[Ref]look) bool {
	a, b := base[Ref{c.A.Node, c.A.Bundle}], base[Ref{c.B.Node, c.B.Bundle}]
	return sendsInto(&a, c.A) && sendsInto(&b, c.B) && hears(&a, c.A) && hears(&b, c.B)
}

// sendsInto reports whether all lanes of a bundle send into a cable.
func sendsInto(l *look, e infinitehbd.End) bool {
	return l.every(func(m, lane int) bool { return sends(&l.modules[m].Lanes[lane], e.Path) })
}

// hears reports whether all lanes get light out of a cable, hearsAny whether one does.
func hears(l *look, e infinitehbd.End) bool {
	return l.every(func(m, lane int) bool { return receives(&l.modules[m].Lanes[lane], e.Path) })
}

func hearsAny(l *look, e infinitehbd.End) bool {
	return len(l.modules) > 0 && !l.every(func(m, lane int) bool { return !receives(&l.modules[m].Lanes[lane], e.Path) })
}

// every reports whether something holds for every lane of a bundle that answers.
func (l *look) every(holds func(module, lane int) bool) bool {
	for m := range l.modules {
		for lane := range lanes {
			if !holds(m, lane) {
				return false
			}
		}
	}
	return len(l.modules) > 0
}

// sendsLess reports whether a lane that sent does not send where its path leads any more, though the path is as it was.
func sendsLess(was, is *look) bool {
	if len(was.modules) != len(is.modules) {
		return true
	}
	for m := range was.modules {
		for lane := range lanes {
			before, _ := was.laneState(m, lane)
			after, _ := is.laneState(m, lane)
			if before != infinitehbd.Dark && sends(&was.modules[m].Lanes[lane], before) && !sends(&is.modules[m].Lanes[lane], after) {
				return true
			}
		}
	}
	return false
}
