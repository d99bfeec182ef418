package panics

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
	"strings"
	"time"

	"github.com/ocslab/ocslab/internal/statedir"
	"github.com/ocslab/ocslab/ocs"
)

// FileName is the file in the state directory that remembers panics. A panic that cannot be written there has a file
// of its own beside it, "panic-" with its time and process, until the next change of FileName takes it in.
const FileName = "panic.json"

const (
	lockName    = "panic.lock"
	spillPrefix = "panic-"
	version     = 2 // 1 had no checksum
	// lockPatience is how long to wait for another process, which holds the lock for a few
	// milliseconds.
	lockPatience = 3 * time.Second
)

// KeepLifted is how many panics that were lifted are remembered.
const KeepLifted = 16

var (
	// ErrDamaged: a file is not as it was written.
	ErrDamaged = errors.New("is damaged; look at it, then move it away")
	// ErrNewer: a file has a format that this version does not know.
	ErrNewer = errors.New("was written by a newer version of ocslab")
	// ErrNoDirectory: there is no state directory to write to.
	ErrNoDirectory = errors.New("panics: there is no state directory")
)

// Content is what a file holds.
type Content struct {
	V     int    `json:"v"`
	Calls []Call `json:"calls"` // oldest first

	// Unread is set for the function of [Edit] when FileName could not be read: Calls are those of other files.
	Unread error `json:"-"`
}

// Read returns the panics that are remembered in a state directory, oldest first: those in
// force and the last that were lifted. With an error, which says what could not be read, it
// returns those that could. It takes no lock and creates nothing. No directory, "" or one that
// does not exist, remembers none.
func Read(dir string) ([]Call, error) {
	if dir == "" {
		return nil, nil
	}
	r := load(dir)
	return r.Calls, errors.Join(r.spillErr, r.mainErr)
}

// record is all that a state directory remembers.
type record struct {
	Content
	spills            []string // the files that were taken in
	mainErr, spillErr error    // why the file, or some of the others, could not be read
}

// load reads all files. The spills come first: one that is taken into the file meanwhile is found there then.
func load(dir string) (r record) {
	var calls []Call
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.spillErr = fmt.Errorf("panics: %w", err)
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), spillPrefix) || !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		c, err := readFile(path)
		if err != nil {
			r.spillErr = errors.Join(r.spillErr, err)
			continue
		}
		r.spills = append(r.spills, path)
		for _, call := range c.Calls {
			call.file = path
			calls = append(calls, call)
		}
	}
	r.Content, r.mainErr = readFile(filepath.Join(dir, FileName))
	for _, c := range calls {
		r.put(c)
	}
	return r
}

// readFile reads one file; one that does not exist is empty.
func readFile(path string) (Content, error) {
	data, err := statedir.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, nil
	}
	if err != nil {
		return Content{}, fmt.Errorf("panics: %w", err)
	}
	var head struct {
		V   float64 `json:"v"`
		CRC *string `json:"crc"`
	}
	var c Content
	err = json.Unmarshal(data, &head)
	if err == nil && head.V > version {
		return Content{}, fmt.Errorf("panics: %s %w", path, ErrNewer)
	}
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	switch {
	case err != nil:
		return Content{}, fmt.Errorf("panics: %s %w: %w", path, ErrDamaged, err)
	case c.V == 1 && head.CRC == nil:
	case c.V != version || !statedir.Sealed(bytes.TrimSuffix(data, []byte("\n"))):
		return Content{}, fmt.Errorf("panics: %s %w: its checksum is wrong", path, ErrDamaged)
	}
	return c, nil
}

// put takes in a panic, or a newer record of one that is there.
func (c *Content) put(call Call) (number int) {
	i := slices.IndexFunc(c.Calls, func(x Call) bool { return x.At.Equal(call.At) && x.Who == call.Who })
	if i >= 0 {
		c.Calls[i] = newer(c.Calls[i], call)
		number = c.Calls[i].N
	} else {
		if call.N < 1 || c.Call(call.N) != nil {
			call.N = c.Next()
		}
		number = call.N
		c.Calls = append(c.Calls, call)
		slices.SortStableFunc(c.Calls, func(a, b Call) int { return a.At.Compare(b.At) })
	}
	c.settle()
	return number
}

// newer returns what two records of one panic come to: the one that is stored, on which others may have lifted it, and
// that of its program.
func newer(stored, own Call) Call {
	if own.Round < stored.Round || own.Round == stored.Round && own.Rev <= stored.Rev {
		return stored
	}
	out := own
	out.N, out.file = stored.N, stored.file
	out.Changes = slices.Clone(stored.Changes)
	for _, id := range own.Changes {
		if !slices.Contains(out.Changes, id) {
			out.Changes = append(out.Changes, id)
		}
	}
	if own.Round > stored.Round {
		return out
	}
	out.Dark = slices.DeleteFunc(slices.Clone(stored.Dark), func(d Dark) bool { return !d.Lifted })
	inForce := false
	for _, d := range own.Dark {
		empty := len(d.Closed) == 0 && d.Removed.Len() == 0
		lifted := slices.ContainsFunc(stored.Dark, func(was Dark) bool {
			return was.Lifted && was.Device == d.Device && len(without(d.Closed, was.Closed)) == 0 && d.Removed.Minus(was.Removed).Len() == 0
		})
		if lifted || empty && !stored.Lifted.IsZero() {
			continue
		}
		out.Dark = append(out.Dark, d)
		inForce = inForce || !d.Lifted
	}
	slices.SortStableFunc(out.Dark, func(a, b Dark) int { return strings.Compare(a.Switch, b.Switch) })
	switch {
	case !inForce && !stored.Lifted.IsZero():
		out.Lifted = stored.Lifted
	case !inForce && len(out.Dark) > 0 && out.Lifted.IsZero():
		out.Lifted = time.Now()
	case inForce:
		out.Lifted = time.Time{}
		out.Again = out.Again || !stored.Lifted.IsZero()
	}
	return out
}

