package linkmon

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/netns"
)

// DefaultPoll is the pause between two sweeps of the counters. On a
// virtual machine of 2026 it costs a fifth of a core for 16 interfaces.
const DefaultPoll = 100 * time.Microsecond

// Options of Start. The zero Options watch all interfaces of this host but lo.
type Options struct {
	Hosts []Host        // none: this one, with all its interfaces but lo
	Poll  time.Duration // pause between sweeps of the counters; 0 is DefaultPoll

	// Tight sweeps without a pause: a whole core for a few microseconds of
	// resolution.
	Tight bool

	// Sync makes the kernel announce each change that is seen now, and not up to
	// a second later (ETHTOOL_GLINK, Linux 6.8). Nothing is gained for the
	// transitions themselves.
	Sync bool

	// NoCounters takes transitions from netlink alone, as ordinary listeners do,
	// to show what that misses. The counters are read only for the accounting.
	NoCounters bool

	NoNetlink bool // no announcements; renames, states and new interfaces up to 250 ms later
	NoBPF     bool // announcements are stamped when they are read
}

// Host is a network namespace of this machine that stands for a host.
type Host struct {
	// Name of the host in events and marks; "" is os.Hostname. No two may share one.
	Name string

	// NS is its namespace; nil is the one we run in. It may be closed after Start.
	// The monitor's sockets in it, for netlink and for Sync, keep the namespace alive
	// until Close.
	NS *netns.NS

	// Interfaces are names or patterns as for [path.Match]. None: every one but
	// lo. What does not exist yet is taken up when it appears.
	Interfaces []string

	// Counters says where the carrier counters come from; nil: from the kernel.
	// Given, the kernel is not asked for anything about this host.
	Counters Counters
}

// Counters is where the carrier counters of a host come from, if not from the
// kernel: an emulation without network devices, or a test. Methods are called from
// one goroutine at a time, but not those of different hosts.
type Counters interface {
	// Interfaces lists what there is now. It is called about each 250 ms.
	Interfaces() ([]Interface, error)
	// Open gives access to one of them. It fails with ErrGone if that no longer exists.
	Open(Interface) (Counter, error)
}

// Interface is a network interface. Its index is its identity; the name may change.
type Interface struct {
	Index int
	Name  string
}

// Counter counts the carrier transitions of one interface. After it was opened,
// one goroutine calls its methods. They fail with ErrGone when the interface no
// longer exists; any other error is reported and tried again.
//
// Counters start anywhere and wrap at 2^32.
type Counter interface {
	Changes() (uint32, error)             // carrier_changes: up and down together
	UpDown() (up, down uint32, err error) // their sum is Changes
	Carrier() (bool, error)               // an error: it cannot be known now
	Close() error
}

// ErrGone is an interface that no longer exists.
var ErrGone = errors.New("the interface is gone")

// withDefaults checks the options and fills them in.
func (opt Options) withDefaults() (Options, error) {
	switch {
	case opt.Poll < 0:
		return opt, fmt.Errorf("linkmon: the time between sweeps is %v; want a positive one, or 0 for %v", opt.Poll, DefaultPoll)
	case opt.NoCounters && opt.NoNetlink:
		return opt, errors.New("linkmon: with neither counters nor netlink there is nothing to look at")
	case opt.Poll == 0:
		opt.Poll = DefaultPoll
	}
	hosts := opt.Hosts
	if len(hosts) == 0 {
		hosts = make([]Host, 1)
	}
	opt.Hosts = make([]Host, len(hosts))
	taken := map[string]bool{}
	for i, h := range hosts {
		if h.Name == "" {
			name, err := os.Hostname()
			if err != nil {
				return opt, fmt.Errorf("linkmon: a host without a name needs one: %w", err)
			}
			h.Name = name
		}
		if taken[h.Name] {
			return opt, fmt.Errorf("linkmon: two hosts are called %q; their marks could not be told apart", h.Name)
		}
		taken[h.Name] = true
		for _, p := range h.Interfaces {
			if _, err := path.Match(p, ""); err != nil {
				return opt, fmt.Errorf("linkmon: host %s: interface %q: %w", h.Name, p, err)
			}
		}
		if opt.NoCounters && h.Counters != nil {
			return opt, fmt.Errorf("linkmon: host %s: counters of its own and NoCounters contradict each other", h.Name)
		}
		opt.Hosts[i] = h
	}
	return opt, nil
}

// wants reports whether an interface of that name is to be watched.
func (h *Host) wants(name string) bool {
	if len(h.Interfaces) == 0 {
		return name != "lo"
	}
	for _, p := range h.Interfaces {
		if ok, _ := path.Match(p, name); ok || p == name {
			return true
		}
	}
	return false
}

// exact returns the names that are wanted as they stand.
func (h *Host) exact() []string {
	var names []string
	for _, p := range h.Interfaces {
		if !strings.ContainsAny(p, `*?[\`) {
			names = append(names, p)
		}
	}
	return names
}
