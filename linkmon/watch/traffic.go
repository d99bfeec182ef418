package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/linkmon/probe"
	"github.com/ocslab/ocslab/timeline"
)

// SourceRoundTrip is the source of marks of traffic between two other machines: a
// packet goes there and back, so that one clock times it. A mark of "a>b" is of both
// directions together, as seen from a.
const SourceRoundTrip = "round-trip"

const sourceProbe = "probe"

// Endpoint returns where the traffic of an interface begins and ends: its first IPv4
// address. An interface without one is an error.
func (h *Host) Endpoint(iface string) (probe.Endpoint, error) {
	e := probe.Endpoint{Name: h.Name + "/" + iface, NS: h.NS, Interface: iface}
	find := func() error {
		i, err := net.InterfaceByName(iface)
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		addrs, err := i.Addrs()
		if err != nil {
			return fmt.Errorf("%s: %w", e.Name, err)
		}
		e.MAC = i.HardwareAddr
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() {
				e.Addr = p.Addr()
				return nil
			}
		}
		return fmt.Errorf("%s has no IPv4 address, so no traffic is sent from or to it", e.Name)
	}
	if h.NS != nil {
		return e, h.NS.Do(find)
	}
	return e, find()
}

// nicAddress is a NIC as an agent describes it, and as it is told of those of others.
type nicAddress struct {
	NIC  string `json:"nic"`
	Addr string `json:"addr"`
	MAC  string `json:"mac"`
}

// traffic is what an agent is asked to send and to send back.
type traffic struct {
	PaceNS  int64        `json:"pace_ns"`
	Spin    bool         `json:"spin,omitempty"`
	Reflect []string     `json:"reflect"` // NICs of the agent
	Peers   []nicAddress `json:"peers"`   // of other machines
	Flows   []probe.Flow `json:"flows"`   // from NICs of the agent to peers
}

// flowState is how a flow of an agent stands.
type flowState struct {
	Flow     probe.Flow `json:"flow"`
	Alive    bool       `json:"alive"`
	JudgedNS int64      `json:"judged_ns"`
	Outages  uint64     `json:"outages"`
}

// Answer answers the questions "machine", "nics", "traffic" and "flows" of another ocslab;
// see agent. It returns false for any other.
func (w *Watch) Answer(ctx context.Context, q Question) (Question, bool) {
	a := Question{Kind: q.Kind, ID: q.ID}
	switch q.Kind {
	case "nics":
		for _, h := range w.hosts {
			for _, l := range w.monitor.Links() {
				if e, err := h.Endpoint(l.Interface); err == nil && l.Host == h.Name {
					a.NICs = append(a.NICs, nicAddress{e.Name, e.Addr.String(), e.MAC.String()})
				}
			}
		}
	case "machine":
		m := ThisMachine()
		a.Machine = &m
	case "traffic":
		if q.Traffic == nil {
			a.Error = "no traffic is asked for"
		} else if err := w.carry(ctx, *q.Traffic); err != nil {
			a.Error = err.Error()
		}
	case "flows":
		for _, f := range w.Flows() {
			a.Flows = append(a.Flows, flowState{f.Flow, f.Alive, f.JudgedNS, f.Outages})
		}
	default:
		return a, false
	}
	return a, true
}

// carry reflects and sends what another ocslab asks for.
func (w *Watch) carry(ctx context.Context, t traffic) error {
	local := func(name string) (probe.Endpoint, error) {
		host, iface, _ := strings.Cut(name, "/")
		if h := w.hosts[host]; h != nil {
			return h.Endpoint(iface)
		}
		return probe.Endpoint{}, fmt.Errorf("%s is not here", name)
	}
	var errs []error
	for _, name := range t.Reflect {
		e, err := local(name)
		if err == nil {
			var r *probe.Reflector
			if r, err = probe.Reflect(e, 0); err == nil {
				w.mu.Lock()
				w.reflectors = append(w.reflectors, r)
				w.mu.Unlock()
			}
		}
		errs = append(errs, err)
	}
	if len(t.Flows) == 0 {
		return errors.Join(errs...)
	}
	opt := probe.Options{Flows: t.Flows, Pace: time.Duration(t.PaceNS), Spin: t.Spin}
	known := map[string]bool{}
	for _, f := range t.Flows {
		opt.Host, _, _ = strings.Cut(f.From, "/")
		if known[f.From] {
			continue
		}
		known[f.From] = true
		e, err := local(f.From)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		opt.Endpoints = append(opt.Endpoints, e)
	}
	for _, p := range t.Peers {
		addr, err := netip.ParseAddr(p.Addr)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		mac, err := net.ParseMAC(p.MAC)
		if err != nil {
			return errors.Join(append(errs, err)...)
		}
		opt.Endpoints = append(opt.Endpoints, probe.Endpoint{Name: p.NIC, Addr: addr, MAC: mac, Reflected: true})
	}
	p, err := probe.Start(ctx, opt)
	if err == nil {
		w.follow(p, SourceRoundTrip)
	}
	return errors.Join(append(errs, err)...)
}

