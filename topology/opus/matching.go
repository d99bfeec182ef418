package opus

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
)

// Policy says how the stages of a run of zeros are joined.
type Policy string

const (
	// Chain joins each stage to the next. It is what the zero Policy means. Touching a stage disturbs only itself and
	// its direct neighbours, which is what the paper claims.
	Chain Policy = "chain"
	// Pair is Chain, but a run of exactly two stages is closed: both ports of a rank lead to
	// its peer, at the full bandwidth.
	Pair Policy = "pair"
	// Ring is Chain with a link from the last stage of a run to the first.
	Ring Policy = "ring"
)

// Policies are all there are.
var Policies = []Policy{Chain, Pair, Ring}

// check returns why there is no such policy; the empty one is Chain.
func (p Policy) check() error {
	if p == "" {
		return nil
	}
	if _, err := ParsePolicy(string(p)); err != nil {
		return fmt.Errorf("%w: %w", ErrJob, err)
	}
	return nil
}

// ParsePolicy reads the name of a policy.
func ParsePolicy(text string) (Policy, error) {
	if slices.Contains(Policies, Policy(text)) {
		return Policy(text), nil
	}
	return "", fmt.Errorf("policy %.40q%s: want chain, pair or ring",
		text, strictyaml.DidYouMean(text, []string{"chain", "pair", "ring"}))
}

// Circuit is a duplex circuit between two duplex ports of the job: A sends to B, and B to A.
type Circuit struct{ A, B int }

// Matching says which duplex ports of a job are joined, each with one other at most. The zero
// Matching joins none. Make one with Build, GiantRing or NewMatching. It is a value: nothing
// changes it once it is made.
type Matching struct {
	peer     []int32 // by duplex port; -1 is none
	perRank  int     // duplex ports of a rank
	perStage int     // duplex ports of a stage
}

// NewMatching returns the matching of a job that consists of circuits. A port that is not the job's, or
// that two circuits use, is an error.
func NewMatching(j Job, circuits ...Circuit) (Matching, error) {
	if err := j.Check(); err != nil {
		return Matching{}, err
	}
	m := dark(j)
	for _, c := range circuits {
		if err := m.join(c.A, c.B); err != nil {
			return Matching{}, err
		}
	}
	return m, nil
}

func dark(j Job) Matching {
	m := Matching{
		peer:     make([]int32, j.DuplexPorts()),
		perRank:  j.PortsPerRank(),
		perStage: j.RanksPerStage() * j.PortsPerRank(),
	}
	for i := range m.peer {
		m.peer[i] = -1
	}
	return m
}

// check returns why m has no duplex port q.
func (m Matching) check(q int) error {
	if q < 0 || q >= len(m.peer) {
		return fmt.Errorf("%w: there is no duplex port %d: want 0 to %d", ErrJob, q, len(m.peer)-1)
	}
	return nil
}

// join is for matchings that are being made.
func (m Matching) join(a, b int) error {
	for _, q := range []int{a, b} {
		if err := m.check(q); err != nil {
			return err
		}
		if m.peer[q] >= 0 {
			return fmt.Errorf("%w: duplex port %d is joined to %d and cannot be joined to another", ErrJob, q, m.peer[q])
		}
	}
	if a == b {
		return fmt.Errorf("%w: duplex port %d cannot be joined to itself", ErrJob, a)
	}
	m.peer[a], m.peer[b] = int32(b), int32(a)
	return nil
}

// Peer returns the duplex port that q is joined to; ok is false if it is dark.
func (m Matching) Peer(q int) (peer int, ok bool) {
	if q < 0 || q >= len(m.peer) || m.peer[q] < 0 {
		return 0, false
	}
	return int(m.peer[q]), true
}

// Circuits yields the circuits in order of their lower port, each once, A below B.
func (m Matching) Circuits() iter.Seq[Circuit] {
	return func(yield func(Circuit) bool) {
		for a, b := range m.peer {
			if int(b) > a && !yield(Circuit{a, int(b)}) {
				return
			}
		}
	}
}

// Len returns the number of circuits.
func (m Matching) Len() int {
	n := 0
	for range m.Circuits() {
		n++
	}
	return n
}

