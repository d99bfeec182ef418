package check

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/ocs"
)

// Guarantee is what a violation is of.
type Guarantee string

const (
	// G1: no operation runs on circuits that are being changed. It began before the light of a change had settled.
	G1 Guarantee = "G1"
	// G2: no circuit is changed under a running operation.
	G2 Guarantee = "G2"
	// Absent: an operation used a cross-connect that had no settled light for all of its time, and no change during it
	// says why: it was never made, it was removed before, a shutter or a fibre took the light.
	Absent Guarantee = "absent"
	// Impossible: the operation ended before it began, so that nothing can be said of it.
	Impossible Guarantee = "impossible"
)

// Violation is an operation that ran on a path which was not there, or which was changed.
type Violation struct {
	Guarantee Guarantee        `json:"guarantee"`
	Op        Op               `json:"op"`
	Path      ocs.CrossConnect `json:"path"`             // of Op.Uses
	Change    *Change          `json:"change,omitempty"` // of G1 and G2
	FromNS    int64            `json:"from_ns"`          // first effect of the change on the path, or first moment of the operation without light
	UntilNS   int64            `json:"until_ns"`         // the change had settled; MaxInt64: never. The operation ended, if Absent
	// OverlapNS is for how long the operation ran while the path was being changed or, if Absent, without light. It
	// is 0 for a change that takes no time.
	OverlapNS int64 `json:"overlap_ns"`
}

// String returns one sentence: rank, group, operation, path, and what was changed when.
func (v Violation) String() string {
	what := fmt.Sprintf("%s: %v used %v of %s", v.Guarantee, v.Op, v.Path, v.Op.Switch)
	switch v.Guarantee {
	case Impossible:
		return fmt.Sprintf("%s: %v ended %v before it began", v.Guarantee, v.Op, time.Duration(v.Op.BeginNS-v.Op.EndNS))
	case Absent:
		return fmt.Sprintf("%s, which had no settled light for %v of its %v", what, time.Duration(v.OverlapNS), time.Duration(v.Op.EndNS-v.Op.BeginNS))
	}
	by, change := "", "no change is known"
	if v.Change != nil {
		change = near(v.Change.Circuits(), v.Path.Ingress, v.Path.Egress).String()
		if v.Change.By != "" {
			by = " by " + v.Change.By
		}
	}
	if v.Guarantee == G1 {
		return fmt.Sprintf("%s and began %v after a change of it had begun%s, before its light had settled: %s",
			what, time.Duration(v.Op.BeginNS-v.FromNS), by, change)
	}
	return fmt.Sprintf("%s, which was changed%s %v after the operation had begun and %v before it ended: %s",
		what, by, time.Duration(v.FromNS-v.Op.BeginNS), time.Duration(v.Op.EndNS-v.FromNS), change)
}

// Kept is how many violations a verdict has in full: it counts the others.
const Kept = 10_000

// Verdict is what the observer found.
type Verdict struct {
	Ops     int   `json:"operations"`
	Bytes   int64 `json:"bytes"`    // that they were to carry
	Lost    int64 `json:"lost"`     // that the data plane dropped
	Ports   int   `json:"ports"`    // of switches, that they used
	Changes int   `json:"changes"`  // of circuits, as the switches reported them
	Touched int   `json:"touched"`  // ports of switches that changes touched
	Lights  int   `json:"lights"`   // spans of settled light
	NoPaths int   `json:"no_paths"` // operations that used no circuit of a switch: detours, members alone in their group

	// Counts has all violations, by guarantee; Violations those that the log had first, at most [Kept], in order of time.
	Counts     map[Guarantee]int `json:"counts"`
	Violations []Violation       `json:"violations,omitempty"`
	// Hit has, by switch, the ingress ports of all paths with violations, ascending.
	Hit map[string][]ocs.Port `json:"hit,omitempty"`
}

// OK reports whether G1 and G2 held for all operations, on circuits that were there, and no byte was lost. A
// verdict on no operations is not OK: nothing was shown.
func (v *Verdict) OK() bool { return v.Ops > 0 && v.Total() == 0 && v.Lost == 0 }

// Total returns the number of violations.
func (v *Verdict) Total() int {
	n := 0
	for _, c := range v.Counts {
		n += c
	}
	return n
}