// follow passes on what a probe tells, under the name of a source, and closes it in
// the end.
func (w *Watch) follow(p *probe.Probe, source string) {
	w.mu.Lock()
	w.probes = append(w.probes, p)
	w.mu.Unlock()
	w.readers.Go(func() { w.watchTraffic(p, source) })
}

// startPairs lets agents that run send traffic to each other, as far as they do not yet. What
// cannot be had is a source that is off.
func (w *Watch) startPairs(ctx context.Context) {
	if len(w.opt.Pairs) == 0 {
		return
	}
	w.pairing.Lock()
	defer w.pairing.Unlock()
	agents := map[string]*agent{}
	nics := map[string]nicAddress{}
	ask := map[*agent]*traffic{}
	for _, a := range w.running() {
		agents[a.host.Name] = a
		ask[a] = &traffic{PaceNS: int64(w.opt.Probe.Pace), Spin: w.opt.Probe.Spin}
		if r, err := a.ask(ctx, Question{Kind: "nics"}); err == nil {
			for _, n := range r.NICs {
				nics[n.NIC] = n
			}
		}
	}
	var going []probe.Flow
	for _, f := range w.opt.Pairs {
		from, to := agents[hostOf(f.From)], agents[hostOf(f.To)]
		why := ""
		switch {
		case w.opt.Lenient && (from == nil && w.far(f.From) || to == nil && w.far(f.To)):
			why = "the agent of one of its hosts does not run"
		case from == nil || to == nil:
			why = "traffic is measured between NICs of this machine, or between those of agents"
		case nics[f.From].Addr == "" || nics[f.To].Addr == "":
			why = "one of its NICs has no IPv4 address"
		}
		if why != "" {
			w.source(Source{Subject: f.String(), Name: SourceRoundTrip, Why: why})
			continue
		}
		sends, reflects := slices.Contains(from.carried.Flows, f), slices.Contains(to.carried.Reflect, f.To)
		if sends && reflects {
			continue
		}
		going = append(going, f)
		if !sends {
			ask[from].Flows = append(ask[from].Flows, f)
			if !slices.Contains(ask[from].Peers, nics[f.To]) {
				ask[from].Peers = append(ask[from].Peers, nics[f.To])
			}
		}
		if !reflects && !slices.Contains(ask[to].Reflect, f.To) {
			ask[to].Reflect = append(ask[to].Reflect, f.To)
		}
	}
	failed := map[string]string{} // by host
	for a, t := range ask {
		if len(t.Flows)+len(t.Reflect) == 0 {
			continue
		}
		r, err := a.ask(ctx, Question{Kind: "traffic", Traffic: t})
		switch {
		case err != nil:
			failed[a.host.Name] = err.Error()
		case r.Error != "":
			failed[a.host.Name] = r.Error
		default:
			a.carried.Flows = append(a.carried.Flows, t.Flows...)
			a.carried.Reflect = append(a.carried.Reflect, t.Reflect...)
		}
	}
	for _, f := range going {
		why := failed[hostOf(f.From)]
		if why == "" {
			why = failed[hostOf(f.To)]
		}
		w.source(Source{Subject: f.String(), Name: SourceRoundTrip, On: why == "", Why: why})
	}
}

// far reports whether the host of a NIC is watched by an agent.
func (w *Watch) far(nic string) bool { return w.hosts[hostOf(nic)] == nil }

func hostOf(nic string) string {
	host, _, _ := strings.Cut(nic, "/")
	return host
}

// Flows returns how the traffic of each pair stands. Of those of agents, only whether
// packets arrive, and how often they did not, is known.
func (w *Watch) Flows() []probe.FlowState {
	w.mu.Lock()
	probes := slices.Clone(w.probes)
	w.mu.Unlock()
	var list []probe.FlowState
	for _, p := range probes {
		list = append(list, p.Flows()...)
	}
	for _, a := range w.running() {
		if len(w.opt.Pairs) == 0 || w.isSilent(a.host.Name) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), agentQuiet)
		r, err := a.ask(ctx, Question{Kind: "flows"})
		cancel()
		if err != nil {
			continue // told by others
		}
		now := timeline.HostAxis().NS(time.Now())
		for _, f := range r.Flows {
			judged, ok := a.clock.Here(timeline.Point(f.JudgedNS), now)
			if ok {
				list = append(list, probe.FlowState{Flow: f.Flow, Alive: f.Alive, JudgedNS: judged.Earliest, Outages: f.Outages})
			}
		}
	}
	return list
}
