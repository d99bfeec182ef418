package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// clockStep is how far the wall clock may go from the monotonic one before it is told.
const clockStep = 100 * time.Millisecond

// Writer writes one run and holds its lock. It is safe for concurrent use. [Store.Create]
// and [Store.Resume] make one. What belongs to a point is only remembered until FinishPoint,
// so that nothing waits for a disk while something is measured.
type Writer struct {
	store   *Store
	id, dir string
	meta    Meta
	planned int // points

	mu       sync.Mutex // guards all below
	unlock   func()     // nil: closed
	events   tail
	samples  tail
	finished map[int]bool
	session  int
	summary  *Summary

	// The clocks when the session began, or when a step of theirs was last told.
	wall time.Time
	mono int64

	open        *plan.Point
	lines       []byte // of the open point, and how many
	count       int
	sampleLines []byte
	sampleCount int
	late        []byte // events for after the open point
	last        Event  // as recorded
	refused     int    // lines that could not be recorded
	refusal     string // the first
}

// newWriter returns the writer of a run whose lock is held.
func (s *Store) newWriter(r *Run, unlock func()) (*Writer, error) {
	w := &Writer{store: s, id: r.Meta.ID, dir: r.Dir, meta: r.Meta, planned: len(r.Plan.Points), unlock: unlock, finished: make(map[int]bool)}
	for _, f := range []struct {
		name string
		to   *tail
	}{{eventsFile, &w.events}, {samplesFile, &w.samples}} {
		path := filepath.Join(w.dir, f.name)
		d, err := s.disk(path)
		if err != nil {
			w.closeFiles()
			return nil, err
		}
		f.to.disk = d
		info, err := os.Stat(path)
		if err != nil {
			w.closeFiles()
			return nil, err
		}
		f.to.good = info.Size()
	}
	w.wall, w.mono = s.clock()
	return w, nil
}

func (w *Writer) closeFiles() error {
	var err error
	for _, t := range []*tail{&w.events, &w.samples} {
		if t.disk != nil {
			err = errors.Join(err, t.Close())
		}
	}
	return err
}

// take takes over what the run has so far.
func (w *Writer) take(r *Run) {
	w.finished = maps.Clone(r.Done)
	for _, s := range r.Sessions {
		w.session = max(w.session, s.Number)
	}
}

// ID returns the ID of the run.
func (w *Writer) ID() string { return w.id }

// Dir returns the directory of the run.
func (w *Writer) Dir() string { return w.dir }

// Session begins a session, on disk when it returns, and returns its number. Number is
// filled in, and so are Begun and MonoNS where they are zero.
func (w *Writer) Session(s Session) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wall, w.mono = w.store.clock()
	if s.Begun.IsZero() {
		s.Begun = w.wall
	}
	if s.MonoNS == 0 {
		s.MonoNS = w.mono
	}
	s.Number, s.Ended = w.session+1, ""
	s.Begun = s.Begun.UTC().Round(0)
	if err := w.put("the beginning of a session", kindSession, s); err != nil {
		return 0, err
	}
	w.session = s.Number
	return s.Number, nil
}

// Setup records how a testbed was set up, on disk when it returns. Session is filled in
// where it is zero.
func (w *Writer) Setup(s Setup) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Session == 0 {
		s.Session = w.session
	}
	return w.put("a set-up", kindSetup, s)
}

// EndSession records why the session ends, on disk when it returns.
func (w *Writer) EndSession(reason string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put("the end of a session", kindSessionEnded, w.ended(0, reason))
}

func (w *Writer) ended(point int, why string) ended {
	wall, _ := w.store.clock()
	return ended{Point: point, Session: w.session, Wall: wall, Why: why}
}

// put writes a line that belongs to no point.
func (w *Writer) put(what, kind string, fields any) error {
	if w.unlock == nil {
		return w.closed()
	}
	line, err := appendLine(nil, kind, fields)
	if err != nil {
		return fmt.Errorf("runs: %s: %s: %w", w.id, what, err)
	}
	if err := w.events.add(line); err != nil {
		return w.unkept(what, err)
	}
	return nil
}

