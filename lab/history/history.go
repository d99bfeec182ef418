package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/ocs"
)

// Names in the directory of a log. To fileName "torn-1" and so on are added
// for what was cut off.
const (
	fileName = "history.ndjson"
	lockName = "history.lock"
)

// lockPatience is how long to wait for other processes, which hold the lock
// for a few milliseconds unless they are stopped or the disk hangs.
const lockPatience = 10 * time.Second

// Sentinel errors; test with errors.Is.
var (
	// ErrNewer: the file has lines of a newer version of the format.
	ErrNewer = errors.New("history was written by a newer version of ocslab")
	// ErrUnknownID: there is no change of that ID.
	ErrUnknownID = errors.New("no such change in the history")
	// ErrUndone: the change to take back has been taken back.
	ErrUndone = errors.New("already taken back")
	// ErrUnrecorded: a [Recorder] could not record a change and did not pass it on.
	ErrUnrecorded = errors.New("nothing was sent, as it could not be recorded")
)

// State is what is known of the outcome of a change.
type State string

const (
	// Pending: begun, and the outcome is not known. The process is still at
	// it or was killed, or, where Ended is set, the device's answer was lost.
	Pending State = "pending"
	// Done: the device acknowledged.
	Done State = "done"
	// Failed: nothing was sent, or the device refused.
	Failed State = "failed"
	// Unverified: acknowledged, but the device reads back something else.
	Unverified State = "unverified"
)

func (s State) valid() bool { return s == Pending || s == Done || s == Failed || s == Unverified }

// Entry is one change to one switch.
type Entry struct {
	ID       int        // from 1, ascending; given by Begin
	Began    time.Time  // zero for Begin: now
	Ended    time.Time  // when the outcome was last recorded; zero if never
	Switch   string     // name in the lab, or URL
	Device   string     // canonical address, what undo goes by: "tl1://192.0.2.10:3082" or "emulated:opus-testbed/rail0"
	Command  string     // the command line, for people; no secrets
	Change   ocs.Change // its Inverse is what takes it back
	State    State
	Error    string // why it is not Done; for people
	UndoOf   int    // the entry this one was to take back, or 0
	UndoneBy int    // the entry that took this one back, or 0; computed
	AckNS    int64  // from the last request sent to its acknowledgement, 0 if not known
	Who      string // who ran the command, "alice@lab1"; "" in files of older versions

	// Group is the ID of the first of the entries that one operation made together, on one or
	// several switches; 0 for a change of its own. Undo takes all of a group back.
	Group int
	// Set are settings of ports that are not circuits. Change is empty then.
	Set []Setting
	// Until is set for settings that hold only while a program runs: the lock that it holds. A
	// later program restores them once the lock is free; see [Log.Abandoned].
	Until string
}

// NewGroup as the Group of an entry begins a group with that entry.
const NewGroup = -1

// Setting is what an operation other than a cross-connect has changed at a port.
type Setting struct {
	Kind string   `json:"kind"`           // "monitor", "shutter", "label", "attenuation", "boot mode" or "restart"
	Port ocs.Port `json:"port,omitempty"` // 0 for the whole device
	From string   `json:"from,omitempty"` // before, as package lab writes it; "" if it was not known
	To   string   `json:"to,omitempty"`
}

// String returns "shutter of port 3: open to closed".
func (s Setting) String() string {
	text := s.Kind
	if s.Port != 0 {
		text += fmt.Sprintf(" of port %d", s.Port)
	}
	switch {
	case s.From != "" && s.To != "":
		text += ": " + s.From + " to " + s.To
	case s.To != "":
		text += ": " + s.To
	}
	return text
}

// Result is what [Log.End] records beside the state.
type Result struct {
	AckNS int64  // 0 leaves what was recorded before
	Error string // for people; no secrets
}

// Problem is a line of the file that could not be used. Entries are complete
// but for what stood there.
type Problem struct {
	Line   int // from 1
	Reason string
}

// String returns "line 3: " and the reason.
func (p Problem) String() string { return fmt.Sprintf("line %d: %s", p.Line, p.Reason) }

// Log is a history on disk. It is safe for concurrent use and holds no file
// open between calls, so it need not be closed. Open makes one.
type Log struct {
	// Set by Open.
	path, lock string
	patience   time.Duration
	fsync      func(*os.File) error

	// turn holds a token while one of the Log's users has the file locked,
	// and guards all following fields. The lock alone would do for the file,
	// but is slow to change hands.
	turn chan struct{}

	// What was read so far: the file up to the end of its last good line.
	// As the file only grows behind that, only what is new is ever read.
	info     os.FileInfo // of the file that was read
	offset   int64
	lines    int
	entries  []Entry // in order of ID, without UndoneBy
	lastID   int     // highest in any line
	problems []Problem
}

