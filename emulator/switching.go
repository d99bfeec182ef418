package emulator

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/strictyaml"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline/dist"
)

// said reports what a file says twice, or does not say.
func (s *Switching) said(file string, at *strictyaml.Positions) error {
	modes := at.Has("switching.modes")
	switch {
	case !modes && !at.Has("switching.single"):
		return strictyaml.Errorf(file, at.Value("switching"), "switching",
			`how long a cross-connect takes is missing: want "single", or "modes"`)
	case !modes:
		return nil
	}
	for _, key := range []string{"single", "jitter"} {
		if path := "switching." + key; at.Has(path) {
			return strictyaml.Errorf(file, at.Key(path), path, "modes say how long a cross-connect takes: remove this, or them")
		}
	}
	if len(s.Modes) == 0 {
		return strictyaml.Errorf(file, at.Value("switching.modes"), "switching.modes", "there are no modes: want at least one")
	}
	return nil
}

// fill makes the rest fit to the modes, if there are any.
func (s *Switching) fill() {
	if len(s.Modes) == 0 || s.Modes.Check() != nil { // which check reports
		return
	}
	s.Single, s.Jitter = max(s.Modes.Quantile(0.5), 0), 0
	if s.Bulk == 0 {
		s.Bulk = s.Single
	}
}

// check reports modes that cannot be and paths that a switch does not have.
func (s *Switching) check(g ocs.Geometry) error {
	if s.Modes != nil {
		if err := checkModes(s.Modes); err != nil {
			return fmt.Errorf("switching.modes: %w", err)
		}
	}
	seen := map[Path]bool{}
	for i, p := range s.Paths {
		at := strictyaml.Index("switching.paths", i)
		if err := checkPath(g, ocs.CrossConnect(p.Path)); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if seen[p.Path] {
			return fmt.Errorf("%s: the path %v is there twice", at, p.Path)
		}
		seen[p.Path] = true
		if err := checkModes(p.Modes); err != nil {
			return fmt.Errorf("%s: path %v: %w", at, p.Path, err)
		}
	}
	return nil
}

func checkModes(m dist.Mixture) error {
	for i, x := range m {
		if x.Median > time.Hour || x.Spread > time.Hour {
			return fmt.Errorf("the median or the spread of mode %d is more than 1h", i+1)
		}
	}
	return m.Check()
}

// byPath returns the modes of the paths that have some of their own.
func (s *Switching) byPath() map[ocs.CrossConnect]dist.Mixture {
	if len(s.Paths) == 0 {
		return nil
	}
	m := make(map[ocs.CrossConnect]dist.Mixture, len(s.Paths))
	for _, p := range s.Paths {
		m[ocs.CrossConnect(p.Path)] = slices.Clone(p.Modes)
	}
	return m
}

// drawLocked returns how long the mirrors of c take this time, in a command of one
// cross-connect or in bulk.
func (d *Device) drawLocked(c ocs.CrossConnect, bulk bool) time.Duration {
	s := &d.p.Switching
	modes := s.Modes
	if own, ok := d.slow[c]; ok {
		modes = own
	}
	if modes == nil {
		usual := s.Single
		if bulk {
			usual = s.Bulk
		}
		return max(usual+time.Duration(min(max(d.switches.NormFloat64(), -3), 3)*float64(s.Jitter)), 0)
	}
	drawn := max(modes.Draw(d.switches), 0)
	if bulk {
		drawn += max(s.Bulk-s.Single, 0)
	}
	return drawn
}

// compare orders paths by ingress, then egress.
func (p Path) compare(q Path) int {
	return cmp.Or(cmp.Compare(p.Ingress, q.Ingress), cmp.Compare(p.Egress, q.Egress))
}

// Median returns how long a command usually takes that makes so many cross-connects, from
// the command until the last of them has settled: the median of the slowest, paths with
// modes of their own aside.
func (s *Switching) Median(crossConnects int) time.Duration {
	switch {
	case crossConnects <= 1:
		return s.Single
	case len(s.Modes) == 0:
		return s.Bulk
	}
	return max(s.Modes.Quantile(math.Pow(0.5, 1/float64(crossConnects))), 0) + max(s.Bulk-s.Single, 0)
}