// Ingress returns the ingress ports of paths with violations, of all switches, ascending.
func (v *Verdict) Ingress() []ocs.Port {
	var all []ocs.Port
	for _, ports := range v.Hit {
		all = append(all, ports...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// String returns a summary for people and, one on each line, the first ten violations.
func (v *Verdict) String() string {
	const shown = 10
	var b strings.Builder
	fmt.Fprintf(&b, "%s on %s, %s of circuits on %s: ", natural.Count(v.Ops, "operation"), natural.Count(v.Ports, "port"),
		natural.Count(v.Changes, "change"), natural.Count(v.Touched, "port"))
	if v.Total() == 0 {
		b.WriteString("no violation")
	} else {
		b.WriteString(natural.Count(v.Total(), "violation"))
		var parts []string
		for _, g := range []Guarantee{G1, G2, Absent, Impossible} {
			if n := v.Counts[g]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, g))
			}
		}
		fmt.Fprintf(&b, " (%s)", strings.Join(parts, ", "))
		for _, sw := range slices.SortedFunc(maps.Keys(v.Hit), natural.Compare) {
			fmt.Fprintf(&b, ", ingress %s of %s", ocs.FormatPorts(v.Hit[sw]), sw)
		}
	}
	if v.Lost == 0 {
		b.WriteString(", no byte lost")
	} else {
		fmt.Fprintf(&b, ", %d of %s lost", v.Lost, natural.Count(int(v.Bytes), "byte"))
	}
	for i, x := range v.Violations {
		if i == shown {
			fmt.Fprintf(&b, "\n  and %d more", v.Total()-shown)
			break
		}
		fmt.Fprintf(&b, "\n  %v", x)
	}
	return b.String()
}

// busy is an interval in which a port is being changed: from the first effect until its light has settled. Its ends
// may touch those of an operation: a circuit may be changed at the very moment at which an operation has ended, and be
// used at that at which its light has settled.
type busy struct {
	from, until int64
	change      int // index in Truth.Changes
}

// record is what is known of a switch.
type record struct {
	spans map[ocs.CrossConnect][]Light // ascending
	busy  map[ocs.Port][]busy          // ascending; they do not overlap
	used  map[ocs.Port]bool            // by operations
	hit   map[ocs.Port]bool            // ingress ports of paths with violations
}

// book is what is known of each switch.
type book map[string]*record

func (b book) of(sw string) *record {
	r := b[sw]
	if r == nil {
		r = &record{map[ocs.CrossConnect][]Light{}, map[ocs.Port][]busy{}, map[ocs.Port]bool{}, map[ocs.Port]bool{}}
		b[sw] = r
	}
	return r
}

// open sorts the truth by switch and port.
func open(t Truth) book {
	b := book{}
	for _, l := range t.Lights {
		r := b.of(l.Switch)
		r.spans[l.Path()] = append(r.spans[l.Path()], l)
	}
	for _, r := range b {
		for _, spans := range r.spans {
			slices.SortFunc(spans, func(x, y Light) int {
				return cmp.Or(cmp.Compare(x.FromNS, y.FromNS), cmp.Compare(x.UntilNS, y.UntilNS))
			})
		}
	}
	order := make([]int, len(t.Changes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(t.Changes[x].AtNS, t.Changes[y].AtNS) })
	for _, i := range order {
		c := &t.Changes[i]
		r := b.of(c.Switch)
		for cc := range c.Remove.All() { // what is only removed goes dark at once
			for _, p := range []ocs.Port{cc.Ingress, cc.Egress} {
				if len(c.Add.At(p)) == 0 {
					r.change(p, busy{c.AtNS, c.AtNS, i})
				}
			}
		}
		for cc := range c.Add.All() {
			from, until := r.settled(cc, c.AtNS)
			r.change(cc.Ingress, busy{from, until, i})
			r.change(cc.Egress, busy{from, until, i})
		}
	}
	return b
}

// settled returns the interval from the first effect of a change that makes cc until its light has settled, MaxInt64
// being never. The stamp of the change may be later than the light when that takes no time to settle.
func (r *record) settled(cc ocs.CrossConnect, at int64) (from, until int64) {
	spans := r.spans[cc]
	i, _ := slices.BinarySearchFunc(spans, at, func(l Light, at int64) int {
		if l.UntilNS <= at && l.FromNS < at { // has gone again
			return -1
		}
		return 1
	})
	if i == len(spans) {
		return at, math.MaxInt64
	}
	return min(at, spans[i].FromNS), spans[i].FromNS
}

// change adds an interval of a port, which ends the one before it.
func (r *record) change(p ocs.Port, x busy) {
	all := r.busy[p]
	if n := len(all); n > 0 {
		last := &all[n-1]
		x.from = max(x.from, last.from)
		x.until = max(x.until, x.from)
		last.until = min(last.until, x.from)
	}
	r.busy[p] = append(all, x)
}

