package wiring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/internal/pause"
	"github.com/ocslab/ocslab/linkmon/watch"
)

// voice is what a NIC says its name with.
type voice struct {
	conn conn
}

// conn sends and receives payloads of frames at one NIC.
type conn interface {
	// send sends to whoever is at the other end of the fibre.
	send(payload []byte) error
	// receive waits for a payload until a time at the latest, and returns os.ErrDeadlineExceeded
	// then. It may return earlier with another error, and is then not called again.
	receive(until time.Time) ([]byte, error)
	Close() error
}

// openVoice opens what a NIC says its name with.
func (t *Testbed) openVoice(n *nic, h *watch.Host) (*voice, error) {
	if t.Fabric != nil && h.NS == nil {
		wire, err := t.Fabric.Wire(n.Host, n.Name)
		if err != nil {
			return nil, err
		}
		var to []netip.Addr
		for _, fh := range t.Fabric.Hosts() {
			for _, i := range fh.NICs {
				to = append(to, i.Addr.Addr())
			}
		}
		return &voice{conn: newWireConn(wire, to)}, nil
	}
	c, err := openFrames(h.NS, n.Name)
	if err != nil {
		return nil, err
	}
	return &voice{conn: c}, nil
}

// How often a name is said, how far apart, and how long is listened after the last.
const (
	hails     = 5
	hailPause = 10 * time.Millisecond
	hailTail  = 100 * time.Millisecond
)

// Hail has the NICs say their names.
func (t *Testbed) Hail(ctx context.Context, lit []string) (Hail, error) {
	h := Hail{Sent: map[string]bool{}, Heard: map[string][]string{}, Mute: map[string]string{}}
	var able []*nic
	for _, n := range t.nics {
		if n.voice == nil {
			h.Mute[n.name] = n.mute
			continue
		}
		able = append(able, n)
	}
	if len(able) == 0 {
		whys := slices.Compact(slices.Sorted(maps.Values(h.Mute)))
		return h, fmt.Errorf("%w: %s", ErrMute, whys[0])
	}
	expected := slices.DeleteFunc(slices.Clone(lit), func(name string) bool {
		return !slices.ContainsFunc(able, func(n *nic) bool { return n.name == name })
	})
	if err := t.waitCarriers(ctx, expected); err != nil {
		return h, err
	}
	run := rand.Uint64()
	heard := map[string]map[string]bool{}
	var listeners sync.WaitGroup
	until := time.Now().Add(hails*hailPause + hailTail)
	for _, n := range able {
		if !t.carrier[n.name] {
			continue
		}
		from := map[string]bool{} // of this goroutine until it has ended
		heard[n.name] = from
		listeners.Go(func() {
			for {
				payload, err := n.voice.conn.receive(until)
				if err != nil {
					return
				}
				if r, name, err := parseName(payload); err == nil && r == run {
					from[name] = true
				}
			}
		})
	}
	err := t.say(ctx, able, run, h.Sent, h.Mute)
	listeners.Wait()
	t.carriers()
	for name, from := range heard {
		if !t.carrier[name] { // it went meanwhile: what it did not hear proves nothing
			delete(h.Sent, name)
			continue
		}
		h.Heard[name] = slices.Sorted(maps.Keys(from))
	}
	return h, err
}

// say sends the names of all that have a carrier.
func (t *Testbed) say(ctx context.Context, able []*nic, run uint64, sent map[string]bool, mute map[string]string) error {
	for range hails {
		for _, n := range able {
			if !t.carrier[n.name] {
				continue
			}
			payload, err := putName(run, n.name)
			if err == nil {
				err = n.voice.conn.send(payload)
			}
			if err != nil {
				mute[n.name] = err.Error()
				delete(sent, n.name)
				continue
			}
			sent[n.name] = true
		}
		if err := pause.For(ctx, hailPause); err != nil {
			return err
		}
	}
	return nil
}

var errEnded = errors.New("the NIC is gone")
