package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
)

// readPatience is how long a reader waits for a writer before it reads without the lock: long enough for one that
// works, too short to notice for one that is stopped.
const readPatience = 100 * time.Millisecond

// withTurn calls do while no other user of l reads or writes.
func (l *Log) withTurn(ctx context.Context, do func() error) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("history: waiting for %s: %w", l.path, context.Cause(ctx))
	}
	defer func() { <-l.turn }()
	return do()
}

// locked calls do with the file open for reading and appending, while nobody
// else in any process uses it, all of it has been read, and its torn end, if
// it had one, has been cut off.
func (l *Log) locked(ctx context.Context, do func(f *os.File) error) error {
	ctx, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	return l.withTurn(ctx, func() error { return l.exclusive(ctx, do) })
}

// exclusive is locked for who has the turn.
func (l *Log) exclusive(ctx context.Context, do func(f *os.File) error) error {
	if err := statedir.Make(filepath.Dir(l.path)); err != nil {
		return fmt.Errorf("history: %w", err)
	}
	unlock, err := statedir.Lock(ctx, l.lock)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer unlock()
	f, err := statedir.OpenFile(l.path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer f.Close() // what was written is synced
	torn, err := l.catchUpLocked(f)
	if err == nil && len(torn) > 0 {
		err = l.cutLocked(f, torn)
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	return do(f)
}

// reading calls do when all of the file has been read, with the problems of its lines. It creates nothing, so it works
// on read-only media and without a directory, and waits at most readPatience for a process that has the lock: such a
// process may be stopped. A torn end is cut off where that can be done.
func (l *Log) reading(do func(problems []Problem)) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.patience)
	defer cancel()
	return l.withTurn(ctx, func() error {
		torn, locked, err := l.look()
		if err != nil {
			return fmt.Errorf("history: %w", err)
		}
		problems := l.problems
		if len(torn) > 0 && locked { // else it may be a line that is just being written
			ctx, cancel := context.WithTimeout(ctx, readPatience)
			defer cancel()
			if err := l.exclusive(ctx, func(*os.File) error { return nil }); err == nil {
				problems = l.problems
			} else {
				problems = append(slices.Clone(problems), Problem{l.lines + 1, fmt.Sprintf("torn; the last %d bytes of the file are no whole line; skipped", len(torn))})
			}
		}
		do(problems)
		return nil
	})
}

// look reads what was added to the file since the last time, and returns what follows the last good line. locked says
// that no process was writing meanwhile.
func (l *Log) look() (torn []byte, locked bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), readPatience)
	defer cancel()
	unlock, err := statedir.RLock(ctx, l.lock)
	switch {
	case err == nil:
		defer unlock()
	case errors.Is(err, fs.ErrNotExist): // nobody has ever written here
	default:
		// What a writer has not finished may be cut off again: everything is read once more the next time.
		defer func() { l.info = nil }()
	}
	locked = err == nil || errors.Is(err, fs.ErrNotExist)
	f, err := statedir.OpenFile(l.path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		l.forgetLocked()
		return nil, locked, nil
	}
	if err != nil {
		return nil, locked, err
	}
	defer f.Close()
	torn, err = l.catchUpLocked(f)
	return torn, locked, err
}

// forgetLocked drops what was read.
func (l *Log) forgetLocked() {
	l.info, l.offset, l.lines, l.entries, l.lastID, l.problems = nil, 0, 0, nil, 0, nil
}

// catchUpLocked reads what was added to the file since the last time, and
// returns what follows the last good line.
func (l *Log) catchUpLocked(f *os.File) (torn []byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if l.info == nil || !os.SameFile(l.info, info) || info.Size() < l.offset {
		l.forgetLocked()
	}
	l.info = info
	data, err := io.ReadAll(io.NewSectionReader(f, l.offset, info.Size()-l.offset))
	if err != nil {
		return nil, err
	}
	return l.foldLocked(data)
}

