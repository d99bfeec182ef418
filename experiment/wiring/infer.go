package wiring

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
)

// sent is what an egress port showed in the steps.
type sent struct {
	port   lab.PortRef
	word   Word  // as planned
	bits   []Bit // as its monitor saw it; as planned where it has none
	blind  bool  // it has no monitor
	bright bool  // it was lit once with light enough for a dirty fibre
	wrong  []int // steps in which it was not as planned
}

// seen is what a NIC saw in the steps.
type seen struct {
	nic  NIC
	bits []Bit
	how  How
	err  error   // why its module was not read
	read bool    // most is valid
	most ocs.DBm // that its strongest lane ever got
}

func bitText(bits []Bit) string {
	var b strings.Builder
	for _, x := range bits {
		b.WriteString(x.String())
	}
	return b.String()
}

// count returns how many of bits are b.
func count(bits []Bit, b Bit) int {
	n := 0
	for _, x := range bits {
		if x == b {
			n++
		}
	}
	return n
}

// fits reports whether what was seen may be what was sent, wherever both are known.
func fits(seen, sent []Bit) bool {
	for i, b := range seen {
		if b != Unsure && sent[i] != Unsure && b != sent[i] {
			return false
		}
	}
	return true
}

// places tells from what the NICs saw where their receive fibres are. weight is how many ones
// a word has; leftOut are egress ports that had none.
func places(nics []seen, ports []sent, weight int, leftOut []PortNote) []Fibre {
	fibres := make([]Fibre, len(nics))
	at := map[lab.PortRef][]int{} // NICs that saw the word of a port
	for i, n := range nics {
		f := &fibres[i]
		*f = Fibre{NIC: n.nic.Name, End: Rx, Claimed: n.nic.Rx, How: n.how, Bits: bitText(n.bits)}
		if p := place(f, n, ports, weight); p != nil {
			f.Found = p.port
			at[p.port] = append(at[p.port], i)
		}
	}
	for p, list := range at {
		if len(list) < 2 {
			continue
		}
		var names []string
		for _, i := range list {
			names = append(names, nics[i].nic.Name)
		}
		for _, i := range list {
			f := &fibres[i]
			f.Verdict, f.Found, f.Candidates = Contradictory, lab.PortRef{}, []lab.PortRef{p}
			f.Why = fmt.Sprintf("%s all see the light of %v: a splitter, or one NIC under several names", strings.Join(names, " and "), p)
		}
	}
	var free, doubtful, blind, dim []lab.PortRef
	for _, s := range ports {
		if len(at[s.port]) > 0 {
			continue
		}
		free = append(free, s.port)
		switch {
		case len(s.wrong) > 0:
			doubtful = append(doubtful, s.port)
		case s.blind:
			blind = append(blind, s.port)
		case !s.bright:
			dim = append(dim, s.port)
		}
	}
	for i := range fibres {
		f := &fibres[i]
		switch {
		case f.Found != lab.PortRef{}:
			f.settle()
		case f.Verdict == Dead:
			f.Candidates = free
			f.Why = "it saw no light in any step"
			if m := nics[i].most; nics[i].read && m > faintest {
				f.Why += fmt.Sprintf(", %v at most", m)
			}
			note, out := findNote(leftOut, f.Claimed)
			switch {
			case out:
				f.Verdict, f.Why = Unverified, "its port was not tried: "+note.Why
				f.Candidates = nil
			case len(leftOut) > 0:
				f.Verdict = NotFound
				f.Why += ": it is broken, or at an egress port that was left out"
			case len(doubtful) > 0:
				f.Verdict = NotFound
				f.Why += ": it is broken, or at " + joinPorts(doubtful) + ", where light did not come out as it was told"
			case len(blind) > 0:
				f.Verdict = NotFound
				f.Why += ": it is broken, or at a port where no monitor shows whether light came out"
			case len(dim) > 0:
				f.Verdict = NotFound
				f.Why += fmt.Sprintf(": it is broken, or dirty and at one of %s that only weak light could be sent to", natural.Count(len(dim), "port"))
			}
		}
	}
	return fibres
}

// faintest is what a module reads in the dark, at most.
const faintest ocs.DBm = -39

