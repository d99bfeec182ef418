package hbd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/infinitehbd"
	"github.com/ocslab/ocslab/wire/cmis/ocst"
)

// Walk is what the light of a line says.
type Walk struct {
	At timeline.Interval // from the first question to the last answer, on the axis of this host
	// Rings are the GPUs that light and copper close to rings, in the order in which they follow each other. The first
	// of each is the one that is first in the line, and rings are in the order of these. Nodes that are in no group are
	// rings of their own GPUs.
	Rings [][]infinitehbd.GPU
	// Chains are GPUs that do not close to a ring: somewhere light is missing. GPUs of nodes that say nothing are left
	// out.
	Chains [][]infinitehbd.GPU
	// HalfOpen are cables with one end on the path and the other not.
	HalfOpen []infinitehbd.Cable
	// NoLight are lanes that are on a path or looped and get no light there, or whose light does not go out.
	NoLight []Lane
	// Unlocked are lanes that have light and whose receiver has not recovered the clock yet.
	Unlocked []Lane
	Mixed    []Ref // bundles whose lanes are not all in one state
	Silent   []Ref // bundles that did not answer
	Lit      int   // lanes that have light in both directions
}

// Whole says that nothing is missing: all bundles answer, no cable is half open, and all lanes that should have light have
// it and are locked.
func (w *Walk) Whole() bool {
	return len(w.Chains)+len(w.HalfOpen)+len(w.NoLight)+len(w.Unlocked)+len(w.Mixed)+len(w.Silent) == 0
}

// Locked says that no lane waits for its clock.
func (w *Walk) locked() bool { return len(w.NoLight)+len(w.Unlocked) == 0 }

// Walk looks at all bundles, but those of some nodes, once, and follows the light from GPU to GPU. Bundles that do not
// answer are in the result; the error is only that of ctx.
func (d *Domain) Walk(ctx context.Context, without ...infinitehbd.Node) (*Walk, error) {
	looks, err := d.lookAll(ctx, d.refs(without...), 0)
	if err != nil {
		return nil, err
	}
	return d.walk(looks), nil
}

// Await walks again and again until no lane waits for its clock, or patience ends, and returns the last walk.
func (d *Domain) Await(ctx context.Context, patience time.Duration, without ...infinitehbd.Node) (*Walk, error) {
	until := time.Now().Add(patience)
	for {
		w, err := d.Walk(ctx, without...)
		if err != nil || w.locked() || time.Now().After(until) {
			return w, err
		}
		if err := pause.For(ctx, time.Millisecond); err != nil {
			return w, err
		}
	}
}

// Check compares what was walked with a plan. The error matches [ocs.ErrVerify] and says what is wrong first: a ring
// that the plan has and the light does not close, a cable that is half open, a lane without light.
func (d *Domain) Check(w *Walk, p *infinitehbd.Plan) error {
	want, err := p.Rings()
	if err != nil {
		return err
	}
	have := map[string]bool{}
	for _, r := range w.Rings {
		have[fmt.Sprint(d.canonical(r))] = true
	}
	for _, r := range want {
		if !have[fmt.Sprint(d.canonical(r))] {
			return fmt.Errorf("%w: the light does not close the ring %v%s", ocs.ErrVerify, r, d.reason(w))
		}
	}
	if !w.Whole() && d.reason(w) != "" {
		return fmt.Errorf("%w: all rings are closed%s", ocs.ErrVerify, d.reason(w))
	}
	return nil
}

// reason says what a walk lacks, to go on a sentence; "" for nothing.
func (d *Domain) reason(w *Walk) string {
	switch {
	case len(w.Silent) > 0:
		return fmt.Sprintf(": %s does not answer (%s in all)", d.Name(w.Silent[0]), natural.Count(len(w.Silent), "bundle"))
	case len(w.Mixed) > 0:
		return fmt.Sprintf(": lanes of %s are in different states (%s in all)", d.Name(w.Mixed[0]),
			natural.Count(len(w.Mixed), "bundle"))
	case len(w.HalfOpen) > 0:
		return fmt.Sprintf(": %s is half open (%s in all)", d.cableText(w.HalfOpen[0]), natural.Count(len(w.HalfOpen), "cable"))
	case len(w.NoLight) > 0:
		return fmt.Sprintf(": %s has no light (%s in all)", d.laneText(w.NoLight[0]), natural.Count(len(w.NoLight), "lane"))
	case len(w.Unlocked) > 0:
		return fmt.Sprintf(": %s is not locked (%s in all)", d.laneText(w.Unlocked[0]), natural.Count(len(w.Unlocked), "lane"))
	}
	return ""
}

// endText is "n06-r/1".
func (d *Domain) endText(e infinitehbd.End) string {
	return fmt.Sprintf("%s/%d", d.names[e.Node][e.Bundle], fibre(e))
}

// cableText is "the cable n06-r/1 - n07-l/1".
func (d *Domain) cableText(c infinitehbd.Cable) string {
	return fmt.Sprintf("the cable %s - %s", d.endText(c.A), d.endText(c.B))
}

// strand joins two GPUs by copper, a loop, or half the lanes of a cable.
type strand [2]infinitehbd.GPU

