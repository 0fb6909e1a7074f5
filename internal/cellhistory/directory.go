package cellhistory

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
)

// Bounds on a directory of checkpoints.
const (
	MaxFiles = 10_000
	MaxBytes = 64 << 20 // of one, packed; one of 10,000 machines and 100,000 jobs has a few MiB
)

// nameLayout is the name of a file, without its ending.
const (
	nameLayout = "20060102T150405Z"
	fileEnding = ".cell"
)

// Name returns the name of the checkpoint of an instant.
func Name(at time.Time) string { return at.UTC().Format(nameLayout) }

// ParseName returns the instant of a name, and whether it is one.
func ParseName(name string) (time.Time, bool) {
	at, err := time.Parse(nameLayout, name)
	return at, err == nil && Name(at) == name
}

// List returns the instants of the checkpoints in a directory, the oldest first. Other
// files are left out. A directory that does not exist has none.
func List(dir string) ([]time.Time, error) {
	d, err := os.Open(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w: %w", roost.NoInput, err)
	}
	defer d.Close()
	names, err := d.Readdirnames(2 * MaxFiles)
	if err != nil && err != io.EOF {
		return nil, fmt.Errorf("checkpoints: %w: %w", roost.NoInput, err)
	}
	var all []time.Time
	for _, name := range names {
		if base, ok := strings.CutSuffix(name, fileEnding); ok {
			if at, ok := ParseName(base); ok {
				all = append(all, at)
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	return all[max(len(all)-MaxFiles, 0):], nil
}

// Read reads the checkpoint of an instant. It follows no link out of the directory, and
// reads regular files alone.
func Read(dir string, at time.Time) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, notFound(at)
	}
	defer root.Close()
	f, err := root.OpenFile(Name(at)+fileEnding, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, notFound(at)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, notFound(at)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w: %w", Name(at), roost.NoInput, err)
	}
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("checkpoint %s: %w: it has more than %v: look at it with roost sim show", Name(at),
			roost.Exhausted, roost.Bytes(MaxBytes))
	}
	return text, nil
}

func notFound(at time.Time) error {
	return fmt.Errorf("checkpoint %s: %w: there is none of that instant", Name(at), roost.NotFound)
}

// Write stores the checkpoint of an instant, which every user may read. It removes those
// that are older than maxAge, unless that is 0, and the oldest beyond MaxFiles.
func Write(dir string, at time.Time, text []byte, maxAge time.Duration) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("checkpoints: %w: %w", roost.NoOutput, err)
	}
	file := filepath.Join(dir, Name(at)+fileEnding)
	if err := atomicfile.Write(file, text, 0o644); err != nil {
		return fmt.Errorf("checkpoint %s: %w: %w", Name(at), roost.NoOutput, err)
	}
	all, err := List(dir)
	if err != nil {
		return err
	}
	for i, old := range all {
		if len(all)-i > MaxFiles || maxAge > 0 && at.Sub(old) > maxAge {
			if err := os.Remove(filepath.Join(dir, Name(old)+fileEnding)); err != nil {
				return fmt.Errorf("checkpoint %s: %w: %w", Name(old), roost.NoOutput, err)
			}
		}
	}
	return nil
}
