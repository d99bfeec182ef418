package runs

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/ocslab/ocslab/experiment/plan"
	"github.com/ocslab/ocslab/internal/statedir"
)

// Sentinel errors; test with errors.Is.
var (
	// ErrNewer: the run was written by a later version of ocslab, in a form that this
	// one does not know.
	ErrNewer = errors.New("written by a newer version of ocslab")
	// ErrUnknown: there is no such run, or more than one that a text could mean.
	ErrUnknown = errors.New("not the name of one run")
	// ErrBusy: another process works on the run.
	ErrBusy = errors.New("the run is being worked on")
	// ErrIdle: no process works on the run.
	ErrIdle = errors.New("no process works on the run")
)

// lockPatience is how long to wait for the lock of a run. Who works on a run holds it for
// long, and who only looks whether it is held, for microseconds.
const lockPatience = 200 * time.Millisecond

// Names in the directory of runs of what is not yet a run, or no longer one.
const (
	newPrefix     = ".new-"
	removedPrefix = ".removed-"
)

// Store is a directory of runs. It is safe for concurrent use, also by several
// processes, and holds no file open between calls, so it need not be closed. [Open] makes
// one.
type Store struct {
	state string // the state directory
	dir   string // of the runs
	// remote says what kind of network file system a directory is on, "" for none.
	remote func(dir string) string
	clock  func() (wall time.Time, monoNS int64) // one moment on both; tests have another
	disk   func(path string) (disk, error)       // opens one of the files that grow

	mu     sync.Mutex // guards remark
	remark string
}

// Creation is what a run begins with.
type Creation struct {
	Meta       Meta       // Format, ID, Created (if zero) and StateDir are filled in
	Experiment []byte     // the experiment file as given
	Lab        []byte     // the lab file as given
	Plan       *plan.Plan // what will be done
}

// Open opens the store in <stateDir>/runs, and creates both for the user alone if they are
// not there.
func Open(stateDir string) (*Store, error) {
	state, err := filepath.Abs(stateDir)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	s := &Store{
		state:  state,
		dir:    filepath.Join(state, "runs"),
		remote: remoteFileSystem,
		clock:  hostClock,
		disk:   openDisk,
	}
	if err := statedir.Make(s.dir); err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return s, nil
}

// Remark is one sentence that people who list runs should see, such as that there is no
// index; "" if there is nothing to say. It is about the last call of List or Reindex.
func (s *Store) Remark() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.remark
}

func (s *Store) setRemark(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remark = text
}

// Dir returns the directory of a run, which need not exist.
func (s *Store) Dir(id string) string { return filepath.Join(s.dir, id) }

// Create begins a run and locks it. Its ID is that of the [Writer].
func (s *Store) Create(ctx context.Context, c Creation) (*Writer, error) {
	if c.Plan == nil {
		return nil, errors.New("runs: a run needs a plan")
	}
	m := c.Meta
	m.Format, m.StateDir = Format, s.state
	if m.Created.IsZero() {
		m.Created, _ = s.clock()
	}
	m.Created = m.Created.UTC().Round(0)
	for range 100 {
		m.ID = newID(m.Created, m.Name)
		err := s.make(m, c)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("runs: the run could not be begun: %w", err)
		}
		w, err := s.open(ctx, m, c.Plan)
		if err != nil { // nobody has seen it yet
			return nil, errors.Join(err, os.RemoveAll(s.Dir(m.ID)))
		}
		return w, nil
	}
	return nil, fmt.Errorf("runs: %s has too many runs named %q", s.dir, m.Name)
}

// make makes the directory of a run: under another name first, so that a process killed in
// between leaves no half run. The error matches fs.ErrExist when the ID is taken.
func (s *Store) make(m Meta, c Creation) (err error) {
	if _, err := os.Lstat(s.Dir(m.ID)); err == nil {
		return fs.ErrExist
	}
	meta, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	planned, err := json.Marshal(c.Plan)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(planned, new(plan.Plan)); err != nil {
		return fmt.Errorf("the plan could not be read again: %w", err)
	}
	dir := filepath.Join(s.dir, newPrefix+m.ID)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	for _, f := range []struct {
		name string
		data []byte
	}{
		{metaFile, append(meta, '\n')},
		{experimentFile, c.Experiment},
		{labFile, c.Lab},
		{planFile, append(planned, '\n')},
		{eventsFile, nil},
		{samplesFile, nil},
	} {
		if err := statedir.WriteFile(filepath.Join(dir, f.name), f.data); err != nil {
			return err
		}
	}
	// Another process that has drawn the same ID has failed at Mkdir, or will at this.
	if err := os.Rename(dir, s.Dir(m.ID)); err != nil {
		if _, taken := os.Lstat(s.Dir(m.ID)); taken == nil {
			return fs.ErrExist
		}
		return err
	}
	return statedir.SyncDir(s.dir)
}

