package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ocslab/ocslab/internal/statedir"
)

// recoverFiles moves what is at the ends of the two files and does not count into files
// beside them, and says so in one sentence each. The lock of the run must be held.
func recoverFiles(ctx context.Context, dir string) (torn []string, err error) {
	events, err := openNDJSON(dir, eventsFile)
	if err != nil {
		return nil, err
	}
	defer events.close()
	samples, err := openNDJSON(dir, samplesFile)
	if err != nil {
		return nil, err
	}
	defer samples.close()
	l, err := scan(ctx, events, samples)
	if err != nil {
		return nil, err
	}
	for _, f := range []struct {
		name       string
		from       ndjson
		good, size int64
	}{{eventsFile, events, l.good, l.size}, {samplesFile, samples, l.samplesGood, l.samplesSize}} {
		if f.good == f.size {
			continue
		}
		aside, err := cutOff(dir, f.name, f.from, f.good, f.size)
		if err != nil {
			return nil, err
		}
		torn = append(torn, fmt.Sprintf("The last %d bytes of %s were of a point that was not finished, and are now in %s.", f.size-f.good, f.name, aside))
	}
	return torn, nil
}

// cutOff moves the end of a file, however long, into a file of its own and returns that
// one's name.
func cutOff(dir, name string, from io.ReaderAt, good, size int64) (aside string, err error) {
	var to *os.File
	for n := 1; to == nil; n++ {
		aside = fmt.Sprintf("%s.torn-%d", name, n)
		to, err = os.OpenFile(filepath.Join(dir, aside), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("keep the torn end of %s: %w", name, err)
		}
	}
	_, err = io.Copy(to, io.NewSectionReader(from, good, size-good))
	if err = errors.Join(err, to.Sync(), to.Close(), statedir.SyncDir(dir)); err != nil {
		return "", fmt.Errorf("keep the torn end of %s: %w", name, errors.Join(err, os.Remove(to.Name())))
	}
	f, err := openDisk(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	err = errors.Join(f.Truncate(good), f.Sync(), f.Close())
	return aside, err
}
