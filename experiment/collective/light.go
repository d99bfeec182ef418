package collective

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/experiment"
	"github.com/ocslab/ocslab/lab"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
	"github.com/ocslab/ocslab/topology/pccl"
)

// pollEvery is how often a switch that does not tell of its light by itself is asked for it while transfers
// are under way; before, it is every [experiment.DefaultPoll].
const pollEvery = 20 * time.Millisecond

// at is a cross-connect on a switch.
type at struct {
	onSwitch string
	ocs.CrossConnect
}

func (a at) String() string { return a.onSwitch + " " + a.CrossConnect.String() }

// glow is light that leaves at a port.
type glow struct {
	from  ocs.Port // where it enters; 0: nobody knows of any
	since time.Time
}

// lights is what the switches say of their light. It is safe for concurrent use.
type lights struct {
	mu    sync.Mutex // guards what follows
	ports map[string]map[ocs.Port]glow
	links map[pccl.Transfer][]at // that are wired
	news  chan struct{}          // closed when something changes
	// unread is why switches that are asked could not be read the last time, by name.
	unread map[string]error
	waited bool // somebody waits for all links

	polled []*experiment.Rig // that are asked; of watch and follow
}

func newLights() *lights {
	return &lights{ports: map[string]map[ocs.Port]glow{}, news: make(chan struct{}), unread: map[string]error{}}
}

// wire says which circuits links consist of from now on.
func (l *lights) wire(links map[pccl.Transfer][]at) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.links = links
	l.tellLocked()
}

// see takes what a port shows: light that has entered at from, 0 for none, since a time.
func (l *lights) see(onSwitch string, p, from ocs.Port, since time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ports[onSwitch] == nil {
		l.ports[onSwitch] = map[ocs.Port]glow{}
	}
	if l.ports[onSwitch][p].from != from { // else it is only brighter or darker than it was
		l.ports[onSwitch][p] = glow{from, since}
		l.tellLocked()
	}
}

func (l *lights) tellLocked() {
	close(l.news)
	l.news = make(chan struct{})
}

func (l *lights) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.news
}

// awaited reports whether somebody waits for all links.
func (l *lights) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waited
}

// await says whether somebody waits for all links.
func (l *lights) await(waited bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waited = waited
}

func (l *lights) lit(link pccl.Transfer) (since time.Time, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	circuits := l.links[link]
	for _, c := range circuits {
		g := l.ports[c.onSwitch][c.Egress]
		if g.from != c.Ingress {
			return since, false
		}
		since = latest(since, g.since)
	}
	return since, len(circuits) > 0
}

func (l *lights) dark(link pccl.Transfer) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	circuits := l.links[link]
	if len(circuits) == 0 {
		return "no circuit joins them"
	}
	var parts []string
	for _, c := range circuits {
		switch g := l.ports[c.onSwitch][c.Egress]; g.from {
		case c.Ingress:
		case 0:
			if err := l.unread[c.onSwitch]; err != nil {
				parts = append(parts, fmt.Sprintf("%v: the switch does not say: %v", c, err))
				continue
			}
			parts = append(parts, fmt.Sprintf("%v has no light", c))
		default:
			parts = append(parts, fmt.Sprintf("%v is wanted, and the light there comes from port %d", c, g.from))
		}
	}
	return strings.Join(parts, "; ")
}

// wait waits until all links are there, and returns since when.
func (l *lights) wait(ctx context.Context, patience time.Duration) (since time.Time, err error) {
	out := time.NewTimer(patience)
	defer out.Stop()
	l.await(true)
	defer l.await(false)
	for {
		changed := l.changed()
		l.mu.Lock()
		links := slices.SortedFunc(maps.Keys(l.links), byEnds)
		l.mu.Unlock()
		var missing []string
		since = time.Time{}
		for _, link := range links {
			s, ok := l.lit(link)
			if !ok {
				missing = append(missing, fmt.Sprintf("GPU %d to %d: %s", link.Src, link.Dst, l.dark(link)))
			}
			since = latest(since, s)
		}
		if len(missing) == 0 {
			return since, nil
		}
		select {
		case <-changed:
		case <-out.C:
			return since, fmt.Errorf("%w: %d of %d links are not there after %v, such as %s",
				ErrStalled, len(missing), len(links), patience, missing[0])
		case <-ctx.Done():
			return since, context.Cause(ctx)
		}
	}
}

func byEnds(a, b pccl.Transfer) int {
	if a.Src != b.Src {
		return a.Src - b.Src
	}
	return a.Dst - b.Dst
}