func (w *Writer) closed() error { return fmt.Errorf("runs: %s: its writer is closed", w.id) }

// BeginPoint begins a point, in memory. It fails while another is open, and for one that is
// done.
func (w *Writer) BeginPoint(p plan.Point) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.unlock == nil:
		return w.closed()
	case w.open != nil:
		return fmt.Errorf("runs: %s: point %d cannot begin: point %d is not finished", w.id, p.ID, w.open.ID)
	case p.ID < 1 || w.finished[p.ID]:
		return fmt.Errorf("runs: %s: point %d cannot begin: it is done, or no point", w.id, p.ID)
	}
	b := begun{Point: p.ID, Condition: p.Condition, Repeat: p.Repeat, Null: p.Null, First: p.First, Session: w.session}
	line, err := appendLine(nil, kindBegun, b)
	if err != nil {
		return fmt.Errorf("runs: %s: point %d: %w", w.id, p.ID, err)
	}
	w.open = &p
	w.lines, w.count = append(w.lines[:0], line...), 0
	w.sampleLines, w.sampleCount = append(w.sampleLines[:0], line...), 0
	return nil
}

// Reconfiguration records a reconfiguration of the open point, in memory. Point and Session
// are filled in where they are zero.
func (w *Writer) Reconfiguration(r Reconfiguration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open != nil && r.Point == 0 {
		r.Point = w.open.ID
	}
	if r.Session == 0 {
		r.Session = w.session
	}
	r.Wall = r.Wall.UTC().Round(0)
	w.remember(kindReconfiguration, r)
}

// Note records a note of the open point, in memory.
func (w *Writer) Note(reconfiguration int, n watch.Note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.remember(kindNote, noteLine{reconfiguration, n.Kind, n.Event, n.Subject, n.Host, n.Interval, n.Source, n.Text})
}

// remember adds a line of a kind of which there are few to the open point.
func (w *Writer) remember(kind string, fields any) {
	if w.open == nil {
		w.refuse(kind, "no point is open")
		return
	}
	lines, err := appendLine(w.lines, kind, fields)
	if err != nil {
		w.refuse(kind, err.Error())
		return
	}
	w.lines = lines
	w.count++
}

// Mark records a mark of the open point, in memory. One that could not be read again, see
// [timeline.Mark.UnmarshalJSON], is left out and told of by an [Event].
func (w *Writer) Mark(m timeline.Mark) { w.mark(kindMark, &m) }

// Truth records what an emulated lab did, as Mark does.
func (w *Writer) Truth(m timeline.Mark) { w.mark(kindTruth, &m) }

func (w *Writer) mark(kind string, m *timeline.Mark) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil || !m.Stage.Valid() || m.Earliest > m.Latest || m.Reconfiguration < 0 {
		w.refuse(kind, m.String())
		return
	}
	w.lines = appendMark(w.lines, kind, m)
	w.count++
}

// Expected records what should be seen in the open point, in memory.
func (w *Writer) Expected(e timeline.Expectation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil || !e.Stage.Valid() || e.Reconfiguration < 0 {
		w.refuse(kindExpected, fmt.Sprintf("%s of %s", e.Stage, e.Subject))
		return
	}
	w.lines = appendExpected(w.lines, &e)
	w.count++
}

// Sample records a reading of a power monitor of the open point, in memory.
func (w *Writer) Sample(s Sample) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil || s.EarliestNS > s.LatestNS || s.Reconfiguration < 0 || !s.Dark && !finite(s.PowerDBm) {
		w.refuse(kindSample, fmt.Sprintf("%v dBm at %s", s.PowerDBm, s.Subject))
		return
	}
	w.sampleLines = appendSample(w.sampleLines, &s)
	w.sampleCount++
}

