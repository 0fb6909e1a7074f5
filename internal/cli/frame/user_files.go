package frame

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// UserFiles reads files with the rights of the user who called. It implements
// jobspec.FileAccess.
type UserFiles struct{}

// Stat returns what the system knows of a file.
func (UserFiles) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

// Access returns an error unless the user may read a file, and execute it where exec is
// set.
func (UserFiles) Access(path string, exec bool) error {
	mode := uint32(unix.R_OK)
	if exec {
		mode |= unix.X_OK
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// Glob returns the files that match a pattern, in the order of their names.
func (UserFiles) Glob(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	slices.Sort(found)
	return found, err
}

// Read returns the contents of a file, which may have at most limit bytes.
func (UserFiles) Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadLimited(f, path, limit)
}

// LookPath finds a program in the directories of $PATH.
func (UserFiles) LookPath(name string) (string, error) { return exec.LookPath(name) }

// ReadLimited reads all of r, which may hold no more than limit bytes.
func ReadLimited(r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: %w: it is larger than %v", name, roost.Exhausted, roost.Bytes(limit))
	}
	return text, err
}
