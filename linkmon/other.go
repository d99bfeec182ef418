//go:build !linux

package linkmon

import (
	"errors"
	"fmt"

	"github.com/ocslab/ocslab/internal/netns"
)

// sysfs does not exist.
type sysfs struct{ Counters }

func openSysfs(*netns.NS) (Counters, error) {
	return nil, fmt.Errorf("the carrier counters of network interfaces are read on Linux only; give the host Counters of its own: %w", errors.ErrUnsupported)
}

func (*sysfs) close() {}

// startAnnouncer says that there is nothing to listen to.
func (h *host) startAnnouncer() {
	const why = "Linux only"
	for _, name := range []string{"netlink", "bpf", "sync"} {
		h.sources = append(h.sources, Source{Host: h.Name, Name: name, Why: why})
	}
}

// newThread is never called: only hosts without counters of their own need it.
func newThread(m *Monitor) pace { return &sleeper{m} }

type syncer struct{}

func (*syncer) poke(*link) {}
func (*syncer) close()     {}
