package check

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/emulator"
	"github.com/ocslab/ocslab/ocs"
	"github.com/ocslab/ocslab/timeline"
)

// Recorder writes down what an emulated switch does with circuits and light. It is safe for concurrent use.
type Recorder struct {
	name  string
	dev   *emulator.Device
	since int    // mark of the device's own truth log: its light after that was told to us
	stop  func() // of WatchLight

	// writing guards out. It is never taken inside of mu, so that a slow writer does not hold up the device.
	writing sync.Mutex
	out     *lineWriter // nil keeps the truth in memory

	mu      sync.Mutex // guards all following fields; neither the device nor out is called with it held
	stopped bool
	truth   Truth              // not written yet, where there is a writer
	lit     map[ocs.Port]Light // by egress: settled light that has not gone
	told    map[ocs.Port]int   // by egress: how often light was told to have come or gone
	waiting chan struct{}      // closed at the next light change; nil if nobody waits
}

// RecordAll records devices, by the names that the operation log knows them by, in memory. The function it returns ends that, and
// returns the truth of all; it may be called more than once.
func RecordAll(devices map[string]*emulator.Device) (stop func() (Truth, error)) {
	var recorders []*Recorder
	for _, name := range slices.Sorted(maps.Keys(devices)) {
		recorders = append(recorders, Record(name, devices[name], nil))
	}
	return func() (all Truth, err error) {
		for _, r := range recorders {
			t, stopErr := r.Stop()
			all, err = all.Join(t), errors.Join(err, stopErr)
		}
		return all, err
	}
}

// Record begins to record dev, which the operation log knows by name. With w nil the truth is kept in memory, a few dozen
// bytes for each circuit that is made; else it is written to w as [ReadTruth] reads it and not kept: a span of light when
// it ends. The device must not be changed before Record has returned, or Record may not know what with.
// Whoever begins must call [Recorder.Stop].
func Record(name string, dev *emulator.Device, w io.Writer) *Recorder {
	r := &Recorder{name: name, dev: dev, lit: map[ocs.Port]Light{}, told: map[ocs.Port]int{}}
	if w != nil {
		l := newLineWriter(w, truthLog)
		r.out = &l
	}
	dev.Observe(r.circuits)
	r.stop = dev.WatchLight(r.light)
	_, r.since = dev.Truth(math.MaxInt)
	return r
}

// circuits is called by the device, with its mutex held.
func (r *Recorder) circuits(e emulator.Event) {
	if e.Kind != emulator.CircuitEvent {
		return
	}
	c := Change{Switch: r.name, AtNS: timeline.HostAxis().NS(time.Now()), Remove: e.Change.Remove, Add: e.Change.Add, By: by(e.By)}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.stopped {
		r.truth.Changes = append(r.truth.Changes, c)
	}
}

// by names a client for people.
func by(s emulator.SessionInfo) string {
	if s.ID == 0 {
		return ""
	}
	parts := []string{s.Protocol}
	if s.User != "" {
		parts = append(parts, s.User)
	}
	if s.Client != "" {
		parts = append(parts, s.Client)
	}
	return fmt.Sprintf("session %d (%s)", s.ID, strings.Join(parts, ", "))
}

// light is called by the device, from one goroutine.
func (r *Recorder) light(c emulator.LightChange) {
	r.note(c)
	r.write()
}

func (r *Recorder) note(c emulator.LightChange) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting != nil {
		close(r.waiting)
		r.waiting = nil
	}
	was, lit := r.lit[c.Port]
	if lit && c.Lit() && was.Ingress == c.From { // it has become brighter or weaker
		return
	}
	if lit {
		r.told[c.Port]++
		delete(r.lit, c.Port)
		was.UntilNS = c.AtNS
		r.truth.Lights = append(r.truth.Lights, was)
	}
	if c.Lit() {
		r.told[c.Port]++
		r.lit[c.Port] = Light{r.name, c.From, c.Port, c.AtNS, math.MaxInt64}
	}
}

// write writes what has been recorded, if there is where to.
func (r *Recorder) write() {
	if r.out == nil {
		return
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	r.mu.Lock()
	t := r.truth
	r.truth = Truth{}
	r.mu.Unlock()
	r.out.truth(t)
}

// catchUp waits until all light that has come or gone by now was told. The device tells its watchers from a
// goroutine of its own, so that the last of it may be on its way still; its own truth log says what that is.
func (r *Recorder) catchUp() {
	marks, _ := r.dev.Truth(r.since)
	due := map[ocs.Port]int{}
	for _, m := range marks {
		if m.Stage != timeline.Dark && m.Stage != timeline.Light {
			continue
		}
		i := strings.LastIndexByte(m.Subject, '/')
		n, err := strconv.ParseUint(m.Subject[i+1:], 10, 32)
		if err != nil {
			continue
		}
		if _, seen := due[ocs.Port(n)]; !seen && m.Stage == timeline.Dark {
			due[ocs.Port(n)]++ // it was lit before, which was told, too
		}
		due[ocs.Port(n)]++
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n, times := range due {
		for r.told[n] < times && !r.stopped {
			if r.waiting == nil {
				r.waiting = make(chan struct{})
			}
			wait := r.waiting
			r.mu.Unlock()
			<-wait
			r.mu.Lock()
		}
	}
}

// openLocked returns the light that has not gone, in order of egress.
func (r *Recorder) openLocked() []Light {
	var all []Light
	for _, l := range r.lit {
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b Light) int { return cmp.Compare(a.Egress, b.Egress) })
	return all
}

// Truth returns all that has happened until now; light that is there ends at MaxInt64. With a writer it is empty.
func (r *Recorder) Truth() Truth {
	r.catchUp()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out != nil {
		return Truth{}
	}
	t := r.truth.Join(Truth{})
	if !r.stopped {
		t.Lights = append(t.Lights, r.openLocked()...)
	}
	return t
}

// Stop ends the recording, after the last operation has ended, and returns what [Recorder.Truth] does, or the
// first error of the writer. It may be called more than once.
func (r *Recorder) Stop() (Truth, error) {
	r.catchUp()
	r.stop()
	r.mu.Lock()
	if !r.stopped {
		r.truth.Lights = append(r.truth.Lights, r.openLocked()...)
		r.stopped = true
		if r.waiting != nil { // of another goroutine in catchUp
			close(r.waiting)
			r.waiting = nil
		}
	}
	r.mu.Unlock()
	r.write()
	if r.out == nil {
		return r.Truth(), nil
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	return Truth{}, r.out.flush()
}