// open takes the lock of a run that has just been made.
func (s *Store) open(ctx context.Context, m Meta, p *plan.Plan) (*Writer, error) {
	unlock, err := s.lock(ctx, m.ID)
	if err != nil {
		return nil, err
	}
	w, err := s.newWriter(&Run{Meta: m, Dir: s.Dir(m.ID), Plan: p}, unlock)
	if err != nil {
		unlock()
		return nil, fmt.Errorf("runs: %s: %w", m.ID, err)
	}
	s.index(ctx, w.entry(Running))
	return w, nil
}

// lock takes the lock of a run. The error matches [ErrBusy] when another has it.
func (s *Store) lock(ctx context.Context, id string) (unlock func(), err error) {
	short, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	unlock, err = statedir.Lock(short, filepath.Join(s.Dir(id), lockFile))
	switch {
	case err == nil:
		return unlock, nil
	case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("runs: %s: %w by %s: ocslab runs stop %s ends it", id, ErrBusy, statedir.Holder(filepath.Join(s.Dir(id), lockFile)), id)
	}
	return nil, fmt.Errorf("runs: %s: %w", id, err)
}

// Resume goes on with a run: it locks it, moves what a killed process left unfinished out of
// the way, to events.ndjson.torn-1 and so on, and returns the run so far. A summary that the
// run has is in Run.Summary and moved to summary-1.json and so on, so that the run has none
// until [Writer.Finish]. The error matches [ErrUnknown], [ErrNewer], or, naming the holder
// of the lock, [ErrBusy].
func (s *Store) Resume(ctx context.Context, id string) (*Writer, *Run, error) {
	r, err := s.begin(id) // before anything of a run that is not understood is touched
	if err != nil {
		return nil, nil, err
	}
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	w, err := s.resume(ctx, r, unlock)
	if err != nil {
		unlock()
		return nil, nil, fmt.Errorf("runs: %s: %w", id, err)
	}
	return w, r, nil
}

