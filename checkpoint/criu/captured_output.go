package criu

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/image"
)

// maxCapturedFiles bounds the files in a directory for captured output.
const maxCapturedFiles = 64

// copyCaptured copies the files of a directory for captured output. Root owns the
// directory, so root made each name in it, even though the files belong to the user.
func copyCaptured(from, dir string) (list []capturedFile, err error) {
	to := filepath.Join(dir, image.IODir)
	if err := os.Mkdir(to, 0o700); err != nil || from == "" {
		return nil, err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if len(list) == maxCapturedFiles {
			return nil, fmt.Errorf("%s: %w: more than %d files", from, roost.Exhausted, maxCapturedFiles)
		}
		if !e.Type().IsRegular() {
			continue
		}
		info, err := copyFile(filepath.Join(from, e.Name()), filepath.Join(to, e.Name()))
		if err != nil {
			return nil, err
		}
		sys := info.Sys().(*syscall.Stat_t)
		list = append(list, capturedFile{e.Name(), info.Mode().Perm(), int(sys.Uid), int(sys.Gid)})
	}
	return list, nil
}

// copyFile copies a regular file to a new file of root's.
func copyFile(from, to string) (os.FileInfo, error) {
	in, err := os.OpenFile(from, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no plain file")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", from, err)
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = io.Copy(out, in)
	if cerr := out.Close(); err == nil {
		err = cerr
	}
	return info, err
}

// RestoreCaptured fills an attempt's directory for captured output with the files of the
// checkpoint, with their owners. The task continues to write to them. Existing files are
// replaced. The directory to belongs to root, and no other user may make files in it.
func RestoreCaptured(staging, to string) error {
	n, err := readNote(staging)
	if err != nil {
		return err
	}
	for _, c := range n.IO {
		if c.Name != filepath.Base(c.Name) || !filepath.IsLocal(c.Name) {
			return fmt.Errorf("captured output: %q: %w", c.Name, roost.Invalid)
		}
		path := filepath.Join(to, c.Name)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("captured output: %w: %w", roost.NoOutput, err)
		}
		_, err := copyFile(filepath.Join(staging, image.IODir, c.Name), path)
		if err == nil && os.Geteuid() == 0 {
			err = os.Lchown(path, c.UID, c.GID)
		}
		if err == nil {
			err = os.Chmod(path, c.Mode.Perm())
		}
		if err != nil {
			return fmt.Errorf("captured output: %w: %w", roost.NoOutput, err)
		}
	}
	return nil
}
