package pccl

import (
	"fmt"
	"math/bits"
)

// reach is what a GPU can send to, itself included, with transfers of rounds from one on, up to a round. Rows shrink as
// rounds pass; a GPU has a stack of them, the one of round 0 on top.
type reach struct {
	until int // it holds at the start of this round and, down to the one of the next reach on the stack, of earlier ones
	set   bitset
}

// exchange is how far an all-to-all is. Shares for the same GPU at the same place are alike, so they are
// counted.
type exchange struct {
	n       int
	at      []int32  // by place, then destination: units there
	present []bitset // by place: destinations of which there are units, the place itself not
	reach   [][]reach
	arrive  []arrival // of the round, to be counted after it
	chosen  bool
}

type arrival struct {
	at, dest int
	units    int32
}

// checkExchange checks an all-to-all.
func (s Schedule) checkExchange() error {
	n := s.GPUs
	if n > maxCheckCells/n {
		return s.tooLarge(1 << (bits.Len(maxCheckCells) / 2))
	}
	parts, carries, err := s.units(s.Rounds, 0, 64)
	if err != nil {
		return err
	}
	e := &exchange{n: n, at: make([]int32, n*n), present: newBitsets(n, n)}
	for i := range e.at {
		if x, d := i/n, i%n; x != d {
			e.at[i] = int32(parts)
			e.present[x].set(d)
		}
	}
	if err := e.lookAhead(s); err != nil {
		return err
	}
	if err := e.stuck(0); err != nil {
		return err
	}
	for i, r := range s.Rounds {
		for x, stack := range e.reach {
			for stack[len(stack)-1].until <= i {
				stack = stack[:len(stack)-1]
			}
			e.reach[x] = stack
		}
		fullest := 0
		for k, units := range e.round(r.Transfers, carries[i]) {
			if t := r.Transfers[k]; units == 0 {
				return fmt.Errorf("%w: round %d: GPU %d sends to GPU %d, and has nothing that can go on from there%s",
					ErrSchedule, i, t.Src, t.Dst, doubt(e.chosen))
			}
			fullest = max(fullest, units)
		}
		if fullest < carries[i] && len(r.Transfers) > 0 {
			return fmt.Errorf("%w: round %d: transfers of %g bytes, of which none carries more than %g: want that%s", ErrSchedule,
				i, r.Bytes, r.Bytes*float64(fullest)/float64(carries[i]), doubt(e.chosen))
		}
		if err := e.stuck(i); err != nil {
			return err
		}
		e.land()
	}
	return nil
}

// lookAhead finds from the last round backwards what each GPU can reach.
func (e *exchange) lookAhead(s Schedule) error {
	const most = 1 << 24 // words of all sets
	rounds := len(s.Rounds)
	e.reach = make([][]reach, e.n)
	for x, set := range newBitsets(e.n, e.n) {
		set.set(x)
		e.reach[x] = []reach{{rounds, set}}
	}
	words := e.n * ((e.n + 63) / 64)
	for i := rounds - 1; i >= 0; i-- {
		grown := map[int]bitset{}
		for _, t := range s.Rounds[i].Transfers {
			from, to := e.now(t.Src), e.now(t.Dst)
			set, ok := grown[t.Src]
			if !ok && to.countWithout(from) == 0 {
				continue
			}
			if !ok {
				set = append(bitset(nil), from...)
				grown[t.Src] = set
				if words += len(set); words > most {
					return s.tooLarge(s.GPUs / 2)
				}
			}
			set.or(to)
		}
		for x, set := range grown {
			e.reach[x] = append(e.reach[x], reach{i, set})
		}
	}
	return nil
}

// now returns what x can reach by what is left of the rounds.
func (e *exchange) now(x int) bitset {
	stack := e.reach[x]
	return stack[len(stack)-1].set
}

// round moves units along the transfers of a round, and returns how many along each. First go those that have to leave now
// and are there then, then what has to leave now, what is there then, and what can stay the shortest.
func (e *exchange) round(transfers []Transfer, room int) []int {
	sent := make([]int, len(transfers))
	for k, t := range transfers {
		if e.present[t.Src].has(t.Dst) && !e.now(t.Src).has(t.Dst) {
			sent[k] += e.take(t, t.Dst, room)
		}
	}
	for k, t := range transfers {
		sent[k] += e.takeAll(t, e.now(t.Src), room-sent[k])
	}
	for k, t := range transfers {
		if sent[k] < room && e.present[t.Src].has(t.Dst) {
			sent[k] += e.take(t, t.Dst, room-sent[k])
		}
	}
	for k, t := range transfers {
		stack := e.reach[t.Src]
		for at := len(stack) - 2; at >= 0 && sent[k] < room; at-- {
			sent[k] += e.takeAll(t, stack[at].set, room-sent[k])
		}
		if sent[k] == room && e.present[t.Src].meets(e.now(t.Dst)) {
			e.chosen = true
		}
	}
	return sent
}

// takeAll moves what can go on from the end of a transfer, and not from where it is when that leads only to stay.
func (e *exchange) takeAll(t Transfer, stay bitset, room int) (sent int) {
	there := e.now(t.Dst)
	for i, w := range e.present[t.Src] {
		for w &= there[i] &^ stay[i]; w != 0 && sent < room; w &= w - 1 {
			sent += e.take(t, i*64+bits.TrailingZeros64(w), room-sent)
		}
	}
	return sent
}

// take moves up to room units for a GPU along a transfer.
func (e *exchange) take(t Transfer, dest, room int) int {
	at := &e.at[t.Src*e.n+dest]
	units := min(*at, int32(room))
	if *at -= units; *at == 0 {
		e.present[t.Src].clear(dest)
	}
	if dest != t.Dst {
		e.arrive = append(e.arrive, arrival{t.Dst, dest, units})
	}
	return int(units)
}

// stuck returns which GPU has something, after what was sent in a round, that cannot get where it should.
func (e *exchange) stuck(round int) error {
	for x, present := range e.present {
		if present.countWithout(e.now(x)) == 0 {
			continue
		}
		var err error
		present.eachWithout(e.now(x), func(d int) {
			if err == nil {
				err = fmt.Errorf("%w: round %d: GPU %d is left with data for GPU %d, and no later transfers lead there%s",
					ErrSchedule, round, x, d, doubt(e.chosen))
			}
		})
		return err
	}
	return nil
}

// land counts what has arrived where it goes on from.
func (e *exchange) land() {
	for _, a := range e.arrive {
		e.at[a.at*e.n+a.dest] += a.units
		e.present[a.at].set(a.dest)
	}
	e.arrive = e.arrive[:0]
}
