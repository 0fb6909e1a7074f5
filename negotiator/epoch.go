package negotiator

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
)

// epochFile and usageFile are what a negotiator keeps in its directory.
const (
	epochFile = "epoch"
	usageFile = "usage.json"
)

// nextEpoch raises the epoch that is kept in dir, durably, and returns it. Every start of the negotiator has its own, and a startd refuses
// grants of an epoch lower than the highest it has seen. So a directory that was lost must not make the epoch start at 1 again: the first
// epoch of an empty directory is the time in seconds, which no counter of restarts catches up with.
func nextEpoch(dir string, now time.Time) (uint64, error) {
	path := filepath.Join(dir, epochFile)
	text, err := os.ReadFile(path)
	epoch := uint64(max(now.Unix(), 1))
	switch {
	case err == nil:
		last, perr := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 63)
		if perr != nil {
			return 0, fmt.Errorf("%s: %w: it should hold one number (remove it to begin anew)", path, roost.BadConfig)
		}
		epoch = last + 1
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	return epoch, replaceFile(path, fmt.Appendln(nil, epoch))
}

// replaceFile writes a file so that after a crash at any moment either the old or the new content is there.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