// refuse notes that something cannot be recorded. It is no reason to lose the point.
func (w *Writer) refuse(kind, what string) {
	if w.refused == 0 {
		w.refusal = kind + ": " + what
	}
	w.refused++
}

// FinishPoint writes the open point to disk. When it returns nil the point is kept, whatever
// happens then. After an error nothing of it counts and it is still open: FinishPoint may be
// called again, or AbandonPoint. When the wall clock has gone away from the monotonic one by
// more than 100 ms, it records an [Event] of the kind "clock-step".
func (w *Writer) FinishPoint() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.unlock == nil:
		return w.closed()
	case w.open == nil:
		return fmt.Errorf("runs: %s: there is no point to finish", w.id)
	}
	d := done{Point: w.open.ID, Lines: w.count, CRC: checksum(crc32.ChecksumIEEE(w.lines)), Finished: len(w.finished) + 1}
	what := fmt.Sprintf("point %d", d.Point)
	written := 0 // of samples
	if w.sampleCount > 0 {
		d.Samples, d.SamplesCRC = w.sampleCount, checksum(crc32.ChecksumIEEE(w.sampleLines))
		last, err := appendLine(nil, kindDone, done{Point: d.Point, Lines: d.Samples, CRC: d.SamplesCRC})
		if err != nil {
			return fmt.Errorf("runs: %s: %s: %w", w.id, what, err)
		}
		length := len(w.sampleLines)
		w.sampleLines = append(w.sampleLines, last...)
		err = w.samples.add(w.sampleLines)
		written = len(w.sampleLines)
		w.sampleLines = w.sampleLines[:length]
		if err != nil {
			return w.unkept(what, err)
		}
	}
	length := len(w.lines)
	lines, err := appendLine(w.lines, kindDone, d)
	if err != nil {
		return fmt.Errorf("runs: %s: %s: %w", w.id, what, err)
	}
	lines = append(lines, w.late...)
	lines = append(lines, w.refusals()...)
	wall, mono := w.store.clock()
	lines, stepped := w.stepped(lines, wall, mono)
	err = w.events.add(lines)
	w.lines = lines[:length]
	if err != nil {
		if written > 0 {
			w.samples.takeBack(written)
		}
		return w.unkept(what, err)
	}
	if stepped {
		w.wall, w.mono = wall, mono
	}
	w.finished[d.Point] = true
	w.forget()
	return nil
}

// stepped appends the line of an event if the wall clock was set since it was last looked at.
func (w *Writer) stepped(lines []byte, wall time.Time, mono int64) ([]byte, bool) {
	step := wall.Sub(w.wall) - time.Duration(mono-w.mono)
	if step.Abs() <= clockStep {
		return lines, false
	}
	lines, err := appendLine(lines, kindEvent, Event{
		Kind: "clock-step", Session: w.session, Point: w.open.ID, Wall: wall,
		Text: fmt.Sprintf("The wall clock went %s against the monotonic clock: it was set, or the machine slept; marks are on the monotonic clock.", forth(step)),
	})
	return lines, err == nil
}

func forth(step time.Duration) string {
	if step < 0 {
		return "back by " + step.Abs().Round(time.Millisecond).String()
	}
	return "forward by " + step.Round(time.Millisecond).String()
}

// refusals returns the line of an event about what could not be recorded, if there was any.
func (w *Writer) refusals() []byte {
	if w.refused == 0 {
		return nil
	}
	e := Event{Kind: "skipped", Text: fmt.Sprintf("What cannot be recorded was left out %d times, the first was a %s.", w.refused, w.refusal)}
	line, _ := w.eventLine(&e) // has nothing that cannot be written
	return line
}

// forget makes room for the next point.
func (w *Writer) forget() {
	w.open, w.late, w.refused, w.refusal = nil, w.late[:0], 0, ""
}

// AbandonPoint forgets the open point, and records why, and what else happened while it was
// open. Without an open point it does nothing. The point is forgotten also when that cannot
// be recorded.
func (w *Writer) AbandonPoint(why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open == nil {
		return nil
	}
	return w.abandon(why)
}

