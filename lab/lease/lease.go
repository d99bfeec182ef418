// Package lease is the right to move certain ports of a switch, kept by one program while it runs: a
// control plane that moves circuits under a training job takes it, and everybody else who goes through a lab
// is refused these ports until it ends.
//
//	held, err := lease.Take(ctx, dir, lease.Lease{Device: o.Device, Switch: "ocs1", Ports: ports, Holder: "job lab-job"})
//	...
//	defer held.Release()
//
// A lease is a file in the leases directory of the state directory, and a lock on another beside it that the
// kernel frees when the holder dies, however it dies: so a lease is in force exactly as long as its process
// lives or until it is released, and nothing has to be renewed. Token, which only grows, says which lease
// was given first.
//
// It binds those who use the same state directory. Nobody else can be kept off: switches of this kind
// have no locks.
package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/ocs"
)

// ErrLeased: somebody else has the right to move the port. It matches [ocs.ErrInterlock].
var ErrLeased = fmt.Errorf("%w: it is leased", ocs.ErrInterlock)

// Lease is the right to move ports.
type Lease struct {
	Device string     `json:"device"` // as lab.Opened has it
	Switch string     `json:"switch"` // its name, for people
	Ports  []ocs.Port `json:"ports"`
	Holder string     `json:"holder"` // for people: "job lab-job (ocslab orchestrate)"
	PID    int        `json:"pid"`
	Since  time.Time  `json:"since"`
	Token  uint64     `json:"token"` // from 1, ascending
}

// String says who has what.
func (l Lease) String() string {
	return fmt.Sprintf("%s has ports %s of %s since %s (process %d)", l.Holder, ocs.FormatPorts(l.Ports), l.Switch, l.Since.Local().Format("15:04:05"), l.PID)
}

// Held is a lease that this program has.
type Held struct {
	Lease
	dir    string
	unlock func()
	once   sync.Once
	err    error
}

// Take takes a lease on the ports. A port that another lease has, also one of this program, is an
// error that names the holder and matches [ErrLeased]. Device, Switch, Ports and Holder of l are used.
func Take(ctx context.Context, dir string, l Lease) (*Held, error) {
	dir = filepath.Join(dir, "leases")
	if err := statedir.Make(dir); err != nil {
		return nil, err
	}
	unlock, err := statedir.Lock(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	all, dead, last, err := read(dir)
	if err == nil {
		err = removeDead(dead)
	}
	if err != nil {
		return nil, err
	}
	for _, other := range all {
		if !same(other.Device, l.Device) {
			continue
		}
		for _, p := range l.Ports {
			if slices.Contains(other.Ports, p) {
				return nil, fmt.Errorf("port %d of %s: %w: %s", p, l.Switch, ErrLeased, other)
			}
		}
	}
	l.PID, l.Since, l.Token = os.Getpid(), time.Now(), last+1
	h := &Held{Lease: l, dir: dir}
	if h.unlock, err = statedir.Lock(ctx, h.path("held")); err != nil {
		return nil, err
	}
	data, err := json.Marshal(l)
	if err == nil {
		err = statedir.WriteFile(h.path("json"), append(data, '\n'))
	}
	if err == nil {
		err = statedir.WriteFile(filepath.Join(dir, "last"), []byte(strconv.FormatUint(l.Token, 10)+"\n"))
	}
	if err != nil {
		_ = statedir.Remove(h.path("json"))
		h.unlock()
		_ = statedir.Remove(h.path("held"))
		return nil, err
	}
	return h, nil
}

func (h *Held) path(end string) string {
	return filepath.Join(h.dir, fmt.Sprintf("%d.%s", h.Token, end))
}

// Release ends the lease. Releasing again does nothing.
func (h *Held) Release() error {
	h.once.Do(func() {
		h.err = statedir.Remove(h.path("json"))
		h.unlock()
		_ = statedir.Remove(h.path("held")) // nobody looks for it any more
	})
	return h.err
}

// InForce returns the leases on a device that are in force, oldest first; "" is on all devices. It waits for nobody and
// writes nothing, so it works on read-only media; a directory that does not exist holds no lease.
func InForce(dir, device string) ([]Lease, error) {
	all, _, _, err := read(filepath.Join(dir, "leases"))
	if device == "" {
		return all, err
	}
	return slices.DeleteFunc(all, func(l Lease) bool { return !same(l.Device, device) }), err
}

// read returns the leases in force, the files of those whose holder has died, and the last token that was given.
func read(dir string) (all []Lease, dead []string, last uint64, err error) {
	text, err := statedir.ReadFile(filepath.Join(dir, "last"))
	if err == nil {
		last, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
		if err != nil {
			err = fmt.Errorf("%s: want a number: %w", filepath.Join(dir, "last"), err)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, err
	}
	files, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, 0, err
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, f.Name())
		l, alive, err := readLease(path)
		switch {
		case err != nil:
			return nil, nil, 0, err
		case alive:
			all = append(all, l)
			last = max(last, l.Token)
		default:
			dead = append(dead, path)
		}
	}
	slices.SortFunc(all, func(a, b Lease) int { return cmp.Compare(a.Token, b.Token) })
	return all, dead, last, nil
}

// readLease reads a lease; alive says that its holder has it still.
func readLease(path string) (l Lease, alive bool, err error) {
	unlock, free, err := statedir.TryRLock(heldFile(path))
	switch {
	case errors.Is(err, fs.ErrNotExist): // just released
		return l, false, nil
	case err != nil:
		return l, false, err
	case free:
		unlock()
		return l, false, nil
	}
	data, err := statedir.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) { // just released
		return l, false, nil
	}
	if err != nil {
		return l, false, err
	}
	if err := json.Unmarshal(data, &l); err != nil {
		return l, false, fmt.Errorf("lease %s: %w; if no ocslab runs, remove it", path, err)
	}
	return l, true, nil
}

// heldFile is the file beside that of a lease that its holder has locked.
func heldFile(path string) string { return strings.TrimSuffix(path, "json") + "held" }

// removeDead removes the files of leases whose holder has died.
func removeDead(files []string) error {
	for _, path := range files {
		for _, f := range []string{path, heldFile(path)} {
			if err := statedir.Remove(f); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// same reports whether two devices are the same switch: it may be spoken to in several languages, on
// several ports of one address.
func same(a, b string) bool {
	if a == b {
		return true
	}
	u, errU := url.Parse(a)
	v, errV := url.Parse(b)
	return errU == nil && errV == nil && u.Hostname() != "" && u.Hostname() == v.Hostname() && !loopback(u.Hostname())
}

// loopback addresses have many emulated switches, told apart by their port.
func loopback(host string) bool {
	return host == "localhost" || host == "::1" || strings.HasPrefix(host, "127.")
}
