package runs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/linkmon/watch"
	"github.com/ocslab/ocslab/timeline"
)

// The files of a run.
const (
	metaFile       = "run.json"
	experimentFile = "experiment.yaml"
	labFile        = "lab.yaml"
	planFile       = "plan.json"
	eventsFile     = "events.ndjson"
	samplesFile    = "samples.ndjson"
	summaryFile    = "summary.json"
	controlFile    = "control"
	lockFile       = "lock"
)

// Load reads a run as far as it is recorded, also while a process writes it: what is read is
// a state that the run was in. What is damaged is left out and reported as an [Event] of the
// kind "recovered"; nothing on disk is changed. The error matches [ErrUnknown] or [ErrNewer],
// or says which file cannot be read.
func (s *Store) Load(ctx context.Context, id string) (*Run, error) {
	r, err := s.begin(id)
	if err != nil {
		return nil, err
	}
	// In this order: who holds no lock now has written its summary before.
	locked := held(filepath.Join(r.Dir, lockFile))
	var damage string
	if r.Summary, damage, err = readSummary(r.Dir); err != nil {
		return nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	r.State = stateOf(r.Summary, locked)
	if err := r.read(ctx, r.State != Running); err != nil {
		return nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	if damage != "" {
		r.Events = append(r.Events, Event{Kind: "recovered", Session: len(r.Sessions), Text: damage})
	}
	return r, nil
}

func stateOf(s *Summary, locked bool) State {
	switch {
	case s != nil:
		return s.State
	case locked:
		return Running
	}
	return Interrupted
}

// begin reads what is written once, when a run begins.
func (s *Store) begin(id string) (*Run, error) {
	if !isID(id) {
		return nil, fmt.Errorf("runs: %q: %w", id, ErrUnknown)
	}
	r := &Run{Dir: s.Dir(id)}
	if _, err := os.Stat(r.Dir); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("runs: %s: %w", id, ErrUnknown)
	}
	var err error
	if r.Meta, err = readMeta(r.Dir); err != nil {
		return nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	if err := readJSON(r.Dir, planFile, &r.Plan); err != nil {
		return nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	if r.Lab, err = readFile(filepath.Join(r.Dir, labFile)); err != nil {
		return nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	path := filepath.Join(r.Dir, experimentFile)
	text, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	// What was done is in the plan. A file that another version of ocslab understood is no
	// reason not to show what it led to.
	if r.File, err = plan.Parse(path, text); err != nil {
		r.File = &plan.File{Path: path, Text: text, Name: r.Meta.Name}
	}
	return r, nil
}

// readMeta reads run.json and refuses a format that is not known.
func readMeta(dir string) (Meta, error) {
	var m Meta
	// A later format may have other types; only this number is sure.
	var v struct {
		Format float64 `json:"format"`
	}
	if err := readJSON(dir, metaFile, &v); err != nil {
		return m, err
	}
	if v.Format > Format {
		return m, fmt.Errorf("%w: it has format %v, and this one knows %d; use that version", ErrNewer, v.Format, Format)
	}
	if err := readJSON(dir, metaFile, &m); err != nil {
		return m, err
	}
	if m.Format < 1 || m.ID != filepath.Base(dir) {
		return m, fmt.Errorf("%s says it is of run %.80q, format %d: the directory has another name than it was made with, or is damaged", metaFile, m.ID, m.Format)
	}
	return m, nil
}

// readSummary returns nil when there is none. One that is damaged counts as none, so that the
// points can be had, and damage says so in one sentence.
func readSummary(dir string) (s *Summary, damage string, err error) {
	s = new(Summary)
	switch err := readJSON(dir, summaryFile, s); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, "", nil
	case errors.Is(err, errDamaged):
		return nil, fmt.Sprintf("The file %s is damaged and does not count: how the run ended is not known.", summaryFile), nil
	case err != nil:
		return nil, "", err
	case s.Format > Format:
		return nil, "", fmt.Errorf("%s: %w", summaryFile, ErrNewer)
	}
	return s, "", nil
}

func readJSON(dir, name string, into any) error {
	data, err := readFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s %w: %w", filepath.Join(dir, name), errDamaged, err)
	}
	return nil
}

var errDamaged = errors.New("is damaged")

// openFile opens a file for reading. Of what is no file, such as a named pipe, which would
// keep us waiting, it says so.
func openFile(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file but %v", path, info.Mode().Type())
	}
	return os.Open(path)
}

func readFile(path string) ([]byte, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	return io.ReadAll(f)
}

// ndjson is one of the two files that grow; nil when it is not there, which is as good as
// empty.
type ndjson struct{ *os.File }

func openNDJSON(dir, name string) (ndjson, error) {
	f, err := openFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return ndjson{}, nil
	}
	return ndjson{f}, err
}