// Open opens the history in dir. It creates nothing: the first change does,
// and dir too, for the user alone. A torn end is moved aside, see the package
// comment, and is then among the Problems. The error matches [ErrNewer] when
// the history is not to be touched by this version.
func Open(dir string) (*Log, error) {
	if dir == "" {
		return nil, errors.New("history: no directory")
	}
	l := At(dir)
	if err := l.reading(func([]Problem) {}); err != nil {
		return nil, err
	}
	return l, nil
}

// At is [Open] without reading anything: what keeps the history from being used is an error of its methods.
func At(dir string) *Log {
	return &Log{
		path:     filepath.Join(dir, fileName),
		lock:     filepath.Join(dir, lockName),
		patience: lockPatience,
		fsync:    statedir.Sync,
		turn:     make(chan struct{}, 1),
	}
}

// Begin records that a change is about to be sent and returns its ID. It uses
// Began, Switch, Device, Command, Change and UndoOf of e. When it returns
// without error the change is on disk; when it fails nothing must be sent.
//
// The Change may be empty only for an undo that finds nothing to do. The error
// matches [ErrUnknownID] when there is no entry UndoOf, [ErrUndone] when that
// is taken back already.
func (l *Log) Begin(e Entry) (id int, err error) {
	ids, err := l.BeginAll(context.Background(), []Entry{e})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// BeginAll is [Log.Begin] for the changes of one operation, which become a group if they are several:
// all of them are on disk when it returns without error, or none.
func (l *Log) BeginAll(ctx context.Context, entries []Entry) (ids []int, err error) {
	return l.add(ctx, entries, false)
}

// Record records a change that has been made already, with its outcome, in one
// write: all of it is on disk, or nothing. It is for light that cannot wait for
// the history. It uses of e what Begin does, with State, Error and AckNS, and
// waits for the lock until ctx ends.
func (l *Log) Record(ctx context.Context, e Entry) (id int, err error) {
	if !e.State.valid() {
		return 0, fmt.Errorf("history: state %q: want pending, done, failed or unverified", e.State)
	}
	ids, err := l.add(ctx, []Entry{e}, true)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// add appends the beginnings of changes and, of those that have ended, their ends.
func (l *Log) add(ctx context.Context, entries []Entry, ended bool) (ids []int, err error) {
	for _, e := range entries {
		switch {
		case e.Device == "":
			return nil, errors.New("history: the change names no device")
		case e.Change.Empty() && e.UndoOf == 0 && len(e.Set) == 0:
			return nil, errors.New("history: the change is empty")
		}
	}
	err = l.locked(ctx, func(f *os.File) error {
		var lines []any
		for i, e := range entries {
			if err := l.checkUndoLocked(e); err != nil {
				return err
			}
			id := l.lastID + 1 + i
			if id > maxID {
				return fmt.Errorf("%s: no ID is left after %d; move the file away", l.path, l.lastID)
			}
			if len(entries) > 1 && e.Group == 0 || e.Group == NewGroup {
				e.Group = l.lastID + 1
			}
			if e.Began.IsZero() {
				e.Began = time.Now()
			}
			b := begun{Switch: e.Switch, Device: e.Device, Command: e.Command, Remove: e.Change.Remove, Add: e.Change.Add, UndoOf: e.UndoOf,
				Who: e.Who, Group: e.Group, Set: e.Set, Until: e.Until}
			lines = append(lines, struct {
				header
				begun
			}{header{V: b.v(), Kind: kindBegin, ID: id, TimeNS: e.Began.UnixNano()}, b})
			if ended {
				lines = append(lines, endOf(id, e.State, Result{AckNS: e.AckNS, Error: e.Error}))
			}
			ids = append(ids, id)
		}
		return l.appendLocked(f, lines...)
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// checkUndoLocked refuses to take back what cannot be taken back.
func (l *Log) checkUndoLocked(e Entry) error {
	if e.UndoOf == 0 {
		return nil
	}
	i, ok := find(l.entries, e.UndoOf)
	if !ok {
		return fmt.Errorf("undo %d: %w", e.UndoOf, ErrUnknownID)
	}
	all := slices.Clone(l.entries)
	Link(all)
	switch target := all[i]; {
	case target.UndoneBy != 0:
		return fmt.Errorf("undo %d: %w by %d", e.UndoOf, ErrUndone, target.UndoneBy)
	case target.Device != e.Device:
		return fmt.Errorf("undo %d: it was made to %s, not to %s", e.UndoOf, target.Device, e.Device)
	}
	return nil
}

// End records the outcome of change id, durably. It may be called again when
// more is known: the last outcome counts. Pending with an Error says that the
// outcome could not be found out. When it fails the change stays as it was
// recorded before. The error matches [ErrUnknownID] when id never began.
func (l *Log) End(id int, state State, detail Result) error {
	if !state.valid() {
		return fmt.Errorf("history: state %q: want pending, done, failed or unverified", state)
	}
	// Not even a cancelled user may keep an outcome from being recorded.
	return l.locked(context.Background(), func(f *os.File) error {
		if _, ok := find(l.entries, id); !ok {
			return fmt.Errorf("end of change %d: %w", id, ErrUnknownID)
		}
		return l.appendLocked(f, endOf(id, state, detail))
	})
}

// Entries returns all changes in order of ID, and the lines of the file that
// could not be used. It keeps writers from the file only while it reads what
// they added since the last call, and needs no lock: it works on read-only
// media, and while a stopped process holds the lock.
func (l *Log) Entries() ([]Entry, []Problem, error) {
	var entries []Entry
	var problems []Problem
	err := l.reading(func(ps []Problem) {
		entries, problems = slices.Clone(l.entries), slices.Clone(ps)
	})
	if err != nil {
		return nil, nil, err
	}
	Link(entries)
	return entries, problems, nil
}

// Last returns the change that an undo without an ID takes back: the newest on
// device that is not undone, is not itself an undo, and did not fail; false if
// there is none. See the package comment.
func (l *Log) Last(device string) (Entry, bool, error) {
	entries, _, err := l.Entries()
	if err != nil {
		return Entry{}, false, err
	}
	for _, e := range slices.Backward(entries) {
		if e.Device == device && e.UndoOf == 0 && e.UndoneBy == 0 && e.State != Failed {
			return e, true, nil
		}
	}
	return Entry{}, false, nil
}

// find returns the index of the entry with that ID.
func find(entries []Entry, id int) (int, bool) {
	return slices.BinarySearchFunc(entries, id, func(e Entry, id int) int { return cmp.Compare(e.ID, id) })
}

// Link fills in UndoneBy. What undoes an entry is newer than it: going back
// from the newest, whether an undo still counts is known when it is reached.
func Link(entries []Entry) {
	for _, e := range slices.Backward(entries) {
		if e.UndoOf == 0 || e.State != Done || e.UndoneBy != 0 {
			continue
		}
		i, ok := find(entries, e.UndoOf)
		if !ok || entries[i].UndoneBy != 0 {
			continue
		}
		entries[i].UndoneBy = e.ID
		if entries[i].Group != 0 && len(entries[i].Set) == 0 { // the whole of what the group did to the device
			for j := range entries {
				x := &entries[j]
				if x.ID < e.ID && x.Group == entries[i].Group && x.Device == e.Device && x.UndoneBy == 0 && len(x.Set) == 0 {
					x.UndoneBy = e.ID
				}
			}
		}
	}
}

// Together returns the entries that an undo of e takes back: those of its group that are in force, oldest first, or e alone.
func Together(entries []Entry, e Entry) (all []Entry) {
	for _, x := range entries {
		if x.ID == e.ID || e.Group != 0 && x.Group == e.Group && x.UndoneBy == 0 && x.State != Failed {
			all = append(all, x)
		}
	}
	return all
}

// PlanUndo returns the change that takes back changes of one device, given oldest first, on a device that holds have; see
// [ocs.PlanUndo]. What one of them added and a later one removed is left alone, unless the outcome of that removal is
// not known and the circuit is still there; the same for what was removed and added again.
func PlanUndo(have ocs.Map, entries []Entry) (ocs.Change, error) {
	type step struct {
		was     bool // there before the first of the changes
		is      bool // to be there after the last
		unknown bool // whether the last took effect
	}
	steps := map[ocs.CrossConnect]step{}
	for _, e := range entries {
		for added, m := range map[bool]ocs.Map{false: e.Change.Remove, true: e.Change.Add} {
			for x := range m.All() {
				s, known := steps[x]
				if !known {
					s.was = !added
				}
				s.is, s.unknown = added, e.State != Done
				steps[x] = s
			}
		}
	}
	var added, removed []ocs.CrossConnect
	for x, s := range steps {
		switch changed := s.was != s.is || s.unknown; {
		case changed && !s.was && have.Has(x):
			added = append(added, x)
		case changed && s.was && !have.Has(x):
			removed = append(removed, x)
		}
	}
	remove, err := ocs.NewMap(added...)
	if err != nil {
		return ocs.Change{}, err
	}
	add, err := ocs.NewMap(removed...)
	if err != nil {
		return ocs.Change{}, fmt.Errorf("%w: %w", ocs.ErrConflict, err) // other users moved circuits in between
	}
	return ocs.PlanUndo(have, ocs.Change{Remove: add, Add: remove})
}

// MedianAck returns the median time that device took to acknowledge, of the
// entries where it is known, and how many those are.
func MedianAck(entries []Entry, device string) (time.Duration, int) {
	var acks []int64
	for _, e := range entries {
		if e.Device == device && e.AckNS > 0 {
			acks = append(acks, e.AckNS)
		}
	}
	n := len(acks)
	if n == 0 {
		return 0, 0
	}
	slices.Sort(acks)
	low, high := acks[(n-1)/2], acks[n/2]
	return time.Duration(low + (high-low)/2), n
}
