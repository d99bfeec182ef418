package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
)

// Sentinels of this package's errors.
var (
	ErrNone    = errors.New("no such calibration")
	ErrDamaged = errors.New("damaged")
	ErrNewer   = errors.New("written by a newer program")
)

// patience is how long Put waits for another process that gives a version.
const patience = 10 * time.Second

// Store is the calibrations in a state directory.
type Store struct {
	dir string
}

// Open returns the calibrations of a state directory. It does no I/O: what is not there yet is made
// when it is needed.
func Open(stateDir string) *Store { return &Store{filepath.Join(stateDir, "calibrations")} }

// Put keeps a record and returns it with its version, the next of its kind, lab and subject. Made is
// now where it is zero, Expires [DefaultExpiry] later. It is on disk when Put returns; with an error
// nothing is kept. The version that r has does not matter.
func (s *Store) Put(r Record) (_ Record, err error) {
	if r.Made.IsZero() {
		r.Made = time.Now()
	}
	if r.Expires.IsZero() {
		r.Expires = r.Made.Add(DefaultExpiry(r.Kind))
	}
	r.Made, r.Expires, r.Version = r.Made.UTC().Round(0), r.Expires.UTC().Round(0), 1
	if err := r.check(); err != nil {
		return r, fmt.Errorf("a calibration cannot be kept: %w", err)
	}
	dir := s.place(r.Kind, r.Lab, r.Subject)
	if err := statedir.Make(dir); err != nil {
		return r, err
	}
	waiting, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	unlock, err := statedir.Lock(waiting, filepath.Join(dir, "lock"))
	if err != nil {
		return r, fmt.Errorf("keep a calibration: %w", err)
	}
	defer unlock()
	if r.Version, err = next(dir); err != nil {
		return r, err
	}
	text, err := json.MarshalIndent(file{Format, r}, "", "  ")
	if err != nil {
		return r, fmt.Errorf("keep a calibration: %w", err)
	}
	// The number first: a crash in between leaves one out, and gives none twice.
	if err := statedir.WriteFile(filepath.Join(dir, "last"), []byte(strconv.Itoa(r.Version)+"\n")); err != nil {
		return r, err
	}
	return r, statedir.WriteFile(filepath.Join(dir, fileName(r.Version)), append(text, '\n'))
}