// Equal reports whether both join the same ports.
func (m Matching) Equal(o Matching) bool {
	if len(m.peer) > len(o.peer) {
		m, o = o, m
	}
	n := len(m.peer) // the zero Matching has no ports, and is the same as one whose ports are dark
	return slices.Equal(m.peer, o.peer[:n]) && !slices.ContainsFunc(o.peer[n:], func(peer int32) bool { return peer >= 0 })
}

// Lanes returns how many circuits join two ranks: with the rate of a port, the bandwidth in each
// direction that they have without forwarding. Ports of a rank that are joined to each other count
// for nothing.
func (m Matching) Lanes(a, b int) int {
	n := 0
	if a == b || m.perRank == 0 || a < 0 || a >= len(m.peer)/m.perRank {
		return 0
	}
	for _, peer := range m.peer[a*m.perRank : (a+1)*m.perRank] {
		if peer >= 0 && int(peer)/m.perRank == b {
			n++
		}
	}
	return n
}

// Hops returns how many circuits, at least, are between two ranks of the job when the ranks between
// them forward, as they do on the giant ring. It is 0 from a rank to itself; ok is false if no way leads there.
func (m Matching) Hops(j Job, from, to int) (hops int, ok bool) {
	per := j.PortsPerRank()
	ranks := len(m.peer) / per
	if from < 0 || to < 0 || from >= ranks || to >= ranks {
		return 0, from == to && from >= 0 && from < j.Ranks()
	}
	seen := make([]bool, ranks)
	seen[from] = true
	for edge := []int{from}; len(edge) > 0; hops++ {
		var next []int
		for _, x := range edge {
			if x == to {
				return hops, true
			}
			for _, peer := range m.peer[x*per : (x+1)*per] {
				if peer >= 0 && !seen[int(peer)/per] {
					seen[int(peer)/per] = true
					next = append(next, int(peer)/per)
				}
			}
		}
		edge = next
	}
	return 0, false
}

// Build returns the matching of a topology ID. Each stage at an axis j has the rings of the groups
// of that axis: the right port of each member leads to the left one of the next, and of two members
// both ports lead to the other. Each longest run of zeros is joined as the policy says; a zero
// without a zero beside it leaves that stage dark. That a run of zeros is one chain is our reading of the
// paper.
//
// Where ranks have four or more ports, each two of them have the same circuits as the first two, so that
// a phase has the bandwidth of all. An odd one stays dark.
func Build(j Job, id ID, p Policy) (Matching, error) {
	if err := j.Check(); err != nil {
		return Matching{}, err
	}
	if err := j.checkID(id); err != nil {
		return Matching{}, err
	}
	if err := p.check(); err != nil {
		return Matching{}, err
	}
	m := dark(j)
	for s, l := range links(id, p, nil) {
		if l.axis == PP {
			j.joinStage(m.peer, s, l)
		} else {
			j.joinRings(m.peer, s, int(l.axis))
		}
	}
	return m, nil
}

// link is what the circuits of a stage depend on: its sub-mapping.
type link struct {
	axis        uint8
	left, right int32 // the stages that its left and right ports lead to while at PP; -1 is none
}

// links returns the link of each stage, in buf if that is large enough.
func links(id ID, p Policy, buf []link) []link {
	all := append(buf[:0], make([]link, len(id))...)
	for s := 0; s < len(id); s++ {
		all[s] = link{id[s], -1, -1}
		if id[s] != PP {
			continue
		}
		first := s
		for ; s+1 < len(id) && id[s+1] == PP; s++ {
			all[s].right = int32(s + 1)
			all[s+1] = link{PP, int32(s), -1}
		}
		if s > first && (p == Ring || p == Pair && s == first+1) {
			all[first].left, all[s].right = int32(s), int32(first)
		}
	}
	return all
}

// planes returns how many pairs of a left and a right port a rank has.
func (j Job) planes() int { return j.PortsPerRank() / 2 }

// left and right return the duplex ports of a rank in a plane.
func (j Job) left(rank, plane int) int  { return rank*j.PortsPerRank() + 2*plane }
func (j Job) right(rank, plane int) int { return rank*j.PortsPerRank() + 2*plane + 1 }

