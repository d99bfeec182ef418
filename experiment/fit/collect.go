package fit

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/experiment/runs"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// value is one duration, and of what.
type value struct {
	timeline.Interval
	of   string // path or NIC
	move int    // which reconfiguration it is of, in the order of the runs

	// Of link-ups: when, on the axis of its session, and which session that was.
	at      timeline.Interval
	session string
}

// measured is what runs have to say, by switch and by NIC.
type measured struct {
	switches map[string]*switchValues
	nics     map[string]*nicValues
	lab      *lab.File // of the first run that has one; nil: none
	move     int       // reconfigurations so far
}

// switchValues are of one switch.
type switchValues struct {
	device       runs.Device
	single, bulk []value
	// acks counts changes by whether the acknowledgement was surely before the last light,
	// surely after it, or neither.
	ackBefore, ackAfter, ackOpen int
}

// nicValues are of one NIC.
type nicValues struct {
	name, firmware, driver           string
	debounce, firmwareUp, carrier    []value
	lightCarrier                     []value
	held                             int
	ups                              map[string][]int64 // when its link came up, by session
	emulated                         bool
	sawDark, sawCarrier, sawFirmware bool
}

// collect takes runs apart. rises are the time constants of light by switch. The error matches [ErrMixed].
func collect(list []*runs.Run, opt Options, rises map[string]time.Duration) (*measured, error) {
	m := &measured{switches: map[string]*switchValues{}, nics: map[string]*nicValues{}}
	for _, r := range list {
		if err := m.setups(r, list[0], opt); err != nil {
			return nil, err
		}
		if m.lab == nil && len(r.Lab) > 0 {
			if l, err := lab.Parse(cmp.Or(r.Meta.LabPath, "lab.yaml"), r.Lab); err == nil {
				m.lab = l
			}
		}
	}
	for _, r := range list {
		m.run(r, opt, rises)
	}
	return m, nil
}

// setups enters the devices and NICs of a run, and refuses those that differ.
func (m *measured) setups(r, first *runs.Run, opt Options) error {
	switch {
	case r.Meta.Lab != first.Meta.Lab:
		return fmt.Errorf("%w: %s is of the lab %s, %s of %s", ErrMixed, first.Meta.ID, first.Meta.Lab, r.Meta.ID, r.Meta.Lab)
	case r.Meta.Emulated != first.Meta.Emulated:
		return fmt.Errorf("%w: of %s and %s one was emulated and the other was not", ErrMixed, first.Meta.ID, r.Meta.ID)
	}
	if opt.Condition > 0 && (r.Plan == nil || r.Plan.Condition(opt.Condition) == nil) {
		return fmt.Errorf("%w: %s has no condition %d", ErrNothing, r.Meta.ID, opt.Condition)
	}
	if r.Plan != nil && opt.Condition == 0 && !opt.Mix {
		for _, c := range r.Plan.Conditions[min(1, len(r.Plan.Conditions)):] {
			if of := r.Plan.Conditions[0]; c.Setup != of.Setup {
				return fmt.Errorf("%w: the conditions %q and %q of %s are different set-ups: fit one, by its number, with --condition",
					ErrMixed, of.Label, c.Label, r.Meta.ID)
			}
		}
	}
	for _, s := range r.Setups {
		if opt.Condition > 0 && !slices.Contains(s.Conditions, opt.Condition) {
			continue
		}
		for _, d := range s.Devices {
			have := m.switches[d.Name]
			if have == nil {
				m.switches[d.Name] = &switchValues{device: d}
				continue
			}
			if what := have.device.Differs(d); what != "" && !opt.Mix {
				return fmt.Errorf("%w: the %s of %s differs: --mix fits them as one", ErrMixed, what, d.Name)
			}
		}
		for _, n := range s.NICs {
			have := m.nics[n.Name]
			if have == nil {
				m.nics[n.Name] = &nicValues{name: n.Name, firmware: n.Firmware, driver: n.Driver, ups: map[string][]int64{}, emulated: r.Meta.Emulated}
				continue
			}
			if have.firmware != n.Firmware && !opt.Mix {
				return fmt.Errorf("%w: %s had the firmware %q and then %q: --mix fits them as one", ErrMixed, n.Name, have.firmware, n.Firmware)
			}
		}
	}
	return nil
}