// watch begins to take what the switches of a testbed say, and returns what ends it. Those that do not tell of their
// light by themselves are asked while it is followed.
func (l *lights) watch(t *experiment.Testbed) (stop func()) {
	var stops []func()
	for _, r := range t.Bench.Rigs {
		if o, ok := r.Switch.(*lab.Opened); ok && o.Emulated != nil && o.Emulated.Device != nil {
			stops = append(stops, l.watchDevice(r.Name, o.Emulated.Device))
			continue
		}
		l.polled = append(l.polled, r)
	}
	return func() {
		l.polled = nil
		for _, s := range stops {
			s()
		}
	}
}

// follow begins to ask the switches that do not tell of their light, after a move has been read back, until stop is
// called. In between they are left alone: a request of ours would hold up a change. What the move has touched has no light
// until it has been seen there.
func (l *lights) follow(mv experiment.Move) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for _, r := range l.polled {
		change := mv.Reports[r.Name].Change
		for _, m := range []ocs.Map{change.Remove, change.Add} {
			for c := range m.All() {
				l.see(r.Name, c.Egress, 0, time.Now())
			}
		}
		all.Go(func() { l.poll(ctx, r) })
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// watchDevice takes an emulated switch's own light.
func (l *lights) watchDevice(name string, d *emulator.Device) (stop func()) {
	axis := timeline.HostAxis()
	return d.WatchLight(func(c emulator.LightChange) {
		from := c.From
		if !c.Lit() {
			from = 0
		}
		l.see(name, c.Port, from, axis.Time(c.AtNS))
	})
}

// poll reads circuits and power of a switch again and again. A switch that cannot be read shows no light.
func (l *lights) poll(ctx context.Context, r *experiment.Rig) {
	p := poller{rig: r, have: l.entering(r.Name), fresh: map[ocs.Port]time.Time{}}
	for {
		var lit map[ocs.Port]ocs.Port
		err := experiment.Guard(func() (err error) { lit, err = p.read(ctx); return err })
		if ctx.Err() != nil {
			return
		}
		l.polledNow(r.Name, lit, err)
		pace := pollEvery
		if l.awaited() {
			pace = experiment.DefaultPoll
		}
		if !until(ctx, time.Now().Add(pace)) {
			return
		}
	}
}

// entering returns by egress where light enters that leaves there.
func (l *lights) entering(onSwitch string) map[ocs.Port]ocs.Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	have := map[ocs.Port]ocs.Port{}
	for p, g := range l.ports[onSwitch] {
		if g.from != 0 {
			have[p] = g.from
		}
	}
	return have
}

// polledNow takes what a switch has shown, all ports where it has light, or why it could not be read.
func (l *lights) polledNow(onSwitch string, lit map[ocs.Port]ocs.Port, err error) {
	now := time.Now()
	l.mu.Lock()
	l.unread[onSwitch] = err
	var gone []ocs.Port
	for p := range l.ports[onSwitch] {
		if _, ok := lit[p]; !ok || err != nil {
			gone = append(gone, p)
		}
	}
	l.mu.Unlock()
	for _, p := range gone {
		l.see(onSwitch, p, 0, now)
	}
	if err != nil {
		return
	}
	for p, from := range lit {
		l.see(onSwitch, p, from, now)
	}
}

// poller asks a switch for its light.
type poller struct {
	rig  *experiment.Rig
	have map[ocs.Port]ocs.Port // by egress: where its circuit begins, as last read; at first, of light that was seen
	// fresh is from when on a reading of a port says something of the circuit that is there: its monitor averages, and
	// for a while it still shows the light of the circuit before.
	fresh map[ocs.Port]time.Time
}

// read returns by egress where the light that leaves there enters: what the switch says that it has connected, and
// where there is a monitor, only if that sees light.
func (p *poller) read(ctx context.Context) (map[ocs.Port]ocs.Port, error) {
	m, err := p.rig.Switch.CrossConnects(ctx)
	if err != nil {
		return nil, err
	}
	from := time.Now().Add(p.rig.Rule.Averaging)
	lit := map[ocs.Port]ocs.Port{}
	var ports []ocs.Port
	for c := range m.All() {
		lit[c.Egress] = c.Ingress
		ports = append(ports, c.Egress)
		if p.have[c.Egress] != c.Ingress {
			p.fresh[c.Egress] = from
		}
	}
	p.have = maps.Clone(lit)
	if p.rig.Meter == nil || len(ports) == 0 {
		return lit, nil
	}
	reading, err := p.rig.Meter.Power(ctx, ports...)
	for at, power := range reading.Ports {
		dark := power < ocs.NoLight || math.IsNaN(float64(power))
		if dark {
			delete(p.fresh, at) // nothing is left in it of the light before
		}
		if dark || reading.Earliest.Before(p.fresh[at]) {
			delete(lit, at)
		}
	}
	return lit, err
}
