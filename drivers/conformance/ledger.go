package conformance

import (
	"fmt"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/ocs"
)

// ledger knows which cross-connects on the device are of the suite, and
// watches those that are not.
type ledger struct {
	mu   sync.Mutex        // guards what follows: two clients change circuits at once
	pool map[ocs.Port]bool // ports that the suite may use
	// alone is set when nobody else is on the device: what comes with a request
	// of the suite is of the suite, even if it is not what was asked for.
	alone bool
	last  ocs.Map // as the device was read last
	// mine are cross-connects that may be there because of the suite. True
	// means that it is not known what became of the request.
	mine    map[ocs.CrossConnect]bool
	pending map[ocs.Port]bool // ports of requests sent since last was read
	// parallel is set while two clients are at work. What is read then may be
	// older than what the other one has entered, so nothing is concluded.
	parallel bool

	ever      map[ocs.CrossConnect]bool // what the suite has asked for so far
	disturbed []disturbedError
	others    []string // what other clients did
}

func newLedger(alone bool) *ledger {
	return &ledger{alone: alone, pool: map[ocs.Port]bool{}, mine: map[ocs.CrossConnect]bool{}, pending: map[ocs.Port]bool{}, ever: map[ocs.CrossConnect]bool{}}
}

// start begins with a device on which nothing is of the suite.
func (l *ledger) start(m ocs.Map) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = m
	clear(l.mine)
	clear(l.pending)
}

func (l *ledger) own(ports ...ocs.Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range ports {
		l.pool[p] = true
	}
}

func (l *ledger) lose(p ocs.Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pool, p)
}

func (l *ledger) owns(p ocs.Port) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pool[p]
}

// ports returns the ports of the suite in ascending order.
func (l *ledger) ports() []ocs.Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ps []ocs.Port
	for p := range l.pool {
		ps = append(ps, p)
	}
	slices.Sort(ps)
	return ps
}

// note is called before c is sent.
func (l *ledger) note(c ocs.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range c.Add.All() {
		if _, known := l.mine[a]; !known { // else it stays as sure or unsure as it was
			l.mine[a] = false
		}
		l.ever[a] = true
	}
	for _, p := range c.Ports() {
		l.pending[p] = true
	}
}

// unsure is called when it is not known what became of a request for m.
func (l *ledger) unsure(m ocs.Map) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range m.All() {
		l.mine[c] = true
	}
}

// takenError is a port of the suite that another client has taken.
type takenError struct {
	port ocs.Port
	by   ocs.CrossConnect
}

func (e *takenError) Error() string {
	return fmt.Sprintf("another client has taken port %d meanwhile: %v", e.port, e.by)
}

// free reports whether m holds nothing but cross-connects of the suite at
// ports, as a *takenError.
func (l *ledger) free(m ocs.Map, ports []ocs.Port) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range ports {
		for _, c := range m.At(p) {
			if _, mine := l.mine[c]; !mine {
				return &takenError{p, c}
			}
		}
	}
	return nil
}

// disturbedError is a circuit of which the suite cannot tell whether it, the
// device or another client is to blame for it.
type disturbedError struct {
	c    ocs.CrossConnect
	what string
}

// What is wrong with a circuit.
const (
	vanished = "vanished while the suite, which had not made it, changed other ports: the device dropped it, or another client removed it at that moment"
	unasked  = "appeared while the suite changed one of its ports, and is not what it asked for: the device made a wrong circuit, or another client took the port at that moment"
	again    = "reads back again although the suite had removed it: the device did not remove it or shows an old map, or another client made it"
)

func (e *disturbedError) Error() string { return e.c.String() + " " + e.what }

// foreign reports whether c is of others, as far as is known.
func (l *ledger) foreign(c ocs.CrossConnect) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, mine := l.mine[c]
	return !mine && !l.ever[c] && !slices.ContainsFunc(l.disturbed, func(d disturbedError) bool { return d.c == c })
}

// observe enters what the device holds now. The error is a *disturbedError.
func (l *ledger) observe(m ocs.Map) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.parallel {
		return nil
	}
	var err error
	disturb := func(c ocs.CrossConnect, what string) {
		l.disturbed = append(l.disturbed, disturbedError{c, what})
		err = &disturbedError{c, what}
	}
	for c := range m.Minus(l.last).All() {
		_, mine := l.mine[c]
		touched := l.pending[c.Ingress] || l.pending[c.Egress]
		switch {
		case mine:
		case touched && l.alone:
			l.mine[c] = false
			disturb(c, unasked)
		case touched:
			disturb(c, unasked)
		case l.ever[c]:
			disturb(c, again)
		default:
			l.others = append(l.others, c.String()+" appeared")
		}
	}
	for c := range l.last.Minus(m).All() {
		_, mine := l.mine[c]
		inUse := len(m.At(c.Ingress)) > 0 || len(m.At(c.Egress)) > 0
		switch {
		case mine && !l.pending[c.Ingress] && !l.pending[c.Egress]:
			l.others = append(l.others, c.String()+", which was of this suite, vanished")
		case mine:
		case len(l.pending) > 0 && !inUse:
			disturb(c, vanished)
		default: // moved by somebody, or gone while nothing was asked for
			l.others = append(l.others, c.String()+" vanished")
		}
	}
	for c, unsure := range l.mine {
		if !unsure && !m.Has(c) {
			delete(l.mine, c)
		}
	}
	l.last = m
	clear(l.pending)
	return err
}

// ours returns the part of m that is of the suite.
func (l *ledger) ours(m ocs.Map) ocs.Map {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := m
	for c := range m.All() {
		if _, mine := l.mine[c]; mine {
			rest = rest.Minus(ocs.MustMap(c))
		}
	}
	return m.Minus(rest)
}

// onPool returns the part of m that uses a port of the suite.
func (l *ledger) onPool(m ocs.Map) ocs.Map {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ccs []ocs.CrossConnect
	for c := range m.All() {
		if l.pool[c.Ingress] || l.pool[c.Egress] {
			ccs = append(ccs, c)
		}
	}
	return ocs.MustMap(ccs...) // a part of a Map
}

// doubts reports whether the fate of a request is not known; settle says that
// it was waited for.
func (l *ledger) doubts() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, unsure := range l.mine {
		if unsure {
			return true
		}
	}
	return false
}

func (l *ledger) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.mine {
		l.mine[c] = false
	}
}

func (l *ledger) held() []ocs.CrossConnect {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ccs []ocs.CrossConnect
	for c := range l.mine {
		ccs = append(ccs, c)
	}
	slices.SortFunc(ccs, func(a, b ocs.CrossConnect) int { return int(a.Ingress) - int(b.Ingress) })
	return ccs
}

func (l *ledger) setParallel(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parallel = on
}