// run enters the durations of a run.
func (m *measured) run(r *runs.Run, opt Options, rises map[string]time.Duration) {
	fibres := map[string]string{} // the NIC that receives from "rail0/33"
	for _, s := range r.Setups {
		for _, n := range s.NICs {
			fibres[n.Rx] = n.Name
		}
	}
	sessions := map[int]string{}
	for _, s := range r.Sessions {
		sessions[s.Number] = cmp.Or(s.Boot, r.Meta.ID)
	}
	averaging := map[string]time.Duration{}
	if !opt.AsRecorded {
		for _, setup := range r.Setups {
			for _, d := range setup.Devices {
				averaging[d.Name] = time.Duration(d.AveragingNS)
			}
		}
	}
	for i := range r.Reconfigurations {
		rec := &r.Reconfigurations[i]
		if rec.Null || opt.Condition > 0 && rec.Condition != opt.Condition {
			continue
		}
		m.move++
		s := seenIn(r.MarksOf(rec.Number), averaging, rises)
		session := sessions[rec.Session]
		missing := map[key]bool{}
		for _, e := range r.ExpectedOf(rec.Number) {
			missing[key{e.Stage, e.Subject}] = !rec.Untold(e)
		}
		for _, name := range slices.Sorted(maps.Keys(rec.Added)) {
			if opt.Switch == "" || opt.Switch == name {
				m.moved(name, rec, s, missing)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(rec.Removed)) {
			for c := range rec.Removed[name].All() {
				if nic := m.nics[fibres[port(name, c.Egress)]]; nic != nil {
					nic.dark(s, m.move, port(name, c.Egress), slices.Contains(rec.Held, nic.name))
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(rec.Added)) {
			for c := range rec.Added[name].All() {
				if nic := m.nics[fibres[port(name, c.Egress)]]; nic != nil {
					nic.lit(s, m.move, port(name, c.Egress), rec, session, missing)
				}
			}
		}
	}
	for _, n := range m.nics {
		for _, ups := range n.ups {
			slices.Sort(ups)
		}
	}
}

func port(onSwitch string, p ocs.Port) string { return lab.PortRef{Switch: onSwitch, Port: p}.String() }

type key struct {
	stage   timeline.Stage
	subject string
}

// seenIn returns the mark of each stage and subject that counts: of what is lost the first,
// of what comes back the last. Where a switch's monitors average, its light is sharpened.
func seenIn(marks []timeline.Mark, averaging, rises map[string]time.Duration) map[key]timeline.Interval {
	s := map[key]timeline.Interval{}
	for _, x := range marks {
		k := key{x.Stage, x.Subject}
		have, ok := s[k]
		first := x.Stage == timeline.Command || x.Stage == timeline.Dark || x.Stage == timeline.CarrierDown || x.Stage == timeline.TrafficLost
		if !ok || first && x.Earliest < have.Earliest || !first && x.Earliest > have.Earliest {
			s[k] = x.Interval
		}
	}
	for k, x := range s {
		if onSwitch, _, isPort := strings.Cut(k.subject, "/"); isPort {
			s[k] = sharpened(k.stage, x, averaging[onSwitch], rising(rises[onSwitch]))
		}
	}
	return s
}

// sharpened takes away from the interval of a crossing what a monitor that averages evenly
// over its averaging time makes impossible. A mark allows the crossing anywhere in that time
// before a reading; but the mean falls to half, which is dark, when half of the time is over,
// and comes to within 0.5 dB when a share of 10^-0.05 is. Of light that rises exponentially the
// mean lags by one time constant, while the light itself takes more to come as near; rising is
// the difference.
func sharpened(stage timeline.Stage, x timeline.Interval, averaging, rising time.Duration) timeline.Interval {
	part := map[timeline.Stage]float64{
		timeline.Dark: math.Pow(10, -timeline.DefaultDark/10), timeline.Light: math.Pow(10, -timeline.DefaultWithin/10),
	}[stage]
	if part == 0 || averaging <= 0 {
		return x
	}
	lit := time.Duration(part * float64(averaging))
	if stage == timeline.Dark {
		lit = averaging - lit
	}
	to := timeline.Interval{Earliest: x.Earliest, Latest: max(x.Latest-int64(lit), x.Earliest)}
	if x.Width() > averaging { // else it was cut off at the command
		to.Earliest = min(x.Earliest+int64(averaging-lit), to.Latest)
	}
	if stage == timeline.Light {
		to.Earliest, to.Latest = to.Earliest+int64(rising), to.Latest+int64(rising)
	}
	return to
}

// rising is how much longer light of a time constant takes to settle than a mean of it shows.
func rising(constant time.Duration) time.Duration {
	return time.Duration((-math.Log(1-math.Pow(10, -timeline.DefaultWithin/10)) - 1) * float64(constant))
}

// since is how long after its cause an effect came. It was not before.
func since(effect, cause timeline.Interval) timeline.Interval {
	d := effect.Sub(cause)
	return timeline.Interval{Earliest: max(d.Earliest, min(0, d.Latest)), Latest: d.Latest}
}

// moved enters what a switch did.
func (m *measured) moved(name string, rec *runs.Reconfiguration, s map[key]timeline.Interval, missing map[key]bool) {
	sw := m.switches[name]
	command, ok := s[key{timeline.Command, name}]
	if sw == nil || !ok || rec.Added[name].Len() == 0 {
		return
	}
	into := &sw.single
	if rec.Added[name].Len() > 1 {
		into = &sw.bulk
	}
	var last timeline.Interval
	all := true
	for c := range rec.Added[name].All() {
		k := key{timeline.Light, port(name, c.Egress)}
		light, came := s[k]
		switch {
		case came:
			*into = append(*into, value{Interval: since(light, command), of: c.String(), move: m.move})
			last = timeline.Later(last, light)
		case missing[k] && rec.PatienceNS > 0:
			*into = append(*into, value{Interval: timeline.Interval{Earliest: rec.PatienceNS, Latest: timeline.Never}, of: c.String(), move: m.move})
			all = false
		default:
			all = false
		}
	}
	ack, ok := s[key{timeline.Ack, name}]
	switch {
	case !ok || !all:
	case ack.Before(last):
		sw.ackBefore++
	case last.Before(ack):
		sw.ackAfter++
	default:
		sw.ackOpen++
	}
}

// dark enters how long a NIC took to notice that its light had gone.
func (n *nicValues) dark(s map[key]timeline.Interval, move int, at string, held bool) {
	dark, ok := s[key{timeline.Dark, at}]
	if !ok {
		dark, ok = s[key{timeline.Dark, n.name}]
	}
	if !ok {
		return
	}
	n.sawDark = true
	if down, ok := s[key{timeline.CarrierDown, n.name}]; ok {
		n.debounce = append(n.debounce, value{Interval: since(down, dark), of: n.name, move: move})
		return
	}
	if light, ok := s[key{timeline.Light, at}]; ok && held {
		n.held++
		if gap := light.Sub(dark).Earliest; gap > 0 {
			n.debounce = append(n.debounce, value{Interval: timeline.Interval{Earliest: gap, Latest: timeline.Never}, of: n.name, move: move})
		}
	}
}

// lit enters how long a NIC took to make a link of its light.
func (n *nicValues) lit(s map[key]timeline.Interval, move int, at string, rec *runs.Reconfiguration, session string, missing map[key]bool) {
	if slices.Contains(rec.Held, n.name) {
		return // the link was never gone
	}
	up, came := s[key{timeline.CarrierUp, n.name}]
	if came {
		n.ups[session] = append(n.ups[session], up.Mid())
	}
	light, ok := s[key{timeline.Light, at}]
	if !ok {
		light, ok = s[key{timeline.Light, n.name}]
	}
	if !ok {
		return
	}
	open := func(from timeline.Interval) timeline.Interval {
		return timeline.Interval{Earliest: max(rec.PatienceNS-from.Latest+rec.MonoNS, 0), Latest: timeline.Never}
	}
	v := value{of: n.name, move: move, at: light, session: session}
	if firmware, ok := s[key{timeline.Firmware, n.name}]; ok {
		n.sawFirmware = true
		v.Interval = since(firmware, light)
		n.firmwareUp = append(n.firmwareUp, v)
		if came {
			v.Interval = since(up, firmware)
			n.carrier = append(n.carrier, v)
		}
	}
	switch {
	case came:
		n.sawCarrier = true
		v.Interval = since(up, light)
		n.lightCarrier = append(n.lightCarrier, v)
	case missing[key{timeline.CarrierUp, n.name}] && rec.PatienceNS > 0:
		v.Interval = open(light)
		n.lightCarrier = append(n.lightCarrier, v)
	}
}

// recent returns how often the link had come up within a window before its light came.
func (n *nicValues) recent(v value, window int64) int {
	count := 0
	for _, t := range n.ups[v.session] {
		if t > v.at.Mid()-window && t <= v.at.Mid() {
			count++
		}
	}
	return count
}