// resume brings r, whose lock is held, up to date.
func (s *Store) resume(ctx context.Context, r *Run, unlock func()) (*Writer, error) {
	var damage string
	var err error
	if r.Summary, damage, err = readSummary(r.Dir); err != nil {
		return nil, err
	}
	torn, err := recoverFiles(ctx, r.Dir)
	if err != nil {
		return nil, err
	}
	if damage != "" {
		torn = append(torn, damage)
	}
	if r.Summary != nil || damage != "" {
		if err := setAside(r.Dir, summaryFile, "summary-%d.json"); err != nil {
			return nil, err
		}
	}
	// What somebody wanted of a process that is gone is not wanted of this one.
	if err := os.Remove(filepath.Join(r.Dir, controlFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w, err := s.newWriter(r, unlock)
	if err != nil {
		return nil, err
	}
	r.State = Running
	if err := r.read(ctx, true); err != nil {
		w.closeFiles()
		return nil, err
	}
	w.take(r)
	for _, text := range torn {
		if err := w.Event(Event{Kind: "recovered", Session: len(r.Sessions), Text: text}); err != nil {
			w.closeFiles()
			return nil, err
		}
		r.Events = append(r.Events, w.last)
	}
	s.index(ctx, w.entry(Running))
	return w, nil
}

// setAside renames a file to the first free name of a pattern with a number.
func setAside(dir, name, pattern string) error {
	for n := 1; ; n++ { // the lock is held: nobody else makes such files meanwhile
		aside := filepath.Join(dir, fmt.Sprintf(pattern, n))
		if _, err := os.Lstat(aside); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Rename(filepath.Join(dir, name), aside); err != nil {
			return err
		}
		return statedir.SyncDir(dir)
	}
}

// Find returns the ID that text means: the whole ID, a beginning or another part of it that
// only one run has, or "last" for the one that was begun last. The error matches [ErrUnknown]; when there are
// several it names some.
func (s *Store) Find(ctx context.Context, text string) (id string, err error) {
	ids, err := s.ids()
	if err != nil {
		return "", err
	}
	if len(ids) == 0 {
		return "", fmt.Errorf("runs: %q: %w: there is none in %s yet", text, ErrUnknown, s.dir)
	}
	if text == "last" {
		return s.newest(ids), nil
	}
	if text == "" {
		return "", fmt.Errorf("runs: %w: without a name; write a part of its ID, or \"last\"", ErrUnknown)
	}
	if slices.Contains(ids, text) {
		return text, nil
	}
	for _, fits := range []func(id, text string) bool{strings.HasPrefix, strings.Contains} {
		var found []string
		for _, id := range ids {
			if fits(id, text) {
				found = append(found, id)
			}
		}
		switch n := len(found); {
		case n == 1:
			return found[0], nil
		case n > 1:
			return "", fmt.Errorf("runs: %q: %w: %d runs are named so, the newest are %s: write more of it", text, ErrUnknown, n, strings.Join(found[max(0, n-3):], ", "))
		}
	}
	return "", fmt.Errorf("runs: %q: %w: \"ocslab runs list\" shows those that there are", text, ErrUnknown)
}

// newest returns the ID of the run that was begun last. IDs, which are in order, begin with the
// second of that, so only those of the last second need to be looked into. One that cannot be read
// counts as begun with its second.
func (s *Store) newest(ids []string) string {
	id := ids[len(ids)-1]
	from := sort.SearchStrings(ids, id[:len(idTime)])
	if from == len(ids)-1 {
		return id
	}
	var latest time.Time
	for _, other := range ids[from:] {
		if m, err := readMeta(s.Dir(other)); err == nil && !m.Created.Before(latest) {
			id, latest = other, m.Created
		}
	}
	return id
}

// ids returns the IDs of all runs, in order, which is that of the seconds in which they were begun.
func (s *Store) ids() ([]string, error) {
	names, err := s.names()
	if err != nil {
		return nil, err
	}
	ids := slices.DeleteFunc(names, func(name string) bool { return !isID(name) })
	slices.Sort(ids)
	return ids, nil
}

// names returns what is in the directory.
func (s *Store) names() ([]string, error) {
	d, err := os.Open(s.dir)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("runs: %w", err)
	}
	return names, nil
}

// Remove deletes a run. The error matches [ErrBusy] when a process works on it. A crash leaves
// all of the run or nothing that is taken for one.
func (s *Store) Remove(ctx context.Context, id string) error {
	if !isID(id) {
		return fmt.Errorf("runs: %q: %w", id, ErrUnknown)
	}
	if _, err := os.Stat(s.Dir(id)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("runs: %s: %w", id, ErrUnknown)
	}
	unlock, err := s.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	away := filepath.Join(s.dir, removedPrefix+id)
	if err := os.Rename(s.Dir(id), away); err != nil {
		return fmt.Errorf("runs: %s could not be removed: %w", id, err)
	}
	s.unindex(ctx, id)
	if err := errors.Join(statedir.SyncDir(s.dir), os.RemoveAll(away)); err != nil {
		return fmt.Errorf("runs: %s is no longer a run, but some of its files remain: %w", id, err)
	}
	return nil
}

// Send tells the process that works on a run what is wanted of it. What was sent before and
// not yet taken is replaced. The error matches [ErrIdle] when there is no such process.
func (s *Store) Send(ctx context.Context, id string, c Control) error {
	r, err := s.begin(id)
	if err != nil {
		return err
	}
	if !held(filepath.Join(r.Dir, lockFile)) {
		return fmt.Errorf("runs: %s: %w: it cannot be told to %s", id, ErrIdle, c)
	}
	if err := statedir.WriteFile(filepath.Join(r.Dir, controlFile), []byte(c+"\n")); err != nil {
		return fmt.Errorf("runs: %s: %w", id, err)
	}
	return nil
}

// valid reports whether c is one of the controls.
func (c Control) valid() bool { return c == Pause || c == Continue || c == Stop || c == Abort }

// idTime is how the time in an ID is written.
const idTime = "20060102T150405"

// isID reports whether a run can have that ID; it is then safe as the name of a file. It has
// the form 20261122T101500-opus-night-3f2a.
func isID(text string) bool {
	at, rest, _ := strings.Cut(text, "-")
	cut := strings.LastIndexByte(rest, '-')
	if len(at) != len(idTime) || cut < 1 || len(rest)-cut != 1+4 || len(text) > 64 {
		return false
	}
	for i, c := range []byte(at) {
		if c != idTime[i] && (c < '0' || c > '9' || idTime[i] == 'T') {
			return false
		}
	}
	for _, c := range []byte(rest) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

// newID returns an ID for a run begun at t.
func newID(t time.Time, name string) string {
	var random [2]byte
	rand.Read(random[:]) // never fails
	return t.Format(idTime) + "-" + slug(name) + "-" + hex.EncodeToString(random[:])
}

// slug returns what of a name can be a part of an ID.
func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	s := strings.Join(words, "-")
	s = strings.TrimRight(s[:min(len(s), 40)], "-")
	if s == "" {
		return "run"
	}
	return s
}
