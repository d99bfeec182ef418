// Package ocstest provides a switch in memory for tests of code that drives
// switches. It has no wire, no optics and no timing: the emulator has those.
package ocstest

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// Switch is an [ocs.Switch] in memory that takes over busy ports as Polatis
// units do. Set the fields before the first call; hooks may be nil.
type Switch struct {
	Identity ocs.Identity

	// OnApply is called before a change takes effect. What it returns takes
	// effect instead of c; with an error the change is abandoned half way,
	// after its removals when it returns some.
	OnApply func(c ocs.Change) (ocs.Change, error)
	// OnRead is called before the map is read.
	OnRead func() error

	mu      sync.Mutex // guards what follows
	m       ocs.Map
	applied []ocs.Change
	closed  bool
}

var _ ocs.Switch = (*Switch)(nil)

// New returns a two-sided n x n switch that holds m.
func New(n int, m ocs.Map) *Switch {
	return &Switch{
		Identity: ocs.Identity{Vendor: "ocslab", Model: "in-memory", Serial: "1", Firmware: "1", Geometry: ocs.TwoSided(n, n)},
		m:        m,
	}
}

// Set replaces the map, as another client would.
func (s *Switch) Set(m ocs.Map) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.m = m
}

// Applied returns the changes that Apply was called with.
func (s *Switch) Applied() []ocs.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.applied)
}

// Identify returns s.Identity.
func (s *Switch) Identify(ctx context.Context) (ocs.Identity, error) {
	return s.Identity, s.usable(ctx)
}

// CrossConnects returns the map.
func (s *Switch) CrossConnects(ctx context.Context) (ocs.Map, error) {
	if err := s.usable(ctx); err != nil {
		return ocs.Map{}, err
	}
	if s.OnRead != nil {
		if err := s.OnRead(); err != nil {
			return ocs.Map{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.m, nil
}

// Apply changes the map; see [Switch.OnApply].
func (s *Switch) Apply(ctx context.Context, c ocs.Change) (ocs.Receipt, error) {
	if err := s.usable(ctx); err != nil {
		return ocs.Receipt{}, err
	}
	if err := ocs.Ready(ctx); err != nil {
		return ocs.Receipt{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = append(s.applied, c)
	now := time.Now()
	receipt := ocs.Receipt{SendStart: now, Sent: now, FirstByte: now, Acked: now, Requests: 1}
	var err error
	if s.OnApply != nil {
		c, err = s.OnApply(c)
	}
	rest := s.m.Minus(c.Remove)
	if err != nil {
		s.m = rest
		receipt.Acked = time.Time{}
		return receipt, err
	}
	var displaced []ocs.CrossConnect
	for a := range c.Add.All() {
		displaced = append(displaced, rest.Rivals(a)...)
	}
	slices.SortFunc(displaced, func(a, b ocs.CrossConnect) int { return int(a.Ingress) - int(b.Ingress) })
	rest = rest.Minus(ocs.MustMap(slices.Compact(displaced)...))
	s.m, err = rest.Plus(c.Add)
	return receipt, err
}

// Close makes every later call fail with net.ErrClosed.
func (s *Switch) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

func (s *Switch) usable(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	return context.Cause(ctx)
}
