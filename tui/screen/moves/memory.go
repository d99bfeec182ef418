package moves

import (
	"slices"

	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/tui/live"
)

// memory keeps what was worked out of reconfigurations, so that not every frame does it
// again. It answers as if it kept nothing: a Move does not change, and what is known of one
// is found by its address.
type memory struct {
	accounts map[*live.Move]*account
	usual    map[step]usual
	since    *live.Move // the newest that usual is of
	count    int        // of how many

	file  *lab.File         // that ports is of
	ports map[string]string // of NICs: where their light comes from
}

// usual is what something usually takes.
type usual struct {
	at timeline.Interval // the median
	n  int               // of so many
}

func newMemory() memory {
	return memory{accounts: map[*live.Move]*account{}, usual: map[step]usual{}}
}

// account returns what the marks of a reconfiguration say.
func (k *memory) account(m *live.Move, s *live.State) *account {
	if a := k.accounts[m]; a != nil {
		return a
	}
	if len(k.accounts) > 2*live.KeepMoves { // most are of Moves that are no more
		kept := make(map[*live.Move]*account, live.KeepMoves)
		for _, m := range s.Moves {
			if a := k.accounts[m]; a != nil {
				kept[m] = a
			}
		}
		k.accounts = kept
	}
	if k.file != s.File || k.ports == nil || len(k.ports) != len(s.NICs) {
		k.file, k.ports = s.File, make(map[string]string, len(s.NICs))
		for _, n := range s.NICs {
			k.ports[n.Name] = n.Rx.String()
		}
	}
	a := newAccount(m, k.ports)
	k.accounts[m] = a
	return a
}

// earlier are the reconfigurations before one that can be compared with.
func earlier(m *live.Move, s *live.State) []*live.Move {
	for i, x := range s.Moves {
		if x == m {
			return s.Moves[i+1:]
		}
	}
	return nil
}

// usually returns the median of what a step took in the reconfigurations before m: since the
// command if before is the zero key. The subject is "" for when the last of a stage was
// back. It reports false when there is nothing to compare with.
func (k *memory) usually(m *live.Move, s *live.State, what, before key) (usual, bool) {
	moves := earlier(m, s)
	if len(moves) == 0 {
		return usual{}, false
	}
	if k.since != moves[0] || k.count != len(moves) {
		k.since, k.count = moves[0], len(moves)
		clear(k.usual)
	}
	id := step{key: what, before: before}
	u, ok := k.usual[id]
	if !ok {
		u = k.median(m, moves, s, what, before)
		k.usual[id] = u
	}
	return u, u.n > 0
}

// kind is what can be compared: a reconfiguration that connects with one that connects, and one
// that only takes light away with such a one.
type kind uint8

const (
	anyKind kind = iota // not known
	connects
	removes
)

func kindOf(m *live.Move) kind {
	found := anyKind
	for _, r := range m.Reports {
		switch {
		case r.Change.Add.Len() > 0:
			return connects
		case r.Change.Remove.Len() > 0:
			found = removes
		}
	}
	if found != anyKind {
		return found
	}
	for _, x := range m.Expected {
		if slices.Contains(returns, x.Stage) && x.Stage != timeline.Ack {
			return connects
		}
	}
	return anyKind
}

// alike reports whether what one reconfiguration took says what the other usually takes.
func alike(a, b *live.Move) bool {
	x, y := kindOf(a), kindOf(b)
	return x == y || x == anyKind || y == anyKind
}

// median is what a step took in those of moves that are like another.
func (k *memory) median(like *live.Move, moves []*live.Move, s *live.State, what, before key) usual {
	took := make([]timeline.Interval, 0, len(moves))
	for _, m := range moves {
		if m.Running || m.Err != nil || !alike(like, m) {
			continue
		}
		a := k.account(m, s)
		if what.subject == "" {
			for _, g := range a.stages {
				if g.stage == what.stage && g.hasEnd {
					took = append(took, g.end)
				}
			}
			continue
		}
		if t, ok := a.took(what, before); ok {
			took = append(took, t)
		}
	}
	if len(took) == 0 {
		return usual{}
	}
	return usual{timeline.Quantile(took, 0.5), len(took)}
}