// walk follows light.
func (d *Domain) walk(looks map[Ref]look) *Walk {
	w := &Walk{}
	first := true
	for _, r := range d.refs() {
		l, asked := looks[r]
		if !asked {
			continue
		}
		if first {
			w.At, first = l.at, false
		}
		w.At = w.At.Hull(l.at)
		w.judge(&l)
	}
	var strands []strand
	for _, n := range d.line.Order {
		if !answers(looks, n, len(d.line.Layout.Bundles)) {
			continue
		}
		for _, c := range d.line.Layout.Copper {
			strands = append(strands, strand{{Node: n, GPU: c[0]}, {Node: n, GPU: c[1]}})
		}
		for i, b := range d.line.Layout.Bundles {
			if l := looks[Ref{n, i}]; l.err == nil && l.carries(infinitehbd.Loop, 0) && l.carries(infinitehbd.Loop, half) {
				strands = append(strands, strand{{Node: n, GPU: b.Upper}, {Node: n, GPU: b.Lower}})
			}
		}
	}
	for _, c := range d.cables {
		a, b := looks[Ref{c.A.Node, c.A.Bundle}], looks[Ref{c.B.Node, c.B.Bundle}]
		if on(&a, c.A.Path) != on(&b, c.B.Path) {
			w.HalfOpen = append(w.HalfOpen, c)
		}
		ba, bb := d.line.Layout.Bundles[c.A.Bundle], d.line.Layout.Bundles[c.B.Bundle]
		if a.carries(c.A.Path, 0) && b.carries(c.B.Path, 0) {
			strands = append(strands, strand{{Node: c.A.Node, GPU: ba.Upper}, {Node: c.B.Node, GPU: bb.Upper}})
		}
		if a.carries(c.A.Path, half) && b.carries(c.B.Path, half) {
			strands = append(strands, strand{{Node: c.A.Node, GPU: ba.Lower}, {Node: c.B.Node, GPU: bb.Lower}})
		}
	}
	d.follow(w, strands, looks)
	return w
}

// answers reports whether a bundle of a node answers.
func answers(looks map[Ref]look, n infinitehbd.Node, bundles int) bool {
	for i := range bundles {
		if l, asked := looks[Ref{n, i}]; asked && l.err == nil {
			return true
		}
	}
	return false
}

// on reports whether a lane of a bundle is on a path.
func on(l *look, s infinitehbd.State) bool {
	for m := range l.modules {
		for lane := range lanes {
			if have, _ := l.laneState(m, lane); have == s {
				return true
			}
		}
	}
	return false
}

// carries reports whether half of the lanes of all modules, from lane first on, send into a path or the loop and
// receive from there.
func (l *look) carries(s infinitehbd.State, first int) bool {
	for m := range l.modules {
		for lane := first; lane < first+half; lane++ {
			t := &l.modules[m].Lanes[lane]
			if have, _ := l.laneState(m, lane); have != s || !sends(t, s) || !receives(t, s) {
				return false
			}
		}
	}
	return len(l.modules) > 0
}

// judge writes down what is wrong with a bundle.
func (w *Walk) judge(l *look) {
	if l.err != nil {
		w.Silent = append(w.Silent, l.ref)
		return
	}
	if _, err := l.state(); err != nil {
		w.Mixed = append(w.Mixed, l.ref)
	}
	for m := range l.modules {
		for lane := range lanes {
			t := &l.modules[m].Lanes[lane]
			s, err := l.laneState(m, lane)
			switch {
			case err != nil || s == infinitehbd.Dark:
			case !sends(t, s) || !receives(t, s):
				w.NoLight = append(w.NoLight, l.lane(m, lane))
			case t.Lock != ocst.Locked:
				w.Unlocked = append(w.Unlocked, l.lane(m, lane))
				w.Lit++
			default:
				w.Lit++
			}
		}
	}
}

// follow sorts the GPUs of nodes that answer into rings and chains.
func (d *Domain) follow(w *Walk, strands []strand, looks map[Ref]look) {
	at := map[infinitehbd.GPU][]int{} // strands, by GPU
	for i, s := range strands {
		at[s[0]], at[s[1]] = append(at[s[0]], i), append(at[s[1]], i)
	}
	seen := map[infinitehbd.GPU]bool{}
	take := func(g infinitehbd.GPU) (found []infinitehbd.GPU, closed bool) {
		used := map[int]bool{}
		for start := g; ; {
			found, seen[g] = append(found, g), true
			i := slices.IndexFunc(at[g], func(s int) bool { return !used[s] })
			if i < 0 {
				return found, false
			}
			s := at[g][i]
			used[s] = true
			if g = other(strands[s], g); g == start {
				return found, true
			}
		}
	}
	var all []infinitehbd.GPU
	for _, n := range d.line.Order {
		for g := range d.line.Layout.GPUs {
			if answers(looks, n, len(d.line.Layout.Bundles)) {
				all = append(all, infinitehbd.GPU{Node: n, GPU: g + 1})
			}
		}
	}
	for _, ends := range []bool{true, false} { // chains from their ends, then what is left are rings
		for _, g := range all {
			if seen[g] || ends && len(at[g]) > 1 {
				continue
			}
			if found, closed := take(g); closed {
				w.Rings = append(w.Rings, d.canonical(found))
			} else {
				w.Chains = append(w.Chains, found)
			}
		}
	}
}

func other(s strand, g infinitehbd.GPU) infinitehbd.GPU {
	if s[0] == g {
		return s[1]
	}
	return s[0]
}

// canonical returns a ring from its first GPU in the line on, towards the neighbour of it that is earlier in the line.
func (d *Domain) canonical(ring []infinitehbd.GPU) []infinitehbd.GPU {
	if len(ring) == 0 {
		return nil
	}
	place := map[infinitehbd.Node]int{}
	for i, n := range d.line.Order {
		place[n] = i
	}
	compare := func(a, b infinitehbd.GPU) int {
		return cmp.Or(cmp.Compare(place[a.Node], place[b.Node]), cmp.Compare(a.GPU, b.GPU))
	}
	first := slices.Index(ring, slices.MinFunc(ring, compare))
	turned := append(slices.Clone(ring[first:]), ring[:first]...)
	if last := len(turned) - 1; last > 0 && compare(turned[last], turned[1]) < 0 {
		slices.Reverse(turned[1:])
	}
	return turned
}