// without returns the ports of a that are not in b.
func without(a, b []ocs.Port) []ocs.Port {
	return slices.DeleteFunc(slices.Clone(a), func(p ocs.Port) bool { return slices.Contains(b, p) })
}

// settle writes to older panics that a switch is dark where a newer one has made it so: they wanted just that.
func (c *Content) settle() {
	dark := map[[2]string]bool{}
	for i := range slices.Backward(c.Calls) {
		for j := range c.Calls[i].Dark {
			d := &c.Calls[i].Dark[j]
			at := [2]string{d.Switch, d.Device}
			switch {
			case d.Lifted:
			case dark[at]:
				d.Became(IsDark, "")
			case d.State == IsDark:
				dark[at] = true
			}
		}
	}
}

// Edit changes the record under its lock, for which it waits until ctx ends, and at most a few seconds. An error of fn
// leaves it alone. Files that cannot be read are left alone, too: where that is FileName, each panic keeps, or gets, a
// file of its own.
func Edit(ctx context.Context, dir string, fn func(c *Content) error) error {
	if dir == "" {
		return ErrNoDirectory
	}
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	if err := statedir.Make(dir); err != nil {
		return fmt.Errorf("panics: %w", err)
	}
	unlock, err := statedir.Lock(ctx, filepath.Join(dir, lockName))
	if err != nil {
		return fmt.Errorf("panics: %w", err)
	}
	defer unlock()
	r := load(dir)
	r.Unread = r.mainErr
	if err := fn(&r.Content); err != nil {
		return err
	}
	if r.mainErr != nil {
		for i := range r.Calls {
			if err := r.Calls[i].writeFile(dir); err != nil {
				return err
			}
		}
		return nil
	}
	r.V = version
	r.forget()
	if err := writeContent(filepath.Join(dir, FileName), r.Content, statedir.WriteFile); err != nil {
		return err
	}
	for _, path := range r.spills {
		_ = statedir.Remove(path) // else it is passed over, as what is in the file is no older
	}
	return nil
}

// writeContent writes a file with its checksum.
func writeContent(path string, c Content, how func(path string, data []byte) error) error {
	data, err := statedir.Seal(c)
	if err == nil {
		err = how(path, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("panics: %w", err)
	}
	return nil
}

// Save writes the panic of this program as it is now, and sets its number. It waits for the lock until ctx ends; then,
// and when the record cannot be read or written, it writes a file of its own as [Spill] does. spilled says why, nil if
// it did not have to.
func Save(ctx context.Context, dir string, c *Call) (spilled, err error) {
	spilled = Edit(ctx, dir, func(x *Content) error {
		c.N = x.put(*c)
		return nil
	})
	if spilled == nil || dir == "" {
		return nil, spilled
	}
	if err := Spill(dir, c); err != nil {
		return spilled, fmt.Errorf("%w; %w", spilled, err)
	}
	return spilled, nil
}

// Spill writes the panic of this program as it is now into a file of its own, which needs no lock and nothing that is
// there. [Read] takes it in.
func Spill(dir string, c *Call) error {
	if dir == "" {
		return ErrNoDirectory
	}
	if c.N < 1 {
		calls, _ := Read(dir)
		c.N = (&Content{Calls: calls}).Next()
	}
	return c.writeFile(dir)
}

// path is the file of its own of a panic.
func (c *Call) path(dir string) string {
	if c.file != "" {
		return c.file
	}
	return filepath.Join(dir, fmt.Sprintf("%s%s-%d.json", spillPrefix, c.At.UTC().Format("20060102T150405.000000000"), os.Getpid()))
}

// writeFile writes the file of its own of a panic; one that has darkened nothing has none.
func (c *Call) writeFile(dir string) error {
	path := c.path(dir)
	now, err := readFile(path)
	there := len(now.Calls) > 0
	switch {
	case err != nil:
		return err
	case len(c.Dark) == 0 && !there:
		return nil
	case len(c.Dark) == 0:
		if err := statedir.Remove(path); err != nil {
			return fmt.Errorf("panics: %w", err)
		}
		return nil
	}
	write := *c
	if there && c.file == "" { // it may have been lifted there
		write = newer(now.Calls[0], *c)
	}
	content := Content{V: version, Calls: []Call{write}}
	if there {
		return writeContent(path, content, statedir.WriteFile)
	}
	if err := statedir.Make(dir); err != nil {
		return fmt.Errorf("panics: %w", err)
	}
	return writeContent(path, content, statedir.Create)
}

// forget drops panics that have darkened nothing, and the oldest that were lifted, as far
// as there are too many.
func (c *Content) forget() {
	c.Calls = slices.DeleteFunc(c.Calls, func(x Call) bool { return len(x.Dark) == 0 })
	lifted := 0
	for _, x := range c.Calls {
		if !x.Lifted.IsZero() {
			lifted++
		}
	}
	c.Calls = slices.DeleteFunc(c.Calls, func(x Call) bool {
		if x.Lifted.IsZero() || lifted <= KeepLifted {
			return false
		}
		lifted--
		return true
	})
}

// Call returns the panic of a number, nil if there is none.
func (c *Content) Call(n int) *Call {
	for i := range c.Calls {
		if c.Calls[i].N == n {
			return &c.Calls[i]
		}
	}
	return nil
}

// Next is the number of the next panic.
func (c *Content) Next() int {
	n := 0
	for _, x := range c.Calls {
		n = max(n, x.N)
	}
	return n + 1
}
