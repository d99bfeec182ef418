package pccl

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Bounds of [Schedule.Check], which keeps a table of GPUs by shares.
const (
	maxCheckBits  = 1 << 28 // of the table of shares of all collectives but all-to-all: 16384 GPUs
	maxCheckCells = 1 << 24 // of that of all-to-all: 4096 GPUs
)

// Check proves that a schedule computes its collective, whoever made it, by finding out what each transfer carries. Where it
// does not, the error names the round and the GPU and matches [ErrSchedule]; a schedule that is not well formed is an
// error of [Schedule.Valid], and one that is too large to be checked (more than 16384 GPUs, or 4096 for an all-to-all) one
// that matches [ErrSize].
//
// A buffer has one share for each GPU, and a transfer carries a whole number of shares (or of equal parts of them), not
// counted again where they are already. An all-gather is followed forwards: each GPU receives what the sender has
// and it lacks. A reduce-scatter is the same backwards, since what leaves a GPU for good there arrives here. An
// all-reduce is a reduce-scatter and then an all-gather, as soon as enough was sent, or else half-way; if each transfer
// carries a whole buffer, it is followed by whose data each GPU's sum contains. An all-to-all is followed by where
// the shares for each GPU are, and whether transfers still to come lead there.
//
// Bytes are a bound that one transfer of each round, at least, must reach. Each transfer must carry something.
// Where a transfer could carry more than its bytes (of the schedules of [New] only in "linear"), what it carries is
// chosen: what fewest GPUs have, or what is there then or has to leave soonest. Then an error means that this choice does
// not do, and says so.
//
// It takes time proportional to transfers times GPUs / 64.
func (s Schedule) Check() error {
	if err := s.Valid(); err != nil {
		return err
	}
	switch s.Collective {
	case ReduceScatter:
		return s.checkGather(s.Rounds, 0, true)
	case AllGather:
		return s.checkGather(s.Rounds, 0, false)
	case AllReduce:
		return s.checkReduce()
	case AllToAll:
		return s.checkExchange()
	}
	return fmt.Errorf("%w: a schedule of the collective %.40q: want %s, %s, %s or %s", ErrArgument, s.Collective,
		ReduceScatter, AllGather, AllReduce, AllToAll)
}

// checkReduce checks an all-reduce.
func (s Schedule) checkReduce() error {
	if !slices.ContainsFunc(s.Rounds, func(r Round) bool { return !alike(r.Bytes, s.Bytes) }) {
		return s.checkWhole()
	}
	// The buffers are scattered when as much has been sent as that takes. If no round ends just then, some transfers are
	// too large or carry less than they could; then it is taken to be done half-way.
	target, sent, half := s.Bytes*float64(s.GPUs-1), 0.0, len(s.Rounds)/2
	for i, r := range s.Rounds {
		if sent += float64(len(r.Transfers)) * r.Bytes; alike(sent, target) {
			half = i + 1
			break
		}
	}
	if err := s.checkGather(s.Rounds[:half], 0, true); err != nil {
		return fmt.Errorf("the first %d of %d rounds, as %s: %w", half, len(s.Rounds), ReduceScatter, err)
	}
	if err := s.checkGather(s.Rounds[half:], half, false); err != nil {
		return fmt.Errorf("the last %d of %d rounds, as %s: %w", len(s.Rounds)-half, len(s.Rounds), AllGather, err)
	}
	return nil
}