// foldLocked takes in the lines of data, which follow on what was read before,
// and returns what comes after the last good one. It fails, with [ErrNewer],
// at a line of a newer version.
func (l *Log) foldLocked(data []byte) (rest []byte, err error) {
	var bad []Problem // since the last good line
	number, end, taken := l.lines, 0, 0
	for line := range bytes.Lines(data) {
		number++
		end += len(line)
		body, whole := bytes.CutSuffix(line, []byte("\n"))
		r, err := decode(body)
		switch {
		case errors.Is(err, ErrNewer):
			return nil, fmt.Errorf("%s, line %d: %w: use that version, or move the file away", l.path, number, err)
		case errors.Is(err, errDamaged) || !whole:
			bad = append(bad, Problem{number, "damaged; skipped"})
			continue
		case err == nil:
			err = l.takeLocked(r)
		}
		l.problems = append(l.problems, bad...)
		bad = nil
		if err != nil {
			l.problems = append(l.problems, Problem{number, err.Error() + "; skipped"})
		}
		l.lines, l.offset = number, l.offset+int64(end-taken)
		taken = end
	}
	return data[taken:], nil
}

// takeLocked brings what one line says into the entries.
func (l *Log) takeLocked(r record) error {
	if r.ID < 1 || r.ID > maxID {
		return fmt.Errorf("ID %d is outside 1-%d", r.ID, maxID)
	}
	last := l.lastID
	l.lastID = max(last, r.ID) // given out once, even if the line is no good otherwise
	i, begun := find(l.entries, r.ID)
	switch {
	case r.Kind == kindBegin && r.ID <= last:
		return fmt.Errorf("ID %d comes after ID %d", r.ID, last)
	case r.Kind == kindBegin && (r.UndoOf < 0 || r.UndoOf >= r.ID):
		return fmt.Errorf("change %d is said to undo %d", r.ID, r.UndoOf)
	case r.Kind == kindBegin:
		l.entries = append(l.entries, r.entry())
	case r.Kind != kindEnd:
		return fmt.Errorf("unknown kind %q", r.Kind)
	case !begun:
		return fmt.Errorf("outcome of change %d, which has no beginning", r.ID)
	case !r.State.valid():
		return fmt.Errorf("unknown state %q", r.State)
	default:
		r.end(&l.entries[i])
	}
	return nil
}

// cutLocked moves the torn end of the file into a file of its own.
func (l *Log) cutLocked(f *os.File, torn []byte) error {
	var aside string
	for n := 1; ; n++ { // nobody else makes such files meanwhile
		aside = fmt.Sprintf("%s.torn-%d", l.path, n)
		if _, err := os.Lstat(aside); errors.Is(err, fs.ErrNotExist) {
			break
		} else if err != nil {
			return err
		}
	}
	if err := statedir.WriteFile(aside, torn); err != nil {
		return fmt.Errorf("keep the torn end of %s: %w", l.path, err)
	}
	// Not f.Truncate, which Windows refuses for a file opened to append.
	if err := statedir.Truncate(l.path, l.offset); err != nil {
		return err
	}
	if err := l.fsync(f); err != nil {
		return err
	}
	l.problems = append(l.problems, Problem{l.lines + 1, fmt.Sprintf("torn; the last %d bytes of the file are now in %s", len(torn), aside)})
	return nil
}

// appendLocked adds lines to the file, durably and in one write, or leaves the
// file as it was.
func (l *Log) appendLocked(f *os.File, records ...any) error {
	var lines []byte
	for _, r := range records {
		line, err := encode(r)
		if err != nil {
			return err
		}
		lines = append(lines, line...)
	}
	if l.offset == 0 { // the file may be new
		if err := statedir.SyncDir(filepath.Dir(l.path)); err != nil {
			return fmt.Errorf("history: %w", err)
		}
	}
	err := statedir.Write(f, lines)
	if err == nil {
		err = l.fsync(f)
	}
	if err != nil {
		err = fmt.Errorf("history: %w", err)
		// The lines must go: were they found later, they would be taken for a
		// change that was sent. A part of one would be cut off later anyway.
		if back := statedir.Truncate(l.path, l.offset); back != nil {
			return fmt.Errorf("%w; what was written could not be taken back: %w", err, back)
		}
		_ = l.fsync(f) // the caller is told of the first failure
		return err
	}
	_, err = l.foldLocked(lines)
	return err
}
