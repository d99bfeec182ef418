package linkmon_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/ocslab/ocslab/linkmon"
	"github.com/ocslab/ocslab/timeline"
)

// fakes is a host without network devices.
type fakes struct {
	mu    sync.Mutex
	links []*fake
	err   error // of Interfaces
}

func (f *fakes) Interfaces() ([]linkmon.Interface, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []linkmon.Interface
	for _, l := range f.links {
		list = append(list, linkmon.Interface{Index: l.index, Name: l.name})
	}
	return list, f.err
}

func (f *fakes) Open(i linkmon.Interface) (linkmon.Counter, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.links {
		if l.index == i.Index && l.name == i.Name {
			l.open++
			return l, l.openErr
		}
	}
	return nil, linkmon.ErrGone
}

// add makes a link whose counters stand at ups and downs.
func (f *fakes) add(index int, name string, ups, downs uint32) *fake {
	l := &fake{host: f, index: index, name: name, ups: ups, downs: downs}
	f.do(func() { f.links = append(f.links, l) })
	return l
}

func (f *fakes) do(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

// remove takes a link off the list.
func (f *fakes) remove(l *fake) {
	f.do(func() {
		kept := f.links[:0]
		for _, x := range f.links {
			if x != l {
				kept = append(kept, x)
			}
		}
		f.links = kept
	})
}

// fake is a link. Its fields are guarded by the host.
type fake struct {
	host       *fakes
	index      int
	name       string
	ups, downs uint32
	up         bool
	mute       bool // there is no file carrier, as when administratively down
	old        bool // there are no files of each direction
	err        error
	openErr    error
	open       int
	block      time.Duration // of the next read
	onUpDown   func()
	after      func() // a read of Changes has been answered, but not yet arrived
}

func (l *fake) Changes() (uint32, error) {
	l.host.mu.Lock()
	d := l.block
	l.block = 0
	l.host.mu.Unlock()
	time.Sleep(d)
	l.host.mu.Lock()
	n, err, after := l.ups+l.downs, l.err, l.after
	l.host.mu.Unlock()
	if after != nil {
		after()
	}
	return n, err
}

func (l *fake) UpDown() (ups, downs uint32, err error) {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if l.old {
		return 0, 0, errors.New("no such file")
	}
	if l.onUpDown != nil {
		l.onUpDown()
	}
	return l.ups, l.downs, l.err
}

func (l *fake) Carrier() (bool, error) {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	if l.mute {
		return false, errors.New("invalid argument")
	}
	return l.up, nil
}

func (l *fake) Close() error {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	l.open--
	return nil
}

func (l *fake) moveLocked() {
	l.up = !l.up
	if l.up {
		l.ups++
	} else {
		l.downs++
	}
}

// move makes n transitions at once.
func (l *fake) move(n int) timeline.Interval {
	l.host.mu.Lock()
	defer l.host.mu.Unlock()
	before := time.Now()
	for range n {
		l.moveLocked()
	}
	return timeline.HostAxis().Span(before, time.Now())
}

func startFakes(t testing.TB, f *fakes, opt linkmon.Options, interfaces ...string) *linkmon.Monitor {
	t.Helper()
	opt.Hosts = []linkmon.Host{{Name: "gpu1", Counters: f, Interfaces: interfaces}}
	m, err := linkmon.Start(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.Close()
		f.do(func() {
			for _, l := range f.links {
				if l.open != 0 {
					t.Errorf("%s is open %d times after Close", l.name, l.open)
				}
			}
		})
	})
	return m
}

func flush(t testing.TB, m *linkmon.Monitor) {
	t.Helper()
	if err := m.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// queued returns what is in the queue now.
func queued(t testing.TB, m *linkmon.Monitor) []linkmon.Event {
	t.Helper()
	done, cancel := context.WithCancel(context.Background())
	cancel()
	var events []linkmon.Event
	for {
		e, err := m.Next(done)
		switch {
		case errors.Is(err, context.Canceled), errors.Is(err, io.EOF):
			return events
		case err != nil:
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// of returns the events of some kinds.
func of(events []linkmon.Event, kinds ...linkmon.EventKind) []linkmon.Event {
	var some []linkmon.Event
	for _, e := range events {
		for _, k := range kinds {
			if e.Kind == k {
				some = append(some, e)
			}
		}
	}
	return some
}

func account(t testing.TB, m *linkmon.Monitor, reported int) linkmon.Account {
	t.Helper()
	a := m.Account()
	if err := a.Err(); err != nil || a.Reported != reported || a.Counted != reported+a.Merged {
		t.Fatalf("%+v, %v; want %d reported", a, err, reported)
	}
	return a
}