// alike reports whether a and b are equal but for rounding.
func alike(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

// units returns in how many parts each share of a buffer is followed, 1 if that will do, and how many of these a
// transfer of each round carries.
func (s Schedule) units(rounds []Round, first, most int) (parts int, carries []int, err error) {
	carries = make([]int, len(rounds))
next:
	for parts = 1; parts <= most; parts++ {
		for i, r := range rounds {
			units := r.Bytes / s.Bytes * float64(s.GPUs) * float64(parts)
			carries[i] = int(math.Round(units))
			if !alike(units, math.Round(units)) || units > float64(s.GPUs)*float64(parts)*(1+1e-9) || carries[i] == 0 {
				if parts == most {
					return 0, nil, fmt.Errorf("%w: round %d: transfers of %g bytes are no whole number of shares of %g bytes, nor of "+
						"equal parts of these: a buffer of %g bytes has %d shares", ErrSchedule, i+first, r.Bytes,
						s.Bytes/float64(s.GPUs), s.Bytes, s.GPUs)
				}
				continue next
			}
		}
		return parts, carries, nil
	}
	return 0, nil, s.tooLarge(s.GPUs / 2)
}

func (s Schedule) tooLarge(most int) error {
	return fmt.Errorf("%w: a schedule of %d GPUs is too large to be checked: want %d at most", ErrSize, s.GPUs, most)
}

// gathering is how far an all-gather is: which units each GPU has.
type gathering struct {
	parts    int
	has      []bitset
	next     []bitset // scratch
	count    []int    // by GPU: units it has
	holders  []int    // by unit: GPUs that have it
	behind   []int    // by GPU: the step since which it has fewer units than another; -1 if it has as many
	chosen   bool     // a transfer could have carried something else
	mirrored bool
}

// checkGather checks rounds as an all-gather, or, mirrored, as a reduce-scatter; first is the number of the first of
// them.
func (s Schedule) checkGather(rounds []Round, first int, mirrored bool) error {
	n := s.GPUs
	if n > maxCheckBits/n {
		return s.tooLarge(1 << (bits.Len(maxCheckBits) / 2))
	}
	parts, carries, err := s.units(rounds, first, max(1, min(64, maxCheckBits/n/n)))
	if err != nil {
		return err
	}
	g := newGathering(n, parts, mirrored)
	in := make([][]int, n) // by receiver: the senders of the round
	for step := range rounds {
		i := step
		if mirrored {
			i = len(rounds) - 1 - step
		}
		for x := range in {
			in[x] = in[x][:0]
		}
		for _, t := range rounds[i].Transfers {
			if mirrored {
				t.Src, t.Dst = t.Dst, t.Src
			}
			in[t.Dst] = append(in[t.Dst], t.Src)
		}
		if err := g.step(i, in, carries[i], i+first, rounds[i].Bytes); err != nil {
			return err
		}
	}
	return g.complete(first)
}

func newGathering(n, parts int, mirrored bool) *gathering {
	g := &gathering{parts: parts, mirrored: mirrored, has: newBitsets(n, n*parts), next: newBitsets(n, n*parts),
		count: slices.Repeat([]int{parts}, n), holders: slices.Repeat([]int{1}, n*parts), behind: slices.Repeat([]int{-1}, n)}
	for x, has := range g.has {
		for u := x * parts; u < (x+1)*parts; u++ {
			has.set(u)
		}
	}
	return g
}

// step follows one round, in which each receiver is sent up to carries units by each of its senders.
func (g *gathering) step(i int, in [][]int, carries, round int, bytes float64) error {
	fullest := 0
	for to, senders := range in {
		if len(senders) == 0 {
			continue
		}
		copy(g.next[to], g.has[to])
		most, idle := g.receive(to, senders, carries)
		if idle >= 0 {
			return g.idle(round, round-i, idle, to)
		}
		fullest = max(fullest, most)
	}
	if fullest < carries && slices.ContainsFunc(in, func(s []int) bool { return len(s) > 0 }) {
		return fmt.Errorf("%w: round %d: transfers of %g bytes, of which none carries more than %g: want that%s", ErrSchedule,
			round, bytes, bytes*float64(fullest)/float64(carries), g.doubt())
	}
	top := 0
	for to, senders := range in {
		if len(senders) > 0 {
			g.has[to], g.next[to] = g.next[to], g.has[to]
		}
		top = max(top, g.count[to])
	}
	for x, c := range g.count {
		if c == top {
			g.behind[x] = -1
		} else if g.behind[x] < 0 {
			g.behind[x] = i
		}
	}
	return nil
}

// receive adds to next[to] what its senders bring. It returns the most that one of them brings, and a sender that
// brings nothing, or -1. Those with least to choose from come first.
func (g *gathering) receive(to int, senders []int, carries int) (most, idle int) {
	choices := func(from int) int { return g.has[from].countWithout(g.next[to]) }
	if len(senders) > 1 {
		slices.SortStableFunc(senders, func(a, b int) int { return choices(a) - choices(b) })
	}
	for k, from := range senders {
		n := choices(from)
		if k > 0 && g.has[from].countWithout(g.has[to]) != n && n < carries {
			g.chosen = true // another brought what this one could have
		}
		if n == 0 {
			return most, from
		}
		if n <= carries {
			g.has[from].eachWithout(g.next[to], func(u int) { g.holders[u]++ })
			g.next[to].or(g.has[from])
		} else {
			g.chosen = true
			var all []int
			g.has[from].eachWithout(g.next[to], func(u int) { all = append(all, u) })
			slices.SortStableFunc(all, func(a, b int) int { return g.holders[a] - g.holders[b] })
			for _, u := range all[:carries] {
				g.holders[u]++
				g.next[to].set(u)
			}
			n = carries
		}
		g.count[to] += n
		most = max(most, n)
	}
	return most, -1
}

// doubt is what an error says if something else could have been carried.
func (g *gathering) doubt() string { return doubt(g.chosen) }

func doubt(chosen bool) string {
	if chosen {
		return " (its rounds leave a choice of what they carry, and not every choice was tried)"
	}
	return ""
}

// idle is the error for a transfer that brings nothing; the round of step i has the number i+first.
func (g *gathering) idle(round, first, from, to int) error {
	since := ""
	if g.behind[from] >= 0 && g.mirrored {
		since = fmt.Sprintf("; GPU %d sends too little in round %d", from, g.behind[from]+first)
	} else if g.behind[from] >= 0 {
		since = fmt.Sprintf("; GPU %d receives too little in round %d", from, g.behind[from]+first)
	}
	if g.mirrored {
		return fmt.Errorf("%w: round %d: GPU %d sends to GPU %d, and all that GPU %d keeps or passes on after that is in what "+
			"GPU %d keeps or passes on itself%s%s", ErrSchedule, round, to, from, from, to, since, g.doubt())
	}
	return fmt.Errorf("%w: round %d: GPU %d sends to GPU %d, and has nothing that GPU %d lacks%s%s", ErrSchedule,
		round, from, to, to, since, g.doubt())
}

// complete returns which GPU lacks what at the end: of those the one that fell behind in the first round.
func (g *gathering) complete(first int) error {
	units, worst := len(g.holders), -1
	for x, c := range g.count {
		earlier := worst < 0 || g.behind[x] >= 0 && (g.behind[x] < g.behind[worst]) != g.mirrored && g.behind[x] != g.behind[worst]
		if c < units && earlier {
			worst = x
		}
	}
	if worst < 0 {
		return nil
	}
	missing := 0
	for g.has[worst].has(missing) {
		missing++
	}
	share := missing / g.parts
	since := ""
	if g.behind[worst] >= 0 {
		since = fmt.Sprintf("round %d: ", g.behind[worst]+first)
	}
	if g.mirrored {
		return fmt.Errorf("%w: %sGPU %d sends too little: what it adds to the share of GPU %d never gets there%s",
			ErrSchedule, since, worst, share, g.doubt())
	}
	return fmt.Errorf("%w: %sGPU %d receives too little: at the end it lacks the share of GPU %d%s", ErrSchedule,
		since, worst, share, g.doubt())
}

// checkWhole checks an all-reduce whose transfers carry whole buffers: those of two GPUs are added if they have
// nothing in common, and one that contains the other replaces it.
func (s Schedule) checkWhole() error {
	n := s.GPUs
	if n > maxCheckBits/n {
		return s.tooLarge(1 << (bits.Len(maxCheckBits) / 2))
	}
	has, next := newBitsets(n, n), newBitsets(n, n)
	for x := range n {
		has[x].set(x)
	}
	for i, r := range s.Rounds {
		for _, t := range r.Transfers {
			copy(next[t.Dst], has[t.Dst])
		}
		for _, t := range r.Transfers {
			from, to := has[t.Src], next[t.Dst]
			news, kept := from.countWithout(to), to.countWithout(from)
			switch {
			case news == 0:
				return fmt.Errorf("%w: round %d: GPU %d sends to GPU %d, whose sum contains all of that already", ErrSchedule,
					i, t.Src, t.Dst)
			case kept > 0 && kept < to.count():
				return fmt.Errorf("%w: round %d: GPU %d sends to GPU %d, and some data would be in its sum twice", ErrSchedule,
					i, t.Src, t.Dst)
			}
			to.or(from)
		}
		for _, t := range r.Transfers {
			copy(has[t.Dst], next[t.Dst])
		}
	}
	for x := range n {
		if has[x].count() < n {
			missing := 0
			for has[x].has(missing) {
				missing++
			}
			return fmt.Errorf("%w: after round %d the sum of GPU %d lacks the data of GPU %d", ErrSchedule, len(s.Rounds)-1, x, missing)
		}
	}
	return nil
}
