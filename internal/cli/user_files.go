package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit"
)

// userFiles looks at files with the rights of the user who called. It implements
// submitJobs.FileAccess.
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
	return readLimited(f, path, limit)
}

func (userFiles) LookPath(name string) (string, error) { return exec.LookPath(name) }

// readLimited reads all of r, which may hold no more than limit bytes.
func readLimited(r io.Reader, name string, limit int64) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s: %w: it is larger than %v", name, roost.Exhausted, roost.Bytes(limit))
	}
	return text, err
}

// submitOptions says who submits and from where.
func (c *invocation) submitOptions() (submit.ParseOptions, error) {
	dir, err := c.workdir()
	if err != nil {
		return submit.ParseOptions{}, err
	}
	return submit.ParseOptions{Dir: dir, Home: c.homeDirectory(), User: loginName(), Environ: c.env, Files: userFiles{},
		Now: c.now()}, nil
}

func (c *invocation) homeDirectory() string {
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

// primaryGroup is the name of the user's own group.
func primaryGroup() string {
	if g, err := user.LookupGroupId(strconv.Itoa(os.Getgid())); err == nil {
		return g.Name
	}
	return strconv.Itoa(os.Getgid())
}

// absolutePath makes a path absolute where the program was told another working
// directory.
func (c *invocation) absolutePath(file string) string {
	if c.dir == "" || strings.HasPrefix(file, "/") {
		return file
	}
	return c.dir + string(os.PathSeparator) + file
}

// writeNewFile writes a file that is not there yet; with --force it replaces one, of
// which a crash or a full disk leaves the old. What is a device or a pipe is written to,
// and never replaced: --force, for root, would make a file of /dev/null.
func (c *invocation) writeNewFile(file, text string) error {
	path, flags := c.absolutePath(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL
	if openStream(path) {
		flags = os.O_WRONLY
	} else if _, err := os.Lstat(path); err == nil && c.flag("force") {
		return replaceFile(path, text)
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return withHint(kindErrorf(roost.NoOutput, "%s is there already", printableText(file)),
			"name another file, or write over it with --force")
	}
	if err != nil {
		return kindErrorf(roost.NoOutput, "%v", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		if flags&os.O_EXCL != 0 {
			os.Remove(path)
		}
		return kindErrorf(roost.NoOutput, "%v", err)
	}
	return nil
}

// replaceFile replaces a file, whose permissions it keeps. A crash or a full disk leaves
// the old one.
func replaceFile(path, text string) (err error) {
	defer func() {
		if err != nil {
			err = kindErrorf(roost.NoOutput, "%v", err)
		}
	}()
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(filepath.Dir(path), ".roost-fmt-*")
	if err != nil {
		return err
	}
	defer os.Remove(next.Name()) // not there any more once it is renamed
	_, err = next.WriteString(text)
	if err = errors.Join(err, next.Chmod(info.Mode().Perm()), next.Sync(), next.Close()); err != nil {
		return err
	}
	return os.Rename(next.Name(), path)
}

// openStream says whether a path is there and is no file or directory.
func openStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
