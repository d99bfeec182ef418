package emulator

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ocslab/ocslab/ocs"
)

// LightChange is light that leaves at a port and has come, gone or changed.
type LightChange struct {
	Port ocs.Port
	// From is the port that it enters at or, when it has gone, would enter at; 0 when
	// no cross-connect ends at Port.
	From ocs.Port
	// Power is what it settles at; minus infinity when it is dark.
	Power ocs.DBm
	// AtNS is when on the host's axis: of light that goes or changes on a path
	// that has settled when that began, of light that comes when it has settled, as
	// in [Device.Truth].
	AtNS int64
	// Operation is the number of the matrix operation behind it, or of the last
	// one before.
	Operation int
}

// Lit reports whether there is any light.
func (c LightChange) Lit() bool { return c.Power.Milliwatts() > 0 }

// WatchLight calls fn, one call at a time, first for every port that light
// leaves at and then for each change, in order; changes that are due to mirrors
// that settle are told when they have. It is called soon after AtNS, never before;
// [Device.DeliverLight] calls it at once. fn may call methods of d, but neither stop nor
// DeliverLight. Calling stop ends it; when stop returns, fn does not run and will not.
//
// Without anybody watching, a device has no timers for its light.
func (d *Device) WatchLight(fn func(LightChange)) (stop func()) {
	w := &lightWatch{fn: fn, more: make(chan struct{}, 1), end: make(chan struct{}), ended: make(chan struct{})}
	w.coming = map[ocs.Port]LightChange{}
	d.mu.Lock()
	now := d.nowLocked()
	if len(d.lightWatches) > 0 {
		maps.Copy(w.coming, d.lightWatches[0].coming)
	}
	for i := range d.ports {
		n, p := ocs.Port(i), &d.ports[i]
		if level := p.out.level(); level > 0 && p.settled <= now {
			delete(w.coming, n)
			w.tell(LightChange{Port: n, From: p.peer, Power: ocs.Milliwatts(level), AtNS: now, Operation: d.ops})
		}
	}
	if d.lightTimers == nil {
		d.lightTimers = map[ocs.Port]*time.Timer{}
	}
	d.lightWatches = append(d.lightWatches, w)
	for n := range d.ports { // what is on its way already
		p := &d.ports[n]
		if p.settled > now && p.out.level() > 0 && d.lightTimers[ocs.Port(n)] == nil {
			d.tellLightLocked(ocs.Port(n), p.out.level(), p.settled, now)
		}
	}
	d.mu.Unlock()
	go w.run()
	var once sync.Once
	return func() {
		once.Do(func() {
			d.mu.Lock()
			d.lightWatches = slices.DeleteFunc(d.lightWatches, func(x *lightWatch) bool { return x == w })
			if len(d.lightWatches) == 0 {
				for n, t := range d.lightTimers {
					t.Stop()
					delete(d.lightTimers, n)
				}
			}
			d.mu.Unlock()
			close(w.end)
		})
		<-w.ended
		w.calling.Lock() // DeliverLight may have called fn
		defer w.calling.Unlock()
	}
}

// DeliverLight calls the functions of all watches for every change of light until now, and returns
// that time on the host's axis. On a busy machine the timers and goroutines that deliver changes
// run late. A reader of something that follows from the light calls DeliverLight first, so
// that the reading depends on time alone.
func (d *Device) DeliverLight() (atNS int64) {
	d.mu.Lock()
	now := d.nowLocked()
	watches := slices.Clone(d.lightWatches)
	for _, w := range watches {
		due := slices.SortedFunc(maps.Keys(w.coming), func(a, b ocs.Port) int {
			return cmp.Or(cmp.Compare(w.coming[a].AtNS, w.coming[b].AtNS), cmp.Compare(a, b))
		})
		for _, n := range due {
			w.arrive(n, now)
		}
	}
	d.mu.Unlock()
	for _, w := range watches {
		w.call()
	}
	return now
}

// tellLightLocked tells the watches that the light at n goes to level in mW, at a
// time that may be to come. It replaces what was to come there, unless that has come
// by now and only its timer is late.
func (d *Device) tellLightLocked(n ocs.Port, level float64, at, now int64) {
	if len(d.lightWatches) == 0 {
		return
	}
	if t := d.lightTimers[n]; t != nil {
		t.Stop()
		delete(d.lightTimers, n)
	}
	c := LightChange{Port: n, From: d.ports[n].peer, Power: ocs.Milliwatts(level), AtNS: at, Operation: d.ops}
	for _, w := range d.lightWatches {
		w.arrive(n, now)
		w.coming[n] = c
		w.arrive(n, now)
	}
	if at <= now {
		return
	}
	var t *time.Timer
	t = time.AfterFunc(time.Duration(at-now), func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lightTimers[n] == t { // and has not been replaced meanwhile
			delete(d.lightTimers, n)
			for _, w := range d.lightWatches {
				w.arrive(n, at)
			}
		}
	})
	d.lightTimers[n] = t
}

// lightWatch hands changes from the device, which must not wait, to a function
// that may.
type lightWatch struct {
	fn         func(LightChange)
	more       chan struct{} // holds one: there is something to tell
	end, ended chan struct{}
	coming     map[ocs.Port]LightChange // not told yet; guarded by the mutex of the device

	calling sync.Mutex // held while fn is called, and taken before mu
	mu      sync.Mutex // guards queue
	queue   []LightChange
}

// arrive tells what comes at n if it has come by now.
func (w *lightWatch) arrive(n ocs.Port, now int64) {
	if c, ok := w.coming[n]; ok && c.AtNS <= now {
		delete(w.coming, n)
		w.tell(c)
	}
}

func (w *lightWatch) tell(c LightChange) {
	w.mu.Lock()
	w.queue = append(w.queue, c)
	w.mu.Unlock()
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (w *lightWatch) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.end:
			return
		case <-w.more:
		}
		w.call()
	}
}

// call hands over what is in the queue.
func (w *lightWatch) call() {
	w.calling.Lock()
	defer w.calling.Unlock()
	w.mu.Lock()
	queue := w.queue
	w.queue = nil
	w.mu.Unlock()
	for _, c := range queue {
		select {
		case <-w.end:
			return
		default:
			w.fn(c)
		}
	}
}
