package serialline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// link is a symbolic link to a terminal.
type link struct{ path, target string }

// makeLink makes a link, in the place of one that some other terminal had. What
// is anything else stays.
func makeLink(path, target string) (*link, error) {
	old, err := os.Readlink(path)
	switch {
	case err == nil && !strings.HasPrefix(old, "/dev/pts/"):
		return nil, fmt.Errorf("%s is a link to %s, not to a terminal: remove it or choose another name", path, old)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s is there and is not a link: remove it or choose another name", path)
	}
	// Made aside and moved, so that there is no moment without one.
	aside := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Symlink(target, aside); err != nil {
		return nil, err
	}
	if err := os.Rename(aside, path); err != nil {
		os.Remove(aside)
		return nil, err
	}
	return &link{path, target}, nil
}

// remove removes the link if it is still ours.
func (l *link) remove() {
	if l == nil {
		return
	}
	if target, err := os.Readlink(l.path); err == nil && target == l.target {
		os.Remove(l.path)
	}
}