// during returns the changes of p under way while op ran.
func (r *record) during(p ocs.Port, op *Op) []busy {
	all := r.busy[p]
	i, _ := slices.BinarySearchFunc(all, op.BeginNS, func(x busy, begin int64) int {
		if x.until <= begin {
			return -1
		}
		return 1
	})
	j := i
	for j < len(all) && all[j].from < op.EndNS {
		j++
	}
	return all[i:j]
}

// lit reports whether cc had settled light, unbroken, while op ran.
func (r *record) lit(cc ocs.CrossConnect, op *Op) bool {
	spans := r.spans[cc]
	i, _ := slices.BinarySearchFunc(spans, op.BeginNS, func(l Light, begin int64) int {
		if l.FromNS <= begin {
			return -1
		}
		return 1
	})
	// Of spans that do not overlap, the last that began by then is the only one that can have gone on.
	return i > 0 && spans[i-1].UntilNS >= op.EndNS
}

// dark returns since when cc had no settled light while op ran, and for how long.
func (r *record) dark(cc ocs.CrossConnect, op *Op) (since, ns int64) {
	since, ns = op.BeginNS, op.EndNS-op.BeginNS
	for _, l := range r.spans[cc] {
		if from, until := max(l.FromNS, op.BeginNS), min(l.UntilNS, op.EndNS); from <= until {
			ns -= until - from
			if from == since {
				since = until
			}
		}
	}
	return since, ns
}

// judge calls found for each violation of op on one of its paths.
func (r *record) judge(op *Op, cc ocs.CrossConnect, changes []Change, found func(Violation)) {
	at, also := r.during(cc.Ingress, op), r.during(cc.Egress, op)
	if len(at)+len(also) == 0 {
		if !r.lit(cc, op) {
			since, ns := r.dark(cc, op)
			found(Violation{Guarantee: Absent, Op: *op, Path: cc, FromNS: since, UntilNS: op.EndNS, OverlapNS: ns})
		}
		return
	}
	// A change that touches both ends is told once.
	all := slices.Clone(at)
	for _, x := range also {
		if !slices.ContainsFunc(at, func(y busy) bool { return y.change == x.change }) {
			all = append(all, x)
		}
	}
	for _, x := range all {
		v := Violation{Guarantee: G1, Op: *op, Path: cc, Change: &changes[x.change], FromNS: x.from, UntilNS: x.until}
		if x.from > op.BeginNS {
			v.Guarantee = G2
		}
		v.OverlapNS = min(op.EndNS, x.until) - max(op.BeginNS, x.from)
		found(v)
	}
}

// Check holds the operations against the truth. It is pure, and takes O((n+m) log m) for n operations and m lines of truth,
// in any order; the spans of light of one path must not overlap. Violations refer to the changes of t.
func Check(ops []Op, t Truth) *Verdict {
	v := &Verdict{Ops: len(ops), Changes: len(t.Changes), Lights: len(t.Lights), Counts: map[Guarantee]int{}}
	b := open(t)
	for i := range ops {
		op := &ops[i]
		v.Bytes += op.Bytes
		v.Lost += op.Lost
		if op.Uses.Len() == 0 {
			v.NoPaths++
			continue
		}
		r := b.of(op.Switch)
		found := func(x Violation) {
			v.Counts[x.Guarantee]++
			r.hit[x.Path.Ingress] = true
			if len(v.Violations) < Kept {
				v.Violations = append(v.Violations, x)
			}
		}
		for cc := range op.Uses.All() {
			r.used[cc.Ingress], r.used[cc.Egress] = true, true
			if op.EndNS < op.BeginNS {
				found(Violation{Guarantee: Impossible, Op: *op, Path: cc, FromNS: op.BeginNS, UntilNS: op.EndNS})
				continue
			}
			r.judge(op, cc, t.Changes, found)
		}
	}
	for sw, r := range b {
		v.Ports += len(r.used)
		v.Touched += len(r.busy)
		if len(r.hit) > 0 {
			if v.Hit == nil {
				v.Hit = map[string][]ocs.Port{}
			}
			v.Hit[sw] = slices.Sorted(maps.Keys(r.hit))
		}
	}
	slices.SortStableFunc(v.Violations, func(x, y Violation) int {
		return cmp.Or(cmp.Compare(x.Op.BeginNS, y.Op.BeginNS), cmp.Compare(x.Op.Switch, y.Op.Switch), cmp.Compare(x.Op.Rank, y.Op.Rank),
			cmp.Compare(x.Path.Ingress, y.Path.Ingress), cmp.Compare(x.FromNS, y.FromNS))
	})
	return v
}
