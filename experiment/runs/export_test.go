package runs

import (
	"database/sql"
	"testing"
	"time"

	"github.com/ocslab/ocslab/timeline"
)

// Disk is what a Writer writes to.
type Disk = disk

// OpenDisk opens a real one.
var OpenDisk = openDisk

// SetDisk sets what opens the files that grow.
func (s *Store) SetDisk(open func(path string) (Disk, error)) { s.disk = open }

// SetClock sets what tells the time.
func (s *Store) SetClock(clock func() (time.Time, int64)) { s.clock = clock }

// SetRemote sets what tells network file systems.
func (s *Store) SetRemote(remote func(dir string) string) { s.remote = remote }

// AppendMark returns the line of a mark.
func AppendMark(m timeline.Mark) []byte { return appendMark(nil, kindMark, &m) }

// ReadMark reads the line of a mark.
func ReadMark(line []byte) (m timeline.Mark, err error) {
	return m, newParser().mark(line, kindMark, &m)
}

// Exec does something to the index.
func Exec(t testing.TB, s *Store, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", s.Dir(indexFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}
