package watch

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Machine is what has to be known of a machine to make something of readings of its clock.
type Machine struct {
	// Boot tells this boot from others; "" where that is not known.
	Boot string `json:"boot,omitempty"`
	// AsleepNS is how long it has been suspended since it booted: its monotonic clock stood
	// still meanwhile. Between two namespaces of time it may differ by a constant.
	AsleepNS int64 `json:"asleep_ns,omitempty"`
	// AxisNS is how far the axis of its program may be from the machine's clock.
	AxisNS int64 `json:"axis_ns"`
	// Own says that the axis is the program's own: another program of the machine has another.
	Own bool `json:"own,omitempty"`
}

// ThisMachine returns what is to be known of this one.
func ThisMachine() Machine {
	now := time.Now()
	m := Machine{AxisNS: int64(timeline.HostAxis().Span(now, now).Width()+1) / 2}
	m.AsleepNS, m.Own = asleep()
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		m.Boot = strings.TrimSpace(string(id))
	}
	return m
}

// Machine asks the agent of a host for its machine. An agent too old to know leaves all but
// Own zero; one that does not answer for seconds is an error. A host without an agent that runs is an error.
func (w *Watch) Machine(ctx context.Context, host string) (Machine, error) {
	a, err := w.agentOf(host)
	if err != nil {
		return Machine{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, agentQuiet)
	defer cancel()
	r, err := a.ask(ctx, Question{Kind: "machine"})
	if err != nil {
		return Machine{}, fmt.Errorf("agent of host %s: %w", host, err)
	}
	if r.Machine == nil {
		return Machine{Own: true}, nil
	}
	return *r.Machine, nil
}

// ReadClock asks the agent of a host for its clock once: it read its between sent and
// received, which are on our axis. What the Watch itself knows of the clock is better for it,
// too. A host without an agent that runs is an error.
func (w *Watch) ReadClock(ctx context.Context, host string) (sent, its, received int64, err error) {
	a, err := w.agentOf(host)
	if err != nil {
		return 0, 0, 0, err
	}
	if sent, its, received, err = a.exchange(ctx); err != nil {
		return 0, 0, 0, fmt.Errorf("agent of host %s: %w", host, err)
	}
	return sent, its, received, nil
}

// Agents returns the hosts whose agents run, in no order.
func (w *Watch) Agents() []string {
	var names []string
	for _, a := range w.running() {
		names = append(names, a.host.Name)
	}
	return names
}

// agentOf returns the agent of a host.
func (w *Watch) agentOf(host string) (*agent, error) {
	list := w.running()
	i := slices.IndexFunc(list, func(a *agent) bool { return a.host.Name == host })
	if i < 0 {
		return nil, fmt.Errorf("no agent of host %s runs", host)
	}
	return list[i], nil
}
