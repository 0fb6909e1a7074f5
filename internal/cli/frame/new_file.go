package frame

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
)

// AbsolutePath makes a path absolute where the program has a working directory of its
// own.
func (c *Invocation) AbsolutePath(file string) string {
	if c.Dir == "" || strings.HasPrefix(file, "/") {
		return file
	}
	return c.Dir + string(os.PathSeparator) + file
}

// WriteNewFile writes a file that does not exist yet. With --force it replaces one; a
// crash or a full disk leaves the old file. What is a device or a pipe is written to, and
// never replaced: --force, for root, would make a file of /dev/null.
func (c *Invocation) WriteNewFile(file, text string) error {
	path, flags := c.AbsolutePath(file), os.O_WRONLY|os.O_CREATE|os.O_EXCL
	if IsStream(path) {
		flags = os.O_WRONLY
	} else if _, err := os.Lstat(path); err == nil && c.Flag("force") {
		return ReplaceFile(path, text)
	}
	f, err := os.OpenFile(path, flags, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return WithHint(KindErrorf(roost.NoOutput, "%s is there already", document.PrintableText(file)),
			"name another file, or write over it with --force")
	}
	if err != nil {
		return KindErrorf(roost.NoOutput, "%v", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		if flags&os.O_EXCL != 0 {
			os.Remove(path)
		}
		return KindErrorf(roost.NoOutput, "%v", err)
	}
	return nil
}

// ReplaceFile replaces a file, whose permissions it keeps. A crash or a full disk leaves
// the old one.
func ReplaceFile(path, text string) (err error) {
	defer func() {
		if err != nil {
			err = KindErrorf(roost.NoOutput, "%v", err)
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

// IsStream reports whether a path exists and is neither a file nor a directory.
func IsStream(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}
