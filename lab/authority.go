package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/lab/history"
	"github.com/ocslab/ocslab/lab/lease"
	"github.com/ocslab/ocslab/lab/panics"
)

// Authority holds what all users of a device must agree on: who changes it now, what was changed, whose ports
// it has, and whether a panic keeps it dark. The gate asks nothing else. [Files] is the one for programs on one
// machine; a lab server is to be another.
//
// Implementations are safe for concurrent use by several goroutines and programs.
type Authority interface {
	history.Book

	// Lock waits until no other change of the device is in progress, and keeps others out until unlock is called.
	// Programs that give the same identity exclude each other; so do calls for the same device in one program. Devices
	// of one program that differ do not wait for each other, whatever their identity. The error says which program has
	// the lock and matches context.Cause(ctx) if it waited until then.
	Lock(ctx context.Context, device, identity string) (unlock func(), err error)
	// Leases are those in force on a device that other programs hold; "" is on all devices.
	Leases(device string) ([]lease.Lease, error)
	// Take takes a lease until release is called or this program ends. The error matches [lease.ErrLeased] if one of the
	// ports has a lease.
	Take(ctx context.Context, l lease.Lease) (release func() error, err error)
	// Panics are all that are remembered, also those that were lifted. With an error it returns those that it could read.
	Panics() ([]panics.Call, error)
	// Entries are the changes that were recorded, oldest first.
	Entries() ([]history.Entry, []history.Problem, error)
	// Hold marks this program as alive for what it records with [history.Entry.Until], until release is called or it ends.
	Hold() (name string, release func(), err error)
	// Held reports whether the program that holds name is alive.
	Held(name string) (bool, error)
}

// Files returns the Authority in a state directory. Programs that use the same directory are bound by it. Nothing is
// opened before it is needed, so one that only reads needs no right to write. An empty dir stands for [Alone].
func Files(dir string) Authority {
	if dir == "" {
		return Alone()
	}
	return &files{dir: dir}
}

type files struct {
	dir string
	in  inProcess

	mu  sync.Mutex // guards log
	log *history.Log
}

// book opens the history.
func (f *files) book() (*history.Log, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.log != nil {
		return f.log, nil
	}
	log, err := history.Open(f.dir)
	f.log = log
	return log, err
}

func (f *files) BeginAll(ctx context.Context, entries []history.Entry) ([]int, error) {
	log, err := f.book()
	if err != nil {
		return nil, err
	}
	return log.BeginAll(ctx, entries)
}

func (f *files) End(id int, state history.State, detail history.Result) error {
	log, err := f.book()
	if err != nil {
		return err
	}
	return log.End(id, state, detail)
}

func (f *files) Entries() ([]history.Entry, []history.Problem, error) {
	log, err := f.book()
	if err != nil {
		return nil, nil, err
	}
	return log.Entries()
}

func (f *files) Leases(device string) ([]lease.Lease, error) {
	all, err := lease.InForce(f.dir, device)
	return slices.DeleteFunc(all, func(l lease.Lease) bool { return l.PID == os.Getpid() }), err
}

func (f *files) Take(ctx context.Context, l lease.Lease) (func() error, error) {
	held, err := lease.Take(ctx, f.dir, l)
	if err != nil {
		return nil, err
	}
	return held.Release, nil
}

func (f *files) Panics() ([]panics.Call, error) { return panics.Read(f.dir) }

// lockPath is the file of the lock on a device.
func lockPath(dir, identity string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(identity)))
	return filepath.Join(dir, "locks", hex.EncodeToString(sum[:8])+".lock")
}

func (f *files) Lock(ctx context.Context, device, identity string) (func(), error) {
	return f.in.lock(ctx, device, identity, func(ctx context.Context) (func(), error) {
		path := lockPath(f.dir, identity)
		if err := statedir.Make(filepath.Dir(path)); err != nil {
			return nil, fmt.Errorf("state directory: %w; --state-dir DIR names another one", err)
		}
		return statedir.Lock(ctx, path)
	})
}

func (f *files) Hold() (string, func(), error) {
	dir := filepath.Join(f.dir, "alive")
	if err := statedir.Make(dir); err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixNano())
	path := filepath.Join(dir, name)
	unlock, err := statedir.Lock(context.Background(), path)
	if err != nil {
		return "", nil, err
	}
	return name, func() { _ = os.Remove(path); unlock() }, nil
}