// place returns the port whose word a NIC saw, or nil and in f why there is none.
func place(f *Fibre, n seen, ports []sent, weight int) *sent {
	if count(n.bits, Unsure) == len(n.bits) {
		f.Verdict, f.Why = Unverified, "neither its module nor its carrier can be read"
		if n.err != nil {
			f.Why += ": " + n.err.Error()
		}
		return nil
	}
	var fitting []*sent
	for i := range ports {
		if fits(n.bits, ports[i].bits) && count(ports[i].bits, Lit) > 0 {
			fitting = append(fitting, &ports[i])
		}
	}
	lit, unsure := count(n.bits, Lit), count(n.bits, Unsure)
	switch {
	case unsure > 0:
		f.Verdict = Ambiguous
		f.Why = fmt.Sprintf("in %s its reading was neither light nor dark, or changed", natural.Count(unsure, "step"))
	case lit == 0:
		f.Verdict = Dead
	case lit == len(n.bits):
		f.Verdict = Contradictory
		f.Why = "it saw light in every step, which no port had: light that is not switched here reaches it"
	case len(fitting) == 1 && len(fitting[0].wrong) == 0 && lit == weight:
		return fitting[0]
	case len(fitting) > 0:
		f.Verdict = Ambiguous
		f.Why = "it saw what the monitor of a port showed that was not lit as it should have been"
	default:
		f.Verdict = Contradictory
		switch {
		case lit < weight:
			f.Why = fmt.Sprintf("it saw light in %d steps and not in %d, as no port had it: light was lost", lit, weight)
		case lit > weight:
			f.Why = fmt.Sprintf("it saw light in %d steps and not in %d, as no port had it: light from elsewhere reaches it", lit, weight)
		default:
			f.Why = "no port had this word"
		}
	}
	if f.Verdict != Contradictory {
		for _, p := range fitting {
			f.Candidates = append(f.Candidates, p.port)
		}
	}
	return nil
}

// settle says of a fibre that was found whether that is where the lab file has it.
func (f *Fibre) settle() {
	f.Verdict = Elsewhere
	if f.Found == f.Claimed {
		f.Verdict = AsClaimed
	}
}

func findNote(notes []PortNote, p lab.PortRef) (PortNote, bool) {
	i := slices.IndexFunc(notes, func(n PortNote) bool { return n.Port == p })
	if i < 0 {
		return PortNote{}, false
	}
	return notes[i], true
}

// names is what came of the NICs' saying their names.
type names struct {
	owner map[lab.PortRef]string          // of each ingress that was told
	more  map[lab.PortRef][]string        // those where several names came in
	not   map[string]map[lab.PortRef]bool // where a NIC that spoke was not heard by one who listened
	spoke map[string]bool                 // had a carrier
	tried map[lab.PortRef]map[string]bool // who listened there
	mute  map[string]string               // why a NIC could not speak
}

func newNames() *names {
	return &names{
		owner: map[lab.PortRef]string{}, more: map[lab.PortRef][]string{}, not: map[string]map[lab.PortRef]bool{},
		spoke: map[string]bool{}, tried: map[lab.PortRef]map[string]bool{}, mute: map[string]string{},
	}
}

// take takes in what came of one map: listeners is who was at the other end of each ingress.
// It reports whether anything is known now that was not before.
func (x *names) take(h Hail, listeners map[lab.PortRef]string) (news bool) {
	for n := range h.Sent {
		news = news || !x.spoke[n]
		x.spoke[n] = true
	}
	for n, why := range h.Mute {
		x.mute[n] = why
	}
	for p, l := range listeners {
		heard, listened := h.Heard[l]
		if !listened {
			continue
		}
		if x.tried[p] == nil {
			x.tried[p] = map[string]bool{}
		}
		x.tried[p][l] = true
		for n := range h.Sent {
			if n != l && !slices.Contains(heard, n) {
				if x.not[n] == nil {
					x.not[n] = map[lab.PortRef]bool{}
				}
				news = news || !x.not[n][p]
				x.not[n][p] = true
			}
		}
		for _, n := range heard {
			switch was := x.owner[p]; {
			case was == "" && len(x.more[p]) == 0:
				x.owner[p], news = n, true
			case was == n || slices.Contains(x.more[p], n):
			default:
				if was != "" {
					x.more[p] = append(x.more[p], was)
				}
				x.more[p] = append(x.more[p], n)
				delete(x.owner, p)
				news = true
			}
		}
	}
	return news
}

// inlets are the ingress ports.
type inlets struct {
	lit, dark []lab.PortRef
	assumed   map[lab.PortRef]bool // those of lit whose light nobody has seen
	through   map[lab.PortRef]bool // those of either whose light was looked for behind the switch
}

