package infinitehbd

import (
	"cmp"
	"slices"
)

// mostToRs is how many ToRs are aligned at once; longer domains are cut.
const mostToRs = 256

// Align places a job in as many complete sets as it can, so that the least crosses ToRs (see CrossToR); ours. Where
// Orchestrate aligns a domain or does not, and a ToR out of line puts out all that follow, this weighs for each domain
// all numbers of sets against the groups there is room for then: between two sets each sub-line is cut on its own, so
// that two dead nodes of different sub-lines make up for each other. Of all placements that keep the bounds of domains
// and whose groups do not reach over nodes of others, none has more sets; domains of more than 256 ToRs are aligned in
// parts. Where there is no room within the bounds of domains, or all constraints can be met, it is as Orchestrate.
//
// Otherwise Constraints of the placement are those bounds, and Probes are none. Errors are as those of Orchestrate.
func (t Tree) Align(l Layout, r Request, dead []Node) (*Placement, error) {
	if err := t.checkRequest(l, r); err != nil {
		return nil, err
	}
	p, err := t.placer(l, r.TP/l.GPUs, dead, r.Relax)
	if err != nil {
		return nil, err
	}
	need := (r.GPUs-1)/r.TP + 1
	enough := func(c int) bool { return len(p.place(c)) >= need*p.m }
	if enough(p.most()) || !enough(p.chunks()) {
		return t.Orchestrate(l, r, dead)
	}
	parts := p.parts()
	sets, ok := share(parts, need)
	if !ok {
		return t.Orchestrate(l, r, dead)
	}
	out := &Placement{Constraints: p.chunks(), Most: p.most()}
	var places [][]int
	for i, part := range parts {
		places = part.groups(places, sets[i])
	}
	slices.SortFunc(places, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	for _, g := range places {
		group := make(Group, len(g))
		for i, at := range g {
			group[i] = t.node(at)
		}
		out.Groups = append(out.Groups, group)
	}
	return out, nil
}

// parts cuts domains into parts and weighs them.
func (p *placer) parts() []*part {
	var parts []*part
	tors := p.ToRs() / p.Domains()
	n := (tors-1)/mostToRs + 1
	for first := 0; first < p.ToRs(); first += tors {
		for i := range n {
			parts = append(parts, p.part(first+i*tors/n, first+(i+1)*tors/n))
		}
	}
	return parts
}

// part is ToRs side by side whose groups are weighed together. Columns are its ToRs, from 0.
type part struct {
	*placer
	first, columns int
	whole          []int     // columns without a dead node
	starts         []int     // of the windows in which a set fits: indices in whole
	best           []int32   // by number of sets: the most groups beside them
	last           []int32   // and where the last set ends
	before         [][]int32 // by where a set ends and by number: where the one before it ends
}

// part weighs the ToRs from..to-1.
func (p *placer) part(from, to int) *part {
	d := &part{placer: p, first: from, columns: to - from}
	for c := range d.columns {
		if p.faulty[from+c] == 0 {
			d.whole = append(d.whole, c)
		}
	}
	for i := range len(d.whole) - p.m + 1 {
		if p.out = p.cut(p.out[:0], d.whole[i:i+p.m]); len(p.out) > 0 {
			d.starts = append(d.starts, i)
		}
	}
	d.weigh()
	return d
}

// weigh finds, for every number of sets, the most groups beside them. A set takes the first columns that it can, so
// that where it ends tells where it starts.
func (d *part) weigh() {
	beside := d.table() // by where the last set ends and by number of sets; -1 is not possible
	d.before = d.table()
	d.best, d.last = slices.Repeat([]int32{-1}, d.columns/d.m+1), make([]int32, d.columns/d.m+1)
	beside[0][0] = 0
	gain := make([]int32, d.columns+1)
	for end, counts := range beside {
		if end > 0 && slices.Max(counts) < 0 {
			continue
		}
		d.gain(gain, end)
		for _, i := range d.starts {
			if d.whole[i] >= end {
				to := d.whole[i+d.m-1] + 1
				extend(beside[to][1:], d.before[to][1:], counts, gain[d.whole[i]], int32(end))
			}
		}
		extend(d.best, d.last, counts, gain[d.columns], int32(end))
	}
	for d.best[len(d.best)-1] < 0 {
		d.best = d.best[:len(d.best)-1]
	}
}

// table returns -1 for each column that a set can end before and each number of sets that can be up to there.
func (d *part) table() [][]int32 {
	table := make([][]int32, d.columns+1)
	for end := range table {
		table[end] = slices.Repeat([]int32{-1}, end/d.m+1)
	}
	return table
}

// extend keeps, for each number of sets, what is better: what is known or these counts with some more groups.
func extend(best, from, counts []int32, more, end int32) {
	for k, n := range counts {
		if n >= 0 && n+more > best[k] {
			best[k], from[k] = n+more, end
		}
	}
}

// gain fills in how many groups all sub-lines have from a column on and before each other column.
func (d *part) gain(gain []int32, from int) {
	clear(gain)
	for line := range d.PerToR {
		at := line*d.ToRs() + d.first
		d.out = d.segment(d.out[:0], line, from, d.columns)
		for i := d.m - 1; i < len(d.out); i += d.m {
			gain[d.out[i]-at+1]++
		}
	}
	for c := range d.columns {
		gain[c+1] += gain[c]
	}
}

// segment appends the groups of a sub-line in the columns from..to-1.
func (d *part) segment(out []int, line, from, to int) []int {
	at := line*d.ToRs() + d.first
	d.living = d.living[:0]
	for i := at + from; i < at+to; i++ {
		if !d.dead[i] {
			d.living = append(d.living, i)
		}
	}
	return d.cut(out, d.living)
}

// groups appends the groups of the best placement with so many sets.
func (d *part) groups(all [][]int, sets int) [][]int {
	end, to := int(d.last[sets]), d.columns
	for {
		for line := range d.PerToR {
			out := d.segment(nil, line, end, to)
			for ; len(out) > 0; out = out[d.m:] {
				all = append(all, out[:d.m])
			}
		}
		if sets == 0 {
			return all
		}
		stop, _ := slices.BinarySearch(d.whole, end-1)
		window := d.whole[stop+1-d.m : stop+1]
		for line := range d.PerToR {
			group := make([]int, d.m)
			for i, c := range window {
				group[i] = line*d.ToRs() + d.first + c
			}
			all = append(all, group)
		}
		end, to = int(d.before[end][sets]), window[0]
		sets--
	}
}

// total is the most groups with so many sets.
func (d *part) total(sets int) int { return int(d.best[sets]) + sets*d.PerToR }

// offer is groups that a part gains by giving up sets.
type offer struct{ groups, sets int }

// offers returns what is worth giving up sets for: from nothing for nothing on, both ascend.
func (d *part) offers() []offer {
	most := len(d.best) - 1
	list := []offer{{}}
	for give := 1; give <= most; give++ {
		gain := d.total(most-give) - d.total(most)
		if gain > list[len(list)-1].groups {
			list = append(list, offer{gain, give})
		}
	}
	return list
}

// share returns how many sets each part is to have so that all have the most and there are need groups. It starts from
// the most sets everywhere, and gives up as few as make up for the groups that are missing.
func share(parts []*part, need int) (sets []int, ok bool) {
	missing, possible := need, 0
	offers := make([][]offer, len(parts))
	for i, d := range parts {
		offers[i] = d.offers()
		possible += offers[i][len(offers[i])-1].groups
		missing -= d.total(len(d.best) - 1)
	}
	missing = max(missing, 0)
	if possible < missing {
		return nil, false
	}
	// By parts and by groups gained in them, where missing stands for more too: the fewest sets given up, and how.
	type cell struct {
		sets  int // -1 is not possible
		offer offer
		from  int // groups gained in the parts before
	}
	table := make([][]cell, len(parts)+1)
	for i := range table {
		table[i] = slices.Repeat([]cell{{sets: -1}}, missing+1)
	}
	table[0][0].sets = 0
	for i, list := range offers {
		for had, c := range table[i] {
			if c.sets < 0 {
				continue
			}
			for _, o := range list {
				next := &table[i+1][min(had+o.groups, missing)]
				if next.sets < 0 || c.sets+o.sets < next.sets {
					*next = cell{c.sets + o.sets, o, had}
				}
			}
		}
	}
	sets = make([]int, len(parts))
	for i, at := len(parts), missing; i > 0; i-- {
		c := table[i][at]
		sets[i-1] = len(parts[i-1].best) - 1 - c.offer.sets
		at = c.from
	}
	return sets, true
}