// joinRings writes the circuits of a stage at a symmetrical axis to peer, by duplex port.
func (j Job) joinRings(peer []int32, stage, axis int) {
	stride, size, per := j.stride(axis), j.size(axis), j.RanksPerStage()
	if size < 2 {
		return
	}
	for x := stage * per; x < (stage+1)*per; x++ {
		next := x + stride
		if x/stride%size == size-1 {
			next = x - (size-1)*stride
		}
		for k := range j.planes() {
			r, l := j.right(x, k), j.left(next, k)
			peer[r], peer[l] = int32(l), int32(r)
		}
	}
}

// joinStage writes the peers of the ports of a stage at PP, not those of its neighbours.
func (j Job) joinStage(peer []int32, stage int, l link) {
	per := j.RanksPerStage()
	for c := range per {
		for k := range j.planes() {
			if l.left >= 0 {
				peer[j.left(stage*per+c, k)] = int32(j.right(int(l.left)*per+c, k))
			}
			if l.right >= 0 {
				peer[j.right(stage*per+c, k)] = int32(j.left(int(l.right)*per+c, k))
			}
		}
	}
}

// Fibre is how a duplex port of a job is cabled: it sends into an ingress of the switch, and receives
// from an egress.
type Fibre struct{ In, Out ocs.Port }

// Assignment says how the duplex ports of a job are cabled, by duplex port. It is data: real
// testbeds are cabled irregularly.
type Assignment []Fibre

// Regular returns the assignment of n duplex ports in which port q sends into in+q and receives
// from out+q. It is for examples and tests; that of a lab comes from its file.
func Regular(n int, in, out ocs.Port) Assignment {
	a := make(Assignment, n)
	for q := range a {
		a[q] = Fibre{in + ocs.Port(q), out + ocs.Port(q)}
	}
	return a
}

// CrossConnects returns the two cross-connects of a circuit.
func (a Assignment) CrossConnects(c Circuit) [2]ocs.CrossConnect {
	return [2]ocs.CrossConnect{
		{Ingress: a[c.A].In, Egress: a[c.B].Out},
		{Ingress: a[c.B].In, Egress: a[c.A].Out},
	}
}

// short returns that the assignment is too short for n duplex ports.
func (a Assignment) short(n int) error {
	return fmt.Errorf("%w: %d of its %d duplex ports are cabled", ErrJob, len(a), n)
}

// check returns why the assignment cannot be that of n duplex ports.
func (a Assignment) check(n int) error {
	if len(a) < n {
		return a.short(n)
	}
	in, out := make(map[ocs.Port]int, n), make(map[ocs.Port]int, n)
	for q, f := range a[:n] {
		if !(ocs.CrossConnect{Ingress: f.In, Egress: f.Out}).Valid() {
			return fmt.Errorf("%w: duplex port %d is cabled to ports %d and %d: want 1 to %d", ErrJob, q, f.In, f.Out, ocs.MaxPort)
		}
		if other, taken := in[f.In]; taken {
			return fmt.Errorf("%w: duplex ports %d and %d both send into ingress %d", ErrJob, other, q, f.In)
		}
		if other, taken := out[f.Out]; taken {
			return fmt.Errorf("%w: duplex ports %d and %d both receive from egress %d", ErrJob, other, q, f.Out)
		}
		in[f.In], out[f.Out] = q, q
	}
	return nil
}

// Map returns the cross-connects of a matching. An assignment that is too short, or that gives a
// port to two, is an error.
func (a Assignment) Map(m Matching) (ocs.Map, error) {
	if len(a) < len(m.peer) {
		return ocs.Map{}, a.short(len(m.peer))
	}
	var all []ocs.CrossConnect
	for c := range m.Circuits() {
		both := a.CrossConnects(c)
		all = append(all, both[:]...)
	}
	return ocs.NewMap(all...)
}

// String lists the circuits by rank and port: "0.1-1.0 1.1-0.0" of two ports a rank is not known
// here, so duplex ports are numbered through.
func (m Matching) String() string {
	var parts []string
	for c := range m.Circuits() {
		parts = append(parts, fmt.Sprintf("%d-%d", c.A, c.B))
	}
	return strings.Join(parts, " ")
}