// senders tells where the transmit fibres are. leftOut are the ingress ports that were not used;
// why is why there were no names at all.
func senders(nics []NIC, x *names, in inlets, leftOut []PortNote, why string) (fibres []Fibre, strays []lab.PortRef) {
	at := map[string][]lab.PortRef{}
	for p, n := range x.owner {
		at[n] = append(at[n], p)
	}
	for p, list := range x.more {
		for _, n := range list {
			at[n] = append(at[n], p)
		}
	}
	var free []lab.PortRef // lit, and nobody's yet
	for _, p := range in.lit {
		if x.owner[p] == "" && len(x.more[p]) == 0 {
			free = append(free, p)
		}
	}
	slices.SortFunc(free, comparePorts)
	dark := slices.SortedFunc(slices.Values(in.dark), comparePorts)
	fibres = make([]Fibre, len(nics))
	for i, n := range nics {
		f := &fibres[i]
		*f = Fibre{NIC: n.Name, End: Tx, Claimed: n.Tx}
		ports := at[n.Name]
		slices.SortFunc(ports, comparePorts)
		switch {
		case why != "":
			f.Verdict, f.Why = Unverified, why
		case len(ports) == 1 && len(x.more[ports[0]]) > 0:
			f.Verdict, f.Candidates = Contradictory, ports
			f.Why = fmt.Sprintf("the names of %s came in at %v: a coupler, or one NIC under several names", strings.Join(x.more[ports[0]], " and "), ports[0])
		case len(ports) > 1:
			f.Verdict, f.Candidates = Contradictory, ports
			f.Why = "its name came in at " + joinPorts(ports) + ": a splitter, or one NIC under several names"
		case len(ports) == 1:
			f.Found, f.How = ports[0], ByName
			f.settle()
		default:
			for _, p := range free {
				if !x.not[n.Name][p] {
					f.Candidates = append(f.Candidates, p)
				}
			}
			f.Verdict = Ambiguous
			if len(f.Candidates) == 0 {
				f.Verdict = Dead
			}
		}
	}
	if why != "" {
		return fibres, nil
	}
	wanted := map[lab.PortRef]int{} // how many NICs each free port may be of
	for _, f := range fibres {
		if f.Verdict == Ambiguous {
			for _, p := range f.Candidates {
				wanted[p]++
			}
		}
	}
	for i, n := range nics {
		f := &fibres[i]
		if f.Verdict == Ambiguous {
			f.Why = silence(x, n.Name)
			note, out := findNote(leftOut, n.Tx)
			switch {
			case out:
				f.Verdict, f.Why = Unverified, "its port was not used: "+note.Why+"; "+f.Why
				f.Candidates = nil
			case len(f.Candidates) == 1 && wanted[f.Candidates[0]] == 1 && len(leftOut) == 0 && !in.assumed[f.Candidates[0]]:
				f.Found, f.How, f.Candidates = f.Candidates[0], ByElimination, nil
				f.settle()
				f.Why += "; it is the only NIC left for this light, if that is a NIC's at all"
			case len(f.Candidates) == 1:
				f.Why += ", so it is there, at a port that was left out, or dead"
			default:
				f.Why += ", so it is at one of the ports that are left, or dead"
			}
		} else if f.Verdict == Dead {
			f.Candidates = dark
			f.Why = "its name came in at no port that has light"
			if !x.spoke[n.Name] {
				f.Why = "all light that comes in is that of others"
			}
			note, out := findNote(leftOut, n.Tx)
			switch {
			case out:
				f.Verdict, f.Why, f.Candidates = Unverified, "its port was not used: "+note.Why, nil
			case len(leftOut) > 0:
				f.Verdict = NotFound
				f.Why += ": it is broken, or at an ingress port that was left out"
			case slices.ContainsFunc(dark, func(p lab.PortRef) bool { return in.through[p] }):
				f.Verdict = NotFound
				f.Why += ": it is broken, or at one whose mirror is stuck, which monitors at egress ports only do not tell"
			}
		}
	}
	for _, p := range free {
		if wanted[p] == 0 && !in.assumed[p] {
			strays = append(strays, p)
		}
	}
	return fibres, strays
}

// silence says why the name of a NIC was not heard.
func silence(x *names, nic string) string {
	switch why := x.mute[nic]; {
	case why != "":
		return "it could not say its name: " + why
	case x.spoke[nic]:
		return "it said its name, and nobody was there to hear it at these ports"
	}
	return "it has no carrier, so it could not say its name"
}

// circles finds the places that were exchanged among fibres of one end, and says at whose
// place each fibre is.
func circles(fibres []Fibre) {
	claims := map[lab.PortRef]int{}
	for i, f := range fibres {
		claims[f.Claimed] = i
	}
	for i := range fibres {
		f := &fibres[i]
		if f.Verdict != Elsewhere {
			continue
		}
		if j, ok := claims[f.Found]; ok {
			f.At = fibres[j].NIC
		}
		circle := []string{f.NIC}
		for j := i; ; {
			k, ok := claims[fibres[j].Found]
			if !ok || fibres[k].Verdict != Elsewhere || len(circle) > len(fibres) {
				circle = nil
				break
			}
			if k == i {
				break
			}
			circle = append(circle, fibres[k].NIC)
			j = k
		}
		f.Swapped = circle
	}
}

func comparePorts(a, b lab.PortRef) int {
	return cmp.Or(natural.Compare(a.Switch, b.Switch), cmp.Compare(a.Port, b.Port))
}

// compare fills in Excess and Dirty of the fibres whose loss was measured. limit is over the median of
// the peers; what no error of a module explains is dirty also without any.
func compare(fibres []Fibre, limit float64) {
	for i := range fibres {
		f := &fibres[i]
		if !f.Measured {
			continue
		}
		var peers []float64
		for j, o := range fibres {
			if j != i && o.Measured {
				peers = append(peers, float64(o.Loss))
			}
		}
		f.Peers = len(peers)
		f.Dirty = float64(f.Loss) > limit+float64(ModuleError)
		if len(peers) == 0 {
			continue
		}
		slices.Sort(peers)
		// The lower of two in the middle: with few NICs a dirty peer must not hide another.
		f.Excess = f.Loss - ocs.DB(peers[(len(peers)-1)/2])
		f.Dirty = f.Dirty || float64(f.Excess) > limit
	}
}
