package live

import (
	"fmt"
	"slices"
	"strings"
	"time"

	firmwarenotes "github.com/ocslab/ocslab/firmware-notes"
	"github.com/ocslab/ocslab/internal/natural"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// mostRisks is how many risks of one kind are told one by one.
const mostRisks = 4

// describe fills in whose light goes and comes, for how long, and what could go wrong.
func (k known) describe(x *Part, t task, device string) {
	for c := range x.Change.Remove.All() {
		e := k.ends(x.Switch, device, c)
		x.Dark = append(x.Dark, e)
		if !t.away && e.Origin.Who != "us" {
			x.Foreign = append(x.Foreign, e)
		}
	}
	for c := range x.Change.Add.All() {
		x.Lit = append(x.Lit, k.ends(x.Switch, device, c))
	}
	k.risks(x, t)
	k.predict(x, device)
}

// risks says what could go wrong, the worst first.
func (k known) risks(x *Part, t task) {
	var protected []string
	touched := x.Change.Ports()
	for _, p := range k.file.ProtectedPorts(x.Switch) {
		if slices.Contains(touched, p) {
			protected = append(protected, fmt.Sprintf("port %d is protected by the lab file", p))
		}
	}
	x.risk(protected)
	x.risk(k.trafficRisks(x))
	if !t.away {
		x.risk(k.bystanders(x))
	}
	x.risk(k.foreign(x))
	x.risk(k.unlit(x))
	if t.undo != 0 && x.Change.Empty() {
		x.Risks = append(x.Risks, fmt.Sprintf("nothing of change %d is left: it counts as taken back then", t.undo))
	}
	if r := k.state.Run; r != nil && r.ID != "" && !r.Ended {
		x.Risks = append(x.Risks, fmt.Sprintf("the run %s is in progress", r.ID))
	}
	if p := k.state.Panic; p != nil && x.Change.Add.Len() > 0 {
		x.Risks = append(x.Risks, "a panic is in force: "+p.Reason)
	}
}

// risk adds risks of one kind, of which the first few are told one by one.
func (x *Part) risk(texts []string) {
	if more := len(texts) - mostRisks; more > 0 {
		texts = append(texts[:mostRisks:mostRisks], fmt.Sprintf("and %d more such", more))
	}
	x.Risks = append(x.Risks, texts...)
}

// trafficRisks are circuits that packets flow through.
func (k known) trafficRisks(x *Part) (texts []string) {
	for _, e := range x.Dark {
		if e.Traffic {
			texts = append(texts, fmt.Sprintf("packets flow through %v now, from %s", e.Circuit, e.way()))
		}
	}
	return texts
}

// bystanders are NICs that lose light though the wish does not name them.
func (k known) bystanders(x *Part) (texts []string) {
	for _, e := range x.Dark {
		if _, again := x.Change.Add.IngressOf(e.Circuit.Egress); !again && e.To != "" {
			texts = append(texts, fmt.Sprintf("%s loses its light (%v)", e.To, e.Circuit))
		}
		if _, again := x.Change.Add.EgressOf(e.Circuit.Ingress); !again && e.From != "" {
			texts = append(texts, fmt.Sprintf("the light of %s goes nowhere (%v)", e.From, e.Circuit))
		}
	}
	return texts
}

// foreign are circuits that are taken over from others.
func (k known) foreign(x *Part) (texts []string) {
	for _, e := range x.Foreign {
		switch {
		case e.Origin.Who == "":
			texts = append(texts, fmt.Sprintf("%v was not made by ocslab", e.Circuit))
		case e.Origin.When.IsZero():
			texts = append(texts, fmt.Sprintf("%v was made by %s", e.Circuit, e.Origin.Who))
		default:
			texts = append(texts, fmt.Sprintf("%v was made by %s, %s ago", e.Circuit, e.Origin.Who, ago(k.now.Sub(e.Origin.When))))
		}
	}
	return texts
}

// unlit are circuits through which no light will come.
func (k known) unlit(x *Part) (texts []string) {
	sw := k.state.Switch(x.Switch)
	if sw == nil {
		return nil
	}
	for _, e := range x.Lit {
		if e.HasPower && e.InPower < ocs.NoLight && !sw.PowerStale(k.now) {
			texts = append(texts, fmt.Sprintf("no light enters at %d: nothing will come out", e.Circuit.Ingress))
		}
		for _, p := range []ocs.Port{e.Circuit.Ingress, e.Circuit.Egress} {
			if sw.Shut[p] {
				texts = append(texts, fmt.Sprintf("the shutter of %d is closed: no light passes", p))
			}
		}
	}
	return texts
}

// predict says how long light and links will be away, and how that is known.
func (k known) predict(x *Part, device string) {
	switch {
	case x.Change.Add.Len() == 0 && x.Change.Remove.Len() == 0:
		return
	case x.Change.Add.Len() == 0:
		x.Basis = "the light goes for good: nothing takes its place"
		return
	}
	switching, basis := k.switching(x.Switch, device)
	if x.Change.Remove.Len() == 0 {
		x.Basis = "no circuit that is lit is touched"
	} else {
		x.Outage, x.Basis = switching, basis
	}
	up, why := k.linkUp(x, switching)
	x.LinkUp = up
	if why != "" {
		x.Basis += "; " + why
	}
}

// switching is how long a switch takes to move light, as ocslab plan predicts it.
func (k known) switching(sw, device string) (time.Duration, string) {
	// Deleting alone is quick: it brings no light.
	entries := slices.DeleteFunc(slices.Clone(k.entries), func(e history.Entry) bool { return e.Change.Add.Len() == 0 })
	if ack, n := history.MedianAck(entries, device); n > 0 {
		return ack, fmt.Sprintf("light: the median acknowledgement in the history (%d)", n)
	}
	if s, ok := k.file.Switch(sw); ok && s.Emulate != nil && s.Emulate.Switching != nil {
		return *s.Emulate.Switching, "light: emulate.switching in the lab file"
	}
	return 0, "light: not known, as this switch has no history yet"
}

// linkUp is how long the slowest link behind a change takes from the command until it is
// back.
func (k known) linkUp(x *Part, switching time.Duration) (longest time.Duration, basis string) {
	for _, e := range x.Lit {
		n := k.state.NIC(e.To)
		if n == nil {
			continue
		}
		up, why := k.seenLinkUp(n)
		if why == "" {
			up, why = firmwareLinkUp(n, x.Outage, switching)
		}
		if up > longest || basis == "" {
			longest, basis = up, why
		}
	}
	return longest, basis
}

// enoughMoves is how many earlier reconfigurations a prediction rests on at most.
const enoughMoves = 9

// seenLinkUp is the median of what a NIC took in earlier reconfigurations of this session.
func (k known) seenLinkUp(n *NIC) (time.Duration, string) {
	var took []time.Duration
	for _, m := range k.state.Moves {
		if d, ok := carrierBack(m, n.Name); ok && len(took) < enoughMoves {
			took = append(took, d)
		}
	}
	if len(took) == 0 {
		return 0, ""
	}
	slices.Sort(took)
	return took[len(took)/2], fmt.Sprintf("link: %s in %s before", n.Name, natural.Count(len(took), "move"))
}

// carrierBack is the time from the command of a reconfiguration to the carrier of a NIC.
func carrierBack(m *Move, nic string) (time.Duration, bool) {
	var command, up timeline.Interval
	var sent, seen bool
	for _, x := range m.Marks {
		switch {
		case x.Stage == timeline.Command && (!sent || x.Latest > command.Latest):
			command, sent = x.Interval, true
		case x.Stage == timeline.CarrierUp && x.Subject == nic:
			up, seen = x.Interval, true
		}
	}
	d := time.Duration(up.Mid() - command.Mid())
	return d, sent && seen && d > 0
}

// firmwareLinkUp is what the profile of a NIC's firmware predicts.
func firmwareLinkUp(n *NIC, outage, switching time.Duration) (time.Duration, string) {
	if n.Firmware == "" {
		return 0, fmt.Sprintf("link: not known, as %s has no firmware in the lab file", n.Name)
	}
	p, err := firmwarenotes.Find(n.Firmware)
	if err != nil {
		return 0, fmt.Sprintf("link: not known: %v", err)
	}
	name := strings.TrimSpace(p.Name)
	if outage > 0 && n.Carrier == CarrierUp && outage < p.Debounce.Median {
		return 0, fmt.Sprintf("link: the firmware %s does not notice so short a dark", name)
	}
	return switching + p.Detect.Median + p.Train.Median + p.Carrier.Median, "link: the medians of firmware " + name
}
