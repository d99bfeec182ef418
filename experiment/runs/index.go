package runs

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
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
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/ocslab/ocslab/internal/statedir"
)

// indexFile is a cache: what is in it can be made from the directories. A form that differs
// gets another name.
const indexFile = "index-v1.sqlite"

const schema = `create table if not exists runs (
	run text primary key, name text not null, state text not null, created_ns integer not null, ended_ns integer not null,
	lab text not null, emulated integer not null, figure text not null, points integer not null, planned integer not null,
	verdict text not null) without rowid`

const (
	// One text for each run, since package sql takes many times as long for many columns.
	selectRuns = `select concat_ws(char(31), run, name, state, created_ns, ended_ns, lab, emulated, figure, points, planned, verdict) from runs order by run`
	insertRun  = `insert or replace into runs values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	deleteRun  = `delete from runs where run = ?`
)

// Filter says which runs [Store.List] returns. What is zero does not restrict.
type Filter struct {
	Name   string // a part of the name
	State  State
	Lab    string
	Figure string
	Since  time.Time // created then or later
	Limit  int       // at most so many, the newest
}

func (f Filter) lets(e *Entry) bool {
	return strings.Contains(e.Name, f.Name) &&
		(f.State == "" || e.State == f.State) &&
		(f.Lab == "" || e.Lab == f.Lab) &&
		(f.Figure == "" || e.Figure == f.Figure) &&
		!e.Created.Before(f.Since)
}

// Problem is a directory that cannot be used as a run.
type Problem struct {
	Dir    string
	Reason string // one sentence
}

// Reindexed is what [Store.Reindex] found.
type Reindexed struct {
	Runs     int
	Problems []Problem
}

// List returns the runs that f lets through, the newest first. It reads the index and
// only those directories of which that does not know enough. Where there cannot be an index
// it reads all; [Store.Remark] then says why, and also when there are directories that
// cannot be read.
func (s *Store) List(ctx context.Context, f Filter) ([]Entry, error) {
	s.setRemark("")
	entries, problems, err := s.entries(ctx)
	if err != nil {
		return nil, err
	}
	if len(problems) > 0 {
		s.setRemark(strings.TrimSpace(fmt.Sprintf("%s Of the directories in %s, %d cannot be read: \"ocslab runs reindex\" says why.", s.Remark(), s.dir, len(problems))))
	}
	slices.SortFunc(entries, func(a, b Entry) int { // an ID has no more than the second
		return cmp.Or(b.Created.Compare(a.Created), strings.Compare(b.ID, a.ID))
	})
	var found []Entry
	for i := range entries {
		if f.lets(&entries[i]) {
			found = append(found, entries[i])
			if len(found) == f.Limit {
				break
			}
		}
	}
	return found, nil
}

// Reindex makes the index anew from the directories, finishes what a killed process has left
// of removing a run, and tells what in the directory is no run.
func (s *Store) Reindex(ctx context.Context) (Reindexed, error) {
	s.setRemark("")
	if err := removeIndex(s.dir); err != nil {
		return Reindexed{}, fmt.Errorf("runs: the index could not be removed: %w", err)
	}
	entries, problems, err := s.entries(ctx)
	if err != nil {
		return Reindexed{}, err
	}
	r := Reindexed{Runs: len(entries), Problems: problems}
	names, err := s.names()
	if err != nil {
		return r, err
	}
	for _, name := range names {
		reason := ""
		switch {
		case strings.HasPrefix(name, removedPrefix):
			if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
				reason = fmt.Sprintf("it is what remains of a run that was removed, and could not be: %v", err)
			}
		case strings.HasPrefix(name, newPrefix):
			reason = "it is a run that is just beginning, or whose process was killed then: after a while it can be deleted"
		case isID(name) || strings.HasPrefix(name, indexFile):
		default:
			reason = "its name is not the ID of a run"
		}
		if reason != "" {
			r.Problems = append(r.Problems, Problem{filepath.Join(s.dir, name), reason})
		}
	}
	slices.SortFunc(r.Problems, func(a, b Problem) int { return strings.Compare(a.Dir, b.Dir) })
	return r, nil
}

// entries returns all runs in order of their IDs. It brings the index up to date.
func (s *Store) entries(ctx context.Context) ([]Entry, []Problem, error) {
	ids, err := s.ids()
	if err != nil {
		return nil, nil, err
	}
	db, known, err := s.known(ctx)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		s.setRemark(fmt.Sprintf("There is no index of runs, so each list reads all of them: %v.", err))
	} else {
		defer db.Close()
	}
	var entries, changed []Entry
	var problems []Problem
	var gone []string
	for _, id := range ids {
		for len(known) > 0 && known[0].ID < id {
			gone, known = append(gone, known[0].ID), known[1:]
		}
		var old *Entry
		if len(known) > 0 && known[0].ID == id {
			old, known = &known[0], known[1:]
		}
		if old != nil && old.State != Running {
			entries = append(entries, *old)
			continue
		}
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		e, err := s.look(id, old)
		if errors.Is(err, fs.ErrNotExist) && !exists(s.Dir(id)) {
			gone = append(gone, id) // removed meanwhile
			continue
		}
		if err != nil {
			problems = append(problems, Problem{s.Dir(id), err.Error()})
			continue
		}
		entries = append(entries, e)
		if old == nil || old.State != e.State {
			changed = append(changed, e)
		}
	}
	for _, e := range known {
		gone = append(gone, e.ID)
	}
	if db != nil && len(changed)+len(gone) > 0 {
		_ = update(ctx, db, changed, gone) // tried again by the next list
	}
	return entries, problems, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// look makes the entry of a run from its directory. What an older entry says and cannot have
// changed is taken from there.
func (s *Store) look(id string, old *Entry) (Entry, error) {
	dir := s.Dir(id)
	m, err := readMeta(dir)
	if err != nil {
		return Entry{}, err
	}
	// In this order: who holds no lock now has written its summary before.
	locked := held(filepath.Join(dir, lockFile))
	summary, _, err := readSummary(dir)
	if err != nil {
		return Entry{}, err
	}
	points, planned := 0, 0
	if summary == nil {
		if old != nil {
			planned = old.Planned
		} else {
			var p struct {
				Points []struct{} `json:"points"`
			}
			if err := readJSON(dir, planFile, &p); err != nil {
				return Entry{}, err
			}
			planned = len(p.Points)
		}
		if points, err = countFinished(dir); err != nil {
			return Entry{}, err
		}
	}
	return entryOf(m, dir, summary, stateOf(summary, locked), points, planned), nil
}

func entryOf(m Meta, dir string, s *Summary, state State, points, planned int) Entry {
	e := Entry{
		ID: m.ID, Name: m.Name, State: state, Created: m.Created, Lab: m.Lab, Emulated: m.Emulated, Figure: m.Figure,
		Points: points, Planned: planned, Dir: dir,
	}
	if s != nil {
		e.Ended, e.Points, e.Planned, e.Verdict = s.Ended, s.Points, s.Planned, s.Verdict
	}
	return e
}

// countFinished returns how many points a run had when the last one was finished. That
// stands near the end of the file.
func countFinished(dir string) (int, error) {
	f, err := openNDJSON(dir, eventsFile)
	if err != nil {
		return 0, err
	}
	defer f.close()
	size, err := f.size()
	if err != nil {
		return 0, err
	}
	const step, longest = 1 << 16, 1 << 10 // how much is read at once, and how long such a line can be
	mark := []byte("\n{\"kind\":\"" + kindDone + "\"")
	buffer := make([]byte, step+longest)
	for end := size; end > 0; end -= step {
		from := max(end-step, 0)
		n, err := f.readAt(buffer[:min(end+longest, size)-from], from)
		if err != nil {
			return 0, err
		}
		part := buffer[:n]
		for at := bytes.LastIndex(part, mark); at >= 0; at = bytes.LastIndex(part[:at], mark) {
			line, _, whole := bytes.Cut(part[at+1:], newline)
			var d done
			if whole && json.Unmarshal(line, &d) == nil {
				return d.Finished, nil
			}
		}
	}
	return 0, nil
}

// known opens the index and reads it. One that is damaged or of another form is made anew.
func (s *Store) known(ctx context.Context) (*sql.DB, []Entry, error) {
	if kind := s.remote(s.dir); kind != "" {
		return nil, nil, fmt.Errorf("%s is on a network file system (%s)", s.dir, kind)
	}
	for again := false; ; again = true {
		db, err := openIndex(ctx, s.dir)
		if err != nil && ctx.Err() == nil && !again && damaged(err) {
			if err := removeIndex(s.dir); err != nil {
				return nil, nil, err
			}
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		known, err := s.readIndex(ctx, db)
		if err == nil {
			return db, known, nil
		}
		db.Close()
		if ctx.Err() != nil || again || !damaged(err) {
			return nil, nil, err
		}
		if err := removeIndex(s.dir); err != nil {
			return nil, nil, err
		}
	}
}

// openIndex opens the database, and makes it if it is not there.
func openIndex(ctx context.Context, dir string) (*sql.DB, error) {
	path := (&url.URL{Path: filepath.ToSlash(filepath.Join(dir, indexFile))}).EscapedPath()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.ExecContext(ctx, schema); err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

// damaged reports whether the index is to be made anew: it is not that it cannot be had now.
func damaged(err error) bool {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT:
		return true
	}
	return false
}

func removeIndex(dir string) error {
	var errs []error
	for _, suffix := range []string{"-wal", "-shm", ""} {
		if err := os.Remove(filepath.Join(dir, indexFile+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, statedir.SyncDir(dir))...)
}

func (s *Store) readIndex(ctx context.Context, db *sql.DB) ([]Entry, error) {
	rows, err := db.QueryContext(ctx, selectRuns)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	var row sql.RawBytes
	for rows.Next() {
		if err := rows.Scan(&row); err != nil {
			return nil, err
		}
		if e, ok := parseEntry(string(row)); ok { // what is odd is looked up in its directory
			e.Dir = s.Dir(e.ID)
			entries = append(entries, e)
		}
	}
	return entries, rows.Err()
}

// parseEntry reads what selectRuns returns.
func parseEntry(row string) (e Entry, ok bool) {
	var f [11]string
	for i := range f {
		if f[i], row, ok = strings.Cut(row, "\x1f"); ok != (i < len(f)-1) {
			return Entry{}, false
		}
	}
	var created, ended, emulated int64
	for _, n := range []struct {
		text string
		to   *int64
	}{{f[3], &created}, {f[4], &ended}, {f[6], &emulated}} {
		var err error
		if *n.to, err = strconv.ParseInt(n.text, 10, 64); err != nil {
			return Entry{}, false
		}
	}
	points, err1 := strconv.Atoi(f[8])
	planned, err2 := strconv.Atoi(f[9])
	if err1 != nil || err2 != nil {
		return Entry{}, false
	}
	e = Entry{
		ID: f[0], Name: f[1], State: State(f[2]), Created: time.Unix(0, created).UTC(), Lab: f[5], Emulated: emulated != 0, Figure: f[7],
		Points: points, Planned: planned, Verdict: f[10],
	}
	if ended != 0 {
		e.Ended = time.Unix(0, ended).UTC()
	}
	return e, true
}

// update brings changes into the index, all or none.
func update(ctx context.Context, db *sql.DB, changed []Entry, gone []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	insert, err := tx.PrepareContext(ctx, insertRun)
	if err != nil {
		return err
	}
	for _, e := range changed {
		var ended int64
		if !e.Ended.IsZero() {
			ended = e.Ended.UnixNano()
		}
		if _, err := insert.ExecContext(ctx, e.ID, e.Name, e.State, e.Created.UnixNano(), ended, e.Lab, e.Emulated, e.Figure, e.Points, e.Planned, e.Verdict); err != nil {
			return err
		}
	}
	for _, id := range gone {
		if _, err := tx.ExecContext(ctx, deleteRun, id); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// index puts a run into the index. That this fails is no reason to fail: List makes it anew.
func (s *Store) index(ctx context.Context, e Entry) { s.updateIndex(ctx, []Entry{e}, nil) }

func (s *Store) unindex(ctx context.Context, id string) { s.updateIndex(ctx, nil, []string{id}) }

func (s *Store) updateIndex(ctx context.Context, changed []Entry, gone []string) {
	if s.remote(s.dir) != "" {
		return
	}
	db, err := openIndex(ctx, s.dir)
	if err == nil {
		err = errors.Join(update(ctx, db, changed, gone), db.Close())
	}
	if err != nil {
		_ = removeIndex(s.dir) // rather none than one that is wrong and believed
	}
}
