package tuitest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/tui/live"
)

// Lab is a live.Lab that holds a State it is given and remembers what it was asked to do.
// It is safe for concurrent use.
type Lab struct {
	mu      sync.Mutex
	state   *live.State
	changed chan struct{}
	calls   []string
	applied int // under way
	most    int // at once

	// Answer, if set, is what Preview returns beside the wish.
	Answer func(live.Wish) live.Preview
	// Become, if set, is called by Apply, which blocks until it returns.
	Become func(live.Preview) live.Outcome
	// Fail, if set, is the error of what the call of that name asks for.
	Fail map[string]error
	// Kept are the runs that Past knows, by ID.
	Kept map[string]*live.Run
}

// NewLab returns a Lab that holds s.
func NewLab(s *live.State) *Lab {
	return &Lab{state: s, changed: make(chan struct{}, 1)}
}

// Set makes s the newest State.
func (l *Lab) Set(s *live.State) {
	l.mu.Lock()
	l.state = s
	l.mu.Unlock()
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Mutations are the calls so far that could have changed something: "apply connect rail0
// 1>33", "start", "reload".
func (l *Lab) Mutations() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.calls)
}

// MostPending is how many changes were being applied at once at most, without panics, which
// wait for nothing.
func (l *Lab) MostPending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.most
}

// State returns what Set was given last.
func (l *Lab) State() *live.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// Changed is sent to by Set.
func (l *Lab) Changed() <-chan struct{} { return l.changed }

// Preview plans a wish on what the State says, without asking anybody.
func (l *Lab) Preview(_ context.Context, w live.Wish) live.Preview {
	if l.Answer != nil {
		return l.Answer(w)
	}
	s := l.State()
	p := live.Preview{Wish: w, Title: Title(w), CLI: []string{"ocslab " + Title(w)}, At: Now}
	maps := map[string]ocs.Map{w.Switch: w.Map}
	var err error
	switch w.Verb {
	case live.Link:
		if len(w.NICs) == 2 {
			maps, err = s.File.Link(w.NICs[0], w.NICs[1])
		}
	case live.Configure:
		maps, err = s.File.Config(w.Configuration)
	}
	if err != nil {
		p.Err = err
		return p
	}
	for name, want := range maps {
		sw := s.Switch(name)
		if sw == nil {
			continue
		}
		part := live.Part{Switch: name, Have: sw.Map}
		if w.Verb == live.Disconnect {
			part.Change, part.Err = ocs.PlanDisconnect(sw.Map, w.Ports...)
		} else {
			part.Change, part.Err = ocs.Plan(sw.Map, want, orSafe(w.Policy))
		}
		for c := range part.Change.Remove.All() {
			part.Dark = append(part.Dark, l.ends(s, name, c))
		}
		for c := range part.Change.Add.All() {
			part.Lit = append(part.Lit, l.ends(s, name, c))
		}
		p.Parts, p.Err = append(p.Parts, part), part.Err
	}
	return p
}

func (l *Lab) ends(s *live.State, sw string, c ocs.CrossConnect) live.Ends {
	return live.Ends{Circuit: c, From: s.File.Sender(sw, c.Ingress), To: s.File.Receiver(sw, c.Egress)}
}

func orSafe(p ocs.Policy) ocs.Policy {
	if p == "" {
		return ocs.Safe
	}
	return p
}

// Title is a wish in words.
func Title(w live.Wish) string {
	switch w.Verb {
	case live.Connect:
		return fmt.Sprintf("connect %s %v", w.Switch, w.Map)
	case live.Disconnect:
		return fmt.Sprintf("disconnect %s %s", w.Switch, ocs.FormatPorts(w.Ports))
	case live.Link, live.Unlink:
		return fmt.Sprintf("%s %v", w.Verb, w.NICs)
	case live.Configure:
		return "configure " + w.Configuration
	case live.PanicNow:
		return fmt.Sprintf("panic --reason %q", w.Reason)
	}
	return string(w.Verb)
}

// Apply remembers that it was called.
func (l *Lab) Apply(_ context.Context, p live.Preview) live.Outcome {
	l.mu.Lock()
	l.calls = append(l.calls, "apply "+Title(p.Wish))
	n := 1
	if p.Wish.Verb == live.PanicNow {
		n = 0
	}
	l.applied += n
	l.most = max(l.most, l.applied)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.applied -= n
		l.mu.Unlock()
	}()
	if l.Become != nil {
		return l.Become(p)
	}
	return live.Outcome{Title: p.Title, Text: p.Title + ": done", Err: l.Fail["apply"]}
}

func (l *Lab) call(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls = append(l.calls, name)
	return l.Fail[name]
}

// LoadRun changes nothing but what is loaded, and is not remembered.
func (l *Lab) LoadRun(context.Context, string) error { return l.Fail["load"] }

// StartRun remembers that it was called, and with which policy when it is not Safe.
func (l *Lab) StartRun(_ context.Context, policy ocs.Policy) error {
	if policy == ocs.Safe || policy == "" {
		return l.call("start")
	}
	return l.call("start " + string(policy))
}

// Resume remembers that it was called.
func (l *Lab) Resume(_ context.Context, id string) error { return l.call("resume " + id) }

// PauseRun remembers that it was called.
func (l *Lab) PauseRun() error { return l.call("pause") }

// StopRun remembers that it was called.
func (l *Lab) StopRun() error { return l.call("stop") }

// AbortRun remembers that it was called.
func (l *Lab) AbortRun() error { return l.call("abort") }

// Past returns Kept[id].
func (l *Lab) Past(_ context.Context, id string) (*live.Run, error) {
	if err := l.Fail["past"]; err != nil {
		return nil, err
	}
	r, ok := l.Kept[id]
	if !ok {
		return nil, fmt.Errorf("runs: %q: %w", id, runs.ErrUnknown)
	}
	return r, nil
}

// Reload changes nothing in the lab itself, and is not remembered.
func (l *Lab) Reload(context.Context) error { return l.Fail["reload"] }

// SetReadOnly changes what State says.
func (l *Lab) SetReadOnly(on bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := *l.state
	s.ReadOnly = on
	l.state = &s
	return nil
}

// Close does nothing.
func (l *Lab) Close() error { return nil }