// next is the version that is given next in a directory whose lock is held.
func next(dir string) (int, error) {
	versions, err := versionsIn(dir)
	if err != nil {
		return 0, err
	}
	last := 0
	if len(versions) > 0 {
		last = versions[0]
	}
	text, err := os.ReadFile(filepath.Join(dir, "last"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	if n, err := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil {
		last = max(last, n)
	}
	return last + 1, nil
}

// Latest returns the newest record of a subject, of a real lab or an emulated one. It fails when that
// is damaged, rather than to return an older one: see [Store.Get]. Without any the error
// matches [ErrNone].
func (s *Store) Latest(kind Kind, lab, subject string) (Record, error) {
	return s.latest(kind, lab, subject, func(Record) bool { return true })
}

// LatestOf is [Store.Latest] among the records of a real lab, or among those of an emulated one: an
// emulated lab goes by the name of that which it stands for, and one says nothing of the other.
func (s *Store) LatestOf(kind Kind, lab, subject string, emulated bool) (Record, error) {
	r, err := s.latest(kind, lab, subject, func(r Record) bool { return r.Emulated == emulated })
	if emulated && errors.Is(err, ErrNone) {
		err = fmt.Errorf("%w, emulated", err)
	}
	return r, err
}

func (s *Store) latest(kind Kind, lab, subject string, wanted func(Record) bool) (Record, error) {
	if _, err := ParseKind(string(kind)); err != nil {
		return Record{}, err
	}
	versions, err := versionsIn(s.place(kind, lab, subject))
	if err != nil {
		return Record{}, err
	}
	for _, v := range versions {
		r, err := s.Get(kind, lab, subject, v)
		switch {
		case errors.Is(err, ErrNone): // removed just now
		case err != nil || wanted(r):
			return r, err
		}
	}
	return Record{}, fmt.Errorf("%w: %s of %s in the lab %q", ErrNone, kind, subject, lab)
}

// Get returns one version of a record. The error matches [ErrNone] when there is none, [ErrNewer] when
// a newer program has written it, and [ErrDamaged] when it cannot be read for another
// reason.
func (s *Store) Get(kind Kind, lab, subject string, version int) (Record, error) {
	if _, err := ParseKind(string(kind)); err != nil {
		return Record{}, err
	}
	path := filepath.Join(s.place(kind, lab, subject), fileName(version))
	r, err := read(path)
	if err != nil {
		return Record{}, err
	}
	if r.Kind != kind || r.Lab != lab || r.Subject != subject || r.Version != version {
		return Record{}, misplaced(path, r)
	}
	return r, nil
}

func misplaced(path string, r Record) error {
	return fmt.Errorf("%s: %w: it says that it is version %d of %s of %q in the lab %q", path, ErrDamaged, r.Version, r.Kind, r.Subject, r.Lab)
}

// read reads a file.
func read(path string) (Record, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, fmt.Errorf("%w: there is no %s", ErrNone, path)
	}
	if err != nil {
		return Record{}, err
	}
	r, err := parse(text)
	switch {
	case errors.Is(err, ErrNewer):
		return Record{}, fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return Record{}, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
	}
	return r, nil
}

// List returns the records of a kind, or of all for "", newest first, and what is damaged: problems are one
// error for each file, and what they are about is not in the list. An empty store is no error.
func (s *Store) List(kind Kind) (list []Record, problems []error, err error) {
	kinds := Kinds()
	if kind != "" {
		if _, err := ParseKind(string(kind)); err != nil {
			return nil, nil, err
		}
		kinds = []Kind{kind}
	}
	for _, k := range kinds {
		dirs, err := filepath.Glob(filepath.Join(globEscape(filepath.Join(s.dir, string(k))), "*", "*"))
		if err != nil {
			return nil, nil, err
		}
		for _, dir := range dirs {
			versions, err := versionsIn(dir)
			if err != nil {
				problems = append(problems, err)
			}
			for _, v := range versions {
				path := filepath.Join(dir, fileName(v))
				r, err := read(path)
				if err == nil && (s.place(r.Kind, r.Lab, r.Subject) != dir || r.Version != v) {
					err = misplaced(path, r)
				}
				switch {
				case errors.Is(err, ErrNone): // removed just now
				case err != nil:
					problems = append(problems, err)
				default:
					list = append(list, r)
				}
			}
		}
	}
	slices.SortFunc(list, newestFirst)
	return list, problems, nil
}

// Remove removes one version of a record, damaged or not, for good; its number is not given again. The
// error matches [ErrNone] when there is none.
func (s *Store) Remove(kind Kind, lab, subject string, version int) error {
	if _, err := ParseKind(string(kind)); err != nil {
		return err
	}
	dir := s.place(kind, lab, subject)
	path := filepath.Join(dir, fileName(version))
	if err := os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no %s", ErrNone, path)
	} else if err != nil {
		return err
	}
	return statedir.SyncDir(dir)
}

// place is the directory of a subject.
func (s *Store) place(kind Kind, lab, subject string) string {
	return filepath.Join(s.dir, string(kind), escape(lab), escape(subject))
}

func fileName(version int) string { return fmt.Sprintf("%04d.json", version) }

// versionsIn returns the versions whose files are in a directory, highest first.
func versionsIn(dir string) ([]int, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var versions []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if n, err := strconv.Atoi(name); ok && err == nil && n > 0 && fileName(n) == e.Name() {
			versions = append(versions, n)
		}
	}
	slices.SortFunc(versions, func(a, b int) int { return b - a })
	return versions, nil
}

// escape makes a name one of a directory, whatever is in it, so that different names stay
// different.
func escape(name string) string {
	if name == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_',
			c == '.' && i > 0 && i < len(name)-1:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// globEscape takes the meaning from what filepath.Glob would take for a pattern.
func globEscape(path string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
