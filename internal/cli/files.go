package cli

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
)

// userFiles looks at files with the rights of the user who called. It implements submit.Files.
type userFiles struct{}

func (userFiles) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }

func (userFiles) Access(path string, exec bool) error {
	mode := uint32(unix.R_OK)
	if exec {
		mode |= unix.X_OK
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

func (userFiles) Glob(pattern string) ([]string, error) {
	found, err := filepath.Glob(pattern)
	slices.Sort(found)
	return found, err
}

func (userFiles) Read(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(f, path, limit)
}

func (userFiles) LookPath(name string) (string, error) { return exec.LookPath(name) }

// readBounded reads all of r, which may hold no more than limit bytes.
func readBounded(r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: %w: it is larger than %v", name, roost.Exhausted, roost.Bytes(limit))
	}
	return text, err
}

// submitOptions says who submits and from where.
func (c *call) submitOptions() (submit.Options, error) {
	dir, err := c.workdir()
	if err != nil {
		return submit.Options{}, err
	}
	return submit.Options{Dir: dir, Home: c.home(), User: loginName(), Environ: c.env, Files: userFiles{}, Now: c.now()}, nil
}

func (c *call) home() string {
	if h := c.getenv("HOME"); filepath.IsAbs(h) {
		return h
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return "/"
}

// loginName is the name of the user; the number where the system knows none.
func loginName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return strconv.Itoa(os.Getuid())
}

// ownGroup is the name of the user's own group.
func ownGroup() string {
	if g, err := user.LookupGroupId(strconv.Itoa(os.Getgid())); err == nil {
		return g.Name
	}
	return strconv.Itoa(os.Getgid())
}
