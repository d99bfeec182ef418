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

// makeLink makes a link, in the place of one to a terminal that is gone, as an
// emulator leaves it that was killed. What is anything else stays.
func makeLink(path, target string) (*link, error) {
	old, err := os.Readlink(path)
	switch {
	case err == nil && !strings.HasPrefix(old, "/dev/pts/"):
		return nil, fmt.Errorf("%s is a link to %s, not to a terminal: remove it or choose another name", path, old)
	case err == nil:
		if _, err := os.Stat(old); err == nil {
			return nil, fmt.Errorf("%s leads to %s, which is in use: end the emulator that serves it, or choose another name (or remove the link, if %s is somebody's terminal)", path, old, old)
		}
	case !errors.Is(err, fs.ErrNotExist):
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
