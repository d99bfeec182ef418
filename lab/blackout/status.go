package blackout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/lab/panics"
	"github.com/ocslab/ocslab/ocs"
)

// ErrContradiction: the record of panics says otherwise than the switches.
var ErrContradiction = errors.New("the record of panics and the switches contradict each other")

// Lightness says whether there may be light of the lab on a switch.
type Lightness string

// What of the lab's light is on a switch now.
const (
	NowDark    Lightness = "dark"
	NowLit     Lightness = "lit"
	NowUnknown Lightness = "unknown" // it did not answer
)

// Now is what a switch holds now.
type Now struct {
	Switch, Device string
	Light          Lightness
	Lit            ocs.Map    // the lab's circuits on which no shutter of the lab's ports is closed
	Shut           []ocs.Port // ports of the lab with a closed shutter
	Err            error      // why it is unknown
	// Contradiction says, for people, how the record says otherwise; "" if it does not.
	Contradiction string
}

// Status reads the switches on which the lab has ports, all at the same time and each for as long as Patience says, and
// compares what it finds with calls, the panics in force. In order of names.
func (b *Blackout) Status(ctx context.Context, calls []panics.Call) []Now {
	names, _ := b.names(nil)
	names = slices.DeleteFunc(names, func(name string) bool { return len(b.opt.File.OwnPorts(name)) == 0 })
	return each(names, func(name string) Now {
		n := Now{Switch: name, Light: NowUnknown}
		own := b.opt.File.OwnPorts(name)
		if n.Device, n.Err = b.opt.Device(name); n.Err != nil {
			return n
		}
		s := b.briefly(ctx, name, own)
		s.close()
		if n.Err = s.err; n.Err != nil {
			return n
		}
		n.compare(s.held, own, b.opt.File.ProtectedPorts(name), darkOn(calls, n.Device))
		return n
	})
}

// compare sets what follows from what the switch holds, and from what panics in force have darkened on it.
func (n *Now) compare(h Held, own, protected []ocs.Port, dark []darkening) {
	uses := func(ports []ocs.Port, c ocs.CrossConnect) bool {
		return slices.Contains(ports, c.Ingress) || slices.Contains(ports, c.Egress)
	}
	lit := slices.DeleteFunc(h.lit(), func(c ocs.CrossConnect) bool { return !uses(own, c) })
	n.Lit, n.Light = mapOf(lit), NowDark
	if len(lit) > 0 {
		n.Light = NowLit
	}
	for _, p := range own {
		if h.Shut[p] {
			n.Shut = append(n.Shut, p)
		}
	}
	free := slices.DeleteFunc(slices.Clone(lit), func(c ocs.CrossConnect) bool { return uses(protected, c) })
	switch {
	case len(dark) == 0 && len(n.Shut) > 0:
		n.Contradiction = fmt.Sprintf("the shutters of %s are closed, and no panic in force has closed them", ocs.FormatPorts(n.Shut))
	case len(free) > 0 && slices.ContainsFunc(dark, func(d darkening) bool { return d.Now() == panics.IsDark }):
		n.Contradiction = fmt.Sprintf("%s may be lit, and the record says dark", formatCircuits(free))
	}
}

// Contradictions is the error of what contradicts the record, nil if nothing does.
func Contradictions(all []Now) error {
	var texts []string
	for _, n := range all {
		if n.Contradiction != "" {
			texts = append(texts, n.Switch+": "+n.Contradiction)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrContradiction, strings.Join(texts, "; "))
}