func (f ndjson) size() (int64, error) {
	if f.File == nil {
		return 0, nil
	}
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// readAt reads what is there; less than asked for, if the file ends before, is no error.
func (f ndjson) readAt(b []byte, at int64) (int, error) {
	if f.File == nil {
		return 0, nil
	}
	n, err := f.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

func (f ndjson) close() {
	if f.File != nil {
		f.Close() // only read
	}
}

// read reads the two files that grow. What is at their ends and does not count is told of
// when nobody writes them.
func (r *Run) read(ctx context.Context, tell bool) error {
	events, err := openNDJSON(r.Dir, eventsFile)
	if err != nil {
		return err
	}
	defer events.close()
	samples, err := openNDJSON(r.Dir, samplesFile)
	if err != nil {
		return err
	}
	defer samples.close()
	l, err := scan(ctx, events, samples)
	if err != nil {
		return err
	}
	r.Sessions, r.Setups, r.Events = l.sessions, l.setups, l.events
	r.Done, r.Dropped = l.done, l.dropped
	if tail := l.size - l.good; tell && tail > 0 {
		s := scanner{ledger: l}
		s.found("recovered", 0, fmt.Sprintf("The last %d bytes of %s are of a point that was not finished: they do not count.", tail, eventsFile))
		r.Events = l.events
	}
	c := contents{Run: r, parser: newParser(), skipped: make(map[string]int)}
	c.reserve(l.points)
	for _, p := range l.points {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := c.point(events, samples, p); err != nil {
			return err
		}
	}
	c.finish(l)
	return nil
}

// contents reads the lines of points into a run.
type contents struct {
	*Run
	*parser
	skipped map[string]int // unknown kinds
	refused []Event
	buffer  []byte // the lines of one point
}

// reserve makes room for all of the points, as growing would need twice the memory.
func (c *contents) reserve(points []span) {
	var n span
	for _, p := range points {
		n.reconfigurations += p.reconfigurations
		n.marks += p.marks
		n.truth += p.truth
		n.expected += p.expected
		n.notes += p.notes
		n.samples += p.samples
	}
	c.Reconfigurations = room[Reconfiguration](n.reconfigurations)
	c.Marks = room[timeline.Mark](n.marks)
	c.Truth = room[timeline.Mark](n.truth)
	c.Expected = room[timeline.Expectation](n.expected)
	c.Notes, c.NoteOf = room[watch.Note](n.notes), room[int](n.notes)
	c.Samples = room[Sample](n.samples)
}

// room returns an empty list for n items, nil for none.
func room[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, 0, n)
}

// point reads the lines of one point. What is whole and yet makes no sense is left out and
// told of.
func (c *contents) point(events, samples ndjson, p span) error {
	var first error
	bad := 0
	for _, part := range []struct {
		file    ndjson
		at, end int64
	}{{events, p.at, p.end}, {samples, p.samplesAt, p.samplesEnd}} {
		if part.at == part.end {
			continue
		}
		c.buffer = slices.Grow(c.buffer[:0], int(part.end-part.at))[:part.end-part.at]
		if _, err := part.file.ReadAt(c.buffer, part.at); err != nil {
			return err
		}
		for line := range bytes.Lines(c.buffer) {
			if err := c.line(line[:len(line)-1]); err != nil {
				first = cmp.Or(first, err)
				bad++
			}
		}
	}
	if bad > 0 {
		c.refused = append(c.refused, Event{Kind: "skipped", Point: p.Point,
			Text: fmt.Sprintf("Lines of point %d, %d in all, were left out, since they make no sense: %v.", p.Point, bad, first)})
	}
	return nil
}

func (c *contents) line(text []byte) error {
	switch kind := string(kindOf(text)); kind {
	case kindMark:
		return add(&c.Marks, func(m *timeline.Mark) error { return c.mark(text, kindMark, m) })
	case kindTruth:
		return add(&c.Truth, func(m *timeline.Mark) error { return c.mark(text, kindTruth, m) })
	case kindExpected:
		return add(&c.Expected, func(e *timeline.Expectation) error { return c.expected(text, e) })
	case kindSample:
		return add(&c.Samples, func(s *Sample) error { return c.sample(text, s) })
	case kindReconfiguration:
		return add(&c.Reconfigurations, func(r *Reconfiguration) error { return json.Unmarshal(text, r) })
	case kindNote:
		var n noteLine
		if err := json.Unmarshal(text, &n); err != nil {
			return err
		}
		c.Notes = append(c.Notes, watch.Note{
			Kind: n.Note, Event: c.shared(n.Event), Subject: c.shared(n.Subject), Host: c.shared(n.Host),
			Interval: n.Interval, Source: c.shared(n.Source), Text: c.shared(n.Text),
		})
		c.NoteOf = append(c.NoteOf, n.Reconfiguration)
	default:
		c.skipped[kind]++
	}
	return nil
}

// add appends what read reads, unless it fails.
func add[T any](to *[]T, read func(*T) error) error {
	var zero T
	*to = append(*to, zero)
	last := len(*to) - 1
	if err := read(&(*to)[last]); err != nil {
		*to = (*to)[:last]
		return err
	}
	return nil
}

// finish adds what was found and puts into order what a point had out of order.
func (c *contents) finish(l *ledger) {
	s := scanner{ledger: l}
	for _, kind := range slices.Sorted(maps.Keys(c.skipped)) {
		s.found("skipped", 0, skippedText(kind, c.skipped[kind]))
	}
	for _, e := range c.refused {
		s.found(e.Kind, e.Point, e.Text)
	}
	c.Events = l.events
	inOrder(c.Reconfigurations, func(r *Reconfiguration) int { return r.Number })
	inOrder(c.Marks, func(m *timeline.Mark) int { return m.Reconfiguration })
	inOrder(c.Truth, func(m *timeline.Mark) int { return m.Reconfiguration })
	inOrder(c.Expected, func(e *timeline.Expectation) int { return e.Reconfiguration })
	inOrder(c.Samples, func(s *Sample) int { return s.Reconfiguration })
}

// inOrder sorts unless it is done, as it nearly always is; what is equal stays as it was. It
// goes by index, as copies of the items whose addresses are taken would be on the heap.
func inOrder[T any](items []T, of func(*T) int) {
	less := func(i, j int) bool { return of(&items[i]) < of(&items[j]) }
	if !sort.SliceIsSorted(items, less) {
		sort.SliceStable(items, less)
	}
}
