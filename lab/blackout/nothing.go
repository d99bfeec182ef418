package blackout

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ocslab/ocslab/ocs"
)

// mostTold is of how many switches an error says what they hold.
const mostTold = 4

// nothing is the error of a panic that has come to be in force on none of the switches, nil
// if one is on any.
func (b *Blackout) nothing(ctx context.Context, p *pending, results []Result) error {
	p.mu.Lock()
	dark := p.call.Dark
	p.mu.Unlock()
	if len(dark) > 0 {
		return nil
	}
	names := make([]string, len(results))
	for i, r := range results {
		names[i] = r.Switch
	}
	var on []string
	how := ""
	for i, s := range each(names, func(name string) seen { return b.briefly(ctx, name, b.opt.File.OwnPorts(name)) }) {
		s.close()
		lit := s.held.lit()
		switch {
		case s.err != nil:
			on = append(on, names[i]+" (it does not answer)")
		case len(lit) > 0:
			on = append(on, names[i]+" "+formatCircuits(lit))
		}
		if ports := b.removable(names[i], lit); how == "" && len(ports) > 0 {
			how = fmt.Sprintf("; \"ocslab disconnect %s %s\" darkens %[1]s", names[i], ocs.FormatPorts(ports))
		}
	}
	if len(on) == 0 {
		return fmt.Errorf("%w: the switches hold no light, and nothing keeps it away", ErrNothing)
	}
	if more := len(on) - mostTold; more > 0 {
		on = append(on[:mostTold], fmt.Sprintf("%d more", more))
	}
	return fmt.Errorf("%w; there may be light on %s%s", ErrNothing, strings.Join(on, ", "), how)
}

// lit are the circuits that no shutter is known to darken.
func (h Held) lit() (circuits []ocs.CrossConnect) {
	for c := range h.Map.All() {
		if !h.Shut[c.Ingress] && !h.Shut[c.Egress] {
			circuits = append(circuits, c)
		}
	}
	return circuits
}

// removable are the ingress ports of those circuits that the lab file does not protect.
func (b *Blackout) removable(name string, circuits []ocs.CrossConnect) (ports []ocs.Port) {
	protected := b.opt.File.ProtectedPorts(name)
	for _, c := range circuits {
		if !slices.Contains(protected, c.Ingress) && !slices.Contains(protected, c.Egress) {
			ports = append(ports, c.Ingress)
		}
	}
	return sorted(ports)
}