func (f *files) Held(name string) (bool, error) {
	if name != filepath.Base(name) {
		return false, fmt.Errorf("history: %q is no name of a program", name)
	}
	path := filepath.Join(f.dir, "alive", name)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	unlock, free, err := statedir.TryLock(path)
	if free {
		_ = os.Remove(path)
		unlock()
	}
	return !free && err == nil, err
}

// Alone returns an Authority that keeps everything in memory, for a program whose devices no other program can reach.
func Alone() Authority { return &alone{} }

type alone struct {
	in inProcess

	mu      sync.Mutex // guards entries
	entries []history.Entry
}

func (a *alone) BeginAll(_ context.Context, entries []history.Entry) (ids []int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := len(a.entries) + 1
	for i, e := range entries {
		e.ID, e.State = first+i, history.Pending
		if len(entries) > 1 && e.Group == 0 || e.Group == history.NewGroup {
			e.Group = first
		}
		a.entries, ids = append(a.entries, e), append(ids, e.ID)
	}
	return ids, nil
}

func (a *alone) End(id int, state history.State, detail history.Result) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if id < 1 || id > len(a.entries) {
		return history.ErrUnknownID
	}
	e := &a.entries[id-1]
	e.State, e.Error, e.Ended = state, detail.Error, time.Now()
	return nil
}

func (a *alone) Entries() ([]history.Entry, []history.Problem, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entries := slices.Clone(a.entries)
	history.Link(entries)
	return entries, nil, nil
}

func (a *alone) Leases(string) ([]lease.Lease, error) { return nil, nil }
func (a *alone) Take(context.Context, lease.Lease) (func() error, error) {
	return func() error { return nil }, nil
}
func (a *alone) Panics() ([]panics.Call, error) { return nil, nil }
func (a *alone) Hold() (string, func(), error)  { return "", func() {}, nil }
func (a *alone) Held(string) (bool, error)      { return true, nil }

func (a *alone) Lock(ctx context.Context, device, identity string) (func(), error) {
	return a.in.lock(ctx, device, identity, func(context.Context) (func(), error) { return func() {}, nil })
}

// inProcess keeps the changes of one program in turn, device by device, and the locks that it shares with others:
// one for each identity, however many devices of the program have it. The zero value is ready to use.
type inProcess struct {
	mu     sync.Mutex // guards what follows
	turns  map[string]chan struct{}
	shared map[string]*sharedLock
}

// sharedLock is a lock that several devices of this program hold together.
type sharedLock struct {
	taking chan struct{} // holds a token while the lock is being taken or given back
	n      int           // devices that hold it; guarded by taking
	unlock func()
}

// errLocked is why a change was refused that waited for another one.
var errLocked = errors.New("another change of the switch is in progress")

func (p *inProcess) lock(ctx context.Context, device, identity string, take func(context.Context) (func(), error)) (func(), error) {
	p.mu.Lock()
	if p.turns == nil {
		p.turns, p.shared = map[string]chan struct{}{}, map[string]*sharedLock{}
	}
	turn, ok := p.turns[device]
	if !ok {
		turn = make(chan struct{}, 1)
		p.turns[device] = turn
	}
	with, ok := p.shared[identity]
	if !ok {
		with = &sharedLock{taking: make(chan struct{}, 1)}
		p.shared[identity] = with
	}
	p.mu.Unlock()
	for _, wait := range []chan struct{}{turn, with.taking} {
		select {
		case wait <- struct{}{}: // also when ctx has ended
			continue
		default:
		}
		select {
		case wait <- struct{}{}:
		case <-ctx.Done():
			if wait == with.taking {
				<-turn
			}
			return nil, fmt.Errorf("%w: %w", errLocked, context.Cause(ctx))
		}
	}
	if with.n == 0 {
		unlock, err := take(ctx)
		if err != nil {
			<-with.taking
			<-turn
			return nil, err
		}
		with.unlock = unlock
	}
	with.n++
	<-with.taking
	return sync.OnceFunc(func() {
		with.taking <- struct{}{}
		if with.n--; with.n == 0 {
			with.unlock()
		}
		<-with.taking
		<-turn
	}), nil
}