func (w *Writer) abandon(why string) error {
	lines, err := appendLine(nil, kindAbandoned, w.ended(w.open.ID, why))
	if err == nil {
		lines = append(lines, w.late...)
		lines = append(lines, w.refusals()...)
		if err = w.events.add(lines); err != nil {
			err = w.unkept(fmt.Sprintf("that point %d was abandoned", w.open.ID), err)
		}
	}
	w.forget()
	return err
}

// DropPoint records that a point will not be done, on disk when it returns.
func (w *Writer) DropPoint(id int, why string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put(fmt.Sprintf("that point %d is not needed", id), kindDropped, w.ended(id, why))
}

// Event records an event; Session and Wall are filled in where they are zero. It is on
// disk when Event returns, but while a point is open it is written together with that.
func (w *Writer) Event(e Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock == nil {
		return w.closed()
	}
	line, err := w.eventLine(&e)
	if err != nil {
		return fmt.Errorf("runs: %s: event: %w", w.id, err)
	}
	w.last = e
	if w.open != nil {
		w.late = append(w.late, line...)
		return nil
	}
	if err := w.events.add(line); err != nil {
		return w.unkept("an event", err)
	}
	return nil
}

func (w *Writer) eventLine(e *Event) ([]byte, error) {
	if e.Session == 0 {
		e.Session = w.session
	}
	if e.Wall.IsZero() {
		e.Wall, _ = w.store.clock()
	}
	e.Wall = e.Wall.UTC().Round(0)
	return appendLine(nil, kindEvent, e)
}

// Control takes what [Store.Send] left, if there is anything. It costs a few microseconds when
// there is nothing, so it can be polled.
func (w *Writer) Control() (Control, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock == nil {
		return "", false
	}
	path := filepath.Join(w.dir, controlFile)
	taken := path + ".taken" // so that what is sent from now on stays for the next call
	if os.Rename(path, taken) != nil {
		return "", false
	}
	text, err := readFile(taken)
	os.Remove(taken)
	c := Control(strings.TrimSpace(string(text)))
	return c, err == nil && c.valid()
}

// Finish writes the summary; Format, Run, Points and Planned are filled in, and Ended where it
// is zero. State has to be Done, Stopped or Failed. An open point is abandoned.
func (w *Writer) Finish(s Summary) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock == nil {
		return w.closed()
	}
	if s.State != Done && s.State != Stopped && s.State != Failed {
		return fmt.Errorf("runs: %s: %q is no state in which a run ends", w.id, s.State)
	}
	var abandoned error
	if w.open != nil {
		abandoned = w.abandon("the run ended")
	}
	s.Format, s.Run, s.Points, s.Planned = Format, w.id, len(w.finished), w.planned
	if s.Ended.IsZero() {
		s.Ended, _ = w.store.clock()
	}
	s.Ended = s.Ended.UTC().Round(0)
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("runs: %s: summary: %w", w.id, err)
	}
	if err := statedir.WriteFile(filepath.Join(w.dir, summaryFile), append(data, '\n')); err != nil {
		return errors.Join(abandoned, w.unkept("the summary", err))
	}
	w.summary = &s
	w.store.index(context.Background(), w.entry(s.State))
	return abandoned
}

// entry returns the line of the list of runs.
func (w *Writer) entry(state State) Entry {
	return entryOf(w.meta, w.dir, w.summary, state, len(w.finished), w.planned)
}

// Close gives the lock back. A run without a summary is then interrupted. An open point is
// forgotten. A second call does nothing.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.unlock == nil {
		return nil
	}
	if w.summary == nil {
		w.store.index(context.Background(), w.entry(Interrupted)) // while nobody else can have resumed it
	}
	err := w.closeFiles() // what was written is synced
	w.unlock()
	w.unlock, w.open = nil, nil
	if err != nil {
		return fmt.Errorf("runs: %s: %w", w.id, err)
	}
	return nil
}
